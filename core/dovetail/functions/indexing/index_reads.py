"""Reads at indices: `x[key]`, `take`, `searchsorted`.

Arrays of integers read through the `gather` row; `index_keys` parses the keys.
"""

from __future__ import annotations

import math
from functools import partial

from ... import layout as lay
from ...argument_checks import choice, flag
from ...backend.faults import IndexPurpose
from ...dtypes import DType, bool_, float32, float64, int64, uint64
from ...errors import ArgumentError, DeviceError, LayoutError, OutOfRangeError, ShapeError
from ...graph.expr import Spec, node, spec
from ...ops import table as ops
from ...tensor.c_fields import create_view, expr_of, is_strided
from ...tensor.other_layouts import call_along, has_rule
from ...tensor.primitives import apply, dispatch, pending_view, view
from ...tensor.promotion import (
    ARRAY_TYPES,
    Array,
    Operand,
    Scalar,
    as_operand,
    as_tensors,
    convert_operands,
)
from ...tensor.slicing import basic_leaf, is_integer_tensor
from ...tensor.tensor import Tensor, create_tensor, required, strided, unsupported_layout_text
from ...tensor.writes import array_of, restore_ints, value_node
from ..datatypes import as_dtype, cast, move, move_to_supporting_device, result_type
from ..graph_cache import CachedFunction
from ..known_calls import TakeKey, gather, read_cached, record_check, take_cache, take_cached
from ..variants import public
from .index_keys import (
    Key,
    Part,
    basic_view,
    check_parts,
    index_array,
    is_array,
    key_parts,
    parts_along,
    positions_along,
    select,
)
from .masks import nonzero, true_positions

# Elements per index from which a separate kernel checks each index once. 20000 rows of 128 take
# 0.27 ms so, and 3.4 ms if the reader checks for every element.
CHECK_ONCE_ROW_MIN = 4

__all__ = ["searchsorted", "take", "take_along_axis"]


@public(method=("__getitem__",), wrap=False)
def getitem(x: Tensor, key: Key) -> Tensor:
    """Return `x[key]`: a view if the key has only integers, slices, `...` and None, else a copy.

    A mask needs one host read, of the number of true elements. Indices in a tensor are checked on
    the device, so that an error may be raised when the result is read.
    Raises: OutOfRangeError, DTypeError, ShapeError, DeviceError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 2], [3, 4]])
    >>> x[0].tolist(), x[:, [1, 0]].tolist(), x[x > 2].tolist()
    ([1, 2], [[2, 1], [4, 3]], [3, 4])
    """
    e = basic_leaf(x, key)
    if e is not None:
        return create_view(x, e)
    if (repeated := read_cached(x, key)) is not None:
        return repeated
    if is_integer_tensor(key) and is_strided(x) and expr_of(x).spec.shape:
        return (
            _take_one_axis("index", x, key, 0)
            if x.ndim == 1
            else _cached_take_rows.call((x, key), {})
        )
    if is_strided(key) and is_strided(x) and expr_of(key).spec is _mask_spec(expr_of(x).spec):
        flat = x if x.ndim == 1 else view(x, ("reshape", (x.size,)))
        return gather_unchecked(flat, true_positions(key, x.device))
    if isinstance(key, Tensor) and not is_strided(key) and not has_rule(key, "index_by"):
        return _index_by_mask(x, key)
    parts = key_parts(x, key)
    if not any(is_array(p) for p in parts):
        return basic_view(x, parts)
    return _gather_selection("index", x, parts)


def _index_by_mask(x: Tensor, mask: Tensor) -> Tensor:
    """Return the elements under a mask of another layout; the host reads their number."""
    if mask.dtype is not bool_:
        raise LayoutError(unsupported_layout_text("index", mask))
    if not mask.ndim or mask.shape != x.shape[: mask.ndim]:
        raise OutOfRangeError(
            f"index: a mask of shape {mask.shape} does not fit a tensor of shape {x.shape}"
        )
    return _gather_selection("index", x, [*nonzero(mask), *[slice(None)] * (x.ndim - mask.ndim)])


def _mask_spec(s: Spec) -> Spec:
    """Return the spec of a mask for a whole tensor."""
    return spec(s.shape, bool_, s.device)


def _take_one_axis(name: str, x: Tensor, index: Tensor, d: int) -> Tensor:
    """Gather the elements of `x` at an integer tensor along axis `d`; cache the attributes."""
    if (repeated := take_cached(name, x, index, d)) is not None:
        return repeated
    key = (expr_of(x).spec, expr_of(index).spec, d, name)
    return _gather_selection(name, x, parts_along(x, d, index), key)


