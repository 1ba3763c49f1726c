"""The pass of `legalize` for devices that flush subnormal float32 numbers to zero.

A *segment* is a run of statements without effects. Its fast form uses the device's floats, and
computes a flag, an int32: its sign bit is set if a subnormal number may have made a result differ
from IEEE 754. A branch, a fold of 0 or 1 iterations, then computes the results again with soft
floats (`soft_subnormals`). So all values outside of segments are exact. Loops without effects are
a part of a segment: a fold carries its flag, and a reduction combines the flag with its values. So
are folds that only store, as a cumulative sum: the branch stores their results again.

Other effects stay where they are. A branch reads no memory that an effect has changed.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import count, takewhile
from typing import TypeAlias

from ..dtypes import DType, float32, float64, int32
from .analysis import definitions, uses, values
from .builder import Kernel
from .language import (
    EXACT_SUFFIX,
    FLAGGED_SUFFIX,
    OPERANDS,
    Atomic,
    Block,
    Buffer,
    Loop,
    Statement,
    Store,
    Value,
    bitcast,
    cast,
    const,
    eq,
    ne,
    walk,
    where,
)
from .rewrite import Cloner
from .soft_subnormals import (
    LEAST_NORMAL,
    exact_operation,
    flip_sign,
    magnitude_bits,
)
from .subnormal_analysis import LEAST_EXPONENT, Scale, SubnormalAnalysis
from .target import Capabilities

Zeros: TypeAlias = tuple[Value, ...]  # flags: their sign bits are set if factors are 0
FACTORS_MAX = 4  # of a product; more would take longer to compile than they save
_INFINITY = 0x7F800000  # its bits
_SCALARS = ("param", "const")
REPAIRS_BUFFER = "repaired_points"  # counts the points that branches repair


def guard_subnormals(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return a kernel that keeps float32 subnormals on a device that flushes them.

    A device without NaN computes no floats at all: its companion does. Each branch that runs adds 1
    to the first element of the buffer `REPAIRS_BUFFER`, if the kernel has one.
    """
    if capabilities.denormals or not capabilities.nan:
        return kernel
    if not any(_has_float32(v) for v in values(kernel.body)):
        return kernel
    return kernel.with_body(_GuardCloner(kernel, capabilities).guard_block(kernel.body, ()))


def _has_float32(v: Value) -> bool:
    """Return True if an operand or the result is a float32."""
    return any(x.dtype is float32 for x in (v, *v.args))


def _is_repeatable(s: Statement) -> bool:
    """Return True for a value, or a loop that a branch may run again with exact floats.

    Its effects are stores in folds to memory that the kernel only writes. Which elements they write
    does not depend on floats, so the branch writes all of them again.
    """
    if not isinstance(s, Loop):
        return isinstance(s, Value)
    inner = [*walk((s,))]
    stores = [x for x in inner if isinstance(x, (Store, Atomic))]
    if not stores:
        return True
    loops = [x for x in inner if isinstance(x, Loop)]
    if any(x.kind == "map" for x in loops) or any(
        isinstance(x, Atomic) or x.buffer.access != "w" for x in stores
    ):
        return False
    deciding = [v for x in loops for v in (x.start, x.stop)]
    deciding += [v for x in stores for v in (x.index, x.when) if v is not None]
    answers: dict[Value, bool] = {}
    return not any(_depends_on_floats(v, answers) for v in deciding)


def _depends_on_floats(v: Value, answers: dict[Value, bool]) -> bool:
    """Return True if a float may decide a value; `answers` has those so far."""
    if v not in answers:
        is_unknown = v.op in ("carry", "result") or v.dtype.kind == "f"
        answers[v] = is_unknown or any(_depends_on_floats(a, answers) for a in v.args)
    return answers[v]


