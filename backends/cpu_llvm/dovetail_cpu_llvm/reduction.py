"""The reduce loop, in the canonical order of `dovetail.ir.language`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from dovetail.extend import CHUNK, LANES, loads, walk

from .accumulators import Accumulator, ReduceLoop, new_accumulator
from .ir_writer import Lane, Slot, memory_type, scalar_type
from .lines import prefetch
from .schedule import VECTOR_REGISTERS

CHUNK_SHIFT = CHUNK.bit_length() - 1
LEVELS_MAX = 3  # enough for CHUNK ** 3 elements
LANE_GROUP = 4  # lanes of a panel whose partial results are in registers together
# Rows of which a group reads its own before the next group does: 256 are more streams than the
# prefetchers follow (4096 x 4096 float32: 5.2 ms, 2.8 with 128), fewer load and store the lanes
# more often.
GROUPED_ROWS = 128
GROUPED_VECTORS_MIN = 4  # of a panel with more rows: pieces of shorter rows are read one by one
GROUPED_STATEMENTS_MAX = 16  # of a body that is rendered for each lane of a group
# Of the elements of all points, which then prefetch: of 4 MiB a sum takes as long either way, of
# 512 KiB, which the second-level cache holds, 1.4 times as long with prefetches.
PREFETCH_BYTES_MIN = 1 << 22
NEUTRAL_IDENTITIES = ("max", "min")  # combining one with x gives x; but 0 + -0 is 0


class Reduction:
    """Renders a reduce loop, with an accumulator or in lockstep for all points of a vector.

    Lanes of the canonical order are kept per level: level 0 combines elements, level 1 the results
    of chunks, and so on. In lockstep a level is an array of LANES vectors (one element for each
    point), or of LANES rows of vectors in a panel. With an accumulator, level 0 is in its slots.
    """

    def __init__(self, reduce: ReduceLoop, is_vectorized: bool) -> None:
        schedule, w = reduce.exprs.schedule, reduce.writer
        self.reduce, self.writer = reduce, w
        self.in_panel = schedule.panel and not reduce.exprs.in_branch
        self.is_vectorized = is_vectorized
        self.accumulator: Accumulator | None = None  # while a vectorized loop is rendered
        self.width = schedule.width if self.in_panel else w.width
        self.row = reduce.vectors.panel_vectors if self.in_panel else "1"  # vectors of a lane
        self.types = [w.vector_type(memory_type(d), self.width) for d in reduce.dtypes]
        row_max = schedule.tile // schedule.width if self.in_panel else 1
        self.levels = [w.alloca(t, LEVELS_MAX * LANES * row_max) for t in self.types]

    def render(self) -> None:
        """Render the loop over chunks, the carry to higher levels, and bind the results."""
        reduce, w, exprs = self.reduce, self.writer, self.reduce.exprs
        reduce.loop_start = exprs.uniform(reduce.loop.start)
        span = w.let(f"sub i64 {exprs.uniform(reduce.loop.stop)}, {reduce.loop_start}")
        self.count = w.select_i64(w.let(f"icmp sgt i64 {span}, 0"), span, "0")
        for reuse in exprs.schedule.reuses:
            if any(u is reuse.source for u in reduce.loop.update):
                exprs.keep(reuse.source, self.count)
        chunks = self._count_chunks(self.count)
        chunks = w.select_i64(w.let(f"icmp eq i64 {chunks}, 0"), "1", chunks)
        self.end = w.new_label()
        self.out = [w.slot(w.vector_type(scalar_type(d))) for d in reduce.dtypes]
        self.base = w.slot("i64")  # position of the result in the levels
        if not self.is_vectorized:
            self.lanes_used = self._count_used_lanes()
            self.half = w.counter(w.let(f"lshr i64 {self.lanes_used}, 1"))
            self.panel_orders = self._choose_panel_orders() if self.in_panel else {}
        memory, prefetches = exprs.memory, exprs.memory.prefetches
        if self.is_vectorized:
            memory.prefetches = self._exceeds_caches()
        with w.loop("0", chunks) as c:
            envs = exprs.snapshot()
            if self.is_vectorized:
                self.accumulator = new_accumulator(reduce)
                self.accumulator.add_chunk(*self._find_chunk_bounds(c))
            else:
                self._add_chunk_in_lockstep(*self._find_chunk_bounds(c))
            exprs.restore(envs)
            self._carry_up(c, chunks)
        w.enter_block(self.end)
        memory.prefetches = prefetches
        results, base = reduce.loop.results, w.load(self.base)
        if self.accumulator is not None:
            exprs.bind_slots(results, self.out)
        elif self.in_panel:
            exprs.panel_results |= {
                id(v): (a, base) for v, a in zip(results, self.levels, strict=True)
            }
        else:
            for v, text in zip(
                results, self._load_vectors(self._compute_addresses(base)), strict=True
            ):
                exprs.bind(v, text)

    def _exceeds_caches(self) -> str:
        """Render an i1: True if the elements of all points are too large for the caches."""
        w, memory = self.writer, self.reduce.exprs.memory
        size = max((v.dtype.itemsize for v in loads(self.reduce.loop.body)), default=0)
        nbytes = w.let(f"mul i64 {w.let(f'mul i64 {memory.points}, {size}')}, {self.count}")
        return w.let(f"icmp uge i64 {nbytes}, {PREFETCH_BYTES_MIN}")

    def _count_used_lanes(self) -> str:
        """Render the number of lanes of level 0 that the tree must combine: a power of two.

        All lanes start with the identity, and those after these hold nothing else.
        """
        w = self.writer
        last = w.let(f"sub i64 {self.count}, 1")
        zeros = w.let(f"call i64 @llvm.ctlz.i64(i64 {last}, i1 false)")
        power = w.let(f"shl i64 1, {w.let(f'sub i64 64, {zeros}')}")
        is_one = w.let(f"icmp sle i64 {self.count}, 1")
        is_all = w.let(f"icmp sge i64 {self.count}, {LANES}")
        return w.select_i64(is_all, str(LANES), w.select_i64(is_one, "1", power))

    def _count_chunks(self, n: str) -> str:
        """Render the number of chunks of `n` elements, rounded up."""
        w = self.writer
        return w.let(f"lshr i64 {w.let(f'add i64 {n}, {CHUNK - 1}')}, {CHUNK_SHIFT}")

    def _find_chunk_bounds(self, c: str) -> tuple[str, str]:
        """Render the first iteration of chunk `c`, and the one after its last."""
        w = self.writer
        start = w.let(f"mul i64 {c}, {CHUNK}")
        end = w.let(f"add i64 {start}, {CHUNK}")
        inside = w.let(f"icmp slt i64 {end}, {self.count}")
        return start, w.select_i64(inside, end, self.count)

    # --- level 0 in lockstep

    def _add_chunk_in_lockstep(self, start: str, stop: str) -> None:
        """Render a chunk for all points at once: iteration k adds to lane k % LANES."""
        w, exprs = self.writer, self.reduce.exprs
        if not self.in_panel:
            self._fill_identity("0", self.lanes_used)
            with w.loop(start, stop) as k:
                self._add_iteration(k, "0")
        envs = exprs.snapshot()
        for condition, add_panel in self.panel_orders.items():
            with w.if_then(condition):
                add_panel(start, stop)
            exprs.restore(envs)

    def _choose_panel_orders(self) -> dict[str, Callable[[str, str], None]]:
        """Render i1s of which one holds, and return the method for each that adds a panel."""
        w, width, (first, last) = self.writer, self.width, self.reduce.vectors.panel
        columns = w.let(f"sub i64 {last}, {first}")
        is_narrow = w.let(f"icmp slt i64 {columns}, {width}")
        others = w.negate(is_narrow)
        if sum(1 for _ in walk(self.reduce.loop.body)) > GROUPED_STATEMENTS_MAX:
            return {is_narrow: self._add_narrow_panel, others: self._add_wide_panel}
        is_wide = "false"
        if len(loads(self.reduce.loop.body)) == 1:  # several are too many streams, too
            is_wide = w.let(f"icmp sge i64 {columns}, {GROUPED_VECTORS_MIN * width}")
        is_low = w.let(f"icmp sle i64 {self.count}, {GROUPED_ROWS}")
        self.is_low = w.let(f"and i1 {others}, {is_low}")
        is_grouped = w.let(f"and i1 {others}, {w.let(f'or i1 {is_wide}, {is_low}')}")
        quarter = w.let(f"lshr i64 {self.lanes_used}, {LANE_GROUP.bit_length() - 1}")
        self.groups = w.max_i64(quarter, "1")
        with w.if_then(self.is_low):  # groups are combined where they are added
            w.store(self.half, w.let(f"lshr i64 {self.groups}, 1"))
        return {
            is_narrow: self._add_narrow_panel,
            is_grouped: self._add_grouped_panel,
            w.let(f"xor i1 {others}, {is_grouped}"): self._add_wide_panel,
        }

    def _add_narrow_panel(self, start: str, stop: str) -> None:
        """Render a chunk of a panel whose columns do not fill a vector.

        A narrower vector adds up many rows before the next columns.
        """
        w, vectors = self.writer, self.reduce.vectors
        self._fill_identity("0", self.lanes_used)
        with w.loop(start, stop, LANES, full_steps=False) as first:
            end = w.min_i64(w.let(f"add i64 {first}, {LANES}"), stop)
            for column in vectors.each_panel_vector(self.width // VECTOR_REGISTERS):
                with w.loop(first, end) as k:
                    self._add_iteration(k, column)

    def _add_wide_panel(self, start: str, stop: str) -> None:
        """Render a chunk of a panel row by row, in long pieces."""
        w, vectors = self.writer, self.reduce.vectors
        self._fill_identity("0", self.lanes_used)
        with w.loop(start, stop) as k:
            for column in vectors.each_panel_vector(self.width):
                self._add_iteration(k, column)

    def _add_grouped_panel(self, start: str, stop: str) -> None:
        """Render a chunk of a panel by groups of lanes that the tree combines first.

        Their partial results stay in registers for GROUPED_ROWS rows. A panel of so few rows has
        one combined vector for each group; a higher one loads and stores all lanes.
        """
        w, reduce = self.writer, self.reduce
        with (
            w.loop(start, w.max_i64(stop, "1"), GROUPED_ROWS, full_steps=False) as first,
            w.loop("0", self.groups) as group,
        ):
            end = w.min_i64(w.let(f"add i64 {first}, {GROUPED_ROWS}"), stop)
            steps = [w.i64("mul", self.groups, str(j)) for j in range(LANE_GROUP)]
            lanes = [w.i64("add", group, step) for step in steps]
            for column in reduce.vectors.each_panel_vector(self.width):
                addresses = [
                    self._compute_addresses(self._locate_row(lane), column) for lane in lanes
                ]
                slots = [self._new_identity_slots() for _ in lanes]
                for number in reduce.find_bitwise_or():  # the lanes of a group share its bits
                    for lane_slots in slots:
                        lane_slots[number] = slots[0][number]
                with w.if_then(w.let(f"icmp ne i64 {first}, {start}")):
                    for pointers, lane_slots in zip(addresses, slots, strict=True):
                        w.store_all(lane_slots, self._load_vectors(pointers))
                with w.loop(first, end, LANES, full_steps=False) as row:
                    is_first = w.let(f"icmp eq i64 {row}, {start}")
                    for j in (0, 2, 1, 3):  # so that few results of one row are live
                        k = w.let(f"add i64 {row}, {lanes[j]}")
                        self._add_lane(k, end, is_first, slots[j])
                self._store_group(addresses, slots)

    def _new_identity_slots(self) -> list[Slot]:
        """Add a slot for a vector of each value, and store the identity there."""
        w, reduce = self.writer, self.reduce
        scalars = [scalar_type(d) for d in reduce.dtypes]
        pairs = zip(scalars, reduce.identity, strict=True)
        return [w.slot(w.vector_type(s), w.splat(s, one)) for s, one in pairs]

    def _add_lane(self, k: str, end: str, is_first: str, slots: Sequence[Slot]) -> None:
        """Render iteration `k`, if it is before `end`, for a lane whose vectors are in `slots`."""
        w, reduce, exprs = self.writer, self.reduce, self.reduce.exprs
        envs = exprs.snapshot()
        with w.if_then(w.let(f"icmp slt i64 {k}, {end}")):
            if reduce.find_bitwise_or():  # flags leave less loads in flight
                self._prefetch(w.i64("add", k, str(GROUPED_ROWS)))  # in the next block of rows
                exprs.restore(envs)
            exprs.env[id(reduce.loop.var)] = Lane(reduce.iteration(k))
            reduce.render_body()
            new = reduce.updates()
            if reduce.loop.combine in NEUTRAL_IDENTITIES:
                with w.if_then(is_first):
                    w.store_all(slots, new)
                with w.if_then(w.negate(is_first)):
                    w.store_all(slots, reduce.combine([w.load(slot) for slot in slots], new))
            else:
                w.store_all(slots, reduce.combine([w.load(slot) for slot in slots], new))
        exprs.restore(envs)

    def _prefetch(self, k: str) -> None:
        """Render prefetches of the vectors that iteration `k` loads.

        The caller restores `exprs`. The hardware prefetcher misses them: with flags of subnormals,
        sums of the columns of 2048 x 2048 float32 take 1.4 ms, not 2.6 (AMD EPYC, 2026-12-02).
        """
        reduce, w, exprs = self.reduce, self.writer, self.reduce.exprs
        exprs.env[id(reduce.loop.var)] = Lane(reduce.iteration(k))
        for v in loads(reduce.loop.body):
            index = exprs.lane(v.index)
            if index.has_stride(1):
                start = exprs.memory.element(v.buffer, index.text)
                prefetch(w, start, w.width * v.dtype.itemsize)

    def _store_group(
        self, addresses: Sequence[Sequence[str]], slots: Sequence[Sequence[Slot]]
    ) -> None:
        """Store the lanes of a group, or in a panel of few rows their combination."""
        w, reduce = self.writer, self.reduce
        lanes = [[w.load(slot) for slot in lane_slots] for lane_slots in slots]
        with w.if_then(w.negate(self.is_low)):
            for pointers, vectors in zip(addresses, lanes, strict=True):
                self._store_vectors(pointers, vectors)
        with w.if_then(self.is_low):
            while len(lanes) > 1:
                half = len(lanes) // 2
                lanes = [reduce.combine(lanes[j], lanes[j + half]) for j in range(half)]
            self._store_vectors(addresses[0], lanes[0])

    def _add_iteration(self, k: str, column: str) -> None:
        """Render iteration `k` for a vector: combine the body's updates with lane k % LANES."""
        reduce, w = self.reduce, self.writer
        reduce.exprs.env[id(reduce.loop.var)] = Lane(reduce.iteration(k))
        row = self._locate_row(w.let(f"and i64 {k}, {LANES - 1}"))
        reduce.render_body()
        addresses = self._compute_addresses(row, column)
        new = reduce.updates()
        self._store_vectors(addresses, reduce.combine(self._load_vectors(addresses), new))

    def _combine_level(self, base: str) -> None:
        """Render the tree of `ReduceLoop.combine_lanes` for a level; the result is at `base`."""
        w = self.writer
        half = w.counter(w.load(self.half))
        head, body, end = w.new_label(), w.new_label(), w.new_label()
        w.enter_block(head)
        h = w.load(half)
        w.branch(w.let(f"icmp eq i64 {h}, 0"), end, body)
        w.begin_block(body)
        with self._each_vector(self._locate_row(h)) as j:
            left = w.let(f"add i64 {base}, {j}")
            right = self._load_vectors(
                self._compute_addresses(w.let(f"add i64 {left}, {self._locate_row(h)}"))
            )
            addresses = self._compute_addresses(left)
            self._store_vectors(
                addresses, self.reduce.combine(self._load_vectors(addresses), right)
            )
        w.store(half, w.let(f"lshr i64 {h}, 1"))
        w.emit(f"br label %{head}")
        w.begin_block(end)

    # --- higher levels

    def _carry_up(self, c: str, chunks: str) -> None:
        """Add the result of chunk `c` to level 1, and a level's to the next while one is full."""
        reduce, w, accumulator = self.reduce, self.writer, self.accumulator
        level, index, count = w.counter("0"), w.counter(c), w.counter(chunks)
        up, more, again, end = w.new_label(), w.new_label(), w.new_label(), w.new_label()
        w.enter_block(up)
        number = w.load(level)
        base = self._locate_row(w.let(f"mul i64 {number}, {LANES}"))
        w.store(self.base, base)
        item: list[str] = []  # the level's result, if it is in registers
        if accumulator is None:
            self._combine_level(base)
        else:
            item = accumulator.combine_lanes()
            w.store_all(self.out, item)
        n = w.load(count)
        w.branch(w.let(f"icmp eq i64 {n}, 1"), self.end, more)
        w.begin_block(more)
        i = w.load(index)
        above = w.let(f"add i64 {base}, {self._locate_row(str(LANES))}")
        low = w.let(f"and i64 {i}, {CHUNK - 1}")
        with w.if_then(w.let(f"icmp eq i64 {low}, 0")):
            self._fill_identity(above)
        row = self._locate_row(w.let(f"and i64 {i}, {LANES - 1}"))
        row = w.let(f"add i64 {above}, {row}")
        with self._each_vector(self.row) as j:
            addresses = self._compute_addresses(w.let(f"add i64 {row}, {j}"))
            right = item or self._load_vectors(
                self._compute_addresses(w.let(f"add i64 {base}, {j}"))
            )
            self._store_vectors(addresses, reduce.combine(self._load_vectors(addresses), right))
        full = w.let(f"icmp eq i64 {low}, {CHUNK - 1}")
        last = w.let(f"icmp eq i64 {w.let(f'add i64 {i}, 1')}, {n}")
        w.branch(w.let(f"or i1 {full}, {last}"), again, end)
        w.begin_block(again)
        w.store(index, w.let(f"lshr i64 {i}, {CHUNK_SHIFT}"))
        w.store(count, self._count_chunks(n))
        w.store(level, w.let(f"add i64 {number}, 1"))
        if accumulator is None:
            w.store(self.half, str(LANES // 2))
        else:
            self._load_level(above, accumulator.slots)
        w.emit(f"br label %{up}")
        w.begin_block(end)

    def _load_level(self, base: str, slots: Sequence[Slot]) -> None:
        """Copy the lanes of a level to slots."""
        w, memory, dtypes = self.writer, self.reduce.exprs.memory, self.reduce.dtypes
        for d, pointer, slot in zip(dtypes, self._compute_addresses(base), slots, strict=True):
            m = w.vector_type(memory_type(d), LANES)
            text = w.let(f"load {m}, ptr {pointer}, align {d.itemsize}")
            w.store(slot, memory.from_memory(d, text, LANES))

    # --- vectors in levels

    def _locate_row(self, lane: str) -> str:
        """Render the position of a lane's first vector."""
        return self.writer.i64("mul", lane, self.row)

    @contextmanager
    def _each_vector(self, count: str) -> Iterator[str]:
        """Return a context that writes a loop over vectors of a level and yields the position."""
        w = self.writer
        with w.loop("0", count) as j:
            width, w.width = w.width, self.width
            yield j
            w.width = width

    def _compute_addresses(self, vector: str, column: str = "0") -> list[str]:
        """Render the addresses of a vector of each value, or of a column in it."""
        w, types = self.writer, map(memory_type, self.reduce.dtypes)
        pairs = zip(self.types, self.levels, strict=True)
        addresses = [w.let(f"getelementptr {t}, ptr {base}, i64 {vector}") for t, base in pairs]
        if column == "0":
            return addresses
        pairs = zip(types, addresses, strict=True)
        return [w.let(f"getelementptr {m}, ptr {p}, i64 {column}") for m, p in pairs]

    def _load_vectors(self, addresses: Sequence[str]) -> list[str]:
        """Render the loads of a vector of each value."""
        memory, dtypes, width = self.reduce.exprs.memory, self.reduce.dtypes, self.writer.width
        texts = [memory.load_row(d, p, None) for d, p in zip(dtypes, addresses, strict=True)]
        return [memory.from_memory(d, text, width) for d, text in zip(dtypes, texts, strict=True)]

    def _store_vectors(self, addresses: Sequence[str], values: Sequence[str]) -> None:
        """Render the stores of a vector of each value."""
        w, memory = self.writer, self.reduce.exprs.memory
        for d, pointer, text in zip(self.reduce.dtypes, addresses, values, strict=True):
            t, text = w.vector_type(memory_type(d)), memory.to_memory(d, text, w.width)
            w.emit(f"store {t} {text}, ptr {pointer}, align {d.itemsize}")

    def _fill_identity(self, base: str, lanes: str = str(LANES)) -> None:
        """Set lanes of the level at `base` to the identity."""
        w, reduce = self.writer, self.reduce
        with self._each_vector(self._locate_row(lanes)) as j:
            pairs = zip(reduce.dtypes, reduce.identity, strict=True)
            values = [w.splat(scalar_type(d), one) for d, one in pairs]
            self._store_vectors(self._compute_addresses(w.let(f"add i64 {base}, {j}")), values)
