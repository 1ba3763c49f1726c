"""Sparse @ sparse row by row (Gustavson): the bits of the sorting method, without a sort in its
plans.
"""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.extend import Capabilities
from dovetail.sparse import gustavson
from dovetail.sparse.gustavson import times_sparse


@pytest.fixture(autouse=True)
def _near(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every device near memory, the reference too, which would be too slow otherwise."""
    monkeypatch.setattr(gustavson, "capabilities", lambda _: Capabilities(concurrency=2, near=1))


Array = np.ndarray[Any, Any]
ODD = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40]


def sample(rows: int, columns: int, density: float, d: Any, seed: int = 0) -> Any:
    """Return a matrix by rows, with zeros of both signs, infinities and NaN among the entries."""
    rng = np.random.default_rng(seed)
    there = rng.random((rows, columns)) < density
    there[rng.random(rows) < 0.2] = False
    starts = np.concatenate([[0], there.sum(axis=1).cumsum()])
    columns_of = np.nonzero(there)[1]
    values = rng.integers(-50, 50, columns_of.size).astype(d)
    if values.dtype.kind == "f":
        values *= rng.random(values.size).astype(d)
        odd = rng.random(values.size) < 0.05
        values[odd] = rng.choice(np.array(ODD, d), odd.sum())
    return dt.sparse_csr_tensor(starts, columns_of, values, (rows, columns))


def same_parts(x: Any, y: Any) -> None:
    assert x.shape == y.shape and x.nnz == y.nnz and x.dtype is y.dtype
    first, second = ((*m.parts, m.to_sparse().indices()) for m in (x, y))
    for a, b in zip(first, second, strict=True):
        assert bits(a) == bits(b)


def bits(x: dt.Tensor) -> bytes:
    """Return the bits, with all NaNs equal: their bits depend on the processor."""
    found = x.numpy()
    return np.where(np.isnan(found), 0, found).tobytes() + np.isnan(found).tobytes()


SHAPES = [(1, 1, 1), (7, 9, 9), (9, 8, 64), (9, 8, 65), (5, 6, 4096), (5, 6, 4097), (40, 9, 3)]
WIDE = [(60, 50, 13_000), (300, 200, 300)]
CASES = [*((s, np.float32) for s in SHAPES), ((9, 8, 65), np.float64), ((9, 8, 65), np.int64),
         ((9, 8, 65), np.int32)]  # fmt: skip


@pytest.mark.parametrize(("shape", "d"), CASES)
def test_gustavson_has_the_bits_of_sorting(
    device: dt.Device, shape: tuple[int, int, int], d: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    m, k, n = shape
    a, b = sample(m, k, 0.5, d, 1), sample(k, n, 0.5 if n < 100 else 0.02, d, 2)
    if shape == (1, 1, 1):
        a = b = dt.asarray(np.full((1, 1), 3, d)).to_sparse_csr()
    quick = times_sparse(a.to_sparse(), b.to_sparse())
    assert quick is not None and quick.is_coalesced()
    same_parts(a @ b, quick.to_sparse_csr())
    monkeypatch.setattr(gustavson, "capabilities", lambda _: Capabilities())
    assert times_sparse(a.to_sparse(), b.to_sparse()) is None
    same_parts(quick.to_sparse_csr(), a @ b)


@pytest.mark.parametrize("shape", WIDE)
@pytest.mark.parametrize("d", [np.float32, np.float64, np.int64])
def test_several_points_per_unit_have_the_same_bits(
    shape: tuple[int, int, int], d: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    m, k, n = shape
    a, b = (sample(*size, 0.1, d, k).to("cpu") for size in ((m, k), (k, n)))
    many = a @ b
    monkeypatch.setattr(gustavson, "POINTS_PER_UNIT", 1)
    same_parts(many, a @ b)
    monkeypatch.setattr(gustavson, "capabilities", lambda _: Capabilities())
    same_parts(many, a @ b)


def test_gustavson_plans_contain_no_sort(device: dt.Device) -> None:
    a, b = sample(20, 10, 0.2, np.float32, 1), sample(10, 30, 0.2, np.float32, 2)
    a @ b
    with dt.profile() as p:
        values = (a @ b).values()
        dt.evaluate(values)
    done = [event["name"] for event in p.events]
    assert {"launch sparse_columns", "launch sparse_values"} <= {*done}
    assert not any("sort" in name or "radix" in name for name in done)


def test_unsupported_operands_use_sorting(
    device: dt.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = (sample(20, 20, 0.3, np.int64, s).astype(dt.float64).to_sparse() for s in (1, 2))
    for x, y in (
        ((a / 8).astype(dt.float16), (b / 8).astype(dt.float16)),
        (a.astype(dt.complex64), b.astype(dt.complex64)),
        (dt.zeros((20, 20)).to_sparse(), b.astype(dt.float32)),
        (a.detach().requires_grad_(), b),
    ):
        assert times_sparse(x.coalesce(), y.coalesce()) is None
        np.testing.assert_allclose(
            (x @ y).to_dense().detach().numpy(),
            x.to_dense().detach().numpy() @ y.to_dense().numpy(),
            rtol=1e-2,
        )
    tall = dt.sparse_coo_tensor([[999], [3]], [2.0], (1000, 20), dtype=dt.float64)
    assert times_sparse(tall.coalesce(), b.coalesce()) is None  # most rows are empty
    monkeypatch.setattr(gustavson, "WORKSPACE_BYTES_MAX", 100)
    assert times_sparse(a.coalesce(), b.coalesce()) is None


def test_product_without_common_entries_is_empty(device: dt.Device) -> None:
    a = dt.sparse_coo_tensor([[0, 1], [0, 1]], [1.0, 2.0], (3, 4), is_coalesced=True)
    b = dt.sparse_coo_tensor([[2, 3], [0, 1]], [1.0, 2.0], (4, 5), is_coalesced=True)
    assert (a @ b).nnz == 0 and (a @ b).shape == (3, 5)


def test_gradients_of_the_product_equal_numpy(device: dt.Device) -> None:
    a, b = (sample(9, 9, 0.4, np.int64, s).astype(dt.float64) for s in (1, 2))
    x = a.detach().requires_grad_()
    (x @ b).values().sum().backward()
    want = np.ones((9, 9)) @ b.to_dense().numpy().T
    there = a.to_dense().numpy() != 0
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.to_dense().numpy()[there], want[there])


def test_result_has_its_row_pointers(device: dt.Device) -> None:
    a, b = sample(30, 10, 0.3, np.float32, 1), sample(10, 40, 0.3, np.float32, 2)
    c = a @ b
    starts = c.crow_indices().numpy()
    rows = c.to_sparse().indices()[0].numpy()
    np.testing.assert_array_equal(np.repeat(np.arange(30), np.diff(starts)), rows)
    assert (c @ dt.ones(40)).shape == (30,) and c.T.to_sparse().coalesce().nnz == c.nnz
