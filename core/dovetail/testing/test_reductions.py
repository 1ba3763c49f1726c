"""Level 5: every named combine, in the canonical order, along rows, columns and inside other
loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ..dtypes import FLOATS, INTEGERS, DType, bool_, float32, float64, int32, int64
from ..ir.builder import COMBINE_NAMES, Kernel, KernelBuilder
from ..ir.language import (
    CHUNK,
    Buffer,
    Store,
    Value,
    cast,
    const,
    fold_loop,
    load,
    map_loop,
    reduce_loop,
)
from ..ops import elementary
from .kit import Kit
from .test_scalar_ops import param_id
from .values import Array, finite_values, host_dtype, sample

LENGTHS = (0, 1, 2, 31, 32, 33, 63, 64, 65, 1000, 4095, 4096, 4097, 10_000)
COMPUTE_DTYPES = (bool_, *INTEGERS, float32, float64)


def accepts_dtype(name: str, d: DType) -> bool:
    """Return True if a named combine takes a dtype; bitwise ones take no floats, others no bool."""
    if name in ("and", "or", "xor"):
        return d.kind in "biu"
    return d.kind in "iuf"


CASES = [(name, d) for name in COMBINE_NAMES for d in COMPUTE_DTYPES if accepts_dtype(name, d)]


def reduction(name: str, d: DType, axis: str) -> Kernel:
    """Build out[i] = a combination of row or column i of a matrix, by a combine such as "add"."""
    b = KernelBuilder(f"{name}_{axis}")
    x, m, n = b.buffer("x", d, "r"), b.int("m"), b.int("n")
    i = b.axis(m)

    def body(k: Value) -> Any:
        """Return the element at position `k`; for an arg-reduction also `k`."""
        at = {
            "rows": i * n + k,
            "columns": k * m + i,
            "backwards": i * n + (n - 1 - k),
            "broadcast": i,
        }
        v = load(x, at[axis])
        return (v, k) if name.startswith("arg") else v

    results = reduce_loop(name, 0, n, body)
    b.store(b.buffer("out", d, "w"), i, results[0])
    if len(results) == 2:
        b.store(b.buffer("place", int64, "w"), i, results[1])
    return b.build()


def outputs(name: str, d: DType, m: int) -> list[Array]:
    """Return zeros for the results of `reduction`; for an arg-reduction also for the indices."""
    return [np.zeros(m, host_dtype(d))] + [np.zeros(m, np.int64)] * name.startswith("arg")


def informative_values(d: DType, count: int, seed: int, name: str) -> Array:
    """Return values whose combination says something.

    Products stay finite, and `and` and `or` are not settled at once.
    """
    rng = np.random.default_rng(seed)
    if d is bool_:
        return rng.random(count) < (0.999 if name == "and" else 0.001)
    if d.kind == "f" and name == "mul":
        return np.exp2(rng.standard_normal(count) / 64).astype(host_dtype(d))
    return finite_values(d, count, seed)


@pytest.mark.parametrize("axis", ("rows", "columns"))
@pytest.mark.parametrize(("name", "d"), CASES, ids=param_id)
def test_combine(kit: Kit, name: str, d: DType, axis: str) -> None:
    """Check a named combine on matrices with rows or columns of each length."""
    kernels = {a: reduction(name, d, a) for a in ("rows", "columns")}
    kit.compile([*kernels.values()])
    kernel = kernels[axis]
    for n in LENGTHS:
        for m in (1, 3, 70) if n in (2, 33) else (3,):
            x = informative_values(d, max(1, m * n), n, name)
            kit.check(kernel, [x, *outputs(name, d, m)], [m, n], [], [m])


@pytest.mark.parametrize("axis", ("rows", "columns", "backwards", "broadcast"))
@pytest.mark.parametrize("name", ("add", "max", "min", "argmax", "argmin", "mul"))
def test_special_values(kit: Kit, name: str, axis: str) -> None:
    """Check a combine on NaNs, infinities, both zeros, denormals and ties."""
    kernel = reduction(name, float32, axis)
    for n in (1, 5, 64, 5000):
        m = 4
        x = sample(float32, m * n, n)
        ties = np.random.default_rng(n).integers(-2, 3, m * n).astype("f4")
        ties[np.random.default_rng(1).integers(0, 2 * n, 3)] = np.nan
        tiny = (ties * np.float32(1e-45)).astype("f4")
        for values in (x, ties, tiny, np.copysign(np.zeros(m * n, "f4"), ties)):
            kit.check(kernel, [values, *outputs(name, float32, m)], [m, n], [], [m])


@pytest.mark.parametrize("name", ("add", "max"))
@pytest.mark.parametrize("n", (CHUNK * 2, CHUNK * 3 + 1, 40_000, CHUNK * 33 + 7))
def test_long_rows(kit: Kit, name: str, n: int) -> None:
    """Check reductions of more than one chunk, at 1 and 2 threads."""
    x = finite_values(float32, 2 * n, n)
    for _ in kit.thread_counts():
        for axis in ("rows", "columns"):
            kit.check(reduction(name, float32, axis), [x, np.zeros(2, "f4")], [2, n], [], [2])


@pytest.mark.parametrize("axis", ("rows", "columns"))
def test_many_rows_on_threads(kit: Kit, axis: str) -> None:
    """Check sums of 3000 rows or columns at 1 and 2 threads."""
    x = finite_values(float32, 3000 * 50, 6)
    for _ in kit.thread_counts():
        kit.check(
            reduction("add", float32, axis), [x, np.zeros(3000, "f4")], [3000, 50], [], [3000]
        )


def test_start_is_where_the_order_begins(kit: Kit) -> None:
    """Check sums over start..stop, whose lanes count from `start`; empty ranges give 0."""
    b = KernelBuilder("range")
    x, lows, highs = (
        b.buffer("x", float32, "r"),
        b.buffer("lows", int64, "r"),
        b.buffer("highs", int64, "r"),
    )
    out, i = b.buffer("out", float32, "w"), b.axis(b.int("n"))
    b.store(out, i, reduce_loop("add", load(lows, i), load(highs, i), lambda k: load(x, k))[0])
    lo = np.array([0, 1, 5, 31, 33, 100, 100, 7, 0, 5000])
    hi = np.array([1, 1, 3, 64, 99, 4196, 4197, 9000, 9000, 5001])
    kit.check(
        b.build(), [finite_values(float32, 9000, 2), lo, hi, np.zeros(10, "f4")], [10], [], [10]
    )


@pytest.mark.parametrize("inner", ("last", "middle", "first"))
def test_nested(kit: Kit, inner: str) -> None:
    """Check a sum of maxima, with the inner loop along each axis of a cube."""
    b = KernelBuilder("nested")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    m, n, p = b.int("m"), b.int("n"), b.int("p")
    one = const(1, int64)
    si, sj, sk = {"last": (n * p, p, one), "middle": (p, m * p, one), "first": (one, m * p, m)}[
        inner
    ]
    i = b.axis(m)

    def row(j: Value) -> Value:
        """Return the maximum along the inner loop for position `j`."""
        return reduce_loop("max", 0, p, lambda k: load(x, i * si + j * sj + k * sk))[0]

    b.store(out, i, reduce_loop("add", 0, n, row)[0])
    for shape in ((45, 7, 50), (1, 33, 64), (3, 1, 1)):
        kit.check(
            b.build(),
            [finite_values(float32, int(np.prod(shape)), 4), np.zeros(shape[0], "f4")],
            shape,
            [],
            shape[:1],
        )


def test_loaded_bounds(kit: Kit) -> None:
    """Check a sparse matrix product whose rows have loaded bounds; some rows are empty."""
    b = KernelBuilder("csr")
    rows, columns = b.buffer("rows", int64, "r"), b.buffer("columns", int32, "r")
    values, x, out = (
        b.buffer(n, float32, a) for n, a in (("values", "r"), ("x", "r"), ("out", "w"))
    )
    i = b.axis(b.int("n"))

    def product(k: Value) -> Value:
        """Return stored value `k` times the element of x at its column."""
        return load(values, k) * load(x, cast(load(columns, k), int64))

    b.store(out, i, reduce_loop("add", load(rows, i), load(rows, i + 1), product)[0])
    rng = np.random.default_rng(1)
    ends = np.sort(rng.integers(0, 500, 41))
    arrays = [
        ends,
        rng.integers(0, 30, 500, np.int32),
        finite_values(float32, 500, 1),
        finite_values(float32, 30, 2),
    ]
    kit.check(b.build(), [*arrays, np.zeros(40, "f4")], [40], [], [40])


@pytest.mark.parametrize("axis", ("rows", "columns"))
def test_softmax(kit: Kit, axis: str) -> None:
    """Check a kernel with two reductions and a map over the same row."""
    b = KernelBuilder("softmax")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    m, n = b.int("m"), b.int("n")
    i = b.axis(m)

    def at(k: Value) -> Value:
        """Return the flat index of element `k` of row or column `i`."""
        return i * n + k if axis == "rows" else k * m + i

    (top,) = reduce_loop("max", 0, n, lambda k: load(x, at(k)))
    (total,) = reduce_loop("add", 0, n, lambda k: elementary.exp(load(x, at(k)) - top))
    b.effect(
        map_loop(0, n, lambda k: [Store(out, at(k), elementary.exp(load(x, at(k)) - top) / total)])
    )
    kernel = b.build()
    for rows, columns in ((1, 1), (40, 70), (7, 1000), (2, 5000)):
        data = finite_values(float32, rows * columns, 3)
        kit.check(kernel, [data, np.zeros(data.size, "f4")], [rows, columns], [], [rows])


@pytest.mark.parametrize("axis", ("rows", "columns"))
@pytest.mark.parametrize("d", (int32, int64, float32, float64), ids=param_id)
def test_running_sum(kit: Kit, d: DType, axis: str) -> None:
    """Check a fold that stores each partial sum."""
    b = KernelBuilder("cumsum")
    x, out = b.buffer("x", d, "r"), b.buffer("out", d, "w")
    m, n = b.int("m"), b.int("n")
    i = b.axis(m)

    def step(k: Value, c: Value) -> Any:
        """Return the sum with element `k` added, and a store of the sum."""
        at = i * n + k if axis == "rows" else k * m + i
        return [c + load(x, at)], [Store(out, at, c + load(x, at))]

    b.effect(fold_loop(0, n, [const(0, d)], step))
    for rows, columns in ((20, 30), (1, 300), (65, 2)):
        x_ = finite_values(d, rows * columns, 5)
        kit.check(b.build(), [x_, np.zeros(x_.size, host_dtype(d))], [rows, columns], [], [rows])


def test_fold_keeps_several_carries(kit: Kit) -> None:
    """Check a fold with three carries; no iterations give the initial values."""
    b = KernelBuilder("carries")
    lengths = b.buffer("lengths", int64, "r")
    outs = [b.buffer(name, d, "w") for name, d in (("f", int64), ("g", int64), ("p", float32))]
    i = b.axis(b.int("n"))

    def step(k: Value, f: Value, g: Value, p: Value) -> list[Value]:
        """Return the next Fibonacci pair and the next product."""
        return [g, f + g, p * (cast(k, float32) + 0.5)]

    init = [const(0, int64), const(1, int64), const(1.0, float32)]
    for out, result in zip(outs, fold_loop(2, load(lengths, i), init, step).results, strict=True):
        b.store(out, i, result)
    run_lengths = np.array([0, 1, 2, 3, 4, 7, 30, 5, 60])
    zeros = [np.zeros(9, np.int64), np.zeros(9, np.int64), np.zeros(9, "f4")]
    kit.check(b.build(), [run_lengths, *zeros], [9], [], [9])


def test_every_float_dtype_is_reduced_in_its_accumulator(kit: Kit) -> None:
    """Check that halves are widened, summed in float32 and rounded once."""
    for d in FLOATS:
        if not kit.has_dtype(d):
            continue
        wide = float64 if d is float64 else float32
        b = KernelBuilder("widened")
        x, out = b.buffer("x", d, "r"), b.buffer("out", d, "w")
        m, n = b.int("m"), b.int("n")
        i = b.axis(m)

        def element(k: Value, x: Buffer = x, i: Value = i, n: Value = n, w: DType = wide) -> Value:
            """Return element `k` of row `i` in the accumulator's dtype."""
            return cast(load(x, i * n + k), w)

        b.store(out, i, cast(reduce_loop("add", 0, n, element)[0], d))
        kit.check(
            b.build(),
            [finite_values(d, 3 * 1000, 1), np.zeros(3, host_dtype(d))],
            [3, 1000],
            [],
            [3],
        )
