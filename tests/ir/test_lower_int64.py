"""Lowering of 64-bit integers to two 32-bit words each."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import dovetail as dt
import limited
import numpy as np
import pytest
from dovetail.backend import limits
from dovetail.backend.reference import interpret
from dovetail.device_class import Device
from dovetail.dtypes import (
    DType,
    bool_,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from dovetail.engine.programs import get_program
from dovetail.errors import ArgumentError, DeviceError
from dovetail.ir.builder import COMBINE_NAMES, Kernel, KernelBuilder
from dovetail.ir.language import (
    Atomic,
    Value,
    bitcast,
    cast,
    const,
    eq,
    fold_loop,
    load,
    map_loop,
    ne,
    quo,
    reduce_loop,
    rem,
    where,
)
from dovetail.ir.legalize import legalize
from dovetail.ir.parser import parse_kernel
from dovetail.ir.target import Capabilities
from dovetail.ir.verify import find_violation, verify

WORDS = Capabilities(index_bits=32, int64=False)
WIDE = (int64, uint64)
NARROW = (bool_, int8, uint8, int16, uint16, int32, uint32)
EDGES = (0, 1, 2, 3, 7, 0xFFFF, 0x10000, 0x10001, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 1 << 32,
         (1 << 32) + 1, (1 << 33) - 1, (1 << 62) + 12345, (1 << 63) - 1)  # fmt: skip


def host(d: DType) -> np.dtype[Any]:
    assert d.__numpy_dtype__ is not None
    return d.__numpy_dtype__


def edge_values(d: DType) -> np.ndarray:
    """Return numbers near word boundaries, of both signs, and random ones of all sizes."""
    rng = np.random.default_rng(5)
    sizes = [int(n) >> int(k) for n, k in zip(rng.integers(0, 1 << 62, 60) * 2 + 1,
                                             rng.integers(0, 63, 60), strict=True)]  # fmt: skip
    all_ = [*EDGES, *sizes]
    return np.array([n & (1 << 64) - 1 for x in all_ for n in (x, -x)], np.uint64).view(host(d))


def pairs(d: DType) -> tuple[np.ndarray, np.ndarray]:
    x = edge_values(d)
    return np.repeat(x, x.size), np.tile(x, x.size)


def legal(kernel: Kernel) -> Kernel:
    made = legalize(kernel, WORDS)
    verify(made)
    assert not limited.has_int64(made) and made.before is not None
    assert legalize(made, WORDS) is made
    assert str(parse_kernel(str(made))) == str(made)
    return made


def run(kernel: Kernel, arrays: list[np.ndarray], grid: tuple[int, ...]) -> None:
    """Run the kernel in words; its integers are its grid's; `arrays` are modified."""
    made = legal(kernel)
    held = [a.view(np.uint32) if b.dtype is uint32 and a.itemsize == 8 else a
            for a, b in zip(arrays, made.buffers, strict=True)]  # fmt: skip
    interpret(made, held, list(grid), [], grid if made.grid else ())


def computed(
    rule: Callable[..., Value], out: DType, *arrays: np.ndarray, dtypes: tuple[DType, ...]
) -> np.ndarray:
    b = KernelBuilder("k")
    ins = [b.buffer(f"x{k}", d, "r") for k, d in enumerate(dtypes)]
    into = b.buffer("out", out, "w")
    i = b.axis(b.int("n"))
    b.store(into, i, rule(*[load(x, i) for x in ins]))
    kernel, found, expected = b.build(), *(np.zeros(arrays[0].size, host(out)) for _ in "ab")
    run(kernel, [*arrays, found], (arrays[0].size,))
    interpret(kernel, [*arrays, expected], [arrays[0].size], [], (arrays[0].size,))
    assert found.tobytes() == expected.tobytes(), found[found != expected]
    return found


TWO: dict[str, Callable[[Value, Value], Value]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_,
    "or": operator.or_, "xor": operator.xor,
    "lt": operator.lt, "le": operator.le, "eq": eq, "ne": ne,
    "where": lambda a, b: where(a < b, b, a),
}  # fmt: skip


@pytest.mark.parametrize("d", WIDE, ids=lambda d: d.name)
@pytest.mark.parametrize("name", TWO)
def test_binary_operations_equal_numpy(d: DType, name: str) -> None:
    x, y = pairs(d)
    out = bool_ if name in ("lt", "le", "eq", "ne") else d
    found = computed(TWO[name], out, x, y, dtypes=(d, d))
    if name == "mul":
        assert np.array_equal(found, x * y)


