"""Reads, writes and creations of small arrays that the host does at once equal NumPy's."""

from __future__ import annotations

import gc
import random
from typing import Any

import dovetail as dt
import dovetail.numpy as np
import numpy
import pytest
from dovetail.engine.events import counters
from dovetail.tensor import host_index

DTYPES = ["f8", "f4", "i8", "?", "c16", "i2"]
KINDS = [
    "int", "numpy int", "slice", "none", "dots", "list", "vector", "int32", "matrix", "column",
    "scalar", "mask",
]  # fmt: skip
is_compiled = host_index.__file__.endswith((".so", ".pyd"))


def random_part(draw: random.Random, rng: numpy.random.Generator, n: int, kind: str) -> Any:
    """Return a part of a key of a kind, for an axis of `n` elements."""
    shapes = {"vector": (3,), "int32": (3,), "matrix": (2, 3), "column": (2, 1), "scalar": ()}
    if kind in shapes:
        return rng.integers(-n, n, shapes[kind]).astype("i4" if kind == "int32" else "i8")
    ends = [None, *range(-n - 1, n + 2)]
    parts: dict[str, Any] = {
        "int": int(rng.integers(-n, n)),
        "numpy int": numpy.int64(rng.integers(-n, n)),
        "slice": slice(draw.choice(ends), draw.choice(ends), draw.choice([None, 1, 2, -1, -2])),
        "none": None,
        "dots": Ellipsis,
        "list": [int(i) for i in rng.integers(-n, n, 3)],
        "mask": rng.random(n) < 0.5,
    }
    return parts[kind]


def random_key(draw: random.Random, rng: numpy.random.Generator, shape: tuple[int, ...]) -> Any:
    """Return a key for a shape: integers, slices, None, `...`, index arrays and masks."""
    if draw.random() < 0.2:
        return rng.random(shape[: draw.randint(1, len(shape))]) < 0.5
    parts: list[Any] = []
    axis = 0
    while axis < len(shape) and draw.random() < 0.85:
        kind = draw.choice(KINDS)
        if kind != "dots" or not any(p is Ellipsis for p in parts):
            parts.append(random_part(draw, rng, shape[axis], kind))
            axis += kind not in ("none", "dots")
    return tuple(parts)


def ours(key: Any) -> Any:
    """Return a key with ndarrays in place of NumPy's arrays."""
    if isinstance(key, tuple):
        return tuple([ours(part) for part in key])
    return np.array(key) if isinstance(key, numpy.ndarray) else key


def assert_same(a: Any, b: Any) -> None:
    """Assert that two results have equal dtypes, shapes and bits."""
    a, b = numpy.asarray(a), numpy.asarray(b)
    assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


@pytest.mark.parametrize("seed", range(40))
def test_any_key_reads_and_writes_as_numpy_does(seed: int) -> None:
    draw, rng = random.Random(seed), numpy.random.default_rng(seed)
    for _ in range(25):
        dtype = draw.choice(DTYPES)
        values = (rng.random([draw.randint(1, 5) for _ in range(draw.randint(1, 4))]) * 99).astype(
            dtype
        )
        turn = draw.choice([lambda a: a, lambda a: a.T, lambda a: a[::-1]])
        x, theirs = turn(np.array(values)), turn(values)
        key = random_key(draw, rng, theirs.shape)
        try:
            part = theirs[key]
        except IndexError:  # arrays that do not broadcast
            continue
        assert_same(x[ours(key)], part)
        written: list[Any] = [theirs.dtype.type(3), (rng.random(part.shape) * 9).astype(dtype)]
        if part.ndim and part.shape[-1]:
            written.append((rng.random(part.shape[-1]) * 9).astype(dtype))
        for value in written:
            y, copy = turn(np.array(values)), turn(values.copy())
            copy[key] = value
            y[ours(key)] = np.array(value) if isinstance(value, numpy.ndarray) else value
            assert_same(y, copy)


