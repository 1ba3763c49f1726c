"""Interval analysis of a kernel's buffer indices, for given sizes.

An interval covers every index of every launch with these integers. Of an index that depends on
data, the analysis knows only what the kernel itself checks before it uses the index.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from ..dtypes import DType, int32
from .builder import Kernel
from .int64_arith import is_wide
from .language import CHUNK, Atomic, Block, Loop, Store, Value, walk

Interval = tuple[int, int]  # the least and the largest value
Assumptions = Mapping[int, Interval]  # id of a value -> the interval that conditions imply for it
TRIPS_MAX = 1 << 30  # iterations of a loop; a larger bound is that of a dtype of data
TRIP_SUBSTITUTIONS_MAX = 3  # minima and maxima of a loop's ends that are looked into at once
INDEX_VALUES_MAX = 4096  # values in one index expression; a larger one counts as unbounded


INT32_INDEX_MAX = (1 << 31) - 1 - 2 * CHUNK  # loops over chunks compute indices beyond their end


class UnboundedIndexError(Exception):
    """The interval of an index is not known."""


class Int32OverflowError(Exception):
    """A number, `args[0]`, does not fit an int32 index."""


def index_intervals(
    kernel: Kernel, ints: Sequence[int], grid: Sequence[int]
) -> dict[str, Interval]:
    """Return the least and the largest index of each buffer that a launch may touch, by name.

    Raises: UnboundedIndexError if one is not bounded.
    """
    if 0 in grid:
        return {}
    return _IndexIntervals(kernel, dict(zip(kernel.ints, ints, strict=True)), grid).run()


def index_intervals_or_none(
    kernel: Kernel, ints: Sequence[int], grid: Sequence[int]
) -> dict[str, Interval | None]:
    """Return the least and the largest index of each buffer, or None if it is unbounded."""
    if 0 in grid:
        return {}
    analysis = _IntervalsPerBuffer(kernel, dict(zip(kernel.ints, ints, strict=True)), grid)
    return analysis.run() | dict.fromkeys(analysis.unbounded)


def check_int32(
    kernel: Kernel, spans: Mapping[str, Interval], grid: Sequence[int], words: bool = False
) -> None:
    """Raise Int32OverflowError if a number of a kernel with int32 indices does not fit.

    spans: the least and the largest value of each integer.
    words: True if each 64-bit integer is two elements.
    The contents of memory count as far as the kernel compares them.

    Raises: Int32OverflowError, with a number that does not fit.
    """
    for n in (*grid, *(high for _, high in spans.values())):
        if n > INT32_INDEX_MAX:
            raise Int32OverflowError(n)
    if 0 not in grid:
        _Int32Check(kernel, spans, grid).run()
        if words:
            _WordIndexCheck(kernel, spans, grid).run()


def trip_bounds(kernel: Kernel, ints: Sequence[int], grid: Sequence[int]) -> dict[Loop, int | None]:
    """Return the most iterations of each loop whenever it runs; None if that depends on data."""
    analysis = _TripBounds(kernel, dict(zip(kernel.ints, ints, strict=True)), grid)
    if 0 not in grid:
        analysis.visit_block(kernel.body)
    return {s: analysis.bounds.get(s, 0) for s in walk(kernel.body) if isinstance(s, Loop)}


def dtype_interval(d: DType) -> Interval:
    """Return the interval of all values of a dtype of integers or bools."""
    return (0, 1) if d.kind == "b" else (int(d.min), int(d.max))


class _IndexIntervals:
    """The intervals of all buffer indices of one launch."""

    def __init__(self, kernel: Kernel, ints: Mapping[str, int], grid: Sequence[int]) -> None:
        self.kernel, self.ints, self.grid = kernel, ints, grid
        self.loops: dict[int, Interval] = {}  # id of a loop -> the interval of its variable
        self.intervals: dict[str, Interval] = {}
        self.visited_values = 0

    def run(self) -> dict[str, Interval]:
        """Visit the kernel, and return the index interval of each buffer, by name."""
        self.visit_block(self.kernel.body)
        return self.intervals

    def visit_block(self, block: Block) -> None:
        """Extend the intervals by a block's accesses; store its loops' ranges.

        Raises: UnboundedIndexError for an index without known bounds.
        """
        for s in block:
            if isinstance(s, Loop):
                start, stop = self.value(s.start, {}), self.value(s.stop, {})
                if stop[1] > start[0]:  # otherwise the loop runs no iteration
                    self.loops[id(s)] = (start[0], stop[1] - 1)
                    self.visit_block(s.body)
            elif isinstance(s, Store | Atomic) or s.op == "load":
                self.visit_access(s.buffer.name, s.index, s.when)

    def visit_access(self, name: str, index: Value, when: Value | None) -> None:
        """Extend a buffer's interval by an index under `when`; raise if the index is unbounded."""
        self.visited_values = 0
        assumed: dict[int, Interval] = {}
        if when is not None:
            assumed = self.assume(when, True, {})
            if any(low > high for low, high in assumed.values()):
                return
        low, high = self.value(index, assumed)
        if (low, high) == dtype_interval(index.dtype):
            raise UnboundedIndexError(name)
        a, b = self.intervals.get(name, (low, high))
        self.intervals[name] = (min(a, low), max(b, high))

    # --- conditions
    def assume(self, c: Value, holds: bool, assumed: Assumptions) -> dict[int, Interval]:
        """Return the assumptions narrowed by a condition that holds, or does not hold."""
        refined = dict(assumed)
        if c.op == "not":
            return self.assume(c.args[0], not holds, refined)
        if (c.op == "and" and holds) or (c.op == "or" and not holds):
            for a in (*c.args, *c.args):  # twice: the second operand may narrow the first
                refined = self.assume(a, holds, refined)
        elif c.op in ("lt", "le", "eq") and c.args[0].dtype.is_integer:
            a, b = c.args if holds or c.op == "eq" else c.args[::-1]
            strict = (c.op == "lt") == holds
            if c.op != "eq":
                self.assume_order(a, b, int(strict), refined)
            elif holds:
                self.assume_order(a, b, 0, refined)
                self.assume_order(b, a, 0, refined)
        return refined

    def assume_order(self, a: Value, b: Value, gap: int, refined: dict[int, Interval]) -> None:
        """Narrow the intervals of `a` and `b` in `refined` by a + gap <= b."""
        (a_low, a_high), (b_low, b_high) = self.value(a, refined), self.value(b, refined)
        refined[id(a)] = a_low, min(a_high, b_high - gap)
        refined[id(b)] = max(b_low, a_low + gap), b_high

    # --- values
    def value(self, v: Value, assumed: Assumptions) -> Interval:
        """Return the interval of a value; all of its dtype if nothing else is known.

        Raises: UnboundedIndexError after INDEX_VALUES_MAX values.
        """
        self.visited_values += 1
        if self.visited_values > INDEX_VALUES_MAX:
            raise UnboundedIndexError(self.kernel.name)
        low, high = self.evaluate(v, assumed)
        all_low, all_high = dtype_interval(v.dtype) if v.dtype.kind != "f" else (low, high)
        if low < all_low or high > all_high:  # it may wrap
            low, high = all_low, all_high
        if id(v) in assumed:
            low, high = max(low, assumed[id(v)][0]), min(high, assumed[id(v)][1])
        return low, high

    def evaluate(self, v: Value, assumed: Assumptions) -> Interval:
        """Return the interval of an operation's exact result, before it wraps."""
        if v.op == "const":
            return int(v.number), int(v.number)
        if v.op == "param" and v.name in self.ints:
            return self.ints[v.name], self.ints[v.name]
        if v.op == "index":
            return 0, self.grid[v.axis] - 1
        if v.op == "loopvar":
            return self.loops[id(v.place[0])]
        if v.op == "where":
            return self.evaluate_where(v, assumed)
        if v.op in ("lt", "le", "eq", "ne"):
            return 0, 1
        if v.op == "cast" and v.args[0].dtype.kind in "biu":
            return self.value(v.args[0], assumed)
        rule = _RULES.get(v.op)
        if rule is None or not v.dtype.is_integer:
            if v.dtype.kind == "f":
                raise UnboundedIndexError(self.kernel.name)
            return self.default_interval(v.dtype)
        return rule(*[self.value(a, assumed) for a in v.args]) or self.default_interval(v.dtype)

    def default_interval(self, d: DType) -> Interval:
        """Return the interval of a value of which nothing is known."""
        return dtype_interval(d)

    def evaluate_where(self, v: Value, assumed: Assumptions) -> Interval:
        """Return the interval of a `where`: each side is evaluated under its condition."""
        c, a, b = v.args
        sides = []
        for x, holds in ((a, True), (b, False)):
            refined = self.assume(c, holds, assumed)
            if all(low <= high for low, high in refined.values()):
                sides.append(self.value(x, refined))
        if not sides:  # both conditions contradict what is assumed
            raise UnboundedIndexError(self.kernel.name)
        return min(low for low, _ in sides), max(high for _, high in sides)