@pytest.mark.parametrize("d", WIDE, ids=lambda d: d.name)
@pytest.mark.parametrize("n", [1, 2, 3, 10, 65535, 65536, 1 << 32, (1 << 63) - 1])
def test_operations_with_constants_equal_numpy(d: DType, n: int) -> None:
    x = edge_values(d)
    for rule in (TWO["add"], TWO["mul"], TWO["sub"], quo, rem):
        computed(lambda a, rule=rule: rule(a, const(n, d)), d, x, dtypes=(d,))


@pytest.mark.parametrize("d", WIDE, ids=lambda d: d.name)
@pytest.mark.parametrize("rule", [quo, rem], ids=lambda f: f.__name__)
def test_quotients_equal_numpy(d: DType, rule: Callable[[Value, Value], Value]) -> None:
    """Divisors are not 0, nor -1 for the minimum."""
    x, y = pairs(d)
    y = np.where(y == 0, 1, y)
    if d is int64:
        y = np.where((x == np.iinfo(np.int64).min) & (y == -1), 1, y)
    found = computed(rule, d, x, y, dtypes=(d, d))
    for k in range(0, x.size, 97):
        a, b = int(x[k]), int(y[k])
        q = abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)
        assert found[k] == (q if rule is quo else a - q * b)


@pytest.mark.parametrize("n, loops", [(7, 0), (-7, 0), (65535, 0), (65536, 1), (-(1 << 63), 1)])
def test_division_by_small_constants_needs_no_loop(n: int, loops: int) -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", int64, "r"), b.buffer("out", int64, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, quo(load(x, i), const(n, int64)))
    assert str(legal(b.build())).count("fold") == loops
    computed(lambda a: rem(a, const(n, int64)), int64, edge_values(int64), dtypes=(int64,))


@pytest.mark.parametrize("d", WIDE, ids=lambda d: d.name)
def test_shifts_equal_numpy(d: DType) -> None:
    x = edge_values(d)
    for n in (0, 1, 31, 32, 33, 63):
        computed(lambda a, n=n: (a << n) ^ (a >> n), d, x, dtypes=(d,))
    amounts = np.arange(64).astype(host(d))
    x, amounts = np.repeat(x, 64), np.tile(amounts, x.size)
    computed(lambda a, n: a << n, d, x, amounts, dtypes=(d, d))
    computed(lambda a, n: a >> n, d, x, amounts, dtypes=(d, d))


def test_unary_operations_equal_numpy() -> None:
    computed(lambda a: -a, int64, edge_values(int64), dtypes=(int64,))
    for d, other in (WIDE, WIDE[::-1]):
        computed(lambda a: ~a, d, edge_values(d), dtypes=(d,))
        computed(lambda a, other=other: bitcast(a, other), other, edge_values(d), dtypes=(d,))


@pytest.mark.parametrize("d", WIDE, ids=lambda d: d.name)
@pytest.mark.parametrize("other", (*NARROW, *WIDE), ids=lambda d: d.name)
def test_casts_of_integers_equal_numpy(d: DType, other: DType) -> None:
    computed(lambda a: cast(a, other), other, edge_values(d), dtypes=(d,))
    given = edge_values(d).astype(host(other))
    computed(lambda a: cast(a, d), d, given, dtypes=(other,))


@pytest.mark.parametrize("d", WIDE, ids=lambda d: d.name)
@pytest.mark.parametrize("f", (float32, float64, dt.float16), ids=lambda d: d.name)
def test_casts_to_floats_are_rounded_once(d: DType, f: DType) -> None:
    """Half way between two float32, and next to it, at every size."""
    halves = [(1 << k) + (1 << k - 24) * odd + more
              for k in range(24, 63) for odd in (1, 3) for more in (-1, 0, 1)]  # fmt: skip
    x = np.concatenate([edge_values(d), np.array([*halves, *(-n for n in halves)]).astype(host(d))])
    found = computed(lambda a: cast(a, f), f, x, dtypes=(d,))
    if f is float32:
        assert np.array_equal(found, x.astype(np.float32))


@pytest.mark.parametrize("d", WIDE, ids=lambda d: d.name)
@pytest.mark.parametrize("f", (float32, float64), ids=lambda d: d.name)
def test_casts_from_floats_truncate(d: DType, f: DType) -> None:
    rng = np.random.default_rng(1)
    x = np.ldexp(rng.uniform(1, 2, 2000), rng.integers(-3, 63, 2000)).astype(host(f))
    x = np.concatenate([x, np.array([0.0, -0.0, 0.5, 1e-45, 4294967296, 4294967295.5], host(f))])
    x = x[x < 2.0**63]
    computed(lambda a: cast(a, d), d, x if d is uint64 else np.concatenate([x, -x]), dtypes=(f,))


