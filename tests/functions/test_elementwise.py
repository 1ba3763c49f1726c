"""Elementwise functions against NumPy and the reference; promotion; scalars; out=; errors."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, list-item, no-untyped-call"
from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.functions.elementwise.op_functions import FUNCTIONS, WITHOUT_IN_PLACE
from dovetail.ops.table import TABLE

HAS_CPU = any(e.name == "cpu" for e in dt.plugins.installed())
NUMPY_NAMES = {"pow": "power"}
REAL = [d for d in dt.dtypes.ALL if d.kind != "c"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, 700.0, np.inf, -np.inf, np.nan]


def sample(dtype: dt.DType, seed: int, size: int = 40) -> dt.Tensor:
    """Return values of a dtype, including special ones, on the default device."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "f":
        values = np.concatenate(
            [rng.permutation(SPECIAL), rng.standard_normal(size - len(SPECIAL)) * 3]
        )
        return dt.asarray(values.astype("f4"), dtype=dtype)
    low, high = (0, 2) if dtype.kind == "b" else (dtype.min, dtype.max)
    wide = rng.integers(low, high, size, dtype="u8" if dtype is dt.uint64 else "i8")
    wide[:4] = rng.permutation(np.array([0, 1, high, low], dtype=wide.dtype))
    return dt.asarray(wide.astype(dtype.__numpy_dtype__))


@pytest.fixture
def on_reference() -> Iterator[None]:
    """Run on the reference only; the comparison of bits covers other devices."""
    before = dt.default_device()
    dt.set_default_device("reference")
    yield
    dt.set_default_device(before)


def test_every_op_has_a_function() -> None:
    private = {"where", "clip", "astype", "copy"}
    rows = {op.name for op in TABLE.values() if op.kind == "map" and op.name.isidentifier()}
    public = {name for name in rows if hasattr(dt, name)}
    assert set(FUNCTIONS) <= public and private - {"astype"} <= public
    for name in FUNCTIONS:
        assert (
            name in (getattr(dt, name).__doc__ or "") or getattr(dt, name).__doc__.count("\n") >= 2
        )
        assert hasattr(dt.Tensor, name)
        assert hasattr(dt.Tensor, f"{name}_") is (name not in WITHOUT_IN_PLACE)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@pytest.mark.parametrize("dtype", REAL, ids=lambda d: d.name)
def test_every_device_has_the_bits_of_the_reference(name: str, dtype: dt.DType) -> None:
    if not HAS_CPU:
        pytest.skip("the cpu backend is not installed")
    bits: list[Any] = []
    for device in ("reference", "cpu"):
        before = dt.default_device()
        dt.set_default_device(device)
        try:
            args = [sample(dtype, seed) for seed in range(FUNCTIONS[name].arity)]
            found = getattr(dt, name)(*args)
        except dt.DTypeError as e:
            bits.append(str(e))
        else:
            wide = dt.astype(found, dt.float32) if found.dtype is dt.bfloat16 else found
            values = wide.numpy()
            nan = np.isnan(values) if values.dtype.kind == "f" else None
            bits.append(
                np.where(nan, np.zeros((), values.dtype), values).tobytes()
                if nan is not None
                else values.tobytes()
            )
            bits.append(b"" if nan is None else nan.tobytes())
        finally:
            dt.set_default_device(before)
    half = len(bits) // 2
    assert bits[:half] == bits[half:]


EXACT = {
    "add", "subtract", "multiply", "maximum", "minimum", "copysign", "equal", "not_equal",
    "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
    "logical_xor", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor",
    "bitwise_invert", "abs", "negative", "positive", "sign", "square", "ceil", "floor",
    "trunc", "isnan", "isinf", "isfinite", "signbit", "divide", "sqrt", "reciprocal",
    "floor_divide", "remainder", "nextafter",
}  # fmt: skip


