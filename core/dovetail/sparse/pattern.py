"""Where the entries of a sparse tensor are, and what follows from that: order, runs, compression.

A pattern is immutable, and shared by all tensors with these positions, so what is derived of it is
derived once. Values take no part in it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from weakref import ref

import dovetail as dt
from dovetail.extend import is_capturing, order_of, rows_at, scatter_rows, uncaptured

from .rows import Runs

Tensor = dt.Tensor
Shape = tuple[int, ...]
R = TypeVar("R")
KEY_BITS = 62  # of a linearised position; larger shapes are sorted by several keys


def derives(f: Callable[..., R]) -> Callable[..., R]:
    """A function that derives something of a pattern, and keeps it there.

    While a function is captured it is worked out apart from that, as of a constant; of a pattern
    that is made there, anew, and not kept: what is captured belongs to each run. (What an argument
    came with stays: see `flattening`.)
    """

    @functools.wraps(f)
    def derived(p: Pattern, *args: Any) -> R:
        if not is_capturing():
            return f(p, *args)
        if p.is_captured:
            anew = p.like(p.coords, unsorted_dims=p.unsorted_dims, unique=p.unique)
            anew.transposed_from = p.transposed_from
            anew._bounds, anew._transposed, anew.kept = p._bounds, p._transposed, {**p.kept}
            return f(anew, *args)
        with uncaptured():
            found = f(p, *args)
            dt.evaluate(*_tensors(found))
            return found

    return derived


def _tensors(found: Any) -> list[Tensor]:
    """All tensors in what was derived."""
    if isinstance(found, (tuple, list)):
        return [t for part in found for t in _tensors(part)]
    if isinstance(found, Pattern):
        return list(found.coords)
    if isinstance(found, Runs):
        return list(found.operands)
    return [found] if isinstance(found, Tensor) else []


class Pattern:
    """Positions of entries: a vector of int64 for each sparse dimension (`coords`), of one length.

    `unsorted_dims`: how many of the leading dimensions a stable sort has to go by for the order to
    be lexicographic; 0 where it is. `unique`: no position is there twice.
    """

    __slots__ = (
        "__weakref__",
        "_back",
        "_bounds",
        "_coalesced",
        "_indices",
        "_keys",
        "_order",
        "_reduced",
        "_transposed",
        "_turned",
        "coords",
        "count",
        "device",
        "is_captured",
        "kept",
        "shape",
        "transposed_from",
        "unique",
        "unsorted_dims",
    )  # fmt: skip

    def __init__(
        self, coords: Sequence[Tensor], shape: Shape, count: int, device: dt.Device, *,
        unsorted_dims: int | None = None, unique: bool = False, indices: Tensor | None = None,
    ) -> None:  # fmt: skip
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
        self._transposed: tuple[Pattern, Tensor] | None = None
        self._turned: tuple[Pattern, Runs | None] | None = None
        self._reduced: dict[Shape, tuple[Runs, Pattern]] = {}
        self.kept: dict[object, Any] = {}  # what other modules derive of it
        # of a transpose the pattern that it was made of, as long as that lives, and its order here
        self._back: tuple[ref[Pattern], Tensor] | None = None
        # the matrix of which it is the transpose, and which keeps the order of that
        self.transposed_from: Pattern | None = None

    def __reduce__(self) -> Any:  # what is derived is derived again
        return _again, (
            self.coords,
            self.shape,
            self.count,
            self.device,
            self.unsorted_dims,
            self.unique,
        )

    @property
    def is_coalesced(self) -> bool:
        """Whether positions are in lexicographic order, each there once."""
        return self.unsorted_dims == 0 and self.unique

    @property
    def size(self) -> int:
        """The number of positions that there are."""
        return math.prod(self.shape)

    @property
    @derives
    def indices(self) -> Tensor:
        """The positions as one (dimensions, entries) tensor."""
        if self._indices is None:
            self._indices = stacked(self.coords, self.count, self.device)
        return self._indices

    # --- order

    @derives
    def key(self, dims: Sequence[int]) -> Tensor:
        """Positions along some dimensions as one number each, the last dimension fastest."""
        if len(dims) == 1:
            return self.coords[dims[0]]
        which = tuple(dims)
        if which not in self._keys:
            coords, sizes = [self.coords[d] for d in dims], [self.shape[d] for d in dims]
            self._keys[which] = linear(coords, sizes, self)
        return self._keys[which]

    @derives
    def order(self) -> Tensor | None:
        """What sorts the entries lexicographically, stably; None where they are sorted."""
        if self.unsorted_dims == 0:
            return None
        if self._order is None:
            self._order = self.order_by(range(self.unsorted_dims))
        return self._order

    @derives
    def order_by(self, dims: Sequence[int]) -> Tensor:
        """What sorts the entries by some dimensions, stably."""
        order: Tensor | None = None
        for group in reversed(self._groups(dims)):
            key = self.key(group)
            key = key if order is None else rows_at(key, order)
            found = order_of(key, _bits(math.prod(self.shape[d] for d in group)))
            order = found if order is None else rows_at(order, found)
        assert order is not None
        return order

    def _groups(self, dims: Sequence[int]) -> list[list[int]]:
        """Consecutive dimensions whose joint key fits an int64."""
        groups: list[list[int]] = [[]]
        for d in dims:
            if _bits(math.prod(self.shape[e] for e in (*groups[-1], d))) > KEY_BITS:
                groups.append([])
            groups[-1].append(d)
        return [g for g in groups if g] or [[]]

    def keys(self) -> list[Tensor]:
        """Keys of whole positions, the most significant first; nearly always one."""
        return [self.key(g) for g in self._groups(range(len(self.shape)))]

    def runs(self, dims: Sequence[int], order: Tensor | None) -> Runs:
        """The runs of entries, in that order, that agree along `dims`. One host read: how many."""
        keys = [self.key(g) for g in self._groups(dims)] if dims else []
        moved = keys
        if order is not None:  # 0.5 M entries: 0.4 ms to move, 1.4 where each is read twice
            moved = [rows_at(key, order) for key in keys]
            dt.evaluate(*moved)
        (starts,) = dt.nonzero(self._changes(moved))
        return Runs(starts, order, self.count, known=tuple(zip(keys, moved, strict=True)))

    def _changes(self, keys: Sequence[Tensor]) -> Tensor:
        """Whether each entry differs from the one before it; they have these keys."""
        if not keys:
            return dt.arange(self.count, device=self.device) == 0
        here = [key[1:] != key[:-1] for key in keys]
        different = functools.reduce(dt.logical_or, here)
        return dt.concat([dt.ones(1, dtype=dt.bool, device=self.device), different])

    @derives
    def without(self, gone: Shape) -> tuple[Runs, Pattern]:
        """The runs of entries that differ along `gone` alone, and the pattern that is left.

        One host read: how many. Asked of a coalesced pattern.
        """
        if gone not in self._reduced:
            left = [d for d in range(len(self.shape)) if d not in gone]
            trailing = gone == tuple(range(len(left), len(self.shape)))
            runs = self.runs(left, None if trailing else self.order_by(left))
            coords = [runs.firsts(self.coords[d]) for d in left]
            dt.evaluate(*runs.operands, *coords)
            runs.known = ()
            shape = tuple(self.shape[d] for d in left)
            count = runs.starts.shape[0]
            kept = Pattern(coords, shape, count, self.device, unsorted_dims=0, unique=True)
            self._reduced[gone] = runs, kept
        return self._reduced[gone]

    @derives
    def coalesced(self) -> tuple[Pattern, Runs | None]:
        """The same positions in order, each once; and the runs of entries that become one.

        Where nothing becomes one, the runs are None if nothing moves either. One host read of how
        many entries there are, or of whether they are in order already.
        """
        if self.is_coalesced:
            return self, None
        if self._coalesced is None:
            self._coalesced = self._coalesce()
        return self._coalesced

    def _coalesce(self) -> tuple[Pattern, Runs | None]:
        source = self.transposed_from
        if source is None:
            return self._in_order()
        if source.is_captured and is_capturing():
            return self._in_turn(source)
        if source._turned is None:
            source._turned = self._in_turn(source)
        return source._turned

    def _in_turn(self, source: Pattern) -> tuple[Pattern, Runs | None]:
        """The same of the transpose of a pattern."""
        if not source.is_coalesced:
            return self._in_order()
        pattern, found = source.transposed
        everything = dt.arange(self.count, device=self.device)
        return pattern, Runs(everything, found, self.count)

    def _in_order(self) -> tuple[Pattern, Runs | None]:
        look = not (self.unique and is_capturing())  # it saves a sort, and takes a host read
        if look and self.unsorted_dims == len(self.shape) and self._is_ascending():
            return self.like(self.coords, unsorted_dims=0, unique=True, indices=self._indices), None
        order = self.order()
        if self.unique:
            everything = dt.arange(self.count, device=self.device)
            runs = Runs(everything, order, self.count)
        else:
            runs = self.runs(range(len(self.shape)), order)
        coords = [runs.firsts(r) for r in self.coords]
        dt.evaluate(runs.starts, *coords)
        runs.known = ()
        self._keys.clear()
        return Pattern(
            coords, self.shape, runs.starts.size, self.device, unsorted_dims=0, unique=True
        ), (runs)

    def _is_ascending(self) -> bool:
        """Whether every position is behind the one before it."""
        if len(keys := self.keys()) > 1:
            return False
        return not bool(dt.any(keys[0][1:] <= keys[0][:-1]).item())

    # --- compression of matrices

    @property
    @derives
    def bounds(self) -> Tensor:
        """Of a coalesced matrix: where each row starts among the entries, and where the last ends.

        These are CSR's row pointers.
        """
        if self._bounds is None:
            at = dt.arange(self.shape[0] + 1, device=self.device)
            self._bounds = dt.searchsorted(self.coords[0], at)
            dt.evaluate(self._bounds)
        return self._bounds

    def know_bounds(self, bounds: Tensor) -> None:
        """Takes note of row pointers that somebody has."""
        self._bounds = bounds

    def known_bounds(self) -> Tensor | None:
        """The row pointers, if they have been worked out."""
        return self._bounds

    def know_transposed(self, other: Pattern, order: Tensor) -> None:
        """Takes note of what somebody has: see `transposed`."""
        self._transposed = other, order

    def known_transposed(self) -> tuple[Pattern, Tensor] | None:
        """The transpose and its order, if they have been worked out."""
        return self._transposed

    @property
    @derives
    def transposed(self) -> tuple[Pattern, Tensor]:
        """Of a coalesced matrix: its transpose, coalesced, and the order of the entries there."""
        if self._transposed is not None:
            return self._transposed
        if self._back is not None and (origin := self._back[0]()) is not None:
            return origin, self._inverse(self._back[1])
        order = self.order_by([1])
        coords = [rows_at(r, order) for r in reversed(self.coords)]
        dt.evaluate(order, *coords)
        other = Pattern(
            coords, self.shape[::-1], self.count, self.device, unsorted_dims=0, unique=True
        )
        other._back = ref(self), order
        self._transposed = other, order
        return self._transposed

    def _inverse(self, order: Tensor) -> Tensor:
        """The order that undoes an order of the entries."""
        if "inverse" not in self.kept:
            place = dt.arange(self.count, device=self.device)
            found = scatter_rows(dt.zeros_like(place), place, order)
            dt.evaluate(found)
            self.kept["inverse"] = found
        inverse: Tensor = self.kept["inverse"]
        return inverse

    # --- others

    def like(
        self, coords: Sequence[Tensor], shape: Shape | None = None, *, unsorted_dims: int | None,
        unique: bool, indices: Tensor | None = None,
    ) -> Pattern:  # fmt: skip
        """As many entries at other positions."""
        return Pattern(
            coords, self.shape if shape is None else shape, self.count, self.device,
            unsorted_dims=unsorted_dims, unique=unique, indices=indices,
        )  # fmt: skip

    def chosen(self, at: Tensor, shape: Shape | None = None) -> Pattern:
        """Some of the entries, in the same order."""
        coords = [rows_at(r, at) for r in self.coords]
        return Pattern(
            coords, self.shape if shape is None else shape, at.shape[0], self.device,
            unsorted_dims=self.unsorted_dims, unique=self.unique,
        )  # fmt: skip


def _bits(size: int) -> int:
    """Of the numbers below `size`."""
    return max(size - 1, 0).bit_length()


def linear(coords: Sequence[Tensor], shape: Sequence[int], like: Pattern) -> Tensor:
    """Row-major numbers of positions."""
    total: Tensor | None = None
    for row, n in zip(coords, shape, strict=True):
        total = row if total is None else total * n + row
    return zeros(like) if total is None else total


def zeros(like: Pattern) -> Tensor:
    """A position 0 for each entry."""
    return dt.zeros(like.count, dtype=dt.int64, device=like.device)


def unravelled(key: Tensor, shape: Shape) -> list[Tensor]:
    """Positions from their row-major numbers: the opposite of `linear`."""
    coords: list[Tensor] = []
    for n in reversed(shape[1:]):
        coords.append(key % max(n, 1))
        key = key // max(n, 1)
    return [key, *reversed(coords)] if shape else []


def stacked(coords: Sequence[Tensor], count: int, device: dt.Device) -> Tensor:
    """Vectors as the rows of a matrix."""
    if not coords:
        return dt.zeros((0, count), dtype=dt.int64, device=device)
    return dt.stack(coords) if len(coords) > 1 else coords[0].reshape(1, count)


def _again(
    coords: Sequence[Tensor],
    shape: Shape,
    count: int,
    device: dt.Device,
    unsorted_dims: int,
    unique: bool,
) -> Pattern:
    """A pattern out of a pickle or a copy."""
    return Pattern(coords, shape, count, device, unsorted_dims=unsorted_dims, unique=unique)
