"""The stable radix sort, made of kernels: the same bits on every device, for any number of blocks.

A vector is sorted by *keys*: unsigned integers in the order of its elements, so that floats and
integers are alike. A pass orders by one digit of the keys, from the lowest digit to the highest:

1. each block of elements counts its digits (`_count`);
2. for each digit a running sum over the blocks gives its count before a block (`_sum_blocks`);
3. each block moves its elements, in order, to their positions (`_move`).

Rows are sorted side by side: blocks do not reach across rows. Moved are the keys alone if the
sorted elements are wanted, and (key, position) in 64 bits if their order is. Keys of 64 bits then
take two rounds: the low halves first, then the high halves, fetched in the order so far.

Short rows are sorted by rank instead: the number of elements that precede each one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from ..dtypes import DType, bool_, float32, float64, int32, int64, uint8, uint32, uint64
from ..ir.language import (
    Value,
    bitcast,
    cast,
    const,
    eq,
    fold_loop,
    map_loop,
    ne,
    reduce_loop,
    where,
)
from .kernel_context import KernelSite, Launches, LoopStep

# most bits of a digit; the wide one in long rows, to save passes:
SHORT_ROW_DIGIT_BITS_MAX = 8
LONG_ROW_DIGIT_BITS_MAX = 10
LONG_ROW_ELEMENTS_MIN = 1 << 13  # 480 K keys of 29 bits take 2.1 ms in three passes, 2.9 ms in four
# up to so many comparisons per unit of concurrency are faster than passes,
# and so many in each row: one of 45 elements takes 0.6 us either way
RANK_COMPARISONS_MAX = 1 << 15
RANK_ROW_COMPARISONS_MAX = 1 << 11
HALF_BITS = 32  # bits of a position, and of the key above it


class SortAttrs(NamedTuple):
    """The attributes of a sort. Keys differ only in the bits from `first` to before `stop`.

    The op's number is the zero of integers' keys, which is subtracted from them.
    `may_have_unique_keys`: there are as many elements as possible keys, so each may occur once.
    """

    descending: bool
    first: int
    stop: int
    may_have_unique_keys: bool = False


# --- keys -----------------------------------------------------------------------------------------


class _FloatKeys(NamedTuple):
    """The layout of floats' keys: first the numbers from -inf on, then NaNs.

    `negative_zero` is the key of -0, and `negative_zero` + 1 that of +0; in descending order the
    other way round.
    """

    dtype: DType
    key: DType
    signed: DType
    nan_count: int  # the number of NaNs of each sign
    negative_zero: int

    @property
    def numbers(self) -> int:
        """The number of keys that are not NaNs'."""
        return 2 * self.negative_zero + 2


_FLOATS = {
    32: _FloatKeys(float32, uint32, int32, (1 << 23) - 1, 0xFF << 23),
    64: _FloatKeys(float64, uint64, int64, (1 << 52) - 1, 0x7FF << 52),
}


def key_dtype(d: DType) -> DType:
    """Return the dtype of the keys of elements of `d`."""
    return uint64 if d.itemsize == 8 else uint32


def _encode_key(x: Value, low: Value, descending: bool) -> Value:
    """Return the key of a value: its order, but zeros and NaNs differ (see `_join_equal_keys`)."""
    if x.dtype.kind == "f":
        return _float_key(x, descending)
    same_size = x.dtype.itemsize == low.dtype.itemsize
    key = (bitcast(x, low.dtype) if same_size else cast(x, low.dtype)) - low
    return ~key if descending else key


def _float_key(x: Value, descending: bool) -> Value:
    """Return the key of a float. Source: the order of IEEE 754 bit patterns.

    The patterns are turned so that negative NaNs are last, too.
    """
    f = _FLOATS[x.dtype.bits]
    sign = bitcast(bitcast(x, f.signed) >> (f.dtype.bits - 1), f.key)
    key = (bitcast(x, f.key) ^ (sign | (1 << (f.dtype.bits - 1)))) - f.nan_count
    return _reverse_numbers(key, f) if descending else key


def _reverse_numbers(key: Value, f: _FloatKeys) -> Value:
    """Return the keys of numbers in the other direction; NaNs stay last."""
    return where(key < f.numbers, const(f.numbers - 1, f.key) - key, key)


