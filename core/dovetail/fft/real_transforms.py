"""Transforms of real numbers and their inverses, which use half of a spectrum.

An even number of points is transformed as half as many complex ones, of neighbours; an odd one as
complex numbers. Source: Cooley, Lewis and Welch, The fast Fourier transform algorithm: programming
considerations in the calculation of sine, cosine and Laplace transforms, 1970.
"""

from __future__ import annotations

import numpy as np

from .. import layout as lay
from ..dtypes import DType, complex64, complex128, float32
from ..errors import ArgumentError
from ..functions.creation.constructors import complex_from_parts
from ..functions.datatypes import cast
from ..functions.elementwise import op_functions as ew
from ..functions.shape.copies import concat, stack
from ..functions.shape.manipulation import flip
from ..functions.variants import public
from ..tensor.primitives import slice_along, view
from ..tensor.tensor import Tensor
from .axis_transform import broadcast_along, transform
from .stages import FourierAttrs
from .transform_arguments import (
    Norm,
    Sizes,
    complex_input,
    extend_to_layouts,
    length,
    lengths,
    real_input,
    resize,
    scale,
)
from .transforms import transform_axis
from .twiddles import roots, table

__all__ = ["hfft", "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn"]


# --- along one axis -------------------------------------------------------------------------------


def _spectrum(x: Tensor, axis: int, factor: float) -> Tensor:
    """Return the first n // 2 + 1 points of the transform of n real points, times `factor`."""
    n = x.shape[axis]
    if n % 2:
        spectrum = transform(cast(x, _complex_dtype(x)), axis, FourierAttrs(False, factor))
        return slice_along(spectrum, axis, 0, n // 2 + 1)
    even, odd = (view(x, lay.slice_along(x.shape, axis, start, n // 2, 2)) for start in (0, 1))
    z = transform(complex_from_parts(even, odd), axis, FourierAttrs(False, factor / 2))
    z = concat([z, slice_along(z, axis, 0, 1)], axis=axis)
    back = ew.conj(flip(z, axis))
    return (z + back) + (z - back) * _half_twiddles(n, axis, z)


def _points_of_half_spectrum(x: Tensor, n: int, axis: int, factor: float) -> Tensor:
    """Return the n real points whose spectrum begins with the half `x`, times `factor`."""
    if n % 2:
        others = slice_along(x, axis, 1, n // 2)
        whole = concat([_with_real_ends(x, n, axis), ew.conj(flip(others, axis))], axis=axis)
        return ew.real(transform(whole, axis, FourierAttrs(True, factor)))
    h = n // 2
    x = _with_real_ends(x, n, axis)
    here = slice_along(x, axis, 0, h)
    back = ew.conj(flip(slice_along(x, axis, 1, h), axis))
    turns = slice_along(_half_twiddles(n, axis, x), axis, 0, h)
    z = transform((here + back) + (here - back) * ew.conj(turns), axis, FourierAttrs(True, factor))
    both = stack([ew.real(z), ew.imag(z)], axis=axis + 1)
    return view(both, ("reshape", (*x.shape[:axis], n, *x.shape[axis + 1 :])))


def _complex_dtype(x: Tensor) -> DType:
    """Return the complex dtype of a real tensor's precision."""
    return complex64 if x.dtype is float32 else complex128


def _half_twiddles(n: int, axis: int, like: Tensor) -> Tensor:
    """Return -i exp(-2 pi i k / n) for k in 0..n / 2, along an axis, from the cached table."""

    def phases() -> np.ndarray:
        """Return the roots on the host, for the cached table."""
        return roots(4 * np.arange(n // 2 + 1) + n, 4 * n)

    return broadcast_along(table("turns", n, like.dtype, like.device, phases), axis, like.ndim)


def _with_real_ends(x: Tensor, n: int, axis: int) -> Tensor:
    """Return `x` with the imaginary parts of bin 0, and of bin n / 2 if n is even, set to 0."""

    def interior_mask() -> np.ndarray:
        """Return True, on the host, for the bins whose imaginary part counts."""
        k = np.arange(n // 2 + 1)
        middle: np.ndarray = (k > 0) & (2 * k != n)
        return middle

    mask = broadcast_along(table("inside", n, x.dtype.part, x.device, interior_mask), axis, x.ndim)
    return complex_from_parts(ew.real(x), ew.where(ew.not_equal(mask, 0), ew.imag(x), 0.0))


@extend_to_layouts
def _real_to_half_spectrum(
    name: str, x: Tensor, n: int | None, axis: int, norm: Norm, is_inverse: bool
) -> Tensor:
    """Check `n`, `axis` and `norm`; return `rfft`, scaled as a forward or inverse transform."""
    axis = lay.axis(name, axis, x.ndim)
    points = length(name, n, x.shape[axis])
    by = scale(name, norm, points, is_inverse)
    return _spectrum(resize(x, points, axis), axis, by)


@extend_to_layouts
def _half_spectrum_to_real(
    name: str, x: Tensor, n: int | None, axis: int, norm: Norm, is_inverse: bool
) -> Tensor:
    """Check `n`, `axis` and `norm`; return `irfft`, scaled as a forward or inverse transform."""
    axis = lay.axis(name, axis, x.ndim)
    points = length(name, n, 2 * (x.shape[axis] - 1))
    by = scale(name, norm, points, is_inverse)
    return _points_of_half_spectrum(resize(x, points // 2 + 1, axis), points, axis, by)


@public(out=True, widen=False)
def rfft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the transforms of real numbers along an axis: the half that determines the other.

    The other half is its conjugate.

    - `n`: the number of points: the tensor is cut off or followed by zeros; None keeps the size of
      the axis.
    - `norm`: "backward" divides the inverse by n, "forward" this transform, "ortho" both by its
      square root.

    Shapes: any but (); n // 2 + 1 along the axis.
    Dtypes: real; float64 gives complex128, others complex64.
    Gradient: as `fft`.
    Raises: ArgumentError for an n below 1 and other norms, AxisError, DTypeError for complex
    numbers.
    See also: `fft.irfft`, `fft.fft`, `fft.rfftfreq`.

    >>> import dovetail as dt
    >>> dt.fft.rfft(dt.asarray([1.0, 0.0, 1.0, 0.0])).tolist()
    [(2+0j), 0j, (2+0j)]
    """
    return _real_to_half_spectrum("rfft", real_input("rfft", x), n, axis, norm, False)


@public(out=True, widen=False)
def irfft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the real numbers whose half spectrum along an axis is `x`: the inverse of `rfft`.

    Imaginary parts that such a spectrum does not have, of the first point and of the last one of an
    even number, count as 0.

    - `n`: the number of points of the result; None is 2 (m - 1) of m points.
    - `norm`: "backward" divides this transform by n, "forward" the other one, "ortho" both by its
      square root.

    Shapes: any but (); n along the axis.
    Dtypes: as `fft`; the result has the dtype of its parts.
    Gradient: as `fft`.
    Raises: ArgumentError for an n below 1 and other norms, AxisError.
    See also: `fft.rfft`, `fft.ifft`.

    >>> import dovetail as dt
    >>> dt.fft.irfft(dt.asarray([2.0, 0.0, 2.0])).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """
    return _half_spectrum_to_real("irfft", complex_input("irfft", x), n, axis, norm, True)


@public(out=True, widen=False)
def hfft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the real transforms along an axis of points whose other half is the conjugate.

    - `n`: the number of points of the result; None is 2 (m - 1) of m points.
    - `norm`: "backward" divides the inverse by n, "forward" this transform, "ortho" both by its
      square root.

    Shapes: any but (); n along the axis.
    Dtypes: as `fft`; the result has the dtype of its parts.
    Gradient: as `fft`.
    Raises: as `irfft`.

    >>> import dovetail as dt
    >>> dt.fft.hfft(dt.asarray([1.0, 0.0, 1.0])).tolist()
    [2.0, 0.0, 2.0, 0.0]
    """
    return _half_spectrum_to_real("hfft", ew.conj(complex_input("hfft", x)), n, axis, norm, False)


@public(out=True, widen=False)
def ihfft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the first n // 2 + 1 inverse transforms of real points: the inverse of `hfft`.

    - `n`: the number of points: the tensor is cut off or followed by zeros; None keeps the size of
      the axis.
    - `norm`: "backward" divides this transform by n, "forward" the other one, "ortho" both by its
      square root.

    Shapes: any but (); n // 2 + 1 along the axis.
    Dtypes: as `rfft`.
    Gradient: as `fft`.
    Raises: as `rfft`.

    >>> import dovetail as dt
    >>> dt.fft.ihfft(dt.asarray([2.0, 0.0, 2.0, 0.0])).tolist()
    [(1-0j), -0j, (1-0j)]
    """
    return ew.conj(_real_to_half_spectrum("ihfft", real_input("ihfft", x), n, axis, norm, True))


# --- along several axes ---------------------------------------------------------------------------


def _real_to_half_spectrum_along(name: str, x: Tensor, s: Sizes, axes: Sizes, norm: Norm) -> Tensor:
    """Check the arguments; return `rfft` along the last axis, then `fft` along the others."""
    x = real_input(name, x)
    sizes, chosen = lengths(name, x, s, axes)
    if not chosen:
        raise ArgumentError(f"{name}: axes must name at least one axis, got none")
    result = _real_to_half_spectrum(name, x, sizes[-1], chosen[-1], norm, False)
    for n, axis in reversed([*zip(sizes[:-1], chosen[:-1], strict=True)]):
        result = transform_axis(name, result, n, axis, norm, False)
    return result


def _half_spectrum_to_real_along(name: str, x: Tensor, s: Sizes, axes: Sizes, norm: Norm) -> Tensor:
    """Check the arguments; return `ifft` along all axes but the last, then `irfft` along it."""
    result = complex_input(name, x)
    sizes, chosen = lengths(name, result, s, axes)
    if not chosen:
        raise ArgumentError(f"{name}: axes must name at least one axis, got none")
    for n, axis in zip(sizes[:-1], chosen[:-1], strict=True):
        result = transform_axis(name, result, n, axis, norm, True)
    return _half_spectrum_to_real(name, result, sizes[-1], chosen[-1], norm, True)


@public(out=True, widen=False)
def rfftn(
    x: Tensor,
    /,
    s: Sizes = None,
    axes: Sizes = None,
    norm: Norm = "backward",
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the transforms of real numbers along several axes: `rfft` of the last, then `fft`.

    - `s`: the number of points along each axis, -1 for the tensor's own; None keeps all sizes.
    - `axes`: the axes, of which the last one has the half spectrum; None takes the last ones that
      `s` has, else all.
    - `norm`: as for `rfft`, with the product of the numbers of points for n.

    Shapes: 1 dimension or more; those of `s` along the axes, along the last one n // 2 + 1 of n.
    Dtypes: as `rfft`.
    Gradient: as `fft`.
    Raises: as `fftn`, DTypeError for complex numbers.

    >>> import dovetail as dt
    >>> dt.fft.rfftn(dt.ones((2, 2))).tolist()
    [[(4+0j), 0j], [0j, 0j]]
    """
    return _real_to_half_spectrum_along("rfftn", x, s, axes, norm)


@public(out=True, widen=False)
def irfftn(
    x: Tensor,
    /,
    s: Sizes = None,
    axes: Sizes = None,
    norm: Norm = "backward",
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the real numbers whose half spectrum along several axes is `x`: inverse of `rfftn`.

    - `s`: the number of points of the result along each axis; -1 for the tensor's own, along the
      last axis for the even number.
    - `axes`: the axes, of which the last one has the half spectrum; None takes the last ones that
      `s` has, else all.
    - `norm`: as for `irfft`, with the product of the numbers of points for n.

    Shapes: 1 dimension or more; those of `s` along the axes.
    Dtypes: as `irfft`.
    Gradient: as `fft`.
    Raises: as `fftn`.

    >>> import dovetail as dt
    >>> dt.fft.irfftn(dt.asarray([[4.0, 0.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _half_spectrum_to_real_along("irfftn", x, s, axes, norm)


@public(out=True, widen=False)
def rfft2(
    x: Tensor,
    /,
    s: Sizes = None,
    axes: Sizes = (-2, -1),
    norm: Norm = "backward",
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the transforms of real numbers along two axes, by default the last two; see `rfftn`.

    - `s`: the number of points along each axis, -1 for the tensor's own; None keeps both sizes.
    - `axes`: the two axes; the last one has the half spectrum.
    - `norm`: as for `rfft`, with the product of the numbers of points for n.

    Shapes: 2 dimensions or more; those of `s` along the axes, along the last one n // 2 + 1 of n.
    Dtypes: as `rfft`.
    Gradient: as `fft`.
    Raises: as `rfftn`.

    >>> import dovetail as dt
    >>> dt.fft.rfft2(dt.ones((2, 2))).tolist()
    [[(4+0j), 0j], [0j, 0j]]
    """
    return _real_to_half_spectrum_along("rfft2", x, s, axes, norm)


@public(out=True, widen=False)
def irfft2(
    x: Tensor,
    /,
    s: Sizes = None,
    axes: Sizes = (-2, -1),
    norm: Norm = "backward",
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the real numbers whose half spectrum along two axes is `x`: the inverse of `rfft2`.

    - `s`: the number of points of the result along each axis; -1 for the tensor's own, along the
      last axis for the even number.
    - `axes`: the two axes; the last one has the half spectrum.
    - `norm`: as for `irfft`, with the product of the numbers of points for n.

    Shapes: 2 dimensions or more; those of `s` along the axes.
    Dtypes: as `irfft`.
    Gradient: as `fft`.
    Raises: as `fftn`.

    >>> import dovetail as dt
    >>> dt.fft.irfft2(dt.asarray([[4.0, 0.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _half_spectrum_to_real_along("irfft2", x, s, axes, norm)
