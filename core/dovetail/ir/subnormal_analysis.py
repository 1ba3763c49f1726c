"""Analysis of the float32 values of a kernel: which may be subnormal, or come of subnormals.

The scale of a value bounds its size and the place of its last bit. It is the interval analysis of
exponents: a sum of multiples of 2^-126 is one of them, so it is 0 or a normal number.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

from ..dtypes import DType, float16, float32, float64, int32, uint32
from .analysis import uses
from .language import Block, Loop, Statement, Value

LEAST_EXPONENT = -126  # of a normal number
SUM_THRESHOLD = -103  # numbers from 2^-103 on are multiples of 2^-126
PRODUCT_THRESHOLD = -40  # products of two numbers from 2^-40 on are multiples of 2^-126
_LAST_BIT = -149  # of the least subnormal
_ROUNDS = 1.5 * 2.0**23  # a float32 plus this number is rounded to an integer
_WORD, _SIGN_BIT = 1 << 32, 1 << 31
_INFINITY_BITS = 0x7F800000
_ANY = 1000  # the grain of 0, a multiple of every number
_LOOP_ROUNDS_MAX = 4  # until the scales of carried values must have settled
COMPARISONS = ("lt", "le", "eq", "ne")
Interval: TypeAlias = tuple[int, int]  # the least and the largest integer


class Scale(NamedTuple):
    """Bounds of a float32 x that is not NaN.

    - `grain`: x is infinite or a multiple of 2^grain.
    - `low`: |x| is 0 or at least 2^low.
    - `least`, `most`: x is between them; they are infinite if x may be.
    - `nonzero`: x is certainly not 0.
    """

    grain: int
    low: int
    least: float = -math.inf
    most: float = math.inf
    nonzero: bool = False

    @property
    def high(self) -> int:
        """Return an exponent: |x| is below its power of 2 if it is finite; 128 if unknown."""
        size = max(abs(self.least), abs(self.most))
        return math.frexp(size)[1] if size < math.inf else 128

    @property
    def is_finite(self) -> bool:
        """Return True if x is certainly finite."""
        return -math.inf < self.least and self.most < math.inf

    def join(self, other: Scale) -> Scale:
        """Return the bounds of a value that is either of two."""
        a, b = self, other
        lows = min(a.grain, b.grain), min(a.low, b.low)
        least, most = min(a.least, b.least), max(a.most, b.most)
        return Scale(*lows, least, most, a.nonzero and b.nonzero)

    def within(self, least: float, most: float) -> Scale:
        """Return the bounds of a value that also is between two numbers."""
        least, most = max(self.least, least), min(self.most, most)
        return self._replace(least=least, most=most, nonzero=self.nonzero or least > 0 or most < 0)


_UNKNOWN = Scale(_LAST_BIT, _LAST_BIT)
_FLOAT16 = Scale(-24, -24)


class SubnormalAnalysis:
    """The guards that a kernel's fast statements need, and the statements that need soft floats.

    - `checks`: a value -> an exponent: the guard checks that the value is 0 or not below its power
      of 2. Later operations rely on that.
    - `risky`: operations whose result may be subnormal or flushed although their operands are not.
    - `flag_thresholds`: a risky value -> an exponent: its flag is set below this power of 2.
    - `unsafe`: the operations that subnormal operands make wrong.
    - `flagged`: values that an earlier flag covers, with their bounds.
    - `exact`: True for statements that keep subnormals: nothing is checked.
    """

    def __init__(
        self,
        scales: dict[Value, Scale],
        flagged: Mapping[Value, Scale] | None = None,
        exact: bool = False,
    ) -> None:
        self.scales, self.exact = scales, exact
        self.flagged = flagged or {}
        self.threshold = LEAST_EXPONENT
        self.checks: dict[Value, int] = {}
        self.risky: set[Value] = set()
        self.flag_thresholds: dict[Value, int] = {}
        self.unsafe: set[Value | Loop] = set()
        self._elements: set[Value] = set()  # results of reductions that choose an element
        self._intervals: dict[Value, Interval | None] = {}  # of integers
        self._sensitive: set[Value] = set()  # used by an operation that a flushed operand changes

    def needs_flag(self, v: Value) -> bool:
        """Return True if a guard must find out if the result of `v` was flushed."""
        return v in self.risky and v in self._sensitive

    def is_wrong(self, v: Value) -> bool:
        """Return True if the device may compute `v` wrongly from exact operands."""
        return v in self.unsafe or self.needs_flag(v)

    # --- statements

    def visit_block(self, block: Block, used: Collection[Value] = ()) -> None:
        """Analyse statements in order.

        used: the values that are used after the block.
        """
        for is_loop, part in groupby(block, lambda s: isinstance(s, Loop)):
            for statements in ([s] for s in part) if is_loop else (list(part),):
                others = {v for s in {*block}.difference(statements) for v in uses(s)}
                self._visit_with_few_flags(statements, others.union(used))
        self.use(used)

    def use(self, values: Iterable[Value]) -> None:
        """Record uses that need the value as it is."""
        self._sensitive.update(values)

    def _visit_with_few_flags(self, part: Sequence[Statement], used: Collection[Value]) -> None:
        """Analyse statements with the threshold at which fewest values are checked and flagged.

        Of a loop, PRODUCT_THRESHOLD is one if no operation then needs a flag.
        """
        if self.exact:
            self._visit_statements(part)
            return
        before = self._copy_state()
        best = LEAST_EXPONENT, math.inf
        for threshold in (LEAST_EXPONENT, SUM_THRESHOLD, PRODUCT_THRESHOLD):
            self._restore_state(before)
            self.threshold = threshold
            self._visit_statements(part)
            risky = self.risky - before[2]
            flags = sum(1 for v in risky if v in used or v in self._sensitive)
            checks = sum(1 for v, t in self.checks.items() if t != before[1].get(v))
            is_allowed = threshold <= SUM_THRESHOLD or (isinstance(part[0], Loop) and not flags)
            if is_allowed and flags + checks < best[1]:
                best = threshold, flags + checks
            if not flags:
                break
        if threshold != best[0]:
            self._restore_state(before)
            self.threshold = best[0]
            self._visit_statements(part)
        self.threshold = LEAST_EXPONENT

    def _visit_statements(self, block: Sequence[Statement]) -> None:
        """Analyse statements in order."""
        for s in block:
            if isinstance(s, Loop):
                self._visit_loop(s)
            elif isinstance(s, Value):
                self._visit_value(s)
            else:
                self.use(uses(s))

    def _copy_state(self) -> tuple[dict[Value, Scale], dict[Value, int], set[Value], set[Value]]:
        """Return a copy of what the analysis of a loop changes."""
        return self.scales.copy(), self.checks.copy(), self.risky.copy(), self._sensitive.copy()

    def _restore_state(
        self, state: tuple[dict[Value, Scale], dict[Value, int], set[Value], set[Value]]
    ) -> None:
        """Undo the analysis of a loop."""
        self.scales, self.checks = state[0].copy(), state[1].copy()
        self.risky, self._sensitive = state[2].copy(), state[3].copy()

    def _visit_loop(self, loop: Loop) -> None:
        """Analyse a loop; the scales of carried values are found by iteration."""
        self.use((loop.start, loop.stop, *loop.init))
        carried = [self.scale(v) for v in loop.init]
        for k in range(_LOOP_ROUNDS_MAX):
            self.scales.update(zip(loop.carry, carried, strict=True))
            self._visit_statements(loop.body)
            joined = [a.join(self.scale(u)) for a, u in zip(carried, loop.update, strict=False)]
            if loop.kind != "fold" or joined == carried:
                break
            carried = joined if k < _LOOP_ROUNDS_MAX - 2 else [_UNKNOWN] * len(carried)
        if loop.kind == "fold":
            self.use(loop.update)
            self.scales.update(zip(loop.results, carried, strict=True))
        else:
            self._visit_combine(loop)

    def _visit_combine(self, loop: Loop) -> None:
        """Analyse the combination of a reduction's elements."""
        self.use(loop.update)
        for u, result in zip(loop.update, loop.results, strict=True):
            if u.dtype is not float32:
                continue
            if loop.combine == "add":
                if self.scale(u).grain < LEAST_EXPONENT:
                    self._check(u, SUM_THRESHOLD, loop)
                grain = max(self.scale(u).grain, _LAST_BIT)
                self.scales[result] = Scale(grain, grain)
            elif loop.combine in ("max", "min", "argmax", "argmin"):
                self.scales[result] = Scale(*self._operand(u, loop)[:2])
                self._elements.add(result)
            else:  # a product, which no check makes safe
                self.unsafe.add(loop)

    # --- values

    def scale(self, v: Value) -> Scale:
        """Return the scale of a float32 value; the widest one if none is recorded."""
        if v.op == "const" and v.dtype is float32:
            return _constant_scale(v.number)
        return self.scales.get(v, _UNKNOWN)

    def _operand(self, v: Value, user: Value | Loop) -> Scale:
        """Return the bounds of an operand which must not be flushed; have it checked."""
        self._sensitive.add(v)
        low = self.scale(v).low if v in self._elements else self.threshold
        is_lower = self.checks.get(v, low) < self.threshold
        if self.scale(v).low < LEAST_EXPONENT or is_lower:
            self._check(v, self.threshold, user)
        return self.scale(v)

    def _check(self, v: Value, threshold: int, user: Value | Loop) -> None:
        """Have a value checked, unless subnormals are kept."""
        if self.exact:
            self.unsafe.add(user)
            return
        self.checks[v] = max(threshold, self.checks.get(v, threshold))
        grain, low = self.scale(v)[:2]
        least = self.checks[v]
        self.scales[v] = self.scale(v)._replace(grain=max(least - 23, grain), low=max(least, low))

    def _visit_value(self, v: Value) -> None:
        """Record the bounds of an operation's result, and the checks of its operands."""
        if v.dtype in (int32, uint32):
            self._record_interval(v)
        if v in self.flagged:
            self.scales[v] = self.flagged[v]
            return
        if v.op in COMPARISONS and v.args[0].dtype is float32:
            self._visit_comparison(v)
        elif v.op == "cast" and float32 in (v.dtype, v.args[0].dtype):
            self._visit_cast(v)
        elif v.dtype is float32 and v.op in _RULES:
            self._record(v, _round_bounds(_RULES[v.op](self, v)))
        else:
            self.use(v.args)
            if v.dtype is float32 and v.op in _MOVES:
                self.scales[v] = _tighten(_MOVES[v.op](self, v))

    def _record(self, v: Value, scale: Scale) -> None:
        """Record the bounds of arithmetic; a result that may be subnormal is risky."""
        if scale.low < LEAST_EXPONENT:
            self.risky.add(v)
            self.flag_thresholds[v] = self.threshold
            if self.threshold > LEAST_EXPONENT:  # the scale is that of a result with a flag
                self.use((v,))
            if not self.exact:
                low = self.threshold
                scale = scale._replace(low=low, grain=max(scale.grain, low - 23))
        self.scales[v] = scale

    def _visit_comparison(self, v: Value) -> None:
        """Have the operands of a comparison checked, unless it is a test for NaN.

        A compiler may make a minimum of a comparison and a choice, which then flushes the result:
        so no constant makes a comparison safe.
        """
        a, b = v.args
        if a is not b:
            self._operand(a, v)
            self._operand(b, v)

    def _visit_cast(self, v: Value) -> None:
        """Record the bounds of a cast to float32, or have the operand of one from it checked."""
        (x,) = v.args
        self.use(v.args)
        if x.dtype is float64:
            self._record(v, _UNKNOWN)
        elif v.dtype is float32:
            self.scales[v] = _FLOAT16 if x.dtype is float16 else _integer_scale(x.dtype)
        elif v.dtype is float64 or v.dtype.kind == "b":
            self._operand(x, v)

    # --- values that are moved

    def _choice(self, v: Value) -> Scale:
        """Return the bounds of a `where`; a comparison with a bound limits the value.

        Where a comparison is False one of the two may be NaN, but not a constant.
        """
        c, *sides = v.args
        scales = [self.scale(x) for x in sides]
        if c.op in ("lt", "le") and c.args[0].dtype is float32:
            smaller, larger = c.args
            for k, (small, large) in enumerate(((smaller, larger), (larger, smaller))):
                if sides[k] is small and (k == 0 or large.op == "const"):
                    scales[k] = scales[k].within(-math.inf, self.scale(large).most)
                if sides[k] is large and (k == 0 or small.op == "const"):
                    scales[k] = scales[k].within(self.scale(small).least, math.inf)
        return scales[0].join(scales[1])

    def _negation(self, v: Value) -> Scale:
        """Return the bounds of -x."""
        x = self.scale(v.args[0])
        return x._replace(least=-x.most, most=-x.least)

    def _from_bits(self, v: Value) -> Scale:
        """Return the bounds of a float from bits, if these are the bits of positive floats."""
        bits = shift_to(self._bits_interval(v.args[0]), 0)
        if bits is None or bits[1] > _INFINITY_BITS:
            return _UNKNOWN.within(0.0, math.inf) if bits and bits[1] < _SIGN_BIT else _UNKNOWN
        return _UNKNOWN.within(*map(_float_of_bits, bits))

    # --- integers: floats are made of their bits

    def _bits_interval(self, v: Value) -> Interval | None:
        """Return the interval of a 32-bit integer, plus any multiple of 2^32; None if unknown.

        The bits of a NaN are no part of the interval of a float's bits: no result may depend on
        them, since devices have different ones.
        """
        return (int(v.number),) * 2 if v.op == "const" else self._intervals.get(v)

    def _record_interval(self, v: Value) -> None:
        """Record the interval of a 32-bit integer."""
        rule = _BITS_RULES.get(v.op)
        interval = None if rule is None else rule(self, v)
        is_known = interval is not None and interval[1] - interval[0] < _WORD
        self._intervals[v] = interval if is_known else None

    def _bits_of_operand(self, v: Value) -> Interval | None:
        """Return the interval of the bits of a bitcast's operand."""
        (x,) = v.args
        if x.dtype is not float32:
            return self._bits_interval(x)
        if x.op == "bitcast":
            return self._bits_interval(x.args[0])
        least, most = self.scale(x)[2:4]
        return (_bits_of_float(least), _bits_of_float(most)) if least > 0 else None

    def _bits_sum(self, v: Value) -> Interval | None:
        """Return the interval of a sum or difference, also of x - ((x - k) & -(2^n))."""
        a, b = v.args
        if v.op == "sub" and b.op == "shr" and b.args[0] is a and b.args[1].op == "const":
            x = self._bits_interval(b) if b.args[1].number == 1 else None  # x - (x >> 1)
            return None if x is None else (x[0], x[1] + 1)
        if v.op == "sub" and b.op == "and" and b.args[0].op == "sub" and b.args[0].args[0] is a:
            k, mask = b.args[0].args[1], b.args[1]
            if k.op == mask.op == "const":
                size = _WORD - int(mask.number) % _WORD
                return (int(k.number), int(k.number) + size - 1) if _is_power(size) else None
        x, y = self._bits_interval(a), self._bits_interval(b)
        if x is None or y is None:
            return None
        return (x[0] + y[0], x[1] + y[1]) if v.op == "add" else (x[0] - y[1], x[1] - y[0])

    def _bits_shift(self, v: Value) -> Interval | None:
        """Return the interval of a shift by a constant."""
        x, n = self._bits_interval(v.args[0]), v.args[1]
        if n.op != "const":
            return None
        count = int(n.number)
        if v.op == "shl":
            return None if x is None else (x[0] << count, x[1] << count)
        first = 0 if v.dtype is uint32 else -_SIGN_BIT
        low, high = shift_to(x, first) or (first, first + _WORD - 1)
        return low >> count, high >> count

    def _bits_mask(self, v: Value) -> Interval | None:
        """Return the interval of x & mask, or of (x & mask) | bits without bits in common."""
        x, n = v.args
        if n.op != "const":
            return None
        if v.op == "and":
            return (0, int(n.number)) if n.number >= 0 else None
        interval = shift_to(self._bits_interval(x), 0)
        if interval is None or int(n.number) & ((1 << interval[1].bit_length()) - 1):
            return None
        return int(n.number), int(n.number) + interval[1]

    def _bits_choice(self, v: Value) -> Interval | None:
        """Return the interval of a `where` of integers."""
        x, y = (shift_to(self._bits_interval(side), 0) for side in v.args[1:])
        return None if x is None or y is None else (min(x[0], y[0]), max(x[1], y[1]))

    # --- arithmetic

    def _sum(self, v: Value) -> Scale:
        """Return the bounds of a sum or a difference."""
        a, b = v.args
        operands = [self.scale(x) for x in v.args]
        for big, other in (operands, operands[::-1]):
            if big.nonzero and big.low >= -100:  # a flushed `other` does not change the sum
                grain = max(min(big.grain, other.grain), LEAST_EXPONENT)
                break
        else:
            operands = [self._operand(x, v) for x in (a, b)]
            grain = min(x.grain for x in operands)
        x, y = operands
        y = y if v.op == "add" else y._replace(least=-y.most, most=-y.least)
        return Scale(grain, grain, x.least + y.least, x.most + y.most)

    def _product(self, v: Value) -> Scale:
        """Return the bounds of a product."""
        return _product_scale(*[self._operand(x, v) for x in v.args])

    def _fma(self, v: Value) -> Scale:
        """Return the bounds of a * b + c."""
        a, b, c = (self.scale(x) for x in v.args)
        if c.nonzero and c.low >= -78:  # no cancellation leaves a subnormal
            for x, other in ((v.args[0], b), (v.args[1], a)):
                # a flushed factor may change the sum, or give NaN with infinity
                if not other.is_finite or other.high - 126 > c.low - 26:
                    self._operand(x, v)
            grain = max(min(a.grain + b.grain, c.grain), LEAST_EXPONENT)
        else:
            a, b, c = (self._operand(x, v) for x in v.args)
            if c.least == c.most == 0:
                return _product_scale(a, b)
            grain = min(a.grain + b.grain, c.grain)
        least, most = _product_bounds(a, b)
        bound = self._remainder_bound(v)
        return Scale(grain, grain, least + c.least, most + c.most).within(-bound, bound)

    def _remainder_bound(self, v: Value) -> float:
        """Return a bound of |n * b + x|, where n is x * k rounded to an integer; or infinity.

        It is x * (1 + k * b) + b * (n - x * k). A sum with 1.5 * 2^23 has rounded x * k.
        """
        n, b, x = v.args
        if n.op != "sub" or n.args[0].op != "fma" or b.op != "const":
            return math.inf
        (y, k, big), subtrahend = n.args[0].args, n.args[1]
        is_rounded = all(c.op == "const" and c.number == _ROUNDS for c in (big, subtrahend))
        scale = self.scale(x)
        size = max(abs(scale.least), abs(scale.most))
        if y is not x or not is_rounded or k.op != "const" or not abs(k.number) * size < 2.0**22:
            return math.inf
        return size * abs(1 + k.number * b.number) + abs(b.number) / 2

    def _quotient(self, v: Value) -> Scale:
        """Return the bounds of a quotient."""
        a, b = (self._operand(x, v) for x in v.args)
        low = a.low - b.high
        if not (b.least > 0 or b.most < 0):
            return Scale(low - 23, low)
        ends = [x / y if abs(x) < math.inf else x * y for x in a[2:4] for y in b[2:4]]
        return Scale(low - 23, low, min(ends), max(ends))

    def _root(self, v: Value) -> Scale:
        """Return the bounds of a square root."""
        a = self._operand(v.args[0], v)
        low = a.low // 2
        return Scale(low - 23, low, 0.0, math.sqrt(max(a.most, 0.0)))

    def _integral(self, v: Value) -> Scale:
        """Return the bounds of a number without fraction."""
        a = self._operand(v.args[0], v)
        return Scale(max(a.grain, 0), 0, a.least - 1, a.most + 1)