class _SharingCloner(Cloner):
    """A cloner that computes equal values of a block once."""

    def __init__(self) -> None:
        super().__init__()
        self._shared: dict[object, Value] = {}  # a value, or its operation -> the shared one

    def value(self, v: Value) -> None:
        """Append a value's copy or replacement, without the operations that the block has."""
        args = self.operands(v.args)
        new = self.rewrite_value(v, args) or self.copy_with_args(v, args)
        self.replacements[v] = new = self.share(new)
        self.emit(new)

    def share(self, v: Value) -> Value:
        """Return an equal value of the open blocks, or the value with shared operands."""
        shared = self._shared
        if v.op in OPERANDS or v.op == "load":
            return v
        if v not in shared and v in self.emitted:  # by an outer block
            shared[v] = v
        if v not in shared:
            args = tuple(map(self.share, v.args))
            key = (v.op, v.dtype, v.attr, *args)
            if key not in shared:
                shared[key] = v if args == v.args else Value(v.op, v.dtype, args, v.attr)
            shared[v] = shared[shared[key]] = shared[key]
        return shared[v]

    @contextmanager
    def open_block(self) -> Iterator[list[Statement]]:
        """Return a context in which statements go to a new block, the list that it yields."""
        outer, shared = self.statements, self._shared
        self.statements, self._shared = [], shared.copy()
        yield self.statements
        self.statements, self._shared = outer, shared

    def block(self, block: Block) -> Block:
        """Return the copy of a block."""
        with self.open_block():
            return super().block(block)


