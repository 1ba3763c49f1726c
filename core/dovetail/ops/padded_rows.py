"""Lines: padded copies of tensors, in which each tap of a filter has a fixed distance.

So the products of a convolution are a fold whose step loads the distance from a table, and no
patches are stored. If a stride leaves out elements, a line separates them into *phases*, as many as
the stride, so that neighbours stay neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from ..dtypes import DType, int64
from ..ir.language import Value, const
from ..layout import Shape
from .kernel_context import KernelSite, Launches

# Kinds of axes: those in front of the batch, the batch, groups, channels, phases, elements.
LEAD, BATCH, GROUP, CHANNEL, PHASE, ELEMENT = "abgcpu"
Indices = Mapping[str, Sequence[Value]]  # by kind of axis; absent ones are 0


def ceil_div(a: int, b: int) -> int:
    """Return a / b, rounded up."""
    return -(-a // b)


def integer_or_constant(site: KernelSite, name: str, n: int) -> Value:
    """Return a run-time integer, or 0 and 1 as constants, which kernels simplify."""
    return const(n, int64) if n in (0, 1) else site.number(name, n)


def affine(site: KernelSite, name: str, i: Value, start: int, step: int) -> Value:
    """Return start + i * step."""
    return i * integer_or_constant(site, f"step_{name}", step) + integer_or_constant(
        site, f"start_{name}", start
    )


class PhasePart(NamedTuple):
    """The elements of a tensor that a phase of a line has, along an axis."""

    phase: int
    first: int  # the first element of the phase that the tensor has
    source: int  # the tensor's element for it
    length: int


class PaddedRow(NamedTuple):
    """A line of an operand: element u of a phase is its u * step + phase * apart + start."""

    operand: int
    start: Shape
    step: Shape
    phases: Shape
    phase_offset: Shape
    read_sizes: Shape  # elements that are read, along each axis
    sizes: Shape  # elements that are stored: rows share zeros, so they may be fewer
    batches: bool = False  # True if a line goes on from one element of the batch to the next

    def parts(self, a: int, n: int) -> Iterator[PhasePart]:
        """Yield the part of the `n` elements along an axis that each phase has."""
        for phase in range(self.phases[a]):
            start = phase * self.phase_offset[a] + self.start[a]
            first = max(0, ceil_div(-start, self.step[a]))
            end = min(self.read_sizes[a], ceil_div(n - start, self.step[a]))
            source = first * self.step[a] + start
            yield PhasePart(phase, first, source, max(0, end - first))

    def share_zeros(self, shape: Shape) -> PaddedRow:
        """Return this line for a tensor of this shape, whose rows share the zeros between them."""
        sizes = []
        for a, n in enumerate(self.read_sizes):
            nonempty = [p for p in self.parts(a, shape[a - len(self.read_sizes)]) if p.length]
            before = min((p.first for p in nonempty), default=0)
            after = min((n - p.first - p.length for p in nonempty), default=0)
            sizes.append(n - max(0, min(before, after)))
        return self._replace(sizes=tuple(sizes))

    @property
    def pitches(self) -> Shape:
        """The distance from one element to the next, along each axis."""
        return tuple([math.prod(self.sizes[a + 1 :]) for a in range(len(self.sizes))])

    @property
    def length(self) -> int:
        """The number of elements."""
        return math.prod(self.sizes)

    @property
    def overread_length(self) -> int:
        """The number of elements that are read after the last one."""
        more = zip(self.read_sizes, self.sizes, self.pitches, strict=True)
        return sum((r - n) * p for r, n, p in more)


class PaddedRowBuffer(NamedTuple):
    """A line in memory, or a tensor that is its own line."""

    operand: int
    line: PaddedRow
    extents: Mapping[str, Shape]
    order: Sequence[str]
    direct: bool = False

    @property
    def strides(self) -> dict[str, Shape]:
        """The distance from one element to the next, by kind of axis."""
        strides, step = {}, 1
        for k in reversed(self.order):
            sizes: list[int] = []
            for n in reversed(self.extents[k]):
                sizes.append(step)
                step *= n
            strides[k] = tuple(reversed(sizes))
        return strides

    def index_of(self, site: KernelSite, operand: int, at: Indices) -> Value:
        """Return the linear index of an element of the line; axes that `at` lacks are at 0."""
        zero = const(0, int64)
        if self.direct:
            every = {k: at.get(k) or [zero] * len(n) for k, n in self.extents.items()}
            c = self.channel_index(site, every[GROUP][0], every[CHANNEL][0])
            return site.index(operand, [*every[LEAD], every[BATCH][0], c, *every[ELEMENT]])
        total, strides = zero, self.strides
        for k in self.order:
            for i, v in enumerate(at.get(k, ())):
                total = total + v * integer_or_constant(
                    site, f"by_{k}{i}_{operand % 9}", strides[k][i]
                )
        return total

    def channel_index(self, site: KernelSite, g: Value, c: Value) -> Value:
        """Return the index of a group's channel among all channels."""
        groups, channels = self.extents[GROUP][0], self.extents[CHANNEL][0]
        return c if groups == 1 else g * site.number("channels", channels) + c


