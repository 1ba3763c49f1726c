"""Small arrays that the host, or one launch, computes at once."""

from __future__ import annotations

import dovetail as dt
import dovetail.numpy as np
import numpy as host
from dovetail.engine.events import counters


def test_steps_that_copy_and_then_write_are_hits() -> None:
    p = np.linspace(0.0, 1.0, 50)
    for step in range(6):
        if step == 3:
            before = counters.evaluations - counters.graph_hits
        previous = p.copy()
        p[1:-1] = 0.5 * (previous[2:] + previous[:-2])
    assert counters.evaluations - counters.graph_hits == before


def test_copy_in_a_captured_function_stays_pending() -> None:
    def double_copy(x: np.ndarray) -> np.ndarray:
        y = x.copy()
        y[0] = 7.0
        return x + y

    x = np.arange(3.0)
    for _ in range(3):
        host.testing.assert_array_equal(dt.jit(double_copy)(x), [7.0, 2.0, 4.0])
