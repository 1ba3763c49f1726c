"""scatter(x, values, index, ...): x with values set or added at indices along its first axes.

Values and indices are (n, *rest), with rest the remaining axes of x. The op's attrs: ("set" or
"add", whether no place is named twice). Values for one place come one after the other, in the order
of their positions: the last one stays, and sums have one order.

Where few columns (points of rest) have many values, their places are cut into ranges. Passes of the
radix sort bring the values of each range together, in the order in which they were, and the ranges
then go their ways at the same time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .dtypes import DType, int64, uint32, uint64
from .loops import Value, bitcast, cast, const, eq, fold_loop, quo, rem, where
from .radix import DIGIT, HALF, Passes, kept, upper

MANY = 1 << 15  # values of a column that are worth bringing together
COLUMNS_BUSY = 4  # columns for each unit of the device's concurrency that need no more points


def scatter(launches: Any) -> None:
    """The launches of the op."""
    n, *rest = launches.shape(1)
    places = math.prod(launches.shape(0)[: launches.rank(0) - len(rest)])
    busy = math.prod(rest) >= COLUMNS_BUSY * launches.concurrency
    if launches.attrs[1] or busy or n < MANY or max(n, places) >> HALF or not places:
        operands = range(launches.result + 1)
        launches.launch("scatter", _in_turn, *operands, changes=(-1,))
    else:
        _by_range(launches, n, places, tuple(rest))


def _in_turn(site: Any) -> None:
    """One column for each point, or one value for each where no place is named twice."""
    lead = [site.axis(1, 0)] if site.attrs[1] else []
    rest = [site.axis(1, d) for d in range(1, site.rank(1))]

    def stored(k: Value) -> Any:
        at = [site.read(i, k, *rest) for i in range(2, len(site.casts))]
        return _put(site, site.read(1, k, *rest), at, rest)

    if lead:
        site.builder.effect(stored(lead[0]))
    else:
        site.builder.effect(fold_loop(0, site.size(1, 0), (), lambda k: ((), [stored(k)])))


def _put(site: Any, value: Value, lead: Sequence[Value], rest: Sequence[Value]) -> Any:
    at = (*lead, *rest)
    if site.attrs[0] == "set":
        return site.stored(value, *at)
    old = site.current(*at)
    return site.stored(old | value if old.dtype.kind == "b" else old + value, *at)


# --- by ranges of places --------------------------------------------------------------------------


def _by_range(launches: Any, n: int, places: int, rest: tuple[int, ...]) -> None:
    indices = range(2, launches.result)
    shared = all(launches.repeats(i, d + 1) for i in indices for d in range(len(rest)))
    rows = () if shared else rest
    bits = max((places - 1).bit_length(), 1)
    passes, columns = 1, max(1, math.prod(rest))
    while passes * DIGIT < bits and columns << (passes * DIGIT) < COLUMNS_BUSY * launches.concurrency:
        passes += 1
    shift = max(0, bits - passes * DIGIT)
    ranges = _Ranges(tuple(indices), rest, rows, shift, ((places - 1) >> shift) + 1)
    moved = launches.temporary(uint64, (*rows, n))
    given = (1, *indices, launches.result)
    shifts = range(shift, bits, DIGIT)
    Passes(rows, n, given, uint64, upper, shifts, ranges.packed, kept).run(launches, 1, moved)
    launches.launch("scatter_ranges", ranges.put, 1, moved, launches.result, changes=(-1,))
