"""The reference interpreter against exact arithmetic and plain Python loops."""

from __future__ import annotations

import math
import struct
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dovetail import dtypes as dt
from dovetail.backend.reference import ReferenceBackend, fma, interpret
from dovetail.dtypes import DType, bool_, float32, float64, int32, int64, uint8
from dovetail.errors import InternalError
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.language import (
    CHUNK,
    LANES,
    Atomic,
    Buffer,
    Loop,
    Store,
    Value,
    bitcast,
    cast,
    fold_loop,
    load,
    map_loop,
    reduce_loop,
    where,
)
from dovetail.ir.verify import verify

Array = Any


def same_bits(a: Array, b: Array) -> bool:
    """Return True if two arrays hold the same bits; all NaNs are equal."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return bool((a == b).all())
    nans = np.isnan(a) & np.isnan(b)
    return bool((nans | ((a == b) & (np.signbit(a) == np.signbit(b)))).all())


# --- fma ------------------------------------------------------------------------------------------


def rounded(exact: Fraction, dtype: Any) -> Any:
    """Round a nonzero fraction to nearest even in float32 or float64, with integers only."""
    digits, lowest, largest = (24, -149, 2**128) if dtype == np.float32 else (53, -1074, 2**1024)
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent += (Fraction(2) ** exponent <= size) - 1 + (Fraction(2) ** (exponent + 1) <= size)
    unit = Fraction(2) ** max(exponent - digits + 1, lowest)
    size = round(size / unit) * unit  # Fraction rounds half to even
    value = math.inf if size >= largest else float(size)
    return dtype(value if exact > 0 else -value)


def exact_fma(a: Any, b: Any, c: Any) -> Any:
    dtype = type(a)
    if not all(map(math.isfinite, (a, b, c))):
        return c if math.isfinite(a) and math.isfinite(b) else a * b + c
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact:
        return rounded(exact, dtype)
    zero = math.copysign(1, a) * math.copysign(1, b)
    both_negative = zero < 0 and math.copysign(1, c) < 0
    return dtype(-0.0 if both_negative and (a == 0 or b == 0) else 0.0)


def fma_cases(dtype: Any, n: int) -> list[Array]:
    rng = np.random.default_rng(7)
    bits = np.uint32 if dtype == np.float32 else np.uint64
    wild = [rng.integers(0, np.iinfo(bits).max, n, bits).view(dtype) for _ in range(3)]
    near = [
        (rng.standard_normal(n) * 2.0 ** rng.integers(-3, 4, n)).astype(dtype) for _ in range(3)
    ]
    info = np.finfo(dtype)
    eps, tiny, least = info.eps, info.tiny, info.smallest_subnormal
    special = [0.0, 1.0, 1 + eps, 1 - eps / 2, 3.0, tiny, tiny - least, least, 3 * least, info.max]
    special += [
        math.inf,
        math.nan,
        math.sqrt(float(tiny)),
        math.sqrt(float(info.max)),
        info.max / 2,
    ]
    values = np.array([s * x for x in special for s in (1, -1)], dtype)
    grid = [x.ravel() for x in np.meshgrid(values, values, values)]
    a, b, c = near
    cancel = [a, b, (-(a * b)).astype(dtype)]
    halfway = [a, np.full_like(a, 1 + eps), (-a).astype(dtype)]
    small = [(a * math.sqrt(float(tiny))).astype(dtype), (b * math.sqrt(float(tiny))).astype(dtype)]
    small.append((c * tiny).astype(dtype))
    big = [(a * math.sqrt(float(info.max))).astype(dtype)] * 2 + [
        (c * (info.max / 64)).astype(dtype)
    ]
    return [
        np.concatenate(x) for x in zip(wild, near, grid, cancel, halfway, small, big, strict=True)
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fma_rounds_once(dtype: Any) -> None:
    with np.errstate(all="ignore"):
        a, b, c = fma_cases(dtype, 4000)
        got = fma(a, b, c)
        wanted = np.array([exact_fma(*x) for x in zip(a, b, c, strict=True)], dtype)
    assert got.dtype == dtype
    wrong = ~((got.view(f"u{got.itemsize}") == wanted.view(f"u{got.itemsize}")) | np.isnan(wanted))
    wrong |= np.isnan(got) != np.isnan(wanted)
    assert not wrong.any(), [
        (x.hex() for x in (a[i], b[i], c[i])) for i in np.flatnonzero(wrong)[:3]
    ]


def test_fma_differs_from_two_roundings() -> None:
    a = np.float64(1 + 2.0**-30)
    assert fma(a, a, np.float64(-1 - 2.0**-29)) == 2.0**-60
    assert a * a + np.float64(-1 - 2.0**-29) == 0.0


# --- scalar operations ----------------------------------------------------------------------------


def elementwise(f: Callable[..., Value], out: DType, *inputs: DType) -> Callable[..., Array]:
    """Return a function of arrays that interprets a kernel which applies `f` to each element."""
    b = KernelBuilder("each")
    buffers = [b.buffer(f"x{i}_in", d, "r") for i, d in enumerate(inputs)]
    target = b.buffer("out", out, "w")
    i = b.axis(b.int("n"))
    b.store(target, i, f(*(load(x, i) for x in buffers)))
    kernel = b.build()
    verify(kernel)

    def run(*arrays: Array) -> Array:
        held = np.uint16 if out is dt.bfloat16 else out.__numpy_dtype__
        result = np.zeros(len(arrays[0]), held)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            interpret(kernel, [*arrays, result], [len(result)], [], [len(result)])
        return result

    return run


def op(name: str, d: DType, n: int = 2, out: DType | None = None) -> Callable[..., Array]:
    return elementwise(lambda *a: Value(name, out or d, a), out or d, *[d] * n)


def test_integer_arithmetic_wraps_around() -> None:
    a = np.array([127, -128, 100], np.int8)
    assert same_bits(op("add", dt.int8)(a, a), np.array([-2, 0, -56], np.int8))
    assert same_bits(op("mul", dt.int8)(a, a), np.array([1, 0, 16], np.int8))
    assert same_bits(op("neg", dt.int8, 1)(a), np.array([-127, -128, -100], np.int8))
    u = np.array([0, 2**64 - 1], np.uint64)
    assert same_bits(op("sub", dt.uint64)(u, u[::-1].copy()), np.array([1, 2**64 - 1], np.uint64))


def test_quotient_truncates_and_remainder_has_the_sign_of_the_dividend() -> None:
    a = np.array([7, -7, 7, -7, 0, 9, -(2**31)], np.int32)
    b = np.array([2, 2, -2, -2, 5, 0, 2], np.int32)  # the divisor 0 gives anything, but no crash
    q, r = op("quo", int32)(a, b), op("rem", int32)(a, b)
    defined = b != 0
    assert q[defined].tolist() == [3, -3, -3, 3, 0, -(2**30)]
    assert r[defined].tolist() == [1, -1, 1, -1, 0, 0]


def test_division_of_the_minimum_by_minus_one_does_not_crash() -> None:
    for d in dt.SIGNED:
        a = np.array([d.min], d.__numpy_dtype__)
        op("quo", d)(a, np.array([-1], a.dtype))
        op("rem", d)(a, np.array([-1], a.dtype))


def test_shifts_are_arithmetic_for_signed_and_logical_for_unsigned() -> None:
    a, one = np.array([-8, 5], np.int32), np.array([1, 31], np.int32)
    assert op("shr", int32)(a, one).tolist() == [-4, 0]
    assert op("shl", int32)(a, one).tolist() == [-16, -(2**31)]
    u = np.array([0xFFFFFFF0], np.uint32)
    assert op("shr", dt.uint32)(u, np.array([4], np.uint32)).tolist() == [0x0FFFFFFF]


def test_not_negates_bools_and_inverts_integer_bits() -> None:
    assert op("not", bool_, 1)(np.array([True, False])).tolist() == [False, True]
    assert op("not", uint8, 1)(np.array([0, 255, 5], np.uint8)).tolist() == [255, 0, 250]


def test_rounding_keeps_signs_and_ties_to_even() -> None:
    a = np.array([0.5, 1.5, 2.5, -0.5, -0.2, -1.7], np.float32)
    assert same_bits(op("rint", float32, 1)(a), np.array([0, 2, 2, -0.0, -0.0, -2], np.float32))
    assert same_bits(op("trunc", float32, 1)(a), np.array([0, 1, 2, -0.0, -0.0, -1], np.float32))
    assert same_bits(op("floor", float32, 1)(a), np.array([0, 1, 2, -1, -1, -2], np.float32))


def test_comparisons_with_nan_are_false_except_ne() -> None:
    a, b = np.array([1, math.nan, -0.0], np.float32), np.array([1, math.nan, 0.0], np.float32)
    got = {n: op(n, float32, 2, bool_)(a, b).tolist() for n in ("lt", "le", "eq", "ne")}
    assert got == {
        "lt": [False, False, False],
        "le": [True, False, True],
        "eq": [True, False, True],
        "ne": [False, True, False],
    }


def test_float32_arithmetic_stays_in_float32() -> None:
    a = np.array([16777216.0], np.float32)
    f = elementwise(lambda x: (x + 1.0) + 1.0, float32, float32)
    assert f(a).tolist() == [16777216.0]


def test_casts_wrap_truncate_and_round() -> None:
    def to(a: DType, b: DType) -> Callable[..., Array]:
        return elementwise(lambda x: cast(x, b), b, a)

    assert to(int32, uint8)(np.array([256, -1, 300], np.int32)).tolist() == [0, 255, 44]
    assert to(float32, int32)(np.array([2.9, -2.9], np.float32)).tolist() == [2, -2]
    assert to(float32, bool_)(np.array([0, -0.0, 0.1, math.nan], np.float32)).tolist() == [
        *(False, False),
        *(True, True),
    ]
    big = np.array([2**24 + 1, 2**24 + 3, -(2**63)], np.int64)
    assert to(int64, float32)(big).tolist() == [2.0**24, 2.0**24 + 4, -(2.0**63)]
    to(float64, int32)(np.array([math.nan, math.inf, 1e300, -1e300]))  # anything, but no warning


def test_bitcast_keeps_bits() -> None:
    f = elementwise(lambda x: bitcast(x, dt.uint32), dt.uint32, float32)
    assert f(np.array([1.0, -0.0], np.float32)).tolist() == [0x3F800000, 0x80000000]


def test_cast_of_float64_to_half_precision_rounds_once() -> None:
    x = np.array(
        [1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11, 1 + 2.0**-11 - 2.0**-40, 65520.0, 2.0**-25]
    )
    f16 = elementwise(lambda v: cast(v, dt.float16), dt.float16, float64)(x)
    assert f16.astype(float).tolist() == [1 + 2.0**-10, 1.0, 1.0, math.inf, 0.0]
    y = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8, 1 + 2.0**-8 - 2.0**-40, math.inf])
    bits = elementwise(lambda v: cast(v, dt.bfloat16), dt.bfloat16, float64)(y)
    assert bits.tolist() == [0x3F81, 0x3F80, 0x3F80, 0x7F80]


def test_bfloat16_load_and_store_keep_bits() -> None:
    f = elementwise(lambda v: cast(cast(v, float32), dt.bfloat16), dt.bfloat16, dt.bfloat16)
    bits = np.arange(65536, dtype=np.uint16)
    value = (bits.astype(np.uint32) << 16).view(np.float32)
    assert (f(bits) == bits)[~np.isnan(value)].all()


# --- memory ---------------------------------------------------------------------------------------


def test_masked_load_does_not_access_memory() -> None:
    b = KernelBuilder("gather")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    n, m = b.int("n"), b.int("m")
    i = b.axis(n)
    b.store(out, i, load(x, i * 1000, i < m) + 1.0)
    k = b.build()
    got = np.zeros(3, np.float32)
    interpret(k, [np.array([5], np.float32), got], [3, 1], [], [3])
    assert got.tolist() == [6, 1, 1]
    interpret(k, [np.zeros(0, np.float32), got], [3, 0], [], [3])
    assert got.tolist() == [1, 1, 1]


@pytest.mark.parametrize("shift", [-1, 1])
def test_access_outside_of_a_buffer_raises_internal_error(shift: int) -> None:
    b = KernelBuilder("copy")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    i, s = b.axis(b.int("n")), b.int("s")
    b.store(out, i, load(x, i + s))
    wrong = "3" if shift == 1 else "-1"
    with pytest.raises(InternalError, match=rf"load of x\[{wrong}\]: it has 3 elements"):
        interpret(b.build(), [np.zeros(3, np.float32)] * 2, [3, shift], [], [3])


def test_conditional_stores_and_atomics_skip_false_lanes() -> None:
    b = KernelBuilder("count")
    x, out = b.buffer("x", int64, "r"), b.buffer("out", int32, "rw")
    i = b.axis(b.int("n"))
    one = Value("const", int32, (), 1)
    b.effect(Atomic("add", out, load(x, i), one, load(x, i) < 3))
    b.effect(Atomic("max", out, Value("const", int64, (), 3), cast(i, int32)))
    k = b.build()
    verify(k)
    bins = np.zeros(4, np.int32)
    interpret(k, [np.array([0, 2, 2, 99, 0, 2]), bins], [6], [], [6])
    assert bins.tolist() == [2, 0, 3, 5]


def test_atomic_at_a_constant_index_counts_every_point() -> None:
    b = KernelBuilder("count")
    out = b.buffer("out", int32, "rw")
    b.axis(b.int("n"))
    b.effect(Atomic("add", out, Value("const", int64, (), 0), Value("const", int32, (), 1)))
    total = np.zeros(1, np.int32)
    interpret(b.build(), [total], [100000], [], [100000])
    assert total[0] == 100000


# --- loops ----------------------------------------------------------------------------------------


def canonical_sum(values: Sequence[Any], zero: Any, f: Callable[[Any, Any], Any]) -> Any:
    """Reduce in the canonical order that `kernel.language` defines."""
    if len(values) > CHUNK:
        parts = [values[c : c + CHUNK] for c in range(0, len(values), CHUNK)]
        return canonical_sum([canonical_sum(p, zero, f) for p in parts], zero, f)
    lane = [zero] * LANES
    for k, x in enumerate(values):
        lane[k % LANES] = f(lane[k % LANES], x)
    for h in (16, 8, 4, 2, 1):
        lane[:h] = [f(lane[j], lane[j + h]) for j in range(h)]
    return lane[0]


def row_reduce(combine: str, d: DType, both: Callable[[Value, Value], Any]) -> Kernel:
    """Build a kernel that reduces x[start[i]:stop[i]] for every row i."""
    b = KernelBuilder("rows")
    x = b.buffer("x", d, "r")
    start, stop = b.buffer("start", int64, "r"), b.buffer("stop", int64, "r")
    i = b.axis(b.int("n"))
    results = reduce_loop(combine, load(start, i), load(stop, i), lambda k: both(load(x, k), k))
    for n, r in enumerate(results):
        b.store(b.buffer(f"out{n}", r.dtype, "w"), i, r)
    kernel = b.build()
    verify(kernel)
    return kernel


@pytest.mark.parametrize("combine", ["add", "mul"])
def test_reduce_has_the_canonical_order_for_every_length(combine: str) -> None:
    rng = np.random.default_rng(1)
    x = (1 + rng.standard_normal(60000) / 100).astype(np.float32)
    lengths = [0, 1, 5, 31, 32, 33, 64, 1000, 4095, 4096, 4097, 8192, 20000, 50000]
    start = np.arange(len(lengths))
    stop = start + lengths
    out = np.zeros(len(lengths), np.float32)
    interpret(row_reduce(combine, float32, lambda v, k: v), [x, start, stop, out], [14], [], [14])
    zero, f = {"add": (np.float32(0), np.add), "mul": (np.float32(1), np.multiply)}[combine]
    wanted = [canonical_sum(list(x[a:b]), zero, f) for a, b in zip(start, stop, strict=True)]
    assert same_bits(out, np.array(wanted, np.float32))
    # visible differences between orders
    assert not same_bits(out[-1], np.add.accumulate(x[13:50013])[-1])


def test_long_uniform_sum_recurses() -> None:
    x = np.random.default_rng(2).standard_normal(300000).astype(np.float32)
    out = np.zeros(2, np.float32)
    k = row_reduce("add", float32, lambda v, k: v)
    interpret(k, [x, np.array([0, 0]), np.array([300000] * 2), out], [2], [], [2])
    assert same_bits(out[0], canonical_sum(list(x), np.float32(0), np.add))
    assert same_bits(out[0], out[1])


def test_sum_of_negative_zeros_is_positive_zero() -> None:
    k = row_reduce("add", float32, lambda v, k: v)
    out = np.ones(1, np.float32)
    interpret(k, [np.array([-0.0], np.float32), np.array([0]), np.array([1]), out], [1], [], [1])
    assert same_bits(out, np.zeros(1, np.float32))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_arg_reductions_return_value_and_first_index(name: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(-50, 50, 10000).astype(np.float32)
    x[7777] = math.nan
    start, stop = np.array([0, 10, 8000, 5]), np.array([7000, 10, 10000, 9000])
    values, places = np.zeros(4, np.float32), np.zeros(4, np.int64)
    kernel = row_reduce(name, float32, lambda v, k: (v, k))
    interpret(kernel, [x, start, stop, values, places], [4], [], [4])
    f = getattr(np, name)
    wanted = [int(a + f(x[a:b])) if b > a else 2**63 - 1 for a, b in zip(start, stop, strict=True)]
    assert places.tolist() == wanted
    assert math.isnan(values[3])


def test_min_and_max_propagate_nan() -> None:
    x = np.array([3, math.nan, 1, 2], np.float32)
    for name, wanted in (("max", 3.0), ("min", 1.0)):
        out = np.zeros(2, np.float32)
        k = row_reduce(name, float32, lambda v, k: v)
        interpret(k, [x, np.array([0, 2]), np.array([4, 4]), out], [2], [], [2])
        assert math.isnan(out[0])
        assert out[1] == (2.0 if name == "max" else wanted)


def test_bitwise_and_bool_reductions() -> None:
    x = np.array([0b1100, 0b1010, 0b1001], np.uint8)
    got = {}
    for name in ("and", "or", "xor"):
        out = np.zeros(1, np.uint8)
        k = row_reduce(name, uint8, lambda v, k: v)
        interpret(k, [x, np.array([0]), np.array([3]), out], [1], [], [1])
        got[name] = int(out[0])
    assert got == {"and": 0b1000, "or": 0b1111, "xor": 0b1111}


def test_fold_with_varying_bounds_and_effects() -> None:
    b = KernelBuilder("running")
    x, ends, out = b.buffer("x", int64, "r"), b.buffer("e", int64, "r"), b.buffer("out", int64, "w")
    last = b.buffer("last", int64, "w")
    n, m = b.int("n"), b.int("m")
    i = b.axis(n)

    def step(k: Value, total: Value) -> Any:
        new = total + load(x, i * m + k)
        return [new], [Store(out, i * m + k, new)]

    loop = fold_loop(0, load(ends, i), [Value("const", int64, (), 0)], step)
    b.effect(loop)
    b.store(last, i, loop.results[0])
    kernel = b.build()
    verify(kernel)
    data = np.arange(1, 13)
    got, final = np.full(12, -1), np.zeros(3, np.int64)
    interpret(kernel, [data, np.array([4, 0, 2]), got, final], [3, 4], [], [3])
    assert got.tolist() == [1, 3, 6, 10, -1, -1, -1, -1, 9, 19, -1, -1]
    assert final.tolist() == [10, 0, 19]


def test_reduce_inside_a_map_inside_a_grid() -> None:
    b = KernelBuilder("nested")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    p, q, r = b.int("p"), b.int("q"), b.int("r")
    i = b.axis(p)

    def column(j: Value) -> list[Store | Atomic | Loop]:
        (total,) = reduce_loop("add", 0, r - j, lambda k: load(x, (i * q + j) * r + k))
        return [Store(out, i * q + j, total)]

    b.effect(map_loop(0, q, column))
    kernel = b.build()
    verify(kernel)
    data = np.random.default_rng(5).standard_normal((4, 70, 90)).astype(np.float32)
    got = np.zeros(280, np.float32)
    interpret(kernel, [data.ravel(), got], [4, 70, 90], [], [4])
    wanted = [
        canonical_sum(list(data[i, j, : 90 - j]), np.float32(0), np.add)
        for i in range(4)
        for j in range(70)
    ]
    assert same_bits(got, np.array(wanted, np.float32))


@pytest.mark.parametrize("kind", ["map", "fold", "reduce"])
def test_inner_loop_does_not_run_after_its_outer_loop_ended(kind: str) -> None:
    b = KernelBuilder("ragged")
    ends, out = b.buffer("ends", int64, "r"), b.buffer("out", int64, "rw")
    n = b.int("n")
    i = b.axis(n)

    def inner(j: Value) -> list[Store | Atomic | Loop]:
        place = i * 4 + j
        if kind == "map":
            return [map_loop(0, 2, lambda k: [Atomic("add", out, place, k + 1)])]
        if kind == "fold":
            return [fold_loop(0, 2, [], lambda k: ((), [Atomic("add", out, place, k + 1)]))]
        (total,) = reduce_loop("add", 0, 2, lambda k: load(out, place + n * 0) + k)
        return [Store(out, place, total + 2)]

    b.effect(map_loop(0, load(ends, i), inner))
    kernel = b.build()
    verify(kernel)
    got = np.zeros(9, np.int64)  # the last row would end at 12
    interpret(kernel, [np.array([4, 2, 1]), got], [3], [], [3])
    assert got.tolist() == [3, 3, 3, 3, 3, 3, 0, 0, 3]


def test_grid_may_exceed_a_block_or_have_no_axes() -> None:
    b = KernelBuilder("iota")
    out = b.buffer("out", int64, "w")
    n, m = b.int("n"), b.int("m")
    i, j = b.axis(n), b.axis(m)
    b.store(out, i * m + j, i * 1000000 + j)
    got = np.zeros(300 * 301, np.int64)
    interpret(b.build(), [got], [300, 301], [], [300, 301])
    assert same_bits(got, (np.arange(300)[:, None] * 1000000 + np.arange(301)).ravel())

    b = KernelBuilder("one")
    out = b.buffer("out", float32, "w")
    b.store(out, Value("const", int64, (), 1), b.scalar("c", float32) * 2.0)
    one = np.zeros(2, np.float32)
    interpret(b.build(), [one], [], [0.1], [])
    assert one.tolist() == [0, np.float32(0.1) * 2]


# --- the backend ----------------------------------------------------------------------------------


def test_backend_computes_in_place_at_offsets() -> None:
    backend = ReferenceBackend()
    handle = backend.allocate(64)
    assert backend.host_address(handle, 0) % 64 == 0  # type: ignore[operator]
    assert handle.nbytes == 64
    backend.copy_in(handle, 8, memoryview(struct.pack("4f", 1, 2, 3, 4)))
    b = KernelBuilder("flip")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, load(x, i * -1) * b.scalar("c", float32))
    program = backend.compile(b.build())
    assert program.source == str(program.kernel)
    backend.launch(
        program, (handle, 20, handle, 32), [4], [10.0], [4]
    )  # x starts at its last element
    target = bytearray(16)
    backend.copy_out(memoryview(target), handle, 32)
    assert struct.unpack("4f", target) == (40, 30, 20, 10)
    backend.bind(program, [4], [4])((handle, 20, handle, 32), [1.0], None)
    backend.copy_out(memoryview(target), handle, 32)
    assert struct.unpack("4f", target) == (4, 3, 2, 1)


def test_where_evaluates_both_branches() -> None:
    f = elementwise(lambda x: where(x < 1.0, x * 2.0, 7.0), float32, float32)
    assert f(np.array([0.5, 1.5, math.nan], np.float32)).tolist() == [1.0, 7.0, 7.0]


def test_buffers_compare_by_identity() -> None:
    assert Buffer("x", float32, "r") != Buffer("x", float32, "r")
