"""Kernels, which say what is computed at every point of a grid, and the builder that makes them.

`KernelBuilder` makes a kernel from free-standing expressions. Its scheduler puts every value into
the outermost block in which its operands are known (so loop-invariant work is hoisted), and keeps
one of each group of equal values.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ..dtypes import DType, int32, int64
from ..errors import InternalError
from ..lazy_import import LazyModule
from .language import (
    COMBINE_NAME_SEPARATOR,
    EXACT_SUFFIX,
    FLAGGED_SUFFIX,
    HIDDEN_COMBINE_SUFFIX,
    OPERANDS,
    Atomic,
    Block,
    Buffer,
    Effect,
    Loop,
    Statement,
    Store,
    Value,
    complex_product_parts,
    const,
    eq,
    exact_key,
    ne,
    where,
)
from .printer import print_kernel
from .rewrite import Cloner

if TYPE_CHECKING:
    from . import hidden_floats, lower_int64, soft_subnormals
else:  # for devices that lack something
    hidden_floats = LazyModule(".hidden_floats", __package__)
    lower_int64 = LazyModule(".lower_int64", __package__)
    soft_subnormals = LazyModule(".soft_subnormals", __package__)


@dataclass(frozen=True, eq=False, repr=False)
class Kernel:
    """A program for every point of a grid, in the kernel IR (`language`).

    Arguments are passed in this order: buffers, ints, scalars.

    - `name`: the name in profiles and texts.
    - `buffers`: the buffer parameters.
    - `ints`: the names of the integer parameters.
    - `scalars`: the names and dtypes of the scalar parameters.
    - `grid`: the extent of each axis, as a Value; the last axis is the fastest.
    - `body`: the statements for a point.
    - `index`: the dtype of ints, grid, loops and indices: int64, and int32 after legalisation.
    - `before`: the kernel from which passes made 32-bit words, or folds of reduce loops.
    - `fast_math`: True permits contraction and approximate division.
    - `offset_ints`: for devices with `offset_params`: for each buffer the name of the integer that
      is its first element, and the bytes of an element.
    - `arrays`: the private arrays, which each point has for itself; they begin with any values.
    - `unexpanded`: the kernel from which `expand_reductions` made this one.
    """

    name: str
    buffers: tuple[Buffer, ...]
    ints: tuple[str, ...]
    scalars: tuple[tuple[str, DType], ...]
    grid: tuple[Value, ...]
    body: Block
    index: DType = int64  # dtype of the ints, grid, loops and indices; int32 after legalisation
    before: Kernel | None = None  # the kernel without words and arrays
    fast_math: bool = False  # it may be compiled with contraction and approximate division
    offset_ints: tuple[tuple[str, int], ...] = ()  # of each buffer, on devices that want these
    arrays: tuple[Buffer, ...] = ()  # private to each point
    unexpanded: Kernel | None = None  # the kernel with the reduce loops that became folds

    def __str__(self) -> str:
        text: str | None = self.__dict__.get(
            "_text"
        )  # no `cached_property`: it holds a lock, which
        if text is None:  # a forked child would find held
            text = self.__dict__["_text"] = print_kernel(self)
        return text

    def with_body(
        self,
        body: Block,
        buffers: tuple[Buffer, ...] | None = None,
        ints: tuple[str, ...] | None = None,
        grid: tuple[Value, ...] | None = None,
        index: DType | None = None,
        scalars: tuple[tuple[str, DType], ...] | None = None,
        before: Kernel | None = None,
        offset_ints: tuple[tuple[str, int], ...] | None = None,
        arrays: tuple[Buffer, ...] | None = None,
        unexpanded: Kernel | None = None,
    ) -> Kernel:
        """Return this kernel with another body, and other fields if a pass has changed them.

        - `body`: the new statements.
        - `buffers`, `ints`, `grid`, `index`, `scalars`, `before`, `offset_ints`, `arrays`,
          `unexpanded`: the other fields; None keeps this kernel's.
        """
        return Kernel(
            self.name,
            self.buffers if buffers is None else buffers,
            self.ints if ints is None else ints,
            self.scalars if scalars is None else scalars,
            self.grid if grid is None else grid,
            body,
            self.index if index is None else index,
            self.before if before is None else before,
            self.fast_math,
            self.offset_ints if offset_ints is None else offset_ints,
            self.arrays if arrays is None else arrays,
            self.unexpanded if unexpanded is None else unexpanded,
        )


class KernelBuilder:
    """A builder that collects parameters and effects of a kernel.

    - `name`: the name of the kernel.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._buffers: list[Buffer] = []
        self._arrays: list[Buffer] = []
        self._ints: list[Value] = []
        self._scalars: list[Value] = []
        self._grid: list[Value] = []
        self._effects: list[Effect | Value] = []

    def buffer(self, name: str, dtype: DType, access: str) -> Buffer:
        """Add a buffer parameter and return it.

        - `name`: the name of the parameter.
        - `dtype`: the dtype of the elements.
        - `access`: "r", "w" or "rw".
        """
        self._buffers.append(Buffer(name, dtype, access))
        return self._buffers[-1]

    def array(self, name: str, dtype: DType, length: builtins.int) -> Buffer:
        """Add a private array, which each point has for itself, and return it.

        Loads and stores of it stand outside of map and reduce loops. `legalize` refuses the kernel:
        no pass keeps the arrays that there are before.

        - `name`: the name of the array.
        - `dtype`: the dtype of the elements.
        - `length`: the number of elements.
        """
        self._arrays.append(Buffer(name, dtype, "rw", length))
        return self._arrays[-1]

    def int(self, name: str) -> Value:
        """Add an int64 run-time parameter and return it.

        - `name`: the name of the parameter.
        """
        self._ints.append(Value("param", int64, (), name))
        return self._ints[-1]

    def scalar(self, name: str, dtype: DType) -> Value:
        """Add a run-time scalar parameter and return it.

        - `name`: the name of the parameter.
        - `dtype`: its dtype.
        """
        self._scalars.append(Value("param", dtype, (), name))
        return self._scalars[-1]

    def axis(self, extent: Value) -> Value:
        """Add a grid axis inside those before it (the last is the fastest); return its index.

        - `extent`: the number of points, as a Value.
        """
        self._grid.append(extent)
        return Value("index", int64, (), len(self._grid) - 1)

    def store(self, buffer: Buffer, index: Value, value: Value, when: Value | None = None) -> None:
        """Add a store at every point of the grid."""
        self._effects.append(Store(buffer, index, value, when))

    def effect(self, effect: Effect) -> None:
        """Add a store, an atomic or a loop with effects.

        - `effect`: a `Store`, an `Atomic` or a `Loop`.
        """
        self._effects.append(effect)

    def first(self, *values: Value) -> None:
        """Append values as effects: they are computed before anything that is added later.

        This order suits registers.

        - `values`: the values, in this order.
        """
        self._effects += values

    def body(self) -> Block:
        """Return the statements: every value placed, shared and in order."""
        return _ValuePlacer().place_effects(self._effects)

    def build(self) -> Kernel:
        """Return the finished kernel."""
        body = self.body()
        return Kernel(
            self.name,
            tuple(self._buffers),
            tuple(v.name for v in self._ints),
            tuple((v.name, v.dtype) for v in self._scalars),
            tuple(self._grid),
            body,
            arrays=tuple(self._arrays),
        )