# For what NumPy lacks there is tests/ops/test_table_oracle.py.
NOT_NUMPY = {name for name in FUNCTIONS if not hasattr(np, NUMPY_NAMES.get(name, name))}
DEFINED_OTHERWISE = {
    "bitwise_left_shift", "bitwise_right_shift",  # for shift amounts out of range
    "ldexp",  # takes a second operand of any dtype
    "i0", "sinc",  # NumPy's are NaN at infinity, and not 0 at integers: see test_special.py
}  # fmt: skip
SIX = [dt.bool, dt.int8, dt.uint16, dt.int64, dt.float32, dt.float64]


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - NOT_NUMPY - DEFINED_OTHERWISE))
@pytest.mark.parametrize("dtype", SIX, ids=lambda d: d.name)
def test_elementwise_functions_equal_numpy(on_reference: None, name: str, dtype: dt.DType) -> None:
    args = [sample(dtype, seed) for seed in range(FUNCTIONS[name].arity)]
    if name == "pow" and dtype.is_integer:
        args[1] = dt.asarray(np.arange(40) % 5, dtype=dtype)
    try:
        x = getattr(dt, name)(*args)
    except dt.DTypeError:
        return
    hosts = [a.numpy() for a in args]
    if x.dtype is dt.float32 and dtype.kind != "f":
        hosts = [h.astype("f4") for h in hosts]
    if name in ("floor_divide", "remainder"):
        keep = hosts[1] != 0
        if dtype.kind == "f":  # infinities follow the Array API's rule, not NumPy's
            keep &= np.isfinite(hosts[0]) & np.isfinite(hosts[1])
        hosts, found = [h[keep] for h in hosts], x.numpy()[keep]
    else:
        found = x.numpy()
    with np.errstate(all="ignore"):
        want = getattr(np, NUMPY_NAMES.get(name, name))(*hosts)
    assert found.dtype == want.dtype
    if name in EXACT or want.dtype.kind != "f":
        np.testing.assert_array_equal(found, want)
    else:
        close = {"float32": 2.5e-7, "float64": 5e-16}[x.dtype.name]
        with np.errstate(all="ignore"):
            exact = getattr(np, NUMPY_NAMES.get(name, name))(
                *(h.astype(np.longdouble) for h in hosts)
            )
            exact = exact.astype(want.dtype)
        np.testing.assert_allclose(found, exact, rtol=close)


# --- dtypes --------------------------------------------------------------------------------------


def numpy_of(d: dt.DType) -> np.dtype[Any]:
    found = d.__numpy_dtype__
    assert found is not None
    return found


STANDARD = [d for d in REAL if d not in (dt.float16, dt.bfloat16)]


@pytest.mark.parametrize(("a", "b"), list(product(STANDARD, STANDARD)), ids=lambda d: d.name)
def test_promotion_of_every_pair_of_dtypes(a: dt.DType, b: dt.DType) -> None:
    x, y = dt.ones(2, dtype=a, device="reference"), dt.ones(2, dtype=b, device="reference")
    if {a.kind, b.kind} == {"i", "u"} and dt.uint64 in (a, b):
        with pytest.raises(dt.DTypeError, match="cast one of them"):
            dt.add(x, y)
        with pytest.raises(dt.DTypeError):
            dt.result_type(a, b)
        return
    want = np.promote_types(numpy_of(a), numpy_of(b))
    if (
        "f" in (a.kind, b.kind) and a.kind != b.kind
    ):  # not in the standard: the float's dtype, as in PyTorch
        want = numpy_of(a if a.kind == "f" else b)
    found = dt.add(x, y)
    assert found.dtype.name == want.name == dt.result_type(a, b).name == dt.result_type(x, y).name
    assert found.tolist() == ([True, True] if want.kind == "b" else [2, 2])
    assert dt.can_cast(a, found.dtype) and dt.can_cast(y, found.dtype)


@pytest.mark.parametrize(
    ("dtype", "number", "want"),
    [
        (dt.int8, 1, dt.int8), (dt.int8, True, dt.int8), (dt.int8, 1.5, dt.float32), (dt.float16,
        2, dt.float16), (dt.bfloat16, 2.5, dt.bfloat16), (dt.float64, 0.1, dt.float64), (dt.bool,
        1, dt.int64), (dt.uint64, 2**63, dt.uint64), (dt.bool, True, dt.bool),
    ],
)  # fmt: skip
def test_python_numbers_are_weakly_typed(
    device: dt.Device, dtype: dt.DType, number: Any, want: dt.DType
) -> None:
    x = dt.ones(3, dtype=dtype)
    for found in (dt.multiply(x, number), dt.multiply(number, x), x * number, number * x):
        assert found.dtype is want
        assert found.tolist() == [number] * 3


