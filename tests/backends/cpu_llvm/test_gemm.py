"""Matrix products of the CPU backend have the bits of the reference for all shapes and strides."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail_cpu_llvm import gemm
from dovetail_cpu_llvm.compile import Compiler, link
from dovetail_cpu_llvm.gemm import BLOCK, GROUP, TASK_MULTIPLIES_MIN

CPU = dt.device("cpu")
REFERENCE = dt.device("reference")
TYPES = (dt.float32, dt.float64)
SHAPES = (  # m, k, n: parts of tiles and whole ones, rows and columns, one block of k and several
    (1, 1, 1), (3, 5, 7), (12, 256, 32), (13, 257, 33), (64, 64, 64), (33, 700, 91), (2, 513, 130),
    (257, 300, 129), (300, 999, 1), (1, 999, 300), (1, 40, 2000), (2000, 3, 5), (5, 900, 7),
    (40, 20, 1200),
)  # fmt: skip
ARRANGEMENTS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: x,
    "columns": lambda x: np.ascontiguousarray(x.T).T,
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "reversed": lambda x: x[:, ::-1].copy()[:, ::-1],
}


@pytest.fixture
def set_threads() -> Iterator[Callable[[int], None]]:
    before = dt.get_num_threads()
    yield dt.set_num_threads
    dt.set_num_threads(before)


def values(*shape: int, seed: int = 0, dtype: dt.DType = dt.float32) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype.name)


def expected(a: Any, b: Any) -> Any:
    """Return the product of two matrices on the reference device."""
    on = REFERENCE
    with dt.vendor_products(False):
        return (dt.asarray(a.copy(), device=on) @ dt.asarray(b.copy(), device=on)).numpy()


def assert_same(x: dt.Tensor, wanted: Any) -> None:
    """Assert equal bits; zeros must have equal signs."""
    np.testing.assert_array_equal(x.numpy(), wanted)
    np.testing.assert_array_equal(np.signbit(x.numpy()), np.signbit(wanted))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_product_of_any_arrangement_has_the_bits_of_the_reference(
    shape: tuple[int, int, int], dtype: dt.DType
) -> None:
    m, k, n = shape
    a, b = values(m, k, dtype=dtype), values(k, n, seed=1, dtype=dtype)
    wanted = expected(a, b)
    for first in ARRANGEMENTS.values():
        for second in ARRANGEMENTS.values():
            x, y = dt.asarray(first(a), device=CPU), dt.asarray(second(b), device=CPU)
            assert_same(x @ y, wanted)
            with dt.vendor_products(False):  # the generated kernel
                assert_same(x @ y, wanted)


@pytest.mark.parametrize("shape", [(13, 300, 33), (1, 300, 70), (70, 300, 1)], ids=str)
def test_product_written_into_a_view_has_the_bits_of_the_reference(
    shape: tuple[int, int, int],
) -> None:
    m, k, n = shape
    a, b = values(m, k), values(k, n, seed=1)
    x, y = dt.asarray(a, device=CPU), dt.asarray(b, device=CPU)
    wanted = expected(a, b)
    turned, wide = dt.zeros((n, m), device=CPU), dt.zeros((2 * m, 2 * n), device=CPU)
    turned.mT[...] = x @ y
    wide[::2, 1::2] = x @ y
    assert_same(turned.mT, wanted)
    assert_same(wide[::2, 1::2], wanted)
    assert not wide[1::2].any() and not wide[:, ::2].any()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_long_product_adds_groups_of_blocks(dtype: dt.DType) -> None:
    k = GROUP + BLOCK + 3
    a, b = values(3, k, dtype=dtype), values(k, 5, seed=1, dtype=dtype)
    x, y = dt.asarray(a, device=CPU), dt.asarray(b, device=CPU)
    wanted = expected(a, b)
    assert_same(x @ y, wanted)
    assert_same(x[:1] @ y, wanted[:1])
    assert_same(x @ y[:, :1], wanted[:, :1])
    turned = dt.zeros((5, 3), dtype=dtype, device=CPU)
    turned.mT[...] = x @ y
    assert_same(turned.mT, wanted)
    rows = dt.broadcast_to(x[:, None], (3, 4, k)).reshape((12, k))
    assert_same(rows @ y[:, :1], np.repeat(wanted[:, :1], 4, axis=0))
    parts = [x[:, s : s + GROUP] @ y[s : s + GROUP] for s in (0, GROUP)]
    assert_same(parts[0] + parts[1], wanted)


PAIRS = ((1, 5), (16, 64), (17, 100), (40, 256), (5, 1000), (3, 33 * BLOCK + 7))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", PAIRS, ids=str)
def test_products_of_pairs_of_vectors_have_the_bits_of_the_reference(
    shape: tuple[int, int], dtype: dt.DType
) -> None:
    a, b = values(*shape, dtype=dtype), values(*shape, seed=1, dtype=dtype)
    wanted = np.stack([expected(x, y) for x, y in zip(a, b, strict=True)])
    for first in ARRANGEMENTS.values():
        x, y = dt.asarray(first(a), device=CPU), dt.asarray(b, device=CPU)
        assert_same(dt.vecdot(x, y), wanted)
        assert_same(dt.vecdot(x.mT, y.mT, axis=-2), wanted)
        assert_same(x[-1] @ y[-1], wanted[-1])
    stacked = dt.stack([y, x, y], axis=1)
    assert_same(dt.vecdot(stacked, y[:, None]), dt.vecdot(stacked, y[:, None].copy()).numpy())
    assert_same(dt.vecdot(stacked, y[:, None])[:, 1], expected_pairs(x, y))


def expected_pairs(x: dt.Tensor, y: dt.Tensor) -> Any:
    """Return the products of pairs of rows on the reference device."""
    return np.stack([expected(a, b) for a, b in zip(x.numpy(), y.numpy(), strict=True)])


MATRICES = ((8, 1), (9, 15), (24, 256), (31, 512), (25, 1300), (26, 2900))
VIEWS: dict[str, Callable[[Any], dt.Tensor]] = {  # strides along the first axis
    "contiguous": lambda x: dt.asarray(x, device=CPU),
    "padded": lambda x: dt.asarray(np.pad(x, ((1, 2), (3, 5))), device=CPU)[1:-2, 3:-5],
    "reversed": lambda x: dt.asarray(x[::-1].copy(), device=CPU)[::-1],
    "every third": lambda x: dt.asarray(np.repeat(x, 3, axis=0), device=CPU)[::3],
    "equal": lambda x: dt.broadcast_to(dt.asarray(x[:1], device=CPU), x.shape),
}


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", MATRICES, ids=str)
def test_matrix_times_vector_of_any_strides_has_the_bits_of_the_reference(
    shape: tuple[int, int], dtype: dt.DType
) -> None:
    a, b = values(*shape, dtype=dtype), values(shape[1], 1, seed=1, dtype=dtype)
    for x in (view(a) for view in VIEWS.values()):
        for y in (view(b) for view in VIEWS.values()):
            wanted = expected(x.numpy(), y.numpy())
            assert_same(x @ y, wanted)
            assert_same(y.mT @ x.mT, wanted.T)
            out = dt.zeros((2 * shape[0], 1), dtype=dtype, device=CPU)
            out[::-2] = x @ y
            assert_same(out[::-2], wanted)
            assert not out[::2].any()


def test_stack_of_matrices_times_vectors_has_the_bits_of_its_items() -> None:
    a, b = values(2, 3, 20, 700), values(3, 700, 1, seed=1)
    x, y = dt.asarray(a, device=CPU), dt.asarray(b, device=CPU)
    wanted = np.stack([[expected(a[i, j], b[j]) for j in range(3)] for i in range(2)])
    assert_same(x @ y, wanted)
    assert_same(x @ y[1], np.stack([[expected(m, b[1]) for m in n] for n in a]))
    assert_same(x[:, ::-2, :5] @ y[::-2], wanted[:, ::-2, :5])


@pytest.mark.parametrize("shape", [(1, 2900, 45), (3, 700, 1), (40, 20, 1)], ids=str)
@pytest.mark.parametrize("place", ["first", "last"])
def test_elements_beside_a_vector_product_are_not_read(
    place: str, shape: tuple[int, int, int]
) -> None:
    m, k, n = shape
    a, b = values(m, k), values(n, k, seed=1)
    x, y = (dt.from_dlpack(place_in_protected_memory(z, place == "last")) for z in (a, b))
    assert_same(x @ y.mT, expected(a, b.T))


def place_in_protected_memory(x: Any, at_end: bool) -> Any:
    """Return a copy whose first or last element borders on a page that must not be read."""
    page = mmap.PAGESIZE
    pages = -(-x.nbytes // page)
    memory = mmap.mmap(-1, (pages + 2) * page)
    buffer = np.frombuffer(memory, np.uint8)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for number in (0, pages + 1):
        address = ctypes.c_void_p(buffer.ctypes.data + number * page)
        assert protect(address, ctypes.c_size_t(page), 0) == 0
    start = (pages + 1) * page - x.nbytes if at_end else page
    copied = buffer[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    copied[...] = x
    return copied


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_long_product_of_vectors_has_equal_bits_for_any_number_of_threads(
    threads: int, set_threads: Callable[[int], None]
) -> None:
    set_threads(threads)
    a, b = values(300_000), values(300_000, seed=1)
    assert_same(dt.asarray(a, device=CPU) @ dt.asarray(b, device=CPU), expected(a, b))


def test_sum_of_no_products_is_zero() -> None:
    x, y = dt.ones((3, 0), device=CPU), dt.ones((0, 4), device=CPU)
    assert_same(x @ y, np.zeros((3, 4), np.float32))
    assert (y.mT[:, :0] @ x[:0]).shape == (4, 0)
    assert (x[:0] @ y).shape == (0, 4)


def test_product_of_negative_zeros_is_zero_as_on_the_reference() -> None:
    a, b = np.full((2, 300), -0.0, np.float32), np.ones((300, 3), np.float32)
    assert_same(dt.asarray(a, device=CPU) @ dt.asarray(b, device=CPU), expected(a, b))


def test_product_with_infinite_elements_equals_the_reference() -> None:
    a, b = values(7, 20), values(20, 40, seed=1)
    a[3, 5], b[7, 33], b[2, 39] = np.inf, -np.inf, np.nan
    with np.errstate(invalid="ignore"):
        found = (dt.asarray(a, device=CPU) @ dt.asarray(b, device=CPU)).numpy()
        np.testing.assert_array_equal(found, expected(a, b))


def test_stacked_products_have_the_bits_of_their_matrices() -> None:
    a, b = values(3, 5, 20, 300), values(3, 1, 300, 50, seed=1)
    x, y = dt.asarray(a, device=CPU), dt.asarray(b, device=CPU)
    wanted = np.stack([[expected(a[i, j], b[i, 0]) for j in range(5)] for i in range(3)])
    assert_same(x @ y, wanted)
    assert_same(x[:, ::2] @ y, wanted[:, ::2])
    assert_same(x[::-1] @ y[::-1], wanted[::-1])
    assert_same((y.mT @ x.mT).mT, wanted)
    assert_same(x[0, 0] @ y, np.stack([[expected(a[0, 0], b[i, 0])] for i in range(3)]))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("k", [5, 300])
def test_rows_of_a_product_do_not_depend_on_the_batch(k: int, dtype: dt.DType) -> None:
    x = dt.asarray(values(40, k, dtype=dtype), device=CPU)
    y = dt.asarray(values(k, 70, seed=1, dtype=dtype), device=CPU)
    whole = (x @ y).numpy()
    for i in (0, 1, 17, 39):
        assert_same(x[i] @ y, whole[i])
        assert_same(x[i : i + 3] @ y, whole[i : i + 3])
    for j in (0, 31, 69):
        assert_same(x @ y[:, j], whole[:, j])
        assert_same(x @ y[:, j : j + 2], whole[:, j : j + 2])


@pytest.mark.parametrize("shape", [(64, 512), (130, 70), (385, 5), (7, 900)], ids=str)
def test_matrix_times_its_transpose_is_exactly_symmetric(shape: tuple[int, int]) -> None:
    x = dt.asarray(values(*shape), device=CPU)
    for found in ((x @ x.mT).numpy(), (x.mT @ x).numpy()):
        assert np.array_equal(found, found.T)


@pytest.mark.parametrize(
    "shape", [(200, 300, 400), (1, 999, 3000), (3000, 999, 1), (1001, 2900, 1)], ids=str
)
def test_bits_do_not_depend_on_threads(
    shape: tuple[int, int, int], set_threads: Callable[[int], None]
) -> None:
    m, k, n = shape
    x, y = dt.asarray(values(m, k), device=CPU), dt.asarray(values(k, n, seed=1), device=CPU)
    found = []
    for count in (1, 2, 3):
        set_threads(count)
        found += [(x @ y).numpy().copy() for _ in range(3)]
    for other in found[1:]:
        assert np.array_equal(found[0], other)


SMALL_INTEGERS = (dt.int8, dt.uint8)
CAST_OPERANDS = (dt.float16, dt.bfloat16, *SMALL_INTEGERS)


def integers(*shape: int, dtype: dt.DType, seed: int = 0) -> Any:
    """Return integers of all sizes, the extremes among them."""
    info = np.iinfo(dtype.name)
    x = np.random.default_rng(seed).integers(info.min, info.max + 1, shape).astype(dtype.name)
    x[:, : shape[1] // 2] = info.min  # sums of equal signs
    return x


@pytest.mark.parametrize("second", SMALL_INTEGERS, ids=str)
@pytest.mark.parametrize("first", SMALL_INTEGERS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_int32_product_of_small_integers_is_exact(
    shape: tuple[int, int, int], first: dt.DType, second: dt.DType
) -> None:
    m, k, n = shape
    a, b = integers(m, k, dtype=first), integers(k, n, dtype=second, seed=1)
    wanted = a.astype(np.int32) @ b.astype(np.int32)
    for arranged_a in ARRANGEMENTS.values():
        for arranged_b in ARRANGEMENTS.values():
            x, y = dt.asarray(arranged_a(a), device=CPU), dt.asarray(arranged_b(b), device=CPU)
            np.testing.assert_array_equal(dt.matmul(x, y, dtype=dt.int32).numpy(), wanted)
    with dt.eager():  # the generated kernel, since the casts are stored
        np.testing.assert_array_equal(dt.matmul(x, y, dtype=dt.int32).numpy(), wanted)


@pytest.mark.parametrize("dtype", CAST_OPERANDS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_product_of_casts_has_the_bits_of_the_product_of_stored_casts(
    shape: tuple[int, int, int], dtype: dt.DType
) -> None:
    m, k, n = shape
    a, b = 20 * values(m, k), 20 * values(k, n, seed=1)
    for arrange in ARRANGEMENTS.values():
        floats = dt.asarray(arrange(a), device=CPU), dt.asarray(arrange(b), device=CPU)
        x, y = (z.astype(dtype) for z in floats)
        wide = [z.astype(dt.float32) for z in (x, y)]
        dt.evaluate(x, y, *wide)
        assert_same(x.astype(dt.float32) @ y.astype(dt.float32), (wide[0] @ wide[1]).numpy())
        assert_same(floats[0] @ y.astype(dt.float32), (floats[0] @ wide[1]).numpy())
        assert_same(x.astype(dt.float32) @ floats[1], (wide[0] @ floats[1]).numpy())
        turned = y.mT.copy().astype(dt.float32).mT  # columns along k
        assert_same(x.mT.copy().mT.astype(dt.float32) @ turned, (wide[0] @ wide[1]).numpy())


@pytest.mark.parametrize("dtype", CAST_OPERANDS, ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, (2, 33 * BLOCK, 3)], ids=str)
def test_product_of_scaled_casts_has_the_bits_of_the_product_of_stored_ones(
    shape: tuple[int, int, int], dtype: dt.DType
) -> None:
    m, k, n = shape
    x, rows = (dt.asarray(values(m, c, seed=c), device=CPU) for c in (k, 1))
    weight, factors = (dt.asarray(values(n, c, seed=7 + c), device=CPU) for c in (k, 1))
    a, q = (20 * x).astype(dtype), (20 * weight).astype(dtype)
    turned, whole = q.mT.copy(), factors[0, 0].copy()
    dt.evaluate(a, q, turned, whole)
    stored = [q.astype(dt.float32) * factors, q.astype(dt.float32) * whole]
    stored_rows = a.astype(dt.float32) * rows
    dt.evaluate(*stored, stored_rows)
    cases = [
        (x @ (q.astype(dt.float32) * factors).mT, x @ stored[0].mT),
        (x @ (turned.astype(dt.float32) * factors.mT), x @ stored[0].mT),
        (x @ (whole * q.astype(dt.float32)).mT, x @ stored[1].mT),
        ((a.astype(dt.float32) * rows) @ weight.mT, stored_rows @ weight.mT),
        (
            (a.astype(dt.float32) * rows) @ (q.astype(dt.float32) * factors).mT,
            stored_rows @ stored[0].mT,
        ),
    ]
    for product, wanted in cases:
        if min(m, n, k) > 1:  # else the product is no smaller than the scale, or a vector
            assert {*names_of_launches(product)} <= {"matmul", "sum_of_blocks"}
        assert_same(product, wanted.numpy())


def test_product_of_scaled_casts_has_the_same_bits_with_any_number_of_threads(
    set_threads: Callable[[int], None],
) -> None:
    x, scale = dt.asarray(values(700, 300), device=CPU), dt.asarray(values(1200, 1), device=CPU)
    rows = dt.asarray(values(700, 1, seed=2), device=CPU)
    a = dt.asarray(integers(700, 300, dtype=dt.uint8), device=CPU)
    q = dt.asarray(integers(1200, 300, dtype=dt.int8), device=CPU)
    stored, stored_a = q.astype(dt.float32) * scale, a.astype(dt.float32) * rows
    dt.evaluate(stored, stored_a)
    wanted = (x @ stored.mT).numpy(), (stored_a @ stored.mT).numpy()
    for count in (1, 2, 3):
        set_threads(count)
        products = (
            x @ (q.astype(dt.float32) * scale).mT,
            (a.astype(dt.float32) * rows) @ (q.astype(dt.float32) * scale).mT,
        )
        for product, bits in zip(products, wanted, strict=True):
            assert names_of_launches(product) == ["matmul"]
            assert_same(product, bits)


def test_scales_that_the_routine_does_not_take_are_multiplied_by_a_kernel() -> None:
    x, q = dt.asarray(values(20, 30), device=CPU), integers(40, 30, dtype=dt.int8)
    q = dt.asarray(q, device=CPU)
    along_k, whole = (dt.asarray(values(m, 30, seed=3), device=CPU) for m in (1, 40))
    for scale in (along_k, whole, along_k[0]):
        stored = q.astype(dt.float32) * scale
        dt.evaluate(stored)
        product = x @ (q.astype(dt.float32) * scale).mT
        assert names_of_launches(product) == ["multiply", "matmul"]
        assert_same(product, (x @ stored.mT).numpy())
    stack = dt.asarray(values(3, 20, 30), device=CPU)
    weights = q.broadcast_to((3, 40, 30)).copy()
    scale = dt.asarray(values(3, 40, 1), device=CPU)
    stored = weights.astype(dt.float32) * scale
    dt.evaluate(stored)
    product = stack @ (weights.astype(dt.float32) * scale).mT
    assert_same(product, (stack @ stored.mT).numpy())


def test_scale_that_is_pending_or_the_target_is_read_in_memory() -> None:
    x, q = dt.asarray(values(20, 30), device=CPU), integers(20, 30, dtype=dt.int8)
    q, scale = dt.asarray(q, device=CPU), dt.asarray(values(20, 1, seed=3), device=CPU)
    twice = q.astype(dt.float32) * (scale * 2)
    dt.evaluate(twice)
    product = x @ (q.astype(dt.float32) * (scale * 2)).mT
    assert names_of_launches(product) == ["multiply", "matmul"]
    assert_same(product, (x @ twice.mT).numpy())
    wanted = (x @ (q.astype(dt.float32) * scale).mT)[:, :1].numpy().copy()
    scale[...] = (x @ (q.astype(dt.float32) * scale).mT)[:, :1]
    assert_same(scale, wanted)
    wide = dt.zeros((20, 20), device=CPU)
    factors = wide[:, :1]
    factors[...] = 2.0
    wanted = (x @ (q.astype(dt.float32) * 2.0).mT).numpy().copy()
    wide[...] = x @ (q.astype(dt.float32) * factors).mT
    assert_same(wide, wanted)


def test_gradients_of_scaled_casts_are_those_of_stored_ones() -> None:
    x, scale = (dt.asarray(values(m, n), device=CPU) for m, n in ((20, 30), (40, 1)))
    q = dt.asarray(integers(40, 30, dtype=dt.int8), device=CPU)
    gradients = []
    for is_stored in (False, True):
        leaves = [z.copy().requires_grad_() for z in (x, scale)]
        weight = q.astype(dt.float32) * leaves[1]
        if is_stored:
            dt.evaluate(weight)
        (leaves[0] @ weight.mT).sum().backward()
        gradients.append([z.grad.numpy() for z in leaves])
    for own, stored in zip(*gradients, strict=True):
        np.testing.assert_array_equal(own, stored)


def test_captured_product_of_scaled_casts_is_saved_and_loaded(tmp_path: Path) -> None:
    x, scale = (dt.asarray(values(m, n), device=CPU) for m, n in ((20, 30), (40, 1)))
    q = dt.asarray(integers(40, 30, dtype=dt.int8), device=CPU)
    f: Any = dt.jit(lambda x, q, scale: dt.tanh(x @ (q.astype(dt.float32) * scale).mT))
    wanted = dt.tanh(x @ (q.astype(dt.float32) * scale).mT).numpy()
    for _ in range(3):
        assert_same(f(x, q, scale), wanted)
    dt.save_function(f, tmp_path / "f")
    assert_same(dt.load_function(tmp_path / "f")(x, q, scale), wanted)


def names_of_launches(x: dt.Tensor) -> list[str]:
    """Return the names of the launches that computing a tensor takes."""
    return [launch.name for launch in dt.explain(x).launches]


def test_float64_product_casts_float32_operands() -> None:
    a, b = values(13, 300), values(300, 33, seed=1)
    x, y = dt.asarray(a, device=CPU), dt.asarray(b, device=CPU)
    product = dt.matmul(x, y, dtype=dt.float64)
    assert names_of_launches(product) == ["matmul"]
    assert_same(product, expected(a.astype(np.float64), b.astype(np.float64)))


def test_product_casts_an_operand_that_is_stored_for_another_reader_only_once() -> None:
    x = dt.asarray(values(40, 40), device=CPU)
    q = dt.asarray(integers(40, 40, dtype=dt.int8), device=CPU)
    product, turned = x @ q.astype(dt.float32), x @ q.mT.astype(dt.float32).mT
    assert names_of_launches(product) == names_of_launches(turned) == ["matmul"]
    sums = q.astype(dt.int32) @ q.astype(dt.int32).mT
    assert names_of_launches(sums) == ["matmul"]
    np.testing.assert_array_equal(sums.numpy(), dt.matmul(q, q.mT, dtype=dt.int32).numpy())
    held = q.astype(dt.float32)
    other = x @ held
    assert names_of_launches(other) == ["copy", "matmul"]
    assert_same(other, product.numpy())
    assert_same(turned, product.numpy())
    mixed = q.astype(dt.int32) @ dt.ones((40, 3), dtype=dt.int32, device=CPU)
    np.testing.assert_array_equal(mixed[:, 0].numpy(), q.numpy().sum(axis=1, dtype=np.int32))


def test_product_of_casts_written_over_an_operand_reads_it_first() -> None:
    q = dt.asarray(integers(20, 20, dtype=dt.int8), device=CPU)
    wanted = (q.numpy().astype(np.int32) @ q.numpy().astype(np.int32)).astype(np.int8)
    q[...] = dt.matmul(q, q, dtype=dt.int32).astype(dt.int8)
    np.testing.assert_array_equal(q.numpy(), wanted)


def test_stack_of_casts_and_its_threads_give_the_bits_of_the_items(
    set_threads: Callable[[int], None],
) -> None:
    a = dt.asarray(integers(3 * 300, 200, dtype=dt.uint8).reshape(3, 300, 200), device=CPU)
    b = dt.asarray(integers(200, 90, dtype=dt.int8, seed=1), device=CPU)
    wanted = a.numpy().astype(np.int32) @ b.numpy().astype(np.int32)
    for count in (1, 2, 3):
        set_threads(count)
        np.testing.assert_array_equal(dt.matmul(a, b, dtype=dt.int32).numpy(), wanted)
        stacked = dt.matmul(a, b.broadcast_to((3, 200, 90)), dtype=dt.int32)
        np.testing.assert_array_equal(stacked.numpy(), wanted)


def test_captured_product_of_casts_is_saved_and_loaded(tmp_path: Path) -> None:
    a, b = integers(30, 50, dtype=dt.int8), integers(50, 20, dtype=dt.uint8, seed=1)
    x, y = dt.asarray(a, device=CPU), dt.asarray(b, device=CPU)
    f: Any = dt.jit(lambda x, y: dt.matmul(x, y, dtype=dt.int32) + 1)
    wanted = a.astype(np.int32) @ b.astype(np.int32) + 1
    for _ in range(3):
        np.testing.assert_array_equal(f(x, y).numpy(), wanted)
    dt.save_function(f, tmp_path / "f")
    np.testing.assert_array_equal(dt.load_function(tmp_path / "f")(x, y).numpy(), wanted)


def operand(x: Any) -> Any:
    """Return an array as the operand of a call, with strides in elements."""
    strides = tuple(s // x.itemsize for s in x.strides)
    return None, 0, x.shape, strides, getattr(dt, x.dtype.name)


@cache
def compiled(native: int, letter: str) -> Any:
    """Return the kernels for vectors of `native` bytes, and for a dtype."""
    compiler = Compiler()
    code = compiler.object_code(gemm.ir(compiler.machine.triple, native, letter))
    return link(code, gemm.kernels(letter), gemm.imports())


def multiply(native: int, threads: int, a: Any, b: Any, out: Any) -> None:
    """Write a product by the kernel for vectors of `native` bytes, cut for a number of threads."""
    library = compiled(native, gemm.LETTERS[getattr(dt, out.dtype.name)])
    kernel_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    product = gemm.choose_product((operand(a), operand(b)), operand(out), native, threads)
    assert product is not None
    addresses = [x.ctypes.data for x in (a, b, out)]
    words = [*addresses, *[0] * (product.addresses - 3), *product.ints]
    slots = (ctypes.c_int64 * len(words))(*words)
    kernel_type(library[product.kernel])(slots, 0, product.blocks)


@pytest.mark.parametrize("native", [16, 32, 64])
@pytest.mark.parametrize(
    "shape",
    [(13, 300, 33), (1, 20, 300), (30, 257, 1), (45, 2900, 1), (1, 600, 33), (3, 900, 1),
     (1, 4400, 1)],
    ids=str,
)  # fmt: skip
def test_bits_do_not_depend_on_vectors_and_blocks(native: int, shape: tuple[int, int, int]) -> None:
    if native > Compiler().native:
        pytest.skip(f"this CPU has vectors of {Compiler().native} bytes; run it on a wider one")
    for dtype in TYPES:
        a, b = values(*shape[:2], dtype=dtype), values(*shape[1:], seed=1, dtype=dtype)
        wanted = expected(a, b)
        for turned in (b, np.asfortranarray(b)):
            for threads in (1, 16):
                out = np.full((shape[0], shape[2]), np.nan, a.dtype)
                multiply(native, threads, a, turned, out)
                np.testing.assert_array_equal(out, wanted)
    a, b = integers(*shape[:2], dtype=dt.int8), integers(*shape[1:], seed=1, dtype=dt.uint8)
    for turned in (b, np.asfortranarray(b)):
        sums, floats = (np.zeros((shape[0], shape[2]), d) for d in (np.int32, np.float32))
        multiply(native, 1, a, turned, sums)
        np.testing.assert_array_equal(sums, a.astype(np.int32) @ b.astype(np.int32))
        multiply(native, 1, a, turned, floats)
        np.testing.assert_array_equal(floats, expected(a.astype("f4"), b.astype("f4")))


def test_adjacent_rows_are_copied_as_vectors_and_the_next_panel_is_prefetched() -> None:
    functions = gemm.ir("x86_64-unknown-linux-gnu", 64, "s").split("define ")[1:]
    (tile,) = (f for f in functions if "@stile_12_2(" in f.split("\n")[0])
    (rows,) = (f for f in functions if "@spack_12(" in f.split("\n")[0])
    (narrow,) = (f for f in functions if "@stile_12_1_tail(" in f.split("\n")[0])
    assert tile.count("@llvm.prefetch") == gemm.TILE_VECTORS
    assert narrow.count("@llvm.prefetch") == gemm.TILE_VECTORS + 1  # and the next rows
    assert "load <12 x float>" in rows


@pytest.mark.parametrize("shape", [(77, 300, 70), (5, 20, 40)], ids=str)
def test_adjacent_rows_that_are_copied_have_the_bits_of_the_reference(
    shape: tuple[int, int, int],
) -> None:
    a, b = values(*shape[:2]), values(*shape[1:], seed=1)
    out = np.full((shape[0], shape[2]), np.nan, a.dtype)
    wide = np.zeros((shape[1], 100), a.dtype)  # its rows are so far apart that parts are copied
    wide[:, : shape[0]] = a.T
    turned = wide.T[: shape[0]]
    product = gemm.choose_product((operand(turned), operand(b)), operand(out), 32, 1)
    assert product is not None and product.ints[gemm._INTS.index("packs_a")]
    multiply(32, 1, turned, b, out)
    np.testing.assert_array_equal(out, expected(a, b))


def test_large_products_have_several_blocks_and_small_ones_one() -> None:
    def blocks(m: int, k: int, n: int, threads: int) -> int:
        x, y, out = (np.empty(s, np.float32) for s in ((m, k), (k, n), (m, n)))
        product = gemm.choose_product([operand(x), operand(y)], operand(out), 64, threads)
        assert product is not None
        return product.blocks

    assert blocks(32, 32, 32, 8) == 1
    assert blocks(64, TASK_MULTIPLIES_MIN // 64 // 64, 64, 8) == 1
    assert 8 <= blocks(1024, 1024, 1024, 2) <= 12
    assert 64 <= blocks(4096, 4096, 4096, 16) <= 80
    assert blocks(64, 100_000, 64, 2) >= 2


@pytest.mark.parametrize(
    ("shape", "kernel"), [((8, 9), "smatvec"), ((7, 900), "sdots"), ((1, 900), "sdots")], ids=str
)
def test_few_rows_times_a_vector_are_pairs_of_vectors(shape: tuple[int, int], kernel: str) -> None:
    x, y, out = (np.empty(s, np.float32) for s in (shape, (shape[1], 1), (shape[0], 1)))
    product = gemm.choose_product([operand(x), operand(y)], operand(out), 64, 1)
    assert product is not None
    assert (product.kernel, product.operations) == (kernel, x.size)


def test_captured_products_are_part_of_the_command_list() -> None:
    a, b = values(64, 512), values(512, 64, seed=1)
    x, y = dt.asarray(a, device=CPU), dt.asarray(b, device=CPU)

    @dt.jit
    def f(x: dt.Tensor, y: dt.Tensor) -> dt.Tensor:
        return dt.exp(x @ y * 0.01) @ dt.sin(x)

    first = f(x, y).numpy().copy()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(first, np.exp(a @ b * 0.01) @ np.sin(a), rtol=1e-3, atol=1e-3)
    assert np.array_equal(f(x, y).numpy(), first)
    with dt.profile() as profile:
        assert np.array_equal(f(x, y).numpy(), first)
    assert [e["name"] for e in profile.events].count("call matmul") == 2


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_large_product_of_halves_is_computed_in_float32_and_rounded_once(name: str) -> None:
    dtype = getattr(dt, name)
    x = dt.asarray(values(130, 300), device=CPU).astype(dtype)
    y = dt.asarray(values(300, 120, seed=1), device=CPU).astype(dtype)
    with dt.vendor_products(False):
        kernel = x @ y  # the generated kernel for halves
    product = x @ y
    assert product.dtype is dtype
    assert product.tolist() == kernel.tolist()
    with dt.profile() as profile:
        dt.evaluate(x @ y)
    assert "call matmul" in [e["name"] for e in profile.events]
