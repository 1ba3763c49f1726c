"""Templates of emitted kernels, which groups of equal structure in one plan share."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from ..ir.builder import Kernel
from ..layout import Shape
from .groups import Access, FusionGroup, Term
from .plan import PlannedLaunch


class KernelTemplate(NamedTuple):
    """A kernel with its arguments: numbers of `GroupStructure` in place of memory and scalars."""

    kernel: Kernel
    buffers: tuple[int, ...]
    ints: tuple[int, ...]
    scalars: tuple[int, ...]
    grid: Shape


class GroupStructure:
    """The structure of a group, on which its kernel and its integers depend.

    Memory, scalars and terms are numbered in the order of their use, so groups that differ in
    these alone have equal keys. `key`: None if the group checks indices or has symbolic sizes.
    """

    __slots__ = ("_accesses", "_parts", "_sizes", "_terms", "checks_indices", "memory", "scalars")

    def __init__(self, group: FusionGroup, in_rows: Sequence[bool]) -> None:
        """Build the key of a group; number its memory, scalars and terms.

        - `in_rows`: for each output, True if it is stored along the rows.
        """
        self.memory: dict[tuple[int, int], int] = {}  # (slot, byte offset) -> number
        self.scalars: dict[int, int] = {}  # position among the graph's Python numbers -> number
        self.checks_indices = False
        self._accesses = {id(a): k for k, a in enumerate(group.accesses)}
        self._terms: dict[int, int] = {}
        self._sizes = [*group.domain.full]
        self._parts: list[Hashable] = [group.domain, len(group.accesses)]
        for a in group.accesses:
            self._add_access(a)
        for out, in_row in zip(group.outputs, in_rows, strict=True):
            a = out.access
            self._add_term(out.term)
            memory = self._number_memory(a.slot, a.offset * a.dtype.itemsize)
            self._parts += (self._accesses[id(a)], memory, in_row)

    @property
    def key(self) -> tuple[Hashable, ...] | None:
        """The key of equal structures; None if there is none."""
        # a comparison of symbolic sizes would be a guard
        if self.checks_indices or any(type(n) is not int for n in self._sizes):
            return None
        return tuple(self._parts)

    def create_template(self, launch: PlannedLaunch) -> KernelTemplate:
        """Return the template of the launch that was built for this structure."""
        return KernelTemplate(
            launch.kernel,
            tuple([self.memory[place] for place in launch.buffers]),
            launch.ints,
            tuple([self.scalars[k] for k in launch.scalars]),
            launch.grid,
        )

    def arguments(
        self, template: KernelTemplate
    ) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
        """Return the buffers and scalars of a launch of this structure's template."""
        memory, scalars = [*self.memory], [*self.scalars]
        buffers = tuple([memory[k] for k in template.buffers])
        return buffers, tuple([scalars[k] for k in template.scalars])

    def _number_memory(self, slot: int, start: int) -> int:
        """Return the number of the memory at a byte of a slot; new memory gets the next number."""
        return self.memory.setdefault((slot, start), len(self.memory))

    def _add_access(self, a: Access) -> None:
        """Add an access to the key."""
        self._sizes += (*a.strides, a.offset)
        memory = self._number_memory(a.slot, a.start * a.dtype.itemsize) if a.slot >= 0 else -1
        offset = None if a.starts_at_offset else a.offset
        self._parts += (a.dtype, a.strides, offset, memory)

    def _add_term(self, term: Term) -> None:
        """Add a term, and those that it is computed from, to the key; a shared one once."""
        number = self._terms.get(id(term))
        if number is not None:
            self._parts.append(number)
            return
        self._terms[id(term)] = len(self._terms)
        access = -1 if term.access is None else self._accesses[id(term.access)]
        scalar = term.scalar_index
        if scalar >= 0:
            scalar = self.scalars.setdefault(scalar, len(self.scalars))
        self._parts += (term.kind, term.dtype, term.op, term.casts, access, scalar)
        self._parts += (len(term.ranges), len(term.args))
        if term.gather_axes is not None:
            self.checks_indices |= bool(term.gather_axes.purposes)
            self._parts.append(term.gather_axes.axes)
            for axis in term.gather_axes.axes:
                self._sizes += axis
        for part in term.ranges:
            self._sizes += (part.start, 0 if part.stop is None else part.stop)
            self._parts += (self._accesses[id(part.position)], part.start, part.stop)
        for arg in term.args:
            self._add_term(arg)
