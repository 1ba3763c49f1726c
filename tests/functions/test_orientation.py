"""Rotated and mirrored tensors and diagonals against NumPy; bad input."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call"
from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import gradcheck


def assert_same(found: dt.Tensor, want: Any) -> None:
    want = np.asarray(want)
    assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
    np.testing.assert_array_equal(found.numpy(), want)


CUBE = np.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize("k", range(-5, 6))
@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (2, -3), (1, 2)])
def test_rot90_equals_numpy(device: dt.Device, k: int, axes: tuple[int, int]) -> None:
    assert_same(dt.rot90(dt.asarray(CUBE), k, axes), np.rot90(CUBE, k, axes))


def test_flips_and_rotations_are_views(device: dt.Device) -> None:
    for name in ("fliplr", "flipud", "rot90"):
        x = dt.asarray(CUBE)
        turned = getattr(dt, name)(x)
        assert_same(turned, getattr(np, name)(CUBE))
        turned.fill_(7)
        assert x.min().item() == 7


def test_flips_of_too_few_axes_raise() -> None:
    x = dt.ones(3, device="reference")
    with pytest.raises(dt.ShapeError, match="fliplr: expected at least 2"):
        dt.fliplr(x)
    with pytest.raises(dt.ShapeError, match="flipud: expected at least 1"):
        dt.flipud(dt.ones((), device="reference"))
    with pytest.raises(dt.AxisError, match="rot90"):
        dt.rot90(x)
    for axes in ((0, 0), (0, 1, 2), (0, -2)):
        with pytest.raises(dt.AxisError, match=r"rot90: axes must be two different"):
            dt.rot90(dt.ones((2, 2), device="reference") if axes != (0, 1, 2) else dt.ones(
                (2, 2, 2), device="reference"), axes=axes)  # fmt: skip


@pytest.mark.parametrize("k", [-3, -1, 0, 2, 5])
def test_diag_functions_equal_numpy(device: dt.Device, k: int) -> None:
    for a in (np.arange(4.0), np.array([True, False]), np.arange(0), np.arange(6).reshape(2, 3)):
        x = dt.asarray(a, dtype=str(a.dtype))
        assert_same(dt.diag(x, k), np.diag(a, k))
        assert_same(dt.diagflat(x, k), np.diagflat(a, k))


@pytest.mark.parametrize("offset", [-1, 0, 2, 7])
def test_trace_equals_numpy(device: dt.Device, offset: int) -> None:
    for d in ("i1", "f4", "u2", "?"):
        a = CUBE.astype(d)
        want = np.trace(a.astype("u8" if d == "u2" else "i8" if d != "f4" else d), offset, 1, 2)
        assert_same(dt.trace(dt.asarray(a), offset=offset, axis1=1, axis2=2), want)
    assert_same(dt.trace(dt.asarray(CUBE), dtype="float64"), np.trace(CUBE, dtype="f8"))


@pytest.mark.parametrize("n, m, k", [(3, 3, 0), (2, 4, 1), (4, 2, -1), (0, 3, 0), (3, 2, 9)])
def test_triangle_indices_equal_numpy(device: dt.Device, n: int, m: int, k: int) -> None:
    for name in ("tril_indices", "triu_indices"):
        for f, w in zip(getattr(dt, name)(n, k, m), getattr(np, name)(n, k, m), strict=True):
            assert_same(f, w)
    assert_same(dt.tri(n, m, k=k), np.tri(n, m, k, "f4"))
    for f, w in zip(dt.diag_indices(n, 3), np.diag_indices(n, 3), strict=True):
        assert_same(f, w)


def test_gradients_of_diagonals() -> None:
    x = dt.asarray(np.random.default_rng(0).normal(size=(3, 3)), device="reference")
    x.requires_grad_()
    assert gradcheck(lambda t: dt.diag(t, 1) * dt.trace(t), x)
    assert gradcheck(lambda t: dt.diag(t[0], -1) * dt.rot90(dt.diagflat(t[1], 1)), x)


def test_wrong_arguments_of_diagonals_raise() -> None:
    with pytest.raises(dt.ShapeError, match="diag: expected a vector or a matrix"):
        dt.diag(dt.ones((2, 2, 2), device="reference"))
    with pytest.raises(dt.ShapeError, match="diagflat"):
        dt.diagflat(dt.ones(3, device="reference"), 2**70)
    with pytest.raises(dt.ArgumentError, match="diag_indices"):
        dt.diag_indices(-1)
    with pytest.raises(dt.ShapeError, match="triu_indices"):
        dt.triu_indices(-1)
