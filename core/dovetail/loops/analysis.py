"""What can be read off a kernel: how indices move, what differs between points, how long loops are.

Passes and backends choose by these answers, so each question is answered in one place.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from ..dtypes import DType, int64
from .language import Atomic, Block, Loop, Store, Value, walk

if TYPE_CHECKING:
    from .builder import Kernel

# How much a value grows when a variable does by one: by so many; by as much everywhere, which is
# known when the kernel runs ("any"); or not evenly.
Stride = int | Literal["any"] | None
WORST = 8  # steps of a fold from which it pays to ask whether more of them change anything


def grid_index(axis: int, dtype: DType = int64) -> Value:
    """The index along an axis of the grid, as a variable to ask about."""
    return Value("index", dtype, (), axis)


def values(block: Block) -> Iterator[Value]:
    """The values that a block and the loops in it compute, in order."""
    return (s for s in walk(block) if isinstance(s, Value))


def loads(block: Block) -> list[Value]:
    """The loads that stand in a block itself, not in a loop of it."""
    return [s for s in block if isinstance(s, Value) and s.op == "load"]


def reductions(kernel: Kernel) -> list[Loop]:
    """The reductions that stand in no other loop."""
    return [s for s in kernel.body if isinstance(s, Loop) and s.kind == "reduce"]


# --- along a variable: the index of an axis, or a loop's


def stride_along(block: Block, variable: Value) -> Callable[[Value], Stride]:
    """A function that gives the stride of each value in `block` along `variable`.

    What is computed outside of the block does not depend on it.
    """
    known: dict[int, Stride] = {}

    def stride(v: Value) -> Stride:
        return 1 if _is(v, variable) else known.get(id(v), 0)

    for s in walk(block):
        if isinstance(s, Loop):
            known.update((id(v), None) for v in (*s.carry, *s.results))
        elif isinstance(s, Value):
            known[id(s)] = _stride(s, [stride(a) for a in s.args])
    return stride


def _is(v: Value, variable: Value) -> bool:
    return v is variable or (v.op == variable.op and v.attr == variable.attr)


def _stride(v: Value, parts: list[Stride]) -> Stride:
    if all(p == 0 for p in parts):
        return 0
    if v.op == "where" and parts[0] == 0 and parts[1] == parts[2] != "any":
        return parts[1]
    if v.op not in ("add", "sub", "mul") or None in parts:
        return None
    a, b = parts
    if v.op == "mul":
        if 0 not in parts:
            return None
        stride, factor = (a, v.args[1]) if b == 0 else (b, v.args[0])
        known = isinstance(stride, int) and factor.op == "const"
        return stride * int(factor.number) if known and isinstance(stride, int) else "any"
    if isinstance(a, int) and isinstance(b, int):
        return a + b if v.op == "add" else a - b
    return "any"


def varies_along(block: Block, variable: Value, memory: bool = False) -> Callable[[Value], bool]:
    """A function that says whether a value in `block` may depend on `variable`.

    What loops carry may, and with `memory` whatever is loaded: something else could have been
    written there.
    """
    found: set[int] = set()

    def varies(v: Value) -> bool:
        return id(v) in found or _is(v, variable)

    for s in walk(block):
        if isinstance(s, Loop):
            found.update(id(v) for v in (*s.carry, *s.results))
        elif isinstance(s, Value) and ((memory and s.op == "load") or any(map(varies, s.args))):
            found.add(id(s))
    return varies


def settles(loop: Loop) -> bool:
    """Whether a fold may end early: once a step leaves the bits of all that it carries as they are.

    Then every later one would, too, since a step depends on nothing else. It is said of folds as
    long as the worst case needs: of divisions by digits, Euclid's algorithm, powers by squaring.
    """
    ends = (loop.start, loop.stop)
    if loop.kind != "fold" or loop.effects or any(v.op != "const" for v in ends):
        return False
    if loop.stop.number - loop.start.number < WORST:
        return False
    varies = varies_along(loop.body, loop.var)
    plain = all(isinstance(s, Value) and s.op != "load" for s in loop.body)
    return plain and not any(map(varies, loop.update))


def along_rows(kernel: Kernel) -> bool:
    """Whether a reduction reads neighbours one after the other: lanes would read them at once."""
    for loop in reductions(kernel):
        stride = stride_along(loop.body, loop.var)
        if any(stride(v.index) == 1 for v in loads(loop.body)):
            return True
    return False


def shareable(kernel: Kernel) -> bool:
    """Whether a group of work items can do a point.

    A reduction is there to be shared, and all of them may run what is not.
    """
    folds = [s for s in kernel.body if isinstance(s, Loop) and s.kind == "fold"]
    effects = any(isinstance(s, (Store, Atomic)) for s in walk(tuple(folds)))
    return bool(reductions(kernel)) and not effects


# --- how long loops are


def trip_count(loop: Loop, ints: Mapping[str, int], at: int | None = None) -> int | None:
    """How many iterations a loop has in a launch with these integers.

    None where its bounds depend on more. `at`: what to take every grid index and loop variable for,
    where a rough number is enough: of bounds that memory chooses between it is the farther.
    """
    start, stop = _number(loop.start, ints, at, min), _number(loop.stop, ints, at, max)
    return None if start is None or stop is None else max(0, stop - start)


def _number(
    v: Value, ints: Mapping[str, int], at: int | None, far: Callable[[int, int], int]
) -> int | None:
    """`far`: which of two numbers it is where memory says which, and `at` is given."""
    if v.dtype.kind not in "biu":
        return None  # a float on which an int depends, as in range(int(x % 4.0))
    if v.op == "const":
        return int(v.number)
    if v.op == "param":
        return ints.get(v.name)
    if v.op in ("index", "loopvar"):
        return at
    rule = _RULES.get(v.op)
    args = [_number(a, ints, at, far) for a in v.args]
    if v.op == "where" and at is not None and args[0] is None:
        known = [n for n in args[1:] if n is not None]
        return far(*known) if len(known) == 2 else None
    return None if rule is None or None in args else int(rule(*args))


_RULES: dict[str, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "lt": operator.lt,
    "le": operator.le,
    "where": lambda c, a, b: a if c else b,
}


def reduces_long(kernel: Kernel, ints: Mapping[str, int], least: int) -> bool:
    """Whether an outermost reduction has `least` iterations or more, or bounds that are computed:
    those of several axes at once are, and are taken for long."""
    for loop in reductions(kernel):
        count = trip_count(loop, ints)
        plain = {loop.start.op, loop.stop.op} <= {"param", "const"}
        if not plain or count is None or count >= least:
            return True
    return False
