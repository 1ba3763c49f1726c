"""Cached templates of composed functions: cache hits compute the same results from new operands."""

from __future__ import annotations

import math
from collections.abc import Callable

import dovetail as dt
import numpy as np
import pytest
from dovetail.errors import DovetailError
from dovetail.functions.graph_cache import CachedFunction

pytestmark = pytest.mark.usefixtures("device")

TIMES = 4  # the first call is remembered, the second stores a template, others use it


def _values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _read(x: dt.Tensor) -> np.ndarray:
    """Return the values.

    While a view by `numpy()` is alive, ops run eagerly and nothing is cached.
    """
    return np.array(x.tolist())


CASES: dict[str, tuple[Callable[[dt.Tensor], dt.Tensor], Callable[[np.ndarray], np.ndarray]]] = {
    "tril": (lambda x: dt.tril(x, k=1), lambda a: np.tril(a, 1)),
    "triu": (lambda x: dt.triu(x, -1), lambda a: np.triu(a, -1)),
    "stack": (lambda x: dt.stack([x, x + 1], axis=1), lambda a: np.stack([a, a + 1], 1)),
    "roll": (lambda x: dt.roll(x, 3, axis=0), lambda a: np.roll(a, 3, 0)),
    "roll of all": (lambda x: dt.roll(x, (1, 2), axis=(0, 1)),
                    lambda a: np.roll(a, (1, 2), (0, 1))),
    "tile": (lambda x: dt.tile(x, (2, 3)), lambda a: np.tile(a, (2, 3))),
    "repeat": (lambda x: dt.repeat(x, 3), lambda a: np.repeat(a, 3)),
    "repeat along": (lambda x: dt.repeat(x, 2, axis=1), lambda a: np.repeat(a, 2, 1)),
    "diff": (lambda x: dt.diff(x, axis=0), lambda a: np.diff(a, axis=0)),
    "diff twice": (lambda x: dt.diff(x, n=2), lambda a: np.diff(a, 2)),
    "cumulative_sum": (lambda x: dt.cumulative_sum(x, axis=1), lambda a: np.cumsum(a, 1)),
    "sort": (lambda x: dt.sort(x, axis=0), lambda a: np.sort(a, 0)),
    "argsort": (lambda x: dt.argsort(x, descending=True), lambda a: np.argsort(-a, -1)),
    "var": (lambda x: dt.var(x, axis=1, correction=1), lambda a: np.var(a, 1, ddof=1)),
    "std": (lambda x: dt.std(x, correction=0.5), lambda a: np.std(a, ddof=0.5)),
    "logsumexp": (lambda x: dt.logsumexp(x, axis=0), lambda a: np.log(np.exp(a).sum(0))),
    "vecdot": (lambda x: dt.vecdot(x, x[::-1]), lambda a: (a * a[::-1]).sum(-1)),
    "outer": (lambda x: dt.outer(x[0], x[:, 1]), lambda a: np.outer(a[0], a[:, 1])),
    "tensordot": (lambda x: dt.tensordot(x, x.T, axes=1), lambda a: np.tensordot(a, a.T, 1)),
    "take": (lambda x: dt.take(x, dt.asarray([1, -1], device=x.device), axis=1),
             lambda a: np.take(a, [1, -1], 1)),
    "rows": (lambda x: x[dt.asarray([2, 0, -1], device=x.device)], lambda a: a[[2, 0, -1]]),
    "searchsorted": (lambda x: dt.searchsorted(dt.sort(x[0]), x),
                     lambda a: np.searchsorted(np.sort(a[0]), a)),
    "convolve": (lambda x: dt.convolve(dt.ravel(x), dt.ravel(x)[:3]),
                 lambda a: np.convolve(a.ravel(), a.ravel()[:3])),
    "reshape": (lambda x: dt.reshape(x.T, (-1,)), lambda a: a.T.reshape(-1)),
}  # fmt: skip
FORMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "dense": lambda a: a, "transposed": lambda a: a.T, "every second": lambda a: a[::2],
    "reversed": lambda a: a[:, ::-1],
}  # fmt: skip


