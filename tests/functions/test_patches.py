"""Patches as columns and back, against PyTorch's unfold and fold."""

# Some tests pass wrong types.
# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import gradcheck, gradgradcheck

torch = pytest.importorskip("torch", reason="PyTorch is one of the peers")

A = np.random.default_rng(8).normal(size=(2, 3, 7, 6))
OPTIONS: tuple[dict[str, Any], ...] = (
    {"kernel_size": 3},
    {"kernel_size": (2, 3), "stride": 2},
    {"kernel_size": (3, 2), "dilation": (2, 1), "padding": (1, 2), "stride": (2, 3)},
    {"kernel_size": 1, "padding": 1},
)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_unfold_and_fold_equal_pytorch(device: dt.Device, options: dict[str, Any]) -> None:
    want = torch.nn.functional.unfold(torch.from_numpy(A), **options)
    found = dt.unfold(dt.asarray(A), **options)
    assert np.array_equal(found.numpy(), want.numpy())
    back = torch.nn.functional.fold(want, (7, 6), **options)
    np.testing.assert_allclose(dt.fold(found, (7, 6), **options).numpy(), back.numpy(), rtol=1e-13)
    one = dt.unfold(dt.asarray(A[0]).flip(axis=1), **options)
    assert np.array_equal(one.numpy(), dt.unfold(dt.asarray(A[:1, :, ::-1]), **options)[0].numpy())


@pytest.mark.parametrize("d", ["int8", "bool", "complex64", "float16"])
def test_unfold_accepts_any_dtype(device: dt.Device, d: str) -> None:
    x = dt.asarray((A[0] > 0).astype("f4")).astype(d)
    assert dt.unfold(x, 2).dtype == d
    want = torch.nn.functional.unfold(torch.from_numpy((A[:1] > 0).astype("f4")), 2)[0]
    assert np.array_equal(dt.unfold(x, 2).numpy(), want.numpy())


def test_patches_of_one_and_of_three_axes(device: dt.Device) -> None:
    line, grid = dt.arange(12).reshape((2, 6)), dt.arange(48, dtype="int64").reshape((1, 4, 3, 4))
    assert dt.unfold(line, (4,), stride=2).tolist() == [
        [0, 2], [1, 3], [2, 4], [3, 5], [6, 8], [7, 9], [8, 10], [9, 11]]  # fmt: skip
    columns = dt.unfold(grid, (2, 3, 2))
    assert columns.shape == (12, 9) and columns[:, 0].tolist() == [
        0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21]  # fmt: skip
    counts = dt.fold(dt.unfold(dt.ones((1, 4, 3, 4)), (2, 3, 2)), (4, 3, 4), (2, 3, 2))
    assert counts[0, :, 1, 1].tolist() == [2, 4, 4, 2]


def test_unfold_and_fold_are_gradients_of_each_other() -> None:
    options = OPTIONS[2]
    x = dt.asarray(A[0, :2, :5, :5], device="reference").requires_grad_()
    assert gradcheck(lambda t: dt.unfold(t, **options), x)
    columns = dt.unfold(x.detach(), **options).requires_grad_()
    assert gradcheck(lambda t: dt.fold(t * t, (5, 5), **options), columns)
    assert gradgradcheck(lambda t: dt.fold(t * t, (5, 5), **options), columns)


def test_mismatched_sizes_raise() -> None:
    x = dt.zeros((1, 4, 4))
    for error, call, says in (
        (dt.ShapeError, lambda: dt.unfold(x, 5), r"unfold: patches must fit"),
        (dt.ShapeError, lambda: dt.unfold(x[0], 2), "unfold: expected channels and 2 axes"),
        (dt.ArgumentError, lambda: dt.unfold(x, 2, stride=0), "unfold: stride must be at least 1"),
        (dt.ArgumentError, lambda: dt.unfold(x, 2, padding=(1, 1, 1)), "padding must .*got 3"),
        (dt.ArgumentTypeError, lambda: dt.unfold(x, 2.5), "unfold: kernel_size must be an int"),
        (dt.ShapeError, lambda: dt.fold(x[0], (3, 3, 3), 2), "fold: output_size"),
        (dt.ShapeError, lambda: dt.fold(dt.zeros((3, 4)), 3, 2), "fold: expected shape"),
    ):
        with pytest.raises(error, match=says):
            call()
