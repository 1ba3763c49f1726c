"""Keys of `x[key]`, by NumPy's rules.

A key has integers, slices, `...`, None, integer arrays and masks. Integers, slices, `...` and None
make a view. Integer arrays and masks become positions along axes. Indices in lists or NumPy arrays
are checked at once, indices in tensors when the work runs.
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
from ...argument_checks import dimensions, shown
from ...backend.faults import IndexPurpose, out_of_range_error
from ...device_class import Device
from ...dtypes import bool_, int64
from ...engine import tracer_api
from ...errors import ArgumentError, DeviceError, DTypeError, OutOfRangeError, ShapeError
from ...graph.expr import Expr
from ...layout import Shape
from ...settings import flags
from ...tensor.c_fields import expr_of
from ...tensor.host import from_host, warn_if_pair_of
from ...tensor.primitives import is_viewable, view
from ...tensor.slicing import is_integer_tensor, resolve_slice
from ...tensor.tensor import Tensor, strided
from ...tensor.writes import array_of
from ..known_calls import record_check
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
    """Return True if a part of a key makes `x[key]` a copy instead of a view."""
    return isinstance(part, _ARRAYS)


def is_mask(part: Tensor | np.ndarray) -> bool:
    """Return True if an array of a key is of bool."""
    return part.dtype in (bool_, np.bool_)


# --- keys -----------------------------------------------------------------------------------------


def key_parts(x: Tensor, key: Key) -> list[Part]:
    """Return the key with one entry per axis of `x`, a None for each new axis, and no `...`.

    A `...` that stands for no axis stays, because in NumPy it separates index arrays.
    """
    parts: list[Any] = list(key) if isinstance(key, tuple) else [key]  # types are not checked yet
    used, dots = 0, -1
    for i, part in enumerate(parts):
        if type(part) is slice or type(part) is int:
            used += 1
        elif part is Ellipsis:
            if dots >= 0:
                raise OutOfRangeError("index: expected at most one '...', got several")
            dots = i
        elif isinstance(part, (list, np.ndarray, np.generic, Tensor)) or _is_array_like(part):
            parts[i] = part = _as_array(part)
            used += _count_axes(part)
        elif part is not None and not isinstance(part, bool):
            used += 1
    if used > x.ndim:
        raise OutOfRangeError(
            f"index: expected at most {x.ndim} indices for shape {x.shape}, got {used}"
        )
    full_slices: list[Part] = [slice(None)] * (x.ndim - used)
    if dots < 0:
        return parts + full_slices
    return parts[:dots] + (full_slices or [Ellipsis]) + parts[dots + 1 :]


def parts_along(x: Tensor, axis: int, array: Tensor | np.ndarray) -> list[Part]:
    """Return the parts of a key with an array along one axis and full slices elsewhere."""
    return [*[slice(None)] * axis, array, *[slice(None)] * (x.ndim - axis - 1)]


def basic_view(x: Tensor, parts: Sequence[Part]) -> Tensor:
    """Return the view of integers, slices and None.

    Raises: OutOfRangeError for an integer outside of its axis, DTypeError for a part of another
    type.
    """
    warn_if_pair_of(x)
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
            start, length, step = _resolve_slice(part, extent)
            shape.append(length)
        else:
            start, length, step = _resolve_position(part, d, extent), 1, 1
            reshaped = True
        starts.append(start)
        lengths.append(length)
        steps.append(step)
    sliced = view(x, ("slice", tuple(starts), tuple(lengths), tuple(steps)))
    return view(sliced, ("reshape", dimensions("index", shape))) if reshaped else sliced


def _resolve_slice(part: slice, extent: int) -> Slice:
    """Return a slice's start, count and step. Raises: ArgumentError for step 0, DTypeError."""
    try:
        return resolve_slice(part, extent)
    except ValueError:
        raise ArgumentError("index: the step of a slice must not be 0") from None
    except TypeError:
        raise DTypeError(
            f"index: the parts of a slice must be integers or None, got {part}"
        ) from None


def _require_integer(part: object) -> int:
    """Return a part of a key as an int. Raises: DTypeError unless it is an integer."""
    try:
        return as_integer(part)  # type: ignore[arg-type]  # raises TypeError unless an integer
    except TypeError:
        raise DTypeError(
            f"index: expected integers, slices, '...', None and arrays of integers or bool, "
            f"got {shown(part)} of type {type(part).__name__}"
        ) from None


