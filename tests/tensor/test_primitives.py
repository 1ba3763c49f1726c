"""The primitives of all functions, and their errors for tensors of another layout."""

from __future__ import annotations

from collections.abc import Callable

import dovetail as dt
import numpy as np
import pytest
from dovetail import layout as lay
from dovetail.tensor.primitives import slice_along
from dovetail.tensor.promotion import convert_operands


def test_slice_along_keeps_other_axes() -> None:
    assert lay.slice_along((2, 5, 3), 1, 4, 2, -3) == ("slice", (0, 4, 0), (2, 2, 3), (1, -3, 1))
    a = np.arange(30).reshape(2, 5, 3)
    x = dt.asarray(a, device="reference")
    found = slice_along(x, 1, 2, 3)
    np.testing.assert_array_equal(found.numpy(), a[:, 2:5])
    found[:] = 0
    assert x.sum().item() == a[:, :2].sum(), "it shares no memory"


def test_numpy_scalars_become_tensors_of_their_dtype() -> None:
    x = dt.asarray([1, 2, 3], dtype=dt.int8, device="reference")
    first, second = convert_operands("isin", x, np.int32(2))
    assert first is x and isinstance(second, dt.Tensor)
    assert second.dtype is dt.int32 and second.shape == ()
    assert dt.isin(x, np.int32(2)).tolist() == [False, True, False]  # type: ignore[arg-type]


def called_by_the_user(function: Callable[..., object], *args: object) -> object:
    return function(*args)


@pytest.mark.parametrize(
    ("name", "f"),
    [
        ("argsort", dt.argsort), ("topk", lambda x: dt.topk(x, 1)),
        ("argpartition", lambda x: dt.argpartition(x, 1)),
        ("as_strided", lambda x: dt.as_strided(x, (1,), (1,))), ("view", lambda x: x.view(9)),
        ("reshape", lambda x: dt.reshape(x, 9, copy=False)),
        ("logsumexp", dt.logsumexp), ("detach_", lambda x: x.detach_()),
        ("setitem", lambda x: x.__setitem__(0, 1)),
        ("__dlpack__", lambda x: x.__dlpack__()), ("__array__", lambda x: np.asarray(x)),
        ("is_pinned", lambda x: x.is_pinned()), ("full", lambda x: dt.full((2,), x[0, 0])),
        ("add", lambda x: dt.add(dt.ones(3, device="reference"), 1, out=x)),
        ("index_add", lambda x: dt.index_add(x, 0, [0], 1.0)), ("data_ptr", lambda x: x.data_ptr()),
    ],
)  # fmt: skip
def test_layout_error_names_the_called_function(name: str, f: Callable[..., object]) -> None:
    x = dt.asarray(np.eye(3), device="reference").to_sparse()
    with pytest.raises(dt.LayoutError, match=f"^{name}: not supported for the layout sparse_coo"):
        called_by_the_user(f, x)