def test_int_powers_of_bools_are_integers(device: dt.Device) -> None:
    x = dt.asarray([True, False], device=device)
    for power in (1, 2, 3):
        assert (x**power).dtype is dt.int64 and (x**power).tolist() == [1, 0]


def test_finfo_iinfo_and_isdtype_equal_numpy() -> None:
    for name in ("float16", "float32", "float64"):
        ours, theirs = dt.finfo(name), np.finfo(name)
        assert (ours.bits, ours.eps, ours.max, ours.min, ours.smallest_normal) == (
            theirs.bits, float(theirs.eps), float(theirs.max), float(theirs.min),
            float(theirs.smallest_normal),
        )  # fmt: skip
    assert dt.finfo(dt.bfloat16).eps == 2**-7 and dt.finfo(dt.bfloat16).max > 3e38
    assert (dt.iinfo(dt.int8).min, dt.iinfo(dt.uint64).max, dt.iinfo("int16").bits) == (
        -128,
        2**64 - 1,
        16,
    )
    assert dt.isdtype(dt.int8, "signed integer") and dt.isdtype(dt.int8, ("bool", "integral"))
    assert dt.isdtype(dt.float32, dt.float32) and not dt.isdtype(dt.bool, "numeric")
    for call in (lambda: dt.finfo(dt.int8), lambda: dt.iinfo(dt.float32)):
        with pytest.raises(dt.DTypeError, match="use dt"):
            call()
    with pytest.raises(dt.ArgumentError, match="unknown kind"):
        dt.isdtype(dt.int8, "integer")
    with pytest.raises(dt.ArgumentError, match="at least one tensor or dtype"):
        dt.result_type(1, 2.0)


@pytest.mark.parametrize("a", REAL, ids=lambda d: d.name)
def test_astype_between_all_dtypes(device: dt.Device, a: dt.DType) -> None:
    for b in REAL:
        _check_astype(a, b)


def _check_astype(a: dt.DType, b: dt.DType) -> None:
    x = dt.asarray([0, 1, 1, 100] if a.kind != "b" else [0, 1, 1, 1], dtype=a)
    y = x.astype(b)
    assert y.dtype is b and y is not x
    want = [0, 1, 1, 100 if a.kind != "b" else 1]
    assert y.tolist() == ([False, True, True, True] if b.kind == "b" else want)
    assert x.astype(a, copy=False) is x


def test_astype_saturates(device: dt.Device) -> None:
    x = dt.asarray([300.7, -300.7, 1.9, -1.9, np.nan, np.inf, -np.inf])
    assert x.astype(dt.int8).tolist() == [127, -128, 1, -1, 0, 127, -128]
    assert x.astype(dt.uint64).tolist() == [300, 0, 1, 0, 0, 2**64 - 1, 0]
    assert dt.asarray([300, -1]).astype(dt.uint8).tolist() == [44, 255], "integers wrap"


# --- forms ---------------------------------------------------------------------------------------


def test_function_method_out_and_in_place_forms(device: dt.Device) -> None:
    x, y, z = dt.asarray([1.0, 2.0]), dt.asarray([3.0, 5.0]), dt.empty(2)
    assert dt.add(x, y, out=z) is z and z.tolist() == [4, 7]
    assert x.add(y).tolist() == [4, 7] and x.tolist() == [1, 2]
    assert x.add_(y) is x and x.tolist() == [4, 7]
    assert x.sqrt_() is x and x.tolist() == [2, np.float32(7) ** np.float32(0.5)]
    assert dt.exp(dt.zeros(2), out=z).tolist() == [1, 1]
    assert y.mul(2).sub(1).div(3).neg().tolist() == pytest.approx([-5 / 3, -3])


@pytest.mark.parametrize("reverse", [False, True])
def test_out_may_overlap_an_operand(device: dt.Device, reverse: bool) -> None:
    a = np.arange(10.0)
    x = dt.asarray(a)
    low, high = dt.as_strided(x, (9,), (1,), 0), dt.as_strided(x, (9,), (1,), 1)
    source, target = (low, high) if reverse else (high, low)
    dt.multiply(source, 2, out=target)
    want = a.copy()
    want[1 if reverse else 0 :][:9] = 2 * a[0 if reverse else 1 :][:9]
    np.testing.assert_array_equal(x.numpy(), want)


