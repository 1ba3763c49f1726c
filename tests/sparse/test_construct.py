"""Construction of sparse tensors: stored entries, errors, and conversion to dense and back."""

from __future__ import annotations

import pkgutil
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from sessions import find_module_failures
from sparse_samples import scattered, triples

AT, VALUES, SIZE = [[0, 1, 1, 0], [2, 0, 2, 2]], [3.0, 4.0, 5.0, 1.0], (2, 3)


def test_entries_are_stored_as_given_until_coalesced(device: dt.Device) -> None:
    x = dt.sparse_coo_tensor(AT, VALUES, SIZE)
    assert (x.nnz, x.sparse_dim(), x.dense_dim(), x.is_coalesced()) == (4, 2, 0, False)
    assert x.shape == SIZE and x.layout is dt.sparse_coo and x.dtype is dt.float32
    assert x.device is device and isinstance(x, dt.Tensor)
    assert x.indices().tolist() == AT and x.values().tolist() == VALUES
    y = x.coalesce()
    assert y.indices().tolist() == [[0, 1, 1], [2, 0, 2]] and y.values().tolist() == [4, 4, 5]
    assert y.is_coalesced() and y.coalesce() is y and x.nnz == 4
    assert x.to_dense().tolist() == [[0, 0, 4], [4, 0, 5]]


def test_default_size_is_the_smallest_possible() -> None:
    assert dt.sparse_coo_tensor(AT, VALUES).shape == (2, 3)
    assert dt.sparse_coo_tensor(AT, [[1.0, 2.0]] * 4).shape == (2, 3, 2)


@pytest.mark.parametrize(("shape", "dense"), [((6, 7), 0), ((4, 3, 5), 1), ((3, 4, 2, 2), 2),
                                              ((9,), 0), ((0, 5), 0), ((3, 0), 1)])  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool, np.uint64, np.float16])
def test_conversion_to_dense_and_back(
    device: dt.Device, shape: tuple[int, ...], dense: int, dtype: Any
) -> None:
    at, values = triples(np.random.default_rng(1), shape, dense=dense, dtype=dtype)
    if np.dtype(dtype).kind == "u":
        values = np.abs(values.astype("i8")).astype(dtype)
    x = dt.sparse_coo_tensor(at, values, shape)
    want = scattered(at, values, shape)
    for y in (x, x.coalesce(), x.to_dense().to_sparse(), x.to_dense().to_sparse(x.sparse_dim())):
        assert y.to_dense().numpy().dtype == want.dtype
        np.testing.assert_array_equal(y.to_dense().numpy(), want)
    assert x.to_dense().to_sparse().nnz == np.count_nonzero(want)


def test_halves_are_summed_in_float32_and_rounded_once() -> None:
    x = dt.sparse_coo_tensor([[0, 0, 0]], dt.asarray([2048.0, 1.0, 1.0], dtype=dt.float16), (1,))
    assert x.coalesce().values().tolist() == [2050.0]


def test_positions_beyond_an_int64_are_sorted(device: dt.Device) -> None:
    shape = (2**40, 2**41, 5)
    at = [[2**39, 3, 2**39, 3], [7, 2**40, 7, 9], [1, 0, 0, 4]]
    x = dt.sparse_coo_tensor([*at], [1.0, 2.0, 3.0, 4.0], shape).coalesce()
    assert x.indices().tolist() == [[3, 3, 2**39, 2**39], [9, 2**40, 7, 7], [4, 0, 0, 1]]
    assert x.values().tolist() == [4, 2, 3, 1]
    assert (x + x).values().tolist() == [8, 4, 6, 2] and (x * x).values().tolist() == [16, 4, 9, 1]


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (([[0, 5]], [1.0, 2.0], (3,)), dt.OutOfRangeError, "index 5 along dimension 0"),
        (([[0, -1]], [1.0, 2.0], (3,)), dt.OutOfRangeError, "must not be negative, got -1"),
        (([[0, 1]], [1.0], (3,)), dt.ShapeError, "last axis of indices"),
        (([0, 1], [1.0, 2.0], (3,)), dt.ShapeError, "sparse dimensions, entries"),
        (([[0, 1]], [1.0, 2.0], (3, 3)), dt.ShapeError, "must have 1 dimensions"),
        (([[0, 1]], [[1.0], [2.0]], (3, 3)), dt.ShapeError, "dense dimensions"),
        (([[0, 1]], [1.0, 2.0], (-3,)), dt.ShapeError, "must not be negative"),
        (([[0.5, 1]], [1.0, 2.0], (3,)), dt.DTypeError, "indices must be integers"),
    ],
)
def test_invalid_input_raises_immediately(arguments: Any, error: Any, says: str) -> None:
    for at in (arguments[0], dt.asarray(arguments[0])):
        with pytest.raises(error, match=says):
            dt.sparse_coo_tensor(at, *arguments[1:])


def test_wrong_is_coalesced_and_devices_raise() -> None:
    with pytest.raises(dt.ArgumentError, match="lexicographic order"):
        dt.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (3,), is_coalesced=True)
    with pytest.raises(dt.DeviceError, match="indices are on"):
        dt.sparse_coo_tensor(dt.asarray([[0]], device="reference"), dt.ones(1, device="cpu"), (1,))
    with pytest.raises(dt.ArgumentError, match="sparse_dim"):
        dt.ones((2, 2)).to_sparse(3)


def test_right_is_coalesced_needs_no_sorting() -> None:
    x = dt.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (3,), is_coalesced=True)
    assert x.is_coalesced() and x.to_dense().tolist() == [1, 0, 2]


def test_conversion_to_other_devices_and_dtypes(device: dt.Device) -> None:
    x = dt.sparse_coo_tensor(AT, VALUES, SIZE)
    y = x.to("reference").to(dt.float64)
    assert str(y.device) == "reference" and y.dtype is dt.float64
    np.testing.assert_array_equal(y.to_dense().numpy(), x.to_dense().numpy())
    assert x.nbytes == 4 * (2 * 8 + 4)


def test_docstring_examples_are_correct() -> None:
    modules = [f"dovetail.sparse.{m.name}" for m in pkgutil.iter_modules(dt.sparse.__path__)]
    assert "".join(map(find_module_failures, modules)) == ""
