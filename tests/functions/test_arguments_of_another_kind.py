"""Arguments of a wrong kind: a bool in place of an int, a keyword that a mode ignores."""

from __future__ import annotations

from collections.abc import Callable

import dovetail as dt
import numpy as np
import pytest

F = dt.nn.functional
VALUES = np.arange(12.0).reshape(3, 4)

# `x` is a matrix (3, 4), `v` a vector of 4 ints, `b` stands for a bool.
TAKES_NO_BOOL = """
x.std(b) | x.var(b) | x.std(correction=b) | x.var(correction=b) | x.sum(b) | x.sum(axis=b)
x.mean(axis=(b,)) | x.max(b) | x.prod(axis=b) | x.argmax(b) | x.all(axis=b) | dt.logsumexp(x, b)
dt.count_nonzero(x, axis=b) | dt.median(x, b) | dt.quantile(x, 0.5, b) | dt.nansum(x, b)
dt.nanvar(x, correction=b) | dt.cov(x, correction=b) | dt.ptp(x, b) | dt.average(x, b)
x.reshape(b) | dt.reshape(v[:1], (b,)) | dt.zeros(b) | dt.ones((2, b)) | dt.full(b, 1) | dt.empty(b)
dt.eye(b) | dt.eye(2, k=b) | dt.linspace(0, 1, b) | dt.arange(b) | dt.broadcast_to(v[:1], b)
dt.roll(x, b) | dt.roll(x, 1, axis=b) | dt.flip(x, axis=b) | dt.sort(x, axis=b) | dt.argsort(x, b)
dt.concat([x, x], axis=b) | dt.stack([x, x], axis=b) | dt.expand_dims(x, axis=b) | x.squeeze(b)
dt.moveaxis(x, b, 0) | dt.swapaxes(x, b, 0) | dt.permute_dims(x, (b, 1)) | dt.repeat(v, b)
dt.tile(v, b) | dt.split(x, b) | dt.topk(x, b) | dt.rot90(x, b) | dt.tril(x, b) | dt.diagonal(x, b)
dt.pad(x, b) | dt.round(x, b) | dt.diff(x, n=b) | dt.take(x, v[:1], axis=b) | dt.gradient(x, axis=b)
dt.trapezoid(x, axis=b) | dt.vander(v, b) | dt.histogram(x, b) | dt.fft.fft(x, axis=b)
dt.fft.fft(x, b)
dt.softmax(x, axis=b) | dt.cumulative_sum(x, axis=b) | dt.linalg.vector_norm(x, ord=b)
dt.linalg.matrix_norm(x, ord=b) | dt.linalg.matrix_power(x[:, :3], b) | dt.bincount(v, minlength=b)
dt.random.integers(0, 5, b) | dt.unstack(x, axis=b) | F.softmax(x, dim=b) | F.normalize(x, p=b)
F.one_hot(v, b) | dt.nn.Linear(b, 2) | F.pairwise_distance(x, x, p=b)
""".replace("\n", "|")
CALLS = [c.strip() for c in TAKES_NO_BOOL.split("|") if c.strip()]


@pytest.mark.parametrize("flag", [True, False, np.True_])
@pytest.mark.parametrize("call", CALLS)
def test_bool_in_place_of_a_number_raises(call: str, flag: object) -> None:
    names = {
        "dt": dt, "F": F, "b": flag, "x": dt.asarray(VALUES, device="reference"),
        "v": dt.arange(4, device="reference"),
    }  # fmt: skip
    with pytest.raises(dt.DovetailError, match=str(flag)):
        eval(call, names)


def test_flags_may_be_ints() -> None:
    x = dt.asarray(VALUES, device="reference")
    assert x.sum(axis=np.int64(0), keepdims=1).shape == (1, 4)


def test_std_of_a_bool_names_correction() -> None:
    with pytest.raises(dt.ArgumentTypeError, match="unbiased=False use correction=0"):
        dt.asarray(VALUES).std(False)


