"""Kernels as text, for `str(kernel)`, `dt.explain` and the hash of the disk cache.

    kernel add(x: r f32, out: w f32; n0, s0; c0: f32) grid(n0) {
      v0: i64 = mul i0, s0
      v1: f32 = load x[v0]
      v2: f32 = mul v1, c0
      v3: f32 = add v2, f32(1.0)
      store out[i0] = v3
    }

Loops: `reduce add k0 in i64(0)..n0 -> r0: f32 { ... yield v4 }`, `fold k0 in a..b carry (c0: f32 =
v1) -> r0: f32 { ... yield v5 }`, `map k0 in a..b { ... }`. A condition follows as ` if v7`, values
that replace a reduction's identity as ` from (v8)`.
A kernel whose indices are int32 says so in its first line: `grid(n0) index i32 {`; a kernel that
may be compiled with `fast_math`, by `grid(n0) fast {`. Private arrays stand behind the grid:
`grid(n0) private(lanes0: f32[96]) {`. So do arrays that a group shares, behind `shared`.
`parser.py` reads it back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..dtypes import int64
from .language import Atomic, Block, Loop, Store, Value

if TYPE_CHECKING:
    from .builder import Kernel


class _Printer:
    """A printer that appends a kernel's statements to `lines` and names values in order."""

    def __init__(self, parameter_names: frozenset[str]) -> None:
        self.lines: list[str] = []
        self._parameter_names = parameter_names
        self._names: dict[Value, str] = {}
        self._counts = {"v": 0, "k": 0, "c": 0, "r": 0}

    def assign_name(self, value: Value, letter: str) -> str:
        """Assign to a value the next name with this letter that no parameter has, and return it."""
        while (name := f"{letter}{self._counts[letter]}") in self._parameter_names:
            self._counts[letter] += 1
        self._counts[letter] += 1
        self._names[value] = name
        return name

    def format(self, v: Value) -> str:
        """Return an operand's text: a constant, a parameter, an index or the value's name."""
        if v.op == "const":
            return f"{v.dtype.code}({v.number!r})"
        if v.op == "param":
            return v.name
        if v.op == "index":
            return f"i{v.axis}"
        return self._names[v]

    def format_operands(self, values: Iterable[Value]) -> str:
        """Return the texts of operands, separated by commas."""
        return ", ".join(map(self.format, values))

    def print_block(self, block: Block, indent: str) -> None:
        """Append the lines of a block to `lines`."""
        for s in block:
            if isinstance(s, Loop):
                self.print_loop(s, indent)
            else:
                self.lines.append(indent + self.format_statement(s))

    def format_statement(self, s: Value | Store | Atomic) -> str:
        """Return the line of a value or an effect; a value gets a new name."""
        if isinstance(s, (Store, Atomic)):
            head = "store" if isinstance(s, Store) else f"atomic {s.op}"
            when = "" if s.when is None else f" if {self.format(s.when)}"
            return f"{head} {s.buffer.name}[{self.format(s.index)}] = {self.format(s.value)}{when}"
        if s.op == "load":
            when = "" if s.when is None else f" if {self.format(s.when)}"
            right = f"load {s.buffer.name}[{self.format(s.index)}]{when}"
        else:
            right = f"{s.op} {self.format_operands(s.args)}"
        return f"{self.assign_name(s, 'v')}: {s.dtype.code} = {right}"

    def print_loop(self, s: Loop, indent: str) -> None:
        """Append a loop's lines to `lines`; name its variable, carries and results."""
        head = s.kind + (f" {s.combine}" if s.combine else "")
        span = f"{self.format(s.start)}..{self.format(s.stop)}"
        head += f" {self.assign_name(s.var, 'k')} in {span}"
        if s.carry:
            inits = [self.format(i) for i in s.init]
            carries = [
                f"{self.assign_name(c, 'c')}: {c.dtype.code} = {i}"
                for c, i in zip(s.carry, inits, strict=True)
            ]
            head += f" carry ({', '.join(carries)})"
        elif s.init:
            head += f" from ({self.format_operands(s.init)})"
        if s.results:
            head += " -> " + ", ".join(
                f"{self.assign_name(r, 'r')}: {r.dtype.code}" for r in s.results
            )
        self.lines.append(f"{indent}{head} {{")
        self.print_block(s.body, indent + "  ")
        if s.update:
            self.lines.append(f"{indent}  yield {self.format_operands(s.update)}")
        self.lines.append(f"{indent}}}")


def print_kernel(kernel: Kernel) -> str:
    """Return the text of a kernel; equal kernels have equal texts."""
    parameters = [b.name for b in (*kernel.buffers, *kernel.arrays)] + [
        name for name, _ in kernel.scalars
    ]
    printer = _Printer(frozenset(parameters).union(kernel.ints))
    groups = [
        ", ".join(f"{b.name}: {b.access} {b.dtype.code}" for b in kernel.buffers),
        ", ".join(kernel.ints),
        ", ".join(f"{name}: {dtype.code}" for name, dtype in kernel.scalars),
    ]
    printer.print_block(kernel.body, "  ")
    head = f"kernel {kernel.name}({'; '.join(groups)}) grid({printer.format_operands(kernel.grid)})"
    for word, is_shared in (("private", False), ("shared", True)):
        arrays = [b for b in kernel.arrays if b.shared is is_shared]
        if arrays:
            declared = [f"{b.name}: {b.dtype.code}[{b.length}]" for b in arrays]
            head += f" {word}({', '.join(declared)})"
    head += "" if kernel.index is int64 else f" index {kernel.index.code}"
    head += " fast {" if kernel.fast_math else " {"
    return "\n".join([head, *printer.lines, "}"])
