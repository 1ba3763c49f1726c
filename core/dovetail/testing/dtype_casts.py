"""Dtypes, level 2: promotion, and casts to and from all others."""

from __future__ import annotations

import numpy as np
import pytest

from ..dtypes import ALL, COMPLEX, FORMATS, DType, float32, promote
from ..functions.datatypes import astype, can_cast, result_type
from ..tensor.host import from_host
from .dtype import DTypeKit
from .kit import host
from .test_scalar_ops import named
from .values import Array, decode, host_dtype, sample, specials

STORED = tuple(d for d in ALL if d not in COMPLEX)


@pytest.mark.parametrize("other", ALL, ids=named)
def test_promotion(kit: DTypeKit, other: DType) -> None:
    """The promoted dtype holds the numbers of both, and their order does not matter."""
    d = kit.dtype
    met = result_type(d, other)
    kit.claim(promote(d, other) is promote(other, d) is met, f"with {other.name}: two results")
    if other.kind in "biu":
        kit.claim(met is d, f"with {other.name}: {met.name}")
        kit.claim(not can_cast(d, other), f"can be cast to {other.name}")
        return
    kit.claim(met.kind == other.kind, f"with {other.name}: {met.name}")
    numbers = kit.brought.numbers[np.isfinite(kit.brought.numbers)]
    if met is not d and met.kind == "f":
        x = from_host(numbers, float32, kit.device)
        kit.alike(host(astype(astype(x, met), float32)), numbers, f"not all are {met.name}")
    if other.kind == "f" and met is d:
        wide, mine = FORMATS[other], kit.brought.info.format
        kit.claim(mine.holds(wide), f"does not hold what {other.name} does")


def test_numbers_beside_it_are_weak(kit: DTypeKit) -> None:
    d = kit.dtype
    kit.claim(result_type(d, 1) is result_type(d, 1.5) is result_type(d, True) is d, "numbers")
    kit.claim(result_type(d, 1j).name == "complex64", "complex numbers")
    x = from_host(kit.brought.codes, d, kit.device)
    kit.claim((x * 2).dtype is (1.5 - x).dtype is (x > 1.0).astype(d).dtype is d, "operators")


def _samples_of(source: DType) -> Array:
    x = np.concatenate([specials(source), sample(source, 2000, 1)])
    if source.kind in "iu":  # and small ones, not only those at the ends of the range
        x = np.concatenate([x, np.arange(0 if source.kind == "u" else -100, 120).astype(x.dtype)])
    return x


@pytest.mark.parametrize("source", STORED, ids=named)
def test_from_others(kit: DTypeKit, source: DType) -> None:
    """Every number is rounded once."""
    if not kit.has(source):
        kit.claim(True, "nothing to cast")
        return
    x = _samples_of(source)
    wide = (x.astype(np.uint32) << 16).view(np.float32) if source.name == "bfloat16" else x
    wanted = _of_integers(kit, x) if source.kind in "iu" else kit.brought.nearest(wide)
    actual = astype(from_host(x, source, kit.device), kit.dtype)
    kit.alike(kit.values(actual), wanted, f"from {source.name}", x)


def _of_integers(kit: DTypeKit, x: Array) -> Array:
    """Return the expected results of integers.

    They are rounded to odd as float64, because 53 bits may not hold them.
    """
    near = x.astype(np.float64)
    back = [int(v) for v in near]
    bits = near.view(np.int64)
    for k, (v, b) in enumerate(zip(x.tolist(), back, strict=True)):
        if v != b and bits[k] % 2 == 0:
            bits[k] += 1 if abs(v) > abs(b) else -1
    return kit.brought.nearest(bits.view(np.float64))


@pytest.mark.parametrize("target", STORED, ids=named)
def test_to_others(kit: DTypeKit, target: DType) -> None:
    """A cast gives the same bits as a cast of the equal float32 number."""
    if not kit.has(target):
        kit.claim(True, "nothing to cast")
        return
    x = from_host(kit.brought.codes, kit.dtype, kit.device)
    wide = from_host(kit.brought.numbers, float32, kit.device)
    actual, wanted = host(astype(x, target)), host(astype(wide, target))
    kit.same(actual, wanted, target, f"to {target.name}", str)


def test_complex(kit: DTypeKit) -> None:
    for target in COMPLEX:
        if kit.has(target):
            actual = host(astype(from_host(kit.brought.codes, kit.dtype, kit.device), target))
            kit.alike(actual.real.astype(np.float32), kit.brought.numbers, f"to {target.name}")
    kit.claim(True, "")


def test_bits(kit: DTypeKit) -> None:
    """A view shows the bits, and a view of bits gives the numbers."""
    from_bits = from_host(kit.brought.codes, kit.dtype, kit.device)
    unsigned = f"uint{kit.dtype.bits}"
    bits = host(from_bits.view(unsigned))
    kit.claim(np.array_equal(bits, kit.brought.codes), f"x.view({unsigned}) has other bits")
    again = from_host(bits.view(host_dtype(kit.dtype)), from_bits.view(unsigned).dtype, kit.device)
    back = again.view(kit.dtype)
    kit.alike(decode(host(back), kit.dtype), kit.brought.numbers, "bits viewed as numbers")