class _IntervalsPerBuffer(_IndexIntervals):
    """An interval analysis that goes on after an unbounded index, and collects such buffers."""

    def __init__(self, kernel: Kernel, ints: Mapping[str, int], grid: Sequence[int]) -> None:
        super().__init__(kernel, ints, grid)
        self.unbounded: set[str] = set()

    def visit_block(self, block: Block) -> None:
        """Visit a block; if a loop's bounds are unbounded, record all of its buffers as such."""
        try:
            super().visit_block(block)
        except (
            UnboundedIndexError
        ):  # by a loop's bounds: its body and what follows are not analysed
            self.unbounded |= {
                s.buffer.name
                for s in walk(block)
                if isinstance(s, Store | Atomic) or (isinstance(s, Value) and s.op == "load")
            }

    def visit_access(self, name: str, index: Value, when: Value | None) -> None:
        """Extend the buffer's interval, or record the buffer as unbounded."""
        try:
            super().visit_access(name, index, when)
        except UnboundedIndexError:
            self.unbounded.add(name)


class _TripBounds(_IndexIntervals):
    """The most iterations of each loop.

    The difference of a loop's ends is a sum of values, of which equal ones cancel: a loop from
    i * 256 to min(i * 256 + 256, n) has at most 256 iterations.
    """

    def __init__(self, kernel: Kernel, ints: Mapping[str, int], grid: Sequence[int]) -> None:
        super().__init__(kernel, ints, grid)
        self.bounds: dict[Loop, int | None] = {}

    def visit_block(self, block: Block) -> None:
        """Store the bounds of the loops of a block."""
        for s in block:
            if isinstance(s, Loop):
                self.visited_values = 0
                count: int | None
                try:
                    count = self.upper_bound(self.add_terms(s.start, -1, self.add_terms(s.stop)))
                    if count > TRIPS_MAX:
                        raise UnboundedIndexError(self.kernel.name)
                    self.bounds[s] = count = max(0, count)
                except UnboundedIndexError:
                    self.bounds[s] = count = None
                if count != 0:
                    self.loops[id(s)] = self.interval_of_variable(s)
                    self.visit_block(s.body)

    def interval_of_variable(self, loop: Loop) -> Interval:
        """Return the interval of a loop's variable; all of its dtype if that is not known."""
        try:
            return self.value(loop.start, {})[0], self.value(loop.stop, {})[1] - 1
        except UnboundedIndexError:
            return dtype_interval(loop.var.dtype)

    def add_terms(self, v: Value, factor: int = 1, total: _Sum | None = None) -> _Sum:
        """Return a sum to which the terms of factor * v are added."""
        total = total or _Sum({}, 0)
        if v.op in ("add", "sub"):
            a, b = v.args
            total = self.add_terms(a, factor, total)
            return self.add_terms(b, factor if v.op == "add" else -factor, total)
        low, high = self.value(v, {})
        if low == high:
            return _Sum(total.terms, total.constant + factor * low)
        if v.op in ("mul", "shl"):
            for a, b in (v.args, v.args[::-1]):
                low, high = self.value(b, {})
                if low == high and (v.op == "mul" or b is v.args[1]):
                    return self.add_terms(a, factor * (low if v.op == "mul" else 1 << low), total)
        key = v if v.op not in ("index", "loopvar") else (v.op, v.attr)
        _, before = total.terms.get(key, (v, 0))
        return _Sum({**total.terms, key: (v, before + factor)}, total.constant)

    def upper_bound(self, total: _Sum, substitutions: int = TRIP_SUBSTITUTIONS_MAX) -> int:
        """Return an upper bound of a sum. Raises: UnboundedIndexError if there is none.

        substitutions: how many minima and maxima may be replaced by one of their operands.
        """
        bounds = [self.sum_of_bounds(total)]
        for key, (v, factor) in total.terms.items() if substitutions else ():
            others = _Sum({k: t for k, t in total.terms.items() if k != key}, total.constant)
            for side in _sides_of_minimum(v) if factor > 0 else _sides_of_maximum(v):
                with suppress(UnboundedIndexError):
                    replaced = self.add_terms(side, factor, others)
                    bounds.append(self.upper_bound(replaced, substitutions - 1))
        if bounds == [None]:
            raise UnboundedIndexError(self.kernel.name)
        return min(b for b in bounds if b is not None)

    def sum_of_bounds(self, total: _Sum) -> int | None:
        """Return the sum of the bounds of a sum's terms; None if a term has any value."""
        bound = total.constant
        for v, factor in total.terms.values():
            low, high = self.value(v, {})
            if factor and (low, high) == dtype_interval(v.dtype):
                return None
            bound += factor * (high if factor > 0 else low)
        return bound


