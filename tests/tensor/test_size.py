"""`x.size` is an int that may be called, as in PyTorch."""

from __future__ import annotations

import copy
import enum
import json
import pickle

import dovetail as dt
import numpy as np
import pytest


def test_size_is_an_int_and_callable(device: dt.Device) -> None:
    for x in (dt.zeros((2, 3)), dt.zeros((2, 3)).to_sparse(), dt.zeros((3, 2)).T):
        assert x.size == 6 and isinstance(x.size, int) and x.size + 1 == 7
        assert x.size() == (2, 3) and x.size(0) == 2 and x.size(-1) == x.size(dim=1) == 3
        assert type(x.size(0)) is int and repr(x.size) == "6"
        with pytest.raises(dt.AxisError, match="size"):
            x.size(2)
        with pytest.raises(dt.ArgumentTypeError, match="size"):
            x.size("a")  # type: ignore[call-overload]
    assert dt.zeros(()).size() == () and dt.zeros((0, 3)).size == 0
    assert dt.zeros((0, 3)).size(1) == 3


def test_results_of_sizes_are_plain_ints(device: dt.Device) -> None:
    x = dt.ones((2, 3))
    for made in (
        dt.zeros(x.size), dt.zeros((x.size, 2)), x.reshape(x.size), x.view(x.size),
        dt.arange(x.size), x.ravel(), dt.eye(x.size), dt.ones(1).expand(x.size),
    ):  # fmt: skip
        assert {type(n) for n in (*made.shape, *made.stride())} == {int}
    for plain in (copy.deepcopy(x.size), pickle.loads(pickle.dumps(x.size))):
        assert type(plain) is int and plain == 6
    assert json.dumps({"n": x.size}) == '{"n": 6}' and np.arange(x.size).size == 6


def test_sizes_are_operands_like_ints(device: dt.Device) -> None:
    x = dt.asarray([[1.0, 2.0], [3.0, 5.0]])
    n = 4
    for found, want in (
        (x / x.size, x / n), (x.size / x, n / x), (x * x.size, x * n), (x - x.size, x - n),
        (x**x.size, x**n), (x < x.size, x < n), (dt.divide(x, x.size), x / n),
        (dt.maximum(x, x.size), dt.maximum(x, n)), (x.sum() / x.size, x.mean()),
        (dt.full(2, x.size), dt.full(2, n)), (dt.where(x > 2, x.size, x), dt.where(x > 2, n, x)),
    ):  # fmt: skip
        assert found.dtype is want.dtype and found.tolist() == want.tolist()
    small = dt.ones(300, dtype=dt.int8)
    with pytest.raises(dt.ValueOverflowError):
        small + small.size
    y = x.copy()
    y /= y.size
    assert y.tolist() == (x / n).tolist()


class Level(enum.IntEnum):
    """Numbers of a subclass of int."""

    LOW = 3


class Ratio(float):
    """A float of a subclass."""


class Count(int):
    """An int of a subclass."""


@dt.custom_op("tests.flat", result=lambda x: ((x.size,), x.dtype))
def flat(x: dt.Tensor) -> dt.Tensor:
    """The elements of a tensor."""
    return x.reshape(-1) * 1.0


def test_numbers_of_subclasses_are_stored_like_plain_ones(device: dt.Device) -> None:
    size = dt.zeros((2, 3)).size
    for dtype, values in (
        (dt.float32, (size, Level.LOW, Ratio(2.5))), (dt.int32, (size, Level.LOW)),
        (dt.uint8, (size, Count(7))), (dt.complex64, (size, Level.LOW, Ratio(2.5))),
    ):  # fmt: skip
        for value in values:
            x = dt.zeros(2, dtype=dtype)
            x[0] = value
            assert x.tolist() == [value, 0]
            dt.copyto(x, value)
            assert x.tolist() == [value] * 2
    assert dt.searchsorted(dt.asarray([1.0, 2.0, 3.0]), Ratio(2.5)).item() == 2
    x = dt.zeros(2, dtype=dt.uint8)
    for value, error in ((Ratio(2.5), dt.DTypeError), (Count(300), dt.ValueOverflowError)):
        with pytest.raises(error, match=r"setitem: .* does not fit uint8"):
            x[0] = value
    with pytest.raises(dt.ValueOverflowError, match="does not fit float32"):
        dt.zeros(2)[0] = Count(10**400)


def test_numbers_of_subclasses_in_kernels_are_like_plain_ones(device: dt.Device) -> None:
    n, half = dt.zeros((2, 2)).size, Ratio(0.5)

    @dt.kernel
    def outer(out: dt.Out, x: dt.In):
        for i in dt.grid(n):
            out[i] = x[i % n] * half

    x, out = dt.arange(4.0), dt.zeros(4)
    outer(out, x)
    assert out.tolist() == [0.0, 0.5, 1.0, 1.5]
    assert flat(x.reshape((2, 2))).tolist() == x.tolist()
    assert dt.elementwise(lambda x: x * Level.LOW)(x).tolist() == [0.0, 3.0, 6.0, 9.0]


def test_sizes_in_captured_functions(device: dt.Device) -> None:
    x = dt.asarray([[1.0, 2.0], [3.0, 5.0]])
    captured = dt.jit(lambda x: x.sum() / x.size)
    assert [captured(x).item() for _ in range(3)] == [x.mean().item()] * 3
    given = dt.jit(lambda x, n: x * n)
    assert given(x, x.size).tolist() == (x * 4).tolist() == given(x, 4).tolist()
    grown = dt.asarray([2.0]).requires_grad_()
    (grown * x.size).sum().backward()
    assert grown.grad is not None and grown.grad.tolist() == [4.0]
