"""The order of the axes of a kernel's grid."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest
from dovetail.engine.evaluate import plan_pending
from dovetail.fusion.plan import PlannedLaunch


def grid_of(x: dt.Tensor) -> tuple[int, ...]:
    [(_, plan)] = plan_pending([x._expr])
    [step] = plan.steps
    assert isinstance(step, PlannedLaunch)
    return step.grid


@pytest.mark.parametrize(
    ("examples", "rows", "columns", "grid"),
    [
        (70, 70, 3, (70, 3, 70)),
        (300, 70, 4, (300, 4, 70)),  # the longest has a large stride: neighbors are rows
        (300, 9, 4, (9, 4, 300)),  # with few rows, it is the axis of examples
        (70, 70, 5, (70, 70, 5)),  # long enough by itself
        (30, 20, 3, (30, 20, 3)),  # no axis is long
    ],
)
def test_longest_contiguous_axis_is_last_if_the_last_is_short(
    device: str, examples: int, rows: int, columns: int, grid: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal((examples, n)).astype("f4") for n in (rows, columns))
    outer = dt.asarray(x, device=device)[:, :, None] * dt.asarray(y, device=device)[:, None, :]
    assert grid_of(outer) == grid
    assert outer.numpy().tobytes() == (x[:, :, None] * y[:, None, :]).tobytes()


def test_axis_order_follows_the_strides_of_the_result(device: str) -> None:
    """Operands may have other strides; those of the result decide."""
    x = np.random.default_rng(4).standard_normal((3, 80, 90)).astype("f4")
    turned = dt.permute_dims(dt.asarray(x, device=device), (2, 1, 0)) + 1.0  # 90 x 80 x 3
    assert grid_of(turned) == (90, 3, 80)
    assert turned.numpy().tobytes() == (x.T + np.float32(1)).tobytes()