def test_bitcasts_of_float64_keep_bits() -> None:
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << 63, 3000, np.uint64) * 2 + rng.integers(0, 2, 3000, np.uint64)
    edges = [0.0, 5e-324, 2.2e-308, 2.0**-1022, np.nextafter(2.0**-1022, 0), 1.0, 2.0,
             np.nextafter(1, 0), np.finfo(float).max, np.inf, 1e300, 1e-300]  # fmt: skip
    bits = np.concatenate([bits, np.array(edges).view(np.uint64), -np.array(edges)
                           .view(np.int64).view(np.uint64)])  # fmt: skip
    x = bits.view(np.float64)
    x = np.concatenate([x[~np.isnan(x)], -np.array(edges), rng.uniform(size=500) * 1e-308])
    computed(lambda a: bitcast(a, int64), int64, x, dtypes=(float64,))
    computed(lambda a: bitcast(a, float64), float64, x.view(np.int64), dtypes=(int64,))
    found = np.zeros(2, np.int64)
    b = KernelBuilder("nan")
    a, out = b.buffer("a", float64, "r"), b.buffer("out", int64, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, bitcast(load(a, i), int64))
    run(b.build(), [np.array([np.nan, -np.nan]), found], (2,))
    assert np.isnan(found.view(np.float64)).all()
    assert np.signbit(found.view(np.float64)).tolist() == [False, True]


# --- memory, numbers, loops


def test_words_in_memory_equal_the_64_bit_number() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", int64, "r"), b.buffer("out", int64, "rw")
    i, c = b.axis(b.int("n")), b.scalar("c", int64)
    b.scalar("c_high", float32)
    b.store(out, i, load(x, i, i < 3) + load(out, i) * c, i < 4)
    kernel = b.build()
    made = legal(kernel)
    assert [(n, d.name) for n, d in made.scalars] == [
        ("c", "uint32"), ("c_high_", "uint32"), ("c_high", "float32"),
    ]  # fmt: skip
    assert [(y.dtype, y.access) for y in made.buffers] == [(uint32, "r"), (uint32, "rw")]
    assert made.before is not None and made.before.scalars == kernel.scalars
    data, found = np.array([5, -6, 1 << 40, 8, 9]), np.array([1, 1, -1, 2, 3])
    interpret(made, [data.view("u4"), found.view("u4")], [5], [0xFFFFFFFD, 0xFFFFFFFF, 1.0], [5])
    assert found.tolist() == [5 - 3, -6 - 3, (1 << 40) + 3, -6, 3]


def reduced(name: str, of: DType, d: DType) -> Kernel:
    """Build a kernel that reduces rows of `of`; the last result, a `d`, is stored."""
    b = KernelBuilder("k")
    x, out = b.buffer("x", of, "r"), b.buffer("out", d, "w")
    i, n = b.axis(b.int("m")), b.int("n")

    def value(k: Value) -> Value | tuple[Value, ...]:
        found = load(x, i * n + k)
        return (found, cast(k, d)) if name in ("argmax", "argmin") else found

    b.store(out, i, reduce_loop(name, 0, n, value)[-1])
    return b.build()


