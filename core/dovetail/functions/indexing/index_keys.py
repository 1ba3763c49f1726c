"""What stands in the brackets of `x[key]`, by NumPy's rules.

It is integers, slices, `...`, None, integer arrays and masks.

Integers, slices, `...` and None make a view. Arrays become positions along axes, and so do masks.
Indices given as lists or NumPy arrays are checked at once, those in tensors when the work runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import index as as_integer
from types import EllipsisType
from typing import Any, NamedTuple, SupportsIndex, TypeAlias, TypeGuard

import numpy as np

from ... import layout as lay
from ...arguments import dimensions, shown
from ...backend.faults import Asked, out_of_range
from ...device_class import Device
from ...dtypes import bool_, int64
from ...errors import ArgumentError, DeviceError, DTypeError, IndexOutOfRange, ShapeError
from ...graph.expr import Expr, ask, node, spec
from ...layout import Shape
from ...memory.tracing.stacktrace import line
from ...ops import table as ops
from ...tensor.fields import expr_of
from ...tensor.host import from_host
from ...tensor.slicing import is_integer_tensor, span
from ...tensor.tensor import Tensor, strided
from ...tensor.verbs import is_viewable, view
from ...tensor.writes import array_of
from .masks import true_positions

Index: TypeAlias = (
    SupportsIndex | slice | EllipsisType | Tensor | np.ndarray | Sequence[object] | None
)
Key: TypeAlias = Index | tuple[Index, ...]
IndexArray: TypeAlias = Tensor | np.ndarray | bool  # of integers or bool; a bool is a mask
Part: TypeAlias = IndexArray | slice | EllipsisType | SupportsIndex | None
Slice: TypeAlias = tuple[int, int, int]  # start, length, step

_ARRAYS = (Tensor, np.ndarray, bool)


def is_array(part: Part) -> TypeGuard[IndexArray]:
    """Whether a part of a key makes `x[key]` a copy rather than a view."""
    return isinstance(part, _ARRAYS)


def is_mask(part: Tensor | np.ndarray) -> bool:
    """Whether an array of a key is of bool."""
    return part.dtype in (bool_, np.bool_)


# --- keys -----------------------------------------------------------------------------------------


def key_parts(x: Tensor, key: Key) -> list[Part]:
    """The key with an entry for every axis of `x`, a None for each new one, and no `...`.

    A `...` that stands for no axis stays: NumPy lets it separate index arrays.
    """
    parts: list[Any] = list(key) if type(key) is tuple else [key]  # unchecked until here
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
    rest: list[Part] = [slice(None)] * (x.ndim - used)
    if dots < 0:
        return parts + rest
    return parts[:dots] + (rest or [Ellipsis]) + parts[dots + 1 :]


def parts_along(x: Tensor, axis: int, array: Tensor | np.ndarray) -> list[Part]:
    """The parts of a key that has an array along one axis, and all of the others."""
    return [*[slice(None)] * axis, array, *[slice(None)] * (x.ndim - axis - 1)]


def basic_view(x: Tensor, parts: Sequence[Part]) -> Tensor:
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


def _slice(part: slice, extent: int) -> Slice:
    try:
        return span(part, extent)
    except ValueError:
        raise ArgumentError("index: the step of a slice cannot be zero") from None
    except TypeError:
        raise DTypeError(f"index: {part} needs integers or None") from None


def _integer(part: object) -> int:
    try:
        return as_integer(part)  # type: ignore[arg-type]  # it says whether that is an integer
    except TypeError:
        raise DTypeError(
            f"index: {shown(part)} is {type(part).__name__}; indices are integers, slices, '...', "
            "None, and arrays of integers or bool"
        ) from None


def _position(part: object, axis: int, extent: int) -> int:
    """A non-negative position along an axis. Raises: IndexOutOfRange; DTypeError for no integer."""
    i = _integer(part)
    if not -extent <= i < extent:
        raise out_of_range(Asked("index", axis, extent), i)
    return i + extent if i < 0 else i


def check_parts(parts: Sequence[Part]) -> None:
    """Raises what is wrong with slices and integers of a key, of whatever tensor it is."""
    for part in parts:
        if type(part) is slice:
            _slice(part, 0)
        elif part is not None and part is not Ellipsis and not is_array(part):
            _integer(part)


# --- arrays in keys -------------------------------------------------------------------------------


def _as_array(part: object) -> IndexArray | int:
    """A tensor or NumPy array of integers or bool; of no dimension on the host: an integer or bool.

    Raises: DTypeError.
    """
    if isinstance(part, Tensor):
        if part.dtype.kind not in "biu":
            raise DTypeError(
                f"index: an index tensor is of integers or bool, not {part.dtype.name}"
            )
        return part
    array = array_of("index", part)
    if array.size == 0 and isinstance(part, list):
        array = array.astype(np.int64)
    if array.dtype.kind not in "biu":
        raise DTypeError(f"index: an index array is of integers or bool, not {array.dtype}")
    return array if array.ndim else array.item()


def _axes_taken(part: IndexArray | int) -> int:
    if isinstance(part, (bool, int)):
        return int(type(part) is int)
    return part.ndim if is_mask(part) else 1


def index_array(name: str, indices: object) -> Tensor | np.ndarray:
    """The indices that a function was given, in an array of integers. Raises: DTypeError."""
    if is_integer_tensor(indices):
        return indices
    array = indices if isinstance(indices, Tensor) else array_of(name, indices)
    if array.size == 0 and isinstance(indices, (list, tuple)) and not isinstance(array, Tensor):
        array = array.astype(np.int64)
    if array.dtype.kind not in "biu":
        raise DTypeError(f"{name}: indices are integers, not {array.dtype}; see astype()")
    if is_mask(array):
        raise DTypeError(f"{name}: indices are integers, not bool; see x[mask]")
    return array


class Positions(NamedTuple):
    """Positions along an axis of the merged tensor, which is `of` the user's.

    `known`: in range and not negative.
    """

    axis: int
    of: int
    node: Expr
    known: bool
    unique: bool


def positions(name: str, part: IndexArray, x: Tensor, d: int, axis: int) -> tuple[Positions, int]:
    """What an index array says of axis `d` of `x`, and how many axes of that it stands for."""
    if isinstance(part, Tensor) and part.device is not x.device:
        raise DeviceError(f"index: is on {part.device}, the tensor on {x.device}; see x.to(device)")
    if isinstance(part, bool) or (part.ndim == 0 and is_mask(part)):
        one = from_host(np.zeros(int(bool(part)), np.int64), int64, x.device)  # along a new axis
        return Positions(axis, d, one._expr, True, True), 0
    if is_mask(part):
        used = part.ndim
        # NumPy takes a size of 0 for any: nothing is true
        if any(m not in (n, 0) for m, n in zip(part.shape, x.shape[d : d + used], strict=True)):
            raise IndexOutOfRange(
                f"index: a mask of shape {tuple(part.shape)} does not fit axes {d}..{d + used - 1} "
                f"of shape {x.shape}"
            )
        return Positions(axis, d, true_positions(part, x.device)._expr, True, True), used
    if isinstance(part, Tensor):
        return Positions(axis, d, strided(name, part)._expr, False, False), 1
    found = _checked_on_host(part, Asked(name, d, x.shape[d]), x.device)
    return Positions(axis, d, found._expr, True, False), 1


def _checked_on_host(part: np.ndarray, asked: Asked, device: Device) -> Tensor:
    """Host indices in a tensor, not negative. Raises: IndexOutOfRange."""
    low, high = (int(part.min()), int(part.max())) if part.size else (0, -1)
    extent = asked.size
    if low < -extent or high >= extent:
        raise out_of_range(asked, low if low < -extent else high)
    part = part.astype(np.int64)
    return from_host(np.where(part < 0, part + extent, part) if low < 0 else part, int64, device)


def positions_along(name: str, x: Tensor, indices: object, d: int) -> tuple[Expr, Asked | None]:
    """The node of an index array with as many dimensions as `x`, and its check."""
    array = index_array(name, indices)
    if array.ndim != x.ndim:
        raise ShapeError(
            f"{name}: indices of shape {tuple(array.shape)} for shape {x.shape}: "
            "needs as many dimensions"
        )
    found, _ = positions(name, array, x, d, d)
    return found.node, None if found.known else Asked(name, d, x.shape[d])


def checked(asked: Asked, e: Expr) -> Expr:
    """Positions counted from the start, checked when the work runs, before anything is written."""
    s = spec(e.spec.shape, int64, e.spec.device)
    made = node(ops.CHECKED_INDICES, (e,), s, (asked, True, None))
    ask(made, line())
    return made


# --- a key with arrays ----------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Selection:
    """What a key with arrays selects.

    It is a tensor after the basic part of the key, with one axis under each array.
    """

    sliced: Tensor
    merged: Tensor  # `sliced` with axes merged; each is an index's, one of `result`'s, or of size 1
    shares: bool = True  # whether those two share memory
    indices: list[Positions] = field(default_factory=list)
    result: list[int] = field(default_factory=list)  # axes of `merged`, -1 for new ones
    front: int = 0  # how many of those stand before the axes of the indices
    shape: Shape = ()  # of the indices together

    @property
    def full_shape(self) -> Shape:
        """The result's shape."""
        sizes = tuple(1 if d < 0 else self.merged.shape[d] for d in self.result)
        return sizes[: self.front] + self.shape + sizes[self.front :]

    def asked(self, name: str, i: Positions) -> Asked:
        """What is to be checked of an index."""
        return Asked(name, i.of, self.merged.shape[i.axis])

    def known(self, name: str, i: Positions) -> Expr:
        """An index's positions, counted from the start, checked when the work runs."""
        return i.node if i.known else checked(self.asked(name, i), i.node)


