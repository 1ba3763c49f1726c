"""Convolutions and their gradients: kernels of `convolution` and its two companions.

All three are one sum, y[n, o, p] = sum of x[n, c, p * stride + i * dilation - low] w[o, c, i] over
channels c and taps i, x being 0 outside of its axes. Each op computes one of the three tensors from
the others, so the gradients of each are the other two.

A fold along a line (`lines`) sums the products; tables have its steps. Points along the last axis
read neighbours of the line. Short axes are merged into one long axis, with the elements between
them; results for these elements are not copied. The choice of axes changes no bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from ..dtypes import int64
from ..ir.language import Value, const, fma, fold_loop, quo, reduce_loop, rem, where
from ..layout import Shape
from .kernel_context import KernelSite, Launches
from .padded_rows import (
    BATCH,
    CHANNEL,
    ELEMENT,
    GROUP,
    LEAD,
    PHASE,
    PaddedRow,
    PaddedRowBuffer,
    PaddedRowBuilder,
    affine,
    ceil_div,
    integer_or_constant,
)

PARALLEL_LANES = 32  # estimate: neighbours that are computed at once
COPY_COST_STEPS = 20  # estimate: steps of a fold that cost as much as a second copy of an element
SHARED_CHANNELS_MIN = 4  # with fewer channels, rows of positions share loads instead of channels
ACROSS_CHANNELS_MIN = 8  # with fewer channels of y, gradients of weights are sums along positions
CHUNK_POSITIONS_MIN = 1024  # least number of positions that a point sums for a gradient of weights


class Geometry(NamedTuple):
    """The geometry of taps along each axis: the attributes of these ops."""

    stride: Shape
    low: Shape  # zeros before the first element
    dilation: Shape
    groups: int


class _TapSum(NamedTuple):
    """One sum of products: `counts` positions along each axis, taps, and stored elements."""

    base: Shape  # element of the line for the first position
    counts: Shape
    first_tap: Shape  # the first tap
    tap_stride: Shape  # distance of taps
    taps: Shape
    start: Shape  # element of the result for the first position
    step: Shape


def _multiply_add(x: Value, y: Value, total: Value) -> Value:
    """Return x * y + total, with one rounding for floats."""
    return fma(x, y, total) if total.dtype.kind == "f" else total + x * y


def _build_empty_result(site: KernelSite) -> None:
    """Build the kernel of a result without elements."""
    at = [site.axis(-1, d) for d in range(site.rank(-1))]
    site.store(const(0, int64), *at)


class _ConvolutionLaunches:
    """The launches of one of the ops, with the shapes that they depend on.

    The sum is over `summed_channels` and the taps; the result has `result_channels` in a group.
    """

    summed_channels = result_channels = 0

    def __init__(self, launches: Launches, weights: Shape) -> None:
        self.launches = launches
        self.geometry: Geometry = launches.attrs
        self.rank = rank = len(self.geometry.stride)
        self.axes = range(rank)
        self.dtype = launches.dtype(0).compute
        self.lines = PaddedRowBuilder(launches, self.geometry.groups, rank, self.dtype)
        self.kernel = weights[-rank:]
        self.out_channels, self.in_channels = (
            weights[-rank - 2] // self.geometry.groups,
            weights[-rank - 1],
        )
        shape = launches.shape(launches.result)
        self.lead, self.batch_size = shape[: self.lines.lead], shape[self.lines.lead]

    def add_lead_axes(self, site: KernelSite) -> list[Value]:
        """Add the grid axes before all others, and return their indices."""
        return [site.points(f"lead{i}", n) for i, n in enumerate(self.lead)]

    def add_group_axis(self, site: KernelSite) -> Value:
        """Add the grid axis of groups and return its index; return 0 if there is one group."""
        return (
            site.points("groups", self.geometry.groups)
            if self.geometry.groups > 1
            else const(0, int64)
        )

    def add_tap_axes(self, site: KernelSite, taps: Shape) -> list[Value]:
        """Add the grid axes of taps, and return their indices."""
        return [site.points(f"taps{a}", n) for a, n in enumerate(taps)]

    def channel_index(self, site: KernelSite, name: str, g: Value, c: Value, each: int) -> Value:
        """Return the index of a group's channel among all channels."""
        return c if self.geometry.groups == 1 else g * site.number(name, each) + c

    # --- tables

    def build_table(
        self, operand: int, s: _TapSum, index_of: Callable[[KernelSite, Value, list[Value]], Value]
    ) -> int:
        """Add the launch that stores `index_of` each channel and tap; return its operand number."""
        table = self.launches.temporary(int64, (self.summed_channels * math.prod(s.taps),))

        def build(site: KernelSite) -> None:
            """Build the kernel that stores the index of each channel and tap."""
            c = site.points("summed", self.summed_channels)
            taps = self.add_tap_axes(site, s.taps)
            k = c
            for a in self.axes:
                k = k * site.number(f"taps{a}", s.taps[a]) + taps[a]
            site.store(index_of(site, c, taps), k)

        self.launches.launch(f"{self.launches.op.name}_table", build, operand, table)
        return table

    def tap_offset(
        self, site: KernelSite, s: _TapSum, line: PaddedRow, a: int, j: Value
    ) -> tuple[Value, Value]:
        """Return the phase of tap `j` along axis `a`, and its distance in elements of the phase."""
        raise NotImplementedError

    def build_line_table(self, line_buffer: PaddedRowBuffer, s: _TapSum) -> int:
        """Add the launch that stores each tap's index in a line; return its operand number."""

        def index_of(site: KernelSite, c: Value, taps: list[Value]) -> Value:
            """Return the index in the line of a channel's tap."""
            offsets = [self.tap_offset(site, s, line_buffer.line, a, taps[a]) for a in self.axes]
            phases, on = [p for p, _ in offsets], [u for _, u in offsets]
            return line_buffer.index_of(site, 0, {CHANNEL: [c], PHASE: phases, ELEMENT: on})

        return self.build_table(line_buffer.operand, s, index_of)

    def weight_index(
        self,
        site: KernelSite,
        operand: int,
        lead: Sequence[Value],
        group: Value,
        summed_channel: Value,
        result_channel: Value,
        taps: Sequence[Value],
    ) -> Value:
        """Return the linear index of a weight, given its group, its two channels and the taps.

        `lead`: the indices of the axes before all others.
        """
        raise NotImplementedError

    def build_weight_table(self, operand: int, s: _TapSum) -> int:
        """Add the launch that stores each tap's index in the weights; return its operand number."""
        zero = const(0, int64)

        def index_of(site: KernelSite, c: Value, taps: list[Value]) -> Value:
            """Return the index of a weight, given a channel and a sum's taps."""
            taps = [
                affine(site, f"tap{a}", taps[a], s.first_tap[a], s.tap_stride[a]) for a in self.axes
            ]
            return self.weight_index(site, 0, [zero] * len(self.lead), zero, c, zero, taps)

        return self.build_table(operand, s, index_of)

    def prepare_weights(self) -> int:
        """Return the operand number of the weights, widened by a new launch if they are reduced."""
        if self.launches.dtype(1) is self.dtype:
            return 1
        copy = self.launches.temporary(self.dtype, self.launches.shape(1))

        def build(site: KernelSite) -> None:
            """Build the kernel that copies the weights."""
            at = [site.axis(-1, d) for d in range(site.rank(-1))]
            site.store(site.read(0, *at), *at)

        self.launches.launch(f"{self.launches.op.name}_weights", build, 1, copy)
        return copy

    # --- the sum

    def count_merged_axes(self, counts: Shape, sizes: Shape, products: int) -> int:
        """Return the number of axes to merge: 1, the last alone, to `rank` + 1, with the batch.

        The choice has the least estimated work.
        """
        counts, work_of = (self.batch_size, *counts), dict[int, int]()
        sizes = (math.prod(sizes), *[math.prod(sizes[a + 1 :]) for a in self.axes])
        for t in range(1, self.rank + 2):
            inner = range(self.rank + 1 - t, self.rank + 1)
            span = 1 + sum((counts[a] - 1) * sizes[a] for a in inner)
            work = math.prod(counts[: inner[0]]) * ceil_div(span, PARALLEL_LANES) * PARALLEL_LANES
            work_of[t] = work * products + (t > 1) * math.prod(counts) * COPY_COST_STEPS
        return min(work_of, key=lambda t: (work_of[t], t))

    def build_line(self, line: PaddedRow, t: int) -> PaddedRowBuffer:
        """Return the line for `t` merged axes: the operand itself, or a copy that launches fill."""
        ones, sizes = (1,) * self.rank, self.launches.shape(0)[-self.rank :]
        whole = line.step == line.phases == ones and not any(line.start)
        fits = all(a <= b for a, b in zip(line.read_sizes, sizes, strict=True))
        direct = t == 1 and whole and fits and self.launches.has_rows(0)
        return self.lines.build(line._replace(batches=t > self.rank), direct=direct)

    def add_sum(
        self, line_buffer: PaddedRowBuffer, s: _TapSum, weights: int, bias: int = -1
    ) -> None:
        """Add the launches of one sum, from a line to the result."""
        t = self.count_merged_axes(
            s.counts, line_buffer.line.sizes, self.summed_channels * math.prod(s.taps)
        )
        t = self.rank + 1 if line_buffer.line.batches else min(t, self.rank)
        operands = [
            line_buffer.operand,
            self.build_line_table(line_buffer, s),
            weights,
            self.build_weight_table(weights, s),
        ]
        if bias >= 0:
            operands.append(bias)
        if t == 1:
            self._sum_rows(line_buffer, s, operands)
        else:
            self._sum_merged(line_buffer, s, operands, t)

    def _declare_grid(
        self, site: KernelSite, outer: Shape, positions: int
    ) -> tuple[list[Value], Value, Value, list[Value], Value]:
        """Add grid axes; return their indices: leads, group, channel, outer ones, position.

        Points along the last axis but one share most of their loads.
        """
        lead, g, few_channels = (
            self.add_lead_axes(site),
            self.add_group_axis(site),
            self.result_channels < SHARED_CHANNELS_MIN,
        )
        o = site.points("kept", self.result_channels) if few_channels else None
        outer_indices = [site.points(f"outer{i}", n) for i, n in enumerate(outer)]
        o = site.points("kept", self.result_channels) if o is None else o
        return lead, g, o, outer_indices, site.points("positions", positions)

    def _sum_rows(self, line_buffer: PaddedRowBuffer, s: _TapSum, operands: list[int]) -> None:
        """Add the launch that sums the products of each result element, a point for each."""

        def build(site: KernelSite) -> None:
            """Build the kernel of one sum, with a point for each element of the result."""
            lead, g, o, (n, *at), q = self._declare_grid(
                site, (self.batch_size, *s.counts[:-1]), s.counts[-1]
            )
            at.append(q)
            u = [v + integer_or_constant(site, f"base{a}", s.base[a]) for a, v in enumerate(at)]
            first = line_buffer.index_of(site, 0, {LEAD: lead, BATCH: [n], GROUP: [g], ELEMENT: u})
            value = self._sum_products(site, first, lead, g, o)
            channel = self.channel_index(site, "kept", g, o, self.result_channels)
            at = [affine(site, f"to{a}", v, s.start[a], s.step[a]) for a, v in enumerate(at)]
            site.store(value, *lead, n, channel, *at)

        self.launches.launch(self.launches.op.name, build, *operands, self.launches.result)

    def _sum_products(
        self, site: KernelSite, line_start: Value, lead: Sequence[Value], g: Value, o: Value
    ) -> Value:
        """Return the sum of the products from one element of a line on, plus the bias if any.

        Operands: the line, its table, the weights, their table, perhaps a bias.
        """
        zero = const(0, int64)
        start = self.weight_index(site, 2, lead, g, zero, o, [zero] * self.rank)

        def step(k: Value, total: Value) -> tuple[Value, ...]:
            """Add the product of tap `k` to the total."""
            x = site.element(0, line_start + site.read(1, k))
            return (_multiply_add(x, site.element(2, start + site.read(3, k)), total),)

        first = const(0, self.dtype)
        total = fold_loop(0, site.size(1, 0), (first,), step).results[0]
        if len(site.casts) < 5:
            return total
        return total + site.read(
            4, *lead, self.channel_index(site, "kept", g, o, self.result_channels)
        )

    def _sum_merged(
        self, line_buffer: PaddedRowBuffer, s: _TapSum, operands: list[int], t: int
    ) -> None:
        """Add a launch over lines with `t` merged axes, and the copy of its results."""
        counts, line = (self.batch_size, *s.counts), line_buffer.line
        pitches, first = (line.length, *line.pitches), self.rank + 1 - t
        span = 1 + sum((counts[a] - 1) * pitches[a] for a in range(first, self.rank + 1))
        outer, name = counts[:first], self.launches.op.name
        shape = (*self.lead, self.geometry.groups, self.result_channels, *outer, max(span, 0))
        line_sums = self.launches.temporary(self.dtype, shape)

        def build(site: KernelSite) -> None:
            """Build the kernel of one sum at each position of the merged axes."""
            lead, g, o, out, q = self._declare_grid(site, outer, max(span, 0))
            inner = [*out[1:], *[const(0, int64)] * (self.rank - len(out[1:]))]
            index = line_buffer.index_of(
                site, 0, {LEAD: lead, BATCH: out[:1], GROUP: [g], ELEMENT: inner}
            )
            start = sum(b * p for b, p in zip(s.base, line.pitches, strict=True))
            index = index + q + integer_or_constant(site, "first", start)
            site.store(self._sum_products(site, index, lead, g, o), *lead, g, o, *out, q)

        def build_crop(site: KernelSite) -> None:
            """Build the kernel that copies the valid positions to the result."""
            lead, n, g = (
                self.add_lead_axes(site),
                site.points("n", self.batch_size),
                self.add_group_axis(site),
            )
            o = site.points("kept", self.result_channels)
            at = [site.points(f"counts{a}", m) for a, m in enumerate(s.counts)]
            index = site.index(0, [*lead, g, o, *[n, *at][:first], const(0, int64)])
            for a in range(first, self.rank + 1):
                index = index + [n, *at][a] * integer_or_constant(site, f"pitch{a}", pitches[a])
            at = [affine(site, f"to{a}", v, s.start[a], s.step[a]) for a, v in enumerate(at)]
            channel = self.channel_index(site, "kept", g, o, self.result_channels)
            site.store(site.element(0, index), *lead, n, channel, *at)

        self.launches.launch(name, build, *operands, line_sums)
        self.launches.launch(f"{name}_result", build_crop, line_sums, self.launches.result)


