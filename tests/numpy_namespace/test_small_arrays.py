"""Small arrays that the host, or one launch, computes at once."""

from __future__ import annotations

import dovetail as dt
import dovetail.numpy as np
import numpy as host
import pytest
from dovetail.engine.events import counters


def test_steps_that_copy_and_then_write_are_hits() -> None:
    p = np.linspace(0.0, 1.0, 50)
    for step in range(6):
        if step == 3:
            before = counters.evaluations - counters.graph_hits
        previous = p.copy()
        p[1:-1] = 0.5 * (previous[2:] + previous[:-2])
    assert counters.evaluations - counters.graph_hits == before


def test_copy_in_a_captured_function_stays_pending() -> None:
    def double_copy(x: np.ndarray) -> np.ndarray:
        y = x.copy()
        y[0] = 7.0
        return x + y

    x = np.arange(3.0)
    for _ in range(3):
        host.testing.assert_array_equal(dt.jit(double_copy)(x), [7.0, 2.0, 4.0])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u4", "i8", "?"])
def test_sort_in_place_has_the_bits_of_a_sort_by_kernels(dtype: str) -> None:
    rng = host.random.default_rng(1)
    values = rng.integers(0, 2, 6).astype(dtype)
    if dtype[0] == "f":
        bits = host.iinfo(dtype.replace("f", "u"))
        nans = host.array([bits.max, bits.max - 1, bits.max >> 1], bits.dtype).view(dtype)
        values = host.concatenate([values, -values, nans, [host.inf, -host.inf]], dtype=dtype)
    for shape in [(1,), (30,), (4, 5), (3, 2, 4)]:
        a = values[rng.integers(0, values.size, shape)]
        for axis in range(-1, len(shape)):
            x = np.array(a)
            alias = x.ravel()
            x.sort(axis)
            wanted = dt.sort(dt.asarray(a, device="reference"), axis=axis)
            assert x.numpy().tobytes() == wanted.numpy().tobytes() == alias.numpy().tobytes()


def test_sort_in_place_is_seen_by_pending_readers_gradients_and_captures() -> None:
    x = np.array([3.0, 1.0, 2.0])
    doubled = x * 2
    x.sort()
    assert doubled.tolist() == [6.0, 2.0, 4.0]
    assert x.tolist() == [1.0, 2.0, 3.0]

    def ordered(y: np.ndarray) -> np.ndarray:
        z = y.copy()
        z.sort()
        return z

    f = dt.jit(ordered)
    for values in ([2.0, 1.0], [5.0, 4.0], [8.0, 7.0]):
        assert f(np.array(values)).tolist() == sorted(values)
    y = np.array([2.0, 1.0]).requires_grad_()
    ordered(y)[0].backward()
    assert y.grad.tolist() == [0.0, 1.0]
