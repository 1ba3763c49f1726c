"""Tensors that the body of a loop or branch leaves behind raise an error when they are read."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import dovetail as dt
import pytest

Body = Callable[[Any], Any]
LOOPS: dict[str, Callable[[Body, dt.Tensor], Any]] = {
    "scan": lambda f, x: dt.scan(lambda c, row: (f(c + row), c), x[0], x),
    "fori_loop": lambda f, x: dt.fori_loop(0, 3, lambda i, c: f(c + i), x),
    "while_loop": lambda f, x: dt.while_loop(lambda c: c.sum() < 100, lambda c: f(c) * 2, x),
    "cond": lambda f, x: dt.jit(lambda x: dt.cond(x.sum() > 0, lambda: f(x * 1), lambda: x))(x),
}
LEFT: dict[str, Callable[[Any], Any]] = {
    "input": lambda c: c,
    "pending": lambda c: c * 2,
    "view": lambda c: (c * 2).reshape(-1)[::-1],
    "evaluated": lambda c: (dt.evaluate(y := c * 2), y)[1],
}


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("loop", LOOPS)
def test_value_of_a_body_raises_after_the_loop(loop: str, left: str, device: dt.Device) -> None:
    kept: list[dt.Tensor] = []

    def body(c: dt.Tensor) -> dt.Tensor:
        kept.append(LEFT[left](c))
        return c * 1

    x = dt.arange(4, dtype=dt.float32)
    result = LOOPS[loop](body, x)
    for look in (lambda t: t.tolist(), lambda t: (t + 1).tolist(), lambda t: t.add_(1).tolist()):
        with pytest.raises(dt.CaptureError, match="after the body has ended"):
            look(kept[0])
    x.add_(1)  # leftover tensors read nothing that a write must wait for
    assert x.tolist() == [1, 2, 3, 4] and result is not None


def test_index_of_a_loop_raises_after_the_loop(device: dt.Device) -> None:
    kept: list[dt.Tensor] = []
    dt.fori_loop(0, 3, lambda i, c: (kept.append(i), c + i)[1], dt.zeros(2))
    with pytest.raises(dt.CaptureError, match="after the body has ended"):
        kept[0].tolist()


def test_writes_and_captures_work_next_to_leftover_tensors(device: dt.Device) -> None:
    x, kept = dt.arange(4, dtype=dt.float32), list[dt.Tensor]()

    def body(i: dt.Tensor, c: dt.Tensor) -> dt.Tensor:
        kept.append(x * c)
        return c + x

    step = dt.jit(lambda y: dt.fori_loop(0, 2, body, y))
    for k in range(3):
        x.mul_(2)
        assert step(x).tolist() == [3 * 2 ** (k + 1) * v for v in range(4)]
    assert kept
    gc.collect()
