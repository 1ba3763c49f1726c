"""Functions of PyTorch whose arguments differ from those of dovetail's own functions.

They are loaded when they are first used. Names that are exact synonyms are in `compat/aliases`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import layout as lay
from .. import settings
from ..argument_checks import flag, integer, integers
from ..dtypes import bool_, float64
from ..engine import tracer_api
from ..errors import ArgumentError, DTypeError, ShapeError
from ..tensor.host import read_values
from ..tensor.other_layouts import require_along
from ..tensor.promotion import Array, Operand, as_tensors
from ..tensor.tensor import Tensor, required, strided
from .creation.constructors import empty, eye, full, ones, zeros
from .creation.from_values import asarray
from .datatypes import DeviceLike, DTypeLike, default_dtype_listeners, device_supporting, move
from .elementwise.op_functions import add, divide, log1p, multiply, pow, where
from .indexing.index_reads import take, take_along_axis
from .indexing.insert_delete import compress
from .products.matrix_products import matmul
from .random.discrete_samplers import draw_indices, require_weights
from .random.generator import Generator, generator_or_default
from .reductions.statistics import Axis
from .reductions.statistics import max as max_
from .reductions.statistics import min as min_
from .shape.copies import repeat
from .shape.manipulation import broadcast_arrays, moveaxis, ravel, reshape
from .shape.patches import sliding_window_view
from .sorting.stable_sort import topk
from .variants import public

__all__ = [
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "amax",
    "amin",
    "are_deterministic_algorithms_enabled",
    "baddbmm",
    "diag_embed",
    "float_power",
    "gather",
    "index_select",
    "is_tensor",
    "lerp",
    "masked_select",
    "multinomial",
    "narrow",
    "repeat_interleave",
    "take_along_dim",
    "unflatten",
    "use_deterministic_algorithms",
]


@public(widen=False)
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Require one order of sums in the whole process, as PyTorch's switch does.

    dovetail's own kernels always have one order. So True only turns off vendors' routines for
    products, as `vendor_products(False)` does in a context. A thread that is in a context of
    settings follows when it leaves that.

    - `mode`: True turns vendors' routines off; False is the default of the process again.
    - `warn_only`: accepted for PyTorch, without an effect: no function lacks a deterministic form.

    Raises: ArgumentTypeError for others than bools.
    See also: `vendor_products`, `are_deterministic_algorithms_enabled`.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html

    >>> import dovetail as dt
    >>> dt.use_deterministic_algorithms(True)
    >>> dt.are_deterministic_algorithms_enabled()
    True
    >>> dt.use_deterministic_algorithms(False)
    """
    flag("use_deterministic_algorithms", warn_only, "warn_only")
    is_required = flag("use_deterministic_algorithms", mode, "mode")
    settings.set_vendor_products(False if is_required else None)
    for forget in default_dtype_listeners:  # caches that were matched by the old settings
        forget()


@public(widen=False)
def are_deterministic_algorithms_enabled() -> bool:
    """Return True if products use no vendor's routine here: all results have one order of sums.

    >>> import dovetail as dt
    >>> with dt.vendor_products(False):
    ...     dt.are_deterministic_algorithms_enabled()
    True
    """
    return not settings.uses_vendor_products()


@public(widen=False)
def is_tensor(obj: object) -> bool:
    """Return True if the object is a dovetail tensor.

    - `obj`: any object.

    Raises: nothing.

    >>> import dovetail as dt
    >>> dt.is_tensor(dt.zeros(1)), dt.is_tensor([0.0])
    (True, False)
    """
    return isinstance(obj, Tensor)


# --- elements and parts


