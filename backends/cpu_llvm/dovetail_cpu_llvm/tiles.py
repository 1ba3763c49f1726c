"""The points of a kernel's grid: the loop over tiles, and the points in each, by the schedule."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.extend import (
    Kernel,
    Loop,
    Store,
    Value,
    grid_index,
    is_branch,
    loads,
    stride_along,
    uses,
)

from .control_flow import ControlFlow
from .expressions import TransposedTile
from .ir_writer import Lane, memory_type
from .lines import prefetch

Span = tuple[str, str]
"""The first point of a tile along an axis, and the one after its last."""

_UNHOISTED = ("load", "quo", "rem")  # which may fault if there are no tiles
PREFETCHED_ROWS = 8  # between a row and the one that is fetched into the caches meanwhile


class Tiles:
    """Renders the loop over the tiles %begin..%end-1.

    A tile is a point of the outer axes, and a block of the innermost one and perhaps of another.
    """

    def __init__(
        self, kernel: Kernel, flow: ControlFlow, extents: Sequence[str], blocks: Sequence[str]
    ) -> None:
        self.kernel, self.flow, self.extents, self.blocks = kernel, flow, extents, blocks
        self.schedule, self.exprs, self.writer = flow.schedule, flow.exprs, flow.writer

    def render(self) -> None:
        """Render the loop over the tiles %begin..%end-1, with their positions as counters."""
        w, axes = self.writer, self.schedule.axes
        rank = len(self.extents)
        self._hoist_uniform_values()
        counts = [self._count_tiles(axis) for axis in range(rank)]
        slots = [w.slot("i64") for _ in range(rank)]
        number = "%begin"
        for axis in axes:
            w.store(slots[axis], w.let(f"urem i64 {number}, {counts[axis]}"))
            number = w.let(f"udiv i64 {number}, {counts[axis]}")
        with w.loop("%begin", "%end"):
            self._render_tile([w.load(slot) for slot in slots])
            carry = "1"  # as in an odometer: divisions would cost more than small tiles
            for axis in axes:
                i = w.let(f"add i64 {w.load(slots[axis])}, {carry}")
                full = w.let(f"icmp eq i64 {i}, {counts[axis]}")
                w.store(slots[axis], w.select_i64(full, "0", i))
                carry = w.let(f"zext i1 {full} to i64")

    def _hoist_uniform_values(self) -> None:
        """Render the values that depend on scalars alone once, before all tiles.

        LLVM's passes would leave them in the loop: guards against subnormals check each scalar.
        """
        exprs = self.exprs
        for s in self.kernel.body:
            if not isinstance(s, Value) or s.op in _UNHOISTED:
                continue
            if all(a.op in ("const", "param") or id(a) in exprs.overrides for a in s.args):
                exprs.render(s)
                exprs.overrides[id(s)] = exprs.env[id(s)]

    def _count_tiles(self, axis: int) -> str:
        """Render the number of tiles along an axis."""
        if axis not in self.schedule.blocked:
            return self.extents[axis]
        w, n, b = self.writer, self.extents[axis], self.blocks[axis]
        above = w.let(f"add i64 {n}, {b}")
        return w.let(f"udiv i64 {w.let(f'sub i64 {above}, 1')}, {b}")

    def _find_span(self, axis: int, block: str) -> Span:
        """Render the first point of a tile along an axis, and the one after its last."""
        w = self.writer
        start = w.let(f"mul i64 {block}, {self.blocks[axis]}")
        end = w.let(f"add i64 {start}, {self.blocks[axis]}")
        return start, w.min_i64(end, self.extents[axis])

    def _render_tile(self, position: list[str]) -> None:
        """Render the points of a tile, in the way that the schedule names."""
        exprs, schedule, second = self.exprs, self.schedule, self.schedule.second_axis
        exprs.env.clear()
        exprs.index = [Lane(i) for i in position]
        if not position:
            self.flow.render_block(self.kernel.body)
            return
        columns = self._find_span(len(position) - 1, position[-1])
        if schedule.transposed:
            self._render_transposed(self._find_span(second, position[second]), columns)
        elif schedule.panel:
            self._render_panel(columns)
        elif schedule.fold_points > 1:
            self._render_points_together(columns)
        elif schedule.unroll_jam > 1:
            self._render_rows_together(self._find_span(second, position[second]), columns)
        else:
            self._render_row(columns)

    # --- a row of points

    def _render_row(self, columns: Span) -> None:
        """Render a row of points, split at the schedule's limits if the row is long."""
        exprs, w, (start, stop), limits = self.exprs, self.writer, columns, self.schedule.splits
        if not limits or len(self.extents) == 1:
            self._split_row(limits, columns)
            return
        envs = exprs.snapshot()
        n = w.let(f"sub i64 {stop}, {start}")
        is_long = w.let(f"icmp sge i64 {n}, {self.schedule.width}")
        with w.if_then(is_long):
            self._split_row(limits, columns)
        exprs.restore(envs)
        with w.if_then(w.negate(is_long)):  # the parts of a short row take longer than the whole
            self._split_row((), columns)

    def _split_row(self, limits: Sequence[Value], columns: Span) -> None:
        """Render the points where the first limit holds, then the others."""
        exprs, w, (start, stop), schedule = self.exprs, self.writer, columns, self.schedule
        if not limits:
            slot = w.counter(start)
            for lane in self.flow.vectors.each_vector(slot, stop, schedule.width, schedule.tails):
                exprs.index[-1] = lane
                self.flow.render_block(self.kernel.body)
            return
        limit, *others = limits
        envs, exprs.index[-1] = exprs.snapshot(), Lane(start)
        position, bound = (exprs.uniform(a) for a in limit.args)
        exprs.restore(envs)
        distance = w.let(f"call i64 @llvm.ssub.sat.i64(i64 {bound}, i64 {position})")
        distance = w.max_i64(distance, "0")
        distance = w.min_i64(distance, w.let(f"sub i64 {stop}, {start}"))
        end = w.let(f"add i64 {start}, {distance}")
        for holds, part in (("true", (start, end)), ("false", (end, stop))):
            exprs.overrides[id(limit)] = Lane(holds)
            self._split_row(others, part)
            del exprs.overrides[id(limit)]

    # --- several rows or points together

    def _render_rows_together(self, rows: Span, columns: Span) -> None:
        """Render several rows together, which share the loads that are the same for all.

        Rows that remain are rendered half as many together.
        """
        exprs, w, jam = self.exprs, self.writer, self.schedule.unroll_jam
        last, slot = w.let(f"sub i64 {rows[1]}, 1"), w.counter(rows[0])
        for whole, count in ((True, jam), (False, jam // 2)):
            with w.loop_from(slot, rows[1], count, whole) as r:
                numbers = [w.let(f"add i64 {r}, {j}") for j in range(count)]
                if not whole:  # the last row is stored again instead of those after it
                    numbers = [w.min_i64(number, last) for number in numbers]
                exprs.begin_rows(numbers)
                self._render_row(columns)
        exprs.end_rows()

    def _render_points_together(self, columns: Span) -> None:
        """Render several points together, so that none waits for the chain of the one before."""
        exprs, w, count = self.exprs, self.writer, self.schedule.fold_points
        slot = w.counter(columns[0])
        with w.loop_from(slot, columns[1], count) as i:
            exprs.begin_rows([w.i64("add", i, str(j)) for j in range(count)])
            self.flow.render_block(self.kernel.body)
        exprs.end_rows()
        with w.loop_from(slot, columns[1], 1) as i:
            exprs.index[-1] = Lane(i)
            self.flow.render_block(self.kernel.body)

    # --- tiles of reductions over rows

    def _render_panel(self, columns: Span) -> None:
        """Render each loop over all columns of a tile before the next statement.

        So rows are read in long pieces. Values that differ between columns are rendered where they
        are used; only results of reductions are kept, one vector for each `width` columns.
        """
        exprs, w, flow = self.exprs, self.writer, self.flow
        vectors, width = flow.vectors, self.schedule.width
        vectors.panel = columns
        count = w.let(f"sub i64 {columns[1]}, {columns[0]}")
        count = w.let(f"add i64 {count}, {width - 1}")
        vectors.panel_vectors = w.let(f"lshr i64 {count}, {width.bit_length() - 1}")
        stores, branches = list[Store](), list[Loop]()
        for s in self.kernel.body:
            if isinstance(s, Loop) and s.kind == "reduce":
                flow.render_reduce(s)
            elif isinstance(s, Loop) and is_branch(s):
                branches.append(s)
            elif isinstance(s, Loop):
                with w.loop(exprs.uniform(s.start), exprs.uniform(s.stop)) as k:
                    exprs.env[id(s.var)] = Lane(k)
                    for _ in vectors.each_panel_vector(width):
                        flow.render_block(s.body)
            elif isinstance(s, Store):
                stores.append(s)
            elif isinstance(s, Value) and id(s) in self.schedule.shared:
                exprs.render(s)
        for _ in vectors.each_panel_vector(width):
            for branch in branches:
                for v in uses(branch):
                    if v.op == "result" and id(v) in exprs.panel_results:
                        exprs.lane(v)  # before the branch, in which a lane is alone
                flow.render_block((branch,))
            for v in (v for s in stores for v in (s.index, s.value, s.when) if v is not None):
                exprs.lane(v)
            for s in stores:
                flow.stores.store(s)

    # --- transposed tiles

    def _render_transposed(self, rows: Span, columns: Span) -> None:
        """Render the rows of a block whose loads come from transposed copies on the stack."""
        exprs, w, schedule = self.exprs, self.writer, self.schedule
        turned = [v for v in loads(self.kernel.body) if id(v) in schedule.transposed]
        copies = {id(v): self._transpose_load(v, rows, columns) for v in turned}
        exprs.env.clear()
        is_guarded = any(isinstance(s, Loop) and is_branch(s) for s in self.kernel.body)
        with w.loop(*rows) as r:
            if is_guarded:
                self._prefetch_row(w.let(f"add i64 {r}, {PREFETCHED_ROWS}"), columns)
            exprs.index[schedule.second_axis] = Lane(r)
            row = w.let(f"sub i64 {r}, {rows[0]}")
            exprs.transposed = TransposedTile(copies, row, columns[0])
            self._render_row(columns)
            exprs.transposed = None

    def _prefetch_row(self, row: str, columns: Span) -> None:
        """Render prefetches of the pieces of memory that a later row of the block loads.

        They are short and far apart, so the processor does not foresee them: with guards against
        subnormals, x + x.T of 2048 x 2048 takes 2.6 ms, not 4.3 (AMD EPYC, 2026-12-02).
        """
        exprs, schedule, body = self.exprs, self.schedule, self.kernel.body
        axes = schedule.second_axis, len(exprs.index) - 1
        down, across = (stride_along(body, grid_index(axis)) for axis in axes)
        exprs.index[schedule.second_axis], exprs.index[-1] = Lane(row), Lane(columns[0])
        for v in loads(body):
            if across(v.index) == 1 and down(v.index) is not None:
                start = exprs.memory.element(v.buffer, exprs.uniform(v.index))
                prefetch(self.writer, start, schedule.tile * v.dtype.itemsize)
        exprs.env.clear()

    def _transpose_load(self, v: Value, rows: Span, columns: Span) -> str:
        """Render a transposed copy of the block that `v` loads; return the copy's address."""
        exprs, w, schedule = self.exprs, self.writer, self.schedule
        memory, m = exprs.memory, memory_type(v.dtype)
        side = min(16, schedule.native // v.dtype.itemsize)
        copy = w.alloca(m, schedule.second_points * schedule.tile)
        with (
            w.loop(*columns, side, full_steps=False) as c,
            w.loop(*rows, side, full_steps=False) as r,
        ):
            exprs.env.clear()
            exprs.index[schedule.second_axis], exprs.index[-1] = Lane(r), Lane(c, "affine", "1")
            index = exprs.lane(v.index)
            last = w.let(f"sub i64 {w.let(f'sub i64 {columns[1]}, {c}')}, 1")
            w.width, vectors = side, list[str]()
            mask = w.prefix_mask(w.let(f"sub i64 {rows[1]}, {r}"), side)
            for j in range(side):  # the last column again instead of those after it
                step = w.let(f"mul i64 {w.min_i64(str(j), last)}, {index.stride}")
                pointer = memory.element(v.buffer, w.let(f"add i64 {index.text}, {step}"))
                vectors.append(memory.load_row(v.dtype, pointer, mask))
            w.width = 1
            down = w.let(f"mul i64 {w.let(f'sub i64 {r}, {rows[0]}')}, {schedule.tile}")
            corner = w.let(f"add i64 {down}, {w.let(f'sub i64 {c}, {columns[0]}')}")
            t = f"<{side} x {m}>"
            for j, text in enumerate(memory.transpose(vectors, t)):
                pointer = w.let(f"getelementptr {m}, ptr {copy}, i64 {corner}")
                pointer = w.let(f"getelementptr {m}, ptr {pointer}, i64 {j * schedule.tile}")
                w.emit(f"store {t} {text}, ptr {pointer}, align {v.dtype.itemsize}")
        return copy
