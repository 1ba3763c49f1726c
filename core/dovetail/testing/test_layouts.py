"""Level 4: strides of every class, grids of every rank, computed places, atomics: how kernels
walk memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from ..backend.reference import interpret
from ..dtypes import ALL as DTYPES
from ..dtypes import COMPLEX, DType, bool_, float32, float64, int8, int32, int64, uint32
from ..errors import DeviceError
from ..ir.builder import Kernel, KernelBuilder
from ..ir.language import (
    Atomic,
    Effect,
    Store,
    Value,
    cast,
    const,
    fma,
    fold_loop,
    load,
    map_loop,
    where,
)
from .kit import Kit
from .test_scalar_ops import param_id
from .values import Array, bytes_view, finite_values, host_dtype, sample

SHAPES2 = ((1, 1), (2, 5), (5, 2), (3, 31), (7, 64), (65, 33), (2, 1000), (130, 131))
SHAPES3 = ((1, 1, 1), (2, 3, 5), (3, 65, 127), (2, 16, 200), (4, 1, 9), (33, 2, 2))


def strided_copy(d: DType, rank: int) -> Kernel:
    """Return a kernel that copies by strides.

    out[o + sum(i * t)] = x[b + sum(i * s)] over a grid: every stride is an argument, as are both
    starts.
    """
    b = KernelBuilder(f"copy{rank}")
    x, out = b.buffer("x", d, "r"), b.buffer("out", d, "w")
    source, target = b.int("source"), b.int("target")
    for axis in range(rank):
        i = b.axis(b.int(f"n{axis}"))
        source = source + i * b.int(f"s{axis}")
        target = target + i * b.int(f"t{axis}")
    b.store(out, target, load(x, source))
    return b.build()


def strides_of(shape: Sequence[int], order: Sequence[int]) -> list[int]:
    """Return dense strides with the axes laid out in `order`, outermost first."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis], step = step, step * shape[axis]
    return strides


@pytest.mark.parametrize("rank", (1, 2, 3, 4))
def test_strides_as_arguments(kit: Kit, rank: int) -> None:
    """Check copies by strides: each order of axes, negative, zero, and with gaps."""
    shape = (3, 17, 5, 4)[:rank]
    kernel, size = strided_copy(float32, rank), int(np.prod(shape))
    for order in itertools.permutations(range(rank)):
        for flipped in range(rank + 1):
            s, start = strides_of(shape, order), 0
            if flipped < rank:
                start, s[flipped] = (shape[flipped] - 1) * s[flipped], -s[flipped]
            for t, first in (
                (strides_of(shape, range(rank)), 0),
                ([2 * n for n in strides_of(shape, order[::-1])], 1),
            ):
                ints = [start, first, *interleave(shape, s, t)]
                arrays = [finite_values(float32, size, 1), np.zeros(2 * size + 1, "f4")]
                kit.check(kernel, arrays, ints, [], shape)
    ints = [0, 0, *interleave(shape, [0] * rank, strides_of(shape, range(rank)))]
    kit.check(kernel, [finite_values(float32, 3, 1), np.zeros(size, "f4")], ints, [], shape)


def interleave(*columns: Sequence[int]) -> list[int]:
    """Return n0, s0, t0, n1, s1, t1, ...: the order in which `strided_copy` takes integers."""
    return [n for axis in zip(*columns, strict=True) for n in axis]


@pytest.mark.parametrize("d", [d for d in DTYPES if d not in COMPLEX], ids=param_id)
def test_transposed(kit: Kit, d: DType) -> None:
    """Check transposed copies, with strides that are known in the kernel."""
    b = KernelBuilder("transposed")
    x, out = b.buffer("x", d, "r"), b.buffer("out", d, "w")
    q, m, n = b.int("q"), b.int("m"), b.int("n")
    h, i, j = b.axis(q), b.axis(m), b.axis(n)
    b.store(out, h * m * n + i * n + j, load(x, h * m * n + j * m + i))
    kernel = b.build()
    for shape in (*SHAPES3, *((1, *s) for s in SHAPES2)):
        size = int(np.prod(shape))
        kit.check(kernel, [sample(d, size, 1), np.zeros(size, host_dtype(d))], shape, [], shape)