@public(method=True, widen=False)
def gather(x: Tensor, dim: int, index: Array) -> Tensor:
    """Return the elements of `x` at `index` along axis `dim`; other axes may be shorter than x's.

    - `dim`: the axis along which `index` has positions.
    - `index`: integers with as many axes as x; negative ones raise, unlike in `dt.take_along_axis`,
      which needs equal sizes but broadcasts.

    Shapes: index.shape, of which no size but that of `dim` exceeds x's.
    Dtypes: x any; `index` integers.
    Gradient: contributions to one element are added in the order in which it was read.
    Raises: ShapeError, AxisError, DTypeError, OutOfRangeError.
    See also: `take_along_axis`, `take`, `scatter`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 2], [3, 4]])
    >>> dt.gather(x, 1, [[0], [1]]).tolist()
    [[1], [4]]
    """
    axis = lay.axis("gather", integer("gather", dim, "dim"), required("gather", x).ndim)
    x, indices = as_tensors("gather", x, index)
    sizes = indices.shape
    too_long = any(n > m for d, (n, m) in enumerate(zip(sizes, x.shape, strict=False)) if d != axis)
    if len(sizes) != x.ndim or too_long:
        raise ShapeError(
            f"gather: index must have {x.ndim} axes that are no longer than x's {x.shape} except "
            f"axis {axis}, got {sizes}"
        )
    part = tuple(slice(None) if d == axis else slice(n) for d, n in enumerate(sizes))
    return take_along_axis(x[part], indices, axis)


@public(method=True, widen=False)
def index_select(x: Tensor, dim: int, index: Array) -> Tensor:
    """Return the rows of `x` at `index` along axis `dim`: `dt.take(x, index, axis=dim)`.

    - `dim`: the axis.
    - `index`: a vector of integers.

    Shapes: x's, with the length of `index` along the axis.
    Dtypes: x any; `index` integers.
    Raises: ShapeError unless `index` is a vector or a number, AxisError, DTypeError,
    OutOfRangeError.
    See also: `take`, `gather`.

    >>> import dovetail as dt
    >>> dt.index_select(dt.asarray([[1, 2], [3, 4]]), 1, [1]).tolist()
    [[2], [4]]
    """
    x, indices = as_tensors("index_select", x, index)
    if indices.ndim > 1:
        raise ShapeError(f"index_select: index must be a vector, got shape {indices.shape}")
    return take(x, ravel(indices), axis=dim)


@public(method=True, widen=False)
def masked_select(x: Tensor, mask: Array) -> Tensor:
    """Return a vector of the elements of `x` where `mask` is True, after both are broadcast.

    - `mask`: a tensor of bool.

    Shapes: (count,).
    Dtypes: x any.
    Cost: the host reads the count, and waits for the mask.
    Raises: ShapeError, DTypeError unless the mask is of bools.
    See also: `compress`, `nonzero`, `where`.

    >>> import dovetail as dt
    >>> dt.masked_select(dt.asarray([[1], [2]]), [True, False]).tolist()
    [1, 2]
    """
    x, bools = as_tensors("masked_select", x, mask)
    if bools.dtype is not bool_:
        raise DTypeError(f"masked_select: the mask must be of bools, got {bools.dtype.name}")
    values, where_true = broadcast_arrays(x, bools)
    return values[where_true]


@public(method=True, widen=False)
def take_along_dim(x: Tensor, indices: Array, dim: int | None = None) -> Tensor:
    """Return the elements of `x` at `indices` along axis `dim`; None flattens both first.

    - `indices`: integers; negative ones count from the end.
    - `dim`: the axis; None flattens both first.

    Shapes: broadcast as in `dt.take_along_axis`.
    Dtypes: x any; `indices` integers.
    Raises: ShapeError, AxisError, DTypeError, OutOfRangeError.

    >>> import dovetail as dt
    >>> dt.take_along_dim(dt.asarray([[1, 2], [3, 4]]), [3, 0]).tolist()
    [4, 1]
    """
    if dim is not None:
        return take_along_axis(x, indices, dim)
    x, flat = as_tensors("take_along_dim", x, indices)
    return take(ravel(x), ravel(flat))


