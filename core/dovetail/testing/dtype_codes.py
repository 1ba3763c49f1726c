"""Dtypes, level 1: the codes, their numbers, and rounding to the nearest number."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from .. import dtypes as D
from ..dtypes import DType, float32, float64
from ..functions.datatypes import finfo, isdtype
from ..ir.language import cast
from .dtype import DTypeKit
from .test_scalar_ops import kernel_of, param_id
from .values import Array, decode, host_dtype, specials

SEEDS = (1, 2, 3)


def test_it_is_what_it_is_called(kit: DTypeKit) -> None:
    """Check name, code, size, kind, equality and copies of the dtype object."""
    d, info = kit.dtype, kit.subject.info
    kit.require(D.dtype(info.name) is d and d.name == info.name, f"is not the dtype {info.name}")
    kit.require(D.BY_CODE[info.code] is d, f"is not the dtype of the code {info.code}")
    kit.require((d.itemsize, d.bits) == (info.itemsize, 8 * info.itemsize), "has another size")
    kit.require(d.compute is float32 and d.kind == "f", "is no float that is computed in float32")
    kit.require(isdtype(d, "real floating") and d.is_float, "is not real floating")
    kit.require(d == info.name and hash(d) == hash(info.name), "differs from its name")
    for other in D.BUILT_IN:
        kit.require(d != other and d.name != other.name, f"is equal to {other.name}")
    for copied in (pickle.loads(pickle.dumps(d)), copy.deepcopy(d), copy.copy(d)):
        kit.require(copied is d, "is another dtype once it was copied or sent")


def test_codes_are_numbers(kit: DTypeKit) -> None:
    """Check that codes ascend from 0, with the sign in the top bit, infinity and NaN last."""
    numbers, positive = kit.subject.numbers, kit.subject.positive
    half = numbers.size // 2
    kit.require(
        positive.size > 2, f"only {positive.size} of its codes are numbers that are not negative"
    )
    kit.require(positive[0] == 0 and not np.signbit(numbers[0]), f"code 0 stands for {numbers[0]}")
    falls = np.flatnonzero(np.diff(positive) <= 0)
    kit.require(not falls.size, f"codes {falls[:3].tolist()} are not below the next ones")
    not_finite = numbers[positive.size : half]
    kit.require(not np.isfinite(not_finite).any(), "numbers follow what is infinite or NaN")
    kit.require(np.isnan(numbers).any(), "it has no NaN")
    has = bool(np.isinf(not_finite).any())
    kit.require(has == kit.subject.info.infinities, f"infinities: {has}, which is not what it says")
    if has:
        kit.require(not_finite[0] == np.inf, "infinity does not follow the largest number")
    kit.check_same_numbers(
        numbers[half:][: positive.size], -positive.astype(np.float32), "the negative codes"
    )


def test_limits(kit: DTypeKit) -> None:
    """Check `max`, `smallest`, `digits` and the other limits of the plugin's description."""
    info, positive = kit.subject.info, kit.subject.positive
    kit.require(positive[-1] == info.max, f"max is {positive[-1]}, and not {info.max}")
    kit.require(positive[1] == info.smallest, f"smallest is {positive[1]}, and not {info.smallest}")
    normal = positive[positive >= info.smallest_normal]
    kit.require(normal[0] == info.smallest_normal, "smallest_normal is none of its numbers")
    unit = 2.0 ** (np.frexp(normal[:-1])[1] - info.digits)
    wrong = np.flatnonzero(np.diff(normal) != unit)
    kit.require(not wrong.size, f"{info.digits} digits: not from {normal[wrong[:3]].tolist()} on")
    full = info.smallest_normal * 2.0 ** (1 - info.digits)
    is_valid = info.smallest in (full, info.smallest_normal)
    kit.require(
        is_valid, f"smallest_normal {normal[0]}: smaller ones have {info.digits} digits, or less"
    )
    below = np.diff(positive[positive <= info.smallest_normal])
    kit.require(np.all(below == info.smallest), f"below {normal[0]} they are not evenly spaced")
    limits = finfo(kit.dtype)
    kit.require((limits.bits, limits.eps) == (kit.dtype.bits, 2.0 ** (1 - info.digits)), "finfo")
    kit.require((limits.max, limits.min) == (info.max, -info.max), "finfo")


