"""Streams and events: queues of work on a device, and markers in them.

Work and memory belong to the current stream of the calling context; the default stream's handle is
None. On a host CPU streams are in order, and their work is done at once.
"""

from __future__ import annotations

from typing import NoReturn, Protocol, SupportsIndex

from .. import settings
from ..argument_checks import instance
from ..device_class import Device, device, opened, opened_devices
from ..errors import ArgumentError, DeviceError, DTypeError
from .faults import ErrorCells
from .interface import Backend, EventHandle, StreamHandle

__all__ = ["Event", "Stream", "current_stream", "default_stream", "stream", "synchronize"]


def _open_backend(dev: Device) -> Backend:
    """Return the backend of a device; open the device if needed."""
    backend: Backend = opened(dev).backend
    return backend


class StreamDevice(Protocol):
    """The fields of an open device that this module uses."""

    backend: Backend
    faults: ErrorCells


def wait_for_stream(opened_device: StreamDevice, stream: StreamHandle) -> None:
    """Wait for a stream of an opened device; store, but do not raise, its index faults."""
    opened_device.backend.synchronize(stream)
    if opened_device.faults.pending:
        opened_device.faults.settle(stream)


class Stream:
    """A queue of work on a device: in order within itself, ordered with others only by events.

    As a context manager it becomes the current stream of its device in this context.

    >>> import dovetail as dt
    >>> with dt.Stream("reference") as s:
    ...     x = dt.ones(3) * 2
    ...     dt.evaluate(x)
    >>> s.synchronize()
    >>> x.tolist()
    [2.0, 2.0, 2.0]
    """

    __slots__ = ("device", "handle")

    def __init__(self, spec: Device | str | None = None) -> None:
        self.device = device(spec, "Stream")
        self.handle: StreamHandle = _open_backend(self.device).create_stream()
        opened(self.device).has_streams = True

    def synchronize(self) -> None:
        """Wait for everything queued on this stream.

        Raises: OutOfRangeError, once, for an unreported index out of range on the device.
        """
        wait_for_stream(opened(self.device), self.handle)
        opened(self.device).faults.raise_unreported()

    def record_event(self) -> Event:
        """Return a new event at the current end of this stream."""
        event = Event(self.device)
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Make later work on this stream wait for `event`.

        - `event`: an event that was recorded.
        """
        instance("wait_event", event, "event", Event).wait(self)

    def wait_stream(self, other: Stream) -> None:
        """Make later work on this stream wait for everything queued on `other` so far.

        - `other`: another stream.
        """
        self.wait_event(instance("wait_stream", other, "other", Stream).record_event())

    @property
    def changes(self) -> dict[str, object]:
        """The settings that the context changes; see `settings`."""
        return {"streams": {self.device: self}}

    def __enter__(self) -> Stream:
        settings.enter_block(self)
        return self

    def __exit__(self, *exc: object) -> None:
        settings.leave_block(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise DTypeError("pickle, copy: a Stream belongs to this process; create one with Stream()")

    def __repr__(self) -> str:
        name = "default" if self.handle is None else handle_text(self.handle)
        return f"<Stream {name} of {self.device}>"


def handle_text(handle: object) -> str:
    """Return a text of a backend's handle: a number in hex, "None", or an object's type and id."""
    if isinstance(handle, int):
        return f"{handle:#x}"
    return "None" if handle is None else f"{type(handle).__name__} at {id(handle):#x}"


_defaults: dict[Device, Stream] = {}


def default_stream(spec: Device | str | None = None) -> Stream:
    """Return the stream that a device uses by default.

    Raises: DeviceError for a malformed name.

    >>> import dovetail as dt
    >>> dt.default_stream("reference")
    <Stream default of reference>
    """
    dev = device(spec, "default_stream")
    stream = _defaults.get(dev)
    if stream is None:
        new_stream = Stream.__new__(Stream)
        new_stream.device, new_stream.handle = dev, None
        stream = _defaults.setdefault(dev, new_stream)
    return stream


def current_stream(spec: Device | str | None = None) -> Stream:
    """Return the stream that a device uses in this context.

    Raises: DeviceError for a malformed name.

    >>> import dovetail as dt
    >>> dt.current_stream("reference") is dt.default_stream("reference")
    True
    """
    dev = device(spec, "current_stream")
    stream: Stream | None = settings.current().streams.get(dev)
    return stream or default_stream(dev)


def current_handle(dev: Device) -> StreamHandle:
    """Return the backend's handle of the current stream; None is the default stream."""
    current = settings.current().streams
    return current[dev].handle if current and dev in current else None