def test_small_integer_powers_multiply(device: dt.Device) -> None:
    x = dt.asarray([3.0, -1.5])
    assert dt.pow(x, 2).tolist() == (x**2).tolist() == [9, 2.25]
    assert dt.pow(dt.asarray([3, -2]), 3).tolist() == [27, -8]
    assert dt.pow(2, dt.asarray([3, 4])).tolist() == [8, 16]


def test_composed_functions_equal_numpy(device: dt.Device) -> None:
    a = np.array([-3.0, -0.5, 0.0, 0.5, 1.5, 2.5, 1e4], "f4")
    x = dt.asarray(a)
    assert (
        dt.round(x).tolist() == np.round(a).tolist() and x.round().tolist() == np.round(a).tolist()
    )
    np.testing.assert_allclose(
        dt.round(dt.asarray([1.26, -3.14159]), decimals=1).numpy(), [1.3, -3.1], rtol=1e-6
    )
    for low, high in ((None, None), (-1, None), (None, 1), (-1, 2), (2, -1)):
        np.testing.assert_array_equal(
            dt.clip(x, low, high).numpy(), np.clip(a, low, high) if low or high else a
        )
    assert dt.clip(dt.asarray([1, 200], dtype=dt.uint8), -5, 300).tolist() == [1, 200]
    assert dt.clip(x, dt.asarray(0.0), dt.ones(7)).tolist() == [0, 0, 0, 0.5, 1, 1, 1]
    assert dt.relu(x).tolist() == [0, 0, 0, 0.5, 1.5, 2.5, 1e4]
    assert dt.where(x > 0, x, -1).tolist() == np.where(a > 0, a, -1).tolist()
    e = np.exp(a.astype("f8") - 1e4)
    np.testing.assert_allclose(dt.softmax(x).numpy(), e / e.sum(), atol=1e-30)
    np.testing.assert_allclose(dt.log_softmax(x).numpy(), a.astype("f8") - 1e4, rtol=1e-6)
    b = a.reshape(7, 1) + np.arange(3, dtype="f4")
    np.testing.assert_allclose(dt.softmax(dt.asarray(b), axis=0).numpy().sum(0), 1, rtol=1e-6)


@pytest.mark.parametrize("d", [dt.int8, dt.uint8, dt.int16, dt.uint64], ids=str)
def test_softmax_of_integers_equals_that_of_floats(device: dt.Device, d: dt.DType) -> None:
    """The differences from the maximum wrap in the dtype of the integers."""
    x = dt.asarray([d.min, d.max, d.max - 1, 3], dtype=d)
    for function in (dt.softmax, dt.log_softmax):
        found, want = function(x), function(x.astype(dt.float32))
        assert found.dtype is dt.float32 and found.tolist() == want.tolist()


def test_isclose_and_allclose_equal_numpy(device: dt.Device) -> None:
    a, b = (
        [1.0, np.inf, -np.inf, np.nan, 1e-9, np.inf],
        [1.000001, np.inf, np.inf, np.nan, 0.0, 1.0],
    )
    for nan in (False, True):
        found = dt.isclose(dt.asarray(a), dt.asarray(b), equal_nan=nan)
        assert found.tolist() == np.isclose(a, b, equal_nan=nan).tolist()
    assert dt.allclose(dt.ones(3), 1) and not dt.allclose(dt.ones(3), 1.1)
    assert dt.isclose(dt.asarray([5, 6]), 5).tolist() == [True, False]
    assert dt.array_equal(dt.ones(2), dt.ones(2)) and not dt.array_equal(
        dt.ones(2), dt.ones((2, 1))
    )


