"""Lines: copies of tensors with zeros around them, in which a step along an axis is a number.

Where a tap of a filter is so many elements further on, wherever one stands, its products are a fold
whose step loads how many from a table, and no patches are stored. Where a stride leaves out
elements, a line has them apart by *phases*, as many as the stride, so that neighbours stay so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from ..dtypes import DType, int64
from ..layout import Shape
from ..loops.language import Value, const
from .site import KernelSite, Launches

# Kinds of axes: those in front of the batch, the batch, groups, channels, phases, elements.
LEAD, BATCH, GROUP, CHANNEL, PHASE, ELEMENT = "abgcpu"
Indices = Mapping[str, Sequence[Value]]  # by kind of axis; what is not given is 0


def ceil(a: int, b: int) -> int:
    """a / b, upwards."""
    return -(-a // b)


def number(site: KernelSite, name: str, n: int) -> Value:
    """A run-time integer; of 0 and 1, which mean that there is nothing to do, kernels know."""
    return const(n, int64) if n in (0, 1) else site.number(name, n)


def moved(site: KernelSite, name: str, i: Value, start: int, step: int) -> Value:
    """start + i * step."""
    return i * number(site, f"step_{name}", step) + number(site, f"start_{name}", start)


class Part(NamedTuple):
    """Along an axis: what a phase of a line has of a tensor."""

    phase: int
    first: int  # the first element that is there
    source: int  # which element of the tensor that is
    length: int


class Line(NamedTuple):
    """Of an operand: element u of a phase is its element u * step + phase * apart + start."""

    operand: int
    start: Shape
    step: Shape
    phases: Shape
    apart: Shape
    reach: Shape  # how many elements are read, along each axis
    sizes: Shape  # how many there are: where the zeros of the next row will do, they are not more
    batches: bool = False  # whether a line goes on from one of the batch to the next

    def parts(self, a: int, n: int) -> Iterator[Part]:
        """What each phase has of the `n` elements along an axis."""
        for phase in range(self.phases[a]):
            start = phase * self.apart[a] + self.start[a]
            first = max(0, ceil(-start, self.step[a]))
            end = min(self.reach[a], ceil(n - start, self.step[a]))
            source = first * self.step[a] + start
            yield Part(phase, first, source, max(0, end - first))

    def sharing(self, shape: Shape) -> Line:
        """The same of a tensor of this shape, where the zeros after a row are those of the next."""
        held = []
        for a, n in enumerate(self.reach):
            parts = [p for p in self.parts(a, shape[a - len(self.reach)]) if p.length]
            before = min((p.first for p in parts), default=0)
            after = min((n - p.first - p.length for p in parts), default=0)
            held.append(n - max(0, min(before, after)))
        return self._replace(sizes=tuple(held))

    @property
    def pitches(self) -> Shape:
        """From one element to the next, along each axis."""
        return tuple([math.prod(self.sizes[a + 1 :]) for a in range(len(self.sizes))])

    @property
    def length(self) -> int:
        """How many elements there are."""
        return math.prod(self.sizes)

    @property
    def beyond(self) -> int:
        """How many elements are read after the last one."""
        more = zip(self.reach, self.sizes, self.pitches, strict=True)
        return sum((r - n) * p for r, n, p in more)


class Held(NamedTuple):
    """A line in memory, or a tensor that is its own."""

    operand: int
    line: Line
    extents: Mapping[str, Shape]
    order: Sequence[str]
    direct: bool = False

    @property
    def strides(self) -> dict[str, Shape]:
        """From one element to the next, by kind of axis."""
        found, step = {}, 1
        for k in reversed(self.order):
            sizes: list[int] = []
            for n in reversed(self.extents[k]):
                sizes.append(step)
                step *= n
            found[k] = tuple(reversed(sizes))
        return found

    def place(self, site: KernelSite, operand: int, at: Indices) -> Value:
        """Where an element is, the line being an operand of a kernel."""
        zero = const(0, int64)
        if self.direct:
            every = {k: at.get(k) or [zero] * len(n) for k, n in self.extents.items()}
            c = self.channel(site, every[GROUP][0], every[CHANNEL][0])
            return site.index(operand, [*every[LEAD], every[BATCH][0], c, *every[ELEMENT]])
        total, strides = zero, self.strides
        for k in self.order:
            for i, v in enumerate(at.get(k, ())):
                total = total + v * number(site, f"by_{k}{i}_{operand % 9}", strides[k][i])
        return total

    def channel(self, site: KernelSite, g: Value, c: Value) -> Value:
        """Which channel one of a group is, of all."""
        groups, channels = self.extents[GROUP][0], self.extents[CHANNEL][0]
        return c if groups == 1 else g * site.number("channels", channels) + c


class Lines:
    """Makes the lines of an op of operands (*lead, batch, channels, *axes)."""

    def __init__(self, launches: Launches, groups: int, rank: int, dtype: DType) -> None:
        self.launches, self.groups, self.rank, self.dtype = launches, groups, rank, dtype
        self.lead = len(launches.shape(0)) - rank - 2

    def held(self, line: Line, *, last: bool = False, direct: bool = False) -> Held:
        """Makes a line. `last`: channels are neighbours; `direct`: the tensor will do."""
        shape = self.launches.shape(line.operand)
        extents = {
            LEAD: shape[: self.lead], BATCH: (shape[self.lead],), GROUP: (self.groups,),
            CHANNEL: (shape[self.lead + 1] // self.groups,), PHASE: line.phases,
            ELEMENT: line.sizes,
        }  # fmt: skip
        order = (LEAD, BATCH, GROUP, CHANNEL, PHASE, ELEMENT)
        if last:
            order = (LEAD, GROUP, PHASE, BATCH, ELEMENT, CHANNEL)
        elif line.batches:
            order = (LEAD, GROUP, CHANNEL, PHASE, BATCH, ELEMENT)
        if direct:
            return Held(line.operand, line, extents, order, True)
        beyond = line.beyond * (extents[CHANNEL][0] if last else 1)
        size = math.prod([n for k in order for n in extents[k]]) + beyond
        made = Held(self.launches.temporary(self.dtype, (size,)), line, extents, order)
        self._fill(made, shape, size)
        return made

    def _fill(self, made: Held, shape: Shape, size: int) -> None:
        line = made.line
        parts = [[*line.parts(a, shape[a - self.rank])] for a in range(self.rank)]
        if any(p.length < n for n, along in zip(line.reach, parts, strict=True) for p in along):
            self._zeros(made.operand, size)
        for chosen in product(*parts):
            if all(p.length for p in chosen):
                self._part(made, chosen)

    def _zeros(self, made: int, size: int) -> None:
        def build(site: KernelSite) -> None:
            site.store(const(0, self.dtype), site.points("all", size))

        self.launches.launch(f"{self.launches.op.name}_zeros", build, made)

    def _part(self, made: Held, parts: Sequence[Part]) -> None:
        """Adds the copy of what one phase has of the tensor."""
        extents = {**made.extents, ELEMENT: tuple([p.length for p in parts])}

        def build(site: KernelSite) -> None:
            at = {k: self._indices(site, k, extents[k], parts) for k in made.order}
            channel = made.channel(site, at[GROUP][0], at[CHANNEL][0])
            place = [*at[LEAD], at[BATCH][0], channel]
            for a, p in enumerate(parts):
                u = at[ELEMENT][a]
                place.append(moved(site, f"from{a}", u, p.source, made.line.step[a]))
                at[ELEMENT][a] = u + number(site, f"at{a}", p.first)
            site.store(site.read(0, *place), made.place(site, -1, at))

        self.launches.launch(
            f"{self.launches.op.name}_line", build, made.line.operand, made.operand
        )

    def _indices(
        self, site: KernelSite, k: str, extents: Shape, parts: Sequence[Part]
    ) -> list[Value]:
        """Axes of the grid; there is one phase, and none for a group where there are no others."""
        if k == PHASE:
            return [number(site, f"phase{a}", p.phase) for a, p in enumerate(parts)]
        if k == GROUP and self.groups == 1:
            return [const(0, int64)]
        return [site.points(f"{k}{i}_", n) for i, n in enumerate(extents)]
