"""Rows of points that are split where loads begin or end: joins, without masks inside."""

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


def limits(x: dt.Tensor) -> list[int]:
    """At how many comparisons each launch splits its rows."""
    plans = plan_pending([x._expr])
    return [len(schedule(s.kernel, 64).splits) for _, plan in plans for s in plan.steps]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_joins_of_all_lengths_are_numpys(count: int) -> None:
    rng = np.random.default_rng(count)
    for _ in range(60):
        parts = [rng.normal(size=rng.choice(SIZES)).astype("f4") for _ in range(count)]
        given = [dt.asarray(p) for p in parts]
        assert dt.concat(given).numpy().tobytes() == np.concatenate(parts).tobytes()
        found = dt.concat([-x for x in given]) * 2  # computed in the kernel that joins
        assert found.numpy().tobytes() == (-np.concatenate(parts) * 2).tobytes()


def test_rolls_by_all_lengths_are_numpys() -> None:
    for n in SIZES:
        a = np.arange(float(n))
        for k in (0, 1, -1, 7, n // 2, n - 1, n + 3):
            found = dt.roll(dt.asarray(a), k) - dt.roll(dt.asarray(a), -k)
            np.testing.assert_array_equal(found.numpy(), np.roll(a, k) - np.roll(a, -k))


def test_rows_are_split_where_loads_wait() -> None:
    x, a, b = dt.ones(100), dt.ones((3, 4)), dt.ones((3, 5))
    dt.evaluate(x, a, b)
    assert limits(dt.concat([x, x])) == [1] and limits(x + 1) == [0]
    assert limits(dt.concat([x, x, x, x])) == [SPLITS_MAX]
    assert limits(dt.concat([a, b], axis=1)) == [1]
    assert limits(dt.concat([a, a], axis=0)) == [0]  # that is said of a whole row


@pytest.mark.parametrize("rows", [1, 2, 3, 70])
@pytest.mark.parametrize("axis", [0, 1])
def test_joins_and_rolls_of_matrices_are_numpys(axis: int, rows: int) -> None:
    rng = np.random.default_rng(rows)
    for n in (1, 2, 3, 5, 16, 31, 32, 33, 64, 100, 257):
        shape = (rows, n) if axis else (n, rows)
        a, b, c = (rng.normal(size=shape).astype("f4") for _ in range(3))
        x, y, z = map(dt.asarray, (a, b, c))
        dt.evaluate(x, y, z)
        found = dt.concat([x, -y, z * 2], axis=axis)
        assert found.numpy().tobytes() == np.concatenate([a, -b, c * 2], axis=axis).tobytes()
        inner = dt.concat([dt.concat([x, y], axis=axis), z], axis=axis)  # one join in another
        wanted = np.concatenate([a, b, c], axis=axis)
        assert inner.numpy().tobytes() == wanted.tobytes()
        assert inner[::-1, ::-1].numpy().tobytes() == wanted[::-1, ::-1].tobytes()
        for k in (1, -1, n // 2):
            found = x + dt.roll(y, k, axis=axis) * dt.roll(z, -k, axis=axis)
            wanted = a + np.roll(b, k, axis=axis) * np.roll(c, -k, axis=axis)
            np.testing.assert_array_equal(found.numpy(), wanted)


def test_comparisons_of_sums_that_wrap_around_split_nothing() -> None:
    a = np.arange(1000)
    x, far = dt.arange(1000), 2**63 - 500
    found = dt.where(x + far < 100, x, -x)
    assert limits(found) == [0]
    assert found.tolist() == np.where(a + far < 100, a, -a).tolist()