class _Scope:
    """An open block: the kernel's, or a loop's."""

    __slots__ = ("depth", "loop", "statements")

    def __init__(self, depth: int, loop: Loop | None) -> None:
        self.depth, self.loop = depth, loop
        self.statements: list[Statement] = []


class _ValuePlacer(Cloner):
    """A cloner that puts every value into the outermost possible block, and equal ones only once.

    The values as built and the values as placed are two sets of objects: kernels may share built
    ones.
    """

    def __init__(self) -> None:
        super().__init__()
        self.open_scopes = [_Scope(0, None)]
        self._scope: dict[Value | Loop, _Scope] = {}  # a placed value or loop -> its scope
        self._placed_by_key: dict[Hashable, Value] = {}  # value number -> the placed value
        self._placed_loops: dict[Loop, Loop] = {}  # as built -> as placed
        self._orders_loads = (
            False  # True inside a loop whose effects list values, which orders loads
        )

    def place_effects(self, effects: Sequence[Effect | Value]) -> Block:
        """Place all effects and return the kernel's body."""
        for effect in effects:
            self._place_effect(effect)
        return tuple(self.open_scopes[0].statements)

    def bind(self, old: Value, new: Value, scope: _Scope) -> None:
        """Record `new` as the replacement of `old`, and `scope` as the block of `new`."""
        self.replacements[old] = new
        self._scope[new] = scope

    def operand(self, root: Value) -> Value:
        """Return the placed equivalent of `root`; place `root` and its operands if they are new."""
        placed = self.replacements.get(root)
        if placed is not None:
            return placed
        stack = [root]
        while stack:
            v, args, new_values = (
                stack[-1],
                [],
                self.replacements,
            )  # `_close_scope` makes another dict
            for a in v.args:
                arg = new_values.get(a)
                if arg is None:
                    stack.append(a)
                    break
                args.append(arg)
            else:
                stack.pop()
                placed = self._place_value(v, args)
                self.replacements[v] = placed
        return self.replacements[root]

    def _place_value(self, v: Value, placed: list[Value]) -> Value:
        """Return a placed operation on placed arguments: an equal one, or a newly appended one."""
        op, attr = v.op, v.attr
        if op in OPERANDS:
            if op in ("loopvar", "carry", "arg"):
                raise InternalError(f"{op} used outside of its loop", v)
            if op == "result":
                loop, i = v.place
                result: Value = self.loop(loop).results[i]
                return result
            if op == "const":
                attr = exact_key(attr)
        elif op == "load" and v.buffer.access != "r":
            return self._place_here(Value("load", v.dtype, tuple(placed), attr))
        key = (op, v.dtype, attr, *placed)
        same = self._placed_by_key.get(key)
        if same is not None:
            return same
        new = Value(op, v.dtype, tuple(placed), v.attr)
        scopes = self._scope
        scope = self.open_scopes[0]
        for a in placed:
            its = scopes[a]
            if its.depth > scope.depth:
                scope = its
        self._placed_by_key[key] = new
        scopes[new] = scope
        if op not in OPERANDS:
            scope.statements.append(new)
        return new

    def _place_here(self, new: Value) -> Value:
        """Append a load that a store may change to the open block; never move or share it."""
        self._scope[new] = self.open_scopes[-1]
        self.open_scopes[-1].statements.append(new)
        return new

    def _place_effect(self, effect: Effect | Value) -> None:
        """Place an effect, or a value that must be computed at this point."""
        if isinstance(effect, Loop):
            self.loop(effect)
        elif isinstance(effect, Value):
            self.operand(effect)
        else:
            placed = self.effect(effect)
            self.open_scopes[-1].statements.append(placed)

    def loop(self, old: Loop) -> Loop:
        """Place a loop as far out as its operands and effects permit; return the placed loop."""
        placed = self._placed_loops.get(old)
        if placed is not None:
            return placed
        depth = 0
        if len(self.open_scopes) > 1:
            free = _free_loops(old, self)
            depth = max((s.depth for s in self.open_scopes if s.loop in free), default=0)
        if old.effects or (self._orders_loads and _reads_writable_buffer(old)):
            depth = self.open_scopes[-1].depth
        inner, self.open_scopes = self.open_scopes[depth + 1 :], self.open_scopes[: depth + 1]
        new = self._place_loop_here(old)
        self.open_scopes += inner
        return new

    def _place_loop_here(self, old: Loop) -> Loop:
        """Place a loop in the open block and return it."""
        new = self.copy_loop_head(old)
        scope = _Scope(len(self.open_scopes), new)
        self.bind(old.var, new.var, scope)
        new.carry = tuple(Value("carry", c.dtype, (), (new, i)) for i, c in enumerate(old.carry))
        for a, b in zip(old.carry, new.carry, strict=True):
            self.bind(a, b, scope)
        self.open_scopes.append(scope)
        before = self._orders_loads
        ordered = any(isinstance(e, Value) for e in old.effects)  # its loads have a fixed position
        self._orders_loads = before or ordered
        if not ordered:
            new.update = self.operands(old.update)
        for effect in old.effects:
            self._place_effect(effect)
        if ordered:
            new.update = self.operands(old.update)
        self._orders_loads = before
        self._close_scope()
        new.set_body(tuple(scope.statements))
        new.results = tuple(
            Value("result", r.dtype, (), (new, i)) for i, r in enumerate(old.results)
        )
        for r in new.results:
            self._scope[r] = self.open_scopes[-1]
        self._scope[new] = self.open_scopes[-1]
        self.open_scopes[-1].statements.append(new)
        self._placed_loops[old] = new
        return new

    def _close_scope(self) -> None:
        """Close the innermost block and forget the values and loops that were placed in it."""
        closed = self.open_scopes.pop()
        self._placed_by_key = {
            k: v for k, v in self._placed_by_key.items() if self._scope[v] is not closed
        }
        self.replacements = {
            k: v for k, v in self.replacements.items() if self._scope[v] is not closed
        }
        self._placed_loops = {
            k: v for k, v in self._placed_loops.items() if self._scope[v] is not closed
        }


