"""Strided layout: pure functions of shape, strides and offset (all in elements).

No memory, no dtype.

A *move* is an index transformation as plain data, so that it can be recorded, hashed and replayed
on any layout:
    ("permute", axes)  ("expand", shape)  ("slice", starts, lengths, steps)  ("reshape", shape)
`slice` with a negative step flips; axes of size 1 are added and dropped by `reshape`.
`("pad", axis, start, size)` makes an axis part of a longer one. Only the positions of the original
axis may be read: kernels see joined tensors so, and no tensor is ever laid out so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from .argument_checks import dimensions, integer, integers, shown
from .errors import AxisError, ShapeError

__all__ = ["sparse_bsr", "sparse_coo", "sparse_csc", "sparse_csr", "strided"]

ELEMENTS_MAX = 1 << 63  # sizes, strides and offsets are int64; so is a tensor's number of bytes
Shape = tuple[int, ...]
Move: TypeAlias = tuple[Any, ...]  # a name, then shapes: `("slice", starts, lengths, steps)`


class Layout:
    """The layout of a tensor's memory: `x.layout`. One object for each, compared with `is`.

    - `name`: the name, such as "sparse_coo".
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name
        _LAYOUTS.setdefault(name, self)

    def __reduce__(self) -> tuple[Callable[[str], Layout], tuple[str]]:
        return layout, (self.name,)

    def __repr__(self) -> str:
        return f"dovetail.{self.name}"


_LAYOUTS: dict[str, Layout] = {}


def layout(name: str) -> Layout:
    """Return the unique layout of this name; create it on first use."""
    return _LAYOUTS.get(name) or Layout(name)


strided = Layout("strided")
sparse_coo = Layout("sparse_coo")
sparse_csr = Layout("sparse_csr")
sparse_csc = Layout("sparse_csc")
sparse_bsr = Layout("sparse_bsr")


class StridedView(NamedTuple):
    """A strided view: element [i, j, ...] is at `offset + i * strides[0] + j * ...`."""

    shape: Shape
    strides: Shape
    offset: int


def row_major_strides(shape: Shape) -> Shape:
    """Return the row-major strides of a shape, in elements.

    An empty tensor has the strides that it would have with ones in place of its zeros. The planner
    calls this function, since its sizes may be symbolic, which no cache should keep.
    """
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


contiguous_strides = lru_cache(4096)(row_major_strides)


def contiguous(shape: Shape) -> StridedView:
    """Return the dense row-major strided view of a shape, at offset 0."""
    return StridedView(shape, contiguous_strides(shape), 0)


def row_major(shape: Shape) -> StridedView:
    """Return the view that `contiguous` returns, for planning."""
    return StridedView(shape, row_major_strides(shape), 0)


def is_contiguous(shape: Shape, strides: Shape) -> bool:
    """Return True if the layout is dense and row-major; axes of size 1 do not count."""
    if 0 in shape:
        return True
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1:
            if stride != step:
                return False
            step *= extent
    return True


