"""scatter(x, values, index, ...): x with values set or added at indices along its first axes.

Values and indices are (n, *rest), with rest the remaining axes of x. The op's attrs are a `Manner`.
Values for one place come one after the other, in the order of their positions: the last one stays,
and sums have one order.

Where few columns (points of rest) have many values, their places are cut into ranges. Passes of the
radix sort bring the values of each range together, in the order in which they were, and the ranges
then go their ways at the same time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from ..dtypes import DType, bool_, float32, int64, uint32, uint64
from ..loops.language import Store, Value, bitcast, cast, const, fold_loop, ne, quo, rem, where
from .kernels import from_start
from .site import KernelSite, Launches, LoopStep
from .sort import HALF, NARROW, Passes, kept, upper

# Units of concurrency from which ranges pay. 16 M float32 into 1 M places: they take 74 ms of the
# CPU's time, spread over all units; one point takes 23.
UNITS = 6
MANY = 1 << 18  # values of a column, divided by the units, that are worth bringing together
FEW = 1 << 10  # values that never are
COLUMNS_BUSY = 4  # columns for each unit of the device's concurrency that need no more points


class Manner(NamedTuple):
    """How values are put."""

    how: Literal["set", "add"]
    unique: bool = False  # whether no place is named twice
    number: bool = False  # whether the one value is a Python number, of FEW places
    # For what the one index is read, as for `checked_indices`, where the kernel is to check it, of
    # FEW places; otherwise indices are known to be in range and not negative.
    asked: tuple[str, int, int] | None = None


def scatter(launches: Launches) -> None:
    """The launches of the op."""
    n, *rest = launches.shape(1)
    places = math.prod(launches.shape(0)[: len(launches.shape(0)) - len(rest)])
    units = launches.concurrency
    many = n >= max(FEW, MANY // units)
    ranged = units >= UNITS and many and math.prod(rest) < COLUMNS_BUSY * units
    if ranged and not launches.attrs.unique and 0 < places <= 1 << HALF and not n >> HALF:
        _by_range(launches, n, places, tuple(rest))
    else:
        operands = range(launches.result + 1)
        launches.launch("scatter", _in_turn, *operands, changes=(-1,))


def _in_turn(site: KernelSite) -> None:
    """One column for each point, or one value for each where no place is named twice."""
    manner: Manner = site.attrs
    lead = [site.axis(1, 0)] if manner.unique else []
    rest = [site.axis(1, d) for d in range(1, site.rank(1))]
    stop = site.size(1, 0) if manner.asked is None else _stop_if_all_fine(site, rest)

    def stored(k: Value) -> Store:
        at = [site.read(i, k, *rest) for i in _indices(site)]
        fine = None
        if manner.asked is not None:
            at[0], fine = from_start(site, at[0], manner.asked)
        value = site.scalar(0, site.casts[0]) if manner.number else site.read(1, k, *rest)
        return _put(site, value, at, rest, fine)

    if lead:
        site.builder.effect(stored(lead[0]))
    else:
        site.builder.effect(fold_loop(0, stop, (), lambda k: ((), [stored(k)])))


def _indices(site: KernelSite) -> range:
    """The operands that are indices."""
    return range(1 if site.attrs.number else 2, len(site.casts))


def _stop_if_all_fine(site: KernelSite, rest: Sequence[Value]) -> Value:
    """How many values a column has, but 0 where an index is out of range."""
    first, asked, n = _indices(site)[0], site.attrs.asked, site.size(1, 0)

    def step(k: Value, so_far: Value, bad: Value) -> tuple[Value, ...]:
        given = site.read(first, k, *rest)
        _, fine = from_start(site, given, asked)
        return so_far & fine, where(fine, bad, given)

    fine, bad = fold_loop(0, n, (const(True, bool_), const(0, int64)), step).results
    site.check(fine, bad, asked)
    return where(fine, n, 0)


def _put(
    site: KernelSite, value: Value, lead: Sequence[Value], rest: Sequence[Value],
    when: Value | None = None,
) -> Store:  # fmt: skip
    at = (*lead, *rest)
    if site.attrs.how == "set":
        return site.stored(value, *at, when=when)
    old = site.current(*at)  # no place is out of range, or the loop would not come here
    return site.stored(old | value if old.dtype.kind == "b" else old + value, *at, when=when)


# --- by ranges of places --------------------------------------------------------------------------


def _by_range(launches: Launches, n: int, places: int, rest: tuple[int, ...]) -> None:
    indices = range(2, launches.result)
    shared = all(launches.repeats(i, d + 1) for i in indices for d in range(len(rest)))
    rows = () if shared else rest
    bits, passes = max((places - 1).bit_length(), 1), 1
    wanted = COLUMNS_BUSY * launches.concurrency // max(1, math.prod(rest))
    while passes * NARROW < bits and 1 << (passes * NARROW) < wanted:
        passes += 1
    shift = max(0, bits - passes * NARROW)
    value = launches.dtype(1)
    ranges = _Ranges(
        launches.shape(0)[: len(launches.shape(0)) - len(rest)], rest, rows, shift,
        value if not rest and value.itemsize <= 4 else None,
    )  # fmt: skip
    moved = launches.temporary(uint64, (*rows, n))
    given = (1, *indices)
    Passes(rows, n, given, uint64, upper, shift, bits, ranges.packed, kept).run(launches, 1, moved)
    count = ((places - 1) >> shift) + 1
    launches.launch("scatter_ranges", ranges.put(count), 1, moved, launches.result, changes=(-1,))


class _Ranges(NamedTuple):
    """Ranges of 2**shift places.

    What is moved is a place over a position, or, where one fits beside it, over the value itself:
    fetching these took longer than all passes.
    """

    lead: tuple[int, ...]  # the extents of x along its indexed axes
    rest: tuple[int, ...]
    rows: tuple[int, ...]  # `rest`, or () where all columns have the same indices
    shift: int
    inline: DType | None  # of the values, where they are moved

    def packed(self, site: KernelSite, row: Sequence[Value], k: Value) -> Value:
        """What is moved for value k. The site's operands: what is read, values, indices."""
        at = (k, *(row or [const(0, int64)] * len(self.rest)))
        place = site.read(2, *at)
        for i, extent in enumerate(self.lead[1:], 3):
            place = place * site.number(f"lead{i}", extent) + site.read(i, *at)
        below = k if self.inline is None else _bits(site.read(1, *at))
        return (cast(place, uint64) << HALF) | cast(below, uint64)

    def put(self, count: int) -> Callable[[KernelSite], None]:
        """The kernel of the ranges, given how many there are. Operands: values, what was moved."""

        def build(site: KernelSite) -> None:
            here = site.points("ranges", count)
            rest = [site.axis(0, 1 + d) for d in range(len(self.rest))]
            row = rest if self.rows else []
            start, stop = (self._first(site, row, here + k) for k in (0, 1))

            def step(k: Value) -> LoopStep:
                e = site.read(1, *row, k)
                below = e & ((1 << HALF) - 1)
                value = (
                    site.read(0, cast(below, int64), *rest)
                    if self.inline is None
                    else _of_bits(cast(below, uint32), self.inline)
                )
                return (), [_put(site, value, self._places(site, cast(e >> HALF, int64)), rest)]

            site.builder.effect(fold_loop(start, stop, (), step))

        return build

    def _places(self, site: KernelSite, place: Value) -> list[Value]:
        """The indices of a place."""
        found: list[Value] = []
        for i in range(len(self.lead) - 1, 0, -1):
            extent = site.number(f"lead{i}", self.lead[i])
            found.append(rem(place, extent))
            place = quo(place, extent)
        return [place, *reversed(found)]

    def _first(self, site: KernelSite, row: Sequence[Value], this: Value) -> Value:
        """Where the values of a range begin: a binary search."""
        n, shift = site.size(1, len(row)), cast(site.number("shift", HALF + self.shift), uint64)

        def step(_: Value, low: Value, high: Value) -> tuple[Value, ...]:
            middle, open_ = (low + high) >> 1, low < high
            e = site.read(1, *row, where(open_, middle, 0))
            before = open_ & (cast(e >> shift, int64) < this)
            return where(before, middle + 1, low), where(open_ & ~before, middle, high)

        rounds = site.number("rounds", site.extent(1, len(row)).bit_length())
        return fold_loop(0, rounds, (const(0, int64), n), step).results[0]


def _bits(x: Value) -> Value:
    """A value of up to 32 bits as its bits."""
    return bitcast(x, uint32) if x.dtype.bits == HALF else cast(x, uint32)


def _of_bits(bits: Value, d: DType) -> Value:
    """The value that `_bits` has packed; reduced precision as float32."""
    if d.kind == "f":
        return bitcast(bits, float32)
    if d is bool_:
        return ne(bits, 0)
    return bitcast(bits, d) if d.bits == HALF else cast(bits, d)
