"""Kernels of the ops that have one each; `sort`, `scan` and `scatter` have the others."""

from __future__ import annotations

from collections.abc import Callable

from ..dtypes import DType, bool_, int64
from ..ir.language import Value, cast, const, eq, fma, fold_loop, ne, reduce_loop, where
from .kernel_context import KernelSite, Launches, LoopStep

PRODUCT_BLOCK = 256
"""The number of products of a block in the order of a product of matrices."""
PRODUCT_BLOCKS = 256
"""The number of blocks of a group in the order of a product of matrices."""
BLOCK_ELEMENTS = 4096  # elements of a mask that one grid point reads
COUNTS = "counts"  # as attrs: operand 1 has the count of each block, not the sum before it


def matmul(launches: Launches) -> None:
    """Add the launches of (..., m, k) @ (..., k, n), summed in the order of `sum_of_products`.

    A vector is a matrix of one row, or of one column. Few, long sums would occupy a part of the
    device: there each block is a product of its own, and a second kernel adds the sums of blocks.
    """
    x, y, result, length = 0, 1, launches.result, launches.shape(0)[-1]
    row, column = len(launches.shape(x)) == 1, len(launches.shape(y)) == 1
    if row or column:
        shape = launches.shape(result)
        result = launches.reshape(result, (1,) * row + shape + (1,) * column)
        x = launches.reshape(x, (1, length)) if row else x
        y = launches.reshape(y, (length, 1)) if column else y
    shape = launches.shape(result)
    blocks, left = divmod(length, PRODUCT_BLOCK)
    if not blocks or launches.calls_vendor or not launches.occupies_part(shape, length):
        launches.launch_or_call(launches.op.name, build_product, x, y, result)
        return
    sums = launches.temporary(launches.dtype(0).compute, (blocks + (left > 0), *shape))
    for first, count, size in ((0, blocks, PRODUCT_BLOCK), (blocks, 1, left)):
        if size:
            start = first * PRODUCT_BLOCK
            launches.launch_or_call(
                launches.op.name,
                build_product,
                launches.pieces(x, -1, start, size, count),
                launches.pieces(y, -2, start, size, count),
                launches.rows(sums, first, count),
            )
    launches.launch("sum_of_blocks", sum_blocks, sums, result, why="sums of blocks")


def build_product(site: KernelSite) -> None:
    """Build the kernel of a product; the last grid axis walks a row."""
    *batch, m, n = [site.axis(-1, d) for d in range(site.rank(-1))]

    def factors(k: Value) -> tuple[Value, Value]:
        """Return the elements that are multiplied at `k`."""
        return site.read(0, *batch, m, k), site.read(1, *batch, k, n)

    last = site.rank(0) - 1
    length, extent = site.size(0, last), site.extent(0, last)
    site.store(sum_of_products(length, extent, site.casts[0].compute, factors), *batch, m, n)


def sum_blocks(site: KernelSite) -> None:
    """Build the kernel that adds the sums of blocks along the first axis of its operand."""
    at = [site.axis(-1, d) for d in range(site.rank(-1))]
    blocks, extent, dtype = site.size(0, 0), site.extent(0, 0), site.casts[0]
    site.store(sum_of_blocks(blocks, extent, dtype, lambda b: site.read(0, b, *at)), *at)


Factors = Callable[[Value], tuple[Value, Value]]  # the two numbers that are multiplied at k