def _resolve_position(part: object, axis: int, extent: int) -> int:
    """Return a position from 0 on an axis. Raises: OutOfRangeError; DTypeError for no integer."""
    i = _require_integer(part)
    if not -extent <= i < extent:
        raise out_of_range_error(IndexPurpose("index", axis, extent), i)
    return i + extent if i < 0 else i


def check_parts(parts: Sequence[Part]) -> None:
    """Raise the errors of slices and integers that do not depend on the tensor's shape."""
    for part in parts:
        if type(part) is slice:
            _resolve_slice(part, 0)
        elif part is not None and part is not Ellipsis and not is_array(part):
            _require_integer(part)


# --- arrays in keys -------------------------------------------------------------------------------


def _is_array_like(part: object) -> bool:
    """Return True for sequences, such as a range, and arrays of other libraries; not for text."""
    if hasattr(type(part), "__array__"):
        return True
    return isinstance(part, Sequence) and not isinstance(part, (str, bytes))


def _as_array(part: object) -> IndexArray | int:
    """Return a tensor or an array of integers or bool; a 0-dimensional array gives a scalar.

    Raises: DTypeError.
    """
    part = tracer_api.read_stand_in(part)
    if isinstance(part, Tensor):
        if part.dtype.kind not in "biu":
            raise DTypeError(
                f"index: an index tensor must hold integers or bool, got {part.dtype.name}"
            )
        return part
    if flags.captures and type(part) is list:  # a capture may be for the values of numbers
        part = [x.item() if isinstance(x, Tensor) and not x.ndim else x for x in part]
    array = array_of("index", part)
    if array.size == 0 and isinstance(part, Sequence):
        array = array.astype(np.int64)
    if array.dtype.kind not in "biu":
        raise DTypeError(f"index: an index array must hold integers or bool, got {array.dtype}")
    return array if array.ndim else array.item()


def _count_axes(part: IndexArray | int) -> int:
    """Return the number of axes that a part indexes: of a mask all, of a bool 0, else 1."""
    if isinstance(part, (bool, int)):
        return int(type(part) is int)
    return part.ndim if is_mask(part) else 1


def index_array(name: str, indices: object) -> Tensor | np.ndarray:
    """Return a function's indices as an integer array. Raises: DTypeError for others, also bool."""
    if is_integer_tensor(indices):
        return indices
    array = indices if isinstance(indices, Tensor) else array_of(name, indices)
    if array.size == 0 and isinstance(indices, (list, tuple)) and not isinstance(array, Tensor):
        array = array.astype(np.int64)
    if array.dtype.kind not in "biu":
        raise DTypeError(
            f"{name}: indices must be integers, got {array.dtype}; use index.astype(dt.int64)"
        )
    if is_mask(array):
        raise DTypeError(f"{name}: indices must be integers, got bool; use x[mask]")
    return array


class Positions(NamedTuple):
    """Positions along an axis of the merged tensor."""

    axis: int
    source_axis: int  # the axis of the user's tensor
    node: Expr
    in_range: bool  # True if all are in range and not negative
    unique: bool


def positions(name: str, part: IndexArray, x: Tensor, d: int, axis: int) -> tuple[Positions, int]:
    """Return an index array's positions along axis `d`, and its axes; the host counts a mask's."""
    if isinstance(part, Tensor) and part.device is not x.device:
        raise DeviceError(
            f"index: the index is on {part.device} and the tensor on {x.device}; "
            "move one with x.to(device)"
        )
    if isinstance(part, bool) or (part.ndim == 0 and is_mask(part)):
        one = from_host(np.zeros(int(bool(part)), np.int64), int64, x.device)  # along a new axis
        return Positions(axis, d, one._expr, True, True), 0
    if is_mask(part):
        mask_axes = part.ndim
        # as in NumPy, a size of 0 fits every size: no element is true
        if any(
            m not in (n, 0) for m, n in zip(part.shape, x.shape[d : d + mask_axes], strict=True)
        ):
            raise OutOfRangeError(
                f"index: a mask of shape {tuple(part.shape)} does not fit axes "
                f"{d}..{d + mask_axes - 1} of shape {x.shape}"
            )
        return Positions(axis, d, true_positions(part, x.device)._expr, True, True), mask_axes
    if isinstance(part, Tensor):
        return Positions(axis, d, strided(name, part)._expr, False, False), 1
    host_positions = _check_on_host(part, IndexPurpose(name, d, x.shape[d]), x.device)
    return Positions(axis, d, host_positions._expr, True, False), 1


