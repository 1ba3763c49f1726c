"""Dtypes, level 2: promotion, and casts to and from all others."""

from __future__ import annotations

import numpy as np
import pytest

from ..dtypes import ALL, COMPLEX, FORMATS, DType, float32, promote
from ..functions.datatypes import astype, can_cast, result_type
from ..tensor.host import from_host
from .dtype import DTypeKit
from .kit import host
from .test_scalar_ops import param_id
from .values import Array, decode, host_dtype, sample, specials

REAL_DTYPES = tuple(d for d in ALL if d not in COMPLEX)


@pytest.mark.parametrize("other", ALL, ids=param_id)
def test_promotion(kit: DTypeKit, other: DType) -> None:
    """Check that the promoted dtype holds the numbers of both, in either order."""
    d = kit.dtype
    met = result_type(d, other)
    kit.require(promote(d, other) is promote(other, d) is met, f"with {other.name}: two results")
    if other.kind in "biu":
        kit.require(met is d, f"with {other.name}: {met.name}")
        kit.require(not can_cast(d, other), f"can be cast to {other.name}")
        return
    kit.require(met.kind == other.kind, f"with {other.name}: {met.name}")
    numbers = kit.subject.numbers[np.isfinite(kit.subject.numbers)]
    if met is not d and met.kind == "f":
        x = from_host(numbers, float32, kit.device)
        kit.check_same_numbers(
            host(astype(astype(x, met), float32)), numbers, f"not all are {met.name}"
        )
    if other.kind == "f" and met is d:
        wide, mine = FORMATS[other], kit.subject.info.format
        kit.require(mine.contains(wide), f"does not hold what {other.name} does")


def test_numbers_beside_it_are_weak(kit: DTypeKit) -> None:
    """Check that Python numbers do not change the dtype of a result."""
    d = kit.dtype
    kit.require(result_type(d, 1) is result_type(d, 1.5) is result_type(d, True) is d, "numbers")
    kit.require(result_type(d, 1j).name == "complex64", "complex numbers")
    x = from_host(kit.subject.codes, d, kit.device)
    kit.require((x * 2).dtype is (1.5 - x).dtype is (x > 1.0).astype(d).dtype is d, "operators")


def _samples_of(source: DType) -> Array:
    """Return special and ordinary values of a dtype; for integers, also those near zero."""
    x = np.concatenate([specials(source), sample(source, 2000, 1)])
    if source.kind in "iu":  # and small ones, not only those at the ends of the range
        x = np.concatenate([x, np.arange(0 if source.kind == "u" else -100, 120).astype(x.dtype)])
    return x


@pytest.mark.parametrize("source", REAL_DTYPES, ids=param_id)
def test_from_others(kit: DTypeKit, source: DType) -> None:
    """Check that a cast from another dtype, if the device has it, rounds each number once."""
    if not kit.has_dtype(source):
        kit.require(True, "nothing to cast")
        return
    x = _samples_of(source)
    wide = (x.astype(np.uint32) << 16).view(np.float32) if source.name == "bfloat16" else x
    wanted = _round_integers(kit, x) if source.kind in "iu" else kit.subject.round_to_nearest(wide)
    actual = astype(from_host(x, source, kit.device), kit.dtype)
    kit.check_same_numbers(kit.values(actual), wanted, f"from {source.name}", x)


def _round_integers(kit: DTypeKit, x: Array) -> Array:
    """Return integers rounded once: to odd in float64, then to the nearest in the dtype.

    They are rounded to odd as float64, because 53 bits may not hold them.
    """
    near = x.astype(np.float64)
    back = [int(v) for v in near]
    bits = near.view(np.int64)
    for k, (v, b) in enumerate(zip(x.tolist(), back, strict=True)):
        if v != b and bits[k] % 2 == 0:
            bits[k] += 1 if abs(v) > abs(b) else -1
    return kit.subject.round_to_nearest(bits.view(np.float64))


@pytest.mark.parametrize("target", REAL_DTYPES, ids=param_id)
def test_to_others(kit: DTypeKit, target: DType) -> None:
    """Check that a cast to a dtype of the device gives the bits of a cast of equal float32."""
    if not kit.has_dtype(target):
        kit.require(True, "nothing to cast")
        return
    x = from_host(kit.subject.codes, kit.dtype, kit.device)
    wide = from_host(kit.subject.numbers, float32, kit.device)
    actual, wanted = host(astype(x, target)), host(astype(wide, target))
    kit.check_same_bits(actual, wanted, target, f"to {target.name}", str)


def test_complex(kit: DTypeKit) -> None:
    """Check that every code, cast to each complex dtype, has its number as the real part."""
    for target in COMPLEX:
        if kit.has_dtype(target):
            actual = host(astype(from_host(kit.subject.codes, kit.dtype, kit.device), target))
            kit.check_same_numbers(
                actual.real.astype(np.float32), kit.subject.numbers, f"to {target.name}"
            )
    kit.require(True, "")


def test_bits(kit: DTypeKit) -> None:
    """Check that a view as unsigned integers shows the codes, and a view back the numbers."""
    from_bits = from_host(kit.subject.codes, kit.dtype, kit.device)
    unsigned = f"uint{kit.dtype.bits}"
    bits = host(from_bits.view(unsigned))
    kit.require(np.array_equal(bits, kit.subject.codes), f"x.view({unsigned}) has other bits")
    again = from_host(bits.view(host_dtype(kit.dtype)), from_bits.view(unsigned).dtype, kit.device)
    back = again.view(kit.dtype)
    kit.check_same_numbers(
        decode(host(back), kit.dtype), kit.subject.numbers, "bits viewed as numbers"
    )