Rule: TypeAlias = Callable[[SubnormalAnalysis, Value], Scale]
_RULES: dict[str, Rule] = {
    "add": SubnormalAnalysis._sum,
    "sub": SubnormalAnalysis._sum,
    "mul": SubnormalAnalysis._product,
    "fma": SubnormalAnalysis._fma,
    "div": SubnormalAnalysis._quotient,
    "sqrt": SubnormalAnalysis._root,
    "trunc": SubnormalAnalysis._integral,
    "floor": SubnormalAnalysis._integral,
    "rint": SubnormalAnalysis._integral,
}
_BITS_RULES: dict[str, Callable[[SubnormalAnalysis, Value], Interval | None]] = {
    "bitcast": SubnormalAnalysis._bits_of_operand,
    "add": SubnormalAnalysis._bits_sum,
    "sub": SubnormalAnalysis._bits_sum,
    "shl": SubnormalAnalysis._bits_shift,
    "shr": SubnormalAnalysis._bits_shift,
    "and": SubnormalAnalysis._bits_mask,
    "or": SubnormalAnalysis._bits_mask,
    "where": SubnormalAnalysis._bits_choice,
}
_MOVES: dict[str, Rule] = {
    "where": SubnormalAnalysis._choice,
    "neg": SubnormalAnalysis._negation,
    "bitcast": SubnormalAnalysis._from_bits,
}


