"""In-place writes: visibility through views, order, and errors that write and leak nothing."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, list-item, no-untyped-call"
from __future__ import annotations

import gc
import operator
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

OPERATORS = ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"]


@pytest.mark.parametrize("name", OPERATORS)
def test_in_place_operators_equal_numpy(device: dt.Device, name: str) -> None:
    rule = getattr(operator, name)
    a = np.arange(1.0, 7).reshape(2, 3)
    x = dt.asarray(a)
    view = x.T
    kept, kept_view = x, view
    x = rule(x, dt.asarray([2.0, 3.0, 4.0]))
    assert x is kept
    want = rule(a.copy(), np.array([2.0, 3.0, 4.0]))
    np.testing.assert_allclose(kept.numpy(), want)
    view = rule(view, 2)
    assert view is kept_view
    np.testing.assert_allclose(kept.numpy(), rule(want.copy(), 2))


def test_in_place_integer_operators_equal_numpy(device: dt.Device) -> None:
    x = dt.asarray([6, 5, -8], dtype=dt.int8)
    x <<= 1
    x |= 1
    x &= dt.asarray([15, 7, 255 - 256], dtype=dt.int8)
    x ^= 2
    x >>= 1
    want = np.array([6, 5, -8], "i1")
    want = (((want << 1) | 1) & np.array([15, 7, -1], "i1") ^ 2) >> 1
    assert x.tolist() == want.tolist() and x.dtype is dt.int8


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_random_writes_equal_numpy(data: st.DataObject) -> None:
    """Random writes through random views, with pending readers, in the same order as NumPy."""
    before = dt.default_device()
    dt.set_default_device("reference")
    try:
        a = np.arange(12.0).reshape(3, 4)
        x = dt.asarray(a) * 1 if data.draw(st.booleans()) else dt.asarray(a)
        arrays, tensors = [a], [x]
        readers: list[tuple[dt.Tensor, Any]] = []
        for _ in range(data.draw(st.integers(2, 8))):
            i = data.draw(st.integers(0, len(arrays) - 1))
            a, x = arrays[i], tensors[i]
            step = data.draw(st.sampled_from(["view", "add", "fill", "read", "self"]))
            if step == "view":
                d = data.draw(st.integers(0, 1))
                n = data.draw(st.integers(1, a.shape[d]))
                arrays += [a.T, np.flip(a, d), np.split(a, [n], d)[0]]
                tensors += [x.T, dt.flip(x, axis=d), dt.split(x, (n, x.shape[d] - n), axis=d)[0]]
            elif step == "add":
                a += 1
                x += 1
            elif step == "fill":
                a[...] = 7
                x.fill_(7)
            elif step == "read":
                readers.append((x * 2 + 1, a * 2 + 1))
            else:  # the operand is in another order of the same memory
                a[...] = a[::-1].copy() * 3
                x.copy_(dt.flip(x, axis=0) * 3)
        for x, a in (*zip(tensors, arrays, strict=True), *readers):
            np.testing.assert_array_equal(x.numpy(), a)
    finally:
        dt.set_default_device(before)


def test_pending_reader_sees_the_old_values(device: dt.Device) -> None:
    x = dt.asarray([1.0, 2.0])
    y = x + 10
    z = x.flip()
    x *= 100
    assert y.tolist() == [11, 12] and x.tolist() == [100, 200] and z.tolist() == [200, 100]


def test_fill_copy_and_clip_write_in_place(device: dt.Device) -> None:
    x = dt.arange(6, dtype=dt.float32).reshape(2, 3)
    assert x.T.clip_(1, 4) is not x and x.tolist() == [[1, 1, 2], [3, 4, 4]]
    assert x.copy_(dt.asarray([7, 8, 9])) is x and x.tolist() == [[7, 8, 9]] * 2
    assert x.fill_(2).sub_(3).relu_().sum().item() == 0 and x.zero_().tolist() == [[0] * 3] * 2
    y = dt.ones(3, dtype=dt.bfloat16, device="reference")
    assert x.copy_(y).tolist() == [[1] * 3] * 2


def test_in_place_operators_keep_the_dtype(device: dt.Device) -> None:
    for dtype in (dt.int8, dt.uint8, dt.float16, dt.bfloat16):
        x = dt.ones(2, dtype=dtype)
        x += 1
        x *= dt.ones(2, dtype=dt.bool)
        assert x.dtype is dtype and x.tolist() == [2, 2]
    x = dt.ones(2, dtype=dt.float16)
    x += dt.ones(2, dtype=dt.float32)
    assert x.dtype is dt.float16


@pytest.mark.parametrize(
    ("write", "error", "says"),
    [
        (lambda x: x.add_(dt.ones((3, 2, 3), dtype=dt.int8)), dt.ShapeError, r"must broadcast to "
            r"shape \(2, 3\), got shape \(3, 2, 3\)"),
        (lambda x: x.add_(dt.ones(4)), dt.ShapeError, "do not broadcast"),
        (lambda x: operator.iadd(x, dt.asarray("a")), dt.DTypeError, "str"),
        (lambda x: operator.itruediv(x, 2), dt.DTypeError, "float32 does not fit into int64"),
        (lambda x: operator.iadd(x, 1.5), dt.DTypeError, "float32 does not fit into int64; cast "
            "it"),
        (lambda x: x.sqrt_(), dt.DTypeError, "sqrt in place"),
        (lambda x: operator.iadd(x, 2**70), dt.ValueOverflowError, "does not fit int64"),
        (lambda x: dt.broadcast_to(x, (4, 2, 3)).add_(1), dt.ReadOnlyError, "cannot write to a "
            "broadcast view"),
        (lambda x: x.fill_("a"), dt.DTypeError, "fill|number"),
        (lambda x: dt.add(x, x, out=x.T), dt.ShapeError, "out= is"),
        (lambda x: dt.add(x, dt.ones(3, dtype=dt.int8), out=x.reshape(6)), dt.ShapeError, "out="),
    ],
)  # fmt: skip
def test_failed_write_changes_nothing(
    device: dt.Device, write: Any, error: type[Exception], says: str
) -> None:
    x = dt.arange(6).reshape(2, 3)
    view = x.T
    with pytest.raises(error, match=says):
        write(x)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and view.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_in_place_operations_leak_nothing(device: dt.Device) -> None:
    def work() -> None:
        x = dt.ones((50, 60)) * 2
        y = dt.softmax(x, axis=1) + x.T.reshape(50, 60)
        y += dt.concat([x, x]).sum(0)
        y[1:].add_(1) if hasattr(dt.Tensor, "__getitem__") else y.add_(1)
        x.flip().zero_()
        pending = x + y
        pending.T.contiguous()
        with pytest.raises(dt.ShapeError):
            y.add_(dt.ones(7))
        y.numpy().sum()

    work()
    gc.collect()
    live = dt.memory.stats().live_bytes
    for _ in range(3):
        work()
    assert dt.memory.stats().live_bytes == live, "memory went only when the cycle collector came"
    gc.collect()
    assert dt.memory.stats().live_bytes == live


def test_eager_mode_writes_the_same(device: dt.Device) -> None:
    def work() -> Any:
        x = dt.arange(12, dtype=dt.float32).reshape(3, 4)
        y = dt.exp(x.T / 3)
        x += y.T
        x.T.mul_(y)
        return x.tolist()

    deferred = work()
    with dt.eager():
        assert work() == deferred


def test_assignment_to_a_pending_tensor_does_not_alias_the_value(device: dt.Device) -> None:
    x = dt.asarray([1.0, 2.0], device=device)
    y = x * 3
    y.copy_(x)
    y += 10
    assert x.tolist() == [1.0, 2.0] and y.tolist() == [11.0, 12.0]
    shared = x * 5
    z = x * 3
    z.copy_(shared)
    dt.evaluate(shared, z)
    z += 1
    assert shared.tolist() == [5.0, 10.0] and z.tolist() == [6.0, 11.0]
