"""Windows as views equal NumPy's and PyTorch's; draws of indices have the weights' frequencies."""

from __future__ import annotations

from collections import Counter
from typing import Any

import dovetail as dt
import numpy as np
import pytest

VALUES = np.arange(24.0, dtype=np.float32).reshape(4, 6)
WEIGHTS = [0.1, 0.0, 0.6, 0.3]


@pytest.mark.parametrize(
    "arguments",
    [((2, 3),), (2, 1), ((2, 2), (1, 1)), ((2,), (0,)), ((4, 6),), ((), ()), ((1, 2), (-1, 0))],
    ids=str,
)
@pytest.mark.parametrize("part", [np.s_[:], np.s_[::2, ::-1], np.s_[1:]], ids=str)
def test_sliding_window_view_equals_numpys(arguments: Any, part: Any) -> None:
    x = dt.asarray(VALUES, device="reference")
    try:
        expected = np.lib.stride_tricks.sliding_window_view(VALUES[part], *arguments)
    except ValueError:
        with pytest.raises(dt.ShapeError, match="sliding_window_view: windows must fit"):
            dt.sliding_window_view(x[part], *arguments)
        return
    found = dt.sliding_window_view(x[part], *arguments)
    np.testing.assert_array_equal(np.asarray(found), expected)
    assert found.shape == expected.shape


@pytest.mark.parametrize("arguments", [(0, 2, 1), (1, 3, 2), (-1, 2, 3), (0, 4, 5)], ids=str)
@pytest.mark.parametrize("part", [np.s_[:], np.s_[:, ::2], np.s_[2]], ids=str)
def test_unfold_method_equals_pytorchs(arguments: Any, part: Any) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    x, theirs = dt.asarray(VALUES, device="reference"), torch.asarray(VALUES)
    try:
        expected = theirs[part].unfold(*arguments)
    except (RuntimeError, IndexError) as error:
        own = dt.AxisError if isinstance(error, IndexError) else dt.ArgumentError
        with pytest.raises(own, match="unfold: "):
            x[part].unfold(*arguments)
        return
    np.testing.assert_array_equal(np.asarray(x[part].unfold(*arguments)), expected)


def test_windows_share_memory_and_pass_gradients() -> None:
    x = dt.asarray([1.0, 2.0, 3.0], device="reference")
    windows = x.unfold(0, 2, 1)
    x[1] = 9.0
    assert windows.tolist() == [[1.0, 9.0], [9.0, 3.0]]
    y = dt.ones(3, device="reference").requires_grad_()
    y.unfold(0, 2, 1).sum().backward()
    assert y.grad.tolist() == [1.0, 2.0, 1.0]


def test_windows_of_a_vector_refuse_wrong_sizes() -> None:
    x = dt.ones(3, device="reference")
    with pytest.raises(dt.ArgumentError, match=r"for each of 1 axes, got \(2, 2\)"):
        dt.sliding_window_view(x, (2, 2))
    with pytest.raises(dt.ArgumentError, match="unfold: step must be at least 1, got 0"):
        x.unfold(0, 2, 0)


@pytest.mark.parametrize("kind", ["multinomial", "categorical", "without"])
def test_draws_have_the_frequencies_of_the_weights(kind: str) -> None:
    n, g = 4000, dt.random.default_rng(5)
    p = dt.asarray(WEIGHTS, device="reference")
    if kind == "multinomial":
        drawn = dt.multinomial(p, n, replacement=True, generator=g)
    elif kind == "categorical":
        drawn = g.categorical(dt.log(p), shape=n)
    else:
        drawn = dt.multinomial(dt.broadcast_to(p, (n, 4)), 1, generator=g)[:, 0]
    assert drawn.dtype is dt.int64 and drawn.shape == (n,)
    counts = Counter(drawn.tolist())
    assert counts[1] == 0
    for k, weight in enumerate(WEIGHTS):
        assert abs(counts[k] / n - weight) < 5 * (weight * (1 - weight) / n) ** 0.5 + 1e-12


def test_draws_without_replacement_are_distinct_and_skip_weights_of_zero() -> None:
    p = dt.asarray([WEIGHTS, WEIGHTS[::-1]], device="reference")
    first, second = p.multinomial(3).tolist()
    assert sorted(first) == [0, 2, 3] and sorted(second) == [0, 1, 3]


def test_second_draw_without_replacement_has_the_frequencies_of_the_rest() -> None:
    n = 4000
    p = dt.broadcast_to(dt.asarray([0.5, 0.25, 0.25], device="reference"), (n, 3))
    pairs = Counter(map(tuple, p.multinomial(2, generator=dt.random.default_rng(1)).tolist()))
    expected = {(0, 1): 0.25, (0, 2): 0.25, (1, 0): 1 / 6, (2, 0): 1 / 6, (1, 2): 1 / 12}
    for pair, share in expected.items():
        assert abs(pairs[pair] / n - share) < 5 * (share * (1 - share) / n) ** 0.5


def test_categorical_shapes_are_those_of_jax() -> None:
    logits = dt.zeros((2, 5), device="reference")
    assert dt.random.categorical(logits).shape == (2,)
    assert dt.random.categorical(logits, axis=0).shape == (5,)
    assert dt.random.categorical(logits, shape=(7, 2)).shape == (7, 2)
    with pytest.raises(dt.ShapeError, match=r"categorical: shape must end with \(2,\), got \(7,\)"):
        dt.random.categorical(logits, shape=7)


def test_draws_are_captured_and_advance_the_stream() -> None:
    with dt.device("reference"):
        p = dt.full((64,), 1 / 64)
        draw = dt.jit(lambda p: (dt.multinomial(p, 4), dt.random.categorical(dt.log(p), shape=4)))
        results = [[part.tolist() for part in draw(p)] for _ in range(2)]
    assert results[0] != results[1]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("dt.multinomial(p, 4)", "cannot draw 4 samples from 3 positive weights"),
        ("dt.multinomial(p, 5)", "cannot draw 5 samples from 4 values"),
        ("dt.multinomial(-p, 1)", "x must have no negative number"),
        ("dt.multinomial(p * 0, 1, True)", "a sum that is positive"),
        ("dt.multinomial(p[None, None], 1)", r"expected floats of shape \(n,\) or \(m, n\)"),
        ("dt.multinomial(p, 0)", "num_samples must be at least 1"),
        ("dt.rand_like(p.astype(dt.int32))", "rand_like: .*dtype must be floating-point"),
    ],
)
def test_bad_draws_raise(call: str, text: str) -> None:
    p = dt.asarray(WEIGHTS, device="reference")
    with pytest.raises(dt.DovetailError, match=text):
        eval(call, {"dt": dt, "p": p})


@pytest.mark.parametrize("name", ["rand", "randn"])
def test_like_draws_equal_the_draws_of_that_shape(name: str) -> None:
    x = dt.zeros((2, 3), dtype=dt.float64, device="reference")
    found = getattr(dt, f"{name}_like")(x, generator=dt.random.default_rng(3))
    draw = getattr(dt.random, name)
    g = dt.random.default_rng(3)
    expected = draw(2, 3, dtype=dt.float64, device="reference", generator=g)
    assert found.dtype is dt.float64 and found.device == "reference"
    assert found.tolist() == expected.tolist()
