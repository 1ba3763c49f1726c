"""Rule 5 of captures: saved functions keep one state and tell arguments apart as before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import dovetail as dt
import pytest


def saved(f: object, path: Path) -> dt.capture.serialize.Loaded:
    dt.save_function(f, path / "f")  # type: ignore[arg-type]
    return dt.load_function(path / "f")


def test_loaded_function_tells_one_tensor_given_twice_from_two(
    device: dt.Device, tmp_path: Path
) -> None:
    f = dt.jit(lambda x, y: x * 2 + y)
    q = dt.asarray([1.0, 2.0])
    f(q, q)
    loaded = saved(f, tmp_path)
    assert loaded(q, q).tolist() == [3.0, 6.0]
    with pytest.raises(dt.CaptureError, match="kinds that it was captured for"):
        loaded(dt.asarray([1.0, 1.0]), dt.asarray([5.0, 5.0]))
    f(dt.asarray([1.0, 1.0]), dt.asarray([5.0, 5.0]))
    assert saved(f, tmp_path)(dt.asarray([1.0, 1.0]), dt.asarray([5.0, 5.0])).tolist() == [7.0, 7.0]


def test_kinds_of_arguments_of_a_loaded_function_share_its_state(
    device: dt.Device, tmp_path: Path
) -> None:
    state = dt.zeros(4)
    part = state[1:3]

    def count(x: dt.Tensor) -> dt.Tensor:
        part.__iadd__(1)
        return x.sum() + state.sum()

    f = dt.jit(count)
    f(dt.zeros(2)), f(dt.zeros(3))
    loaded = saved(f, tmp_path)
    assert [loaded(dt.zeros(n)).item() for n in (2, 3, 2)] == [6.0, 8.0, 10.0]
    assert state.tolist() == [0.0, 2.0, 2.0, 0.0]


def test_capture_of_another_closure_is_not_saved(device: dt.Device, tmp_path: Path) -> None:
    model = SimpleNamespace(k=2.0)
    f = dt.jit(lambda x: x * model.k)
    f(dt.ones(2))
    model.k = 3.0
    f(dt.ones(2))
    assert saved(f, tmp_path)(dt.ones(2)).tolist() == [3.0, 3.0]
    model.k = 4.0
    with pytest.raises(dt.CaptureError, match="no longer as it was captured"):
        dt.save_function(f, tmp_path / "f")


def test_function_whose_argument_shares_memory_with_its_closure_is_not_saved(
    device: dt.Device, tmp_path: Path
) -> None:
    state = dt.zeros(4)
    f = dt.jit(lambda x: x + state[:2])
    f(state[2:])
    with pytest.raises(dt.CaptureError, match="shares memory with a tensor of the closure"):
        dt.save_function(f, tmp_path / "f")
