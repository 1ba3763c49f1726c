"""NumPy's functions that `dt` lacks, composed of a few others.

`protocol` loads this module when one of the functions is first used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ... import layout as lay
from ...argument_checks import choice, function, integer, integers
from ...declarations import public
from ...dtypes import complex64, complex128, float64, int64, uint8
from ...errors import DTypeError, ShapeError
from ...tensor.host import printable_values
from ...tensor.promotion import Array, Operand, as_tensors
from ...tensor.tensor import Tensor
from ..creation.constructors import arange, zeros, zeros_like
from ..creation.from_values import asarray
from ..datatypes import DeviceLike, DTypeLike, any_dtype, cast, finfo, result_type
from ..elementwise import op_functions as ew
from ..elementwise.lerp import lerp
from ..indexing.index_reads import take_along_axis
from ..products.einsum import parse_sublists
from ..reductions.statistics import all as all_of
from ..reductions.statistics import sum as sum_of
from ..shape.copies import concat, stack
from ..shape.manipulation import expand_dims, moveaxis, ravel, reshape
from ..sorting.lexsort_partition import lexsort


@public(widen=False)
def fix(x: Tensor, out: Tensor | None = None) -> Tensor:
    """Round towards 0."""
    return ew.trunc(x, out=out)


@public(widen=False)
def rollaxis(a: Tensor, axis: int, start: int = 0) -> Tensor:
    """Return a view with an axis moved in front of another one."""
    axis = lay.axis("rollaxis", axis, a.ndim)
    start = start if start == a.ndim else lay.axis("rollaxis", start, a.ndim)
    return moveaxis(a, axis, start - (axis < start))


@public(widen=False)
def real_if_close(a: Tensor, tol: float = 100) -> Tensor:
    """Return the real part if all imaginary parts, read by the host, are small; else `a`."""
    if a.dtype.kind != "c":
        return a
    limit = tol * finfo(a.dtype).eps if tol > 1 else tol
    return ew.real(a) if bool(all_of(ew.abs(ew.imag(a)) < limit)) else a


@public(widen=False)
def sort_complex(a: Tensor) -> Tensor:
    """Sort along the last axis by the real, then by the imaginary parts, as complex numbers."""
    wide = a if a.dtype.kind == "c" else cast(a, complex128 if a.dtype is float64 else complex64)
    return take_along_axis(wide, lexsort((ew.imag(wide), ew.real(wide))), -1)


@public(widen=False)
def float_power(x1: Operand, x2: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return x1 to the power x2, computed in float64 or complex128."""
    tensors = [x for x in (x1, x2) if isinstance(x, Tensor)]
    wide = complex128 if any(x.dtype.kind == "c" for x in tensors) else float64
    a, b = (cast(x, wide) if isinstance(x, Tensor) else x for x in (x1, x2))
    return ew.pow(a, b, out=out)


@public(widen=False)
def apply_along_axis(
    func1d: Callable[..., object], axis: int, arr: Tensor, *args: object, **options: object
) -> Tensor:
    """Call a function with each vector along an axis in a host loop, and stack the results."""
    function("apply_along_axis", func1d, "func1d")
    axis = lay.axis("apply_along_axis", axis, arr.ndim)
    last = moveaxis(arr, axis, -1)
    if not last.size:
        raise ShapeError(f"apply_along_axis: axis {axis} must not be empty, got shape {arr.shape}")
    rows = reshape(last, (-1, last.shape[-1]))
    results = [asarray(func1d(row, *args, **options), device=arr.device) for row in rows]
    stacked = stack(results)
    own = stacked.ndim - 1
    whole = reshape(stacked, (*last.shape[:-1], *stacked.shape[1:]))
    first = whole.ndim - own
    return moveaxis(whole, tuple(range(first, whole.ndim)), tuple(range(axis, axis + own)))


@public(widen=False)
def apply_over_axes(func: Callable[..., Tensor], a: Tensor, axes: int | Sequence[int]) -> Tensor:
    """Apply a reduction over some axes, one after the other; they stay with size 1."""
    function("apply_over_axes", func, "func")
    for raw_axis in integers("apply_over_axes", axes, "axes"):
        axis = lay.axis("apply_over_axes", raw_axis, a.ndim)
        reduced = func(a, axis)
        a = reduced if reduced.ndim == a.ndim else expand_dims(reduced, axis)
    return a


@public
def polydiv(u: Array, v: Array) -> tuple[Tensor, Tensor]:
    """Return quotient and remainder of polynomials, highest power first; the host trims zeros."""
    a, b = (ew.divide(ravel(x), 1) for x in as_tensors("polydiv", u, v))
    if not a.size or not b.size:
        raise ShapeError("polydiv: a polynomial must have at least one coefficient, got none")
    a, b = a + ew.multiply(b[0], 0), b + ew.multiply(a[0], 0)  # promote to one dtype
    steps, n = a.size - b.size + 1, b.size
    remainder, coefficients = a.copy(), []
    for k in range(steps):
        d = remainder[k] / b[0]
        remainder = concat([remainder[:k], remainder[k : k + n] - d * b, remainder[k + n :]])
        coefficients.append(d)
    quotient = stack(coefficients) if coefficients else zeros((1,), dtype=a.dtype, device=a.device)
    is_nonzero = np.abs(printable_values(remainder)) > 1e-8  # as NumPy trims the remainder
    first = int(np.argmax(is_nonzero)) if is_nonzero.any() else remainder.size - 1
    return quotient, remainder[first:]