def _round_bounds(exact: Scale) -> Scale:
    """Return the bounds of a result that is rounded to float32, which may overflow."""
    least, most = (
        x + side * (abs(x) * 2.0**-22 + 2.0 ** (_LAST_BIT - 1))
        for x, side in zip(exact[2:4], (-1, 1), strict=True)
    )
    least, most = (x if abs(x) < 2.0**127 else math.copysign(math.inf, x) for x in (least, most))
    least, most = (0.0 if abs(x) < 2.0**_LAST_BIT else x for x in (least, most))
    if not least <= most:  # NaN: a difference of infinite bounds
        least, most = -math.inf, math.inf
    return _tighten(Scale(max(exact.grain, _LAST_BIT), exact.low, least, most, exact.nonzero))


def _tighten(scale: Scale) -> Scale:
    """Return bounds in which each of the numbers limits the others."""
    low, nonzero = max(scale.low, scale.grain), scale.nonzero
    if scale.least > 0 or scale.most < 0:
        low = max(low, math.frexp(min(abs(scale.least), abs(scale.most)))[1] - 1)
        nonzero = True
    return scale._replace(grain=max(scale.grain, low - 23), low=low, nonzero=nonzero)


def _product_scale(a: Scale, b: Scale) -> Scale:
    """Return the bounds of a product of numbers within bounds."""
    low, nonzero = a.low + b.low, a.nonzero and b.nonzero
    nonzero = nonzero and low >= LEAST_EXPONENT
    return Scale(a.grain + b.grain, low, *_product_bounds(a, b), nonzero)


