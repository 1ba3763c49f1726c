"""Statements of a kernel of loops: names, stores, branches, loops, as the loop language has them.

There are no branches in the loop language: what stands behind an `if` runs under a condition, which
loads and stores take as theirs, and names get one value or the other. `break`, `continue` and
`return` are names, too: of what keeps the rest from running.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..errors import DovetailError, KernelError
from ..loops.language import Atomic, Effect, Store, Value
from . import dsl
from .builtin_names import BINARY
from .kernel_site import Access, Tensor
from .lower_expressions import Outside, Unset
from .lower_reductions import Generators
from .source import text_of
from .weak_types import (
    both,
    choose,
    is_number,
    stored,
    truth,
)

CONTINUE, BREAK, RETURN, RESULT = "%continue", "%break", "%return", "%result"
FLAGS = (CONTINUE, BREAK, RETURN)
Flag = bool | Value


class Statements(Generators):
    """What statements do. `around`: of each loop that the code is in "range" or "grid"."""

    around: list[str]

    def block(self, body: Sequence[ast.stmt]) -> None:
        """Runs statements in order."""
        for k, s in enumerate(body):
            before = self._flags()
            self.statement(s)
            stop = self._stopped()
            if stop is True:
                return
            if isinstance(stop, Value) and body[k + 1 :] and self._flags() != before:
                self._guarded(~stop, partial(self.block, body[k + 1 :]))
                return

    def statement(self, node: ast.stmt) -> None:
        """Runs one statement."""
        name = f"_{type(node).__name__.lower()}_"
        rule: Callable[[Any], None] | None = getattr(self, name, None)
        if rule is None:
            self.lacks(node)
        try:
            rule(node)
        except KernelError:
            raise
        except DovetailError as error:
            if "\n  File " in str(error):
                raise
            raise self.source.explained(node, error) from None

    def _pass_(self, node: ast.Pass) -> None:
        pass

    def _expr_(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return
        if isinstance(node.value, ast.Call):
            f = self.expr(node.value.func)
            if isinstance(f, Outside) and id(f.what) in dsl.ATOMICS:
                self._atomic(node.value, dsl.ATOMICS[id(f.what)])
                return
            if isinstance(f, Outside) and self.is_users(f.what):
                self.expr(node.value)
                return
        self.source.refuse(node, f"{text_of(node)} does nothing; assign it, or store it")

    # --- names and elements
    def _assign_(self, node: ast.Assign) -> None:
        value = self.expr(node.value)
        for target in node.targets:
            self.assign(target, value)

    def _annassign_(self, node: ast.AnnAssign) -> None:
        self.source.refuse(node, f"{text_of(node)}: names have no types; cast: dt.float32(...)")

    def assign(self, target: ast.expr, value: Any) -> None:
        """Gives a name or an element a value."""
        if isinstance(target, ast.Name):
            if isinstance(self.env.get(target.id), Tensor):
                self.source.refuse(target, f"{target.id} is a tensor; write to its elements")
            self.env[target.id] = value
        elif isinstance(target, ast.Tuple) and isinstance(value, tuple):
            if len(target.elts) != len(value):
                self.source.refuse(target, f"{len(value)} values for {len(target.elts)} names")
            for t, v in zip(target.elts, value, strict=True):
                self.assign(t, v)
        elif isinstance(target, ast.Subscript):
            self._store(target, value, *self.element(target))
        else:
            self.source.refuse(target, f"{text_of(target)}: write to a name or to x[i, j]")

    def _store(self, target: ast.Subscript, value: Any, t: Tensor, at: Access) -> None:
        self._require_written(target, t)
        self.site.stores.setdefault(t.position, []).append(target)
        if not is_number(value):
            self.source.refuse(target, f"{text_of(target)}: only numbers are stored")
        self._effects(target).append(
            Store(t.buffer, at.linear, self._element(target, value, t), at.when)
        )

    def _element(self, node: ast.expr, value: Any, t: Tensor) -> Value:
        try:
            return stored(value, t.given.dtype)
        except DovetailError as error:
            raise self.source.explained(node, error) from None

    def _require_written(self, node: ast.expr, t: Tensor) -> None:
        if "w" not in t.access:
            self.source.refuse(node, f"{t.name} is dt.In: to write it, declare it dt.Out or InOut")

    def _effects(self, node: ast.AST) -> list[Effect | Value]:
        if self.effects is None:
            self.source.refuse(
                node, "nothing is written inside of sum(), max(), min(), any(), all()"
            )
        return self.effects

    def _augassign_(self, node: ast.AugAssign) -> None:
        name = BINARY.get(type(node.op))
        if name is None:
            self.lacks(node)
            return
        if isinstance(node.target, ast.Subscript):
            t, at = self.element(node.target)
            if t.access != "rw":
                self.source.refuse(node, f"{t.name} is read and written: declare it dt.InOut")
            old = self.site.read(t, at)
            self._effects(node).append(old)
            self._store(node.target, self.combined(name, old, self.number(node.value)), t, at)
            return
        value = self.combined(name, self.number(node.target), self.number(node.value))
        self.assign(node.target, value)

    def _atomic(self, node: ast.Call, op: str) -> None:
        text = text_of(node)
        if len(node.args) != 3 or node.keywords:
            self.source.refuse(node, f"{text}: takes a tensor, a place and a value")
        t = self.expr(node.args[0])
        if not isinstance(t, Tensor):
            self.source.refuse(node, f"{text}: the first argument is a parameter that is a tensor")
        self._require_written(node, t)
        d = t.given.dtype
        if not d.is_integer or d.itemsize < 4:
            self.source.refuse(
                node, f"{text}: atomics are of int32, int64, uint32 and uint64, not of {d.name}: "
                "sums of floats have no order here; see dt.index_add",
            )  # fmt: skip
        place = node.args[1]
        given = place.elts if isinstance(place, ast.Tuple) else [place]
        at = self.place(node, t, given)
        value = self._element(node, self.number(node.args[2]), t)
        self._effects(node).append(Atomic(op, t.buffer, at.linear, value, at.when))

    # --- branches
    def _if_(self, node: ast.If) -> None:
        c = truth(self.number(node.test))
        if isinstance(c, bool):
            self.block(node.body if c else node.orelse)
            return
        outer = self.env
        yes = self._branch(c, node.body)
        self.env = outer
        no = self._branch(~c, node.orelse)
        self.env = self._merged(c, yes, no)

    def _branch(self, c: Value, body: Sequence[ast.stmt]) -> dict[str, Any]:
        cond, env = self.cond, self.env
        self.env, self.cond = dict(env), both(cond, c)
        try:
            self.block(body)
            return self.env
        finally:
            self.env, self.cond = env, cond

    def _guarded(self, c: Value, run: Callable[[], None]) -> None:
        """Runs something where nothing has stopped the code yet, which `c` says."""
        outer, cond = self.env, self.cond
        self.env, self.cond = {**outer, **dict.fromkeys(FLAGS, False)}, both(cond, c)
        try:
            run()
            inner = self.env
        finally:
            self.env, self.cond = outer, cond
        self.env = self._merged(c, inner, outer)

    def _merged(self, c: Value, yes: dict[str, Any], no: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in {**yes, **no}:
            a: Any = yes.get(name)
            b: Any = no.get(name)
            if name in FLAGS:
                found[name] = _either(c, a or False, b or False)
            elif name == RESULT and (a is None or b is None):
                found[name] = b if a is None else a
            elif a is b:
                found[name] = a
            elif is_number(a) and is_number(b):
                try:
                    found[name] = choose(c, a, b)
                except DovetailError as error:
                    found[name] = Unset(str(error))
            elif isinstance(a, Unset) or isinstance(b, Unset):
                found[name] = a if isinstance(a, Unset) else b
            else:
                found[name] = Unset("it is assigned in one branch of an `if` alone")
        return found

    # --- what stops
    def _flags(self) -> tuple[Any, ...]:
        return tuple(self.env.get(f, False) for f in FLAGS)

    def _stopped(self) -> Flag:
        found: Flag = False
        for f in self._flags():
            if f is True:
                return True
            if isinstance(f, Value):
                found = f if found is False else found | f  # type: ignore[operator]  # a Value
        return found

    def _break_(self, node: ast.Break) -> None:
        if self.around[-1] == "grid":
            self.source.refuse(node, "'break' leaves a loop over range() alone; see 'continue'")
        self.env[BREAK] = True

    def _continue_(self, node: ast.Continue) -> None:
        self.env[CONTINUE] = True

    def _return_(self, node: ast.Return) -> None:
        if node.value is not None:
            if not self.calls:
                self.source.refuse(node, "a kernel returns nothing: write to a dt.Out parameter")
            self.env[RESULT] = self.expr(node.value)
        self.env[RETURN] = True


def _either(c: Value, a: Flag, b: Flag) -> Flag:
    """`a` where `c`, else `b`."""
    if a is b:
        return a
    if isinstance(a, bool):
        if isinstance(b, bool):
            return c if a else ~c
        return c | b if a else ~c & b
    if isinstance(b, bool):
        return ~c | a if b else c & a
    return (c & a) | (~c & b)
