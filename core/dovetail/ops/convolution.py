"""Convolutions and their gradients: kernels of `convolution` and the two that go with it.

All three are one sum, y[n, o, p] = sum of x[n, c, p * stride + i * dilation - low] w[o, c, i] over
channels c and taps i, x being 0 outside of its axes; each gives one of the three from the others.
So the gradients of each are the other two.

Products are summed by a fold along a line (`lines`), whose steps are in tables. Points along the
last axis read neighbours of the line; short axes are walked together, as one long one, with what is
between them: what that computes for nothing is not copied on. How axes are walked changes no bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from ..dtypes import int64
from ..layout import Shape
from ..loops.language import Value, const, fma, fold_loop, quo, reduce_loop, rem, where
from .lines import (
    BATCH,
    CHANNEL,
    ELEMENT,
    GROUP,
    LEAD,
    PHASE,
    Held,
    Line,
    Lines,
    ceil,
    moved,
    number,
)
from .site import KernelSite, Launches

LANES = 32  # neighbours that are reckoned to be computed at once
COPIED = 20  # steps of a fold that a second copy of an element is reckoned to take
FEW = 4  # channels: for fewer of them, not these share what is loaded, but rows of positions
NARROW = 8  # channels of y: for fewer, gradients of weights are sums along positions
CHUNK = 1024  # positions, at least, that are summed one after the other for a gradient of weights


class Geometry(NamedTuple):
    """How taps lie, along each axis: the attributes of these ops."""

    stride: Shape
    low: Shape  # zeros before the first element
    dilation: Shape
    groups: int


class _Sum(NamedTuple):
    """Which products are summed: `counts` positions along each axis, and what is stored where."""

    base: Shape  # where the first position is in the line
    counts: Shape
    first: Shape  # the first tap
    every: Shape  # how far taps are apart
    taps: Shape
    start: Shape  # where the first position is in the result
    step: Shape


def _term(x: Value, y: Value, total: Value) -> Value:
    return fma(x, y, total) if total.dtype.kind == "f" else total + x * y


def _none(site: KernelSite) -> None:
    """The kernel of a result without elements."""
    at = [site.axis(-1, d) for d in range(site.rank(-1))]
    site.store(const(0, int64), *at)


class _Convolution:
    """The launches of one of the ops: what they know of its shapes.

    What is summed are `summed` channels and the taps; the result has `kept` channels of a group.
    """

    summed = kept = 0

    def __init__(self, launches: Launches, weights: Shape) -> None:
        self.launches = launches
        self.g: Geometry = launches.attrs
        self.rank = rank = len(self.g.stride)
        self.axes = range(rank)
        self.dtype = launches.dtype(0).compute
        self.lines = Lines(launches, self.g.groups, rank, self.dtype)
        self.kernel = weights[-rank:]
        self.out, self.into = weights[-rank - 2] // self.g.groups, weights[-rank - 1]
        shape = launches.shape(launches.result)
        self.lead, self.n = shape[: self.lines.lead], shape[self.lines.lead]

    def leads(self, site: KernelSite) -> list[Value]:
        """The axes of the grid in front of all others."""
        return [site.points(f"lead{i}", n) for i, n in enumerate(self.lead)]

    def group(self, site: KernelSite) -> Value:
        """The axis of groups; none where there is one."""
        return site.points("groups", self.g.groups) if self.g.groups > 1 else const(0, int64)

    def taps(self, site: KernelSite, taps: Shape) -> list[Value]:
        """Axes of taps."""
        return [site.points(f"taps{a}", n) for a, n in enumerate(taps)]

    def channel(self, site: KernelSite, name: str, g: Value, c: Value, each: int) -> Value:
        """Which channel one of a group is, of all."""
        return c if self.g.groups == 1 else g * site.number(name, each) + c

    # --- tables

    def table(
        self, operand: int, s: _Sum, place: Callable[[KernelSite, Value, list[Value]], Value]
    ) -> int:
        """Where the products are in an operand, from the first one on: by channels, then taps."""
        table = self.launches.temporary(int64, (self.summed * math.prod(s.taps),))

        def build(site: KernelSite) -> None:
            c = site.points("summed", self.summed)
            taps = self.taps(site, s.taps)
            k = c
            for a in self.axes:
                k = k * site.number(f"taps{a}", s.taps[a]) + taps[a]
            site.store(place(site, c, taps), k)

        self.launches.launch(f"{self.launches.op.name}_table", build, operand, table)
        return table

    def tap(self, site: KernelSite, s: _Sum, line: Line, a: int, j: Value) -> tuple[Value, Value]:
        """The phase of a tap, and how far on it is there."""
        raise NotImplementedError

    def in_line(self, held: Held, s: _Sum) -> int:
        """The table of a line."""

        def place(site: KernelSite, c: Value, taps: list[Value]) -> Value:
            found = [self.tap(site, s, held.line, a, taps[a]) for a in self.axes]
            phases, on = [p for p, _ in found], [u for _, u in found]
            return held.place(site, 0, {CHANNEL: [c], PHASE: phases, ELEMENT: on})

        return self.table(held.operand, s, place)

    def weight(self, site: KernelSite, operand: int, at: Sequence[Value], g: Value, c: Value,
               kept: Value, taps: Sequence[Value]) -> Value:  # fmt: skip
        """Where a weight is, of one channel of each kind."""
        raise NotImplementedError

    def in_weights(self, operand: int, s: _Sum) -> int:
        """The table of weights."""
        zero = const(0, int64)

        def place(site: KernelSite, c: Value, taps: list[Value]) -> Value:
            taps = [moved(site, f"tap{a}", taps[a], s.first[a], s.every[a]) for a in self.axes]
            return self.weight(site, 0, [zero] * len(self.lead), zero, c, zero, taps)

        return self.table(operand, s, place)

    def weights(self) -> int:
        """The weights as they are multiplied: of reduced precision a copy in float32."""
        if self.launches.dtype(1) is self.dtype:
            return 1
        made = self.launches.temporary(self.dtype, self.launches.shape(1))

        def build(site: KernelSite) -> None:
            at = [site.axis(-1, d) for d in range(site.rank(-1))]
            site.store(site.read(0, *at), *at)

        self.launches.launch(f"{self.launches.op.name}_weights", build, 1, made)
        return made

    # --- the sum

    def together(self, counts: Shape, sizes: Shape, products: int) -> int:
        """How many axes are walked as one: 1 for the last alone; more than `rank`, with the batch.

        The one with the least work.
        """
        counts, found = (self.n, *counts), dict[int, int]()
        sizes = (math.prod(sizes), *[math.prod(sizes[a + 1 :]) for a in self.axes])
        for t in range(1, self.rank + 2):
            inner = range(self.rank + 1 - t, self.rank + 1)
            span = 1 + sum((counts[a] - 1) * sizes[a] for a in inner)
            work = math.prod(counts[: inner[0]]) * ceil(span, LANES) * LANES
            found[t] = work * products + (t > 1) * math.prod(counts) * COPIED
        return min(found, key=lambda t: (found[t], t))

    def held(self, line: Line, t: int) -> Held:
        """The line, to be walked so: the operand itself where it has all that is read."""
        ones, sizes = (1,) * self.rank, self.launches.shape(0)[-self.rank :]
        whole = line.step == line.phases == ones and not any(line.start)
        fits = all(a <= b for a, b in zip(line.reach, sizes, strict=True))
        direct = t == 1 and whole and fits and self.launches.has_rows(0)
        return self.lines.held(line._replace(batches=t > self.rank), direct=direct)

    def sum(self, held: Held, s: _Sum, weights: int, bias: int = -1) -> None:
        """Adds the launches of one sum, from a line to the result."""
        t = self.together(s.counts, held.line.sizes, self.summed * math.prod(s.taps))
        t = self.rank + 1 if held.line.batches else min(t, self.rank)
        operands = [held.operand, self.in_line(held, s), weights, self.in_weights(weights, s)]
        if bias >= 0:
            operands.append(bias)
        if t == 1:
            self._rows(held, s, operands)
        else:
            self._walked(held, s, operands, t)

    def _grid(
        self, site: KernelSite, outer: Shape, positions: int
    ) -> tuple[list[Value], Value, Value, list[Value], Value]:
        """Axes in front, group, channel, others, positions.

        The last but one is that along which points share most of what they load.
        """
        lead, g, few = self.leads(site), self.group(site), self.kept < FEW
        o = site.points("kept", self.kept) if few else None
        others = [site.points(f"outer{i}", n) for i, n in enumerate(outer)]
        o = site.points("kept", self.kept) if o is None else o
        return lead, g, o, others, site.points("positions", positions)

    def _rows(self, held: Held, s: _Sum, operands: list[int]) -> None:
        """Points are those of the result."""

        def build(site: KernelSite) -> None:
            lead, g, o, (n, *at), q = self._grid(site, (self.n, *s.counts[:-1]), s.counts[-1])
            at.append(q)
            u = [v + number(site, f"base{a}", s.base[a]) for a, v in enumerate(at)]
            place = held.place(site, 0, {LEAD: lead, BATCH: [n], GROUP: [g], ELEMENT: u})
            value = self._fold(site, place, lead, g, o)
            channel = self.channel(site, "kept", g, o, self.kept)
            at = [moved(site, f"to{a}", v, s.start[a], s.step[a]) for a, v in enumerate(at)]
            site.store(value, *lead, n, channel, *at)

        self.launches.launch(self.launches.op.name, build, *operands, self.launches.result)

    def _fold(
        self, site: KernelSite, place: Value, lead: Sequence[Value], g: Value, o: Value
    ) -> Value:
        """The sum of the products at one place of a line.

        Operands: the line, its table, the weights, their table, perhaps a bias.
        """
        zero = const(0, int64)
        start = self.weight(site, 2, lead, g, zero, o, [zero] * self.rank)

        def step(k: Value, total: Value) -> tuple[Value, ...]:
            x = site.element(0, place + site.read(1, k))
            return (_term(x, site.element(2, start + site.read(3, k)), total),)

        first = const(0, self.dtype)
        total = fold_loop(0, site.size(1, 0), (first,), step).results[0]
        if len(site.casts) < 5:
            return total
        return total + site.read(4, *lead, self.channel(site, "kept", g, o, self.kept))

    def _walked(self, held: Held, s: _Sum, operands: list[int], t: int) -> None:
        """Points are those of lines, `t` axes of which are walked as one; then they are copied."""
        counts, line = (self.n, *s.counts), held.line
        pitches, first = (line.length, *line.pitches), self.rank + 1 - t
        span = 1 + sum((counts[a] - 1) * pitches[a] for a in range(first, self.rank + 1))
        outer, name = counts[:first], self.launches.op.name
        shape = (*self.lead, self.g.groups, self.kept, *outer, max(span, 0))
        walked = self.launches.temporary(self.dtype, shape)

        def build(site: KernelSite) -> None:
            lead, g, o, out, q = self._grid(site, outer, max(span, 0))
            inner = [*out[1:], *[const(0, int64)] * (self.rank - len(out[1:]))]
            place = held.place(site, 0, {LEAD: lead, BATCH: out[:1], GROUP: [g], ELEMENT: inner})
            start = sum(b * p for b, p in zip(s.base, line.pitches, strict=True))
            place = place + q + number(site, "first", start)
            site.store(self._fold(site, place, lead, g, o), *lead, g, o, *out, q)

        def crop(site: KernelSite) -> None:
            lead, n, g = self.leads(site), site.points("n", self.n), self.group(site)
            o = site.points("kept", self.kept)
            at = [site.points(f"counts{a}", m) for a, m in enumerate(s.counts)]
            place = site.index(0, [*lead, g, o, *[n, *at][:first], const(0, int64)])
            for a in range(first, self.rank + 1):
                place = place + [n, *at][a] * number(site, f"pitch{a}", pitches[a])
            at = [moved(site, f"to{a}", v, s.start[a], s.step[a]) for a, v in enumerate(at)]
            channel = self.channel(site, "kept", g, o, self.kept)
            site.store(site.element(0, place), *lead, n, channel, *at)

        self.launches.launch(name, build, *operands, walked)
        self.launches.launch(f"{name}_result", crop, walked, self.launches.result)


class _Forward(_Convolution):
    """y of x and w, and perhaps of a bias."""

    def run(self) -> None:
        """Adds the launches."""
        self.summed, self.kept = self.into, self.out
        result = self.launches.result
        counts = self.launches.shape(result)[-self.rank :]
        line = _spaced(self.g, self.kernel, counts).sharing(self.launches.shape(0))
        t = self.together(counts, line.sizes, self.into * math.prod(self.kernel))
        held, none, ones = self.held(line, t), (0,) * self.rank, (1,) * self.rank
        s = _Sum(none, counts, none, ones, self.kernel, none, ones)
        self.sum(held, s, self.weights(), 2 if result == 3 else -1)

    def tap(self, site: KernelSite, s: _Sum, line: Line, a: int, j: Value) -> tuple[Value, Value]:
        """See `_Convolution`."""
        return _spaced_tap(site, self.g, line, a, j)

    def weight(self, site: KernelSite, operand: int, at: Sequence[Value], g: Value, c: Value,
               kept: Value, taps: Sequence[Value]) -> Value:  # fmt: skip
        """See `_Convolution`."""
        return site.index(operand, [*at, self.channel(site, "kept", g, kept, self.out), c, *taps])


def _spaced(g: Geometry, kernel: Shape, counts: Shape) -> Line:
    """The line of x, with phases."""
    axes = range(len(kernel))
    apart = tuple([math.gcd(g.stride[a], g.dilation[a]) for a in axes])
    phases = tuple([1 if kernel[a] == 1 else g.stride[a] // apart[a] for a in axes])
    reach = tuple(
        [n + (kernel[a] - 1) * g.dilation[a] // g.stride[a] for a, n in enumerate(counts)]
    )
    low = tuple([-n for n in g.low])
    return Line(0, low, g.stride, phases, apart, reach, reach)


def _spaced_tap(site: KernelSite, g: Geometry, line: Line, a: int, j: Value) -> tuple[Value, Value]:
    on = j * number(site, f"dilation{a}", g.dilation[a])
    if g.stride[a] == 1:
        return const(0, int64), on
    by = site.number(f"stride{a}", g.stride[a])
    return quo(rem(on, by), number(site, f"apart{a}", line.apart[a])), quo(on, by)


class _Phase(NamedTuple):
    """Along an axis of x: elements that the same taps meet."""

    first: int  # position of y that tap 0 would have, for the first of them
    length: int
    start: int  # the first of them
    tap: int  # the first of the taps
    every: int
    taps: int
    nearest: int  # how far back the first tap is
    furthest: int


class _Backward(_Convolution):
    """x of y and w: what convolution makes of x, transposed."""

    def run(self) -> None:
        """Adds the launches."""
        self.summed, self.kept = self.out, self.into
        sizes = self.launches.shape(self.launches.result)[-self.rank :]
        found = [[p for p in self._phases(a, sizes[a]) if p.length] for a in self.axes]
        if not all(found):  # there is no element of x
            self.launches.launch(self.launches.op.name, _none, self.launches.result)
            return
        start = tuple([min(p.first - p.furthest for p in along) for along in found])
        end = [max(p.first + p.length - p.nearest for p in along) for along in found]
        reach = tuple([max(e - b, 1) for b, e in zip(start, end, strict=True)])
        ones = (1,) * self.rank
        line = Line(0, start, ones, ones, ones, reach, reach).sharing(self.launches.shape(0))
        most = max(math.prod(p.taps for p in phases) for phases in product(*found))
        counts = tuple([max(p.length for p in along) for along in found])
        t = self.together(counts, line.sizes, self.out * max(most, 1))
        held, weights = self.held(line, t), self.weights()
        for phases in product(*found):
            self._phase(held, weights, phases)

    def _phases(self, a: int, size: int) -> Iterator[_Phase]:
        """Along an axis: the elements of x that the same taps meet."""
        stride, low, d, k = self.g.stride[a], self.g.low[a], self.g.dilation[a], self.kernel[a]
        every = stride // math.gcd(stride, d)
        for phase in range(stride):
            first = ceil(low - phase, stride)
            count = max(0, ceil(size + low - phase, stride) - first)
            tap = next((i for i in range(min(k, every)) if i * d % stride == phase), k)
            taps = ceil(k - tap, every)
            last = tap + max(taps - 1, 0) * every
            back = (tap * d // stride, last * d // stride) if taps else (0, 0)
            yield _Phase(first, count, first * stride + phase - low, tap, every, taps, *back)

    def _phase(self, held: Held, weights: int, phases: Sequence[_Phase]) -> None:
        start = held.line.start
        s = _Sum(
            tuple([p.first - p.furthest - b for p, b in zip(phases, start, strict=True)]),
            tuple([p.length for p in phases]), tuple([p.tap for p in phases]),
            tuple([p.every for p in phases]), tuple([p.taps for p in phases]),
            tuple([p.start for p in phases]), self.g.stride,
        )  # fmt: skip
        self.sum(held, s, weights)

    def tap(self, site: KernelSite, s: _Sum, line: Line, a: int, j: Value) -> tuple[Value, Value]:
        """Taps go back."""
        on = s.every[a] * self.g.dilation[a] // self.g.stride[a]
        back = number(site, f"last{a}", s.taps[a] - 1) - j
        return const(0, int64), back * number(site, f"on{a}", on)

    def weight(self, site: KernelSite, operand: int, at: Sequence[Value], g: Value, c: Value,
               kept: Value, taps: Sequence[Value]) -> Value:  # fmt: skip
        """See `_Convolution`."""
        out = self.channel(site, "filters", g, c, self.out)
        return site.index(operand, [*at, out, kept, *taps])


class _OfWeights(_Convolution):
    """w of x and y."""

    def run(self) -> None:
        """Adds the launches."""
        counts = self.launches.shape(1)[-self.rank :]
        self.n = self.launches.shape(0)[len(self.lead)]
        line = _spaced(self.g, self.kernel, counts).sharing(self.launches.shape(0))
        line = line._replace(batches=True)
        none, ones = (0,) * self.rank, (1,) * self.rank
        beside = Line(1, none, ones, ones, ones, line.sizes, line.sizes, True)
        span = sum((c - 1) * p for c, p in zip(counts, line.pitches, strict=True))
        span = (self.n - 1) * line.length + span + 1 if self.n and all(counts) else 0
        last = self.out >= NARROW
        x, y = self.lines.held(line, last=last), self.lines.held(beside, last=last)
        (self._across if last else self._along)(x, y, span, self._chunk(line, span))

    def _chunk(self, line: Line, span: int) -> int:
        """How many positions are summed for a gradient of its own.

        These take up no more memory than the operands.
        """
        size = math.prod(self.launches.shape(self.launches.result)[len(self.lead) :])
        room = self.n * line.length * max(self.out, self.into) * self.g.groups * 2 // max(size, 1)
        return max(1, ceil(span, max(1, min(ceil(span, CHUNK), room))))

    def _across(self, x: Held, y: Held, span: int, each: int) -> None:
        """Channels of y are neighbours; each position adds to all weights."""
        chunks = max(1, ceil(span, each))
        shape = (*self.lead, chunks, self.g.groups, *self.kernel, self.into, self.out)
        made = self.launches.temporary(self.dtype, shape)

        def build(site: KernelSite) -> None:
            lead, chunk, g = self.leads(site), site.points("chunks", chunks), self.group(site)
            taps = self.taps(site, self.kernel)
            c, o = site.points("into", self.into), site.points("kept", self.out)
            first, other = self._starts(site, x, y, lead, g, c, o, taps)
            start, stop = self._bounds(site, chunk, span, each)

            def step(t: Value, total: Value) -> tuple[Value, ...]:
                a = site.element(0, first + t * site.number("into", self.into))
                b = site.element(1, other + t * site.number("kept", self.out))
                return (_term(a, b, total),)

            total = fold_loop(start, stop, (const(0, self.dtype),), step).results[0]
            site.store(total, *lead, chunk, g, *taps, c, o)

        self.launches.launch(self.launches.op.name, build, x.operand, y.operand, made)
        self._added_up(made, chunks, lambda taps, c, o: [*taps, c, o])

    def _along(self, x: Held, y: Held, span: int, each: int) -> None:
        """Positions are neighbours: each weight is a sum along them."""
        chunks = max(1, ceil(span, each))
        shape = (*self.lead, chunks, self.g.groups, self.out, self.into, *self.kernel)
        made = self.launches.temporary(self.dtype, shape)

        def build(site: KernelSite) -> None:
            lead, chunk, g = self.leads(site), site.points("chunks", chunks), self.group(site)
            o, c = site.points("kept", self.out), site.points("into", self.into)
            taps = self.taps(site, self.kernel)
            first, other = self._starts(site, x, y, lead, g, c, o, taps)
            start, stop = self._bounds(site, chunk, span, each)
            total = reduce_loop(
                "add", start, stop,
                lambda t: site.element(0, first + t) * site.element(1, other + t),
            )[0]  # fmt: skip
            site.store(total, *lead, chunk, g, o, c, *taps)

        self.launches.launch(self.launches.op.name, build, x.operand, y.operand, made)
        self._added_up(made, chunks, lambda taps, c, o: [o, c, *taps])

    def _starts(
        self, site: KernelSite, x: Held, y: Held, lead: Sequence[Value], g: Value, c: Value,
        o: Value, taps: Sequence[Value],
    ) -> tuple[Value, Value]:  # fmt: skip
        """Where the first products are, in both lines."""
        found = [_spaced_tap(site, self.g, x.line, a, taps[a]) for a in self.axes]
        on = {PHASE: [p for p, _ in found], ELEMENT: [u for _, u in found]}
        first = x.place(site, 0, {LEAD: lead, GROUP: [g], CHANNEL: [c], **on})
        return first, y.place(site, 1, {LEAD: lead, GROUP: [g], CHANNEL: [o]})

    def _bounds(self, site: KernelSite, chunk: Value, span: int, each: int) -> tuple[Value, Value]:
        by, n = site.number("each", each), site.number("span", span)
        stop = chunk * by + by
        return chunk * by, where(stop < n, stop, n)

    def _added_up(
        self, made: int, chunks: int,
        order: Callable[[list[Value], Value, Value], list[Value]],
    ) -> None:  # fmt: skip
        """Adds the launch that adds up what chunks have."""

        def build(site: KernelSite) -> None:
            lead, g = self.leads(site), self.group(site)
            taps = self.taps(site, self.kernel)
            c, o = site.points("into", self.into), site.points("kept", self.out)
            total = reduce_loop(
                "add", 0, site.number("chunks", chunks),
                lambda k: site.read(0, *lead, k, g, *order(taps, c, o)),
            )[0]  # fmt: skip
            channel = self.channel(site, "kept", g, o, self.out)
            site.store(total, *lead, channel, c, *taps)

        self.launches.launch(f"{self.launches.op.name}_sum", build, made, self.launches.result)


def convolution(launches: Launches) -> None:
    """y of (x, w), or of (x, w, bias)."""
    _Forward(launches, launches.shape(1)).run()


def convolution_input(launches: Launches) -> None:
    """x of (y, w)."""
    _Backward(launches, launches.shape(1)).run()


def convolution_weight(launches: Launches) -> None:
    """w of (x, y)."""
    _OfWeights(launches, launches.shape(launches.result)).run()
