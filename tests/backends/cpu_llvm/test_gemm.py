"""Matrix products: blocks that the pool shares out, each by OpenBLAS with one thread."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail_cpu_llvm import device, gemm
from dovetail_cpu_llvm.gemm import BLOCK_MULTIPLIES_MIN, BLOCKS_MAX, GEMV_BLOCK_ELEMENTS_MIN

CPU = dt.device("cpu")
TYPES = (dt.float32, dt.float64)
SHAPES = (  # m, k, n: one block, several, more than a few; edges; vectors
    (3, 5, 7), (64, 64, 64), (64, 512, 64), (33, 700, 91), (257, 300, 129), (600, 70, 900),
    (300, 999, 1), (1, 999, 300), (3000, 64, 1), (1, 64, 3000), (2000, 3, 5), (5, 4000, 7),
)  # fmt: skip

pytestmark = pytest.mark.skipif(not gemm.symbols(), reason="NumPy's BLAS is not OpenBLAS")


@pytest.fixture
def set_threads() -> Iterator[Callable[[int], None]]:
    before = dt.get_num_threads()
    yield dt.set_num_threads
    dt.set_num_threads(before)


def values(*shape: int, seed: int = 0, dtype: dt.DType = dt.float32) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype.name)


def close(x: dt.Tensor, wanted: Any) -> None:
    tolerance = 1e-4 if x.dtype is dt.float32 else 1e-11
    np.testing.assert_allclose(x.numpy(), wanted, rtol=tolerance, atol=tolerance * 30)


def routine(*shapes: tuple[int, ...]) -> gemm.Routine:
    """Return the routine for contiguous float32 operands and their product."""
    given = []
    for shape in shapes:
        strides = tuple(int(np.prod(shape[a + 1 :])) for a in range(len(shape)))
        given.append((None, 0, shape, strides, dt.float32))
    found = gemm.choose_routine(given[:2], given[2])
    assert found is not None
    return found


def forbid_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("NumPy was asked for a product")

    monkeypatch.setattr(device.np, "matmul", refused)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_of_any_orientation_equal_numpy(
    shape: tuple[int, int, int], dtype: dt.DType, monkeypatch: pytest.MonkeyPatch
) -> None:
    m, k, n = shape
    for turned in range(4):
        a = values(*((k, m) if turned & 1 else (m, k)), dtype=dtype)
        b = values(*((n, k) if turned & 2 else (k, n)), seed=1, dtype=dtype)
        x, y = dt.asarray(a, device=CPU), dt.asarray(b, device=CPU)
        x, a = (x.mT, a.T) if turned & 1 else (x, a)
        y, b = (y.mT, b.T) if turned & 2 else (y, b)
        wanted = a @ b
        with monkeypatch.context() as patch:
            forbid_numpy(patch)
            found = dt.evaluate(dt.matmul(x, y)) or dt.matmul(x, y)
        close(found, wanted)


def test_stacked_products_equal_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = values(3, 5, 40, 60), values(3, 5, 60, 50, seed=1)
    x, y = dt.asarray(a, device=CPU), dt.asarray(b, device=CPU)
    wanted = [a @ b, a @ b[0, 0], a[0, 0] @ b, np.swapaxes(b, -1, -2) @ np.swapaxes(a, -1, -2)]
    forbid_numpy(monkeypatch)
    found = [x @ y, x @ y[0, 0], x[0, 0] @ y, y.mT @ x.mT]
    for one, other in zip(found, wanted, strict=True):
        close(one, other)


def test_stacked_products_of_strided_operands_equal_numpy() -> None:
    a, b = values(3, 5, 40, 60), values(3, 1, 60, 50, seed=1)
    x, y = dt.asarray(a, device=CPU), dt.asarray(b, device=CPU)
    close(x @ y, a @ b)
    close(x[:, ::2] @ y, a[:, ::2] @ b)
    close(x[:0] @ y[:0], a[:0] @ b[:0])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(
    "shape", [(64, 512), (130, 70), (385, 5), (473, 11), (209, 22), (7, 900)], ids=str
)
def test_matrix_times_its_transpose_is_exactly_symmetric(
    shape: tuple[int, int], dtype: dt.DType
) -> None:
    a = values(*shape, dtype=dtype)
    x = dt.asarray(a, device=CPU)
    for found, wanted in ((x @ x.mT, a @ a.T), (x.mT @ x, a.T @ a)):
        close(found, wanted)
        assert np.array_equal(found.numpy(), found.numpy().T)
    stack = values(4, *shape, dtype=dtype)
    y = dt.asarray(stack, device=CPU)
    found = (y @ y.mT).numpy()
    close(y @ y.mT, stack @ np.swapaxes(stack, 1, 2))
    assert np.array_equal(found, np.swapaxes(found, 1, 2))


def test_product_of_two_matrices_is_not_taken_for_a_symmetric_one() -> None:
    a, b = values(130, 70), values(130, 70, seed=1)
    close(dt.asarray(a, device=CPU) @ dt.asarray(b, device=CPU).mT, a @ b.T)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_product_bits_do_not_depend_on_threads(
    shape: tuple[int, int, int], set_threads: Callable[[int], None]
) -> None:
    m, k, n = shape
    x, y = dt.asarray(values(m, k), device=CPU), dt.asarray(values(k, n, seed=1), device=CPU)
    found = []
    for count in (1, 2, 4):
        set_threads(count)
        found += [(x @ y).numpy().copy() for _ in range(3)]
    for other in found[1:]:
        assert np.array_equal(found[0], other)


def test_small_products_have_numpy_bits() -> None:
    a, b = values(31, 65), values(65, 40, seed=1)
    found = (dt.asarray(a, device=CPU) @ dt.asarray(b, device=CPU)).numpy()
    assert np.array_equal(found, a @ b)


@pytest.mark.parametrize("few", (1, 2, 8))
def test_large_products_have_more_blocks(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm, "LARGE_BLOCKS", few)
    monkeypatch.setattr(gemm, "BLOCK_ELEMENTS_MAX", (1 << 22) // few)
    assert routine((32, 32), (32, 32), (32, 32)).blocks == 1
    assert routine((64, 512), (512, 64), (64, 64)).blocks == 64 * 512 * 64 // BLOCK_MULTIPLIES_MIN
    assert routine((1024, 1024), (1024, 1024), (1024, 1024)).blocks == few
    assert few < routine((4096, 4096), (4096, 4096), (4096, 4096)).blocks <= BLOCKS_MAX
    assert routine((9000, 9000), (9000, 9000), (9000, 9000)).blocks <= 2 * BLOCKS_MAX
    assert routine((5, 8, 8), (5, 8, 8), (5, 8, 8)).blocks == 5
    assert routine((GEMV_BLOCK_ELEMENTS_MIN, 4), (4, 1), (GEMV_BLOCK_ELEMENTS_MIN, 1)).blocks == 4
    # reads across rows use long pieces, with at least two threads
    assert routine((1, 1024), (1024, 1024), (1, 1024)).blocks == 2
    assert routine((1, 4096), (4096, 4096), (1, 4096)).blocks == 8
    assert routine((1, 65536), (65536, 64), (1, 64)).blocks == 2


def test_captured_products_are_part_of_the_command_list(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = values(64, 512), values(512, 64, seed=1)
    x, y = dt.asarray(a, device=CPU), dt.asarray(b, device=CPU)

    @dt.jit
    def f(x: dt.Tensor, y: dt.Tensor) -> dt.Tensor:
        return dt.exp(x @ y * 0.01) @ dt.sin(x)

    first = f(x, y).numpy().copy()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(first, np.exp(a @ b * 0.01) @ np.sin(a), rtol=1e-3, atol=1e-3)
    forbid_numpy(monkeypatch)
    assert np.array_equal(f(x, y).numpy(), first)
    with dt.profile() as profile:
        assert np.array_equal(f(x, y).numpy(), first)
    assert [e["name"] for e in profile.events].count("call matmul") == 2


def blas_threads() -> Callable[[], int]:
    return ctypes.CFUNCTYPE(ctypes.c_int)(gemm.symbols()["get_num_threads"])


def test_openblas_gets_its_thread_count_back() -> None:
    count = blas_threads()
    before = count()
    x = dt.asarray(values(300, 300), device=CPU)

    def work() -> None:
        for _ in range(30):
            dt.evaluate(x @ x)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert count() == before