def element_span(layout: StridedView) -> tuple[int, int]:
    """Return the offset of the lowest element touched, and one past that of the highest.

    An empty layout gives (offset, offset).
    """
    if 0 in layout.shape:
        return layout.offset, layout.offset
    low = high = layout.offset
    for extent, stride in zip(layout.shape, layout.strides, strict=True):
        reach = (extent - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + 1


def has_repeated_elements(layout: StridedView) -> bool:
    """Return True if an axis has stride 0, so that elements repeat; other overlaps do not count.

    Writes to such a layout have no meaning.
    """
    return 0 not in layout.shape and any(
        n > 1 and s == 0 for n, s in zip(layout.shape, layout.strides, strict=True)
    )


def apply_move(layout: StridedView, m: Move) -> StridedView | None:
    """Return the layout after one move; None for a reshape that these strides do not permit."""
    return _MOVES[m[0]](layout, *m[1:])


def _permute(a: StridedView, axes: Shape) -> StridedView:
    """Return the view with axis `axes[i]` as axis i."""
    return StridedView(tuple(a.shape[i] for i in axes), tuple(a.strides[i] for i in axes), a.offset)


def _expand(a: StridedView, shape: Shape) -> StridedView:
    """Broadcast a view to a shape: new and size-1 axes get stride 0."""
    lead = len(shape) - len(a.shape)
    strides = [0] * lead
    for old, new, stride in zip(a.shape, shape[lead:], a.strides, strict=True):
        strides.append(stride if old == new else 0)
    return StridedView(shape, tuple(strides), a.offset)


def _slice(a: StridedView, starts: Shape, lengths: Shape, steps: Shape) -> StridedView:
    """Keep `lengths` positions of each axis from `starts` on, `steps` apart."""
    offset = a.offset
    if 0 not in lengths:
        offset += sum(s * t for s, t in zip(starts, a.strides, strict=True))
    return StridedView(lengths, tuple(s * t for s, t in zip(a.strides, steps, strict=True)), offset)


def _reshape(a: StridedView, shape: Shape) -> StridedView | None:
    """View as another shape, or return None if the strides do not permit that."""
    strides = reshape_strides(a.shape, a.strides, shape)
    return None if strides is None else StridedView(shape, strides, a.offset)


def _pad(a: StridedView, axis: int, start: int, size: int) -> StridedView:
    """Lengthen an axis to `size`, its positions from `start` on; the others must not be read."""
    shape = (*a.shape[:axis], size, *a.shape[axis + 1 :])
    return StridedView(shape, a.strides, a.offset - start * a.strides[axis])


_MOVES: dict[str, Callable[..., StridedView | None]] = {
    "permute": _permute,
    "expand": _expand,
    "slice": _slice,
    "reshape": _reshape,
    "pad": _pad,
}


def slice_along(shape: Shape, axis: int, start: int, length: int, step: int = 1) -> Move:
    """Return the move that keeps `length` positions along one axis, `step` apart."""
    starts = tuple([start if d == axis else 0 for d in range(len(shape))])
    lengths = (*shape[:axis], length, *shape[axis + 1 :])
    return "slice", starts, lengths, tuple([step if d == axis else 1 for d in range(len(shape))])


def move_shape(shape: Shape, m: Move) -> Shape:
    """Return the shape after a move."""
    if m[0] == "permute":
        return tuple(shape[i] for i in m[1])
    if m[0] == "pad":
        return (*shape[: m[1]], m[3], *shape[m[1] + 1 :])
    return m[2] if m[0] == "slice" else m[1]  # type: ignore[no-any-return]  # a move's are shapes


def reshape_strides(old: Shape, strides: Shape, new: Shape) -> Shape | None:
    """Return the strides of a view of another shape, or None if a copy is needed.

    Both shapes have the same size. Source: the grouping of axes that NumPy's
    `attempt_nocopy_reshape` documents.
    """
    if 0 in old or 0 in new:
        return row_major_strides(new)
    pairs = [(n, s) for n, s in zip(old, strides, strict=True) if n != 1]
    out = [0] * len(new)
    j = 0
    i = 0
    while i < len(pairs):
        extent, k = pairs[i][0], i + 1
        start, want = j, 1
        while want != extent:
            if want < extent:
                if j == len(new):
                    return None
                want *= new[j]
                j += 1
            else:
                if k == len(pairs) or pairs[k - 1][1] != pairs[k][1] * pairs[k][0]:
                    return None
                extent *= pairs[k][0]
                k += 1
        step = pairs[k - 1][1]
        for d in range(j - 1, start - 1, -1):
            out[d] = step
            step *= new[d]
        i = k
    for d in range(len(new)):
        if new[d] == 1:
            out[d] = row_major_strides(new)[d]
    return tuple(out)


@lru_cache(4096)
def broadcast_shapes(op: str, *shapes: Shape) -> Shape:
    """Return the common shape. Raises: ShapeError naming the op and the shapes if there is none.

    - `op`: the function that errors name.
    - `shapes`: the shapes.
    """
    result: list[int] = []
    for d in range(1, max(map(len, shapes), default=0) + 1):
        extents = {s[-d] for s in shapes if len(s) >= d} - {1}
        if len(extents) > 1:
            listed = " and ".join(map(str, shapes))
            raise ShapeError(
                f"{op}: shapes {listed} do not broadcast: axis {-d} has sizes {sorted(extents)}; "
                "sizes must be equal or 1, counted from the last axis (see dt.expand_dims)"
            )
        result.append(extents.pop() if extents else 1)
    return tuple(reversed(result))


def axis(op: str, index: int, ndim: int) -> int:
    """Return an axis from 0. Raises: AxisError out of range, ArgumentTypeError for no int.

    - `op`: the function that errors name.
    - `index`: the axis; negative ones count from the end.
    - `ndim`: the number of axes.
    """
    if type(index) is not int:
        index = integer(op, index, "axis")
    if not -ndim <= index < ndim:
        valid = f"{-ndim}..{ndim - 1}" if ndim else "none: the tensor is 0-dimensional"
        raise AxisError(
            f"{op}: axis {shown(index)} is out of range for {ndim} dimensions (allowed: {valid})"
        )
    return index % ndim


def axes(op: str, which: int | Sequence[int] | None, ndim: int) -> Shape:
    """Return non-negative, distinct, sorted axes; all of them for None.

    Raises: AxisError, ArgumentTypeError.
    """
    return tuple(sorted(ordered_axes(op, which, ndim)))


def ordered_axes(op: str, which: int | Sequence[int] | None, ndim: int) -> Shape:
    """Return non-negative, distinct axes in the order given; all of them for None.

    Raises: AxisError, ArgumentTypeError.
    """
    if which is None:
        return tuple(range(ndim))
    numbers = tuple([axis(op, i, ndim) for i in integers(op, which, "axis")])
    if len(set(numbers)) < len(numbers):
        raise AxisError(f"{op}: axes must be distinct, got {shown(which)}")
    return numbers


@lru_cache(4096)
def resolve_reshape(op: str, old: Shape, new: Shape) -> Shape:
    """Return `new` with its single -1 worked out. Raises: ShapeError unless the sizes agree."""
    size = math.prod(old)
    wanted = tuple(new)
    if wanted.count(-1) == 1 and all(n >= 0 for n in wanted if n != -1):
        others = math.prod(n for n in wanted if n != -1)
        if others and size % others == 0:
            return dimensions(op, [size // others if n == -1 else n for n in wanted])
    elif all(n >= 0 for n in wanted) and math.prod(wanted) == size:
        return dimensions(op, wanted)
    raise ShapeError(
        f"{op}: shape {old} has {size} elements and cannot become {shown(wanted)}; "
        "one size may be -1, and the product has to be the same"
    )


def coalesce(extents: Shape, strides: Sequence[Shape]) -> tuple[Shape, list[Shape]]:
    """Return extents and strides with axes merged that all strides walk as one, without sizes 1."""
    long_axes = [d for d, n in enumerate(extents) if n != 1]
    out: list[int] = []
    columns: list[list[int]] = [[] for _ in strides]
    for d in long_axes:
        if out and all(c[-1] == s[d] * extents[d] for c, s in zip(columns, strides, strict=True)):
            out[-1] *= extents[d]
            for c, s in zip(columns, strides, strict=True):
                c[-1] = s[d]
        else:
            out.append(extents[d])
            for c, s in zip(columns, strides, strict=True):
                c.append(s[d])
    return tuple(out), [tuple(c) for c in columns]
