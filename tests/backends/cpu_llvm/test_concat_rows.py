"""Concat and roll: rows are split at the bounds of each load, so no load needs a mask."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest
from dovetail.engine.evaluate import plan_pending

pytest.importorskip("dovetail_cpu_llvm")

from dovetail_cpu_llvm.schedule import SPLITS_MAX, schedule

SIZES = [0, 1, 2, 7, 15, 16, 17, 33, 64, 1000, 20_000]


@pytest.fixture(autouse=True)
def on_cpu():
    with dt.device("cpu"):
        yield


def split_counts(x: dt.Tensor) -> list[int]:
    """Return the number of comparisons at which each launch splits its rows."""
    plans = plan_pending([x._expr])
    return [len(schedule(s.kernel, 64).splits) for _, plan in plans for s in plan.steps]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_concat_of_all_lengths_equals_numpy(count: int) -> None:
    rng = np.random.default_rng(count)
    for _ in range(60):
        parts = [rng.normal(size=rng.choice(SIZES)).astype("f4") for _ in range(count)]
        given = [dt.asarray(p) for p in parts]
        assert dt.concat(given).numpy().tobytes() == np.concatenate(parts).tobytes()
        found = dt.concat([-x for x in given]) * 2  # computed in the kernel that concatenates
        assert found.numpy().tobytes() == (-np.concatenate(parts) * 2).tobytes()


def test_roll_by_all_shifts_equals_numpy() -> None:
    for n in SIZES:
        a = np.arange(float(n))
        for k in (0, 1, -1, 7, n // 2, n - 1, n + 3):
            found = dt.roll(dt.asarray(a), k) - dt.roll(dt.asarray(a), -k)
            np.testing.assert_array_equal(found.numpy(), np.roll(a, k) - np.roll(a, -k))


def test_rows_are_split_at_the_bounds_of_masked_loads() -> None:
    x, a, b = dt.ones(100), dt.ones((3, 4)), dt.ones((3, 5))
    dt.evaluate(x, a, b)
    assert split_counts(dt.concat([x, x])) == [1] and split_counts(x + 1) == [0]
    assert split_counts(dt.concat([x, x, x, x])) == [SPLITS_MAX]
    assert split_counts(dt.concat([a, b], axis=1)) == [1]
    assert split_counts(dt.concat([a, a], axis=0)) == [0]  # the comparison covers a whole row


@pytest.mark.parametrize("rows", [1, 2, 3, 70])
@pytest.mark.parametrize("axis", [0, 1])
def test_concat_and_roll_of_matrices_equal_numpy(axis: int, rows: int) -> None:
    rng = np.random.default_rng(rows)
    for n in (1, 2, 3, 5, 16, 31, 32, 33, 64, 100, 257):
        shape = (rows, n) if axis else (n, rows)
        a, b, c = (rng.normal(size=shape).astype("f4") for _ in range(3))
        x, y, z = map(dt.asarray, (a, b, c))
        dt.evaluate(x, y, z)
        found = dt.concat([x, -y, z * 2], axis=axis)
        assert found.numpy().tobytes() == np.concatenate([a, -b, c * 2], axis=axis).tobytes()
        inner = dt.concat([dt.concat([x, y], axis=axis), z], axis=axis)  # one concat in another
        wanted = np.concatenate([a, b, c], axis=axis)
        assert inner.numpy().tobytes() == wanted.tobytes()
        assert inner[::-1, ::-1].numpy().tobytes() == wanted[::-1, ::-1].tobytes()
        for k in (1, -1, n // 2):
            found = x + dt.roll(y, k, axis=axis) * dt.roll(z, -k, axis=axis)
            wanted = a + np.roll(b, k, axis=axis) * np.roll(c, -k, axis=axis)
            np.testing.assert_array_equal(found.numpy(), wanted)


def test_comparison_of_a_sum_that_wraps_around_splits_nothing() -> None:
    a = np.arange(1000)
    x, far = dt.arange(1000), 2**63 - 500
    found = dt.where(x + far < 100, x, -x)
    assert split_counts(found) == [0]
    assert found.tolist() == np.where(a + far < 100, a, -a).tolist()