def select(name: str, x: Tensor, parts: Sequence[Part]) -> Selection:
    """Slices, merges the axes under each mask, and sorts out what the result's axes are."""
    found = Selection(x, x)
    basic: list[Slice] = []  # of each axis of x
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
            if is_array(part):
                index, used = positions(name, part, x, d, len(merged))
                found.indices.append(index)
                taken = [(0, n, 1) for n in x.shape[d : d + used]]
            else:
                taken = [(_position(part, d, x.shape[d]), 1, 1)]
        basic += taken
        merged.append(math.prod(n for _, n, _ in taken))
    # side by side, the indices' axes stay there; else they come first
    found.front = before[0][1] if len(set(before)) == 1 else 0
    found.shape = _joint_shape([i.node.spec.shape for i in found.indices])
    starts, lengths, steps = (tuple(b[k] for b in basic) for k in range(3))
    found.sliced = view(x, ("slice", starts, lengths, steps))
    merge = ("reshape", tuple(merged))
    found.shares = is_viewable(found.sliced, merge)
    found.merged = view(found.sliced, merge)
    return found


def along(name: str, x: Tensor, index: Tensor, d: int) -> Selection:
    """As `select`, for a tensor of integers along one axis, and all of the others."""
    found, _ = positions(name, index, x, d, d)
    others = [k for k in range(x.ndim) if k != d]
    return Selection(x, x, True, [found], others, d, expr_of(index).spec.shape)


def _joint_shape(shapes: Sequence[Shape]) -> Shape:
    try:
        return lay.broadcast_shapes("index", *shapes)
    except ShapeError as e:
        raise IndexOutOfRange(f"index arrays do not fit together: {e}") from None
