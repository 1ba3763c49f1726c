"""Matrix products. The one kernel is the `matmul` row: k ascending with fused multiply-add.

Where a backend offers a vendor routine (BLAS), `matmul` and what is made of it use that, in its own
order of summation; `with dt.reproducible():` takes the generated kernel, whose bits are the same on
every device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ... import layout as lay
from ... import settings
from ...arguments import integer, integers, named, shown
from ...compat.keywords import UNGIVEN, retold
from ...dtypes import INTEGERS, DType, complex64, complex128, float32, float64
from ...engine import recording
from ...errors import ArgumentError, DeviceError, ShapeError
from ...graph.expr import Attrs, Expr, Spec, node, spec
from ...layout import Move, Shape
from ...ops import table as ops
from ...ops.table import COPY, GENERATED, MATMUL, MULTIPLY, SUM
from ...recent import Recent
from ...settings import current, flags
from ...tensor.fields import expr_of
from ...tensor.operands import Array, brought, decides
from ...tensor.tensor import Tensor, make, required, strided
from ...tensor.verbs import (
    apply,
    dispatch,
    is_viewable,
    noted_view,
    reduce,
    seen_as,
    view,
    viewed,
)
from ...tensor.writes import write_out
from ..shape import manipulation
from ..variants import cache_graph

__all__ = ["diagonal", "matmul", "matrix_transpose", "outer", "reproducible", "tensordot", "vecdot"]


def matmul(
    x1: Array = UNGIVEN, x2: Array = UNGIVEN, /, *, out: Tensor | None = None, **theirs: object
) -> Tensor:
    """The matrix product over the last two axes; those before them are broadcast.

    A vector is a row as first operand, a column as second; the result lacks that axis.
    Shapes: (..., n, k) and (..., k, m) give (..., n, m); (k,) and (k,) give (). With k = 0: zeros.
    Dtypes: integers and floats; the result has the promoted dtype. Integers wrap; float16 and
    bfloat16 are summed in float32 and rounded once.
    Order: of floats that of the device's vendor routine (a BLAS), where it has one. Within
    `dt.reproducible()`, and everywhere else: k ascending, with one fused multiply-add each, so the
    same bits on every device. Outside of it, of two vectors, and of a vector and a matrix of up to
    16,384 elements: that of `vecdot`.
    Raises: ShapeError where columns and rows do not fit, DTypeError (bool has no product; see
    `dt.any`), DeviceError.

    >>> import dovetail as dt
    >>> a = dt.asarray([[1, 2], [3, 4]], device="reference")
    >>> dt.matmul(a, a).tolist(), (a @ [1, 1]).tolist()
    ([[7, 10], [15, 22]], [3, 7])
    """
    if theirs or x2 is UNGIVEN:
        return retold(matmul, locals())
    x1, x2 = brought("matmul", x1, x2)
    result = _matmul("matmul", x1, x2)
    return result if out is None else write_out("matmul", out, result)


def matmul_operator(self: Tensor, other: Array) -> Tensor:
    """`self @ other`."""
    if type(other) is Tensor:
        return _matmul("matmul", self, other)
    return NotImplemented if decides(other) else matmul(self, other)


_DOTTED = frozenset((float32, float64, *INTEGERS))  # what is summed as it is multiplied
# Elements of a matrix up to which its product with a vector is a sum of products: that is a kernel,
# which fuses with what is around it, in half the time of a routine. From 256 x 256 on that is over.
FUSED = 1 << 14
COPIED = 4  # rows on the left from which a transpose on the right is copied first
_VENDORS = frozenset((float32, float64, complex64, complex128))  # they have routines for these


class _Matrices(NamedTuple):
    """How operands are multiplied as matrices: moves of them, and back; None where it is none."""

    made: Spec
    first: Move | None
    second: Move | None
    back: Move | None


class _Sum(NamedTuple):
    """How they are multiplied element by element, and these products summed."""

    products: Spec
    made: Spec
    attrs: Attrs
    first: Move | None


# The specs of matrices or vectors of one dtype, and whether by the generated kernel -> how.
_products: Recent[tuple[Spec, Spec, str | None], _Matrices | _Sum] = Recent(4096)


def _matmul(name: str, x1: Tensor, x2: Tensor) -> Tensor:
    if type(x1) is not Tensor or type(x2) is not Tensor:
        return dispatch("matmul", name, (x1, x2), x1, x2)
    how = GENERATED if current().reproducible else None
    e1, e2 = expr_of(x1), expr_of(x2)
    key = (e1.spec, e2.spec, how)
    known = _products.young.get(key) or _products.find(key)
    if known is None:
        return _first_product(name, x1, x2, how)
    if isinstance(known, _Sum):
        if flags.captures and _is_product_of_many(e1, e2):
            return _first_product(name, x1, x2, how)
        elements, total, attrs, along = known
        products = node(MULTIPLY, (_moved(x1, along), e2), elements)
        return make(node(SUM, (products,), total, attrs))
    made, first, second, back = known
    left, right = _moved(x1, first), _moved(x2, second)
    product = make(node(MATMUL, (left, _by_rows(left, right, how)), made, how))
    return product if back is None else make(_moved(product, back))


def _by_rows(left: Expr, right: Expr, how: str | None) -> Expr:
    """The second operand of a product as generated kernels read it: each row dense.

    Its transpose, as in `x @ weight.mT`, took 100 times as long (96 x 128 by 128 x 384 float32, two
    threads: 1.3 ms, and 0.04 with this copy). Vendors' routines take it as it lies.
    """
    s = right.spec
    if (how is None and s.dtype in _VENDORS) or right.op is not None:
        return right
    if s.shape[-1] < 2 or left.spec.shape[-2] < COPIED or right.strides[-1] in (0, 1):
        return right
    return right if 0 in right.strides else node(COPY, (right,), s)


def _is_sum(a: Spec, b: Spec) -> bool:
    """Whether a product is quicker as a sum of products: that of a vector with what is small."""
    if a.dtype is not b.dtype or a.device is not b.device or a.dtype not in _DOTTED:
        return False
    ranks = len(a.shape), len(b.shape)
    if ranks not in ((1, 1), (2, 1), (1, 2)) or a.shape[-1] != b.shape[0]:
        return False
    return ranks == (1, 1) or max(a.size, b.size) <= FUSED


def _is_product_of_many(a: Expr, b: Expr) -> bool:
    """Whether a vector and a matrix stand for many each, of which one product is a matrix's."""
    return len(a.spec.shape) + len(b.spec.shape) == 3 and recording.is_batched(a, b)


