"""Sparse tensors as arguments and results of captured functions: their parts, and the way back.

The positions are parts like the values, so that a function is captured once for all patterns with
so many entries. Beside them goes what a product asks of a pattern, and what else is known of it, so
that no call works it out again. Tensors of one pattern have one again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import dovetail as dt
from dovetail.extend import is_capturing

from .blocks import BSR, Block, single_elements
from .compressed import CSC
from .moves import transposed
from .pattern import Pattern
from .products import positions
from .tensor import COO, Entries

Tensor = dt.Tensor
Shape = tuple[int, ...]
Known: TypeAlias = dict[int, tuple[int, object]]


class PatternWay(NamedTuple):
    """How a pattern is made of vectors."""

    shape: Shape
    entries: int
    unsorted_dims: int
    unique: bool
    bounds: bool  # whether its row pointers are there
    positions: tuple[tuple[bool, int], ...]  # of products: of the transpose? so many tensors
    transposed: PatternWay | int | None  # and the order of the entries there
    elements: tuple[tuple[Block, PatternWay | int], ...]  # of blocks, and where each one is

    def made(self, parts: Iterator[Tensor], known: list[object], device: dt.Device) -> Pattern:
        """The pattern."""
        coords = [next(parts) for _ in self.shape]
        p = Pattern(
            coords, self.shape, self.entries, device, unsorted_dims=self.unsorted_dims,
            unique=self.unique,
        )  # fmt: skip
        known.append(p)
        if self.bounds:
            p.know_bounds(next(parts))
        for turned, n in self.positions:
            p.kept["positions", turned] = tuple(next(parts) for _ in range(n))
        if self.transposed is not None:
            p.know_transposed(_made(self.transposed, parts, known, device), next(parts))
        for block, way in self.elements:
            p.kept[block] = _made(way, parts, known, device), next(parts)
        return p


class TurnedWay(NamedTuple):
    """How the transpose of a pattern is made that remembers where it is from."""

    of: PatternWay | int


class EntriesWay(NamedTuple):
    """How a sparse tensor is made of its values and its pattern."""

    kind: type[Entries]
    pattern: PatternWay | TurnedWay | int

    def unflatten(self, parts: Iterator[Tensor], known: list[object]) -> Tensor:
        """See `dovetail.extend.LayoutTensor`."""
        values, way = next(parts), self.pattern
        p = _made(way.of if isinstance(way, TurnedWay) else way, parts, known, values.device)
        x: Entries = object.__new__(self.kind)
        x.pattern = transposed(p) if isinstance(way, TurnedWay) else p
        x._values = values
        return x


def _made(
    way: PatternWay | int, parts: Iterator[Tensor], known: list[object], device: dt.Device
) -> Pattern:
    if isinstance(way, PatternWay):
        return way.made(parts, known, device)
    p = known[way]
    assert isinstance(p, Pattern)
    return p


def flatten(x: Entries, known: Known) -> tuple[Sequence[Tensor], EntriesWay]:
    """See `dovetail.extend.LayoutTensor`."""
    p, parts = x.pattern, [x.values()]
    source = p.transposed_from if isinstance(x, COO) else None
    if not is_capturing():  # of arguments: a result's may not be needed
        _know(x, p if source is None else source, source is not None)
    if source is None:
        return parts, EntriesWay(type(x), _taken(p, known, parts))
    return parts, EntriesWay(type(x), TurnedWay(_taken(source, known, parts)))


def _know(x: Entries, p: Pattern, turned: bool) -> None:
    """Works out what products of a tensor ask of its pattern, if nobody has."""
    if isinstance(x, BSR):
        positions(single_elements(p, x.blocksize)[0], False)
    elif len(p.shape) == 2 and p.is_coalesced and p.count:
        positions(p, turned or isinstance(x, CSC))


def _taken(p: Pattern, known: Known, parts: list[Tensor], inner: bool = False) -> PatternWay | int:
    """Adds what a pattern is made of. `inner`: of another one, of which it does not know."""
    if id(p) in known:
        return known[id(p)][0]
    known[id(p)] = len(known), p
    parts += p.coords
    bounds = p.known_bounds()
    parts += [] if bounds is None else [bounds]
    found = [(t, p.kept["positions", t]) for t in (False, True) if ("positions", t) in p.kept]
    for _, tensors in found:
        parts += tensors
    turned = None if inner else p.known_transposed()
    way = None if turned is None else _taken(turned[0], known, parts, True)
    parts += [] if turned is None else [turned[1]]
    elements: list[tuple[Block, PatternWay | int]] = []
    for name, kept in [] if inner else list(p.kept.items()):
        if _is_block(name):
            elements.append((name, _taken(kept[0], known, parts, True)))  # type: ignore[arg-type]  # as asked
            parts.append(kept[1])
    return PatternWay(
        p.shape, p.count, p.unsorted_dims, p.unique, bounds is not None,
        tuple((t, len(tensors)) for t, tensors in found), way, tuple(elements),
    )  # fmt: skip


def _is_block(name: Any) -> bool:
    """Whether a pattern keeps by this name the single elements of its blocks."""
    return isinstance(name, tuple) and len(name) == 2 and all(type(n) is int for n in name)


def install() -> None:
    """Has all sparse tensors be flattened so."""
    Entries.__flatten__ = flatten  # type: ignore[assignment, method-assign]  # typed more narrowly
