"""Kernel -> C-family text, for OpenCL C, CUDA C and any device that has a C compiler.

`CStyle` spells plain C, where a kernel is a function that loops over its grid. A dialect is a
subclass that overrides what it spells differently. Names in the text are those of the kernel's own
text (`str(kernel)`), so both can be read side by side.

A reduction is written in the canonical order of `language.py`. A dialect whose work items come in
groups may compute one point of the grid by `LANES` of them (`render(kernel, lanes=True)`): lane j
of the order is then lane j of the group. Otherwise the lanes are an array.

Compile the text without contraction or reassociation; integers wrap because they are unsigned
wherever that matters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import ClassVar

from ..dtypes import (
    DType,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ..errors import CompileError
from .analysis import settles
from .builder import Combine, Kernel
from .cstyle_reduction import ReductionWriter
from .cstyle_tile import TILE_WORDS, TileWriter
from .language import LANES, Atomic, Block, Buffer, Loop, Statement, Store, Value, walk
from .staging import Tile

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "quo": "/", "rem": "%",
    "shl": "<<", "shr": ">>", "and": "&", "or": "|", "xor": "^",
    "lt": "<", "le": "<=", "eq": "==", "ne": "!=",
}  # fmt: skip
_WRAPPING = ("add", "sub", "mul", "shl")
# Reserved names: words of C and C++, and the variables that the text itself declares.
_WORDS = (
    "alignas alignof and asm auto bool break case catch char class const constexpr continue "
    "decltype default delete do double dynamic_cast else enum explicit export extern false float "
    "for friend goto if inline int long mutable namespace new noexcept not nullptr operator or "
    "private protected public register reinterpret_cast restrict return short signed sizeof static "
    "static_assert static_cast struct switch template this throw true try typedef typeid typename "
    "typeof union unsigned using virtual void volatile wchar_t while xor main NULL NAN INFINITY "
    "at chunk chunks count end identity item j lane lanes level of old row up width"
)


class CStyle:
    """A printer of kernels in plain C99, with `_Float16` of GNU and Clang in kernels that need it.

    A dialect overrides, in the order of the text: `preamble`, `function`, `parameter`, `prologue`
    and `points`; then the spelling of types, constants and operations.
    """

    types: ClassVar[Mapping[DType, str]] = {
        bool_: "bool",
        int8: "int8_t",
        int16: "int16_t",
        int32: "int32_t",
        int64: "int64_t",
        uint8: "uint8_t",
        uint16: "uint16_t",
        uint32: "uint32_t",
        uint64: "uint64_t",
        float16: "_Float16",
        float32: "float",
        float64: "double",
    }
    index: ClassVar[DType] = int64  # dtype of integers, grid and loops; int32 if `index_bits` is 32
    suffixes: ClassVar[Mapping[DType, str]] = {int64: "LL", uint64: "ULL", uint32: "u"}
    # op -> its function for float32 and for float64
    functions: ClassVar[Mapping[str, tuple[str, str]]] = {
        "fma": ("fmaf", "fma"),
        "sqrt": ("sqrtf", "sqrt"),
        "trunc": ("truncf", "trunc"),
        "floor": ("floorf", "floor"),
        "rint": ("rintf", "rint"),
    }
    reserved: ClassVar[frozenset[str]] = frozenset(
        (*_WORDS.split(), *types.values(), *(f for pair in functions.values() for f in pair))
    )
    prefix: ClassVar[str] = ""  # before the names of parameters
    helper: ClassVar[str] = "static inline "  # before functions that kernels call
    space: ClassVar[str] = ""  # before the type that a buffer's pointer points to
    in_order: ClassVar[str] = ""  # before a loop that adds floats one after the other

    def entry(self, kernel: Kernel) -> str:
        """Return the name of the C function. It has a prefix: a kernel may be called `exp`.

        - `kernel`: the kernel.
        """
        return "kernel_" + re.sub(r"\W", "_", kernel.name, flags=re.ASCII)

    def render(self, kernel: Kernel, lanes: bool = False, tile: Tile | None = None) -> str:
        """Return the whole text. Raises: CompileError for a dtype or an index that it lacks.

        - `kernel`: the kernel, legalised.
        - `lanes`: True if a group of LANES work items does each point.
        - `tile`: the tile that groups stage; None for none.
        """
        if kernel.index is not self.index:
            name, what = type(self).__name__, f"a kernel with {kernel.index.name} indices"
            raise CompileError(f"{name} has {self.index.name} indices, and is given {what}")
        return KernelWriter(self, kernel, lanes, tile).render()

    # --- the frame

    def preamble(self, body: str) -> list[str]:
        """Return the lines before everything else; `body` is the text to come.

        - `body`: the text to come.
        """
        lines = ["#include <math.h>", "#include <stdbool.h>", "#include <stdint.h>"]
        lines += ["#pragma STDC FP_CONTRACT OFF"]
        for name, text in _BITS_IN_C.items():
            if name in body:
                lines.append(text)
        return lines

    def function(self, name: str, parameters: Sequence[str], lanes: bool) -> str:
        """Return the head of the kernel's function, without the brace; dialects may use `lanes`.

        - `name`: the name of the function.
        - `parameters`: the text of each parameter.
        - `lanes`: True if a group of LANES work items does each point.
        """
        return f"void {name}({', '.join(parameters)})"

    def parameter(self, buffer: Buffer, name: str) -> list[str]:
        """Return the parameters that pass a buffer.

        - `buffer`: the buffer.
        - `name`: its name in C.
        """
        return [f"{self.pointer(buffer)}{name}"]

    def prologue(self, buffer: Buffer, name: str) -> list[str]:
        """Return statements by which `name` becomes the pointer to the buffer's element 0.

        - `buffer`: the buffer.
        - `name`: its name in C.
        """
        return []

    def points(self, extents: Sequence[str], lanes: bool) -> list[str]:
        """Return the lines that begin the work of a point; the renderer closes their braces.

        - `extents`: the text of each axis's extent.
        - `lanes`: True if a group of LANES work items does each point.
        """
        index = self.type(self.index)
        loops = enumerate(extents)
        return [f"for ({index} i{d} = 0; i{d} < {n}; ++i{d}) {{" for d, n in loops]

    # --- work items in groups: for dialects that render with lanes=True

    lane: ClassVar[str] = ""  # the number of a work item among the LANES of its group
    present: ClassVar[str] = ""  # condition that a group's point exists, if some groups are idle

    def shared(self, type: str, name: str) -> list[str]:
        """Return declarations at the top of the function that `tree` needs for this type.

        - `type`: the name of the C type.
        - `name`: the name of the declared memory.
        """
        raise NotImplementedError

    def tree(self, type: str, name: str, function: str, shared: str) -> list[str]:
        """Return statements that combine `name` of all lanes in the fixed tree, for all lanes.

        - `type`: the name of the C type.
        - `name`: the variable that each lane has.
        - `function`: the function that combines two values.
        - `shared`: the memory that `shared` declared.
        """
        raise NotImplementedError

    def unroll(self, body: Block) -> list[str]:
        """Return the lines before a lane's loop over a row with this body.

        - `body`: the statements of the loop.
        """
        return []

    def rows(self) -> list[str]:
        """Return the lines before each LANES iterations of a loop that a whole group reaches.

        Each work item is there for a point of its own.
        """
        return []

    unrolled: ClassVar[str] = ""  # before a loop over lanes that shall be registers

    def barrier(self) -> list[str]:
        """Return statements after which the group sees all of its earlier effects on buffers."""
        raise NotImplementedError

    # --- groups that stage a tile of a product: for dialects that render with a tile

    local_barrier: ClassVar[Sequence[str]] = ()  # statements after which all see local memory
    tile_unrolled: ClassVar[str] = ""  # before a loop over the points of a work item
    tile_steps: ClassVar[str] = ""  # before a loop over the staged steps

    def tile_function(self, name: str, parameters: Sequence[str], tile: Tile) -> str:
        """Return the head of a function that groups of `tile.items` work items run.

        - `name`: the name of the function.
        - `parameters`: the text of each parameter.
        - `tile`: the tile.
        """
        raise NotImplementedError

    def tile_points(self, extents: Sequence[str], tile: Tile) -> list[str]:
        """Return lines that declare a group's tile, perhaps in open loops, and the item in it.

        They declare the indices of all axes but the last two, the tile's first point along these
        (`tile_row` and `tile_column`), and the ints `item_row` and `item_column`.

        - `extents`: the text of each axis's extent.
        - `tile`: the tile.
        """
        raise NotImplementedError

    def local(self, type: str, array: str) -> str:
        """Return the declaration of an array in local memory, aligned to 16 bytes.

        - `type`: the name of the C type.
        - `array`: the name of the array, with its size.
        """
        raise NotImplementedError

    # --- variables and loops

    def constant(self, type: str, name: str, value: str) -> str:
        """Return the declaration of a variable that keeps its value.

        - `type`: the name of the C type.
        - `name`: the name of the variable.
        - `value`: the text of its value.
        """
        return f"const {type} {name} = {value};"

    def variable(self, type: str, name: str, value: str) -> str:
        """Return the declaration of a variable that the text changes.

        - `type`: the name of the C type.
        - `name`: the name of the variable.
        - `value`: the text of its first value.
        """
        return f"{type} {name} = {value};"

    def loop(self, name: str, start: str, stop: str) -> str:
        """Return the head of a loop of an index, without the brace.

        - `name`: the name of the index.
        - `start`, `stop`: the text of its bounds.
        """
        return f"for ({self.type(self.index)} {name} = {start}; {name} < {stop}; ++{name})"

    def leave(self, condition: str) -> str:
        """Return the statement that ends a loop if a condition holds.

        - `condition`: the text of the condition.
        """
        return f"if ({condition}) break;"

    def choose(self, condition: str, x: str, y: str) -> str:
        """Return the expression for `x` if a condition holds, else `y`.

        - `condition`: the text of the condition.
        - `x`, `y`: the text of the values.
        """
        return f"{condition} ? {x} : {y}"

    def array(self, type: str, name: str, length: int) -> str:
        """Return the declaration of a private array.

        - `type`: the name of the C type.
        - `name`: the name of the array.
        - `length`: the number of elements.
        """
        return f"{type} {name}[{length}];"

    # --- types and constants

    def type(self, dtype: DType) -> str:
        """Return the type of values of a dtype. Raises: CompileError if there is none."""
        if dtype not in self.types:
            raise CompileError(f"{type(self).__name__} has no type for {dtype.name}")
        return self.types[dtype]

    def memory_type(self, dtype: DType) -> str:
        """Return the type of elements of buffers, and of scalar parameters."""
        return self.type(uint8 if dtype is bool_ else dtype)

    def pointer(self, buffer: Buffer) -> str:
        """Return the type of a buffer's pointer.

        - `buffer`: the buffer.
        """
        const = "const " if buffer.access == "r" else ""
        return f"{self.space}{const}{self.memory_type(buffer.dtype)} *"

    def const(self, value: float | int | bool, dtype: DType) -> str:
        """Return the text of a constant, exactly.

        - `value`: the number.
        """
        if dtype.kind == "b":
            return "true" if value else "false"
        if dtype.kind != "f":
            return self.integer(int(value), dtype)
        if not math.isfinite(value):
            return self.bitcast(_nonfinite_literal(value, dtype, self), _BITS[dtype], dtype)
        plain = abs(value) < 1e6 and value * 1024 % 1 == 0  # few decimals, all of them written
        text = repr(float(value)) if plain else _format_hex(value)
        text += "f" if dtype is float32 else ""
        return f"({text})" if text.startswith("-") else text

    def integer(self, value: int, dtype: DType) -> str:
        """Return the text of an integer constant; the least one is not a literal of C.

        - `value`: the number.
        """
        suffix = self.suffixes.get(dtype, "")
        if dtype.bits >= 32 and value < 0 and value == dtype.min:
            return f"({value + 1}{suffix} - 1)"
        return f"({value}{suffix})" if value < 0 else f"{value}{suffix}"

    # --- operations

    def operation(self, op: str, dtype: DType, args: Sequence[str], of: DType) -> str:
        """Return an operation on arguments of dtype `of` as an expression of type `dtype`.

        - `op`: the name of the operation; `OPS` lists them.
        - `args`: the text of each operand.
        - `of`: the dtype of the operands.
        """
        if op == "where":
            return self.choose(*args)
        if op == "cast":
            return self.cast(args[0], of, dtype)
        if op == "bitcast":
            return self.bitcast(args[0], of, dtype)
        if op == "not":
            return f"!{args[0]}" if of is bool_ else f"~{args[0]}"
        if op in self.functions:
            return f"{self.functions[op][of is float64]}({', '.join(args)})"
        first = args[0]
        wraps = op in _WRAPPING or op == "neg"
        if wraps and (of.kind == "i" or (of.kind == "u" and of.bits < 32)):
            first = f"({self.type(uint64 if of is int64 else uint32)}){first}"
        return f"-{first}" if op == "neg" else f"{first} {_INFIX[op]} {args[1]}"

    def cast(self, x: str, source: DType, target: DType) -> str:
        """Return `x` converted to a dtype.

        - `x`: the text of the value.
        - `source`, `target`: the dtypes.
        """
        return f"{x} != 0" if target is bool_ else f"({self.type(target)}){x}"

    def bitcast(self, x: str, source: DType, target: DType) -> str:
        """Return the bits of `x` read as `target`.

        - `x`: the text of the value.
        - `source`, `target`: the dtypes, of one size.
        """
        if source.kind != "f" and target.kind != "f":
            return f"({self.type(target)}){x}"
        if target.kind == "f":
            return f"{target.code}_of_bits({x})"
        return f"bits_of_{source.code}({x})"

    def load(self, buffer: Buffer, name: str, index: str) -> str:
        """Return the expression for an element of a buffer.

        - `buffer`: the buffer.
        - `name`: its name in C.
        - `index`: the text of the index.
        """
        return f"{name}[{index}]" + (" != 0" if buffer.dtype is bool_ else "")

    def load_if(self, condition: str, element: str, dtype: DType) -> str:
        """Return the expression for an element if a condition holds, else 0.

        - `condition`: the text of the condition.
        - `element`: the text of the load.
        """
        return self.choose(condition, element, "0")

    def store(self, buffer: Buffer, name: str, index: str, value: str) -> str:
        """Return the statement that writes an element of a buffer.

        - `buffer`: the buffer.
        - `name`: its name in C.
        - `index`: the text of the index.
        - `value`: the text of the value.
        """
        return f"{name}[{index}] = {value};"

    def atomic(self, op: str, dtype: DType, place: str, value: str) -> list[str]:
        """Return statements for a read-modify-write of the element at pointer `place`.

        - `op`: "add", "min", "max", "and" or "or".
        - `place`: the text of the pointer.
        - `value`: the text of the other operand.
        """
        if op in ("add", "and", "or"):
            return [f"__atomic_fetch_{op}({place}, {value}, __ATOMIC_RELAXED);"]
        t, sign = self.type(dtype), "<" if op == "min" else ">"
        order = "__ATOMIC_RELAXED, __ATOMIC_RELAXED"
        swap = f"__atomic_compare_exchange_n({place}, &old, {value}, 0, {order})"
        return [
            f"{t} old = __atomic_load_n({place}, __ATOMIC_RELAXED);",
            f"while ({value} {sign} old && !{swap}) {{}}",
        ]


def _writes_readable_buffer(s: Statement) -> bool:
    """Return True if a statement writes to a buffer that the kernel also reads."""
    effects = (x for x in walk((s,)) if isinstance(x, (Store, Atomic)))
    return any(x.buffer.access == "rw" for x in effects)


_BITS = {float32: uint32, float64: uint64}
_BITS_IN_C = {
    name: f"static inline {to} {name}({source} x) "
    f"{{ union {{ {source} from; {to} to; }} u = {{x}}; return u.to; }}"
    for name, source, to in (
        ("f32_of_bits", "uint32_t", "float"),
        ("bits_of_f32", "float", "uint32_t"),
        ("f64_of_bits", "uint64_t", "double"),
        ("bits_of_f64", "double", "uint64_t"),
    )
}


def _nonfinite_literal(value: float, dtype: DType, style: CStyle) -> str:
    """Return the bits of NaN or an infinity as an unsigned literal: 0x7f800000."""
    wide = dtype is float64
    bits = 0x7FF0000000000000 if wide else 0x7F800000
    if math.isnan(value):
        bits |= 1 << (51 if wide else 22)
    elif value < 0:
        bits |= 1 << (63 if wide else 31)
    unsigned = _BITS[dtype]
    return f"{bits:#x}{style.suffixes.get(unsigned, '')}"


def _format_hex(value: float) -> str:
    """Return C's hexadecimal form without trailing zeros: 0x1.8p+0."""
    digits, exponent = float(value).hex().split("p")
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits}p{exponent}"


