"""x[key] and its relatives, by NumPy's rules: basic indices, integer arrays, masks.

Integers, slices, `...` and None make a view. Arrays of integers read through the `gather` row, and
write through `scatter`, in which the last of several values for one place wins. A mask becomes the
positions of its true elements; how many there are depends on data, so that takes one host read.
Indices given as lists or NumPy arrays are checked at once, those in tensors when the work runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import index as as_integer
from typing import Any, NamedTuple

import numpy as np

from .. import layout as lay
from ..arguments import BEYOND_FLOAT, choice, dimensions, named, shown
from ..backend.faults import Asked, out_of_range
from ..dtypes import DType, bool_, dtype, int64
from ..engine import evaluate as run
from ..errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    IndexOutOfRange,
    ShapeError,
    ValueOverflow,
)
from ..graph.expr import Expr, asked_at, node, overwritten, spec
from ..layout import Move, Shape
from ..memory import caller
from ..ops import table as ops
from ..ops.kernels import BLOCK
from ..tensor.tensor import (
    ARRAYS,
    PYTHON_NUMBERS,
    Tensor,
    apply,
    assign,
    beside,
    check_writable,
    dispatch,
    fitted,
    fresh,
    from_host,
    is_viewable,
    make,
    operands,
    require_untaped,
    required,
    torn,
    view,
    writing,
)

__all__ = ["argwhere", "index_add", "nonzero", "scatter", "searchsorted", "take", "take_along_axis"]


def getitem(x: Tensor, key: Any) -> Tensor:
    """`x[key]`: a view where the key has integers, slices, `...` and None only, else a copy.

    A mask needs one host read: of how many of its elements are true. Indices in a tensor are
    checked on the device, so an error may come when the result is looked at.
    Raises: IndexOutOfRange, DTypeError, ShapeError, DeviceError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 2], [3, 4]], device="reference")
    >>> x[0].tolist(), x[:, [1, 0]].tolist(), x[x > 2].tolist()
    ([1, 2], [[2, 1], [4, 3]], [3, 4])
    """
    parts = _filled(x, key)
    if not any(isinstance(p, _ARRAYS) for p in parts):
        return _basic(x, parts)
    return _gathered("index", x, parts)


def setitem(x: Tensor, key: Any, value: Any) -> None:
    """`x[key] = value`: the value is broadcast and cast to the memory of `x[key]`.

    Where integer arrays name a place several times, the last value stays. A mask with a value that
    does not depend on the number of its true elements needs no host read.
    Raises: as `x[key]`; DTypeError where the value's kind does not fit; ReadOnlyError;
    GradientError.

    >>> import dovetail as dt
    >>> x = dt.asarray([1, -2, 3], device="reference")
    >>> x[x < 0] = 0
    >>> x.tolist()
    [1, 0, 3]
    """
    parts = _filled(x, key)
    if any(isinstance(p, _ARRAYS) for p in parts):
        _write_arrays(x, parts, value)
        return
    target = _basic(x, parts)
    if isinstance(value, Tensor) and _is_same_memory(target._expr, value._expr):
        return  # the last act of `x[key] += ...`
    assign("setitem", target, _stored("setitem", value, target._expr.spec))


def _is_same_memory(a: Expr, b: Expr) -> bool:
    return (
        a.op is None and b.op is None and a.storage is b.storage
        and a.spec is b.spec and a.strides == b.strides and a.offset == b.offset
    )  # fmt: skip


def _moved(e: Expr, *moves: Move) -> Expr:
    """A pending view of a node."""
    for m in moves:
        shape = lay.move_shape(e.spec.shape, m)
        if shape != e.spec.shape or m[0] in ("permute", "slice"):
            e = node(ops.VIEW, (e,), spec(shape, e.spec.dtype, e.spec.device), m)
    return e


# --- values --------------------------------------------------------------------------------------


def _stored(name: str, value: Any, want: Any) -> Expr:
    """What is to be stored, of spec `want`: from a tensor, a number, or what NumPy understands."""
    return fitted(name, _value(name, value, want.dtype, want.device), want)


def _value(name: str, value: Any, want: DType, device: Any) -> Expr:
    """The node of a value that is to be stored as dtype `want`."""
    if isinstance(value, Tensor):
        return value._expr
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, PYTHON_NUMBERS):
        return _number(name, value, want, device)
    require_untaped(name, value)
    array = _host_array(name, value)
    if array.dtype.kind == "O" and all(isinstance(v, int) for v in array.flat):
        raise ValueOverflow(f"{name}: an int of {shown(value)} fits neither int64 nor uint64")
    if array.dtype.kind not in "biuf":
        raise DTypeError(f"{name}: cannot store a {type(value).__name__}; see dt.asarray")
    if not isinstance(value, np.ndarray) and _fits(array.dtype.kind, want.kind):
        array = array.astype(want.__numpy_dtype__ or np.float32)
    return from_host(array, dtype(array.dtype), device)._expr


def _host_array(name: str, value: Any) -> np.ndarray[Any, Any]:
    """What NumPy makes of lists. Raises: ShapeError, DTypeError."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ShapeError(f"{name}: {shown(value)} is ragged; pad it to one length") from error
    except TypeError as error:
        raise DTypeError(f"{name}: {shown(value)} is no array; see dt.asarray") from error


