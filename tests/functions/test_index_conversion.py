"""Flat and multi-dimensional indices, open meshes and triangles against NumPy; bad input."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call"
from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest


def assert_same(found: Any, want: Any) -> None:
    """Assert equal shapes, dtypes and elements of one tensor or of several."""
    if isinstance(want, tuple):
        assert isinstance(found, tuple) and len(found) == len(want)
        for f, w in zip(found, want, strict=True):
            assert_same(f, w)
        return
    assert isinstance(found, dt.Tensor)
    want = np.asarray(want)
    assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
    np.testing.assert_array_equal(found.numpy(), want)


SHAPES: list[Any] = [(3, 4), (5,), 7, (2, 3, 4), (1, 6, 1, 2)]


# --- flat and multi-dimensional indices


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["i8", "i4", "u1"])
def test_unravel_index_equals_numpy(device: dt.Device, shape: Any, dtype: str) -> None:
    n = int(np.prod(shape))
    for a in (np.arange(n, dtype=dtype), np.array([[n - 1], [0]], dtype), np.zeros((0, 2), dtype)):
        want = np.unravel_index(a, shape)
        for given in (dt.asarray(a), a, dt.flip(dt.asarray(a[::-1].copy()), axis=0)):
            found = dt.unravel_index(given, shape)
            assert_same(found, want)
            assert all(i.device is device for i in found)
    assert_same(dt.unravel_index(n - 1, shape), np.unravel_index(n - 1, shape))
    assert_same(dt.unravel_index(dt.asarray(n - 1), shape), np.unravel_index(n - 1, shape))


def test_unravel_index_of_small_shapes() -> None:
    assert dt.unravel_index(0, (), device="reference") == np.unravel_index(0, ()) == ()
    none = dt.asarray([], dtype=dt.int64, device="reference")
    assert_same(dt.unravel_index(none, (2, 0)), np.unravel_index(np.zeros(0, int), (2, 0)))
    assert [i.shape for i in dt.unravel_index([], (2, 3), device="reference")] == [(0,), (0,)]


@pytest.mark.parametrize("shape", [s for s in SHAPES if isinstance(s, tuple)], ids=str)
def test_ravel_multi_index_equals_numpy(device: dt.Device, shape: Any) -> None:
    a = np.arange(int(np.prod(shape))).reshape(1, -1)
    parts = np.unravel_index(a, shape)
    tensors = [dt.asarray(p) for p in parts]
    for given in (tensors, tuple(tensors), dt.stack(tensors), [tensors[0], *parts[1:]], parts,
                  np.stack(parts)):  # fmt: skip
        found = dt.ravel_multi_index(given, shape)
        assert_same(found, a)
        assert found.device is device
    rng = np.random.default_rng(1)
    far = tuple(rng.integers(-9, 9, (2, 3)) for _ in shape)
    for mode in ("wrap", "clip", ("clip", "wrap", "wrap", "clip")[: len(shape)]):
        want = np.ravel_multi_index(far, shape, mode=mode)
        assert_same(dt.ravel_multi_index([dt.asarray(p) for p in far], shape, mode), want)
        assert_same(dt.ravel_multi_index(far, shape, mode=mode), want)


def test_ravel_multi_index_broadcasts(device: dt.Device) -> None:
    rows, columns = np.arange(3)[:, None], np.arange(4, dtype="i2")
    want = np.ravel_multi_index((rows, columns), (3, 4))
    assert_same(dt.ravel_multi_index((dt.asarray(rows), dt.asarray(columns)), (3, 4)), want)
    assert_same(dt.ravel_multi_index((dt.asarray(rows), 2), (3, 4)), want[:, 2:3])
    assert_same(dt.ravel_multi_index((1, 2), (3, 4)), np.ravel_multi_index((1, 2), (3, 4)))
    assert_same(dt.ravel_multi_index((), ()), np.ravel_multi_index((), ()))


def test_indices_out_of_range_raise(device: dt.Device) -> None:
    for bad in (12, -1, 1 << 40):
        with pytest.raises(dt.OutOfRangeError, match=rf"unravel_index: {bad} is out of range for "):
            dt.unravel_index([0, bad], (3, 4))
        with pytest.raises(dt.OutOfRangeError, match="unravel_index: "):
            dt.unravel_index(dt.asarray([0, bad]), (3, 4))[1].tolist()
        with pytest.raises(dt.OutOfRangeError, match=rf"ravel_multi_index: {bad} is .* axis 1 of"):
            dt.ravel_multi_index(([0, 0], [0, bad]), (3, 4))
        with pytest.raises(dt.OutOfRangeError, match=r"ravel_multi_index: .* axis 1 of size 4"):
            dt.ravel_multi_index(dt.asarray([[0], [bad]]), (3, 4)).tolist()
    for mode in ("raise", "wrap", "clip"):
        with pytest.raises(dt.OutOfRangeError, match=r"ravel_multi_index: .* of size 0"):
            dt.ravel_multi_index(([0], [0]), (3, 0), mode)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: dt.unravel_index([1.5], (3,)), dt.DTypeError, "unravel_index: .*integers"),
        (lambda: dt.unravel_index([True], (3,)), dt.DTypeError, "unravel_index: .*bool"),
        (lambda: dt.unravel_index([1], (-3,)), dt.ShapeError, "unravel_index: "),
        (lambda: dt.unravel_index([1], "a"), dt.ShapeError, "unravel_index: "),
        (lambda: dt.unravel_index([0], ()), dt.ShapeError, r"unravel_index: .*shape \(\)"),
        (lambda: dt.unravel_index([0], (1 << 32, 1 << 32)), dt.ShapeError, "unravel_index: a"),
        (lambda: dt.ravel_multi_index(([0],), (3, 4)), dt.ArgumentError, "multi_index: .*got 1"),
        (lambda: dt.ravel_multi_index(([0],), (3,), "no"), dt.ArgumentError, "'raise' or 'wrap'"),
        (lambda: dt.ravel_multi_index(([0],), (3,), ["clip"] * 2), dt.ArgumentError, "2 modes"),
        (lambda: dt.ravel_multi_index(([0],), (3,), 5), dt.ArgumentTypeError, "mode"),
        (lambda: dt.ravel_multi_index(5, (3,)), dt.ArgumentTypeError, "multi_index must be a list"),
        (lambda: dt.ravel_multi_index(([0.5],), (3,)), dt.DTypeError, "ravel_multi_index: "),
        (lambda: dt.ravel_multi_index(([0, 1], [1, 2, 3]), (3, 4)), dt.ShapeError,
         "ravel_multi_index: "),
        (lambda: dt.ravel_multi_index(([0],) * 3, (1 << 30,) * 3), dt.ShapeError, "2\\*\\*63"),
    ],
)  # fmt: skip
def test_index_conversions_name_wrong_arguments(call: Any, error: Any, words: str) -> None:
    with dt.device("reference"), pytest.raises(error, match=words):
        call()


# --- open meshes


MESHES: list[Any] = [
    ([0, 2], [1, 3, 4]), ([True, False, True],),
    ([1], np.array([True, True]), np.arange(2, dtype="i2")),
    (), ([], [1]),
]  # fmt: skip


@pytest.mark.parametrize("n", range(len(MESHES)))
def test_ix_equals_numpy(device: dt.Device, n: int) -> None:
    want = np.ix_(*MESHES[n])
    assert_same(dt.ix_(*MESHES[n]), want)
    if all(len(v) for v in MESHES[n]):
        assert_same(dt.ix_(*[dt.asarray(v) for v in MESHES[n]]), want)
        assert_same(dt.ix_(*[dt.asarray(v) for v in MESHES[n][:1]], *MESHES[n][1:]), want)


def test_ix_selects_an_open_mesh(device: dt.Device) -> None:
    a = np.arange(20).reshape(4, 5)
    key = [3, 0], [True, False, True, False, True]
    assert dt.asarray(a)[dt.ix_(*key)].tolist() == a[np.ix_(*key)].tolist()
    assert all(v.device is device for v in dt.ix_(*key))
    assert dt.ix_(np.zeros(0, "f4"))[0].dtype is dt.int64


def test_ix_names_wrong_arguments() -> None:
    for given, error, words in (
        ([[1, 2]], dt.ShapeError, r"ix_: .*shape \(1, 2\)"), ([1.5], dt.DTypeError, "ix_: indices"),
        (3, dt.DTypeError, "ix_: .*int"), ("ab", dt.DTypeError, "ix_: .*str"),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            dt.ix_(given, device="reference")


# --- diagonals and triangles


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (0, 3), (1, 1)])
def test_triangle_indices_equal_numpy(device: dt.Device, shape: Any) -> None:
    a = np.zeros(shape, "f4")
    x = dt.asarray(a)
    for k in (0, 1, -1, 5, -5):
        assert_same(dt.tril_indices_from(x, k), np.tril_indices_from(a, k))
        assert_same(dt.triu_indices_from(x, k=k), np.triu_indices_from(a, k=k))
    assert dt.tril_indices_from(x)[0].device is device


@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 2), (0, 0), (1, 1, 1, 1)])
def test_diag_indices_equal_numpy(device: dt.Device, shape: Any) -> None:
    assert_same(dt.diag_indices_from(dt.zeros(shape)), np.diag_indices_from(np.zeros(shape)))


@pytest.mark.parametrize("n", [0, 1, 4])
def test_mask_indices_equal_numpy(device: dt.Device, n: int) -> None:
    for k in (0, 1, -2):
        for ours, theirs in ((dt.triu, np.triu), (dt.tril, np.tril), (np.triu, np.triu)):
            assert_same(dt.mask_indices(n, ours, k), np.mask_indices(n, theirs, k))
    assert_same(
        dt.mask_indices(n, lambda m, k: m * 3 > 0), np.mask_indices(n, lambda m, k: m * 3 > 0)
    )


def test_triangle_indices_name_wrong_arguments() -> None:
    x = dt.zeros((2, 2, 3), device="reference")
    for name in ("tril_indices_from", "triu_indices_from", "diag_indices_from"):
        for bad in (x, x[0, 0]):
            with pytest.raises(
                dt.ShapeError, match=f"{name}: expected .*shape .*; use dt.{name[:12]}"
            ):
                getattr(dt, name)(bad)
        with pytest.raises(dt.DTypeError, match=name):
            getattr(dt, name)([[1, 2], [3, 4]])
    with pytest.raises(dt.ArgumentError, match="mask_indices: n must not be negative"):
        dt.mask_indices(-1, dt.triu)
    with pytest.raises(dt.ArgumentTypeError, match="mask_indices: mask_func must be a function"):
        dt.mask_indices(2, 3)
    with pytest.raises(dt.ArgumentTypeError, match="mask_indices: k must be an int"):
        dt.mask_indices(2, dt.triu, "")
    with pytest.raises(dt.DTypeError, match=r"mask_indices: .*expected a tensor"):
        dt.mask_indices(2, lambda m, k: 3)
