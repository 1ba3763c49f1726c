"""Products with strided operands: one kernel for a vector, block by block for BSR.

Their bits equal those of every other method.
"""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.engine.evaluate import plan_pending
from dovetail.extend import Loop, Store, loads
from dovetail.fusion.plan import PlannedLaunch

Array = np.ndarray[Any, Any]


def sample(rows: int = 90, columns: int = 70, d: Any = np.float32) -> Array:
    rng = np.random.default_rng(2)
    return (rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < 0.2)).astype(d)


def op_of(x: dt.Tensor) -> str:
    op = x._expr.op
    assert op is not None
    return op.name


@pytest.mark.parametrize("d", [np.float32, np.float64, np.int32, np.complex64])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_product_with_a_vector_is_one_kernel(device: dt.Device, kind: str, d: type[Any]) -> None:
    a = (sample() * 8).astype(d)
    x = getattr(dt.asarray(a), f"to_sparse_{kind}")()
    v = dt.asarray(np.arange(70).astype(d))
    found = x @ v
    assert op_of(found) == "sparse_product" and found.shape == (90,)
    assert (x.T @ dt.asarray(np.arange(90).astype(d))).shape == (70,)
    wide = x @ v.reshape(70, 1)  # the general method
    assert found.numpy().tobytes() == wide.numpy().tobytes()
    np.testing.assert_allclose(found.numpy(), a @ np.arange(70).astype(d), rtol=1e-4)


def test_product_with_conversion_or_gradients_uses_the_general_method(device: dt.Device) -> None:
    x = dt.asarray(sample()).to_sparse_csr()
    v = dt.asarray(sample(70, 1).reshape(-1))
    assert (x @ v.astype(dt.float64)).dtype is dt.float64
    assert (x.astype(dt.int64) @ v).dtype is dt.result_type(dt.int64, dt.float32)
    plain = (x @ v).numpy()
    v.requires_grad_()
    made = x @ v
    assert made.requires_grad and made.numpy().tobytes() == plain.tobytes()
    (g,) = dt.grad(made.sum(), [v])
    np.testing.assert_allclose(g.numpy(), sample().sum(axis=0), rtol=1e-5)
    y = x.detach().requires_grad_()
    (y @ v.detach()).sum().backward()
    assert y.grad is not None
    with pytest.raises(dt.ShapeError, match="as many columns as"):
        x @ dt.ones(90)
    empty = dt.zeros((5, 70)).to_sparse_csr()
    assert (empty @ v.detach()).tolist() == [0.0] * 5


def test_captured_product_reads_new_vectors(device: dt.Device) -> None:
    a = sample()
    x = dt.asarray(a).to_sparse_csr()
    f = dt.jit(lambda v: x @ v + 1)
    for seed in (1, 2, 3):
        v = np.random.default_rng(seed).standard_normal(70).astype("f4")
        want = (x @ dt.asarray(v).reshape(70, 1)).reshape(-1) + 1
        assert f(dt.asarray(v)).numpy().tobytes() == want.numpy().tobytes()


# --- blocks --------------------------------------------------------------------------------------

BLOCKS = [(1, 1), (2, 2), (4, 4), (8, 8), (1, 5), (5, 2), (3, 7), (16, 4), (9, 1)]


def in_blocks(block: tuple[int, int], d: Any = np.float32) -> dt.Tensor:
    """Return a matrix of 7 x 6 blocks with some empty block rows."""
    rng = np.random.default_rng(4)
    there = np.kron(rng.random((7, 6)) < 0.4, np.ones(block))
    there[: block[0]] = 0
    numbers = rng.standard_normal(there.shape) * 8 * there * (rng.random(there.shape) < 0.8)
    x: dt.Tensor = dt.asarray(numbers.astype(d)).to_sparse_bsr(block)
    return x


def strided(rows: int, shape: tuple[int, ...], d: Any) -> dt.Tensor:
    numbers = np.random.default_rng(5).standard_normal((rows, *shape)) * 8
    return dt.asarray(numbers.astype(d))


OTHERS = [((4, 4), d) for d in (np.float64, np.float16, np.int16, np.uint32)]