def _first_sum(x1: Tensor, x2: Tensor) -> Tensor:
    """The product of two for which that is so."""
    a, b = x1._expr.spec, x2._expr.spec
    move = ("reshape", (a.size, 1)) if len(b.shape) == 2 else None
    products = apply(MULTIPLY, (x1 if move is None else view(x1, move), x2))._expr
    made = reduce(SUM, make(products), (len(a.shape) - 1,), False, a.dtype)
    if made._expr.op is SUM:  # it has not run
        _products[a, b, None] = _Sum(products.spec, made._expr.spec, made._expr.attrs, move)
    return made


def _moved(x: Tensor, move: Move | None) -> Expr:
    """A vector as a matrix, or back: always a view."""
    seen = expr_of(x) if move is None else seen_as(x, move)
    assert seen is not None
    return seen


def _first_product(name: str, x1: Tensor, x2: Tensor, how: str | None) -> Tensor:
    """A product of which nothing is known."""
    many = flags.captures and _is_product_of_many(x1._expr, x2._expr)
    if how is None and not many and _is_sum(x1._expr.spec, x2._expr.spec):
        return _first_sum(x1, x2)
    if x1.device is not x2.device:
        raise DeviceError(
            f"{name}: operands are on {x1.device} and {x2.device}; move one with x.to(device)"
        )
    if not x1.ndim or not x2.ndim:
        raise ShapeError(
            f"{name}: shapes {x1.shape} and {x2.shape}: each needs 1 dimension; see dt.multiply"
        )
    a, b = _row(x1), _column(x2)
    (_, _), dtype = MATMUL.dtypes(name, [a.dtype, b.dtype], None)
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"{name}: shapes {x1.shape} and {x2.shape} do not fit: "
            f"{a.shape[-1]} columns against {b.shape[-2]} rows"
        )
    rows = ("reshape", (math.prod(a.shape[:-1]), a.shape[-1]))
    if a.ndim > 2 and b.ndim == 2 and is_viewable(a, rows):  # one product, also on the way back
        product = _matmul(name, view(a, rows), x2)
        return view(product, ("reshape", a.shape[:-1] + product.shape[1:]))
    batch = lay.broadcast_shapes(name, a.shape[:-2], b.shape[:-2])
    operands = [_converted(_expanded(t, (*batch, *t.shape[-2:])), dtype)._expr for t in (a, b)]
    shape = (*batch, a.shape[-2], b.shape[-1])
    made = spec(shape, dtype, a.device, name)
    kept = batch + ((a.shape[-2],) if x1.ndim > 1 else ()) + ((b.shape[-1],) if x2.ndim > 1 else ())
    if {x1.ndim, x2.ndim} in ({2}, {1, 2}) and x1.dtype is x2.dtype and not many:
        _products[x1._expr.spec, x2._expr.spec, how] = _Matrices(
            made, _reshape(x1, a), _reshape(x2, b), None if kept == shape else ("reshape", kept)
        )
    left, right = operands
    result = make(node(MATMUL, (left, _by_rows(left, right, how)), made, how))
    return result if kept == shape else view(result, ("reshape", kept))


