"""Interoperation with NumPy: array operands, ufuncs, functions of NumPy, iteration.

A result stays on the tensor's device, and in its gradient; a comparison is never one Python bool.
"""

from __future__ import annotations

import importlib
import operator
import random
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
import scipy.special
from dovetail.engine import evaluate as run
from dovetail.functions.numpy import protocol, same_names

ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"]
BITWISE = ["and_", "or_", "xor", "lshift", "rshift"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
FORMS: dict[str, Callable[[np.ndarray[Any, Any]], Any]] = {
    "array": lambda a: a,
    "float64 array": lambda a: a.astype(np.float64),
    "list": lambda a: a.tolist(),
    "tuple": lambda a: tuple(a.tolist()),
}


def host(x: dt.Tensor) -> np.ndarray[Any, Any]:
    return np.asarray(x)


def operands_of(name: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    if name in BITWISE:
        return np.array([6, 9, 12]), np.array([1, 2, 3])
    return np.array([1.5, 2, 4], np.float32), np.array([2, 2, 3], np.float32)


# --- operators


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ARITHMETIC + BITWISE + COMPARISONS)
def test_operators_move_the_other_operand_to_the_device(
    device: dt.Device, name: str, form: str
) -> None:
    f, (a, b) = getattr(operator, name), operands_of(name)
    # bitwise ops need integers
    form = "array" if name in BITWISE and form == "float64 array" else form
    x, other = dt.asarray(a), FORMS[form](b)
    for found, want in ((f(x, other), f(a, b)), (f(other, x), f(b, a))):
        assert type(found) is dt.Tensor and found.device is device
        np.testing.assert_allclose(host(found), want, rtol=1e-6)
    if name not in COMPARISONS:
        kind = np.asarray(other).dtype if form == "float64 array" else a.dtype
        assert f(x, other).dtype is dt.dtypes.dtype(kind)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [*ARITHMETIC[:-1], *BITWISE])
def test_in_place_operators_write_to_the_memory_of_the_tensor(
    device: dt.Device, name: str, form: str
) -> None:
    f, (a, b) = getattr(operator, "i" + name.rstrip("_")), operands_of(name)
    # bitwise ops need integers
    form = "array" if name in BITWISE and form == "float64 array" else form
    x = same = dt.asarray(a)
    view, at, dtype = x[:2], x.data_ptr(), x.dtype
    x = f(x, FORMS[form](b))
    assert x is same and x.dtype is dtype and x.data_ptr() == at
    want = getattr(operator, name)(a, b)
    np.testing.assert_allclose(host(x), want, rtol=1e-6)
    np.testing.assert_allclose(host(view), want[:2], rtol=1e-6)


def test_in_place_matmul_accepts_an_array(device: dt.Device) -> None:
    x = same = dt.ones((2, 2))
    x @= np.full((2, 2), 3.0)
    assert x is same and x.tolist() == [[6, 6], [6, 6]] and x.dtype is dt.float32
    assert ([[1, 2], [3, 4]] @ dt.eye(2)).tolist() == [[1, 2], [3, 4]]


def test_divmod_returns_quotient_and_remainder(device: dt.Device) -> None:
    x, a = dt.asarray([7, -7, 9]), np.array([2, 2, 4])
    for found, want in (
        (divmod(x, a), ([3, -4, 2], [1, 1, 1])),
        (divmod(x, 2), ([3, -4, 4], [1, 1, 1])),
        (divmod(a, x), ([0, -1, 0], [2, -5, 4])),
        (divmod(20, x), ([2, -3, 2], [6, -1, 2])),
    ):
        assert [type(f) for f in found] == [dt.Tensor, dt.Tensor]
        assert tuple(f.tolist() for f in found) == want


def test_list_operand_is_converted_like_asarray(device: dt.Device) -> None:
    x = dt.ones(2, dtype=dt.float16)
    assert (x - [1, 1]).dtype is dt.float16 and (x - [1.0, 1.0]).dtype is dt.float32
    assert (dt.ones(2, dtype=dt.int8) - [1, 1]).dtype is dt.int64
    assert (x + range(2)).tolist() == [1, 2] and (x == (1, 2)).tolist() == [True, False]
    assert (x[:1] == []).shape == (0,)
    wide = dt.zeros(1, dtype=dt.float64)
    assert (wide - [0.1]).item() == -0.1, "a list of floats beside float64 loses no digit"
    assert (x * [[1, 2], [3, 4]]).shape == (2, 2)


def test_numpy_scalars_are_weak_and_arrays_have_their_dtype(device: dt.Device) -> None:
    x = dt.ones(2)
    for two in (np.int64(2), np.float32(2), np.float16(2), np.bool_(True)):
        assert (x * two).dtype is dt.float32 and (two * x).dtype is dt.float32
    for a in (np.float64(2), np.complex128(2), np.int64(2), np.uint8(2)):
        for y in (x, dt.ones(2, dtype=dt.int8)):
            want = dt.result_type(y, a.dtype)
            assert (y * a).dtype is (a * y).dtype is dt.where(y > 0, y, a).dtype is want
            assert dt.result_type(y, a) is want
    assert (dt.ones(2, dtype=dt.float64) * np.float64(0.1)).tolist() == [0.1, 0.1]
    assert (x * np.array(2.0)).dtype is (np.array(2.0) * x).dtype is dt.float64
    x += np.float64(1)
    assert x.tolist() == [2, 2]


