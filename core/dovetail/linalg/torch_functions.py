"""Functions of PyTorch that need factors and norms of matrices."""

from __future__ import annotations

from .. import layout as lay
from ..argument_checks import integer, real
from ..errors import ArgumentError, ShapeError
from ..functions.elementwise.op_functions import where
from ..functions.variants import public
from ..tensor.promotion import as_tensors
from ..tensor.tensor import Tensor, strided
from .norms import vector_norm
from .solving import slogdet

__all__ = ["cdist", "logdet", "renorm"]


@public
def logdet(x: Tensor) -> Tensor:
    """Return the logarithm of the determinant of matrices; NaN if it is negative, -inf if it is 0.

    Shapes: (..., n, n) gives (...).
    Dtypes: real floats.
    Raises: ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.logdet(dt.eye(2)).item()
    0.0
    """
    sign, log_size = slogdet(x)
    return where(sign < 0, float("nan"), log_size)


@public
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """Return the distances between the rows of `x1` and of `x2`, in the p-norm.

    - `p`: the order of the norm: 2 is the Euclidean distance, 1 the sum of differences, `inf` the
      largest one.

    Shapes: (..., n, k) and (..., m, k) give (..., n, m); other axes are broadcast.
    Dtypes: real floats.
    Gradient: 0 between equal rows.
    Raises: ShapeError, DTypeError, DeviceError.
    See also: `linalg.vector_norm`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[0.0, 0.0], [3.0, 4.0]])
    >>> dt.cdist(x, x).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    x1, x2 = as_tensors("cdist", x1, x2)
    if min(x1.ndim, x2.ndim) < 2:
        raise ShapeError(f"cdist: expected matrices, got shapes {x1.shape} and {x2.shape}")
    return vector_norm(x1[..., :, None, :] - x2[..., None, :, :], axis=-1, ord=p)


@public(method=True, in_place=True, out=True)
def renorm(x: Tensor, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None) -> Tensor:
    """Return `x` with each slice along `dim` whose p-norm exceeds `maxnorm` scaled to that norm.

    - `p`: the order of the norm, above 0; `inf` is the largest absolute value.
    - `dim`: the axis that counts the slices.
    - `maxnorm`: the largest norm of a slice, at least 0. As in PyTorch, 1e-7 is added to the norms
      that are divided by.

    Shapes: of at least 2 dimensions; the result has x's.
    Dtypes: floats and complex.
    Raises: ShapeError, AxisError, DTypeError, ArgumentError for other numbers.
    See also: `linalg.vector_norm`, `nn.utils.clip_grad_norm_`.

    >>> import dovetail as dt
    >>> dt.renorm(dt.asarray([[3.0, 4.0], [0.5, 0.0]]), 1, 0, 3.5).tolist()
    [[1.5, 2.0], [0.5, 0.0]]
    """
    if strided("renorm", x).ndim < 2:
        raise ShapeError(f"renorm: expected at least 2 dimensions, got shape {x.shape}")
    axis = lay.axis("renorm", integer("renorm", dim, "dim"), x.ndim)
    order, limit = real("renorm", p, "p"), real("renorm", maxnorm, "maxnorm")
    if not order > 0 or not limit >= 0:
        raise ArgumentError(
            f"renorm: p must be positive and maxnorm not negative, got {p} and {maxnorm}"
        )
    others = tuple(d for d in range(x.ndim) if d != axis)
    norms = vector_norm(x, axis=others, keepdims=True, ord=order)
    return x * where(norms > limit, limit / (norms + 1e-7), 1.0)