@pytest.mark.parametrize("d", WIDE, ids=lambda d: d.name)
@pytest.mark.parametrize("name", COMBINE_NAMES)
def test_reductions_equal_numpy(name: str, d: DType) -> None:
    """Of 64-bit integers, and of float32 with 64-bit positions."""
    for of in (d, float32) if name in ("argmax", "argmin") else (d,):
        kernel = reduced(name, of, d)
        made = legal(kernel)
        assert f"reduce {name}_of_" in str(made)
        data = np.random.default_rng(2).permutation(np.tile(edge_values(d), 40)).astype(host(of))
        data = data[: data.size // 3 * 3]
        got, expected = np.zeros(3, host(d)), np.zeros(3, host(d))
        held = [data.view("u4") if data.itemsize == 8 else data, got.view("u4")]
        interpret(made, held, [3, data.size // 3], [], [3])
        interpret(kernel, [data, expected], [3, data.size // 3], [], [3])
        assert got.tobytes() == expected.tobytes()


def test_reduction_of_several_dtypes_at_once() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", int64, "r"), b.buffer("out", int64, "w")
    total = b.buffer("total", float32, "w")
    n = b.int("n")
    i = b.axis(const(1, int64))
    a, c = reduce_loop("add", 0, n, lambda k: (load(x, k), cast(load(x, k), float32) * 0.1))
    b.store(out, i, a)
    b.store(total, i, c)
    kernel = b.build()
    assert "reduce add_of_i64_f32" in str(legal(kernel))
    data = edge_values(int64)
    both = [(np.zeros(1, "i8"), np.zeros(1, "f4")) for _ in range(2)]
    interpret(legal(kernel), [data.view("u4"), both[0][0].view("u4"), both[0][1]], [data.size],
              [], [1])  # fmt: skip
    interpret(kernel, [data, *both[1]], [data.size], [], [1])
    assert [a.tobytes() for a in both[0]] == [a.tobytes() for a in both[1]]


def test_combine_names_without_dtypes_are_rejected() -> None:
    text = """kernel k(x: r u32, out: w u32; n; ) grid(n) {
      reduce add_of_{} k0 in i64(0)..n -> r0: u32, r1: u32 {{
        v0: u32 = load x[k0]
        yield v0, v0
      }}
      store out[i0] = r0
    }}""".replace("grid(n) {", "grid(n) {{")
    assert find_violation(parse_kernel(text.format("i64"))) is None
    for wrong in ("i65", "i32", "i64_i64", "f64"):
        assert f"there is no combine add_of_{wrong}" in str(
            find_violation(parse_kernel(text.format(wrong)))
        )


def test_folds_carry_both_words() -> None:
    b = KernelBuilder("k")
    x, out, n = b.buffer("x", int64, "r"), b.buffer("out", int64, "w"), b.int("n")
    i = b.axis(n)

    def step(k: Value, a: Value, c: Value) -> list[Value]:
        return [a * 3 + load(x, k) * quo(i, k + 1), c + cast(a, float32)]

    loop = fold_loop(0, n, (const(1, int64), const(1, float32)), step)
    b.store(out, i, loop.results[0] + cast(loop.results[1], int64))
    kernel, data = b.build(), edge_values(int64)[:20]
    data %= 1000
    found, expected = np.zeros(20, "i8"), np.zeros(20, "i8")
    run(kernel, [data, found], (20,))
    interpret(kernel, [data, expected], [20], [], [20])
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("d", WIDE, ids=lambda d: d.name)
@pytest.mark.parametrize("op", ["add", "min", "max", "and", "or"])
def test_atomics_on_words(op: str, d: DType) -> None:
    """Bitwise ones are atomics of words; a carry serializes the points."""
    b = KernelBuilder("k")
    x, out = b.buffer("x", d, "r"), b.buffer("out", d, "rw")
    m, n = b.int("m"), b.int("n")
    i, j = b.axis(m), b.axis(n)
    value = load(x, i * n + j)
    b.effect(map_loop(0, 2, lambda k: [Atomic(op, out, rem(j, 3) + k, value, i < 4)]))
    kernel = b.build()
    made = legal(kernel)
    assert (made.grid == ()) == (op in ("add", "min", "max"))
    data = edge_values(d)[:150].reshape(5, 30)
    found, expected = (np.array([0, 1, 1 << 40, 3]).astype(host(d)) for _ in "ab")
    run(kernel, [data.ravel().copy(), found], (5, 30))
    interpret(kernel, [data.ravel().copy(), expected], [5, 30], [], [5, 30])
    assert found.tolist() == expected.tolist()


def test_kernels_without_64_bit_integers_are_unchanged() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, load(x, i) + 1.0)
    made = legalize(b.build(), WORDS)
    assert made.before is None and made.index is int32
    assert str(made) == str(legalize(b.build(), replace(WORDS, int64=True)))


# --- devices


def test_device_without_64_bit_integers_needs_32_bit_indices() -> None:
    with pytest.raises(ArgumentError, match="index_bits must be 32 if int64 is False"):
        Capabilities(int64=False)


def where_it_is_known(device: Device, kernel: Kernel, ints: list[int]) -> None:
    assert device.opened is not None
    limits.bind_within_limits(
        device.opened.backend, get_program(device.opened, kernel), ints, ints[:1]
    )


def test_launch_must_be_able_to_index_two_words_per_element() -> None:
    """By an index that the kernel computes, and by one in memory that it compares; not by
    others.
    """

    def kernel(place: Callable[[Value, Value, Value], Value], tested: bool) -> Kernel:
        b = KernelBuilder("k")
        x, out = b.buffer("x", int64, "r"), b.buffer("out", int32, "w")
        n, m = b.int("n"), b.int("m")
        i = b.axis(n)
        at = place(load(x, i), i, m)
        fine = (const(0, int64) <= at) & (at < m) if tested else None
        b.store(out, i, cast(load(x, at, fine), int32))
        return b.build()

    device, few = limited.Words.device(), [100, 1 << 29]
    many = [100, (1 << 30) + 5]
    for place, tested in (((lambda _, i, m: i + m), False), ((lambda held, i, m: held), True)):
        made = kernel(place, tested)
        where_it_is_known(device, made, few)
        with pytest.raises(DeviceError, match="has 32-bit indices"):
            where_it_is_known(device, made, many)
    where_it_is_known(device, kernel(lambda held, i, m: (held + i) >> 1, False), many)
