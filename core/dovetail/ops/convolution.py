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
from ..ir.language import Value, const, quo, rem
from ..layout import Shape, StridedView, is_contiguous, reshape_strides, row_major
from .kernel_context import KernelSite, Launches
from .kernel_ops import PRODUCT_BLOCK, sum_block_of_products, sum_blocks, sum_of_products
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
ROUTINE_CHANNELS_MIN = 32  # of the result, that share a copied patch; otherwise folds are faster
ROUTINE_POSITIONS_MIN = 16  # of an item
SUMS_PER_NUMBER_MAX = 4  # of blocks of products, for each number that the operands have


class Geometry(NamedTuple):
    """The geometry of taps along each axis: the attributes of these ops.

    - `stride`: the distance of positions along each axis.
    - `low`: the padding before each axis.
    - `dilation`: the distance of a kernel's elements along each axis.
    - `groups`: the number of groups of channels.
    """

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


def _build_copy(site: KernelSite) -> None:
    """Build the kernel that copies operand 0 to a result of its shape, in the result's dtype."""
    at = [site.axis(-1, d) for d in range(site.rank(-1))]
    site.store(site.read(0, *at), *at)


def _build_empty_result(site: KernelSite) -> None:
    """Build the kernel of a result without elements."""
    at = [site.axis(-1, d) for d in range(site.rank(-1))]
    site.store(const(0, int64), *at)


