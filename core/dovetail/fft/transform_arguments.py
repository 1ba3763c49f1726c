"""Argument checks of transforms: lengths, axes, norms, and tensors in the right dtype."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Literal, TypeAlias

from .. import layout as lay
from ..argument_checks import LARGEST, choice, integer, integers, shown
from ..dtypes import complex64, complex128, float32, float64
from ..errors import ArgumentError, AxisError, DTypeError
from ..functions.datatypes import cast
from ..functions.shape.padding import pad
from ..layout import Shape
from ..tensor.c_fields import is_strided
from ..tensor.other_layouts import call_along, require_along
from ..tensor.primitives import slice_along
from ..tensor.tensor import Tensor, required

Norm: TypeAlias = Literal["backward", "ortho", "forward"] | None
Sizes: TypeAlias = int | Sequence[int] | None
NORMS = ("backward", "ortho", "forward")


AxisTransform: TypeAlias = Callable[[str, Tensor, int | None, int, Norm, bool], Tensor]


def extend_to_layouts(transform: AxisTransform) -> AxisTransform:
    """Call a transform along one axis by the rule "along", if the tensor is of another layout."""

    @wraps(transform)
    def call(
        name: str, x: Tensor, n: int | None, axis: int, norm: Norm, is_inverse: bool
    ) -> Tensor:
        if is_strided(x):
            return transform(name, x, n, axis, norm, is_inverse)
        d = lay.axis(name, axis, x.ndim)
        result: Tensor = call_along(
            name, lambda t: transform(name, t, n, d, norm, is_inverse), (x,), (d,)
        )
        return result

    return call


def complex_input(name: str, x: Tensor) -> Tensor:
    """Cast to complex64, or complex128 if parts are float64.

    Raises: LayoutError for a layout without the rule "along".
    """
    x = require_along(name, required(name, x))
    wide = x.dtype.part is float64
    return cast(x, complex128 if wide else complex64)


def real_input(name: str, x: Tensor) -> Tensor:
    """Cast a tensor to float32 unless it is float64. Raises: DTypeError if complex, LayoutError."""
    x = require_along(name, required(name, x))
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: x must be real, got {x.dtype.name}; use dt.fft.fft")
    return cast(x, float64 if x.dtype is float64 else float32)


def length(name: str, n: int | None, default: int) -> int:
    """Return `n`, or `default` for None. Raises: ArgumentError below 1, ArgumentTypeError."""
    if n is not None:
        points = integer(name, n, "n", 1)
        if points > LARGEST:
            raise ArgumentError(f"{name}: n must be at most {LARGEST}, got {shown(n)}")
        return points
    if default < 1:
        raise ArgumentError(f"{name}: the axis has size 0; pass n, which must be at least 1")
    return default


def lengths(name: str, x: Tensor, s: Sizes, axes: Sizes) -> tuple[list[int | None], Shape]:
    """Return the length along each transformed axis, None for the tensor's own, and the axes.

    Lengths without axes are of the last axes. Raises: ArgumentError, AxisError.
    """
    sizes = None if s is None else integers(name, s, "s")
    if axes is not None:
        chosen = tuple([lay.axis(name, a, x.ndim) for a in integers(name, axes, "axes")])
    else:
        count = x.ndim if sizes is None else len(sizes)
        if count > x.ndim:
            raise ArgumentError(
                f"{name}: s must have at most {x.ndim} lengths, one per dimension, got {count}"
            )
        chosen = tuple(range(x.ndim - count, x.ndim))
    if len({*chosen}) < len(chosen):
        raise AxisError(f"{name}: axes must be distinct, got {axes}")
    if sizes is None:
        return [None] * len(chosen), chosen
    if len(sizes) != len(chosen):
        raise ArgumentError(
            f"{name}: s and axes must have the same length, got {len(sizes)} and {len(chosen)}"
        )
    return [None if n == -1 else length(name, n, 1) for n in sizes], chosen


def scale(name: str, norm: Norm, n: int, is_inverse: bool) -> float:
    """Return the factor of the sums over n points. Raises: ArgumentError for an unknown norm."""
    norm_name = choice(name, "backward" if norm is None else norm, "norm", NORMS)
    if norm_name == "ortho":
        return 1.0 / math.sqrt(n)
    return 1.0 / n if is_inverse == (norm_name == "backward") else 1.0


def resize(x: Tensor, n: int, axis: int) -> Tensor:
    """Return `x` cut off after n points along an axis, or padded with zeros."""
    size = x.shape[axis]
    if n <= size:
        return x if n == size else slice_along(x, axis, 0, n)
    return pad(x, [(0, n - size if d == axis else 0) for d in range(x.ndim)])
