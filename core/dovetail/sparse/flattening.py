"""Flattening of sparse tensors into strided ones, for arguments and results of captured functions.

Positions are flattened like values, so one capture serves all patterns with the same number of
entries. Tensors that a pattern has derived (row pointers, the transpose, operands of products) are
flattened with it, so no call computes them again. Tensors that share a pattern share it again
after unflattening.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import dovetail as dt
from dovetail.extend import is_capturing

from .blocks import BSR, Block, single_elements
from .compressed import CSC
from .pattern import Pattern
from .sparse_products import positions
from .tensor import COO, Entries
from .view_rules import transpose_pattern

Tensor = dt.Tensor
Shape = tuple[int, ...]
PatternNumbers: TypeAlias = dict[int, tuple[int, object]]
"""Patterns that are flattened already, by id: their number, and the pattern to keep it alive."""


class PatternSpec(NamedTuple):
    """A recipe that rebuilds a pattern from its flattened vectors."""

    shape: Shape
    entries: int
    unsorted_dims: int
    unique: bool
    bounds: bool  # True if the row pointers are flattened too
    positions: tuple[tuple[bool, int], ...]  # operands of products: (of the transpose, tensors)
    transpose: PatternSpec | int | None  # followed by the order of the entries there
    elements: tuple[tuple[Block, PatternSpec | int], ...]  # of blocks, each followed by its order

    def build(self, parts: Iterator[Tensor], patterns: list[object], device: dt.Device) -> Pattern:
        """Build the pattern of the next vectors; append it and all nested ones to `patterns`."""
        coords = [next(parts) for _ in self.shape]
        p = Pattern(
            coords,
            self.shape,
            self.entries,
            device,
            unsorted_dims=self.unsorted_dims,
            unique=self.unique,
        )
        patterns.append(p)
        if self.bounds:
            p.set_bounds(next(parts))
        for transpose, n in self.positions:
            p.derived["positions", transpose] = tuple(next(parts) for _ in range(n))
        if self.transpose is not None:
            p.set_transpose(_build_pattern(self.transpose, parts, patterns, device), next(parts))
        for block, spec in self.elements:
            p.derived[block] = _build_pattern(spec, parts, patterns, device), next(parts)
        return p


class TransposeSpec(NamedTuple):
    """A recipe for the transpose of a pattern that refers to the pattern as its source."""

    source: PatternSpec | int


class EntriesSpec(NamedTuple):
    """A recipe that rebuilds a sparse tensor from its values and its pattern."""

    kind: type[Entries]
    pattern: PatternSpec | TransposeSpec | int

    def unflatten(self, parts: Iterator[Tensor], patterns: list[object]) -> Tensor:
        """Build the sparse tensor of the next parts; append new patterns to `patterns`.

        The protocol is that of `dovetail.extend.LayoutTensor`.
        """
        values, spec = next(parts), self.pattern
        p = _build_pattern(
            spec.source if isinstance(spec, TransposeSpec) else spec, parts, patterns, values.device
        )
        x: Entries = object.__new__(self.kind)
        x.pattern = transpose_pattern(p) if isinstance(spec, TransposeSpec) else p
        x._values = values
        return x


def _build_pattern(
    spec: PatternSpec | int, parts: Iterator[Tensor], patterns: list[object], device: dt.Device
) -> Pattern:
    """Build the pattern of a recipe and append it to `patterns`, or return that of a number."""
    if isinstance(spec, PatternSpec):
        return spec.build(parts, patterns, device)
    p = patterns[spec]
    assert isinstance(p, Pattern)
    return p


def flatten(x: Entries, patterns: PatternNumbers) -> tuple[Sequence[Tensor], EntriesSpec]:
    """Return the strided tensors of `x` and its recipe; number new patterns in `patterns`.

    Outside of captures it first computes the operands of products, and caches them on the pattern.
    The protocol is that of `LayoutTensor.__flatten__`.
    """
    p, parts = x.pattern, [x.values()]
    source = p.transposed_from if isinstance(x, COO) else None
    if not is_capturing():  # arguments only: a result may never be multiplied
        _derive_for_products(x, p if source is None else source, source is not None)
    if source is None:
        return parts, EntriesSpec(type(x), _flatten_pattern(p, patterns, parts))
    return parts, EntriesSpec(type(x), TransposeSpec(_flatten_pattern(source, patterns, parts)))


def _derive_for_products(x: Entries, p: Pattern, transpose: bool) -> None:
    """Compute and cache on the pattern the operands that products of `x` need."""
    if isinstance(x, BSR):
        positions(single_elements(p, x.blocksize)[0], False)
    elif len(p.shape) == 2 and p.is_coalesced and p.count:
        positions(p, transpose or isinstance(x, CSC))


def _flatten_pattern(
    p: Pattern, patterns: PatternNumbers, parts: list[Tensor], inner: bool = False
) -> PatternSpec | int:
    """Append a new pattern's vectors to `parts` and number it; return its recipe or number.

    `inner`: the pattern is derived from another one; patterns derived from it are left out.
    """
    if id(p) in patterns:
        return patterns[id(p)][0]
    patterns[id(p)] = len(patterns), p
    parts += p.coords
    bounds = p.cached_bounds()
    parts += [] if bounds is None else [bounds]
    products = [
        (t, p.derived["positions", t]) for t in (False, True) if ("positions", t) in p.derived
    ]
    for _, tensors in products:
        parts += tensors
    transpose = None if inner else p.cached_transpose()
    transpose_spec = (
        None if transpose is None else _flatten_pattern(transpose[0], patterns, parts, True)
    )
    parts += [] if transpose is None else [transpose[1]]
    elements: list[tuple[Block, PatternSpec | int]] = []
    for name, value in [] if inner else list(p.derived.items()):
        if _is_block(name):
            elements.append((name, _flatten_pattern(value[0], patterns, parts, True)))  # type: ignore[arg-type]  # a block's value is (pattern, order)
            parts.append(value[1])
    return PatternSpec(
        p.shape,
        p.count,
        p.unsorted_dims,
        p.unique,
        bounds is not None,
        tuple((t, len(tensors)) for t, tensors in products),
        transpose_spec,
        tuple(elements),
    )


def _is_block(name: Any) -> bool:
    """Return True if `name` is the key of a pattern's single elements: a block size."""
    return isinstance(name, tuple) and len(name) == 2 and all(type(n) is int for n in name)


def install() -> None:
    """Set `flatten` as the flattening of all sparse tensors."""
    Entries.__flatten__ = flatten  # type: ignore[assignment, method-assign]  # typed more narrowly
