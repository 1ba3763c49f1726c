"""Matrix products by cuBLAS: the backend's calls to a stand-in for the library.

The stand-in does what the manual of cuBLAS says, on the double's memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")
pytest.importorskip("dovetail_cuda", reason="dovetail-cuda is not installed")

from cuda_double import plugin as double
from cuda_double.machine import MARK
from dovetail.extend import Backend, float32, float64
from dovetail_cuda import driver, matmul, plugin

Array = np.ndarray[Any, Any]
NUMBERS = {0: "f4", 1: "f8"}


class CuBlas:
    """A stand-in for cuBLAS: column-major products of host memory.

    `calls`: the requested shapes.
    """

    def __init__(self, backend: Backend, status: int = 0) -> None:
        self.backend, self.status = backend, status
        self.calls: list[tuple[int, ...]] = []

    def cublasCreate_v2(self, handle: Any) -> int:
        return self.status

    def cublasSetStream_v2(self, handle: Any, stream: Any) -> int:
        return 0

    def cublasGemmStridedBatchedEx_64(self, *arguments: Any) -> int:
        numbers = [getattr(x, "value", x) for x in arguments]
        op_a, op_b, m, n, k, _, a, kind, lda, step_a, b, _, ldb, step_b = numbers[1:15]
        c, _, ldc, step_c, count = numbers[16:21]
        self.backend.synchronize()
        self.calls.append((count, m, n, k))
        for i in range(count):
            left = self.matrix(a, i * step_a, NUMBERS[kind], (m, k), lda, op_a)
            right = self.matrix(b, i * step_b, NUMBERS[kind], (k, n), ldb, op_b)
            self.matrix(c, i * step_c, NUMBERS[kind], (m, n), ldc, 0)[...] = left @ right
        return 0

    def matrix(
        self, address: int, skip: int, kind: str, shape: tuple[int, int], lead: int, op: int
    ) -> Array:
        """Return op(matrix) of a shape whose columns are `lead` apart in memory."""
        rows, columns = shape[::-1] if op else shape
        assert lead >= max(1, rows)
        size = np.dtype(kind).itemsize
        length = (lead * (columns - 1) + rows) * size
        raw = (ctypes.c_char * length).from_address((address ^ MARK) + skip * size)
        flat = np.frombuffer(raw, kind)
        found = np.lib.stride_tricks.as_strided(flat, (rows, columns), (size, lead * size))
        return found.T if op else found


@pytest.fixture
def backend() -> Iterator[Backend]:
    with double.installed():
        yield plugin.dovetail_open(plugin.dovetail_probe({})[0], {})  # type: ignore[index]


def product(backend: Backend, products: matmul.CublasProducts, x: Array, y: Array) -> Array:
    """Return x @ y of operands with their own strides, between guard elements."""
    d = {"f4": float32, "f8": float64}[x.dtype.str[1:]]
    out = np.full((*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1]), 7.0)
    out = out.astype(x.dtype)
    operands = []
    for a in (x, y, out):
        base = a if a.base is None else a.base
        shape = (*out.shape[:-2], *a.shape[-2:])
        a = np.broadcast_to(a, shape)
        handle = backend.allocate(max(base.nbytes, 1) + 128)
        backend.copy_in(handle, 64, memoryview(np.ascontiguousarray(base).reshape(-1)).cast("B"))
        offset = 64 + a.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        operands.append((handle, offset, shape, tuple(s // a.itemsize for s in a.strides), d))
    products.matmul(backend, operands[:2], operands[2], None)
    if out.size:
        backend.copy_out(memoryview(out.reshape(-1)).cast("B"), operands[2][0], 64)
    return out


def products(monkeypatch: pytest.MonkeyPatch, library: CuBlas) -> matmul.CublasProducts:
    monkeypatch.setattr(driver, "load_library", lambda name: library)
    return matmul.CublasProducts()


def numbers(*shape: int, kind: str = "f4") -> Array:
    return np.random.default_rng(len(shape)).integers(-9, 9, shape).astype(kind)


def test_product_is_correct_for_every_layout(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = CuBlas(backend)
    made = products(monkeypatch, library)
    square = numbers(6, 6)
    cases = [
        (numbers(3, 4), numbers(4, 5)),
        (numbers(4, 3).T, numbers(5, 4).T),
        (numbers(3, 4, kind="f8"), numbers(5, 4, kind="f8").T),
        (square[:3, :4], square[2:, 1:]),
        (square[:3, :4], square.T[:4]),
        (numbers(1, 4), numbers(4, 1)),
        (numbers(4, 1), numbers(1, 4).T.reshape(1, 4)),
        (numbers(7, 3, 4), numbers(7, 4, 5)),
        (numbers(3, 4), numbers(7, 4, 5)),
        (numbers(2, 7, 4, 3).swapaxes(2, 3), numbers(2, 7, 4, 5)),
        (numbers(2, 1, 3, 4), numbers(7, 4, 5)),
    ]
    for x, y in cases:
        assert np.array_equal(product(backend, made, x, y), x @ y), (x.strides, y.strides)
    assert len(library.calls) == 9 + 2 * 2, library.calls
    assert library.calls[7:9] == [(7, 5, 3, 4), (7, 5, 3, 4)]


def test_layout_that_cublas_cannot_read_uses_a_kernel(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = CuBlas(backend)
    made = products(monkeypatch, library)
    wide, row = numbers(6, 8), numbers(1, 4)
    for x, y in (
        (wide[:3, ::2], numbers(4, 5)),
        (numbers(3, 4), wide[3::-1, ::-1]),
        (np.broadcast_to(row, (3, 4)), numbers(4, 5)),
    ):
        assert np.array_equal(product(backend, made, x, y), x @ y)
    assert not library.calls


def test_empty_products_are_zero_or_empty(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = products(monkeypatch, CuBlas(backend))
    assert product(backend, made, numbers(0, 4), numbers(4, 5)).shape == (0, 5)
    assert not product(backend, made, numbers(3, 0), numbers(0, 5)).any()


def test_failure_of_cublas_is_named_in_the_error(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = products(monkeypatch, CuBlas(backend, status=3))
    with pytest.raises(driver.CudaError, match="cublasCreate: cuBLAS returned status 3"):
        product(backend, made, numbers(3, 4), numbers(4, 5))


def test_missing_cublas_selects_generated_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError("not here")

    monkeypatch.setattr(driver, "load_library", missing)
    assert matmul.library_calls() == {}