@pytest.mark.parametrize(
    "order", list(itertools.permutations(range(3))), ids=lambda o: "".join(map(str, o))
)
def test_permuted_with_known_strides(kit: Kit, order: tuple[int, ...]) -> None:
    """Check a copy of a cube from each order of axes to row-major order."""
    b = KernelBuilder("permuted")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    extents = [b.int(f"n{k}") for k in range(3)]
    axes = [b.axis(n) for n in extents]
    one = const(1, int64)
    strides: dict[int, Value] = {}
    step = one
    for axis in reversed(order):
        strides[axis], step = step, extents[axis] * step
    source = sum((axes[k] * strides[k] for k in range(1, 3)), axes[0] * strides[0])
    b.store(out, (axes[0] * extents[1] + axes[1]) * extents[2] + axes[2], load(x, source))
    for shape in SHAPES3:
        size = int(np.prod(shape))
        kit.check(
            b.build(), [finite_values(float32, size, 1), np.zeros(size, "f4")], shape, [], shape
        )


def test_broadcast_flipped_and_strided_together(kit: Kit) -> None:
    """Check loads with strides 0, negative and any, and a transposed store; 1 and 2 threads."""
    b = KernelBuilder("strides")
    x, y, z = (b.buffer(n, float32, "r") for n in "xyz")
    flat, turned = b.buffer("flat", float32, "w"), b.buffer("turned", float32, "w")
    m, n, s, c = b.int("m"), b.int("n"), b.int("s"), b.scalar("c", float32)
    i, j = b.axis(m), b.axis(n)
    value = load(x, i * n + j) * c + load(y, i) - load(z, (n - 1 - j) * s + i)
    b.store(flat, i * n + j, value)
    b.store(turned, j * m + i, value)
    kernel = b.build()
    for _ in kit.thread_counts():
        for rows, columns in (*SHAPES2, (300, 500)):
            size = rows * columns
            arrays = [finite_values(float32, k, k) for k in (size, rows, 3 * size + rows)]
            arrays += [np.zeros(size, "f4"), np.zeros(size, "f4")]
            kit.check(kernel, arrays, [rows, columns, 3], [0.1], [rows, columns])


@pytest.mark.parametrize("sizes", ((0,), (5, 0), (0, 5)), ids=str)
def test_empty_grids_do_nothing(kit: Kit, sizes: tuple[int, ...]) -> None:
    """Check that a launch with an extent of 0 writes no element."""
    kernel = strided_copy(float32, len(sizes))
    ints = [0, 0] + [n for size in sizes for n in (size, 1, 1)]
    kit.check(kernel, [finite_values(float32, 5, 1), finite_values(float32, 5, 2)], ints, [], sizes)


def test_no_grid_is_one_point(kit: Kit) -> None:
    """Check that a kernel without axes runs once."""
    b = KernelBuilder("point")
    x, out = (
        b.buffer("x", float64 if kit.has_dtype(float64) else float32, "r"),
        b.buffer("out", int64, "w"),
    )
    n, k = b.int("n"), b.int("k")
    b.store(out, k, cast(load(x, n), int64) + n * k)
    kit.check(
        b.build(), [np.arange(9).astype(host_dtype(x.dtype)), np.zeros(7, np.int64)], [3, 5], [], []
    )


def test_integers_and_indices_are_64_bits(kit: Kit) -> None:
    """Check products of sizes beyond 2**32, and indices as values.

    A device whose indices have 32 bits refuses larger integers.
    """
    b = KernelBuilder("wide")
    out, n, big = b.buffer("out", int64, "w"), b.int("n"), b.int("big")
    i = b.axis(n)
    b.store(out, i, big * big + i * big - (i << 40))
    most = 3_000_000_019
    if kit.backend.info.capabilities.index_bits == 32:
        with pytest.raises(DeviceError, match="has 32-bit indices"):
            kit.bind(b.build(), [100, most], [100])
        most = 2_000_000_019
    kit.check(b.build(), [np.zeros(100, np.int64)], [100, most], [], [100])