def _decode_key(key: Value, d: DType, low: Value, descending: bool) -> Value:
    """Return the element of a key.

    It is float32 for reduced precision; unsigned integers wrap to smaller ones.
    """
    if d.kind == "f":
        f = _FLOATS[key.dtype.bits]
        key = (_reverse_numbers(key, f) if descending else key) + f.nan_count
        sign = ~bitcast(bitcast(key, f.signed) >> (f.dtype.bits - 1), f.key)
        return bitcast(key ^ (sign | (1 << (f.dtype.bits - 1))), f.dtype)
    key = (~key if descending else key) + low
    return ne(key, 0) if d is bool_ else key


def _join_equal_keys(key: Value, d: DType) -> Value:
    """Return the key by which elements are ordered: equal for both zeros, and for all NaNs."""
    if d.kind != "f":
        return key
    f = _FLOATS[key.dtype.bits]
    nan = const(f.key.max, f.key)  # all bits 1: right also without the low bits of halves
    key = where(key < f.numbers, key, nan)
    return where(eq(key, f.negative_zero), const(f.negative_zero + 1, f.key), key)


def canonical_key(x: Value, low: Value) -> Value:
    """Return the key of a value in ascending order: equal for both zeros, and for all NaNs."""
    return _join_equal_keys(_encode_key(x, low, False), x.dtype)


def element_of_key(key: Value, d: DType, low: Value) -> Value:
    """Return the element of a key in ascending order."""
    return _decode_key(key, d, low, False)


# --- the two ops ----------------------------------------------------------------------------------

# (site, row, position) -> the word to move; (site, row, word) -> the value to store
ReadWord = Callable[[KernelSite, Sequence[Value], Value], Value]
WriteWord = Callable[[KernelSite, Sequence[Value], Value], Value]