def test_gradient_returns_axes_in_the_given_order() -> None:
    x = dt.asarray(VALUES * VALUES)
    made = dt.gradient(x, 2.0, 3.0, axis=(1, 0))
    wanted = np.gradient(VALUES * VALUES, 2.0, 3.0, axis=(1, 0))
    assert isinstance(made, tuple)
    for ours, theirs in zip(made, wanted, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-15)


@pytest.mark.parametrize("axes", [(1, 0), (2, 1), (0, 2), (2, 0)])
def test_average_takes_weights_in_the_order_of_axes(axes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    values = rng.random((3, 4, 4))
    weights = rng.random([values.shape[d] for d in axes])
    made = dt.average(dt.asarray(values), axes, dt.asarray(weights))
    assert isinstance(made, dt.Tensor)
    np.testing.assert_allclose(made.numpy(), np.average(values, axes, weights), rtol=1e-14)


@pytest.mark.parametrize("order", [0, 3, 0.5])
def test_numpy_matrix_norm_rejects_vector_orders(order: float) -> None:
    x = dt.asarray(VALUES)
    with pytest.raises(ValueError):
        np.linalg.norm(VALUES, order)
    with pytest.raises(dt.ArgumentError, match="ord"):
        np.linalg.norm(x, order)
    with pytest.raises(dt.ArgumentError, match="one or two axes"):
        np.linalg.norm(x.reshape(3, 2, 2), order)
    assert np.linalg.norm(x[0], order).item() == pytest.approx(np.linalg.norm(VALUES[0], order))


def test_in_place_product_with_another_shape_raises() -> None:
    a = dt.ones((3, 3))
    with pytest.raises(dt.ShapeError, match=r"matmul in place: .*\(3, 1\)"):
        a @= dt.ones((3, 1))
    assert a.tolist() == np.ones((3, 3)).tolist()
    a @= dt.ones((3, 3))
    assert a.tolist() == np.full((3, 3), 3.0).tolist()


X = dt.asarray([1.0, 2.0, 4.0])
IGNORED: dict[str, Callable[[], object]] = {
    "pad": lambda: dt.pad(X, 1, mode="edge", constant_values=3),
    "np.pad": lambda: np.pad(X, 1, mode="wrap", constant_values=0),  # type: ignore[call-overload]
    "interp left": lambda: dt.interp(X, X, X, left=0.0, period=2.0),
    "interp right": lambda: dt.interp(X, X, X, right=0.0, period=2.0),
    "trapezoid": lambda: dt.trapezoid(X, X, dx=2.0),
    "np.std": lambda: np.std(X, ddof=1, correction=0),  # type: ignore[call-overload]
    "np.clip": lambda: np.clip(X, 0, 1, min=2),
    "np.sort": lambda: np.sort(X, kind="stable", stable=True),  # type: ignore[call-overload]
    "np.matrix_rank": lambda: np.linalg.matrix_rank(dt.eye(2), 1e-3, rtol=1e-3),  # type: ignore[call-overload]
    "np.pinv": lambda: np.linalg.pinv(dt.eye(2), 1e-3, rtol=1e-3),  # type: ignore[call-overload]
    "cross_entropy": lambda: F.cross_entropy(dt.ones((2, 2)), dt.ones((2, 2)), ignore_index=1),
}


@pytest.mark.parametrize("name", IGNORED)
def test_keyword_without_effect_raises(name: str) -> None:
    with pytest.raises(dt.ArgumentError):
        IGNORED[name]()


def test_keyword_of_its_mode_has_an_effect() -> None:
    assert dt.pad(X, 1, constant_values=3).tolist() == [3.0, 1.0, 2.0, 4.0, 3.0]
    assert dt.pad(X, 1).tolist() == [0.0, 1.0, 2.0, 4.0, 0.0]
    assert dt.trapezoid(X, dx=2.0).item() == 9.0
    assert F.pad(X[None], (1, 0), mode="replicate", value=0.0).tolist() == [[1.0, 1.0, 2.0, 4.0]]