def _number(name: str, value: Any, want: DType, device: Any) -> Expr:
    """A 0-dimensional node. Raises: DTypeError, ValueOverflow."""
    kind = {bool: "b", int: "i", float: "f"}.get(type(value), "c")
    if not _fits(kind, want.kind):
        raise DTypeError(f"{name}: {shown(value)} does not fit {want.name}; cast with astype()")
    if type(value) is int and want.kind in "iu" and not want.min <= value <= want.max:
        raise ValueOverflow(
            f"{name}: {shown(value)} does not fit {want.name} ({want.min}..{want.max})"
        )
    if type(value) is int and not -BEYOND_FLOAT < value < BEYOND_FLOAT:
        raise ValueOverflow(f"{name}: {shown(value)} does not fit {want.name}")
    return node(ops.FULL, (value,), spec((), want, device), ((want,), want))


def _fits(kind: str, into: str) -> bool:
    order = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    return order[kind] <= order[into]


# --- basic indices -------------------------------------------------------------------------------


def _filled(x: Tensor, key: Any) -> list[Any]:
    """The key with an entry for every axis of `x`, a None for each new one, and no `...`.

    A `...` that stands for no axis stays: NumPy lets it separate index arrays.
    """
    parts = list(key) if type(key) is tuple else [key]
    used, dots = 0, -1
    for i, part in enumerate(parts):
        if part is Ellipsis:
            if dots >= 0:
                raise IndexOutOfRange("index: an index can have only a single '...'")
            dots = i
        elif isinstance(part, (list, np.ndarray, np.generic, Tensor)):
            parts[i] = part = _as_array(part)
            used += _axes_taken(part)
        elif part is not None and not isinstance(part, bool):
            used += 1
    if used > x.ndim:
        raise IndexOutOfRange(f"index: {used} indices for {x.ndim} dimensions (shape {x.shape})")
    rest: list[Any] = [slice(None)] * (x.ndim - used)
    if dots < 0:
        return parts + rest
    return parts[:dots] + (rest or [Ellipsis]) + parts[dots + 1 :]


def _basic(x: Tensor, parts: list[Any]) -> Tensor:
    """The view that integers, slices and None describe."""
    starts: list[int] = []
    lengths: list[int] = []
    steps: list[int] = []
    shape: list[int] = []
    reshaped = False
    for part in parts:
        if part is Ellipsis:
            continue
        if part is None:
            shape.append(1)
            reshaped = True
            continue
        d = len(starts)
        extent = x.shape[d]
        if type(part) is slice:
            start, length, step = _slice(part, extent)
            shape.append(length)
        else:
            start, length, step = _position(part, d, extent), 1, 1
            reshaped = True
        starts.append(start)
        lengths.append(length)
        steps.append(step)
    found = view(x, ("slice", tuple(starts), tuple(lengths), tuple(steps)))
    return view(found, ("reshape", dimensions("index", shape))) if reshaped else found


def _slice(part: slice, extent: int) -> tuple[int, int, int]:
    try:
        start, stop, step = part.indices(extent)
    except ValueError:
        raise ArgumentError("index: the step of a slice cannot be zero") from None
    except TypeError:
        raise DTypeError(f"index: {part} needs integers or None") from None
    return start, len(range(start, stop, step)), step


def _integer(part: Any) -> int:
    try:
        return as_integer(part)
    except TypeError:
        raise DTypeError(
            f"index: {shown(part)} is {type(part).__name__}; indices are integers, slices, '...', "
            "None, and arrays of integers or bool"
        ) from None


def _position(part: Any, axis: int, extent: int) -> int:
    """A non-negative position along an axis. Raises: IndexOutOfRange; DTypeError for no integer."""
    i = _integer(part)
    if not -extent <= i < extent:
        raise out_of_range(Asked("index", axis, extent), i)
    return i + extent if i < 0 else i


# --- index arrays --------------------------------------------------------------------------------


