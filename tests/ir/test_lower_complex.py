"""Lowering of complex values to pairs of floats."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest
from dovetail.backend.reference import interpret
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.language import (
    Value,
    complex_value,
    const,
    eq,
    fma,
    fold_loop,
    imag,
    load,
    ne,
    real,
    reduce_loop,
    where,
)
from dovetail.ir.legalize import legalize
from dovetail.ir.parser import parse_kernel
from dovetail.ir.target import Capabilities
from dovetail.ir.verify import verify

COMPLEX = (dt.complex64, dt.complex128)


def elementwise(d: dt.DType) -> Kernel:
    b = KernelBuilder("k")
    x, y = b.buffer("x", d, "r"), b.buffer("y", d, "r")
    outs = [b.buffer(f"out{i}", d, "w") for i in range(8)]
    same = b.buffer("same", dt.bool, "w")
    i = b.axis(b.int("n"))
    u, v = load(x, i), load(y, i)
    results = [
        u, u + v, u - v, u * v, -u, where(eq(u, v), u, v), fma(u, v, u),
        complex_value(imag(u), real(v)),
    ]  # fmt: skip
    for out, r in zip(outs, results, strict=True):
        b.store(out, i, r)
    b.store(same, i, ne(u, v))
    return b.build()


def host(d: dt.DType) -> np.dtype:
    assert d.__numpy_dtype__ is not None
    return d.__numpy_dtype__


def numbers(d: dt.DType, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.integers(-9, 9, n) + 1j * rng.integers(-9, 9, n)).astype(host(d))


@pytest.mark.parametrize("d", COMPLEX, ids=lambda d: d.name)
def test_lowered_operations_equal_complex_ones(d: dt.DType) -> None:
    kernel = legalize(elementwise(d), Capabilities())
    verify(kernel)
    x, y = numbers(d, 50, 1), numbers(d, 50, 2)
    y[:5] = x[:5]
    outs = [np.zeros(50, host(d)) for _ in range(8)]
    same = np.zeros(50, bool)
    interpret(kernel, [x, y, *outs, same], [50], [], [50])
    wanted = [x, x + y, x - y, x * y, -x, np.where(x == y, x, y), x * y + x, x.imag + 1j * y.real]
    for got, want in zip(outs, wanted, strict=True):
        assert np.array_equal(got, want)
    assert np.array_equal(same, x != y)


@pytest.mark.parametrize("d", COMPLEX, ids=lambda d: d.name)
def test_lowered_kernel_has_no_complex_values(d: dt.DType) -> None:
    legal = str(legalize(elementwise(d), Capabilities()))
    assert "c64" not in legal and "c128" not in legal
    assert ("r u64" in legal) == (d is dt.complex64)  # one word, or two elements
    assert (" mul i0, i64(2)" in legal) == (d is dt.complex128)


def test_kernel_without_complex_values_is_unchanged() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", dt.float32, "r"), b.buffer("out", dt.float32, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, load(x, i) + 1.0)
    kernel = b.build()
    assert legalize(kernel, Capabilities()) is kernel


@pytest.mark.parametrize("d", COMPLEX, ids=lambda d: d.name)
@pytest.mark.parametrize("name", ["add", "mul"])
def test_loops_carry_both_parts(d: dt.DType, name: str) -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", d, "r"), b.buffer("out", d, "w")
    n = b.int("n")
    i = b.axis(const(1, dt.int64))
    total = reduce_loop(name, 0, n, lambda k: load(x, k))[0]

    def step(k: Value, before: Value) -> tuple[Value, ...]:
        return (before + load(x, k) if name == "add" else before * load(x, k),)

    running = fold_loop(0, n, (const(int(name == "mul"), d),), step).results[0]
    b.store(out, i, total)
    b.store(out, i + 1, running)
    kernel = legalize(b.build(), Capabilities())
    verify(kernel)
    values, found = np.exp(1j * np.arange(100)).astype(host(d)), np.zeros(2, host(d))
    interpret(kernel, [values, found], [100], [], [1])
    want = values.sum() if name == "add" else values.prod()
    assert np.allclose(found, want, rtol=1e-4)


@pytest.mark.parametrize("d", COMPLEX, ids=lambda d: d.name)
def test_loads_and_stores_keep_their_conditions(d: dt.DType) -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", d, "r"), b.buffer("out", d, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, load(x, i, i < 2), i < 3)
    kernel = legalize(b.build(), Capabilities())
    found = np.full(4, 9, host(d))
    interpret(kernel, [numbers(d, 4, 1), found], [4], [], [4])
    assert found.tolist() == [*numbers(d, 4, 1)[:2].tolist(), 0, 9]


def test_complex_kernels_print_and_parse_back() -> None:
    kernel = elementwise(dt.complex64)
    again = parse_kernel(str(kernel))
    verify(again)
    assert str(again) == str(kernel) and "complex " in str(kernel)


def test_complex128_raises_without_float64() -> None:
    lacking = Capabilities(float64=False)
    assert legalize(elementwise(dt.complex64), lacking)
    with pytest.raises(dt.DTypeError, match="float64"):
        legalize(elementwise(dt.complex128), lacking)