class PaddedRowBuilder:
    """A builder of lines for an op with operands (*lead, batch, channels, *axes)."""

    def __init__(self, launches: Launches, groups: int, rank: int, dtype: DType) -> None:
        self.launches, self.groups, self.rank, self.dtype = launches, groups, rank, dtype
        self.lead = len(launches.shape(0)) - rank - 2

    def build(
        self, line: PaddedRow, *, channels_last: bool = False, direct: bool = False
    ) -> PaddedRowBuffer:
        """Return the buffer of a line; add the launches that fill it, unless `direct`.

        channels_last: channels are neighbours. direct: the tensor itself is the line.
        """
        shape = self.launches.shape(line.operand)
        extents = {
            LEAD: shape[: self.lead],
            BATCH: (shape[self.lead],),
            GROUP: (self.groups,),
            CHANNEL: (shape[self.lead + 1] // self.groups,),
            PHASE: line.phases,
            ELEMENT: line.sizes,
        }
        order = (LEAD, BATCH, GROUP, CHANNEL, PHASE, ELEMENT)
        if channels_last:
            order = (LEAD, PHASE, BATCH, ELEMENT, GROUP, CHANNEL)
        elif line.batches:
            order = (LEAD, GROUP, CHANNEL, PHASE, BATCH, ELEMENT)
        if direct:
            return PaddedRowBuffer(line.operand, line, extents, order, True)
        channels = extents[CHANNEL][0] * self.groups
        overread = line.overread_length * (channels if channels_last else 1)
        size = math.prod([n for k in order for n in extents[k]]) + overread
        line_buffer = PaddedRowBuffer(
            self.launches.temporary(self.dtype, (size,)), line, extents, order
        )
        self._fill(line_buffer, shape, size)
        return line_buffer

    def _fill(self, line_buffer: PaddedRowBuffer, shape: Shape, size: int) -> None:
        """Add the launches that store the tensor's elements, and before them zeros if needed."""
        line = line_buffer.line
        parts_by_axis = [[*line.parts(a, shape[a - self.rank])] for a in range(self.rank)]
        if any(
            p.length < n
            for n, along in zip(line.read_sizes, parts_by_axis, strict=True)
            for p in along
        ):
            self._fill_zeros(line_buffer.operand, size)
        for chosen in product(*parts_by_axis):
            if all(p.length for p in chosen):
                self._copy_part(line_buffer, chosen)

    def _fill_zeros(self, operand: int, size: int) -> None:
        """Add the launch that stores zeros in all elements of an operand."""

        def build(site: KernelSite) -> None:
            """Build the kernel that stores zeros."""
            site.store(const(0, self.dtype), site.points("all", size))

        self.launches.launch(f"{self.launches.op.name}_zeros", build, operand)

    def _copy_part(self, line_buffer: PaddedRowBuffer, parts: Sequence[PhasePart]) -> None:
        """Add the copy of the elements that one phase has of the tensor."""
        extents = {**line_buffer.extents, ELEMENT: tuple([p.length for p in parts])}

        def build(site: KernelSite) -> None:
            """Build the kernel that copies one phase's elements to the line."""
            at = {k: self._add_grid_axes(site, k, extents[k], parts) for k in line_buffer.order}
            channel = line_buffer.channel_index(site, at[GROUP][0], at[CHANNEL][0])
            source_index = [*at[LEAD], at[BATCH][0], channel]
            for a, p in enumerate(parts):
                u = at[ELEMENT][a]
                source_index.append(affine(site, f"from{a}", u, p.source, line_buffer.line.step[a]))
                at[ELEMENT][a] = u + integer_or_constant(site, f"at{a}", p.first)
            site.store(site.read(0, *source_index), line_buffer.index_of(site, -1, at))

        self.launches.launch(
            f"{self.launches.op.name}_line", build, line_buffer.line.operand, line_buffer.operand
        )

    def _add_grid_axes(
        self, site: KernelSite, k: str, extents: Shape, parts: Sequence[PhasePart]
    ) -> list[Value]:
        """Add axes of the grid and return their indices: none for phases, one group, one channel.

        So lanes are points of a longer axis.
        """
        if k == PHASE:
            return [integer_or_constant(site, f"phase{a}", p.phase) for a, p in enumerate(parts)]
        if k in (GROUP, CHANNEL) and extents == (1,):
            return [const(0, int64)]
        return [site.points(f"{k}{i}_", n) for i, n in enumerate(extents)]