def sum_of_products(length: Value, extent: int, dtype: DType, factors: Factors) -> Value:
    """Return the sum over k < `length` of the products of `factors(k)`, in the order of products.

    Floats: a block of PRODUCT_BLOCK products starts at 0 and takes one fused multiply-add per k;
    the sums of blocks are added as by `sum_of_blocks`. The sum of no products is 0. Integers wrap,
    so their order does not matter.

    - `length`: the number of products, at run time.
    - `extent`: the length as a number, by which loops are left out that would run once; it does not
      change the sum.
    - `dtype`: the dtype of the sum.
    - `factors`: a function from k to the two numbers that are multiplied.
    """
    if dtype.kind not in "fc" or extent <= PRODUCT_BLOCK:
        return _sum_in_turn(const(0, int64), length, dtype, factors)
    blocks = _ceil_div(length, PRODUCT_BLOCK)
    return sum_of_blocks(
        blocks,
        -(-extent // PRODUCT_BLOCK),
        dtype,
        lambda block: sum_block_of_products(block, length, dtype, factors),
    )


def sum_block_of_products(block: Value, length: Value, dtype: DType, factors: Factors) -> Value:
    """Return the sum of one block of the products over k < `length`."""
    start = block * PRODUCT_BLOCK
    stop = where(start + PRODUCT_BLOCK < length, start + PRODUCT_BLOCK, length)
    return _sum_in_turn(start, stop, dtype, factors)


def _sum_in_turn(start: Value, stop: Value, dtype: DType, factors: Factors) -> Value:
    """Return the sum of the products from `start` to `stop`, added one after the other to 0."""

    def add_product(k: Value, total: Value) -> tuple[Value]:
        """Return `total` plus the product at `k`."""
        x, y = factors(k)
        return (fma(x, y, total) if dtype.kind in "fc" else total + x * y,)

    return fold_loop(start, stop, (const(0, dtype),), add_product).results[0]


def sum_of_blocks(
    blocks: Value, extent: int, dtype: DType, sum_block: Callable[[Value], Value]
) -> Value:
    """Return the sum of `sum_block(b)` over b < `blocks`, in order, in groups of PRODUCT_BLOCKS.

    The groups are added likewise. The first term of each sum starts it: nothing is added to 0.
    `extent`: the number of blocks as a number; it does not change the sum.
    """
    zero = const(0, dtype)

    def add_block(block: Value, first: Value, total: Value) -> tuple[Value]:
        """Return `total` plus the sum of a block, or the sum alone for the first block."""
        added = sum_block(block)
        return (where(eq(block, first), added, total + added),)

    def add_group(group: Value, total: Value) -> tuple[Value]:
        """Return `total` plus the sum of a group, or the sum alone for the first group."""
        first = group * PRODUCT_BLOCKS
        stop = where(first + PRODUCT_BLOCKS < blocks, first + PRODUCT_BLOCKS, blocks)
        (added,) = fold_loop(first, stop, (zero,), lambda b, t: add_block(b, first, t)).results
        return (where(eq(group, 0), added, total + added),)

    if extent <= PRODUCT_BLOCKS:
        start = const(0, int64)
        return fold_loop(0, blocks, (zero,), lambda b, t: add_block(b, start, t)).results[0]
    return fold_loop(0, _ceil_div(blocks, PRODUCT_BLOCKS), (zero,), add_group).results[0]


def _ceil_div(x: Value, divisor: int) -> Value:
    """Return x / divisor, rounded up, for a power of two."""
    return (x + (divisor - 1)) >> (divisor.bit_length() - 1)


# --- masks and indices ----------------------------------------------------------------------------


def _declare_block_axis(site: KernelSite) -> tuple[Value, Value, Value]:
    """Add a grid axis over the blocks of operand 0, a vector.

    Return the block, its start and stop.
    """
    block = site.axis(1, 0)  # operand 1 has an element for each block
    start, n = block * BLOCK_ELEMENTS, site.size(0, 0)
    return block, start, where(start + BLOCK_ELEMENTS < n, start + BLOCK_ELEMENTS, n)


def _count_before(site: KernelSite, block: Value) -> Value:
    """Return the number of elements that the blocks before this one have.

    Operand 1 has it, or the count of each block if attrs are COUNTS.
    """
    if site.attrs == COUNTS:
        return reduce_loop("add", 0, block, lambda b: site.read(1, b))[0]
    return site.read(1, block)


def _search_stop(site: KernelSite, block: Value, start: Value, stop: Value) -> Value:
    """Return the stop of a block's search: its start if the block has nothing to find."""
    if site.attrs == COUNTS:
        return where(eq(site.read(1, block), 0), start, stop)
    more = stop < site.size(0, 0)
    after = site.read(1, where(more, block + 1, block))
    return where(more & eq(after, site.read(1, block)), start, stop)


def count_blocks(site: KernelSite) -> None:
    """Build the kernel that counts the true elements in each block of a mask."""
    block, start, stop = _declare_block_axis(site)
    total = reduce_loop("add", start, stop, lambda k: cast(site.read(0, k), int64))[0]
    site.store(total, block)


def true_positions(site: KernelSite) -> None:
    """Build the kernel that stores the positions of a mask's true elements.

    Operand 1 has their number before each block.
    """
    block, start, stop = _declare_block_axis(site)
    stop = _search_stop(site, block, start, stop)

    def step(k: Value, index: Value) -> LoopStep:
        """Store position `k` if its element is true; return the next index."""
        true = site.read(0, k)
        return (index + cast(true, int64),), [site.stored(k, index, when=true)]

    site.builder.effect(fold_loop(start, stop, (_count_before(site, block),), step))


def packed_positions(site: KernelSite) -> None:
    """Build the kernel that stores positions of true elements of a short mask, then their number.

    Each position is stored, and overwritten if its element is false, so that no store depends on
    the mask.
    """
    n = site.size(0, 0)

    def step(k: Value, index: Value) -> LoopStep:
        """Store position `k`; return the next index, which grows if its element is true."""
        return (index + cast(site.read(0, k), int64),), [site.stored(k, index)]

    loop = fold_loop(0, n, (const(0, int64),), step)
    site.builder.effect(loop)
    site.builder.effect(site.stored(loop.results[0], n))


def count_runs(site: KernelSite) -> None:
    """Build the kernel that counts, in each block, elements that differ from the one before."""
    block, start, stop = _declare_block_axis(site)
    first = where(start < 1, 1, start)
    total = reduce_loop("add", first, stop, lambda k: cast(_differs(site, k), int64))[0]
    site.store(total, block)


def run_bounds(site: KernelSite) -> None:
    """Build the kernel that stores each run's start and the last end, given counts by block.

    Operand 1 has the number of starts before each block, without the first run's; or in each block,
    if attrs are COUNTS.
    """
    block, start, stop = _declare_block_axis(site)
    first = where(start < 1, 1, start)

    def step(k: Value, index: Value) -> LoopStep:
        """Store position `k` if a run starts there; return the next index."""
        new = _differs(site, k)
        return (index + cast(new, int64),), [site.stored(k, index, when=new)]

    end = _search_stop(site, block, first, stop)
    loop = fold_loop(first, end, (_count_before(site, block) + 1,), step)
    site.builder.effect(loop)
    site.builder.effect(site.stored(start, start, when=eq(block, 0)))
    site.builder.effect(site.stored(stop, loop.results[0], when=eq(stop, site.size(0, 0))))


def _differs(site: KernelSite, k: Value) -> Value:
    """Return True where an element differs from the one before it."""
    x, before = site.read(0, k), site.read(0, k - 1)
    return x ^ before if x.dtype is bool_ else ne(x, before)


def checked_indices(site: KernelSite) -> None:
    """Build the kernel that checks indices and counts them from 0; a bad one is stored as 0.

    attrs: (the op that asks, the axis, its size); True if they may count from the end; an index
    that becomes 0 unchecked, or None.
    """
    at = [site.axis(-1, d) for d in range(site.rank(-1))]
    raw_index, (purpose, from_end, ignored) = site.read(0, *at), site.attrs
    if from_end:
        i, in_range = normalize_index(site, raw_index, purpose)
    else:
        n, i = site.number("n", purpose[2]), raw_index
        if ignored is not None:
            i = where(eq(raw_index, site.number("ignored", ignored)), 0, raw_index)
        in_range = (const(0, int64) <= i) & (i < n)
    site.check(in_range, raw_index, purpose)
    site.store(where(in_range, i, 0), *at)  # kernels may use the index before the error is raised


def normalize_index(
    site: KernelSite, raw_index: Value, purpose: tuple[str, int, int]
) -> tuple[Value, Value]:
    """Return an index counted from the start of its axis, and the condition that it is in range."""
    n = site.number("n", purpose[2])
    i = where(raw_index < 0, raw_index + n, raw_index)
    return i, (const(0, int64) <= i) & (i < n)


def search_sorted(site: KernelSite) -> None:
    """Build the kernel that finds where to insert values into a sorted vector.

    attrs: the side. Operand 2, if any, sorts the vector.
    """
    at = [site.axis(-1, d) for d in range(site.rank(-1))]
    n, wanted = site.size(0, 0), site.read(1, *at)
    zero = const(0, int64)

    def step(_: Value, low: Value, high: Value) -> tuple[Value, ...]:
        """Halve the range of the binary search."""
        middle = (low + high) >> 1
        probe = where(middle < n, middle, n - 1)
        here = site.read(0, probe if len(site.casts) == 2 else site.read(2, probe))
        right = _precedes(here, wanted) if site.attrs == "left" else ~_precedes(wanted, here)
        right, open_ = right & (low < high), low < high
        return where(right, middle + 1, low), where(open_ & ~right, middle, high)

    rounds = site.number("rounds", site.extent(0, 0).bit_length())
    site.store(fold_loop(0, rounds, (zero, n), step).results[0], *at)


def _precedes(x: Value, y: Value) -> Value:
    """Return True where x precedes y in sorted order; NaN is last."""
    if x.dtype is bool_:
        return ~x & y
    return (x < y) | (ne(y, y) & eq(x, x)) if x.dtype.kind == "f" else x < y


# --- recurrences ----------------------------------------------------------------------------------


def recurrence(site: KernelSite) -> None:
    """Build the kernel of y[k] = x[k - lag] * y[k - 1] + b[k] along an axis; y[0] = b[0].

    attrs: (axis, lag), the lag being 0 or 1: the gradient of each needs the other, backwards.
    """
    axis, lag = site.attrs
    at = [const(0, int64) if d == axis else site.axis(-1, d) for d in range(site.rank(-1))]

    def step(k: Value, total: Value, before: Value) -> LoopStep:
        """Store y[k]; return y[k] and the factor x[k]."""
        index = [*at[:axis], k, *at[axis + 1 :]]
        factor, b = site.read(0, *index), site.read(1, *index)
        total = where(eq(k, 0), b, fma(before if lag else factor, total, b))
        return (total, factor), [site.stored(total, *index)]

    zero = const(0, site.casts[0].compute)
    site.builder.effect(fold_loop(0, site.size(0, axis), (zero, zero), step))
