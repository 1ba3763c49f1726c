"""Reductions against NumPy: every axis, dtype and view; errors."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, list-item, no-untyped-call"
from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest

HAS_CPU = any(e.name == "cpu" for e in dt.plugins.installed())
AXES = [None, 0, 1, -1, (0, 2), (1,), (0, 1, 2), ()]
NAMES = ["sum", "prod", "mean", "max", "min", "any", "all", "count_nonzero", "var", "std"]
DTYPES = ["bool", "int8", "uint16", "int64", "float32", "float64"]


def dtypes_for(device: dt.Device) -> list[str]:
    """Return the dtypes to test: few on compiling devices, whose bits are compared with the
    reference.
    """
    return DTYPES if device.type == "reference" else ["int8", "float32"]


def sample(dtype: str, seed: int = 0) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random((3, 4, 5)) < 0.8
    if dtype.startswith("float"):
        return rng.standard_normal((3, 4, 5)).astype(dtype)
    return rng.integers(1, 4, (3, 4, 5)).astype(dtype)


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_reductions_equal_numpy(device: dt.Device, name: str, axis: Any) -> None:
    for i, dtype in enumerate(dtypes_for(device)):
        a = sample(dtype, i)
        for view in (a, a.transpose(2, 0, 1)[:, ::-1]):
            x = (
                dt.flip(dt.permute_dims(dt.asarray(a), (2, 0, 1)), axis=1)
                if view is not a
                else dt.asarray(a)
            )
            keep = bool(i % 2)
            found = getattr(dt, name)(x, axis=axis, keepdims=keep)
            if name == "count_nonzero" and axis == ():
                want = (view != 0).astype("i8")
            else:
                want = getattr(np, name)(view, axis=axis, keepdims=keep)
            if name in ("mean", "var", "std") and not dtype.startswith("float"):
                want = want.astype("f4")
            want = np.asarray(want)
            assert found.shape == want.shape and found.dtype.name == want.dtype.name
            close = {"float32": 2e-6, "float64": 1e-13}.get(found.dtype.name, 0)
            np.testing.assert_allclose(found.numpy(), want, rtol=close, atol=close)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_argmax_and_argmin_equal_numpy(device: dt.Device, name: str) -> None:
    for i, dtype in enumerate(dtypes_for(device)):
        a = sample(dtype, i)
        for axis in (None, 0, 1, 2, -1):
            found = getattr(dt, name)(dt.asarray(a), axis=axis, keepdims=i % 2 == 0)
            want = getattr(np, name)(a, axis=axis, keepdims=i % 2 == 0)
            assert found.dtype is dt.int64 and found.shape == np.shape(want)
            np.testing.assert_array_equal(found.numpy(), want)
    x = dt.asarray([1.0, np.nan, 3.0, np.nan])
    assert x.argmax().item() == x.argmin().item() == 1


@pytest.mark.parametrize("n", [1, 31, 33, 4096, 4100, 40_000])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u8", "?"])
def test_argmax_returns_the_first_of_equal_elements(device: dt.Device, dtype: str, n: int) -> None:
    """Also if no element is better than the start value of the search."""
    lowest = {"f": -np.inf, "i": -128, "u": 0, "?": False}[dtype[0]]
    one_higher = np.full(n, lowest, dtype)
    one_higher[n // 2 :] = 1
    samples = [np.full(n, lowest, dtype), one_higher, one_higher[::-1]]
    if dtype[0] == "f":
        with_nan = np.full(n, -np.inf, dtype)
        with_nan[n // 3 :: 7] = np.nan
        samples += [with_nan, -one_higher]
    for sample in samples:
        x = dt.asarray(sample, device=device)
        assert (x.argmax().item(), x.argmin().item()) == (sample.argmax(), sample.argmin())


def test_max_and_min_propagate_nan(device: dt.Device) -> None:
    x = dt.asarray([[1.0, np.nan], [-np.inf, np.inf]])
    np.testing.assert_array_equal(x.max(1).numpy(), [np.nan, np.inf])
    np.testing.assert_array_equal(x.min(1).numpy(), [np.nan, -np.inf])
    assert dt.any(x).item() and dt.all(x).item(), "NaN is not zero"


def test_dtype_argument_and_default_result_dtypes(device: dt.Device) -> None:
    x = dt.asarray([100, 100, 100], dtype=dt.int8)
    assert x.sum().item() == 300 and x.sum(dtype=dt.int8).item() == 44
    assert x.sum(dtype=dt.float64).dtype is dt.float64 and x.prod().item() == 10**6
    assert dt.asarray([1, 2], dtype=dt.uint8).sum().dtype is dt.uint64
    halves = dt.full(4096, 1.0, dtype=dt.float16)
    assert halves.sum().dtype is dt.float16 and halves.sum().item() == 4096, "summed in float16"
    assert dt.full(2**17, 1.0, dtype=dt.bfloat16).mean().item() == 1
    assert dt.full(100, 300.0, dtype=dt.float16).var().item() == 0
    assert dt.mean(dt.asarray([1, 2]), dtype=dt.float64).item() == 1.5


def test_correction_argument_equals_ddof(device: dt.Device) -> None:
    a = np.random.default_rng(1).standard_normal((6, 7))
    for correction in (0, 1, 2.5):
        found = dt.var(dt.asarray(a), axis=0, correction=correction)
        np.testing.assert_allclose(found.numpy(), a.var(0, ddof=correction), rtol=1e-13)
    found = dt.std(dt.asarray(a), correction=1, keepdims=True)
    np.testing.assert_allclose(found.numpy(), a.std(ddof=1, keepdims=True), rtol=1e-13)
    assert dt.var(dt.ones(1), correction=1).isnan().item()


def test_logsumexp_handles_infinities_and_large_values(device: dt.Device) -> None:
    a = np.array([[1000.0, 1000.5], [-np.inf, -np.inf], [np.inf, 0.0], [-3.0, 2.0]])
    want = np.logaddexp(a[:, 0], a[:, 1])
    np.testing.assert_allclose(dt.logsumexp(dt.asarray(a), axis=1).numpy(), want, rtol=1e-15)
    assert dt.logsumexp(dt.asarray([1, 2]), keepdims=True).shape == (1,)


def test_out_argument_writes_to_views(device: dt.Device) -> None:
    x, out = dt.ones((2, 3)), dt.zeros(2)
    assert dt.sum(x, axis=1, out=out) is out and out.tolist() == [3, 3]
    view = dt.permute_dims(dt.zeros((3, 2)), (1, 0))
    total = dt.reshape(view, (6,))
    assert dt.var(x, axis=0, out=dt.zeros(3)).tolist() == [0, 0, 0] and total.sum().item() == 0
    with pytest.raises(dt.ShapeError, match="sum: out= is"):
        dt.sum(x, axis=0, out=out)
    with pytest.raises(dt.DTypeError, match="argmax: out= is float32"):
        dt.argmax(x, axis=1, out=out)
    assert out.tolist() == [3, 3], "an error must not write"


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_reductions_of_empty_tensors(device: dt.Device, shape: tuple[int, ...]) -> None:
    x = dt.zeros(shape)
    assert x.sum().item() == 0 and x.prod().item() == 1 and x.mean().isnan().item()
    assert not x.any().item() and x.all().item() and x.count_nonzero().item() == 0
    assert x.sum(0).tolist() == np.zeros(shape).sum(0).tolist()
    for name in ("max", "min", "argmax", "argmin", "logsumexp"):
        with pytest.raises(dt.ShapeError, match=f"{name}: expected at least one element"):
            getattr(dt, name)(x)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda x: x.sum(2), dt.AxisError, r"sum: axis 2 is out of range for 2 dimensions"),
        (lambda x: x.sum((0, -2)), dt.AxisError, "axes must be distinct"),
        (lambda x: dt.ones(()).max(0), dt.AxisError, "0-dimensional"),
        (lambda x: x.argmax((0, 1)), dt.ArgumentError, "argmax: axis must be an int, got"),
        (lambda x: dt.sum([1, 2]), dt.DTypeError, "sum: expected a tensor, got list"),
        (lambda x: x.sum(dtype=dt.bool), dt.DTypeError, "count_nonzero"),
        (lambda x: (x * 1j).max(), dt.DTypeError, "max: expected .* got complex64"),
    ],
)
def test_errors_of_reductions(
    device: dt.Device, call: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        call(dt.ones((2, 3)))


@pytest.mark.skipif(not HAS_CPU, reason="the cpu backend is not installed")
@pytest.mark.parametrize("shape", [(100_003,), (5, 4100), (4100, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_every_device_has_the_bits_of_the_reference(shape: tuple[int, ...], dtype: str) -> None:
    a = np.random.default_rng(2).standard_normal(shape).astype(dtype)
    for name in ("sum", "mean", "var", "max", "argmin"):
        for axis in (None, 0):
            bits = [
                getattr(dt, name)(dt.asarray(a, device=d), axis=axis).numpy().tobytes()
                for d in ("reference", "cpu")
            ]
            assert bits[0] == bits[1], (name, axis)


@pytest.mark.parametrize("name", ["sum", "max", "argmin", "mean", "any"])
def test_cached_reductions_use_the_current_operands(name: str) -> None:
    rule, numpys = getattr(dt, name), getattr(np, name)
    for seed in range(3):
        a = np.random.default_rng(seed).integers(-9, 9, (4, 5)).astype("f8")
        x = dt.asarray(a, device="cpu")
        for axis in (0, 1, -1, None):
            for keep in (True, False):
                for y, b in ((x, a), (x.T, a.T), (x * 2, a * 2), (x.astype(dt.int32), a)):
                    want = numpys(b, axis=axis, keepdims=keep)
                    got = rule(y, axis=axis, keepdims=keep)
                    assert got.shape == want.shape
                    np.testing.assert_allclose(got.numpy(), want)
        with pytest.raises(dt.AxisError):
            rule(x, axis=2)
        with pytest.raises(dt.DovetailError):
            rule(x, axis=0, keepdims="yes")
