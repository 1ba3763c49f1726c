"""Legalization: the same bits from kernels that need fewer capabilities."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from dovetail import dtypes as dt
from dovetail.backend import reference
from dovetail.backend.reference import interpret
from dovetail.dtypes import DType, bfloat16, float16, float32, float64, int32, int64, uint16
from dovetail.errors import DTypeError
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.language import (
    Atomic,
    Loop,
    Store,
    Value,
    cast,
    fma,
    fold_loop,
    load,
    reduce_loop,
    sqrt,
    walk,
    where,
)
from dovetail.ir.legalize import PASSES, legalize
from dovetail.ir.target import Capabilities
from dovetail.ir.verify import verify

NATIVE = Capabilities(native_halves=frozenset((float16, bfloat16)))
PLAIN = Capabilities()
HALVES = (float16, bfloat16)


def every_op(d: DType) -> Kernel:
    """Build a kernel with what passes look for: sums, quotients, roots, an fma and an atomic."""
    b = KernelBuilder("every_op")
    x, out, total = b.buffer("x", d, "r"), b.buffer("out", d, "w"), b.buffer("total", d, "rw")
    n = b.int("n")
    i = b.axis(n)
    value = load(x, i)
    summed = reduce_loop("add", 0, n, lambda k: load(x, k))[0]
    if d.kind == "f":
        summed = fma(sqrt(summed), value, value / summed)
    b.store(out, i, summed + value * value)
    if d.kind in "iu":
        b.effect(Atomic("add", total, i, value))
    kernel = b.build()
    verify(kernel)
    return kernel


EVERY_OP = [every_op(d) for d in (float32, float64, int32, int64, dt.int8)]


def convert(*chain: DType) -> Kernel:
    """Build a kernel that loads the first dtype, casts through the others, and stores the last."""
    b = KernelBuilder("convert")
    x, out = b.buffer("x", chain[0], "r"), b.buffer("out", chain[-1], "w")
    i = b.axis(b.int("n"))
    value = load(x, i)
    for d in chain[1:]:
        value = cast(value, d)
    b.store(out, i, value)
    kernel = b.build()
    verify(kernel)
    return kernel


def storage_dtype(d: DType) -> Any:
    """Return the dtype of an array with the bits of `d`."""
    return np.dtype(np.uint16) if d in HALVES else d.__numpy_dtype__


def run(kernel: Kernel, x: Any) -> Any:
    verify(kernel)
    out = np.zeros(x.size, storage_dtype(kernel.buffers[1].dtype))
    interpret(kernel, [x, out], [x.size], [], [x.size])
    return out


def dtypes_of(kernel: Kernel) -> set[DType]:
    found = {b.dtype for b in kernel.buffers}
    for s in walk(kernel.body):
        if isinstance(s, Value):
            found |= {s.dtype, *(a.dtype for a in s.args)}
    return found


def hard_float32() -> Any:
    rng = np.random.default_rng(11)
    every = np.arange(65536, dtype=np.uint32)
    high = every << 16
    # halfway between two bfloat16 values and adjacent; the same for float16 through its own values
    beside = np.concatenate([high + d for d in (0, 0x7FFF, 0x8000, 0x8001)])
    half = every.astype(np.uint16).view(np.float16).astype(np.float32).view(np.uint32)
    beside16 = np.concatenate([half + d for d in (0, 0xFFF, 0x1000, 0x1001)])
    middle = (rng.integers(0, 2**10, 20000) + 0.5) * 2.0**-24  # halfway between float16 denormals
    middle32 = middle.astype(np.float32).view(np.uint32)
    wild = rng.integers(0, 2**32, 200000, np.uint32)
    parts = [beside, beside16, middle32, middle32 + 1, middle32 - 1, wild]
    return np.concatenate(parts).astype(np.uint32).view(np.float32)


def nan_of(bits: Any, d: DType) -> Any:
    return (bits & 0x7FFF) > (0x7C00 if d is float16 else 0x7F80)


def assert_same_halves(got: Any, wanted: Any, d: DType) -> None:
    nan = nan_of(wanted, d)
    assert (got == wanted)[~nan].all()
    assert nan_of(got, d)[nan].all()
    quiet = 0x200 if d is float16 else 0x40
    assert (got[nan] & quiet == quiet).all()
    assert ((got ^ wanted)[nan] & 0x8000 == 0).all()


@pytest.mark.parametrize("d", HALVES)
def test_float32_to_half_in_integers_has_the_same_bits(d: DType) -> None:
    x = hard_float32()
    kernel = convert(float32, d)
    soft = legalize(kernel, PLAIN)
    assert dtypes_of(soft).isdisjoint(HALVES)
    assert soft.buffers[1].dtype is uint16
    wanted = run(kernel, x)
    if d is float16:
        with np.errstate(over="ignore"):
            assert (wanted == x.astype(np.float16).view(np.uint16))[~np.isnan(x)].all()
    assert_same_halves(run(soft, x), wanted, d)


@pytest.mark.parametrize("d", HALVES)
def test_every_half_to_float32_in_integers_has_the_same_bits(d: DType) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    kernel = convert(d, float32)
    got, wanted = run(legalize(kernel, PLAIN), bits), run(kernel, bits)
    nan = np.isnan(wanted)
    assert (got.view(np.uint32) == wanted.view(np.uint32))[~nan].all()
    assert np.isnan(got)[nan].all()
    assert (np.signbit(got) == np.signbit(wanted)).all()
    if d is float16:
        assert (got == bits.view(np.float16).astype(np.float32))[~nan].all()


@pytest.mark.parametrize("d", HALVES)
@pytest.mark.parametrize("capabilities", [NATIVE, PLAIN], ids=["native", "plain"])
def test_float64_to_half_rounds_once(d: DType, capabilities: Capabilities) -> None:
    with np.errstate(invalid="ignore"):  # signalling NaNs
        near = hard_float32().astype(np.float64)
    x = np.concatenate([near, near * (1 + 2.0**-50), near * (1 - 2.0**-50), near * 1e-30])
    x = np.concatenate([x, [1e300, -1e300, 5e-324, -1e-60, 0.0, -0.0, np.inf, -np.inf, np.nan]])
    kernel = convert(float64, d)
    wanted = run(kernel, x)
    if d is float16:
        with np.errstate(over="ignore", under="ignore"):
            assert (wanted == x.astype(np.float16).view(np.uint16))[~np.isnan(x)].all()
    changed = legalize(kernel, capabilities)
    assert changed is not kernel
    assert_same_halves(run(changed, x), wanted, d)


def test_double_rounding_differs_from_direct_rounding() -> None:
    x = np.array([1 + 2.0**-11 + 2.0**-40])
    assert run(legalize(convert(float64, float16), PLAIN), x)[0] == 0x3C01
    assert run(convert(float64, float32, float16), x)[0] == 0x3C00


@pytest.mark.parametrize("d", HALVES)
@pytest.mark.parametrize("other", [dt.bool_, dt.uint8, int32, int64, dt.uint64, float64])
def test_casts_between_halves_and_other_dtypes_have_the_same_bits(d: DType, other: DType) -> None:
    bits = np.array([0, 0x8000, 0x3C00, 0x4200, 0x5640, 0x3F80, 0x4140, 1], np.uint16)
    there = convert(d, other)
    assert (run(legalize(there, PLAIN), bits) == run(there, bits)).all()
    numbers = np.array([0, 1, 2, 3, 77, 200, 255, 129]).astype(storage_dtype(other))
    if other.itemsize > 1:
        numbers = np.concatenate(
            [numbers, np.array([65519, 65520, 2**24 + 1, 2**31 - 1], storage_dtype(other))]
        )
    back = convert(other, d)
    assert (run(legalize(back, PLAIN), numbers) == run(back, numbers)).all()
    assert (run(legalize(back, NATIVE), numbers) == run(back, numbers)).all()


def test_casts_between_float16_and_bfloat16_have_the_same_bits() -> None:
    bits = np.arange(65536, dtype=np.uint16)
    for a, b in (HALVES, HALVES[::-1]):
        kernel = convert(a, b)
        assert_same_halves(run(legalize(kernel, PLAIN), bits), run(kernel, bits), b)


def test_only_the_missing_half_becomes_integers() -> None:
    kernel = convert(float16, bfloat16)
    some = legalize(kernel, Capabilities(native_halves=frozenset((float16,))))
    assert [b.dtype for b in some.buffers] == [float16, uint16]
    assert bfloat16 not in dtypes_of(some)


def softmax_like() -> Kernel:
    """Build a kernel with every kind of loop, rounding to float16 after each op."""
    b = KernelBuilder("rows")
    x, out = b.buffer("x", float16, "r"), b.buffer("out", float16, "w")
    n = b.int("n")
    i = b.axis(n)

    def half(v: Value) -> Value:
        return cast(cast(v, float16), float32)

    def at(k: Value) -> Value:
        return cast(load(x, i * 8 + k), float32)

    (top,) = reduce_loop("max", 0, 8, at)
    (total,) = reduce_loop("add", 0, 8, lambda k: half(at(k) - top))

    def step(k: Value, s: Value) -> Any:
        s = half(s + half(at(k) / total))
        return [s], [Store(out, i * 8 + k, cast(s, float16))]

    b.effect(fold_loop(0, 8, [Value("const", float32, (), 0.0)], step))
    return b.build()


def test_legalized_loops_keep_their_bits() -> None:
    kernel = softmax_like()
    verify(kernel)
    x = np.random.default_rng(4).standard_normal(800).astype(np.float16)
    wanted = np.zeros(800, np.float16)
    interpret(kernel, [x, wanted], [100], [], [100])
    soft = legalize(kernel, Capabilities(exact_division=False))
    verify(soft)
    assert float16 not in dtypes_of(soft)
    assert float64 in dtypes_of(soft)
    got = np.zeros(800, np.uint16)
    interpret(soft, [x.view(np.uint16), got], [100], [], [100])
    assert (got == wanted.view(np.uint16)).all()
    assert len(set(wanted.tolist())) > 200


def divide() -> Kernel:
    b = KernelBuilder("divide")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    y = b.buffer("y", float32, "r")
    i = b.axis(b.int("n"))
    b.store(out, i, load(x, i) / load(y, i))
    return b.build()


def root() -> Kernel:
    b = KernelBuilder("root")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, sqrt(load(x, i)))
    return b.build()


THROUGH = {
    "float64": Capabilities(exact_division=False),
    "integers": Capabilities(exact_division=False, float64=False),
}


def imprecise_sqrt(x: Any) -> Any:
    """Return the square root of a device with an error of up to 3 units in the last place."""
    y = np.sqrt(x)
    way = np.where(np.arange(y.size).reshape(y.shape) % 2, np.inf, -np.inf).astype(np.float32)
    for _ in range(3):
        y = np.nextafter(y, way)
    return y.astype(x.dtype)


@pytest.mark.parametrize("way", THROUGH)
def test_emulated_division_keeps_its_bits(way: str) -> None:
    changed = legalize(divide(), THROUGH[way])
    verify(changed)
    assert ("div", float32) not in {
        (s.op, s.dtype) for s in walk(changed.body) if isinstance(s, Value)
    }
    assert (float64 in dtypes_of(changed)) == (way == "float64")
    rng = np.random.default_rng(9)
    special = np.array(
        [0.0, 1.0, 3.0, 1e-45, 1.1754944e-38, 3.4028235e38, np.inf, np.nan], np.float32
    )
    special = np.concatenate([special, -special])
    a, b = (x.ravel() for x in np.meshgrid(special, special))
    wild = rng.integers(0, 2**32, (2, 200000), np.uint32).view(np.float32)
    near = (1 + rng.integers(0, 2**23, (2, 100000)) * 2.0**-23).astype(np.float32)
    small = near[0] * np.float32(2.0**-120), near[1] * np.float32(2.0**20)  # quotients are denormal
    ties = np.arange(1, 5001, dtype=np.uint32).view(np.float32)  # over 8: denormals half way
    x = np.concatenate([a, wild[0], near[0], small[0], ties])
    y = np.concatenate([b, wild[1], near[1], small[1], np.full(5000, 8, np.float32)])
    got = np.zeros_like(x)
    interpret(changed, [x, got, y], [x.size], [], [x.size])
    with np.errstate(all="ignore"):
        wanted = x / y
    assert np.array_equal(got, wanted, equal_nan=True)
    numbers = ~np.isnan(wanted)
    assert (np.signbit(got) == np.signbit(wanted))[numbers].all()
    assert (np.abs(wanted[numbers]) < 1.1754944e-38).sum() > 50000


@pytest.mark.parametrize("way", THROUGH)
def test_emulated_square_roots_keep_their_bits(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = legalize(root(), THROUGH[way])
    assert (float64 in dtypes_of(changed)) == (way == "float64")
    x = np.concatenate([hard_float32(), np.abs(hard_float32())])
    squares = np.arange(1, 4097, dtype=np.float32) ** 2
    parts = [x, squares, np.nextafter(squares, np.float32(0)), np.array([0, np.inf], np.float32)]
    x = np.concatenate([*parts, np.arange(1, 5000, dtype=np.uint32).view(np.float32)])
    with np.errstate(invalid="ignore"):
        wanted = np.sqrt(x)
    if way == "integers":
        monkeypatch.setitem(reference._COMPUTE, "sqrt", imprecise_sqrt)
        assert not np.array_equal(run(root(), x), wanted, equal_nan=True)
    got = run(changed, x)
    assert np.array_equal(got, wanted, equal_nan=True)
    assert (np.signbit(got) == np.signbit(wanted))[~np.isnan(wanted)].all()


def test_supported_kernel_is_returned_unchanged() -> None:
    for chain in ((float32, float64), (int32, float32)):
        kernel = convert(*chain)
        assert legalize(kernel, PLAIN) is kernel
    kernel = convert(float16, float32)
    assert legalize(kernel, NATIVE) is kernel


def test_float64_raises_without_the_capability() -> None:
    weak = Capabilities(float64=False)
    with pytest.raises(DTypeError, match=r"convert computes in float64.*use float32"):
        legalize(convert(float32, float64, float32), weak)
    with pytest.raises(DTypeError, match="float64"):
        legalize(convert(float64, float32), weak)
    kernel = convert(float32, int32)
    assert legalize(kernel, weak) is kernel


def test_buffers_of_unsupported_dtypes_raise() -> None:
    few = Capabilities(dtypes=frozenset((float32, int32)))
    with pytest.raises(DTypeError, match=r"no int64 \(buffer out .*it has float32, int32"):
        legalize(convert(float32, int64), few)


def test_conditions_and_where_keep_their_bits() -> None:
    b = KernelBuilder("padded")
    x, out = b.buffer("x", bfloat16, "r"), b.buffer("out", bfloat16, "w")
    n, m = b.int("n"), b.int("m")
    i = b.axis(n)
    v = where(i < 2, 9.0, cast(load(x, i, i < m), float32))
    b.store(out, i, cast(v, bfloat16), (i < 5))
    soft = legalize(b.build(), PLAIN)
    verify(soft)
    got = np.full(6, 7, np.uint16)
    interpret(soft, [np.full(4, 0x3F80, np.uint16), got], [6, 4], [], [6])
    assert got.tolist() == [0x4110, 0x4110, 0x3F80, 0x3F80, 0, 7]


@pytest.mark.timing
def test_legalization_is_fast() -> None:
    kernel = softmax_like()
    assert any(isinstance(s, Loop) for s in walk(kernel.body))
    taken = []
    for _ in range(20):
        start = time.perf_counter()
        legalize(kernel, PLAIN)
        taken.append(time.perf_counter() - start)
    assert min(taken) < 5e-3  # 0.2 ms on an idle machine


@pytest.mark.parametrize(
    "limits",
    [
        {}, {"exact_division": False}, {"fma": False}, {"fma64": False}, {"denormals": False},
        {"algebra": "zeros"}, {"algebra": "free"}, {"contraction": True}, {"max_grid": (64, 64)},
        {"offset_alignment": 64}, {"offset_params": True}, {"atomic_bits": 32},
        {"storage_bits": 32, "offset_alignment": 4}, {"index_bits": 32},
        {"index_bits": 32, "int64": False},
        {"reductions": False}, {"nan": False}, {"max_iterations": 1 << 13}, {"float64": False},
    ],
)  # fmt: skip
def test_pass_that_does_not_apply_changes_no_kernel(limits: dict[str, Any]) -> None:
    capabilities = Capabilities(**limits)
    skipped = [p for p in PASSES for k in EVERY_OP if not p.applies(k, capabilities)]
    assert skipped
    for change in PASSES:
        for kernel in EVERY_OP:
            if not change.applies(kernel, capabilities):
                assert change.run(kernel, capabilities) is kernel
