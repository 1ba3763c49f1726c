"""How often each integer occurs, and the element of a rank: both by tables of counts.

A row is cut into blocks, each of which counts into a table of its own, so that they go their ways
at the same time; sums of integers have one result, whatever their order. Source: the counting pass
of a radix sort (`sort`); a selection is such passes from the highest digit on, each looking only at
elements whose higher digits are those of the element sought.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from ..dtypes import DType, int64, uint32, uint64
from ..loops.language import (
    Store,
    Value,
    cast,
    const,
    eq,
    fold_loop,
    map_loop,
    quo,
    reduce_loop,
    where,
)
from .site import KernelSite, Launches, LoopStep
from .sort import LONG, canonical_key, element_of_key, key_dtype

WAYS = 4  # tables of a block: equal elements in a row do not wait for each other's counts
MANY = 1 << 13  # different integers of which more would not fit the cache so often
CLIPPED = "clipped"  # as attrs: see `count_values`
PAYS = 8  # elements of a block, for each place in its tables, that are worth the tables
NARROW, WIDE = 8, 11  # bits of a digit of a selection; the wide one in long rows


def count_values(launches: Launches) -> None:
    """Launches: how often each of 0, 1, ... occurs in a vector of such integers.

    Operand 0 holds them, the result is as long as there are different ones. Where attrs are
    CLIPPED, what is none of these counts for the last one.
    """
    (n,), (bins,) = launches.shape(0), launches.shape(launches.result)
    ways = WAYS if bins <= MANY else 1
    size = -(-launches.block((), n, PAYS * ways * bins) // ways) * ways
    table = launches.temporary(uint32, (-(-n // size), ways, bins))

    def count(site: KernelSite) -> None:
        block = site.axis(-1, 0)
        start, n = block * site.number("block", size), site.size(0, 0)
        stop = start + site.number("block", size)
        stop = where(stop < n, stop, n)
        _clear(site, [block], ways)
        last = site.size(-1, 2) - 1

        def counted(k: Value, way: int) -> Store:
            value = cast(site.read(0, k), int64)
            if site.attrs == CLIPPED:
                value = where(cast(value, uint64) < cast(last, uint64), value, last)
            at = (block, const(way, int64), value)
            return site.stored(site.current(*at) + 1, *at)

        _in_turn(site, ways, block * site.number("groups", size // ways), stop, counted)

    def add_up(site: KernelSite) -> None:
        value, blocks = site.axis(-1, 0), site.size(0, 0)

        def of_block(b: Value) -> Value:
            return _sum_of_ways(site, 0, [b], ways, value)

        site.store(reduce_loop("add", 0, blocks, of_block)[0], value)

    launches.launch("count_values_of_blocks", count, 0, table, changes=(-1,))
    launches.launch("count_values", add_up, table, launches.result)


def _in_turn(
    site: KernelSite, ways: int, first: Value, stop: Value, counted: Callable[[Value, int], Store]
) -> None:
    """Counts elements from first * ways to before stop, as many at once as there are ways."""

    def step(group: Value) -> LoopStep:
        return (), [counted(group * ways + way, way) for way in range(ways)]

    groups = quo(stop, const(ways, int64))
    site.builder.effect(fold_loop(first, groups, (), step))
    if ways > 1:
        rest = fold_loop(groups * ways, stop, (), lambda k: ((), [counted(k, 0)]))
        site.builder.effect(rest)


def _clear(site: KernelSite, at: Sequence[Value], ways: int) -> None:
    """Zeros all along the last two axes of the result."""
    zero, size = const(0, uint32), site.size(-1, len(at) + 1)
    for w in range(ways):
        site.builder.effect(map_loop(0, size, partial(_stored, site, zero, [*at, const(w, int64)])))


def _stored(site: KernelSite, value: Value, at: Sequence[Value], last: Value) -> list[Store]:
    return [site.stored(value, *at, last)]


def _sum_of_ways(site: KernelSite, operand: int, at: Sequence[Value], ways: int, d: Value) -> Value:
    """How often a digit was counted in a block, as int64."""
    found = [cast(site.read(operand, *at, const(w, int64), d), int64) for w in range(ways)]
    return (found[0] + found[1]) + (found[2] + found[3]) if ways == WAYS else found[0]


# --- selection ------------------------------------------------------------------------------------


class Bits(NamedTuple):
    """Of the keys only the bits from `first` to before `stop` differ."""

    first: int
    stop: int


def select(launches: Launches) -> None:
    """Launches: the element of each row (the last axis) that a sort would put at a rank.

    The op's numbers: what is subtracted from integers to make keys, and the rank. attrs: `Bits`.
    After each digit the keys that have it are brought to the start of their block, so that all
    elements are read twice, and then few.
    """
    *rows, n = launches.shape(0)
    bits, width = launches.attrs, WIDE if n >= LONG else NARROW
    ways = WAYS if n >= LONG else 1
    size = -(-launches.block((*rows,), n, 1 << (width + 2)) // ways) * ways
    blocks = -(-n // size)
    table = launches.temporary(uint32, (*rows, blocks, ways, 1 << width))
    totals = launches.temporary(int64, (*rows, 1 << width))
    state: tuple[int, ...] = ()
    source: tuple[int, ...] = (0,)
    for shift in reversed(range(bits.first, bits.stop, width)):
        digit = _Digit(launches.dtype(0), shift, width, size, ways, bool(state))
        launches.launch("select_count", digit.tally, *source, table, changes=(-1,))
        launches.launch("select_sum", digit.add_up, table, totals)
        if shift == bits.first:
            launches.launch("select", digit.finish, 0, totals, *state, launches.result)
            return
        after = launches.temporary(uint64, (2, *rows))
        launches.launch("select_digit", digit.narrow, 0, totals, *state, after)
        state = (after,)
        if digit.below:
            launches.launch("select_keep", digit.keep, after, *source, changes=(1, -1))
        else:
            keys = launches.temporary(digit.key, (*rows, n))
            source = keys, launches.temporary(int64, (*rows, blocks))
            launches.launch("select_keep", digit.keep, after, 0, *source, changes=(2, -1))


class _Digit(NamedTuple):
    """One pass of a selection: by the digit at `shift`, below a prefix where there is one.

    The state between passes, (2, *rows): the prefix, and the rank among what has it. The source of
    a pass: the elements, or where there is a prefix the keys that have it and how many of these
    each block has.
    """

    dtype: DType
    shift: int
    width: int
    size: int
    ways: int
    below: bool  # whether there is a prefix

    @property
    def key(self) -> DType:
        """What keys are."""
        return key_dtype(self.dtype)

    def tally(self, site: KernelSite) -> None:
        """Operands: the source, the table."""
        rows = [site.axis(-1, axis) for axis in range(site.rank(-1) - 3)]
        block = site.axis(-1, site.rank(-1) - 3)
        held = site.read(1, *rows, block) if self.below else None
        _, stop = self._bounds(site, site.size(0, len(rows)), block, held)
        _clear(site, [*rows, block], self.ways)
        shift = site.number("shift", self.shift)

        def counted(k: Value, way: int) -> Store:
            c = self._key(site, 0, rows, k) >> cast(shift, self.key)
            at = (*rows, block, const(way, int64), cast(c & ((1 << self.width) - 1), int64))
            return site.stored(site.current(*at) + 1, *at)

        groups = block * site.number("groups", self.size // self.ways)
        _in_turn(site, self.ways, groups, stop, counted)

    def keep(self, site: KernelSite) -> None:
        """Operands: the state, the source, what becomes the source."""
        keys = len(site.casts) - 1
        rows = [site.axis(-1, axis) for axis in range(site.rank(-1) - 1)]
        block = site.axis(-1, site.rank(-1) - 1)
        held = site.current(*rows, block) if self.below else None
        start, stop = self._bounds(site, site.size(1, len(rows)), block, held)
        prefix = self._prefix(site, 0, rows)
        shift = cast(site.number("shift", self.shift), self.key)

        def step(k: Value, place: Value) -> LoopStep:
            c = self._key(site, 1, rows, k)
            # what does not fit is stored over; no place comes after k
            after = place + cast(eq(c >> shift, prefix), int64)
            inside = where((start <= place) & (place < stop), place, start)  # it always is
            return (after,), [site.put(keys, c, *rows, inside)]

        loop = fold_loop(start, stop, (start,), step)
        site.builder.effect(loop)
        site.builder.effect(site.stored(loop.results[0] - start, *rows, block))

    def _bounds(
        self, site: KernelSite, n: Value, block: Value, held: Value | None
    ) -> tuple[Value, Value]:
        """Where what a block has begins and ends, in a row of n."""
        size = site.number("block", self.size)
        start = block * size
        stop = start + (
            size if held is None else where((const(0, int64) <= held) & (held < size), held, size)
        )
        return start, where(stop < n, stop, n)

    def _key(self, site: KernelSite, source: int, rows: Sequence[Value], k: Value) -> Value:
        found = site.read(source, *rows, k)
        return found if self.below else canonical_key(found, site.scalar(0, self.key))

    def add_up(self, site: KernelSite) -> None:
        """Operands: the table, the totals of rows and digits."""
        *rows, digit = [site.axis(-1, axis) for axis in range(site.rank(-1))]

        def of_block(b: Value) -> Value:
            return _sum_of_ways(site, 0, [*rows, b], self.ways, digit)

        site.store(reduce_loop("add", 0, site.size(0, len(rows)), of_block)[0], *rows, digit)

    def narrow(self, site: KernelSite) -> None:
        """Operands: the elements, the totals, the state if any, the state after it."""
        rows = [site.axis(-1, axis) for axis in range(1, site.rank(-1))]
        for i, part in enumerate(self._found(site, rows)):
            site.store(cast(part, uint64), const(i, int64), *rows)

    def finish(self, site: KernelSite) -> None:
        """Operands: the elements, the totals, the state if any, the elements that were sought."""
        rows = [site.axis(-1, axis) for axis in range(site.rank(-1))]
        key = self._found(site, rows)[0] << cast(site.number("first", self.shift), self.key)
        site.store(element_of_key(key, self.dtype, site.scalar(0, self.key)), *rows)

    def _prefix(self, site: KernelSite, state: int, rows: Sequence[Value]) -> Value:
        return cast(site.read(state, const(0, int64), *rows), self.key)

    def _found(self, site: KernelSite, rows: Sequence[Value]) -> tuple[Value, Value]:
        """The prefix with this digit, and the rank among what has it."""
        rank = site.scalar(1, int64)
        if self.below:
            rank = cast(site.read(2, const(1, int64), *rows), int64)

        def step(d: Value, before: Value, digit: Value, rest: Value) -> tuple[Value, ...]:
            after = before + site.read(1, *rows, d)
            here = (before <= rank) & (rank < after)
            return after, where(here, d, digit), where(here, rank - before, rest)

        zero = const(0, int64)
        digits = site.size(1, len(rows))
        _, digit, rest = fold_loop(0, digits, (zero, zero, zero), step).results
        prefix = cast(digit, self.key)
        if self.below:
            width = cast(site.number("width", self.width), self.key)
            prefix = prefix | (self._prefix(site, 2, rows) << width)
        return prefix, rest
