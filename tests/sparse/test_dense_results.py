"""Reads on the host, and functions of sparse tensors whose results are dense."""

from __future__ import annotations

from collections.abc import Callable

import dovetail as dt
import numpy as np
import pytest

DENSE = np.array([[0.0, 2.0, 0.0, -1.0], [3.0, 0.0, 2.0, 0.0]])
LAYOUTS: dict[str, Callable[[dt.Tensor], dt.Tensor]] = {
    "coo": lambda x: x.to_sparse(),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((1, 2)),
}


@pytest.fixture(params=LAYOUTS)
def sparse(request: pytest.FixtureRequest) -> dt.Tensor:
    """Return a sparse tensor of each layout with the values DENSE."""
    return LAYOUTS[request.param](dt.asarray(DENSE))


def test_host_reads_of_one_element_give_numbers(sparse: dt.Tensor) -> None:
    assert sparse.tolist() == DENSE.tolist()
    one, zero = sparse[1:, :1], sparse[0, 0]
    assert one.item() == float(one) == int(one) == complex(one) == 3 and bool(one)
    assert zero.item() == float(zero) == 0 and not bool(zero)
    assert sparse.item(0, 1) == sparse.item(1) == sparse.item((1, 2)) == 2
    with pytest.raises(dt.ShapeError, match=r"item: expected a tensor with one element"):
        sparse.item()
    with pytest.raises(dt.ShapeError, match=r"float: expected a tensor with one element"):
        float(sparse)
    with pytest.raises(dt.LayoutError, match=r"numpy: not supported .* use x\.to_dense\(\)"):
        sparse.numpy()


def test_running_sums_medians_and_distinct_elements_are_those_of_the_dense_tensor(
    sparse: dt.Tensor,
) -> None:
    np.testing.assert_array_equal(sparse.cumulative_sum(1).numpy(), DENSE.cumsum(1))
    np.testing.assert_array_equal(dt.cumulative_prod(sparse, 0).numpy(), DENSE.cumprod(0))
    np.testing.assert_array_equal(sparse.median(axis=0).numpy(), np.median(DENSE, axis=0))
    assert dt.median(sparse).item() == 0 and dt.quantile(sparse, 1.0).item() == 3
    assert dt.unique(sparse).tolist() == dt.unique_values(sparse).tolist() == [-1, 0, 2, 3]
    values, counts = dt.unique_counts(sparse)
    assert values.tolist() == [-1, 0, 2, 3] and counts.tolist() == [1, 4, 2, 1]
    assert dt.unique_inverse(sparse).inverse_indices.shape == DENSE.shape


def test_gradient_of_a_running_sum_reaches_the_sparse_tensor() -> None:
    x = dt.asarray(DENSE).requires_grad_()
    (x.to_sparse().cumulative_sum(1) * dt.asarray(DENSE)).sum().backward()
    assert x.grad is not None
    want = np.cumsum(DENSE[:, ::-1], 1)[:, ::-1] * (DENSE != 0)
    np.testing.assert_array_equal(x.grad.numpy(), want)
