"""Where a kernel of loops is built: its tensors, its numbers, its grid, what is checked of it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..dtypes import DType, int64
from ..loops.builder import Kernel, KernelBuilder
from ..loops.language import (
    Atomic,
    Buffer,
    Effect,
    Loop,
    Store,
    Value,
    const,
    eq,
    load,
    walk,
    where,
)

ANY = 2  # the class of a stride that is neither 0 nor 1


class Given(NamedTuple):
    """What a kernel is made for, of a tensor: its dtype, and of each stride 0, 1 or ANY."""

    dtype: DType
    strides: tuple[int, ...]


class Scalar(NamedTuple):
    """What a kernel is made for, of a Python number: "b", "i" or "f"; or its declared dtype."""

    kind: str
    dtype: DType | None = None


class Cell(NamedTuple):
    """An error cell: which tensor is accessed, along which axis, and what to say of it."""

    buffer: Buffer
    tensor: int
    axis: int
    words: str


class Int(NamedTuple):
    """A run-time integer: "n", "s" of a tensor's axis; "start", "extent" of the grid's."""

    what: str
    tensor: int
    axis: int


class Access(NamedTuple):
    """An element: its linear index, and under which condition it is read or written."""

    linear: Value
    when: Value | None


class Tensor:
    """A parameter that is a tensor, in a kernel that is built."""

    def __init__(self, position: int, name: str, access: str, given: Given) -> None:
        self.position, self.name, self.access, self.given = position, name, access, given
        self.buffer = Buffer("", given.dtype, access)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.given.strides)


class Site:
    """One kernel that is built. `careful`: whether all indices are checked."""

    def __init__(self, name: str, careful: bool) -> None:
        self.name, self.careful = name, careful
        self.builder = KernelBuilder(name)
        self.tensors: list[Tensor] = []
        self.ints: dict[str, Int] = {}
        self.scalars: dict[str, int] = {}  # by the parameter's name, which argument it is
        self.cells: dict[tuple[int, int], Cell] = {}
        self.stores: dict[int, list[ast.expr]] = {}  # by tensor, the places that say so
        self.bounds: list[tuple[Value, Value]] = []  # start and extent of each axis of the grid
        self._ints: dict[Int, Value] = {}
        self._scalars: dict[tuple[int, DType], Value] = {}
        self._taken: set[str] = set()

    def fresh(self, name: str) -> str:
        """A parameter's name that no other has, and that the loop language takes."""
        letter = name[:1] + name[1:]
        found = letter if not (name[:1] == "i" and name[1:].isdigit()) else f"{letter}_"
        while found in self._taken or not found.isascii():
            found = f"{found}_" if found.isascii() else "p"
        self._taken.add(found)
        return found

    def tensor(self, position: int, name: str, access: str, given: Given) -> Tensor:
        """A parameter that is a tensor."""
        made = Tensor(position, name, access, given)
        made.buffer = self.builder.buffer(self.fresh(name), given.dtype, access)
        self.tensors.append(made)
        return made

    def scalar(self, position: int, name: str, dtype: DType) -> Value:
        """A number that is an argument, as a dtype that scalars have."""
        key = position, dtype
        if key not in self._scalars:
            taken = self.fresh(name if not self._any(position) else f"{name}_{dtype.code}")
            self._scalars[key] = self.builder.scalar(taken, dtype)
            self.scalars[taken] = position
        return self._scalars[key]

    def _any(self, position: int) -> bool:
        return any(p == position for p, _ in self._scalars)

    def integer(self, what: str, name: str, tensor: int, axis: int) -> Value:
        """A run-time integer."""
        key = Int(what, tensor, axis)
        if key not in self._ints:
            taken = self.fresh(name)
            self._ints[key] = self.builder.int(taken)
            self.ints[taken] = key
        return self._ints[key]

    def size(self, t: Tensor, axis: int) -> Value:
        """The extent of a tensor's axis."""
        return self.integer("n", f"{t.name}_n{axis}", t.position, axis)

    def axis(self, start: Value, stop: Value) -> Value:
        """A new axis of the grid, from `start` to `stop`, which are known before the launch."""
        k = len(self.bounds)
        self.bounds.append((start, stop))
        index = self.builder.axis(self.integer("extent", f"extent{k}", -1, k))
        if start.op == "const":
            return index + start
        return index + self.integer("start", f"start{k}", -1, k)

    # --- elements
    def at(self, t: Tensor, place: Sequence[Value]) -> Value:
        """The linear index of an element."""
        total = const(0, int64)
        for axis, (i, kind) in enumerate(zip(place, t.given.strides, strict=True)):
            if kind == ANY:
                total = total + i * self.integer("s", f"{t.name}_s{axis}", t.position, axis)
            elif kind == 1:
                total = total + i
        return total

    def access(
        self, t: Tensor, place: Sequence[Value], when: Value | None, node: object,
        words: Callable[[], str], effects: list[Effect | Value] | None,
    ) -> Access:  # fmt: skip
        """An element; where indices are checked, under the condition that they are in range.

        What is not goes to error cells, but where no effects may be (None).
        """
        index = self.at(t, place)
        if not self.careful:
            return Access(index, when)
        fine_all = when
        for axis, i in enumerate(place):
            n = self.size(t, axis)
            fine = (const(0, int64) <= i) & (i < n)
            if effects is not None:
                wrong = ~fine if fine_all is None else fine_all & ~fine
                shown = where(eq(i, 0), const(-1, int64), i)  # 0 is out of range where n is 0
                cell = self._cell(t, axis, id(node), words)
                effects.append(Store(cell, const(0, int64), shown, wrong))
            fine_all = fine if fine_all is None else fine_all & fine
        return Access(index, fine_all)

    def _cell(self, t: Tensor, axis: int, node: int, words: Callable[[], str]) -> Buffer:
        key = node, axis
        if key not in self.cells:
            made = self.builder.buffer(self.fresh(f"cell{len(self.cells)}"), int64, "w")
            self.cells[key] = Cell(made, t.position, axis, words())
        return self.cells[key].buffer

    def read(self, t: Tensor, at: Access) -> Value:
        """The element as it is now."""
        return load(t.buffer, at.linear, at.when)

    # --- the end
    def kernel(self, effects: Sequence[Effect | Value]) -> Kernel:
        """The finished kernel, without the parameters that nothing asks for."""
        for e in effects:
            if isinstance(e, Value):
                self.builder.first(e)
            else:
                self.builder.effect(e)
        made = self.builder.build()
        params, buffers = _used(made)
        return replace(
            made,
            buffers=tuple(b for b in made.buffers if id(b) in buffers),
            ints=tuple(n for n in made.ints if n in params),
            scalars=tuple((n, d) for n, d in made.scalars if n in params),
        )


