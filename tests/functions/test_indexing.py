"""x[key] and related functions against NumPy, on every installed device."""

from __future__ import annotations

from array import array
from collections import deque
from typing import Any, NamedTuple

import dovetail as dt
import numpy as np
import pytest
from dovetail import dtypes
from dovetail.device_class import device
from dovetail.engine import evaluate as run
from dovetail.engine.events import start_profile, stop_profile
from dovetail.errors import (
    ArgumentError,
    DTypeError,
    OutOfRangeError,
    ShapeError,
    ValueOverflowError,
)
from dovetail.functions.indexing import index_reads, index_writes, masks
from dovetail.insight.profile import profile
from dovetail.ops import scatter as scatters
from dovetail.ops import table as ops
from dovetail.tensor import host, primitives, tensor
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.planning import forget_shape_classes

DEVICES = ["reference", "cpu"]
rng = np.random.default_rng(7)


def on(name: str, a: Any) -> tensor.Tensor:
    a = np.asarray(a)
    return host.from_host(a, dtypes.dtype(a.dtype), device(name))


def assert_same(x: tensor.Tensor, a: Any) -> None:
    assert x.shape == a.shape
    np.testing.assert_array_equal(x.numpy(), a)


class Pair(NamedTuple):
    row: int
    columns: list[int]


X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
MASK = X % 3 == 0
BASIC = [
    0, -1, (1, 2), (1, 2, 3), slice(None), slice(None, None, -2), (..., 1), (), ..., None,
    (None, 1, ..., None, slice(4, 0, -1)), slice(5, 9), (slice(1, 2), ...), (slice(-100, 100), 0),
    np.int64(1), (slice(2, 0, -1), slice(None), slice(None, None, 3)),
]  # fmt: skip
ARRAYS: list[Any] = [
    [0, 2], ([0, 2], [1, 1]), (slice(None), [3, -4, 0]), ([[0], [1]], [0, 3]), (0, [1, 2]),
    ([0, 1], slice(None), [2, 3]), (0, slice(None), [1, 2]), (slice(None), [[0, 1], [2, 3]], 1),
    ([0, 1], None, [1, 2]), (..., [4, 0, 4]), (slice(None, None, -1), [1, 1], slice(1, 4)), [],
    ([0], ..., [1]), (slice(None), [0], ..., [1]), MASK, MASK[:, :, 0], (slice(None), MASK[0]),
    MASK[:, 0, 0], (..., MASK[0, 0]), (slice(None), MASK[0, :, 0], [[0], [1]]),
    (MASK[:, 0, 0], 1), (slice(1, None), MASK[0, :, 0], slice(None, 2)), True, False,
    (True, [0, 1]), (slice(None), True), np.zeros_like(MASK), (None, MASK[:, :, 0], None),
    np.array(2), (slice(None), np.array(2)), (0, slice(None), True), np.array([[True] * 4] * 3),
    range(0, 3, 2), range(0), (range(3), range(3)), (slice(None), range(3, -1, -1)), (1, range(2)),
    ((0, 2), (1, 1)), (slice(None), (True, False, True, False)), deque([0, 2]), array("b", [2, 0]),
    Pair(1, [0, 2]), np.ix_([0, 2], [1, 3]), (np.bool_(True), 1),
]  # fmt: skip


def as_tensors(name: str, key: Any) -> Any:
    """Return the key with its arrays on the device."""
    if isinstance(key, tuple):
        return tuple(as_tensors(name, k) for k in key)
    if isinstance(key, list):
        key = np.asarray(key, dtype=np.int64) if not key else np.asarray(key)
    return on(name, key) if isinstance(key, np.ndarray) else key


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("key", BASIC, ids=str)
def test_basic_reads_are_views(name: str, key: Any) -> None:
    x = on(name, X)
    assert_same(x[key], X[key])
    y = x + 1
    assert_same(y[key] * 2, (X[key] + 1) * 2)
    assert x[key].size == 0 or x[key].storage() is x.storage()


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("key", BASIC + ARRAYS, ids=str)
def test_writes_broadcast_values(name: str, key: Any) -> None:
    for value in (
        7,
        np.float32(2.5),
        np.arange(X[key].size, dtype=np.float32).reshape(X[key].shape),
    ):
        for index in (key, as_tensors(name, key)):
            want = X.copy()
            want[key] = value
            x = on(name, X)
            x[index] = on(name, value) if isinstance(value, np.ndarray) else value
            assert_same(x, want)


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("key", ARRAYS, ids=str)
def test_reads_at_index_arrays_equal_numpy(name: str, key: Any) -> None:
    x = on(name, X)
    assert_same(x[key], X[key])
    assert_same((x * 2)[as_tensors(name, key)] + 1, X[key] * 2 + 1)


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_checked_read_fuses_with_a_reduction(name: str, axis: int) -> None:
    """Indices that are known to be in range need no stored intermediate."""
    x, index = on(name, X), [[3, 0], [1, -1]]
    x[:, index].numpy()
    before = run.counters.launches
    got = primitives.reduce(ops.SUM, x[:, index] * 2, (axis,), False)
    assert_same(got, (X[:, index] * 2).sum(axis))
    assert run.counters.launches == before + 1