def test_index_out_of_range_raises() -> None:
    x = np.arange(4)
    for key in ([0, 4], [-5], np.array([4]), (np.array([[0], [9]]),)):
        with pytest.raises(IndexError, match="out of range"):
            dt.evaluate(x[key])
        with pytest.raises(IndexError, match="out of range"):
            x[key] = 1
    assert x.tolist() == [0, 1, 2, 3]


def test_pending_readers_keep_the_values_before_a_write() -> None:
    x = np.arange(6) * 1.0
    pending = np.exp(x)
    x[np.array([0, 1])] = 7.0
    x[2:4] = np.ones(2)
    assert numpy.array_equal(pending, numpy.exp(numpy.arange(6.0)))
    assert x.tolist() == [7, 7, 1, 1, 4, 5]


def test_overlapping_slices_are_copied_as_if_by_way_of_a_copy() -> None:
    x, theirs = np.arange(9), numpy.arange(9)
    for target, source in ((slice(1, None), slice(-1)), (slice(-1), slice(1, None))):
        x[target], theirs[target] = x[source], theirs[source].copy()
        assert x.tolist() == theirs.tolist()
    x[1:5] = x[5:1:-1]
    theirs[1:5] = theirs[5:1:-1].copy()
    assert x.tolist() == theirs.tolist()


def test_gradient_flows_through_indices() -> None:
    x = np.arange(4) * 1.0
    x.requires_grad = True
    x[np.array([1, 1, 3])].sum().backward()
    assert x.grad.tolist() == [0, 2, 0, 1]


def test_captured_function_records_the_read() -> None:
    @dt.jit
    def take(x: Any, places: Any) -> Any:
        return x[places] * 2

    for places in ([0, 1], [2, 0]):
        assert take(np.arange(3), np.array(places)).tolist() == [2 * i for i in places]


@pytest.mark.skipif(not is_compiled, reason="in pure Python kernels do this work")
def test_small_arrays_take_no_launch() -> None:
    def work() -> Any:
        """Return parts of small arrays."""
        x, places, mask = np.arange(5), np.array([1, 3]), np.array([True] * 3 + [False] * 2)
        y = np.zeros(5, dtype=int)
        y[places] = x[mask][:2]
        y[2:] = x[:3]
        return np.concatenate([x[places], y.copy(), np.array([x[0], x[1]]).T])

    gc.collect()  # after errors of indices that a test kept, nothing is done at once
    work()  # its writes find the nodes that were recorded before
    before = counters.launches
    assert work().tolist() == [1, 3, 0, 0, 0, 1, 2, 0, 1]
    assert counters.launches == before


def test_lists_of_arrays_are_stacked() -> None:
    rows = [np.arange(3) * 1.0, np.ones(3) + 1, np.zeros(6)[::2]]
    assert_same(np.array(rows), [[0, 1, 2], [2, 2, 2], [0.0, 0, 0]])
    nested = np.array([[rows[0].sum(), rows[1].max()], [rows[2][0], rows[1].min()]])
    assert_same(nested, [[3.0, 2], [0, 2]])


@pytest.mark.parametrize("dtype", ["i4", "i8", "u1", "f4", "f8"])
@pytest.mark.parametrize("kind", ["i8", "u1", "f4", "f8"])
@pytest.mark.parametrize("op", ["__add__", "__truediv__", "__floordiv__", "__lt__", "__iadd__"])
def test_numpy_scalars_promote_as_numpy_says(op: str, kind: str, dtype: str) -> None:
    values, number = numpy.array([1, 2, 7], dtype), numpy.dtype(kind).type(2)
    x = np.array(values)
    try:
        expected = getattr(values, op)(number)
    except TypeError:  # in place, a cast that loses a kind of number
        return
    assert_same(getattr(x, op)(number), expected)


def test_diagonals_are_views() -> None:
    x = np.arange(12).reshape(3, 4)
    for k in range(-3, 5):
        assert np.diag(x, k).tolist() == numpy.diag(numpy.asarray(x), k).tolist()
        assert np.diag(x.T, k).tolist() == numpy.diag(numpy.asarray(x).T, k).tolist()
    np.diag(x)[1] = 50
    assert x[1, 1] == 50
