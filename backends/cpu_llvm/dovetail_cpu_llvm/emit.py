"""LLVM IR as text: registers, stack slots, loops and vector types, and nothing about kernels."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dovetail.extend import DType, Value, bool_


@dataclass(frozen=True, slots=True)
class Lane:
    """A rendered value: form "u" (uniform), "a" (`text + lane * stride`) or "v" (vector)."""

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
        return f"0x{struct.unpack('<Q', struct.pack('<d', v.number))[0]:016X}"
    return str(int(v.number))


def fields(base: str, names: Sequence[str]) -> str:
    """Words from %base on, one after the other, in registers of these types and names."""
    lines = []
    for k, (type_, name) in enumerate(n.split() for n in names):
        lines.append(f"  %{name}.at = getelementptr i64, ptr %{base}, i64 {k}")
        lines.append(f"  %{name} = load {type_}, ptr %{name}.at, align 1")
    return "\n".join(lines)


def counted(i: str, stop: str, came: str, then: str, body: str, end: str = "") -> str:
    """The block each_i: for (i = 0; i < stop; i++) `body`, whose last block is `end`."""
    return f"""each_{i}:
  %{i} = phi i64 [ 0, %{came} ], [ %{i}.next, %{end or i + "_body"} ]
  %{i}.more = icmp slt i64 %{i}, %{stop}
  br i1 %{i}.more, label %{i}_body, label %{then}
{i}_body:
{body}
  %{i}.next = add i64 %{i}, 1
  br label %each_{i}"""


class Emitter:
    """A function in the making."""

    def __init__(self) -> None:
        self.head: list[str] = []  # the entry block: parameters and stack slots
        self.lines: list[str] = []
        self.width = 1  # lanes of a vector, at present
        self.ends: list[str] = []  # where the loops end that are being written, the inner one last
        self._count = 0

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
        last = stop if step == 1 or not whole else self.let(f"sub i64 {stop}, {step - 1}")
        with self.abreast([slot], [last], step) as (i,):
            yield i

    @contextmanager
    def abreast(
        self, slots: Sequence[str], stops: Sequence[str], step: int = 1
    ) -> Iterator[list[str]]:
        """Counts on from several slots while each is below its stop; yields where they are."""
        head, body, end = self.label(), self.label(), self.label()
        self.do(f"br label %{head}")
        self.start(head)
        at = [self.let(f"load i64, ptr {slot}") for slot in slots]
        more, *others = [self.let(f"icmp slt i64 {i}, {n}") for i, n in zip(at, stops, strict=True)]
        for other in others:
            more = self.let(f"and i1 {more}, {other}")
        self.do(f"br i1 {more}, label %{body}, label %{end}")
        self.start(body)
        self.ends.append(end)
        yield at
        self.ends.pop()
        for i, slot in zip(at, slots, strict=True):
            self.do(f"store i64 {self.let(f'add i64 {i}, {step}')}, ptr {slot}")
        self.do(f"br label %{head}")
        self.start(end)

    def leave(self, condition: str) -> None:
        """Ends the inner loop where `condition` (an i1) holds."""
        on = self.label()
        self.do(f"br i1 {condition}, label %{self.ends[-1]}, label %{on}")
        self.start(on)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """The statements inside run only where `condition` (an i1) holds."""
        yes, end = self.label(), self.label()
        self.do(f"br i1 {condition}, label %{yes}, label %{end}")
        self.start(yes)
        yield
        self.do(f"br label %{end}")
        self.start(end)

    def some(self, bits: str, width: int | None = None) -> str:
        """Whether a bit is set in any lane."""
        w = width or self.width
        return self.let(f"call i1 @llvm.vector.reduce.or.v{w}i1({self.wide('i1', w)} {bits})")

    def least(self, a: str, b: str) -> str:
        return self.let(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def most(self, a: str, b: str) -> str:
        return self.let(f"call i64 @llvm.smax.i64(i64 {a}, i64 {b})")

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

    def wide(self, scalar: str, width: int | None = None) -> str:
        width = width or self.width
        return scalar if width == 1 else f"<{width} x {scalar}>"

    def suffix(self, d: DType) -> str:
        return f"v{self.width}" + (f"f{d.bits}" if d.kind == "f" else f"i{d.bits}")

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

    def first_lanes(self, count: str, width: int) -> str:
        """A mask of the first `count` lanes: all of them for more, none for less than one."""
        count = self.least(count, str(width))
        count = self.let(f"call i64 @llvm.smax.i64(i64 {count}, i64 0)")
        small = "i8" if width < 128 else "i16"
        left = self.splat(small, self.let(f"trunc i64 {count} to {small}"))
        return self.let(f"icmp slt {self.wide(small)} {self.iota(small)}, {left}")
