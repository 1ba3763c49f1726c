"""scatter(x, values, index, ...): x with values set or combined at indices along its first axes.

Values and indices are (n, *rest), with rest the remaining axes of x. The op's attrs are a `Manner`.
Values for one element of x are applied in the order of their positions: the last one stays, and
sums and products have one order.

If few columns (points of rest) have many values, the elements of x are cut into ranges. Passes of
the radix sort bring the values of each range together, in their order, and then the ranges run at
the same time.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from ..dtypes import DType, bool_, float32, int64, uint32, uint64
from ..ir.language import Store, Value, bitcast, cast, const, fold_loop, ne, quo, rem, where
from .arithmetic import maximum, minimum
from .kernel_context import KernelSite, Launches, LoopStep
from .kernel_ops import normalize_index
from .sort import HALF_BITS, SHORT_ROW_DIGIT_BITS_MAX, RadixPasses, high_half, keep_word

# Least concurrency for ranges. 16 M float32 into 1 M elements take 74 ms of CPU time in ranges,
# spread over all units, and 23 ms by one point.
RANGE_UNITS_MIN = 6
# with fewer values of a column, divided by the concurrency, sorting does not pay
RANGE_VALUES_MIN = 1 << 18
COLUMN_VALUES_MIN = 1 << 10  # with fewer values of a column it never pays
COLUMNS_PER_UNIT_MIN = (
    4  # so many columns for each unit of the device's concurrency are enough points
)


class Manner(NamedTuple):
    """The way in which values are stored."""

    operation: Literal["set", "add", "mul", "max", "min"]
    unique: bool = False  # True if no element is indexed twice
    # True if the one value is a Python number, for COLUMN_VALUES_MIN elements
    is_scalar: bool = False
    # The purpose of the one index, as for `checked_indices`, if the kernel must check it, for
    # COLUMN_VALUES_MIN elements; otherwise indices are known to be in range and not negative.
    purpose: tuple[str, int, int] | None = None


def scatter(launches: Launches) -> None:
    """Add the launches that scatter in order, or by ranges of elements on parallel devices."""
    n, *column_axes = launches.shape(1)
    elements = math.prod(launches.shape(0)[: len(launches.shape(0)) - len(column_axes)])
    units = launches.concurrency
    has_many_values = n >= max(COLUMN_VALUES_MIN, RANGE_VALUES_MIN // units)
    ranged = (
        units >= RANGE_UNITS_MIN
        and has_many_values
        and math.prod(column_axes) < COLUMNS_PER_UNIT_MIN * units
    )
    if (
        ranged
        and not launches.attrs.unique
        and 0 < elements <= 1 << HALF_BITS
        and not n >> HALF_BITS
    ):
        _scatter_by_range(launches, n, elements, tuple(column_axes))
    else:
        operands = range(launches.result + 1)
        launches.launch("scatter", _scatter_in_order, *operands, changes=(-1,))


def _scatter_in_order(site: KernelSite) -> None:
    """Build the kernel: a point does a column, or one value if no element is indexed twice."""
    manner: Manner = site.attrs
    lead = [site.axis(1, 0)] if manner.unique else []
    column = [site.axis(1, d) for d in range(1, site.rank(1))]
    stop = site.size(1, 0) if manner.purpose is None else _stop_if_in_range(site, column)

    def store_value(k: Value) -> Store:
        """Return the store of value `k`, under the check of its index if there is one."""
        at = [site.read(i, k, *column) for i in _index_operands(site)]
        in_range = None
        if manner.purpose is not None:
            at[0], in_range = normalize_index(site, at[0], manner.purpose)
        value = site.scalar(0, site.casts[0]) if manner.is_scalar else site.read(1, k, *column)
        return _store_or_combine(site, value, at, column, in_range)

    if lead:
        site.builder.effect(store_value(lead[0]))
    else:
        site.builder.effect(fold_loop(0, stop, (), lambda k: ((), [store_value(k)])))


def _index_operands(site: KernelSite) -> range:
    """Return the operands that are indices."""
    return range(1 if site.attrs.is_scalar else 2, len(site.casts))


def _stop_if_in_range(site: KernelSite, column: Sequence[Value]) -> Value:
    """Return the number of values; 0, with a check that raises, if an index is out of range."""
    first, purpose, n = _index_operands(site)[0], site.attrs.purpose, site.size(1, 0)

    def step(k: Value, so_far: Value, bad: Value) -> tuple[Value, ...]:
        """Return True while all indices are in range, and the last bad index."""
        raw_index = site.read(first, k, *column)
        _, fine = normalize_index(site, raw_index, purpose)
        return so_far & fine, where(fine, bad, raw_index)

    in_range, bad_index = fold_loop(0, n, (const(True, bool_), const(0, int64)), step).results
    site.check(in_range, bad_index, purpose)
    return where(in_range, n, 0)


# How an old element and a value combine, without and with bools.
_COMBINES: dict[str, tuple[Callable[[Value, Value], Value], Callable[[Value, Value], Value]]] = {
    "add": (operator.add, operator.or_),
    "mul": (operator.mul, operator.and_),
    "max": (maximum, maximum),
    "min": (minimum, minimum),
}


def _store_or_combine(
    site: KernelSite,
    value: Value,
    lead: Sequence[Value],
    column: Sequence[Value],
    when: Value | None = None,
) -> Store:
    """Return the store of a value, or of its combination with the old element."""
    at = (*lead, *column)
    if site.attrs.operation == "set":
        return site.stored(value, *at, when=when)
    old = site.current(*at)  # in range: the loop is empty if an index is not
    combine = _COMBINES[site.attrs.operation][old.dtype is bool_]
    return site.stored(combine(old, value), *at, when=when)


# --- by ranges of elements ------------------------------------------------------------------------


def _scatter_by_range(
    launches: Launches, n: int, elements: int, column_axes: tuple[int, ...]
) -> None:
    """Add the launches that sort values by ranges of elements, and then scatter each range."""
    indices = range(2, launches.result)
    shared = all(launches.repeats(i, d + 1) for i in indices for d in range(len(column_axes)))
    rows = () if shared else column_axes
    bits, passes = max((elements - 1).bit_length(), 1), 1
    ranges_min = COLUMNS_PER_UNIT_MIN * launches.concurrency // max(1, math.prod(column_axes))
    while (
        passes * SHORT_ROW_DIGIT_BITS_MAX < bits
        and 1 << (passes * SHORT_ROW_DIGIT_BITS_MAX) < ranges_min
    ):
        passes += 1
    shift = max(0, bits - passes * SHORT_ROW_DIGIT_BITS_MAX)
    value = launches.dtype(1)
    ranges = _ElementRanges(
        launches.shape(0)[: len(launches.shape(0)) - len(column_axes)],
        column_axes,
        rows,
        shift,
        value if not column_axes and value.itemsize <= 4 else None,
    )
    moved = launches.temporary(uint64, (*rows, n))
    operands = (1, *indices)
    RadixPasses(rows, n, operands, uint64, high_half, shift, bits, ranges.pack, keep_word).run(
        launches, 1, moved
    )
    count = ((elements - 1) >> shift) + 1
    launches.launch(
        "scatter_ranges", ranges.build_range_kernel(count), 1, moved, launches.result, changes=(-1,)
    )


class _ElementRanges(NamedTuple):
    """Ranges of 2**shift elements.

    Moved are an element's number over a position, or over the value itself if it fits: to fetch the
    values by position took longer than all passes.
    """

    lead: tuple[int, ...]  # the extents of x along its indexed axes
    column_axes: tuple[int, ...]
    rows: tuple[int, ...]  # `column_axes`, or () if all columns have the same indices
    shift: int
    inline_dtype: DType | None  # dtype of the values, if they are moved

    def pack(self, site: KernelSite, row: Sequence[Value], k: Value) -> Value:
        """Return the moved word of value k. The site's operands: what is read, values, indices."""
        at = (k, *(row or [const(0, int64)] * len(self.column_axes)))
        element = site.read(2, *at)
        for i, extent in enumerate(self.lead[1:], 3):
            element = element * site.number(f"lead{i}", extent) + site.read(i, *at)
        payload = k if self.inline_dtype is None else _value_bits(site.read(1, *at))
        return (cast(element, uint64) << HALF_BITS) | cast(payload, uint64)

    def build_range_kernel(self, count: int) -> Callable[[KernelSite], None]:
        """Return the builder of the kernel of `count` ranges. Operands: values, moved words."""

        def build(site: KernelSite) -> None:
            """Build the kernel in which a point scatters one range in order."""
            here = site.points("ranges", count)
            column = [site.axis(0, 1 + d) for d in range(len(self.column_axes))]
            row = column if self.rows else []
            start, stop = (self._range_start(site, row, here + k) for k in (0, 1))

            def step(k: Value) -> LoopStep:
                """Return no carries, and the store of moved word `k`."""
                e = site.read(1, *row, k)
                below = e & ((1 << HALF_BITS) - 1)
                value = (
                    site.read(0, cast(below, int64), *column)
                    if self.inline_dtype is None
                    else _value_from_bits(cast(below, uint32), self.inline_dtype)
                )
                return (), [
                    _store_or_combine(
                        site, value, self._unravel(site, cast(e >> HALF_BITS, int64)), column
                    )
                ]

            site.builder.effect(fold_loop(start, stop, (), step))

        return build

    def _unravel(self, site: KernelSite, element: Value) -> list[Value]:
        """Return the indices of an element, given its number."""
        inner: list[Value] = []
        for i in range(len(self.lead) - 1, 0, -1):
            extent = site.number(f"lead{i}", self.lead[i])
            inner.append(rem(element, extent))
            element = quo(element, extent)
        return [element, *reversed(inner)]

    def _range_start(self, site: KernelSite, row: Sequence[Value], this: Value) -> Value:
        """Return the position of the first value of a range, by a binary search."""
        n, shift = (
            site.size(1, len(row)),
            cast(site.number("shift", HALF_BITS + self.shift), uint64),
        )

        def step(_: Value, low: Value, high: Value) -> tuple[Value, ...]:
            """Halve the range of the binary search."""
            middle, open_ = (low + high) >> 1, low < high
            e = site.read(1, *row, where(open_, middle, 0))
            before = open_ & (cast(e >> shift, int64) < this)
            return where(before, middle + 1, low), where(open_ & ~before, middle, high)

        rounds = site.number("rounds", site.extent(1, len(row)).bit_length())
        return fold_loop(0, rounds, (const(0, int64), n), step).results[0]


def _value_bits(x: Value) -> Value:
    """Return the bits of a value of up to 32 bits."""
    return bitcast(x, uint32) if x.dtype.bits == HALF_BITS else cast(x, uint32)


def _value_from_bits(bits: Value, d: DType) -> Value:
    """Return the value of the bits; reduced precision as float32."""
    if d.kind == "f":
        return bitcast(bits, float32)
    if d is bool_:
        return ne(bits, 0)
    return bitcast(bits, d) if d.bits == HALF_BITS else cast(bits, d)
