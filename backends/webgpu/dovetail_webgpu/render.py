"""The renderer of kernels as WGSL: one work item per point of the grid.

Buffers are bindings of group 0, each a whole allocation. Integers and scalars are members of a
struct, the only binding of group 1. Every member is a word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from dovetail.extend import (
    INTEGERS,
    Atomic,
    Buffer,
    CStyle,
    DType,
    Kernel,
    bool_,
    float32,
    int32,
    uint32,
    walk,
)

GRID_DIMENSIONS_MAX = 3  # of a dispatch
ARGUMENTS = "arguments"
_WORDS = {d: "i32" if d.kind == "i" else "u32" for d in INTEGERS if d.itemsize <= 4}
_FUNCTIONS = {"fma": "fma", "sqrt": "sqrt", "trunc": "trunc", "floor": "floor", "rint": "round"}


class WgslStyle(CStyle):
    """WGSL for one kernel, which has 32-bit indices, and memory in words.

    Values of 8 and 16 bits are words, wrapped after each operation that may leave their range.
    """

    types: ClassVar[Mapping[DType, str]] = {bool_: "bool", **_WORDS, float32: "f32"}
    index: ClassVar[DType] = int32
    suffixes: ClassVar[Mapping[DType, str]] = {d: t[0] for d, t in _WORDS.items()}
    functions: ClassVar[Mapping[str, tuple[str, str]]] = {
        op: (name, name) for op, name in _FUNCTIONS.items()
    }
    prefix: ClassVar[str] = "p_"  # no word of WGSL begins with it
    reserved: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.atomics = {s.buffer for s in walk(kernel.body) if isinstance(s, Atomic)}

    # --- the frame

    def entry(self, kernel: Kernel) -> str:
        """Return the name of the function."""
        return "main"

    def parameter(self, buffer: Buffer, name: str) -> list[str]:
        """Return the declaration of a buffer's binding.

        All are writable: one buffer must not be both read-only and writable in a dispatch.
        """
        number, type = self.kernel.buffers.index(buffer), self.memory_type(buffer.dtype)
        element = f"atomic<{type}>" if buffer in self.atomics else type
        binding = f"@group(0) @binding({number}) var<storage, read_write>"
        return [f"{binding} {name}: array<{element}>;"]

    def function(self, name: str, parameters: Sequence[str], lanes: bool) -> str:
        """Return the bindings, and the head of the function.

        - `parameters`: the declarations of the buffers, then a type and a name for each number.
        """
        count = len(self.kernel.buffers)
        numbers = {n: t for t, n in map(str.split, parameters[count:])}
        self.numbers = list(numbers)
        members = [f"{n}: {t}" for n, t in numbers.items()] or ["unused: u32"]
        return "\n".join(
            [
                *parameters[:count],
                f"struct Arguments {{ {', '.join(members)} }}",
                f"@group(1) @binding(0) var<uniform> {ARGUMENTS}: Arguments;",
                "override width: u32 = 64;",
                "override height: u32 = 1;",
                "@compute @workgroup_size(width, height)",
                f"fn {name}(@builtin(global_invocation_id) item: vec3<u32>)",
            ]
        )

    def preamble(self, body: str) -> list[str]:
        """Return no lines."""
        return []

    def points(self, extents: Sequence[str], lanes: bool) -> list[str]:
        """Return lines that set the arguments and the indices; items beyond the grid return."""
        lines = [f"let {n} = {ARGUMENTS}.{n};" for n in self.numbers]
        last = len(extents) - 1
        lines += [f"let i{a} = i32(item.{'xyz'[last - a]});" for a in range(last + 1)]
        outside = [f"i{a} >= {extents[a]}" for a in range(max(0, last - 1), last + 1)]
        outside = outside or ["item.x > 0u"]  # a kernel of one point
        return [*lines, f"if ({' || '.join(outside)}) {{ return; }}"]

    # --- variables and loops

    def constant(self, type: str, name: str, value: str) -> str:
        """Return the declaration of a variable that keeps its value."""
        return f"let {name}: {type} = {value};"

    def variable(self, type: str, name: str, value: str) -> str:
        """Return the declaration of a variable that the text changes."""
        return f"var {name}: {type} = {value};"

    def loop(self, name: str, start: str, stop: str) -> str:
        """Return the head of a loop of an index, without the brace."""
        return f"for (var {name}: i32 = {start}; {name} < {stop}; {name}++)"

    def leave(self, condition: str) -> str:
        """Return the statement that ends a loop if a condition holds."""
        return f"if ({condition}) {{ break; }}"

    def choose(self, condition: str, x: str, y: str) -> str:
        """Return the expression for `x` if a condition holds, else `y`."""
        return f"select({y}, {x}, {condition})"

    def array(self, type: str, name: str, length: int) -> str:
        """Return the declaration of a private array."""
        return f"var {name}: array<{type}, {length}>;"

    # --- types and constants

    def memory_type(self, dtype: DType) -> str:
        """Return the type of a buffer's element or of a scalar parameter: `u32` for a bool."""
        return "u32" if dtype is bool_ else self.type(dtype)

    # --- operations

    def operation(self, op: str, dtype: DType, args: Sequence[str], of: DType) -> str:
        """Return an operation on arguments of dtype `of` as an expression of type `dtype`."""
        if op in ("shl", "shr"):
            args = (args[0], f"u32({args[1]})")
        if op == "xor" and of is bool_:
            op = "ne"
        if op in _PLAIN:
            text = f"-{args[0]}" if op == "neg" else f"{args[0]} {_PLAIN[op]} {args[1]}"
        else:
            text = super().operation(op, dtype, args, of)
        return self.wrap(text, dtype) if op in _LEAVING else text

    def wrap(self, x: str, dtype: DType) -> str:
        """Return an integer modulo the range of its dtype."""
        if dtype.kind not in "iu" or dtype.bits == 32:
            return x
        lost = 32 - dtype.bits
        return f"({x}) & {dtype.max}u" if dtype.kind == "u" else f"(({x}) << {lost}u) >> {lost}u"

    def cast(self, x: str, source: DType, target: DType) -> str:
        """Return `x` converted to a dtype; integers keep their low bits."""
        if target is bool_:
            return x if source is bool_ else f"{x} != {self.types[source]}(0)"
        return self.wrap(f"{self.type(target)}({x})", target)

    def bitcast(self, x: str, source: DType, target: DType) -> str:
        """Return the bits of `x` read as `target`."""
        if "f" not in (source.kind, target.kind):
            return self.cast(x, source, target)
        return f"bitcast<{self.type(target)}>({x})"

    def load(self, buffer: Buffer, name: str, index: str) -> str:
        """Return the expression for an element of a buffer."""
        return f"atomicLoad(&{name}[{index}])" if buffer in self.atomics else f"{name}[{index}]"

    def load_if(self, condition: str, element: str, dtype: DType) -> str:
        """Return an element if a condition holds, else 0. The choice is one of integers.

        WebGPU checks the index of every access, so the element may be loaded in any case.
        """
        if dtype is not float32:
            return self.choose(condition, element, f"{self.type(dtype)}(0)")
        bits = self.choose(condition, self.bitcast(element, dtype, uint32), "0u")
        return self.bitcast(bits, uint32, dtype)

    def store(self, buffer: Buffer, name: str, index: str, value: str) -> str:
        """Return the statement that writes an element of a buffer."""
        if buffer in self.atomics:
            return f"atomicStore(&{name}[{index}], {value});"
        return super().store(buffer, name, index, value)

    def atomic(self, op: str, dtype: DType, element: str, value: str) -> list[str]:
        """Return the statement for a read-modify-write of an element."""
        return [f"atomic{op.capitalize()}({element}, {value});"]


_PLAIN = {"add": "+", "sub": "-", "mul": "*", "shl": "<<", "neg": "-"}  # integers wrap in WGSL
_LEAVING = ("add", "sub", "mul", "shl", "neg", "not", "quo")  # a narrow integer's range
