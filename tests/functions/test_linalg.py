"""Matrix products against NumPy and, bit for bit, against sums in the documented order."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import dtypes
from dovetail.device_class import device
from dovetail.engine import evaluate as run
from dovetail.engine.evaluate import counters
from dovetail.errors import ArgumentError, AxisError, DTypeError, ShapeError
from dovetail.functions.products.matrix_products import (
    matmul,
    matrix_transpose,
    outer,
    tensordot,
    vecdot,
    vendor_products,
)
from dovetail.tensor import host, primitives, tensor
from hypothesis import given, settings
from hypothesis import strategies as st

DEVICES = ["reference", "cpu"]
rng = np.random.default_rng(3)
SHAPES = [
    ((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 1, 3, 4), (5, 4, 2)),
    ((0, 3), (3, 2)), ((2, 0), (0, 2)), ((6, 3, 4), (4,)), ((4,), (6, 4, 3)), ((33, 70), (70, 41)),
]  # fmt: skip


def on(name: str, a: Any) -> tensor.Tensor:
    a = np.asarray(a)
    return host.from_host(a, dtypes.dtype(a.dtype), device(name))


def small(shape: Any, dtype: Any) -> Any:
    """Return values whose sums of products are exact in every dtype."""
    return rng.integers(0, 4, shape).astype(dtype)


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u4", "i8"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_matmul_equals_numpy(name: str, dtype: str, shapes: Any) -> None:
    a, b = (small(s, dtype) for s in shapes)
    want = np.matmul(a, b)
    got = matmul(on(name, a), on(name, b))
    assert got.dtype is dtypes.dtype(want.dtype) and got.shape == want.shape
    np.testing.assert_array_equal(got.numpy(), want)
    with vendor_products(False):
        np.testing.assert_array_equal((on(name, a) @ on(name, b)).numpy(), want)


def fused(a: Any, b: Any, c: Any, dtype: Any) -> Any:
    """Return a * b + c with one rounding."""
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if dtype is np.float64:
        return np.float64(exact.numerator / exact.denominator)
    near = np.float32(exact.numerator / exact.denominator)  # double rounding is corrected below
    others = (np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf)))
    return min(others, key=lambda v: (abs(Fraction(float(v)) - exact), v.view(np.uint32) & 1))


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matmul_adds_products_by_ascending_k_with_fma(name: str, dtype: Any) -> None:
    a, b = rng.standard_normal((3, 20)).astype(dtype), rng.standard_normal((20, 5)).astype(dtype)
    want = np.zeros((3, 5), dtype)
    for i, j in np.ndindex(3, 5):
        for k in range(20):
            want[i, j] = fused(a[i, k], b[k, j], want[i, j], dtype)
    with vendor_products(False):
        np.testing.assert_array_equal(matmul(on(name, a), on(name, b)).numpy(), want)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 70), st.booleans(), st.booleans())
@settings(max_examples=25, deadline=None, derandomize=True)
def test_matmul_has_the_same_bits_on_every_device(
    m: int, n: int, k: int, t1: bool, t2: bool
) -> None:
    a = rng.standard_normal((k, m) if t1 else (m, k)).astype(np.float32)
    b = rng.standard_normal((n, k) if t2 else (k, n)).astype(np.float32)
    found = []
    for name in DEVICES:
        x, y = on(name, a), on(name, b)
        x, y = matrix_transpose(x) if t1 else x, matrix_transpose(y) if t2 else y
        with vendor_products(False):
            found.append(matmul(x, y).numpy())
        close = np.matmul(a.T if t1 else a, b.T if t2 else b)
        np.testing.assert_allclose(matmul(x, y).numpy(), close, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(found[0], found[1])


def test_vendor_products_turned_off_keep_the_routine_with_the_order_of_products() -> None:
    x = on("cpu", small((4, 4), "f4"))
    before = run.counters.calls
    with vendor_products(False):
        matmul(x, x).numpy()
    assert run.counters.calls == before + 1


def test_vendor_products_refuse_other_values_than_flags() -> None:
    with pytest.raises(dt.ArgumentTypeError, match="enabled must be True or False, got 'no'"):
        vendor_products("no")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", DEVICES)
def test_matmul_promotes_accepts_views_and_has_all_forms(name: str) -> None:
    a, b = small((4, 3), "i2"), small((4, 4), "f4")
    x, y = on(name, a), on(name, b)
    got = matmul(primitives.view(x, ("permute", (1, 0))), y + 1)
    assert got.dtype is dtypes.float32
    np.testing.assert_array_equal((got * 2).numpy(), a.T @ (b + 1) * 2)
    y @= y
    np.testing.assert_array_equal(y.numpy(), b @ b)
    matmul(y, y, out=y)
    np.testing.assert_array_equal(y.numpy(), (b @ b) @ (b @ b))
    part = primitives.view(y, ("slice", (0, 0), (2, 2), (1, 1)))
    want = y.numpy().copy()
    want[:2, :2] = want[:2] @ want[:, :2]
    rows = primitives.view(y, ("slice", (0, 0), (2, 4), (1, 1)))
    columns = primitives.view(y, ("slice", (0, 0), (4, 2), (1, 1)))
    matmul(rows, columns, out=part)
    np.testing.assert_array_equal(y.numpy(), want)


@pytest.mark.parametrize("name", DEVICES)
def test_tensordot_equals_numpy(name: str) -> None:
    a, b = small((3, 4, 5), "f8"), small((4, 5, 3, 2), "f8")
    x, y = on(name, a), on(name, b)
    for axes in (0, 2, ((0, 1), (2, 0)), ((-1,), (1,)), ((), ())):
        want = np.tensordot(a, b, axes)
        got = tensordot(x, y, axes=axes)
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("kind", ["f4", "f8", "i4", "u8"])
def test_dot_product_has_the_same_bits_everywhere(kind: str) -> None:
    r = np.random.default_rng(7)
    a, b = ((r.random(10_001) * 1e4).astype(kind) for _ in range(2))
    want = vecdot(on("reference", a), on("reference", b)).numpy()
    for name in DEVICES:
        x, y = on(name, a), on(name, b)
        assert (x @ y).numpy().tobytes() == want.tobytes()
        assert (x @ y).dtype is x.dtype


@pytest.mark.parametrize("name", DEVICES)
def test_vecdot_and_outer_equal_numpy(name: str) -> None:
    a, b = small((3, 4, 5), "i4"), small((4, 5), "f4")
    x, y = on(name, a), on(name, b)
    np.testing.assert_array_equal(vecdot(x, y).numpy(), np.vecdot(a, b))
    np.testing.assert_array_equal(vecdot(x, y, axis=-2).numpy(), (a * b).sum(-2))
    assert vecdot(x, x).dtype is dtypes.int32
    np.testing.assert_array_equal(
        outer(on(name, a[0, 0]), on(name, b[1])).numpy(), np.outer(a[0, 0], b[1])
    )


@pytest.mark.parametrize("call, error", [
    (lambda x: matmul(x, x), ShapeError), (lambda x: x @ 2, TypeError),
    (lambda x: matmul(on("reference", 2.0), x), ShapeError),
    (lambda x: matmul(on("reference", [True]), on("reference", [True])), DTypeError),
    (lambda x: tensordot(x, x, axes=1), ShapeError),
    (lambda x: tensordot(x, x, axes=3), ArgumentError),
    (lambda x: tensordot(x, x, axes=((0,), (2,))), AxisError),
    (lambda x: tensordot(x, x, axes=((0, 0), (0, 0))), ArgumentError),
    (lambda x: vecdot(x, x, axis=0), ArgumentError), (lambda x: vecdot(x, x, axis=-3), AxisError),
    (lambda x: vecdot(x, matrix_transpose(x)), ShapeError), (lambda x: outer(x, x), ShapeError),
    (lambda x: matrix_transpose(on("reference", [1.0])), ShapeError),
])  # fmt: skip
def test_matmul_errors(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call(on("reference", np.ones((2, 3))))


def test_vendor_products_apply_when_work_is_recorded(device: str) -> None:
    x = dt.ones((4, 4), device=device)
    with dt.vendor_products(False):
        pending = x @ x
    assert pending._expr.attrs is not None
    assert (x @ x)._expr.attrs is None


# --- cached products -----------------------------------------------------------------------------


def arranged(a: np.ndarray, how: int, device: str) -> tuple[np.ndarray, dt.Tensor]:
    """Return a matrix plain, transposed, or as part of a larger one: as an array and as a
    tensor.
    """
    if how == 1:
        return np.asfortranarray(a), dt.asarray(np.ascontiguousarray(a.T), device=device).T
    if how == 2:
        wide = np.zeros((2 * a.shape[0], a.shape[1] + 3), a.dtype)
        wide[::2, : a.shape[1]] = a
        return wide[::2, : a.shape[1]], dt.asarray(wide, device=device)[::2, : a.shape[1]]
    return a, dt.asarray(a, device=device)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("how", [*itertools.product(range(3), range(3))], ids=str)
def test_small_products_have_the_bits_of_the_reference(dtype: str, how: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    for m, k, n in itertools.product((1, 2, 17, 40), (1, 2, 33), (1, 3, 32)):
        a, x = arranged(rng.standard_normal((m, k)).astype(dtype), how[0], "cpu")
        b, y = arranged(rng.standard_normal((k, n)).astype(dtype), how[1], "cpu")
        wanted = (dt.asarray(a, device="reference") @ dt.asarray(b, device="reference")).numpy()
        for _ in range(2):
            assert np.array_equal((x @ y).numpy(), wanted), (m, k, n)
        assert np.array_equal((x @ y[:, 0]).numpy(), wanted[:, 0])
        np.testing.assert_allclose(wanted, np.matmul(a, b), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "i4"])
def test_product_of_two_vectors_is_that_of_a_row_and_a_column(device: str, dtype: str) -> None:
    rng = np.random.default_rng(4)
    x, y = (dt.asarray((rng.standard_normal(333) * 9).astype(dtype), device=device) for _ in "ab")
    want = (x[None] @ y[:, None]).item()
    for _ in range(3):  # how it is cached from the second time on
        assert (x @ y).item() == want


def test_product_of_two_vectors_of_integers_fuses_with_other_ops(device: str) -> None:
    x = dt.arange(9, device=device)
    dt.evaluate(x)
    product = (x + 1) @ x
    assert len(dt.explain(product).launches) == 1


def test_product_of_a_vector_has_the_bits_of_the_product_of_matrices(device: str) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(s).astype("f4") for s in ((40, 300), (300, 30)))
    x, y = dt.asarray(a, device=device), dt.asarray(b, device=device)
    whole = x @ y
    for _ in range(2):  # how it is cached from the second time on
        assert (x[3] @ y).tolist() == whole[3].tolist()
        assert (x @ y[:, 7]).tolist() == whole[:, 7].tolist()


def test_large_products_with_vectors_are_matrix_products(device: str) -> None:
    x, y = dt.ones((200, 200), device=device), dt.ones(200, device=device)
    assert "matmul" in dt.explain(x @ y).text() and (x @ y).tolist() == [200.0] * 200


@pytest.mark.parametrize("length", [100, 1000])
def test_vecdot_has_the_bits_of_matmul(device: str, length: int) -> None:
    x = dt.asarray(np.linspace(-1, 1, 3 * length, dtype="f4").reshape(3, length), device=device)
    want = [(row @ row).item() for row in x]
    assert dt.vecdot(x, x).tolist() == want
    assert dt.vecdot(x.mT, x.mT, axis=-2).tolist() == want
    assert dt.diagonal(x @ x.mT).tolist() == want


def test_matrix_vector_product_is_a_guard_hit(device: str) -> None:
    a, v = dt.ones((4, 3), device=device), dt.arange(3, dtype=dt.float32, device=device)
    dt.evaluate(a, v)
    for _ in range(2):
        dt.evaluate(a @ v)
    before = counters.graph_hits
    product = a @ v
    dt.evaluate(product)
    assert counters.graph_hits == before + 1
    assert product.tolist() == [3.0] * 4