def test_several_stores_and_dtypes(kit: Kit) -> None:
    """Check a kernel that stores one value to buffers of four dtypes."""
    b = KernelBuilder("several")
    x = b.buffer("x", int32, "r")
    outs = [b.buffer(f"o{d.code}", d, "w") for d in (int8, int64, float32, bool_)]
    i = b.axis(b.int("n"))
    v = load(x, i)
    for out in outs:
        b.store(out, i, cast(v * 3 + 1, out.dtype))
    for n in (1, 17, 64, 1000):
        arrays = [sample(int32, n, 1), *(np.zeros(n, host_dtype(o.dtype)) for o in outs)]
        kit.check(b.build(), arrays, [n], [], [n])


def test_read_and_write_of_one_buffer(kit: Kit) -> None:
    """Check a kernel in which each point reads and writes its element twice."""
    b = KernelBuilder("in_place")
    x = b.buffer("x", float32, "rw")
    i = b.axis(b.int("n"))
    b.store(x, i, load(x, i) * 2.0)
    b.store(x, i, load(x, i) + 1.0)
    for n in (1, 33, 1000):
        kit.check(b.build(), [finite_values(float32, n, 1)], [n], [], [n])


def test_gather_and_scatter(kit: Kit) -> None:
    """Check loads and stores at indices that are loaded from a buffer."""
    b = KernelBuilder("scatter")
    x, at, out = (
        b.buffer("x", float32, "r"),
        b.buffer("at", int64, "r"),
        b.buffer("out", float32, "w"),
    )
    i = b.axis(b.int("n"))
    b.store(out, load(at, i), load(x, load(at, i)) + cast(i * 3 - 5, float32))
    for n in (1, 15, 16, 100, 5000):
        order = np.random.default_rng(n).permutation(n)
        kit.check(b.build(), [finite_values(float32, n, 1), order, np.zeros(n, "f4")], [n], [], [n])


@pytest.mark.parametrize("d", (int32, uint32, int64), ids=param_id)
@pytest.mark.parametrize("op", ("add", "min", "max", "and", "or"))
def test_atomics(kit: Kit, op: str, d: DType) -> None:
    """Check atomics of many points on few elements, with a predicate; at 1 and 2 threads."""
    b = KernelBuilder("histogram")
    at, out = b.buffer("at", int64, "r"), b.buffer("out", d, "rw")
    i = b.axis(b.int("n"))
    k = load(at, i)
    b.effect(Atomic(op, out, k, cast(i * 7 + 1, d), k < 8))
    kernel = b.build()
    for _ in kit.thread_counts():
        for n in (1, 50, 30_000):
            positions = np.random.default_rng(n).integers(0, 10, n)
            kit.check(kernel, [positions, np.arange(10).astype(host_dtype(d)) * 3], [n], [], [n])


def test_atomics_in_a_loop(kit: Kit) -> None:
    """Check atomic additions of points that meet, in a loop of each point."""
    b = KernelBuilder("counts")
    x, out = b.buffer("x", int64, "r"), b.buffer("out", int32, "rw")
    m, n = b.int("m"), b.int("n")
    i = b.axis(m)
    b.effect(map_loop(0, n, lambda k: [Atomic("add", out, load(x, i * n + k), const(1, int32))]))
    positions = np.random.default_rng(1).integers(0, 16, 70 * 33)
    kit.check(b.build(), [positions, np.zeros(16, np.int32)], [70, 33], [], [70])


def matrix_product(d: DType) -> Kernel:
    """Build a kernel for out = x @ y, which adds products in order, with fma for floats."""
    b = KernelBuilder("matmul")
    x, y, out = b.buffer("x", d, "r"), b.buffer("y", d, "r"), b.buffer("out", d, "w")
    m, k_, n = b.int("m"), b.int("k"), b.int("n")
    i, j = b.axis(m), b.axis(n)

    def step(k: Value, c: Value) -> list[Value]:
        """Return the sum `c` plus the product at position `k`."""
        left, right = load(x, i * k_ + k), load(y, k * n + j)
        return [fma(left, right, c) if d.kind == "f" else left * right + c]

    b.store(out, i * n + j, fold_loop(0, k_, [const(0, d)], step).results[0])
    return b.build()