def _formed(a: np.ndarray, form: str) -> dt.Tensor:
    x = dt.asarray(a)
    if form == "transposed":
        return x.T
    if form == "every second":
        return x[::2]
    return dt.flip(x, axis=1) if form == "reversed" else x


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pending", [False, True])
def test_cached_result_depends_on_the_current_operands(name: str, form: str, pending: bool) -> None:
    ours, theirs = CASES[name]
    for k in range(TIMES):
        a = _values(6, 6, seed=k)
        x = _formed(a, form)
        got = ours(x + 1 if pending else x)
        want = theirs(FORMS[form](a) + np.float32(1) if pending else FORMS[form](a))
        assert got.shape == want.shape
        np.testing.assert_allclose(_read(got), want, rtol=2e-5, atol=1e-5)


def test_third_call_does_not_run_the_function() -> None:
    asked = []

    def doubled(x: dt.Tensor, by: int) -> dt.Tensor:
        asked.append(by)
        return (x * by) * 2

    noted = CachedFunction(doubled)
    x = dt.asarray(_values(5))
    for k in range(TIMES):
        assert noted.call((x + k, 3), {}).tolist() == ((x + k) * 6).tolist()
    assert asked == [3, 3]
    assert noted.call((x, 4), {}).tolist() == (x * 8).tolist()
    assert asked == [3, 3, 4]


def test_call_after_an_export_has_ended_does_not_run_the_function() -> None:
    calls = []

    def outer(x: dt.Tensor) -> dt.Tensor:
        calls.append(x)
        return x[:, None] * x

    cached = CachedFunction(outer)
    for k in range(TIMES):
        values = _values(3, seed=k)
        x = dt.asarray(values)
        exported = x.numpy()  # while it lives, ops run at once
        del exported
        assert (_read(cached.call((x,), {})) == values[:, None] * values).all()
    assert len(calls) == 2


def test_function_that_reads_on_the_host_is_not_cached() -> None:
    def largest(x: dt.Tensor) -> dt.Tensor:
        return dt.zeros((2,)) + float(dt.max(x))

    noted = CachedFunction(largest)
    for k in range(TIMES):
        assert noted.call((dt.asarray([0.0, float(k)]),), {}).tolist() == [k, k]


def test_scalars_of_another_type_are_distinguished() -> None:
    x = dt.asarray(_values(4, 4), device="reference")
    for _ in range(TIMES):
        assert dt.expand_dims(x, 1).shape == (4, 1, 4)
        with pytest.raises(DovetailError, match="expand_dims"):
            dt.expand_dims(x, 1.0)  # type: ignore[arg-type]
        assert dt.tile(x, 2).shape == (4, 8)
        with pytest.raises(DovetailError, match="tile"):
            dt.tile(x, 2.0)  # type: ignore[arg-type]


def test_zeros_of_both_signs_and_bools_are_distinguished() -> None:
    for _ in range(TIMES):
        assert math.copysign(1, dt.full(1, 0.0).item()) == 1
        assert math.copysign(1, dt.full(1, -0.0).item()) == -1
        assert dt.full(1, True).dtype is dt.bool
        assert dt.full(1, 1).dtype is dt.int64
        assert math.isnan(dt.full(1, math.nan).item())


