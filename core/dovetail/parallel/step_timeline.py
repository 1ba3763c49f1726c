"""The timeline of a step of training on one worker: spans of work and of messages."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any, NamedTuple

import dovetail as dt

__all__: list[str] = []


class Span(NamedTuple):
    """A span of time of one worker, in nanoseconds of a clock that all processes share.

    - `kind`: "compute", "add", "send", "receive" or "update".
    - `number`: the computed group, the subtree that is added to, or the other worker.
    - `sizes`: the bytes of each message that the span sends or receives.
    """

    kind: str
    number: int
    begin_ns: int
    end_ns: int
    sizes: tuple[int, ...] = ()


class StepRecorder:
    """A recorder of spans. It is off, and costs a call for each span, until `spans` is a list.

    While it is on, the worker waits for its devices at the end of each span.
    """

    def __init__(self) -> None:
        self.spans: list[Span] | None = None

    def record(self, kind: str, number: int = 0) -> SpanContext | NullSpanContext:
        """Return a context whose time becomes a span, if the timeline is on."""
        return _OFF if self.spans is None else SpanContext(self.spans, kind, number)


class NullSpanContext:
    """The context of a timeline that is off."""

    def __enter__(self) -> NullSpanContext:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def add_messages(self, *requests: Any) -> None:
        """Do nothing."""


class SpanContext:
    """The context that appends one span to a list."""

    def __init__(self, spans: list[Span], kind: str, number: int) -> None:
        self._spans, self._kind, self._number = spans, kind, number
        self._sizes: tuple[int, ...] = ()
        self._begin_ns = 0

    def __enter__(self) -> SpanContext:
        self._begin_ns = perf_counter_ns()
        return self

    def __exit__(self, error: object, *details: object) -> None:
        if error is not None:  # waiting could raise, or hang, in place of it
            return
        dt.synchronize()
        span = Span(self._kind, self._number, self._begin_ns, perf_counter_ns(), self._sizes)
        self._spans.append(span)

    def add_messages(self, *requests: Any) -> None:
        """Add the messages of requests to the span."""
        self._sizes += tuple(size for request in requests for size in request.sizes)


_OFF = NullSpanContext()
