"""Insertion, deletion and overwriting of elements against NumPy; gradients; bad input."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call, call-overload, operator"
from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import gradcheck

A = np.arange(24).reshape(2, 3, 4)
AXES = [None, 0, 1, 2, -1, -3]
DTYPES = ["i8", "u1", "f4", "?", "c8"]


def assert_same(found: Any, want: Any) -> None:
    assert isinstance(found, dt.Tensor)
    want = np.asarray(want)
    assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
    np.testing.assert_array_equal(found.numpy(), want)


# --- insertion and deletion -----------------------------------------------------------------------


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_append_equals_numpy(device: dt.Device, dtype: str, axis: int | None) -> None:
    a = A.astype(dtype)
    for b in (a, a[:1, :1, :1] if axis is None else a, np.zeros((2, 3, 0), dtype)):
        if b.size or axis in (None, 2, -1):
            want = np.append(a, b, axis)
            assert_same(dt.append(dt.asarray(a), dt.asarray(b), axis), want)
            assert_same(dt.append(a, dt.asarray(b), axis=axis), want)
            assert_same(np.append(dt.asarray(a), b, axis), want)


def test_append_converts_numbers_to_the_dtype_of_the_tensor(device: dt.Device) -> None:
    assert_same(dt.append(dt.asarray(A), 7), np.append(A, 7))
    assert_same(dt.append(3, dt.asarray(A)), np.append(3, A))
    assert_same(dt.append(dt.ones(2), 2.5), np.array([1, 1, 2.5], "f4"))
    assert_same(dt.append(dt.asarray(1), [2, 3]), np.append(1, [2, 3]))


PLACES: list[Any] = [
    0, 1, -1, [1], [0, 1], [1, 0, -2], [0, 0, 0], [], slice(None), slice(1, None),
    slice(None, None, -1), slice(0, 0), np.array([1, 1]), np.array(-1), range(2),
]  # fmt: skip


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("turned", [False, True])
def test_insert_equals_numpy(device: dt.Device, axis: int | None, turned: bool) -> None:
    a = A.T if turned else A
    x = dt.asarray(A).permute_dims(2, 1, 0) if turned else dt.asarray(A)
    more = [] if axis is not None and a.shape[axis] < 3 else [2, [2, -1, 0, 2]]
    for at in [*PLACES, *more]:
        assert_same(dt.insert(x, at, -7, axis), np.insert(a, at, -7, axis))


def test_insert_broadcasts_values_like_numpy(device: dt.Device) -> None:
    a = A[0]  # (3, 4)
    x = dt.asarray(a)
    cases: list[tuple[Any, Any, int | None]] = [
        (1, [9, 8, 7, 6], 0), (1, [9, 8, 7], 1), ([1], [[9], [8], [7]], 1), ([0, 2], [9, 8], 1),
        ([2, 0, 2], [[1, 2, 3]], 1), (1, [[1, 2, 3, 4], [5, 6, 7, 8]], 0), ([1, 1], [5, 6], None),
        (slice(0, 2), [[1], [2]], 0), ([1], [[1, 2, 3, 4], [5, 6, 7, 8]], 0), (12, [1, 2, 3], None),
        ([12, -12, 4], [1, 2, 3], None), (0, np.zeros((0, 4), int), 0), (3, np.array(5), -2),
    ]  # fmt: skip
    for at, values, axis in cases:
        want = np.insert(a, at, values, axis)
        assert_same(dt.insert(x, at, values, axis), want)
        assert_same(np.insert(x, at, values, axis), want)
        if not isinstance(at, slice):
            assert_same(dt.insert(x, dt.asarray(at), dt.asarray(values), axis=axis), want)
        if isinstance(values, np.ndarray):
            assert_same(dt.insert(a, at, dt.asarray(values), axis), want)


def test_insert_accepts_a_mask_and_casts_values(device: dt.Device) -> None:
    x, mask = dt.asarray([1.0, 2, 3]), np.array([True, False, True])
    for m in (mask, mask.tolist(), dt.asarray(mask)):
        assert_same(dt.insert(x, m, 7), np.array([7, 1, 2, 7, 3], "f4"))
    assert_same(dt.insert(x, 1, dt.asarray([5, 6])), np.array([1, 5, 6, 2, 3], "f4"))
    assert_same(dt.insert(dt.asarray(4), 0, 7), np.array([7, 4]))
    assert_same(dt.insert(dt.zeros(0), 0, [1, 2]), np.array([1, 2], "f4"))


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_delete_equals_numpy(device: dt.Device, dtype: str, axis: int | None) -> None:
    a = A.astype(dtype)
    x = dt.asarray(a)
    for at in PLACES:
        want = np.delete(a, at, axis)
        assert_same(dt.delete(x, at, axis), want)
        if not isinstance(at, slice):
            assert_same(dt.delete(x, dt.asarray(at, dtype=dt.int64), axis=axis), want)
    assert_same(np.delete(x, 1, axis), np.delete(a, 1, axis))
    n = a.size if axis is None else a.shape[axis]
    mask = np.arange(n) % 2 == 0
    for m in (mask, mask.tolist(), dt.asarray(mask)):
        assert_same(dt.delete(x, m, axis), np.delete(a, mask, axis))


def test_delete_of_many_indices_copies(device: dt.Device) -> None:
    a = np.arange(50.0).reshape(25, 2)
    x = dt.asarray(a)
    for at in (
        [1, 3, 5, 7, 9, -1, -1],
        slice(None, None, 3),
        [0, 24],
        [3, 7, 20, 11],
        range(5, 20),
    ):
        assert_same(dt.delete(x, at, 0), np.delete(a, at, 0))
    ends: list[Any] = [[], 24, [0, 1]]
    for at in ends:
        y = dt.delete(x, at, 0)
        y += 1
        assert_same(x, a)


def test_trim_zeros_equals_numpy(device: dt.Device) -> None:
    for a in ([0, 0, 1, 0, 2, 0], [1, 2], [0, 0], [], [0.0, np.nan, -0.0], [5], [0, 3j, 0, 0]):
        for trim in ("fb", "bf", "f", "b", "F", "FB"):
            x = dt.asarray(np.asarray(a))
            assert_same(dt.trim_zeros(x, trim), np.trim_zeros(np.asarray(a), trim.lower()))
    assert_same(np.trim_zeros(dt.asarray([0, 2])), np.array([2]))
    x = dt.asarray([0, 1, 0])
    dt.trim_zeros(x).fill_(7)
    assert x.tolist() == [0, 7, 0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_resize_equals_numpy(device: dt.Device, dtype: str) -> None:
    for a in (A.astype(dtype), A[0].T.astype(dtype), np.asarray(5, dtype), np.zeros((0, 3), dtype)):
        x = dt.asarray(a)
        for shape in (5, (2, 3), (24,), (7, 9), (), (0,), (3, 0), a.shape):
            assert_same(dt.resize(x, shape), np.resize(a, shape))
    assert_same(np.resize(dt.asarray(A), (2, 2)), np.resize(A, (2, 2)))
    x = dt.asarray(A.astype(dtype))
    dt.resize(x, (2, 2)).fill_(0)
    assert_same(x, A.astype(dtype))


def test_block_equals_numpy(device: dt.Device) -> None:
    a, b, c = np.ones((2, 2), "f4"), np.arange(4, dtype="f4").reshape(2, 2), np.zeros(2, "f4")
    cases: list[Any] = [
        [a, b], [[a, b], [b, a]], [[a], [c]], [c, c, a[0]], a, [[[a]], [[b]]], [[a, b], [c, c]],
        [[np.ones((2, 0), "f4"), a], [b]], [[[b[:, None]]], [[c[None]]]],
    ]  # fmt: skip

    def brought(x: Any) -> Any:
        return [*map(brought, x)] if isinstance(x, list) else dt.asarray(x)

    for blocks in cases:
        assert_same(dt.block(brought(blocks)), np.block(blocks))
        assert_same(np.block(brought(blocks)), np.block(blocks))
    assert_same(dt.block([dt.asarray(c), c, 5]), np.block([c, c, np.float32(5)]))
    x = dt.asarray(a)
    dt.block(x).fill_(9)
    dt.block([x]).fill_(9)
    assert_same(x, a)


# --- selection by a condition ---------------------------------------------------------------------


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_compress_equals_numpy(device: dt.Device, dtype: str, axis: int | None) -> None:
    a = A.astype(dtype)
    for condition in ([True, False], [0, 2], [False], [], [1.5, 0.0], [False, True] + [False] * 99):
        c = np.asarray(condition, None if condition else bool)
        want = np.compress(c, a, axis)
        assert_same(dt.compress(c, dt.asarray(a), axis), want)
        assert_same(dt.compress(dt.asarray(c), dt.asarray(a), axis=axis), want)
        assert_same(dt.compress(dt.asarray(c), a, axis), want)
        assert_same(np.compress(c, dt.asarray(a), axis), want)


def test_extract_equals_numpy(device: dt.Device) -> None:
    for c in (A % 3 == 0, A % 2, (A > 5).ravel()[:10], A > 99, np.array([True])):
        assert_same(dt.extract(dt.asarray(c), dt.asarray(A)), np.extract(c, A))
        assert_same(np.extract(c, dt.asarray(A)), np.extract(c, A))
    turned = dt.asarray(A).permute_dims(2, 0, 1)
    want = A.transpose(2, 0, 1)
    assert_same(dt.extract(turned > 7, turned), np.extract(want > 7, want))


def test_flatnonzero_equals_numpy(device: dt.Device) -> None:
    for a in (A % 3, A > 7, np.array([[0.0, np.nan], [-0.0, 1]]), np.zeros((0, 2)), np.array(3)):
        assert_same(dt.flatnonzero(dt.asarray(a)), np.flatnonzero(a))
        assert_same(np.flatnonzero(dt.asarray(a)), np.flatnonzero(a))


# --- in place -------------------------------------------------------------------------------------

SHAPES: list[tuple[int, ...]] = [(3, 3), (2, 5), (5, 2), (9, 2), (7, 3), (1, 4), (4, 1), (3, 3, 3),
                                 (2, 2, 2, 2), (0, 3), (3, 0), (0, 0)]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal_equals_numpy(device: dt.Device, shape: tuple[int, ...], wrap: bool) -> None:
    for val in (7, [1, 2], [[1, 2, 3], [4, 5, 6]], np.array(9), np.float32(3)):
        a = np.zeros(shape, "f4")
        x, y = dt.asarray(a), dt.asarray(a)
        np.fill_diagonal(a, val, wrap)
        assert dt.fill_diagonal(x, val, wrap) is None
        np.fill_diagonal(y, val, wrap)
        assert_same(x, a)
        assert_same(y, a)


def test_fill_diagonal_writes_through_views(device: dt.Device) -> None:
    a = np.zeros((4, 6), "i4")
    x = dt.asarray(a)
    for wrap in (False, True):
        np.fill_diagonal(a[:, 1:3].T, 5, wrap)
        dt.fill_diagonal(x[:, 1:3].T, 5, wrap)
        np.fill_diagonal(a[:, 3:4], [6, 7], wrap)
        dt.fill_diagonal(x[:, 3:4], dt.asarray([6, 7], dtype="int32"), wrap)
        assert_same(x, a)


@pytest.mark.parametrize("name", ["place", "putmask"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_place_and_putmask_equal_numpy(device: dt.Device, name: str, dtype: str) -> None:
    masks = [A % 2 == 0, A % 3, A > 99, (A > 5).reshape(4, 6)]
    number = True if dtype == "?" else 1
    values = [number, [0], [1, 0, 1], np.arange(24) % 2, np.arange(40).reshape(8, 5) % 2]
    for mask in masks:
        for v in values:
            v = v if v is number else np.asarray(v, dtype)
            a = A.astype(dtype)
            x, y, z = dt.asarray(a), dt.asarray(a), dt.asarray(a)
            m = mask if name == "place" else mask.reshape(A.shape)
            getattr(np, name)(a, m, v)
            assert getattr(dt, name)(x, dt.asarray(mask), v) is None
            getattr(dt, name)(y, mask, v if v is number else dt.asarray(v))
            getattr(np, name)(z, mask, v)
            for found in (x, y, z):
                assert_same(found, a)


def test_place_and_putmask_write_through_views(device: dt.Device) -> None:
    a = np.arange(12.0).reshape(3, 4)
    x = dt.asarray(a)
    np.place(a.T, a.T > 4, [1, 2, 3])
    dt.place(x.T, x.T > 4, [1, 2, 3])
    assert_same(x, a)
    np.putmask(a[:, ::2], a[:, ::2] < 3, [7, 8, 9])
    dt.putmask(x[:, ::2], x[:, ::2] < 3, [7, 8, 9])
    assert_same(x, a)
    dt.putmask(x, x > 0, [])
    dt.place(x, x > 99, [])
    assert_same(x, a)
    dt.putmask(x, x > 2, x * 2)
    np.putmask(a, a > 2, a * 2)
    assert_same(x, a)


def test_copyto_equals_numpy(device: dt.Device) -> None:
    wheres: list[Any] = [True, False, np.True_, [True, False, True], [[True], [False]],
                         np.array([[True, False, True], [False, True, True]])]  # fmt: skip
    for src in (7, [1, 2, 3], [[1], [2]], np.arange(6.0).reshape(2, 3), np.int8(4)):
        for where in wheres:
            a = np.full((2, 3), -1.0)
            x, y = dt.asarray(a), dt.asarray(a)
            np.copyto(a, src, where=where)
            assert dt.copyto(x, src, where=where) is None
            np.copyto(y, src, where=where)
            assert_same(x, a)
            assert_same(y, a)
    x = dt.zeros((2, 3))
    dt.copyto(x.T, dt.asarray([[1], [2], [3]]), where=x.T == 0)
    assert x.tolist() == [[1, 2, 3]] * 2
    host = np.zeros((2, 3), "f4")
    np.copyto(host, x, where=x > 1)
    assert host.tolist() == [[0, 2, 3]] * 2
    with pytest.raises(
        dt.DTypeError, match=r"np\.copyto: dovetail does not support casting='unsafe'"
    ):
        np.copyto(x, 1.5, "unsafe")


# --- gradients ------------------------------------------------------------------------------------


def test_gradients_of_functions_that_return_new_tensors(device: dt.Device) -> None:
    x = dt.asarray(A[0] * 1.0 + 1).requires_grad_()
    v = dt.asarray([0.5, 1.5, 2.5, 3.5], dtype="float64").requires_grad_()
    c = [True, False, True]
    assert gradcheck(lambda p, q: dt.append(p, q), (x, v))
    assert gradcheck(lambda p, q: dt.insert(p, 1, q, axis=0), (x, v))
    assert gradcheck(lambda p, q: dt.insert(p, [3, 0, 0], q[:3, None].T, axis=1), (x, v))
    assert gradcheck(lambda p: dt.delete(p, [0, 2], axis=1), (x,))
    assert gradcheck(lambda p: dt.delete(p, [0, 2, 4, 6, 8]), (x,))
    assert gradcheck(lambda p: dt.resize(p, (5, 3)), (x,))
    assert gradcheck(lambda p: dt.resize(p, (2, 3)), (x,))
    assert gradcheck(lambda p: dt.compress(c, p, axis=0), (x,))
    assert gradcheck(lambda p: dt.extract(p > 4.5, p), (x,))
    assert gradcheck(lambda p, q: dt.block([[p, p], [q, 2 * q]]), (x, v))
    assert gradcheck(lambda q: dt.trim_zeros(q * dt.asarray([0.0, 1, 1, 0], dtype="float64")), (v,))


def test_gradients_of_functions_that_write_in_place(device: dt.Device) -> None:
    x = dt.asarray(A[0] * 1.0 + 1).requires_grad_()
    v = dt.asarray([0.5, 1.5, 2.5], dtype="float64").requires_grad_()
    mask = A[0] % 5 < 2

    def written(name: str, *given: Any) -> Any:
        def f(p: dt.Tensor, q: dt.Tensor) -> dt.Tensor:
            y = p * 2
            getattr(dt, name)(y, *given, q)
            return y

        return f

    assert gradcheck(written("fill_diagonal"), (x, v))
    assert gradcheck(lambda p, q: written("fill_diagonal")(p.T, q), (x, v))
    assert gradcheck(written("place", mask), (x, v))
    assert gradcheck(written("putmask", mask), (x, v))

    def copied(p: dt.Tensor, q: dt.Tensor) -> dt.Tensor:
        y = p * 2
        dt.copyto(y, q[:, None], where=mask)
        return y

    assert gradcheck(copied, (x, v))
    for name, given in (("fill_diagonal", ()), ("place", (mask,)), ("putmask", (mask,))):
        with pytest.raises(dt.GradientError, match=name):
            getattr(dt, name)(x, *given, v)


# --- bad input ------------------------------------------------------------------------------------

X = dt.zeros((2, 3), device="reference")
BAD: list[tuple[str, tuple[Any, ...], type[Exception], str]] = [
    ("append", (X, X[:1], 1), dt.ShapeError, "must be equal except along axis 1"),
    ("append", (X, X, 2), dt.AxisError, "2"),
    ("append", (X, "a"), dt.DTypeError, "expected tensors"),
    ("insert", (X, 7, 1), dt.OutOfRangeError, r"position 7 is out of range .*-6\.\.6"),
    ("insert", (X, [0, -4], 1, 1), dt.OutOfRangeError, "position -4 is out of range .*size 3"),
    ("insert", (X, [[0, 1]], 1, 1), dt.ShapeError, r"must be an int or a vector, got .*\(1, 2\)"),
    ("insert", (X, [0, 1], [1, 2, 3], 1), dt.ShapeError, "broadcast"),
    ("insert", (X, 0, np.ones((1, 1, 3)), 0), dt.ShapeError, r"values must .*\(1, 1, 3\)"),
    ("insert", (X, 0, 1j), dt.DTypeError, "does not fit float32"),
    ("insert", (X, 1.5, 1), dt.DTypeError, "indices must be integers"),
    ("insert", (X, True, 1), dt.DTypeError, "got bool"),
    ("insert", (X, None, 1), dt.ArgumentTypeError, "obj must be an int, a slice"),
    ("insert", (X, [True, False], 1), dt.ShapeError, "a mask must have the size 6 .*got 2"),
    ("insert", (X, 0, 1, 5), dt.AxisError, "5"),
    ("delete", (X, 6), dt.OutOfRangeError, r"position 6 is out of range .*-6\.\.5"),
    ("delete", (X, [True]), dt.ShapeError, "got 1 elements"),
    ("delete", (X, slice("a")), dt.DTypeError, "integers or None"),
    ("delete", (X, "a"), dt.DTypeError, "indices must be integers"),
    ("delete", (X, [[1], [2, 3]]), dt.ShapeError, "must have equal lengths"),
    ("trim_zeros", (X[0], "x"), dt.ArgumentError, "trim must be 'fb' or"),
    ("trim_zeros", ([0, 1],), dt.DTypeError, "tensor"),
    ("resize", (X, -1), dt.ShapeError, "negative"),
    ("resize", (X, "a"), dt.ShapeError, "a"),
    ("resize", ([1], 2), dt.DTypeError, "tensor"),
    ("block", ([X, []],), dt.ArgumentError, "an empty list"),
    ("block", ([X, [X]],), dt.ShapeError, r"equal depths, got \[1, 2\]"),
    ("block", ((X, X),), dt.ArgumentTypeError, "nested lists, not tuples"),
    ("block", ([[X, X], [X]],), dt.ShapeError, "must be equal except along axis 0"),
    ("compress", (X > 0, X), dt.ShapeError, r"condition must be a vector, got shape \(2, 3\)"),
    ("compress", ([True] * 4, X, 1), dt.OutOfRangeError, "4 elements is true beyond axis 1"),
    ("compress", ([True], X, 2), dt.AxisError, "2"),
    ("compress", (True, X), dt.DTypeError, "expected tensors"),
    ("extract", ([1] * 7, X), dt.OutOfRangeError, "7 elements is true beyond"),
    ("flatnonzero", ([1],), dt.DTypeError, "tensor"),
    ("fill_diagonal", (X[0], 1), dt.ShapeError, r"expected a matrix .*got shape \(3,\)"),
    ("fill_diagonal", (dt.zeros((2, 2, 3), device="reference"), 1), dt.ShapeError, "equal sizes"),
    ("fill_diagonal", (X, []), dt.ShapeError, "at least one value for 2 positions"),
    ("fill_diagonal", (X, 1j), dt.DTypeError, "does not fit float32"),
    ("fill_diagonal", (X, 1, "a"), dt.ArgumentTypeError, "wrap must be True or False"),
    ("fill_diagonal", (np.ones((2, 2)), X), dt.DTypeError, "tensor"),
    ("place", (X, X == 0, []), dt.ShapeError, "at least one value for 6 positions"),
    ("place", (X, [True], 1), dt.ShapeError, r"mask must have 6 elements.*got shape \(1,\)"),
    ("place", (X, X == 0, 1j), dt.DTypeError, "does not fit"),
    ("place", (np.ones(2), X, 1), dt.DTypeError, "tensor"),
    ("putmask", (X, True, 1), dt.DTypeError, "expected tensors"),
    ("putmask", (X, [True], 1), dt.ShapeError, "mask must have 6 elements"),
    ("putmask", (X, X == 0, [1j, 2]), dt.DTypeError, "does not fit"),
    ("copyto", ([1], X), dt.DTypeError, "tensor"),
    ("copyto", (X, [1, 2]), dt.ShapeError, r"shapes \(2,\) and \(2, 3\)"),
    ("copyto", (X, 1j), dt.DTypeError, "does not fit"),
    ("copyto", (X, dt.ones(3, device="cpu")), dt.DeviceError, "operands are on"),
]  # fmt: skip


@pytest.mark.parametrize("name, given, error, says", BAD)
def test_wrong_arguments_are_named(
    name: str, given: tuple[Any, ...], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=f"{name}: .*{says}"):
        getattr(dt, name)(*given)
    assert X.tolist() == [[0] * 3] * 2


def test_copyto_with_a_non_bool_mask_raises() -> None:
    with pytest.raises(
        dt.DTypeError, match="copyto: where must be bool, got int64; use where != 0"
    ):
        dt.copyto(X, 1, where=[1, 0, 1])
    with pytest.raises(dt.ShapeError, match=r"copyto: .*do not broadcast"):
        dt.copyto(X, 1, where=[True, False])


def test_write_to_a_broadcast_tensor_raises() -> None:
    x = dt.broadcast_to(dt.zeros(3, device="reference"), (3, 3))
    dt.evaluate(x)
    for f in (lambda: dt.place(x, x == 0, 1), lambda: dt.putmask(x, x == 0, [1, 2]),
              lambda: dt.copyto(x, 1)):  # fmt: skip
        with pytest.raises(dt.ReadOnlyError):
            f()


def test_numpy_functions_do_not_write_into_a_copy_of_an_array() -> None:
    a = np.zeros(3, "f4")
    x = dt.ones(3, device="reference")
    for name in ("place", "putmask"):
        a[...] = 0
        getattr(np, name)(a, x == 1, x)
        assert a.tolist() == [1, 1, 1]
        with pytest.raises(dt.DTypeError, match=name):
            getattr(dt, name)(a, x == 1, x)
