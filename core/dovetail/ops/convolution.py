"""Convolutions and their gradients: kernels of `convolution` and the two that go with it.

All three are one sum, y[n, o, p] = sum of x[n, c, p * stride + i * dilation - low] w[o, c, i] over
channels c and taps i, x being 0 outside of its axes; each gives one of the three from the others.
So the gradients of each are the other two.

No patches are stored. A *line* is a copy of a tensor with zeros around it, in which a tap is so
many elements further on, wherever one stands: the products are a fold whose step loads how many
from a table, and points along the last axis read neighbours. Where a stride leaves out elements,
the line has them apart by *phases*, as many as the stride, so that neighbours stay neighbours.
Short axes are walked together, as one long one, with what is between them: what that computes for
nothing is not copied on. How axes are walked changes no bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

from ..dtypes import DType, int64
from ..layout import Shape
from ..loops.language import Value, const, fma, fold_loop, quo, reduce_loop, rem, where
from .site import KernelSite, Launches

LANES = 32  # neighbours that are reckoned to be computed at once
COPIED = 20  # steps of a fold that a second copy of an element is reckoned to take
FEW = 4  # channels: for fewer of them, not these share what is loaded, but rows of positions
NARROW = 8  # channels of y: for fewer, gradients of weights are sums along positions
CHUNK = 1024  # positions, at least, that are summed one after the other for a gradient of weights

Indices: TypeAlias = Sequence[Value]


class Geometry(NamedTuple):
    """How taps lie, along each axis: the attributes of these ops."""

    stride: Shape
    low: Shape  # zeros before the first element
    dilation: Shape
    groups: int


class _Line(NamedTuple):
    """A copy of a tensor, in which element u of a phase is u * step + phase * apart + start."""

    operand: int
    start: Shape
    step: Shape
    phases: Shape
    apart: Shape
    sizes: Shape
    batches: bool = False  # whether a line goes on from one of the batch to the next
    direct: bool = False  # whether it is the tensor itself, of which no copy is made

    def parts(self, a: int, n: int) -> Iterator[_Part]:
        """What each phase has of the `n` elements along an axis."""
        for phase in range(self.phases[a]):
            start = phase * self.apart[a] + self.start[a]
            first = max(0, _ceil(-start, self.step[a]))
            end = min(self.sizes[a], _ceil(n - start, self.step[a]))
            source = first * self.step[a] + start
            yield _Part(phase, first, source, max(0, end - first))

    @property
    def pitches(self) -> Shape:
        """From one element to the next, along each axis."""
        return tuple([math.prod(self.sizes[a + 1 :]) for a in range(len(self.sizes))])


class _Part(NamedTuple):
    """Along an axis: what a phase of a line has of a tensor."""

    phase: int
    first: int  # the first element that is there
    source: int  # which element of the tensor that is
    count: int


class _Sum(NamedTuple):
    """Which products are summed: `counts` positions along each axis, and what is stored where."""

    line: _Line
    base: Shape  # where the first position is in the line
    counts: Shape
    first: Shape  # the first tap
    every: Shape  # how far taps are apart
    taps: Shape
    start: Shape  # where the first position is in the result
    step: Shape


def _number(site: KernelSite, name: str, n: int) -> Value:
    """A run-time integer; what means that there is nothing to do is said in the kernel."""
    return const(n, int64) if n in (0, 1) else site.number(name, n)


def _moved(site: KernelSite, name: str, i: Value, start: int, step: int) -> Value:
    """start + i * step."""
    return i * _number(site, f"step_{name}", step) + _number(site, f"start_{name}", start)


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _term(x: Value, y: Value, total: Value) -> Value:
    return fma(x, y, total) if total.dtype.kind == "f" else total + x * y


class _Convolution:
    """The launches of one of the ops: what they know of its shapes."""

    def __init__(self, launches: Launches, weights: Shape, rank: int) -> None:
        self.launches = launches
        self.g: Geometry = launches.attrs
        self.rank = rank
        self.axes = range(rank)
        self.lead = len(launches.shape(0)) - rank - 2  # axes in front of the batch
        self.kernel = weights[-rank:]
        self.out, self.into = weights[-rank - 2] // self.g.groups, weights[-rank - 1]
        self.dtype: DType = launches.dtype(0).compute

    # --- lines

    def line(self, line: _Line, last: bool = False) -> int:
        """Makes a line; `last`: channels are its last axis. Its number.

        Its axes: (*lead, n, group, channel, *phases, *sizes), or n behind the phases where lines go
        on; or (*lead, group, *phases, n, *sizes, channel).
        """
        shape = self.launches.shape(line.operand)
        n, channels = shape[self.lead], shape[self.lead + 1] // self.g.groups
        order = self.order(line, last)
        extents = {
            "lead": shape[: self.lead], "n": (n,), "g": (self.g.groups,), "c": (channels,),
            "p": line.phases, "u": line.sizes,
        }  # fmt: skip
        made = self.launches.temporary(self.dtype, tuple([e for k in order for e in extents[k]]))
        parts = [[*line.parts(a, shape[a - self.rank])] for a in self.axes]
        if any(p.count < line.sizes[a] for a in self.axes for p in parts[a]):
            self._zeros(made, math.prod([e for k in order for e in extents[k]]))
        for chosen in product(*parts):
            if all(p.count for p in chosen):
                self._part(
                    line, made, order, extents | {"u": tuple([p.count for p in chosen])}, chosen
                )
        return made

    def _zeros(self, made: int, n: int) -> None:
        def build(site: KernelSite) -> None:
            i = site.points("all", n)
            site.builder.effect(site.put_element(-1, const(0, self.dtype), i))

        self.launches.launch(f"{self.launches.op.name}_zeros", build, made)

    def _part(
        self, line: _Line, made: int, order: Sequence[str], extents: dict[str, Shape],
        parts: Sequence[_Part],
    ) -> None:  # fmt: skip
        """Adds the copy of what one phase has of the source."""

        channels = extents["c"][0]

        def build(site: KernelSite) -> None:
            at = {k: self._indices(site, k, extents[k], parts) for k in order}
            place = [*at["lead"], at["n"][0], self.channel(site, at["g"][0], at["c"][0], channels)]
            for a, p in enumerate(parts):
                place.append(_moved(site, f"from{a}", at["u"][a], p.source, line.step[a]))
                at["u"][a] = at["u"][a] + _number(site, f"at{a}", p.first)
            site.store(site.read(0, *place), *[v for k in order for v in at[k]])

        self.launches.launch(f"{self.launches.op.name}_line", build, line.operand, made)

    def _indices(
        self, site: KernelSite, k: str, extents: Shape, parts: Sequence[_Part]
    ) -> list[Value]:
        """Axes of the grid; there is one phase, and none for a group where there are no others."""
        if k == "p":
            return [_number(site, f"phase{a}", p.phase) for a, p in enumerate(parts)]
        if k == "g" and self.g.groups == 1:
            return [const(0, int64)]
        return [site.points(f"{k}{i}", n) for i, n in enumerate(extents)]

    def order(self, line: _Line, last: bool = False) -> tuple[str, ...]:
        """The axes of a line."""
        if last:
            return ("lead", "g", "p", "n", "u", "c")
        if line.batches:
            return ("lead", "g", "c", "p", "n", "u")
        return ("lead", "n", "g", "c", "p", "u")

    def channel(self, site: KernelSite, g: Value, c: Value, channels: int) -> Value:
        """Which channel one of a group is, of all."""
        return c if self.g.groups == 1 else g * site.number("channels", channels) + c

    def index(
        self, site: KernelSite, line: _Line, at: dict[str, Sequence[Value]], last: bool = False
    ) -> Value:
        """Where an element of a line is, which is operand 0; indices that are not given are 0."""
        counts = {"lead": self.lead, "n": 1, "g": 1, "c": 1, "p": self.rank, "u": self.rank}
        all_ = {k: at.get(k) or [const(0, int64)] * n for k, n in counts.items()}
        if line.direct:
            channels = site.extent(0, self.lead + 1) // self.g.groups
            channel = self.channel(site, all_["g"][0], all_["c"][0], channels)
            return site.index(0, [*all_["lead"], all_["n"][0], channel, *all_["u"]])
        return site.index(0, [v for k in self.order(line, last) for v in all_[k]])

    # --- tables

    def table(self, made: int, s: _Sum, channels: int) -> int:
        """How far on each of the products is in a line: channel by channel, tap by tap."""
        table = self.launches.temporary(int64, (channels * math.prod(s.taps),))

        def build(site: KernelSite) -> None:
            c = site.points("channels", channels)
            taps = [site.points(f"taps{a}", s.taps[a]) for a in self.axes]
            k = c
            for a in self.axes:
                k = k * site.number(f"taps{a}", s.taps[a]) + taps[a]
            found = [self.tap(site, s, a, taps[a]) for a in self.axes]
            at = {"c": [c], "p": [p for p, _ in found], "u": [u for _, u in found]}
            site.store(self.index(site, s.line, at), k)

        self.launches.launch(f"{self.launches.op.name}_table", build, made, table)
        return table

    def tap(self, site: KernelSite, s: _Sum, a: int, j: Value) -> tuple[Value, Value]:
        """The phase of a tap, and how far on it is there."""
        raise NotImplementedError

    def weights(self, s: _Sum, turned: bool) -> int:
        """A copy of the weights, as (*lead, group, product, channel of the result).

        `turned`: what is summed are the channels of y, for each of those of x.
        """
        summed, kept = (self.out, self.into) if turned else (self.into, self.out)
        lead = self.launches.shape(1)[: self.lead]
        groups, products = self.g.groups, summed * math.prod(s.taps)
        made = self.launches.temporary(self.dtype, (*lead, groups, products, kept))

        def build(site: KernelSite) -> None:
            at = [site.points(f"lead{i}", n) for i, n in enumerate(lead)]
            g = site.points("groups", groups) if groups > 1 else const(0, int64)
            c = site.points("summed", summed)
            taps = [site.points(f"taps{a}", s.taps[a]) for a in self.axes]
            o = site.points("kept", kept)
            k = c
            for a in self.axes:
                k = k * site.number(f"taps{a}", s.taps[a]) + taps[a]
            out, into = (c, o) if turned else (o, c)
            out = g * site.number("filters", self.out) + out if groups > 1 else out
            taps = [_moved(site, f"tap{a}", taps[a], s.first[a], s.every[a]) for a in self.axes]
            site.store(site.read(0, *at, out, into, *taps), *at, g, k, o)

        self.launches.launch(f"{self.launches.op.name}_weights", build, 1, made)
        return made

    # --- the sum

    def together(self, n: int, counts: Shape, sizes: Shape, products: int) -> int:
        """How many axes are walked as one: 1 for the last alone; more than `rank`, with the batch.

        The one with the least work.
        """
        counts, sizes = (n, *counts), (n, *sizes)
        found: dict[int, int] = {}
        for t in range(1, self.rank + 2):
            span = 1 + sum(
                (counts[a] - 1) * math.prod(sizes[a + 1 :])
                for a in range(self.rank + 1 - t, self.rank + 1)
            )
            work = math.prod(counts[: self.rank + 1 - t]) * -(-span // LANES) * LANES
            found[t] = work * products + (t > 1) * math.prod(counts) * COPIED
        return min(found, key=lambda t: (found[t], t))

    def sum(self, made: int, s: _Sum, summed: int, turned: bool, bias: int = -1) -> None:
        """Adds the launches of one sum, from a line to the result."""
        result = self.launches.result
        lead, n = self.launches.shape(result)[: self.lead], self.launches.shape(result)[self.lead]
        products, kept = summed * math.prod(s.taps), self.into if turned else self.out
        t = self.together(n, s.counts, s.line.sizes, products)
        if t > self.rank and not s.line.batches:
            t = self.rank
        table, weights = self.table(made, s, summed), self.weights(s, turned)
        operands = [made, table, weights, *([bias] if bias >= 0 else [])]
        if t == 1 and not s.line.batches:
            self._rows(s, kept, operands)
            return
        t = self.rank + 1 if s.line.batches else t
        self._walked(s, lead, n, kept, operands, t)

    def _rows(self, s: _Sum, kept: int, operands: list[int]) -> None:
        """Points are those of the result."""
        result = self.launches.result
        lead, n = self.launches.shape(result)[: self.lead], self.launches.shape(result)[self.lead]

        def build(site: KernelSite) -> None:
            batch, g, o, at = self._points(site, (*lead, n), kept, s.counts)
            u = [v + _number(site, f"base{a}", s.base[a]) for a, v in enumerate(at)]
            found = {"lead": batch[:-1], "n": batch[-1:], "g": [g], "u": u}
            place = self.index(site, s.line, found)
            value = self._fold(site, place, batch[:-1], g, o)
            channel = g * site.number("kept", kept) + o if self.g.groups > 1 else o
            at = [_moved(site, f"to{a}", v, s.start[a], s.step[a]) for a, v in enumerate(at)]
            site.store(value, *batch, channel, *at)

        self.launches.launch(self.launches.op.name, build, *operands, result)

    def _points(
        self, site: KernelSite, batch: Shape, kept: int, counts: Shape
    ) -> tuple[list[Value], Value, Value, list[Value]]:
        """The grid: what shares most of what is loaded is its last axis but one."""
        outer = [site.points(f"batch{i}", n) for i, n in enumerate(batch[:-1])]
        few = kept < FEW
        if not few:
            outer.append(site.points("n", batch[-1]))
        g = site.points("groups", self.g.groups) if self.g.groups > 1 else const(0, int64)
        if few:
            o = site.points("kept", kept)
            outer.append(site.points("n", batch[-1]))
        at = [site.points(f"counts{a}", n) for a, n in enumerate(counts[:-1])]
        if not few:
            o = site.points("kept", kept)
        at.append(site.points("positions", counts[-1]))
        return outer, g, o, at

    def _fold(self, site: KernelSite, place: Value, lead: Indices, g: Value, o: Value) -> Value:
        """The sum of the products at one place of a line; operands: line, table, weights, bias."""
        biased = len(site.casts) > 3

        def step(k: Value, total: Value) -> tuple[Value, ...]:
            x = site.element(0, place + site.read(1, k))
            return (_term(x, site.read(2, *lead, g, k, o), total),)

        zero = const(0, site.casts[0].compute)
        total = fold_loop(0, site.size(1, 0), (zero,), step).results[0]
        if not biased:
            return total
        channel = g * site.number("kept", self.out) + o if self.g.groups > 1 else o
        return total + site.read(3, *lead, channel)

    def _walked(self, s: _Sum, lead: Shape, n: int, kept: int, operands: list[int], t: int) -> None:
        """Points are those of lines, `t` axes of which are walked as one; then they are copied."""
        counts, pitches = (n, *s.counts), s.line.pitches
        sizes = (math.prod(s.line.sizes), *pitches)
        first = self.rank + 1 - t  # axis of these from which on they are one
        span = 1 + sum((counts[a] - 1) * sizes[a] for a in range(first, self.rank + 1))
        outer, groups = counts[:first], self.g.groups
        held = (*lead, groups, kept, *outer, span)
        walked = self.launches.temporary(self.dtype, held)

        def build(site: KernelSite) -> None:
            few = kept < FEW
            at = [site.points(f"lead{i}", m) for i, m in enumerate(lead)]
            g = site.points("groups", groups) if groups > 1 else const(0, int64)
            if few:
                o = site.points("kept", kept)
            out = [site.points(f"outer{i}", m) for i, m in enumerate(outer)]
            if not few:
                o = site.points("kept", kept)
            q = site.points("positions", span)
            zero = const(0, int64)
            start = sum(b * p for b, p in zip(s.base, pitches, strict=True))
            inner = [*out[1:], *[zero] * (self.rank - len(out[1:]))] if out else [zero] * self.rank
            found = {"lead": at, "n": out[:1], "g": [g], "u": inner}
            place = self.index(site, s.line, found) + q + _number(site, "first", start)
            site.store(self._fold(site, place, at, g, o), *at, g, o, *out, q)

        def crop(site: KernelSite) -> None:
            at = [site.points(f"lead{i}", m) for i, m in enumerate(lead)]
            i = site.points("n", n)
            g = site.points("groups", groups) if groups > 1 else const(0, int64)
            o = site.points("kept", kept)
            p = [site.points(f"counts{a}", m) for a, m in enumerate(s.counts)]
            found = [i, *p]
            place = site.index(0, [*at, g, o, *found[:first], const(0, int64)])
            for a in range(first, self.rank + 1):
                place = place + found[a] * _number(site, f"pitch{a}", sizes[a])
            channel = g * site.number("kept", kept) + o if groups > 1 else o
            p = [_moved(site, f"to{a}", v, s.start[a], s.step[a]) for a, v in enumerate(p)]
            site.store(site.element(0, place), *at, i, channel, *p)

        name = self.launches.op.name
        self.launches.launch(name, build, *operands, walked)
        self.launches.launch(f"{name}_result", crop, walked, self.launches.result)


class _Forward(_Convolution):
    """y of x and w, and perhaps of a bias."""

    def run(self) -> None:
        """Adds the launches."""
        g, result = self.g, self.launches.result
        counts = self.launches.shape(result)[-self.rank :]
        n = self.launches.shape(result)[self.lead]
        line = _spaced(g, self.kernel, counts)
        products = self.into * math.prod(self.kernel)
        t = self.together(n, counts, line.sizes, products)
        plain = max(g.stride) == 1 and not any(g.low)
        sizes = self.launches.shape(0)[-self.rank :]
        fits = all(a <= b for a, b in zip(line.sizes, sizes, strict=True))
        if t > self.rank:
            line = line._replace(batches=True)
        elif t == 1 and plain and fits and self.launches.has_rows(0):
            line = line._replace(direct=True)
        none, ones = (0,) * self.rank, (1,) * self.rank
        s = _Sum(line, none, counts, none, ones, self.kernel, none, ones)
        made = 0 if line.direct else self.line(line)
        self.sum(made, s, self.into, False, 2 if result == 3 else -1)

    def tap(self, site: KernelSite, s: _Sum, a: int, j: Value) -> tuple[Value, Value]:
        return _spaced_tap(site, self.g, s.line, a, j)


def _spaced(g: Geometry, kernel: Shape, counts: Shape) -> _Line:
    """The line of x, with phases."""
    axes = range(len(kernel))
    apart = tuple([math.gcd(g.stride[a], g.dilation[a]) for a in axes])
    phases = tuple([1 if kernel[a] == 1 else g.stride[a] // apart[a] for a in axes])
    sizes = tuple([
        counts[a] + (kernel[a] - 1) * g.dilation[a] // g.stride[a] for a in axes
    ])  # fmt: skip
    low = tuple([-n for n in g.low])
    return _Line(0, low, g.stride, phases, apart, sizes)


def _spaced_tap(
    site: KernelSite, g: Geometry, line: _Line, a: int, j: Value
) -> tuple[Value, Value]:
    on = j * _number(site, f"dilation{a}", g.dilation[a])
    if g.stride[a] == 1:
        return const(0, int64), on
    by = site.number(f"stride{a}", g.stride[a])
    within = quo(rem(on, by), _number(site, f"apart{a}", line.apart[a]))
    return within, quo(on, by)


class _Backward(_Convolution):
    """x of y and w: what convolution makes of x, transposed."""

    def run(self) -> None:
        """Adds the launches."""
        g, axes = self.g, self.axes
        shape = self.launches.shape(self.launches.result)
        sizes, n = shape[-self.rank :], shape[self.lead]
        found = [[*self._phases(a, sizes[a])] for a in axes]
        start = tuple([min(p.first - p.furthest for p in found[a]) for a in axes])
        end = tuple([max(p.first + p.count - p.nearest for p in found[a]) for a in axes])
        reach = tuple([max(e - b, 1) for b, e in zip(start, end, strict=True)])
        ones = (1,) * self.rank
        line = _Line(0, start, ones, ones, ones, reach)
        most = max(math.prod(p.taps for p in phases) for phases in product(*found))
        counts = tuple([max(p.count for p in found[a]) for a in axes])
        if self.together(n, counts, reach, self.out * max(most, 1)) > self.rank:
            line = line._replace(batches=True)
        made = self.line(line)
        for phases in product(*found):
            if all(p.count for p in phases):
                self._phase(made, line, phases)

    def _phases(self, a: int, size: int) -> Iterator[_Phase]:
        """Along an axis: the elements of x that the same taps meet."""
        stride, low, d, k = self.g.stride[a], self.g.low[a], self.g.dilation[a], self.kernel[a]
        every = stride // math.gcd(stride, d)
        for phase in range(stride):
            first = _ceil(low - phase, stride)
            count = max(0, _ceil(size + low - phase, stride) - first)
            tap = next((i for i in range(min(k, every)) if i * d % stride == phase), k)
            taps = _ceil(k - tap, every)
            nearest = tap * d // stride
            furthest = (tap + max(taps - 1, 0) * every) * d // stride
            yield _Phase(first, count, first * stride + phase - low, tap, every, taps,
                         nearest if taps else 0, furthest if taps else 0)  # fmt: skip

    def _phase(self, made: int, line: _Line, phases: Sequence[_Phase]) -> None:
        by = self.g.stride
        s = _Sum(
            line,
            tuple([p.first - p.furthest - b for p, b in zip(phases, line.start, strict=True)]),
            tuple([p.count for p in phases]), tuple([p.tap for p in phases]),
            tuple([p.every for p in phases]), tuple([p.taps for p in phases]),
            tuple([p.start for p in phases]), by,
        )  # fmt: skip
        self.sum(made, s, self.out, True)

    def tap(self, site: KernelSite, s: _Sum, a: int, j: Value) -> tuple[Value, Value]:
        """Taps go back."""
        last = (
            const(s.taps[a] - 1, int64) if s.taps[a] < 2 else site.number(f"taps{a}", s.taps[a]) - 1
        )
        on = s.every[a] * self.g.dilation[a] // self.g.stride[a]
        return const(0, int64), (last - j) * _number(site, f"on{a}", on)


class _Phase(NamedTuple):
    """Along an axis of x: elements that the same taps meet."""

    first: int  # position of y that tap 0 would have, for the first of them
    count: int
    start: int  # the first of them
    tap: int  # the first of the taps
    every: int
    taps: int
    nearest: int  # how far back the first tap is
    furthest: int


class _OfWeights(_Convolution):
    """w of x and y."""

    def run(self) -> None:
        """Adds the launches."""
        counts = self.launches.shape(1)[-self.rank :]
        n = self.launches.shape(0)[self.lead]
        line = _spaced(self.g, self.kernel, counts)._replace(batches=True)
        none, ones = (0,) * self.rank, (1,) * self.rank
        beside = _Line(1, none, ones, ones, ones, line.sizes, True)
        long = math.prod(line.sizes)
        span = (n - 1) * long + 1
        span += sum((c - 1) * p for c, p in zip(counts, line.pitches, strict=True))
        span = max(span, 0) if n and math.prod(counts) else 0
        size = math.prod(self.launches.shape(self.launches.result)[self.lead :])
        room = max(1, n * long * max(self.out, self.into) * self.g.groups * 2 // max(size, 1))
        chunks = max(1, min(_ceil(span, CHUNK), room))
        each = max(1, _ceil(span, chunks))
        last = self.out >= NARROW
        x, y = self.line(line, last), self.line(beside, last)
        build = self._across if last else self._along
        build(x, y, line, span, each, max(1, _ceil(span, each)))

    def _across(self, x: int, y: int, line: _Line, span: int, each: int, chunks: int) -> None:
        """Channels of y are neighbours; each position adds to all weights."""
        lead, groups = self.launches.shape(0)[: self.lead], self.g.groups
        made = self.launches.temporary(
            self.dtype, (*lead, chunks, groups, *self.kernel, self.into, self.out)
        )

        def build(site: KernelSite) -> None:
            at, chunk, g, taps = self._grid(site, lead, chunks)
            c, o = site.points("channels", self.into), site.points("filters", self.out)
            zero = const(0, int64)
            phases, on = self._on(site, line, taps)
            found = {"lead": at, "g": [g], "p": phases, "u": on, "c": [c]}
            first = self.index(site, line, found, True)
            other = site.index(1, [*at, g, *[zero] * (2 * self.rank + 1), o])
            start, stop = self._bounds(site, chunk, span, each)

            def step(t: Value, total: Value) -> tuple[Value, ...]:
                a = site.element(0, first + t * site.number("channels", self.into))
                b = site.element(1, other + t * site.number("filters", self.out))
                return (_term(a, b, total),)

            total = fold_loop(start, stop, (const(0, self.dtype),), step).results[0]
            site.store(total, *at, chunk, g, *taps, c, o)

        self.launches.launch(self.launches.op.name, build, x, y, made)
        self._added_up(made, lead, chunks, lambda taps, c, o: [*taps, c, o])

    def _along(self, x: int, y: int, line: _Line, span: int, each: int, chunks: int) -> None:
        """Positions are neighbours: each weight is a sum along them."""
        lead, groups = self.launches.shape(0)[: self.lead], self.g.groups
        made = self.launches.temporary(
            self.dtype, (*lead, chunks, groups, self.out, self.into, *self.kernel)
        )

        def build(site: KernelSite) -> None:
            at = [site.points(f"lead{i}", n) for i, n in enumerate(lead)]
            chunk = site.points("chunks", chunks)
            g = site.points("groups", groups) if groups > 1 else const(0, int64)
            o, c = site.points("filters", self.out), site.points("channels", self.into)
            taps = [site.points(f"taps{a}", n) for a, n in enumerate(self.kernel)]
            zero = const(0, int64)
            phases, on = self._on(site, line, taps)
            first = self.index(site, line, {"lead": at, "g": [g], "p": phases, "u": on, "c": [c]})
            other = site.index(1, [*at, g, o, *[zero] * (2 * self.rank + 1)])
            start, stop = self._bounds(site, chunk, span, each)

            def value(t: Value) -> Value:
                return site.element(0, first + t) * site.element(1, other + t)

            total = reduce_loop("add", start, stop, value)[0]
            site.store(total, *at, chunk, g, o, c, *taps)

        self.launches.launch(self.launches.op.name, build, x, y, made)
        self._added_up(made, lead, chunks, lambda taps, c, o: [o, c, *taps])

    def _grid(self, site: KernelSite, lead: Shape, chunks: int):
        at = [site.points(f"lead{i}", n) for i, n in enumerate(lead)]
        chunk = site.points("chunks", chunks)
        g = site.points("groups", self.g.groups) if self.g.groups > 1 else const(0, int64)
        return at, chunk, g, [site.points(f"taps{a}", n) for a, n in enumerate(self.kernel)]

    def _on(self, site: KernelSite, line: _Line, taps: Indices) -> tuple[list[Value], list[Value]]:
        found = [_spaced_tap(site, self.g, line, a, taps[a]) for a in self.axes]
        return [p for p, _ in found], [u for _, u in found]

    def _bounds(self, site: KernelSite, chunk: Value, span: int, each: int) -> tuple[Value, Value]:
        by, n = site.number("each", each), site.number("span", span)
        stop = chunk * by + by
        return chunk * by, where(stop < n, stop, n)

    def _added_up(self, made: int, lead: Shape, chunks: int, order) -> None:
        groups = self.g.groups

        def build(site: KernelSite) -> None:
            at = [site.points(f"lead{i}", n) for i, n in enumerate(lead)]
            g = site.points("groups", groups) if groups > 1 else const(0, int64)
            taps = [site.points(f"taps{a}", n) for a, n in enumerate(self.kernel)]
            c, o = site.points("channels", self.into), site.points("filters", self.out)
            total = reduce_loop(
                "add", 0, site.number("chunks", chunks),
                lambda k: site.read(0, *at, k, g, *order(taps, c, o)),
            )[0]  # fmt: skip
            channel = g * site.number("filters", self.out) + o if groups > 1 else o
            site.store(total, *at, channel, c, *taps)

        self.launches.launch(f"{self.launches.op.name}_sum", build, made, self.launches.result)


def convolution(launches: Launches) -> None:
    """y of (x, w), or of (x, w, bias)."""
    _Forward(launches, launches.shape(1), len(launches.attrs.stride)).run()


def convolution_input(launches: Launches) -> None:
    """x of (y, w)."""
    _Backward(launches, launches.shape(1), len(launches.attrs.stride)).run()


def convolution_weight(launches: Launches) -> None:
    """w of (x, y)."""
    weights = launches.shape(launches.result)
    _OfWeights(launches, weights, len(launches.attrs.stride)).run()