def _as_array(part: Any) -> Any:
    """A tensor or NumPy array of integers or bool; of no dimension on the host: an integer or bool.

    Raises: DTypeError.
    """
    if isinstance(part, Tensor):
        if part.dtype.kind not in "biu":
            raise DTypeError(
                f"index: an index tensor is of integers or bool, not {part.dtype.name}"
            )
        return part
    array = _host_array("index", part)
    if array.size == 0 and isinstance(part, list):
        array = array.astype(np.int64)
    if array.dtype.kind not in "biu":
        raise DTypeError(f"index: an index array is of integers or bool, not {array.dtype}")
    return array if array.ndim else array.item()


def _axes_taken(part: Any) -> int:
    if isinstance(part, (bool, int)):
        return int(type(part) is int)
    return part.ndim if part.dtype in (bool_, np.bool_) else 1


class _Index(NamedTuple):
    """Positions along an axis of the prepared tensor, which is `of` the user's.

    `known`: in range and not negative.
    """

    axis: int
    of: int
    positions: Expr
    known: bool
    unique: bool


@dataclass
class _Prepared:
    """A tensor after the basic part of its key, with one axis under each index array."""

    sliced: Tensor
    tensor: Tensor  # `sliced` with axes merged; each is an index's, one of `result`'s, or of size 1
    shares: bool = True  # whether those two share memory
    indices: list[_Index] = field(default_factory=list)
    result: list[int] = field(default_factory=list)  # axes of `tensor`, -1 for new ones
    place: int = 0  # where among those the axes of the indices stand
    shape: Shape = ()  # of the indices together

    @property
    def full_shape(self) -> Shape:
        """The result's shape."""
        sizes = tuple(1 if d < 0 else self.tensor.shape[d] for d in self.result)
        return sizes[: self.place] + self.shape + sizes[self.place :]


def _prepare(name: str, x: Tensor, parts: list[Any]) -> _Prepared:
    """Slices, merges the axes under each mask, and sorts out what the result's axes are."""
    found = _Prepared(x, x)
    basic: list[tuple[int, int, int]] = []  # (start, length, step) of each axis of x
    merged: list[int] = []
    before: list[tuple[int, int]] = []  # what stands before each index and integer
    others = 0
    for part in parts:
        d = len(basic)
        if part is None or part is Ellipsis:
            others += 1
            found.result += [-1] * (part is None)
            continue
        if isinstance(part, slice):
            others += 1
            found.result.append(len(merged))
            taken = [_slice(part, x.shape[d])]
        else:
            before.append((others, len(found.result)))
            if isinstance(part, _ARRAYS):
                index, used = _index(name, part, x.shape, d, len(merged), x)
                found.indices.append(index)
                taken = [(0, n, 1) for n in x.shape[d : d + used]]
            else:
                taken = [(_position(part, d, x.shape[d]), 1, 1)]
        basic += taken
        merged.append(math.prod(n for _, n, _ in taken))
    # side by side, the indices' axes stay there; else they come first
    found.place = before[0][1] if len(set(before)) == 1 else 0
    found.shape = _joint_shape([i.positions.spec.shape for i in found.indices])
    starts, lengths, steps = (tuple(b[k] for b in basic) for k in range(3))
    found.sliced = view(x, ("slice", starts, lengths, steps))
    merge = ("reshape", tuple(merged))
    found.shares = is_viewable(found.sliced, merge)
    found.tensor = view(found.sliced, merge)
    return found


_ARRAYS = (Tensor, np.ndarray, bool)


def _joint_shape(shapes: Sequence[Shape]) -> Shape:
    try:
        return lay.broadcast_shapes("index", *shapes)
    except ShapeError as e:
        raise IndexOutOfRange(f"index arrays do not fit together: {e}") from None


def _index(name: str, part: Any, shape: Shape, d: int, axis: int, x: Tensor) -> tuple[_Index, int]:
    """What an index array says, and how many axes of the tensor it stands for."""
    if isinstance(part, Tensor) and part.device is not x.device:
        raise DeviceError(f"index: is on {part.device}, the tensor on {x.device}; see x.to(device)")
    if isinstance(part, bool) or (part.ndim == 0 and part.dtype in (bool_, np.bool_)):
        one = from_host(np.zeros(int(bool(part)), np.int64), int64, x.device)  # along a new axis
        return _Index(axis, d, one._expr, True, True), 0
    if part.dtype in (bool_, np.bool_):
        used = part.ndim
        # NumPy takes a size of 0 for any: nothing is true
        if any(m not in (n, 0) for m, n in zip(part.shape, shape[d : d + used], strict=True)):
            raise IndexOutOfRange(
                f"index: a mask of shape {tuple(part.shape)} does not fit axes {d}..{d + used - 1} "
                f"of shape {shape}"
            )
        return _Index(axis, d, true_positions(part, x)._expr, True, True), used
    if isinstance(part, Tensor):
        return _Index(axis, d, part._expr, False, False), 1
    positions = _checked_on_host(part, Asked(name, d, shape[d]), x)._expr
    return _Index(axis, d, positions, True, False), 1