def test_gradients_flow_next_to_arrays_and_lists(device: dt.Device) -> None:
    a = np.array([2.0, 3.0], np.float32)
    calls: list[Callable[[dt.Tensor], Any]] = [
        lambda x: x * a, lambda x: a * x, lambda x: [2.0, 3.0] * x, lambda x: np.multiply(a, x),
        lambda x: dt.multiply(a, x), lambda x: dt.where(np.array([True, True]), a * x, 0),
        lambda x: np.concatenate([x, a])[:2] * a, lambda x: np.einsum("i,i->i", a, x),
        lambda x: dt.stack([x, a])[0] * a, lambda x: np.diag(a) @ x,
    ]  # fmt: skip
    for f in calls:
        x = dt.ones(2).requires_grad_()
        y = f(x)
        assert y.requires_grad and y.device is device
        y.sum().backward()
        assert x.grad is not None and x.grad.tolist() == [2, 3]


def test_list_with_a_tensor_that_requires_a_gradient_raises(device: dt.Device) -> None:
    w, x = dt.ones(()).requires_grad_(), dt.ones(2)
    for f in (lambda: x * [w, w], lambda: x.__setitem__(slice(None), [w, w])):
        with pytest.raises(dt.GradientError, match=r"dt\.stack"):
            f()
    assert (x * [w.detach(), 3]).tolist() == [1, 3]


NOTHING: list[Any] = ["a", None, object(), {}, {1, 2}, b"a", Fraction(1, 2), [None], ["a"]]
OF_THE_LEFT = {("mod", str), ("mod", bytes), ("pow", Fraction)}  # text % x; a power as a float's


@pytest.mark.parametrize("name", ARITHMETIC + BITWISE + COMPARISONS)
def test_invalid_operand_raises_and_names_the_operator(device: dt.Device, name: str) -> None:
    f, x = getattr(operator, name), dt.ones(2)
    for other in NOTHING:
        pairs = [(x, other), (other, x)]
        if (name, type(other)) in OF_THE_LEFT:
            pairs.pop()
        for given in pairs:
            with pytest.raises(dt.DTypeError, match=r"^[a-z_]+: .*(asarray|is None)"):
                f(*given)
    if name not in COMPARISONS:
        in_place = getattr(operator, "i" + name.rstrip("_"))
        for other in NOTHING:
            with pytest.raises(dt.DTypeError, match=r"^[a-z_]+: "):
                in_place(x, other)


def test_comparison_with_none_raises_and_names_is(device: dt.Device) -> None:
    with pytest.raises(dt.DTypeError, match=r"equal: .*`x is None`"):
        dt.ones(2) == None  # noqa: E711, B015 - that is what is tried
    with pytest.raises(dt.DTypeError, match=r"not_equal: .*`x is None`"):
        dt.ones(2) != None  # noqa: E711, B015


class Unit:
    """An operand that implements operators itself, in the way that NumPy documents."""

    __array_ufunc__ = None

    def __mul__(self, other: Any) -> str:
        return "unit * x"

    def __rmul__(self, other: Any) -> str:
        return "x * unit"

    def __gt__(self, other: Any) -> str:
        return "unit > x"


