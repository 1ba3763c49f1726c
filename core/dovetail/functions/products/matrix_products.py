"""Matrix products by the `matmul` row, in the order of `ops.kernel_ops.sum_of_products`.

If a backend offers a routine for products, `matmul` and its compositions use it. That of the CPU
has the order of products; a vendor's (cuBLAS) has its own, and `with dt.vendor_products(False):`
uses the generated kernel in its place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from ... import callbacks, settings
from ... import layout as lay
from ...argument_checks import flag, integer, integers, shown
from ...compat.keywords import MISSING, rebind_keywords
from ...device_class import opened as open_device
from ...dtypes import DType, bool_, float32
from ...dtypes import dtype as dtype_of
from ...errors import ArgumentError, DeviceError, ShapeError
from ...graph.expr import node, spec
from ...layout import Shape
from ...ops import table as ops
from ...ops.table import MATMUL, MULTIPLY, NOT_EQUAL, SUM
from ...settings import flags
from ...tensor.c_fields import is_strided, keep_class
from ...tensor.other_layouts import has_rule
from ...tensor.primitives import (
    apply,
    dispatch,
    is_viewable,
    reduce,
    view,
)
from ...tensor.promotion import Array, as_tensors, overrides_operators
from ...tensor.tensor import Tensor, create_tensor, required, strided
from ...tensor.writes import write_out
from ..datatypes import DTypeLike, cast
from ..known_calls import multiply_cached, product_cache, product_routine, with_dense_rows
from ..plain_calls import cache_view_calls
from ..shape import manipulation
from ..variants import public

__all__ = [
    "diagonal",
    "matmul",
    "matrix_transpose",
    "outer",
    "tensordot",
    "vecdot",
    "vendor_products",
]


@public(method=True, wrap=False)
def matmul(
    x1: Array = MISSING,
    x2: Array = MISSING,
    /,
    *more: object,
    dtype: DTypeLike = None,
    out: Tensor | None = None,
    **theirs: object,
) -> Tensor:
    """Return the matrix product over the last two axes; the axes before them are broadcast.

    A vector is a row as first operand, a column as second; the result lacks that axis.

    - `dtype`: the operands are cast to it first, so that it is the dtype of the sums and of the
      result: int8 with `dtype=dt.int32` gives exact sums.

    Shapes: (..., n, k) and (..., k, m) give (..., n, m); (k,) and (k,) give (). With k = 0: zeros.
    Dtypes: all; the result has the promoted dtype. Integers wrap; float16 and bfloat16 are summed
    in float32 and rounded once; of bool it is True where some product is.
    Order: floats are summed in blocks of 256 products, each from 0 with one fused multiply-add per
    k, k ascending; blocks are added in order, in groups of 256 blocks. So the bits are the same for
    any batch and number of threads, and on every device, but for cuBLAS outside of
    `dt.vendor_products(False)`.
    Raises: ShapeError if columns and rows do not fit, DTypeError, DeviceError.
    See also: `einsum`, `tensordot`, `vecdot`, `linalg.multi_dot`.

    >>> import dovetail as dt
    >>> a = dt.asarray([[1, 2], [3, 4]])
    >>> dt.matmul(a, a).tolist(), (a @ [1, 1]).tolist()
    ([[7, 10], [15, 22]], [3, 7])
    >>> x = dt.full((2, 2), 100, dtype=dt.int8)
    >>> dt.matmul(x, x, dtype=dt.int32).tolist()
    [[20000, 20000], [20000, 20000]]
    """
    if more or theirs or x2 is MISSING:
        return rebind_keywords(matmul, locals())
    left, right = _cast_operands("matmul", x1, x2, dtype)
    if flags.has_autocast and dtype is None and out is None:
        left = callbacks.autocast_operand("matmul", left)
        right = callbacks.autocast_operand("matmul", right)
    result = _matmul("matmul", left, right)
    return result if out is None else write_out("matmul", out, result)


def _cast_operands(name: str, x1: Array, x2: Array, dtype: DTypeLike) -> tuple[Tensor, Tensor]:
    """Return two operands as tensors, cast to a dtype unless that is None."""
    x1, x2 = as_tensors(name, x1, x2)
    chosen = None if dtype is None else dtype_of(dtype, name)
    return cast(x1, chosen), cast(x2, chosen)


@public(method=("__matmul__",), wrap=False)
def matmul_operator(self: Tensor, other: Array) -> Tensor:
    """Return `self @ other`."""
    if is_strided(other):
        if flags.has_autocast:
            left = callbacks.autocast_operand("matmul", self)
            return _matmul("matmul", left, callbacks.autocast_operand("matmul", other))
        return _matmul("matmul", self, other)
    return NotImplemented if overrides_operators(other) else matmul(self, other)


WIDE_MULTIPLIES_MIN = 1 << 20  # from which casts of halves to float32 and back cost little


def _matmul(name: str, x1: Tensor, x2: Tensor) -> Tensor:
    """Return the matrix product; its spec is cached. Other layouts are dispatched."""
    if (repeated := multiply_cached(x1, x2)) is not None:
        return repeated
    if not is_strided(x1) or not is_strided(x2):
        return dispatch("matmul", name, (x1, x2), x1, x2)
    return _multiply_uncached(name, x1, x2, product_routine())


def _multiply_uncached(name: str, x1: Tensor, x2: Tensor, routine: str | None) -> Tensor:
    """Check the operands of a product, record it and cache its plan. Raises: as `matmul`."""
    if x1.device is not x2.device:
        raise DeviceError(
            f"{name}: operands are on {x1.device} and {x2.device}; move one with x.to(device)"
        )
    if not x1.ndim or not x2.ndim:
        raise ShapeError(
            f"{name}: expected at least 1 dimension, got shapes {x1.shape} and {x2.shape}; "
            "use dt.multiply"
        )
    if x1.dtype is x2.dtype is bool_:  # a sum of ones is not 0, even if it is rounded
        return apply(NOT_EQUAL, (_matmul(name, cast(x1, float32), cast(x2, float32)), 0))
    (_, _), dtype = MATMUL.dtypes(name, [x1.dtype, x2.dtype], None)
    if x1.shape[-1] != x2.shape[max(x2.ndim - 2, 0)]:
        raise ShapeError(
            f"{name}: shapes {x1.shape} and {x2.shape} do not fit: "
            f"{x1.shape[-1]} columns against {x2.shape[max(x2.ndim - 2, 0)]} rows"
        )
    if dtype.kind in "iu" and x1.ndim == x2.ndim == 1:  # in any order the sum has the same bits
        return reduce(SUM, apply(MULTIPLY, (x1, x2)), (0,), False, dtype)
    if routine is None and _is_faster_in_float32(x1, x2, dtype):
        wide = [cast(x, float32) for x in (x1, x2)]
        return cast(_matmul(name, *wide), dtype)
    rows = ("reshape", (math.prod(x1.shape[:-1]), x1.shape[-1]))
    if x1.ndim > 2 >= x2.ndim and is_viewable(x1, rows):  # one product, also in the gradient
        product = _matmul(name, view(x1, rows), x2)
        return view(product, ("reshape", x1.shape[:-1] + product.shape[1:]))
    if 1 in (x1.ndim, x2.ndim) and max(x1.ndim, x2.ndim) > 2:  # a vector and a stack
        return _multiply_stack(name, x1, x2)
    batch = lay.broadcast_shapes(name, x1.shape[:-2], x2.shape[:-2])
    left, right = (cast(_expand_to(x, (*batch, *x.shape[-2:])), dtype)._expr for x in (x1, x2))
    shape = batch + x1.shape[-2:-1] + (x2.shape[-1:] if x2.ndim > 1 else ())
    result_spec = spec(shape, dtype, x1.device, name)
    has_no_stack = max(x1.ndim, x2.ndim) <= 2
    if x1.dtype is x2.dtype and (has_no_stack or x1.shape[:-2] == x2.shape[:-2]):
        product_cache[x1._expr.spec, x2._expr.spec, routine] = result_spec
    e = node(MATMUL, (left, with_dense_rows(left, right, routine)), result_spec, routine)
    return keep_class(keep_class(create_tensor(e), x1), x2)


def _multiply_stack(name: str, x1: Tensor, x2: Tensor) -> Tensor:
    """Return the products of a vector and a stack of matrices, on either side."""
    if x1.ndim == 1:
        product = _matmul(name, view(x1, ("reshape", (1, *x1.shape))), x2)
        return view(product, ("reshape", (*product.shape[:-2], product.shape[-1])))
    product = _matmul(name, x1, view(x2, ("reshape", (*x2.shape, 1))))
    return view(product, ("reshape", product.shape[:-1]))


def _is_faster_in_float32(a: Tensor, b: Tensor, dtype: DType) -> bool:
    """Return True for large matrices of halves if the device has a routine for float32 alone.

    Sums of halves are float32 and rounded once in any case, so the bits are the same.
    """
    if dtype.compute is not float32 or dtype is float32:
        return False
    multiplies = a.size * (b.shape[-1] if b.ndim > 1 else 1)
    calls = open_device(a.device).library_calls
    return (
        multiplies >= WIDE_MULTIPLIES_MIN
        and ("matmul", float32) in calls
        and ("matmul", dtype) not in calls
    )


def _expand_to(x: Tensor, shape: Shape) -> Tensor:
    """Return a read-only view in a shape; `x` itself if it has that shape."""
    return x if x.shape == shape else view(x, ("expand", shape))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Return a view of `x` with its last two axes exchanged, like `x.mT`.

    Shapes: (..., n, m) gives (..., m, n).
    Dtypes: all.
    Raises: ShapeError below 2 dimensions.

    >>> import dovetail as dt
    >>> dt.matrix_transpose(dt.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    if required("matrix_transpose", x).ndim < 2:
        raise ShapeError(f"matrix_transpose: expected at least 2 dimensions, got shape {x.shape}")
    return x.mT


matrix_transpose = cache_view_calls(matrix_transpose)


@public(cache=True, widen=False)
def outer(x1: Array, x2: Array, /, *, out: Tensor | None = None) -> Tensor:
    """Return the products of every element of one vector with every element of the other.

    Shapes: (n,) and (m,) give (n, m).
    Dtypes: all, promoted, as for `multiply`.
    Raises: ShapeError unless both are vectors; DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.outer(dt.asarray([1, 2]), [3, 4]).tolist()
    [[3, 4], [6, 8]]
    """
    x1, x2 = as_tensors("outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(f"outer: expected two vectors, got shapes {x1.shape} and {x2.shape}")
    return apply(MULTIPLY, (view(x1, ("reshape", (x1.shape[0], 1))), x2))


@public(cache=True)
def vecdot(x1: Array, x2: Array, /, *, axis: int = -1, out: Tensor | None = None) -> Tensor:
    """Return the sum of the products of two tensors along `axis`, after broadcasting.

    A complex first operand is conjugated. `axis` counts from the end: -1 is the last.
    Shapes: broadcast; the axis, of one size in both, is removed.
    Dtypes: integers, floats and complex; the result has the promoted dtype, in which it is summed
    (float16 and bfloat16 in float32).
    Order: that of `matmul`.
    Raises: ShapeError if the axis has two sizes, AxisError, ArgumentError for an axis that is not
    negative, DTypeError for bool, DeviceError.

    >>> import dovetail as dt
    >>> dt.vecdot(dt.asarray([[1, 2], [3, 4]]), [10, 1]).tolist()
    [12, 34]
    """
    x1, x2 = as_tensors("vecdot", x1, x2)
    axis = integer("vecdot", axis, "axis")
    dtype = _vecdot_dtype(x1.shape, x2.shape, x1.dtype, x2.dtype, axis)
    x1 = conjugate(x1)
    if dtype.kind in "iu" or not all(is_strided(x) or has_rule(x, "along") for x in (x1, x2)):
        product = apply(MULTIPLY, (x1, x2))
        args = SUM, product, (product.ndim + axis,), False, dtype
        if has_rule(product, "along"):
            return dispatch("reduce", "vecdot", (product,), *args)
        strided("vecdot", product)
        return reduce(*args)
    row, column = _move_axis_last(x1, axis), _move_axis_last(x2, axis)
    product = _matmul(
        "vecdot",
        view(row, ("reshape", (*row.shape[:-1], 1, row.shape[-1]))),
        view(column, ("reshape", (*column.shape, 1))),
    )
    return view(product, ("reshape", product.shape[:-2]))


def _move_axis_last(x: Tensor, axis: int) -> Tensor:
    """Return a view with an axis, counted from the end, as the last one."""
    if axis == -1:
        return x
    order = [d for d in range(x.ndim) if d != x.ndim + axis]
    return view(x, ("permute", (*order, x.ndim + axis)))


def conjugate(x: Tensor) -> Tensor:
    """Return the complex conjugate; a real tensor itself."""
    return apply(ops.CONJ, (x,)) if x.dtype.kind == "c" else x


@lru_cache(1024)
def _vecdot_dtype(a: Shape, b: Shape, first: DType, second: DType, axis: int) -> DType:
    """Check the arguments of `vecdot` and return its dtype. Raises: as `vecdot`."""
    (_, _), dtype = MATMUL.dtypes("vecdot", [first, second], None)
    shortest = min(len(a), len(b))
    if axis >= 0:
        raise ArgumentError(
            f"vecdot: axis must be between {-shortest} and -1, counted from the end, "
            f"got {shown(axis)}"
        )
    lay.axis("vecdot", axis, shortest)
    if a[axis] != b[axis]:
        raise ShapeError(f"vecdot: sizes along axis {axis} must be equal, got shapes {a} and {b}")
    return dtype


@public(widen=False)
def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Return a view of the diagonals of the last two axes; see `dt.diagonal`.

    - `offset`: 0 is the main diagonal, positive ones are above it, negative ones below it.

    Shapes: (..., n, m) gives (..., length).
    Dtypes: all.
    Raises: ShapeError below 2 dimensions.

    >>> import dovetail as dt
    >>> dt.linalg.diagonal(dt.asarray([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    return manipulation.diagonal(x, offset, -2, -1)


Axes = int | tuple[int | Sequence[int], int | Sequence[int]]


@public(cache=True, widen=False)
def tensordot(
    x1: Array,
    x2: Array,
    /,
    *,
    axes: Axes = 2,
    dtype: DTypeLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the sum of products over pairs of axes, computed by one `matmul`.

    - `axes`: a number n, for the last n axes of x1 and the first n of x2; or two axes or two lists
      of axes, paired in order.
    - `dtype`: the operands are cast to it first.

    Shapes: the free axes of x1, then those of x2.
    Dtypes: integers, floats and complex, promoted, as for `matmul`.
    Order: that of `matmul`.
    Raises: ShapeError if the sizes of a pair differ, AxisError, ArgumentError, DTypeError,
    DeviceError.
    See also: `einsum`, `matmul`, `outer`.

    >>> import dovetail as dt
    >>> a = dt.asarray([[1, 2], [3, 4]])
    >>> dt.tensordot(a, a, axes=([0, 1], [0, 1])).item()
    30
    """
    x1, x2 = _cast_operands("tensordot", x1, x2, dtype)
    first, second = _parse_axes(axes, x1, x2)
    if tuple(x1.shape[i] for i in first) != tuple(x2.shape[j] for j in second):
        raise ShapeError(
            f"tensordot: sizes along axes {first} and {second} must be equal, "
            f"got shapes {x1.shape} and {x2.shape}"
        )
    free1 = tuple(d for d in range(x1.ndim) if d not in first)
    free2 = tuple(d for d in range(x2.ndim) if d not in second)
    rows, columns = tuple(x1.shape[d] for d in free1), tuple(x2.shape[d] for d in free2)
    length = math.prod(x1.shape[d] for d in first)
    a = _as_matrix(x1, free1 + first, (math.prod(rows), length))
    b = _as_matrix(x2, second + free2, (length, math.prod(columns)))
    return view(_matmul("tensordot", a, b), ("reshape", rows + columns), "tensordot")


