"""Views without elements, at any offset, in every function of views."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

# With their strides, each starts outside of the memory, which has no elements.
VIEWS: dict[str, Callable[[Any], Any]] = {
    "row": lambda x: x[2], "rows from behind": lambda x: x[::-1][1:3],
    "both from behind": lambda x: x[::-1, ::-1], "transposed row": lambda x: x.T[:, 3],
    "row, turned": lambda x: x[3][::-1], "block": lambda x: x.reshape((4, 0, 1))[2],
    "stretched row": lambda x: x[None, 1:2], "beyond": lambda x: x[4:],
}  # fmt: skip
COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "as_strided": lambda x: dt.as_strided(x, x.shape, (1,) * x.ndim),
}  # fmt: skip


@pytest.mark.parametrize("evaluated", [False, True])
@pytest.mark.parametrize("how", COPIES)
def test_empty_view_at_any_offset_is_copied(how: str, evaluated: bool, device: dt.Device) -> None:
    for name, view in VIEWS.items():
        x = view(dt.asarray(np.ones((4, 0), "f4")))
        x = x if evaluated else x * 1
        found, want = COPIES[how](x), view(np.ones((4, 0), "f4"))
        assert found.shape == x.shape == want.shape and found.tolist() == want.tolist(), name


@pytest.mark.parametrize("evaluated", [False, True])
def test_diagonal_and_trace_of_empty_views_equal_numpy(evaluated: bool, device: dt.Device) -> None:
    for view in VIEWS.values():
        x, a = view(dt.asarray(np.ones((4, 0), "f4"))), view(np.ones((4, 0), "f4"))
        x = x if evaluated else x * 1
        if a.ndim > 1:
            for offset in (-5, -1, 0, 1):
                assert dt.diagonal(x, offset).shape == np.diagonal(a, offset).shape
            assert dt.trace(x).tolist() == np.trace(a).tolist()


def test_gradient_of_the_diagonal_of_an_empty_view_has_the_operands_shape() -> None:
    x = dt.asarray(np.ones((4, 0), "f4"), device="reference").requires_grad_()
    dt.diagonal(x[::-1][1:]).sum().backward()
    assert x.grad is not None and x.grad.shape == (4, 0)


@pytest.mark.parametrize("how", COPIES)
def test_view_with_any_strides_is_copied(how: str, device: dt.Device) -> None:
    x = dt.arange(12).reshape((3, 4))
    views = [x[::-1, ::-2], x.T, x[1:2].expand(5, 4), x[2, 3], x[::2, 1::2].T]
    for view in views if how != "as_strided" else []:
        dt.evaluate(view)
        assert COPIES[how](view).tolist() == view.tolist()


@pytest.mark.parametrize("how", ["copy", "deepcopy", "pickle"])
def test_sparse_tensor_without_entries_is_copied(how: str, device: dt.Device) -> None:
    for shape in ((3, 3), (0, 3), (2, 0, 3)):
        indices = np.zeros((len(shape), 0), np.int64)
        x = dt.sparse_coo_tensor(indices, dt.zeros(0), shape)
        assert COPIES[how](x).to_dense().tolist() == np.zeros(shape).tolist()