def _free_loops(loop: Loop, scheduler: _ValuePlacer) -> set[Loop | None]:
    """Return the open loops, as placed, that have a value which `loop` needs."""
    loops: set[Loop | None] = set()
    visited: set[int] = set()
    stack: list[Statement] = [loop]
    while stack:
        x = stack.pop()
        if id(x) in visited:
            continue
        visited.add(id(x))
        if isinstance(x, Loop):
            stack += [x.start, x.stop, *x.init, *x.update, *x.effects]
        elif isinstance(x, (Store, Atomic)):
            stack += [x.index, x.value] + ([] if x.when is None else [x.when])
        elif (placed := scheduler.replacements.get(x)) is not None:
            loops.add(scheduler._scope[placed].loop)
        elif x.op == "result":
            stack.append(x.place[0])
        else:
            stack += x.args
    return loops


def _reads_writable_buffer(loop: Loop) -> bool:
    """Return True if a loop reads a buffer that a store may change.

    In a loop that orders its loads, such a loop stays in place, as such a load does.
    """
    visited: set[int] = set()
    stack: list[Statement] = [loop]
    while stack:
        x = stack.pop()
        if id(x) in visited:
            continue
        visited.add(id(x))
        if isinstance(x, Loop):
            stack += [*x.update, *x.effects]
        elif isinstance(x, (Store, Atomic)):
            stack += [x.index, x.value] + ([] if x.when is None else [x.when])
        elif x.op == "load" and x.buffer.access != "r":
            return True
        elif x.op == "result":
            stack.append(x.place[0])
        else:
            stack += x.args
    return False


