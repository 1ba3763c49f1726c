"""Analysis of kernels: strides of indices, dependence on a variable, lengths of loops.

Passes and backends choose by these answers, so each question is answered in one place.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from ..dtypes import DType, bool_, int64
from .language import Atomic, Block, Loop, Statement, Store, Value, walk

if TYPE_CHECKING:
    from .builder import Kernel

Stride = int | Literal["any"] | None
"""The increment of a value when a variable grows by one.

It is a number; "any" if it is constant, but only known when the kernel runs; None if it is not
constant.
"""
EARLY_EXIT_STEPS_MIN = 8  # shorter folds cost less than the test whether a step changed anything


def grid_index(axis: int, dtype: DType = int64) -> Value:
    """Return the index along an axis of the grid, as a variable for the functions below."""
    return Value("index", dtype, (), axis)


def values(block: Block) -> Iterator[Value]:
    """Return an iterator over the values that a block and its loops compute, in order."""
    return (s for s in walk(block) if isinstance(s, Value))


def loads(block: Block) -> list[Value]:
    """Return the loads that stand in a block itself, not in a loop of it."""
    return [s for s in block if isinstance(s, Value) and s.op == "load"]


def reductions(kernel: Kernel) -> list[Loop]:
    """Return the reductions that stand in no other loop."""
    return [s for s in kernel.body if isinstance(s, Loop) and s.kind == "reduce"]


def fold_nest(kernel: Kernel, with_branches: bool = False) -> list[Loop]:
    """Return a kernel's nested folds, outermost first; [] for other loops or stores in a loop.

    Other loops: several in one body, and maps and reductions. Stores: atomics, too.

    - `with_branches`: True if there may be branches beside the folds.
    """
    nest: list[Loop] = []
    while loops := [s for s in (nest[-1].body if nest else kernel.body) if isinstance(s, Loop)]:
        if with_branches and not (loops := [s for s in loops if not is_branch(s)]):
            break
        loop, *others = loops
        if others or loop.kind != "fold" or any(isinstance(s, (Store, Atomic)) for s in loop.body):
            return []
        nest.append(loop)
    return nest


# --- along a variable: the index of an axis, or a loop's


def stride_along(block: Block, variable: Value) -> Callable[[Value], Stride]:
    """Return a function that gives the stride of each value in `block` along `variable`.

    A value that is computed outside of the block does not depend on the variable: its stride is 0.

    - `block`: the statements.
    - `variable`: a grid index or a loop variable.
    """
    strides: dict[int, Stride] = {}

    def stride(v: Value) -> Stride:
        """Return the stride of `v` along the variable; 0 for values computed outside of `block`."""
        return 1 if _is_same_index(v, variable) else strides.get(id(v), 0)

    for s in walk(block):
        if isinstance(s, Loop):
            strides.update((id(v), None) for v in (*s.carry, *s.results))
        elif isinstance(s, Value):
            strides[id(s)] = _stride(s, [stride(a) for a in s.args])
    return stride


def _is_same_index(v: Value, variable: Value) -> bool:
    """Return True if `v` is `variable`, or another object for the same index."""
    return v is variable or (v.op == variable.op and v.attr == variable.attr)


def _stride(v: Value, strides: list[Stride]) -> Stride:
    """Return the stride of an operation from those of its arguments; None if it is not constant."""
    if all(p == 0 for p in strides):
        return 0
    if v.op == "where" and strides[0] == 0 and strides[1] == strides[2] != "any":
        return strides[1]
    if v.op not in ("add", "sub", "mul") or None in strides:
        return None
    a, b = strides
    if v.op == "mul":
        if 0 not in strides:
            return None
        stride, factor = (a, v.args[1]) if b == 0 else (b, v.args[0])
        is_constant = isinstance(stride, int) and factor.op == "const"
        return stride * int(factor.number) if is_constant and isinstance(stride, int) else "any"
    if isinstance(a, int) and isinstance(b, int):
        return a + b if v.op == "add" else a - b
    return "any"


def varies_along(block: Block, variable: Value, memory: bool = False) -> Callable[[Value], bool]:
    """Return a function that tells if a value in `block` may depend on `variable`.

    The carries and results of loops may. With `memory` every loaded value may, too: another store
    could have changed that element.

    - `block`: the statements.
    - `variable`: a grid index or a loop variable.
    - `memory`: True means that every loaded value may vary, too: another store could have changed
      it.
    """
    dependent: set[int] = set()

    def varies(v: Value) -> bool:
        """Return True if `v` is the variable, or may depend on the variable."""
        return id(v) in dependent or _is_same_index(v, variable)

    for s in walk(block):
        if isinstance(s, Loop):
            dependent.update(id(v) for v in (*s.carry, *s.results))
        elif isinstance(s, Value) and ((memory and s.op == "load") or any(map(varies, s.args))):
            dependent.add(id(s))
    return varies


def definitions(s: Statement) -> tuple[Value, ...]:
    """Return the values that a statement defines for those after it.

    - `s`: a statement: a value defines itself, a loop its results, another nothing.
    """
    return (s,) if isinstance(s, Value) else s.results if isinstance(s, Loop) else ()


def uses(s: Statement) -> Iterator[Value]:
    """Yield the values that a statement, and those in it, use.

    - `s`: a statement.
    """
    for inner in walk((s,)):
        if isinstance(inner, Value):
            yield from inner.args
        elif isinstance(inner, Loop):
            yield from (inner.start, inner.stop, *inner.init, *inner.update)
        else:
            yield from (inner.index, inner.value, *(() if inner.when is None else (inner.when,)))


def is_branch(loop: Loop) -> bool:
    """Return True for a fold of 0 or 1 iterations, which a bool decides: a branch.

    - `loop`: a loop.
    """
    is_at_start = loop.start.op == "const" and loop.start.number == 0
    is_bit = loop.stop.op == "cast" and loop.stop.args[0].dtype is bool_
    return loop.kind == "fold" and is_at_start and is_bit


def settles(loop: Loop) -> bool:
    """Return True if a fold may end early, once a step leaves all bits of its carries unchanged.

    Then every later step would leave them unchanged too, since a step depends on nothing else. Such
    folds are as long as their worst case: division by digits, Euclid's algorithm, powers by
    squaring.

    - `loop`: a fold.
    """
    ends = (loop.start, loop.stop)
    if loop.kind != "fold" or loop.effects or any(v.op != "const" for v in ends):
        return False
    if loop.stop.number - loop.start.number < EARLY_EXIT_STEPS_MIN:
        return False
    varies = varies_along(loop.body, loop.var)
    plain = all(isinstance(s, Value) and s.op != "load" for s in loop.body)
    return plain and not any(map(varies, loop.update))


def along_rows(kernel: Kernel) -> bool:
    """Return True if successive steps of a reduction read neighbouring elements."""
    for loop in reductions(kernel):
        stride = stride_along(loop.body, loop.var)
        if any(stride(v.index) == 1 for v in loads(loop.body)):
            return True
    return False


def shareable(kernel: Kernel) -> bool:
    """Return True if a group of work items can compute one point together.

    The group shares the work of a reduction. All its work items may run statements that have no
    effects.
    """
    folds = [s for s in kernel.body if isinstance(s, Loop) and s.kind == "fold"]
    effects = any(isinstance(s, (Store, Atomic)) for s in walk(tuple(folds)))
    return bool(reductions(kernel)) and not effects


# --- how long loops are


def trip_count(loop: Loop, ints: Mapping[str, int], at: int | None = None) -> int | None:
    """Return a loop's number of iterations in a launch, an estimate with `at`, or None if unknown.

    Of two bounds between which memory chooses, the estimate takes the farther one. A branch is
    estimated not to be taken.

    - `loop`: the loop.
    - `at`: the number to use for every grid index and loop variable, where an estimate is enough;
      None gives no estimates.
    """
    if at is not None and is_branch(loop):
        return 0
    start, stop = (
        _evaluate_integer(loop.start, ints, at, min),
        _evaluate_integer(loop.stop, ints, at, max),
    )
    return None if start is None or stop is None else max(0, stop - start)


def _evaluate_integer(
    v: Value,
    ints: Mapping[str, int],
    assumed_index: int | None,
    choose_bound: Callable[[int, int], int],
) -> int | None:
    """Return an integer expression's value in a launch, an estimate with `assumed_index`, or None.

    choose_bound: picks one of two numbers where memory chooses between them and `assumed_index` is
        given.
    """
    if v.dtype.kind not in "biu":
        return None  # a float on which an int depends, as in range(int(x % 4.0))
    if v.op == "const":
        return int(v.number)
    if v.op == "param":
        return ints.get(v.name)
    if v.op in ("index", "loopvar"):
        return assumed_index
    rule = _RULES.get(v.op)
    args = [_evaluate_integer(a, ints, assumed_index, choose_bound) for a in v.args]
    if v.op == "where" and assumed_index is not None and args[0] is None:
        numbers = [n for n in args[1:] if n is not None]
        return choose_bound(*numbers) if len(numbers) == 2 else None
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
    """Return True if an outermost reduction has at least `least` iterations.

    A bound that the kernel computes, as for a reduction over several axes, counts as long.

    - `least`: the least number of iterations that is long.
    """
    for loop in reductions(kernel):
        count = trip_count(loop, ints)
        plain = {loop.start.op, loop.stop.op} <= {"param", "const"}
        if not plain or count is None or count >= least:
            return True
    return False