class KernelWriter:
    """A writer of one kernel's text."""

    def __init__(
        self, style: CStyle, kernel: Kernel, lanes: bool, tile: Tile | None = None
    ) -> None:
        self.style, self.kernel, self.lanes, self.tile = style, kernel, lanes, tile
        self.lines: list[str] = []
        self.depth = 0
        self.outermost = True  # False inside a loop that some work items may not reach
        self.helpers: dict[str, list[str]] = {}  # functions of combines, by name
        self.shared: dict[str, list[str]] = {}  # declarations for groups, by type
        self.names: dict[int, str] = {}
        self.params = self.parameter_names()
        names = [n for n, _ in kernel.scalars] + [*kernel.ints]
        names += [b.name for b in (*kernel.buffers, *kernel.arrays)]
        self.reserved_names = frozenset([*names, *self.params.values()])
        self.name_counts = dict.fromkeys("vkcr", 0)

    def parameter_names(self) -> dict[str, str]:
        """Return the names of parameters and private arrays in C."""
        k, c_names = self.kernel, dict[str, str]()
        reserved = self.style.reserved | (TILE_WORDS if self.tile else frozenset())
        buffers = [b.name for b in (*k.buffers, *k.arrays)]
        for name in (*buffers, *k.ints, *(n for n, _ in k.scalars)):
            ascii_name = "".join(x if x.isascii() else f"u{ord(x):x}" for x in name)
            name_in_c = self.style.prefix + ascii_name
            while name_in_c in reserved or name_in_c in c_names.values():
                name_in_c += "_"
            c_names[name] = name_in_c
        return c_names

    # --- writing

    def write_lines(self, *lines: str) -> None:
        """Append lines at the current indentation."""
        self.lines += ["  " * self.depth + line for line in lines]

    @contextmanager
    def braces(self, head: str = "") -> Iterator[None]:
        """Write `head {` and, when the context ends, `}`; lines written in between are indented."""
        self.write_lines(f"{head} {{".strip())
        self.depth += 1
        yield
        self.depth -= 1
        self.write_lines("}")

    def declare(self, dtype: DType, name: str, text: str) -> None:
        """Write the declaration of a constant C variable with `text` as its value."""
        self.write_lines(self.style.constant(self.style.type(dtype), name, text))

    def new_name(self, v: Value, letter: str) -> str:
        """Assign a new name to a value, the one that `print_kernel` gives, and return it."""
        while (name := f"{letter}{self.name_counts[letter]}") in self.reserved_names:
            self.name_counts[letter] += 1
        self.name_counts[letter] += 1
        self.names[id(v)] = name
        return name

    def name(self, v: Value) -> str:
        """Return the C text of a value: a literal, a parameter, an index or its name."""
        if v.op == "const":
            return self.style.const(v.number, v.dtype)
        if v.op == "param":
            return f"({self.params[v.name]} != 0)" if v.dtype is bool_ else self.params[v.name]
        return f"i{v.axis}" if v.op == "index" else self.names[id(v)]

    # --- the frame

    def render(self) -> str:
        """Return the whole C text; called once, since it fills the writer's state."""
        style, k = self.style, self.kernel
        parameters = [p for b in k.buffers for p in style.parameter(b, self.params[b.name])]
        parameters += [f"{style.type(k.index)} {self.params[n]}" for n in k.ints]
        parameters += [f"{style.memory_type(d)} {self.params[n]}" for n, d in k.scalars]
        self.depth = 1
        for b in k.buffers:
            self.write_lines(*style.prologue(b, self.params[b.name]))
        extents, entry = [self.name(e) for e in k.grid], style.entry(k)
        if self.tile is None:
            head = style.function(entry, parameters, self.lanes)
            self.write_heads(style.points(extents, self.lanes))
            for b in k.arrays:
                self.write_lines(style.array(style.type(b.dtype), self.params[b.name], b.length))
            self.write_block(k.body, outermost=True)
        else:
            head = style.tile_function(entry, parameters, self.tile)
            self.write_heads(style.tile_points(extents, self.tile))
            TileWriter(self, self.tile).write()
        while self.depth:
            self.depth -= 1
            self.write_lines("}")
        helpers = [line for lines in self.helpers.values() for line in lines]
        shared = ["  " + line for lines in self.shared.values() for line in lines]
        text = "\n".join([*helpers, f"{head} {{", *shared, *self.lines])
        return "\n".join([*style.preamble(text), "", text, ""])

    def write_heads(self, lines: Iterable[str]) -> None:
        """Write lines of which some open braces, which `render` closes."""
        for line in lines:
            self.write_lines(line)
            self.depth += line.endswith("{")

    # --- statements

    def write_block(self, block: Block, outermost: bool = False) -> None:
        """Write a block. If `outermost`, all lanes of a group reach it and share its loops."""
        for s in block:
            by_group = self.lanes and outermost
            if isinstance(s, Value):
                self.declare(s.dtype, self.new_name(s, "v"), self.expression(s))
            elif isinstance(s, Loop):
                self.outermost = outermost
                self.write_loop(s, by_group)
            elif by_group:
                with self.braces(f"if ({self.presence_condition()}{self.style.lane} == 0)"):
                    self.write_effect(s)
            else:
                self.write_effect(s)
            if by_group and not isinstance(s, Value) and _writes_readable_buffer(s):
                self.write_lines(*self.style.barrier())

    def expression(self, v: Value) -> str:
        """Return the C expression of a value."""
        args = [self.name(a) for a in v.args]
        if v.op != "load":
            return self.style.operation(v.op, v.dtype, args, v.args[v.op == "where"].dtype)
        name = self.params[v.buffer.name]
        private = bool(v.buffer.length)
        element = f"{name}[{args[0]}]" if private else self.style.load(v.buffer, name, args[0])
        return element if len(args) == 1 else self.style.load_if(args[1], element, v.dtype)

    def write_effect(self, s: Store | Atomic) -> None:
        """Write a store or an atomic, under its condition if it has one."""
        name, index, value = self.params[s.buffer.name], self.name(s.index), self.name(s.value)
        if s.buffer.length:
            lines = [f"{name}[{index}] = {value};"]
        elif isinstance(s, Store):
            lines = [self.style.store(s.buffer, name, index, value)]
        else:
            lines = self.style.atomic(s.op, s.buffer.dtype, f"&{name}[{index}]", value)
        if s.when is None and len(lines) == 1:
            self.write_lines(*lines)
        else:
            with self.braces("" if s.when is None else f"if ({self.name(s.when)})"):
                self.write_lines(*lines)

    def write_loop(self, s: Loop, by_group: bool) -> None:
        """Write a loop of any kind; if `by_group`, the lanes of a group share its iterations."""
        start, stop = self.name(s.start), self.name(s.stop)
        k = self.new_name(s.var, "k")
        if s.kind == "reduce":
            ReductionWriter(self, s, by_group).write(k, start, stop)
        elif s.kind == "fold":
            self.write_fold(s, k, start, stop)
        else:
            with self.loop_head(k, start, stop, LANES if by_group else 1):
                self.write_block(s.body)

    def loop_head(
        self, k: str, start: str, stop: str, step: int = 1
    ) -> AbstractContextManager[None]:
        """Open a `for` loop of `k` from start to stop; with a step, each lane has its own start."""
        if step == 1:
            return self.braces(self.style.loop(k, start, stop))
        index = self.style.type(self.kernel.index)
        first, inside = f"{start} + {self.style.lane}", f"{self.presence_condition()}{k} < {stop}"
        return self.braces(f"for ({index} {k} = {first}; {inside}; {k} += {step})")

    def presence_condition(self) -> str:
        """Return the condition that a work item has a point, followed by `&&`; "" if all have."""
        return f"{self.style.present} && " if self.style.present else ""

    def write_fold(self, s: Loop, k: str, start: str, stop: str) -> None:
        """Write a sequential loop that updates its results; it breaks early if `settles(s)`."""
        inits = [self.name(v) for v in s.init]
        carries = [self.new_name(c, "c") for c in s.carry]
        results = [self.new_name(r, "r") for r in s.results]
        types = [self.style.type(c.dtype) for c in s.carry]
        self.write_rows(self.style.variable, types, results, inits)
        if self.style.in_order and any(c.dtype.kind == "f" for c in s.carry):
            self.write_lines(self.style.in_order)
        with self.loop_head(k, start, stop):
            self.write_rows(self.style.constant, types, carries, results)
            self.write_block(s.body)
            self.write_rows("{} = {};".format, results, [self.name(u) for u in s.update])
            if settles(s):
                self.write_lines(self.style.leave(self.bits_equal(s, carries, results)))

    def write_rows(self, form: Callable[..., str], *columns: Sequence[str]) -> None:
        """Write a line for each row of these columns."""
        self.write_lines(*map(form, *columns))

    def bits_equal(self, s: Loop, old: Sequence[str], new: Sequence[str]) -> str:
        """Return the condition that a step has left all bits of a fold's carries unchanged."""
        pairs = zip(old, new, s.carry, strict=True)
        return " && ".join(
            f"{self.equal_bits(a, c.dtype)} == {self.equal_bits(b, c.dtype)}" for a, b, c in pairs
        )

    def equal_bits(self, x: str, dtype: DType) -> str:
        """Return an expression that is equal exactly for equal bits."""
        return self.style.bitcast(x, dtype, _BITS[dtype]) if dtype in _BITS else x

    # --- combining

    def combiner(self, rule: Combine) -> tuple[str, str]:
        """Define, if new, a combine's C type and function, and return their names."""
        dtypes = [v.dtype for v in rule.result]
        name = "_".join(["combine", rule.name, *(d.code for d in dtypes)])
        one = len(dtypes) == 1
        t = self.style.type(dtypes[0]) if one else name.replace("combine_", "pair_", 1)
        if name not in self.helpers:
            self.helpers[name] = self.combiner_lines(rule, name, t)
        return t, name

    def combiner_lines(self, rule: Combine, name: str, t: str) -> list[str]:
        """Return the lines that define the type and the function."""
        lines, names = [], dict[int, str]()
        members = [f"x{i}" for i in range(len(rule.result))]
        one = len(members) == 1
        if not one:
            members_and_values = zip(members, rule.result, strict=True)
            fields = " ".join(f"{self.style.type(v.dtype)} {m};" for m, v in members_and_values)
            lines.append(f"typedef struct {{ {fields} }} {t};")
        names |= {id(v): f"z{i}" for i, v in enumerate(rule.shared)}
        parameters = [f"const {self.style.type(v.dtype)} {names[id(v)]}" for v in rule.shared]
        parameters += [f"const {t} a", f"const {t} b"]
        lines.append(f"{self.style.helper}{t} {name}({', '.join(parameters)}) {{")
        for side, values in (("a", rule.left), ("b", rule.right)):
            for m, v in zip(members, values, strict=True):
                names[id(v)] = side if one else f"{side}.{m}"

        def text(v: Value) -> str:
            """Return the C text of a constant or of a value of the combine."""
            return self.style.const(v.number, v.dtype) if v.op == "const" else names[id(v)]

        for v in rule.body:
            names[id(v)] = f"v{len(lines)}"
            of = v.args[v.op == "where"].dtype
            computed = self.style.operation(v.op, v.dtype, [text(a) for a in v.args], of)
            lines.append(f"  const {self.style.type(v.dtype)} {names[id(v)]} = {computed};")
        if one:
            return [*lines, f"  return {text(rule.result[0])};", "}"]
        results = ", ".join(text(v) for v in rule.result)
        return [*lines, f"  const {t} both = {{{results}}};", "  return both;", "}"]


__all__ = ["CStyle"]