class _GuardCloner(_SharingCloner):
    """A cloner that makes a segment fast, and appends the branch that repairs its results."""

    def __init__(self, kernel: Kernel, capabilities: Capabilities) -> None:
        super().__init__()
        self.index, self.capabilities = kernel.index, capabilities
        self.repairs = next((b for b in kernel.buffers if b.name == REPAIRS_BUFFER), None)
        self.exact = SubnormalAnalysis({}, exact=True)  # of all statements so far
        self.fast = SubnormalAnalysis({})  # of the segment
        self.assumed: dict[Value, Scale] = {}  # in a map that runs if an earlier flag is not set
        self.flagged: dict[Value, Scale] = {}  # values there that are right if it is not set
        self.flags: dict[tuple[WhereSide | None, Zeros], list[Value]] = {}  # of the open block, by
        # where they count, and by the factors of which a 0 makes them void
        self.factors: dict[tuple[WhereSide | None, Value], Zeros] = {}  # of flagged products
        # The products of a checked value and a scalar: the check covers the flag of the product
        self.scaled: dict[Value, list[Value]] = {}  # by the checked value
        self.sides = _Sides()  # of the open block

    def guard_block(self, block: Block, live_out: Sequence[Value]) -> Block:
        """Return a block with its segments guarded; `live_out` are its values that are used later.

        It is the kernel's block, or that of a loop with effects.
        """
        segment: list[Statement] = []
        maps: Sequence[Loop] = ()
        with self.open_block() as statements:
            for k, s in enumerate(block):
                if s in maps:
                    continue
                if _is_repeatable(s):
                    segment.append(s)
                    continue
                maps = _find_maps(segment, block[k:], live_out)
                self._guard_segment(segment, block[k + len(maps) :], live_out, maps)
                segment = []
                if isinstance(s, Loop) and not maps:
                    statements.append(self._loop_with_effects(s))
                elif isinstance(s, (Store, Atomic)):
                    statements.append(self.effect(s))
            self._guard_segment(segment, (), live_out)
        return tuple(statements)

    def _loop_with_effects(self, old: Loop) -> Loop:
        """Return the copy of a map or fold with effects, whose body is guarded on its own."""
        new = self.copy_loop_head(old)
        new.carry = self.bind_loop_values("carry", new, old.carry)
        self.replacements[old.var] = new.var
        new.set_body(self.guard_block(old.body, old.update))
        new.update = self.operands(old.update)
        new.results = self.bind_loop_values("result", new, old.results)
        return new

    # --- a segment

    def _guard_segment(
        self,
        segment: Sequence[Statement],
        following: Block,
        live_out: Sequence[Value],
        maps: Sequence[Loop] = (),
    ) -> None:
        """Append the statements of a segment, and their repair.

        following: the statements after it, and after `maps`.
        maps: loops that run in the branch instead where the segment's flag is set.
        """
        used = {*live_out, *(v for s in following for v in uses(s))}
        needed = used.union(v for s in maps for v in uses(s))
        self.fast = SubnormalAnalysis(self.exact.scales | self.assumed, self.flagged)
        for analysis in (self.fast, self.exact):
            analysis.visit_block(tuple(segment), needed)
        before = self.replacements.copy()
        self.flags, self.sides = {}, _Sides(segment, needed)
        self._find_scaled(segment)
        defined = {v for s in segment for v in definitions(s)}
        inner = {v for s in segment if isinstance(s, Loop) for v in _inner_values(s)}
        for v in self.fast.checks:
            if v not in defined and v not in inner:
                self._append_check(v)
        for s in segment:
            self._fast_statement(s)
        repaired = self._statements_to_repair(segment)
        wanted = [v for s in segment if s in repaired for v in definitions(s) if v in used]
        # a loop carries no value of a dtype that is only stored
        stored = [v for v in wanted if v.dtype.compute is not v.dtype]
        outs = tuple(dict.fromkeys(v.args[0] if v in stored else v for v in wanted))
        has_stores = any(isinstance(x, Store) for x in walk((*repaired, *maps)))
        is_wrong = self._join_flags() < 0 if self.flags else None
        self._append_maps(segment, maps, is_wrong)
        if (outs or has_stores) and is_wrong is not None:
            repeated = [s for s in segment if s in repaired]
            valid = {v for s in segment if s not in repaired for v in definitions(s)}
            before |= {v: self.replacements[v] for v in valid}
            self._append_branch((*repeated, *maps), outs, is_wrong, before)
            for v in stored:
                self.value(v)

    def _append_maps(
        self, segment: Sequence[Statement], maps: Sequence[Loop], is_wrong: Value | None
    ) -> None:
        """Append loops after a segment that run if its flag is not set.

        Values that its reductions flag need no flag here.
        """
        keys, fast = _Keys(), self.fast
        flagged: dict[int, Scale] = {}
        for loop in segment:
            if isinstance(loop, Loop) and loop.kind == "reduce":
                covered = {*_always_flagged_values(loop, fast)}
                for v, number in keys.number_body(loop):
                    if v in covered:
                        flagged[number] = fast.scale(v)
        for old in maps:
            start, stop = self.operand(old.start), self.operand(old.stop)
            if is_wrong is not None:
                stop = where(is_wrong, start, stop)
                self.emit(stop)
            new = Loop("map", start, stop)
            self.replacements[old.var] = new.var
            self.assumed = fast.scales
            pairs = keys.number_body(old)
            self.flagged = {v: flagged[number] for v, number in pairs if number in flagged}
            new.set_body(self.guard_block(old.body, ()))
            self.assumed, self.flagged = {}, {}
            self.statements.append(new)

    def _statements_to_repair(self, segment: Sequence[Statement]) -> set[Statement]:
        """Return the statements of a segment whose results are wrong where a flag is set.

        They include the values that only one side of a choice needs, so that the branch uses none
        of them: a backend may skip a side that no lane takes.
        """
        inside, wrong = {*segment}, set[Value]()
        statements: set[Statement] = set()
        for s in segment:
            if any(map(self._relies_on_flags, walk((s,)))) or any(v in wrong for v in uses(s)):
                statements.add(s)
                wrong.update(definitions(s))
        for s in reversed(segment):
            if s in statements:
                statements.update(
                    v for v in uses(s) if self.sides.of_results.get(v) and v in inside
                )
        return statements

    def _relies_on_flags(self, s: Statement) -> bool:
        """Return True for an operation, or a reduction's, that is wrong where a flag is set."""
        if isinstance(s, Loop):  # in `fast.unsafe` are combines that are exact in any case
            return s in self.exact.unsafe and s not in self.fast.unsafe
        return isinstance(s, Value) and s not in self.flagged and self.exact.is_wrong(s)

    def _append_branch(
        self,
        repeated: Block,
        outs: tuple[Value, ...],
        is_wrong: Value,
        replacements: dict[Value, Value],
    ) -> None:
        """Append the fold of 0 or 1 iterations that repeats statements with soft floats.

        replacements: those of values that the statements use.
        """
        stop = cast(is_wrong, self.index)
        self.emit(stop)
        branch = Loop("fold", const(0, self.index), stop, None, self.operands(outs))
        branch.carry = tuple(Value("carry", v.dtype, (), (branch, k)) for k, v in enumerate(outs))
        soft = _SoftCloner(self.exact, self.capabilities)
        soft.replacements, soft.emitted = replacements, self.emitted.copy()
        count = () if self.repairs is None else (_count_one(self.repairs, self.index),)
        branch.set_body((*count, *soft.block(repeated)))
        branch.update = soft.operands(outs)
        self.statements.append(branch)
        branch.results = self.bind_loop_values("result", branch, outs)

    # --- fast statements

    def _fast_statement(self, s: Statement) -> None:
        """Append a statement of a segment with its flags."""
        if isinstance(s, Value):
            self._fast_value(s)
        elif isinstance(s, Loop):
            self.statements.append(self._fast_loop(s))
            for v in s.results:
                self._flag_if_checked(v)
        else:
            self.statements.append(self.effect(s))

    def _fast_value(self, v: Value) -> None:
        """Append a value, with the flags of its result."""
        self.value(v)
        new = self.replacements[v]
        if self.fast.needs_flag(v) and not self._is_scaled(v):
            nonzero = [self.fast.scale(x).nonzero for x in v.args]
            side, least = self.sides.of_results[v], self.fast.flag_thresholds[v]
            if v.op == "mul":
                self._flag_product(new, least, nonzero, side)
            else:
                self._add_flag(_flush_flag(new, least, nonzero), side)
        self._flag_if_checked(v)

    def rewrite_value(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        """Return a change of sign by the bits, which no device flushes; None for other values."""
        return flip_sign(*args) if v.op == "neg" and v.dtype is float32 else None

    def _flag_if_checked(self, v: Value) -> None:
        """Append the check of a value, if it has one."""
        if v in self.fast.checks:
            self._append_check(v)

    def _append_check(self, v: Value) -> None:
        """Append the check that a value is 0 or not below its threshold."""
        size = _size(self.operand(v))
        least: Value | int = _bits_of_power(self.fast.checks[v])
        for product in self.scaled.get(v, ()):
            (scalar,) = (x for x in product.args if x is not v)
            least = self._raise_threshold(least, product, scalar)
        self._add_flag((size - least) & ~(size - 1), self.sides.of_checks.get(v))

    def _find_scaled(self, block: Sequence[Statement]) -> None:
        """Find the products of a block of a value that it defines and checks, and of a scalar."""
        checked = {v for s in block for v in definitions(s) if v in self.fast.checks}
        for v in block:
            if isinstance(v, Value) and v.op == "mul" and self.fast.needs_flag(v):
                for x, scalar in (v.args, v.args[::-1]):
                    same_side = self.sides.of_results[v] == self.sides.of_checks.get(x)
                    if x in checked and scalar.op == "param" and same_side:
                        self.scaled.setdefault(x, []).append(v)
                        break

    def _is_scaled(self, v: Value) -> bool:
        """Return True for a product that the check of a factor covers."""
        return any(v in self.scaled.get(x, ()) for x in v.args)

    def _raise_threshold(self, least: Value | int, product: Value, scalar: Value) -> Value:
        """Return the bits of a threshold from which the product with a scalar needs no flag.

        least: the threshold of the other factor.
        The scalar is at least the power of 2 of its exponent. If it is 0, so is the product.
        """
        size = _size(self.operand(scalar))
        power = _bits_of_power(self.fast.flag_thresholds[product])
        raised = power + _bits_of_power(0) - (size & _INFINITY)
        raised = where(raised < least, least, raised)
        return where(eq(size, 0), least, raised)

    def _flag_product(
        self, v: Value, least: int, nonzero: Sequence[bool], side: WhereSide | None
    ) -> None:
        """Append the flag of a product, which is void where a factor is 0.

        A factor that is a flagged product counts by its own factors: if none of them is 0 and it is
        tiny, its flag is set. So the products of a power have one test for 0.
        """
        zeros: dict[Value, None] = {}
        for x, is_nonzero in zip(v.args, nonzero, strict=True):
            if not is_nonzero:
                zeros |= dict.fromkeys(self.factors.get((side, x), (self.share(_tiny_flag(x)),)))
        key = tuple(zeros)
        if len(key) <= FACTORS_MAX:
            self.factors[side, v] = key
        self._add_flag(_size(v) - _bits_of_power(least), side, key)

    def _add_flag(self, flag: Value, side: WhereSide | None, zeros: Zeros = ()) -> None:
        """Append a flag; one of a side of a `where` counts only in lanes that take that side."""
        flag = self.share(flag)
        self.emit(flag)
        self.flags.setdefault((side, zeros), []).append(flag)

    def _join_flags(self) -> Value:
        """Return the flag of all flags of the open block."""
        by_side: dict[WhereSide | None, list[Value]] = {}
        for (side, zeros), flags in self.flags.items():
            flag = self._emit_joined(flags)
            if zeros:
                flag = self.share(flag & ~_join(zeros))
                self.emit(flag)
            by_side.setdefault(side, []).append(flag)
        joined = []
        for side, flags in by_side.items():
            flag = self._emit_joined(flags)
            if side is not None:
                condition, holds = self.operand(side[0]), side[1]
                flag = where(condition, flag, 0) if holds else where(condition, 0, flag)
                self.emit(flag)
            joined.append(flag)
        return self._emit_joined(joined)

    def _emit_joined(self, flags: Sequence[Value]) -> Value:
        """Append and return the flag of several flags."""
        joined = flags[0]
        for flag in flags[1:]:
            joined = joined | flag
            self.emit(joined)  # each at once: a long chain is too deep for recursion
        return joined

    def _fast_loop(self, old: Loop) -> Loop:
        """Return the copy of a loop of a segment, which also gives the flag of its iterations."""
        new = self.copy_loop_head(old)
        if old in self.fast.unsafe:
            assert new.combine is not None
            new.combine += EXACT_SUFFIX
        outer = self.flags, self.sides
        self.flags, self.sides = {}, _Sides(old.body, old.update)
        self._find_scaled(old.body)
        new.carry = self.bind_loop_values("carry", new, old.carry)
        self.replacements[old.var] = new.var
        with self.open_block() as statements:
            for v in old.carry:
                self._flag_if_checked(v)
            for s in old.body:
                self._fast_statement(s)
            new.update = self.operands(old.update)
            new.results = self.bind_loop_values("result", new, old.results)
            has_flag = bool(self.flags)
            if has_flag:
                self._carry_flag(new)
        new.set_body(tuple(statements))
        self.flags, self.sides = outer
        if has_flag:
            self.flags.setdefault((None, ()), []).append(new.results[-1])
        return new

    def _carry_flag(self, loop: Loop) -> None:
        """Make the joined flags of an iteration one more result of a loop."""
        flag = self._join_flags()
        if loop.kind == "fold":
            carry = Value("carry", int32, (), (loop, len(loop.carry)))
            flag = flag | carry
            self.emit(flag)
            loop.init, loop.carry = (*loop.init, const(0, int32)), (*loop.carry, carry)
        else:
            assert loop.combine is not None
            loop.combine += FLAGGED_SUFFIX
        loop.update = (*loop.update, flag)
        loop.results = (*loop.results, Value("result", int32, (), (loop, len(loop.results))))


def _count_one(buffer: Buffer, index: DType) -> Atomic:
    """Return the effect that adds 1 to the first element of a buffer of integers."""
    return Atomic("add", buffer, const(0, index), const(1, buffer.dtype))


def _find_maps(
    segment: Sequence[Statement], following: Block, live_out: Sequence[Value]
) -> tuple[Loop, ...]:
    """Return maps after a segment that compute again what its reductions have computed.

    No later statement uses the segment's values.
    """
    maps = [s for s in takewhile(_is_plain_map, following) if isinstance(s, Loop)]
    later = {*live_out, *(v for s in following[len(maps) :] for v in uses(s))}
    if not later.isdisjoint(v for s in segment for v in definitions(s)):
        return ()
    keys = _Keys()
    loops = [s for s in segment if isinstance(s, Loop) and s.kind == "reduce"]
    reduced, repeated = (
        {number for x in group for v, number in keys.number_body(x) if _is_arithmetic(v)}
        for group in (loops, maps)
    )
    return () if reduced.isdisjoint(repeated) else tuple(maps)


def _is_plain_map(s: Statement) -> bool:
    """Return True for a map of values and stores."""
    plain = (Value, Store)
    return isinstance(s, Loop) and s.kind == "map" and all(isinstance(x, plain) for x in s.body)


def _is_arithmetic(v: Value) -> bool:
    """Return True for a float32 that an operation computes."""
    return v.dtype is float32 and v.op != "load"


def _always_flagged_values(loop: Loop, fast: SubnormalAnalysis) -> Iterator[Value]:
    """Yield the values of a loop's body that are right if its flag is not set."""
    sides = _Sides(loop.body, loop.update)
    for v in loop.body:
        if isinstance(v, Value):
            is_partial = sides.of_results.get(v) or sides.of_checks.get(v)
            if not is_partial and (v not in fast.risky or fast.needs_flag(v)):
                yield v


class _Keys:
    """Numbers of values by what they compute; loops over one range have one variable.

    Values outside of the loops are known by identity.
    """

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}  # of a value, or of its operation
        self._serial = count()

    def number_body(self, loop: Loop) -> list[tuple[Value, int]]:
        """Return the values of a loop's body, each with its number."""
        return [(v, self._number(v)) for v in loop.body if isinstance(v, Value)]

    def _number(self, v: Value) -> int:
        """Return the number of a value of a body, after those before it."""
        if v not in self._numbers:
            is_memory = v.op == "load" and v.buffer.access != "r"
            key = v if is_memory else (v.op, v.dtype, v.attr, *map(self._number_operand, v.args))
            self._numbers[v] = self._find(key)
        return self._numbers[v]

    def _number_operand(self, v: Value) -> int:
        """Return the number of an operand."""
        if v.op == "const":
            return self._find((v.dtype, repr(v.number)))  # -0.0 is not 0.0
        if v.op == "loopvar":
            loop = v.place[0]
            return self._find((v.op, *map(self._number_operand, (loop.start, loop.stop))))
        return self._find(v)

    def _find(self, key: object) -> int:
        """Return the number of a key, a new one on first use."""
        return self._numbers.setdefault(key, next(self._serial))


