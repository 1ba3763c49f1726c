"""Kernels in parts: the bits of the whole, and few launches where few are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import limited
import numpy as np
import pytest
from dovetail.backend.iteration_parts import PartedLaunch
from dovetail.dtypes import FLOATS, INTEGERS, DType, bool_, float32, int32, int64
from dovetail.errors import DeviceError
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.interval_analysis import trip_bounds
from dovetail.ir.language import (
    Effect,
    Loop,
    Store,
    Value,
    cast,
    const,
    fold_loop,
    load,
    map_loop,
    reduce_loop,
    rem,
    walk,
    where,
)
from dovetail.ir.parser import parse_kernel
from dovetail.ir.split_iterations import SplitKernel, split_iterations
from dovetail.ir.trip_counts import UnknownTripsError, build_trip_probe, count_iterations
from dovetail.testing.kit import Kit

LIMIT = 1 << 13
Body = Callable[[KernelBuilder, Value], None]


def kit(backend: type[limited.Limited] = limited.ShortLoops) -> Kit:
    """Return the kit on a device that counts the iterations of each point."""
    opened = backend.device().opened
    assert opened is not None
    return Kit(opened, "")


def kernel_of(dtypes: dict[str, tuple[DType, str]], body: Callable[..., None]) -> Kernel:
    """Return a kernel of points `n` whose body gets its builder, buffers and index."""
    b = KernelBuilder("whole")
    buffers = [b.buffer(name, d, access) for name, (d, access) in dtypes.items()]
    body(b, *buffers, b.axis(b.int("n")))
    return b.build()


def split(kernel: Kernel, ints: Sequence[int], grid: Sequence[int]) -> SplitKernel | None:
    """Return the parts of a launch; None if it is within the limit."""
    trips = trip_bounds(kernel, ints, grid)
    known = {loop: n for loop, n in trips.items() if n is not None}
    assert len(known) == len(trips)
    within = count_iterations(kernel.body, known).active <= LIMIT
    return None if within else split_iterations(kernel, known, LIMIT)


def test_bounds_of_loops_over_blocks_are_the_blocks() -> None:
    text = """kernel k(x: w f32; n, m; ) grid(n) {
  v0: i64 = mul i0, i64(256)
  v1: i64 = add v0, i64(256)
  v2: b8 = lt v1, m
  v3: i64 = where v2, v1, m
  map k0 in v0..v3 {
    store x[k0] = f32(1.0)
  }
  v4: i64 = sub v3, v0
  map k1 in i64(0)..v4 {
    v5: i64 = sub v4, i64(3)
    v6: b8 = lt k1, v5
    v7: i64 = where v6, v5, k1
    map k2 in v7..v4 {
      store x[k2] = f32(1.0)
    }
  }
}"""
    bounds = trip_bounds(parse_kernel(text), [1000, 250_000], [1000])
    assert [*bounds.values()] == [256, 256, 3]
    assert [*trip_bounds(parse_kernel(text), [0, 250_000], [0]).values()] == [0, 0, 0]


def test_bounds_of_loops_over_data_are_unknown() -> None:
    for d in ("i64", "i32"):
        text = f"""kernel k(x: w f32, at: r {d}; n; ) grid(n) {{
  v0: {d} = load at[i0]
  v1: i64 = {"add v0, i64(0)" if d == "i64" else "cast v0"}
  map k0 in i0..v1 {{
    map k1 in k0..v1 {{
      store x[k1] = f32(1.0)
    }}
  }}
  v2: b8 = lt v1, n
  v3: i64 = where v2, v1, n
  map k2 in i64(0)..v3 {{
    store x[k2] = f32(1.0)
  }}
}}"""
        assert [*trip_bounds(parse_kernel(text), [50], [50]).values()] == [None, None, 50]


@pytest.mark.parametrize("d", [bool_, *INTEGERS, *FLOATS], ids=lambda d: d.name)
def test_values_of_every_dtype_are_kept_between_parts(d: DType) -> None:
    """A loaded value, and the result of a loop, are used after a long loop."""

    def body(b: KernelBuilder, x: Any, y: Any, count: Any, i: Value) -> None:
        early = load(x, i)
        fold = fold_loop(0, 9000, [const(0, int32)], lambda k, c: [c + cast(rem(k, 3), int32)])
        b.first(early)
        b.store(count, i, fold.results[0])
        b.store(y, i, early)

    kernel = kernel_of({"x": (d, "r"), "y": (d, "w"), "count": (int32, "w")}, body)
    assert (parts := split(kernel, [5], [5])) is not None and parts.launch_count == 4
    data = np.random.default_rng(0).integers(0, 2, 5 * d.itemsize).astype("u1")
    if d is not bool_:
        data = np.random.default_rng(0).integers(0, 255, 5 * d.itemsize).astype("u1")
    host = data.view({"bfloat16": "u2", "bool": "?"}.get(d.name, d.name))
    kit().check(kernel, [host, np.zeros_like(host), np.zeros(5, "i4")], [5], [], (5,))


def test_memory_that_is_written_is_read_before() -> None:
    """`before` must have the value from before the loop, which overwrites it."""

    def body(b: KernelBuilder, x: Any, y: Any, i: Value) -> None:
        before = load(x, i)
        b.first(before)
        b.effect(map_loop(0, 9000, lambda k: [Store(x, i, cast(k, float32))]))
        b.store(y, i, before)

    kernel = kernel_of({"x": (float32, "rw"), "y": (float32, "w")}, body)
    x, y = kit().check(kernel, [np.arange(3, dtype="f4"), np.zeros(3, "f4")], [3], [], (3,))
    assert x.tolist() == [8999.0] * 3 and y.tolist() == [0.0, 1.0, 2.0]


def test_loops_in_loops_run_as_far_as_they_go_together() -> None:
    """Carries of three folds, the inner ones of lengths that differ from point to point."""

    def body(b: KernelBuilder, y: Any, i: Value) -> None:
        def outer(k: Value, a: Value, c: Value) -> Sequence[Value]:
            def middle(j: Value, a: Value) -> Sequence[Value]:
                inner = fold_loop(
                    k, k + i * 7 + 90, [a * 0.5], lambda m, z: [z + cast(m + j, float32)]
                )
                return inner.results

            swapped = fold_loop(0, k * 40 + i + 1, [a], middle).results[0]
            return [c, swapped]  # the carries change places

        fold = fold_loop(i, i + 5, [const(1.0, float32), const(2.0, float32)], outer)
        b.store(y, i, fold.results[0] - fold.results[1] * 3.0)

    kernel = kernel_of({"y": (float32, "w")}, body)
    parts = split(kernel, [3], [3])
    assert parts is not None and 5 < parts.launch_count < 40
    assert len({str(k) for k in parts.kernels()}) <= 6
    kit().check(kernel, [np.zeros(3, "f4")], [3], [], (3,))


@pytest.mark.parametrize("name", ["add", "mul", "max", "argmin", "xor"])
@pytest.mark.parametrize("length", [8191, 8193, 40_000])
def test_long_reductions_keep_the_canonical_order(name: str, length: int) -> None:
    d = int32 if name == "xor" else float32

    def body(b: KernelBuilder, x: Any, y: Any, i: Value) -> None:
        def value(k: Value) -> Sequence[Value]:
            v = load(x, k + i)
            return [v, k] if name == "argmin" else [v]

        b.store(y, i, reduce_loop(name, i, length + i * 5000, value)[0])

    kernel = kernel_of({"x": (d, "r"), "y": (d, "w")}, body)
    x = np.random.default_rng(1).standard_normal(60_000) * 1.01
    x = (x * 100).astype("i4") if name == "xor" else x.astype("f4")
    kit().check(kernel, [x, np.zeros(3, x.dtype)], [3], [], (3,))


def test_result_of_a_single_chunk_is_not_combined_with_the_identity() -> None:
    """(1 + 0i) * (-0 - i) is 0 - i: another sign of zero."""

    def body(b: KernelBuilder, x: Any, at: Any, re: Any, im: Any, i: Value) -> None:
        def factor(k: Value) -> Sequence[Value]:
            return load(x, k * 2), load(x, k * 2 + 1)

        product = reduce_loop("complex_mul", load(at, i), load(at, i + 1), factor)
        for buffer, part in zip((re, im), product, strict=True):
            b.store(buffer, i, part)

    buffers = {"x": (float32, "r"), "at": (int64, "r"), "re": (float32, "w"), "im": (float32, "w")}
    x = np.tile(np.array([1.0, 0.0], "f4"), 14_096)
    x[:4] = 0.0, 1.0, -1.0, 0.0  # in lanes 0 and 1, which meet last
    arrays = [x, np.array([0, 4096, 14_096]), np.zeros(2, "f4"), np.zeros(2, "f4")]
    _, _, re, im = kit().check(kernel_of(buffers, body), arrays, [2], [], (2,))
    assert re[0] == 0.0 and np.signbit(re[0]) and im[0] == -1.0


def test_reduction_with_long_loops_in_it_stores_what_it_reduces() -> None:
    def body(b: KernelBuilder, x: Any, y: Any, i: Value) -> None:
        def value(k: Value) -> Sequence[Value]:
            return fold_loop(0, 100, [load(x, k)], lambda j, c: [c * 0.99 + 0.001]).results

        b.store(y, i, reduce_loop("add", i, 4500, value)[0])

    kernel = kernel_of({"x": (float32, "r"), "y": (float32, "w")}, body)
    x = np.random.default_rng(2).standard_normal(4500).astype("f4")
    kit().check(kernel, [x, np.zeros(3, "f4")], [3], [], (3,))


def data_kernel(loop: Callable[[Any, Value, Value], Value]) -> Kernel:
    """Build y[i] from a loop over the range that `at` gives for each point."""

    def body(b: KernelBuilder, x: Any, at: Any, y: Any, i: Value) -> None:
        b.store(y, i, loop(x, load(at, i), load(at, i + 1)))

    buffers = {"x": (float32, "r"), "at": (int64, "r"), "y": (float32, "w")}
    return kernel_of(buffers, body)


def sum_of_squares_of_ranges(x: Any, start: Value, stop: Value) -> Value:
    """Return a fold over a range, with a reduction over a range that depends on it."""

    def step(k: Value, total: Value) -> Sequence[Value]:
        (s,) = reduce_loop("add", k, where(stop < k + 3, stop, k + 3), lambda j: load(x, j))
        return [total * 0.5 + s]

    return fold_loop(start, stop, [const(0.0, float32)], step).results[0]


@pytest.mark.parametrize("sizes", [(3, 0, 8), (9000, 1, 20_000)])
@pytest.mark.parametrize(
    "loop",
    [
        lambda x, a, b: reduce_loop("add", a, b, lambda k: load(x, k))[0],
        lambda x, a, b: fold_loop(a, b, [load(x, a)], lambda k, c: [c - load(x, k)]).results[0],
        sum_of_squares_of_ranges,
    ],
    ids=["reduce", "fold", "nested"],
)
def test_lengths_that_depend_on_data_are_found(loop: Any, sizes: tuple[int, ...]) -> None:
    at = np.concatenate([[0], np.cumsum(sizes)])
    x = np.random.default_rng(3).standard_normal(at[-1] + 1).astype("f4")
    arrays = [x, at, np.zeros(3, "f4")]
    kit().check(data_kernel(loop), arrays, [3], [], (3,))
    kit(limited.SmallWords).check(data_kernel(loop), arrays, [3], [], (3,))


def test_length_that_the_kernel_writes_raises() -> None:
    def body(b: KernelBuilder, x: Any, i: Value) -> None:
        def step(k: Value, end: Value) -> tuple[Sequence[Value], list[Effect]]:
            inner = map_loop(0, end, lambda j: [Store(x, j, cast(k, int64))])
            return [end + load(x, k)], [inner]

        b.effect(fold_loop(0, 4, [const(1, int64)], step))

    kernel = kernel_of({"x": (int64, "rw")}, body)
    trips = trip_bounds(kernel, [2], [2])
    with pytest.raises(UnknownTripsError):
        build_trip_probe(kernel, trips)
    with pytest.raises(DeviceError, match=r"kernel whole has a loop whose length .* allows 8192 "):
        kit().bind(kernel, [2], (2,))


def test_short_loops_are_one_launch() -> None:
    kernel = data_kernel(lambda x, a, b: reduce_loop("add", 0, 7944, lambda k: load(x, k))[0])
    launch = kit().bind(kernel, [3], (3,))
    assert not isinstance(launch, PartedLaunch)
    assert any(isinstance(s, Loop) for s in walk(kernel.body))
    longer = data_kernel(lambda x, a, b: reduce_loop("add", 0, 7945, lambda k: load(x, k))[0])
    assert isinstance(kit().bind(longer, [3], (3,)), PartedLaunch)
