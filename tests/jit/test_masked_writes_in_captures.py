"""`x[mask] = values` in a captured function: the value's shape says how many elements are true."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest


def write(x: Any, mask: Any, value: Any) -> Any:
    x = dt.copy(x)
    x[mask] = value
    return x


@pytest.mark.parametrize(
    ("shape", "axes"), [((6,), 1), ((4, 3), 1), ((4, 3), 2), ((2, 5, 3), 2), ((3, 0), 1)]
)
def test_capture_writes_as_numpy_does_without_a_host_read(
    device: dt.Device, shape: tuple[int, ...], axes: int
) -> None:
    rng = np.random.default_rng(sum(shape))
    captured = dt.jit(write, fullgraph=True)
    for share in (0.0, 0.3, 0.6, 1.0):
        x, mask = rng.normal(size=shape).astype(np.float32), rng.random(shape[:axes]) < share
        value = rng.normal(size=(mask.sum(), *shape[axes:])).astype(np.float32)
        expected = x.copy()
        expected[mask] = value
        operands = [dt.asarray(a, device=device) for a in (x, mask, value)]
        for f in (write, captured, captured):
            np.testing.assert_array_equal(f(*operands).numpy(), expected)


def test_mask_along_a_later_axis(device: dt.Device) -> None:
    def write_columns(x: Any, mask: Any, value: Any) -> Any:
        x = dt.copy(x)
        x[1:, mask] = value
        return x

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    mask, value = np.array([True, False, True, True]), -np.ones((2, 3), np.float32)
    expected = x.copy()
    expected[1:, mask] = value
    operands = [dt.asarray(a, device=device) for a in (x, mask, value)]
    captured = dt.jit(write_columns, fullgraph=True)
    assert captured(*operands).tolist() == captured(*operands).tolist() == expected.tolist()


@pytest.mark.parametrize("mask", [[True, True, True], [False, False, False], [True, False, False]])
def test_replay_raises_for_another_number_of_true_elements(
    device: dt.Device, mask: list[bool]
) -> None:
    captured = dt.jit(write, fullgraph=True)
    x, value = dt.zeros(3), dt.asarray([4.0, 5.0])
    assert captured(x, dt.asarray([True, False, True]), value).tolist() == [4.0, 0.0, 5.0]
    with pytest.raises(dt.OutOfRangeError, match="the mask must have 2 true elements"):
        captured(x, dt.asarray(mask), value).tolist()
    assert captured.captures == 1


def test_gradient_flows_to_the_values(device: dt.Device) -> None:
    @dt.jit
    def step(w: Any, mask: Any) -> Any:
        write(dt.zeros(4), mask, w * w).sum().backward()
        return w.grad

    w = dt.asarray([2.0, 3.0]).requires_grad_()
    for mask in ([True, False, True, False], [False, True, True, False]):
        w.grad = None
        assert step(w, dt.asarray(mask)).tolist() == [4.0, 6.0]
    assert step.captures == 1
