"""Comparisons are exact for every pair of numbers, as in NumPy."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from installed import INSTALLED

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
OPERATORS: list[Callable[[Any, Any], Any]] = [
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip
FUNCTIONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
BEYOND = [-1, 128, 256, 2**31, -(2**31) - 1, 2**63, 2**64, -(2**63) - 1, 2**70, -(2**70), 10**400]


@pytest.fixture(params=["reference", "cpu", "opencl"])
def device(request: pytest.FixtureRequest) -> Iterator[dt.Device]:
    if request.param != "reference" and request.param not in INSTALLED:
        pytest.skip(f"the backend for {request.param} is not installed")
    before = dt.default_device()
    yield dt.set_default_device(request.param)
    dt.set_default_device(before)


def extremes(dtype: str) -> Any:
    info = np.iinfo(dtype)
    return np.array([info.min, info.min + 1, 0, 1, info.max - 1, info.max], dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_compare_with_ints_outside_of_their_dtype(dtype: str, device: dt.Device) -> None:
    a = extremes(dtype)
    x = dt.asarray(a)
    for number in BEYOND:
        for compare, name in zip(OPERATORS, FUNCTIONS, strict=True):
            want = [compare(v, number) for v in a.tolist()]
            assert compare(x, number).tolist() == want, (name, number)
            assert getattr(dt, name)(x, number).tolist() == want, (name, number)
            assert compare(number, x).tolist() == [compare(number, v) for v in a.tolist()]
            assert getattr(np, name)(x, number).tolist() == want


@pytest.mark.parametrize("dtype", [d for d in INTEGERS if d.startswith("int")])
def test_uint64_compares_with_signed_integers_exactly(dtype: str, device: dt.Device) -> None:
    a, b = extremes("uint64")[:, None], extremes(dtype)
    more = np.array([2**63 - 1, 2**63, 2**53 + 1], np.uint64)[:, None]
    a = np.concatenate([a, more])
    for compare in OPERATORS:
        for x, y in ((a, b), (b, a)):
            want = [[compare(int(u), int(v)) for u, v in zip(*row, strict=True)]
                    for row in zip(*np.broadcast_arrays(x, y), strict=True)]  # fmt: skip
            assert compare(dt.asarray(x), dt.asarray(y)).tolist() == want


def test_comparison_with_an_int_beyond_float64_of_floats_raises_value_overflow() -> None:
    with pytest.raises(
        dt.ValueOverflowError, match="less: an int of 2001 bits does not fit float32"
    ):
        dt.less(dt.ones(2, device="reference"), 2**2000)


def test_arithmetic_of_ints_outside_of_the_dtype_raises_value_overflow() -> None:
    x = dt.ones(2, dtype=dt.uint8, device="reference")
    for call in (lambda: x + 256, lambda: -1 * x, lambda: dt.maximum(x, -1)):
        with pytest.raises(dt.ValueOverflowError, match="does not fit uint8"):
            call()


def test_comparison_in_captured_and_mapped_functions_has_ints_outside_of_the_dtype() -> None:
    x = dt.asarray([0, 255], dtype=dt.uint8, device="reference")
    assert dt.jit(lambda v: v > -1)(x).tolist() == [True, True]
    assert dt.func.vmap(lambda v: v > 2**70)(x).tolist() == [False, False]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_of_integers_finds_every_number(
    dtype: str, side: Any, device: dt.Device
) -> None:
    a = np.array([0, 3, 3, 100], dtype)
    x = dt.asarray(a)
    for number in (-1, 3, 2.5, -0.5, 3.0, 256, 2**70, -(2**70), np.inf, -np.inf, np.nan):
        want = np.searchsorted(a.astype("f8"), float(number), side=side)
        assert dt.searchsorted(x, number, side=side).item() == want, number


@pytest.mark.parametrize("number", [-1, 3, 256, 2**70, 2.5, np.inf])
def test_isin_of_integers_answers_for_every_number(number: float, device: dt.Device) -> None:
    x = dt.asarray([0, 3, 255], dtype=dt.uint8)
    assert dt.isin(x, number).tolist() == [v == number for v in (0, 3, 255)]
    assert dt.isin(number, x).item() is (number in (0, 3, 255))


def test_array_equal_with_equal_nan_equals_numpy(device: dt.Device) -> None:
    cases: list[Any] = [
        ([1.0, np.nan], [1.0, np.nan]), ([1.0, np.nan], [np.nan, 1.0]), ([1.0], [1.0, np.nan]),
        ([complex(1, np.nan)], [complex(np.nan, 2)]), ([1, 2], [1, 2]), ([], []),
    ]  # fmt: skip
    for a, b in cases:
        x, y = np.asarray(a), np.asarray(b)
        for equal_nan in (False, True):
            want = np.array_equal(x, y, equal_nan=equal_nan)
            tensors = dt.asarray(x), dt.asarray(y)
            assert dt.array_equal(*tensors, equal_nan=equal_nan) is want
            assert np.array_equal(*tensors, equal_nan=equal_nan) is want


WORDS = np.array([0, 1, 5, 2**63 - 1, 2**63, 2**64 - 1], "u8")
SIGNED = {d: [np.iinfo(d).min, -1, 0, 5, np.iinfo(d).max] for d in ("i1", "i8")}


@pytest.mark.parametrize("dtype", SIGNED)
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_of_uint64_in_signed_integers_is_exact(
    side: str, dtype: str, device: dt.Device
) -> None:
    find = bisect.bisect_left if side == "left" else bisect.bisect_right
    words, signed = dt.asarray(WORDS), dt.asarray(np.array(SIGNED[dtype], dtype))
    for among, values in ((words, signed), (signed, words)):
        wanted = [find(among.tolist(), v) for v in values.tolist()]
        assert dt.searchsorted(among, values, side=side).tolist() == wanted
        assert dt.digitize(values, among, right=side == "left").tolist() == wanted


@pytest.mark.parametrize("repeats", [1, 20])
def test_isin_of_uint64_in_signed_integers_is_exact(repeats: int, device: dt.Device) -> None:
    signed = np.array(SIGNED["i8"] * repeats)
    wanted = [v in (0, 5, 2**63 - 1) for v in WORDS.tolist()]
    assert dt.isin(dt.asarray(WORDS), dt.asarray(signed)).tolist() == wanted
    assert dt.isin(dt.asarray(WORDS), signed.tolist()).tolist() == wanted
    among = dt.asarray(np.tile(WORDS, repeats))
    assert dt.isin(dt.asarray(SIGNED["i8"]), among).tolist() == [False, False, True, True, True]


def test_list_of_ints_next_to_uint64_becomes_uint64(device: dt.Device) -> None:
    x = dt.asarray(WORDS[-3:])
    assert dt.where(x > 2**63, x, [1, 2, 3]).tolist() == [1, 2, 2**64 - 1]
    assert dt.append(x, [7]).tolist() == [*WORDS[-3:].tolist(), 7]
    assert dt.clip(x, [0, 1, 2], [3, 4, 5]).tolist() == [3, 4, 5]
    assert (x - [1, 2, 3]).tolist() == [v - i for i, v in enumerate(WORDS[-3:].tolist(), 1)]
    assert dt.select([x > 2**63], [[1, 2, 3]], x).tolist() == [*WORDS[-3:-1].tolist(), 3]
    assert dt.histogram(x, [0, 2**63, 2**64 - 1]).hist.tolist() == [1, 2]
    assert dt.setdiff1d(x, [2**63 - 1]).tolist() == WORDS[-2:].tolist()
    with pytest.raises(dt.DTypeError, match="uint64 and int64"):
        dt.where(x > 2**63, x, [1, 2, -3])


def test_piecewise_of_uint64_takes_ints_as_uint64(device: dt.Device) -> None:
    x = dt.asarray(WORDS[:3])
    made = dt.piecewise(x, [x == 0, x == 1, x == 5], [1, lambda v: v * 2, 5])
    assert made.dtype is dt.uint64 and made.tolist() == [1, 2, 5]
