"""Values at which arithmetic goes wrong first, for each dtype, as the host holds them.

bfloat16, and dtypes of plugins, are held as their bits.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..backend.reference import interpret
from ..dtypes import BUILT_IN, DType, bfloat16, bool_, float16, float32
from ..ir.float_bits import FROM_BITS, TO_BITS, UNSIGNED_BY_ITEMSIZE
from ..ir.formats import build_conversion_kernel

Array = np.ndarray

# Points at which elementary functions switch algorithms: overflow of exp, halves of pi, powers of
# two, big arguments of sin.
_CRITICAL_POINTS = (
    0.0,
    0.25,
    0.5,
    0.75,
    1.0,
    1.5,
    2.0,
    2.5,
    3.0,
    10.0,
    0.1,
    1e-3,
    1e-8,
    np.pi,
    np.pi / 2,
    np.pi / 4,
    np.e,
    0.6931,
    17.3,
    88.72,
    88.8,
    103.9,
    150.0,
    709.7,
    710.0,
    745.2,
    255.0,
    256.5,
    2049.0,
    65504.0,
    65520.0,
    8388609.0,
    16777217.0,
    2147483648.0,
    9007199254740993.0,
    1e22,
    1e-30,
    3e38,
)


def host_dtype(d: DType) -> np.dtype:
    """Return the NumPy dtype in which the host holds values of `d`."""
    dtype = d.__numpy_dtype__
    return np.dtype(f"u{d.itemsize}") if dtype is None else dtype


def decode(bits: Array, d: DType) -> Array:
    """Return the bits of a plugin's dtype as float32, by its own rule, interpreted."""
    values: Array = np.zeros(bits.size, np.float32)
    kernel = build_conversion_kernel(FROM_BITS[d], UNSIGNED_BY_ITEMSIZE[d.itemsize], float32)
    interpret(kernel, [bits.reshape(-1), values], [bits.size], [], [bits.size])
    return values.reshape(bits.shape)


def encode(values: Array, d: DType) -> Array:
    """Return float32 values as bits of a plugin's dtype, by its own rule, interpreted."""
    bits: Array = np.zeros(values.size, host_dtype(d))
    kernel = build_conversion_kernel(TO_BITS[d], float32, UNSIGNED_BY_ITEMSIZE[d.itemsize])
    interpret(kernel, [values.reshape(-1), bits], [values.size], [], [values.size])
    return bits.reshape(values.shape)


def round_to_dtype(values: Array, d: DType) -> Array:
    """Return float64 values rounded to `d`."""
    with np.errstate(all="ignore"):
        if d not in BUILT_IN:
            return encode(values.astype(np.float32), d)
        if d is not bfloat16:
            return values.astype(host_dtype(d))
        bits = values.astype(np.float32).view(np.uint32)
        rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        quiet = np.where(np.isnan(values), bits | np.uint32(0x400000), rounded)
        return (quiet >> np.uint32(16)).astype(np.uint16)


def is_nan(values: Array, d: DType) -> Array:
    """Return True at values that are NaN."""
    if d is bfloat16:
        return (values & np.uint16(0x7FFF)) > np.uint16(0x7F80)
    if d not in BUILT_IN:
        return np.asarray(np.isnan(decode(values, d)))
    return np.isnan(values) if d.kind == "f" else np.zeros(values.shape, bool)


def specials(d: DType) -> Array:
    """Return the special values of a dtype, each once."""
    if d is bool_:
        return np.array([False, True])
    if d.kind == "f":
        return _special_floats(d)
    if d.kind == "c":
        floats = _special_floats(d.part)
        return np.stack([floats, floats[::-1]], 1).view(host_dtype(d))[:, 0]
    some = {0, 1, 2, 3, 7, 31, 33, 100, d.max - 1, d.max, d.max // 2, d.max // 2 + 1}
    some |= {-n for n in some} | {d.min, d.min + 1, d.max // 255, d.max // 3}
    return np.array(sorted(n for n in some if d.min <= n <= d.max), host_dtype(d))


def _special_floats(d: DType) -> Array:
    """Return the special values of a float dtype, of both signs, and one NaN, each once."""
    bits = host_dtype(d).itemsize * 8
    unsigned = np.dtype(f"u{bits // 8}")
    infinity = int(round_to_dtype(np.array([np.inf]), d).view(unsigned)[0])
    one = int(round_to_dtype(np.array([1.0]), d).view(unsigned)[0])
    tiny = infinity & -infinity  # the bits of the smallest normal number
    edges = [
        1,
        2,
        tiny // 2 + 1,
        tiny - 1,
        tiny,
        tiny + 1,
        one - 1,
        one + 1,
        infinity - 1,
        infinity,
    ]
    positive = np.concatenate(
        [round_to_dtype(np.array(_CRITICAL_POINTS), d).view(unsigned), np.array(edges, unsigned)]
    )
    both = np.unique(np.concatenate([positive, positive | unsigned.type(1 << (bits - 1))]))
    nan = round_to_dtype(np.array([np.nan]), d).view(unsigned)
    return np.concatenate([both, nan]).view(host_dtype(d))


def bytes_view(a: Any) -> memoryview:
    """Return the bytes of a contiguous array."""
    return memoryview(a.reshape(-1).view(np.uint8))


def pairs(d: DType, arity: int) -> list[Array]:
    """Return columns with every pair of special values; a third column is drawn from them."""
    s = specials(d)
    if arity == 1:
        return [s]
    rows = np.array(list(itertools.product(range(s.size), repeat=2)))
    columns = [s[rows[:, 0]], s[rows[:, 1]]]
    if arity == 3:
        columns.append(np.random.default_rng(3).permutation(columns[0]))
    return columns


def sample(d: DType, shape: Any, seed: int) -> Array:
    """Return special and, for floats, as many ordinary values in random order."""
    rng = np.random.default_rng(seed)
    special: Array = rng.choice(specials(d), shape)
    if d.kind != "f":
        return special
    ordinary = round_to_dtype(rng.standard_normal(shape), d)
    return np.where(rng.random(shape) < 0.5, special, ordinary)


def finite_values(d: DType, shape: Any, seed: int) -> Array:
    """Return ordinary values with a few negative zeros, whose sums stay finite.

    Integers have the whole range.
    """
    rng = np.random.default_rng(seed)
    if d is bool_:
        return np.asarray(rng.random(shape) < 0.5)
    if d.kind != "f":
        return np.asarray(rng.integers(d.min, d.max, shape, host_dtype(d), endpoint=True))
    x = rng.standard_normal(shape)
    x[rng.random(shape) < 0.01] = -0.0
    return round_to_dtype(x, d)


def half_boundary_values(half: DType) -> Array:
    """Return float32 values at, between and beside all finite halves, and special values."""
    every = np.arange(1 << 16, dtype=np.uint16)
    exact = (
        every.view(np.float16).astype(np.float32)
        if half is float16
        else (every.astype(np.uint32) << np.uint32(16)).view(np.float32)
    )
    exact = np.sort(exact[np.isfinite(exact)])
    with np.errstate(over="ignore"):
        ties = ((exact[:-1].astype(np.float64) + exact[1:]) / 2).astype(np.float32)
        beside = [np.nextafter(ties, np.float32(s)) for s in (np.inf, -np.inf)]
    return np.concatenate([exact, ties, *beside, specials(float32)])