def _take_rows(x: Tensor, index: Tensor) -> Tensor:
    """Gather the slices at integers along the first axis."""
    return _take_one_axis("index", x, index, 0)


_cached_take_rows = CachedFunction(_take_rows)


def _gather_selection(
    name: str, x: Tensor, parts: list[Part], cache_key: TakeKey | None = None
) -> Tensor:
    """Gather the elements at a key with arrays.

    `cache_key`: the cache key if the only array is an index tensor.
    """
    if not is_strided(x):
        check_parts(parts)
        return dispatch("index", name, (x,), x, parts)
    others = [p for p in parts if has_rule(p, "index_by")]
    if others:
        check_parts(parts)
        return dispatch("index_by", name, others, x, parts)
    s = select(name, x, parts)
    width, after = len(s.shape), len(s.result) - s.leading_axes
    axes = (*s.result[: s.leading_axes], *(-1,) * width, *s.result[s.leading_axes :])
    shape = s.full_shape
    check_first = math.prod(shape) >= CHECK_ONCE_ROW_MIN * math.prod(s.shape)
    all_checked = check_first or all(i.in_range for i in s.indices)
    positions = [s.in_range_positions(name, i) if check_first else i.node for i in s.indices]
    index_exprs = [pending_view(e, ("reshape", (*e.spec.shape, *(1,) * after))) for e in positions]
    index_checks = None if all_checked else tuple(s.index_check(name, i) for i in s.indices)
    indexed_axes = tuple(i.axis for i in s.indices)
    whole = cache_key is not None and s.merged._expr.spec is x._expr.spec
    gathered = gather(
        x if whole else s.merged, index_exprs, shape, axes, indexed_axes, index_checks
    )
    if cache_key is not None and whole:
        once = s.index_check(name, s.indices[0]) if check_first else None
        move = None if index_exprs[0] is positions[0] else ("reshape", index_exprs[0].spec.shape)
        take_cache[cache_key] = (
            (shape, axes, indexed_axes, index_checks),
            gathered._expr.spec,
            once,
            move,
        )
    return gathered


# --- positions that are known to be in range ------------------------------------------------------


def gather_unchecked(x: Tensor, positions: Tensor) -> Tensor:
    """Return the elements of a vector at positions that must be in range; none is checked."""
    return gather(x, [positions._expr], positions.shape, (-1,) * positions.ndim, (0,))


def gather_along_unchecked(x: Tensor, positions: Tensor, axis: int) -> Tensor:
    """Return `take_along_axis` at positions that must be in range; none is checked.

    The positions have the sizes of `x` along all other axes.
    """
    axes = tuple(-1 if d == axis else d for d in range(x.ndim))
    return gather(x, [positions._expr], positions.shape, axes, (axis,))


MODES = ("raise", "wrap", "clip")


def wrap_or_clip(positions: Tensor, n: int, mode: str) -> Tensor:
    """Return positions in 0..n-1 by the mode "wrap" or "clip"."""
    if mode == "wrap":
        return apply(ops.REMAINDER, (positions, n))
    return apply(ops.CLIP, (positions, 0, n - 1))


# --- functions ------------------------------------------------------------------------------------


@public(method=True, cache=True, widen=False)
def take(
    x: Tensor,
    indices: Array,
    /,
    axis: int | None = None,
    *,
    mode: str = "raise",
    out: Tensor | None = None,
) -> Tensor:
    """Return the elements of `x` at `indices` along `axis`, which the axes of `indices` replace.

    - `indices`: integers; negative ones count from the end. Those in a list or array are checked at
      once, those in a tensor when the work runs.
    - `axis`: one axis; may be omitted for one dimension.
    - `mode`: the treatment of indices out of range: "raise", "wrap", which takes them modulo the
      size of the axis, or "clip", which takes the nearest one, and so 0 for negative ones.

    Shapes: x.shape[:axis] + indices.shape + x.shape[axis + 1:].
    Dtypes: x any; `indices` integers, not bool (see x[mask]).
    Gradient: contributions to one element are added in the order in which it was read.
    Raises: OutOfRangeError, DTypeError, AxisError, ArgumentError without axis or for another mode.
    See also: `take_along_axis`, `gather`, `index_select`, `compress`.

    >>> import dovetail as dt
    >>> dt.take(dt.asarray([10, 20, 30]), [2, 0, -1]).tolist()
    [30, 10, 30]
    """
    required("take", x)
    if axis is None:
        if x.ndim != 1:
            raise ArgumentError(f"take: axis= must be given for shape {x.shape}")
        axis = 0
    d = lay.axis("take", axis, x.ndim)
    array = index_array("take", indices)
    if mode != "raise":
        choice("take", mode, "mode", MODES)
        array = array if isinstance(array, Tensor) else as_operand("take", array, (x,))
        array = wrap_or_clip(cast(array, int64), x.shape[d], mode)
    if is_strided(array) and is_strided(x):
        return _take_one_axis("take", x, array, d)
    return _gather_selection("take", x, parts_along(x, d, array))


