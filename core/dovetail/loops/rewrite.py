"""Kernels copied with something changed: the one cloner that every pass is made of.

A `Cloner` goes through statements in their order, so that scopes stay as they are. What takes the
place of a value is in `new`; a pass says by a rule, or by an `operand` of its own, what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .language import OPERANDS, Atomic, Block, Buffer, Loop, Statement, Store, Value

if TYPE_CHECKING:
    from ..dtypes import DType
    from .builder import Kernel

# (a value, its arguments as rewritten) -> what takes its place; None: itself with those arguments
Rule = Callable[[Value, tuple[Value, ...]], Value | None]


class Cloner:
    """Copies statements into `out`; before a value comes whatever it needs and is not there yet."""

    def __init__(self, buffers: Mapping[Buffer, Buffer] | None = None) -> None:
        self.buffers = buffers or {}
        self.new: dict[Value, Value] = {}  # an old value -> what takes its place
        self.emitted: set[Value] = set()
        self.out: list[Statement] = []

    def operand(self, v: Value) -> Value:
        """What stands for an operand of the old kernel."""
        return self.new.get(v, v)

    def operands(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """The same for several."""
        return tuple(self.operand(v) for v in values)

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        """What takes the place of a value, given its new arguments; None: its copy."""
        return None

    def block(self, block: Block) -> Block:
        """The copy of a block."""
        outer, self.out = self.out, []
        for s in block:
            if isinstance(s, Value):
                self.value(s)
            else:
                self.out.append(self.loop(s) if isinstance(s, Loop) else self.effect(s))
        done, self.out = tuple(self.out), outer
        return done

    def value(self, v: Value) -> None:
        """Copies a value's statement, or puts there what takes its place."""
        args = self.operands(v.args)
        new = self.new[v] = self.rule(v, args) or self.again(v, args)
        self.emit(new)

    def again(self, v: Value, args: tuple[Value, ...]) -> Value:
        """A value once more, with other arguments."""
        if v.op != "load":
            return Value(v.op, v.dtype, args, v.attr)
        buffer = self.buffers.get(v.buffer, v.buffer)
        return Value("load", buffer.dtype, args, buffer)

    def emit(self, v: Value) -> None:
        """Puts `v`, and before it whatever it needs, into the open block."""
        if v.op in OPERANDS or v in self.emitted:
            return
        for a in v.args:
            self.emit(a)
        self.emitted.add(v)
        self.out.append(v)

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        """The copy of a store or an atomic."""
        buffer = self.buffers.get(s.buffer, s.buffer)
        index, value = self.operand(s.index), self.operand(s.value)
        when = None if s.when is None else self.operand(s.when)
        if isinstance(s, Store):
            return Store(buffer, index, value, when)
        return Atomic(s.op, buffer, index, value, when)

    def head(self, old: Loop) -> Loop:
        """The copy of a loop without its body, and what depends on that."""
        start, stop = self.operand(old.start), self.operand(old.stop)
        return Loop(old.kind, start, stop, old.combine, self.operands(old.init))

    def loop(self, old: Loop) -> Loop:
        """The copy of a loop."""
        new = self.head(old)
        new.carry = self.positions("carry", new, old.carry)
        self.new[old.var] = new.var
        new.body = self.block(old.body)
        new.effects = tuple(s for s in new.body if not isinstance(s, Value))
        new.update = self.operands(old.update)
        new.results = self.positions("result", new, old.results)
        return new

    def positions(self, op: str, loop: Loop, old: tuple[Value, ...]) -> tuple[Value, ...]:
        """The carries or results of a new loop, which take the place of the old one's."""
        new = tuple(Value(op, v.dtype, (), (loop, i)) for i, v in enumerate(old))
        self.new.update(zip(old, new, strict=True))
        return new


class PartsCloner(Cloner):
    """A cloner that puts two values, `parts`, in the place of those of some dtypes.

    A subclass says of which dtype they are, and how each such operation is done.
    """

    def __init__(self, buffers: Mapping[Buffer, Buffer] | None = None) -> None:
        super().__init__(buffers)
        self.parts: dict[int, tuple[Value, Value]] = {}  # by id of the old value

    def part(self, d: DType) -> DType | None:
        """The dtype of the parts of values of `d`; None: they stay whole."""
        raise NotImplementedError

    def parts_of(self, v: Value) -> tuple[Value, Value]:
        """The parts of an operand of the old kernel."""
        return self.parts[id(v)]

    def operands(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """What stands for several values: two for one in parts."""
        found: list[Value] = []
        for v in values:
            whole = self.part(v.dtype) is None
            found += (self.operand(v),) if whole else self.parts_of(v)
        return tuple(found)

    def positions(self, op: str, loop: Loop, old: tuple[Value, ...]) -> tuple[Value, ...]:
        """The carries or results of a new loop: two for one in parts."""
        new: list[Value] = []
        for v in old:
            part = self.part(v.dtype)
            dtypes = (v.dtype,) if part is None else (part, part)
            made = [Value(op, d, (), (loop, len(new) + i)) for i, d in enumerate(dtypes)]
            if part is None:
                self.new[v] = made[0]
            else:
                self.parts[id(v)] = made[0], made[1]
            new += made
        return tuple(new)

    def both(self, index: Value) -> tuple[Value, Value]:
        """Where two parts stand that are elements of their own, side by side."""
        first = index * 2
        second = first + 1
        self.emit(first)
        self.emit(second)
        return first, second


class _Ruled(Cloner):
    def __init__(self, rule: Rule, buffers: Mapping[Buffer, Buffer] | None) -> None:
        super().__init__(buffers)
        self._given = rule

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        return self._given(v, args)


def rewrite(kernel: Kernel, rule: Rule, buffers: Mapping[Buffer, Buffer] | None = None) -> Kernel:
    """The kernel with `rule` applied to every value in order, and buffers replaced."""
    cloner = _Ruled(rule, buffers)
    changed = tuple(cloner.buffers.get(b, b) for b in kernel.buffers)
    return kernel.with_body(cloner.block(kernel.body), buffers=changed)


class PointCloner(Cloner):
    """The values of a kernel as one of several points computes them that one new point does.

    `index`: what this point has for the index along `axis`; `inside`: whether there is such a point
    (None: certainly).
    """

    def __init__(self, axis: int, index: Value, inside: Value | None) -> None:
        super().__init__()
        self.axis, self.index, self.inside = axis, index, inside

    def operand(self, v: Value) -> Value:
        if v.op == "index" and v.axis == self.axis:
            return self.index
        return super().operand(v)


def unused_names(kernel: Kernel, names: Sequence[str]) -> tuple[str, ...]:
    """Names of parameters that the kernel does not have, like these."""
    taken = {*(b.name for b in kernel.buffers), *kernel.ints, *(n for n, _ in kernel.scalars)}

    def unused() -> Iterator[str]:
        for name in names:
            while name in taken:
                name += "_"
            yield name

    return tuple(unused())
