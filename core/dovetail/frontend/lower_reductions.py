"""Generators that sum(), max() and their like take: reductions in canonical order."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ..dtypes import bool_, int64
from ..loops.builder import combine
from ..loops.language import (
    Loop,
    Store,
    Value,
    const,
    fold_loop,
    reduce_loop,
    where,
)
from ..ops.arithmetic import convert
from ..ops.table import TABLE
from .builtin_names import (
    REDUCTIONS,
)
from .lower_calls import Calls
from .lower_expressions import Outside, has_rounds, wide
from .source import text_of
from .weak_types import (
    Weak,
    as_dtype,
    both,
    truth,
)


class Generators(Calls):
    """What reductions of generators come to."""

    def _generatorexp(self, node: ast.GeneratorExp) -> Any:
        self.source.refuse(node, f"{text_of(node)}: give it to sum, max, min, any or all")

    def reduced(self, name: str, node: ast.GeneratorExp) -> Any:
        """A reduction in canonical order.

        Where indices are checked, they are so in a loop before: a reduction has no effects.
        """
        if self.site.careful and self.effects is not None:
            self._looked_at(node, 0)
        outer, self.effects = self.effects, None
        try:
            found, values = self._rounds_of(name, node, 0)
        finally:
            self.effects = outer
        if outer is not None:
            outer += values  # now: a store may follow
        return found

    def _rounds_of(self, name: str, node: ast.GeneratorExp, k: int) -> tuple[Any, list[Value]]:
        """What the `for`s from the k-th on come to, and the results of the loop."""
        start, stop = self._range_of(node, k)
        op, kept, made = TABLE[REDUCTIONS[name]], [], None

        def body(i: Value) -> tuple[Value, ...]:
            nonlocal kept, made
            fine = self._entered(node, k, i)
            inner: Any = (
                self._rounds_of(name, node, k + 1)[0]
                if k + 1 < len(node.generators)
                else self.number(node.elt)
            )
            made = inner if op.name not in ("any", "all") else truth(inner)
            casts, result = op.dtypes(name, [wide(made)], None)
            kept = [result]
            x = as_dtype(made, casts[0].compute)
            found = tuple(op.before(x, i))
            if fine is not None:
                identity = combine(op.combine, tuple(v.dtype for v in found)).identity
                found = tuple(where(fine, v, e) for v, e in zip(found, identity, strict=True))
            return found

        results = self._inside(lambda: reduce_loop(op.combine, start, stop, body))
        value = convert(op.after(results, stop - start), kept[0])
        if isinstance(made, Value) or op.name in ("any", "all"):
            return (value if op.name not in ("any", "all") else Weak("b", value)), list(results)
        return Weak(value.dtype.kind, value), list(results)

    def _inside(self, make: Callable[[], Any]) -> Any:
        """What `make` makes, whose names and conditions are its own."""
        env, cond, depth = dict(self.env), self.cond, len(self.loops)
        try:
            return make()
        finally:
            self.env, self.cond = env, cond
            del self.loops[depth:]

    def _range_of(self, node: ast.GeneratorExp, k: int) -> tuple[Value, Value]:
        """The bounds of a `for` of a generator; where the code does not run, there are none."""
        g = node.generators[k]
        call = g.iter
        f = self.expr(call.func) if isinstance(call, ast.Call) else None
        if g.is_async or not (isinstance(f, Outside) and f.what is range):
            self.source.refuse(node, f"{text_of(node)}: rounds are `for k in range(...)`")
        assert isinstance(call, ast.Call)
        if not isinstance(g.target, ast.Name) or not 1 <= len(call.args) <= 2:
            self.source.refuse(node, f"{text_of(node)}: write `for k in range(start, stop)`")
        ends = [self.integer(a) for a in call.args]
        start, stop = (const(0, int64), ends[0]) if len(ends) == 1 else ends
        return start, stop

    def _entered(self, node: ast.GeneratorExp, k: int, i: Value) -> Value | None:
        """Names the variable of a `for`; where its `if`s hold."""
        g = node.generators[k]
        assert isinstance(g.target, ast.Name)
        self.env[g.target.id] = Weak("i", i)
        loop = i.place[0]
        self.loops.append((loop, has_rounds(loop.start, loop.stop)))
        fine: Value | None = None
        for test in g.ifs:
            one = truth(self.number(test))
            c = const(one, bool_) if isinstance(one, bool) else one
            fine = c if fine is None else fine & c
            self.cond = both(self.cond, c)
        return fine

    def _looked_at(self, node: ast.GeneratorExp, k: int) -> None:
        """Adds a loop that checks the indices of a generator."""
        start, stop = self._range_of(node, k)
        assert self.effects is not None
        outer, self.effects = self.effects, []

        def body(i: Value) -> Any:
            self._entered(node, k, i)
            if k + 1 < len(node.generators):
                self._looked_at(node, k + 1)
            else:
                self.expr(node.elt)
            return (), tuple(self.effects or ())

        try:
            loop = self._inside(lambda: fold_loop(start, stop, (), body))
        finally:
            self.effects = outer
        if any(isinstance(e, Store | Loop) for e in loop.effects):
            outer.append(loop)