def _inner_values(loop: Loop) -> Iterator[Value]:
    """Yield the values that are in scope only inside a loop, except loop variables."""
    for s in walk((loop,)):
        if isinstance(s, Loop):
            yield from s.carry
            if s is not loop:
                yield from s.results
        elif isinstance(s, Value):
            yield s


WhereSide: TypeAlias = tuple[Value, bool]
"""A condition of a `where`, and the value of the condition for which lanes take this side."""


class _Sides:
    """The side of each value of a block: all its uses are choices by `where` that take it there.

    A choice by scalars is none: lanes do not differ in it, and the test would cost each of them.
    - `of_results`: by a value; None if it has other uses.
    - `of_checks`: the same without bitcasts to integers, which need no check of their operand.
    """

    def __init__(self, block: Sequence[Statement] = (), used: Iterable[Value] = ()) -> None:
        """Find the sides of a block's values, of which `used` are used after it."""
        self.of_results: dict[Value, WhereSide | None] = dict.fromkeys(used)
        self.of_checks = self.of_results.copy()
        for s in reversed(block):
            if isinstance(s, Value):
                self._add_uses_of(s)
            else:
                for v in uses(s):
                    self.of_results[v] = self.of_checks[v] = None

    def _add_uses_of(self, user: Value) -> None:
        """Record the uses of a value's operands."""
        own = self.of_results.setdefault(user, None)
        maps = (self.of_results, self.of_checks)
        by_scalars = user.op == "where" and _is_uniform(user.args[0])
        for k, v in enumerate(user.args):
            is_choice = own is None and user.op == "where" and k > 0 and not by_scalars
            side = (user.args[0], k == 1) if is_choice else own
            for sides in maps[:1] if user.op == "bitcast" else maps:
                sides[v] = side if sides.setdefault(v, side) == side else None