def test_round_trip(kit: DTypeKit) -> None:
    """Check that each code, cast to float32 and back, is unchanged; NaNs stay NaNs."""
    d, codes, numbers = kit.dtype, kit.subject.codes, kit.subject.numbers
    back = run(kit, numbers, float32)
    kit.check_same_numbers(decode(back, d), numbers, "to float32 and back")
    same = (back == codes) | np.isnan(numbers)
    kit.require(same.all(), f"codes {codes[~same][:5].tolist()} become {back[~same][:5].tolist()}")


def test_every_code_on_the_device(kit: DTypeKit) -> None:
    """Check that the device casts every code to its float32 number."""
    codes, numbers = kit.subject.codes, kit.subject.numbers
    for form in ("grid", "map"):
        kernel = kernel_of(form, "up", [kit.dtype], float32, lambda v: cast(v, float32))
        sizes = [codes.size]
        _, y = kit.check(
            kernel, [codes, np.zeros(codes.size, "f4")], sizes, [], sizes if form == "grid" else []
        )
        kit.check_same_numbers(y, numbers, f"every code as float32, {form}")


def run(kit: DTypeKit, x: Array, source: DType) -> Array:
    """Cast an array to codes on the device; fail unless they are those of the reference."""
    kernel = kernel_of("grid", "down", [source], kit.dtype, lambda v: cast(v, kit.dtype))
    return kit.check(kernel, [x, np.zeros(x.size, host_dtype(kit.dtype))], [x.size], [], [x.size])[
        1
    ]


def ties(kit: DTypeKit) -> Array:
    """Return all numbers, their midpoints, and values beyond the largest, of both signs."""
    positive = kit.subject.positive
    step = positive[-1] - positive[-2]
    top = positive[-1] + step * np.array([0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 1000.0])
    every = np.concatenate([positive, (positive[:-1] + positive[1:]) / 2, top])
    return np.concatenate([every, -every]).astype(np.float32)


@pytest.mark.parametrize("source", (float32, float64), ids=param_id)
def test_numbers_go_to_the_nearest(kit: DTypeKit, source: DType) -> None:
    """Check that ties go to the even code, and neighbours of ties to the nearest number."""
    middle = ties(kit).astype(host_dtype(source))
    with np.errstate(over="ignore"):
        x = np.concatenate(
            [
                middle,
                np.nextafter(middle, host_dtype(source).type(np.inf)),
                np.nextafter(middle, -host_dtype(source).type(np.inf)),
            ]
        )
    kit.check_same_numbers(
        decode(run(kit, x, source), kit.dtype), kit.subject.round_to_nearest(x), "nearest", x
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_any_float32_goes_to_the_nearest(kit: DTypeKit, seed: int) -> None:
    """Check rounding of random bit patterns, and of numbers in the range of the dtype."""
    rng, info = np.random.default_rng(seed), kit.subject.info
    every = rng.integers(0, 1 << 32, 20_000, dtype=np.uint32).view(np.float32)
    low, high = np.log2(info.smallest) - 2, np.log2(info.max) + 2
    within = 2.0 ** rng.uniform(low, high, 20_000) * rng.choice([-1.0, 1.0], 20_000)
    with np.errstate(over="ignore"):
        x = np.concatenate([every, within.astype(np.float32), specials(float32)])
    kit.check_same_numbers(
        decode(run(kit, x, float32), kit.dtype), kit.subject.round_to_nearest(x), "nearest", x
    )


def test_special_values(kit: DTypeKit) -> None:
    """Check casts of NaN, infinities and zeros with their signs."""
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    actual = decode(run(kit, x, float32), kit.dtype)
    kit.require(np.isnan(actual[:2]).all(), f"NaN becomes {actual[:2].tolist()}")
    kit.check_same_numbers(actual, kit.subject.round_to_nearest(x), "special values", x)
    kit.require(np.signbit(actual[4:]).tolist() == [False, True], "zeros lose their signs")
    if kit.subject.info.infinities:
        kit.require(
            actual[2:4].tolist() == [np.inf, -np.inf], f"infinities: {actual[2:4].tolist()}"
        )
