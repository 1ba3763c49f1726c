"""Reductions over axes without elements: what prod and all are of nothing is not 0."""

from __future__ import annotations

import itertools

import dovetail as dt
import numpy as np
import pytest

NOTHING = [  # of size 0: shape, positions, shape of the values
    ((2, 0), [[0]], (1, 0)),
    ((2, 0, 3), [[0]], (1, 0, 3)),
    ((0, 3), np.zeros((1, 0), int), (0, 3)),
    ((2, 3, 0), [[0, 1], [1, 1]], (2, 0)),
    ((3, 0), np.zeros((2, 0), int), (0,)),
]


@pytest.mark.parametrize("name", ["prod", "all", "any", "sum", "mean", "count_nonzero"])
@pytest.mark.parametrize("number", range(len(NOTHING)))
def test_a_reduction_of_nothing_is_that_of_the_strided_tensor(
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
