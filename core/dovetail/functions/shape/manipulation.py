"""Shapes and arrangement of elements.

A result that strides can express is a view, which shares memory; others are new tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from ... import layout as lay
from ...argument_checks import dimensions, flag, integer, integers, shown
from ...compat.keywords import MISSING, rebind_keywords
from ...declarations import public
from ...errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    ShapeError,
)
from ...graph.expr import leaf, spec, storage_of, tape_of
from ...layout import Move, Shape, StridedView
from ...ops import table as ops
from ...tensor.c_fields import expr_of, is_strided, record_alias
from ...tensor.host import evaluate_leaf
from ...tensor.primitives import (
    apply,
    dispatch,
    is_viewable,
    select_along,
    slice_along,
    view,
)
from ...tensor.promotion import Array, as_tensors
from ...tensor.tensor import Tensor, create_tensor, required, strided
from ..creation.constructors import extents
from ..graph_cache import CachedFunction
from ..plain_calls import cache_view_calls

__all__ = [
    "as_strided",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "diagonal",
    "expand_dims",
    "flatten",
    "flip",
    "moveaxis",
    "permute_dims",
    "ravel",
    "reshape",
    "split",
    "squeeze",
    "swapaxes",
    "transpose",
    "unstack",
]

VIEW_CACHE_MAX = 1024  # moves that are cached for each function, by shapes and axes

Axes = int | Sequence[int]
Sizes = int | Sequence[int]  # one of several sizes or axes, or all of them in a sequence


def parse_ints(op: str, values: Sequence[Sizes], name: str = "shape") -> Shape:
    """Return `(2, 3)` for `f(2, 3)`, `f((2, 3))` or `f(shape=(2, 3))`."""
    values = () if values and values[0] is MISSING else values
    listed = (
        values[0] if len(values) == 1 and isinstance(values[0], (list, tuple, range)) else values
    )
    try:
        return integers(op, listed, name)
    except ArgumentTypeError:
        raise ShapeError(f"{op}: expected ints, got {shown(listed)}") from None


# --- views ---------------------------------------------------------------------------------------


@public(method=True, wrap=False, compiled=cache_view_calls)
def reshape(
    x: Tensor = MISSING,
    /,
    shape: Sizes = MISSING,
    *sizes: Sizes,
    copy: bool | None = None,
    **theirs: object,
) -> Tensor:
    """Return the elements, in row-major order, in another shape; one size may be -1.

    The result is a view if strides permit, else a copy.

    - `shape`: the sizes as a tuple, or the first of several sizes; -1 is computed from the others.
    - `sizes`: the sizes after the first, if they are passed one by one.
    - `copy`: True always copies; False never does, and fails if a copy is needed. None copies if
      strides do not permit a view.

    Shapes: any with an equal number of elements.
    Dtypes: all.
    Raises: ShapeError; ArgumentError if `copy=False` cannot be satisfied.
    See also: `ravel`, `flatten`, `Tensor.view`, `permute_dims`.

    >>> import dovetail as dt
    >>> dt.reshape(dt.arange(6), (2, -1)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    if theirs:
        return rebind_keywords(reshape, locals())
    if copy is None and not sizes and is_strided(x) and expr_of(x).op is None:
        return _cached_reshape.call((x, shape), {})  # copies are cached as graphs
    return _reshape_uncached(x, shape, sizes, copy)


def _reshape_uncached(
    x: Tensor, shape: Sizes, sizes: tuple[Sizes, ...] = (), copy: bool | None = None
) -> Tensor:
    """Check and reshape."""
    new = parse_ints("reshape", (shape, *sizes))
    wanted = lay.resolve_reshape("reshape", required("reshape", x).shape, new)
    m = ("reshape", wanted)
    if copy is not None and flag("reshape", copy, "copy"):
        return view(apply(ops.COPY, (x,)), m)
    if copy is not None and not is_viewable(strided("reshape", x), m):
        raise ArgumentError(
            f"reshape: shape {x.shape} with strides {x.stride()} can become {wanted} only by a "
            f"copy, and copy=False forbids it"
        )
    return view(x, m)


_cached_reshape = CachedFunction(_reshape_uncached)


@public(method=("permute_dims", "permute"), wrap=False, compiled=cache_view_calls)
def permute_dims(
    x: Tensor = MISSING, /, axes: Sizes = MISSING, *order: Sizes, **theirs: object
) -> Tensor:
    """Return a view of `x` with its axes in another order.

    - `axes`: axis k of the result is axes[k] of x: a tuple, or the first of several axes.
    - `order`: the axes after the first, if they are passed one by one.

    Shapes: any; the result has the sizes in the new order.
    Dtypes: all.
    Raises: AxisError unless each axis is named once.
    See also: `moveaxis`, `transpose`, `matrix_transpose`.

    >>> import dovetail as dt
    >>> dt.permute_dims(dt.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    if theirs:
        return rebind_keywords(permute_dims, locals())
    axes_tuple = parse_ints("permute_dims", (axes, *order), "axes")
    shape = required("permute_dims", x).shape
    return view(x, _permute_move("permute_dims", shape, axes_tuple), "permute_dims")


@lru_cache(VIEW_CACHE_MAX)
def _permute_move(op: str, shape: Shape, axes: Shape) -> Move:
    """Return the move of a permutation. Raises: AxisError unless each axis occurs once."""
    ndim = len(shape)
    order = tuple([lay.axis(op, i, ndim) for i in axes])
    if sorted(order) != list(range(ndim)):
        raise AxisError(
            f"{op}: axes must name each of the {ndim} axes of shape {shape} once, got {order}"
        )
    return "permute", order


@public(method=True, wrap=False, compiled=cache_view_calls)
def swapaxes(
    x: Tensor = MISSING,
    /,
    axis1: int = MISSING,
    axis2: int = MISSING,
    *more: object,
    **theirs: object,
) -> Tensor:
    """Return a view of `x` with `axis1` and `axis2` exchanged.

    - `axis1`, `axis2`: the axes; negative ones count from the end.

    Shapes: any; the two sizes change places.
    Dtypes: all.
    Raises: AxisError.
    See also: `moveaxis`, `permute_dims`.

    >>> import dovetail as dt
    >>> dt.swapaxes(dt.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    if more or theirs:
        return rebind_keywords(swapaxes, locals())
    return _swap_axes("swapaxes", x, axis1, axis2)


def _swap_axes(op: str, x: Tensor, axis1: int, axis2: int) -> Tensor:
    """Return a view with two axes exchanged. Raises: AxisError."""
    order = list(range(required(op, x).ndim))
    a, b = lay.axis(op, axis1, x.ndim), lay.axis(op, axis2, x.ndim)
    order[a], order[b] = b, a
    return view(x, ("permute", tuple(order)), op)


@public(method=True, wrap=False, compiled=cache_view_calls)
def transpose(x: Tensor = MISSING, /, *axes: Sizes | None, **theirs: object) -> Tensor:
    """Return a view of `x` with two axes exchanged or, without `axes`, all of them reversed.

    `transpose(x, a, b)` exchanges a and b, as in PyTorch; `transpose(x)` reverses all, as in NumPy;
    a tuple of all axes is their order, as for `permute_dims`.

    - `axes`: none, two axes to exchange, or a tuple with all axes in their new order.

    Shapes: any; the sizes go with their axes.
    Dtypes: all.
    Raises: AxisError.
    See also: `permute_dims`, `matrix_transpose`, `swapaxes`.

    >>> import dovetail as dt
    >>> x = dt.zeros((2, 3, 4))
    >>> dt.transpose(x).shape, dt.transpose(x, 0, 1).shape
    ((4, 3, 2), (3, 2, 4))
    """
    if theirs:
        return rebind_keywords(transpose, locals())
    if not axes or (len(axes) == 1 and axes[0] is None):
        order = tuple(reversed(range(required("transpose", x).ndim)))
        return view(x, ("permute", order), "transpose")
    if len(axes) == 2:
        return _swap_axes("transpose", x, *axes)  # type: ignore[arg-type]  # lay.axis checks them
    shape, axes_tuple = required("transpose", x).shape, parse_ints("transpose", axes, name="axes")  # type: ignore[arg-type]  # rejects all but ints
    return view(x, _permute_move("transpose", shape, axes_tuple), "transpose")


@public(method=("moveaxis", "movedim"), wrap=False, compiled=cache_view_calls)
def moveaxis(
    x: Tensor = MISSING,
    /,
    source: Axes = MISSING,
    destination: Axes = MISSING,
    *more: object,
    **theirs: object,
) -> Tensor:
    """Return a view of `x` with some axes moved to other positions.

    The other axes keep their order.

    - `source`: one axis of `x`, or a tuple of them.
    - `destination`: the position of each in the result.

    Shapes: any; the sizes go with their axes.
    Dtypes: all.
    Raises: AxisError, also for one axis twice.
    See also: `permute_dims`, `swapaxes`.

    >>> import dovetail as dt
    >>> dt.moveaxis(dt.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    if more or theirs:
        return rebind_keywords(moveaxis, locals())
    required("moveaxis", x)
    src, dst = _axes_list("moveaxis", source, x.ndim), _axes_list("moveaxis", destination, x.ndim)
    if len(src) != len(dst) or len(set(src)) < len(src) or len(set(dst)) < len(dst):
        raise AxisError(
            f"moveaxis: source and destination must name equally many distinct axes, "
            f"got {shown(source)} and {shown(destination)}"
        )
    order = [i for i in range(x.ndim) if i not in src]
    for d, s in sorted(zip(dst, src, strict=True)):
        order.insert(d, s)
    return view(x, ("permute", tuple(order)), "moveaxis")


def _axes_list(op: str, axes: Axes, ndim: int) -> list[int]:
    """Return axes as non-negative ints, in their order."""
    return [lay.axis(op, i, ndim) for i in integers(op, axes, "axis")]


@public(method=("expand_dims", "unsqueeze"), wrap=False, compiled=cache_view_calls)
def expand_dims(x: Tensor = MISSING, /, axis: Axes = 0, *more: object, **theirs: object) -> Tensor:
    """Return a view of `x` with inserted axes of size 1.

    - `axis`: one position in the result, or a tuple of them.

    Shapes: any.
    Dtypes: all.
    Raises: AxisError, ShapeError beyond 64 dimensions.
    See also: `squeeze`, `reshape`.

    >>> import dovetail as dt
    >>> dt.expand_dims(dt.zeros(3), axis=(0, -1)).shape
    (1, 3, 1)
    """
    if more or theirs:
        return rebind_keywords(expand_dims, locals())
    listed = integers("expand_dims", axis, "axis")
    return view(x, _expand_dims_move(required("expand_dims", x).shape, listed), "expand_dims")


@lru_cache(VIEW_CACHE_MAX)
def _expand_dims_move(shape: Shape, axes: Shape) -> Move:
    """Return the move that inserts axes of size 1. Raises: AxisError if out of range or equal."""
    ndim = len(shape) + len(axes)
    new_axes, sizes = lay.axes("expand_dims", axes, ndim), iter(shape)
    wider = [1 if d in new_axes else next(sizes) for d in range(ndim)]
    return "reshape", dimensions("expand_dims", wider)


@public(method=True, wrap=False, compiled=cache_view_calls)
def squeeze(
    x: Tensor = MISSING, /, axis: Axes | None = None, *more: object, **theirs: object
) -> Tensor:
    """Return a view of `x` without some axes of size 1.

    - `axis`: one or several; None removes all axes of size 1.

    Shapes: any.
    Dtypes: all.
    Raises: ShapeError if a size is not 1, AxisError.
    See also: `expand_dims`, `reshape`.

    >>> import dovetail as dt
    >>> dt.squeeze(dt.zeros((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    if more or theirs:
        return rebind_keywords(squeeze, locals())
    shape = required("squeeze", x).shape
    axes_tuple = None if axis is None else integers("squeeze", axis, "axis")
    return view(x, _squeeze_move(shape, axes_tuple), "squeeze")


@lru_cache(VIEW_CACHE_MAX)
def _squeeze_move(shape: Shape, axes: Shape | None) -> Move:
    """Return the move that drops axes of size 1, all for None. Raises: ShapeError for others."""
    if axes is None:
        return "reshape", tuple([n for n in shape if n != 1])
    gone = lay.axes("squeeze", axes, len(shape))
    if any(shape[d] != 1 for d in gone):
        named = axes[0] if len(axes) == 1 else axes
        raise ShapeError(f"squeeze: axis {named} must have size 1, got shape {shape}")
    return "reshape", tuple([n for d, n in enumerate(shape) if d not in gone])


@public(method=True, in_place=True, wrap=False, compiled=cache_view_calls)
def flip(
    x: Tensor = MISSING, /, axis: Axes | None = None, *more: object, **theirs: object
) -> Tensor:
    """Return a view of `x` with the order along some axes reversed; along all for None.

    Shapes: any; the result has the same.
    Dtypes: all.
    Raises: AxisError.

    >>> import dovetail as dt
    >>> dt.flip(dt.asarray([[1, 2], [3, 4]]), axis=1).tolist()
    [[2, 1], [4, 3]]
    """
    if more or theirs:
        return rebind_keywords(flip, locals())
    flipped = lay.axes("flip", axis, required("flip", x).ndim)
    starts = tuple(n - 1 if d in flipped else 0 for d, n in enumerate(x.shape))
    steps = tuple(-1 if d in flipped else 1 for d in range(x.ndim))
    return view(x, ("slice", starts, x.shape, steps), "flip")


@public(method=True, wrap=False, compiled=cache_view_calls)
def broadcast_to(
    x: Tensor = MISSING, /, shape: Sizes = MISSING, *sizes: Sizes, **theirs: object
) -> Tensor:
    """Return a read-only view of `x` in which axes of size 1 repeat without using memory.

    The sizes are passed one by one, as a tuple, or as `shape`.

    - `shape`: the shape of the result: a tuple, or the first of several sizes.
    - `sizes`: the sizes after the first, if they are passed one by one.

    Shapes: x's axes are matched with the last of the result; they agree, or x's has size 1.
    Dtypes: all.
    Raises: ShapeError. A write to the result is a ReadOnlyError.
    See also: `broadcast_arrays`, `Tensor.expand`, `tile`.

    >>> import dovetail as dt
    >>> dt.broadcast_to(dt.arange(2), (2, 2)).tolist()
    [[0, 1], [0, 1]]
    """
    if theirs:
        return rebind_keywords(broadcast_to, locals())
    wanted = parse_ints("broadcast_to", (shape, *sizes))
    return _broadcast("broadcast_to", x, wanted)


def _broadcast(op: str, x: Tensor, target_shape: Shape) -> Tensor:
    """Return a read-only view in a shape. Raises: ShapeError if `x` does not broadcast to it."""
    return view(x, _expand_move(op, required(op, x).shape, target_shape), op)


@lru_cache(VIEW_CACHE_MAX)
def _expand_move(op: str, shape: Shape, target_shape: Shape) -> Move:
    """Return the move that broadcasts one shape to another. Raises: ShapeError if it cannot."""
    dimensions(op, target_shape)
    if (
        len(target_shape) < len(shape)
        or lay.broadcast_shapes(op, shape, target_shape) != target_shape
    ):
        raise ShapeError(f"{op}: shape {shape} does not broadcast to {target_shape}")
    return "expand", target_shape


@public(method=True, wrap=False, compiled=cache_view_calls)
def expand(x: Tensor, /, *shape: Sizes) -> Tensor:
    """Return a read-only view of `x` as `dt.broadcast_to` does, where -1 keeps a size.

    - `shape`: the sizes, one by one or as a tuple; -1 keeps a size.

    Shapes: x's axes are matched with the last of the result; they agree, or x's has size 1.
    Dtypes: all.
    Raises: ShapeError.

    >>> import dovetail as dt
    >>> dt.zeros((3, 1)).expand(2, -1, 4).shape
    (2, 3, 4)
    """
    wanted = parse_ints("expand", shape)
    lead = len(wanted) - x.ndim
    sizes = tuple([x.shape[d - lead] if n == -1 and d >= lead else n for d, n in enumerate(wanted)])
    return _broadcast("expand", x, sizes)


@public(widen=False)
def broadcast_arrays(*arrays: Array) -> tuple[Tensor, ...]:
    """Return views of tensors in their common shape, as a tuple.

    - `arrays`: tensors or arrays.

    Shapes: broadcast.
    Dtypes: all; each keeps its own.
    Raises: ShapeError, DeviceError, DTypeError unless all are tensors or arrays.
    See also: `broadcast_to`, `broadcast_shapes`.

    >>> import dovetail as dt
    >>> x, y = dt.broadcast_arrays(dt.zeros((2, 1)), [1, 2, 3])
    >>> x.shape, y.shape
    ((2, 3), (2, 3))
    """
    arrays = as_tensors("broadcast_arrays", *arrays)
    shape = lay.broadcast_shapes("broadcast_arrays", *(a.shape for a in arrays))
    return tuple(view(a, ("expand", shape)) for a in arrays)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Return the common shape to which shapes are broadcast.

    Sizes are matched from the last axis on; they agree, or are 1.

    - `shapes`: ints or tuples of ints.

    Raises: ShapeError.

    >>> import dovetail as dt
    >>> dt.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return lay.broadcast_shapes(
        "broadcast_shapes", *[extents("broadcast_shapes", s) for s in shapes]
    )


@public(method=True, wrap=False)
def unstack(
    x: Tensor = MISSING, /, axis: int = 0, *more: object, **theirs: object
) -> tuple[Tensor, ...]:
    """Return views of the parts of `x` along `axis`, without that axis, as a tuple.

    Shapes: of at least 1 dimension.
    Dtypes: all.
    Raises: AxisError.

    >>> import dovetail as dt
    >>> [row.tolist() for row in dt.unstack(dt.asarray([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    if more or theirs:
        return rebind_keywords(unstack, locals())
    d = lay.axis("unstack", axis, required("unstack", x).ndim)
    return tuple([select_along(x, d, i, "unstack") for i in range(x.shape[d])])


@public(method=True, wrap=False)
def split(
    x: Tensor = MISSING,
    sizes: int | Sequence[int] = MISSING,
    /,
    axis: int = 0,
    *more: object,
    **theirs: object,
) -> tuple[Tensor, ...]:
    """Split `x` along `axis` into views of consecutive parts, as a tuple.

    - `sizes`: a list of sizes that add up to the axis, or one size (the last part may be smaller).

    Shapes: of at least 1 dimension.
    Dtypes: all.
    Raises: ShapeError if the sizes do not add up to the axis, ArgumentError for a size below 1,
    AxisError.
    See also: `array_split`, `chunk`, `unstack`, `concat`.

    >>> import dovetail as dt
    >>> x = dt.arange(5)
    >>> [part.tolist() for part in dt.split(x, 2)], [part.tolist() for part in dt.split(x, [1, 4])]
    ([[0, 1], [2, 3], [4]], [[0], [1, 2, 3, 4]])
    """
    if more or theirs:
        return rebind_keywords(split, locals())
    d = lay.axis("split", axis, required("split", x).ndim)
    n = x.shape[d]
    if not isinstance(sizes, (list, tuple)):
        step = integer("split", sizes, "sizes")
        if step < 1:
            raise ArgumentError(f"split: the size of the parts must be positive, got {shown(step)}")
        sizes = [min(step, n - i) for i in range(0, n, min(step, max(n, 1)))]
    sizes = integers("split", sizes, "sizes")
    if sum(sizes) != n or any(s < 0 for s in sizes):
        raise ShapeError(
            f"split: sizes must sum to {n}, the size of axis {d} of shape {x.shape}, "
            f"got {shown(sizes)}"
        )
    starts = accumulate(sizes, initial=0)
    return tuple([slice_along(x, d, a, k, "split") for a, k in zip(starts, sizes, strict=False)])


@public(method=True, widen=False, compiled=cache_view_calls)
def flatten(x: Tensor, /, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge neighbouring axes of `x` into one: a view if strides permit, else a copy.

    - `start_dim`, `end_dim`: the first and the last of the axes that are merged; default: all axes.

    Shapes: any; a 0-dimensional tensor gives one element.
    Dtypes: all.
    Raises: AxisError.
    See also: `ravel`, `reshape`, `unflatten`.

    >>> import dovetail as dt
    >>> dt.flatten(dt.zeros((2, 3, 4)), 1).shape
    (2, 12)
    """
    if required("flatten", x).ndim == 0:
        return view(x, ("reshape", (1,)), "flatten")
    a, b = lay.axis("flatten", start_dim, x.ndim), lay.axis("flatten", end_dim, x.ndim)
    if a > b:
        raise AxisError(
            f"flatten: start_dim must not be after end_dim, got {start_dim} and {end_dim}"
        )
    size = 1
    for n in x.shape[a : b + 1]:
        size *= n
    return view(x, ("reshape", (*x.shape[:a], size, *x.shape[b + 1 :])), "flatten")


@public(method=True, widen=False, compiled=cache_view_calls)
def ravel(x: Tensor, /) -> Tensor:
    """Return all elements in row-major order along one axis: a view if strides permit, else a copy.

    Shapes: any.
    Dtypes: all.
    Raises: DTypeError unless x is a tensor.

    >>> import dovetail as dt
    >>> dt.ravel(dt.asarray([[1, 2], [3, 4]])).tolist()
    [1, 2, 3, 4]
    """
    return view(x, ("reshape", (required("ravel", x).size,)), "ravel")


@public(method=True, widen=False)
def as_strided(
    x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Return a view of the storage of `x` with any shape, strides and offset.

    - `size`: the shape, a tuple of ints.
    - `stride`: for each axis the distance from one element to the next.
    - `storage_offset`: the position of the first element in the storage; None is that of `x`.

    Shapes: any; a view whose elements share memory is read-only.
    Dtypes: all.
    Units: elements, not bytes.
    Raises: ShapeError if the view would exceed the storage.
    See also: `contiguous_strides`, `broadcast_to`, `unfold`.

    >>> import dovetail as dt
    >>> dt.as_strided(dt.arange(5), (3, 3), (1, 1)).tolist()  # windows
    [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    """
    strided("as_strided", x)
    shape, strides = extents("as_strided", size), integers("as_strided", stride, "stride")
    if len(shape) != len(strides):
        raise ShapeError(
            f"as_strided: expected a stride for each of {len(shape)} sizes, got {len(strides)}"
        )
    if any(abs(s) * x.itemsize >= lay.ELEMENTS_MAX for s in strides):
        raise ShapeError(f"as_strided: strides must stay below 2**63 bytes, got {shown(strides)}")
    e = evaluate_leaf(x)
    storage = storage_of(e)
    offset = e.offset
    if storage_offset is not None:
        offset = integer("as_strided", storage_offset, "storage_offset")
    if 0 in shape:
        offset = 0  # an empty view reaches no element
    low, high = lay.element_span(StridedView(shape, strides, offset))
    elements = storage.nbytes // x.itemsize
    if low < 0 or high > elements:
        raise ShapeError(
            f"as_strided: shape {shape}, strides {shown(strides)}, offset {shown(offset)} reach "
            f"the elements {shown(low)}..{shown(high - 1)} of a storage of {elements}"
        )
    base = leaf(storage, spec(shape, x.dtype, x.device, "as_strided"), strides, offset)
    attrs = (
        StridedView(x.shape, e.strides, e.offset),
        StridedView(shape, strides, offset),
        elements,
    )
    base.tape = tape_of(ops.AS_STRIDED, (e,), base.spec, attrs)
    return record_alias(x, create_tensor(base))


@public(method=True, wrap=False, compiled=cache_view_calls)
def diagonal(
    x: Tensor = MISSING,
    /,
    offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
    *more: object,
    **theirs: object,
) -> Tensor:
    """Return a view of the diagonals of `x` over two axes, which become the last axis.

    The diagonal of a sparse tensor is a new tensor.

    - `offset`: an element's position along `dim2` minus that along `dim1`.
    - `dim1`, `dim2`: the two axes.

    Shapes: of at least 2 dimensions; an `offset` beyond the matrix gives no elements.
    Dtypes: all.
    Raises: AxisError for one axis twice, ShapeError below 2 dimensions.
    See also: `diag`, `diag_embed`, `linalg.diagonal`, `trace`.

    >>> import dovetail as dt
    >>> dt.diagonal(dt.arange(4).reshape(2, 2)).tolist()
    [0, 3]
    """
    if more or theirs:
        return rebind_keywords(diagonal, locals())
    offset = integer("diagonal", offset, "offset")
    if required("diagonal", x).ndim < 2:
        raise ShapeError(f"diagonal: expected at least 2 dimensions, got shape {x.shape}")
    a, b = lay.axis("diagonal", dim1, x.ndim), lay.axis("diagonal", dim2, x.ndim)
    if a == b:
        raise AxisError(f"diagonal: axes must be different, got {dim1} and {dim2}")
    order = (*(d for d in range(x.ndim) if d not in (a, b)), a, b)
    matrices = view(x, ("permute", order), "diagonal")
    n, m = matrices.shape[-2:]
    offset = max(-n, min(offset, m))  # diagonals outside are empty
    if not is_strided(matrices):
        return dispatch("diagonal", "diagonal", (matrices,), matrices, offset)
    length = max(min(n + min(offset, 0), m - max(offset, 0)), 0)
    if length:
        down = slice_along(matrices, matrices.ndim - 2, max(-offset, 0), length)
        matrices = slice_along(down, matrices.ndim - 1, max(offset, 0), length)
    strides = evaluate_leaf(matrices).strides
    return as_strided(
        matrices, (*matrices.shape[:-2], length), (*strides[:-2], strides[-2] + strides[-1])
    )