def test_to_moves_between_devices_and_dtypes(device: dt.Device) -> None:
    x = dt.asarray([1.5, -2.0], dtype=dt.bfloat16)
    y = x.to("reference")
    assert y.device == dt.device("reference") and y.dtype is dt.bfloat16 and y.tolist() == [1.5, -2]
    assert x.to(device) is x and x.to(dt.bfloat16) is x and x.to(x.dtype, copy=True) is not x
    both = x.to("reference", dt.float64)
    assert (
        both.dtype is dt.float64 and both.tolist() == [1.5, -2] and x.to(both).dtype is dt.float64
    )
    assert x.to_device("reference").tolist() == [1.5, -2]


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda x: dt.add(x, dt.ones(4)), dt.ShapeError, r"add: shapes \(3,\) and \(4,\) do not "
            r"broadcast"),
        (lambda x: dt.add(x, {1, 2, 3}), dt.DTypeError, "add: .*got set; use dt.asarray"),
        (lambda x: dt.bitwise_and(x, x), dt.DTypeError, "bitwise_and: expected .* got float32"),
        (lambda x: dt.add(x.astype(dt.uint8), 300), dt.ValueOverflowError, "300 does not fit"),
        (lambda x: x.astype(dt.uint8) + -1, dt.ValueOverflowError, "-1 does not fit uint8"),
        (lambda x: dt.less(x, 1j), dt.DTypeError, "less: expected .* got complex64"),
        (lambda x: (x * 1j).astype(dt.float32), dt.DTypeError, "use dt.real, dt.imag or dt.abs"),
        (lambda x: dt.add(x, x, out=dt.empty(4)), dt.ShapeError, r"out= is float32\[4\]"),
        (lambda x: dt.add(x, x, out=dt.empty(3, dtype=dt.float64)), dt.DTypeError, "float64"),
        (lambda x: dt.add(x, x, out=np.empty(3)), dt.DTypeError, "out= must be a tensor"),
        (lambda x: dt.where(x, x, x), dt.DTypeError, "the condition must be bool"),
        (lambda x: (x > 0) - (x > 0), dt.DTypeError, r"subtract: .* use x \^ y or x.astype\("),
        (lambda x: -(x > 0), dt.DTypeError, r"negative: .* got bool; use ~x or x.astype\(dt.int8"),
        (lambda x: (x > 0) // (x > 0), dt.DTypeError, r"got bool; use x.astype\(dt.int8\)"),
        (lambda x: dt.isclose(1, 2), dt.DTypeError, "at least one operand"),
        (lambda x: x.add_(), dt.ArgumentTypeError, "add_: missing argument x2; the parameters"),
        (lambda x: dt.real(x > 0), dt.DTypeError, "real: expected .* got bool"),
        (lambda x: dt.no_such_function(x), AttributeError, "no_such_function"),
    ],
)  # fmt: skip
def test_elementwise_errors(
    device: dt.Device, call: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        call(dt.ones(3))


@pytest.mark.skipif(not HAS_CPU, reason="needs a second device: dovetail-cpu-llvm")
def test_operands_on_different_devices_raise() -> None:
    x, y = dt.ones(2, device="reference"), dt.ones(2, device="cpu")
    with pytest.raises(dt.DeviceError, match="add: operands are on cpu and reference; move one"):
        dt.add(x, y)
    with pytest.raises(dt.DeviceError, match="out= is"):
        dt.add(x, x, out=y)
    with pytest.raises(dt.DeviceError, match="concat"):
        dt.concat([x, y])


def test_softmax_from_the_cache_is_recorded_equally(device: str) -> None:
    for axis in (0, 1, -1):
        for function in (dt.softmax, dt.log_softmax):
            for dtype in (dt.float32, dt.float16, dt.int64):
                x = dt.arange(12, dtype=dtype, device=device).reshape(3, 4)
                first, second = (function(x, axis=axis) for _ in range(2))
                assert first.dtype is second.dtype and first.tolist() == second.tolist()
                with dt.eager():
                    assert function(x, axis=axis).tolist() == first.tolist()


def test_cached_softmax_has_its_gradient(device: str) -> None:
    x = dt.arange(4, dtype=dt.float32, device=device)
    first = [dt.softmax(x) for _ in range(2)][1]
    x.requires_grad_()
    y = dt.softmax(x)
    (y * y).sum().backward()
    p = first.numpy().astype("f8")
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), p * (2 * p - (2 * p * p).sum()), rtol=1e-5)


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logical_functions_take_dtypes_without_a_common_dtype(name: str) -> None:
    a, b = np.array([2, 0, 1, 0], np.uint64), np.array([-1, -1, 0, 0], np.int64)
    got = getattr(dt, name)(dt.asarray(a), dt.asarray(b))
    assert got.dtype is dt.bool and got.tolist() == getattr(np, name)(a, b).tolist()