class _ConvolutionLaunches:
    """The launches of one of the ops, with the shapes that they depend on.

    The sum is over `summed_channels` and the taps; the result has `result_channels` in a group.
    """

    summed_channels = result_channels = 0
    has_weight_rows = False  # True if a result's channel has its weights side by side

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
        return c if self.geometry.groups == 1 else g * integer_or_constant(site, name, each) + c

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
        return _input_tap(site, self.geometry, line, a, j)

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

    def widen(self, operand: int) -> int:
        """Return the number of an operand in the sums' dtype, copied by a new launch if reduced."""
        if self.launches.dtype(operand) is self.dtype:
            return operand
        copy = self.launches.temporary(self.dtype, self.launches.shape(operand))
        self.launches.launch(f"{self.launches.op.name}_widened", _build_copy, operand, copy)
        return copy

    # --- the sum

    def count_merged_axes(self, counts: Shape, sizes: Shape, products: int) -> int:
        """Return the number of axes to merge: 1, the last alone, to `rank` + 1, with the batch.

        The choice has the least estimated work.
        """
        if self.calls_routine(counts):
            return 1
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
        products = self.summed_channels * math.prod(s.taps)
        if self.calls_routine(s.counts) and products:
            self._call_routine(line_buffer, s, weights, bias)
            return
        t = self.count_merged_axes(s.counts, line_buffer.line.sizes, products)
        t = self.rank + 1 if line_buffer.line.batches else min(t, self.rank)
        t = 1 if line_buffer.direct else t
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

    # --- calls of a routine

    def calls_routine(self, counts: Shape) -> bool:
        """Return True if the device's routine computes sums with so many positions.

        Its tiles have several rows, the result's channels, and vectors of an item's positions.
        """
        return (
            self.launches.has_routine
            and self.result_channels >= ROUTINE_CHANNELS_MIN
            and math.prod(counts) >= ROUTINE_POSITIONS_MIN
        )

    def _call_routine(
        self, line_buffer: PaddedRowBuffer, s: _TapSum, weights: int, bias: int
    ) -> None:
        """Add the call of the device's routine for one sum.

        Its operands have the batch and the groups in front: a matrix of weights for each group, the
        line at tap 0 of each position, the table of taps, and perhaps the bias.
        """
        launches, lead = self.launches, len(self.lead)
        line = self.view_positions(line_buffer, s.base, s.counts)
        operands = [
            self._add_batch_axis(self._build_weight_matrix(weights, s)),
            line,
            self.build_line_table(line_buffer, s),
        ]
        if bias >= 0:
            operands.append(self._add_batch_axis(self._split_bias(self.widen(bias))))
        items, channels, groups = (
            (*self.lead, self.batch_size),
            self.result_channels,
            self.geometry.groups,
        )
        target = self.find_target((*items, groups * channels, *s.counts))
        shape = (*items, groups, channels, math.prod(s.counts))
        launches.call([*operands, self.view_dense(target, shape)])
        if target == launches.result:
            return

        def build(site: KernelSite) -> None:
            """Build the kernel that copies the sums to their places in the result."""
            at = [site.axis(0, d) for d in range(site.rank(0))]
            value, positions = site.read(0, *at), at[lead + 2 :]
            at[lead + 2 :] = [
                affine(site, f"to{a}", i, s.start[a], s.step[a]) for a, i in enumerate(positions)
            ]
            site.store(value, *at)

        launches.launch(f"{launches.op.name}_result", build, target, launches.result)

    def find_target(self, shape: Shape) -> int:
        """Return the result if sums of this shape are dense there, or else a new temporary."""
        result = self.launches.result
        view, dtype = self.launches.view(result), self.launches.dtype(result)
        if dtype is self.dtype and view.shape == shape and is_contiguous(shape, view.strides):
            return result
        return self.launches.temporary(self.dtype, shape)

    def view_dense(self, operand: int, shape: Shape) -> int:
        """Return a view of a dense operand in another shape."""
        offset = self.launches.view(operand).offset
        return self.launches.add_view(operand, lambda _: row_major(shape)._replace(offset=offset))

    def _build_weight_matrix(self, weights: int, s: _TapSum) -> int:
        """Return the weights as (*lead, groups, result channels, products), copied if necessary."""
        shape = (*self.lead, self.geometry.groups, self.result_channels)
        products = self.summed_channels * math.prod(s.taps)
        view = self.launches.view(weights)
        if self.has_weight_rows and is_contiguous(view.shape, view.strides):
            return self.view_dense(weights, (*shape, products))
        copy = self.launches.temporary(self.dtype, (*shape, self.summed_channels, *s.taps))

        def build(site: KernelSite) -> None:
            """Build the kernel that copies the weights of a sum."""
            *at, o, c = [site.axis(-1, d) for d in range(len(shape) + 1)]
            zero = const(0, int64)  # of a single tap, so that channels are lanes
            taps = [site.points(f"taps{a}", n) if n > 1 else zero for a, n in enumerate(s.taps)]
            source = [
                affine(site, f"tap{a}", taps[a], s.first_tap[a], s.tap_stride[a]) for a in self.axes
            ]
            index = self.weight_index(site, 0, at[:-1], at[-1], c, o, source)
            site.store(site.element(0, index), *at, o, c, *taps)

        self.launches.launch(f"{self.launches.op.name}_weights", build, weights, copy)
        return self.view_dense(copy, (*shape, products))

    def view_positions(self, line_buffer: PaddedRowBuffer, base: Shape, counts: Shape) -> int:
        """Return a line as a view (*lead, batch, groups, *positions) at channel 0 and tap 0."""
        by_kind, lead = line_buffer.strides, len(self.lead)
        view = self.launches.view(line_buffer.operand)
        offset, strides = 0, (*by_kind[LEAD], *by_kind[BATCH], *by_kind[GROUP], *by_kind[ELEMENT])
        if line_buffer.direct:
            offset, channel = view.offset, line_buffer.extents[CHANNEL][0] * view.strides[lead + 1]
            strides = (*view.strides[: lead + 1], channel, *view.strides[lead + 2 :])
        offset += sum(b * p for b, p in zip(base, strides[-self.rank :], strict=True))
        shape = (*self.lead, self.batch_size, self.geometry.groups, *counts)
        return self.launches.add_view(
            line_buffer.operand, lambda _: StridedView(shape, strides, offset)
        )

    def _split_bias(self, bias: int) -> int:
        """Return a bias as a view (*lead, groups, result channels)."""
        shape, strides, offset = self.launches.view(bias)
        channels, step = self.result_channels, strides[-1]
        shape = (*shape[:-1], self.geometry.groups, channels)
        strides = (*strides[:-1], channels * step, step)
        return self.launches.add_view(bias, lambda _: StridedView(shape, strides, offset))

    def _add_batch_axis(self, operand: int) -> int:
        """Return a view of (*lead, groups, ...) that is the same for the whole batch."""
        shape, strides, offset = self.launches.view(operand)
        lead = len(self.lead)
        shape = (*shape[:lead], self.batch_size, *shape[lead:])
        strides = (*strides[:lead], 0, *strides[lead:])
        return self.launches.add_view(operand, lambda _: StridedView(shape, strides, offset))

    # --- kernels

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

        def factors(k: Value) -> tuple[Value, Value]:
            """Return the element and the weight of tap `k`."""
            x = site.element(0, line_start + site.read(1, k))
            return x, site.element(2, start + site.read(3, k))

        total = sum_of_products(site.size(1, 0), site.extent(1, 0), self.dtype, factors)
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

    has_weight_rows = True

    def run(self) -> None:
        """Add the launches of the convolution."""
        self.summed_channels, self.result_channels = self.in_channels, self.out_channels
        result = self.launches.result
        counts = self.launches.shape(result)[-self.rank :]
        line = _input_line(self.geometry, self.kernel, counts).share_zeros(self.launches.shape(0))
        t = self.count_merged_axes(counts, line.sizes, self.in_channels * math.prod(self.kernel))
        line_buffer, none, ones = self.build_line(line, t), (0,) * self.rank, (1,) * self.rank
        s = _TapSum(none, counts, none, ones, self.kernel, none, ones)
        self.add_sum(line_buffer, s, self.widen(1), 2 if result == 3 else -1)

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
        line_buffer, weights = self.build_line(line, t), self.widen(1)
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
    """The gradient of the weights: w of x and y, a product over all positions of the batch."""

    def run(self) -> None:
        """Add the launches of the weights' gradient."""
        counts, shape = self.launches.shape(1)[-self.rank :], self.launches.shape
        self.batch_size, self.summed_channels = shape(0)[len(self.lead)], self.in_channels
        none, ones = (0,) * self.rank, (1,) * self.rank
        line = _input_line(self.geometry, self.kernel, counts).share_zeros(shape(0))
        s = _TapSum(none, counts, none, ones, self.kernel, none, ones)
        if self._calls_routine(counts):
            self._call_routine_over_positions(line, s)
            return
        x, y = self.lines.build(line, channels_last=True), self._build_channels_last()
        tables = self.build_line_table(x, s), self._build_position_table(x, counts)
        blocks = ceil_div(self.batch_size * math.prod(counts), PRODUCT_BLOCK)
        result, numbers = self.launches.result, math.prod(shape(0)) + math.prod(shape(1))
        sizes = shape(result)
        if 1 < blocks <= SUMS_PER_NUMBER_MAX * numbers // max(1, math.prod(sizes)):
            sums = self.launches.temporary(self.dtype, (blocks, *sizes))
            self._sum_positions(x, [x.operand, y, *tables], sums, blocks)
            self.launches.launch("sum_of_blocks", sum_blocks, sums, result, why="sums of blocks")
            return
        target = self.find_target(sizes)
        self._sum_positions(x, [x.operand, y, *tables], target, 0)
        self._copy_target(target)

    def _copy_target(self, target: int) -> None:
        """Add the launch that copies sums to the result, unless they are there."""
        if target != self.launches.result:
            name = f"{self.launches.op.name}_result"
            self.launches.launch(name, _build_copy, target, self.launches.result)

    def _calls_routine(self, counts: Shape) -> bool:
        """Return True if the device's routine computes the gradient: there are no small groups."""
        is_small = self.out_channels < SHARED_CHANNELS_MIN <= self.geometry.groups
        positions = self.batch_size * math.prod(counts)
        numbers = math.prod(self.launches.shape(self.launches.result))
        return self.launches.has_routine and not is_small and positions > 0 < numbers

    def _call_routine_over_positions(self, line: PaddedRow, s: _TapSum) -> None:
        """Add the call of the device's routine.

        Its operands have the groups in front: the line at tap 0 of each position, the table of
        taps, which are rows of the result, and y.
        """
        launches, counts, none, ones = self.launches, s.counts, s.base, s.step
        whole = PaddedRow(1, none, ones, ones, ones, counts, counts)
        x = self.build_line(line, 1)
        y = self.lines.build(whole, direct=launches.has_rows(1))
        target = self.find_target(launches.shape(launches.result))
        operands = [
            self._move_groups(self.view_positions(x, none, counts)),
            self.build_line_table(x, s),
            self._add_channels(self._move_groups(self.view_positions(y, none, counts)), y),
        ]
        shape = (*self.lead, self.geometry.groups, self.out_channels)
        shape = (*shape, self.in_channels * math.prod(self.kernel))
        launches.call([*operands, self.view_dense(target, shape)])
        self._copy_target(target)

    def _move_groups(self, operand: int) -> int:
        """Return a view of (*lead, batch, groups, ...) with the groups before the batch."""
        view, lead = self.launches.view(operand), len(self.lead)
        order = (*range(lead), lead + 1, lead, *range(lead + 2, len(view.shape)))
        shape, strides = (tuple([x[d] for d in order]) for x in view[:2])
        return self.launches.add_view(
            operand, lambda _: view._replace(shape=shape, strides=strides)
        )

    def _add_channels(self, operand: int, y: PaddedRowBuffer) -> int:
        """Return a view of (*lead, groups, ...) with the channels of y after the groups."""
        view, lead = self.launches.view(operand), len(self.lead)
        whole = self.launches.view(y.operand)
        step = whole.strides[lead + 1] if y.direct else y.strides[CHANNEL][0]
        shape = (*view.shape[: lead + 1], self.out_channels, *view.shape[lead + 1 :])
        strides = (*view.strides[: lead + 1], step, *view.strides[lead + 1 :])
        return self.launches.add_view(
            operand, lambda _: view._replace(shape=shape, strides=strides)
        )

    def _build_channels_last(self) -> int:
        """Add the launch that copies y with its channels as neighbours; return the copy's number.

        Positions are one axis if they are in memory: rows would be transposed in short pieces.
        """
        shape, strides, offset = self.launches.view(1)
        axis = len(self.lead) + 1
        positions, steps = shape[axis + 1 :], strides[axis + 1 :]
        one = (math.prod(positions),)
        merged = reshape_strides(positions, steps, one)
        if merged is not None:
            positions, steps = one, merged
        shape = (*shape[:axis], *positions, shape[axis])
        strides = (*strides[:axis], *steps, strides[axis])
        copy = self.launches.temporary(self.dtype, shape)
        view = self.launches.add_view(1, lambda _: StridedView(shape, strides, offset))
        self.launches.launch(f"{self.launches.op.name}_channels", _build_copy, view, copy)
        return copy

    def _build_position_table(self, x: PaddedRowBuffer, counts: Shape) -> int:
        """Add the launch that stores each position's index in the line of x; return its operand."""
        table = self.launches.temporary(int64, (self.batch_size, *counts))

        def build(site: KernelSite) -> None:
            """Build the kernel that stores the index of each position."""
            n, *at = [site.axis(-1, d) for d in range(site.rank(-1))]
            site.store(x.index_of(site, 0, {BATCH: [n], ELEMENT: at}), n, *at)

        self.launches.launch(f"{self.launches.op.name}_table", build, x.operand, table)
        return self.launches.reshape(table, (self.batch_size * math.prod(counts),))

    def _sum_positions(
        self, x: PaddedRowBuffer, operands: list[int], target: int, blocks: int
    ) -> None:
        """Add the launch of each weight's sum, or of the sums of so many blocks of positions.

        `operands`: x and y with channels last, the tables of taps and of positions. Lanes are the
        channels of y, or the groups if there are more of them.
        """
        shape = self.launches.shape(target)
        rows = self.in_channels * math.prod(self.kernel)  # of a result's channel
        target = self.view_dense(target, (*shape[: -self.rank - 1], rows))
        is_depthwise = self.geometry.groups > self.out_channels

        def build(site: KernelSite) -> None:
            """Build the kernel with a point for each weight, and for each block if any."""
            block = [site.points("blocks", blocks)] if blocks else []
            lead = self.add_lead_axes(site)
            if is_depthwise:
                o, row = site.points("kept", self.out_channels), site.points("rows", rows)
                g = self.add_group_axis(site)
            else:
                g, row = self.add_group_axis(site), site.points("rows", rows)
                o = site.points("kept", self.out_channels)
            at = {LEAD: lead, GROUP: [g]}
            first = x.index_of(site, 0, at) + site.read(2, row)
            channel = self.channel_index(site, "kept", g, o, self.out_channels)
            zero, last = const(0, int64), site.rank(1) - 1
            other = site.index(1, [*lead, *[zero] * (last - len(lead)), channel])

            def factors(k: Value) -> tuple[Value, Value]:
                """Return the elements of x and y at position `k`."""
                a = site.element(0, first + site.read(3, k))
                return a, site.element(1, other + k * site.size(1, last))

            length = site.size(3, 0)
            total = (
                sum_block_of_products(block[0], length, self.dtype, factors)
                if block
                else sum_of_products(length, site.extent(3, 0), self.dtype, factors)
            )
            site.store(total, *block, *lead, channel, row)

        self.launches.launch(self.launches.op.name, build, *operands, target)


def convolution(launches: Launches) -> None:
    """Add the launches that compute y from (x, w), or from (x, w, bias)."""
    _Convolve(launches, launches.shape(1)).run()


def convolution_input(launches: Launches) -> None:
    """Add the launches that compute x from (y, w)."""
    _InputGradient(launches, launches.shape(1)).run()


def convolution_weight(launches: Launches) -> None:
    """Add the launches that compute w from (x, y)."""
    _WeightGradient(launches, launches.shape(launches.result)).run()