@pytest.mark.parametrize("name", DEVICES)
def test_writes_are_visible_in_every_view(name: str) -> None:
    x = on(name, X)
    t = primitives.view(x, ("permute", (2, 0, 1)))
    want = X.copy()
    t[[1, 3], :, 1] = 9
    want.transpose(2, 0, 1)[[1, 3], :, 1] = 9
    m = want.transpose(2, 0, 1) % 2 == 0
    t[on(name, m)] = np.arange(m.sum(), dtype=np.float32)
    want.transpose(2, 0, 1)[m] = np.arange(m.sum(), dtype=np.float32)
    t[0] += 1
    want.transpose(2, 0, 1)[0] += 1
    t[[0, 0, 1]] += 1
    want.transpose(2, 0, 1)[[0, 0, 1]] += 1
    assert_same(x, want)


def test_writes_move_the_minimum_of_bytes() -> None:
    x, mask = on("reference", np.zeros(1000, np.float32)), on("reference", np.ones(1000, bool))
    events: list[Any] = []
    start_profile(events)
    x += 1
    x[:100] = 2
    x[mask] = 3
    stop_profile(events)
    moved = [e["details"]["bytes"] for e in events if e["name"].startswith("launch")]
    assert moved == [8000, 400, 9000]


@pytest.mark.parametrize("name", DEVICES)
def test_last_value_of_a_repeated_index_wins(name: str) -> None:
    x = on(name, np.zeros(4, np.int32))
    x[[1, 1, 2, 1]] = on(name, np.array([5, 6, 7, 8], np.int32))
    assert_same(x, np.array([0, 8, 7, 0]))


@pytest.mark.parametrize("name", DEVICES)
def test_pending_readers_see_the_old_values(name: str) -> None:
    x = on(name, X)
    y = x + 1
    x[[0, 1]] = y[[1, 2]]
    want = X.copy()
    want[[0, 1]] = (X + 1)[[1, 2]]
    assert_same(x, want)
    assert_same(y, X + 1)
    x = on(name, X)
    x[[0, 1]] = x[[1, 0]]
    assert_same(x, X[[1, 0, 2]])


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("key, error", [
    (3, OutOfRangeError), ((0, 0, 0, 0), OutOfRangeError), (1.0, DTypeError), ("a", DTypeError),
    (slice(None, None, 0), ArgumentError), ([0.5], DTypeError), ([5], OutOfRangeError),
    (slice(0.5, 2), DTypeError), ((..., ...), OutOfRangeError), ([-4], OutOfRangeError),
    (np.ones((2, 2), bool), OutOfRangeError), (([0, 1], [0, 1, 2]), OutOfRangeError),
])  # fmt: skip
def test_invalid_keys_raise_and_write_nothing(name: str, key: Any, error: type[Exception]) -> None:
    x = on(name, X)
    with pytest.raises(error):
        x[key]
    with pytest.raises(error):
        x[key] = 1
    assert_same(x, X)


def test_index_error_names_axis_and_size() -> None:
    with pytest.raises(OutOfRangeError, match="index: 4 is out of range for axis 1 of size 4"):
        on("reference", X)[0, 4]


@pytest.mark.parametrize("name", DEVICES)
def test_device_indices_are_checked_before_a_write(name: str) -> None:
    x, bad = on(name, X), on(name, np.array([0, 3]))
    pending = x[bad]
    with pytest.raises(OutOfRangeError, match="index: 3 is out of range for axis 0 of size 3"):
        pending.numpy()
    del pending
    with pytest.raises(OutOfRangeError, match="setitem"):
        x[bad] = 1
    with pytest.raises(OutOfRangeError, match="index_add"):
        x.index_add_(0, bad, 1)
    y = on(name, X[:2])
    with pytest.raises(OutOfRangeError):
        y[...] = x[bad]
    assert_same(x, X)
    assert_same(y, X[:2])


