"""Counts of each integer, and the element of a rank: both by tables of counts.

A row is cut into blocks. Each block counts into a table of its own, so that blocks run at the same
time; sums of integers have one result, in any order. Source: the counting pass of a radix sort
(`sort`). A selection is such passes from the highest digit on: each looks only at elements whose
higher digits are those of the selected element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from ..dtypes import DType, int64, uint32, uint64
from ..ir.language import (
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
from .kernel_context import KernelSite, Launches, LoopStep
from .sort import LONG_ROW_ELEMENTS_MIN, canonical_key, element_of_key, key_dtype

INTERLEAVED_TABLES = (
    4  # tables of a block: successive equal elements do not wait for each other's counts
)
INTERLEAVED_BINS_MAX = 1 << 13  # INTERLEAVED_TABLES tables of more bins would not fit the cache
CLIPPED = "clipped"  # as attrs of `count_values`
BLOCK_ELEMENTS_PER_ENTRY_MIN = 8  # least number of elements of a block for each entry of its tables
# bits of a digit of a selection; the wide one in long rows
SHORT_ROW_DIGIT_BITS = 8
LONG_ROW_DIGIT_BITS = 11


def count_values(launches: Launches) -> None:
    """Add the launches that count how often each of 0, 1, ... occurs in a vector of such integers.

    Operand 0 is the vector, the result has an element for each integer. If attrs are CLIPPED, any
    other integer counts for the last one.
    """
    (n,), (bins,) = launches.shape(0), launches.shape(launches.result)
    ways = INTERLEAVED_TABLES if bins <= INTERLEAVED_BINS_MAX else 1
    size = -(-launches.block((), n, BLOCK_ELEMENTS_PER_ENTRY_MIN * ways * bins) // ways) * ways
    table = launches.temporary(uint32, (-(-n // size), ways, bins))

    def build_count(site: KernelSite) -> None:
        """Build the kernel that counts the values of each block in interleaved tables."""
        block = site.axis(-1, 0)
        start, n = block * site.number("block", size), site.size(0, 0)
        stop = start + site.number("block", size)
        stop = where(stop < n, stop, n)
        _clear_table(site, [block], ways)
        last = site.size(-1, 2) - 1

        def count_element(k: Value, way: int) -> Store:
            """Return the store that adds 1 to the count of element `k`."""
            value = cast(site.read(0, k), int64)
            if site.attrs == CLIPPED:
                value = where(cast(value, uint64) < cast(last, uint64), value, last)
            at = (block, const(way, int64), value)
            return site.stored(site.current(*at) + 1, *at)

        _count_interleaved(
            site, ways, block * site.number("groups", size // ways), stop, count_element
        )

    def build_total(site: KernelSite) -> None:
        """Build the kernel that adds up the tables of all blocks."""
        value, blocks = site.axis(-1, 0), site.size(0, 0)

        def count_in_block(b: Value) -> Value:
            """Return the count of the value in a block."""
            return _sum_tables(site, 0, [b], ways, value)

        site.store(reduce_loop("add", 0, blocks, count_in_block)[0], value)

    launches.launch("count_values_of_blocks", build_count, 0, table, changes=(-1,))
    launches.launch("count_values", build_total, table, launches.result)


def _count_interleaved(
    site: KernelSite,
    ways: int,
    first: Value,
    stop: Value,
    count_element: Callable[[Value, int], Store],
) -> None:
    """Add the loops that count the elements from first * ways to before stop in `ways` tables."""

    def step(group: Value) -> LoopStep:
        """Return no carries, and the stores that count a group of `ways` elements."""
        return (), [count_element(group * ways + way, way) for way in range(ways)]

    groups = quo(stop, const(ways, int64))
    site.builder.effect(fold_loop(first, groups, (), step))
    if ways > 1:
        last = fold_loop(groups * ways, stop, (), lambda k: ((), [count_element(k, 0)]))
        site.builder.effect(last)


def _clear_table(site: KernelSite, at: Sequence[Value], ways: int) -> None:
    """Add loops that store zeros along the last two axes of the result."""
    zero, size = const(0, uint32), site.size(-1, len(at) + 1)
    for w in range(ways):
        site.builder.effect(
            map_loop(0, size, partial(_store_value, site, zero, [*at, const(w, int64)]))
        )


def _store_value(site: KernelSite, value: Value, at: Sequence[Value], last: Value) -> list[Store]:
    """Return the store of a value at an index, in a list, as a loop body."""
    return [site.stored(value, *at, last)]


def _sum_tables(site: KernelSite, operand: int, at: Sequence[Value], ways: int, d: Value) -> Value:
    """Return the count of a digit in a block, as int64, over all tables."""
    counts = [cast(site.read(operand, *at, const(w, int64), d), int64) for w in range(ways)]
    return (
        (counts[0] + counts[1]) + (counts[2] + counts[3])
        if ways == INTERLEAVED_TABLES
        else counts[0]
    )


# --- selection ------------------------------------------------------------------------------------


class BitRange(NamedTuple):
    """A range of bits: keys differ only in those from `first` to before `stop`."""

    first: int
    stop: int


def select_by_rank(launches: Launches) -> None:
    """Add the launches that find, in each row (the last axis), the element of a rank.

    The op's numbers: the zero of integers' keys, which is subtracted from them, and the rank.
    attrs: `BitRange`. After each digit the keys that have it are moved to the start of their block.
        So all elements are read twice, and after that only a few.
    """
    *rows, n = launches.shape(0)
    bits, width = (
        launches.attrs,
        LONG_ROW_DIGIT_BITS if n >= LONG_ROW_ELEMENTS_MIN else SHORT_ROW_DIGIT_BITS,
    )
    ways = INTERLEAVED_TABLES if n >= LONG_ROW_ELEMENTS_MIN else 1
    size = -(-launches.block((*rows,), n, 1 << (width + 2)) // ways) * ways
    blocks = -(-n // size)
    table = launches.temporary(uint32, (*rows, blocks, ways, 1 << width))
    totals = launches.temporary(int64, (*rows, 1 << width))
    state: tuple[int, ...] = ()
    source: tuple[int, ...] = (0,)
    for shift in reversed(range(bits.first, bits.stop, width)):
        digit = _DigitPass(launches.dtype(0), shift, width, size, ways, bool(state))
        launches.launch("select_count", digit.count_digits, *source, table, changes=(-1,))
        launches.launch("select_sum", digit.sum_tables, table, totals)
        if shift == bits.first:
            launches.launch("select", digit.store_element, 0, totals, *state, launches.result)
            return
        after = launches.temporary(uint64, (2, *rows))
        launches.launch("select_digit", digit.extend_prefix, 0, totals, *state, after)
        state = (after,)
        # in memory of their own: a kernel that finds the lengths of loops may only read
        sizes = launches.temporary(int64, (*rows, blocks))
        if digit.has_prefix:
            launches.launch("select_keep", digit.compact_keys, after, *source, sizes, changes=(1,))
        else:
            source = (launches.temporary(digit.key, (*rows, n)),)
            launches.launch(
                "select_keep", digit.compact_keys, after, 0, *source, sizes, changes=(2,)
            )
        source = source[0], sizes


class _DigitPass(NamedTuple):
    """One pass of a selection: by the digit at `shift`, below a prefix if there is one.

    The state between passes, (2, *rows): the prefix, and the rank among the keys that have it. The
    source of a pass: the elements, or with a prefix the keys that have it, and their number in each
    block.
    """

    dtype: DType
    shift: int
    width: int
    size: int
    table_count: int
    has_prefix: bool  # True if there is a prefix

    @property
    def key(self) -> DType:
        """The dtype of keys."""
        return key_dtype(self.dtype)

    def count_digits(self, site: KernelSite) -> None:
        """Build the kernel that counts digits. Operands: the source, the table."""
        rows = [site.axis(-1, axis) for axis in range(site.rank(-1) - 3)]
        block = site.axis(-1, site.rank(-1) - 3)
        size = site.read(1, *rows, block) if self.has_prefix else None
        _, stop = self._block_bounds(site, site.size(0, len(rows)), block, size)
        _clear_table(site, [*rows, block], self.table_count)
        shift = site.number("shift", self.shift)

        def count_element(k: Value, way: int) -> Store:
            """Return the store that adds 1 to the count of key k's digit."""
            c = self._read_key(site, 0, rows, k) >> cast(shift, self.key)
            at = (*rows, block, const(way, int64), cast(c & ((1 << self.width) - 1), int64))
            return site.stored(site.current(*at) + 1, *at)

        groups = block * site.number("groups", self.size // self.table_count)
        _count_interleaved(site, self.table_count, groups, stop, count_element)

    def compact_keys(self, site: KernelSite) -> None:
        """Build the kernel that moves keys with the prefix to the start of their block.

        Operands: the state, the source, the next source; with a prefix both have the same keys.
        """
        keys = 1 if self.has_prefix else 2
        rows = [site.axis(-1, axis) for axis in range(site.rank(-1) - 1)]
        block = site.axis(-1, site.rank(-1) - 1)
        size = site.read(2, *rows, block) if self.has_prefix else None
        start, stop = self._block_bounds(site, site.size(1, len(rows)), block, size)
        prefix = self._read_prefix(site, 0, rows)
        shift = cast(site.number("shift", self.shift), self.key)

        def step(k: Value, index: Value) -> LoopStep:
            """Store key `k` at `index`; advance the index if the key has the prefix."""
            c = self._read_key(site, 1, rows, k)
            # a later key overwrites one without the prefix; the index is at most k
            after = index + cast(eq(c >> shift, prefix), int64)
            inside = where((start <= index) & (index < stop), index, start)  # it always is
            return (after,), [site.put(keys, c, *rows, inside)]

        loop = fold_loop(start, stop, (start,), step)
        site.builder.effect(loop)
        site.builder.effect(site.stored(loop.results[0] - start, *rows, block))

    def _block_bounds(
        self, site: KernelSite, n: Value, block: Value, size: Value | None
    ) -> tuple[Value, Value]:
        """Return the start and the stop of a block's elements, in a row of n.

        size: the number of its keys, or None for whole blocks.
        """
        block_size = site.number("block", self.size)
        start = block * block_size
        stop = start + (
            block_size
            if size is None
            else where((const(0, int64) <= size) & (size < block_size), size, block_size)
        )
        return start, where(stop < n, stop, n)

    def _read_key(self, site: KernelSite, source: int, rows: Sequence[Value], k: Value) -> Value:
        """Return key `k` of a row: read as it is after the first pass, else from the element."""
        element = site.read(source, *rows, k)
        return element if self.has_prefix else canonical_key(element, site.scalar(0, self.key))

    def sum_tables(self, site: KernelSite) -> None:
        """Build the kernel that sums the tables.

        Operands: the table, the totals of rows and digits.
        """
        *rows, digit = [site.axis(-1, axis) for axis in range(site.rank(-1))]

        def count_in_block(b: Value) -> Value:
            """Return the count of the digit in a block."""
            return _sum_tables(site, 0, [*rows, b], self.table_count, digit)

        site.store(reduce_loop("add", 0, site.size(0, len(rows)), count_in_block)[0], *rows, digit)

    def extend_prefix(self, site: KernelSite) -> None:
        """Build the kernel that stores the next state: the prefix with this digit, and the rank.

        Operands: elements, totals, state if any, next state.
        """
        rows = [site.axis(-1, axis) for axis in range(1, site.rank(-1))]
        for i, part in enumerate(self._find_digit(site, rows)):
            site.store(cast(part, uint64), const(i, int64), *rows)

    def store_element(self, site: KernelSite) -> None:
        """Build the kernel that stores the selected element of each row.

        Operands: elements, totals, state if any, selected elements.
        """
        rows = [site.axis(-1, axis) for axis in range(site.rank(-1))]
        key = self._find_digit(site, rows)[0] << cast(site.number("first", self.shift), self.key)
        site.store(element_of_key(key, self.dtype, site.scalar(0, self.key)), *rows)

    def _read_prefix(self, site: KernelSite, state: int, rows: Sequence[Value]) -> Value:
        """Return the prefix of a row, read from the state."""
        return cast(site.read(state, const(0, int64), *rows), self.key)

    def _find_digit(self, site: KernelSite, rows: Sequence[Value]) -> tuple[Value, Value]:
        """Return the prefix with this digit, and the rank among the keys that have it."""
        rank = site.scalar(1, int64)
        if self.has_prefix:
            rank = cast(site.read(2, const(1, int64), *rows), int64)

        def step(d: Value, before: Value, digit: Value, remaining_rank: Value) -> tuple[Value, ...]:
            """Return the count so far, and the digit and rank once the digit is found."""
            after = before + site.read(1, *rows, d)
            is_match = (before <= rank) & (rank < after)
            return after, where(is_match, d, digit), where(is_match, rank - before, remaining_rank)

        zero = const(0, int64)
        digits = site.size(1, len(rows))
        _, digit, remaining_rank = fold_loop(0, digits, (zero, zero, zero), step).results
        prefix = cast(digit, self.key)
        if self.has_prefix:
            width = cast(site.number("width", self.width), self.key)
            prefix = prefix | (self._read_prefix(site, 2, rows) << width)
        return prefix, remaining_rank
