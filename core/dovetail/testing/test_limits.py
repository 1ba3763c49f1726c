"""Level 12: what a device says that it takes no more of, the core gives it no more of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import le

import numpy as np
import pytest

from ..backend.interface import Compiled, Handles, Launch, Scalar, StreamHandle
from ..device_class import Device
from ..dtypes import float32, int8, int32, int64
from ..engine.evaluate import plan_pending
from ..errors import DeviceError
from ..functions.indexing.index_reads import take
from ..functions.reductions.statistics import sum as sum_
from ..functions.shape.copies import concat
from ..fusion.plan import PlannedLaunch
from ..ir.builder import Kernel, KernelBuilder
from ..ir.interval_analysis import trip_bounds
from ..ir.language import (
    Effect,
    Store,
    Value,
    cast,
    const,
    fold_loop,
    load,
    map_loop,
    reduce_loop,
    rem,
)
from ..ir.trip_counts import count_iterations
from ..tensor.tensor import Tensor
from .cases import dense
from .kit import Kit
from .values import bytes_view

UNLIMITED_TENSORS = 40  # tensors, where nothing limits the buffers of a kernel
AXIS_POINTS_MAX = 1 << 22  # points along an axis; of a device that allows more:
SHORT_AXIS_POINTS = 1000
BUFFER_SHARE = 4  # no case needs more than this part of the largest buffer
LONG_FOLD_STEPS = 70_000  # a driver ended all loops of a point after 65,535 iterations
LOOP_ITERATIONS = 65_535  # of a launch, where nothing limits them
LOOP_ROWS = 100  # iterations of the outer loop of nested ones
MANY_REDUCTIONS = 777  # of one point: 65,535 iterations are 84 for each
PLACES = 10  # at which a bound launch finds its buffers
INT64_INDEX_STRIDE = 3_000_000_000  # more than 32 bits index


def _sum(xs: list[Tensor]) -> Tensor:
    """Return the sum of the tensors, added in order."""
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


def _sum_of_rows(xs: list[Tensor]) -> Tensor:
    """Return the sum of the tensors, reduced along axis 1."""
    return sum_(_sum(xs), axis=1)


def _joined(xs: list[Tensor]) -> Tensor:
    """Return four partial sums of the tensors, joined along axis 1, plus 1."""
    return concat([_sum(xs[k::4]) for k in range(4)], axis=1) + 1


@pytest.mark.parametrize("program", (_sum, _sum_of_rows, _joined), ids=lambda p: p.__name__[1:])
def test_buffers(kit: Kit, program: Callable[[list[Tensor]], Tensor]) -> None:
    """Check a function of more tensors than a kernel may have buffers."""
    most = kit.backend.info.capabilities.max_buffers

    def make(on: Device) -> Tensor:
        """Run the program on more tensors than a kernel has buffers, on `on`."""
        count = 3 * most + 4 if most else UNLIMITED_TENSORS
        rng = np.random.default_rng(1)
        xs = [rng.standard_normal((6, 17)).astype("f4") for _ in range(count)]
        return program([dense(x, float32, on) for x in xs])

    kit.check_agreement(make, f"{program.__name__[1:]} of more tensors than a kernel takes")
    kernels = [
        s.kernel
        for _, p in plan_pending([make(kit.device)._expr])
        for s in p.steps
        if isinstance(s, PlannedLaunch)
    ]
    for kernel in kernels:
        assert not most or len(kernel.buffers) <= most, kit.failure(
            f"{len(kernel.buffers)} buffers of {most}", str(kernel)
        )


def scaling_kernel(rank: int) -> Kernel:
    """Build y = x * 2 + 1 over a grid with `rank` axes."""
    b = KernelBuilder("scaled")
    x, y = b.buffer("x", int8, "r"), b.buffer("y", int8, "w")
    at = const(0, int64)
    for axis in range(rank):
        n = b.int(f"n{axis}")
        at = at * n + b.axis(n)
    b.store(y, at, load(x, at) * 2 + 1)
    return b.build()


@pytest.mark.parametrize("more", (-1, 0, 1, 2))
def test_launches(kit: Kit, monkeypatch: pytest.MonkeyPatch, more: int) -> None:
    """Check launches with more points and axes than the device allows, at odd offsets."""
    can, bind = kit.backend.info.capabilities, kit.backend.bind
    most = can.max_grid or (1,)
    launched: list[tuple[int, ...]] = []

    def watch(program: Compiled, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Bind a program whose launches are recorded; fail if the grid is beyond the limit."""
        launch = bind(program, ints, grid)
        within = len(grid) <= len(most) and all(map(le, grid[::-1], most[::-1]))
        assert within or not can.max_grid, kit.failure(f"a grid of {grid} of {most}", "")
        assert len(ints) == len(program.kernel.ints), kit.failure(f"{len(ints)} integers", "")

        def record(buffers: Handles, scalars: Sequence[Scalar], stream: StreamHandle) -> None:
            """Record the byte offsets of a launch, and run the launch."""
            launched.append(buffers[1::2])
            launch(buffers, scalars, stream)

        return record

    monkeypatch.setattr(kit.backend, "bind", watch)
    outer = [2 + k for k in range(max(0, len(most) + more - 1))]
    last = most[-1] + 5 if most[-1] + 5 <= AXIS_POINTS_MAX else SHORT_AXIS_POINTS
    if can.max_buffer:
        last = min(last, can.max_buffer // BUFFER_SHARE // math.prod(outer))
    grid = (*outer, last)
    x = np.arange(math.prod(grid), dtype=np.int64).astype("i1")
    kit.check(scaling_kernel(len(grid)), [x, np.zeros_like(x)], grid, [], grid)
    wrong = [k for offsets in launched for k in offsets if k % can.offset_alignment]
    assert launched and not wrong, kit.failure(
        f"offsets {wrong}, not multiples of {can.offset_alignment}", ""
    )


def test_places(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check one launch with its buffers at ten places, of which `offset_params` binds one."""
    can, bind = kit.backend.info.capabilities, kit.backend.bind
    kernel, n = scaling_kernel(1), 300
    apart = n + PLACES
    data = np.arange(2 * PLACES * apart, dtype=np.int64).astype("i1")
    memory = kit.opened.allocator.allocate(data.size)
    bound: list[Compiled] = []

    def watch(program: Compiled, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Bind a program, and count it."""
        bound.append(program)
        launch: Launch = bind(program, ints, grid)
        return launch

    monkeypatch.setattr(kit.backend, "bind", watch)
    launch = kit.bind(kernel, (n,), (n,))
    kit.backend.copy_in(memory.handle, memory.offset, bytes_view(data))
    for k in range(PLACES):
        source, target = 2 * k * apart + k, (2 * k + 1) * apart
        offsets = memory.offset + source, memory.offset + target
        launch((memory.handle, offsets[0], memory.handle, offsets[1]), (), None)
        data[target : target + n] = data[source : source + n] * 2 + 1
        actual = np.empty_like(data)
        kit.backend.copy_out(bytes_view(actual), memory.handle, memory.offset)
        kit.check_same_bits(actual, data, int8, f"place {k + 1}", lambda: str(kernel))
    once = can.offset_params and not can.max_grid
    assert len(bound) == 1 or not once, kit.failure(f"{len(bound)} calls of bind", str(kernel))


def test_small_neighbours(kit: Kit) -> None:
    """Check loads and stores at loaded indices in tensors that lie next to each other.

    An offset that is rounded down may lie in another tensor, and indices that count down are
    negative.
    """

    def make(on: Device) -> Tensor:
        """Return what is read of nine small tensors, and their elements after a write."""
        xs = [dense(np.arange(k, k + 300, dtype="f4"), float32, on) for k in range(9)]
        at = dense(np.array([5, 0, 299]), int64, on)
        read = [take(x, at) + x[5:2:-1] for x in xs]
        xs[4][at] = -1.0
        return concat([*read, *xs])

    kit.check_agreement(make, "small tensors next to each other")


def pick_rows() -> Kernel:
    """Build y[i, j] = x[at[i], j] where the row exists, and `place`, indices beyond 32 bits."""
    b = KernelBuilder("picked")
    x, at = b.buffer("x", float32, "r"), b.buffer("at", int64, "r")
    y, index = b.buffer("y", float32, "w"), b.buffer("place", int64, "w")
    rows, m, n = b.int("rows"), b.int("m"), b.int("n")
    i, j = b.axis(m), b.axis(n)
    inside = load(at, i)
    fine = (const(0, int64) <= inside) & (inside < rows)
    b.store(y, i * n + j, load(x, inside * n + j, fine))
    b.store(index, i * n + j, i * INT64_INDEX_STRIDE + inside, rem(i + j, 3) < 2)
    return b.build()


def test_indices(kit: Kit) -> None:
    """Check masked indices beyond 32 bits and 64-bit results; on 32-bit devices a refusal."""
    at = np.array([2, 1 << 32, -1, 3, (1 << 33) + 1, 0, 4], np.int64)
    x = np.random.default_rng(2).standard_normal((4, 5)).astype("f4")
    arrays = [x.ravel(), at, np.zeros(35, "f4"), np.zeros(35, np.int64)]
    kit.check(pick_rows(), arrays, [4, 7, 5], [], (7, 5))
    if kit.backend.info.capabilities.index_bits == 32:
        kernel = kit.program(pick_rows()).kernel
        assert kernel.index is int32, kit.failure("indices of 64 bits", str(kernel))
        with pytest.raises(DeviceError, match="has 32-bit indices"):
            kit.bind(pick_rows(), [4, 7, INT64_INDEX_STRIDE], (7, INT64_INDEX_STRIDE))


def blending_fold() -> Kernel:
    """Build a fold of n steps for each point, with two carried values and a store in each step."""
    b = KernelBuilder("blended")
    x, y, last = (b.buffer(n, float32, a) for n, a in (("x", "r"), ("y", "rw"), ("last", "w")))
    points, n = b.int("points"), b.int("n")
    i = b.axis(points)
    start = load(x, i)  # the fold writes to y, which may be next to it

    def step(k: Value, total: Value, count: Value) -> tuple[list[Value], list[Effect]]:
        new = total * 0.5 + load(x, k)
        return [new, count + cast(total < start, int32)], [Store(y, k * points + i, new)]

    steps = fold_loop(i, n, [start, const(0, int32)], step)
    b.effect(steps)
    total, count = steps.results
    b.store(last, i, total + cast(count, float32) * start)
    return b.build()


def test_long_fold(kit: Kit) -> None:
    """Check a fold of 70,000 steps, which does not end before its last one."""
    x = np.random.default_rng(3).standard_normal(LONG_FOLD_STEPS).astype("f4")
    arrays = [x, np.zeros(2 * x.size, "f4"), np.zeros(2, "f4")]
    kit.check(blending_fold(), arrays, [2, x.size], [], (2,))


def rows_of_reductions() -> Kernel:
    """Build a kernel whose points do many reductions, one after the other."""
    b = KernelBuilder("reduced")
    x, y = b.buffer("x", float32, "r"), b.buffer("y", float32, "w")
    rows, n = b.int("rows"), b.int("n")
    i = b.axis(b.int("points"))

    def row(k: Value) -> list[Effect]:
        at = i * rows + k
        (total,) = reduce_loop("add", 0, n, lambda j: load(x, at * n + j))
        return [Store(y, at, total)]

    b.effect(map_loop(0, rows, row))
    return b.build()


def test_many_reductions(kit: Kit) -> None:
    """Check 777 reductions in one point, each with the loops over lanes of its own."""
    x = np.random.default_rng(4).standard_normal(2 * MANY_REDUCTIONS * 7).astype("f4")
    arrays = [x, np.zeros(2 * MANY_REDUCTIONS, "f4")]
    kit.check(rows_of_reductions(), arrays, [MANY_REDUCTIONS, 7, 2], [], (2,))


def chain_of_loops() -> Kernel:
    """Build nested folds, a reduction and a fold in a row, each with the result of the last."""
    b = KernelBuilder("chained")
    y = b.buffer("y", int32, "w")
    i = b.axis(b.int("points"))
    rows, columns, values, last = (b.int(n) for n in ("rows", "columns", "values", "last"))

    def mix(k: Value, x: Value) -> list[Value]:
        return [x * 3 + cast(k, int32)]

    nest = fold_loop(
        0, rows, [cast(i, int32)], lambda j, x: fold_loop(0, columns, mix(j, x), mix).results
    )
    (total,) = reduce_loop("add", 0, values, lambda k: cast(k, int32) * nest.results[0])
    b.store(y, i, fold_loop(0, last, [total], mix).results[0])
    return b.build()


@pytest.mark.parametrize("more", (0, 1))
def test_loops_at_the_limit(kit: Kit, monkeypatch: pytest.MonkeyPatch, more: int) -> None:
    """Check a launch with as many iterations as the device allows, and one with one more."""
    bind, limit = kit.backend.bind, kit.backend.info.capabilities.max_iterations
    most = limit or LOOP_ITERATIONS
    kernel = kit.program(chain_of_loops()).kernel
    kernel = kernel.unexpanded or kernel

    def sizes(last: int) -> list[int]:
        """Return the integers of a launch whose last loop has `last` iterations."""
        return [2, LOOP_ROWS, most // LOOP_ROWS // 2, most // 4, last]

    ints = sizes(0) + [0] * (len(kernel.ints) - len(sizes(0)))
    trips = {loop: n or 0 for loop, n in trip_bounds(kernel, ints, (2,)).items()}
    ints = sizes(most - count_iterations(kernel.body, trips).active + more)
    launched: list[Compiled] = []

    def watch(program: Compiled, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Bind a program whose launches are recorded."""
        launch = bind(program, ints, grid)

        def record(buffers: Handles, scalars: Sequence[Scalar], stream: StreamHandle) -> None:
            """Record a launch, and run it."""
            launched.append(program)
            launch(buffers, scalars, stream)

        return record

    monkeypatch.setattr(kit.backend, "bind", watch)
    kit.check(chain_of_loops(), [np.zeros(2, "i4")], ints, [], (2,))
    in_parts = len(launched) > 1
    assert in_parts == (more > 0 < limit), kit.failure(f"{len(launched)} launches", str(kernel))