@public(method=True, cache=True, widen=False)
def take_along_axis(
    x: Tensor, indices: Array, /, axis: int | None = -1, *, out: Tensor | None = None
) -> Tensor:
    """Return the elements of `x` at `indices` along `axis`, one index for each result element.

    - `indices`: integers; negative ones count from the end. Those in a list or array are checked at
      once, those in a tensor when the work runs.
    - `axis`: one axis; None flattens `x`, for a vector of indices.

    Shapes: equal numbers of dimensions; broadcast except along `axis`, where the result has the
    size of `indices`.
    Dtypes: x any; `indices` integers, not bool.
    Raises: OutOfRangeError, ShapeError, DTypeError, AxisError.
    See also: `take`, `gather`, `put_along_axis`, `argsort`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 2], [3, 4]])
    >>> dt.take_along_axis(x, dt.asarray([[1], [0]]), axis=1).tolist()
    [[2], [3]]
    """
    if axis is None:
        x, axis = view(required("take_along_axis", x), ("reshape", (x.size,))), 0
    d = lay.axis("take_along_axis", axis, required("take_along_axis", x).ndim)
    if has_rule(x, "along") or has_rule(indices, "along"):
        elements: Tensor = call_along(
            "take_along_axis",
            lambda t, at: take_along_axis(t, at, d),
            as_tensors("take_along_axis", x, indices),
            (d,),
        )
        return elements
    index, index_check = positions_along("take_along_axis", x, indices, d)
    others = [(*s[:d], 1, *s[d + 1 :]) for s in (x.shape, index.spec.shape)]
    joint = lay.broadcast_shapes("take_along_axis", *others)
    source = view(x, ("expand", (*joint[:d], x.shape[d], *joint[d + 1 :])))
    shape = (*joint[:d], index.spec.shape[d], *joint[d + 1 :])
    axes = tuple(-1 if i == d else i for i in range(x.ndim))
    strided("take_along_axis", source)
    return gather(
        source, [index], shape, axes, (d,), None if index_check is None else (index_check,)
    )


def keep_digits(values_: object, other_operand: object) -> object:
    """Return a list as an array without loss of digits if the other operand holds integers."""
    if (
        isinstance(values_, (list, tuple))
        and isinstance(other_operand, Tensor)
        and other_operand.dtype.is_integer
    ):
        values = array_of("searchsorted", values_)
        whole = restore_ints(values, values_)
        return values if whole.dtype == object else whole
    return values_


def has_no_common_integer(a: DType, b: DType) -> bool:
    """Return True for uint64 together with a signed integer dtype."""
    return uint64 in (a, b) and "i" in (a.kind, b.kind)


def promote_for_comparison(op: str, edges: Tensor, x: Tensor | Scalar) -> tuple[Tensor, Tensor]:
    """Return both in one dtype that keeps as many digits as possible.

    Integers with floats become floats, on a device that supports them. No dtype holds uint64 and
    signed integers: the signed ones become int64, and both are returned as they are for an exact
    comparison.
    """
    if isinstance(x, Tensor) and has_no_common_integer(edges.dtype, x.dtype):
        edges, x = (t if t.dtype is uint64 else cast(t, int64) for t in (edges, x))
        return edges, x
    d = _comparison_dtype(edges, x)
    if isinstance(x, Tensor) and edges.dtype.is_integer is not x.dtype.is_integer:
        edges, x = move_to_supporting_device(op, d, edges, x)
    return cast(edges, d), as_dtype(op, x, d, (edges,))


def _comparison_dtype(edges: Tensor, x: Tensor | Scalar) -> DType:
    """Return the dtype of a comparison; of integers with floats a float that keeps their digits."""
    d: DType = result_type(edges, x)
    ints = [t.dtype.itemsize for t in (edges, x) if isinstance(t, Tensor) and t.dtype.is_integer]
    if d.kind == "f" and ints:
        return float32 if max(ints) <= 2 and d is not float64 else float64
    return d


