"""In which order the axes of a kernel's grid stand."""

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
        (300, 70, 4, (300, 4, 70)),  # the longest is far apart: neighbours are rows
        (300, 9, 4, (9, 4, 300)),  # where rows are few it is the examples
        (70, 70, 5, (70, 70, 5)),  # long enough by itself
        (30, 20, 3, (30, 20, 3)),  # nothing is long
    ],
)
def test_beside_a_short_last_axis_the_closest_long_one_is_last(
    device: str, examples: int, rows: int, columns: int, grid: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal((examples, n)).astype("f4") for n in (rows, columns))
    outer = dt.asarray(x, device=device)[:, :, None] * dt.asarray(y, device=device)[:, None, :]
    assert grid_of(outer) == grid
    assert outer.numpy().tobytes() == (x[:, :, None] * y[:, None, :]).tobytes()


def test_what_is_written_says_what_is_close(device: str) -> None:
    """Operands by other axes: those of the result count."""
    x = np.random.default_rng(4).standard_normal((3, 80, 90)).astype("f4")
    turned = dt.permute_dims(dt.asarray(x, device=device), (2, 1, 0)) + 1.0  # 90 x 80 x 3
    assert grid_of(turned) == (90, 3, 80)
    assert turned.numpy().tobytes() == (x.T + np.float32(1)).tobytes()
