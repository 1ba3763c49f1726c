"""Grids and their indices against NumPy; bad input."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call, index, misc"
from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest

KEYS: list[Any] = [
    np.s_[0:3, 0:2], np.s_[1:9:3], np.s_[0:1:5j, -1:1:3j], np.s_[:2, 5:1:-1, 0:2], np.s_[0:0, 0:2],
    np.s_[0:1:0.25], np.s_[0:2:1j],
]  # fmt: skip


def assert_same(found: Any, want: Any) -> None:
    if isinstance(want, (list, tuple)):
        assert isinstance(found, tuple) and len(found) == len(want)
        for f, w in zip(found, want, strict=True):
            assert_same(f, w)
        return
    want = np.asarray(want)
    want = want.astype("f4") if want.dtype.kind == "f" else want
    assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_mgrid_and_ogrid_equal_numpy(device: dt.Device, key: Any) -> None:
    assert_same(dt.mgrid[key], np.mgrid[key])
    assert_same(dt.ogrid[key], np.ogrid[key])
    assert dt.ogrid[0:2].device is device


@pytest.mark.parametrize("dtype", [None, dt.float64, dt.int32])
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize(("start", "stop"), [(0, 3), (-10, 10), (2.5, 1.5), (1, 1)])
def test_logspace_and_geomspace_equal_numpy(
    device: dt.Device, start: float, stop: float, endpoint: bool, dtype: Any
) -> None:
    for num, base in ((50, 10.0), (7, 2), (1, 10.0), (0, 10.0)):
        given = {"endpoint": endpoint, "dtype": dtype}
        found = dt.logspace(start, stop, num, base=base, **given)
        want = np.logspace(start, stop, num, endpoint=endpoint, base=base)
        assert found.device is device and found.dtype is (dtype or dt.float32)
        assert_near(found, want)
        sign = -1 if start < 0 else 1
        found = dt.geomspace(sign * 10**start, sign * 10**stop, num, **given)
        assert_near(found, np.geomspace(sign * 10**start, sign * 10**stop, num, endpoint=endpoint))
    if dtype is None:
        ends = dt.geomspace(0.1, 3e30).numpy()
        assert ends.size == 50 and (ends[[0, -1]] == np.float32([0.1, 3e30])).all()


def assert_near(found: dt.Tensor, want: Any) -> None:
    if found.dtype.kind == "i":  # a value close to an integer may be truncated either way
        assert (np.abs(found.numpy() - np.clip(want, -(2**31), 2**31 - 1)) <= 1).all()
        return
    rtol = 1e-12 if found.dtype is dt.float64 else 1e-7
    np.testing.assert_allclose(found.numpy(), want, rtol=rtol)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: dt.geomspace(0, 1), dt.ArgumentError, "geomspace: .*got 0 and 1"),
        (lambda: dt.geomspace(-1, 1), dt.ArgumentError, "of the same sign"),
        (lambda: dt.geomspace(1, float("inf")), dt.ArgumentError, "finite"),
        (lambda: dt.geomspace(float("nan"), 1), dt.ArgumentError, "finite"),
        (lambda: dt.logspace(0, 1, -1), dt.ArgumentError, "num"),
        (lambda: dt.logspace("a", 1), dt.ArgumentTypeError, "start"),
        (lambda: dt.logspace(0, 1, dtype=dt.complex64), dt.DTypeError, "complex64"),
    ],
)
def test_logspace_and_geomspace_with_bad_arguments_raise(call: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("shape", [(2, 3), 4, (2, 0, 3), ()])
def test_indices_equal_numpy(device: dt.Device, shape: Any) -> None:
    sizes = (shape,) if isinstance(shape, int) else shape
    assert_same(dt.indices(shape), np.indices(sizes))
    assert_same(dt.indices(shape, sparse=True), np.indices(sizes, sparse=True))
    assert dt.indices((2, 2), dtype="float64").dtype is dt.float64


def test_fromfunction_equals_numpy(device: dt.Device) -> None:
    assert_same(dt.fromfunction(lambda i, j: i * 10 + j, (2, 3)),
         np.fromfunction(lambda i, j: i * 10 + j, (2, 3)))  # fmt: skip
    assert_same(
        dt.fromfunction(lambda i, j: i == j, (2, 3), dtype=dt.int64), np.eye(2, 3, dtype=bool)
    )


def test_invalid_grids_raise() -> None:
    for grid, name in ((dt.mgrid, "mgrid"), (dt.ogrid, "ogrid")):
        for key, error in (
            (3, dt.ArgumentTypeError), ((slice(2), "a"), dt.ArgumentTypeError),
            (slice(1, None), dt.ArgumentError), (slice("a"), dt.ArgumentTypeError),
            (slice(0, 1, complex("inf")), dt.ArgumentError), (slice(0, 3, 0), dt.ArgumentError),
        ):  # fmt: skip
            with pytest.raises(error, match=rf"{name}|arange"):
                grid[key]
    with pytest.raises(dt.ShapeError, match="indices"):
        dt.indices((-1, 2))
    with pytest.raises(dt.ArgumentTypeError, match="fromfunction"):
        dt.fromfunction(3, (2,))
