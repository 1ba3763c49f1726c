"""Convolutions by the CPU's matrix products have the bits of the reference."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.functions.products.convolutions import convolved, transposed, weight_gradient
from dovetail.ops.convolution import Geometry
from dovetail_cpu_llvm import gemm, patches
from dovetail_cpu_llvm.compile import Compiler, link

CPU, REFERENCE = dt.device("cpu"), dt.device("reference")
# Shapes of x and w, and the geometry. Panels in the line, and some that two rows share; a stride;
# one tap, whose positions are one row; groups; a few filters and one axis; a group of blocks of k;
# rows of whole vectors that fill no panel.
CASES = (
    ((2, 5, 9, 70), (33, 5, 3, 3), Geometry((1, 1), (1, 1), (1, 1), 1)),
    ((2, 9, 21, 23), (40, 9, 5, 3), Geometry((2, 1), (2, 0), (1, 2), 1)),
    ((3, 300, 5, 7), (36, 300, 1, 1), Geometry((1, 1), (0, 0), (1, 1), 1)),
    ((2, 8, 12, 11), (64, 4, 3, 3), Geometry((1, 2), (1, 1), (1, 1), 2)),
    ((2, 6, 90), (7, 6, 5), Geometry((3,), (2,), (1,), 1)),
    ((1, 1, 300, 301), (5, 1, 2, 2), Geometry((1, 1), (0, 0), (1, 1), 1)),
    ((2, 6, 7, 16), (40, 6, 3, 3), Geometry((1, 1), (1, 1), (1, 1), 1)),
    ((3, 5, 5, 96), (33, 5, 3, 3), Geometry((2, 2), (1, 1), (1, 1), 1)),
)


def values(shape: tuple[int, ...], seed: int, dtype: str = "float32") -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def counts_of(x: tuple[int, ...], w: tuple[int, ...], g: Geometry) -> tuple[int, ...]:
    steps = zip(x[2:], w[2:], g.stride, g.low, g.dilation, strict=True)
    return tuple((n + 2 * q - e * (k - 1) - 1) // s + 1 for n, k, s, q, e in steps)


def results(case: Any, device: dt.Device, dtype: str = "float32") -> list[Any]:
    """Return a convolution with and without bias, and both gradients, as bytes."""
    x, w, g = case
    counts = counts_of(x, w, g)
    shapes = (x, w, (x[0], w[0], *counts), w[:1])
    a, b, y, bias = (
        dt.asarray(values(s, i), device=device).astype(getattr(dt, dtype))
        for i, s in enumerate(shapes)
    )
    tensors = (
        convolved(a, b, bias, counts, g),
        convolved(a, b, None, counts, g),
        transposed(y, b, x[2:], g),
        weight_gradient(a, y, w[2:], g),
        weight_gradient(a, dt.flip(y, axis=-1), w[2:], g),
    )
    return [t.astype(dt.float64).numpy().tobytes() for t in tensors]


@pytest.fixture
def set_threads() -> Iterator[Callable[[int], None]]:
    before = dt.get_num_threads()
    yield dt.set_num_threads
    dt.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolution_has_the_bits_of_the_reference(case: Any, dtype: str) -> None:
    assert results(case, CPU, dtype) == results(case, REFERENCE, dtype)


@pytest.mark.parametrize("case", CASES[:4], ids=str)
def test_convolution_does_not_depend_on_threads(
    case: Any, set_threads: Callable[[int], None]
) -> None:
    x, w, g = case
    case, found = ((16, *x[1:]), w, g), []
    for count in (1, 2, 3):
        set_threads(count)
        found.append(results(case, CPU))
    assert found[0] == found[1] == found[2]


def test_convolutions_of_many_filters_are_calls() -> None:
    x, w = (dt.asarray(values(s, 1), device=CPU) for s in ((2, 8, 20, 20), (32, 8, 3, 3)))
    w.requires_grad_()
    with dt.profile() as profile:
        dt.sum(dt.nn.functional.conv2d(x, w) ** 2).backward()
        w.grad.numpy()
    names = [event["name"] for event in profile.events]
    assert "call convolution" in names and "call convolution_weight" in names


def operand(x: Any) -> Any:
    """Return an array as the operand of a call, with strides in elements."""
    dtype = {"f4": dt.float32, "f8": dt.float64, "i8": dt.int64}[x.dtype.str[1:]]
    return None, 0, x.shape, tuple(s // x.itemsize for s in x.strides), dtype


class Kernels:
    """The compiled kernels of a dtype for vectors of so many bytes."""

    def __init__(self, native: int, letter: str) -> None:
        compiler = Compiler()
        if native > compiler.native:
            pytest.skip(f"this CPU has vectors of {compiler.native} bytes; run it on a wider one")
        code = compiler.object_code(patches.ir(compiler.machine.triple, native, letter))
        self.library = link(code, patches.kernels(letter), gemm.imports())

    def run(self, product: gemm.RoutineCall, arrays: list[Any]) -> None:
        """Run all blocks of a call."""
        kernel_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        words = [*(a.ctypes.data for a in arrays), *product.ints]
        slots = (ctypes.c_int64 * len(words))(*words)
        kernel_type(self.library[product.kernel])(slots, 0, product.blocks)


@pytest.mark.parametrize("width", [43, 48])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("native", [16, 32, 64])
def test_kernels_do_not_depend_on_vectors_and_blocks(native: int, dtype: str, width: int) -> None:
    kernels = Kernels(native, gemm.LETTERS[getattr(dt, dtype)])
    channels, filters, height = 33, 29, 11
    x = values((2, channels, height + 2, width + 2), 1, dtype)
    taps = [(c * (height + 2) + i) * (width + 2) + j for c, i, j in np.ndindex(channels, 3, 3)]
    table = np.array(taps)
    line = np.lib.stride_tricks.as_strided(
        x, (2, height, width), (x.strides[0], *x.strides[2:]), writeable=False
    )
    rows = (np.arange(height)[:, None] * (width + 2) + np.arange(width)).ravel()
    matrix = x.reshape(2, -1)[:, table[:, None] + rows]  # item, tap, position
    w, bias = values((2, filters, len(taps)), 2, dtype), values((2, filters), 3, dtype)
    y = values((2, filters, height, width), 4, dtype)
    every = np.moveaxis(matrix, 1, 0).reshape(len(taps), -1)
    columns = np.moveaxis(y, 1, 0).reshape(filters, -1)
    with dt.vendor_products(False):
        on = REFERENCE
        forward = (dt.asarray(w, device=on) @ dt.asarray(matrix, device=on)).numpy()
        gradient = (dt.asarray(columns, device=on) @ dt.asarray(every.T.copy(), device=on)).numpy()
    for threads in (1, 16):
        out = np.full(forward.shape, np.nan, dtype)
        for more, wanted in (([], forward), ([bias], forward + bias[:, :, None])):
            inputs = [w, line, table, *more]
            call = patches.choose_convolution(
                [operand(a) for a in inputs], operand(out), native, threads
            )
            kernels.run(call, [*inputs, out])
            np.testing.assert_array_equal(out, wanted)
        out = np.full(gradient.shape, np.nan, dtype)
        inputs = [line, table, np.moveaxis(y, 1, 0)]
        call = patches.choose_gradient([operand(a) for a in inputs], operand(out), native, threads)
        kernels.run(call, [*inputs, out])
        np.testing.assert_array_equal(out, gradient)


@pytest.mark.parametrize("letter", ["s", "d"])
def test_products_and_convolutions_have_modules_of_their_own(letter: str) -> None:
    compiler = Compiler()
    head = f"define void @{letter}"
    heads = {
        module: {f"{head}{name[1:]}(" for name in module.kernels(letter)}
        for module in (gemm, patches)
    }
    for module, other in ((gemm, patches), (patches, gemm)):
        text = module.ir(compiler.machine.triple, compiler.native, letter)
        assert all(start in text for start in heads[module])
        assert not any(start in text for start in heads[other])
