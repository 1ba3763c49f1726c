"""Products of vectors and matrices under NumPy's names; `dt.linalg` has those of stacks."""

from __future__ import annotations

from collections.abc import Sequence

from ... import layout as lay
from ...argument_checks import integer
from ...errors import ShapeError
from ...ops import table as ops
from ...tensor.c_fields import is_strided
from ...tensor.other_layouts import require_along
from ...tensor.primitives import apply, dispatch, slice_along, view
from ...tensor.promotion import Array, Operand, as_tensors, convert_operands
from ...tensor.tensor import Tensor, strided
from ...tensor.writes import write_out
from ..shape.copies import stack
from ..shape.manipulation import ravel
from ..variants import public
from .matrix_products import conjugate, matmul, tensordot, vecdot

__all__ = ["cross", "dot", "inner", "kron", "matvec", "vdot", "vecmat"]


@public(method=True, widen=False)
def dot(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return NumPy's dot product: the inner product of vectors, the matrix product of matrices.

    For more axes it is the sum over the last axis of x1 and the second last of x2, for every pair
    of the others; for a number or a 0-dimensional tensor the elementwise product. See `matmul`.
    Shapes: (..., k) and (k,) or (..., k, m).
    Dtypes: integers, floats and complex, promoted, as for `matmul`.
    Order: that of `matmul`.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.dot(dt.asarray([1, 2]), [3, 4]).item()
    11
    """
    a, b = convert_operands("dot", x1, x2)
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or not a.ndim or not b.ndim:
        product = apply(ops.MULTIPLY, (a, b))
    elif b.ndim <= 2:
        product = matmul(a, b)
    else:
        product = tensordot(a, b, axes=((-1,), (-2,)))
    return product if out is None else write_out("dot", out, product)


@public(method=True, out=True, widen=False)
def inner(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the sums of products over the last axes of two tensors, for every pair of the others.

    With a number or a 0-dimensional tensor it is the elementwise product.
    Shapes: (..., k) and (..., k): the free axes of x1, then those of x2.
    Dtypes: integers, floats and complex, promoted, as for `matmul`.
    Order: that of `matmul`.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.inner(dt.asarray([[1, 2], [3, 4]]), [10, 1]).tolist()
    [12, 34]
    """
    a, b = convert_operands("inner", x1, x2)
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or not a.ndim or not b.ndim:
        return apply(ops.MULTIPLY, (a, b))
    if a.ndim == b.ndim == 1:
        return matmul(a, b)
    return tensordot(a, b, axes=((-1,), (-1,)))


@public(method=True, out=True)
def vdot(x1: Array, x2: Array, /, *, out: Tensor | None = None) -> Tensor:
    """Return the sum of the products of the elements of two tensors, both raveled.

    Complex elements of x1 are conjugated.
    Shapes: equal numbers of elements; gives ().
    Dtypes: integers, floats and complex, promoted.
    Order: it is a reduction, in the canonical order (docs/numerics.md), like `vecdot`.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.vdot(dt.asarray([[1, 2], [3, 4]]), [[1, 1], [1, 1]]).item()
    10
    """
    a, b = as_tensors("vdot", x1, x2)
    return vecdot(ravel(a), ravel(b))


@public(method=True, out=True, widen=False)
def kron(x1: Array, x2: Array, /, *, out: Tensor | None = None) -> Tensor:
    """Return the Kronecker product: a block for each element of `x1`, the element times `x2`.

    Shapes: the one with fewer dimensions gets axes of size 1 in front; sizes are multiplied.
    Dtypes: all, promoted, as for `multiply`.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.kron(dt.asarray([1, 10]), [1, 2]).tolist()
    [1, 2, 10, 20]
    """
    a, b = as_tensors("kron", x1, x2)
    if not (is_strided(a) and is_strided(b)):
        return dispatch("kron", "kron", (a, b), a, b)
    n = max(a.ndim, b.ndim)
    rows, columns = ((1,) * (n - t.ndim) + t.shape for t in (a, b))
    interleaved = [
        view(t, ("reshape", tuple(k for pair in p for k in pair)))
        for t, p in ((a, [(r, 1) for r in rows]), (b, [(1, c) for c in columns]))
    ]
    shape = tuple(r * c for r, c in zip(rows, columns, strict=True))
    return view(apply(ops.MULTIPLY, tuple(interleaved)), ("reshape", shape), "kron")


@public(method=True, out=True)
def cross(x1: Array, x2: Array, /, *, axis: int = -1, out: Tensor | None = None) -> Tensor:
    """Return the cross products of vectors of three elements along an axis.

    Shapes: broadcast; the axis has 3 elements in both.
    Dtypes: numbers, promoted.
    Raises: ShapeError unless there are 3 elements, AxisError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.cross(dt.asarray([1, 0, 0]), [0, 1, 0]).tolist()
    [0, 0, 1]
    """
    x1, x2 = as_tensors("cross", x1, x2)
    axis = integer("cross", axis, "axis")
    axes = [lay.axis("cross", axis, x.ndim) for x in (x1, x2)]
    if x1.shape[axes[0]] != 3 or x2.shape[axes[1]] != 3:
        raise ShapeError(
            f"cross: axis {axis} must have 3 elements, got shapes {x1.shape} and {x2.shape}; of 2 "
            "elements use x1[..., 0] * x2[..., 1] - x1[..., 1] * x2[..., 0]"
        )
    a, b = (
        [_select_element(x, d, i) for i in range(3)] for x, d in zip((x1, x2), axes, strict=True)
    )
    components = [a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)]
    at = axis if axis < 0 else axis + max(0, components[0].ndim + 1 - x1.ndim)
    return stack(components, axis=at)


