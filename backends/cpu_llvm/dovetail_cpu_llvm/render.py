"""A kernel as LLVM IR text, with explicit vectors; nothing is left to LLVM's own vectoriser.

Every value is rendered as a `Lane` in one of three forms: uniform (a scalar for all lanes), affine
(an int64, lane j being `text + j * stride`), or a vector. Affine values are why addresses need no
vectors: a load at stride 1 is a vector load, at stride 0 a scalar one, at a small one some loads
and shuffles, at any other a gather.

What the lanes are depends on the `Schedule`:
- "lanes": the points of the innermost grid axis; loops inside run in lockstep for all lanes;
- "rows": each innermost map or reduce loop spreads its own iterations over lanes, point by point;
- "points": one point at a time (one lane).

The layers: `emit` (text), `values` (operations, memory), `loops` (blocks), `reduction` with
`places` and `extremes`, and here the grid.
"""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.extend import Kernel, Loop, Store, Value, bool_, loads

from .emit import Lane, memory_type
from .extremes import Extremes, finds_extremes
from .loops import Loops
from .places import Places, finds_places
from .reduction import Reduction
from .schedule import Schedule


def render(kernel: Kernel, schedule: Schedule) -> str:
    """The IR of `kernel`: `void @kernel(ptr args, i64 begin, i64 end)`, args as in `launch.py`."""
    return _Renderer(kernel, schedule).module()


