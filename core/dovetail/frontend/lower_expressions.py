"""Expressions of a kernel of loops, as values of the loop language."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..dtypes import DType, bool_, float64, int64
from ..errors import DovetailError, KernelError
from ..loops.language import (
    Effect,
    Loop,
    Value,
    const,
)
from ..ops.table import TABLE
from .builtin_names import (
    BINARY,
    COMPARED,
    UNARY,
    WORDS,
)
from .kernel_site import Access, Site, Tensor
from .source import Source, text_of
from .weak_types import (
    Weak,
    apply,
    as_dtype,
    both,
    choose,
    is_number,
    kind_of,
    truth,
    value_of,
)


class Outside:
    """Something that a name means where the kernel was written: a function, a module."""

    __slots__ = ("what",)

    def __init__(self, what: Any) -> None:
        self.what = what


class Unset:
    """What a name is that has no value on some way there. `why` says which."""

    __slots__ = ("why",)

    def __init__(self, why: str) -> None:
        self.why = why


class Expressions:
    """What expressions come to. Names are in `env`, `cond` says where the code runs at all."""

    def __init__(self, source: Source, site: Site, numbers: Callable[[Source, str], Any]) -> None:
        self.source, self.site = source, site
        self.env: dict[str, Any] = {}
        self.cond: Value | None = None
        self.effects: list[Effect | Value] | None = []
        self.loops: list[tuple[Loop, Value | None]] = []  # those around, and where each has rounds
        self.calls: list[Source] = []
        self._numbers = numbers  # of the outside: what an argument of a launch stands for

    # --- the way in
    def expr(self, node: ast.expr) -> Any:
        """What an expression is: a number, a tensor, a tuple, or something of the outside."""
        rule: Callable[[Any], Any] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if rule is None:
            self.lacks(node)
        try:
            return rule(node)
        except KernelError:
            raise
        except DovetailError as error:
            if "\n  File " in str(error):
                raise
            raise self.source.explained(node, error) from None
        except (ArithmeticError, TypeError, ValueError) as error:  # of Python's, on constants
            self.source.refuse(node, f"{text_of(node)}: {error}")

    def lacks(self, node: ast.AST) -> NoReturn:
        """Raises: KernelError: no kernel has this."""
        name = type(node).__name__
        self.source.refuse(node, f"a kernel has no {WORDS.get(name, repr(text_of(node)))}")

    def number(self, node: ast.expr) -> Any:
        """An expression that is a number."""
        found = self.expr(node)
        if is_number(found):
            return found
        self.source.refuse(node, f"{text_of(node)} is {described(found)}, where a number is meant")

    def integer(self, node: ast.expr) -> Value:
        """An expression that is an integer, as int64."""
        found = self.number(node)
        if kind_of(found) not in "iu":
            self.source.refuse(node, f"{text_of(node)} is no integer; write int(...)")
        return as_dtype(found, int64)

    # --- names and constants
    def _constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, bool | int | float | complex):
            return node.value
        self.source.refuse(node, f"a kernel has no {type(node.value).__name__}: {node.value!r}")

    def _name(self, node: ast.Name) -> Any:
        if node.id in self.env:
            found = self.env[node.id]
            if isinstance(found, Unset):
                self.source.refuse(node, f"{node.id} may have no value here: {found.why}")
            return found
        there, what = self.source.outside(node.id)
        if not there:
            self.source.refuse(node, f"{node.id} has no value here, nor outside of the kernel")
        return self._of_outside(node, what, node.id)

    def _of_outside(self, node: ast.expr, what: Any, name: str = "") -> Any:
        if isinstance(what, bool | int | float):
            return self._numbers(self.source, name) if name else what
        if isinstance(what, complex):
            return what
        if isinstance(what, tuple):
            return tuple(self._of_outside(node, x) for x in what)
        return Outside(what)

    def _tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.expr(x) for x in node.elts)

    def _attribute(self, node: ast.Attribute) -> Any:
        of, name = self.expr(node.value), node.attr
        if isinstance(of, Tensor):
            if name == "shape":
                return tuple(Weak("i", self.site.size(of, d)) for d in range(of.rank))
            if name in ("ndim", "dtype"):
                return of.rank if name == "ndim" else Outside(of.given.dtype)
            if name == "size":
                sizes = [Weak("i", self.site.size(of, d)) for d in range(of.rank)]
                total: Any = 1
                for n in sizes:
                    total = apply(TABLE["multiply"], total, n)
                return total
            self.source.refuse(
                node, f"a tensor has shape, ndim, size, dtype and elements in a kernel, no {name}"
            )
        if is_number(of) and name in ("real", "imag"):
            return apply(TABLE[name], of) if kind_of(of) == "c" else of if name == "real" else 0
        if isinstance(of, Outside):
            if not hasattr(of.what, name):
                self.source.refuse(node, f"{text_of(node.value)} has no {name}")
            return self._of_outside(node, getattr(of.what, name))
        self.source.refuse(node, f"{text_of(node)}: {described(of)} has no {name} in a kernel")

    # --- elements
    def _subscript(self, node: ast.Subscript) -> Any:
        of = self.expr(node.value)
        if isinstance(of, tuple):
            k = self.expr(node.slice)
            if type(k) is not int or not -len(of) <= k < len(of):
                self.source.refuse(node, f"{text_of(node)}: no such place of {len(of)}")
            return of[k]
        t, at = self.element(node)
        if "r" not in t.access:
            self.source.refuse(node, f"{t.name} is dt.Out: to read it, declare it dt.InOut")
        found = self.site.read(t, at)
        if t.access != "r" and self.effects is not None:
            self.effects.append(found)  # now: a store may follow
        return found

    def element(self, node: ast.Subscript) -> tuple[Tensor, Access]:
        """The tensor, and the place of its element, that a subscript names."""
        t = self.expr(node.value)
        if not isinstance(t, Tensor):
            self.source.refuse(
                node, f"{text_of(node.value)} is {described(t)}, and has no elements"
            )
        given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(i, ast.Slice) for i in given):
            self.lacks(next(i for i in given if isinstance(i, ast.Slice)))
        return t, self.place(node, t, given)

    def place(self, node: ast.expr, t: Tensor, given: Sequence[ast.expr]) -> Access:
        """The place of an element, under the condition that the code runs there."""
        if len(given) != t.rank:
            axes = f"{t.rank} ax{'i' if t.rank == 1 else 'e'}s"
            self.source.refuse(
                node, f"{text_of(node)}: {t.name} has {axes}, and {len(given)} indices are given"
            )
        place = [self._index(t, axis, i) for axis, i in enumerate(given)]
        when = both(self.cond, self._rounds(place))
        file = self.source.place(node)
        text = f"{self.source.called}, `{self.source.line(node)}` ({file}): {text_of(node)}"
        return self.site.access(t, place, when, node, lambda: text, self.effects)

    def _index(self, t: Tensor, axis: int, node: ast.expr) -> Value:
        found = self.number(node)
        if kind_of(found) not in "iu":
            self.source.refuse(
                node, f"{text_of(node)}: an index is an integer; write int({text_of(node)})"
            )
        if type(found) is int and found < 0:  # written so: from the end
            return self.site.size(t, axis) + found
        return as_dtype(found, int64)

    def _rounds(self, place: Sequence[Value]) -> Value | None:
        """Where the loops have rounds that a place does not depend on.

        It is read before them, where they may have none and the place be out of range.
        """
        found: Value | None = None
        waiting = [(loop, runs) for loop, runs in self.loops if runs is not None]
        if waiting:
            inner = _depends([*place, *([] if self.cond is None else [self.cond])])
            for loop, runs in waiting:
                if id(loop) not in inner:
                    found = both(found, runs)
        return found

    # --- operators
    def _binop(self, node: ast.BinOp) -> Any:
        name = BINARY.get(type(node.op))
        if name is None:
            self.source.refuse(
                node, "a kernel has no '@': write sum(a[i, k] * b[k, j] for k in ...)"
            )
        return self.combined(name, self.number(node.left), self.number(node.right))

    def combined(self, name: str, a: Any, b: Any) -> Any:
        """A binary operator on numbers, as on tensors."""
        if name == "pow" and type(b) is int and b == 2 and kind_of(a) != "b" and not is_known(a):
            return apply(TABLE["square"], a)
        if name == "pow" and isinstance(a, Weak) and type(b) is int and b < 0:
            a = Weak("f", a.cast(float64))  # as Python has it
        return apply(TABLE[name], a, b)

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        return apply(TABLE[UNARY[type(node.op)]], self.number(node.operand))

    def _compare(self, node: ast.Compare) -> Any:
        left, found = self.number(node.left), None
        for op, right in zip(node.ops, node.comparators, strict=True):
            name = COMPARED.get(type(op))
            if name is None:
                self.source.refuse(node, f"a kernel has no '{_WORD[type(op)]}'; compare numbers")
            other = self.number(right)
            one = apply(TABLE[name], left, other)
            found = one if found is None else self._anded(found, one)
            left = other
        return found

    def _anded(self, a: Any, b: Any) -> Any:
        if isinstance(a, bool) or isinstance(b, bool):
            return b if a is True else a if b is True else False
        return Weak("b", value_of(a) & value_of(b))

    def _boolop(self, node: ast.BoolOp) -> Any:
        """Each operand is looked at only where those before it do not decide."""
        ends = isinstance(node.op, ast.Or)  # the value that decides
        outer, found = self.cond, None
        try:
            for x in node.values:
                one = truth(self.number(x))
                if isinstance(one, bool):
                    if one is ends:
                        return ends if found is None else self._weak(found, ends)
                    continue
                found = one if found is None else (found | one if ends else found & one)
                self.cond = both(outer, ~found if ends else found)
        finally:
            self.cond = outer
        return (not ends) if found is None else Weak("b", found)

    def _weak(self, found: Value, ends: bool) -> Any:
        return Weak("b", found | const(True, bool_) if ends else found & const(False, bool_))

    def _ifexp(self, node: ast.IfExp) -> Any:
        c = truth(self.number(node.test))
        if isinstance(c, bool):
            return self.number(node.body if c else node.orelse)
        outer = self.cond
        try:
            self.cond = both(outer, c)
            a = self.number(node.body)
            self.cond = both(outer, ~c)
            b = self.number(node.orelse)
        finally:
            self.cond = outer
        return choose(c, a, b)


def wide(x: Any) -> DType:
    """The dtype of a number; of Python's as wide as they are."""
    return value_of(x).dtype if not isinstance(x, bool) else bool_


