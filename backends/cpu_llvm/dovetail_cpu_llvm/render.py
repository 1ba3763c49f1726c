"""A kernel as LLVM IR text, with explicit vectors; nothing is left to LLVM's own vectoriser.

Every value is rendered as a `Lane` in one of three forms: uniform (one scalar for all lanes), affine (an int64
whose lane j is `text + j * stride`), or a vector. Affine values are why addresses need no vectors: a load at
stride 1 is a vector load, at stride 0 a scalar one, at any other a gather.

What the lanes are depends on the `Plan`:
- "lanes": the points of the innermost grid axis; loops inside run in lockstep for all lanes;
- "rows": each innermost map or reduce loop spreads its own iterations over lanes, one grid point after another;
- "points": one point at a time (one lane).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dovetail.dtypes import DType, bool_, int64
from dovetail.kernel import Kernel, combine
from dovetail.loops import CHUNK, LANES, OPERANDS, Atomic, Block, Buffer, Loop, Store, Value

from .plan import Plan

LEVELS = 3  # of the canonical reduction: good for CHUNK ** 3 elements

# op -> {kinds: template}; {t} the type, {s} its suffix in intrinsic names, {a} {b} {c} the arguments
_OPS: dict[str, dict[str, str]] = {
    "add": {"iu": "add {t} {a}, {b}", "f": "fadd {t} {a}, {b}"},
    "sub": {"iu": "sub {t} {a}, {b}", "f": "fsub {t} {a}, {b}"},
    "mul": {"iu": "mul {t} {a}, {b}", "f": "fmul {t} {a}, {b}"},
    "div": {"f": "fdiv {t} {a}, {b}"},
    "fma": {"f": "call {t} @llvm.fma.{s}({t} {a}, {t} {b}, {t} {c})"},
    "neg": {"iu": "sub {t} zeroinitializer, {a}", "f": "fneg {t} {a}"},
    "sqrt": {"f": "call {t} @llvm.sqrt.{s}({t} {a})"},
    "trunc": {"f": "call {t} @llvm.trunc.{s}({t} {a})"},
    "floor": {"f": "call {t} @llvm.floor.{s}({t} {a})"},
    "rint": {"f": "call {t} @llvm.roundeven.{s}({t} {a})"},
    "quo": {"i": "sdiv {t} {a}, {b}", "u": "udiv {t} {a}, {b}"},
    "rem": {"i": "srem {t} {a}, {b}", "u": "urem {t} {a}, {b}"},
    "shl": {"iu": "shl {t} {a}, {b}"},
    "shr": {"i": "ashr {t} {a}, {b}", "u": "lshr {t} {a}, {b}"},
    "and": {"biu": "and {t} {a}, {b}"},
    "or": {"biu": "or {t} {a}, {b}"},
    "xor": {"biu": "xor {t} {a}, {b}"},
    "lt": {
        "i": "icmp slt {t} {a}, {b}",
        "u": "icmp ult {t} {a}, {b}",
        "f": "fcmp olt {t} {a}, {b}",
    },
    "le": {
        "i": "icmp sle {t} {a}, {b}",
        "u": "icmp ule {t} {a}, {b}",
        "f": "fcmp ole {t} {a}, {b}",
    },
    "eq": {"biu": "icmp eq {t} {a}, {b}", "f": "fcmp oeq {t} {a}, {b}"},
    "ne": {"biu": "icmp ne {t} {a}, {b}", "f": "fcmp une {t} {a}, {b}"},
}
_TEMPLATES = {
    (op, kind): text for op, rows in _OPS.items() for kinds, text in rows.items() for kind in kinds
}
_ATOMICS = {"add": "add", "and": "and", "or": "or", "min": "min", "max": "max"}


@dataclass(frozen=True, slots=True)
class Lane:
    """A rendered value: form "u" (uniform), "a" (affine: `text + lane * stride`) or "v" (vector)."""

    text: str
    form: str = "u"
    stride: str = "0"


def scalar_type(d: DType) -> str:
    """The LLVM type of a value in a register."""
    if d.kind == "f":
        return {16: "half", 32: "float", 64: "double"}[d.bits]
    return "i1" if d is bool_ else f"i{d.bits}"


def memory_type(d: DType) -> str:
    """The LLVM type of a value in memory: a bool takes a byte."""
    return "i8" if d is bool_ else scalar_type(d)


def constant(v: Value) -> str:
    """An LLVM constant. Floats are written as the bits of a double, whatever their type."""
    if v.dtype.kind == "f":
        return f"0x{struct.unpack('<Q', struct.pack('<d', v.attr))[0]:016X}"
    return str(int(v.attr))


def render(kernel: Kernel, plan: Plan) -> str:
    """The IR of `kernel` as `void @kernel(ptr args, i64 begin, i64 end)`; see `launch.py` for `args`."""
    return _Renderer(kernel, plan).module()


class _Renderer:
    def __init__(self, kernel: Kernel, plan: Plan) -> None:
        self.kernel, self.plan = kernel, plan
        self.head: list[str] = []  # the entry block: parameters and stack slots
        self.lines: list[str] = []
        self.env: dict[int, Lane] = {}
        self.buffers: dict[str, str] = {}
        self.params: dict[str, Lane] = {}
        self.index: list[Lane] = []
        self.staged: dict[int, str] = {}  # id(load) -> the stack's copy of a block, transposed
        self.row = self.first = ""  # of the block: the present row in it, the first column of it
        self.columns = ("", "")  # of a sheet: the first, and the one after the last
        self.vectors = self.vector_number = ""  # of a sheet: how many there are, which is at hand
        self.results: dict[int, tuple[str, str]] = {}  # of a sheet: array, position of its vectors
        self.envs = [self.env]  # one for each of the rows that are computed at once
        self.rows: list[Lane] = []
        self.width = 1
        self.mask: str | None = None
        self._count = 0

    # --- text

    def name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def let(self, text: str) -> str:
        """A new register holding `text`."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def slot(self, type_: str, count: int = 1) -> str:
        """A new stack slot; those that are only loaded and stored whole end up in registers."""
        name = self.name()
        self.head.append(f"  {name} = alloca {type_}, i64 {count}, align 64")
        return name

    def label(self) -> str:
        self._count += 1
        return f"b{self._count}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")

    @contextmanager
    def loop(self, start: str, stop: str, step: int = 1, whole: bool = True) -> Iterator[str]:
        """for (i = start; i < stop; i += step), or only while `whole` steps fit; yields i."""
        with self.resume(self.counter(start), stop, step, whole) as i:
            yield i

    def counter(self, start: str) -> str:
        slot = self.slot("i64")
        self.do(f"store i64 {start}, ptr {slot}")
        return slot

    @contextmanager
    def resume(self, slot: str, stop: str, step: int, whole: bool = True) -> Iterator[str]:
        head, body, end = self.label(), self.label(), self.label()
        last = stop if step == 1 or not whole else self.let(f"sub i64 {stop}, {step - 1}")
        self.do(f"br label %{head}")
        self.start(head)
        i = self.let(f"load i64, ptr {slot}")
        more = self.let(f"icmp slt i64 {i}, {last}")
        self.do(f"br i1 {more}, label %{body}, label %{end}")
        self.start(body)
        yield i
        self.do(f"store i64 {self.let(f'add i64 {i}, {step}')}, ptr {slot}")
        self.do(f"br label %{head}")
        self.start(end)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """The statements inside run only where `condition` (an i1) holds."""
        yes, end = self.label(), self.label()
        self.do(f"br i1 {condition}, label %{yes}, label %{end}")
        self.start(yes)
        yield
        self.do(f"br label %{end}")
        self.start(end)

    # --- types at the present width

    def wide(self, scalar: str, width: int | None = None) -> str:
        width = width or self.width
        return scalar if width == 1 else f"<{width} x {scalar}>"

    def splat(self, scalar: str, text: str) -> str:
        """All lanes hold `text`."""
        if self.width == 1:
            return text
        if text[0] != "%":
            return f"splat ({scalar} {text})"
        t = self.wide(scalar)
        one = self.let(f"insertelement {t} poison, {scalar} {text}, i64 0")
        return self.let(
            f"shufflevector {t} {one}, {t} poison, <{self.width} x i32> zeroinitializer"
        )

    def iota(self, scalar: str) -> str:
        return "<" + ", ".join(f"{scalar} {j}" for j in range(self.width)) + ">"

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

    def lane(self, v: Value) -> Lane:
        if v.op == "const":
            return Lane(constant(v))
        if v.op == "param":
            return self.params[v.attr]
        if v.op == "index":
            return self.index[v.attr]
        if id(v) not in self.env:
            self.expression(v)
        return self.env[id(v)]

    def uniform(self, v: Value) -> str:
        lane = self.lane(v)
        assert lane.form == "u", v
        return lane.text

    # --- values

    def value(self, v: Value) -> None:
        self.env[id(v)] = self.load(v) if v.op == "load" else self.compute(v)

    def compute(self, v: Value) -> Lane:
        lanes = [self.lane(a) for a in v.args]
        if all(x.form == "u" for x in lanes):
            return Lane(self.apply(v, [x.text for x in lanes], 1))
        if v.dtype is int64 and (affine := self.affine(v.op, lanes)):
            return affine
        return Lane(self.apply(v, [self.vector(a) for a in v.args], self.width), "v")

    def affine(self, op: str, lanes: list[Lane]) -> Lane | None:
        """The sum, difference or uniform multiple of affine values, as an affine value."""
        if op not in ("add", "sub", "mul") or any(x.form == "v" for x in lanes):
            return None
        a, b = lanes
        if op == "mul":
            if a.form == b.form:
                return None
            factor, line = (a, b) if a.form == "u" else (b, a)
            return Lane(
                self.i64("mul", line.text, factor.text),
                "a",
                self.i64("mul", line.stride, factor.text),
            )
        return Lane(self.i64(op, a.text, b.text), "a", self.i64(op, a.stride, b.stride))

    def i64(self, op: str, a: str, b: str) -> str:
        """Integer arithmetic on registers and literals, folded where it can be."""
        if a[0] != "%" and b[0] != "%":
            x, y = int(a), int(b)
            return str({"add": x + y, "sub": x - y, "mul": x * y}[op])
        if (op == "mul" and b == "1") or (op != "mul" and b == "0"):
            return a
        if (op == "mul" and a == "1") or (op == "add" and a == "0"):
            return b
        return self.let(f"{op} i64 {a}, {b}")

    def apply(self, v: Value, args: Sequence[str], width: int) -> str:
        """One operation on scalars (width 1) or vectors."""
        source = v.args[-1].dtype
        s, d = scalar_type(source), scalar_type(v.dtype)
        t = self.wide(s, width)
        if v.op == "where":
            bits = self.wide("i1", width)
            return self.let(f"select {bits} {args[0]}, {t} {args[1]}, {t} {args[2]}")
        if v.op == "bitcast":
            return (
                args[0] if s == d else self.let(f"bitcast {t} {args[0]} to {self.wide(d, width)}")
            )
        if v.op == "cast":
            return self.cast(args[0], source, v.dtype, width)
        if v.op == "not":
            ones = "-1" if width == 1 else f"splat ({s} -1)"
            return self.let(f"xor {t} {args[0]}, {ones}")
        if v.op == "neg" and width == 1 and source.kind != "f":
            return self.let(f"sub {t} 0, {args[0]}")
        if v.op in ("quo", "rem") and width > 1 and self.mask:
            # A lane that is switched off may divide by zero, and vector divisions trap.
            one = f"splat ({s} 1)"
            args = [
                args[0],
                self.let(f"select {self.wide('i1')} {self.mask}, {t} {args[1]}, {t} {one}"),
            ]
        suffix = f"f{source.bits}" if width == 1 else f"v{width}f{source.bits}"
        names = dict(zip("abc", args, strict=False))
        return self.let(_TEMPLATES[v.op, source.kind].format(t=t, s=suffix, **names))

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
            self.env[id(v)] = self.from_sheet(v)
        elif v.op not in OPERANDS:
            for a in v.args:
                self.lane(a)
            self.value(v)

    # --- memory

    def address(self, buffer: Buffer, index: str) -> str:
        """The address of an element, or a vector of addresses where `index` is a vector."""
        return self.let(
            f"getelementptr {memory_type(buffer.dtype)}, ptr {self.buffers[buffer.name]}, {index}"
        )

    def guarded(self, pointer: str, when: str) -> str:
        """`pointer` where `when` (an i1) holds, else eight bytes of nothing, so that no branch is needed."""
        nowhere = self.slot("i64")
        self.do(f"store i64 0, ptr {nowhere}")
        return self.let(f"select i1 {when}, ptr {pointer}, ptr {nowhere}")

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
        if id(v) in self.staged:
            return Lane(self.from_memory(v.dtype, self.from_stage(v), self.width), "v")
        when = v.args[1] if len(v.args) == 2 else None
        index, m, align = self.lane(v.args[0]), memory_type(v.dtype), v.dtype.itemsize
        if index.form == "u" and (when is None or self.lane(when).form == "u"):
            pointer = self.address(v.attr, f"i64 {index.text}")
            if when is not None:
                pointer = self.guarded(pointer, self.uniform(when))
            text = self.let(f"load {m}, ptr {pointer}, align {align}")
            return Lane(self.from_memory(v.dtype, text, 1))
        t, active = self.wide(m), self.active(when)
        if index.form == "a" and index.stride == "1":
            pointer = self.address(v.attr, f"i64 {index.text}")
            if active is None:
                text = self.let(f"load {t}, ptr {pointer}, align {align}")
            else:
                text = self.let(
                    f"call {t} @llvm.masked.load.{self.suffix(v.dtype)}.p0(ptr align {align} {pointer}, "
                    f"{self.wide('i1')} {active}, {t} zeroinitializer)"
                )
        else:
            pointers = self.address(v.attr, f"{self.wide('i64')} {self.vector(v.args[0])}")
            text = self.let(
                f"call {t} @llvm.masked.gather.{self.suffix(v.dtype)}.v{self.width}p0({self.wide('ptr')} "
                f"align {align} {pointers}, {self.wide('i1')} {active or 'splat (i1 true)'}, {t} zeroinitializer)"
            )
        return Lane(self.from_memory(v.dtype, text, self.width), "v")

    def suffix(self, d: DType, width: int = 0) -> str:
        return f"v{width or self.width}" + (f"f{d.bits}" if d.kind == "f" else f"i{d.bits}")

    def store(self, s: Store) -> None:
        d = s.buffer.dtype
        index, m, align = self.lane(s.index), memory_type(d), d.itemsize
        if self.width == 1:
            pointer = self.address(s.buffer, f"i64 {index.text}")
            if s.when is not None:
                pointer = self.guarded(pointer, self.uniform(s.when))
            self.do(
                f"store {m} {self.to_memory(d, self.uniform(s.value), 1)}, ptr {pointer}, align {align}"
            )
            return
        t, active = self.wide(m), self.active(s.when)
        text = self.to_memory(d, self.vector(s.value), self.width)
        if index.form == "a" and index.stride == "1":
            pointer = self.address(s.buffer, f"i64 {index.text}")
            if active is None:
                self.do(f"store {t} {text}, ptr {pointer}, align {align}")
            else:
                self.do(
                    f"call void @llvm.masked.store.{self.suffix(d)}.p0({t} {text}, ptr align {align} {pointer}, "
                    f"{self.wide('i1')} {active})"
                )
        else:
            pointers = self.address(s.buffer, f"{self.wide('i64')} {self.vector(s.index)}")
            self.do(
                f"call void @llvm.masked.scatter.{self.suffix(d)}.v{self.width}p0({t} {text}, {self.wide('ptr')} "
                f"align {align} {pointers}, {self.wide('i1')} {active or 'splat (i1 true)'})"
            )

    def atomic(self, s: Atomic) -> None:
        assert self.width == 1
        d = s.buffer.dtype
        pointer = self.address(s.buffer, f"i64 {self.uniform(s.index)}")
        if s.when is not None:
            pointer = self.guarded(pointer, self.uniform(s.when))
        op = ("u" if d.kind == "u" and s.op in ("min", "max") else "") + _ATOMICS[s.op]
        self.do(f"atomicrmw {op} ptr {pointer}, {memory_type(d)} {self.uniform(s.value)} monotonic")

    # --- blocks and loops

    def block(self, block: Block) -> None:
        for s in block:
            if isinstance(s, Loop):
                {"map": self.map, "reduce": self.reduce, "fold": self.fold}[s.kind](s)
            elif isinstance(s, Value) and id(s) in self.plan.shared:
                self.value(s)
                for env in self.envs[1:]:
                    env[id(s)] = self.env[id(s)]
            else:
                for _ in self.copies():
                    self.statement(s)

    def statement(self, s: Value | Store | Atomic) -> None:
        if isinstance(s, Value):
            self.value(s)
        elif isinstance(s, Store):
            self.store(s)
        else:
            self.atomic(s)

    def copies(self) -> Iterator[int]:
        """Runs what follows for each of the rows that are computed at once."""
        if self.plan.jam == 1:
            yield 0
            return
        for j in range(self.plan.jam):
            self.turn_to(j)
            yield j
        self.turn_to(0)

    def turn_to(self, row: int) -> None:
        self.env, self.index[self.plan.second] = self.envs[row], self.rows[row]

    def snapshot(self) -> list[dict[int, Lane]]:
        return [dict(e) for e in (self.envs if self.plan.jam > 1 else [self.env])]

    def restore(self, known: list[dict[int, Lane]]) -> None:
        self.envs = [dict(e) for e in known]
        self.env = self.envs[0]

    @property
    def form(self) -> str:
        return "u" if self.width == 1 else "v"

    def spreads(self, loop: Loop) -> bool:
        """Whether the iterations of `loop` are spread over lanes."""
        return self.plan.mode == "rows" and id(loop) in self.plan.spread

    def map(self, loop: Loop) -> None:
        start, stop = self.uniform(loop.start), self.uniform(loop.stop)
        if self.spreads(loop):
            for k in self.lanes(self.counter(start), stop, LANES):
                self.env[id(loop.var)] = k
                self.block(loop.body)
            return
        with self.loop(start, stop) as i:
            self.env[id(loop.var)] = Lane(i)
            self.block(loop.body)

    def fold(self, loop: Loop) -> None:
        types = [self.wide(scalar_type(c.dtype)) for c in loop.carry]
        slots = [[self.slot(t) for t in types] for _ in range(self.plan.jam)]
        for j in self.copies():
            for init, t, slot in zip(loop.init, types, slots[j], strict=True):
                self.do(f"store {t} {self.vector(init)}, ptr {slot}")
        with self.loop(self.uniform(loop.start), self.uniform(loop.stop)) as i:
            for j in self.copies():
                self.env[id(loop.var)] = Lane(i)
                self.read(loop.carry, types, slots[j])
            self.block(loop.body)
            for j in self.copies():
                updates = [self.vector(u) for u in loop.update]
                for u, t, slot in zip(updates, types, slots[j], strict=True):
                    self.do(f"store {t} {u}, ptr {slot}")
        for j in self.copies():
            self.read(loop.results, types, slots[j])

    def read(self, values: Sequence[Value], types: list[str], slots: list[str]) -> None:
        for v, t, slot in zip(values, types, slots, strict=True):
            self.env[id(v)] = Lane(self.let(f"load {t}, ptr {slot}"), self.form)

    def lanes(self, slot: str, stop: str, width: int) -> Iterator[Lane]:
        """Runs what follows twice: in a loop over whole vectors, then masked for what is left.

        Yields the index (affine) each time; the count goes on from `slot`.
        """
        if width == 1:
            with self.resume(slot, stop, 1) as i:
                yield Lane(i)
            return
        known = self.snapshot()
        self.width = width
        with self.resume(slot, stop, width) as i:
            yield Lane(i, "a", "1")
        i = self.let(f"load i64, ptr {slot}")
        with self.when(self.let(f"icmp slt i64 {i}, {stop}")):
            self.restore(known)
            self.mask = self.first_lanes(self.let(f"sub i64 {stop}, {i}"), width)
            yield Lane(i, "a", "1")
            self.mask = None
        self.restore(known)
        self.width = 1

    def first_lanes(self, count: str, width: int) -> str:
        """A mask of the first `count` lanes. Counts beyond the width mean all lanes."""
        count = self.least(count, str(width))
        small = "i8" if width < 128 else "i16"
        left = self.splat(small, self.let(f"trunc i64 {count} to {small}"))
        return self.let(f"icmp slt {self.wide(small)} {self.iota(small)}, {left}")

    # --- reductions, in the canonical order

    def reduce(self, loop: Loop) -> None:
        _Reduction(self, loop).render()

    def combined(self, loop: Loop, left: Sequence[str], right: Sequence[str]) -> list[str]:
        """The combination of two tuples of values at the present width."""
        rule = combine(str(loop.combine), tuple(u.dtype for u in loop.update))
        for args, texts in ((rule.left, left), (rule.right, right)):
            for a, text in zip(args, texts, strict=True):
                self.env[id(a)] = Lane(text, self.form)
        for v in rule.body:
            self.value(v)
        return [self.vector(r) for r in rule.result]

    # --- the grid

    def module(self) -> str:
        self.parameters()
        self.tiles()
        return "\n".join(
            [
                "define void @kernel(ptr %args, i64 %begin, i64 %end) #0 {",
                "entry:",
                *self.head,
                "  br label %tiles",
                "tiles:",
                *self.lines,
                "  ret void",
                "}",
                f'attributes #0 = {{ nounwind "prefer-vector-width"="{self.plan.native * 8}" }}',
            ]
        )

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

    def parameter(self, type_: str) -> str:
        name = self.name()
        self.head.append(f"  {name}p = getelementptr i64, ptr %args, i64 {self.slots}")
        self.head.append(f"  {name} = load {type_}, ptr {name}p, align 8")
        self.slots += 1
        return name

    def tiles(self) -> None:
        """Tiles begin..end-1. A tile is one point of the outer axes and a block of the innermost one."""
        rank = len(self.extents)
        counts = [self.tile_count(axis) for axis in range(rank)]
        at = [self.slot("i64") for _ in range(rank)]
        rest = "%begin"
        for axis in reversed(range(rank)):
            self.do(f"store i64 {self.let(f'urem i64 {rest}, {counts[axis]}')}, ptr {at[axis]}")
            rest = self.let(f"udiv i64 {rest}, {counts[axis]}")
        with self.loop("%begin", "%end"):
            self.tile([self.let(f"load i64, ptr {slot}") for slot in at])
            carry = "1"
            for axis in reversed(
                range(rank)
            ):  # as an odometer: divisions would cost more than small tiles
                i = self.let(f"add i64 {self.let(f'load i64, ptr {at[axis]}')}, {carry}")
                full = self.let(f"icmp eq i64 {i}, {counts[axis]}")
                self.do(
                    f"store i64 {self.let(f'select i1 {full}, i64 0, i64 {i}')}, ptr {at[axis]}"
                )
                carry = self.let(f"zext i1 {full} to i64")

    def tile_count(self, axis: int) -> str:
        if axis not in self.plan.blocked:
            return self.extents[axis]
        n, b = self.extents[axis], self.blocks[axis]
        above = self.let(f"add i64 {n}, {b}")
        return self.let(f"udiv i64 {self.let(f'sub i64 {above}, 1')}, {b}")

    def span(self, axis: int, at: str) -> tuple[str, str]:
        """The first point of block `at` along an axis, and the one after its last."""
        start = self.let(f"mul i64 {at}, {self.blocks[axis]}")
        end = self.let(f"add i64 {start}, {self.blocks[axis]}")
        return start, self.least(end, self.extents[axis])

    def least(self, a: str, b: str) -> str:
        return self.let(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def tile(self, at: list[str]) -> None:
        self.env.clear()
        self.index = [Lane(i) for i in at]
        if not at:
            self.block(self.kernel.body)
            return
        start, stop = self.span(-1 + len(at), at[-1])
        if self.plan.staged:
            self.staged_tile(self.span(self.plan.second, at[self.plan.second]), (start, stop))
        elif self.plan.sheet:
            self.sheet_tile(start, stop)
        elif self.plan.jam > 1:
            self.jammed_tile(self.span(self.plan.second, at[self.plan.second]), (start, stop))
        else:
            self.row_of_points(start, stop)

    def row_of_points(self, start: str, stop: str) -> None:
        if self.plan.mode != "lanes":
            with self.loop(start, stop) as i:
                self.index[-1] = Lane(i)
                self.block(self.kernel.body)
            return
        for lane in self.lanes(self.counter(start), stop, self.plan.width):
            self.index[-1] = lane
            self.block(self.kernel.body)

    def jammed_tile(self, rows: tuple[str, str], columns: tuple[str, str]) -> None:
        """Several rows at once, so that what is loaded for all of them is loaded once."""
        last = self.let(f"sub i64 {rows[1]}, 1")
        with self.loop(*rows, self.plan.jam, whole=False) as r:
            self.restore([{}] * self.plan.jam)
            # Beyond the last row the last one again: it stores the same values once more.
            steps = [self.let(f"add i64 {r}, {j}") for j in range(self.plan.jam)]
            self.rows = [Lane(self.least(step, last)) for step in steps]
            self.turn_to(0)
            self.row_of_points(*columns)

    # --- sheets: each loop of the kernel runs over all columns of a tile, before the next statement

    def sheet_tile(self, start: str, stop: str) -> None:
        """Rows are read in long pieces. Values that differ between columns are rendered where they
        are used; only results of reductions are kept, one vector for each `width` columns."""
        self.columns = start, stop
        shift = self.plan.width.bit_length() - 1
        columns = self.let(f"sub i64 {stop}, {start}")
        whole = self.let(f"add i64 {columns}, {self.plan.width - 1}")
        self.vectors = self.let(f"lshr i64 {whole}, {shift}")
        stores: list[Store] = []
        for s in self.kernel.body:
            if isinstance(s, Loop) and s.kind == "reduce":
                self.reduce(s)
            elif isinstance(s, Loop):
                with self.loop(self.uniform(s.start), self.uniform(s.stop)) as k:
                    self.env[id(s.var)] = Lane(k)
                    for _ in self.sheet():
                        self.block(s.body)
            elif isinstance(s, Store):
                stores.append(s)
            elif id(s) in self.plan.shared:
                self.value(s)
        for _ in self.sheet():
            for s in stores:
                for v in (s.index, s.value, s.when):
                    if v is not None:
                        self.lane(v)
            for s in stores:
                self.store(s)

    def sheet(self) -> Iterator[str]:
        """Runs what follows for each vector of columns; yields its number."""
        start, stop = self.columns
        for i in self.lanes(self.counter(start), stop, self.plan.width):
            self.index[-1] = i
            self.vector_number = self.let(
                f"lshr i64 {self.let(f'sub i64 {i.text}, {start}')}, {self.plan.width.bit_length() - 1}"
            )
            yield self.vector_number

    def from_sheet(self, v: Value) -> Lane:
        places, base = self.results[id(v)]
        m = self.wide(memory_type(v.dtype))
        place = self.let(
            f"getelementptr {m}, ptr {places}, i64 {self.let(f'add i64 {base}, {self.vector_number}')}"
        )
        text = self.let(f"load {m}, ptr {place}, align {v.dtype.itemsize}")
        return Lane(self.from_memory(v.dtype, text, self.width), "v")

    # --- blocks of two axes: what is contiguous along the other axis is transposed on the stack first

    def staged_tile(self, rows: tuple[str, str], columns: tuple[str, str]) -> None:
        second = self.plan.second
        loads = [s for s in self.kernel.body if isinstance(s, Value) and id(s) in self.plan.staged]
        copies = {id(v): self.stage(v, rows, columns) for v in loads}
        self.env.clear()
        with self.loop(*rows) as r:
            self.index[second] = Lane(r)
            self.row, self.first = self.let(f"sub i64 {r}, {rows[0]}"), columns[0]
            self.staged = copies
            self.row_of_points(*columns)
            self.staged = {}

    def stage(self, v: Value, rows: tuple[str, str], columns: tuple[str, str]) -> str:
        """A block of what `v` loads, as a (SIDE, SIDE) array on the stack with the columns contiguous."""
        m, w = memory_type(v.dtype), min(16, self.plan.native // v.dtype.itemsize)
        side, t = self.plan.side, f"<{w} x {m}>"
        block = self.slot(m, side * side)
        with self.loop(*rows, w, whole=False) as r, self.loop(*columns, w, whole=False) as c:
            self.env.clear()
            self.index[self.plan.second], self.index[-1] = Lane(r), Lane(c, "a", "1")
            index = self.lane(v.args[0])
            self.width = w
            mask = self.first_lanes(self.let(f"sub i64 {rows[1]}, {r}"), w)
            self.width = 1
            last = self.let(f"sub i64 {self.let(f'sub i64 {columns[1]}, {c}')}, 1")
            vectors = []
            for j in range(w):  # beyond the last column the last one again
                step = self.let(f"mul i64 {self.least(str(j), last)}, {index.stride}")
                place = self.address(v.attr, f"i64 {self.let(f'add i64 {index.text}, {step}')}")
                vectors.append(
                    self.let(
                        f"call {t} @llvm.masked.load.{self.suffix(v.dtype, w)}.p0("
                        f"ptr align {v.dtype.itemsize} {place}, "
                        f"<{w} x i1> {mask}, {t} zeroinitializer)"
                    )
                )
            down = self.let(f"mul i64 {self.let(f'sub i64 {r}, {rows[0]}')}, {side}")
            corner = self.let(f"add i64 {down}, {self.let(f'sub i64 {c}, {columns[0]}')}")
            for j, x in enumerate(self.transposed(vectors, t)):
                place = self.let(f"getelementptr {m}, ptr {block}, i64 {corner}")
                place = self.let(f"getelementptr {m}, ptr {place}, i64 {j * side}")
                self.do(f"store {t} {x}, ptr {place}, align {v.dtype.itemsize}")
        return block

    def transposed(self, rows: list[str], t: str) -> list[str]:
        """The transpose of a square of registers, in log2 steps that exchange ever larger corners."""
        w, step = len(rows), 1
        while step < w:
            upper = [e if not e & step else e - step + w for e in range(w)]
            lower = [e + step if not e & step else e + w for e in range(w)]
            new = list(rows)
            for i in range(w):
                if not i & step:
                    for k, picks in ((i, upper), (i + step, lower)):
                        order = ", ".join(f"i32 {e}" for e in picks)
                        new[k] = self.let(
                            f"shufflevector {t} {rows[i]}, {t} {rows[i + step]}, <{w} x i32> <{order}>"
                        )
            rows, step = new, step * 2
        return rows

    def from_stage(self, v: Value) -> str:
        """A vector of the row at hand, from the transposed block."""
        assert self.index[-1].form == "a"
        m = memory_type(v.dtype)
        across = self.let(f"sub i64 {self.index[-1].text}, {self.first}")
        down = self.let(f"mul i64 {self.row}, {self.plan.side}")
        place = self.let(
            f"getelementptr {m}, ptr {self.staged[id(v)]}, i64 {self.let(f'add i64 {down}, {across}')}"
        )
        return self.let(f"load {self.wide(m)}, ptr {place}, align {v.dtype.itemsize}")


class _Reduction:
    """One reduce loop.

    Lanes of the canonical order are kept per level: level 0 combines elements, level 1 the results of chunks,
    and so on. In lockstep a level is an array of LANES vectors (one element for each point); where the loop's
    iterations are themselves spread, level 0 is one vector of LANES elements.
    """

    def __init__(self, r: _Renderer, loop: Loop) -> None:
        self.r, self.loop = r, loop
        self.dtypes = [u.dtype for u in loop.update]
        self.spread = r.spreads(loop)
        sheet = r.plan.sheet
        self.width = r.plan.width if sheet else r.width
        self.unit = r.vectors if sheet else "1"
        self.items = [r.wide(memory_type(d), self.width) for d in self.dtypes]
        most = r.plan.tile // r.plan.width if sheet else 1
        self.levels = [r.slot(t, LEVELS * LANES * most) for t in self.items]
        identity = combine(str(loop.combine), tuple(self.dtypes)).identity
        self.identity = [constant(v) for v in identity]

    def render(self) -> None:
        r = self.r
        self.first = r.uniform(self.loop.start)
        span = r.let(f"sub i64 {r.uniform(self.loop.stop)}, {self.first}")
        some = r.let(f"icmp sgt i64 {span}, 0")
        self.count = r.let(f"select i1 {some}, i64 {span}, i64 0")
        chunks = self.over_chunk(self.count)
        none = r.let(f"icmp eq i64 {chunks}, 0")
        chunks = r.let(f"select i1 {none}, i64 1, i64 {chunks}")
        self.done = r.label()
        self.out = [r.slot(r.wide(scalar_type(d))) for d in self.dtypes]
        self.base = r.slot("i64")
        with r.loop("0", chunks) as c:
            known = r.snapshot()
            if self.spread:
                self.chunk_spread(c)
            else:
                self.chunk_lockstep(c)
            r.restore(known)
            self.climb(c, chunks)
        r.do(f"br label %{self.done}")
        r.start(self.done)
        results = self.loop.results
        base = r.let(f"load i64, ptr {self.base}")
        if self.spread:
            r.read(results, [scalar_type(d) for d in self.dtypes], self.out)
        elif r.plan.sheet:
            r.results |= {id(v): (a, base) for v, a in zip(results, self.levels, strict=True)}
        else:
            for v, text in zip(results, self.get(self.places(base)), strict=True):
                r.env[id(v)] = Lane(text, r.form)

    def over_chunk(self, n: str) -> str:
        return self.r.let(
            f"lshr i64 {self.r.let(f'add i64 {n}, {CHUNK - 1}')}, {CHUNK.bit_length() - 1}"
        )

    def bounds(self, c: str) -> tuple[str, str]:
        r = self.r
        start = r.let(f"mul i64 {c}, {CHUNK}")
        end = r.let(f"add i64 {start}, {CHUNK}")
        inside = r.let(f"icmp slt i64 {end}, {self.count}")
        return start, r.let(f"select i1 {inside}, i64 {end}, i64 {self.count}")

    def chunk_spread(self, c: str) -> None:
        """One chunk, its iterations spread over a vector of LANES accumulators; they end up at level 0."""
        r = self.r
        types = [r.wide(scalar_type(d), LANES) for d in self.dtypes]
        slots = [r.slot(t) for t in types]
        for t, d, slot, one in zip(types, self.dtypes, slots, self.identity, strict=True):
            r.do(f"store {t} splat ({scalar_type(d)} {one}), ptr {slot}")
        start, stop = self.bounds(c)
        for k in r.lanes(r.counter(start), stop, LANES):
            r.env[id(self.loop.var)] = Lane(r.i64("add", k.text, self.first), "a", "1")
            r.block(self.loop.body)
            old = [r.let(f"load {t}, ptr {slot}") for t, slot in zip(types, slots, strict=True)]
            new = r.combined(self.loop, old, [r.vector(u) for u in self.loop.update])
            for t, a, b, slot in zip(types, old, new, slots, strict=True):
                b = (
                    b
                    if r.mask is None
                    else r.let(f"select {r.wide('i1')} {r.mask}, {t} {b}, {t} {a}")
                )
                r.do(f"store {t} {b}, ptr {slot}")
        self.vectors, self.types = slots, types

    def chunk_lockstep(self, c: str) -> None:
        """One chunk for all points at once: LANES partial results in memory, taken in turn."""
        r = self.r
        start, stop = self.bounds(c)
        self.clear("0")
        with r.loop(start, stop) as k:
            r.env[id(self.loop.var)] = Lane(r.i64("add", k, self.first))
            lane = self.at(r.let(f"and i64 {k}, {LANES - 1}"))
            for number in r.sheet() if r.plan.sheet else ("0",):
                r.block(self.loop.body)
                places = self.places(r.i64("add", lane, number))
                new = [r.vector(u) for u in self.loop.update]
                self.put(places, r.combined(self.loop, self.get(places), new))

    def at(self, lane: str) -> str:
        """The position of a lane's first vector."""
        return self.r.i64("mul", lane, self.unit)

    @contextmanager
    def across(self, count: str) -> Iterator[str]:
        """A loop over vectors in memory."""
        r = self.r
        with r.loop("0", count) as j:
            width, r.width = r.width, self.width
            yield j
            r.width = width

    def climb(self, c: str, chunks: str) -> None:
        """Takes the result of chunk `c` to the level above, and on from there while chunks are complete."""
        r = self.r
        level, index, count = r.counter("0"), r.counter(c), r.counter(chunks)
        up, more, again, end = r.label(), r.label(), r.label(), r.label()
        r.do(f"br label %{up}")
        r.start(up)
        which = r.let(f"load i64, ptr {level}")
        base = self.at(r.let(f"mul i64 {which}, {LANES}"))
        r.do(f"store i64 {base}, ptr {self.base}")
        item = self.tree_spread() if self.spread else self.tree_lockstep(base)
        for d, x, slot in zip(self.dtypes, item, self.out, strict=False):
            r.do(f"store {scalar_type(d)} {x}, ptr {slot}")
        n = r.let(f"load i64, ptr {count}")
        r.do(f"br i1 {r.let(f'icmp eq i64 {n}, 1')}, label %{self.done}, label %{more}")
        r.start(more)
        i = r.let(f"load i64, ptr {index}")
        above = r.let(f"add i64 {base}, {self.at(str(LANES))}")
        low = r.let(f"and i64 {i}, {CHUNK - 1}")
        with r.when(r.let(f"icmp eq i64 {low}, 0")):
            self.clear(above)
        lane = r.let(f"and i64 {i}, {LANES - 1}")
        lane = r.let(f"add i64 {above}, {self.at(lane)}")
        with self.across(self.unit) as j:
            places = self.places(r.let(f"add i64 {lane}, {j}"))
            right = item or self.get(self.places(r.let(f"add i64 {base}, {j}")))
            self.put(places, r.combined(self.loop, self.get(places), right))
        full = r.let(f"icmp eq i64 {low}, {CHUNK - 1}")
        last = r.let(f"icmp eq i64 {r.let(f'add i64 {i}, 1')}, {n}")
        r.do(f"br i1 {r.let(f'or i1 {full}, {last}')}, label %{again}, label %{end}")
        r.start(again)
        r.do(f"store i64 {r.let(f'lshr i64 {i}, {CHUNK.bit_length() - 1}')}, ptr {index}")
        r.do(f"store i64 {self.over_chunk(n)}, ptr {count}")
        r.do(f"store i64 {r.let(f'add i64 {which}, 1')}, ptr {level}")
        if self.spread:
            self.level_to_vectors(above)
        r.do(f"br label %{up}")
        r.start(end)

    def tree_spread(self) -> list[str]:
        """The fixed binary tree over the lanes of one vector, by halves."""
        r = self.r
        values = [
            r.let(f"load {t}, ptr {s}") for t, s in zip(self.types, self.vectors, strict=True)
        ]
        width = LANES
        while width > 1:
            halves: list[list[str]] = []
            for first in (0, width // 2):
                picks = ", ".join(f"i32 {first + j}" for j in range(width // 2))
                halves.append(
                    [
                        self.pick(d, x, width, picks, first)
                        for d, x in zip(self.dtypes, values, strict=True)
                    ]
                )
            width //= 2
            r.width = width
            values = r.combined(self.loop, *halves)
        return values

    def pick(self, d: DType, x: str, width: int, picks: str, first: int) -> str:
        t = self.r.wide(scalar_type(d), width)
        if width == 2:
            return self.r.let(f"extractelement {t} {x}, i64 {first}")
        return self.r.let(f"shufflevector {t} {x}, {t} poison, <{width // 2} x i32> <{picks}>")

    def level_to_vectors(self, base: str) -> None:
        r = self.r
        for d, t, place, slot in zip(
            self.dtypes, self.types, self.places(base), self.vectors, strict=True
        ):
            text = r.let(f"load {r.wide(memory_type(d), LANES)}, ptr {place}, align {d.itemsize}")
            r.do(f"store {t} {r.from_memory(d, text, LANES)}, ptr {slot}")

    def tree_lockstep(self, base: str) -> list[str]:
        """The same tree for a level in memory, at all points at once; what comes out is at `base`."""
        r = self.r
        half = r.counter(str(LANES // 2))
        head, end = r.label(), r.label()
        r.do(f"br label %{head}")
        r.start(head)
        h = r.let(f"load i64, ptr {half}")
        with self.across(self.at(h)) as j:
            left = r.let(f"add i64 {base}, {j}")
            right = self.get(self.places(r.let(f"add i64 {left}, {self.at(h)}")))
            places = self.places(left)
            self.put(places, r.combined(self.loop, self.get(places), right))
        h = r.let(f"lshr i64 {h}, 1")
        r.do(f"store i64 {h}, ptr {half}")
        r.do(f"br i1 {r.let(f'icmp eq i64 {h}, 0')}, label %{end}, label %{head}")
        r.start(end)
        return []

    # --- partial results in memory

    def places(self, lane: str) -> list[str]:
        r = self.r
        return [
            r.let(f"getelementptr {t}, ptr {base}, i64 {lane}")
            for t, base in zip(self.items, self.levels, strict=True)
        ]

    def get(self, places: list[str]) -> list[str]:
        r = self.r
        return [
            r.from_memory(d, r.let(f"load {t}, ptr {p}, align {d.itemsize}"), r.width)
            for d, t, p in zip(self.dtypes, self.items, places, strict=True)
        ]

    def put(self, places: list[str], values: list[str]) -> None:
        r = self.r
        for d, t, p, x in zip(self.dtypes, self.items, places, values, strict=True):
            r.do(f"store {t} {r.to_memory(d, x, r.width)}, ptr {p}, align {d.itemsize}")

    def clear(self, base: str) -> None:
        """Sets the lanes of the level at `base` to the identity."""
        r = self.r
        with self.across(self.at(str(LANES))) as j:
            values = [
                r.splat(scalar_type(d), one)
                for d, one in zip(self.dtypes, self.identity, strict=True)
            ]
            self.put(self.places(r.let(f"add i64 {base}, {j}")), values)
