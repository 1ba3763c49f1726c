"""Reductions over empty axes: the identity of prod and all is not 0."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import dovetail as dt
import numpy as np
import pytest
from dovetail.engine.events import counters

NOTHING = [  # of size 0: shape, positions, shape of the values
    ((2, 0), [[0]], (1, 0)),
    ((2, 0, 3), [[0]], (1, 0, 3)),
    ((0, 3), np.zeros((1, 0), int), (0, 3)),
    ((2, 3, 0), [[0, 1], [1, 1]], (2, 0)),
    ((3, 0), np.zeros((2, 0), int), (0,)),
]


@pytest.mark.parametrize("name", ["prod", "all", "any", "sum", "mean", "count_nonzero"])
@pytest.mark.parametrize("number", range(len(NOTHING)))
def test_reduction_of_an_empty_axis_equals_the_dense_one(
    device: str, name: str, number: int
) -> None:
    shape, at, values = NOTHING[number]
    x = dt.sparse_coo_tensor(at, np.ones(values, np.float32), shape, device=device)
    reduce, dense = getattr(dt, name), x.to_dense()
    for count in range(1, len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            want = reduce(dense, axis=axes).numpy()
            have = reduce(x, axis=axes).to_dense()
            assert have.numpy().dtype == want.dtype
            np.testing.assert_array_equal(have.numpy(), want)


def count_extra_launches(act: Callable[[], object]) -> int:
    """Return how many launches and calls more than one a repeated callable takes."""
    act()
    before = counters.launches + counters.calls
    act()
    return counters.launches + counters.calls - before


@pytest.mark.parametrize("coalesced", [False, True])
def test_order_of_columns_is_cached(device: str, coalesced: bool) -> None:
    at = np.random.default_rng(2).integers(0, 30, (2, 200))
    a = dt.sparse_coo_tensor(at, np.arange(200, dtype="f4"), (30, 30), device=device)
    a = a.coalesce() if coalesced else a
    x = dt.arange(30, dtype=dt.float32, device=device)
    dense = a.to_dense().numpy().astype("f8")
    assert count_extra_launches(lambda: dt.evaluate(a.T @ x)) <= 3
    assert count_extra_launches(lambda: dt.evaluate(dt.sum(a, axis=0).values())) <= 3
    assert count_extra_launches(lambda: dt.evaluate(dt.sum(a, axis=1).values())) <= 3
    np.testing.assert_allclose((a.T @ x).numpy(), dense.T @ np.arange(30), rtol=1e-5)
    for axis in (0, 1):
        found = dt.sum(a, axis=axis).to_dense().numpy()
        np.testing.assert_allclose(found, dense.sum(axis), rtol=1e-5)