@pytest.mark.parametrize("shape", [(), (1,), (70,)])
@pytest.mark.parametrize(("block", "d"), [*((b, np.float32) for b in BLOCKS), *OTHERS])
def test_block_products_have_the_bits_of_single_elements(
    device: dt.Device, block: tuple[int, int], shape: tuple[int, ...], d: type[Any]
) -> None:
    x = in_blocks(block, d)
    for a in (x, x.T):
        v = strided(a.shape[1], shape, d)
        found, want = a @ v, a.to_sparse() @ v
        assert found.shape == want.shape == (a.shape[0], *shape)
        assert found.numpy().tobytes() == want.numpy().tobytes()


def kernel_of(x: dt.Tensor) -> Any:
    [*_, (_, plan)] = plan_pending([x._expr])
    [kernel] = [
        s.kernel for s in plan.steps if isinstance(s, PlannedLaunch) and "block" in s.kernel.name
    ]
    return kernel


@pytest.mark.parametrize(("block", "rows"), [((4, 4), 4), ((8, 8), 8), ((16, 4), 8), ((9, 1), 3)])
def test_vector_product_computes_many_rows_of_a_block_per_point(
    device: dt.Device, block: tuple[int, int], rows: int
) -> None:
    x = in_blocks(block)
    dt.evaluate(x @ strided(x.shape[1], (), np.float32))  # positions are computed once
    kernel = kernel_of(x @ strided(x.shape[1], (), np.float32))
    [loop] = [s for s in kernel.body if isinstance(s, Loop)]
    read = [v.buffer.dtype for v in loads(loop.body)]
    assert len(loop.results) == rows
    assert read.count(dt.int32) == 1  # the column
    assert len(read) == 1 + block[1] + rows * block[1]  # the vector's elements, and the block's
    assert len([s for s in kernel.body if isinstance(s, Store)]) == rows


def test_matrix_product_with_many_columns_leaves_rows_to_the_backend(device: dt.Device) -> None:
    for block, rows, axes in (((4, 4), 4, 2), ((8, 8), 1, 3), ((2, 2), 2, 2)):
        x = in_blocks(block)
        y = strided(x.shape[1], (70,), np.float32)
        dt.evaluate(x @ y)
        kernel = kernel_of(x @ y)
        [loop] = [s for s in kernel.body if isinstance(s, Loop)]
        assert len(loop.results) == rows and len(kernel.grid) == axes


def test_large_and_complex_blocks_use_elements(device: dt.Device) -> None:
    for x in (in_blocks((9, 8)), in_blocks((4, 4), np.complex64)):
        v = strided(x.shape[1], (3,), x.values().numpy().dtype)
        want = x.to_sparse() @ v
        assert (x @ v).numpy().tobytes() == want.numpy().tobytes()


def test_gradients_flow_through_block_products(device: dt.Device) -> None:
    x, v = in_blocks((4, 4), np.float64), strided(24, (3,), np.float64)
    a, w = x.to_dense().requires_grad_(), v.detach().requires_grad_()
    (dt.square(a @ w)).sum().backward()
    blocks = x.detach().requires_grad_()
    u = v.detach().requires_grad_()
    (dt.square(blocks @ u)).sum().backward()
    assert u.grad is not None and w.grad is not None and a.grad is not None
    np.testing.assert_allclose(u.grad.numpy(), w.grad.numpy(), rtol=1e-12)
    there = x.to_sparse().to_dense().numpy() != 0
    assert blocks.grad is not None
    found = blocks.grad.to_dense().numpy()
    np.testing.assert_allclose(found[there], a.grad.numpy()[there], rtol=1e-12)


def test_captured_block_product_reads_new_vectors(device: dt.Device) -> None:
    x = in_blocks((4, 4))
    f = dt.jit(lambda v: x @ v)
    for seed in (1, 2, 3):
        v = dt.asarray(np.random.default_rng(seed).standard_normal(24).astype("f4"))
        assert f(v).numpy().tobytes() == (x.to_sparse() @ v).numpy().tobytes()


def test_block_products_in_vmap(device: dt.Device) -> None:
    x = in_blocks((2, 2))
    many = strided(5, (12,), np.float32)
    found = dt.vmap(lambda v: x @ v)(many)
    want = (x.to_sparse() @ many.T).T
    np.testing.assert_array_equal(found.numpy(), want.numpy())