class _Renderer(Loops):
    """Renders the function: its parameters, and the tiles of its grid."""

    def reduce(self, loop: Loop) -> None:
        kinds = ((Places, finds_places), (Extremes, finds_extremes))
        kind = next((kind for kind, finds in kinds if finds(self, loop)), Reduction)
        kind(self, loop).render()

    def module(self) -> str:
        self.parameters()
        self.streams = self.pays_to_stream()
        self.tiles()
        if self.streams:
            self.do("fence seq_cst")  # others see what was stored
        start, tiles = "\n".join(self.head), "\n".join(self.lines)
        return f"""define void @kernel(ptr %args, i64 %begin, i64 %end) #0 {{
entry:
{start}
  br label %tiles
tiles:
{tiles}
  ret void
}}
attributes #0 = {{ nounwind "prefer-vector-width"="{self.schedule.native * 8}" }}"""

    def parameters(self) -> None:
        k, self.slots = self.kernel, 0
        for b in k.buffers:
            self.buffers[b.name] = self.parameter("ptr")
        for name in k.ints:
            self.params[name] = Lane(self.parameter("i64"))
        for name, d in k.scalars:
            text = self.parameter(memory_type(d))
            if d is bool_:
                self.head.append(f"  {text}b = trunc i8 {text} to i1")
                text += "b"
            self.params[name] = Lane(text)
        self.extents = [self.parameter("i64") for _ in k.grid]
        self.blocks = [self.parameter("i64") for _ in k.grid]

    def pays_to_stream(self) -> str:
        """An i1: whether so much is stored that no cache would keep it.

        A store past the caches need not read the line first: a transposed copy of 4096 x 4096 takes
        7 ms instead of 20.
        """
        if not self.schedule.streams:
            return ""
        written = {s.buffer.name: s.buffer for s in self.kernel.body if isinstance(s, Store)}
        nbytes = str(max(b.dtype.itemsize for b in written.values()))
        for n in self.extents:
            nbytes = self.let(f"mul i64 {nbytes}, {n}")
        pays = self.let(f"icmp uge i64 {nbytes}, {self.schedule.streams}")
        for b in self.kernel.buffers:  # what is updated has been read anyhow
            for w in written if b.name not in written else ():
                other = f"icmp ne ptr {self.buffers[b.name]}, {self.buffers[w]}"
                pays = self.let(f"and i1 {pays}, {self.let(other)}")
        return pays

    def parameter(self, type_: str) -> str:
        name = self.name()
        self.head.append(f"  {name}p = getelementptr i64, ptr %args, i64 {self.slots}")
        self.head.append(f"  {name} = load {type_}, ptr {name}p, align 8")
        self.slots += 1
        return name

    def tiles(self) -> None:
        """Tiles begin..end-1: a tile is a point of the outer axes, a block of the innermost one."""
        rank = len(self.extents)
        counts = [self.tile_count(axis) for axis in range(rank)]
        at = [self.slot("i64") for _ in range(rank)]
        rest, order = "%begin", self.schedule.axes
        for axis in order:
            self.do(f"store i64 {self.let(f'urem i64 {rest}, {counts[axis]}')}, ptr {at[axis]}")
            rest = self.let(f"udiv i64 {rest}, {counts[axis]}")
        with self.loop("%begin", "%end"):
            self.tile([self.let(f"load i64, ptr {slot}") for slot in at])
            carry = "1"
            # As an odometer: divisions would cost more than small tiles.
            for axis in order:
                i = self.let(f"add i64 {self.let(f'load i64, ptr {at[axis]}')}, {carry}")
                full = self.let(f"icmp eq i64 {i}, {counts[axis]}")
                turned = self.let(f"select i1 {full}, i64 0, i64 {i}")
                self.do(f"store i64 {turned}, ptr {at[axis]}")
                carry = self.let(f"zext i1 {full} to i64")

    def tile_count(self, axis: int) -> str:
        if axis not in self.schedule.blocked:
            return self.extents[axis]
        n, b = self.extents[axis], self.blocks[axis]
        above = self.let(f"add i64 {n}, {b}")
        return self.let(f"udiv i64 {self.let(f'sub i64 {above}, 1')}, {b}")

    def span(self, axis: int, at: str) -> tuple[str, str]:
        """The first point of block `at` along an axis, and the one after its last."""
        start = self.let(f"mul i64 {at}, {self.blocks[axis]}")
        end = self.let(f"add i64 {start}, {self.blocks[axis]}")
        return start, self.least(end, self.extents[axis])

    def tile(self, at: list[str]) -> None:
        self.env.clear()
        self.index = [Lane(i) for i in at]
        if not at:
            self.block(self.kernel.body)
            return
        columns, second = self.span(len(at) - 1, at[-1]), self.schedule.second
        if self.schedule.transposed:
            self.transposed_tile(self.span(second, at[second]), columns)
        elif self.schedule.panel:
            self.panel_tile(*columns)
        elif self.schedule.abreast > 1:
            self.tile_abreast(*columns)
        elif self.schedule.unroll_jam > 1:
            self.jammed_tile(self.span(second, at[second]), columns)
        else:
            self.row_of_points(*columns)

    def row_of_points(self, start: str, stop: str) -> None:
        limits = self.schedule.limits
        if not limits or len(self.extents) == 1:
            self.split(limits, start, stop)
            return
        known = self.snapshot()
        n = self.let(f"sub i64 {stop}, {start}")
        long = self.let(f"icmp sge i64 {n}, {self.schedule.width}")
        with self.when(long):
            self.split(limits, start, stop)
        self.restore(known)
        with self.when(self.let(f"xor i1 {long}, true")):  # two short rows would take longer
            self.split((), start, stop)

    def split(self, limits: Sequence[Value], start: str, stop: str) -> None:
        """A row of points: those where the first of the limits holds, then the others."""
        if not limits:
            at, s = self.counter(start), self.schedule
            for lane in self.lanes(at, stop, s.width, s.tails):
                self.index[-1] = lane
                self.block(self.kernel.body)
            return
        limit, *others = limits
        known, self.index[-1] = self.snapshot(), Lane(start)
        place, bound = (self.uniform(a) for a in limit.args)
        self.restore(known)
        far = self.let(f"call i64 @llvm.ssub.sat.i64(i64 {bound}, i64 {place})")
        room = self.most(far, "0")
        end = self.let(f"add i64 {start}, {self.least(room, self.let(f'sub i64 {stop}, {start}'))}")
        for holds, ends in (("true", (start, end)), ("false", (end, stop))):
            self.given[id(limit)] = Lane(holds)
            self.split(others, *ends)
            del self.given[id(limit)]

    def jammed_tile(self, rows: tuple[str, str], columns: tuple[str, str]) -> None:
        """Several rows at once, so that what is loaded for all of them is loaded once.

        Those that are left are done by half as many at once.
        """
        last, counter = self.let(f"sub i64 {rows[1]}, 1"), self.counter(rows[0])
        for whole, jam in (
            (True, self.schedule.unroll_jam),
            (False, self.schedule.unroll_jam // 2),
        ):
            with self.resume(counter, rows[1], jam, whole) as r:
                self.jam = jam
                self.restore([{}] * jam)
                # Beyond the last row the last one again: it stores the same values once more.
                steps = [self.let(f"add i64 {r}, {j}") for j in range(jam)]
                self.rows = [Lane(s if whole else self.least(s, last)) for s in steps]
                self.turn_to(0)
                self.row_of_points(*columns)
        self.jam = 1

    def tile_abreast(self, start: str, stop: str) -> None:
        """Several points at once, so that each need not wait for the chain of the one before it."""
        counter, n = self.counter(start), self.schedule.abreast
        with self.resume(counter, stop, n) as i:
            self.jam = n
            self.restore([{}] * n)
            self.rows = [Lane(self.i64("add", i, str(j))) for j in range(n)]
            self.turn_to(0)
            self.block(self.kernel.body)
        self.jam = 1
        self.restore([{}])
        with self.resume(counter, stop, 1) as i:
            self.index[-1] = Lane(i)
            self.block(self.kernel.body)

    def panel_tile(self, start: str, stop: str) -> None:
        """Runs each loop over all columns of a tile before the next statement.

        So rows are read in long pieces. Values that differ between columns are rendered where they
        are used; only results of reductions are kept, one vector for each `width` columns.
        """
        self.columns = start, stop
        shift = self.schedule.width.bit_length() - 1
        columns = self.let(f"sub i64 {stop}, {start}")
        whole = self.let(f"add i64 {columns}, {self.schedule.width - 1}")
        self.vectors = self.let(f"lshr i64 {whole}, {shift}")
        stores: list[Store] = []
        for s in self.kernel.body:
            if isinstance(s, Loop) and s.kind == "reduce":
                self.reduce(s)
            elif isinstance(s, Loop):
                with self.loop(self.uniform(s.start), self.uniform(s.stop)) as k:
                    self.env[id(s.var)] = Lane(k)
                    for _ in self.panel():
                        self.block(s.body)
            elif isinstance(s, Store):
                stores.append(s)
            elif isinstance(s, Value) and id(s) in self.schedule.shared:
                self.value(s)
        for _ in self.panel():
            for v in (v for s in stores for v in (s.index, s.value, s.when) if v is not None):
                self.lane(v)
            for s in stores:
                self.store(s)

    def transposed_tile(self, rows: tuple[str, str], columns: tuple[str, str]) -> None:
        turned = [v for v in loads(self.kernel.body) if id(v) in self.schedule.transposed]
        copies = {id(v): self.transpose(v, rows, columns) for v in turned}
        self.env.clear()
        with self.loop(*rows) as r:
            self.index[self.schedule.second] = Lane(r)
            self.row, self.first = self.let(f"sub i64 {r}, {rows[0]}"), columns[0]
            self.transposed = copies
            self.row_of_points(*columns)
            self.transposed = {}

    def transpose(self, v: Value, rows: tuple[str, str], columns: tuple[str, str]) -> str:
        """A block of what `v` loads, as a square on the stack with the columns contiguous."""
        m, w = memory_type(v.dtype), min(16, self.schedule.native // v.dtype.itemsize)
        pitch, t = self.schedule.tile, f"<{w} x {m}>"
        block = self.slot(m, self.schedule.side * pitch)
        with self.loop(*columns, w, whole=False) as c, self.loop(*rows, w, whole=False) as r:
            self.env.clear()
            self.index[self.schedule.second], self.index[-1] = Lane(r), Lane(c, "a", "1")
            index = self.lane(v.index)
            last = self.let(f"sub i64 {self.let(f'sub i64 {columns[1]}, {c}')}, 1")
            self.width, vectors = w, list[str]()
            mask = self.first_lanes(self.let(f"sub i64 {rows[1]}, {r}"), w)
            for j in range(w):  # beyond the last column the last one again
                step = self.let(f"mul i64 {self.least(str(j), last)}, {index.stride}")
                place = self.address(v.buffer, f"i64 {self.let(f'add i64 {index.text}, {step}')}")
                vectors.append(self.load_row(v.dtype, place, mask))
            self.width = 1
            down = self.let(f"mul i64 {self.let(f'sub i64 {r}, {rows[0]}')}, {pitch}")
            corner = self.let(f"add i64 {down}, {self.let(f'sub i64 {c}, {columns[0]}')}")
            for j, x in enumerate(self.square(vectors, t)):
                place = self.let(f"getelementptr {m}, ptr {block}, i64 {corner}")
                place = self.let(f"getelementptr {m}, ptr {place}, i64 {j * pitch}")
                self.do(f"store {t} {x}, ptr {place}, align {v.dtype.itemsize}")
        return block
