"""Views (shape, strides, sharing) and rearrangements against NumPy."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, list-item, no-untyped-call"
from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

Array = np.ndarray[Any, Any]


@st.composite
def random_move(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[str, Any]:
    """Return a view operation that both libraries can apply to an array of this shape."""
    ndim = len(shape)
    kind = draw(
        st.sampled_from(["permute", "flip", "expand_dims", "squeeze", "expand", "split", "reshape"])
    )
    if kind == "permute":
        return kind, tuple(draw(st.permutations(range(ndim))))
    if kind == "flip":
        return kind, tuple(d for d in range(ndim) if draw(st.booleans()))
    if kind == "expand_dims":
        return kind, draw(st.integers(-ndim - 1, ndim))
    if kind == "expand":
        lead = draw(st.sampled_from([(), (2,), (1, 3)]))
        return kind, (*lead, *(draw(st.sampled_from([1, 3])) if n == 1 else n for n in shape))
    if kind == "split" and ndim:
        d = draw(st.integers(0, ndim - 1))
        return kind, (d, draw(st.integers(0, shape[d])))
    if kind == "reshape" and ndim > 1:
        d = draw(st.integers(0, ndim - 2))
        return kind, (*shape[:d], shape[d] * shape[d + 1], *shape[d + 2 :])
    return "squeeze", None


def on_tensor(x: dt.Tensor, kind: str, how: Any) -> dt.Tensor:
    if kind == "split":
        d, at = how
        return dt.split(x, (at, x.shape[d] - at), axis=d)[1]
    if kind == "expand_dims":
        return dt.expand_dims(x, axis=how)
    if kind == "flip":
        return dt.flip(x, axis=how)
    if kind == "squeeze":
        return dt.squeeze(x)
    return {"permute": dt.permute_dims, "expand": dt.broadcast_to, "reshape": dt.reshape}[kind](
        x, how
    )


def on_array(a: Array, kind: str, how: Any) -> Array:
    if kind == "split":
        return np.split(a, [how[1]], axis=how[0])[1]
    if kind == "flip":
        return np.flip(a, how)
    if kind == "expand_dims":
        return np.expand_dims(a, how)
    if kind == "squeeze":
        return np.squeeze(a)
    rules: Any = {"permute": np.transpose, "expand": np.broadcast_to, "reshape": np.reshape}
    return np.asarray(rules[kind](a, how))


def strides_that_count(shape: tuple[int, ...], strides: Any) -> list[int]:
    return [s for n, s in zip(shape, strides, strict=True) if n > 1]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("pending", [False, True])
def test_random_chains_of_views_equal_numpy(pending: bool, data: st.DataObject) -> None:
    before = dt.default_device()
    dt.set_default_device("reference")
    try:
        shape = data.draw(st.lists(st.sampled_from([1, 2, 3, 4]), max_size=3).map(tuple))
        a: Array = np.arange(float(np.prod(shape, dtype=int))).reshape(shape)
        x = dt.asarray(a)
        x = x * 1.0 if pending else x
        base, root = x, a
        for _ in range(data.draw(st.integers(1, 4))):
            kind, how = data.draw(random_move(a.shape))
            x, a = on_tensor(x, kind, how), on_array(a, kind, how)
            assert x.shape == a.shape
        np.testing.assert_array_equal(x.numpy(), a)
        if a.size and np.shares_memory(a, root):
            steps = [s // a.itemsize for s in a.strides]
            assert strides_that_count(a.shape, x.stride()) == strides_that_count(a.shape, steps)
            assert x.storage() is base.storage()
            if 0 not in strides_that_count(a.shape, steps):
                a.flags.writeable = True
                x += 100
                a += 100
                np.testing.assert_array_equal(base.numpy(), root)
    finally:
        dt.set_default_device(before)


def test_view_of_pending_work_shares_writes(device: dt.Device) -> None:
    x = dt.ones((2, 3)) * 2
    y = dt.permute_dims(x, (1, 0))
    z = dt.reshape(y, (3, 2))
    y += 1
    assert x.tolist() == [[3, 3, 3]] * 2 and z.tolist() == [[3, 3]] * 3
    reader = x * 10
    x.zero_()
    assert reader.tolist() == [[30, 30, 30]] * 2 and z.sum().item() == 0


def test_view_methods_accept_several_call_forms(device: dt.Device) -> None:
    a = np.arange(24).reshape(2, 3, 4)
    x = dt.asarray(a)
    assert x.view(6, -1).shape == (6, 4) and x.view((24,)).storage() is x.storage()
    assert x.permute(2, 0, 1).tolist() == a.transpose(2, 0, 1).tolist()
    assert x.transpose(0, 2).tolist() == x.swapaxes(0, 2).tolist() == a.swapaxes(0, 2).tolist()
    assert x.transpose().tolist() == a.T.tolist()
    assert x.transpose(1, 0, 2).tolist() == a.transpose(1, 0, 2).tolist()
    assert x.mT.tolist() == a.swapaxes(1, 2).tolist()
    assert x.unsqueeze(-1).shape == (2, 3, 4, 1) and x.unsqueeze(0).squeeze(0).shape == a.shape
    assert (
        x.flatten().shape == (24,)
        and x.flatten(1).shape == (2, 12)
        and x.flatten(0, 1).shape == (6, 4)
    )
    assert dt.ones(()).flatten().shape == (1,)
    assert (
        x.ravel().storage() is x.storage()
        and x.mT.ravel().tolist() == a.swapaxes(1, 2).ravel().tolist()
    )
    assert x.moveaxis(0, -1).tolist() == np.moveaxis(a, 0, -1).tolist()
    assert x.movedim((0, 1), (2, 0)).tolist() == np.moveaxis(a, (0, 1), (2, 0)).tolist()
    assert dt.ones((3, 1)).expand(2, -1, 4).shape == (2, 3, 4)
    assert x.clone().storage() is not x.storage() and x.detach().storage() is x.storage()
    assert x.contiguous() is x and x.mT.contiguous().is_contiguous() and not x.mT.is_contiguous()
    assert (
        x.reshape(4, 6).shape == (4, 6)
        and x.reshape((4, 6), copy=True).storage() is not x.storage()
    )


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_concat_and_stack_equal_numpy(device: dt.Device, axis: int | None) -> None:
    parts = [np.arange(6).reshape(2, 3) + 10 * i for i in range(3)]
    tensors = [dt.asarray(p) for p in parts]
    np.testing.assert_array_equal(
        dt.concat(tensors, axis=axis).numpy(), np.concatenate(parts, axis)
    )
    if axis is not None:
        stacked = dt.stack(tensors, axis=axis)
        np.testing.assert_array_equal(stacked.numpy(), np.stack(parts, axis))
        for one, p in zip(dt.unstack(stacked, axis=axis), parts, strict=True):
            np.testing.assert_array_equal(one.numpy(), p)
            assert one.storage() is stacked.storage()


def test_rolls_fuse_into_the_kernel_that_reads_them(device: dt.Device) -> None:
    """A neighborhood of the Game of Life: one launch, where each roll was two copies."""
    cells = np.random.default_rng(1).integers(0, 2, (20, 33))
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
    x = dt.asarray(cells, device=device)
    found = sum((dt.roll(x, s, axis=(0, 1)) for s in shifts), start=x * 0)
    assert str(dt.explain(found)).startswith("1 launch,")
    expected = sum(np.roll(cells, s, (0, 1)) for s in shifts)
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("repeated", [
    lambda xp, x: xp.tile(x, (2, 3)), lambda xp, x: xp.repeat(x, 3, axis=1),
    lambda xp, x: xp.roll(x, 4), lambda xp, x: xp.repeat(x, 2),
])  # fmt: skip
def test_repeat_tile_and_roll_are_one_launch(repeated: Any, device: dt.Device) -> None:
    x = np.arange(35, dtype="f4").reshape(5, 7)
    found = repeated(dt, dt.asarray(x, device=device))
    assert str(dt.explain(found)).startswith("1 launch,")
    np.testing.assert_array_equal(found.numpy(), repeated(np, x))


def test_write_to_an_operand_does_not_change_a_pending_concat(device: dt.Device) -> None:
    x = dt.asarray([1, 2, 3], device=device)
    joined, rolled = dt.concat([x, x]), dt.roll(x, 1)
    x[0] = 9
    assert (joined.tolist(), rolled.tolist()) == ([1, 2, 3, 1, 2, 3], [3, 1, 2])
    assert dt.roll(x, 0).add_(1).tolist() == [10, 3, 4]
    assert x.tolist() == [9, 2, 3]


def test_concat_promotes_casts_and_accepts_pending_parts(device: dt.Device) -> None:
    x = dt.asarray([1, 2], dtype=dt.int8)
    found = dt.concat(
        [
            x,
            x * 2.5,
            dt.zeros(0, dtype=dt.float64),
            dt.permute_dims(dt.ones((1, 2)), (1, 0)).ravel(),
        ]
    )
    assert found.dtype is dt.float64 and found.tolist() == [1, 2, 2.5, 5, 1, 1]
    same = dt.concat([x, x])
    same += 1
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("shift", "axis"),
    [
        (1, None),
        (-4, None),
        (0, None),
        (2, 0),
        (-1, 1),
        ((1, 2), (0, 1)),
        (5, (0, 1)),
        ((1, 1), (0, 0)),
    ],
)
def test_roll_equals_numpy(device: dt.Device, shift: Any, axis: Any) -> None:
    a = np.arange(12).reshape(3, 4)
    x = dt.asarray(a)
    found = dt.roll(x, shift, axis=axis)
    np.testing.assert_array_equal(found.numpy(), np.roll(a, shift, axis))
    assert found.storage() is not x.storage()
    assert dt.roll(dt.zeros((0, 2)), 1, axis=0).shape == (0, 2)


@pytest.mark.parametrize("repeats", [0, 1, 3])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_repeat_equals_numpy(device: dt.Device, repeats: int, axis: int | None) -> None:
    a = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(
        dt.repeat(dt.asarray(a), repeats, axis=axis).numpy(), np.repeat(a, repeats, axis)
    )
    each = np.arange(a.size if axis is None else a.shape[axis])
    found = dt.repeat(dt.asarray(a), dt.asarray(each), axis=axis)
    np.testing.assert_array_equal(found.numpy(), np.repeat(a, each, axis))


@pytest.mark.parametrize("times", [2, (), (2,), (2, 3), (0, 1), (2, 1, 2)])
def test_tile_equals_numpy(device: dt.Device, times: Any) -> None:
    a = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(dt.tile(dt.asarray(a), times).numpy(), np.tile(a, times))


def test_broadcast_functions_equal_numpy(device: dt.Device) -> None:
    x, y = dt.broadcast_arrays(dt.ones((3, 1)), dt.zeros(4))
    assert x.shape == y.shape == dt.broadcast_shapes((3, 1), (4,)) == (3, 4)
    assert y.stride() == (0, 1)


def test_as_strided_equals_numpy(device: dt.Device) -> None:
    x = dt.arange(10)
    windows = x.as_strided((4, 3), (2, 1))
    want = np.lib.stride_tricks.as_strided(np.arange(10), (4, 3), (16, 8))
    np.testing.assert_array_equal(windows.numpy(), want)
    assert (
        x.as_strided((3,), (-1,), 2).tolist() == [2, 1, 0] and x.as_strided((0,), (1,), 5).size == 0
    )


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda x: x.reshape(4, 2), dt.ShapeError, r"shape \(2, 3\) has 6 elements and cannot "
            r"become \(4, 2\)"),
        (lambda x: x.reshape(-1, -1), dt.ShapeError, "one size may be -1"),
        (lambda x: x.reshape("a"), dt.ShapeError, "expected ints"),
        (lambda x: dt.reshape(x.T, (6,), copy=False), dt.ArgumentError, "copy=False forbids"),
        (lambda x: x.T.view(6), dt.ShapeError, r"use x.reshape\(\)"),
        (lambda x: dt.permute_dims(x, (0, 0)), dt.AxisError, "must name each of"),
        (lambda x: x.swapaxes(0, 2), dt.AxisError, "out of range"),
        (lambda x: x.moveaxis((0, 1), 0), dt.AxisError, "equally many distinct"),
        (lambda x: dt.expand_dims(x, axis=3), dt.AxisError, "expand_dims: axis 3"),
        (lambda x: dt.squeeze(x, axis=0), dt.ShapeError, "must have size 1"),
        (lambda x: dt.broadcast_to(x, (3,)), dt.ShapeError, "does not broadcast to"),
        (lambda x: dt.broadcast_to(x, (2, 4)), dt.ShapeError, "do not broadcast"),
        (lambda x: dt.split(x, (1, 2)), dt.ShapeError, "must sum to 2"),
        (lambda x: dt.split(x, 0), dt.ArgumentError, "positive"),
        (lambda x: dt.concat([]), dt.ArgumentError, "at least one"),
        (lambda x: x.as_strided((1,), (10**400,)), dt.ShapeError, r"as_strided: .*2\*\*63 bytes"),
        (lambda x: dt.concat([x, dt.ones((2, 2))]), dt.ShapeError, r"\(2, 3\), \(2, 2\) must "
            r"be equal except along axis 0"),
        (lambda x: dt.concat([x, dt.ones(2)]), dt.ShapeError, "must be equal except along axis 0"),
        (lambda x: dt.concat([x, 1]), dt.DTypeError, "concat: expected tensors.*got int"),
        (lambda x: dt.stack([x, dt.ones(2)]), dt.ShapeError, "dt.concat"),
        (lambda x: dt.roll(x, (1, 2), axis=0), dt.ArgumentError, "2 shifts, got 1 axes"),
        (lambda x: dt.roll(x, (1, 2)), dt.ArgumentError, "an axis for each of 2"),
        (lambda x: dt.repeat(x, -1), dt.ArgumentError, "negative"),
        (lambda x: dt.repeat(x, (2**44, 2**44), axis=0), dt.OutOfMemoryError, "enough memory"),
        (lambda x: dt.repeat(x, (1, 2, 3), axis=0), dt.ShapeError, "2 counts"),
        (lambda x: x.flatten(1, 0), dt.AxisError, "must not be after"),
        (lambda x: x.as_strided((3, 3), (2, 1)), dt.ShapeError, r"elements 0..6 of a storage of 6"),
        (lambda x: x.as_strided((3,), (-1,)), dt.ShapeError, "elements -2..0"),
        (lambda x: x.as_strided((3,), (1, 1)), dt.ShapeError, "a stride for each of 1 .*got 2"),
    ],
)  # fmt: skip
def test_manipulation_errors(
    device: dt.Device, call: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        call(dt.ones((2, 3)))


def test_cached_concat_uses_the_current_tensors() -> None:
    """The cache key contains specs: strides, dtypes and axes."""
    for seed in range(3):
        a, b = (np.random.default_rng(seed + k).random((40, 30), "f4") for k in (0, 9))
        x, y = (dt.asarray(v, device="cpu") for v in (a, b))
        for p, q, u, v in ((x, y, a, b), (x.T, y.T, a.T, b.T), (x + y, x, a + b, a)):
            for axis in (0, 1, -1):
                for name in ("concat", "stack"):
                    got = getattr(dt, name)([p, q], axis=axis).numpy()
                    np.testing.assert_array_equal(got, getattr(np, name)([u, v], axis=axis))
                got = dt.roll(p, seed - 1, axis=axis).numpy()
                np.testing.assert_array_equal(got, np.roll(u, seed - 1, axis=axis))
            np.testing.assert_array_equal(dt.roll(p, 7).numpy(), np.roll(u, 7))
            np.testing.assert_array_equal(dt.roll(p[0], 7).numpy(), np.roll(u[0], 7))
        mixed = dt.concat([x, y.astype(dt.float64)])
        assert mixed.dtype is dt.float64 and dt.concat([x, y]).dtype is dt.float32
        for axis in (3, "0", [2**70]):
            for rule in (dt.concat, dt.stack):
                with pytest.raises(dt.DovetailError):
                    rule([x, y], axis=axis)