def _product_bounds(a: Scale, b: Scale) -> tuple[float, float]:
    """Return the least and the largest product; infinite ones if they are not known."""
    ends = [x * y for x in a[2:4] for y in b[2:4]]
    return (min(ends), max(ends)) if not any(map(math.isnan, ends)) else (-math.inf, math.inf)


def _integer_scale(d: DType) -> Scale:
    """Return the bounds of an integer or bool as float32."""
    return Scale(0, 0, -(2.0**64) if d.kind == "i" else 0.0, 2.0**64)


def _constant_scale(x: float) -> Scale:
    """Return the bounds of a constant."""
    if x == 0 or not math.isfinite(x):
        return Scale(_ANY, _ANY, x, x, x != 0) if x == x else Scale(_ANY, _ANY)
    size = math.frexp(x)[1]
    odd, divisor = abs(x).as_integer_ratio()
    grain = (odd & -odd).bit_length() - divisor.bit_length()
    return Scale(grain, size - 1, x, x, True)


def shift_to(interval: Interval | None, first: int) -> Interval | None:
    """Return an interval of integers plus a multiple of 2^32, in first..first + 2^32 - 1."""
    if interval is None:
        return None
    low = (interval[0] - first) % _WORD + first
    high = low + interval[1] - interval[0]
    return (low, high) if high < first + _WORD else None


def _is_power(n: int) -> bool:
    """Return True for a power of two."""
    return n & (n - 1) == 0


def _bits_of_float(x: float) -> int:
    """Return the bits of a float32."""
    return int.from_bytes(struct.pack("<f", x), "little")


def _float_of_bits(bits: int) -> float:
    """Return the float32 of some bits."""
    (x,) = struct.unpack("<f", bits.to_bytes(4, "little"))
    return float(x)