def _check_on_host(part: np.ndarray, check: IndexPurpose, device: Device) -> Tensor:
    """Return host indices as a tensor, none negative. Raises: OutOfRangeError if one is outside."""
    low, high = (int(part.min()), int(part.max())) if part.size else (0, -1)
    extent = check.size
    if low < -extent or high >= extent:
        raise out_of_range_error(check, low if low < -extent else high)
    part = part.astype(np.int64)
    return from_host(np.where(part < 0, part + extent, part) if low < 0 else part, int64, device)


def positions_along(
    name: str, x: Tensor, indices: object, d: int
) -> tuple[Expr, IndexPurpose | None]:
    """Return the expression of indices with x's number of axes, and their check or None."""
    array = index_array(name, indices)
    if array.ndim != x.ndim:
        raise ShapeError(
            f"{name}: indices must have {x.ndim} dimensions, as shape {x.shape}, "
            f"got shape {tuple(array.shape)}"
        )
    index, _ = positions(name, array, x, d, d)
    return index.node, None if index.in_range else IndexPurpose(name, d, x.shape[d])


# --- a key with arrays ----------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Selection:
    """The elements that a key with arrays selects.

    `merged` is the tensor after the basic part of the key, with one axis under each array.
    """

    sliced: Tensor
    merged: Tensor  # `sliced` with axes merged: those of indices, those of `result`, and of size 1
    shares_memory: bool = True  # True if `sliced` and `merged` share memory
    indices: list[Positions] = field(default_factory=list)
    result: list[int] = field(default_factory=list)  # axes of `merged`, -1 for new ones
    leading_axes: int = 0  # the number of `result`'s axes before the axes of the indices
    shape: Shape = ()  # the broadcast shape of the indices

    @property
    def full_shape(self) -> Shape:
        """Return the result's shape."""
        sizes = tuple(1 if d < 0 else self.merged.shape[d] for d in self.result)
        return sizes[: self.leading_axes] + self.shape + sizes[self.leading_axes :]

    def index_check(self, name: str, i: Positions) -> IndexPurpose:
        """Return the check of an index."""
        return IndexPurpose(name, i.source_axis, self.merged.shape[i.axis])

    def in_range_positions(self, name: str, i: Positions) -> Expr:
        """Return an index's positions from the start, checked when the work runs."""
        return i.node if i.in_range else record_check(self.index_check(name, i), i.node)


def select(name: str, x: Tensor, parts: Sequence[Part]) -> Selection:
    """Slice `x`, merge the axes under each mask, and determine the axes of the result."""
    selection = Selection(x, x)
    basic: list[Slice] = []  # one for each axis of x
    merged_sizes: list[int] = []
    before: list[tuple[int, int]] = []  # for each index and integer: slices and axes in front of it
    others = 0
    for part in parts:
        d = len(basic)
        if part is None or part is Ellipsis:
            others += 1
            selection.result += [-1] * (part is None)
            continue
        if isinstance(part, slice):
            others += 1
            selection.result.append(len(merged_sizes))
            slices = [_resolve_slice(part, x.shape[d])]
        else:
            before.append((others, len(selection.result)))
            if is_array(part):
                index, used = positions(name, part, x, d, len(merged_sizes))
                selection.indices.append(index)
                slices = [(0, n, 1) for n in x.shape[d : d + used]]
            else:
                slices = [(_resolve_position(part, d, x.shape[d]), 1, 1)]
        basic += slices
        merged_sizes.append(math.prod(n for _, n, _ in slices))
    # the axes of adjacent indices stay in place; those of separated ones come first
    selection.leading_axes = before[0][1] if len(set(before)) == 1 else 0
    selection.shape = _joint_shape([i.node.spec.shape for i in selection.indices])
    starts, lengths, steps = (tuple(b[k] for b in basic) for k in range(3))
    selection.sliced = view(x, ("slice", starts, lengths, steps))
    merge = ("reshape", tuple(merged_sizes))
    selection.shares_memory = is_viewable(selection.sliced, merge)
    selection.merged = view(selection.sliced, merge)
    return selection


def select_along(name: str, x: Tensor, index: Tensor, d: int) -> Selection:
    """Return the selection of a tensor of integers along one axis, with all others complete."""
    index_positions, _ = positions(name, index, x, d, d)
    others = [k for k in range(x.ndim) if k != d]
    return Selection(x, x, True, [index_positions], others, d, expr_of(index).spec.shape)


def _joint_shape(shapes: Sequence[Shape]) -> Shape:
    """Return the broadcast shape of index arrays. Raises: OutOfRangeError if there is none."""
    try:
        return lay.broadcast_shapes("index", *shapes)
    except ShapeError as e:
        raise OutOfRangeError(f"index: index arrays do not fit together: {e}") from None