class _Convolve(_ConvolutionLaunches):
    """The convolution: y of x and w, and perhaps of a bias."""

    def run(self) -> None:
        """Add the launches of the convolution."""
        self.summed_channels, self.result_channels = self.in_channels, self.out_channels
        result = self.launches.result
        counts = self.launches.shape(result)[-self.rank :]
        line = _input_line(self.geometry, self.kernel, counts).share_zeros(self.launches.shape(0))
        t = self.count_merged_axes(counts, line.sizes, self.in_channels * math.prod(self.kernel))
        line_buffer, none, ones = self.build_line(line, t), (0,) * self.rank, (1,) * self.rank
        s = _TapSum(none, counts, none, ones, self.kernel, none, ones)
        self.add_sum(line_buffer, s, self.prepare_weights(), 2 if result == 3 else -1)

    def tap_offset(
        self, site: KernelSite, s: _TapSum, line: PaddedRow, a: int, j: Value
    ) -> tuple[Value, Value]:
        """Return the offset of a tap in the line of x."""
        return _input_tap(site, self.geometry, line, a, j)

    def weight_index(
        self,
        site: KernelSite,
        operand: int,
        lead: Sequence[Value],
        group: Value,
        summed_channel: Value,
        result_channel: Value,
        taps: Sequence[Value],
    ) -> Value:
        """Return the index of a weight."""
        return site.index(
            operand,
            [
                *lead,
                self.channel_index(site, "kept", group, result_channel, self.out_channels),
                summed_channel,
                *taps,
            ],
        )


