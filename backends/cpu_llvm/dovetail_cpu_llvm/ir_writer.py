"""The text of LLVM IR: types, constants, and functions that are written block by block."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple

from dovetail.extend import DType, Value, bool_

_FLOAT_TYPES = {16: "half", 32: "float", 64: "double"}


class Lane(NamedTuple):
    """The text of a rendered value, for all lanes of a vector.

    A uniform value is a scalar that all lanes share. An affine one is an int64, and lane j has
    `text + j * stride`. A vector has one element for each lane.
    """

    text: str
    form: Literal["uniform", "affine", "vector"] = "uniform"
    stride: str = "0"

    def has_stride(self, stride: int) -> bool:
        """Return True if lanes are known to be `stride` apart."""
        return self.form == "affine" and self.stride == str(stride)


class Slot(NamedTuple):
    """A stack slot. LLVM promotes it to a register if all accesses cover the whole of it."""

    type: str
    address: str


def scalar_type(dtype: DType) -> str:
    """Return the LLVM type of a value in a register."""
    if dtype.kind == "f":
        return _FLOAT_TYPES[dtype.bits]
    return "i1" if dtype is bool_ else f"i{dtype.bits}"


def memory_type(dtype: DType) -> str:
    """Return the LLVM type of a value in memory, where a bool takes a byte."""
    return "i8" if dtype is bool_ else scalar_type(dtype)


def constant(v: Value) -> str:
    """Return the text of a constant; LLVM reads floats of any type from the bits of a double."""
    if v.dtype.kind == "f":
        return f"0x{struct.unpack('<Q', struct.pack('<d', v.number))[0]:016X}"
    return str(int(v.number))


def fields(base: str, names: Sequence[str]) -> str:
    """Return IR that loads consecutive words at %base; each of `names` is a type and a register."""
    lines = []
    for k, (type_, name) in enumerate(n.split() for n in names):
        lines.append(f"  %{name}.at = getelementptr i64, ptr %{base}, i64 {k}")
        lines.append(f"  %{name} = load {type_}, ptr %{name}.at, align 1")
    return "\n".join(lines)


class FunctionWriter:
    """The text of one LLVM function, and the vector width at which it is being written."""

    def __init__(self) -> None:
        self.entry: list[str] = []  # lines of the entry block: parameters and stack slots
        self.lines: list[str] = []
        self.width = 1  # lanes of a vector
        self.mask: str | None = None  # the active lanes; None: all
        self._loop_ends: list[str] = []  # labels after the open loops, the innermost one last
        self._count = 0

    # --- registers and blocks

    def new_register(self) -> str:
        """Reserve and return an unused register name."""
        self._count += 1
        return f"%v{self._count}"

    def let(self, text: str) -> str:
        """Append an instruction with a result; return its new register."""
        self._count += 1
        self.lines.append(f"  %v{self._count} = {text}")
        return f"%v{self._count}"

    def emit(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {text}")

    def alloca(self, type_: str, count: int = 1) -> str:
        """Append an array of `count` elements on the stack to the entry block; return its start."""
        name = self.new_register()
        self.entry.append(f"  {name} = alloca {type_}, i64 {count}, align 64")
        return name

    def slot(self, type_: str, start: str = "") -> Slot:
        """Add a stack slot; store `start` there unless that is ""."""
        slot = Slot(type_, self.alloca(type_))
        if start:
            self.store(slot, start)
        return slot

    def counter(self, start: str) -> Slot:
        """Add an int64 stack slot that starts at `start`."""
        return self.slot("i64", start)

    def store(self, slot: Slot, text: str) -> None:
        """Append a store of a register or literal to a slot."""
        self.emit(f"store {slot.type} {text}, ptr {slot.address}")

    def store_all(self, slots: Sequence[Slot], texts: Iterable[str]) -> None:
        """Append a store to each slot."""
        for slot, text in zip(slots, texts, strict=True):
            self.store(slot, text)

    def load(self, slot: Slot) -> str:
        """Append a load of a slot; return the register."""
        return self.let(f"load {slot.type}, ptr {slot.address}")

    # --- blocks

    def new_label(self) -> str:
        """Reserve and return an unused block label."""
        self._count += 1
        return f"b{self._count}"

    def begin_block(self, label: str) -> None:
        """Append a label, with which a block begins."""
        self.lines.append(f"{label}:")

    def enter_block(self, label: str) -> None:
        """End the current block with a jump to the one that begins here."""
        self.emit(f"br label %{label}")
        self.begin_block(label)

    def branch(self, condition: str, yes: str, no: str) -> None:
        """End the block with a jump to `yes` if the condition (an i1) holds, else to `no`."""
        self.emit(f"br i1 {condition}, label %{yes}, label %{no}")

    @contextmanager
    def loop(self, start: str, stop: str, step: int = 1, full_steps: bool = True) -> Iterator[str]:
        """Write `for (i = start; i < stop; i += step)` around the body, and yield i.

        full_steps: run only iterations of which all `step` elements are below `stop`.
        """
        with self.loop_from(self.counter(start), stop, step, full_steps) as i:
            yield i

    @contextmanager
    def loop_from(self, slot: Slot, stop: str, step: int, full_steps: bool = True) -> Iterator[str]:
        """Write a loop that starts at the counter in `slot` and leaves its last value there."""
        last = stop if step == 1 or not full_steps else self.let(f"sub i64 {stop}, {step - 1}")
        with self.loop_in_lockstep([slot], [last], step) as (i,):
            yield i

    @contextmanager
    def loop_in_lockstep(
        self, slots: Sequence[Slot], stops: Sequence[str], step: int = 1
    ) -> Iterator[list[str]]:
        """Write a loop that advances the counters in `slots` until one of them reaches its stop."""
        head, body, end = self.new_label(), self.new_label(), self.new_label()
        self.enter_block(head)
        counters = [self.load(slot) for slot in slots]
        more, *others = [
            self.let(f"icmp slt i64 {i}, {n}") for i, n in zip(counters, stops, strict=True)
        ]
        for other in others:
            more = self.let(f"and i1 {more}, {other}")
        self.branch(more, body, end)
        self.begin_block(body)
        self._loop_ends.append(end)
        yield counters
        self._loop_ends.pop()
        for i, slot in zip(counters, slots, strict=True):
            self.store(slot, self.let(f"add i64 {i}, {step}"))
        self.emit(f"br label %{head}")
        self.begin_block(end)

    def break_if(self, condition: str) -> None:
        """Leave the innermost loop if `condition` (an i1) holds."""
        on = self.new_label()
        self.branch(condition, self._loop_ends[-1], on)
        self.begin_block(on)

    @contextmanager
    def if_then(self, condition: str) -> Iterator[None]:
        """Write a branch around the body, which runs only if `condition` (an i1) holds."""
        yes, end = self.new_label(), self.new_label()
        self.branch(condition, yes, end)
        self.begin_block(yes)
        yield
        self.enter_block(end)

    # --- integers

    def min_i64(self, a: str, b: str) -> str:
        """Append the signed minimum of two int64; return the register."""
        return self.let(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def max_i64(self, a: str, b: str) -> str:
        """Append the signed maximum of two int64; return the register."""
        return self.let(f"call i64 @llvm.smax.i64(i64 {a}, i64 {b})")

    def select_i64(self, condition: str, a: str, b: str) -> str:
        """Append a choice of two int64 by an i1; return the register."""
        return self.let(f"select i1 {condition}, i64 {a}, i64 {b}")

    def negate(self, bit: str) -> str:
        """Append the negation of an i1; return the register."""
        return self.let(f"xor i1 {bit}, true")

    def i64(self, op: str, a: str, b: str) -> str:
        """Return the sum, difference or product of registers or literals, folded if possible."""
        if a[0] != "%" and b[0] != "%":
            x, y = int(a), int(b)
            return str({"add": x + y, "sub": x - y, "mul": x * y}[op])
        if (op == "mul" and b == "1") or (op != "mul" and b == "0"):
            return a
        if (op == "mul" and a == "1") or (op == "add" and a == "0"):
            return b
        return self.let(f"{op} i64 {a}, {b}")

    # --- vectors

    def vector_type(self, scalar: str, width: int | None = None) -> str:
        """Return the LLVM type of `width` lanes (by default the current width); scalar if 1."""
        width = width or self.width
        return scalar if width == 1 else f"<{width} x {scalar}>"

    def suffix(self, dtype: DType) -> str:
        """Return the type at the end of an intrinsic's name, such as v16f32."""
        return f"v{self.width}" + (f"f{dtype.bits}" if dtype.kind == "f" else f"i{dtype.bits}")

    def splat(self, scalar: str, text: str) -> str:
        """Return a vector with `text` in all lanes, by a literal or by instructions."""
        if self.width == 1:
            return text
        if text[0] != "%":
            return f"splat ({scalar} {text})"
        t = self.vector_type(scalar)
        one = self.let(f"insertelement {t} poison, {scalar} {text}, i64 0")
        return self.let(
            f"shufflevector {t} {one}, {t} poison, <{self.width} x i32> zeroinitializer"
        )

    def iota(self, scalar: str) -> str:
        """Return the literal vector 0, 1, 2, ... at the current width."""
        return "<" + ", ".join(f"{scalar} {j}" for j in range(self.width)) + ">"

    def vector(self, lane: Lane, dtype: DType) -> str:
        """Return a value as a vector with one element for each lane; widen it if necessary."""
        if lane.form == "vector" or self.width == 1:
            return lane.text
        base = self.splat(scalar_type(dtype), lane.text)
        if lane.form == "uniform":
            return base
        t = self.vector_type("i64")
        steps = self.let(f"mul {t} {self.iota('i64')}, {self.splat('i64', lane.stride)}")
        return self.let(f"add {t} {base}, {steps}")

    def shuffle(self, type_: str, a: str, b: str, picks: Sequence[int]) -> str:
        """Return the elements `picks` of two concatenated vectors of one type."""
        indices = ", ".join(f"i32 {k}" for k in picks)
        return self.let(f"shufflevector {type_} {a}, {type_} {b}, <{len(picks)} x i32> <{indices}>")

    def select(self, mask: str, type_: str, a: str, b: str, width: int) -> str:
        """Append a choice per lane between `a` (mask true) and `b`; return the register."""
        bits = self.vector_type("i1", width)
        return self.let(f"select {bits} {mask}, {type_} {a}, {type_} {b}")

    def any_lane(self, bits: str, width: int | None = None) -> str:
        """Append a reduction of bits; return an i1, true if a bit is set in any lane."""
        w = width or self.width
        return self.let(
            f"call i1 @llvm.vector.reduce.or.v{w}i1({self.vector_type('i1', w)} {bits})"
        )

    def prefix_mask(self, count: str, width: int) -> str:
        """Append a mask of the first `count` lanes, clamped to 0..width; return the register."""
        count = self.max_i64(self.min_i64(count, str(width)), "0")
        small = "i8" if width < 128 else "i16"
        bound = self.splat(small, self.let(f"trunc i64 {count} to {small}"))
        return self.let(f"icmp slt {self.vector_type(small)} {self.iota(small)}, {bound}")

    def mask_argument(self, active: str | None) -> str:
        """Return a mask (None: all lanes) with its type, for a masked intrinsic."""
        return f"{self.vector_type('i1')} {active or 'splat (i1 true)'}"