class _Sum(NamedTuple):
    """A sum of integer values with factors, and a constant."""

    terms: dict[Hashable, tuple[Value, int]]
    constant: int


def _sides_of_minimum(v: Value) -> tuple[Value, ...]:
    """Return the operands of which a value is the minimum, as `where(a < b, a, b)`; () if none."""
    sides = v.args[1:]
    return sides if v.op == "where" and _compares(v.args[0], sides) else ()


def _sides_of_maximum(v: Value) -> tuple[Value, ...]:
    """Return the operands of which a value is the maximum, as `where(a < b, b, a)`; () if none."""
    sides = v.args[1:]
    return sides if v.op == "where" and _compares(v.args[0], sides[::-1]) else ()


def _compares(c: Value, pair: Sequence[Value]) -> bool:
    """Return True for a condition a < b or a <= b of this pair."""
    return c.op in ("lt", "le") and all(
        a is b or (a.op == b.op and a.op in ("param", "index", "const") and a.attr == b.attr)
        for a, b in zip(c.args, pair, strict=True)
    )


class _Int32Check(_IndexIntervals):
    """A check that int32 values which depend on integers alone fit, and so do indices."""

    def __init__(self, kernel: Kernel, spans: Mapping[str, Interval], grid: Sequence[int]) -> None:
        super().__init__(kernel, {}, grid)
        self.spans = spans
        self.unconditional: dict[int, Interval] = {}  # intervals without assumptions, by id
        self.data: set[int] = set()  # ids of values that depend on memory or on a scalar

    def visit_block(self, block: Block) -> None:
        """Check each statement, collect data-dependent ones; skip those without known intervals."""
        for s in block:
            self.visited_values = 0
            with suppress(UnboundedIndexError):
                if isinstance(s, Value) and s.op != "load":
                    if any(map(self.is_data_dependent, s.args)):
                        self.data.add(id(s))
                    elif s.dtype is int32:
                        self.value(s, {})
                else:
                    super().visit_block((s,))

    def is_data_dependent(self, v: Value) -> bool:
        """Return True if a value depends on anything but the launch's integers."""
        if v.op in ("const", "index", "loopvar"):
            return False
        if v.op == "param" and v.name not in self.spans:
            return True
        return v.op in ("load", "carry", "result") or id(v) in self.data

    def visit_access(self, name: str, index: Value, when: Value | None) -> None:
        """Check the index under its condition; raise Int32OverflowError if it may overflow."""
        self.value(index, {} if when is None else self.assume(when, True, {}))

    def value(self, v: Value, assumed: Assumptions) -> Interval:
        """Return the interval of a value, cached if there are no assumptions."""
        if not assumed and id(v) in self.unconditional:
            return self.unconditional[id(v)]
        interval = super().value(v, assumed)
        if not assumed:
            self.unconditional[id(v)] = interval
        return interval

    def evaluate(self, v: Value, assumed: Assumptions) -> Interval:
        """Return an operation's interval; raise Int32OverflowError if int32 operands overflow."""
        if v.op == "param" and v.name in self.spans:
            return self.spans[v.name]
        if v.op == "cast" and v.args[0].dtype.kind in "iu":
            source = self.value(v.args[0], assumed)
            return dtype_interval(v.dtype) if source == dtype_interval(v.args[0].dtype) else source
        interval = super().evaluate(v, assumed)
        if v.dtype is not int32 or v.op not in _RULES or _fits_int32(interval):
            return interval
        if all(_fits_int32(self.value(a, assumed)) for a in v.args):  # otherwise an operand is data
            raise Int32OverflowError(max(interval, key=abs))
        return interval


