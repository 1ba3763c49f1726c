"""A parser of kernel texts: the exact inverse of `printer.print_kernel`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..dtypes import BY_CODE, DType, int64, load_plugins
from ..errors import ArgumentError, InternalError
from .builder import Kernel, is_combine
from .language import ALL_OPS, Atomic, Block, Buffer, Loop, Statement, Store, Value, const

_CONST = re.compile(r"(\w+)\(([^()]*)\)")
_INDEX = re.compile(r"i([0-9]{1,3})")
_HEAD = re.compile(
    r"kernel ([^\s(]+)\(([^;]*);([^;]*);([^;]*)\) grid\((.*?)\)"
    r"(?: private\(([^()]*)\))?(?: shared\(([^()]*)\))?(?: index (\w+))?( fast)? \{"
)
_ARRAY = re.compile(r"(\w+)\[([0-9]{1,9})\]")
_VALUE = re.compile(r"(\w+): (\w+) = (\w+) (.*)")
# An operand has no space in it: the expressions never backtrack, however long a line is.
_ELEMENT = re.compile(r"(\w+)\[([^\s\]]+)\](?: if (\w+))?")
_STORE = re.compile(r"(?:store|atomic (\w+)) (\w+)\[([^\s\]]+)\] = (\S+)(?: if (\w+))?")
_LOOP = re.compile(
    r"(map|reduce|fold)(?: (\w+))? (\w+) in ([^\s.]+)\.\.(\S+)"
    r"(?: from \((.*)\))?(?: carry \((.*)\))?(?: -> (.*))? \{"
)


def parse_kernel(text: str) -> Kernel:
    """Return the kernel that prints as `text`.

    - `text`: the text that `print_kernel` returned.

    Raises: ArgumentError with the number of the line that is no kernel text.
    """
    parser = _Parser(text)
    try:
        return parser.parse()
    except RecursionError:
        raise parser.syntax_error("loops are nested too deeply") from None


def _split_commas(text: str) -> list[str]:
    """Return the stripped parts of a comma-separated text; an empty list for a blank text."""
    return [p.strip() for p in text.split(",")] if text.strip() else []


class _Parser:
    """A recursive-descent parser of one kernel text; it consumes the lines in order."""

    def __init__(self, text: str) -> None:
        self.number = 0
        self.lines = self._number_lines(text)
        self.buffers: dict[str, Buffer] = {}
        self.index = int64
        self.names: dict[str, Value] = {}

    def _number_lines(self, text: str) -> Iterator[str]:
        """Yield the stripped lines that are not blank; set `number` to each line's number."""
        for number, line in enumerate(text.splitlines(), 1):
            self.number = number
            if line.strip():
                yield line.strip()

    def syntax_error(self, what: str) -> ArgumentError:
        """Return an ArgumentError, for the caller to raise, that names the current line."""
        return ArgumentError(f"kernel text, line {self.number}: {what}")

    def next_line(self) -> str:
        """Consume and return the next line. Raises: ArgumentError at the end of the text."""
        for line in self.lines:
            return line
        raise self.syntax_error("the text must end with }")

    def find_dtype(self, code: str) -> DType:
        """Return the dtype of a code; load plugins for a new one. Raises: ArgumentError if none."""
        if code not in BY_CODE:
            load_plugins()
        if code not in BY_CODE:
            raise self.syntax_error(f"unknown dtype code {code!r}")
        return BY_CODE[code]

    def split_declaration(self, text: str) -> tuple[str, str]:
        """Return the two sides of `name: value`. Raises: ArgumentError without a colon."""
        name, colon, value = text.partition(": ")
        if not colon:
            raise self.syntax_error(f"expected 'name: dtype', got {text!r}")
        return name, value

    def parse(self) -> Kernel:
        """Return the kernel of the whole text. Raises: ArgumentError at the first invalid line."""
        head = _HEAD.fullmatch(self.next_line())
        if head is None:
            raise self.syntax_error(
                "expected 'kernel name(buffers; ints; scalars) grid(extents) {'"
            )
        name, buffers, ints, scalars, grid, private, shared, index, fast = head.groups()
        self.index = self.find_dtype(index or int64.code)
        for piece in _split_commas(buffers):
            self.declare_buffer(*self.split_declaration(piece))
        arrays = [
            self.declare_array(*self.split_declaration(piece), is_shared)
            for text, is_shared in ((private, False), (shared, True))
            for piece in _split_commas(text or "")
        ]
        for piece in _split_commas(ints):
            self.names[piece] = Value("param", self.index, (), piece)
        numbers = [self.split_declaration(piece) for piece in _split_commas(scalars)]
        typed = tuple((n, self.find_dtype(code)) for n, code in numbers)
        for n, dtype in typed:
            self.names[n] = Value("param", dtype, (), n)
        extents = tuple(self.parse_operand(g) for g in _split_commas(grid))
        body, last = self.parse_block()
        if last is not None:
            raise self.syntax_error("a kernel must not yield")
        for line in self.lines:
            raise self.syntax_error(f"expected nothing after the last }}, got {line!r}")
        return Kernel(
            name,
            tuple(b for b in self.buffers.values() if not b.length),
            tuple(_split_commas(ints)),
            typed,
            extents,
            body,
            self.index,
            fast_math=fast is not None,
            arrays=tuple(arrays),
        )

    def declare_buffer(self, name: str, access_and_code: str) -> None:
        """Declare a buffer from a text such as "rw f32" after its name."""
        access, _, code = access_and_code.partition(" ")
        self.buffers[name] = Buffer(name, self.find_dtype(code), access)

    def declare_array(self, name: str, code_and_length: str, is_shared: bool) -> Buffer:
        """Declare an array from a text such as "f32[96]" after its name, and return it."""
        match = _ARRAY.fullmatch(code_and_length)
        if match is None:
            raise self.syntax_error(f"expected 'dtype[length]', got {code_and_length!r}")
        dtype, length = self.find_dtype(match[1]), int(match[2])
        array = self.buffers[name] = Buffer(name, dtype, "rw", length, is_shared)
        return array

    def parse_operand(self, text: str) -> Value:
        """Return the constant, grid index or earlier value of `text`. Raises: ArgumentError."""
        if text in self.names:
            return self.names[text]
        if match := _CONST.fullmatch(text):
            return self.parse_constant(self.find_dtype(match[1]), match[2])
        if match := _INDEX.fullmatch(text):
            return Value("index", self.index, (), int(match[1]))
        raise self.syntax_error(f"{text!r} is not defined")

    def parse_constant(self, dtype: DType, text: str) -> Value:
        """Return the constant of `dtype` that `text` writes. Raises: ArgumentError."""
        try:
            if dtype.kind == "b":
                return const({"True": True, "False": False}[text], dtype)
            return const(float(text) if dtype.kind == "f" else int(text), dtype)
        except (KeyError, ValueError, OverflowError, InternalError):
            raise self.syntax_error(f"expected a constant of {dtype.name}, got {text!r}") from None

    def parse_operands(self, text: str) -> tuple[Value, ...]:
        """Return the values that a comma-separated text names. Raises: ArgumentError."""
        return tuple(self.parse_operand(p) for p in _split_commas(text))

    def parse_condition(self, text: str | None) -> Value | None:
        """Return the value that `text` names, or None without a condition."""
        return None if text is None else self.parse_operand(text)

    def find_buffer(self, name: str) -> Buffer:
        """Return the declared buffer of this name. Raises: ArgumentError if there is none."""
        if name not in self.buffers:
            raise self.syntax_error(f"buffer {name!r} is not declared")
        return self.buffers[name]

    def parse_block(self) -> tuple[Block, tuple[Value, ...] | None]:
        """Consume lines up to the closing brace; return the statements and the yielded values."""
        body: list[Statement] = []
        outer_names, yielded = dict(self.names), None
        while (line := self.next_line()) != "}":
            if yielded is not None:
                raise self.syntax_error("yield must be the last statement of a loop")
            if line.startswith("yield "):
                yielded = self.parse_operands(line[6:])
            else:
                body.append(self.parse_statement(line))
        self.names = outer_names
        return tuple(body), yielded

    def parse_statement(self, line: str) -> Statement:
        """Return a line's statement; consume the lines of a loop, define the name of a value."""
        if match := _LOOP.fullmatch(line):
            return self.parse_loop(*match.groups())
        if match := _STORE.fullmatch(line):
            return self.parse_effect(*match.groups())
        if match := _VALUE.fullmatch(line):
            name, code, op, args = match.groups()
            value = (
                self.parse_load(args)
                if op == "load"
                else self.parse_operation(op, self.find_dtype(code), args)
            )
            if value.dtype is not self.find_dtype(code):
                raise self.syntax_error(f"{name} must be {value.dtype.code}, got {code}")
            self.names[name] = value
            return value
        raise self.syntax_error(f"expected a statement, got {line!r}")

    def parse_load(self, text: str) -> Value:
        """Return the load of a text such as "x[v0] if v1". Raises: ArgumentError."""
        match = _ELEMENT.fullmatch(text)
        if match is None:
            raise self.syntax_error("expected 'load buffer[index]'")
        buffer, when = self.find_buffer(match[1]), self.parse_condition(match[3])
        args = (self.parse_operand(match[2]), *(() if when is None else (when,)))
        return Value("load", buffer.dtype, args, buffer)

    def parse_operation(self, op: str, dtype: DType, text: str) -> Value:
        """Return an operation on named operands. Raises: ArgumentError for an unknown one."""
        args = self.parse_operands(text)
        if op not in ALL_OPS or len(args) != ALL_OPS[op][0]:
            raise self.syntax_error(f"there is no operation {op!r} of {len(args)} arguments")
        return Value(op, dtype, args)

    def parse_effect(
        self, op: str | None, buffer: str, index: str, value: str, when: str | None
    ) -> Store | Atomic:
        """Return a store, or an atomic if `op` is given, on named operands."""
        operands = (
            self.find_buffer(buffer),
            self.parse_operand(index),
            self.parse_operand(value),
            self.parse_condition(when),
        )
        return Store(*operands) if op is None else Atomic(op, *operands)

    def parse_loop(
        self,
        kind: str,
        combine: str | None,
        var: str,
        start: str,
        stop: str,
        identity: str | None,
        carry: str | None,
        results: str | None,
    ) -> Loop:
        """Return the loop of a parsed head and the lines up to its brace; define its results."""
        if (kind == "reduce") != is_combine(combine):
            raise self.syntax_error(f"a {kind} must not have combine {combine!r}")
        heads = [self.split_declaration(piece) for piece in _split_commas(carry or "")]
        states = [(name, *code_and_init.partition(" = ")[::2]) for name, code_and_init in heads]
        loop = Loop(kind, self.parse_operand(start), self.parse_operand(stop), combine)
        inits = [self.parse_operand(init) for _, _, init in states]
        loop.init = (*self.parse_operands(identity or ""), *inits)
        loop.carry = self.create_loop_values("carry", loop, [(n, code) for n, code, _ in states])
        outputs = [self.split_declaration(piece) for piece in _split_commas(results or "")]
        loop.results = self.create_loop_values("result", loop, outputs)
        outer_names = dict(self.names)
        self.names[var] = loop.var
        self.names |= {n: v for (n, _, _), v in zip(states, loop.carry, strict=True)}
        body, update = self.parse_block()
        loop.set_body(body)
        loop.update = update or ()
        self.names = outer_names | {n: v for (n, _), v in zip(outputs, loop.results, strict=True)}
        return loop

    def create_loop_values(
        self, op: str, loop: Loop, named: list[tuple[str, str]]
    ) -> tuple[Value, ...]:
        """Return the carries or results of a loop, one for each (name, dtype code)."""
        return tuple(
            Value(op, self.find_dtype(code), (), (loop, i)) for i, (_, code) in enumerate(named)
        )
