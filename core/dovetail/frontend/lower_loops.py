"""Loops of a kernel of loops, and functions of the user's, which stand where they are called."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import bool_, int64
from ..errors import DovetailError
from ..loops.language import Effect, Loop, Value, const, map_loop, quo, where
from . import dsl
from .lower_calls import DEEP
from .lower_expressions import Outside, Unset, has_rounds
from .lower_statements import BREAK, CONTINUE, FLAGS, RESULT, RETURN, Statements
from .source import Source, text_of
from .weak_types import (
    Carried,
    Weak,
    as_dtype,
    carried,
    entering,
    is_number,
    is_same,
    joined,
    leaving,
)

ROUNDS = 16  # looks at a loop's body until the dtypes of what it carries are known


class Functions(Statements):
    """What functions of the user's come to."""

    def inlined(self, node: ast.Call, f: types.FunctionType) -> Any:
        """What a function of the user's gives: its text stands for the call."""
        if len(self.calls) >= DEEP:
            self.source.refuse(node, f"{text_of(node)}: functions call each other {DEEP} deep")
        source = Source(f, self.source.called)
        given = [self.expr(a) for a in node.args]
        named = {str(k.arg): self.expr(k.value) for k in node.keywords}
        env = self._bound(node, source, given, named)
        before = self.env, self.source
        self.calls.append(self.source)
        self.env, self.source = env, source
        try:
            self.block(source.tree.body)
            return self.env.get(RESULT, Outside(None))
        finally:
            self.env, self.source = before
            self.calls.pop()

    def _bound(
        self, node: ast.Call, source: Source, given: list[Any], named: dict[str, Any]
    ) -> dict[str, Any]:
        a = source.tree.args
        names = [x.arg for x in (*a.posonlyargs, *a.args)]
        defaults = getattr(source.function, "__defaults__", None) or ()
        env = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
        env |= dict(zip(names, given, strict=False)) | named
        if a.vararg or a.kwarg or a.kwonlyargs or len(given) > len(names) or {*env} != {*names}:
            self.source.refuse(
                node, f"{text_of(node)}: {source.name} takes ({', '.join(names)}), by place or name"
            )
        return {**env, RETURN: False}


