"""Functions along an axis: softmax and its variants, gated units, norms and distances."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import dovetail as dt
from dovetail.extend import arguments

from .precision import cast_like, require_floats

if TYPE_CHECKING:
    from dovetail.extend import DTypeLike

__all__ = [
    "cosine_similarity",
    "glu",
    "gumbel_softmax",
    "log_softmax",
    "normalize",
    "pairwise_distance",
    "softmax",
    "softmin",
]

Tensor: TypeAlias = dt.Tensor


def axis_of(op: str, x: Tensor, dim: int | None) -> int:
    """Return the axis to use; if `dim` is None, PyTorch's default.

    Raises: AxisError, ArgumentTypeError.
    """
    require_floats(op, x)
    if dim is None:
        return 0 if x.ndim in (0, 1, 3) else 1
    dim = arguments.integer(op, dim, "dim")
    if not -max(x.ndim, 1) <= dim < max(x.ndim, 1):
        raise dt.AxisError(f"{op}: axis {dim} is out of range for shape {x.shape}")
    return dim % max(x.ndim, 1)


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike = None
) -> Tensor:
    """Return exp(x) divided by its sum along an axis.

    - `dim`: the axis. None is 0 for 0, 1 or 3 dimensions, else 1.
    - `dtype`: the dtype to which the input is cast first.

    Shapes: any; the result's is the input's.
    Dtypes: floats; halves are computed as float32; the result has `dtype`, or the input's.
    Raises: AxisError; DTypeError for other than floats.
    See also: `log_softmax`, `gumbel_softmax`, `dt.softmax`.

    >>> import dovetail as dt
    >>> dt.nn.functional.softmax(dt.zeros(2), 0).tolist()
    [0.5, 0.5]
    """
    x = input if dtype is None else input.astype(dtype)
    axis = axis_of("softmax", x, dim)
    if x.ndim == 0:
        return softmax(x.reshape((1,)), 0).reshape(())
    return dt.softmax(x, axis=axis)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike = None
) -> Tensor:
    """Return the logarithm of `softmax`, without overflow.

    - `dim`: the axis. None is 0 for 0, 1 or 3 dimensions, else 1.
    - `dtype`: the dtype to which the input is cast first.

    Shapes: any; the result's is the input's.
    Dtypes: floats; halves are computed as float32; the result has `dtype`, or the input's.
    Raises: AxisError; DTypeError for other than floats.
    See also: `softmax`, `cross_entropy`, `nll_loss`.

    >>> import dovetail as dt
    >>> dt.nn.functional.log_softmax(dt.zeros(1), 0).tolist()
    [0.0]
    """
    x = input if dtype is None else input.astype(dtype)
    axis = axis_of("log_softmax", x, dim)
    if x.ndim == 0:
        return log_softmax(x.reshape((1,)), 0).reshape(())
    return dt.log_softmax(x, axis=axis)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike = None
) -> Tensor:
    """Return `softmax` of -x.

    - `dim`: the axis. None is 0 for 0, 1 or 3 dimensions, else 1.
    - `dtype`: the dtype to which the input is cast first.

    Shapes: any; the result's is the input's.
    Dtypes: floats; halves are computed as float32; the result has `dtype`, or the input's.
    Raises: AxisError; DTypeError for other than floats.

    >>> import dovetail as dt
    >>> dt.nn.functional.softmin(dt.zeros(2), 0).tolist()
    [0.5, 0.5]
    """
    return softmax(-input, dim, dtype=dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Draw from the distributions of `logits`, with gradients to them.

    - `logits`: logarithms of the probabilities, up to a constant.
    - `tau`: the temperature, a positive number; samples of a smaller one are nearer to one-hot.
    - `hard`: return one-hot samples with the gradient of the soft ones.
    - `eps`: has no effect.
    - `dim`: the axis of the classes.

    Random numbers are those of `dt.random`.
    Shapes: any of logits; the result's is the same.
    Dtypes: floats; halves are computed as float32, and the result has that of logits.
    Raises: AxisError; DTypeError for other than floats.
    Source: Jang, Gu, Poole, "Categorical reparameterization with Gumbel-softmax", 2016; Maddison,
    Mnih, Teh, "The concrete distribution", 2016.

    >>> import dovetail as dt
    >>> x = dt.nn.functional.gumbel_softmax(dt.zeros((5, 3)), hard=True)
    >>> x.sum(axis=1).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    axis = axis_of("gumbel_softmax", logits, dim)
    u = 1.0 - dt.random.uniform(logits.shape, dtype=logits.dtype, device=logits.device)  # not 0
    least = 2.0**-54 if logits.dtype is dt.float64 else 2.0**-25  # half a step, in place of 0
    soft = dt.softmax((logits - dt.log(dt.maximum(-dt.log(u), least))) / tau, axis=axis)
    if not hard:
        return soft
    classes = _reshape_along(dt.arange(logits.shape[axis], device=logits.device), axis, logits.ndim)
    one = (classes == dt.expand_dims(dt.argmax(soft, axis=axis), axis)).astype(logits.dtype)
    return one - soft.detach() + soft


def _reshape_along(x: Tensor, axis: int, ndim: int) -> Tensor:
    """Return a vector as a tensor of `ndim` axes that extends along one axis."""
    return x.reshape((*(1,) * axis, x.size, *(1,) * (ndim - axis - 1)))


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return the first half of an axis times the sigmoid of the second half.

    Shapes: any; the result has half as many elements along `dim`.
    Dtypes: floats; halves are computed as float32, and the result has the input's.
    Raises: ShapeError for an odd number of elements along it; AxisError; DTypeError for other than
    floats.
    Source: Dauphin, Fan, Auli, Grangier, "Language modeling with gated convolutional networks",
    2016.

    >>> import dovetail as dt
    >>> dt.nn.functional.glu(dt.asarray([4.0, 0.0])).tolist()
    [2.0]
    """
    axis = axis_of("glu", input, dim)
    n = input.shape[axis] if input.ndim else 1
    if n % 2:
        raise dt.ShapeError(
            f"glu: axis {dim} must have an even size, got {n} in shape {input.shape}"
        )
    lead = (slice(None),) * axis
    return input[(*lead, slice(n // 2))] * dt.sigmoid(input[(*lead, slice(n // 2, None))])


def length(x: Tensor, p: float, axis: int | tuple[int, ...], keepdims: bool) -> Tensor:
    """Return the p-norm along an axis, with slope 0 if it is 0."""
    return dt.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=p)


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Return the input divided by its p-norm along an axis, or by `eps` if that is greater.

    - `p`: the order of the norm; infinity for the greatest magnitude.
    - `eps`: the least divisor.

    Shapes: any; the result's is the input's.
    Dtypes: floats; halves are computed as float32, and the result has the input's.
    Raises: AxisError; DTypeError for other than floats.
    See also: `dt.linalg.norm`, `cosine_similarity`.

    >>> import dovetail as dt
    >>> dt.nn.functional.normalize(dt.asarray([[3.0, 4.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    axis, p = axis_of("normalize", input, dim), arguments.number("normalize", p, "p")
    result = input / dt.maximum(length(input, p, axis, True), eps)
    return result if out is None else out.copy_(result)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between two tensors along an axis.

    - `eps`: the lower bound of each norm.

    Shapes: both are broadcast; `dim` is an axis of their common shape, which the result lacks.
    Dtypes: floats; halves are computed as float32, and the result has that of x1.
    Raises: ShapeError, AxisError; DTypeError for other than floats.
    See also: `pairwise_distance`, `normalize`, `cosine_embedding_loss`.

    >>> import dovetail as dt
    >>> x, y = dt.ones((1, 4)), dt.ones((3, 4))
    >>> dt.nn.functional.cosine_similarity(x, y).tolist()
    [1.0, 1.0, 1.0]
    """
    require_floats("cosine_similarity", x1, x2)
    a, b = dt.broadcast_arrays(x1, x2)
    axis = axis_of("cosine_similarity", a, dim)
    norms = dt.maximum(length(a, 2, axis, False), eps) * dt.maximum(length(b, 2, axis, False), eps)
    return cast_like((a * b).sum(axis=axis) / norms, x1)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Return the p-norm of `x1 - x2 + eps` along the last axis.

    - `p`: the order of the norm.
    - `eps`: is added to each difference.
    - `keepdim`: True keeps the last axis, with size 1.

    Shapes: (..., n) both, broadcast; the result (...), or (..., 1) with `keepdim`.
    Dtypes: floats; halves are computed as float32, and the result has that of x1.
    Raises: ShapeError; DTypeError for other than floats.

    >>> import dovetail as dt
    >>> x, y = dt.zeros((1, 2)), dt.ones((3, 2))
    >>> dt.nn.functional.pairwise_distance(x, y, p=1.0, eps=0.0).tolist()
    [2.0, 2.0, 2.0]
    """
    require_floats("pairwise_distance", x1, x2)
    p = arguments.number("pairwise_distance", p, "p")
    return cast_like(length(x1 - x2 + eps, p, -1, keepdim), x1)
