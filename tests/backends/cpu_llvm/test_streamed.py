"""What is stored past the caches: large results, from every alignment, transposed and in place."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest
from dovetail_cpu_llvm.schedule import STREAMED, TURNED


@pytest.fixture(scope="module")
def large() -> np.ndarray:
    return np.random.default_rng(7).random(STREAMED // 4 + 77, dtype="f4")


def test_large_results_are_whole(large: np.ndarray) -> None:
    x = dt.asarray(large, device="cpu")
    np.testing.assert_array_equal((x * 2 + 1).numpy(), large * 2 + 1)
    np.testing.assert_array_equal((x + x > 1).numpy(), large + large > 1)


@pytest.mark.parametrize("start", [0, 1, 16, 19])
def test_large_parts_are_written_at_any_alignment(large: np.ndarray, start: int) -> None:
    x = dt.zeros(large.size + 32, dtype=dt.float32, device="cpu")
    x[start : start + large.size] = dt.asarray(large, device="cpu") * 2
    expected = np.zeros(large.size + 32, "f4")
    expected[start : start + large.size] = large * 2
    np.testing.assert_array_equal(x.numpy(), expected)


def test_large_updates_read_what_they_write(large: np.ndarray) -> None:
    x = dt.asarray(large.copy(), device="cpu")
    x += dt.asarray(large, device="cpu")
    x[5:] = x[:-5] * 2
    expected = large + large
    expected[5:] = expected[:-5] * 2
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("kind", ["f4", "f8", "i2", "i1"])
@pytest.mark.parametrize("shape", [(2112, 2048), (2111, 2049), (70, 66_000)])
def test_large_transposes_are_whole(shape: tuple[int, int], kind: str) -> None:
    n, m = shape
    values = np.random.default_rng(7).integers(0, 100, (n * (TURNED // n // m + 1), m)).astype(kind)
    x = dt.asarray(values, device="cpu")
    np.testing.assert_array_equal(dt.copy(x.T).numpy(), values.T)
    np.testing.assert_array_equal(dt.copy(x[:, 1:].T).numpy(), values[:, 1:].T)
