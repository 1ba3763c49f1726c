"""Rows at small and negative strides, and grids with a short last axis."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest
from dovetail.engine.evaluate import plan_pending

pytest.importorskip("dovetail_cpu_llvm")

STRIDES = [-5, -3, -2, -1, 2, 3, 4, 5]
DTYPES = ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64", "complex64"]


@pytest.fixture(autouse=True)
def on_cpu():
    with dt.device("cpu"):
        yield


def drawn(n: int | tuple[int, ...], d: str) -> np.ndarray:
    return (np.random.default_rng(1).normal(size=n) * 50).astype(d)


@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("d", DTYPES)
@pytest.mark.parametrize("stride", STRIDES)
def test_strided_reads_and_writes_equal_numpy(stride: int, d: str) -> None:
    for n in (1, 3, 31, 32, 33, 64, 129, 1000):
        a = drawn(n * abs(stride), d)
        x = dt.asarray(a)
        assert x[::stride].copy().numpy().tobytes() == a[::stride].tobytes()
        rows = np.stack([a, a[::-1]])
        assert dt.asarray(rows)[:, ::stride].copy().numpy().tobytes() == rows[:, ::stride].tobytes()
        new = drawn(n, d)[::-1]
        a[::stride], x[::stride] = new, dt.asarray(new.copy())
        assert x.numpy().tobytes() == a.tobytes()  # elements in between keep their values


def test_strided_write_does_not_touch_neighbors() -> None:
    """Values cannot show reads beyond the last element."""
    for stride in STRIDES:
        for n in (32, 64, 96, 128):
            a = np.arange((n - 1) * abs(stride) + 1, dtype="f4")
            around = dt.asarray(np.concatenate([[-1], a, [-2]]).astype("f4"))
            view = around[1:-1][::stride]
            view[:] = view * 10
            a[::stride] *= 10
            assert around.tolist() == [-1, *a.tolist(), -2]


@pytest.mark.parametrize("k", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("n", [1, 10, 64, 65, 1000, 20_000])
def test_grids_with_short_axes_equal_numpy(n: int, k: int) -> None:
    a, row, column = drawn((n, k), "f4"), drawn(k, "f4"), drawn(n, "f4")
    x, r, c = map(dt.asarray, (a, row, column))
    assert dt.repeat(c, k).numpy().tobytes() == np.repeat(column, k).tobytes()
    assert (x * r + c[:, None]).numpy().tobytes() == (a * row + column[:, None]).tobytes()
    parts = [c * i for i in range(k)]
    wanted = np.stack([column * np.float32(i) for i in range(k)], axis=1)
    assert dt.stack(parts, axis=1).numpy().tobytes() == wanted.tobytes()
    x[:, 1:] = x[:, :-1] + r[1:]
    a[:, 1:] = a[:, :-1] + row[1:]
    assert x.numpy().tobytes() == a.tobytes()


def test_longest_axis_of_a_grid_is_moved_last() -> None:
    points, few, row = dt.ones((100, 3)), dt.ones((10, 3)), dt.ones(3)
    dt.evaluate(points, few, row)

    def grid(x: dt.Tensor) -> tuple[int, ...]:
        ((_, plan),) = plan_pending([x._expr])
        return plan.steps[0].grid

    assert grid(points + row) == (3, 100)
    assert grid(few + row) == (10, 3)
    assert grid(points + 1) == (300,)


@pytest.mark.parametrize("d", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_max_and_min_of_nans_and_zeros_have_the_reference_bits(name: str, d: str) -> None:
    rng = np.random.default_rng(3)
    choices = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, -1.0], d)
    for n in (1, 2, 31, 32, 33, 100, 4097):
        for some in (2, 4, 8):  # only zeros; with NaN; all values
            a = rng.choice(choices[:some], (5, n))
            for axis in (0, 1, None):
                found = getattr(dt, name)(dt.asarray(a), axis=axis)
                wanted = getattr(dt, name)(dt.asarray(a, device="reference"), axis=axis)
                assert found.numpy().tobytes() == wanted.numpy().tobytes()


@pytest.mark.parametrize("columns", [1, 3, 15, 16, 17, 40, 63, 64, 65, 130])
def test_reductions_of_narrow_matrices_have_the_reference_bits(columns: int) -> None:
    for rows in (1, 31, 33, 64, 5000):
        a = drawn((rows, columns), "f4")
        for name in ("sum", "max", "prod", "any", "std"):
            found = getattr(dt, name)(dt.asarray(a), axis=0)
            wanted = getattr(dt, name)(dt.asarray(a, device="reference"), axis=0)
            assert found.numpy().tobytes() == wanted.numpy().tobytes(), (name, rows)
