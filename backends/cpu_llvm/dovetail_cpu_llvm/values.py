"""Operations and memory accesses, at any width and for operands of any form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail.extend import OPERANDS, Atomic, Buffer, DType, Kernel, Store, Value, bool_, int64

from .emit import Emitter, Lane, constant, memory_type, scalar_type
from .schedule import LINE, Schedule

# Strides at which whole rows are read, or written but for what is between, and shuffled: 1/4 M
# float32 at stride 2 take 33 us instead of 80, backwards 21.
BACK, APART = -1, (2, 3, 4)
MASKED = 64  # bytes of a register: those of AVX-512 are stored without some lanes at no cost
AHEAD, FETCHES = 8, 8  # vectors between a fetch and its use; fetches for each vector

# op -> {kinds: instruction of two arguments}
_OPS: dict[str, dict[str, str]] = {
    "add": {"iu": "add", "f": "fadd"},
    "sub": {"iu": "sub", "f": "fsub"},
    "mul": {"iu": "mul", "f": "fmul"},
    "div": {"f": "fdiv"},
    "quo": {"i": "sdiv", "u": "udiv"},
    "rem": {"i": "srem", "u": "urem"},
    "shl": {"iu": "shl"},
    "shr": {"i": "ashr", "u": "lshr"},
    "and": {"biu": "and"},
    "or": {"biu": "or"},
    "xor": {"biu": "xor"},
    "lt": {"i": "icmp slt", "u": "icmp ult", "f": "fcmp olt"},
    "le": {"i": "icmp sle", "u": "icmp ule", "f": "fcmp ole"},
    "eq": {"biu": "icmp eq", "f": "fcmp oeq"},
    "ne": {"biu": "icmp ne", "f": "fcmp une"},
}
_INSTRUCTIONS = {
    (op, kind): word for op, rows in _OPS.items() for kinds, word in rows.items() for kind in kinds
}
# op -> LLVM's name of it
_CALLS = {"fma": "fma", "sqrt": "sqrt", "trunc": "trunc", "floor": "floor", "rint": "roundeven"}


class Values(Emitter):
    """Renders values, loads and stores. `env` holds what is rendered, by id of the Value."""

    def __init__(self, kernel: Kernel, schedule: Schedule) -> None:
        super().__init__()
        self.kernel, self.schedule = kernel, schedule
        self.env: dict[int, Lane] = {}
        self.buffers: dict[str, str] = {}
        self.params: dict[str, Lane] = {}
        self.index: list[Lane] = []
        self.mask: str | None = None  # the lanes that take part; None: all
        self.transposed: dict[int, str] = {}  # id(load) -> the stack's copy of a block, transposed
        self.row = self.first = ""  # of the block: the present row in it, the first column of it
        self.results: dict[int, tuple[str, str]] = {}  # of a panel: array, position of its vectors
        self.given: dict[int, Lane] = {}  # values that are known in a better form than computed
        self.streams = ""  # an i1: whether stores go past the caches; "": never
        self.column = ""  # of a panel: the column at hand, the first of a vector

    def lane(self, v: Value) -> Lane:
        if v.op == "const":
            return Lane(constant(v))
        if v.op == "param":
            return self.params[v.name]
        if v.op == "index":
            return self.index[v.axis]
        if id(v) not in self.env:
            self.expression(v)
        return self.env[id(v)]

    def uniform(self, v: Value) -> str:
        lane = self.lane(v)
        assert lane.form == "u", v
        return lane.text

    def vector(self, v: Value) -> str:
        """`v` with one element for each lane."""
        lane = self.lane(v)
        if lane.form == "v" or self.width == 1:
            return lane.text
        base = self.splat(scalar_type(v.dtype), lane.text)
        if lane.form == "u":
            return base
        t = self.wide("i64")
        steps = self.let(f"mul {t} {self.iota('i64')}, {self.splat('i64', lane.stride)}")
        return self.let(f"add {t} {base}, {steps}")

    def value(self, v: Value) -> None:
        known = self.given.get(id(v))
        self.env[id(v)] = known or (self.load(v) if v.op == "load" else self.compute(v))

    def compute(self, v: Value) -> Lane:
        lanes = [self.lane(a) for a in v.args]
        if all(x.form == "u" for x in lanes):
            return Lane(self.apply(v, [x.text for x in lanes], 1))
        if v.dtype is int64 and (affine := self.affine(v.op, lanes)):
            return affine
        if v.op in ("lt", "le") and [(x.form, x.stride) for x in lanes] == [("a", "1"), ("u", "0")]:
            left = self.let(f"sub i64 {lanes[1].text}, {lanes[0].text}")
            left = self.i64("add", left, "1") if v.op == "le" else left
            return Lane(self.first_lanes(left, self.width), "v")
        return Lane(self.apply(v, [self.vector(a) for a in v.args], self.width), "v")

    def affine(self, op: str, lanes: list[Lane]) -> Lane | None:
        """The sum, difference, uniform multiple or uniform choice of affine values, as affine."""
        if op == "where":
            return self.affine_choice(*lanes)
        if op not in ("add", "sub", "mul") or any(x.form == "v" for x in lanes):
            return None
        a, b = lanes
        if op == "mul":
            if a.form == b.form:
                return None
            factor, line = (a, b) if a.form == "u" else (b, a)
            text = self.i64("mul", line.text, factor.text)
            return Lane(text, "a", self.i64("mul", line.stride, factor.text))
        return Lane(self.i64(op, a.text, b.text), "a", self.i64(op, a.stride, b.stride))

    def affine_choice(self, when: Lane, a: Lane, b: Lane) -> Lane | None:
        """One of two values of which at least one is affine, or None."""
        if when.form != "u" or "v" in (a.form, b.form):
            return None
        text = self.let(f"select i1 {when.text}, i64 {a.text}, i64 {b.text}")
        if a.stride == b.stride:
            return Lane(text, "a", a.stride)
        return Lane(text, "a", self.let(f"select i1 {when.text}, i64 {a.stride}, i64 {b.stride}"))

    def apply(self, v: Value, args: Sequence[str], width: int) -> str:
        """One operation on scalars (width 1) or vectors."""
        source = v.args[-1].dtype
        s, d = scalar_type(source), scalar_type(v.dtype)
        t = self.wide(s, width)
        if v.op == "where":
            bits = self.wide("i1", width)
            return self.let(f"select {bits} {args[0]}, {t} {args[1]}, {t} {args[2]}")
        if v.op == "bitcast":
            to = self.wide(d, width)
            return args[0] if s == d else self.let(f"bitcast {t} {args[0]} to {to}")
        if v.op == "cast":
            return self.cast(args[0], source, v.dtype, width)
        if v.op == "not":
            ones = "-1" if width == 1 else f"splat ({s} -1)"
            return self.let(f"xor {t} {args[0]}, {ones}")
        if v.op == "neg" and source.kind == "f":
            return self.let(f"fneg {t} {args[0]}")
        if v.op == "neg":
            return self.let(f"sub {t} {'0' if width == 1 else 'zeroinitializer'}, {args[0]}")
        if v.op in _CALLS:
            suffix = f"f{source.bits}" if width == 1 else f"v{width}f{source.bits}"
            given = ", ".join(f"{t} {a}" for a in args)
            return self.let(f"call {t} @llvm.{_CALLS[v.op]}.{suffix}({given})")
        a, b = args
        if v.op in ("quo", "rem") and width > 1 and self.mask:
            # A lane that is switched off may divide by zero, and vector divisions trap.
            b = self.let(f"select {self.wide('i1')} {self.mask}, {t} {b}, {t} splat ({s} 1)")
        return self.let(f"{_INSTRUCTIONS[v.op, source.kind]} {t} {a}, {b}")

    def cast(self, a: str, source: DType, target: DType, width: int) -> str:
        s, d = (self.wide(scalar_type(x), width) for x in (source, target))
        if s == d:
            return a
        if target is bool_:
            zero = "zeroinitializer" if width > 1 else ("0.0" if source.kind == "f" else "0")
            return self.let(f"{'fcmp une' if source.kind == 'f' else 'icmp ne'} {s} {a}, {zero}")
        if source.kind == target.kind == "f":
            op = "fpext" if target.bits > source.bits else "fptrunc"
        elif source.kind == "f":
            op = "fptosi" if target.kind == "i" else "fptoui"
        elif target.kind == "f":
            op = "sitofp" if source.kind == "i" else "uitofp"
        elif source is not bool_ and target.bits < source.bits:
            op = "trunc"
        else:
            op = "sext" if source.kind == "i" else "zext"
        return self.let(f"{op} {s} {a} to {d}")

    def expression(self, v: Value) -> None:
        """Renders `v` and what it needs here, where a block does not come in order."""
        if v.op == "result":
            self.env[id(v)] = self.from_panel(v)
        elif v.op not in OPERANDS:
            for a in v.args:
                self.lane(a)
            self.value(v)

    def address(self, buffer: Buffer, index: str) -> str:
        """The address of an element, or a vector of addresses where `index` is a vector."""
        start = self.buffers[buffer.name]
        return self.let(f"getelementptr {memory_type(buffer.dtype)}, ptr {start}, {index}")

    def guarded(self, pointer: str, when: str) -> str:
        """`pointer` where `when` (an i1) holds, else eight bytes of nothing: no branch."""
        nowhere = self.slot("i64")
        self.do(f"store i64 0, ptr {nowhere}")
        return self.let(f"select i1 {when}, ptr {pointer}, ptr {nowhere}")

    def harmless(self, place: str, active: str) -> str:
        """`place` where some lane is `active`.

        A masked load from where there is no memory is no fault, but takes some processors hundreds
        of cycles.
        """
        if active == self.mask:
            return place
        some = self.some(active)
        nowhere = self.slot(f"[{self.width} x i64]")
        return self.let(f"select i1 {some}, ptr {place}, ptr {nowhere}")

    def active(self, when: Value | None) -> str | None:
        """The lanes that take part: those of the mask for which `when` holds. None: all."""
        if when is None:
            return self.mask
        bits = self.vector(when)
        return bits if self.mask is None else self.let(f"and {self.wide('i1')} {self.mask}, {bits}")

    def from_memory(self, d: DType, text: str, width: int) -> str:
        if d is not bool_:
            return text
        zero = "zeroinitializer" if width > 1 else "0"
        return self.let(f"icmp ne {self.wide('i8', width)} {text}, {zero}")

    def to_memory(self, d: DType, text: str, width: int) -> str:
        if d is not bool_:
            return text
        return self.let(f"zext {self.wide('i1', width)} {text} to {self.wide('i8', width)}")

    def load(self, v: Value) -> Lane:
        if id(v) in self.transposed:
            return Lane(self.from_memory(v.dtype, self.from_transposed(v), self.width), "v")
        if all(self.lane(a).form == "u" for a in v.args):
            place = self.place(v.buffer, v.index, v.when)
            text = self.let(f"load {memory_type(v.dtype)}, ptr {place}, align {v.dtype.itemsize}")
            return Lane(self.from_memory(v.dtype, text, 1))
        text = self.load_vector(v.buffer, v.index, self.active(v.when))
        return Lane(self.from_memory(v.dtype, text, self.width), "v")

    def load_vector(self, buffer: Buffer, index: Value, active: str | None) -> str:
        """A vector of elements as they are in memory, zero where not `active`."""
        if self.is_contiguous(index):
            place = self.address(buffer, f"i64 {self.lane(index).text}")
            place = place if active is None else self.harmless(place, active)
            return self.load_row(buffer.dtype, place, active)
        lane = self.lane(index)
        if active is not None or lane.form != "a":
            return self.gather(buffer, index, active)
        m, back = memory_type(buffer.dtype), range(self.width)[::-1]
        t = self.wide(m)
        found = self.slot(t)
        for stride in self.by_stride(lane):
            if stride == BACK:
                last = self.i64("sub", lane.text, str(self.width - 1))
                row = self.load_row(buffer.dtype, self.address(buffer, f"i64 {last}"), None)
                text = self.shuffled(m, row, row, back)
            elif stride:
                text = self.load_apart(buffer, lane.text, stride)
            else:
                self.fetch_ahead(buffer, lane)
                text = self.gather(buffer, index, None)
            self.do(f"store {t} {text}, ptr {found}")
        return self.let(f"load {t}, ptr {found}")

    def gather(self, buffer: Buffer, index: Value, active: str | None) -> str:
        """A vector of elements from anywhere."""
        t, align = self.wide(memory_type(buffer.dtype)), buffer.dtype.itemsize
        places = self.address(buffer, f"{self.wide('i64')} {self.vector(index)}")
        return self.let(
            f"call {t} @llvm.masked.gather.{self.suffix(buffer.dtype)}.v{self.width}p0("
            f"{self.wide('ptr')} align {align} {places}, {self.bits(active)}, {t} zeroinitializer)"
        )

    def by_stride(self, lane: Lane) -> Iterator[int]:
        """Runs what follows for each stride that is better done by shuffles, and for all others.

        Which it is, is known at launch. Yields `BACK`, those in `APART`, and 0.
        """
        done = self.label()
        for stride in (BACK, *APART):
            yes, no = self.label(), self.label()
            is_it = self.let(f"icmp eq i64 {lane.stride}, {stride}")
            self.do(f"br i1 {is_it}, label %{yes}, label %{no}")
            self.start(yes)
            yield stride
            self.do(f"br label %{done}")
            self.start(no)
        yield 0
        self.do(f"br label %{done}")
        self.start(done)

    def shuffled(self, t: str, a: str, b: str, picks: Sequence[int]) -> str:
        """Elements of two vectors."""
        listed = ", ".join(f"i32 {k}" for k in picks)
        v = self.wide(t)
        return self.let(f"shufflevector {v} {a}, {v} {b}, <{len(picks)} x i32> <{listed}>")

    def load_apart(self, buffer: Buffer, first: str, stride: int) -> str:
        """A vector of elements at a small stride; nothing beyond the last is read."""
        w, d = self.width, buffer.dtype
        starts = [*range(0, (stride - 1) * w, w), (stride - 1) * (w - 1)]
        places = [self.i64("add", first, str(start)) for start in starts]
        found, *rows = (self.load_row(d, self.address(buffer, f"i64 {at}"), None) for at in places)
        row_of = [min(stride * j // w, stride - 1) for j in range(w)]
        lanes = [stride * j - starts[r] for j, r in enumerate(row_of)]
        for k, row in enumerate(rows, 1):
            known = lanes if k == 1 else range(w)  # where those of the rows before it are
            picks = [known[j] if r < k else w + lanes[j] for j, r in enumerate(row_of)]
            picks = [p if r <= k else 0 for p, r in zip(picks, row_of, strict=True)]
            found = self.shuffled(memory_type(d), found, row, picks)
        return found

    def fetch_ahead(self, buffer: Buffer, lane: Lane) -> None:
        """Fetches what a gather at a constant stride will read.

        The hardware sees no pattern in gathers. 4 M elements at stride -1, 2 or 4 took 1.9 ns each
        without, 0.15 to 0.4 with.
        """
        if lane.form != "a":
            return
        for part in range(FETCHES):
            steps = AHEAD * self.width + part * self.width // FETCHES
            index = self.i64("add", lane.text, self.i64("mul", lane.stride, str(steps)))
            place = self.address(buffer, f"i64 {index}")
            self.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 3, i32 1)")

    def load_row(self, d: DType, place: str, active: str | None) -> str:
        """The vector at `place`."""
        t = self.wide(memory_type(d))
        if active is None:
            return self.let(f"load {t}, ptr {place}, align {d.itemsize}")
        return self.let(
            f"call {t} @llvm.masked.load.{self.suffix(d)}.p0("
            f"ptr align {d.itemsize} {place}, {self.bits(active)}, {t} zeroinitializer)"
        )

    def bits(self, active: str | None) -> str:
        """A mask as an argument, with its type."""
        return f"{self.wide('i1')} {active or 'splat (i1 true)'}"

    def is_contiguous(self, index: Value) -> bool:
        lane = self.lane(index)
        return lane.form == "a" and lane.stride == "1"

    def place(self, buffer: Buffer, index: Value, when: Value | None) -> str:
        """The address of one element, harmless where `when` does not hold."""
        place = self.address(buffer, f"i64 {self.uniform(index)}")
        return place if when is None else self.guarded(place, self.uniform(when))

    def store(self, s: Store) -> None:
        d = s.buffer.dtype
        text = self.to_memory(d, self.vector(s.value), self.width)
        t, align = self.wide(memory_type(d)), d.itemsize
        if self.width == 1:
            place = self.place(s.buffer, s.index, s.when)
            self.do(f"store {t} {text}, ptr {place}, align {align}")
            return
        active = self.active(s.when)
        if self.is_contiguous(s.index):
            place = self.address(s.buffer, f"i64 {self.lane(s.index).text}")
            self.store_row(d, text, place, active)
            return
        lane = self.lane(s.index)
        if active is not None or lane.form != "a":
            self.scatter(s.buffer, s.index, text, active)
            return
        for stride in self.by_stride(lane):
            if stride == BACK:
                last = self.i64("sub", lane.text, str(self.width - 1))
                row = self.shuffled(memory_type(d), text, text, range(self.width)[::-1])
                place = self.address(s.buffer, f"i64 {last}")
                self.do(f"store {t} {row}, ptr {place}, align {align}")
            elif stride:
                self.store_apart(s.buffer, lane.text, stride, text)
            else:
                self.scatter(s.buffer, s.index, text, None)

    def scatter(self, buffer: Buffer, index: Value, text: str, active: str | None) -> None:
        """Writes a vector anywhere."""
        d, t = buffer.dtype, self.wide(memory_type(buffer.dtype))
        places = self.address(buffer, f"{self.wide('i64')} {self.vector(index)}")
        to = f"{self.wide('ptr')} align {d.itemsize} {places}, {self.bits(active)}"
        scatter = f"@llvm.masked.scatter.{self.suffix(d)}.v{self.width}p0"
        self.do(f"call void {scatter}({t} {text}, {to})")

    def store_apart(self, buffer: Buffer, first: str, stride: int, text: str) -> None:
        """Writes a vector to places at a small stride; what is between is not touched.

        One by one where lanes are not left out by an instruction of their own: processors take up
        to 20 cycles for AVX's (32 K float32 at stride 2: 12 us, and 40 by it).
        """
        d, w = buffer.dtype, self.width
        t = self.wide(memory_type(d))
        if self.schedule.native < MASKED:
            for j in range(w):
                one = self.let(f"extractelement {t} {text}, i64 {j}")
                place = self.address(buffer, f"i64 {self.i64('add', first, str(j * stride))}")
                self.do(f"store {memory_type(d)} {one}, ptr {place}, align {d.itemsize}")
            return
        for start in range(0, stride * w, w):
            ours = [(start + j) % stride == 0 for j in range(w)]
            picks = [(start + j) // stride for j in range(w)]
            row = self.shuffled(memory_type(d), text, text, picks)
            place = self.address(buffer, f"i64 {self.i64('add', first, str(start))}")
            bits = ", ".join(f"i1 {int(mine)}" for mine in ours)
            to = f"ptr align {d.itemsize} {place}, <{w} x i1> <{bits}>"
            self.do(f"call void @llvm.masked.store.{self.suffix(d)}.p0({t} {row}, {to})")

    def store_row(self, d: DType, text: str, place: str, active: str | None) -> None:
        """Writes a vector to `place`.

        Past the caches, where that pays, all lanes are active, `place` is at a line's start, and
        the vector fills lines: half a line past the caches, and the other half not, takes 100 times
        as long as either way.
        """
        given = f"{self.wide(memory_type(d))} {text}"
        if active is not None:
            to = f"ptr align {d.itemsize} {place}, {self.bits(active)}"
            self.do(f"call void @llvm.masked.store.{self.suffix(d)}.p0({given}, {to})")
            return
        plain = f"store {given}, ptr {place}, align {d.itemsize}"
        if not self.streams or self.width * d.itemsize % LINE:
            self.do(plain)
            return
        low = self.let(f"and i64 {self.let(f'ptrtoint ptr {place} to i64')}, {LINE - 1}")
        fits = self.let(f"and i1 {self.streams}, {self.let(f'icmp eq i64 {low}, 0')}")
        with self.when(fits):
            self.do(f"store {given}, ptr {place}, align {LINE}, !nontemporal !{{i32 1}}")
        with self.when(self.let(f"xor i1 {fits}, true")):
            self.do(plain)

    def atomic(self, s: Atomic) -> None:
        assert self.width == 1
        d, place = s.buffer.dtype, self.place(s.buffer, s.index, s.when)
        op = "u" + s.op if d.kind == "u" and s.op in ("min", "max") else s.op
        self.do(f"atomicrmw {op} ptr {place}, {memory_type(d)} {self.uniform(s.value)} monotonic")

    def from_transposed(self, v: Value) -> str:
        """A vector of the row at hand, from the transposed block."""
        m = memory_type(v.dtype)
        across = self.let(f"sub i64 {self.index[-1].text}, {self.first}")
        down = self.let(f"mul i64 {self.row}, {self.schedule.tile}")
        at = self.let(f"add i64 {down}, {across}")
        place = self.let(f"getelementptr {m}, ptr {self.transposed[id(v)]}, i64 {at}")
        return self.let(f"load {self.wide(m)}, ptr {place}, align {v.dtype.itemsize}")

    def from_panel(self, v: Value) -> Lane:
        """The result of a reduction for the columns at hand."""
        vectors, base = self.results[id(v)]
        m = self.wide(memory_type(v.dtype))
        at = self.let(f"mul i64 {base}, {self.schedule.width}")
        at = self.let(f"add i64 {at}, {self.column}")
        place = self.let(f"getelementptr {memory_type(v.dtype)}, ptr {vectors}, i64 {at}")
        text = self.let(f"load {m}, ptr {place}, align {v.dtype.itemsize}")
        return Lane(self.from_memory(v.dtype, text, self.width), "v")