def _row(x: Tensor) -> Tensor:
    return x if x.ndim > 1 else view(x, ("reshape", (1, *x.shape)))


def _column(x: Tensor) -> Tensor:
    return x if x.ndim > 1 else view(x, ("reshape", (*x.shape, 1)))


def _reshape(x: Tensor, seen: Tensor) -> Move | None:
    """The move that makes `seen` of a vector."""
    return None if seen is x else ("reshape", seen.shape)


def _expanded(x: Tensor, shape: Shape) -> Tensor:
    return x if x.shape == shape else view(x, ("expand", shape))


def _converted(x: Tensor, dtype: DType) -> Tensor:
    return x if x.dtype is dtype else apply(ops.ASTYPE, (x,), dtype)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view of `x` with its last two axes exchanged; the same as `x.mT`.

    Shapes: (..., n, m) gives (..., m, n).
    Dtypes: all.
    Raises: ShapeError below 2 dimensions.

    >>> import dovetail as dt
    >>> dt.matrix_transpose(dt.asarray([[1, 2], [3, 4]], device="reference")).tolist()
    [[1, 3], [2, 4]]
    """
    if (known := viewed("matrix_transpose", x)) is not None:
        return known
    if required("matrix_transpose", x).ndim < 2:
        raise ShapeError(f"matrix_transpose: needs at least 2 dimensions, not shape {x.shape}")
    return noted_view(x.mT, "matrix_transpose", x)


@cache_graph(widen=False)
def outer(x1: Array, x2: Array, /, *, out: Tensor | None = None) -> Tensor:
    """The products of every element of one vector with every element of the other.

    Shapes: (n,) and (m,) give (n, m).
    Dtypes: all, promoted, as for `multiply`.
    Raises: ShapeError unless both are vectors; DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.outer(dt.asarray([1, 2], device="reference"), [3, 4]).tolist()
    [[3, 4], [6, 8]]
    """
    x1, x2 = brought("outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(f"outer: needs two vectors, not shapes {x1.shape} and {x2.shape}")
    return apply(MULTIPLY, (view(x1, ("reshape", (x1.shape[0], 1))), x2))


@cache_graph
def vecdot(x1: Array, x2: Array, /, *, axis: int = -1, out: Tensor | None = None) -> Tensor:
    """The sum of the products of two tensors along `axis`, after broadcasting.

    Of complex tensors the first one is conjugated. `axis` is counted from the end: -1 is the last.
    Shapes: broadcast; the axis, of one size in both, goes.
    Dtypes: integers, floats and complex; the result has the promoted dtype, in which it is summed
    (float16 and bfloat16 in float32).
    Order: it is a reduction, in the canonical order (docs/numerics.md): the same bits on every
    device, unlike `matmul` outside of `dt.reproducible()`.
    Raises: ShapeError where the axis has two sizes, AxisError, ArgumentError for an axis that is
    not negative, DTypeError for bool, DeviceError.

    >>> import dovetail as dt
    >>> dt.vecdot(dt.asarray([[1, 2], [3, 4]], device="reference"), [10, 1]).tolist()
    [12, 34]
    """
    x1, x2 = brought("vecdot", x1, x2)
    axis = integer("vecdot", axis, "axis")
    dtype = _dotted(x1.shape, x2.shape, x1.dtype, x2.dtype, axis)
    product = apply(MULTIPLY, (conjugate(x1), x2))
    return reduce(SUM, strided("vecdot", product), (product.ndim + axis,), False, dtype)


def conjugate(x: Tensor) -> Tensor:
    """The complex conjugate: of what is real, itself."""
    return apply(ops.CONJ, (x,)) if x.dtype.kind == "c" else x


@lru_cache(1024)
def _dotted(a: Shape, b: Shape, first: DType, second: DType, axis: int) -> DType:
    """The dtype of `vecdot`. Raises: as that does."""
    (_, _), dtype = MATMUL.dtypes("vecdot", [first, second], None)
    shortest = min(len(a), len(b))
    if axis >= 0:
        raise ArgumentError(
            f"vecdot: axis {shown(axis)} is counted from the end: give one of {-shortest}..-1"
        )
    lay.axis("vecdot", axis, shortest)
    if a[axis] != b[axis]:
        raise ShapeError(f"vecdot: axis {axis} of shapes {a} and {b} has two sizes")
    return dtype


@named(widen=False)
def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A view of the diagonals of the last two axes; see `dt.diagonal`.

    `offset`: 0 is the main diagonal, above it positive, below it negative.
    Shapes: (..., n, m) gives (..., length).
    Dtypes: all.
    Raises: ShapeError below 2 dimensions.

    >>> import dovetail as dt
    >>> dt.linalg.diagonal(dt.asarray([[1, 2], [3, 4]], device="reference")).tolist()
    [1, 4]
    """
    return manipulation.diagonal(x, offset, -2, -1)


