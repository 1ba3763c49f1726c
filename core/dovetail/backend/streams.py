"""Streams and events: queues of work on a device, and marks in them.

Work and memory belong to the current stream of the calling context; the default stream's handle is
None. On a host CPU streams are in order, and done at once.
"""

from __future__ import annotations

from typing import NoReturn, Protocol, SupportsIndex

from .. import settings
from ..arguments import instance
from ..device_class import Device, device, opened, opened_devices
from ..errors import ArgumentError, DeviceError, DTypeError
from .faults import Faults
from .interface import Backend, EventHandle, StreamHandle

__all__ = ["Event", "Stream", "current_stream", "default_stream", "stream", "synchronize"]


def _backend(dev: Device) -> Backend:
    backend: Backend = opened(dev).backend
    return backend


class Opened(Protocol):
    """A device that is open, as far as streams are concerned."""

    backend: Backend
    faults: Faults


def wait(where: Opened, stream: StreamHandle) -> None:
    """Returns when everything queued on a stream (its handle) of an opened device is done."""
    where.backend.synchronize(stream)
    if where.faults.pending:
        where.faults.settle(stream)


class Stream:
    """A queue of work on a device: in order in itself, against other streams by events alone.

    Against other streams it is unordered, but for events. Use it as a context manager: work of this
    context on its device then goes to it.

    >>> import dovetail as dt
    >>> with dt.Stream("reference") as s:
    ...     x = dt.ones(3, device="reference") * 2
    ...     dt.evaluate(x)
    >>> s.synchronize()
    >>> x.tolist()
    [2.0, 2.0, 2.0]
    """

    __slots__ = ("device", "handle")

    def __init__(self, spec: Device | str | None = None) -> None:
        self.device = device(spec, "Stream")
        self.handle: StreamHandle = _backend(self.device).create_stream()
        opened(self.device).streams = True

    def synchronize(self) -> None:
        """Returns when everything that is queued here is done.

        Raises: IndexOutOfRange, once, where the device met a bad index that nobody was told of.
        """
        wait(opened(self.device), self.handle)
        opened(self.device).faults.report()

    def record_event(self) -> Event:
        """A new event at the present end of this stream."""
        event = Event(self.device)
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Makes later work here wait for `event`."""
        instance("wait_event", event, "event", Event).wait(self)

    def wait_stream(self, other: Stream) -> None:
        """Makes later work here wait for all that is queued on `other` now."""
        self.wait_event(instance("wait_stream", other, "other", Stream).record_event())

    @property
    def changes(self) -> dict[str, object]:
        """What entering it changes; see `settings`."""
        return {"streams": {self.device: self}}

    def __enter__(self) -> Stream:
        settings.enter(self)
        return self

    def __exit__(self, *exc: object) -> None:
        settings.leave(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise DTypeError("pickle, copy: a Stream is of this process; make one with Stream()")

    def __repr__(self) -> str:
        name = "default" if self.handle is None else named_handle(self.handle)
        return f"<Stream {name} of {self.device}>"


def named_handle(handle: object) -> str:
    """A handle of a backend's in a line: a number, or what it is and where Python keeps it."""
    if isinstance(handle, int):
        return f"{handle:#x}"
    return "None" if handle is None else f"{type(handle).__name__} at {id(handle):#x}"


_defaults: dict[Device, Stream] = {}


def default_stream(spec: Device | str | None = None) -> Stream:
    """The stream of a device that work goes to unless told otherwise.

    Raises: DeviceError for a malformed name.

    >>> import dovetail as dt
    >>> dt.default_stream("reference")
    <Stream default of reference>
    """
    dev = device(spec, "default_stream")
    found = _defaults.get(dev)
    if found is None:
        made = Stream.__new__(Stream)
        made.device, made.handle = dev, None
        found = _defaults.setdefault(dev, made)
    return found


def current_stream(spec: Device | str | None = None) -> Stream:
    """The stream to which this context's work on a device goes.

    Raises: DeviceError for a malformed name.

    >>> import dovetail as dt
    >>> dt.current_stream("reference") is dt.default_stream("reference")
    True
    """
    dev = device(spec, "current_stream")
    found: Stream | None = settings.current().streams.get(dev)
    return found or default_stream(dev)


