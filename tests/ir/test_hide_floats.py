"""Kernels for compilers that rewrite float expressions: the bits stay, and so do the texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import float_devices as devices
import numpy as np
import pytest
import test_kernel as examples
from dovetail.backend.reference import interpret
from dovetail.dtypes import DType, float32, float64, int32
from dovetail.errors import ArgumentError
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.language import (
    Value,
    bitcast,
    const,
    eq,
    fma,
    load,
    reduce_loop,
    unary,
    where,
)
from dovetail.ir.legalize import legalize
from dovetail.ir.parser import parse_kernel
from dovetail.ir.target import Capabilities
from dovetail.ir.verify import verify
from dovetail.plugins.registry import open_device
from partial_devices import installed
from test_floats import floats, kernel

CAN = {algebra: Capabilities(algebra=algebra) for algebra in ("zeros", "free")}


def test_unknown_algebra_raises_argument_error() -> None:
    with pytest.raises(ArgumentError, match='must be "exact", "zeros" or "free", got \'fast\''):
        Capabilities(algebra="fast")  # type: ignore[arg-type]


@pytest.mark.parametrize("algebra", CAN)
@pytest.mark.parametrize(
    "make",
    [examples.elementwise_chain, examples.row_sum, examples.softmax_row, examples.matmul],
    ids=lambda f: f.__name__,
)
def test_hidden_kernel_equals_its_golden_file(make: Callable[[], Kernel], algebra: str) -> None:
    path = examples.GOLDEN / algebra / f"{make.__name__}.txt"
    legal = legalize(make(), CAN[algebra])
    verify(legal)
    text = str(legal) + "\n"
    assert str(parse_kernel(text)) == text.rstrip("\n")
    if os.environ.get("DOVETAIL_REGENERATE") == "1":
        path.write_text(text)
    assert text == path.read_text()


def sum_of_rows(d: DType) -> Kernel:
    """Build out[i] = the sum of row i + 0.0 * the row's first element - 0.0."""
    b = KernelBuilder("sum")
    x, out, m, n = b.buffer("x", d, "r"), b.buffer("out", d, "w"), b.int("m"), b.int("n")
    i = b.axis(m)
    (total,) = reduce_loop("add", 0, n, lambda k: load(x, i * n + k))
    b.store(out, i, total + load(x, i * n) * 0.0 - const(-0.0, d))
    return b.build()


def run(legal: Kernel, columns: Sequence[np.ndarray], ints: Sequence[int], n: int) -> np.ndarray:
    """Return the results of a kernel in the interpreter."""
    verify(legal)
    out = np.zeros(n, columns[0].dtype)
    interpret(legal, [*columns, out], ints, [], [n])
    return out


@pytest.mark.parametrize("algebra", CAN)
@pytest.mark.parametrize("d", (float32, float64), ids=lambda d: d.name)
def test_hidden_reduction_keeps_its_bits(d: DType, algebra: str) -> None:
    k, can = sum_of_rows(d), CAN[algebra]
    with np.errstate(invalid="ignore"):
        x = floats(3, 5000).astype(d.name)
    legal = legalize(k, can)
    expected = run(k, [x], [100, 50], 100)
    found = run(legal, [x], [100, 50, *can.hiding_zeros], 100)
    bits = f"u{d.itemsize}"
    same = (found.view(bits) == expected.view(bits)) | (np.isnan(found) & np.isnan(expected))
    assert same.all()


def test_zeros_alone_are_hidden() -> None:
    legal = legalize(kernel(lambda a, b, c: (a + 1.5) * b - -0.0), CAN["zeros"])
    text = str(legal)
    assert "f32(1.5)" in text and "f32(0.0)" not in text and "f32(-0.0)" not in text


def test_device_that_folds_zeros_needs_the_declaration() -> None:
    """A sum of -0.0 is 0.0: the liar starts from its first element."""
    k, x = sum_of_rows(float32), np.full(12, -0.0, np.float32)
    with installed(devices.FoldsZeros, devices.SaysThatItFoldsZeros) as (lying, honest):
        found = []
        for device in (lying, honest):
            backend = open_device(device).backend
            legal = legalize(k, backend.info.capabilities)
            out = np.ones(3, np.float32)
            handles = [x.view("u1"), 0, out.view("u1"), 0]
            ints = (3, 4, *backend.info.capabilities.hiding_zeros)
            backend.launch(backend.compile(legal), handles, ints, (), (3,))
            found.append(np.signbit(out).tolist())
    assert found == [[True] * 3, [False] * 3]


@pytest.mark.parametrize(
    "rule",
    [
        lambda a, b, c: a - unary("neg", -a),
        lambda a, b, c: a - bitcast(bitcast(a, int32), float32),
        lambda a, b, c: fma(a, b, -a),
        lambda a, b, c: -a - -a,
        lambda a, b, c: (a * b) / (a * b),
        lambda a, b, c: where(eq(a, a), a, b) + -(a * c),
        lambda a, b, c: a + unary("neg", -(a * b)),
    ],
)
def test_simplifier_keeps_the_bits_of_hidden_expressions(
    rule: Callable[..., Value],
) -> None:
    k = kernel(rule)
    legal = legalize(k, CAN["free"])
    simplified = devices.Rewrites.changed(devices.Rewrites(devices.Rewrites.info), legal)
    columns = [floats(seed, 1000) for seed in range(3)]
    n = columns[0].size
    with np.errstate(all="ignore"):
        expected = run(k, columns, [n], n)
    found = run(simplified, columns, [n, 0, 0], n)
    same = (found.view("u4") == expected.view("u4")) | (np.isnan(found) & np.isnan(expected))
    assert same.all()


def test_fast_math_kernels_get_the_integers_alone() -> None:
    fast = replace(kernel(lambda a, b, c: a + 0.0), fast_math=True)
    legal = legalize(fast, CAN["free"])
    assert legal.ints == ("n", "zero", "zero_again") and legal.body == fast.body


def test_free_algebra_of_float64_needs_64_bit_integers() -> None:
    with pytest.raises(ArgumentError, match='float64 must be False if algebra is "free" and int64'):
        Capabilities(algebra="free", int64=False, index_bits=32)