def _bit_shifts(a: Tensor, bitorder: str, name: str) -> Tensor:
    """Return the shift of each bit of a byte, the highest first for "big"."""
    choice(name, bitorder, "bitorder", ("big", "little"))
    shifts = arange(8, dtype=uint8, device=a.device)
    return shifts if bitorder == "little" else 7 - shifts


@public(widen=False)
def unpackbits(
    a: Tensor, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Tensor:
    """Return the bits of bytes, as bytes that are 0 or 1."""
    if a.dtype is not uint8:
        raise DTypeError(f"unpackbits: expected uint8, got {a.dtype.name}; use x.astype(dt.uint8)")
    a, axis = (ravel(a), 0) if axis is None else (a, lay.axis("unpackbits", axis, a.ndim))
    last = moveaxis(a, axis, -1)
    bits = (expand_dims(last, -1) >> _bit_shifts(a, bitorder, "unpackbits")) & 1
    flat = reshape(bits, (*last.shape[:-1], 8 * last.shape[-1]))
    if count is not None:
        if count > flat.shape[-1]:
            fill = zeros((*flat.shape[:-1], count - flat.shape[-1]), dtype=uint8, device=a.device)
            flat = concat([flat, fill], axis=-1)
        flat = flat[..., :count]
    return moveaxis(flat, -1, axis)


@public(widen=False)
def packbits(a: Tensor, axis: int | None = None, bitorder: str = "big") -> Tensor:
    """Pack eight elements into each byte, as bits that are 1 for nonzero elements."""
    if a.dtype.kind not in "biu":
        raise DTypeError(f"packbits: expected integers or bool, got {a.dtype.name}; use x != 0")
    a, axis = (ravel(a), 0) if axis is None else (a, lay.axis("packbits", axis, a.ndim))
    last = cast(moveaxis(a, axis, -1) != 0, int64)
    fill = -last.shape[-1] % 8
    if fill:
        padding = zeros((*last.shape[:-1], fill), dtype=int64, device=a.device)
        last = concat([last, padding], axis=-1)
    eights = reshape(last, (*last.shape[:-1], last.shape[-1] // 8, 8))
    weights = cast(_bit_shifts(a, bitorder, "packbits"), int64)
    return moveaxis(cast(sum_of(eights << weights, axis=-1), uint8), -1, axis)


@public(widen=False)
def einsum_path(subscripts: object, *operands: Array, optimize: object = "greedy") -> object:
    """Return NumPy's path, which depends only on the shapes."""
    if not isinstance(subscripts, str):
        subscripts, operands = parse_sublists(subscripts, *operands)
    shapes = [np.broadcast_to(np.float64(0), np.shape(x)) for x in operands]  # type: ignore[arg-type]  # every operand has a shape
    path: object = np.einsum_path(subscripts, *shapes, optimize=optimize)  # type: ignore[arg-type]  # NumPy checks it
    return path


@public(widen=False)
def linspace(
    start: Operand,
    stop: Operand,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike = None,
    axis: int = 0,
    *,
    device: DeviceLike = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Return evenly spaced numbers between two ends, of which one is a tensor."""
    num, zero = integer("linspace", num, "num", 0), zeros_like(ew.add(start, stop))
    like = result_type(zero, 1.0)
    a, b = (cast(ew.add(zero, end), like) for end in (start, stop))
    gaps = num - 1 if endpoint else num
    step = (b - a) / gaps if gaps > 0 else a * math.nan
    indices = reshape(arange(num, dtype=like.part, device=a.device), (num,) + (1,) * a.ndim)
    result = expand_dims(a, 0)[:num]
    if num > 1:
        between = lerp(a, b, indices / gaps)  # used where the step overflows
        inner = ew.where(ew.isfinite(step), indices * step + a, between)[1:gaps]
        result = concat([result, inner, expand_dims(b, 0)] if endpoint else [result, inner])
    if dtype is not None:
        target = any_dtype("linspace", dtype)
        result = cast(
            ew.floor(result) if target.kind in "iu" and like.kind == "f" else result, target
        )
    result = moveaxis(result, 0, axis)
    result = result if device is None else result.to(device)
    return (result, step) if retstep else result


EXTRA_FUNCTIONS: dict[object, Callable[..., object]] = {
    getattr(np, f.__name__): f
    for f in (
        fix, rollaxis, real_if_close, sort_complex, float_power, apply_along_axis, apply_over_axes,
        polydiv, unpackbits, packbits, einsum_path, linspace,
    )
    if hasattr(np, f.__name__)
}  # fmt: skip