def _is_uniform(v: Value) -> bool:
    """Return True for a scalar, and an operation on scalars only."""
    return v.op in _SCALARS or (len(v.args) > 0 and all(a.op in _SCALARS for a in v.args))


def _size(x: Value) -> Value:
    """Return the bits of |x| as int32."""
    return bitcast(magnitude_bits(x), int32)


def _tiny_flag(x: Value) -> Value:
    """Return an int32 whose sign bit is set if `x` is 0 or subnormal."""
    return _size(x) - LEAST_NORMAL


def _bits_of_power(exponent: int) -> int:
    """Return the bits of a power of 2."""
    return (exponent + 127) << 23


def _flush_flag(v: Value, least: int, nonzero: Sequence[bool]) -> Value:
    """Return the flag of an operation: its sign bit is set if the result may have been flushed.

    least: results below this power of 2 are flagged.
    nonzero: for each operand, True if it is certainly not 0.
    An operand that is tiny is 0: the guard has checked that it is not subnormal.
    """
    flag, args = _size(v) - _bits_of_power(least), v.args
    if v.op in ("add", "sub"):  # of equal sizes the result is 0, or twice as large
        differs = -(_size(args[0]) ^ _size(args[1]))
        return flag & (differs if least == LEAST_EXPONENT else differs | -_size(v))
    if v.op == "cast":
        return flag & where(ne(args[0], const(0.0, float64)), const(-1, int32), 0)
    zeros = [_tiny_flag(x) for x, n in zip(args, nonzero, strict=True) if not n]
    if v.op == "div":
        zeros = zeros[: not nonzero[0]]
    if v.op == "fma":
        if nonzero[2] or (nonzero[0] and nonzero[1]):
            return flag
        *factors, addend = zeros
        return flag & ~(_join(factors) & addend)
    return flag & ~_join(zeros) if zeros else flag


def _join(flags: Sequence[Value]) -> Value:
    """Return the flag of several flags."""
    return reduce(operator.or_, flags)


class _SoftCloner(_SharingCloner):
    """A cloner that computes with soft floats where the device's may be wrong."""

    def __init__(self, analysis: SubnormalAnalysis, capabilities: Capabilities) -> None:
        super().__init__()
        self.analysis, self.capabilities = analysis, capabilities

    def rewrite_value(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        """Return the soft operation; None for a value that is right as it is."""
        if self.analysis.is_wrong(v) or v.op == "neg":
            return exact_operation(v, args, self.capabilities)
        return None

    def copy_loop_head(self, old: Loop) -> Loop:
        """Return the copy of a loop without its body; a combine keeps subnormals if it must."""
        new = super().copy_loop_head(old)
        if old in self.analysis.unsafe:
            assert new.combine is not None
            new.combine += EXACT_SUFFIX
        return new
