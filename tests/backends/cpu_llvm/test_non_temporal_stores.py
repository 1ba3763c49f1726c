"""Non-temporal stores: large results at every alignment, transposed and in place."""

from __future__ import annotations

import re

import dovetail as dt
import numpy as np
import pytest
from dovetail.ir.builder import KernelBuilder
from dovetail.ir.language import cast, load
from dovetail_cpu_llvm.render import render
from dovetail_cpu_llvm.schedule import (
    LINE_BYTES,
    STREAM_BYTES_MIN,
    TRANSPOSED_BYTES_MIN,
    VECTOR_REGISTERS,
    schedule,
)


@pytest.fixture(scope="module")
def large() -> np.ndarray:
    return np.random.default_rng(7).random(STREAM_BYTES_MIN // 4 + 77, dtype="f4")


def test_large_results_equal_numpy(large: np.ndarray) -> None:
    x = dt.asarray(large, device="cpu")
    np.testing.assert_array_equal((x * 2 + 1).numpy(), large * 2 + 1)
    np.testing.assert_array_equal((x + x > 1).numpy(), large + large > 1)


@pytest.mark.parametrize("start", [0, 1, 16, 19])
def test_large_slices_are_written_at_any_alignment(large: np.ndarray, start: int) -> None:
    x = dt.zeros(large.size + 32, dtype=dt.float32, device="cpu")
    x[start : start + large.size] = dt.asarray(large, device="cpu") * 2
    expected = np.zeros(large.size + 32, "f4")
    expected[start : start + large.size] = large * 2
    np.testing.assert_array_equal(x.numpy(), expected)


def test_large_in_place_updates_equal_numpy(large: np.ndarray) -> None:
    x = dt.asarray(large.copy(), device="cpu")
    x += dt.asarray(large, device="cpu")
    x[5:] = x[:-5] * 2
    expected = large + large
    expected[5:] = expected[:-5] * 2
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("kind", ["f4", "f8", "i2", "i1"])
@pytest.mark.parametrize("shape", [(2112, 2048), (2111, 2049), (70, 66_000)])
def test_large_transposes_equal_numpy(shape: tuple[int, int], kind: str) -> None:
    n, m = shape
    rows = n * (TRANSPOSED_BYTES_MIN // n // m + 1)
    values = np.random.default_rng(7).integers(0, 100, (rows, m)).astype(kind)
    x = dt.asarray(values, device="cpu")
    np.testing.assert_array_equal(dt.copy(x.T).numpy(), values.T)
    np.testing.assert_array_equal(dt.copy(x[:, 1:].T).numpy(), values[:, 1:].T)


CODES = {"float32": "float", "float64": "double", "bool": "i8", "int16": "i16"}


@pytest.mark.parametrize("native", [16, 32, 64])
@pytest.mark.parametrize("target", CODES)
@pytest.mark.parametrize("source", ["float32", "float64", "int64"])
def test_non_temporal_stores_fill_whole_cache_lines(source: str, target: str, native: int) -> None:
    """Lines with half of their stores non-temporal took 230 ms for 16 M float64 as float32, not
    5.
    """
    b = KernelBuilder("cast")
    given, out = b.buffer("x", getattr(dt, source), "r"), b.buffer("out", getattr(dt, target), "w")
    i = b.axis(b.int("n"))
    b.store(out, i, cast(load(given, i), getattr(dt, target)))
    kernel = b.build()
    ir = render(kernel, schedule(kernel, native))
    widths = re.findall(rf"store <(\d+) x {CODES[target]}> .*nontemporal", ir)
    itemsize = getattr(dt, target).itemsize
    assert all(int(width) * itemsize % LINE_BYTES == 0 for width in widths)
    if VECTOR_REGISTERS * native // getattr(dt, source).itemsize * itemsize >= LINE_BYTES:
        assert widths, "nothing goes past them"


@pytest.mark.parametrize("start", [0, 1, 16, 19])
def test_large_casts_are_written_at_any_alignment(large: np.ndarray, start: int) -> None:
    wide = large.astype("f8")
    x = dt.zeros(large.size + 32, dtype=dt.float32, device="cpu")
    x[start : start + large.size] = dt.astype(dt.asarray(wide, device="cpu") * 2, dt.float32)
    expected = np.zeros(large.size + 32, "f4")
    expected[start : start + large.size] = wide * 2
    np.testing.assert_array_equal(x.numpy(), expected)
    z = dt.asarray(large + 1j * large[::-1], dtype=dt.complex64, device="cpu")
    np.testing.assert_array_equal((dt.imag(z) + 1).numpy(), large[::-1] + np.float32(1))