class Rounds(Functions):
    """What loops come to."""

    def _for_(self, node: ast.For) -> None:
        if node.orelse:
            self.source.refuse(node, "a kernel has no 'else' behind 'for'")
        if isinstance(node.iter, ast.Tuple):
            self._unrolled(node, self.expr(node.iter))
            return
        f = self.expr(node.iter.func) if isinstance(node.iter, ast.Call) else None
        if isinstance(f, Outside) and f.what is range:
            self._range(node)
        elif isinstance(f, Outside) and f.what is dsl.grid:
            self._map(node)
        elif f is None and isinstance(found := self.expr(node.iter), tuple):
            self._unrolled(node, found)
        else:
            self.source.refuse(
                node, "rounds are `for k in range(...)` or, independent, `for i, j in dt.grid(...)`"
            )

    def _unrolled(self, node: ast.For, over: tuple[Any, ...]) -> None:
        """Rounds over what is known while the kernel is made: each is written out."""
        outer = {f: self.env.get(f) for f in (CONTINUE, BREAK)}
        self.env |= {CONTINUE: False, BREAK: False}

        def round_(k: int) -> None:
            if k == len(over):
                return
            self.env[CONTINUE] = False
            self.assign(node.target, over[k])
            self.block(node.body)
            self.env[CONTINUE] = False
            stop = self._stopped()
            if isinstance(stop, Value):
                self._guarded(~stop, lambda: round_(k + 1))
            elif not stop:
                round_(k + 1)

        self.around.append("range")
        round_(0)
        self.around.pop()
        self._restore(outer)

    def _restore(self, flags: dict[str, Any]) -> None:
        for name, value in flags.items():
            self.env.pop(name, None)
            if value is not None:
                self.env[name] = value

    def _range(self, node: ast.For) -> None:
        """A sequential loop, which carries the names that it assigns."""
        call = node.iter
        assert isinstance(call, ast.Call)
        if not isinstance(node.target, ast.Name) or not 1 <= len(call.args) <= 3 or call.keywords:
            self.source.refuse(node, "write `for k in range(start, stop)`, with one name")
        ends = [self.integer(a) for a in call.args]
        start = const(0, int64) if len(ends) == 1 else ends[0]
        stop, step = ends[-1] if len(ends) == 1 else ends[1], 1
        if len(ends) == 3:
            if ends[2].op != "const" or ends[2].number == 0:
                self.source.refuse(node, "the step of range() is written as a number, not 0")
            step = int(ends[2].number)
        first, last = (start, stop) if step == 1 else (const(0, int64), _rounds(start, stop, step))
        if self.cond is not None:  # where the code does not run, there are no rounds
            last = where(self.cond, last, first)
        value = lambda k: k if step == 1 else start + k * step  # noqa: E731
        assigned = _assigned(node.body)
        names = [n for n in assigned if is_number(self.env.get(n))]
        kinds: dict[str, Carried] = {n: carried(self.env[n]) for n in names}
        flags = [
            f for f, kind in ((BREAK, ast.Break), (RETURN, ast.Return)) if _has(node.body, kind)
        ]
        for _ in range(ROUNDS):
            loop, after, effects = self._attempt(node, first, last, value, kinds, flags)
            try:
                found = {n: joined(kinds[n], after[n]) for n in names}
            except DovetailError as error:
                raise self.source.explained(node, error) from None
            if all(is_same(found[n], kinds[n]) for n in names):
                break
            kinds = found
        else:
            self.source.refuse(node, "what this loop carries has no dtype that stays")
        if effects and self.effects is not None:
            self.effects.append(loop)
        for name in assigned:
            if name not in names:
                self.env[name] = Unset("it is assigned in a loop that may have no rounds")
        self.env[node.target.id] = Unset("it is the variable of a loop that is over")
        for k, name in enumerate(names):
            self.env[name] = leaving(loop.results[k], kinds[name])
        for k, name in enumerate(flags, len(names)):
            if name == RETURN:
                self.env[RETURN] = loop.results[k]

    def _attempt(
        self, node: ast.For, first: Value, last: Value, value: Callable[[Value], Value],
        kinds: dict[str, Carried], flags: Sequence[str],
    ) -> tuple[Loop, dict[str, Any], list[Effect | Value]]:  # fmt: skip
        """The loop, if what it carries is of these kinds; what names are after a round."""
        assert isinstance(node.target, ast.Name)
        off = const(False, bool_)
        held = [entering(self.env[n], kind) for n, kind in kinds.items()]
        loop = Loop("fold", first, last, init=(*held, *(off for _ in flags)))
        loop.carry = tuple(Value("carry", v.dtype, (), (loop, i)) for i, v in enumerate(loop.init))
        outer, cond, effects = self.env, self.cond, self.effects
        inside = {**outer, **dict.fromkeys(FLAGS, False)}
        if RETURN in flags and self.calls:
            self.source.refuse(node, "'return' inside of a loop of a function: break, then return")
        for k, (name, kind) in enumerate(kinds.items()):
            inside[name] = leaving(loop.carry[k], kind)
        inside[node.target.id] = Weak("i", value(loop.var))
        self.env, self.cond = inside, None
        self.effects = None if effects is None else []
        self.loops.append((loop, has_rounds(first, last)))
        self.around.append("range")
        stop: Value | None = None
        for k in range(len(kinds), len(loop.carry)):
            stop = loop.carry[k] if stop is None else stop | loop.carry[k]
        try:
            if stop is None:
                self.block(node.body)
            else:
                before = {f: loop.carry[k] for k, f in enumerate(flags, len(kinds))}
                self._guarded(~stop, lambda: self.block(node.body))
                for f, was in before.items():
                    now = self.env[f]
                    self.env[f] = (
                        was | now if isinstance(now, Value) else const(True, bool_) if now else was
                    )
            after, made = self.env, self.effects or []
        finally:
            self.env, self.cond, self.effects = outer, cond, effects
            self.loops.pop()
            self.around.pop()
        updates = []
        for n, kind in kinds.items():
            if not is_number(after[n]):
                why = after[n].why if isinstance(after[n], Unset) else "it is no number"
                self.source.refuse(node, f"{n} may have no value after a round: {why}")
            updates.append(entering(after[n], joined(kind, after[n])))
        for f in flags:
            now = after[f]
            updates.append(now if isinstance(now, Value) else const(now, bool_))
        loop.update, loop.effects = tuple(updates), tuple(made)  # type: ignore[arg-type]  # Values too
        loop.results = tuple(
            Value("result", v.dtype, (), (loop, i)) for i, v in enumerate(loop.init)
        )
        return loop, after, made

    def _map(self, node: ast.For) -> None:
        """Independent rounds inside of a point."""
        axes, names = self.axes(node)
        changed = [n for n in _assigned(node.body) if is_number(self.env.get(n))]
        if changed:
            self.source.refuse(
                node,
                f"{changed[0]} has a value before and is assigned in rounds of dt.grid, which are "
                "independent; use range(), or sum() and its like",
            )
        effects = self._effects(node)
        cond = self.cond
        outer = self.env

        def nest(k: int, inside: dict[str, Any]) -> list[Effect | Value]:
            if k == len(axes):
                self.env = inside
                found: list[Effect | Value] = []
                self.effects = found
                self.block(node.body)
                return found
            start, stop = axes[k]
            last = stop if cond is None or k else where(cond, stop, start)

            def body(i: Value) -> list[Effect | Value]:
                self.loops.append((i.place[0], has_rounds(start, last)))
                return nest(k + 1, {**inside, names[k]: Weak("i", i)})

            return [map_loop(start, last, body)]

        depth = len(self.loops)
        self.around.append("grid")
        try:
            self.cond = None
            made = nest(0, {**outer, **dict.fromkeys(FLAGS, False)})
        finally:
            self.env, self.effects, self.cond = outer, effects, cond
            del self.loops[depth:]
            self.around.pop()
        effects += made

    def axes(self, node: ast.For) -> tuple[list[tuple[Value, Value]], list[str]]:
        """Start and stop of each axis of a `dt.grid`, and the names of its indices."""
        call = node.iter
        assert isinstance(call, ast.Call)
        given: list[Any] = []
        for a in call.args:
            if isinstance(a, ast.Starred):
                found = self.expr(a.value)
                if not isinstance(found, tuple):
                    self.source.refuse(node, f"{text_of(a)}: write *x.shape")
                given += found
            else:
                given.append(self.expr(a))
        if not given or call.keywords:
            self.source.refuse(node, "dt.grid takes an extent, or (start, stop), for each axis")
        axes = [self._axis(node, g) for g in given]
        target = node.target
        several = isinstance(target, ast.Tuple) and len(axes) > 1
        elts = target.elts if several and isinstance(target, ast.Tuple) else [target]
        if len(elts) != len(axes) or not all(isinstance(e, ast.Name) for e in elts):
            self.source.refuse(
                node, f"{text_of(target)}: dt.grid has {len(axes)} axes, each a name"
            )
        return axes, [e.id for e in elts if isinstance(e, ast.Name)]

    def _axis(self, node: ast.For, given: Any) -> tuple[Value, Value]:
        ends = given if isinstance(given, tuple) else (0, given)
        if len(ends) != 2 or not all(is_number(x) for x in ends):
            self.source.refuse(node, "an axis of dt.grid is an extent or (start, stop)")
        found = []
        for x in ends:
            if not isinstance(x, int | Weak | Value) or (isinstance(x, Weak) and x.kind == "f"):
                self.source.refuse(node, "the extents of dt.grid are integers")
            found.append(as_dtype(x, int64))
        return found[0], found[1]


def _rounds(start: Value, stop: Value, step: int) -> Value:
    """How many rounds range(start, stop, step) has."""
    far = stop - start if step > 0 else start - stop
    size = abs(step)
    return where(const(0, int64) < far, quo(far + (size - 1), size), const(0, int64))


def _assigned(body: Sequence[ast.stmt]) -> list[str]:
    """The names that statements assign, in order."""
    found: dict[str, None] = {}
    for s in body:
        for node in ast.walk(s):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found[node.id] = None
    inner = {
        t.id
        for s in body
        for node in ast.walk(s)
        if isinstance(node, ast.comprehension)
        for t in ast.walk(node.target)
        if isinstance(t, ast.Name)
    }
    return [n for n in found if n not in inner]


def _has(body: Sequence[ast.stmt], kind: type[ast.stmt]) -> bool:
    """Whether such a statement stands there; a `break` of an inner loop is its own."""
    stack: list[ast.AST] = list(body)
    while stack:
        s = stack.pop()
        if isinstance(s, kind):
            return True
        if kind is ast.Break and isinstance(s, ast.For):
            continue
        stack += ast.iter_child_nodes(s)
    return False