def _as_matrix(x: Tensor, order: Shape, shape: Shape) -> Tensor:
    """Return the tensor permuted, then reshaped; a copy where strides do not permit a view."""
    return view(view(x, ("permute", order), "tensordot"), ("reshape", shape), "tensordot")


def _parse_axes(axes: Axes, x1: Tensor, x2: Tensor) -> tuple[Shape, Shape]:
    """Return the axes of both operands to sum over, not negative.

    Raises: ArgumentError unless there are equally many, distinct axes; AxisError for an axis out of
    range; ArgumentTypeError for other objects than ints.
    """
    if not isinstance(axes, (list, tuple)):
        count = integer("tensordot", axes, "axes")
        if not 0 <= count <= min(x1.ndim, x2.ndim):
            raise ArgumentError(
                f"tensordot: axes must be between 0 and {min(x1.ndim, x2.ndim)} for shapes "
                f"{x1.shape} and {x2.shape}, "
                f"got {shown(axes)}"
            )
        return tuple(range(x1.ndim - count, x1.ndim)), tuple(range(count))
    if len(axes) == 2:
        first, second = (
            tuple([lay.axis("tensordot", i, x.ndim) for i in integers("tensordot", part, "axes")])
            for part, x in zip(axes, (x1, x2), strict=True)
        )
        if len(first) == len(second) and all(len(set(p)) == len(p) for p in (first, second)):
            return first, second
    raise ArgumentError(
        "tensordot: axes must be an int or two equally long lists of distinct axes, "
        f"got {shown(axes)}"
    )


class vendor_products(settings.Switch):
    """A context in which products may use a vendor's routine (True), or have one order (False).

    A vendor's routine sums in an order of its own. It is allowed by default, and there is one only
    on CUDA: cuBLAS, of `dovetail-cuda[matmul]`. Elsewhere, and with False everywhere, a product has
    the same bits on every device. The context in which a product is recorded counts, not the time
    of the computation. DOVETAIL_VENDOR_PRODUCTS=0 in the environment sets False for the process.
    See docs/numerics.md.

    - `enabled`: True allows a vendor's routine, False requires the one order.

    Raises: ArgumentTypeError for others.

    >>> import dovetail as dt
    >>> a = dt.ones((2, 2))
    >>> with dt.vendor_products(False):
    ...     y = a @ a
    >>> y.tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """

    def __init__(self, enabled: bool = True) -> None:
        super().__init__(vendor_products=flag("vendor_products", enabled, "enabled"))
