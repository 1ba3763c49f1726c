"""Random programs have the same bits deferred and fused, eager, and on the reference
interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import pytest
from dovetail.engine.evaluate import plan_pending
from dovetail.testing.programs import check


@pytest.mark.parametrize("block", range(8))
@pytest.mark.parametrize("name", ["reference", "cpu"])
def test_random_programs_keep_their_bits(name: str, block: int) -> None:
    for seed in range(block * 25, block * 25 + 25):
        check(seed, name)


@pytest.mark.exhaustive
@pytest.mark.parametrize("block", range(40))
def test_many_random_programs_keep_their_bits(block: int) -> None:
    for seed in range(10_000 + block * 100, 10_000 + block * 100 + 100):
        check(seed, "cpu")


JOINED: dict[str, Callable[[Any], Any]] = {
    "columns": lambda x: dt.concat([x, x[:, 3:], x[:, ::-2]], axis=1),
    "rolled": lambda x: dt.roll(x, (1, -2), axis=(0, 1)) * 2,
    "seen in part": lambda x: dt.concat([x, x], axis=1)[3:6:2, 60:5:-3],
    "rows before": lambda x: dt.concat([x[-1:], x[:-1]])[1:],
}


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("order", ["rows", "columns"])
def test_buffers_of_concat_parts_start_inside_their_memory(name: str, order: str) -> None:
    x = dt.ones((7, 40), device="reference")
    if order == "columns":
        x = dt.ones((40, 7), device="reference").T
    [(_, plan)] = plan_pending([JOINED[name](x)._expr])
    begins = [at for s in plan.steps for _, at in s.buffers]
    assert begins
    assert all(0 <= at < 7 * 40 * x.dtype.itemsize for at in begins)
