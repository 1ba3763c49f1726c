"""Set operations against NumPy; gradients; bad input."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call"
from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import gradcheck

NAMES = ["union1d", "intersect1d", "setdiff1d", "setxor1d"]
NAN = np.nan
PAIRS: list[tuple[Any, Any]] = [
    ([5, 3, 5, 4], [9, 4, 4, 3, -1]),
    ([[5, 3], [3, 1]], [[1], [2]]),
    ([1, 2], [3, 4]),
    ([7, 7, 7], [7]),
    ([], [2, 1, 2]),
    ([2, 1, 2], []),
    ([], []),
    (3, [3, 4]),
]
FLOATS = [
    (np.array([NAN, 1.0, NAN, -0.0]), np.array([0.0, NAN, 2.0])),
    (np.array([np.inf, -1.5, 1e300]), np.array([1e300, -np.inf, np.inf, np.inf])),
]


def assert_same(found: Any, want: Any) -> None:
    """Assert equal shapes, dtypes and elements of one tensor or of several."""
    if isinstance(want, tuple):
        assert len(found) == len(want)
        for f, w in zip(found, want, strict=True):
            assert_same(f, w)
        return
    assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
    np.testing.assert_array_equal(found.numpy(), want)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["i8", "u1", "f4", "f8", "?", "c16"])
def test_set_operations_equal_numpy(device: dt.Device, name: str, dtype: str) -> None:
    for pair in PAIRS:
        a, b = (np.abs(np.asarray(v)) if dtype == "u1" else np.asarray(v) for v in pair)
        a, b = np.asarray(a, dtype), np.asarray(b, dtype)
        want = getattr(np, name)(a, b)
        assert_same(getattr(dt, name)(dt.asarray(a), dt.asarray(b)), want)
        assert_same(getattr(dt, name)(dt.asarray(a), b), want)
        assert_same(getattr(dt, name)(a, dt.asarray(b)), want)
        assert_same(getattr(np, name)(dt.asarray(a), b), want)


@pytest.mark.parametrize("name", NAMES)
def test_nans_infinities_and_zeros_equal_numpy(device: dt.Device, name: str) -> None:
    for a, b in FLOATS:
        assert_same(getattr(dt, name)(dt.asarray(a), dt.asarray(b)), getattr(np, name)(a, b))


@pytest.mark.parametrize("name", NAMES)
def test_many_elements_equal_numpy(device: dt.Device, name: str) -> None:
    a, b = np.arange(3000) * 7 % 1000, np.arange(2000) * 3 % 1500
    assert_same(getattr(dt, name)(dt.asarray(a), dt.asarray(b)), getattr(np, name)(a, b))


@pytest.mark.parametrize("name", NAMES[1:])
def test_assume_unique_keeps_the_order_of_elements(device: dt.Device, name: str) -> None:
    for a, b in (([5, 1, 3], [3, 9, 1]), ([], [1]), ([4], []), ([], [])):
        x, y = np.array(a, "i4"), np.array(b, "i4")
        want = getattr(np, name)(x, y, True)
        assert_same(getattr(dt, name)(dt.asarray(x), dt.asarray(y), True), want)
        assert_same(getattr(np, name)(dt.asarray(x), dt.asarray(y), assume_unique=True), want)


@pytest.mark.parametrize("unique", [False, True])
def test_return_indices_equals_numpy(device: dt.Device, unique: bool) -> None:
    pairs: list[Any] = [([5, 1, 3], [3, 9, 1, 5]), ([[2, 4]], [4, 2]), ([], [1])]
    for a, b in pairs if unique else [*pairs, ([3, 5, 3, 5], [5, 5, 3])]:
        x, y = np.array(a, "f4"), np.array(b, "f4")
        want = np.intersect1d(x, y, unique, return_indices=True)
        assert_same(dt.intersect1d(dt.asarray(x), dt.asarray(y), unique, return_indices=True), want)
        assert_same(np.intersect1d(dt.asarray(x), y, unique, return_indices=True), want)


def test_two_dtypes_are_promoted(device: dt.Device) -> None:
    a, b = np.array([1, 2, 3], "i4"), np.array([2, 9], "i8")
    for name in NAMES:
        assert_same(getattr(dt, name)(dt.asarray(a), dt.asarray(b)), getattr(np, name)(a, b))
    assert dt.setdiff1d(dt.asarray(a), dt.asarray(b)).dtype is dt.int32


def test_gradients_flow_to_results(device: dt.Device) -> None:
    x = dt.asarray([3.0, 1.0, 3.5], dtype="float64").requires_grad_()
    y = dt.asarray([2.0, 5.0], dtype="float64").requires_grad_()
    assert gradcheck(dt.union1d, (x, y)) and gradcheck(dt.setxor1d, (x, y))
    assert gradcheck(lambda v: dt.setdiff1d(v, [2.0]), (x,))
    for function, at_x, at_y in (
        (dt.union1d, [1, 1, 1], [0, 1]),
        (dt.intersect1d, [0, 1, 0], [0, 0]),
        (dt.setxor1d, [1, 0, 1], [0, 1]),
    ):
        found: Any = function(x, y - 1.0 + dt.asarray([0.0, 1.0], dtype="float64"))
        grads = dt.grad(found.sum() + 0 * (x.sum() + y.sum()), [x, y])
        assert [g.tolist() for g in grads] == [at_x, at_y]


@pytest.mark.parametrize("name", NAMES)
def test_wrong_arguments_are_named(name: str) -> None:
    f = getattr(dt, name)
    x = dt.arange(3, device="reference")
    with pytest.raises(dt.DTypeError, match=f"{name}: expected tensors"):
        f(x, "abc")
    with pytest.raises(dt.DeviceError, match=name):
        f(x, dt.arange(3, device="cpu"))
    if name != "union1d":
        with pytest.raises(
            dt.ArgumentTypeError, match=f"{name}: assume_unique must be True or False"
        ):
            f(x, x, "yes")
    with pytest.raises(dt.ArgumentTypeError, match="intersect1d: return_indices must be True or"):
        dt.intersect1d(x, x, return_indices=None)