class Quantity(np.ndarray[Any, Any]):
    """An array subclass with its own `__array_ufunc__`."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **given: Any) -> Any:
        return "a quantity"


def test_operand_with_its_own_array_ufunc_decides(device: dt.Device) -> None:
    x, q = dt.ones(2), np.ones(2).view(Quantity)
    unit: Any = Unit()
    assert (x * unit, unit * x, x < unit) == ("x * unit", "unit * x", "unit > x")
    assert x * q == q * x == np.add(x, q) == "a quantity"  # type: ignore[comparison-overlap]
    with pytest.raises(dt.DTypeError, match=r"add: .*got Quantity"):
        x += q


# --- functions of dovetail


def test_functions_accept_arrays_and_lists_next_to_tensors(device: dt.Device) -> None:
    x, a = dt.asarray([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0], np.float32)
    mask = np.array([True, False, True])
    pairs: list[tuple[Any, Any]] = [
        (dt.add(x, a), [4, 4, 4]),
        (dt.add(a, x), [4, 4, 4]),
        (dt.maximum(x, [2, 2, 2]), [2, 2, 3]),
        (dt.where(mask, a, x), [3, 2, 1]),
        (dt.where(x > 1, [0, 0, 0], a), [3, 0, 0]),
        (dt.clip(x, [2, 2, 2], a), [2, 2, 1]),
        (dt.matmul(x, a), 10),
        (dt.vecdot(a, x), 10),
        (dt.outer(x, [1, 2]), [[1, 2], [2, 4], [3, 6]]),
        (dt.tensordot(x, a, axes=1), 10),
        (dt.einsum("i,i", x, a), 10),
        (dt.concat([x, a, [7]]), [1, 2, 3, 3, 2, 1, 7]),
        (dt.stack([a, x]), [[3, 2, 1], [1, 2, 3]]),
        (dt.broadcast_arrays(x, [[1]])[1], [[1, 1, 1]]),
        (dt.meshgrid(x, np.ones(1, np.float32))[1], [[1, 1, 1]]),
        (dt.isclose(x, a), [False, True, False]),
        (dt.isin(x, [1, 3]), [True, False, True]),
        (dt.searchsorted(x, [2.0, 9.0]), [1, 3]),
        (dt.diff(x, prepend=[0.0]), [1, 1, 1]),
        (x.copy().add_(a), [4, 4, 4]),
        (x.copy().copy_(a), [3, 2, 1]),
        (x.copy().minimum_([2, 2, 2]), [1, 2, 2]),
    ]
    for found, want in pairs:
        assert type(found) is dt.Tensor and found.device is device
        assert found.tolist() == want
    assert dt.allclose(x, [1, 2, 3]) and dt.array_equal(x, np.array([1, 2, 3]))
    assert dt.result_type(x, np.ones(1)) is dt.float64


def test_functions_of_arrays_alone_are_on_the_default_device() -> None:
    a = np.asarray([1.0, 4.0])
    with dt.device("reference"):
        for found, want in (
            (dt.add(a, a), a + a), (dt.sqrt(a), np.sqrt(a)), (dt.matmul(a, a), 17.0),
            (dt.concat([a]), a), (dt.maximum([1], 2), [2]), (dt.einsum("i->", a), 5.0),
        ):  # fmt: skip
            assert found.device.type == "reference"
            np.testing.assert_allclose(np.asarray(found), want)


# --- ufuncs and functions of NumPy


def samples(ufunc: Any) -> list[np.ndarray[Any, Any]]:
    of_integers = (np.left_shift, np.right_shift, np.invert, np.gcd, np.lcm)
    if ufunc in of_integers or "bitwise" in ufunc.__name__:
        return [np.array([6, 9, 12]), np.array([1, 2, 3])][: ufunc.nin]
    if ufunc is np.ldexp:
        return [np.array([0.25, 0.5, 0.75]), np.array([1, 2, 3])]
    near = np.array([0.25, 0.5, 0.75]) + (ufunc is np.arccosh)
    return [near, near[::-1] + 0.5][: ufunc.nin]


@pytest.mark.parametrize("ufunc", protocol.UFUNCS, ids=lambda u: u.__name__)
def test_ufuncs_of_tensors_call_dovetail(device: dt.Device, ufunc: Any) -> None:
    a = samples(ufunc)
    want = ufunc(*a)
    for given in ([dt.asarray(a[0]), *a[1:]], [*a[:-1], dt.asarray(a[-1])]):
        found = ufunc(*given)
        for f, w in zip(*((r if ufunc.nout > 1 else (r,)) for r in (found, want)), strict=True):
            assert type(f) is dt.Tensor and f.device is device
            np.testing.assert_allclose(host(f), w, rtol=1e-12)
    if ufunc.nout == 1:
        out = dt.empty(np.shape(want), dtype=dt.asarray(want).dtype)
        for given in ([dt.asarray(v) for v in a], a):
            out.zero_()
            assert ufunc(*given, out=out) is out
            np.testing.assert_allclose(host(out), want, rtol=1e-12)


def test_supported_ufunc_methods_equal_numpy(device: dt.Device) -> None:
    a = np.arange(6.0).reshape(2, 3)
    x, mask = dt.asarray(a), dt.asarray(a > 2)
    for found, want in [
        (np.add.reduce(x), a.sum(0)), (np.add.reduce(x, axis=None), a.sum()),
        (np.multiply.reduce(x, 1, keepdims=True), a.prod(1, keepdims=True)),
        (np.maximum.reduce(x, axis=(0, 1)), a.max()), (np.minimum.reduce(x), a.min(0)),
        (np.logical_and.reduce(mask), (a > 2).all(0)), (np.logical_or.reduce(mask), (a > 2).any(0)),
        (np.add.accumulate(x, axis=1), a.cumsum(1)), (np.multiply.accumulate(x), a.cumprod(0)),
        (np.subtract.outer(x, [1, 2]), np.subtract.outer(a, [1, 2])),
    ]:  # fmt: skip
        assert type(found) is dt.Tensor and found.device is device
        np.testing.assert_array_equal(host(found), want)


def test_unsupported_numpy_calls_name_an_alternative(device: dt.Device) -> None:
    x, a = dt.ones(3), np.ones(3)
    calls: list[Callable[[], Any]] = [
        lambda: np.spacing(x), lambda: np.divide.at(x, [0], 1), lambda: np.power.accumulate(x),
        lambda: np.add(x, 1, where=a > 0),
        lambda: np.add(x, x, out=a), lambda: np.histogramdd(x), lambda: np.cov(x, bias=True),
        lambda: np.frompyfunc(abs, 1, 1)(x),
        lambda: operator.iadd(a, x), lambda: np.reshape(x, (3,), order="F"),
        lambda: np.linalg.tensorinv(x), lambda: np.divide.reduce(x),
        lambda: np.median(x, out=np.zeros(())),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(dt.DTypeError, match=r"np\.[a-z.0-9 ()]+: .*np\.asarray\(x\)"):
            call()


FUNCTIONS: list[Callable[[Any, Any], Any]] = [
    lambda f, x: f.sum(x, axis=0), lambda f, x: f.prod(x), lambda f, x: f.mean(x, 1, keepdims=True),
    lambda f, x: f.max(x, 0), lambda f, x: f.amin(x), lambda f, x: f.any(x > 2, axis=1),
    lambda f, x: f.all(x > 2), lambda f, x: f.std(x, ddof=1), lambda f, x: f.var(x, axis=0),
    lambda f, x: f.argmax(x), lambda f, x: f.argmin(x, 0), lambda f, x: f.count_nonzero(x, axis=1),
    lambda f, x: f.cumsum(x), lambda f, x: f.cumsum(x, axis=1), lambda f, x: f.cumprod(x, 0),
    lambda f, x: f.diff(x), lambda f, x: f.diff(x, 1, 0), lambda f, x: f.sort(x, axis=0),
    lambda f, x: f.argsort(x, axis=None), lambda f, x: f.where(x > 2, x, 0),
    lambda f, x: f.where(x > 2)[1], lambda f, x: f.clip(x, 1, 3), lambda f, x: f.round(x, 1),
    lambda f, x: f.clip(x, None, 3), lambda f, x: f.isclose(x, x + 1e-9),
    lambda f, x: f.reshape(x, (3, 2)), lambda f, x: f.transpose(x),
    lambda f, x: f.transpose(x[None], (1, 2, 0)), lambda f, x: f.swapaxes(x, 0, 1),
    lambda f, x: f.moveaxis(x, 0, 1), lambda f, x: f.expand_dims(x, 1),
    lambda f, x: f.squeeze(x[None]), lambda f, x: f.flip(x, 1), lambda f, x: f.ravel(x),
    lambda f, x: f.copy(x), lambda f, x: f.broadcast_to(x, (2, 2, 3)),
    lambda f, x: f.broadcast_arrays(x, 1.0, None)[0], lambda f, x: f.concatenate([x, x], 1),
    lambda f, x: f.concatenate((x, x), None), lambda f, x: f.stack([x, x], -1),
    lambda f, x: f.vstack([x, x[0]]), lambda f, x: f.hstack([x, x]),
    lambda f, x: f.hstack([x[0], x[1]]), lambda f, x: f.split(x, 3, 1)[1],
    lambda f, x: f.split(x, [1, 5], 1)[1], lambda f, x: f.atleast_2d(x[0]),
    lambda f, x: f.atleast_1d(x[0, 0], x[0])[0], lambda f, x: f.roll(x, 1),
    lambda f, x: f.repeat(x, 2, axis=1), lambda f, x: f.tile(x, (2, 1)), lambda f, x: f.tril(x, 1),
    lambda f, x: f.triu(x), lambda f, x: f.diagonal(x, 1), lambda f, x: f.take(x, [0, 2], axis=1),
    lambda f, x: f.take(x, [0, 5]), lambda f, x: f.nonzero(x)[0], lambda f, x: f.argwhere(x),
    lambda f, x: f.searchsorted(x[0], [1.5]), lambda f, x: f.isin(x, [1.0, 2.0], invert=True),
    lambda f, x: f.dot(x, x.T), lambda f, x: f.dot(x, 2), lambda f, x: f.dot(x[0], x[0]),
    lambda f, x: f.outer(x, x),
    lambda f, x: f.tensordot(x, x), lambda f, x: f.einsum("ij,kj->ik", x, x),
    lambda f, x: f.einsum("ij", x, optimize=True), lambda f, x: f.meshgrid(x[0], x[1])[1],
    lambda f, x: f.zeros_like(x), lambda f, x: f.ones_like(x), lambda f, x: f.full_like(x, 7),
    lambda f, x: f.ravel_multi_index(f.unravel_index(f.argmax(x), (2, 3)), (2, 3)),
    lambda f, x: f.astype(x, f.int32), lambda f, x: f.take_along_axis(x, f.argsort(x), -1),
    lambda f, x: f.linalg.matmul(x, x.T), lambda f, x: f.linalg.vecdot(x, x),
    lambda f, x: f.unique_values(x), lambda f, x: f.matrix_transpose(x),
    lambda f, x: f.real(x), lambda f, x: f.imag(x), lambda f, x: f.angle(x - 2, True),
]  # fmt: skip


NAMESAKES: list[Callable[[Any, Any], Any]] = [
    lambda f, x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=0),
    lambda f, x: np.median(x), lambda f, x: np.median(x, axis=0, keepdims=True),
    lambda f, x: np.quantile(x, [0.1, 0.5], axis=1), lambda f, x: np.percentile(x, 30.0),
    lambda f, x: np.nanmedian(x, 1), lambda f, x: np.nanmean(x, 0),
    lambda f, x: np.nanstd(x, ddof=1),
    lambda f, x: np.nancumsum(x), lambda f, x: np.nanargmax(x), lambda f, x: np.ptp(x, axis=0),
    lambda f, x: np.average(x, weights=np.arange(4.0), axis=0), lambda f, x: np.cov(x, ddof=0),
    lambda f, x: np.corrcoef(x), lambda f, x: np.histogram(x, bins=5),
    lambda f, x: np.histogram(x, 5, (0, 1)), lambda f, x: np.bincount((x > 0).astype("int64")[0]),
    lambda f, x: np.digitize(x, [0.0, 1.0]), lambda f, x: np.pad(x, 1),
    lambda f, x: np.pad(x, ((1, 2), (0, 1)), mode="reflect"),
    lambda f, x: np.pad(x, 1, constant_values=3.0), lambda f, x: np.gradient(x),
    lambda f, x: np.interp(np.array([0.5, 1.5]), np.arange(4.0), x[1]),
    lambda f, x: np.gradient(x, 2.0, axis=0), lambda f, x: np.trapezoid(x, dx=2, axis=0),
    lambda f, x: np.convolve(x[0], np.ones(2), "same"), lambda f, x: np.ediff1d(x),
    lambda f, x: np.polyval(x[0], np.ones(2)), lambda f, x: np.polyfit(np.arange(4.0), x[0], 2),
    lambda f, x: np.vander(x[0], 3), lambda f, x: np.unique(x, return_counts=True),
    lambda f, x: np.nan_to_num(x, nan=2.0), lambda f, x: np.sinc(x), lambda f, x: np.kron(x, x),
    lambda f, x: np.cross(x[:, :3], x[:, 1:]), lambda f, x: np.inner(x, x),
    lambda f, x: np.trace(x, 1), lambda f, x: np.diag(x), lambda f, x: np.rot90(x),
    lambda f, x: np.fliplr(x), lambda f, x: np.column_stack([x, x]),
    lambda f, x: np.array_split(x, 3), lambda f, x: np.select([x > 0], [x], 0.0),
    lambda f, x: np.degrees(x), lambda f, x: np.heaviside(x, 0.5), lambda f, x: np.fabs(x),
    lambda f, x: np.fmax(x, 0.5), lambda f, x: np.fmin(x[0].tolist(), x),
    lambda f, x: np.fmod(x, 2), lambda f, x: np.logaddexp2(x, x.T),
    lambda f, x: np.fmax.outer(x[0], x[1]),
    lambda f, x: np.bitwise_count((x > 0).astype("int64")), lambda f, x: np.isposinf(x),
    lambda f, x: np.isneginf(x), lambda f, x: np.isreal(x), lambda f, x: np.iscomplex(x),
    lambda f, x: np.unwrap(x * 4, axis=0), lambda f, x: np.unwrap(x, period=2.0),
    lambda f, x: np.lexsort((x[0], x[1])), lambda f, x: np.lexsort(x[None], axis=0),
    lambda f, x: np.sort(np.partition(x, 2)[:, :2]), lambda f, x: np.partition(x, 3, axis=None)[3],
    lambda f, x: np.argpartition(x, -1, 0)[-1], lambda f, x: np.poly(x[0]),
    lambda f, x: np.polyadd(x[0], x[1, :2]), lambda f, x: np.polysub(2.0, x[0]),
    lambda f, x: np.polymul(x[0], x[1]), lambda f, x: np.polyder(x[0], m=2),
    lambda f, x: np.polyint(x[0], 2, k=[1.0, 2.0]), lambda f, x: np.ix_(f.argsort(x[0]), [1, 0]),
    lambda f, x: np.tril_indices_from(x, 1), lambda f, x: np.triu_indices_from(x, k=-1),
    lambda f, x: np.diag_indices_from(x), lambda f, x: np.unravel_index(f.argsort(x[0]), (2, 3)),
    lambda f, x: np.ravel_multi_index((f.argsort(x[0]), [9, 1, 1, 2]), (4, 3), mode="clip"),
    lambda f, x: scipy.special.gammaln(x + 5),
    lambda f, x: np.median(x, 0, f.zeros(4, dtype="float64")),
    lambda f, x: np.linalg.det(x), lambda f, x: np.linalg.inv(x), lambda f, x: np.linalg.norm(x),
    lambda f, x: np.linalg.norm(x, axis=1), lambda f, x: np.linalg.norm(x, 1),
    lambda f, x: np.linalg.norm(x, "nuc", axis=(0, 1)), lambda f, x: np.linalg.norm(x[0], np.inf),
    lambda f, x: np.linalg.solve(x, x[0]), lambda f, x: np.linalg.svd(x, False)[1],
    lambda f, x: np.linalg.eigvalsh(x @ x.T), lambda f, x: np.linalg.matrix_power(x, 2),
    lambda f, x: np.linalg.lstsq(x, x[1], rcond=None)[0], lambda f, x: np.linalg.slogdet(x)[1],
]  # fmt: skip


@pytest.mark.parametrize("n", range(len(NAMESAKES)))
def test_same_named_functions_accept_numpy_parameters(device: dt.Device, n: int) -> None:
    a = np.random.default_rng(3).normal(size=(4, 4))
    parts = [
        given if isinstance(given, tuple | list) else (given,)
        for given in (NAMESAKES[n](dt, dt.asarray(a)), NAMESAKES[n](np, a))
    ]
    for found, want in zip(*parts, strict=True):
        assert type(found) is dt.Tensor and found.device is device
        np.testing.assert_allclose(host(found), want, rtol=1e-6, atol=1e-12)


def test_array_equal_of_a_number_equals_numpy(device: dt.Device) -> None:
    for a in (np.arange(3.0), np.ones(3), np.float64(1), np.array(0.1, "f4")):
        x = dt.asarray(a)
        for number in (1, 0.1, np.float32(1), True):
            assert np.array_equal(x, number) is bool(np.array_equal(a, number))
            assert np.array_equal(number, x) is bool(np.array_equal(number, a))
            assert np.array_equiv(x, number) is bool(np.array_equiv(a, number))
            assert np.array_equiv(number, x) is bool(np.array_equiv(number, a))


def test_split_into_an_invalid_number_of_parts_raises(device: dt.Device) -> None:
    x = dt.arange(6.0)
    for wrong in (3.0, 2.5, None, "ab"):
        with pytest.raises(dt.ArgumentTypeError, match="split: indices_or_sections"):
            np.split(x, wrong)  # type: ignore[call-overload]
    with pytest.raises(dt.ArgumentError, match="split: indices_or_sections"):
        np.split(x, 0)
    with pytest.raises(dt.ShapeError, match="does not divide into 4 equal parts"):
        np.split(x, 4)
    with pytest.raises(dt.AxisError):
        np.split(x, 2, axis=1)
    parts = np.split(x, np.array([2, -1]))
    assert [p.tolist() for p in parts] == [[0, 1], [2, 3, 4], [5]]


def test_every_namesake_is_a_function_of_numpy_and_of_dovetail() -> None:
    for home, names in same_names.NAMESAKES_BY_MODULE.items():
        for name in names.split():
            module = importlib.import_module(home)
            theirs = getattr(module, name, None)
            if theirs is None:
                assert name in ("matvec", "vecmat"), "which came after NumPy 2.0"
                continue
            assert getattr(theirs, "__module__", home) == home, name
            assert same_names.namesake(theirs) is not None, name


@pytest.mark.parametrize("n", range(len(FUNCTIONS)))
def test_numpy_functions_of_tensors_call_dovetail(device: dt.Device, n: int) -> None:
    a = np.array([[0.0, 3.5, 1.25], [4.0, 2.0, 5.0]])
    found, want = FUNCTIONS[n](np, dt.asarray(a)), FUNCTIONS[n](np, a)
    assert type(found) is dt.Tensor and found.device is device
    assert found.shape == np.shape(want)
    np.testing.assert_allclose(host(found), want, rtol=1e-12)


def test_dot_of_three_dimensions_contracts_the_last_but_one(device: dt.Device) -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(2, 3, 2)
    assert np.dot(dt.asarray(a), b).tolist() == np.dot(a, b).tolist()


def test_every_function_of_the_table_has_a_case() -> None:
    text = "".join(p.read_text() for p in Path(__file__).parent.glob("test_numpy*.py"))
    names = {f.__name__ for f in protocol.FUNCTIONS}
    assert {n for n in names if f".{n}(" not in text} <= {
        "common_type", "min_scalar_type", "iscomplexobj", "isrealobj", "savez", "savez_compressed",
        "savetxt", "array_str", "may_share_memory", "cumulative_sum", "cumulative_prod", "unstack",
        "unique_all", "unique_counts", "unique_inverse", "empty_like", "amax", "around",
    }  # fmt: skip


def test_numpy_functions_that_inspect_see_the_values(device: dt.Device, tmp_path: Any) -> None:
    x = dt.asarray([[1.0, 2.0]]) * 2
    np.save(tmp_path / "x.npy", x)
    assert np.load(tmp_path / "x.npy").tolist() == [[2, 4]]
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)) == ((1, 2), 2, 2, 2)
    assert np.array2string(x) == "[[2. 4.]]" and np.array_repr(x).startswith("array(")
    assert np.result_type(x, np.float64) == np.float64 and np.can_cast(x.dtype.name, "f8")
    assert np.allclose(x, [2, 4]) is True and np.array_equal(x, np.array([[2, 4]])) is True
    a = np.zeros((1, 2))
    np.copyto(a, x)
    assert a.tolist() == [[2, 4]] and np.shares_memory(x.numpy(), x)


def test_arrays_of_tensors_contain_their_values(device: dt.Device) -> None:
    x = dt.asarray([1.0, 2.0])
    assert np.array([x, x]).tolist() == [[1, 2], [1, 2]] and np.array([x[0], x[1]]).dtype == "f4"
    a = np.zeros(2)
    a[...] = x
    assert a.tolist() == [1, 2] and type(np.asarray(x)) is np.ndarray


def test_random_operators_of_tensors_and_arrays_equal_numpy(device: dt.Device) -> None:
    rng, shapes = random.Random(5), [(), (1,), (3,), (2, 3), (2, 1)]
    dtypes = [np.float32, np.float64, np.int64, np.int8]
    for _ in range(150):
        name = rng.choice([*ARITHMETIC[:3], *COMPARISONS])
        a, b = (
            np.array([rng.randint(-4, 4) for _ in range(int(np.prod(s)))]).reshape(s).astype(d)
            for s, d in ((rng.choice(shapes), rng.choice(dtypes)) for _ in range(2))
        )
        f, left = getattr(operator, name), rng.random() < 0.5
        want = f(a, b)
        other = (a if left else b).tolist() if rng.random() < 0.5 else (a if left else b)
        found = f(other, dt.asarray(b)) if left else f(dt.asarray(a), other)
        assert type(found) is dt.Tensor and found.device is device, (name, a, b)
        assert found.tolist() == want.tolist(), (name, a, b)


# --- sparse tensors


def test_sparse_tensors_accept_array_operands(device: dt.Device) -> None:
    a = np.array([[0.0, 2, 0], [3, 0, 0]], np.float32)
    b = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    x = dt.asarray(a).to_sparse()
    for found in (x * b, b * x, np.multiply(b, x), x * b.tolist(), dt.multiply(x, b)):
        assert found.layout is dt.sparse_coo and found.device is device
        assert found.to_dense().tolist() == (a * b).tolist()
    assert (x / b).to_dense().tolist() == (a / b).tolist()
    for product, want in ((x @ b.T, a @ b.T), (b.T @ x, b.T @ a), (b.T.tolist() @ x, b.T @ a)):
        assert type(product) is dt.Tensor and product.device is device
        assert product.tolist() == want.tolist()
    before = x
    x *= b
    assert x is not before and x.to_dense().tolist() == (a * b).tolist()
    for f in (operator.add, operator.eq, operator.sub, operator.iadd):
        for other in (b, b.tolist()):
            with pytest.raises(dt.LayoutError, match="would be dense"):
                f(x, other)
    with pytest.raises(dt.DTypeError, match=r"multiply: .*got str"):
        x * "a"
    assert np.sum(x, axis=0).to_dense().tolist() == (a * b).sum(0).tolist()


# --- iteration


def test_iteration_yields_views_along_the_first_axis(device: dt.Device) -> None:
    x = dt.reshape(dt.arange(6), (3, 2))
    rows = list(x)
    assert [r.tolist() for r in rows] == [[0, 1], [2, 3], [4, 5]]
    rows[1].zero_()
    assert x.tolist() == [[0, 1], [0, 0], [4, 5]], "a row is a view"
    a, b, c = x
    assert (a + c).tolist() == [4, 6] and b.storage() is x.storage()
    assert [r.tolist() for r in x.T] == [[0, 0, 4], [1, 0, 5]]
    assert [r.tolist() for r in reversed(x)] == [[4, 5], [0, 0], [0, 1]]
    assert max(x[:, 0]).item() == 4 and [int(i) for i in dt.arange(3)] == [0, 1, 2]
    assert dict(zip("ab", dt.ones(2), strict=True))["b"].shape == ()
    assert list(dt.zeros((0, 3))) == [] and len(list(dt.zeros((2, 0)))) == 2


def test_iteration_of_a_scalar_tensor_raises(device: dt.Device) -> None:
    for f in (iter, list, max, lambda x: [*x], np.iterable):
        x = dt.ones(())
        if f is np.iterable:
            assert not f(x)
            continue
        with pytest.raises(dt.DTypeError, match="iter: expected at least 1 dimension"):
            f(x)
    with pytest.raises(dt.DTypeError, match="len: expected"):
        len(dt.ones(()))


def test_iteration_of_pending_work_computes_it_once(device: dt.Device) -> None:
    x = dt.arange(50) * 2 + 1
    before = run.counters.evaluations
    values = list(x)
    assert run.counters.evaluations - before == 1
    assert [v.item() for v in values] == list(range(1, 100, 2))
    assert run.counters.evaluations - before == 1


def test_rows_from_iteration_carry_gradients(device: dt.Device) -> None:
    x = dt.ones((2, 3)).requires_grad_()
    a, b = x * 2
    (a * 3 + b).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[6] * 3, [2] * 3]
    y = dt.ones(2)
    first, _ = y
    first.add_(dt.ones(()).requires_grad_())
    assert y.requires_grad, "a row knows whose memory it shares"


def test_in_operator_finds_any_element(device: dt.Device) -> None:
    x = dt.asarray([[1.0, 2.0], [3.0, np.nan]])
    assert 3 in x and 4 not in x and [3.0, 2.0] in x and np.nan not in x
    assert np.float64(2) in x and dt.asarray(1) in x
    for nothing in (None, "a"):
        with pytest.raises(dt.DTypeError, match="equal: "):
            nothing in x  # noqa: B015 - that it raises is what is tried


def test_sparse_tensors_support_iteration_and_in(device: dt.Device) -> None:
    x = dt.asarray([[0, 2], [3, 0]]).to_sparse()
    rows = list(x)
    assert [r.layout for r in rows] == [dt.sparse_coo] * 2
    assert [r.to_dense().tolist() for r in rows] == [[0, 2], [3, 0]]
    assert 3 in x and 5 not in x


class Frame:
    """The calls of pandas on a column: list-like check, length, and values."""

    def __init__(self, **columns: Any) -> None:
        self.columns = {}
        for name, c in columns.items():
            listed = hasattr(c, "__iter__") and not (hasattr(c, "ndim") and c.ndim == 0)
            assert listed, f"{name} would be stored whole in each row"
            self.columns[name] = np.asarray(c)
            assert len(c) == len(self.columns[name])


def test_column_of_a_frame_accepts_a_tensor(device: dt.Device) -> None:
    found = Frame(a=dt.arange(3), b=dt.ones(3)).columns
    assert found["a"].tolist() == [0, 1, 2] and found["b"].dtype == np.float32
    with pytest.raises(AssertionError, match="whole"):
        Frame(a=dt.ones(()))


def test_matplotlib_draws_tensors_like_arrays(device: dt.Device) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="pip install dovetail-tensor[test]")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    a = np.linspace(0, 1, 20, dtype=np.float32)
    t, (_, axes) = dt.asarray(a), plt.subplots()
    counts, edges, patches = axes.hist(t, bins=5)
    assert counts.tolist() == [4] * 5 and len(patches) == 5 and len(edges) == 6
    (line,) = axes.plot(t, t * 2)
    np.testing.assert_array_equal(line.get_ydata(), a * 2)
    assert len(axes.bar(t[:3], t[:3])) == 3 and len(axes.boxplot(t)["boxes"]) == 1
    assert axes.imshow(dt.ones((4, 5))).get_array().shape == (4, 5)
    axes.scatter(t, t, c=t), axes.fill_between(t, t, t + 1), axes.errorbar(t, t, yerr=t)
    axes.stackplot(t, t, t), axes.quiver(t, t), axes.step(t, t)
    plt.close("all")


def test_tolerances_may_be_tensors_next_to_arrays(device: dt.Device) -> None:
    a, b = np.asarray([1.0, 2.0]), np.asarray([1.0005, 2.5])
    found = np.isclose(a, b, atol=dt.asarray(1e-3))  # type: ignore[arg-type]
    assert isinstance(found, np.ndarray) and found.tolist() == [True, False]
    assert np.allclose(a, b, rtol=dt.asarray(0.5)) is True  # type: ignore[arg-type]


# Keywords with NumPy's default values.
USUAL: dict[str, Callable[[Any], Any]] = {
    "dtype of a ufunc": lambda x: np.sin(x, dtype=None),
    "where": lambda x: np.add(x, x, where=True),
    "casting": lambda x: np.multiply(x, 2.0, casting="same_kind"),
    "order and subok": lambda x: np.exp(x, order="K", subok=True),
    "order of sort": lambda x: np.sort(x, order=None),
    "kind of isin": lambda x: np.isin(x, x, kind=None),
    "order of argsort": lambda x: np.argsort(x, 0, order=None),
    "dtype of vstack": lambda x: np.vstack([x, x], dtype=None),
    "out of take": lambda x: np.take(x, 1, out=None),
    "mode of take": lambda x: np.take(x, [0], mode="raise"),
    "size": lambda x: np.asarray(np.size(x, (1, 0))),
    "axis of size": lambda x: np.asarray(np.size(x, -1)),
    "out of outer": lambda x: np.outer(x, x, out=None),
}


@pytest.mark.parametrize("name", USUAL)
def test_numpy_keywords_with_default_values_are_accepted(name: str, device: dt.Device) -> None:
    a = np.array([[1.0, 3.0, 2.0], [4.0, 0.0, 6.0]])
    found = USUAL[name](dt.asarray(a))
    np.testing.assert_allclose(np.asarray(found), USUAL[name](a))


def test_unsupported_numpy_keywords_name_an_alternative() -> None:
    x: Any = dt.ones(3, device="reference")
    for call in (
        lambda: np.add(x, x, where=np.array([True, False, True])),
        lambda: np.sort(x, order="a"),
    ):
        with pytest.raises(dt.DTypeError, match=r"on the host, pass np\.asarray"):
            call()


NONE: dict[str, Callable[[Any, Any], Any]] = {
    "transpose": lambda f, x: f.transpose(x, axes=None),
    "x.transpose": lambda f, x: x.transpose(None),
    "sort": lambda f, x: f.sort(x, axis=None),
    "argsort": lambda f, x: f.argsort(x, axis=None),
    "x.argsort": lambda f, x: x.argsort(None),
    "squeeze": lambda f, x: f.squeeze(x, axis=None),
    "flip": lambda f, x: f.flip(x, axis=None),
    "roll": lambda f, x: f.roll(x, 1, axis=None),
    "repeat": lambda f, x: f.repeat(x, 2, axis=None),
    "concat": lambda f, x: f.concat([x, x], axis=None),
    "clip": lambda f, x: f.clip(x, None, 2.0),
    "sum": lambda f, x: f.sum(x, axis=None, dtype=None),
}


@pytest.mark.parametrize("name", NONE)
def test_none_arguments_mean_the_same_as_in_numpy(name: str, device: dt.Device) -> None:
    a = np.array([[1.0, 3.0, 2.0], [4.0, 0.0, 6.0]])
    x = dt.asarray(a)
    want = NONE[name](np, a)
    for found in (NONE[name](dt, x), NONE[name](np, x)):
        assert isinstance(found, dt.Tensor) and found.tolist() == want.tolist()


def test_functions_of_numpy_linalg_work_in_a_new_process() -> None:
    code = """if True:
        import numpy as np, dovetail as dt
        x = dt.asarray([3.0, 4.0], device="reference")
        assert type(np.linalg.norm(x)) is dt.Tensor and np.linalg.norm(x).item() == 5.0
        assert np.linalg.det(dt.eye(2, device="reference")).item() == 1.0
    """
    subprocess.run([sys.executable, "-c", code], check=True)
