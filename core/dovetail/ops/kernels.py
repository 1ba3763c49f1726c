"""Kernels of the kernel ops that have one each; see also `sort`, `scan` and `scatter`."""

from __future__ import annotations

from ..dtypes import bool_, int64
from ..loops.language import Value, cast, const, eq, fma, fold_loop, ne, reduce_loop, where
from .site import KernelSite, LoopStep

BLOCK = 4096  # elements of a mask that one grid point looks through
COUNTS = "counts"  # as attrs: what is in each block is given, not what is before it


def matmul(site: KernelSite) -> None:
    """(..., m, k) @ (..., k, n), k ascending; the last grid axis walks a row of the result."""
    *batch, m, n = [site.axis(-1, d) for d in range(site.rank(-1))]
    zero = const(0, site.casts[0].compute)

    def step(k: Value, total: Value) -> tuple[Value, ...]:
        x, y = site.read(0, *batch, m, k), site.read(1, *batch, k, n)
        return (fma(x, y, total) if total.dtype.kind in "fc" else total + x * y,)

    length = site.size(0, site.rank(0) - 1)
    site.store(fold_loop(0, length, (zero,), step).results[0], *batch, m, n)


# --- masks and indices ----------------------------------------------------------------------------


def _block(site: KernelSite) -> tuple[Value, Value, Value]:
    """A grid axis over the blocks of operand 0, a vector: the block, its start and its stop."""
    block = site.axis(1, 0)  # what is counted in each, or the operand that has it
    start, n = block * BLOCK, site.size(0, 0)
    return block, start, where(start + BLOCK < n, start + BLOCK, n)


def _found_before(site: KernelSite, block: Value) -> Value:
    """How many there are before a block.

    Operand 1 says so, or, where attrs are COUNTS, how many there are in each.
    """
    if site.attrs == COUNTS:
        return reduce_loop("add", 0, block, lambda b: site.read(1, b))[0]
    return site.read(1, block)


def _searched(site: KernelSite, block: Value, start: Value, stop: Value) -> Value:
    """Where the search of a block stops: at its start if there is nothing in it."""
    if site.attrs == COUNTS:
        return where(eq(site.read(1, block), 0), start, stop)
    more = stop < site.size(0, 0)
    after = site.read(1, where(more, block + 1, block))
    return where(more & eq(after, site.read(1, block)), start, stop)


def count_blocks(site: KernelSite) -> None:
    """The number of true elements in each block of a mask."""
    block, start, stop = _block(site)
    total = reduce_loop("add", start, stop, lambda k: cast(site.read(0, k), int64))[0]
    site.store(total, block)


def true_positions(site: KernelSite) -> None:
    """The positions of the true elements of a mask, given how many there are before each block."""
    block, start, stop = _block(site)
    stop = _searched(site, block, start, stop)

    def step(k: Value, place: Value) -> LoopStep:
        true = site.read(0, k)
        return (place + cast(true, int64),), [site.stored(k, place, when=true)]

    site.builder.effect(fold_loop(start, stop, (_found_before(site, block),), step))


def packed_positions(site: KernelSite) -> None:
    """The positions of the true elements of a short mask, and in the last place how many.

    What is stored after the last true one is stored over, so that no store depends on the mask.
    """
    n = site.size(0, 0)

    def step(k: Value, place: Value) -> LoopStep:
        return (place + cast(site.read(0, k), int64),), [site.stored(k, place)]

    loop = fold_loop(0, n, (const(0, int64),), step)
    site.builder.effect(loop)
    site.builder.effect(site.stored(loop.results[0], n))


def count_runs(site: KernelSite) -> None:
    """How many elements of each block of a vector differ from the one before them."""
    block, start, stop = _block(site)
    first = where(start < 1, 1, start)
    total = reduce_loop("add", first, stop, lambda k: cast(_differs(site, k), int64))[0]
    site.store(total, block)