class RadixPasses(NamedTuple):
    """Passes over rows: the first read, the digits by which words are moved, the last write.

    Operand 0 of a site is what the pass reads, operands 1, 2, ... are `operands`.
    """

    rows: tuple[int, ...]
    n: int
    operands: tuple[int, ...]
    dtype: DType  # dtype of the words that are moved
    digit: Callable[[Value], Value]  # the key in a word, before it is shifted and masked
    first: int  # the first of the bits that decide the order
    stop: int  # the bit after the last one
    read: ReadWord
    write: WriteWord

    @property
    def width(self) -> int:
        """The bits of a digit."""
        bits, width_max = (
            self.stop - self.first,
            LONG_ROW_DIGIT_BITS_MAX
            if self.n >= LONG_ROW_ELEMENTS_MIN
            else SHORT_ROW_DIGIT_BITS_MAX,
        )
        return -(-bits // -(-bits // width_max))

    def run(self, launches: Launches, source: int, target: int) -> None:
        """Add the launches of the passes, which read operand `source` and store `target`."""
        shifts = range(self.first, self.stop, self.width)
        spare = [launches.temporary(self.dtype, (*self.rows, self.n)) for _ in shifts[1:3]]
        read = self.read
        for i, shift in enumerate(shifts):
            last = i == len(shifts) - 1
            destination, write = (target, self.write) if last else (spare[i % 2], keep_word)
            _RadixPass(self, shift, read, write).run(launches, source, destination)
            source, read = destination, read_word


def read_word(site: KernelSite, row: Sequence[Value], k: Value) -> Value:
    """Return the word that the previous pass has moved."""
    return site.read(0, *row, k)


def keep_word(site: KernelSite, row: Sequence[Value], e: Value) -> Value:
    """Return the word that the pass has read, to store it."""
    return e


def sort(launches: Launches) -> None:
    """Add the launches of the op `sort`: the elements of each row (the last axis) in order."""
    d, order = launches.dtype(0), launches.attrs
    if _is_short(launches):
        build = _build_rank_kernel(order.descending, lambda x, k: x)
        launches.launch("sort_by_rank", build, 0, launches.result)
        return
    key = key_dtype(d)

    def read_key(site: KernelSite, row: Sequence[Value], k: Value) -> Value:
        """Return the key of element `k` of a row."""
        return _encode_key(site.read(1, *row, k), site.scalar(0, key), order.descending)

    def to_element(site: KernelSite, row: Sequence[Value], c: Value) -> Value:
        """Return the element of a key."""
        return _decode_key(c, d, site.scalar(0, key), order.descending)

    *rows, n = launches.shape(0)
    bits = order.first, order.stop
    passes = RadixPasses(
        (*rows,), n, (0,), key, lambda c: _join_equal_keys(c, d), *bits, read_key, to_element
    )
    passes.run(launches, 0, launches.result)


def argsort(launches: Launches) -> None:
    """Add the launches of the op `argsort`: the positions of the elements in order, as int64."""
    d, order = launches.dtype(0), launches.attrs
    if _is_short(launches):
        build = _build_rank_kernel(order.descending, lambda x, k: k)
        launches.launch("argsort_by_rank", build, 0, launches.result)
        return
    key = key_dtype(d)

    def pack(site: KernelSite, row: Sequence[Value], k: Value, high: int) -> Value:
        """Return position k under the low or high half of its element's key."""
        c = _join_equal_keys(
            _encode_key(site.read(1, *row, k), site.scalar(0, key), order.descending), d
        )
        return (cast(c >> HALF_BITS if high else c, uint64) << HALF_BITS) | cast(k, uint64)

    def low(site: KernelSite, row: Sequence[Value], k: Value) -> Value:
        """Return position `k` under the low half of its element's key."""
        return pack(site, row, k, 0)

    def high(site: KernelSite, row: Sequence[Value], e: Value) -> Value:
        """Return a word's position under the high half of its element's key."""
        return pack(site, row, _read_position(e), 1)

    def position(site: KernelSite, row: Sequence[Value], e: Value) -> Value:
        """Return the position in a word."""
        return _read_position(e)

    *rows, n = launches.shape(0)
    moved = partial(RadixPasses, (*rows,), n, (0,), uint64, high_half)
    if order.stop <= HALF_BITS:
        moved(order.first, order.stop, low, position).run(launches, 0, launches.result)
        return
    between = launches.temporary(uint64, (*rows, n))
    moved(order.first, HALF_BITS, low, high).run(launches, 0, between)
    moved(0, order.stop - HALF_BITS, read_word, position).run(launches, between, launches.result)


def _is_short(launches: Launches) -> bool:
    """Return True if a row is so short that comparing all pairs beats the radix sort."""
    *rows, n = launches.shape(0)
    several = RANK_COMPARISONS_MAX * launches.concurrency // max(1, math.prod(rows))
    return n * n <= RANK_ROW_COMPARISONS_MAX + several


def _read_position(e: Value) -> Value:
    """Return the position in the lower half of a word, as int64."""
    return cast(e & ((1 << HALF_BITS) - 1), int64)


def high_half(e: Value) -> Value:
    """Return the key above a position."""
    return e >> HALF_BITS


# --- a pass ---------------------------------------------------------------------------------------


class _RadixPass(NamedTuple):
    """One of several passes, by the digit at `shift`."""

    passes: RadixPasses
    shift: int
    read: ReadWord
    write: WriteWord

    @property
    def table(self) -> int:
        """The operand of the site of `_build_move` with the counts: (*rows, blocks, digits)."""
        return 1 + len(self.passes.operands)

    def run(self, launches: Launches, source: int, target: int) -> None:
        """Add the launches that count digits, sum the counts and move the words."""
        rows, n, extra = self.passes.rows, self.passes.n, self.passes.operands
        digits = 1 << self.passes.width
        size = launches.block(rows, n, digits)
        table = launches.temporary(uint32, (*rows, -(-n // size), digits))
        totals = launches.temporary(uint32, (*rows, digits))
        count, move = partial(self._build_count, size=size), partial(self._build_move, size=size)
        launches.launch("radix_count", count, source, *extra, table, changes=(-1,))
        launches.launch("radix_sum", _sum_blocks, table, totals, changes=(0,))
        operands = (source, *extra, table, totals, target)
        launches.launch("radix_move", move, *operands, changes=(self.table,))

    def _build_count(self, site: KernelSite, size: int) -> None:
        """Build the kernel that counts each block's digits."""
        at, start, stop = self._declare_block(site, -1, size)
        zero, digits = const(0, uint32), site.size(-1, len(at))
        site.builder.effect(map_loop(0, digits, lambda d: [site.stored(zero, *at, d)]))

        def step(k: Value) -> LoopStep:
            """Return no carries, and the store that counts the digit of word `k`."""
            d = self._extract_digit(site, self.read(site, at[:-1], k))
            return (), [site.stored(site.current(*at, d) + 1, *at, d)]

        site.builder.effect(fold_loop(start, stop, (), step))

    def _build_move(self, site: KernelSite, size: int) -> None:
        """Build the kernel that moves each block's words to their positions."""
        table, totals, n = self.table, self.table + 1, site.number("n", self.passes.n)
        at, start, stop = self._declare_block(site, table, size)

        def store_start(d: Value, before: Value) -> LoopStep:
            """Replace a digit's count by its first position; return the next digit's."""
            first = site.put(table, site.read(table, *at, d) + before, *at, d)
            return (before + site.read(totals, *at[:-1], d),), [first]

        digits = site.size(table, len(at))
        site.builder.effect(fold_loop(0, digits, (const(0, uint32),), store_start))

        def step(k: Value) -> LoopStep:
            """Return no carries, and the stores of word `k` and of the digit's next position."""
            e = self.read(site, at[:-1], k)
            d = self._extract_digit(site, e)
            position = site.read(table, *at, d)
            # It is below n; a file of a captured function is loaded only if that can be seen.
            index = where(cast(position, int64) < n, cast(position, int64), n - 1)
            new = site.stored(self.write(site, at[:-1], e), *at[:-1], index)
            return (), [new, site.put(table, position + 1, *at, d)]

        site.builder.effect(fold_loop(start, stop, (), step))

    def _declare_block(
        self, site: KernelSite, table: int, size: int
    ) -> tuple[list[Value], Value, Value]:
        """Add grid axes over the rows and blocks.

        Return a point's index in the table, its start and stop.
        """
        at = [site.axis(table, axis) for axis in range(len(self.passes.rows) + 1)]
        start, n = at[-1] * site.number("block", size), site.number("n", self.passes.n)
        stop = start + site.number("block", size)
        return at, start, where(stop < n, stop, n)

    def _extract_digit(self, site: KernelSite, e: Value) -> Value:
        """Return the digit of a word."""
        shift = cast(site.number("shift", self.shift), e.dtype)
        mask = cast(site.number("mask", (1 << self.passes.width) - 1), e.dtype)
        return cast((self.passes.digit(e) >> shift) & mask, int64)


def _sum_blocks(site: KernelSite) -> None:
    """Build the kernel that replaces counts by those in the blocks before.

    The result has the totals.

    Operand 0 is (*rows, blocks, digits), the result (*rows, digits).
    """
    *row, d = [site.axis(-1, axis) for axis in range(site.rank(-1))]

    def step(block: Value, before: Value) -> LoopStep:
        """Return the count with this block's, and the store of the count before it."""
        here = site.read(0, *row, block, d)
        return (before + here,), [site.put(0, before, *row, block, d)]

    loop = fold_loop(0, site.size(0, len(row)), (const(0, uint32),), step)
    site.builder.effect(loop)
    site.store(loop.results[0], *row, d)


# --- by rank --------------------------------------------------------------------------------------


def _build_rank_kernel(
    descending: bool, write: Callable[[Value, Value], Value]
) -> Callable[[KernelSite], None]:
    """Return the builder of a kernel that stores `write(element, position)` at each rank."""

    def build(site: KernelSite) -> None:
        """Build the kernel that counts the elements before each element."""
        *row, i = [site.axis(0, axis) for axis in range(site.rank(0))]
        mine = site.read(0, *row, i)

        def stands_before(j: Value) -> Value:
            """Return 1 if element `j` comes before this one, else 0."""
            other = site.read(0, *row, j)
            less, same = _compare(other, mine, descending)
            return cast(less | (same & (j < i)), uint32)

        rank = reduce_loop("add", 0, site.size(0, len(row)), stands_before)[0]
        site.store(write(mine, i), *row, cast(rank, int64))

    return build


def _compare(x: Value, y: Value, descending: bool) -> tuple[Value, Value]:
    """Return True where x precedes y, and where they are equal; NaNs are equal, and last."""
    if x.dtype is bool_:
        x, y = cast(x, uint8), cast(y, uint8)
    less, equal = (y < x if descending else x < y), eq(x, y)
    if x.dtype.kind != "f":
        return less, equal
    x_nan, y_nan = ne(x, x), ne(y, y)
    return less | (y_nan & ~x_nan), equal | (x_nan & y_nan)