def is_known(x: Any) -> bool:
    return not isinstance(x, Value | Weak)


def unwrapped(what: Any) -> Any:
    """The function that a decorated one was made of."""
    return getattr(what, "__wrapped__", what)


def has_rounds(start: Value, stop: Value) -> Value | None:
    """Where a loop has rounds; None: everywhere."""
    if start.op == stop.op == "const" and start.number < stop.number:
        return None
    return start < stop


def _depends(values: Sequence[Value]) -> set[int]:
    """The ids of the loops in which something is that these values are made of."""
    found: set[int] = set()
    seen: set[int] = set()
    stack = list(values)
    while stack:
        v = stack.pop()
        if id(v) in seen:
            continue
        seen.add(id(v))
        if v.op in ("loopvar", "carry"):
            found.add(id(v.place[0]))
        elif v.op == "result":
            loop = v.place[0]
            stack += [loop.start, loop.stop, *loop.init, *loop.update]
        else:
            stack += v.args
    return found


def described(x: Any) -> str:
    if isinstance(x, Tensor):
        return "a tensor"
    if isinstance(x, tuple):
        return "a tuple"
    if isinstance(x, Outside):
        return f"the {type(x.what).__name__} {getattr(x.what, '__name__', '')}".rstrip()
    return "a number"


_WORD = {ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"}
