"""Bad indices on a device that works late: they are an IndexError when somebody waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dovetail as dt
import pytest
from dovetail.device import Device, device
from dovetail.faults import CELLS
from dovetail.memory import make_allocator
from dovetail.plugins import Opened
from dovetail.reference import ReferenceBackend


class Late(ReferenceBackend):
    """Runs nothing before it is waited for. `waits` counts how often that is."""

    asynchronous = True

    def __init__(self) -> None:
        self.queue: list[Any] = []
        self.waits = 0

    def launch(self, *args: Any) -> None:
        self.queue.append(args)

    def synchronize(self, stream: Any = None) -> None:
        self.waits += 1
        queue, self.queue = self.queue, []
        for args in queue:
            super().launch(*args)

    def copy_in(self, *args: Any) -> None:
        self.synchronize()
        super().copy_in(*args)

    def copy_out(self, *args: Any) -> None:
        self.synchronize()
        super().copy_out(*args)


@pytest.fixture
def late() -> Iterator[Device]:
    dev = device("late")
    backend = Late()
    dev.opened = Opened(backend, make_allocator(dev, backend), dev, {})
    yield dev
    dev.opened = None


def test_a_gather_does_not_wait_and_its_bad_index_is_found_by_whoever_looks(late: Device) -> None:
    x, i = dt.arange(4, device=late), dt.asarray([0, 7], device=late)
    y = dt.take(x, dt.asarray([1, 0], device=late))
    dt.evaluate(y)
    waits = late.opened.backend.waits
    y = dt.take(x, i)
    dt.evaluate(y)
    assert late.opened.backend.waits == waits
    with pytest.raises(IndexError, match=r"gather: .*late"):
        y.numpy()
    assert dt.take(x, dt.asarray([-1, 3], device=late)).tolist() == [3, 3]


def test_synchronize_finds_it_and_says_it_once(late: Device) -> None:
    y = dt.take(dt.arange(4, device=late), dt.asarray([4], device=late))
    dt.evaluate(y)
    with pytest.raises(IndexError):
        dt.synchronize(late)
    dt.synchronize(late)


def test_nothing_is_written_at_a_bad_index(late: Device) -> None:
    x = dt.zeros(4, device=late)
    with pytest.raises(IndexError):
        x[dt.asarray([1, 9], device=late)] = 1.0
    assert x.tolist() == [0.0] * 4


def test_more_launches_than_cells(late: Device) -> None:
    x, i = dt.arange(4, device=late), dt.asarray([3], device=late)
    for _ in range(CELLS + 1):
        y = dt.take(x, i)
        dt.evaluate(y)
    assert y.tolist() == [3]
    dt.evaluate(dt.take(x, i + 1))
    with pytest.raises(IndexError):
        for _ in range(CELLS + 1):
            dt.evaluate(dt.take(x, i))