# --- how partial results combine -----------------------------------------------------------------


class Combine(NamedTuple):
    """A rule that combines two partial results: `body` computes `result` from "arg" Values.

    - `name`: the name, such as "add".
    - `identity`: the constants with which a result begins.
    - `left`, `right`: the placeholders of two partial results.
    - `body`: the statements.
    - `result`: the values that replace both.
    - `shared`: placeholders of values that a reduction has in its `init`, after the identity.
    """

    name: str
    identity: tuple[Value, ...]
    left: tuple[Value, ...]
    right: tuple[Value, ...]
    body: tuple[Value, ...]
    result: tuple[Value, ...]
    shared: tuple[Value, ...] = ()


def _choose_better(
    better: Callable[[Value, Value], Value], a: Value, b: Value
) -> tuple[Value, ...]:
    """Return the better of two values: NaN wins, of equal ones `a`."""
    chosen = where(better(a, b), b, a)  # its own `where`, so that it becomes one instruction
    return (where(ne(b, b), b, chosen) if a.dtype.kind == "f" else chosen,)


def _arg_takes_right(
    better: Callable[[Value, Value], Value], a: Sequence[Value], b: Sequence[Value]
) -> Value:
    """Return True where (value, index) `b` beats `a`: better, or equal with a lower index.

    NaN beats every number.
    """
    (av, ai), (bv, bi) = a, b
    same = eq(av, bv)
    if av.dtype.kind == "f":
        a_nan, b_nan = ne(av, av), ne(bv, bv)
        same = same | (a_nan & b_nan)
        return ((better(av, bv) | b_nan) & ~a_nan) | (same & (bi < ai))
    return better(av, bv) | (same & (bi < ai))


def _lowest(d: DType) -> Value:
    """Return a constant: -infinity for floats, else the least number of the dtype."""
    return const(-math.inf if d.kind in "fc" else d.min, d)


def _highest(d: DType) -> Value:
    """Return a constant: infinity for floats, else the largest number of the dtype."""
    return const(math.inf if d.kind in "fc" else d.max, d)


def _select_tuple(c: Value, a: Sequence[Value], b: Sequence[Value]) -> tuple[Value, ...]:
    """Return the tuple of elements of `b` where `c` is true, and of `a` where `c` is false."""
    return tuple(where(c, y, x) for x, y in zip(a, b, strict=True))


def _add_tuples(a: Sequence[Value], b: Sequence[Value]) -> tuple[Value, ...]:
    """Return the elementwise sums of two sequences of equal length."""
    return tuple(x + y for x, y in zip(a, b, strict=True))