def current_handle(dev: Device) -> StreamHandle:
    """The backend's handle of the current stream; None is the default stream."""
    current = settings.current().streams
    return current[dev].handle if current and dev in current else None


def _given(op: str, stream: Stream | None, dev: Device) -> Stream:
    """The stream given, or the current one."""
    if stream is None:
        return current_stream(dev)
    return instance(op, stream, "stream", Stream)


def stream(s: Stream) -> Stream:
    """The stream `s` itself, as a context in which work on its device goes to it.

    Raises: ArgumentTypeError for what is no stream.

    >>> import dovetail as dt
    >>> s = dt.Stream("reference")
    >>> with dt.stream(s):
    ...     dt.current_stream("reference") is s
    True
    """
    return instance("stream", s, "s", Stream)


class Event:
    """A mark in a stream, which can be waited for and whose time can be taken.

    Before `record` it counts as passed.

    >>> import dovetail as dt
    >>> begin, end = dt.Event("reference"), dt.Event("reference")
    >>> begin.record()
    >>> dt.evaluate(dt.ones(1000, device="reference") * 2)
    >>> end.record()
    >>> begin.elapsed_ms(end) >= 0
    True
    """

    __slots__ = ("_handle", "_recorded", "device")

    def __init__(self, spec: Device | str | None = None) -> None:
        self.device = device(spec, "Event")
        self._handle: EventHandle = None
        self._recorded = False

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise DTypeError("pickle, copy: an Event is of this process; make one with Event()")

    def record(self, stream: Stream | None = None) -> None:
        """Marks the present end of `stream`; of the current one for None.

        Raises: DeviceError for a stream of another device.
        """
        stream = _given("record", stream, self.device)
        if stream.device is not self.device:
            raise DeviceError(f"record: an event of {self.device} cannot be recorded on {stream!r}")
        self._handle = _backend(self.device).record_event(stream.handle)
        self._recorded = True

    def wait(self, stream: Stream | None = None) -> None:
        """Makes later work on `stream` (None: the current one) wait for this event.

        Across devices the host waits, now.
        """
        stream = _given("wait", stream, self.device)
        if not self._recorded:
            return
        if stream.device is not self.device or stream.handle is None:
            self.synchronize()  # None means the host to `wait_event`; it keeps the order too
        else:
            _backend(self.device).wait_event(stream.handle, self._handle)

    def synchronize(self) -> None:
        """Returns when the event has passed."""
        if self._recorded:
            _backend(self.device).wait_event(None, self._handle)

    def query(self) -> bool:
        """Whether the event has passed."""
        return not self._recorded or _backend(self.device).event_done(self._handle)

    def elapsed_ms(self, end: Event) -> float:
        """The time on the device from this event to `end`; waits for that.

        Units: milliseconds.
        Raises: ArgumentError if one of them was not recorded, DeviceError if they are of two
        devices.
        """
        if self.device is not instance("elapsed_ms", end, "end", Event).device:
            raise DeviceError(f"elapsed_ms: between {self.device} and {end.device} has no meaning")
        if not (self._recorded and end._recorded):
            raise ArgumentError("elapsed_ms: needs two recorded events; call record() on both")
        end.synchronize()
        return _backend(self.device).elapsed_ms(self._handle, end._handle)

    def __repr__(self) -> str:
        if not self._recorded:
            return f"<Event of {self.device}, not recorded>"
        return f"<Event of {self.device}, {'passed' if self.query() else 'pending'}>"


def synchronize(spec: Device | str | None = None) -> None:
    """Returns when everything queued on a device is done; on every opened device for None.

    Raises: IndexOutOfRange, once, where the device met a bad index that nobody was told of;
    DeviceError for a malformed name.

    >>> import dovetail as dt
    >>> x = dt.ones(3, device="reference")
    >>> dt.synchronize("reference")
    """
    for dev in opened_devices() if spec is None else [device(spec, "synchronize")]:
        if dev.opened is not None:
            where = opened(dev)
            where.backend.synchronize()
            where.faults.settle_all()
            where.faults.report()