class _WordIndexCheck(_IndexIntervals):
    """A check of indices of 64-bit integers, which are twice as large in words.

    The contents of memory may be anything, unless the kernel compares them: their interval is
    `_UNBOUNDED_INTERVAL`, and so is that of values made of them. No index is refused for that.
    """

    def __init__(self, kernel: Kernel, spans: Mapping[str, Interval], grid: Sequence[int]) -> None:
        super().__init__(kernel, {}, grid)
        self.spans = spans
        self.wide_buffers = {b.name for b in kernel.buffers if is_wide(b.dtype)}

    def visit_block(self, block: Block) -> None:
        """Check each statement; skip those whose intervals are unbounded."""
        for s in block:
            self.visited_values = 0
            with suppress(UnboundedIndexError):
                super().visit_block((s,))

    def visit_access(self, name: str, index: Value, when: Value | None) -> None:
        """Raise Int32OverflowError if the word index of a 64-bit element does not fit int32."""
        if name in self.wide_buffers:
            _, high = self.value(index, {} if when is None else self.assume(when, True, {}))
            if high <= INT32_INDEX_MAX < 2 * high + 1:  # a larger `high` comes from memory
                raise Int32OverflowError(2 * high + 1)

    def value(self, v: Value, assumed: Assumptions) -> Interval:
        """Return the interval of a value, without limiting it to the range of its dtype.

        Raises: UnboundedIndexError after INDEX_VALUES_MAX values.
        """
        self.visited_values += 1
        if self.visited_values > INDEX_VALUES_MAX:
            raise UnboundedIndexError(self.kernel.name)
        low, high = self.evaluate(v, assumed)
        least, most = assumed.get(id(v), (low, high))
        return max(low, least), min(high, most)

    def evaluate(self, v: Value, assumed: Assumptions) -> Interval:
        """Return the interval of an operation; integers of the launch have their span."""
        if v.op == "param" and v.name in self.spans:
            return self.spans[v.name]
        return super().evaluate(v, assumed)

    def default_interval(self, d: DType) -> Interval:
        """Return (0, 1) for bools, else the unbounded interval."""
        return dtype_interval(d) if d.kind == "b" else _UNBOUNDED_INTERVAL