@public(method=True, widen=False)
def repeat_interleave(
    x: Tensor, repeats: int | Sequence[int] | Tensor, dim: int | None = None
) -> Tensor:
    """Repeat each element of `x` along axis `dim`: `dt.repeat(x, repeats, axis=dim)`.

    - `repeats`: an int, or one for each place of the axis.
    - `dim`: the axis; None flattens x first.

    Shapes: as of `dt.repeat`.
    Dtypes: all.
    Raises: ShapeError, AxisError, ArgumentError for a negative count.

    >>> import dovetail as dt
    >>> dt.repeat_interleave(dt.asarray([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    return repeat(x, repeats, axis=dim)


@public(method=True, widen=False)
def narrow(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return a view of `length` places of axis `dim` from `start` on.

    - `dim`: the axis.
    - `start`: the first place; negative ones count from the end.
    - `length`: the number of places.

    Shapes: x's, with `length` along the axis.
    Dtypes: all.
    Raises: AxisError, ArgumentError if the places are not all within the axis.

    >>> import dovetail as dt
    >>> dt.narrow(dt.arange(5), 0, 1, 2).tolist()
    [1, 2]
    """
    axis = lay.axis("narrow", integer("narrow", dim, "dim"), strided("narrow", x).ndim)
    first, count = integer("narrow", start, "start"), integer("narrow", length, "length")
    size = x.shape[axis]
    first += size if first < 0 else 0
    if not 0 <= first <= first + count <= size:
        raise ArgumentError(
            f"narrow: start and length must stay within axis {axis} of size {size}, got {start} "
            f"and {length}"
        )
    return x[(slice(None),) * axis + (slice(first, first + count),)]


@public(method=("select",), widen=False)
def _select_place(x: Tensor, dim: int, index: int) -> Tensor:
    """Return a view of one place of axis `dim`, without that axis: `x[..., index, ...]`.

    `dt.select` is NumPy's function, which chooses by conditions.
    Shapes: x's without the axis.
    Dtypes: all.
    Raises: AxisError, OutOfRangeError.

    >>> import dovetail as dt
    >>> dt.asarray([[1, 2], [3, 4]]).select(1, 0).tolist()
    [1, 3]
    """
    axis = lay.axis("select", integer("select", dim, "dim"), strided("select", x).ndim)
    return x[(slice(None),) * axis + (integer("select", index, "index"),)]


