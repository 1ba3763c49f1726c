"""Kernels for devices with deviating float arithmetic: rewritten, or run on a fallback device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import dovetail as dt
import float_devices as devices
import numpy as np
import pytest
from dovetail.backend.reference import fma as exact_fma
from dovetail.backend.reference import interpret
from dovetail.dtypes import (
    DType,
    bfloat16,
    bool_,
    complex64,
    float16,
    float32,
    float64,
    int32,
    uint32,
)
from dovetail.errors import CompileError
from dovetail.ir.analysis import values
from dovetail.ir.builder import Kernel, KernelBuilder, combine
from dovetail.ir.floats import find_missing_feature
from dovetail.ir.language import (
    Loop,
    Value,
    bitcast,
    cast,
    eq,
    floor,
    fma,
    load,
    ne,
    reduce_loop,
    sqrt,
    where,
)
from dovetail.ir.legalize import legalize
from dovetail.ir.target import Capabilities
from dovetail.ir.verify import verify
from dovetail.plugins.fallback_device import open_with_companion
from partial_devices import installed

CONTRACTS = Capabilities(contraction=True)
ALL = Capabilities(native_halves=frozenset((float16, bfloat16)))


def kernel(rule: Callable[..., Value], d: DType = float32, out: DType | None = None) -> Kernel:
    b = KernelBuilder("k")
    ins = [b.buffer(f"x{k}", d, "r") for k in range(3)]
    into = b.buffer("out", out or d, "w")
    i = b.axis(b.int("n"))
    b.store(into, i, rule(*[load(x, i) for x in ins]))
    return b.build()


def floats(seed: int, n: int = 4000) -> np.ndarray:
    """Return float32 of any bits, of few bits near 1 (whose sums cancel), zeros and infinities."""
    rng = np.random.default_rng(seed)
    any_ = rng.integers(0, 1 << 32, n, dtype=np.uint32).view(np.float32)
    near = np.ldexp(rng.integers(-9, 10, n), rng.integers(-30, 31, n)).astype(np.float32)
    tiny = rng.integers(0, 1 << 25, n, dtype=np.uint32).view(np.float32)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38, 1.0], np.float32)
    return rng.permutation(np.concatenate([any_, near, tiny, np.tile(edges, n // 9)]))


LACKS = {
    "float64": Capabilities(fma=False),
    "integers": Capabilities(fma=False, float64=False),
    "words": Capabilities(fma=False, float64=False, int64=False, index_bits=32),
}


@pytest.mark.parametrize("by", LACKS)
def test_emulated_fma_is_exact(by: str) -> None:
    legal = legalize(kernel(fma), LACKS[by])
    verify(legal)
    ops = {v.op for v in values(legal.body) if v.dtype is float32}
    # float arithmetic would need guards on a device that flushes subnormals
    assert "fma" not in ops and ops.isdisjoint(("add", "mul") if by != "float64" else ())
    a, b, c = (floats(k) for k in range(3))
    with np.errstate(all="ignore"):
        product = (a.astype("f8") * b.astype("f8")).astype("f4")
        b[:3000] = b[3000:6000]
        c[: a.size // 3] = -product[: a.size // 3]  # the remainder is the product's error
        expected = exact_fma(a, b, c)
    found = np.zeros_like(a)
    interpret(legal, [a, b, c, found], [a.size], [], [a.size])
    same = (found.view("u4") == expected.view("u4")) | (np.isnan(found) & np.isnan(expected))
    wrong = np.flatnonzero(~same)[:3]
    assert not wrong.size, [x[wrong] for x in (a, b, c, found, expected)]
    assert (np.abs(expected) < 1e-38).sum() > 100


def doubles(seed: int, n: int = 4000) -> np.ndarray:
    """Return float64 of any bits, whose sums cancel, whose products are tiny or huge, and edges."""
    rng = np.random.default_rng(seed)
    parts = [rng.integers(0, 1 << 64, n, dtype=np.uint64).view("f8")]
    for low, high in ((-80, -20), (-600, -530), (400, 470)):
        parts.append(
            np.ldexp(rng.integers(-1 << 53, 1 << 53, n).astype("f8"), rng.integers(low, high, n))
        )
    parts.append(rng.integers(0, 1 << 54, n, dtype=np.uint64).view("f8"))
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1.7e308, 1.0, 2.2e-308, -1.0]
    return rng.permutation(np.concatenate([*parts, np.tile(edges, n // 11)]))


def test_emulated_fma_of_float64_is_exact() -> None:
    legal = legalize(kernel(fma, float64), Capabilities(fma64=False))
    verify(legal)
    assert not [v for v in values(legal.body) if v.op == "fma"]
    rng = np.random.default_rng(9)
    a, b, c = (doubles(k) for k in range(3))
    third = a.size // 3
    with np.errstate(all="ignore"):
        product = a * b
        c[:third] = -product[:third]  # the remainder is the product's error
        exponents = np.frexp(product[third : 2 * third])[1] - rng.integers(-60, 120, third)
        c[third : 2 * third] = np.ldexp(rng.standard_normal(third), exponents)
        expected = exact_fma(a, b, c)
    found = np.zeros_like(a)
    interpret(legal, [a, b, c, found], [a.size], [], [a.size])
    same = (found.view("u8") == expected.view("u8")) | (np.isnan(found) & np.isnan(expected))
    wrong = np.flatnonzero(~same)[:3]
    assert not wrong.size, [x[wrong] for x in (a, b, c, found, expected)]
    assert (np.abs(expected) < 2.3e-308).sum() > 1000


def test_fma64_follows_fma_unless_it_is_given() -> None:
    assert Capabilities().has_fma64 and not Capabilities(fma=False).has_fma64
    assert Capabilities(fma=False, fma64=True).has_fma64
    legal = legalize(kernel(fma), Capabilities(fma64=False))
    assert [v.op for v in values(legal.body)].count("fma") == 1  # of float32


# --- products and sums


@pytest.mark.parametrize("d", (float32, float64), ids=lambda d: d.name)
def test_products_reach_sums_through_xor_on_contracting_devices(d: DType) -> None:
    legal = legalize(kernel(lambda a, b, c: a * b + c * 2.0, d), CONTRACTS)
    verify(legal)
    assert legal.ints == ("n", "zero")
    (added,) = (v for v in values(legal.body) if v.op == "add" and v.dtype is d)
    assert [(x.op, x.args[0].op) for x in added.args] == [("bitcast", "xor")] * 2
    rng = np.random.default_rng(1)
    x = [rng.standard_normal(99).astype(str(d.name)) for _ in range(3)]
    found = np.zeros_like(x[0])
    interpret(legal, [*x, found], [99, 0], [], [99])
    assert found.tobytes() == (x[0] * x[1] + x[2] * 2).tobytes()


@pytest.mark.parametrize(
    "rule",
    [
        lambda a, b, c: a - b * c, lambda a, b, c: -(a * b) - c,
        lambda a, b, c: where(a < b, a * b, c) + c, lambda a, b, c: fma(a, b, a * c),
    ],
)  # fmt: skip
def test_product_that_may_become_part_of_an_fma_passes_through_xor(
    rule: Callable[..., Value],
) -> None:
    legal = legalize(kernel(rule), CONTRACTS)
    assert [v.op for v in values(legal.body)].count("xor") == 1


def test_products_that_no_sum_uses_are_unchanged() -> None:
    legal = legalize(kernel(lambda a, b, c: sqrt(a * b) / (b * c) * c), CONTRACTS)
    assert "xor" not in [v.op for v in values(legal.body)]


def test_sums_of_products_in_reductions_pass_through_xor() -> None:
    b = KernelBuilder("k")
    x, out, n = b.buffer("x", float32, "r"), b.buffer("out", float32, "w"), b.int("n")
    i = b.axis(n)
    b.store(out, i, reduce_loop("add", 0, n, lambda k: load(x, k) * load(x, i))[0])
    legal = legalize(b.build(), CONTRACTS)
    verify(legal)
    assert [v.op for v in values(legal.body)].count("xor") == 1
    assert find_missing_feature(legal, CONTRACTS) == ""


@pytest.mark.parametrize("d", (complex64, float32), ids=lambda d: d.name)
def test_products_of_reductions_are_hidden_on_contracting_devices(d: DType) -> None:
    """A sum may follow: of parts of complex numbers, or of the result."""
    b = KernelBuilder("k")
    x, out, n = b.buffer("x", d, "r"), b.buffer("out", d, "w"), b.int("n")
    i = b.axis(n)
    b.store(out, i, reduce_loop("mul", 0, n, lambda k: load(x, k))[0] + load(x, i))
    legal = legalize(b.build(), CONTRACTS)
    verify(legal)
    (loop,) = (s for s in legal.body if isinstance(s, Loop))
    assert loop.combine == ("complex_mul_hidden" if d is complex64 else "mul_hidden")
    rule = combine(loop.combine, tuple(u.dtype for u in loop.update))
    products = [v for v in rule.body if v.op == "mul"]
    bits = {v.args[0] for v in rule.body if v.op == "bitcast" and v.dtype.kind == "i"}
    assert products and bits.issuperset(products)
    data = (
        np.random.default_rng(3)
        .standard_normal(140)
        .astype("f4")
        .view("u8" if d is complex64 else "f4")
    )
    found, expected, n = np.zeros_like(data), np.zeros_like(data), data.size
    interpret(legalize(b.build(), ALL), [data, expected], [n], [], [n])
    interpret(legal, [data, found], [n, 0], [], [n])
    assert found.tobytes() == expected.tobytes() and found.any()


# --- NaN

FINITE = replace(ALL, nan=False)
KEPT = {  # operations, and True for those that see no NaN
    "moved": (kernel(lambda a, b, c: a), True),
    "chosen": (kernel(lambda a, b, c: where(eq(bitcast(a, int32), 3), b, c)), True),
    "from integers": (kernel(lambda a, b, c: cast(a, float32), uint32, float32), True),
    "to integers": (kernel(lambda a, b, c: cast(a, int32), float32, int32), True),
    "to bool": (kernel(lambda a, b, c: cast(a, bool_), float32, bool_), False),
    "a test for NaN": (kernel(lambda a, b, c: ne(a, a), float32, bool_), False),
    "compared": (kernel(lambda a, b, c: a < b, float32, bool_), False),
    "added": (kernel(lambda a, b, c: a + b), False),
    "rounded": (kernel(lambda a, b, c: floor(a)), False),
    "widened": (kernel(lambda a, b, c: cast(a, float64), float32, float64), False),
    "of float64": (kernel(lambda a, b, c: a * b + c, float64), False),
    "of integers": (kernel(lambda a, b, c: a * b + c, int32), True),
}


@pytest.mark.parametrize("name", KEPT)
def test_lacking_names_the_arithmetic_that_a_device_misses(name: str) -> None:
    k, finite = KEPT[name]
    assert find_missing_feature(legalize(k, ALL), ALL) == ""
    assert (find_missing_feature(legalize(k, FINITE), FINITE) == "") == finite


def test_lacking_considers_reductions() -> None:
    b = KernelBuilder("k")
    x, out, n = b.buffer("x", float32, "r"), b.buffer("out", float32, "w"), b.int("n")
    i = b.axis(n)
    b.store(out, i, reduce_loop("max", 0, n, lambda k: load(x, k))[0])
    assert find_missing_feature(legalize(b.build(), FINITE), FINITE)


def test_missing_companion_raises_with_the_reason() -> None:
    info = replace(devices.WithoutNan.info, type="lonely", capabilities=FINITE)
    opened = open_with_companion(dt.device("lonely"), devices.WithoutNan(info), None, {})
    assert opened.backend.accepts(legalize(KEPT["moved"][0], FINITE))
    with pytest.raises(CompileError, match="which needs float arithmetic with infinities and NaN"):
        opened.backend.compile(legalize(KEPT["added"][0], FINITE))


def test_device_that_flushes_needs_no_companion() -> None:
    info = replace(devices.Flushing.info, type="alone", capabilities=replace(ALL, denormals=False))
    backend = devices.Flushing(info)
    opened = open_with_companion(dt.device("alone"), backend, None, {})
    assert opened.backend is backend


def test_copy_to_a_companion_is_explained() -> None:
    """The kernel has an integer that the plan does not know."""
    with installed(devices.ContractsApart) as (device,):
        x = dt.asarray(np.arange(6, dtype="c8").reshape(2, 3) + 1j, device=device)
        y = dt.prod(x * x, axis=1)
        assert "80 bytes copied for it" in str(dt.explain(y))
        assert y.tolist() == dt.prod(x.to("reference") ** 2, axis=1).tolist()
