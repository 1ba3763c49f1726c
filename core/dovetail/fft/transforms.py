"""Transforms of complex numbers: along one axis, and along several."""

from __future__ import annotations

from .. import layout as lay
from ..functions.variants import public
from ..tensor.tensor import Tensor
from .axis_transform import transform
from .stages import FourierAttrs
from .transform_arguments import (
    Norm,
    Sizes,
    complex_input,
    extend_to_layouts,
    length,
    lengths,
    resize,
    scale,
)

__all__ = ["fft", "fft2", "fftn", "ifft", "ifft2", "ifftn"]


@extend_to_layouts
def transform_axis(
    name: str, x: Tensor, n: int | None, axis: int, norm: Norm, is_inverse: bool
) -> Tensor:
    """Return `fft` or `ifft` of a complex tensor on one axis.

    Raises: AxisError for an axis that `x` does not have; ArgumentError for a length below 1 and an
    unknown norm.
    """
    axis = lay.axis(name, axis, x.ndim)
    points = length(name, n, x.shape[axis])
    by = scale(name, norm, points, is_inverse)
    return transform(resize(x, points, axis), axis, FourierAttrs(is_inverse, by))


def transform_axes(
    name: str, x: Tensor, s: Sizes, axes: Sizes, norm: Norm, is_inverse: bool
) -> Tensor:
    """Cast to complex, return `fftn` or `ifftn`.

    Raises: AxisError for axes that `x` does not have or that repeat; ArgumentError for an invalid
    number of lengths, a length below 1 and an unknown norm; LayoutError for a layout
    without the rule "along".
    """
    x = complex_input(name, x)
    sizes, chosen = lengths(name, x, s, axes)
    scale(name, norm, 1, is_inverse)
    for n, axis in reversed([*zip(sizes, chosen, strict=True)]):
        x = transform_axis(name, x, n, axis, norm, is_inverse)
    return x


@public(out=True, widen=False)
def fft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the discrete Fourier transforms along an axis: sums of x[j] exp(-2 pi i j k / n).

    - `n`: the number of points: the tensor is cut off or followed by zeros; None keeps the size of
      the axis.
    - `norm`: the transform that is divided by n: "backward" the inverse, "forward" this one,
      "ortho" both by its square root.

    Shapes: any but (); n along the axis.
    Dtypes: complex64 and complex128 stay; float64 gives complex128, other real ones complex64.
    Accuracy: errors of the order of eps log n, as a root mean square.
    Gradient: the conjugate transpose, which is the inverse but for its scale.
    Raises: ArgumentError for an n below 1 and other norms, AxisError, DTypeError.
    See also: `fft.ifft`, `fft.rfft`, `fft.fftn`, `fft.fftfreq`.

    >>> import dovetail as dt
    >>> dt.fft.fft(dt.asarray([1.0, 0.0, 1.0, 0.0])).tolist()
    [(2+0j), 0j, (2+0j), 0j]
    """
    return transform_axis("fft", complex_input("fft", x), n, axis, norm, False)


@public(out=True, widen=False)
def ifft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the inverse transforms along an axis: sums of x[j] exp(2 pi i j k / n), over n.

    - `n`: the number of points: the tensor is cut off or followed by zeros; None keeps the size of
      the axis.
    - `norm`: "backward" divides this transform by n, "forward" the other one, "ortho" both by its
      square root.

    Shapes: any but (); n along the axis.
    Dtypes: as `fft`.
    Gradient: as `fft`.
    Raises: as `fft`.
    See also: `fft.fft`, `fft.irfft`.

    >>> import dovetail as dt
    >>> dt.fft.ifft(dt.asarray([4.0, 0.0, 0.0, 0.0])).tolist()
    [(1+0j), (1+0j), (1+0j), (1+0j)]
    """
    return transform_axis("ifft", complex_input("ifft", x), n, axis, norm, True)


@public(out=True, widen=False)
def fftn(
    x: Tensor,
    /,
    s: Sizes = None,
    axes: Sizes = None,
    norm: Norm = "backward",
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the transforms along several axes, one after the other.

    - `s`: the number of points along each axis, -1 for the tensor's own; None keeps all sizes.
    - `axes`: the axes; None takes the last ones that `s` has, else all.
    - `norm`: as for `fft`, with the product of the numbers of points for n.

    Shapes: any; those of `s` along the axes.
    Dtypes: as `fft`.
    Gradient: as `fft`.
    Raises: ArgumentError for lengths below 1, other numbers of them and other norms, AxisError.
    See also: `fft.ifftn`, `fft.fft2`, `fft.rfftn`.

    >>> import dovetail as dt
    >>> dt.fft.fftn(dt.ones((2, 2))).tolist()
    [[(4+0j), 0j], [0j, 0j]]
    """
    return transform_axes("fftn", x, s, axes, norm, False)


@public(out=True, widen=False)
def ifftn(
    x: Tensor,
    /,
    s: Sizes = None,
    axes: Sizes = None,
    norm: Norm = "backward",
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the inverse transforms along several axes, one after the other.

    - `s`: the number of points along each axis, -1 for the tensor's own; None keeps all sizes.
    - `axes`: the axes; None takes the last ones that `s` has, else all.
    - `norm`: as for `ifft`, with the product of the numbers of points for n.

    Shapes: any; those of `s` along the axes.
    Dtypes: as `fft`.
    Gradient: as `fft`.
    Raises: as `fftn`.

    >>> import dovetail as dt
    >>> dt.fft.ifftn(dt.ones((2, 2))).tolist()
    [[(1+0j), 0j], [0j, 0j]]
    """
    return transform_axes("ifftn", x, s, axes, norm, True)


@public(out=True, widen=False)
def fft2(
    x: Tensor,
    /,
    s: Sizes = None,
    axes: Sizes = (-2, -1),
    norm: Norm = "backward",
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the transforms along two axes, by default the last two; see `fftn`.

    - `s`: the number of points along each axis, -1 for the tensor's own; None keeps both sizes.
    - `axes`: the two axes.
    - `norm`: as for `fft`, with the product of the numbers of points for n.

    Shapes: 2 dimensions or more; those of `s` along the axes.
    Dtypes: as `fft`.
    Gradient: as `fft`.
    Raises: as `fftn`.

    >>> import dovetail as dt
    >>> dt.fft.fft2(dt.ones((2, 2))).tolist()
    [[(4+0j), 0j], [0j, 0j]]
    """
    return transform_axes("fft2", x, s, axes, norm, False)


@public(out=True, widen=False)
def ifft2(
    x: Tensor,
    /,
    s: Sizes = None,
    axes: Sizes = (-2, -1),
    norm: Norm = "backward",
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the inverse transforms along two axes, by default the last two; see `ifftn`.

    - `s`: the number of points along each axis, -1 for the tensor's own; None keeps both sizes.
    - `axes`: the two axes.
    - `norm`: as for `ifft`, with the product of the numbers of points for n.

    Shapes: 2 dimensions or more; those of `s` along the axes.
    Dtypes: as `fft`.
    Gradient: as `fft`.
    Raises: as `fftn`.

    >>> import dovetail as dt
    >>> dt.fft.ifft2(dt.ones((2, 2))).tolist()
    [[(1+0j), 0j], [0j, 0j]]
    """
    return transform_axes("ifft2", x, s, axes, norm, True)
