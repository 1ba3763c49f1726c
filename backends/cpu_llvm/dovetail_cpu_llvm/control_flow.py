"""Blocks of statements, the loops in them, and branches that only some lanes need."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.extend import (
    Atomic,
    Block,
    DType,
    Kernel,
    Loop,
    Store,
    Value,
    bool_,
    is_branch,
    settles,
    uses,
)

from .accumulators import ReduceLoop
from .branch_divergence import DivergentBranch, divergent_branches
from .compress_store import COMPRESS_BYTES, find_compress_store, render_compress_store
from .expressions import Expressions
from .ir_writer import Lane, Slot, memory_type, scalar_type
from .reduction import Reduction
from .row_reuse import Reuse
from .schedule import lanes_of_map
from .stores import Stores
from .vector_loops import VectorLoops


class ControlFlow:
    """Renders blocks: for one row, or for the rows of `Expressions` that are rendered together."""

    def __init__(self, kernel: Kernel, exprs: Expressions) -> None:
        self.exprs, self.writer = exprs, exprs.writer
        self.schedule = exprs.schedule
        self.vectors = VectorLoops(exprs)
        self.stores = Stores(kernel, exprs)
        self._branches: dict[int, dict[int, list[DivergentBranch]]] = {}  # by id of a block
        self._reuses = {id(r.value): r for r in self.schedule.reuses}

    def render_block(self, block: Block, live_out: Sequence[Value] = ()) -> None:
        """Render statements; `live_out` are their values that are used afterwards."""
        exprs = self.exprs
        branches: dict[int, list[DivergentBranch]] = {}
        if self.writer.width > 1 and exprs.jam == 1:
            if id(block) not in self._branches:  # blocks are rendered several times
                self._branches[id(block)] = divergent_branches(block, live_out)
            branches = self._branches[id(block)]
        moved = {id(s) for group in branches.values() for branch in group for s in branch.body}
        reused = {id(s) for reuse in self._reuses.values() for s in reuse.body}
        for s in block:
            if id(s) in reused:
                if id(s) in self._reuses and id(s) not in moved:
                    self._render_reuse(self._reuses[id(s)])
                continue
            for branch in branches.get(id(s), ()):
                self._render_divergent_branch(branch)
            if id(s) in moved:
                continue
            match s:
                case Loop(kind="map"):
                    self._render_map(s)
                case Loop(kind="reduce"):
                    self.render_reduce(s)
                case Loop() if is_branch(s):
                    for _ in exprs.each_row():
                        self._render_branch(s)
                case Loop():
                    self._render_fold(s)
                case Value() if id(s) in self.schedule.shared:
                    exprs.render(s)
                    exprs.share_with_rows(s)
                case _:
                    for _ in exprs.each_row():
                        self._render_statement(s)

    def _render_statement(self, s: Value | Store | Atomic) -> None:
        """Render a value, a store or an atomic, at the current width."""
        match s:
            case Value():
                self.exprs.render(s)
            case Store():
                self.stores.store(s)
            case Atomic():
                self.stores.store_atomic(s)

    def _render_divergent_branch(self, branch: DivergentBranch) -> None:
        """Render a branch around values that few lanes need; bind zeros if no lane does."""
        exprs, w = self.exprs, self.writer
        slots = [w.slot(w.vector_type(scalar_type(v.dtype))) for v in branch.outs]
        w.store_all(slots, ["zeroinitializer"] * len(slots))
        bits, t = exprs.vector(branch.condition), w.vector_type("i1")
        if not branch.holds:
            bits = w.let(f"xor {t} {bits}, splat (i1 true)")
        if w.mask is not None:
            bits = w.let(f"and {t} {bits}, {w.mask}")
        envs = exprs.snapshot()
        with w.if_then(w.any_lane(bits)):
            self.render_block(branch.body, branch.outs)
            w.store_all(slots, map(exprs.vector, branch.outs))
        exprs.restore(envs)
        exprs.bind_slots(branch.outs, slots)

    def _render_reuse(self, reuse: Reuse) -> None:
        """Render a branch that loads a value which an earlier loop has kept, or computes it."""
        exprs, w, v = self.exprs, self.writer, reuse.value
        fits, slot = exprs.kept[id(reuse.source)].fits, w.slot(w.vector_type(scalar_type(v.dtype)))
        envs, reuses = exprs.snapshot(), self._reuses
        with w.if_then(fits):
            pointer = exprs.locate_kept(reuse.source, reuse.variable)
            w.store(slot, exprs.memory.load_row(v.dtype, pointer, None))
        self._reuses = {}  # so that the block renders its values
        with w.if_then(w.negate(fits)):
            self.render_block(reuse.body, (v,))
            w.store(slot, exprs.vector(v))
        exprs.restore(envs)
        self._reuses = reuses
        exprs.bind_slots([v], [slot])

    # --- loops

    def _render_map(self, loop: Loop) -> None:
        """Render a map loop: in vectors if its iterations are lanes, else one by one."""
        exprs, w, schedule = self.exprs, self.writer, self.schedule
        start, stop = exprs.uniform(loop.start), exprs.uniform(loop.stop)
        if self._is_vectorized(loop):
            lanes = lanes_of_map(loop, schedule.native)
            for k in self.vectors.each_vector(w.counter(start), stop, lanes):
                for _ in self.vectors.each_split(loop, k.text):
                    self.render_block(loop.body)
            return
        with w.loop(start, stop) as i:
            exprs.env[id(loop.var)] = Lane(i)
            self.render_block(loop.body)

    def _is_vectorized(self, loop: Loop) -> bool:
        """Return True if lanes are iterations of `loop`."""
        return self.schedule.kind == "rows" and id(loop) in self.schedule.vectorized

    def render_reduce(self, loop: Loop) -> None:
        """Render a reduce loop, and bind its results."""
        reduce = ReduceLoop(loop, self.vectors, self.render_block)
        Reduction(reduce, self._is_vectorized(loop)).render()

    def _render_branch(self, loop: Loop) -> None:
        """Render a fold of 0 or 1 iterations; bind its results.

        Of vectors, each lane that needs it runs the body on its own: few lanes do, and vectors
        would multiply the code of a long body.
        """
        exprs, w = self.exprs, self.writer
        condition, width, mask = loop.stop.args[0], w.width, w.mask
        slots = [w.slot(w.vector_type(scalar_type(v.dtype))) for v in loop.results]
        w.store_all(slots, map(exprs.vector, loop.init))
        needed = exprs.active(condition)
        assert needed is not None
        with w.if_then(needed if width == 1 else w.any_lane(needed)), exprs.branch():
            if width == 1:
                w.store_all(slots, self._render_iteration(loop))
            else:
                self._render_lanes(loop, needed, slots)
        w.width, w.mask = width, mask
        exprs.bind_slots(loop.results, slots)

    def _render_iteration(self, loop: Loop) -> list[str]:
        """Render a branch's body; return the registers of its results."""
        self.exprs.env[id(loop.var)] = Lane("0")
        self.render_block(loop.body, loop.update)
        return [self.exprs.vector(u) for u in loop.update]

    def _render_lanes(self, loop: Loop, needed: str, slots: Sequence[Slot]) -> None:
        """Render a branch's body for each of the `needed` lanes, and replace its results."""
        exprs, w, width = self.exprs, self.writer, self.writer.width
        used = {id(v): v for v in (*uses(loop), *loop.init) if id(v) in exprs.env}
        vectors = [v for v in used.values() if exprs.env[id(v)].form == "vector"]
        arrays = {id(v): self._spill(v.dtype, exprs.env[id(v)].text) for v in vectors}
        mask = self._spill(bool_, needed)
        outs = [self._spill(v.dtype, exprs.vector(v)) for v in loop.init]
        w.width, w.mask = 1, None
        with w.loop("0", str(width)) as j:
            exprs.index = [self._lane_of(x, j) for x in exprs.index]
            lanes = {k: exprs.env[k] for k in used}
            scalars = {k: self._lane_of(x, j) for k, x in lanes.items() if x.form != "vector"}
            with w.if_then(self._load_element(bool_, mask, j)):
                exprs.env.clear()
                exprs.env.update(scalars)
                for v in vectors:
                    exprs.env[id(v)] = Lane(self._load_element(v.dtype, arrays[id(v)], j))
                results = self._render_iteration(loop)
                for v, array, text in zip(loop.results, outs, results, strict=True):
                    m, text = memory_type(v.dtype), exprs.memory.to_memory(v.dtype, text, 1)
                    pointer = w.let(f"getelementptr {m}, ptr {array}, i64 {j}")
                    w.emit(f"store {m} {text}, ptr {pointer}")
        w.width = width
        for v, array, slot in zip(loop.results, outs, slots, strict=True):
            m = w.vector_type(memory_type(v.dtype))
            text = w.let(f"load {m}, ptr {array}, align 64")
            w.store(slot, exprs.memory.from_memory(v.dtype, text, width))

    def _spill(self, dtype: DType, text: str) -> str:
        """Render the store of a vector to the stack; return the address."""
        w, m = self.writer, memory_type(dtype)
        array = w.alloca(m, w.width)
        text = self.exprs.memory.to_memory(dtype, text, w.width)
        w.emit(f"store {w.vector_type(m)} {text}, ptr {array}, align 64")
        return array

    def _load_element(self, dtype: DType, array: str, j: str) -> str:
        """Render the load of a lane's element of a spilled vector."""
        w, m = self.writer, memory_type(dtype)
        pointer = w.let(f"getelementptr {m}, ptr {array}, i64 {j}")
        return self.exprs.memory.from_memory(dtype, w.let(f"load {m}, ptr {pointer}"), 1)

    def _lane_of(self, lane: Lane, j: str) -> Lane:
        """Return lane `j` of a value that is not a vector."""
        if lane.form == "uniform":
            return lane
        w = self.writer
        return Lane(w.i64("add", lane.text, w.i64("mul", j, lane.stride)))

    def _render_fold(self, loop: Loop) -> None:
        """Render a fold: as a compressing store, in lockstep or step by step; bind its results."""
        exprs, w, schedule = self.exprs, self.writer, self.schedule
        compresses = w.width == 1 and schedule.native == COMPRESS_BYTES and schedule.kind != "lanes"
        if compresses and (store := find_compress_store(loop)):
            render_compress_store(self.vectors, loop, store)
            return
        types = [w.vector_type(scalar_type(c.dtype)) for c in loop.carry]
        slots = [[w.slot(t) for t in types] for _ in range(exprs.jam)]
        for j in exprs.each_row():
            w.store_all(slots[j], map(exprs.vector, loop.init))
        if exprs.jam > 1 and schedule.fold_points > 1:
            self._fold_rows(loop, slots)
        else:
            with w.loop(exprs.uniform(loop.start), exprs.uniform(loop.stop)) as i:
                self._step_fold(loop, slots, [i] * exprs.jam)
                if exprs.jam == 1 and settles(loop):
                    w.break_if(self._is_carry_unchanged(loop))
        for j in exprs.each_row():
            exprs.bind_slots(loop.results, slots[j])

    def _fold_rows(self, loop: Loop, slots: Sequence[list[Slot]]) -> None:
        """Render folds of several rows, which may have different lengths.

        They run together until the shortest one ends, then each alone to its own end.
        """
        exprs, w = self.exprs, self.writer
        bounds = [(exprs.uniform(loop.start), exprs.uniform(loop.stop)) for _ in exprs.each_row()]
        counters, stops = [w.counter(start) for start, _ in bounds], [stop for _, stop in bounds]
        with w.loop_in_lockstep(counters, stops) as positions:
            self._step_fold(loop, slots, positions)
        jam = exprs.jam
        for j in exprs.each_row():
            exprs.jam = 1  # each alone
            with w.loop_from(counters[j], stops[j], 1) as i:
                self._step_fold(loop, slots[j:], [i])
            exprs.jam = jam

    def _step_fold(self, loop: Loop, slots: Sequence[list[Slot]], positions: Sequence[str]) -> None:
        """Render an iteration of each row, at the row's own position."""
        exprs, w = self.exprs, self.writer
        for j in exprs.each_row():
            exprs.env[id(loop.var)] = Lane(positions[j])
            exprs.bind_slots(loop.carry, slots[j])
        self.render_block(loop.body, loop.update)
        for j in exprs.each_row():
            w.store_all(slots[j], [exprs.vector(u) for u in loop.update])

    def _is_carry_unchanged(self, loop: Loop) -> str:
        """Return an i1: True if a step left all bits of the carry unchanged, in every lane."""
        exprs, w = self.exprs, self.writer
        changes: list[str] = []
        for c, u in zip(loop.carry, loop.update, strict=True):
            old, new = exprs.vector(c), exprs.vector(u)
            t = w.vector_type(scalar_type(c.dtype))
            if c.dtype.kind == "f":
                bits = w.vector_type(f"i{c.dtype.bits}")
                old, new = (w.let(f"bitcast {t} {text} to {bits}") for text in (old, new))
                t = bits
            changes.append(w.let(f"icmp ne {t} {old}, {new}"))
        changed, *others = changes
        for other in others:
            changed = w.let(f"or {w.vector_type('i1')} {changed}, {other}")
        return w.negate(w.any_lane(changed) if w.width > 1 else changed)
