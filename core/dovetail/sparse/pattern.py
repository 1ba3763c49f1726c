"""Positions of a sparse tensor's entries, and their cached order, runs and row pointers.

A pattern is immutable, and shared by all tensors with these positions, so each derived tensor is
computed once. A pattern does not refer to values.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from weakref import ref

import dovetail as dt
from dovetail.extend import is_capturing, order_of, rows_at, scatter_rows, uncaptured

from .sparse_ops import Runs

Tensor = dt.Tensor
Shape = tuple[int, ...]
R = TypeVar("R")
KEY_BITS_MAX = 62  # of a linearised position; larger shapes are sorted by several keys


def cache_on_pattern(f: Callable[..., R]) -> Callable[..., R]:
    """Decorate a function that derives tensors from a pattern and caches them on the pattern.

    During a capture, the function of a pattern from outside runs uncaptured, as for a constant. Of
    a pattern that is built in the capture, a copy is used and the result is not cached, because
    captured tensors belong to one run. Tensors that `flattening` passed with an argument stay.
    """

    @functools.wraps(f)
    def wrapper(p: Pattern, *args: Any) -> R:
        """Call `f`, uncached during a capture; evaluate results of patterns from outside."""
        if not is_capturing():
            return f(p, *args)
        if p.is_captured:
            copy = p.with_coords(p.coords, unsorted_dims=p.unsorted_dims, unique=p.unique)
            copy.transposed_from = p.transposed_from
            copy._bounds, copy._transpose, copy.derived = p._bounds, p._transpose, {**p.derived}
            return f(copy, *args)
        with uncaptured():
            result = f(p, *args)
            dt.evaluate(*_collect_tensors(result))
            return result

    return wrapper


def _collect_tensors(result: Any) -> list[Tensor]:
    """Return all tensors in a derived value."""
    if isinstance(result, (tuple, list)):
        return [t for part in result for t in _collect_tensors(part)]
    if isinstance(result, Pattern):
        return list(result.coords)
    if isinstance(result, Runs):
        return list(result.operands)
    return [result] if isinstance(result, Tensor) else []


class Pattern:
    """Positions of entries: a vector of int64 for each sparse dimension (`coords`), of one length.

    `unsorted_dims`: the number of leading dimensions by which a stable sort makes the order
    lexicographic; 0 if it is already. `unique`: no position occurs twice.
    """

    __slots__ = (
        "__weakref__",
        "_bounds",
        "_coalesced",
        "_coalesced_transpose",
        "_indices",
        "_keys",
        "_order",
        "_reduced",
        "_source_and_order",
        "_transpose",
        "coords",
        "count",
        "derived",
        "device",
        "is_captured",
        "shape",
        "transposed_from",
        "unique",
        "unsorted_dims",
    )

    def __init__(
        self,
        coords: Sequence[Tensor],
        shape: Shape,
        count: int,
        device: dt.Device,
        *,
        unsorted_dims: int | None = None,
        unique: bool = False,
        indices: Tensor | None = None,
    ) -> None:
        self.coords, self.shape, self.count, self.device = tuple(coords), shape, count, device
        self.unsorted_dims = len(shape) if unsorted_dims is None else unsorted_dims
        self.unique = unique
        self.is_captured = is_capturing()
        if count <= 1:
            self.unsorted_dims, self.unique = 0, True
        self._indices = indices
        self._order: Tensor | None = None
        self._keys: dict[tuple[int, ...], Tensor] = {}
        self._coalesced: tuple[Pattern, Runs | None] | None = None
        self._bounds: Tensor | None = None
        self._transpose: tuple[Pattern, Tensor] | None = None
        self._coalesced_transpose: tuple[Pattern, Runs | None] | None = None
        self._reduced: dict[Shape, tuple[Runs, Pattern]] = {}
        self.derived: dict[object, Any] = {}  # cached results of functions in other modules
        # for a sorted transpose: a weak reference to its source, and the order of its entries here
        self._source_and_order: tuple[ref[Pattern], Tensor] | None = None
        # for an unsorted transpose: its source, which caches the order of the transpose
        self.transposed_from: Pattern | None = None

    def __reduce__(self) -> Any:  # cached tensors are left out, and computed again on use
        return _rebuild, (
            self.coords,
            self.shape,
            self.count,
            self.device,
            self.unsorted_dims,
            self.unique,
        )

    @property
    def is_coalesced(self) -> bool:
        """True if positions are in lexicographic order without repetition."""
        return self.unsorted_dims == 0 and self.unique

    @property
    def size(self) -> int:
        """The number of elements of the sparse dimensions."""
        return math.prod(self.shape)

    @property
    @cache_on_pattern
    def indices(self) -> Tensor:
        """The positions as one (dimensions, entries) tensor."""
        if self._indices is None:
            self._indices = stack_rows(self.coords, self.count, self.device)
        return self._indices

    # --- order

    @cache_on_pattern
    def key(self, dims: Sequence[int]) -> Tensor:
        """Return row-major numbers of the positions along some dimensions; cached."""
        if len(dims) == 1:
            return self.coords[dims[0]]
        cache_key = tuple(dims)
        if cache_key not in self._keys:
            coords, sizes = [self.coords[d] for d in dims], [self.shape[d] for d in dims]
            self._keys[cache_key] = linear(coords, sizes, self)
        return self._keys[cache_key]

    @cache_on_pattern
    def order(self) -> Tensor | None:
        """Return the permutation that sorts the entries, or None if they are sorted; cached."""
        if self.unsorted_dims == 0:
            return None
        if self._order is None:
            self._order = self.order_by(range(self.unsorted_dims))
        return self._order

    @cache_on_pattern
    def order_by(self, dims: Sequence[int]) -> Tensor:
        """Return the permutation that stably sorts the entries by some dimensions."""
        order: Tensor | None = None
        for group in reversed(self._group_dims(dims)):
            key = self.key(group)
            key = key if order is None else rows_at(key, order)
            group_order = order_of(key, _count_bits(math.prod(self.shape[d] for d in group)))
            order = group_order if order is None else rows_at(order, group_order)
        assert order is not None
        return order

    def _group_dims(self, dims: Sequence[int]) -> list[list[int]]:
        """Return dimensions split into consecutive groups whose joint key fits an int64."""
        groups: list[list[int]] = [[]]
        for d in dims:
            if _count_bits(math.prod(self.shape[e] for e in (*groups[-1], d))) > KEY_BITS_MAX:
                groups.append([])
            groups[-1].append(d)
        return [g for g in groups if g] or [[]]

    def keys(self) -> list[Tensor]:
        """Return keys of whole positions, the most significant first; nearly always one."""
        return [self.key(g) for g in self._group_dims(range(len(self.shape)))]

    def runs(self, dims: Sequence[int], order: Tensor | None) -> Runs:
        """Return the runs of entries, in `order`, that are equal along `dims`.

        One host read: the number of runs.
        """
        keys = [self.key(g) for g in self._group_dims(dims)] if dims else []
        moved = keys
        if order is not None:  # 0.5 M entries: 0.4 ms to move once, 1.4 if each is read twice
            moved = [rows_at(key, order) for key in keys]
            dt.evaluate(*moved)
        (starts,) = dt.nonzero(self._mark_changes(moved))
        return Runs(starts, order, self.count, reordered_keys=tuple(zip(keys, moved, strict=True)))

    def _mark_changes(self, keys: Sequence[Tensor]) -> Tensor:
        """Return a mask: True if an entry's keys differ from those of the entry before it."""
        if not keys:
            return dt.arange(self.count, device=self.device) == 0
        here = [key[1:] != key[:-1] for key in keys]
        different = functools.reduce(dt.logical_or, here)
        return dt.concat([dt.ones(1, dtype=dt.bool, device=self.device), different])

    @cache_on_pattern
    def reduce_axes(self, axes: Shape) -> tuple[Runs, Pattern]:
        """Return runs of entries that differ along `axes` only, and the pattern without these axes.

        The pattern must be coalesced. One host read: the number of runs.
        """
        if axes not in self._reduced:
            left = [d for d in range(len(self.shape)) if d not in axes]
            trailing = axes == tuple(range(len(left), len(self.shape)))
            runs = self.runs(left, None if trailing else self.order_by(left))
            coords = [runs.values_of_first(self.coords[d]) for d in left]
            dt.evaluate(*runs.operands, *coords)
            runs.reordered_keys = ()
            shape = tuple(self.shape[d] for d in left)
            count = runs.starts.shape[0]
            pattern = Pattern(coords, shape, count, self.device, unsorted_dims=0, unique=True)
            self._reduced[axes] = runs, pattern
        return self._reduced[axes]

    @cache_on_pattern
    def coalesce(self) -> tuple[Pattern, Runs | None]:
        """Return the sorted pattern without repetition, and the runs of entries to sum; cached.

        The runs are None if the pattern is coalesced already. One host read: the number of entries,
        or whether they are sorted.
        """
        if self.is_coalesced:
            return self, None
        if self._coalesced is None:
            self._coalesced = self._coalesce()
        return self._coalesced

    def _coalesce(self) -> tuple[Pattern, Runs | None]:
        """Return the coalesced pattern and its runs; a source caches those of its transpose."""
        source = self.transposed_from
        if source is None:
            return self._sort_unique()
        if source.is_captured and is_capturing():
            return self._coalesce_transpose(source)
        if source._coalesced_transpose is None:
            source._coalesced_transpose = self._coalesce_transpose(source)
        return source._coalesced_transpose

    def _coalesce_transpose(self, source: Pattern) -> tuple[Pattern, Runs | None]:
        """Return the coalesced transpose of `source`, by the order that `source` caches."""
        if not source.is_coalesced:
            return self._sort_unique()
        pattern, order = source.transpose
        everything = dt.arange(self.count, device=self.device)
        return pattern, Runs(everything, order, self.count)

    def _sort_unique(self) -> tuple[Pattern, Runs | None]:
        """Return the sorted pattern without repetition, and its runs; drop the cached keys.

        The runs are None if the entries are sorted already. Host reads: one or two.
        """
        # the check may save a sort, but it takes a host read
        may_check = not (self.unique and is_capturing())
        if may_check and self.unsorted_dims == len(self.shape) and self._is_ascending():
            return self.with_coords(
                self.coords, unsorted_dims=0, unique=True, indices=self._indices
            ), None
        order = self.order()
        if self.unique:
            everything = dt.arange(self.count, device=self.device)
            runs = Runs(everything, order, self.count)
        else:
            runs = self.runs(range(len(self.shape)), order)
        coords = [runs.values_of_first(r) for r in self.coords]
        dt.evaluate(runs.starts, *coords)
        runs.reordered_keys = ()
        self._keys.clear()
        count = runs.starts.size
        return Pattern(coords, self.shape, count, self.device, unsorted_dims=0, unique=True), runs

    def _is_ascending(self) -> bool:
        """Return True if positions ascend strictly; one host read. False if keys exceed int64."""
        if len(keys := self.keys()) > 1:
            return False
        return not bool(dt.any(keys[0][1:] <= keys[0][:-1]).item())

    # --- compression of matrices

    @property
    @cache_on_pattern
    def bounds(self) -> Tensor:
        """The row pointers of a coalesced matrix: the start of each row and the end of the last."""
        if self._bounds is None:
            at = dt.arange(self.shape[0] + 1, device=self.device)
            self._bounds = dt.searchsorted(self.coords[0], at)
            dt.evaluate(self._bounds)
        return self._bounds

    def set_bounds(self, bounds: Tensor) -> None:
        """Set the row pointers, unchecked, so that `bounds` returns them."""
        self._bounds = bounds

    def cached_bounds(self) -> Tensor | None:
        """Return the row pointers if they are cached, else None."""
        return self._bounds

    def set_transpose(self, other: Pattern, order: Tensor) -> None:
        """Set the sorted transpose and its order, unchecked, as the value of `transpose`."""
        self._transpose = other, order

    def cached_transpose(self) -> tuple[Pattern, Tensor] | None:
        """Return the value of `transpose` if it is cached, else None."""
        return self._transpose

    @property
    @cache_on_pattern
    def transpose(self) -> tuple[Pattern, Tensor]:
        """The coalesced transpose of a coalesced matrix, and the order of the entries there."""
        if self._transpose is not None:
            return self._transpose
        if (
            self._source_and_order is not None
            and (origin := self._source_and_order[0]()) is not None
        ):
            return origin, self._invert_order(self._source_and_order[1])
        order = self.order_by([1])
        coords = [rows_at(r, order) for r in reversed(self.coords)]
        dt.evaluate(order, *coords)
        other = Pattern(
            coords, self.shape[::-1], self.count, self.device, unsorted_dims=0, unique=True
        )
        other._source_and_order = ref(self), order
        self._transpose = other, order
        return self._transpose

    def _invert_order(self, order: Tensor) -> Tensor:
        """Return the inverse of a permutation of the entries; cached."""
        if "inverse" not in self.derived:
            position = dt.arange(self.count, device=self.device)
            inverse_order = scatter_rows(dt.zeros_like(position), position, order)
            dt.evaluate(inverse_order)
            self.derived["inverse"] = inverse_order
        inverse: Tensor = self.derived["inverse"]
        return inverse

    # --- others

    def with_coords(
        self,
        coords: Sequence[Tensor],
        shape: Shape | None = None,
        *,
        unsorted_dims: int | None,
        unique: bool,
        indices: Tensor | None = None,
    ) -> Pattern:
        """Build a pattern with the same number of entries at other positions."""
        return Pattern(
            coords,
            self.shape if shape is None else shape,
            self.count,
            self.device,
            unsorted_dims=unsorted_dims,
            unique=unique,
            indices=indices,
        )

    def select(self, at: Tensor, shape: Shape | None = None) -> Pattern:
        """Return the pattern of the entries `at`, which ascend."""
        coords = [rows_at(r, at) for r in self.coords]
        return Pattern(
            coords,
            self.shape if shape is None else shape,
            at.shape[0],
            self.device,
            unsorted_dims=self.unsorted_dims,
            unique=self.unique,
        )


