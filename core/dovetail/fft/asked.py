"""What is asked of transforms: lengths, axes, a norm; and tensors of that length, in that dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

from .. import layout as lay
from ..arguments import LARGEST, choice, integer, integers, shown
from ..dtypes import complex64, complex128, float32, float64
from ..errors import ArgumentError, AxisError, DTypeError
from ..functions.datatypes import cast
from ..functions.shape.padding import pad
from ..layout import Shape
from ..tensor.tensor import Tensor, required, strided
from ..tensor.verbs import slice_along

Norm: TypeAlias = Literal["backward", "ortho", "forward"] | None
Sizes: TypeAlias = int | Sequence[int] | None
NORMS = ("backward", "ortho", "forward")


def complex_input(name: str, x: Tensor) -> Tensor:
    """A strided tensor in complex64 or complex128. Raises: LayoutError."""
    x = strided(name, required(name, x))
    wide = x.dtype.part is float64
    return cast(x, complex128 if wide else complex64)


def real_input(name: str, x: Tensor) -> Tensor:
    """A strided tensor in float32 or float64. Raises: DTypeError for complex numbers."""
    x = strided(name, required(name, x))
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: takes real numbers, not {x.dtype.name}; see dt.fft.fft")
    return cast(x, float64 if x.dtype is float64 else float32)


def length(name: str, n: int | None, default: int) -> int:
    """How many points are transformed. Raises: ArgumentError below 1, ArgumentTypeError."""
    if n is not None:
        found = integer(name, n, "n", 1)
        if found > LARGEST:
            raise ArgumentError(f"{name}: n is at most {LARGEST}, not {shown(n)}")
        return found
    if default < 1:
        raise ArgumentError(f"{name}: there are no points along the axis; give n, 1 or more")
    return default


def lengths(name: str, x: Tensor, s: Sizes, axes: Sizes) -> tuple[list[int | None], Shape]:
    """The length along each axis that is transformed, None for the tensor's own, and the axes.

    Of lengths without axes they are the last ones. Raises: ArgumentError, AxisError.
    """
    sizes = None if s is None else integers(name, s, "s")
    if axes is not None:
        chosen = tuple([lay.axis(name, a, x.ndim) for a in integers(name, axes, "axes")])
    else:
        count = x.ndim if sizes is None else len(sizes)
        if count > x.ndim:
            raise ArgumentError(f"{name}: {count} lengths for {x.ndim} dimensions")
        chosen = tuple(range(x.ndim - count, x.ndim))
    if len({*chosen}) < len(chosen):
        raise AxisError(f"{name}: axes {axes} name a dimension twice")
    if sizes is None:
        return [None] * len(chosen), chosen
    if len(sizes) != len(chosen):
        raise ArgumentError(f"{name}: {len(sizes)} lengths for {len(chosen)} axes")
    return [None if n == -1 else length(name, n, 1) for n in sizes], chosen


def scale(name: str, norm: Norm, n: int, back: bool) -> float:
    """What the sums over n points are multiplied by. Raises: ArgumentError."""
    given = choice(name, "backward" if norm is None else norm, "norm", NORMS)
    if given == "ortho":
        return 1.0 / math.sqrt(n)
    return 1.0 / n if back == (given == "backward") else 1.0


def resized(x: Tensor, n: int, axis: int) -> Tensor:
    """`x` cut off after n places along an axis, or followed by zeros."""
    had = x.shape[axis]
    if n <= had:
        return x if n == had else slice_along(x, axis, 0, n)
    return pad(x, [(0, n - had if d == axis else 0) for d in range(x.ndim)])
