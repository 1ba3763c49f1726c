"""Points whose folds differ in length, several run side by side."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest
from dovetail.extend import Kernel, KernelBuilder, fma, fold_loop, load
from dovetail.ir.language import Store, cast, const, quo
from dovetail_cpu_llvm.schedule import COPIED_STATEMENTS_MAX, FOLD_POINTS, schedule
from machine_code import compiler_for, run

LENGTHS = [
    [3, 5, 0, 0, 7, 1, 0, 4, 9],
    [0, 6],
    [6, 0],
    [5],
    [2, 2, 2, 2],
    [0, 0, 1, 40, 3, 3, 17, 2],
]


def powers() -> Kernel:
    """Build own[i] += the results of two folds over row i of x, one over all, one backwards
    over half.

    The fold index is part of the values, so the result shows the order of the steps.
    """
    b = KernelBuilder("powers")
    x, bounds = b.buffer("x", dt.float64, "r"), b.buffer("bounds", dt.int64, "r")
    own = b.buffer("own", dt.float64, "rw")
    i = b.axis(b.int("n"))
    start, stop = load(bounds, i), load(bounds, i + 1)
    half = const(0.5, dt.float64)

    def step(k, total, count):  # type: ignore[no-untyped-def]
        return fma(total, half, load(x, k)), count + 1

    total, count = fold_loop(start, stop, (const(0, dt.float64), const(0, dt.int64)), step).results

    def back(k, total):  # type: ignore[no-untyped-def]
        return (fma(total, half, load(x, stop - 1 - (k - start))),)

    middle = start + quo(count, const(2, dt.int64))
    other = fold_loop(start, middle, (total,), back).results[0]
    b.store(own, i, load(own, i) + total + other + cast(count, dt.float64))
    return b.build()


def expected(x: np.ndarray, bounds: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return exact sums: the numbers are small integers over powers of two."""
    found = own.copy()
    for i in range(len(own)):
        row = x[bounds[i] : bounds[i + 1]]
        total = other = 0.0
        for v in row:
            total = total / 2 + v
        other = total
        for v in row[::-1][: len(row) // 2]:
            other = other / 2 + v
        found[i] = found[i] + total + other + len(row)
    return found


@pytest.mark.parametrize("native", (16, 32, 64))
@pytest.mark.parametrize("lengths", LENGTHS)
def test_each_fold_stops_at_its_own_end(lengths: list[int], native: int) -> None:
    program = compiler_for(native).compile(powers())
    assert program.schedule.fold_points == FOLD_POINTS
    rng, n = np.random.default_rng(1), len(lengths)
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype("i8")
    x, own = rng.integers(-8, 9, sum(lengths)).astype("f8"), rng.integers(-9, 9, n).astype("f8")
    want = expected(x, bounds, own)
    for block in (1, 2, 3, 4, 16):  # remaining points run one at a time
        out = own.copy()
        run(program, {"x": x, "bounds": bounds, "own": out}, {"n": n}, (n,), (block,))
        assert (out == want).all(), (block, out, want)


@pytest.mark.parametrize("steps", [1, COPIED_STATEMENTS_MAX])
def test_long_fold_bodies_are_not_duplicated(steps: int) -> None:
    b = KernelBuilder("long")
    x, out = b.buffer("x", dt.int64, "r"), b.buffer("out", dt.int64, "w")
    i = b.axis(b.int("n"))

    def step(k, total):  # type: ignore[no-untyped-def]
        for _ in range(steps):
            total = total * 3 + k
        return (total,)

    b.store(out, i, fold_loop(0, load(x, i), (const(0, dt.int64),), step).results[0])
    assert schedule(b.build(), 64).fold_points == (FOLD_POINTS if steps == 1 else 1)


def test_only_folds_without_stores_run_side_by_side() -> None:
    """Excluded are folds that store, as a row-by-row solution does, and points without folds."""
    b = KernelBuilder("stores")
    x, out, n = b.buffer("x", dt.int64, "r"), b.buffer("out", dt.int64, "w"), b.int("n")
    i = b.axis(n)

    def step(k, total):  # type: ignore[no-untyped-def]
        return (total + k,), (Store(out, i * n + k, total),)

    b.effect(fold_loop(0, load(x, i), (const(0, dt.int64),), step))
    assert schedule(b.build(), 64).fold_points == 1
