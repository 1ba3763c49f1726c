"""Unique elements and membership against NumPy, on every installed device."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.functions.indexing import masks
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

DEVICES = ["reference", "cpu"]


def check(a: Any, device: str) -> None:
    x, want = dt.asarray(a, device=device), np.unique_all(a)
    for part, expected in zip(dt.unique_all(x), want, strict=True):
        assert part.numpy().dtype == expected.dtype and part.shape == expected.shape
        np.testing.assert_array_equal(part.numpy(), expected)
    for part, expected in zip(dt.unique_counts(x), (want.values, want.counts), strict=True):
        np.testing.assert_array_equal(part.numpy(), expected)
    pair = (want.values, want.inverse_indices)
    for part, expected in zip(dt.unique_inverse(x), pair, strict=True):
        np.testing.assert_array_equal(part.numpy(), expected)
    np.testing.assert_array_equal(dt.unique_values(x).numpy(), want.values)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(0,), (1,), (), (7, 0), (5, 9), (400,)])
def test_unique_all_equals_numpy(shape: Any, device: str) -> None:
    a = np.random.default_rng(1).integers(-5, 40, shape).astype("i2")
    check(a, device)
    check(a > 3, device)


@pytest.mark.parametrize("few", [0, 2, 64])
def test_empty_blocks_are_skipped(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host or the kernel adds up the counts before each block; both skip empty ones."""
    monkeypatch.setattr(masks, "KERNEL_SCAN_BLOCKS_MAX", few)
    for n in (1, 4095, 4096, 4097, 8192, 20_000):
        for several in (1, 3, 5000, n):
            a = np.arange(n) // several
            check(a, "cpu")
            x = dt.asarray(a % 5 == 4, device="cpu")
            np.testing.assert_array_equal(dt.nonzero(x)[0].numpy(), np.flatnonzero(a % 5 == 4))


def test_unique_of_many_elements_equals_numpy() -> None:
    check(np.random.default_rng(1).integers(-(2**60), 2**60, 5000).repeat(3), "cpu")
    check(np.random.default_rng(1).integers(0, 1000, 70_000).reshape(70, 1000), "cpu")


@settings(max_examples=30, deadline=None)
@given(hnp.arrays(np.float32, hnp.array_shapes(), elements={"allow_nan": False}))
def test_unique_of_floats_equals_numpy(a: Any) -> None:
    check(a, "cpu")


@pytest.mark.parametrize("device", DEVICES)
def test_nans_are_distinct_and_zeros_are_equal(device: str) -> None:
    nan = float("nan")
    x = dt.asarray([nan, -0.0, 0.0, nan, 1.0], device=device)
    found = dt.unique_all(x)
    np.testing.assert_array_equal(found.values.numpy(), np.array([-0.0, 1.0, nan, nan], "f4"))
    assert bool(dt.signbit(found.values)[0]), "of equal ones the first stays"
    assert found.counts.tolist() == [2, 1, 1, 1] and found.indices.tolist() == [1, 4, 0, 3]
    assert found.inverse_indices.tolist() == [2, 0, 0, 3, 1]


def test_unique_of_views_and_as_methods() -> None:
    x = dt.asarray([[3, 1], [1, 2], [3, 3]], device="cpu").T[:, ::-1]
    assert x.unique_values().tolist() == [1, 2, 3]
    assert x.unique_inverse().inverse_indices.tolist() == [[2, 0, 2], [2, 1, 0]]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [0, 3, 60])
def test_isin_equals_numpy(count: int, device: str) -> None:
    rng = np.random.default_rng(2)
    a, among = rng.integers(0, 99, (20, 10)), rng.integers(0, 99, (2, count // 2))
    x, y = dt.asarray(a, device=device), dt.asarray(among, device=device)
    np.testing.assert_array_equal(dt.isin(x, y).numpy(), np.isin(a, among))
    np.testing.assert_array_equal(x.isin(y, invert=True).numpy(), np.isin(a, among, invert=True))
    np.testing.assert_array_equal(
        dt.isin(x.astype(dt.float32), y.astype(dt.int16)).numpy(), np.isin(a, among)
    )


def test_isin_of_numbers_and_nan() -> None:
    x = dt.asarray([1.0, 2.0, float("nan")], device="cpu")
    assert dt.isin(x, 2).tolist() == [False, True, False]
    assert dt.isin(2.0, x).item() is True
    assert dt.isin(x, x).tolist() == [True, True, False]
    many = dt.concat([x] * 20)
    assert dt.isin(x, many).tolist() == [True, True, False]


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(dt.DTypeError, match="unique_all: expected a tensor, got list"):
        dt.unique_all([1, 2])
