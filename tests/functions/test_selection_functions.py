"""Selection and placement of values against NumPy; gradients; bad input."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call"
from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import gradcheck

A = np.array([[-2.0, 0.5, np.nan], [3.0, -0.0, 7.0]])


def assert_same(found: dt.Tensor, want: Any) -> None:
    want = np.asarray(want)
    assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
    np.testing.assert_array_equal(found.numpy(), want)


def test_select_equals_numpy(device: dt.Device) -> None:
    x = dt.asarray(A)
    for default in (0, 5.5):
        assert_same(
            dt.select([x < 0, x > 2, x == x], [x * 2, 3.0, x], default),
            np.select([A < 0, A > 2, A == A], [A * 2, 3.0, A], default),
        )
    assert_same(dt.select([x[0] > 0, x > 1], [x[1], x]), np.select([A[0] > 0, A > 1], [A[1], A]))
    ints = dt.arange(4, dtype="int8")
    assert dt.select([ints > 1], [ints], 7).dtype is dt.int8
    assert dt.select([ints > 1], [1.5], 0).tolist() == [0, 0, 1.5, 1.5]


def test_piecewise_equals_numpy(device: dt.Device) -> None:
    x = dt.asarray(A)
    fs: list[Any] = [lambda v: v * v, 3.0]
    assert_same(dt.piecewise(x, [x < 0, x > 2], fs), np.piecewise(A, [A < 0, A > 2], fs))
    assert_same(dt.piecewise(x, [x < 0, x > 2], [*fs, -1.0]),
         np.piecewise(A, [A < 0, A > 2], [*fs, -1.0]))  # fmt: skip
    assert_same(dt.piecewise(x[1], x[1] > 0, [1, 2]), np.piecewise(A[1], A[1] > 0, [1, 2]))
    ints = np.arange(-3, 3, dtype="i2")
    assert_same(dt.piecewise(dt.asarray(ints), [dt.asarray(ints) < 0], [lambda v: v * 1.5]),
         np.piecewise(ints, [ints < 0], [lambda v: v * 1.5]))  # fmt: skip


def test_choose_equals_numpy(device: dt.Device) -> None:
    at = np.array([[0, 1, 2], [2, 0, 1]])
    choices: list[Any] = [np.arange(3), 10, np.ones((2, 1), "i8")]
    assert_same(dt.choose(dt.asarray(at), choices), np.choose(at, choices))
    far = np.array([-4, 5, 7, 1])
    for mode in ("wrap", "clip"):
        assert_same(dt.choose(dt.asarray(far), [1, 20, 300], mode=mode),
             np.choose(far, [1, 20, 300], mode=mode))  # type: ignore[call-overload]  # fmt: skip
    with pytest.raises(
        dt.OutOfRangeError, match=r"choose: indices must be between 0 and 2, got -4\.\.7"
    ):
        dt.choose(dt.asarray(far), [1, 20, 300])


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_put_equals_numpy(device: dt.Device, mode: Any) -> None:
    for at in ([0, 2, -1, 2], [[1, 3]], 4) + (([99, -99],) if mode != "raise" else ()):
        for values in (7, [1, 2], [1.0, 2, 3, 4, 5, 6]):
            for turned in (False, True):
                a = np.zeros((2, 3))
                x = dt.asarray(a.copy())
                a, x = (a.T, x.T) if turned else (a, x)
                np.put(a, at, values, mode=mode)
                assert dt.put(x, at, values, mode=mode) is x
                assert_same(x, a)


def test_put_along_axis_of_an_array_writes_in_place(device: dt.Device) -> None:
    a, x, at = np.zeros((2, 3)), dt.zeros((2, 3)), dt.asarray([[1], [2]])
    np.put_along_axis(a, at, 5, 1)
    np.put_along_axis(x, at, values=5, axis=1)
    assert x.tolist() == a.tolist() == [[0, 5, 0], [0, 0, 5]]
    with pytest.raises(dt.DTypeError, match="put_along_axis: expected a tensor, got ndarray"):
        dt.put_along_axis(a, at, 5, axis=1)  # type: ignore[arg-type]


def test_put_along_axis_equals_numpy(device: dt.Device) -> None:
    for axis, at in ((0, [[1, 0, 1]]), (1, [[2], [0]]), (-1, [[2, 0], [1, -1]])):
        a = np.zeros((2, 3), "f4")
        x = dt.asarray(a.copy())
        np.put_along_axis(a, np.asarray(at) % a.shape[axis], 5, axis)
        assert_same(dt.put_along_axis(x, at, 5, axis=axis), a)
    values = np.arange(4, dtype="f4").reshape(2, 2)
    a, x = np.zeros((2, 3), "f4"), dt.zeros((2, 3))
    np.put_along_axis(a, np.array([[0, 2], [2, 1]]), values, 1)
    assert_same(dt.put_along_axis(x, [[0, 2], [2, 1]], dt.asarray(values), axis=1), a)


def test_vectorize_equals_numpy(device: dt.Device) -> None:
    f = dt.vectorize(lambda a, b: a if a > b else 2 * b)
    x = dt.asarray([[1, 5], [3, 0]])
    assert_same(f(x, [2, 2]), np.vectorize(lambda a, b: a if a > b else 2 * b)(x.numpy(), [2, 2]))
    assert f(x, 1.5).dtype is dt.float32 and f(x, 1).device is device
    assert dt.vectorize(len, dtype="int8")(dt.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(dt.ArgumentTypeError, match="vectorize"):
        dt.vectorize(3)


def test_gradients_flow_to_selected_values() -> None:
    x = dt.asarray([-1.5, 0.5, 2.0], dtype=dt.float64, device="reference").requires_grad_()
    assert gradcheck(lambda t: dt.select([t < 0, t > 1], [t * t, t * 3.0], t), x)
    assert gradcheck(lambda t: dt.piecewise(t, [t < 0], [dt.exp, dt.square]), x)
    assert gradcheck(lambda t: dt.choose(dt.asarray([0, 1, 0], device="reference"), [t, t**3]), x)


def test_wrong_arguments_of_selection_raise() -> None:
    x = dt.ones(3, device="reference")
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: dt.select([], []), dt.ArgumentError, "select: .*got 0 conditions"),
        (lambda: dt.select([x > 0], [x, x]), dt.ArgumentError, "1 conditions and 2 choices"),
        (lambda: dt.select([x], [x]), dt.DTypeError, "select"),
        (lambda: dt.piecewise(x, [x > 0], []), dt.ArgumentError, "piecewise: .*got 1 conditions"),
        (lambda: dt.piecewise(x, [dt.ones((2, 3), device="reference") > 0], [1]), dt.ShapeError,
         "piecewise"),
        (lambda: dt.choose(x, [1]), dt.DTypeError, "choose: x must hold integers"),
        (lambda: dt.choose(dt.arange(3, device="reference"), []), dt.ArgumentError, "choose"),
        (lambda: dt.put(x, [5], 1), dt.OutOfRangeError, "put"),
        (lambda: dt.put(x, [0], []), dt.ShapeError, "put: expected at least one value"),
        (lambda: dt.put(x, [0], 1, mode="no"), dt.ArgumentError, "put: mode"),
        (lambda: dt.put(x, [0.5], 1), dt.DovetailError, "put"),
        (lambda: dt.put_along_axis(x, [[0]], 1), dt.ShapeError, "put_along_axis"),
        (lambda: dt.put_along_axis(x, [7], 1), dt.OutOfRangeError, "put_along_axis"),
    ]  # fmt: skip
    for call, error, says in calls:
        with pytest.raises(error, match=says):
            dt.evaluate(call())
    assert x.tolist() == [1, 1, 1]