def run_bounds(site: KernelSite) -> None:
    """Where runs of equal elements start, and where the last one stops.

    Given is how many start before each block, but for the first one.
    """
    block, start, stop = _block(site)
    first = where(start < 1, 1, start)

    def step(k: Value, place: Value) -> LoopStep:
        new = _differs(site, k)
        return (place + cast(new, int64),), [site.stored(k, place, when=new)]

    end = _searched(site, block, first, stop)
    loop = fold_loop(first, end, (_found_before(site, block) + 1,), step)
    site.builder.effect(loop)
    site.builder.effect(site.stored(start, start, when=eq(block, 0)))
    site.builder.effect(site.stored(stop, loop.results[0], when=eq(stop, site.size(0, 0))))


def _differs(site: KernelSite, k: Value) -> Value:
    x, before = site.read(0, k), site.read(0, k - 1)
    return x ^ before if x.dtype is bool_ else ne(x, before)


def checked_indices(site: KernelSite) -> None:
    """Indices along an axis, counted from its start.

    attrs: (the op that asks, the axis, its size); whether they may count from the end; an index
    that becomes 0 unchecked, or None.
    """
    at = [site.axis(-1, d) for d in range(site.rank(-1))]
    given, (asked, from_end, ignored) = site.read(0, *at), site.attrs
    if from_end:
        i, fine = from_start(site, given, asked)
    else:
        n, i = site.number("n", asked[2]), given
        if ignored is not None:
            i = where(eq(given, site.number("ignored", ignored)), 0, given)
        fine = (const(0, int64) <= i) & (i < n)
    site.check(fine, given, asked)
    site.store(where(fine, i, 0), *at)  # others may read there before anybody looks


def from_start(site: KernelSite, given: Value, asked: tuple[str, int, int]) -> tuple[Value, Value]:
    """An index counted from the start of its axis, and whether it is in range."""
    n = site.number("n", asked[2])
    i = where(given < 0, given + n, given)
    return i, (const(0, int64) <= i) & (i < n)


def search(site: KernelSite) -> None:
    """Where to insert values into a sorted vector. attrs: the side. Operand 2, if any, sorts it."""
    at = [site.axis(-1, d) for d in range(site.rank(-1))]
    n, wanted = site.size(0, 0), site.read(1, *at)
    zero = const(0, int64)

    def step(_: Value, low: Value, high: Value) -> tuple[Value, ...]:
        middle = (low + high) >> 1
        place = where(middle < n, middle, n - 1)
        here = site.read(0, place if len(site.casts) == 2 else site.read(2, place))
        right = _before(here, wanted) if site.attrs == "left" else ~_before(wanted, here)
        right, open_ = right & (low < high), low < high
        return where(right, middle + 1, low), where(open_ & ~right, middle, high)

    rounds = site.number("rounds", site.extent(0, 0).bit_length())
    site.store(fold_loop(0, rounds, (zero, n), step).results[0], *at)


def _before(x: Value, y: Value) -> Value:
    """Whether x stands before y in sorted order; NaN stands last."""
    if x.dtype is bool_:
        return ~x & y
    return (x < y) | (ne(y, y) & eq(x, x)) if x.dtype.kind == "f" else x < y


# --- recurrences ----------------------------------------------------------------------------------


def recurrence(site: KernelSite) -> None:
    """y[k] = x[k - lag] * y[k - 1] + b[k] along an axis, of x and b; y[0] = b[0].

    attrs: (axis, lag), the lag being 0 or 1: each is what the gradient of the other needs,
    backwards.
    """
    axis, lag = site.attrs
    at = [const(0, int64) if d == axis else site.axis(-1, d) for d in range(site.rank(-1))]

    def step(k: Value, total: Value, before: Value) -> LoopStep:
        place = [*at[:axis], k, *at[axis + 1 :]]
        factor, b = site.read(0, *place), site.read(1, *place)
        total = where(eq(k, 0), b, fma(before if lag else factor, total, b))
        return (total, factor), [site.stored(total, *place)]

    zero = const(0, site.casts[0].compute)
    site.builder.effect(fold_loop(0, site.size(0, axis), (zero, zero), step))
