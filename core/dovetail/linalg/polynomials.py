"""Polynomials through samples."""

from __future__ import annotations

from ..arguments import integer, named, real
from ..dtypes import float32
from ..errors import ShapeError
from ..functions import elementwise as ew
from ..functions.datatypes import cast, finfo, result_type
from ..functions.sampled import vander
from ..functions.statistics import sum as sum_
from ..tensor.operands import Array, brought
from ..tensor.tensor import Tensor
from ..tensor.verbs import view
from .least_squares import lstsq

__all__ = ["polyfit"]


@named
def polyfit(
    x: Array, y: Array, deg: int, /, *, rcond: float | None = None, w: Array | None = None
) -> Tensor:
    """The coefficients of the polynomial of a degree that is nearest to samples, by least squares.

    `x`: where they were taken. `y`: the samples. `deg`: the degree. `rcond`: singular values up to
    this share of the largest count as 0; as many times the dtype's eps as there are samples, unless
    given. `w`: by what each difference is multiplied before it is squared.
    Shapes: `x` and `w` are vectors (n,), y (n,) or (n, k): gives (deg + 1,) or (deg + 1, k), the
    highest power first, for `polyval`.
    Dtypes: float32 and float64, promoted; integers become float32.
    Gradient: as long as the matrix of powers keeps its rank.
    Raises: ShapeError, DTypeError, DeviceError; ArgumentError for a negative degree; LinAlgError
    where a place is NaN or infinite.

    >>> import dovetail as dt
    >>> x = dt.asarray([0.0, 1.0, 2.0], device="reference")
    >>> dt.allclose(dt.polyfit(x, [1.0, 3.0, 7.0], 2), [1.0, 1.0, 1.0], atol=1e-4)
    True
    """
    n = integer("polyfit", deg, "deg", 0, 1 << 16)
    at, samples, *weights = brought("polyfit", x, y, *([] if w is None else [w]))
    if at.ndim != 1 or not at.size or any(v.shape != at.shape for v in weights):
        raise ShapeError("polyfit: x and w are vectors of one length, of one element at least")
    if samples.ndim not in (1, 2) or samples.shape[0] != at.size:
        raise ShapeError(f"polyfit: samples of shape {samples.shape} at {at.size} places")
    d = result_type(at, samples, *weights)
    d = d if d.kind == "f" else float32
    powers, right = vander(cast(at, d), n + 1), cast(samples, d)
    for v in weights:
        column = view(cast(v, d), ("reshape", (at.size, 1)))
        powers = powers * column
        right = right * (column if right.ndim == 2 else cast(v, d))
    scale = ew.sqrt(sum_(ew.square(powers), axis=0))
    scale = ew.where(ew.equal(scale, 0.0), 1.0, scale)
    share = at.size * float(finfo(d).eps) if rcond is None else real("polyfit", rcond, "rcond")
    found = lstsq(powers / scale, right, rcond=share).solution
    return found / (view(scale, ("reshape", (n + 1, 1))) if right.ndim == 2 else scale)