@pytest.mark.parametrize("name", DEVICES)
def test_values_that_do_not_fit_the_dtype_raise(name: str) -> None:
    x = on(name, np.arange(6, dtype=np.int8))
    for key in (0, [0, 1], on(name, np.arange(6) > 3)):
        with pytest.raises(DTypeError):
            x[key] = 1.5
        with pytest.raises(ValueOverflowError):
            x[key] = 128
        with pytest.raises(ShapeError):
            x[key] = [[1, 2, 3], [4, 5, 6]]
    assert_same(x, np.arange(6))


@given(data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_random_keys_read_and_write_like_numpy(data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    a = rng.integers(0, 100, shape)
    if data.draw(st.booleans()):
        key: Any = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
    else:
        some = data.draw(st.integers(1, len(shape)))
        arrays = data.draw(hnp.integer_array_indices(shape[:some]))
        key = tuple(k if data.draw(st.booleans()) else slice(None, None, -1) for k in arrays)
    x = on("reference", a)
    assert_same(x[key], a[key])
    value = rng.integers(0, 100, a[key].shape)
    x[key] = value
    a[key] = value
    assert_same(x, a)


@pytest.mark.parametrize("name", DEVICES)
def test_take_and_take_along_axis_equal_numpy(name: str) -> None:
    x = on(name, X)
    assert_same(index_reads.take(x, [3, 0, -1], axis=1), X.take([3, 0, -1], axis=1))
    assert_same(
        index_reads.take(x, on(name, np.array([[1], [2]])), axis=0), X.take([[1], [2]], axis=0)
    )
    order = X[:, ::-1].argsort(1)
    assert_same(index_reads.take_along_axis(x, order, axis=1), np.take_along_axis(X, order, 1))
    one = order[:1, :2]
    assert_same(x.take_along_axis(on(name, one), axis=1), np.take_along_axis(X, one, 1))


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("shape", [(7,), (5, 6), (3, 0, 2), (10_000,), (3, 4096)])
def test_nonzero_equals_numpy(name: str, shape: tuple[int, ...]) -> None:
    a = rng.integers(0, 3, shape)
    for found, want in zip(masks.nonzero(on(name, a)), np.nonzero(a), strict=True):
        assert_same(found, want)
    assert_same(masks.argwhere(on(name, a)), np.argwhere(a))


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float16])
def test_index_add_adds_in_order(name: str, dtype: Any) -> None:
    a = (rng.standard_normal((6, 5)) * 9).astype(dtype)
    index = rng.integers(-5, 5, 40)
    b = (rng.standard_normal((6, 40)) * 9).astype(dtype)
    want = a.astype(np.float32) if dtype is np.float16 else a.copy()
    every: Any = (slice(None), index)
    np.add.at(want, every, b.astype(want.dtype))
    want = want.astype(dtype)
    x = on(name, a)
    assert_same(x.index_add(1, index, on(name, b)), want)
    assert_same(x, a)
    x.index_add_(1, on(name, index), on(name, b))
    assert_same(x, want)


