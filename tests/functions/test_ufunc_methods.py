"""`reduce`, `accumulate`, `reduceat` and `at` of NumPy's ufuncs on tensors."""

# Methods of functions are found at run time, and some tests pass wrong types.
# mypy: disable-error-code="arg-type, attr-defined, no-untyped-call"
from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest

BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm"]
LOGICAL = ["logical_and", "logical_or", "logical_xor"]
FLOATS = ["maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2", "hypot"]
UFUNCS = ["add", "multiply", *LOGICAL, *BITS, *FLOATS]


def sample(name: str) -> np.ndarray:
    a = np.random.default_rng(1).integers(0, 7, (5, 3))
    return a.astype("f8") / 2 if name in FLOATS else a.astype("i8")


@pytest.mark.parametrize("name", UFUNCS)
def test_ufunc_reductions_equal_numpy(device: dt.Device, name: str) -> None:
    a, ufunc = sample(name), getattr(np, name)
    x = dt.asarray(a, device=device)
    for axis in (0, -1):
        for found, want in [
            (ufunc.reduce(x, axis=axis), ufunc.reduce(a, axis=axis)),
            (ufunc.accumulate(x, axis=axis), ufunc.accumulate(a, axis=axis)),
            (ufunc.reduceat(x, [0, 2, 1], axis=axis), ufunc.reduceat(a, [0, 2, 1], axis=axis)),
        ]:
            assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
            np.testing.assert_allclose(found.numpy(), want, rtol=1e-12)
    own = ufunc.reduce(x, axis=(0, 1), keepdims=True)
    np.testing.assert_allclose(own.numpy(), ufunc.reduce(ufunc.reduce(a), keepdims=True)[None])


@pytest.mark.parametrize("name", UFUNCS)
def test_ufunc_at_combines_repeated_indices(device: dt.Device, name: str) -> None:
    a, ufunc = sample(name), getattr(np, name)
    x = dt.asarray(a.copy(), device=device)
    b = np.array([3, 1, 2, 6]).astype(a.dtype)
    index = ([0, 2, 0, 0], [1, 1, 1, 2])
    ufunc.at(x, index, dt.asarray(b, device=device))
    ufunc.at(a, index, b)
    np.testing.assert_allclose(x.numpy(), a, rtol=1e-12)


def test_bitwise_or_reduces_by_definition(device: dt.Device) -> None:
    x = dt.asarray([1, 2, 8], device=device)
    assert dt.bitwise_or.reduce(x).item() == 11
    assert dt.maximum.accumulate(dt.asarray([1, 3, 2], device=device)).tolist() == [1, 3, 3]
    assert dt.add.reduceat(x, [0, 2]).tolist() == [3, 8]
    assert dt.bitwise_xor.reduce(x, where=[True, False, True], initial=4).item() == 13
    assert dt.bitwise_and.reduce(dt.zeros((0, 2), dtype=dt.int8, device=device)).tolist() == [
        -1,
        -1,
    ]


def test_at_writes_in_place_and_returns_none(device: dt.Device) -> None:
    x = dt.asarray([1.0, 2.0, 3.0], device=device)
    assert dt.add.at(x, [0, 0, 2], 1.0) is None and x.tolist() == [3.0, 2.0, 4.0]
    np.subtract.at(x, [1, 1], [0.5, 0.25])
    assert x.tolist() == [3.0, 1.25, 4.0]
    dt.maximum.at(x, slice(0, 2), 2.0)
    assert x.tolist() == [3.0, 2.0, 4.0]


def test_ufunc_folds_have_gradients() -> None:
    x = dt.asarray([0.5, 1.5, 1.0], dtype=dt.float64, requires_grad=True)
    assert dt.autograd.gradcheck(lambda t: dt.logaddexp.accumulate(t) + dt.hypot.reduce(t), x)


def test_bad_ufunc_method_arguments_raise() -> None:
    x = dt.asarray([1, 2, 3])
    with pytest.raises(dt.ArgumentError, match=r"indices must be in 0\.\.2"):
        dt.add.reduceat(x, [0, 3])
    with pytest.raises(dt.ShapeError, match="at least one element"):
        np.fmax.reduce(dt.zeros(0))
    with pytest.raises(dt.DTypeError, match="must not lose their kind"):
        dt.add.at(x, [0], 0.5)
    with pytest.raises(dt.DTypeError, match=r"np\.divide\.reduce"):
        dt.divide.reduce(x)


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "i2", "?"])
def test_bitwise_and_folds_each_integer(device: dt.Device, dtype: str) -> None:
    a = np.array([7, 3, 6], dtype)
    for values in (a, a[:0]):
        found = np.bitwise_and.reduce(dt.asarray(values))
        assert found.item() == np.bitwise_and.reduce(values)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_add_at_and_subtract_at_have_the_bits_of_numpy(device: dt.Device, dtype: str) -> None:
    rng = np.random.default_rng(0)
    a = (100 * rng.standard_normal((5, 3))).astype(dtype)
    mask = a > 0
    for key, shape in [
        (rng.integers(0, 5, 40), (40, 3)),
        ((rng.integers(-5, 5, 40), rng.integers(0, 3, 40)), (40,)),
        ((slice(None), [0, 0, 2, 0]), (5, 4)),
        (mask, (int(mask.sum()),)),
        (slice(1, 4), (3, 3)),
        ((2, 1), ()),
    ]:
        for values in (100 * rng.standard_normal(shape), np.array(3.0)):
            b = np.asarray(values).astype(dtype)
            for ufunc in (np.add, np.subtract):
                x, want = dt.asarray(a.copy(), device=device), a.copy()
                ufunc.at(x, key, dt.asarray(b, device=device))
                ufunc.at(want, key, b)
                assert x.numpy().tobytes() == want.tobytes()


def test_add_at_has_gradients_and_refuses_positions_outside(device: dt.Device) -> None:
    b = dt.ones(3, dtype=dt.float64, device=device, requires_grad=True)
    x = dt.zeros(2, dtype=dt.float64, device=device)
    dt.add.at(x, [0, 1, 0], b * 2)
    (x * x).sum().backward()
    assert b.grad.tolist() == [16.0, 8.0, 16.0]
    with pytest.raises(dt.OutOfRangeError, match=r"add\.at: 2 is out of range"):
        dt.add.at(x.detach(), [2], 1.0)