_UNBOUNDED_INTERVAL = -(1 << 200), 1 << 200


def _fits_int32(x: Interval) -> bool:
    """Return True if all numbers of an interval fit an int32 index."""
    return -INT32_INDEX_MAX <= x[0] <= x[1] <= INT32_INDEX_MAX


def _product(a: Interval, b: Interval) -> Interval:
    """Return the interval of x * y for x in `a` and y in `b`."""
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _quotient(a: Interval, b: Interval) -> Interval | None:
    """Return the interval of quotients rounded towards zero; None if a divisor may be below 1."""
    if b[0] <= 0:
        return None
    ends = [abs(x) // y * (1 if x >= 0 else -1) for x in a for y in b]
    return min(ends), max(ends)


def _remainder(a: Interval, b: Interval) -> Interval | None:
    """Return the interval of remainders; None if a divisor may be below 1."""
    if b[0] <= 0:
        return None
    most = b[1] - 1
    return (0 if a[0] >= 0 else max(-most, a[0])), (0 if a[1] < 0 else min(most, a[1]))


def _bitwise_and(a: Interval, b: Interval) -> Interval | None:
    """Return the interval of `a & b`; None if both may be negative."""
    tops = [x[1] for x in (a, b) if x[0] >= 0]
    return (0, min(tops)) if tops else None


def _shift_right(a: Interval, b: Interval) -> Interval | None:
    """Return the interval of `a >> b`; None if a shift may be outside of 0 to 63."""
    if b[0] < 0 or b[1] > 63:
        return None
    ends = [x >> y for x in a for y in b]
    return min(ends), max(ends)


def _shift_left(a: Interval, b: Interval) -> Interval | None:
    """Return the interval of `a << b` before wrapping; None if a shift may not be in 0 to 63."""
    if b[0] < 0 or b[1] > 63:
        return None
    ends = [x << y for x in a for y in b]
    return min(ends), max(ends)


_RULES: dict[str, Callable[..., Interval | None]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "neg": lambda a: (-a[1], -a[0]),
    "mul": _product,
    "quo": _quotient,
    "rem": _remainder,
    "and": _bitwise_and,
    "shr": _shift_right,
    "shl": _shift_left,
}
