"""Functions of PyTorch that need factors and norms of matrices."""

from __future__ import annotations

from ..errors import ShapeError
from ..functions.elementwise.op_functions import where
from ..functions.variants import public
from ..tensor.promotion import as_tensors
from ..tensor.tensor import Tensor
from .norms import vector_norm
from .solving import slogdet

__all__ = ["cdist", "logdet"]


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