def _input_line(g: Geometry, kernel: Shape, counts: Shape) -> PaddedRow:
    """Return the padded line of x that a convolution with these counts reads, in phases."""
    axes = range(len(kernel))
    apart = tuple([math.gcd(g.stride[a], g.dilation[a]) for a in axes])
    phases = tuple([1 if kernel[a] == 1 else g.stride[a] // apart[a] for a in axes])
    reach = tuple(
        [n + (kernel[a] - 1) * g.dilation[a] // g.stride[a] for a, n in enumerate(counts)]
    )
    low = tuple([-n for n in g.low])
    return PaddedRow(0, low, g.stride, phases, apart, reach, reach)


def _input_tap(
    site: KernelSite, g: Geometry, line: PaddedRow, a: int, j: Value
) -> tuple[Value, Value]:
    """Return the phase of a tap in the line of x, and its element there."""
    on = j * integer_or_constant(site, f"dilation{a}", g.dilation[a])
    if g.stride[a] == 1:
        return const(0, int64), on
    by = site.number(f"stride{a}", g.stride[a])
    return quo(rem(on, by), integer_or_constant(site, f"apart{a}", line.phase_offset[a])), quo(
        on, by
    )


class _Phase(NamedTuple):
    """A set of elements along an axis of x that the same taps meet."""

    first_position: int  # position of y that tap 0 would have, for the first element
    length: int
    start: int  # the first element
    first_tap: int  # the first of the taps
    tap_stride: int
    taps: int
    nearest: int  # distance back to the first tap
    furthest: int


class _InputGradient(_ConvolutionLaunches):
    """The gradient of the input: x of y and w, the transposed convolution."""

    def run(self) -> None:
        """Add the launches of the input's gradient: some for each phase of the stride."""
        self.summed_channels, self.result_channels = self.out_channels, self.in_channels
        sizes = self.launches.shape(self.launches.result)[-self.rank :]
        axis_phases = [[p for p in self._phases(a, sizes[a]) if p.length] for a in self.axes]
        if not all(axis_phases):  # there is no element of x
            self.launches.launch(self.launches.op.name, _build_empty_result, self.launches.result)
            return
        start = tuple([min(p.first_position - p.furthest for p in along) for along in axis_phases])
        end = [max(p.first_position + p.length - p.nearest for p in along) for along in axis_phases]
        reach = tuple([max(e - b, 1) for b, e in zip(start, end, strict=True)])
        ones = (1,) * self.rank
        line = PaddedRow(0, start, ones, ones, ones, reach, reach).share_zeros(
            self.launches.shape(0)
        )
        most = max(math.prod(p.taps for p in phases) for phases in product(*axis_phases))
        counts = tuple([max(p.length for p in along) for along in axis_phases])
        t = self.count_merged_axes(counts, line.sizes, self.out_channels * max(most, 1))
        line_buffer, weights = self.build_line(line, t), self.prepare_weights()
        for phases in product(*axis_phases):
            self._launch_phase(line_buffer, weights, phases)

    def _phases(self, a: int, size: int) -> Iterator[_Phase]:
        """Yield the sets of elements along an axis that the same taps meet."""
        stride, low, d, k = (
            self.geometry.stride[a],
            self.geometry.low[a],
            self.geometry.dilation[a],
            self.kernel[a],
        )
        every = stride // math.gcd(stride, d)
        for phase in range(stride):
            first = ceil_div(low - phase, stride)
            count = max(0, ceil_div(size + low - phase, stride) - first)
            tap = next((i for i in range(min(k, every)) if i * d % stride == phase), k)
            taps = ceil_div(k - tap, every)
            last = tap + max(taps - 1, 0) * every
            back = (tap * d // stride, last * d // stride) if taps else (0, 0)
            yield _Phase(first, count, first * stride + phase - low, tap, every, taps, *back)

    def _launch_phase(
        self, line_buffer: PaddedRowBuffer, weights: int, phases: Sequence[_Phase]
    ) -> None:
        """Add the launches of the elements in one set of each axis."""
        start = line_buffer.line.start
        s = _TapSum(
            tuple([p.first_position - p.furthest - b for p, b in zip(phases, start, strict=True)]),
            tuple([p.length for p in phases]),
            tuple([p.first_tap for p in phases]),
            tuple([p.tap_stride for p in phases]),
            tuple([p.taps for p in phases]),
            tuple([p.start for p in phases]),
            self.geometry.stride,
        )
        self.add_sum(line_buffer, s, weights)

    def tap_offset(
        self, site: KernelSite, s: _TapSum, line: PaddedRow, a: int, j: Value
    ) -> tuple[Value, Value]:
        """Return the offset of a tap in the line of y, where taps go back."""
        on = s.tap_stride[a] * self.geometry.dilation[a] // self.geometry.stride[a]
        back = integer_or_constant(site, f"last{a}", s.taps[a] - 1) - j
        return const(0, int64), back * integer_or_constant(site, f"on{a}", on)

    def weight_index(
        self,
        site: KernelSite,
        operand: int,
        lead: Sequence[Value],
        group: Value,
        summed_channel: Value,
        result_channel: Value,
        taps: Sequence[Value],
    ) -> Value:
        """Return the index of a weight."""
        out = self.channel_index(site, "filters", group, summed_channel, self.out_channels)
        return site.index(operand, [*lead, out, result_channel, *taps])


class _WeightGradient(_ConvolutionLaunches):
    """The gradient of the weights: w of x and y."""

    def run(self) -> None:
        """Add the launches of the weights' gradient: sums of chunks, and their total."""
        counts = self.launches.shape(1)[-self.rank :]
        self.batch_size = self.launches.shape(0)[len(self.lead)]
        line = _input_line(self.geometry, self.kernel, counts).share_zeros(self.launches.shape(0))
        line = line._replace(batches=True)
        none, ones = (0,) * self.rank, (1,) * self.rank
        beside = PaddedRow(1, none, ones, ones, ones, line.sizes, line.sizes, True)
        span = sum((c - 1) * p for c, p in zip(counts, line.pitches, strict=True))
        span = (
            (self.batch_size - 1) * line.length + span + 1 if self.batch_size and all(counts) else 0
        )
        last = self.out_channels >= ACROSS_CHANNELS_MIN
        x, y = (
            self.lines.build(line, channels_last=last),
            self.lines.build(beside, channels_last=last),
        )
        (self._sum_across_channels if last else self._sum_along_positions)(
            x, y, span, self._chunk_positions(line, span)
        )

    def _chunk_positions(self, line: PaddedRow, span: int) -> int:
        """Return the number of positions that one partial sum of the gradient covers.

        These gradients take no more memory than the operands.
        """
        size = math.prod(self.launches.shape(self.launches.result)[len(self.lead) :])
        chunks_max = (
            self.batch_size
            * line.length
            * max(self.out_channels, self.in_channels)
            * self.geometry.groups
            * 2
            // max(size, 1)
        )
        return max(1, ceil_div(span, max(1, min(ceil_div(span, CHUNK_POSITIONS_MIN), chunks_max))))

    def _sum_across_channels(
        self, x: PaddedRowBuffer, y: PaddedRowBuffer, span: int, chunk_size: int
    ) -> None:
        """Add the launches that sum each weight's products over positions, y's channels last."""
        chunks = max(1, ceil_div(span, chunk_size))
        shape = (
            *self.lead,
            chunks,
            self.geometry.groups,
            *self.kernel,
            self.in_channels,
            self.out_channels,
        )
        chunk_sums = self.launches.temporary(self.dtype, shape)

        def build(site: KernelSite) -> None:
            """Build the kernel of a chunk's sum, with y's channels as the last axis."""
            lead, chunk, g = (
                self.add_lead_axes(site),
                site.points("chunks", chunks),
                self.add_group_axis(site),
            )
            taps = self.add_tap_axes(site, self.kernel)
            c, o = site.points("into", self.in_channels), site.points("kept", self.out_channels)
            first, other = self._first_elements(site, x, y, lead, g, c, o, taps)
            start, stop = self._chunk_bounds(site, chunk, span, chunk_size)

            def step(t: Value, total: Value) -> tuple[Value, ...]:
                """Add the product at position `t` to the total."""
                a = site.element(0, first + t * site.number("into", self.in_channels))
                b = site.element(1, other + t * site.number("kept", self.out_channels))
                return (_multiply_add(a, b, total),)

            total = fold_loop(start, stop, (const(0, self.dtype),), step).results[0]
            site.store(total, *lead, chunk, g, *taps, c, o)

        self.launches.launch(self.launches.op.name, build, x.operand, y.operand, chunk_sums)
        self._add_up_chunks(chunk_sums, chunks, lambda taps, c, o: [*taps, c, o])

    def _sum_along_positions(
        self, x: PaddedRowBuffer, y: PaddedRowBuffer, span: int, chunk_size: int
    ) -> None:
        """Add the launches that reduce each weight's products along neighbouring positions."""
        chunks = max(1, ceil_div(span, chunk_size))
        shape = (
            *self.lead,
            chunks,
            self.geometry.groups,
            self.out_channels,
            self.in_channels,
            *self.kernel,
        )
        chunk_sums = self.launches.temporary(self.dtype, shape)

        def build(site: KernelSite) -> None:
            """Build the kernel that reduces a chunk's products to each weight."""
            lead, chunk, g = (
                self.add_lead_axes(site),
                site.points("chunks", chunks),
                self.add_group_axis(site),
            )
            o, c = site.points("kept", self.out_channels), site.points("into", self.in_channels)
            taps = self.add_tap_axes(site, self.kernel)
            first, other = self._first_elements(site, x, y, lead, g, c, o, taps)
            start, stop = self._chunk_bounds(site, chunk, span, chunk_size)
            total = reduce_loop(
                "add",
                start,
                stop,
                lambda t: site.element(0, first + t) * site.element(1, other + t),
            )[0]
            site.store(total, *lead, chunk, g, o, c, *taps)

        self.launches.launch(self.launches.op.name, build, x.operand, y.operand, chunk_sums)
        self._add_up_chunks(chunk_sums, chunks, lambda taps, c, o: [o, c, *taps])

    def _first_elements(
        self,
        site: KernelSite,
        x: PaddedRowBuffer,
        y: PaddedRowBuffer,
        lead: Sequence[Value],
        g: Value,
        c: Value,
        o: Value,
        taps: Sequence[Value],
    ) -> tuple[Value, Value]:
        """Return the indices of the first product's elements in the lines of x and y."""
        offsets = [_input_tap(site, self.geometry, x.line, a, taps[a]) for a in self.axes]
        tap_indices = {PHASE: [p for p, _ in offsets], ELEMENT: [u for _, u in offsets]}
        first = x.index_of(site, 0, {LEAD: lead, GROUP: [g], CHANNEL: [c], **tap_indices})
        return first, y.index_of(site, 1, {LEAD: lead, GROUP: [g], CHANNEL: [o]})

    def _chunk_bounds(
        self, site: KernelSite, chunk: Value, span: int, chunk_size: int
    ) -> tuple[Value, Value]:
        """Return the start and the stop of a chunk's positions."""
        runtime_size, n = site.number("each", chunk_size), site.number("span", span)
        stop = chunk * runtime_size + runtime_size
        return chunk * runtime_size, where(stop < n, stop, n)

    def _add_up_chunks(
        self,
        chunk_sums: int,
        chunks: int,
        order: Callable[[list[Value], Value, Value], list[Value]],
    ) -> None:
        """Add the launch that sums chunks into the result; `order` is that of the last axes."""

        def build(site: KernelSite) -> None:
            """Build the kernel that sums a weight's gradients over the chunks."""
            lead, g = self.add_lead_axes(site), self.add_group_axis(site)
            taps = self.add_tap_axes(site, self.kernel)
            c, o = site.points("into", self.in_channels), site.points("kept", self.out_channels)
            total = reduce_loop(
                "add",
                0,
                site.number("chunks", chunks),
                lambda k: site.read(0, *lead, k, g, *order(taps, c, o)),
            )[0]
            channel = self.channel_index(site, "kept", g, o, self.out_channels)
            site.store(total, *lead, channel, c, *taps)

        self.launches.launch(
            f"{self.launches.op.name}_sum", build, chunk_sums, self.launches.result
        )


def convolution(launches: Launches) -> None:
    """Add the launches that compute y from (x, w), or from (x, w, bias)."""
    _Convolve(launches, launches.shape(1)).run()


def convolution_input(launches: Launches) -> None:
    """Add the launches that compute x from (y, w)."""
    _InputGradient(launches, launches.shape(1)).run()


def convolution_weight(launches: Launches) -> None:
    """Add the launches that compute w from (x, y)."""
    _WeightGradient(launches, launches.shape(launches.result)).run()