def _stream_or_current(op: str, stream: Stream | None, dev: Device) -> Stream:
    """Return a Stream, or the device's current one for None.

    Raises: ArgumentTypeError for others.
    """
    if stream is None:
        return current_stream(dev)
    return instance(op, stream, "stream", Stream)


def stream(s: Stream) -> Stream:
    """Return `s`, a context in which it is the current stream of its device.

    - `s`: a `Stream`.

    Raises: ArgumentTypeError for another type.
    See also: `Stream`, `current_stream`, `synchronize`.

    >>> import dovetail as dt
    >>> s = dt.Stream("reference")
    >>> with dt.stream(s):
    ...     dt.current_stream("reference") is s
    True
    """
    return instance("stream", s, "s", Stream)


class Event:
    """A marker in a stream, to wait for and to measure time.

    Before `record` it counts as passed.

    >>> import dovetail as dt
    >>> begin, end = dt.Event("reference"), dt.Event("reference")
    >>> begin.record()
    >>> dt.evaluate(dt.ones(1000) * 2)
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
        raise DTypeError("pickle, copy: an Event belongs to this process; create one with Event()")

    def record(self, stream: Stream | None = None) -> None:
        """Record the current end of `stream`; None is the current stream.

        - `stream`: the stream; None is the current stream.

        Raises: DeviceError for a stream of another device.
        """
        stream = _stream_or_current("record", stream, self.device)
        if stream.device is not self.device:
            raise DeviceError(f"record: expected a stream of {self.device}, got {stream!r}")
        self._handle = _open_backend(self.device).record_event(stream.handle)
        self._recorded = True

    def wait(self, stream: Stream | None = None) -> None:
        """Make later work on `stream` (None: the current one) wait for this event.

        For a stream of another device the host waits at once.

        - `stream`: the stream that waits; None is the current one.
        """
        stream = _stream_or_current("wait", stream, self.device)
        if not self._recorded:
            return
        if stream.device is not self.device or stream.handle is None:
            self.synchronize()  # `wait_event` takes None as the host; its wait keeps the order, too
        else:
            _open_backend(self.device).wait_event(stream.handle, self._handle)

    def synchronize(self) -> None:
        """Wait until the event has passed."""
        if self._recorded:
            _open_backend(self.device).wait_event(None, self._handle)

    def query(self) -> bool:
        """Return True if the event has passed."""
        return not self._recorded or _open_backend(self.device).event_done(self._handle)

    def elapsed_ms(self, end: Event) -> float:
        """Return the time on the device from this event to `end`; wait for `end`.

        - `end`: a later event of the same device.

        Units: milliseconds.
        Raises: ArgumentError if one of them was not recorded, DeviceError if they are of two
        devices.
        """
        if self.device is not instance("elapsed_ms", end, "end", Event).device:
            raise DeviceError(
                f"elapsed_ms: both events must be on one device, got {self.device} and {end.device}"
            )
        if not (self._recorded and end._recorded):
            raise ArgumentError("elapsed_ms: both events must be recorded; call record() on each")
        end.synchronize()
        return _open_backend(self.device).elapsed_ms(self._handle, end._handle)

    def __repr__(self) -> str:
        if not self._recorded:
            return f"<Event of {self.device}, not recorded>"
        return f"<Event of {self.device}, {'passed' if self.query() else 'pending'}>"


def synchronize(spec: Device | str | None = None) -> None:
    """Wait for everything queued on a device, or on every opened device for None.

    Raises: OutOfRangeError, once, for an unreported index out of range on the device;
    DeviceError for a malformed name.

    >>> import dovetail as dt
    >>> x = dt.ones(3)
    >>> dt.synchronize("reference")
    """
    for dev in opened_devices() if spec is None else [device(spec, "synchronize")]:
        if dev.opened is not None:
            where = opened(dev)
            where.backend.synchronize()
            where.faults.settle_all()
            where.faults.raise_unreported()