Axes = int | tuple[int | Sequence[int], int | Sequence[int]]


@cache_graph(widen=False)
def tensordot(x1: Array, x2: Array, /, *, axes: Axes = 2, out: Tensor | None = None) -> Tensor:
    """The sum of products over pairs of axes, as one `matmul`.

    `axes`: a number n, for the last n axes of x1 and the first n of x2; or two lists of axes, or
    two axes, which go together in order.
    Shapes: the free axes of x1, then those of x2.
    Dtypes: integers and floats, promoted, as for `matmul`.
    Order: that of `matmul`: a vendor routine's, unless within `dt.reproducible()`.
    Raises: ShapeError where the sizes of a pair differ, AxisError, ArgumentError, DTypeError,
    DeviceError.

    >>> import dovetail as dt
    >>> a = dt.asarray([[1, 2], [3, 4]], device="reference")
    >>> dt.tensordot(a, a, axes=([0, 1], [0, 1])).item()
    30
    """
    x1, x2 = brought("tensordot", x1, x2)
    first, second = _paired_axes(axes, x1, x2)
    if tuple(x1.shape[i] for i in first) != tuple(x2.shape[j] for j in second):
        raise ShapeError(
            f"tensordot: shapes {x1.shape} and {x2.shape} differ along axes {first} and {second}"
        )
    free1 = tuple(d for d in range(x1.ndim) if d not in first)
    free2 = tuple(d for d in range(x2.ndim) if d not in second)
    rows, columns = tuple(x1.shape[d] for d in free1), tuple(x2.shape[d] for d in free2)
    length = math.prod(x1.shape[d] for d in first)
    a = _as_matrix(x1, free1 + first, (math.prod(rows), length))
    b = _as_matrix(x2, second + free2, (length, math.prod(columns)))
    return view(_matmul("tensordot", a, b), ("reshape", rows + columns), "tensordot")


def _as_matrix(x: Tensor, order: Shape, shape: Shape) -> Tensor:
    return view(view(x, ("permute", order), "tensordot"), ("reshape", shape), "tensordot")


def _paired_axes(axes: Axes, x1: Tensor, x2: Tensor) -> tuple[Shape, Shape]:
    if not isinstance(axes, (list, tuple)):
        count = integer("tensordot", axes, "axes")
        if not 0 <= count <= min(x1.ndim, x2.ndim):
            raise ArgumentError(
                f"tensordot: axes={shown(axes)} of shapes {x1.shape} and {x2.shape}"
            )
        return tuple(range(x1.ndim - count, x1.ndim)), tuple(range(count))
    if len(axes) == 2:
        first, second = (
            tuple([lay.axis("tensordot", i, x.ndim) for i in integers("tensordot", part, "axes")])
            for part, x in zip(axes, (x1, x2), strict=True)
        )
        if len(first) == len(second) and all(len(set(p)) == len(p) for p in (first, second)):
            return first, second
    raise ArgumentError(f"tensordot: axes {shown(axes)} are not two lists of as many distinct axes")


class reproducible(settings.Switch):
    """A context in which every result has the same bits on every device: no vendor routine is used.

    Products of matrices that are written in it take the generated kernel: k ascending, with one
    fused multiply-add each. What counts is where the product is written, not when it is computed;
    without it only products of float matrices can differ (docs/numerics.md).

    >>> import dovetail as dt
    >>> a = dt.ones((2, 2), device="reference")
    >>> with dt.reproducible():
    ...     y = a @ a
    >>> y.tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """

    def __init__(self) -> None:
        super().__init__(reproducible=True)