def _round_to_dtype(value: float, d: DType, side: str) -> tuple[int, str]:
    """Return an integer of the dtype and a side, which search like the given number."""
    if not value <= d.max:  # NaN sorts last
        return d.max, "right"
    if value < d.min:
        return d.min, "left"
    whole = math.floor(value)
    return whole, side if whole == value else "right"


def _search_mixed(x1: Tensor, x2: Tensor, side: str, sorter: Array | None) -> Tensor:
    """Search int64 in sorted uint64, or the reverse; values out of range belong at an end."""
    d = x1.dtype
    end, at_end = (0, 0) if d is uint64 else (d.max, x1.size)
    outside = apply(ops.LESS if d is uint64 else ops.GREATER, (x2, end))
    among = cast(apply(ops.WHERE, (outside, end, x2)), d)
    positions = searchsorted(x1, among, side=side, sorter=sorter)
    return apply(ops.WHERE, (outside, at_end, positions))


@public(cache=True, widen=False)
def searchsorted(
    x1: Array,
    x2: Operand,
    /,
    *,
    side: str = "left",
    sorter: Array | None = None,
    right: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the positions at which the values of `x2` would be inserted in the sorted vector `x1`.

    NaN sorts last. A binary search: one pass over `x2`.

    - `side`: "left" is the position before equal elements, "right" the one after.
    - `sorter`: the positions that sort `x1`, as from `argsort`; None if `x1` is sorted.
    - `right`: True is PyTorch's way to write `side="right"`.

    Shapes: x1 is a vector; the result has x2's shape.
    Dtypes: all, promoted for the comparison, integers with floats to float64; `sorter` integers.
    Gives int64.
    Raises: ShapeError, ArgumentError for another `side`, DTypeError, DeviceError, OutOfRangeError
    for a `sorter` with positions outside of x1.
    See also: `digitize`, `argsort`, `isin`.

    >>> import dovetail as dt
    >>> dt.searchsorted(dt.asarray([1, 3, 5]), [3, 4]).tolist()
    [1, 2]
    """
    choice("searchsorted", side, "side", ("left", "right"))
    if right is not False:
        side = "right" if flag("searchsorted", right, "right") else side
    values = convert_operands("searchsorted", keep_digits(x1, x2), keep_digits(x2, x1))
    x1 = strided("searchsorted", values[0])
    if isinstance(sorter, ARRAY_TYPES):
        sorter = as_operand("searchsorted", sorter, values)
    if required("searchsorted", x1).ndim != 1:
        raise ShapeError(f"searchsorted: x1 must be a vector, got shape {x1.shape}")
    value = values[1]
    if isinstance(value, Tensor) and has_rule(value, "along"):
        search = partial(searchsorted, x1, side=side, sorter=sorter)
        positions: Tensor = call_along("searchsorted", search, (value,), ())
        return positions
    if x1.dtype.is_integer and isinstance(value, (int, float)):
        value, side = _round_to_dtype(value, x1.dtype, side)
        wanted = value_node("searchsorted", value, x1.dtype, x1.device)
    else:
        home = x1.device
        x1, x2 = promote_for_comparison("searchsorted", x1, value)
        if x1.device is not home:  # which has no float64
            order = sorter if sorter is None else move(strided("searchsorted", sorter), x1.device)
            return move(searchsorted(x1, x2, side=side, sorter=order), home)
        if x1.dtype.is_integer and x1.dtype is not x2.dtype:
            return _search_mixed(x1, x2, side, sorter)
        wanted = x2._expr
    nodes = [x1._expr, wanted]
    if sorter is not None:
        order = strided("searchsorted", sorter)
        if order.shape != x1.shape or not order.dtype.is_integer:
            raise ShapeError(
                f"searchsorted: sorter must hold integers in the shape of x1, "
                f"got {order._expr.spec!r} and {x1._expr.spec!r}"
            )
        nodes.append(record_check(IndexPurpose("searchsorted", 0, x1.size), order._expr))
    for e in nodes:
        if e.spec.device is not x1.device:
            raise DeviceError(
                f"searchsorted: operands are on {x1.device} and {e.spec.device}; move one with "
                "x.to(device)"
            )
    ops.SEARCHSORTED.dtypes("searchsorted", [e.spec.dtype for e in nodes], side)
    s = spec(wanted.spec.shape, int64, x1.device)
    return create_tensor(node(ops.SEARCHSORTED, tuple(nodes), s, side))