def _count_bits(size: int) -> int:
    """Return the number of bits of the integers below `size`."""
    return max(size - 1, 0).bit_length()


def linear(coords: Sequence[Tensor], shape: Sequence[int], like: Pattern) -> Tensor:
    """Return the row-major numbers of positions."""
    total: Tensor | None = None
    for row, n in zip(coords, shape, strict=True):
        total = row if total is None else total * n + row
    return zeros(like) if total is None else total


def zeros(like: Pattern) -> Tensor:
    """Return the position 0 for each entry."""
    return dt.zeros(like.count, dtype=dt.int64, device=like.device)


def unravel(key: Tensor, shape: Shape) -> list[Tensor]:
    """Return positions from their row-major numbers: the inverse of `linear`."""
    coords: list[Tensor] = []
    for n in reversed(shape[1:]):
        coords.append(key % max(n, 1))
        key = key // max(n, 1)
    return [key, *reversed(coords)] if shape else []


def stack_rows(coords: Sequence[Tensor], count: int, device: dt.Device) -> Tensor:
    """Return vectors as the rows of a matrix of `count` columns."""
    if not coords:
        return dt.zeros((0, count), dtype=dt.int64, device=device)
    return dt.stack(coords) if len(coords) > 1 else coords[0].reshape(1, count)


def _rebuild(
    coords: Sequence[Tensor],
    shape: Shape,
    count: int,
    device: dt.Device,
    unsorted_dims: int,
    unique: bool,
) -> Pattern:
    """Return the pattern of a pickle or a copy, without cached values."""
    return Pattern(coords, shape, count, device, unsorted_dims=unsorted_dims, unique=unique)