_NO_INDEX = (1 << 63) - 1
_PairRule = Callable[[Sequence[Value], Sequence[Value]], tuple[Value, ...]]
_COMBINES: dict[str, tuple[Callable[..., tuple[Value, ...]], _PairRule]] = {
    # name: (identity of the dtypes, the combination of two tuples)
    "add": (lambda *ds: tuple(const(0, d) for d in ds), _add_tuples),
    "mul": (lambda d: (const(1, d),), lambda a, b: (a[0] * b[0],)),
    # of complex numbers as two values each
    "complex_mul": (
        lambda d, _: (const(1, d), const(0, d)),
        lambda a, b: complex_product_parts(*a, *b),
    ),
    "max": (lambda d: (_lowest(d),), lambda a, b: _choose_better(lambda x, y: x < y, a[0], b[0])),
    "min": (lambda d: (_highest(d),), lambda a, b: _choose_better(lambda x, y: y < x, a[0], b[0])),
    "and": (
        lambda d: (const(d.max if d.kind in "bu" else -1, d),),
        lambda a, b: (a[0] & b[0],),
    ),
    "or": (lambda d: (const(0, d),), lambda a, b: (a[0] | b[0],)),
    "xor": (lambda d: (const(0, d),), lambda a, b: (a[0] ^ b[0],)),
    "argmax": (
        lambda d, i: (_lowest(d), const(_NO_INDEX, i)),
        lambda a, b: _select_tuple(_arg_takes_right(lambda x, y: x < y, a, b), a, b),
    ),
    "argmin": (
        lambda d, i: (_highest(d), const(_NO_INDEX, i)),
        lambda a, b: _select_tuple(_arg_takes_right(lambda x, y: y < x, a, b), a, b),
    ),
}
COMBINE_NAMES = tuple(name for name in _COMBINES if name != "complex_mul")  # of single values
ALL_COMBINES = tuple(_COMBINES)


def is_combine(name: str | None) -> bool:
    """Return True if there is a combine of this name, also of words, exact, flagged or hidden."""
    base = "" if name is None else name.partition(COMBINE_NAME_SEPARATOR)[0]
    for suffix in (HIDDEN_COMBINE_SUFFIX, FLAGGED_SUFFIX, EXACT_SUFFIX):
        base = base.removesuffix(suffix)
    return base in _COMBINES


@cache
def combine(name: str, dtypes: tuple[DType, ...]) -> Combine:
    """Return the combine `name` for carried values of `dtypes`, in the kernel IR; cached.

    - `name`: the name, such as "add", "max" or "argmin".
    - `dtypes`: the dtypes of the carried values.

    Raises: KeyError for an unknown name, ValueError for a name in words of other dtypes.
    """
    base, _, codes = name.partition(COMBINE_NAME_SEPARATOR)
    if codes:
        in_words = lower_int64.lower_combine(
            combine(base, lower_int64.parse_dtype_codes(codes)), name
        )
        if tuple(v.dtype for v in in_words.left) != dtypes:
            raise ValueError(name)
        return in_words
    if base.endswith(HIDDEN_COMBINE_SUFFIX):
        plain = combine(base.removesuffix(HIDDEN_COMBINE_SUFFIX), dtypes)
        return hidden_floats.hide_combine(plain, name)
    if name.endswith(FLAGGED_SUFFIX):
        return _append_flag(combine(name.removesuffix(FLAGGED_SUFFIX), dtypes[:-1]), name)
    if name.endswith(EXACT_SUFFIX):
        return soft_subnormals.exact_combine(combine(name.removesuffix(EXACT_SUFFIX), dtypes))
    identity, rule = _COMBINES[name]
    left = tuple(Value("arg", d, (), ("left", i)) for i, d in enumerate(dtypes))
    right = tuple(Value("arg", d, (), ("right", i)) for i, d in enumerate(dtypes))
    scheduler = _ValuePlacer()
    for v in left + right:
        scheduler.bind(v, v, scheduler.open_scopes[0])
    result = tuple(scheduler.operand(v) for v in rule(left, right))
    body = tuple(s for s in scheduler.open_scopes[0].statements if isinstance(s, Value))
    return Combine(name, tuple(identity(*dtypes)), left, right, body, result)


def _append_flag(rule: Combine, name: str) -> Combine:
    """Return a combine with one more int32, whose sign bit is set if that of any element is."""
    left, right = (Value("arg", int32, (), (side, len(rule.left))) for side in ("left", "right"))
    flag = left | right
    return Combine(
        name,
        (*rule.identity, const(0, int32)),
        (*rule.left, left),
        (*rule.right, right),
        (*rule.body, flag),
        (*rule.result, flag),
    )
