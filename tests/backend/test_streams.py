"""Streams and events on a device that records its calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import dovetail as dt
import pytest
from dovetail.backend.faults import ErrorCells
from dovetail.backend.reference import ReferenceBackend
from dovetail.backend.streams import (
    Event,
    Stream,
    current_handle,
    current_stream,
    default_stream,
    stream,
    synchronize,
)
from dovetail.device_class import device
from dovetail.errors import ArgumentError, DeviceError
from dovetail.memory import CachingAllocator
from dovetail.plugins.device_handle import OpenedDevice
from dovetail.plugins.registry import open_device


class RecordingBackend(ReferenceBackend):
    """A backend with streams that records calls; its events pass when a stream waits for them."""

    def __init__(self) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.passed: set[Any] = set()
        self.streams = 0

    def create_stream(self) -> Any:
        self.streams += 1
        return f"stream{self.streams}"

    def record_event(self, stream: Any) -> Any:
        self.log.append(("record", stream))
        return len(self.log)

    def event_done(self, event: Any) -> bool:
        return event in self.passed

    def wait_event(self, stream: Any, event: Any) -> None:
        self.log.append(("wait", stream, event))
        if stream is None:
            self.passed.add(event)

    def synchronize(self, stream: Any = None) -> None:
        self.log.append(("synchronize", stream))


class _Opened:
    def __init__(self) -> None:
        self.backend = RecordingBackend()
        self.faults = ErrorCells(self.backend)


@pytest.fixture
def backend() -> Iterator[RecordingBackend]:
    dev = device("noting")
    dev.opened = _Opened()
    yield dev.opened.backend
    dev.opened = None


def test_default_stream_is_current(backend: RecordingBackend) -> None:
    assert current_stream("noting") is default_stream("noting")
    assert current_handle(device("noting")) is None


def test_streams_nest_and_are_per_thread(backend: RecordingBackend) -> None:
    dev, outer, inner = device("noting"), Stream("noting"), Stream("noting")
    seen: list[Any] = []
    with stream(outer):
        with stream(inner), stream(inner):
            assert current_handle(dev) == "stream2" and current_stream(dev) is inner
            thread = threading.Thread(target=lambda: seen.append(current_handle(dev)))
            thread.start()
            thread.join()
        assert current_handle(dev) == "stream1"
    assert current_handle(dev) is None and seen == [None]


def test_one_stream_may_be_current_in_two_threads(backend: RecordingBackend) -> None:
    dev, shared = device("noting"), Stream("noting")
    entered, leave = threading.Event(), threading.Event()
    after: list[Any] = []

    def work() -> None:
        with stream(shared):
            entered.set()
            leave.wait(10)
        after.append(current_handle(dev))

    thread = threading.Thread(target=work)
    with stream(shared):
        thread.start()
        entered.wait(10)
    leave.set()
    thread.join()
    assert current_handle(dev) is None and after == [None]


def test_event_passes_once_its_stream_reached_it(backend: RecordingBackend) -> None:
    one, two = Stream("noting"), Stream("noting")
    assert Event("noting").query(), "an event that was never recorded has passed"
    with stream(one):
        event = Event("noting")
        event.record()
    assert not event.query()
    two.wait_event(event)
    assert backend.log == [("record", "stream1"), ("wait", "stream2", 1)] and not event.query()
    event.synchronize()
    assert event.query()
    two.wait_stream(one)
    assert backend.log[-2:] == [("record", "stream1"), ("wait", "stream2", 4)]
    event.wait(default_stream("noting"))
    assert backend.log[-1] == ("wait", None, 1)


def test_elapsed_time_raises_without_two_recorded_events(backend: RecordingBackend) -> None:
    start, end = Event("noting"), Event("noting")
    start.record()
    with pytest.raises(ArgumentError, match="record"):
        start.elapsed_ms(end)
    end.record()
    assert start.elapsed_ms(end) == pytest.approx(1e-6)
    with pytest.raises(DeviceError, match="must be on one device"):
        start.elapsed_ms(Event("reference"))


def test_event_cannot_be_recorded_on_another_device(backend: RecordingBackend) -> None:
    open_device("reference")
    with pytest.raises(DeviceError, match="record: expected a stream of"):
        Event("noting").record(Stream("reference"))


def test_allocator_keeps_memory_that_work_on_a_stream_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dev, backend = device("sharing"), RecordingBackend()
    allocator = CachingAllocator(backend, dev)
    shared: list[Any] = []
    monkeypatch.setattr(allocator, "record_stream", lambda ptr, s: shared.append((ptr, s)))
    monkeypatch.setattr(dev, "opened", OpenedDevice(backend, allocator, dev, {}))
    x = dt.asarray([1.0, 2.0], device=dev)
    dt.evaluate(x + 1)
    assert shared == []  # a single stream shares nothing
    with Stream(dev) as s:
        # from the second time on the graph is in the plan cache and takes another path
        for n in range(1, 4):
            dt.evaluate(x + 1)
            assert shared == [(x.storage().ptr, s.handle)] * n
        x += 1
        assert len(shared) > 3


def test_synchronize_waits_for_one_stream_or_all(backend: RecordingBackend) -> None:
    Stream("noting").synchronize()
    synchronize("noting")
    synchronize()
    assert backend.log == [("synchronize", "stream1"), ("synchronize", None), ("synchronize", None)]
    synchronize("never_opened")