def test_one_operand_twice_is_distinguished_from_two() -> None:
    a, b = _values(4, 3), _values(4, 3, seed=1)
    x, y = dt.asarray(a), dt.asarray(b)
    for _ in range(TIMES):
        np.testing.assert_allclose(_read(dt.vecdot(x, x)), (a * a).sum(-1), rtol=1e-5)
    for _ in range(TIMES):
        np.testing.assert_allclose(_read(dt.vecdot(x, y)), (a * b).sum(-1), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(_read(dt.vecdot(y, x[:1])), (b * a[:1]).sum(-1), rtol=1e-5)


def test_creation_uses_the_current_default_dtype_and_device() -> None:
    makers: list[Callable[[], dt.Tensor]] = [
        lambda: dt.zeros(3), lambda: dt.ones((2, 3)), lambda: dt.linspace(0, 1, 5),
        lambda: dt.eye(3), lambda: dt.full(2, 1.5),
    ]  # fmt: skip
    for make in makers:
        for _ in range(TIMES):
            assert make().dtype is dt.float32
        dt.set_default_dtype(dt.float64)
        try:
            for _ in range(TIMES):
                assert make().dtype is dt.float64
        finally:
            dt.set_default_dtype(dt.float32)
        assert make().dtype is dt.float32
        before = make().device
        with dt.device("reference"):
            for _ in range(TIMES):
                assert make().device is dt.device("reference")
        assert make().device is before


def test_number_in_a_tensor_is_read_each_time() -> None:
    x = dt.asarray([1.0, 2.0])
    for k in range(1, TIMES):
        assert dt.full(2, dt.asarray(k)).tolist() == [k, k]
        assert dt.repeat(x, dt.asarray([k])).tolist() == [1.0] * k + [2.0] * k


def test_gradients_flow_through_cached_results() -> None:
    x = dt.asarray(_values(3, 3)).requires_grad_()
    for _ in range(TIMES):
        x.grad = None
        dt.sum(dt.tril(x) * 2).backward()
        assert x.grad is not None
        assert x.grad.tolist() == (np.tril(np.ones((3, 3))) * 2).tolist()
        dt.tril(dt.asarray(_values(3, 3)))


def test_write_does_not_change_recorded_results() -> None:
    for _ in range(TIMES):
        x = dt.asarray([1.0, 2.0, 3.0])
        y, z, turned = dt.tile(x, 2), dt.diff(x), dt.flip(x)
        x[0] = 9.0
        assert y.tolist() == [1.0, 2.0, 3.0] * 2
        assert z.tolist() == [1.0, 1.0]
        assert turned.tolist() == [3.0, 2.0, 9.0]  # a view
        turned[0] = 7.0
        assert x.tolist() == [9.0, 2.0, 7.0]


def test_bad_index_names_the_current_line() -> None:
    x, bad = dt.asarray(_values(2, 3)), dt.asarray([[0], [5]])
    for _ in range(TIMES):
        with pytest.raises(dt.OutOfRangeError, match="take_along_axis: 5 is out of range"):
            dt.take_along_axis(x, bad, axis=1).tolist()
        with pytest.raises(dt.OutOfRangeError, match="index: 7 is out of range for axis 0"):
            x[dt.asarray([0, 7])].tolist()


def test_cached_functions_in_captured_and_eager_mode() -> None:
    a = _values(4, 4)
    x = dt.asarray(a)
    for _ in range(TIMES):
        dt.tril(x), dt.zeros(4), dt.roll(x, 1)

    @dt.jit
    def f(x: dt.Tensor) -> dt.Tensor:
        return dt.tril(x) + dt.zeros(4) + dt.roll(x, 1)

    want = np.tril(a) + np.roll(a, 1)
    for _ in range(TIMES):
        np.testing.assert_array_equal(_read(f(x)), want)
    with dt.eager():
        for _ in range(TIMES):
            np.testing.assert_array_equal(_read(dt.tril(x) + dt.roll(x, 1)), want)
    per_example = dt.func.vmap(lambda row: dt.roll(row, 1) + dt.zeros(4))
    for _ in range(TIMES):
        np.testing.assert_array_equal(_read(per_example(x)), np.roll(a, 1, 1))


VIEWS: dict[str, tuple[Callable[[dt.Tensor], dt.Tensor], Callable[[np.ndarray], np.ndarray]]] = {
    "permute_dims": (lambda x: dt.permute_dims(x, (2, 0, 1)), lambda a: a.transpose(2, 0, 1)),
    "moveaxis": (lambda x: dt.moveaxis(x, 0, -1), lambda a: np.moveaxis(a, 0, -1)),
    "swapaxes": (lambda x: dt.swapaxes(x, 0, 2), lambda a: a.swapaxes(0, 2)),
    "matrix_transpose": (dt.matrix_transpose, lambda a: a.swapaxes(-1, -2)),
    "expand_dims": (lambda x: dt.expand_dims(x, (0, -1)), lambda a: np.expand_dims(a, (0, -1))),
    "squeeze": (dt.squeeze, np.squeeze),
    "reshape": (lambda x: dt.reshape(x, (2, -1)), lambda a: a.reshape(2, -1)),
    "flip": (lambda x: dt.flip(x, axis=2), lambda a: a[:, :, ::-1]),
    "broadcast_to": (lambda x: dt.broadcast_to(x, (5, 2, 1, 4)),
                     lambda a: np.broadcast_to(a, (5, 2, 1, 4))),
    "x[None]": (lambda x: x[None], lambda a: a[None]),
    "x[:, None, ..., 0]": (lambda x: x[:, None, ..., 0], lambda a: a[:, None, ..., 0]),
    "x[..., None]": (lambda x: x[..., None], lambda a: a[..., None]),
    "x[..., 1:3]": (lambda x: x[..., 1:3], lambda a: a[..., 1:3]),
    "x[1, ..., None, ::-1]": (lambda x: x[1, ..., None, ::-1], lambda a: a[1, ..., None, ::-1]),
    "x[...]": (lambda x: x[...], lambda a: a[...]),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_cached_views_share_the_memory_of_the_current_operand(name: str) -> None:
    ours, theirs = VIEWS[name]
    for k in range(TIMES):
        a = _values(2, 1, 4, seed=k)
        x = dt.asarray(a)
        seen = ours(x)
        assert seen.shape == theirs(a).shape
        assert seen.storage() is x.storage()
        np.testing.assert_array_equal(_read(seen), theirs(a))
        x += 1
        np.testing.assert_array_equal(_read(seen), theirs(a + 1))
        np.testing.assert_array_equal(_read(ours(x * 2)), theirs((a + 1) * 2))  # of pending work


def test_new_axes_have_the_strides_of_a_dense_tensor() -> None:
    x = dt.asarray(_values(3, 4))
    pending = dt.asarray(_values(3, 4)) + 1
    for key in (None, (slice(None), None), (..., None), (None, 1, None, ...)):
        assert x[key].stride() == pending[key].stride(), key
    with pytest.raises(dt.OutOfRangeError, match="at most one"):
        x[..., 0, ...]
    with pytest.raises(dt.OutOfRangeError, match="got 3"):
        x[0, None, 0, ..., 0]


def test_masked_assignment_of_a_number() -> None:
    a = _values(4, 5)
    for mask in (a > 0, a > 5, np.ones((4, 5), bool)):
        x, b = dt.asarray(a), a.copy()
        x[dt.asarray(mask)] = 3
        b[mask] = 3
        np.testing.assert_array_equal(_read(x), b)
    x = dt.asarray(a)
    before = x * 1
    row = x[1]
    x[x < 0] = 0
    np.testing.assert_array_equal(_read(x), np.where(a < 0, 0, a))
    np.testing.assert_array_equal(_read(row), np.where(a < 0, 0, a)[1])
    np.testing.assert_array_equal(_read(before), a)
    n = dt.asarray([1, 2])
    with pytest.raises(dt.DTypeError, match="setitem"):
        n[n > 1] = 0.5
    taped = dt.asarray(a).requires_grad_()
    with pytest.raises(dt.GradientError):
        taped[taped > 0] = 1.0
    y = taped * 1
    y[y > 0] = 1.0
    dt.sum(y).backward()
    assert taped.grad is not None
    np.testing.assert_array_equal(_read(taped.grad), (a <= 0).astype(np.float32))


def test_views_of_operands_are_not_cached_as_results() -> None:
    asked = []

    def rest(x: dt.Tensor) -> dt.Tensor:
        asked.append("rest")
        return x[1:]

    def doubled(x: dt.Tensor) -> dt.Tensor:
        asked.append("doubled")
        return x[1:] * 2

    x = dt.asarray([1.0, 2.0, 3.0])
    noted = CachedFunction(rest)
    for _ in range(TIMES):
        assert noted.call((x,), {}).tolist() == [2.0, 3.0]
    assert asked == ["rest"] * TIMES  # each is cached with `x`
    noted, asked[:] = CachedFunction(doubled), []
    for _ in range(TIMES):
        assert noted.call((x + 1,), {}).tolist() == [6.0, 8.0]
    assert asked == ["doubled"] * TIMES  # a view of pending work changes that tensor
    for _ in range(TIMES):
        assert noted.call((x,), {}).tolist() == [4.0, 6.0]
    assert asked == ["doubled"] * (TIMES + 2)


def test_function_with_a_gradient_dependent_path_is_distinguished() -> None:
    for _ in range(TIMES):
        assert dt.std(dt.asarray([1.0] * 4)).item() == 0
    for _ in range(TIMES):
        x = dt.asarray([1.0] * 4).requires_grad_()
        dt.std(x).backward()
        assert x.grad is not None
        assert x.grad.tolist() == [0.0] * 4  # 0 / 0 by the rule of the root


@pytest.mark.parametrize("name", ["linspace", "arange", "roll", "diff"])
def test_template_keeps_no_value_of_a_tensor_that_the_host_reads(name: str) -> None:
    x = dt.asarray([0.0, 1.0, 4.0, 9.0, 16.0, 25.0])
    call = {
        "linspace": lambda n: dt.linspace(0, n, 3),
        "arange": lambda n: dt.arange(n),
        "roll": lambda n: dt.roll(x, n),
        "diff": lambda n: dt.diff(x, n=n),
    }[name]
    for n in range(1, 5):
        assert call(dt.asarray(n)).tolist() == call(n).tolist()