def _select_element(x: Tensor, axis: int, i: int) -> Tensor:
    """Return a view of element `i` along an axis, without that axis."""
    return view(
        slice_along(require_along("cross", x), axis, i, 1),
        ("reshape", (*x.shape[:axis], *x.shape[axis + 1 :])),
    )


@public(out=True, widen=False)
def matvec(x1: Array, x2: Array, /, *, out: Tensor | None = None) -> Tensor:
    """Return the products of matrices with vectors; the axes before them are broadcast.

    Shapes: (..., n, k) and (..., k) give (..., n).
    Dtypes: integers, floats and complex, promoted, as for `matmul`.
    Order: that of `matmul`.
    Raises: ShapeError if columns and elements do not fit, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.matvec(dt.asarray([[1, 2], [3, 4]]), [1, 1]).tolist()
    [3, 7]
    """
    a, b = as_tensors("matvec", x1, x2)
    _require_fitting("matvec", a, b, a.shape[-1:], b.shape[-1:])
    if b.ndim == 1:
        return matmul(a, b)
    product = matmul(a, view(b, ("reshape", (*b.shape, 1))))
    return view(product, ("reshape", product.shape[:-1]))


@public(out=True, widen=False)
def vecmat(x1: Array, x2: Array, /, *, out: Tensor | None = None) -> Tensor:
    """Return the products of vectors with matrices; the axes before them are broadcast.

    Complex vectors are conjugated.
    Shapes: (..., n) and (..., n, k) give (..., k).
    Dtypes: integers, floats and complex, promoted, as for `matmul`.
    Order: that of `matmul`.
    Raises: ShapeError if elements and rows do not fit, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.vecmat([1, 1], dt.asarray([[1, 2], [3, 4]])).tolist()
    [4, 6]
    """
    a, b = as_tensors("vecmat", x1, x2)
    _require_fitting("vecmat", b, a, b.shape[-2:-1], a.shape[-1:])
    a = conjugate(a)
    if a.ndim == 1:
        return matmul(a, b)
    product = matmul(view(a, ("reshape", (*a.shape[:-1], 1, a.shape[-1]))), b)
    return view(product, ("reshape", (*product.shape[:-2], product.shape[-1])))


def _require_fitting(
    op: str, matrices: Tensor, vectors: Tensor, first: Sequence[int], second: Sequence[int]
) -> None:
    """Raise ShapeError if matrices and vectors do not fit, LayoutError unless strided."""
    strided(op, matrices), strided(op, vectors)
    if matrices.ndim < 2 or not vectors.ndim or first != second:
        raise ShapeError(
            f"{op}: matrices of shape {matrices.shape} and vectors of shape {vectors.shape} do not "
            "fit; use dt.matmul for other shapes"
        )