def _used(k: Kernel) -> tuple[set[str], set[int]]:
    """The names of numbers, and the ids of buffers, that a kernel asks for."""
    params: set[str] = set()
    buffers: set[int] = set()

    def operand(v: Value) -> None:
        if v.op == "param":
            params.add(v.name)

    for v in k.grid:
        operand(v)
    for s in walk(k.body):
        if isinstance(s, Value):
            for a in s.args:
                operand(a)
            if s.op == "load":
                buffers.add(id(s.buffer))
        elif isinstance(s, Loop):
            for v in (s.start, s.stop, *s.init, *s.update):
                operand(v)
        elif isinstance(s, Store | Atomic):
            for v in (s.index, s.value, *(() if s.when is None else (s.when,))):
                operand(v)
            buffers.add(id(s.buffer))
    return params, buffers


# --- bounds, worked out before the launch ---------------------------------------------------------


class NotUniform(Exception):
    """A bound of a grid depends on what only the kernel knows."""


def known(v: Value, numbers: Mapping[str, int], done: dict[int, int] | None = None) -> int:
    """What an integer value comes to, of the run-time numbers that it `asks` for."""
    done = {} if done is None else done
    if id(v) not in done:
        if v.op == "const":
            done[id(v)] = int(v.number)
        elif v.op == "param":
            done[id(v)] = int(numbers[v.name])
        else:
            done[id(v)] = int(_RULES[v.op](*[known(a, numbers, done) for a in v.args]))
    return done[id(v)]


def asks(v: Value) -> set[str]:
    """The names of the numbers that a bound depends on. Raises: NotUniform."""
    found: set[str] = set()
    seen: set[int] = set()
    stack = [v]
    while stack:
        v = stack.pop()
        if id(v) in seen:
            continue
        seen.add(id(v))
        if v.dtype.kind not in "biu" or (v.op not in _RULES and v.op not in ("const", "param")):
            raise NotUniform
        if v.op == "param":
            found.add(v.name)
        stack += v.args
    return found


def _quotient(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_RULES: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "neg": lambda a: -a, "quo": _quotient, "rem": lambda a, b: a - b * _quotient(a, b),
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b, "not": lambda a: 1 - a, "where": lambda c, a, b: a if c else b,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "cast": lambda a: a,
    "shl": lambda a, b: a << b, "shr": lambda a, b: a >> b,
}  # fmt: skip