def _checked_on_host(part: Any, asked: Asked, x: Tensor) -> Tensor:
    """Host indices in a tensor, not negative. Raises: IndexOutOfRange."""
    low, high = (int(part.min()), int(part.max())) if part.size else (0, -1)
    extent = asked.size
    if low < -extent or high >= extent:
        raise out_of_range(asked, low if low < -extent else high)
    part = part.astype(np.int64)
    return from_host(np.where(part < 0, part + extent, part) if low < 0 else part, int64, x.device)


def true_positions(mask: Any, x: Tensor) -> Tensor:
    """The positions, in row-major order, at which a mask is true. One host read for a tensor."""
    if isinstance(mask, np.ndarray):
        return from_host(np.flatnonzero(mask), int64, x.device)
    flat = _moved(mask._expr, ("reshape", (mask.size,)))
    blocks = -(-mask.size // BLOCK)
    counted = node(ops.COUNT_BLOCKS, (flat,), spec((blocks,), int64, mask.device))
    counts = make(counted).numpy()
    before = from_host(np.cumsum(counts) - counts, int64, mask.device)
    shape = (int(counts.sum()),)
    return make(node(ops.TRUE_POSITIONS, (flat, before._expr), spec(shape, int64, mask.device)))


def fetch(x: Tensor, positions: Tensor) -> Tensor:
    """The elements of a vector at positions that are known to be in range; nothing is checked."""
    return _gather(x, [positions._expr], positions.shape, (-1,) * positions.ndim, (0,))


def fetch_along(x: Tensor, positions: Tensor, axis: int) -> Tensor:
    """As `take_along_axis`, of positions that are known to be in range.

    They are as long as `x` along all other axes.
    """
    axes = tuple(-1 if d == axis else d for d in range(x.ndim))
    return _gather(x, [positions._expr], positions.shape, axes, (axis,))


def place(values: Tensor, positions: Tensor) -> Tensor:
    """A vector with values[i] at positions[i], which are a permutation of its places."""
    out = make(fresh(values._expr.spec))
    operands = [values._expr, positions._expr]
    _update("place", out, _scattered(out, operands, ("set", True)))
    return out


ROWS_WORTH_CHECKING = 4  # elements read for each index

# --- reading -------------------------------------------------------------------------------------


def _gathered(name: str, x: Tensor, parts: list[Any]) -> Tensor:
    if type(x) is not Tensor:
        for part in parts:
            if type(part) is slice:
                _slice(part, 0)
            elif part is not None and part is not Ellipsis and not isinstance(part, _ARRAYS):
                _integer(part)
        return dispatch("index", (x,), x, parts)  # type: ignore[no-any-return]
    p = _prepare(name, x, parts)
    width, after = len(p.shape), len(p.result) - p.place
    axes = (*p.result[: p.place], *(-1,) * width, *p.result[p.place :])
    shape = p.full_shape
    # 20000 rows of 128: 0.27 ms if each index is checked once, 3.4 if for every element
    first = math.prod(shape) >= ROWS_WORTH_CHECKING * math.prod(p.shape)
    known = first or all(i.known for i in p.indices)
    positions = [_known(name, i, p) if first else i.positions for i in p.indices]
    lead = [_moved(e, ("reshape", (*e.spec.shape, *(1,) * after))) for e in positions]
    asked = None if known else tuple(_asked(name, i, p) for i in p.indices)
    return _gather(p.tensor, lead, shape, axes, tuple(i.axis for i in p.indices), asked)


def _known(name: str, i: _Index, p: _Prepared) -> Expr:
    """An index's positions, counted from the start, checked when the work runs."""
    return i.positions if i.known else _checked(_asked(name, i, p), i.positions)


def _asked(name: str, i: _Index, p: _Prepared) -> Asked:
    return Asked(name, i.of, p.tensor.shape[i.axis])


def _gather(
    x: Tensor, indices: Sequence[Expr], shape: Shape, axes: Shape, of: Shape,
    asked: tuple[Asked, ...] | None = None,
) -> Tensor:  # fmt: skip
    attrs = (shape, axes, of, asked)
    s = spec(shape, x.dtype, x.device, "index" if asked is None else asked[0].op)
    e = node(ops.GATHER, (x._expr, *indices), s, attrs)
    if asked is not None:
        asked_at[e] = line = caller()
        if e.tape is not None:
            asked_at[e.tape] = line  # for the gradient, which reads the indices again
    return make(e)


@named
def take(x: Tensor, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """The elements of `x` at `indices` along `axis`, which the axes of `indices` replace.

    `indices`: integers, negative ones counted from the end. In a list or array they are checked at
    once, in a tensor when the work runs. `axis` may be left out for one dimension.
    Shapes: x.shape[:axis] + indices.shape + x.shape[axis + 1:].
    Dtypes: x any; `indices` integers, not bool (see x[mask]).
    Gradient: parts for one element are added in the order in which it was read.
    Raises: IndexOutOfRange, DTypeError, AxisError, ArgumentError without axis.

    >>> import dovetail as dt
    >>> dt.take(dt.asarray([10, 20, 30], device="reference"), [2, 0, -1]).tolist()
    [30, 10, 30]
    """
    required("take", x)
    if axis is None:
        if x.ndim != 1:
            raise ArgumentError(f"take: needs axis= for shape {x.shape}")
        axis = 0
    d = lay.axis("take", axis, x.ndim)
    array = _index_array("take", indices)
    return _gathered("take", x, [*[slice(None)] * d, array, *[slice(None)] * (x.ndim - d - 1)])


def _index_array(name: str, indices: Any) -> Any:
    array = indices if isinstance(indices, Tensor) else _host_array(name, indices)
    if array.size == 0 and isinstance(indices, (list, tuple)):
        array = array.astype(np.int64)
    kind = array.dtype.kind
    if kind not in "biu":
        raise DTypeError(f"{name}: indices are integers, not {array.dtype}; see astype()")
    if array.dtype in (bool_, np.bool_):
        raise DTypeError(f"{name}: indices are integers, not bool; see x[mask]")
    return array


@named
def take_along_axis(x: Tensor, indices: Any, /, *, axis: int = -1) -> Tensor:
    """At each place the element of `x` there, except that its position along `axis` is `indices`'.

    `indices` are as for `take`. Undoes `argsort`: take_along_axis(x, argsort(x)) is sorted.
    Shapes: as many dimensions, broadcast along all but `axis`, along which the result is
    `indices`'.
    Dtypes: x any; `indices` integers, not bool.
    Raises: IndexOutOfRange, ShapeError, DTypeError, AxisError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 2], [3, 4]], device="reference")
    >>> dt.take_along_axis(x, dt.asarray([[1], [0]], device="reference"), axis=1).tolist()
    [[2], [3]]
    """
    d = lay.axis("take_along_axis", axis, required("take_along_axis", x).ndim)
    index, asked = _positions_along("take_along_axis", x, indices, d)
    others = [(*s[:d], 1, *s[d + 1 :]) for s in (x.shape, index.spec.shape)]
    joint = lay.broadcast_shapes("take_along_axis", *others)
    source = view(x, ("expand", (*joint[:d], x.shape[d], *joint[d + 1 :])))
    shape = (*joint[:d], index.spec.shape[d], *joint[d + 1 :])
    axes = tuple(-1 if i == d else i for i in range(x.ndim))
    return _gather(source, [index], shape, axes, (d,), None if asked is None else (asked,))


def _positions_along(name: str, x: Tensor, indices: Any, d: int) -> tuple[Expr, Asked | None]:
    """The node of an index array along an axis, and what is to be checked of it.

    The array must have as many dimensions as `x`. Raises: ShapeError.
    """
    array = _index_array(name, indices)
    if array.ndim != x.ndim:
        raise ShapeError(
            f"{name}: indices of shape {tuple(array.shape)} for shape {x.shape}: "
            "needs as many dimensions"
        )
    index, _ = _index(name, array, x.shape, d, d, x)
    return index.positions, None if index.known else Asked(name, d, x.shape[d])


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """For each axis of `x` the positions of the elements that are not zero, in row-major order.

    NaN is not zero. How many there are is read by the host, once.
    Shapes: of at least 1 dimension; a vector comes for each.
    Dtypes: all; gives int64.
    Raises: ShapeError for no dimensions.

    >>> import dovetail as dt
    >>> [at.tolist() for at in dt.nonzero(dt.asarray([[0, 3], [4, 0]], device="reference"))]
    [[0, 1], [1, 0]]
    """
    if required("nonzero", x).ndim == 0:
        raise ShapeError("nonzero: needs at least 1 dimension; see dt.reshape(x, (1,))")
    mask = x if x.dtype is bool_ else apply(ops.NOT_EQUAL, (x, 0))
    flat, found = true_positions(mask, x), []
    for extent in reversed(x.shape[1:]):
        found.append(apply(ops.REMAINDER, (flat, max(extent, 1))))
        flat = apply(ops.FLOOR_DIVIDE, (flat, max(extent, 1)))
    return (flat, *reversed(found))


@named
def argwhere(x: Tensor, /) -> Tensor:
    """The positions of the elements that are not zero, one row each, in row-major order.

    NaN is not zero. How many there are is read by the host, once.
    Shapes: of at least 1 dimension; gives (number of them, dimensions).
    Dtypes: all; gives int64.
    Raises: ShapeError for no dimensions.

    >>> import dovetail as dt
    >>> dt.argwhere(dt.asarray([[0, 3], [4, 0]], device="reference")).tolist()
    [[0, 1], [1, 0]]
    """
    found = nonzero(x)
    out = from_host(np.empty((found[0].size, x.ndim), np.int64), int64, x.device)
    for d, column in enumerate(found):
        setitem(out, (slice(None), d), column)
    return out


def searchsorted(
    x1: Tensor, x2: Tensor | int | float, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """For each value of `x2` the position in the sorted vector `x1` before which it would stand.

    `side`: before ("left") or after ("right") equal ones. `sorter`: what sorts `x1`, as `argsort`
    gives it. NaN stands last. A binary search: one pass over `x2`.
    Shapes: x1 is a vector; the result has x2's shape.
    Dtypes: all, promoted for the comparison; `sorter` integers. Gives int64.
    Raises: ShapeError, ArgumentError for another `side`, DTypeError, DeviceError, IndexOutOfRange
    for a `sorter` that points out of x1.

    >>> import dovetail as dt
    >>> dt.searchsorted(dt.asarray([1, 3, 5], device="reference"), [3, 4]).tolist()
    [1, 2]
    """
    choice("searchsorted", side, "side", ("left", "right"))
    x1, x2 = operands("searchsorted", x1, x2)
    if isinstance(sorter, ARRAYS):
        sorter = beside("searchsorted", sorter, (x1, x2))
    if x1.ndim != 1:
        raise ShapeError(f"searchsorted: x1 is a vector, not of shape {x1.shape}")
    wanted = _value("searchsorted", x2, x1.dtype, x1.device)
    nodes = [x1._expr, wanted]
    if sorter is not None:
        if required("searchsorted", sorter).shape != x1.shape or not sorter.dtype.is_integer:
            raise ShapeError(
                f"searchsorted: sorter is {sorter._expr.spec!r} for x1 {x1._expr.spec!r}"
            )
        nodes.append(_checked(Asked("searchsorted", 0, x1.size), sorter._expr))
    for e in nodes:
        if e.spec.device is not x1.device:
            raise DeviceError(
                f"searchsorted: operands are on {x1.device} and {e.spec.device}; move one with "
                "x.to(device)"
            )
    ops.SEARCHSORTED.dtypes("searchsorted", [e.spec.dtype for e in nodes], side)
    s = spec(wanted.spec.shape, int64, x1.device)
    return make(node(ops.SEARCHSORTED, tuple(nodes), s, side))


# --- writing -------------------------------------------------------------------------------------


def _write_arrays(x: Tensor, parts: list[Any], value: Any) -> None:
    if _masked(x, parts, value):
        return
    p = _prepare("setitem", x, parts)
    _scatter("setitem", p, _value("setitem", value, x.dtype, x.device), "set")


def _masked(x: Tensor, parts: list[Any], value: Any) -> bool:
    """Writes by `where`, if the only array is a mask and the value is the same under all of it."""
    arrays = [i for i, part in enumerate(parts) if isinstance(part, _ARRAYS)]
    mask = parts[arrays[0]]
    if len(arrays) > 1 or isinstance(mask, bool) or mask.dtype not in (bool_, np.bool_):
        return False
    others = [p for p in parts if p is not mask]
    if mask.ndim == 0 or any(not isinstance(p, slice) for p in others):
        return False
    lead, after = arrays[0], len(parts) - arrays[0] - 1
    if tuple(mask.shape) != x.shape[lead : lead + mask.ndim]:
        return False  # the general way raises the error
    e = _value("setitem", value, x.dtype, x.device)
    shape = e.spec.shape
    cut = len(shape) - after - 1  # the value's axis along the true elements
    if (cut >= 0 and shape[cut] != 1) or cut > lead:
        return False
    if cut >= 0:
        e = _moved(e, ("reshape", (*shape[:cut], *(1,) * mask.ndim, *shape[cut + 1 :])))
    if isinstance(mask, np.ndarray):
        mask = from_host(mask, bool_, x.device)
    target = _basic(x, [*parts[:lead], *[slice(None)] * mask.ndim, *parts[lead + 1 :]])
    over = [_moved(mask._expr, ("reshape", (*mask.shape, *(1,) * after)))]
    new = [fitted("setitem", e, target._expr.spec)]
    del e  # what nobody else refers to is computed in the kernel that writes
    assign("setitem", target, _chosen(over.pop(), new.pop(), target._expr))
    return True


def _chosen(mask: Expr, new: Expr, old: Expr) -> Expr:
    """`new` where the mask is true, else `old`."""
    if mask.spec.device is not old.spec.device:
        raise DeviceError(f"index: is on {mask.spec.device}, the tensor on {old.spec.device}")
    return node(ops.WHERE, (mask, new, old), old.spec)


def _scatter(name: str, p: _Prepared, e: Expr, how: str) -> None:
    """Stores or adds `e` at what the key of `p` names."""
    taken = [i.axis for i in p.indices]
    kept = [d for d in p.result if d >= 0]
    ones = [d for d in range(p.tensor.ndim) if d not in taken and d not in kept]
    rest = tuple(p.tensor.shape[d] for d in kept) + (1,) * len(ones)
    order = (*taken, *kept, *ones)
    target = view(p.tensor, ("permute", order))
    operands = [_value_rows(name, p, e, rest)]
    del e
    operands += [_index_rows(name, p, i, rest) for i in p.indices]
    attrs = (how, len(p.indices) == 1 and p.indices[0].unique)
    if p.shares:
        _update(name, target, _scattered(target, operands, attrs))
    else:
        result = _scattered(target, operands, attrs)
        back = ("permute", tuple(order.index(d) for d in range(len(order))))
        assign(name, p.sliced, _moved(result, back, ("reshape", p.sliced.shape)))


def _value_rows(name: str, p: _Prepared, e: Expr, rest: Shape) -> Expr:
    """The value as (number of places, *rest)."""
    want, n = p.tensor._expr.spec, math.prod(p.shape)
    if e.spec.size == 1 and len(e.spec.shape) <= len(p.full_shape):
        one = fitted(name, _moved(e, ("reshape", ())), spec((), want.dtype, want.device))
        return _moved(one, ("reshape", (1,) * (1 + len(rest))), ("expand", (n, *rest)))
    axes = range(len(p.full_shape))
    front = tuple(axes[p.place : p.place + len(p.shape)])
    order = front + tuple(d for d in axes if d not in front)
    e = fitted(name, e, spec(p.full_shape, want.dtype, want.device))
    return _moved(e, ("permute", order), ("reshape", (n, *rest)))


def _index_rows(name: str, p: _Prepared, i: _Index, rest: Shape) -> Expr:
    """An index's positions as (number of places, *rest)."""
    n = math.prod(p.shape)
    at = _known(name, i, p)
    column = ("reshape", (n, *(1,) * len(rest)))
    return _moved(at, ("expand", p.shape), column, ("expand", (n, *rest)))


def _checked(asked: Asked, positions: Expr) -> Expr:
    """Positions counted from the start, checked when the work runs, before anything is written."""
    s = spec(positions.spec.shape, int64, positions.spec.device)
    e = node(ops.CHECKED_INDICES, (positions,), s, asked)
    asked_at[e] = caller()
    return e


@named
def index_add(x: Tensor, dim: int, index: Any, source: Any) -> Tensor:
    """A copy of `x` to whose slices at `index` along `dim` those of `source` have been added.

    `source`: a tensor, an array or a number, broadcast. Additions to one place happen one after the
    other, in the order of `index`, float16 and bfloat16 rounded after each: the same bits
    everywhere.
    Shapes: `index` is a vector; `source` has x's shape, with its length along `dim`.
    Dtypes: `index` integers; `source` is cast to x's where that loses no kind of number.
    Raises: IndexOutOfRange, ShapeError, DTypeError, AxisError, DeviceError.

    >>> import dovetail as dt
    >>> dt.index_add(dt.zeros(3, device="reference"), 0, [0, 0, 2], [1, 2, 3]).tolist()
    [3.0, 0.0, 3.0]
    """
    return index_add_(apply(ops.COPY, (required("index_add", x),)), dim, index, source)


@named
def index_add_(x: Tensor, dim: int, index: Any, source: Any) -> Tensor:
    """`x`, after the slices of `source` along `dim` have been added to its slices at `index`.

    Parameters, order and dtypes are as for `dt.index_add`.
    Shapes: `index` is a vector; `source` has x's shape, with its length along `dim`.
    Dtypes: `index` integers; `source` is cast to x's where that loses no kind of number.
    Raises: IndexOutOfRange, ShapeError, DTypeError, AxisError, ReadOnlyError, GradientError for a
    leaf that requires a gradient.

    >>> import dovetail as dt
    >>> dt.zeros(3, device="reference").index_add_(0, [0, 0, 2], [1, 2, 3]).tolist()
    [3.0, 0.0, 3.0]
    """
    d = lay.axis("index_add", dim, required("index_add", x).ndim)
    array = _index_array("index_add", index)
    if array.ndim != 1:
        raise ShapeError(f"index_add: index is a vector, not of shape {tuple(array.shape)}")
    parts = [*[slice(None)] * d, array, *[slice(None)] * (x.ndim - d - 1)]
    p = _prepare("index_add", x, parts)
    _scatter("index_add", p, _value("index_add", source, x.dtype, x.device), "add")
    return x


@named
def scatter(x: Tensor, dim: int, index: Any, src: Any) -> Tensor:
    """A copy of `x` with the elements of `src` put in at `index` along `dim`.

    Every element keeps its own position along the other axes. In two dimensions, with dim 0:
    out[index[i, j], j] = src[i, j]. Of several elements for one place the last one along `dim`
    stays. `src` is a tensor, an array or a number, broadcast.
    Shapes: `index` has as many dimensions as x, and is no longer than it along the others; `src`
    has the shape of `index`.
    Dtypes: `index` integers; `src` is cast to x's where that loses no kind of number.
    Raises: IndexOutOfRange, ShapeError, DTypeError, AxisError, DeviceError.

    >>> import dovetail as dt
    >>> dt.scatter(dt.zeros(4, device="reference"), 0, [1, 3], [7, 9]).tolist()
    [0.0, 7.0, 0.0, 9.0]
    """
    return scatter_(apply(ops.COPY, (required("scatter", x),)), dim, index, src)


@named
def scatter_(x: Tensor, dim: int, index: Any, src: Any) -> Tensor:
    """`x`, after every element of `src` was written to its own place, but at `index` along `dim`.

    Parameters are as for `dt.scatter`: of several elements for one place the last one stays.
    Shapes: `index` has as many dimensions as x, and is no longer than it along the others; `src`
    has the shape of `index`.
    Dtypes: `index` integers; `src` is cast to x's where that loses no kind of number.
    Raises: IndexOutOfRange, ShapeError, DTypeError, AxisError, ReadOnlyError, GradientError for a
    leaf that requires a gradient.

    >>> import dovetail as dt
    >>> dt.zeros(4, device="reference").scatter_(0, [1, 3], [7, 9]).tolist()
    [0.0, 7.0, 0.0, 9.0]
    """
    return _scatter_along("scatter", x, dim, index, src, "set")


@named
def scatter_add_(x: Tensor, dim: int, index: Any, src: Any) -> Tensor:
    """`x`, after every element of `src` was added at its own place, but at `index` along `dim`.

    Parameters are as for `dt.scatter`. Additions to one place happen one after the other, in order
    along `dim`, float16 and bfloat16 rounded after each: the same bits on every device.
    Shapes: `index` has as many dimensions as x, and is no longer than it along the others; `src`
    has the shape of `index`.
    Dtypes: `index` integers; `src` is cast to x's where that loses no kind of number.
    Raises: IndexOutOfRange, ShapeError, DTypeError, AxisError, ReadOnlyError, GradientError for a
    leaf that requires a gradient.

    >>> import dovetail as dt
    >>> dt.zeros(3, device="reference").scatter_add_(0, [0, 0, 2], [1, 2, 3]).tolist()
    [3.0, 0.0, 3.0]
    """
    return _scatter_along("scatter_add", x, dim, index, src, "add")


def _scatter_along(name: str, x: Tensor, dim: int, index: Any, src: Any, how: str) -> Tensor:
    d = lay.axis(name, dim, required(name, x).ndim)
    positions, asked = _positions_along(name, x, index, d)
    shape = positions.spec.shape
    if any(n > m for i, (n, m) in enumerate(zip(shape, x.shape, strict=True)) if i != d):
        raise ShapeError(f"{name}: indices of shape {shape} reach beyond shape {x.shape}")
    e = fitted(name, _value(name, src, x.dtype, x.device), spec(shape, x.dtype, x.device))
    if asked is not None:
        positions = _checked(asked, positions)
    lengths = (*shape[:d], x.shape[d], *shape[d + 1 :])
    order = (d, *(i for i in range(x.ndim) if i != d))
    target = view(view(x, ("slice", (0,) * x.ndim, lengths, (1,) * x.ndim)), ("permute", order))
    operands = [_moved(v, ("permute", order)) for v in (e, positions)]
    del e, positions
    _update(name, target, _scattered(target, operands, (how, False)))
    return x


def _scattered(x: Tensor, operands: list[Expr], attrs: Any) -> Expr:
    """The op that updates `x`. It empties the list: what nobody else refers to needs no memory."""
    made = node(ops.SCATTER, (x._expr, *operands), x._expr.spec, attrs)
    operands.clear()
    return made


def _update(name: str, target: Tensor, result: Expr) -> None:
    """Lets an op that updates do so in the memory of `target`, a view."""
    check_writable(name, target._expr)
    note = writing(name, target, result)
    only = [result]
    del result
    try:
        run.update(only.pop(), target._expr)
    except BaseException as error:
        torn(error, name, target._expr)
        raise
    overwritten(target._expr, name)
    if note is not None:
        note()
