"""Kernels from text: the exact inverse of `text.print_kernel`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..dtypes import BY_CODE, DType, int64, load_plugins
from ..errors import ArgumentError, InternalError
from .builder import Kernel, is_combine
from .language import ALL_OPS, Atomic, Block, Buffer, Loop, Statement, Store, Value, const

_CONST = re.compile(r"(\w+)\(([^()]*)\)")
_INDEX = re.compile(r"i([0-9]{1,3})")
_HEAD = re.compile(r"kernel ([^\s(]+)\(([^;]*);([^;]*);([^;]*)\) grid\((.*?)\)(?: index (\w+))? \{")
_VALUE = re.compile(r"(\w+): (\w+) = (\w+) (.*)")
# An operand holds no space: where it ends is never tried twice, however long a line is.
_PLACE = re.compile(r"(\w+)\[([^\s\]]+)\](?: if (\w+))?")
_STORE = re.compile(r"(?:store|atomic (\w+)) (\w+)\[([^\s\]]+)\] = (\S+)(?: if (\w+))?")
_LOOP = re.compile(
    r"(map|reduce|fold)(?: (\w+))? (\w+) in ([^\s.]+)\.\.(\S+)"
    r"(?: carry \((.*)\))?(?: -> (.*))? \{"
)


def parse_kernel(text: str) -> Kernel:
    """The kernel that prints as `text`.

    Raises: ArgumentError with the number of the line that is no kernel text.
    """
    parser = _Parser(text)
    try:
        return parser.kernel()
    except RecursionError:
        raise parser.wrong("loops are nested too deeply") from None


def _pieces(text: str) -> list[str]:
    return [p.strip() for p in text.split(",")] if text.strip() else []


class _Parser:
    def __init__(self, text: str) -> None:
        self.number = 0
        self.lines = self._numbered(text)
        self.buffers: dict[str, Buffer] = {}
        self.index = int64
        self.names: dict[str, Value] = {}

    def _numbered(self, text: str) -> Iterator[str]:
        for number, line in enumerate(text.splitlines(), 1):
            self.number = number
            if line.strip():
                yield line.strip()

    def wrong(self, what: str) -> ArgumentError:
        return ArgumentError(f"kernel text, line {self.number}: {what}")

    def next_line(self) -> str:
        for line in self.lines:
            return line
        raise self.wrong("the text ends before its last }")

    def dtype(self, code: str) -> DType:
        if code not in BY_CODE:
            load_plugins()
        if code not in BY_CODE:
            raise self.wrong(f"no dtype has the code {code!r}")
        return BY_CODE[code]

    def declared(self, text: str) -> tuple[str, str]:
        name, colon, rest = text.partition(": ")
        if not colon:
            raise self.wrong(f"expected 'name: dtype', found {text!r}")
        return name, rest

    def kernel(self) -> Kernel:
        found = _HEAD.fullmatch(self.next_line())
        if found is None:
            raise self.wrong("expected 'kernel name(buffers; ints; scalars) grid(extents) {'")
        name, buffers, ints, scalars, grid, index = found.groups()
        self.index = self.dtype(index or int64.code)
        for piece in _pieces(buffers):
            self.buffer(*self.declared(piece))
        for piece in _pieces(ints):
            self.names[piece] = Value("param", self.index, (), piece)
        numbers = [self.declared(piece) for piece in _pieces(scalars)]
        typed = tuple((n, self.dtype(code)) for n, code in numbers)
        for n, dtype in typed:
            self.names[n] = Value("param", dtype, (), n)
        extents = tuple(self.operand(g) for g in _pieces(grid))
        body, last = self.block()
        if last is not None:
            raise self.wrong("a kernel yields nothing")
        for line in self.lines:
            raise self.wrong(f"text after the kernel's end: {line!r}")
        return Kernel(
            name, tuple(self.buffers.values()), tuple(_pieces(ints)), typed, extents, body,
            self.index,
        )  # fmt: skip

    def buffer(self, name: str, rest: str) -> None:
        access, _, code = rest.partition(" ")
        self.buffers[name] = Buffer(name, self.dtype(code), access)

    def operand(self, text: str) -> Value:
        """The Value that `text` names: a constant, a grid index, or something defined before."""
        if text in self.names:
            return self.names[text]
        if found := _CONST.fullmatch(text):
            return self.constant(self.dtype(found[1]), found[2])
        if found := _INDEX.fullmatch(text):
            return Value("index", self.index, (), int(found[1]))
        raise self.wrong(f"{text!r} is not defined")

    def constant(self, dtype: DType, text: str) -> Value:
        try:
            if dtype.kind == "b":
                return const({"True": True, "False": False}[text], dtype)
            return const(float(text) if dtype.kind == "f" else int(text), dtype)
        except (KeyError, ValueError, OverflowError, InternalError):
            raise self.wrong(f"{text!r} is no constant of {dtype.name}") from None

    def operands(self, text: str) -> tuple[Value, ...]:
        return tuple(self.operand(p) for p in _pieces(text))

    def condition(self, text: str | None) -> Value | None:
        return None if text is None else self.operand(text)

    def held(self, name: str) -> Buffer:
        if name not in self.buffers:
            raise self.wrong(f"no buffer is called {name!r}")
        return self.buffers[name]

    def block(self) -> tuple[Block, tuple[Value, ...] | None]:
        """The statements up to the closing brace, and what the block yields."""
        body: list[Statement] = []
        outside, yielded = dict(self.names), None
        while (line := self.next_line()) != "}":
            if yielded is not None:
                raise self.wrong("a statement after yield")
            if line.startswith("yield "):
                yielded = self.operands(line[6:])
            else:
                body.append(self.statement(line))
        self.names = outside
        return tuple(body), yielded

    def statement(self, line: str) -> Statement:
        if found := _LOOP.fullmatch(line):
            return self.loop(*found.groups())
        if found := _STORE.fullmatch(line):
            return self.effect(*found.groups())
        if found := _VALUE.fullmatch(line):
            name, code, op, rest = found.groups()
            value = self.load(rest) if op == "load" else self.operation(op, self.dtype(code), rest)
            if value.dtype is not self.dtype(code):
                raise self.wrong(f"{name} is {value.dtype.code}, not {code}")
            self.names[name] = value
            return value
        raise self.wrong(f"no statement reads {line!r}")

    def load(self, text: str) -> Value:
        found = _PLACE.fullmatch(text)
        if found is None:
            raise self.wrong("expected 'load buffer[index]'")
        buffer, when = self.held(found[1]), self.condition(found[3])
        args = (self.operand(found[2]), *(() if when is None else (when,)))
        return Value("load", buffer.dtype, args, buffer)

    def operation(self, op: str, dtype: DType, text: str) -> Value:
        args = self.operands(text)
        if op not in ALL_OPS or len(args) != ALL_OPS[op][0]:
            raise self.wrong(f"no operation {op!r} of {len(args)} arguments")
        return Value(op, dtype, args)

    def effect(
        self, op: str | None, buffer: str, index: str, value: str, when: str | None
    ) -> Store | Atomic:
        place = self.held(buffer), self.operand(index), self.operand(value), self.condition(when)
        return Store(*place) if op is None else Atomic(op, *place)

    def loop(
        self,
        kind: str,
        combine: str | None,
        var: str,
        start: str,
        stop: str,
        carry: str | None,
        results: str | None,
    ) -> Loop:
        if (kind == "reduce") != is_combine(combine):
            raise self.wrong(f"a {kind} with combine {combine!r}")
        heads = [self.declared(piece) for piece in _pieces(carry or "")]
        states = [(name, *rest.partition(" = ")[::2]) for name, rest in heads]
        loop = Loop(kind, self.operand(start), self.operand(stop), combine)
        loop.init = tuple(self.operand(init) for _, _, init in states)
        loop.carry = self.positions("carry", loop, [(n, code) for n, code, _ in states])
        outputs = [self.declared(piece) for piece in _pieces(results or "")]
        loop.results = self.positions("result", loop, outputs)
        outside = dict(self.names)
        self.names[var] = loop.var
        self.names |= {n: v for (n, _, _), v in zip(states, loop.carry, strict=True)}
        loop.body, update = self.block()
        loop.update = update or ()
        loop.effects = tuple(s for s in loop.body if not isinstance(s, Value))
        self.names = outside | {n: v for (n, _), v in zip(outputs, loop.results, strict=True)}
        return loop

    def positions(self, op: str, loop: Loop, named: list[tuple[str, str]]) -> tuple[Value, ...]:
        return tuple(
            Value(op, self.dtype(code), (), (loop, i)) for i, (_, code) in enumerate(named)
        )
