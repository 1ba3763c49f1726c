"""The cloners that all passes use to copy a kernel with changes.

A `Cloner` goes through statements in their order, so that scopes stay as they are. Its dict
`replacements` has the new values of old ones. A pass overrides `rewrite_value`, `operand` or other
methods with its changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .language import OPERANDS, Atomic, Block, Buffer, Loop, Statement, Store, Value

if TYPE_CHECKING:
    from ..dtypes import DType
    from .builder import Kernel

# (a value, its rewritten arguments) -> its replacement; None: the same operation on the arguments
RewriteRule = Callable[[Value, tuple[Value, ...]], Value | None]


class Cloner:
    """A cloner that copies a kernel into `statements`, each value after its operands."""

    def __init__(self, buffers: Mapping[Buffer, Buffer] | None = None) -> None:
        self.buffers = buffers or {}
        self.replacements: dict[Value, Value] = {}  # an old value -> its replacement
        self.emitted: set[Value] = set()
        self.statements: list[Statement] = []

    def operand(self, v: Value) -> Value:
        """Return the replacement of an operand of the old kernel."""
        return self.replacements.get(v, v)

    def operands(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return the replacements of several operands."""
        return tuple(self.operand(v) for v in values)

    def rewrite_value(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        """Return the replacement of a value, given its new arguments; None: its copy."""
        return None

    def block(self, block: Block) -> Block:
        """Return the copy of a block; its values become replacements of the old ones."""
        outer, self.statements = self.statements, []
        for s in block:
            if isinstance(s, Value):
                self.value(s)
            else:
                self.statements.append(self.loop(s) if isinstance(s, Loop) else self.effect(s))
        statements, self.statements = tuple(self.statements), outer
        return statements

    def value(self, v: Value) -> None:
        """Append a value's copy or replacement to the block, and record it as its replacement."""
        args = self.operands(v.args)
        new = self.replacements[v] = self.rewrite_value(v, args) or self.copy_with_args(v, args)
        self.emit(new)

    def copy_with_args(self, v: Value, args: tuple[Value, ...]) -> Value:
        """Return a copy of a value with other arguments."""
        if v.op != "load":
            return Value(v.op, v.dtype, args, v.attr)
        buffer = self.buffers.get(v.buffer, v.buffer)
        return Value("load", buffer.dtype, args, buffer)

    def emit(self, v: Value) -> None:
        """Append `v` to the open block after its missing operands; skip an emitted value."""
        if v.op in OPERANDS or v in self.emitted:
            return
        for a in v.args:
            self.emit(a)
        self.emitted.add(v)
        self.statements.append(v)

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        """Return the copy of a store or an atomic."""
        buffer = self.buffers.get(s.buffer, s.buffer)
        index, value = self.operand(s.index), self.operand(s.value)
        when = None if s.when is None else self.operand(s.when)
        if isinstance(s, Store):
            return Store(buffer, index, value, when)
        return Atomic(s.op, buffer, index, value, when)

    def copy_loop_head(self, old: Loop) -> Loop:
        """Return the copy of a loop without its body, carries, updates and results."""
        start, stop = self.operand(old.start), self.operand(old.stop)
        return Loop(old.kind, start, stop, old.combine, self.operands(old.init))

    def loop(self, old: Loop) -> Loop:
        """Return the copy of a loop with its body; the values of both become replacements."""
        new = self.copy_loop_head(old)
        self.copy_loop_body(old, new)
        return new

    def copy_loop_body(self, old: Loop, new: Loop) -> None:
        """Give a copied head the body, carries, updates and results of a loop."""
        new.carry = self.bind_loop_values("carry", new, old.carry)
        self.replacements[old.var] = new.var
        new.set_body(self.block(old.body))
        new.update = self.operands(old.update)
        new.results = self.bind_loop_values("result", new, old.results)

    def bind_loop_values(self, op: str, loop: Loop, old: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return a loop's new carries or results, and record them as replacements of the old."""
        new = tuple(Value(op, v.dtype, (), (loop, i)) for i, v in enumerate(old))
        self.replacements.update(zip(old, new, strict=True))
        return new


class PartsCloner(Cloner):
    """A cloner that replaces each value of some dtypes by two values, its `parts`.

    A subclass says of which dtype the parts are, and how to compute each operation on them.
    """

    def __init__(self, buffers: Mapping[Buffer, Buffer] | None = None) -> None:
        super().__init__(buffers)
        self.parts: dict[int, tuple[Value, Value]] = {}  # by id of the old value

    def part_dtype(self, d: DType) -> DType | None:
        """Return the dtype of the parts of values of `d`; None if these stay whole."""
        raise NotImplementedError

    def parts_of(self, v: Value) -> tuple[Value, Value]:
        """Return the parts of an operand of the old kernel."""
        return self.parts[id(v)]

    def operands(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return the replacements of several values: two for one in parts."""
        replacements: list[Value] = []
        for v in values:
            whole = self.part_dtype(v.dtype) is None
            replacements += (self.operand(v),) if whole else self.parts_of(v)
        return tuple(replacements)

    def bind_loop_values(self, op: str, loop: Loop, old: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return new carries or results of a loop, two for one in parts, and record them."""
        new: list[Value] = []
        for v in old:
            part = self.part_dtype(v.dtype)
            dtypes = (v.dtype,) if part is None else (part, part)
            own = [Value(op, d, (), (loop, len(new) + i)) for i, d in enumerate(dtypes)]
            if part is None:
                self.replacements[v] = own[0]
            else:
                self.parts[id(v)] = own[0], own[1]
            new += own
        return tuple(new)

    def part_indices(self, index: Value) -> tuple[Value, Value]:
        """Emit and return the indices 2 * index and 2 * index + 1 of a value's two parts."""
        first = index * 2
        second = first + 1
        self.emit(first)
        self.emit(second)
        return first, second


class _RuleCloner(Cloner):
    """A cloner that applies one function, the rule, to every value."""

    def __init__(self, rule: RewriteRule, buffers: Mapping[Buffer, Buffer] | None) -> None:
        super().__init__(buffers)
        self._rule = rule

    def rewrite_value(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        return self._rule(v, args)


def rewrite_kernel(
    kernel: Kernel, rule: RewriteRule, buffers: Mapping[Buffer, Buffer] | None = None
) -> Kernel:
    """Return the kernel with `rule` applied to every value in order, and buffers replaced."""
    cloner = _RuleCloner(rule, buffers)
    changed = tuple(cloner.buffers.get(b, b) for b in kernel.buffers)
    return kernel.with_body(cloner.block(kernel.body), buffers=changed)


class PointCloner(Cloner):
    """A cloner that computes the values of one of several points that a new point joins.

    `index`: this point's index along `axis`. `inside`: the condition that there is such a point
    (None: certainly). `first`: the first point, whose equal values this one reuses.
    """

    def __init__(
        self, axis: int, index: Value, inside: Value | None, first: PointCloner | None = None
    ) -> None:
        super().__init__()
        self.axis, self.index, self.inside, self.first = axis, index, inside, first
        if first is not None:
            self.statements, self.emitted = first.statements, first.emitted
            self.emit(index)

    def operand(self, v: Value) -> Value:
        """Return the point's index for the grid index along its axis, else the replacement."""
        if v.op == "index" and v.axis == self.axis:
            return self.index
        return super().operand(v)

    def rewrite_value(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        """Return the first point's value if its arguments are the same, else None."""
        if self.first is None:
            return None
        value = self.first.replacements[v]
        return value if all(a is b for a, b in zip(args, value.args, strict=True)) else None


def fresh_names(kernel: Kernel, names: Sequence[str]) -> tuple[str, ...]:
    """Return names like these that no parameter of the kernel has."""
    existing = {*(b.name for b in kernel.buffers), *kernel.ints, *(n for n, _ in kernel.scalars)}

    def pick() -> Iterator[str]:
        """Yield each name, with underscores appended while a parameter has it."""
        for name in names:
            while name in existing:
                name += "_"
            yield name

    return tuple(pick())
