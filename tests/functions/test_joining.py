"""Stacking and splitting against NumPy; bad input."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call"
from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.engine.events import counters


def assert_same(found: Any, want: Any) -> None:
    """Assert equal shapes, dtypes and elements of one tensor or of several."""
    if isinstance(want, (list, tuple)):
        assert len(found) == len(want)
        for f, w in zip(found, want, strict=True):
            assert_same(f, w)
        return
    assert isinstance(found, dt.Tensor)
    want = np.asarray(want)
    assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
    np.testing.assert_array_equal(found.numpy(), want)


STACKS = ["hstack", "vstack", "dstack", "column_stack"]
LISTS = [
    [np.arange(3), np.arange(3) + 5],
    [np.ones((2, 3), "f4"), np.zeros((2, 3), "i2")],
    [np.ones((2, 3, 1)), np.zeros((2, 3, 1)), np.full((2, 3, 1), np.nan)],
    [np.ones(0, "f4"), np.ones(0, "f4")],
]


@pytest.mark.parametrize("name", STACKS)
def test_stacks_equal_numpy(device: dt.Device, name: str) -> None:
    for arrays in LISTS:
        if arrays[0].dtype.kind == "f" and arrays[1].dtype.kind == "i":
            arrays = [arrays[0], arrays[1].astype("f4")]
        assert_same(getattr(dt, name)([dt.asarray(a) for a in arrays]), getattr(np, name)(arrays))
    if name != "column_stack":
        assert_same(getattr(dt, name)([dt.asarray(1), np.asarray(2)]), getattr(np, name)([1, 2]))


@pytest.mark.parametrize("name", STACKS)
def test_stacks_of_nothing_or_of_mismatched_shapes_raise(name: str) -> None:
    f = getattr(dt, name)
    with pytest.raises(dt.ArgumentError, match=f"{name}: expected at least one tensor"):
        f([])
    with pytest.raises(dt.ArgumentTypeError, match=f"{name}: arrays must be a list"):
        f(dt.ones(3, device="reference"))
    with pytest.raises(dt.ShapeError, match=name):
        f([dt.ones((2, 3, 4), device="reference"), dt.ones((5, 6, 7), device="reference")])


@pytest.mark.parametrize("name", ["atleast_1d", "atleast_2d", "atleast_3d"])
def test_atleast_functions_equal_numpy(device: dt.Device, name: str) -> None:
    arrays = [np.ones(()), np.arange(3), np.ones((2, 3)), np.ones((2, 3, 4)), np.ones((2, 0))]
    for a in arrays:
        assert_same(getattr(dt, name)(dt.asarray(a)), getattr(np, name)(a))
    assert_same(getattr(dt, name)(*map(dt.asarray, arrays)), getattr(np, name)(*arrays))
    with pytest.raises(dt.DTypeError, match=name):
        getattr(dt, name)("abc")


CUTS: list[Any] = [1, 2, 4, [1], [1, 3], [0, 9], [3, 1], [-1], []]


@pytest.mark.parametrize("name", ["array_split", "hsplit", "vsplit", "dsplit"])
def test_splits_equal_numpy(device: dt.Device, name: str) -> None:
    a = np.arange(64).reshape(4, 4, 4)
    for cut in CUTS:
        assert_same(getattr(dt, name)(dt.asarray(a), cut), getattr(np, name)(a, cut))
    for n in (3, 5, 7):
        assert_same(dt.array_split(dt.asarray(a), n, axis=-1), np.array_split(a, n, axis=-1))
    assert_same(dt.hsplit(dt.arange(4), 2), np.hsplit(np.arange(4), 2))


def test_splits_are_views() -> None:
    x = dt.zeros(4, device="reference")
    dt.hsplit(x, 2)[1].fill_(7)
    assert x.tolist() == [0, 0, 7, 7]


def test_splits_name_wrong_arguments() -> None:
    x = dt.ones((3, 3, 3), device="reference")
    for name in ("hsplit", "vsplit", "dsplit"):
        with pytest.raises(dt.ShapeError, match=f"{name}: .*2 equal parts; use dt.array_split"):
            getattr(dt, name)(x, 2)
        with pytest.raises(dt.ShapeError, match=f"{name}: expected at least"):
            getattr(dt, name)(dt.ones((), device="reference"), 1)
    for name in ("array_split", "hsplit", "vsplit", "dsplit"):
        with pytest.raises(dt.ArgumentError, match=f"{name}: indices_or_sections must be"):
            getattr(dt, name)(x, 0)
        with pytest.raises(dt.ArgumentTypeError, match=name):
            getattr(dt, name)(x, 1.5)


# --- many small tensors ---------------------------------------------------------------------------


MANY: dict[str, list[Any]] = {
    "rows": [np.full((k % 3 + 1, 2), k, "f4") for k in range(9)],
    "vectors": [np.arange(k, k + 4) for k in range(6)],
    "views": [np.arange(40, dtype="f4").reshape(5, 8)[k % 5, k : k + 3] for k in range(6)],
    "gaps": [np.arange(40, dtype="f4").reshape(5, 8).T[k : k + 1] for k in range(6)],
    "bools": [np.array([k % 2 == 0]) for k in range(7)],
    "an empty one": [np.ones(k % 2, "f4") for k in range(6)],
    "two dtypes": [np.ones(1, "f4" if k else "f8") for k in range(6)],
    "large": [np.full(40_000, k, "f4") for k in range(6)],
}


@pytest.mark.parametrize("case", MANY)
def test_many_tensors_are_joined_as_by_numpy(device: dt.Device, case: str) -> None:
    arrays = MANY[case]
    tensors = [dt.asarray(a, device=device) for a in arrays]
    assert_same(dt.concat(tensors), np.concatenate(arrays))
    if len({a.shape for a in arrays}) == 1:
        for f, g in ((dt.stack, np.stack), (dt.jit(dt.stack), np.stack)):
            assert_same(f(tensors), g(arrays))
    pending = [dt.flip(dt.flip(t)) for t in tensors]
    assert_same(dt.concat(pending), np.concatenate(arrays))


def test_many_small_tensors_are_joined_without_a_launch() -> None:
    pytest.importorskip("dovetail_cpu_llvm")
    table = dt.arange(100.0, device="cpu")
    dt.evaluate(table)
    rows = [table[k : k + 8] for k in range(0, 64, 2)]
    before = counters.launches
    stacked, joined = dt.stack(rows), dt.concat(rows)
    dt.evaluate(stacked, joined)
    assert counters.launches == before
    assert stacked.tolist() == [list(range(k, k + 8)) for k in range(0, 64, 2)]
    table += 1.0  # the copies keep their values
    assert joined[:8].tolist() == list(range(8))


def test_gradient_flows_to_each_of_many_tensors(device: dt.Device) -> None:
    tensors = [dt.ones(2).requires_grad_() for _ in range(6)]
    (dt.stack(tensors) * dt.arange(12.0).reshape(6, 2)).sum().backward()
    (dt.concat(tensors) * 2).sum().backward()
    for k, t in enumerate(tensors):
        assert t.grad is not None
        assert t.grad.tolist() == [2.0 * k + 2, 2.0 * k + 3]