@pytest.mark.parametrize("d", (int8, int32, int64, float32, float64), ids=param_id)
def test_matrix_product(kit: Kit, d: DType) -> None:
    """Check products of matrices of many sizes, also with an inner extent of 0."""
    kernel = matrix_product(d)
    for p, q, r in ((1, 1, 1), (3, 4, 5), (9, 17, 65), (70, 8, 300), (5, 0, 3), (64, 64, 64)):
        arrays = [
            finite_values(d, max(1, p * q), 1),
            finite_values(d, max(1, q * r), 2),
            np.zeros(p * r, host_dtype(d)),
        ]
        kit.check(kernel, arrays, [p, q, r], [], [p, r])


def test_loops_in_loops(kit: Kit) -> None:
    """Check a loop whose start is the variable of the loop around it."""
    b = KernelBuilder("triangle")
    out, n = b.buffer("out", int64, "w"), b.int("n")
    g = b.axis(b.int("q"))

    def row(i: Value) -> list[Effect]:
        """Return the loop over row `i` of the triangle."""
        return [map_loop(i, n, lambda j: [Store(out, (g * n + i) * n + j, i * 100 + j + g)])]

    b.effect(map_loop(0, n, row))
    for size in (1, 5, 40):
        kit.check(b.build(), [np.zeros(3 * size * size, np.int64)], [size, 3], [], [3])


def test_search_by_halves(kit: Kit) -> None:
    """Check a binary search: a fold with predicated loads at carried indices."""
    b = KernelBuilder("search")
    table, x, out = (
        b.buffer("table", float32, "r"),
        b.buffer("x", float32, "r"),
        b.buffer("out", int64, "w"),
    )
    n, size, steps = b.int("n"), b.int("size"), b.int("steps")
    i = b.axis(n)

    def step(k: Value, lo: Value, hi: Value) -> list[Value]:
        """Return the bounds after one step of the binary search."""
        middle = (lo + hi) >> 1
        right = (lo < hi) & (load(table, middle, lo < hi) < load(x, i))
        return [where(right, middle + 1, lo), where((lo < hi) & ~right, middle, hi)]

    b.store(out, i, fold_loop(0, steps, [const(0, int64), size], step).results[0])
    keys, values = np.sort(finite_values(float32, 100, 1)), finite_values(float32, 60, 2)
    position: list[Array] = kit.check(
        b.build(), [keys, values, np.zeros(60, np.int64)], [60, 100, 8], [], [60]
    )
    assert np.array_equal(position[2], np.searchsorted(keys, values))


def feedback_kernel(d: DType) -> Kernel:
    """Build y = x * x + x over strided x and y, which have the same strides."""
    b = KernelBuilder("fed_back")
    x, y = b.buffer("x", d, "r"), b.buffer("y", d, "w")
    i, j = b.axis(b.int("n")), b.axis(b.int("m"))
    at = i * b.int("s") + j * b.int("t")
    value = load(x, at)
    b.store(y, at, value * value + value)
    return b.build()


@pytest.mark.parametrize("d", [float32, int64, int8], ids=param_id)
@pytest.mark.parametrize(
    "n, m, s, t", [(1, 333, 0, 1), (9, 37, 37, 1), (9, 37, 1, 9), (7, 5, 40, 3)]
)
def test_what_is_read_may_be_what_is_written(
    kit: Kit, d: DType, n: int, m: int, s: int, t: int
) -> None:
    """Check launches in which an input and the output are the same memory."""
    size = (n - 1) * s + (m - 1) * t + 1
    values = finite_values(d, size, 5)
    launch = kit.bind(feedback_kernel(d), (n, m, s, t), (n, m))
    expected = values.copy()
    interpret(feedback_kernel(d), [values, expected], [n, m, s, t], [], [n, m])
    ptr = kit.opened.allocator.allocate(3 * values.nbytes)
    at, offset = ptr.handle, ptr.offset
    for read, written in ((0, 0), (1, 1), (0, 1), (2, 1)):  # thirds of one block of memory
        kit.backend.copy_in(at, offset, bytes_view(np.tile(values, 3)))
        low, to = (offset + k * values.nbytes for k in (read, written))
        launch((at, low, at, to), (), None)
        actual = np.empty(3 * size, values.dtype)
        kit.backend.copy_out(bytes_view(actual), at, offset)
        wanted = np.tile(values, 3)
        wanted[written * size : (written + 1) * size] = expected
        what = f"third {read} of some memory read, third {written} written"
        kit.check_same_bits(actual, wanted, d, what, lambda: str(feedback_kernel(d)))