@public(method=True, widen=False)
def unflatten(x: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Replace axis `dim` by several axes of these sizes, of which one may be -1.

    - `dim`: the axis.
    - `sizes`: a tuple of ints.

    Shapes: the product of `sizes` is the axis's size.
    Dtypes: all.
    Raises: AxisError, ShapeError.
    See also: `flatten`, `reshape`.

    >>> import dovetail as dt
    >>> dt.unflatten(dt.zeros((2, 6)), 1, (3, -1)).shape
    (2, 3, 2)
    """
    axis = lay.axis("unflatten", integer("unflatten", dim, "dim"), strided("unflatten", x).ndim)
    sizes = integers("unflatten", sizes, "sizes")
    size, product = x.shape[axis], math.prod(n for n in sizes if n != -1)
    whole = tuple(size // product if n == -1 and product else n for n in sizes)
    return reshape(x, (*x.shape[:axis], *whole, *x.shape[axis + 1 :]))


@public(method=True, widen=False)
def diag_embed(x: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return matrices whose diagonals are the rows of `x`, and which are 0 elsewhere.

    - `offset`: the diagonal: 0 is the main one, positive ones are above it, negative ones below it.
    - `dim1`, `dim2`: the axes of the matrices in the result.

    Shapes: (..., n) gives (..., n + |offset|, n + |offset|), with these axes moved.
    Dtypes: all.
    Gradient: that of the diagonals.
    Raises: ShapeError for 0 dimensions, AxisError.
    See also: `diag`, `diagonal`.

    >>> import dovetail as dt
    >>> dt.diag_embed(dt.asarray([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    if strided("diag_embed", x).ndim == 0:
        raise ShapeError("diag_embed: x must have at least one axis, got shape ()")
    k = integer("diag_embed", offset, "offset")
    n = x.shape[-1] + abs(k)
    padded = zeros((*x.shape[:-1], n), dtype=x.dtype, device=x.device)
    padded[..., max(-k, 0) : n - max(k, 0)] = x  # by rows of the matrix
    on_diagonal = eye(n, k=k, dtype=bool_, device=x.device)
    matrices = where(on_diagonal, padded[..., None], zeros((), dtype=x.dtype, device=x.device))
    return moveaxis(matrices, (-2, -1), (dim1, dim2))


# --- reductions


@public(method=True)
def amax(
    x: Tensor, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the largest elements along axes: `dt.max`, and the name that PyTorch has for it.

    Shapes: x's without these axes, or with size 1.
    Dtypes: real.
    Raises: AxisError, ArgumentError for no elements, DTypeError.

    >>> import dovetail as dt
    >>> dt.amax(dt.asarray([[1, 2], [3, 0]]), axis=1).tolist()
    [2, 3]
    """
    return max_(x, axis, keepdims=keepdims, out=out)


@public(method=True)
def amin(
    x: Tensor, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the smallest elements along axes: `dt.min`, and the name that PyTorch has for it.

    Shapes: x's without these axes, or with size 1.
    Dtypes: real.
    Raises: AxisError, ArgumentError for no elements, DTypeError.

    >>> import dovetail as dt
    >>> dt.amin(dt.asarray([[1, 2], [3, 0]]), axis=1).tolist()
    [1, 0]
    """
    return min_(x, axis, keepdims=keepdims, out=out)


# --- arithmetic


@public(method=True, in_place=True, out=True)
def lerp(x: Tensor, end: Array, weight: Operand, *, out: Tensor | None = None) -> Tensor:
    """Interpolate linearly: return `x + weight * (end - x)`.

    - `end`: the value at weight 1, a number or a tensor.
    - `weight`: a number or a tensor; 0 gives x, 1 gives `end` up to rounding.

    Shapes: operands are broadcast.
    Dtypes: floats and complex.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.lerp(dt.asarray([0.0, 4.0]), [2.0, 8.0], 0.5).tolist()
    [1.0, 6.0]
    """
    x, end = as_tensors("lerp", x, end)
    return add(x, multiply(weight, end - x))


@public(method=True, in_place=True, out=True)
def addcmul(
    x: Tensor, tensor1: Array, tensor2: Array, *, value: Operand = 1, out: Tensor | None = None
) -> Tensor:
    """Return `x + value * tensor1 * tensor2`.

    - `tensor1`, `tensor2`: the factors.
    - `value`: the factor: a number or a tensor.

    Shapes: operands are broadcast.
    Dtypes: numbers.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.addcmul(dt.ones(2), [1.0, 2.0], [3.0, 4.0], value=2).tolist()
    [7.0, 17.0]
    """
    x, a, b = as_tensors("addcmul", x, tensor1, tensor2)
    return add(x, multiply(value, multiply(a, b)))


@public(method=True, in_place=True, out=True)
def addcdiv(
    x: Tensor, tensor1: Array, tensor2: Array, *, value: Operand = 1, out: Tensor | None = None
) -> Tensor:
    """Return `x + value * tensor1 / tensor2`.

    - `tensor1`, `tensor2`: the operands of the quotient.
    - `value`: the factor: a number or a tensor.

    Shapes: operands are broadcast.
    Dtypes: floats and complex.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.addcdiv(dt.ones(2), [1.0, 2.0], [4.0, 4.0], value=2).tolist()
    [1.5, 2.0]
    """
    x, a, b = as_tensors("addcdiv", x, tensor1, tensor2)
    return add(x, multiply(value, divide(a, b)))


def _add_product(name: str, x: Tensor, a: Array, b: Array, beta: Operand, alpha: Operand) -> Tensor:
    """Return `beta * x + alpha * (a @ b)`; x and its dtype are ignored if beta is the number 0."""
    x, a, b = as_tensors(name, x, a, b)
    product = matmul(a, b)
    if not isinstance(alpha, (int, float)) or alpha != 1:
        product = multiply(alpha, product)
    if isinstance(beta, (int, float)) and beta == 0:
        return product
    is_one = isinstance(beta, (int, float)) and beta == 1
    return add(x if is_one else multiply(beta, x), product)


@public(method=True, in_place=True, out=True)
def addmm(
    x: Tensor,
    mat1: Array,
    mat2: Array,
    *,
    beta: Operand = 1,
    alpha: Operand = 1,
    out: Tensor | None = None,
) -> Tensor:
    """Return `beta * x + alpha * (mat1 @ mat2)`.

    - `mat1`, `mat2`: the matrices of the product.
    - `beta`: the factor of x; 0 leaves x out, even where it is NaN.
    - `alpha`: the factor of the product, a number.

    Shapes: x is broadcast to (n, m), the product of (n, k) and (k, m).
    Dtypes: numbers.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> i = dt.eye(2)
    >>> dt.addmm(dt.ones(2), i, i, alpha=2).tolist()
    [[3.0, 1.0], [1.0, 3.0]]
    """
    return _add_product("addmm", x, mat1, mat2, beta, alpha)


@public(method=True, in_place=True, out=True)
def addmv(
    x: Tensor,
    mat: Array,
    vec: Array,
    *,
    beta: Operand = 1,
    alpha: Operand = 1,
    out: Tensor | None = None,
) -> Tensor:
    """Return `beta * x + alpha * (mat @ vec)`.

    - `mat`: the matrix.
    - `vec`: the vector.
    - `beta`: the factor of x; 0 leaves x out, even where it is NaN.
    - `alpha`: the factor of the product, a number.

    Shapes: x is broadcast to (n,), the product of (n, k) and (k,).
    Dtypes: numbers.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.addmv(dt.ones(2), [[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0]).tolist()
    [2.0, 3.0]
    """
    return _add_product("addmv", x, mat, vec, beta, alpha)


@public(method=True, out=True)
def baddbmm(
    x: Tensor,
    batch1: Array,
    batch2: Array,
    *,
    beta: Operand = 1,
    alpha: Operand = 1,
    out: Tensor | None = None,
) -> Tensor:
    """Return `beta * x + alpha * (batch1 @ batch2)` for batches of matrices.

    - `batch1`, `batch2`: the batches of matrices.
    - `beta`: the factor of x; 0 leaves x out, even where it is NaN.
    - `alpha`: the factor of the product, a number.

    Shapes: x is broadcast to (b, n, m), the product of (b, n, k) and (b, k, m).
    Dtypes: numbers.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> i = dt.eye(2)[None]
    >>> dt.baddbmm(dt.ones((1, 2, 2)), i, i).tolist()
    [[[2.0, 1.0], [1.0, 2.0]]]
    """
    return _add_product("baddbmm", x, batch1, batch2, beta, alpha)


@public(method=True, widen=False)
def float_power(x1: Tensor, x2: Operand) -> Tensor:
    """Return x1 to the power x2, computed in float64.

    Shapes: operands are broadcast.
    Dtypes: real numbers; the result is float64.
    Raises: ShapeError, DTypeError, also if the device has no float64.

    >>> import dovetail as dt
    >>> dt.float_power(dt.asarray([2, 4]), -1).tolist()
    [0.5, 0.25]
    """
    required("float_power", x1)
    return pow(x1.astype(float64), x2.astype(float64) if isinstance(x2, Tensor) else x2)


# --- windows and draws


@public(method=("unfold",), widen=False)
def _unfold_windows(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of the windows of `size` elements along an axis, `step` apart.

    `dt.unfold` is another function: patches of images, as columns.

    - `dimension`: the axis, which counts the windows in the result.
    - `size`: the elements of a window, the last axis of the result.
    - `step`: the distance from one window to the next.

    Shapes: (..., n, ...) gives (..., (n - size) // step + 1, ..., size).
    Dtypes: all.
    Raises: AxisError; ArgumentError for a size beyond the axis, or a step below 1.
    See also: `dt.sliding_window_view`.

    >>> import dovetail as dt
    >>> dt.arange(5).unfold(0, 2, 2).tolist()
    [[0, 1], [2, 3]]
    """
    require_along("unfold", x)
    axis = lay.axis("unfold", integer("unfold", dimension, "dimension"), x.ndim)
    window = integer("unfold", size, "size", 1, x.shape[axis])
    windows = sliding_window_view(x, window, axis)
    return windows[(slice(None),) * axis + (slice(None, None, integer("unfold", step, "step", 1)),)]


@public(method=True, out=True)
def multinomial(
    x: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw indices of categories with the weights `x`, as PyTorch's function of this name.

    `dt.random.multinomial` is another function, NumPy's: it counts draws.

    - `x`: weights, which need not sum to 1. The host reads and checks them, but not within `jit`
      and `vmap`.
    - `num_samples`: the draws from each row.
    - `replacement`: True may draw an index several times.
    - `generator`: the random generator; None is that of this process.

    Shapes: (n,) gives (num_samples,), and (m, n) gives (m, num_samples).
    Dtypes: floats; the result is int64.
    Raises: ShapeError; ArgumentError for weights that are negative, NaN, infinite or all 0, and for
    more draws without replacement than positive weights.
    See also: `dt.random.categorical` for logarithms of weights, `dt.random.choice`.
    Source: without replacement Efraimidis and Spirakis, "Weighted random sampling with a
    reservoir", 2006.

    >>> import dovetail as dt
    >>> dt.multinomial(dt.asarray([0.0, 2.0, 0.0]), 3, replacement=True).tolist()
    [1, 1, 1]
    """
    count = integer("multinomial", num_samples, "num_samples", 1)
    replacement = flag("multinomial", replacement, "replacement")
    if strided("multinomial", x).ndim not in (1, 2) or x.dtype.kind != "f" or not x.shape[-1]:
        raise ShapeError(
            f"multinomial: expected floats of shape (n,) or (m, n), got {x.dtype.name} of shape "
            f"{x.shape}"
        )
    kinds = x.shape[-1]
    if not replacement and count > kinds:
        raise ArgumentError(
            f"multinomial: cannot draw {count} samples from {kinds} values without replacement; "
            "pass replacement=True"
        )
    if tracer_api.current() is None:
        rows = read_values("multinomial", x).reshape(-1, kinds)
        require_weights(rows, "x")
        fewest = int(np.count_nonzero(rows, axis=-1).min(initial=kinds))
        if not replacement and fewest < count:
            raise ArgumentError(
                f"multinomial: cannot draw {count} samples from {fewest} positive weights without "
                "replacement; pass replacement=True"
            )
    g = generator_or_default("multinomial", generator)
    if replacement:
        indices = draw_indices(g, x, (count, *x.shape[:-1]))
        return moveaxis(indices, 0, -1)
    weights = move(x, device_supporting(float64, x.device)).astype(float64)
    u = g.uniform(x.shape, dtype=float64, device=weights.device)
    waits = where(weights > 0, -log1p(-u) / weights, math.inf)  # the shortest ones are drawn
    return move(topk(waits, count, largest=False).indices, x.device)


# --- methods only


@public(method=("where",), widen=False)
def _where_method(x: Tensor, condition: Array, other: Operand) -> Tensor:
    """Return `dt.where(condition, x, other)`.

    Shapes: operands are broadcast.
    Dtypes: all; the condition is of bools.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> x = dt.asarray([1, 2])
    >>> x.where(x > 1, 0).tolist()
    [0, 2]
    """
    return where(condition, x, other)


@public(method=("compress",), widen=False)
def _compress_method(x: Tensor, condition: Array, axis: int | None = None) -> Tensor:
    """Return `dt.compress(condition, x, axis)`: the places of an axis where a condition is True.

    `axis`: None flattens x first.
    Shapes: the condition is a vector, at most as long as the axis.
    Dtypes: all; the condition is of bools.
    Raises: ShapeError, AxisError, OutOfRangeError.

    >>> import dovetail as dt
    >>> dt.asarray([1, 2, 3]).compress([True, False, True]).tolist()
    [1, 3]
    """
    return compress(condition, x, axis)


@public(method=True, widen=False)
def view_as(x: Tensor, other: Tensor) -> Tensor:
    """Return a view of `x` in the shape of another tensor.

    Shapes: both have as many elements.
    Dtypes: all.
    Raises: ShapeError, LayoutError if the strides permit no view.

    >>> import dovetail as dt
    >>> dt.zeros(4).view_as(dt.zeros((2, 2))).shape
    (2, 2)
    """
    return Tensor.view(strided("view_as", x), strided("view_as", other).shape)


@public(method=True, widen=False)
def new_zeros(x: Tensor, *size: int, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """Return zeros of a shape, with the dtype and the device of `x` unless others are given.

    `size`: a shape, or its sizes one by one.
    Dtypes: all.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.arange(3).new_zeros(2).dtype
    dovetail.int64
    """
    return zeros(_shape(size), **_like(x, dtype, device))


@public(method=True, widen=False)
def new_ones(x: Tensor, *size: int, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """Return ones of a shape, with the dtype and the device of `x` unless others are given.

    `size`: a shape, or its sizes one by one.
    Dtypes: all.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.arange(3).new_ones(2).tolist()
    [1, 1]
    """
    return ones(_shape(size), **_like(x, dtype, device))


@public(method=True, widen=False)
def new_empty(x: Tensor, *size: int, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """Return memory of a shape, with the dtype and the device of `x` unless others are given.

    `size`: a shape, or its sizes one by one.
    Dtypes: all.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.arange(3).new_empty(2, 2).shape
    (2, 2)
    """
    return empty(_shape(size), **_like(x, dtype, device))


@public(method=True, widen=False)
def new_full(
    x: Tensor,
    size: Sequence[int],
    fill_value: complex,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return a tensor of one value, with the dtype and device of `x` unless others are given.

    `size`: the shape.
    Dtypes: all.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.arange(3).new_full((2,), 7).tolist()
    [7, 7]
    """
    return full(tuple(size), fill_value, **_like(x, dtype, device))


@public(method=True, widen=False)
def new_tensor(
    x: Tensor, data: object, *, dtype: DTypeLike = None, device: DeviceLike = None
) -> Tensor:
    """Return a copy of values, with the dtype and the device of `x` unless others are given.

    `data`: a number, nested lists, or an array.
    Dtypes: all.
    Raises: DTypeError, DeviceError, ShapeError for a ragged list.

    >>> import dovetail as dt
    >>> dt.zeros(1).new_tensor([1, 2]).tolist()
    [1.0, 2.0]
    """
    return asarray(data, copy=True, **_like(x, dtype, device))


def _shape(size: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape that is given as one tuple, or by its sizes."""
    return size[0] if len(size) == 1 and not isinstance(size[0], int) else size


def _like(x: Tensor, dtype: DTypeLike, device: DeviceLike) -> dict[str, Any]:
    """Return the keyword arguments that create a tensor like `x`."""
    return {
        "dtype": x.dtype if dtype is None else dtype,
        "device": x.device if device is None else device,
    }