@pytest.mark.parametrize("name", DEVICES)
def test_scatter_equals_numpy(name: str) -> None:
    index = np.array([[0, 1, 2, 0], [1, 1, 0, 2]])
    b = rng.standard_normal((2, 4)).astype(np.float32)
    want = np.zeros((3, 5), np.float32)
    np.put_along_axis(want[:, :4], index, b, 0)
    x = on(name, np.zeros((3, 5), np.float32))
    assert_same(x.scatter(0, index, on(name, b)), want)
    x.scatter_add_(0, on(name, index), on(name, b))
    want = np.zeros((3, 5), np.float32)
    np.add.at(want, (index, np.arange(4)), b)
    assert_same(x, want)


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("n", [0, 1, 2, 33, 1000])
def test_searchsorted_equals_numpy(name: str, side: Any, n: int) -> None:
    a = rng.integers(0, 50, n).astype(np.float64)
    a[: n // 10] = np.nan
    wanted = np.append(rng.integers(-1, 52, (3, 33)).astype(np.float64), [[np.nan]] * 3, 1)
    order = a.argsort()
    want = np.searchsorted(a[order], wanted, side)
    assert_same(index_reads.searchsorted(on(name, a[order]), on(name, wanted), side=side), want)
    found = index_reads.searchsorted(
        on(name, a), on(name, wanted), side=side, sorter=on(name, order)
    )
    assert_same(found, want)


def test_searchsorted_with_wrong_arguments_raises() -> None:
    with pytest.raises(ArgumentError):
        index_reads.searchsorted(on("reference", [1.0]), 1.0, side="middle")
    with pytest.raises(ShapeError):
        index_reads.searchsorted(on("reference", X), 1.0)


@pytest.mark.parametrize(
    "name, dtype", [("reference", "f4"), ("cpu", "f4"), ("cpu", "f2"), ("cpu", "f8"), ("cpu", "i2")]
)
def test_scatter_sorted_by_ranges_has_the_same_bits(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bits equal those of sequential additions."""
    forget_shape_classes(monkeypatch)
    monkeypatch.setattr(scatters, "RANGE_UNITS_MIN", 1)
    monkeypatch.setattr(scatters, "RANGE_VALUES_MIN", 1)
    r, n = np.random.default_rng(8), scatters.COLUMN_VALUES_MIN + 77
    for places in (5, 70_000):
        at, values = r.integers(0, places, n), (r.standard_normal((n, 3)) * 9).astype(dtype)
        for v in (values[:, 0], values):
            x = on(name, np.zeros((places, *v.shape[1:]), dtype))
            sums = np.zeros(x.shape, "f4" if dtype == "f2" else dtype)  # halves add up in float32
            np.add.at(sums, at, v)
            want = sums.astype(dtype)
            with profile() as ran:
                got = index_writes.index_add(x, 0, on(name, at), on(name, v))
            assert any(e["name"] == "launch scatter_ranges" for e in ran.events)
            np.testing.assert_array_equal(got.numpy(), want)
            x[on(name, at)] = on(name, v)
            want[at] = v
            np.testing.assert_array_equal(x.numpy(), want)
    rows, columns = r.integers(0, 30, (2, n))
    x, want = on(name, np.zeros((40, 30), dtype)).T, np.zeros((30, 40), dtype)
    x[on(name, rows), on(name, columns)] = on(name, values[:, 1])
    want[rows, columns] = values[:, 1]
    np.testing.assert_array_equal(x.numpy(), want)
    over = r.integers(0, 40, (n, 3))
    x, sums = on(name, np.zeros((40, 3), dtype)), np.zeros((40, 3), sums.dtype)
    np.add.at(sums, (over, [[0, 1, 2]]), values)
    got = x.scatter_add_(0, on(name, over), on(name, values))
    np.testing.assert_array_equal(got.numpy(), sums.astype(dtype))


@pytest.mark.parametrize("step", [2**62, -(2**62), 2**70])
@pytest.mark.parametrize("name", DEVICES)
def test_slice_step_beyond_all_memory_selects_one_element(name: str, step: int) -> None:
    a = np.arange(6.0).reshape(3, 2)
    x = on(name, a)
    assert x[::step].tolist() == (a[:1] if step > 0 else a[-1:]).tolist()
    x[::step] = 7.0
    assert int((x == 7.0).sum()) == 2


def test_index_tensor_reads_equally_eagerly_and_deferred(device: str) -> None:
    x = dt.asarray([[1, 2], [3, 4], [5, 6]], device=device)
    i = dt.asarray([2, 0, -1], device=device)
    want = [[5, 6], [1, 2], [5, 6]]
    with dt.eager():
        assert [x[i].tolist() for _ in range(3)] == [want] * 3
        assert dt.take(x, i, axis=0).tolist() == want
    assert [x[i].tolist() for _ in range(3)] == [want] * 3
    assert dt.take(x, i[:2] - 1, axis=1).tolist() == [[2, 2], [4, 4], [6, 6]]


# --- writes and masks in few launches -------------------------------------------------------------


def launches(act: Any) -> int:
    """Return how many kernels a callable launches."""
    act()
    before = run.counters.launches
    act()
    return run.counters.launches - before


@pytest.mark.parametrize("value", [2.0, 3, True, np.arange(4.0, dtype=np.float32)], ids=str)
def test_write_at_few_indices_is_one_launch(device: str, value: Any) -> None:
    x = dt.zeros(10, device=device)
    i = dt.asarray([3, -1, 3, 0], device=device)
    y = dt.asarray(value, device=device) if isinstance(value, np.ndarray) else value
    dt.evaluate(x, i, *([y] if isinstance(y, dt.Tensor) else []))

    def put() -> None:
        x[i] = y

    assert launches(put) == 1
    want = np.zeros(10, np.float32)
    want[[3, -1, 3, 0]] = value
    assert_same(x, want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint64", "bool", "float64"])
@pytest.mark.parametrize("shape", [(9,), (9, 3), (9, 0), (9, 2, 4)], ids=str)
def test_writes_at_few_and_at_many_indices_are_equal(
    device: str, dtype: str, shape: tuple[int, ...]
) -> None:
    d = getattr(dt, dtype)
    few, many = (dt.zeros(shape, dtype=d, device=device) for _ in range(2))
    at = np.asarray([8, 0, -9, 4, 0])
    repeated = np.tile(
        at, scatters.COLUMN_VALUES_MIN
    )  # so many that a kernel of its own checks them
    row = dt.ones((5, *shape[1:]), dtype=d, device=device)
    for _ in range(3):  # recorded, cached, matched by a guard
        few[dt.asarray(at, device=device)] = True
        many[dt.asarray(repeated, device=device)] = True
        few.index_add_(0, dt.asarray(at, device=device), row)
        many.index_add_(0, at, row)  # known to be in range
    assert few.tolist() == many.tolist()


def test_invalid_index_among_few_writes_nothing(device: str) -> None:
    x = dt.arange(12, dtype=dt.float32, device=device).reshape(4, 3)
    before = x.tolist()
    for bad in (4, -5, 2**40):
        for value in (1.0, dt.ones(3, device=device)):
            for _ in range(3):
                with pytest.raises(
                    OutOfRangeError, match=f"setitem: {bad} is out of range for axis 0"
                ):
                    x[dt.asarray([0, bad, 1], device=device)] = value
    assert x.tolist() == before
    nothing = dt.zeros((0, 3), device=device)
    with pytest.raises(OutOfRangeError):
        nothing[dt.asarray([0], device=device)] = 1.0
    nothing[dt.asarray(np.zeros(0, np.int64), device=device)] = 1.0


def test_cached_write_still_checks_that_the_value_fits(device: str) -> None:
    x = dt.zeros(4, dtype=dt.int8, device=device)
    i = dt.asarray([1, 2], device=device)
    for value in (1, 2, 3):
        x[i] = value
    with pytest.raises(ValueOverflowError):
        x[i] = 300
    with pytest.raises(DTypeError):
        x[i] = 1.5
    with pytest.raises(ShapeError):
        x[i] = dt.zeros(3, dtype=dt.int8, device=device)
    assert x.tolist() == [0, 3, 3, 0]


def test_cached_write_has_its_gradient(device: str) -> None:
    i = dt.asarray([2, 0], device=device)
    for _ in range(2):
        x = dt.zeros(4, device=device)
        x[i] = 5.0
    v = dt.asarray([3.0, 4.0], device=device).requires_grad_()
    y = dt.ones(4, device=device)
    y[i] = v * 2.0
    dt.sum(y * dt.asarray([1.0, 10.0, 100.0, 1000.0], device=device)).backward()
    assert v.grad is not None and v.grad.tolist() == [200.0, 2.0]


def test_captured_write_at_indices_is_replayed(device: str) -> None:
    @dt.jit
    def put(x: dt.Tensor, i: dt.Tensor, value: float) -> dt.Tensor:
        y = x.copy()
        y[i] = value
        return y

    x = dt.zeros(5, device=device)
    for at, value in (([1, 1], 2.0), ([0, -1], 3.0), ([4, 2], 4.0)):
        want = np.zeros(5)
        want[at] = value
        assert put(x, dt.asarray(at, device=device), value).tolist() == want.tolist()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("size", [0, 1, 1000, 4096, 4097])
def test_mask_read_and_write_equal_numpy(device: str, size: int, share: float) -> None:
    values = np.arange(size, dtype=np.float32)
    mask = rng.random(size) < share
    x, m = (dt.asarray(a, device=device) for a in (values, mask))
    for _ in range(2):
        assert_same(x[m], values[mask])
        assert_same(dt.nonzero(m)[0], np.flatnonzero(mask))


def test_mask_of_one_block_takes_two_launches(device: str) -> None:
    x, m = dt.arange(100, device=device), dt.arange(100, device=device) > 60
    dt.evaluate(x, m)
    assert launches(lambda: dt.evaluate(x[m])) == 2
