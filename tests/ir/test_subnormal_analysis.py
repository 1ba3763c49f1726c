"""The bounds of float32 values and of their bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from dovetail.backend.reference import interpret
from dovetail.dtypes import DType, float32, uint32
from dovetail.ir.analysis import values
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.language import Value, bitcast, cast, const, fma, load, where
from dovetail.ir.subnormal_analysis import SubnormalAnalysis, shift_to

N = 4000
BITS: tuple[Callable[[Value, Value, int], Value], ...] = (
    lambda x, y, n: x + y, lambda x, y, n: x - y, lambda x, y, n: x - (x >> 1),
    lambda x, y, n: x << n % 32, lambda x, y, n: x >> n % 32, lambda x, y, n: x & n,
    lambda x, y, n: (x & 0xFFFF) | (n << 16) % (1 << 32), lambda x, y, n: where(x < y, x, y),
    lambda x, y, n: x - ((x - n) & 0xFF800000),
    lambda x, y, n: bitcast(bitcast(x, float32), uint32),
    lambda x, y, n: bitcast(cast(x & 0xFFFF, float32) + 1.0, uint32),
)  # fmt: skip


def kernel_of(rule: Callable[[Value], Value], d: DType, out: DType) -> Kernel:
    b = KernelBuilder("k")
    x, into = b.buffer("x", d, "r"), b.buffer("out", out, "w")
    i = b.axis(b.int("n"))
    b.store(into, i, rule(load(x, i)))
    return b.build()


def analysed(k: Kernel) -> tuple[SubnormalAnalysis, Value]:
    """Return the analysis of a kernel's values, and the last of them."""
    analysis, each = SubnormalAnalysis({}), tuple(values(k.body))
    analysis.visit_block(each, each[-1:])
    return analysis, each[-1]


def run(k: Kernel, x: np.ndarray) -> np.ndarray:
    out = np.zeros(x.size, str(k.buffers[-1].dtype.__numpy_dtype__))
    interpret(k, [x, out], [x.size], [], [x.size])
    return out


@pytest.mark.parametrize("seed", range(60))
def test_interval_of_bits_has_every_value(seed: int) -> None:
    def rule(x: Value) -> Value:
        rng = np.random.default_rng(seed)
        pool = [x & int(rng.integers(1, 1 << 32)), x & 0xFFFF, const(0x3F800000, uint32)]
        for _ in range(4):
            x, y = (pool[k] for k in rng.integers(0, len(pool), 2))
            n = int(rng.integers(1 << 32)) >> int(rng.integers(32))
            pool.append(BITS[rng.integers(len(BITS))](x, y, n))
        return pool[-1]

    k = kernel_of(rule, uint32, uint32)
    analysis, last = analysed(k)
    interval = shift_to(analysis._bits_interval(last), 0)
    if interval is not None:
        data = np.random.default_rng(seed).integers(0, 1 << 32, N, dtype="u4")
        data >>= np.arange(N, dtype="u4") % 32
        found = run(k, data)
        assert interval[0] <= found.min() and found.max() <= interval[1]


def exponential_scale(x: Value) -> Value:
    """Return one of two powers of 2, whose product is near e^x for x from -104 to 89."""
    x = where(x < -104.0, -104.0, x)
    bits = bitcast(fma(where(x > 89.0, 89.0, x), 1.4426950216293335, 12582912.0), uint32)
    half = bits >> 1
    low = bitcast((half << 23) + 0x3F800000, float32)
    return where(x < 0.0, low, bitcast(((bits - half) << 23) + 0x3F800000, float32))


def remainder(x: Value) -> Value:
    """Return 1 + the rest of a bounded number after multiples of log 2."""
    x = where(x < -104.0, -104.0, x)
    x = where(x > 89.0, 89.0, x)
    n = fma(x, 1.4426950216293335, 12582912.0) - 12582912.0
    return fma(n, -0.6931471805599453, x) + 1.0


@pytest.mark.parametrize(
    ("rule", "least", "most"),
    [
        (lambda x: bitcast((bitcast(x, uint32) & 0x7FFFFF) | 0x3F800000, float32), 1.0, 2.0),
        (lambda x: bitcast(bitcast(x, uint32) - ((bitcast(x, uint32) - 0x3F2AAAAA) & 0xFF800000),
                           float32), 0.66, 1.34),
        (exponential_scale, 2.0**-78, 2.0**67),
        (remainder, 0.65, 1.35),
        (lambda x: fma(remainder(x), -2.0, 0.0), -2.7, -1.3),
    ],
    ids=("mantissa", "near 1", "power", "remainder", "negative"),
)  # fmt: skip
def test_scale_is_known_of_floats_made_of_bits(
    rule: Callable[[Value], Value], least: float, most: float
) -> None:
    k = kernel_of(rule, float32, float32)
    analysis, last = analysed(k)
    scale = analysis.scale(last)
    assert scale.nonzero and least <= scale.least and scale.most <= most
    x = np.random.default_rng(0).standard_normal(N).astype("f4") * np.float32(100)
    found = run(k, x)
    assert scale.least <= found.min() and found.max() <= scale.most


def test_scale_of_a_product_that_underflows_has_0() -> None:
    analysis, last = analysed(
        kernel_of(lambda x: exponential_scale(x) * 2.0**-100, float32, float32)
    )
    assert not analysis.scale(last).nonzero and analysis.scale(last).least == 0


@pytest.mark.parametrize(
    ("rule", "checks", "flags"),
    [
        (lambda x: x + x * 4.0, [-103], 0),  # multiples of 2^-126
        (lambda x: x * x + x, [-103], 1),  # the flag of the product is set below 2^-103
        (lambda x: x * x, [-126], 1),  # not checked from 2^-63 on: small data is ordinary
        (lambda x: where(x < 2.0, x, 2.0) * 2.0**-100, [-126], 1),
    ],
    ids=("sum", "square and sum", "square", "product"),
)
def test_threshold_is_the_one_with_fewest_flags(
    rule: Callable[[Value], Value], checks: list[int], flags: int
) -> None:
    analysis, _ = analysed(kernel_of(rule, float32, float32))
    assert [*analysis.checks.values()] == checks
    assert sum(map(analysis.needs_flag, analysis.risky)) == flags
