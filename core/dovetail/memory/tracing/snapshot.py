"""A snapshot of an allocator as JSON, and its schema.

`html_report` draws a snapshot, `replay` repeats its allocations. A file may come from anywhere, so
`check` verifies all of it before any use.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ...errors import ArgumentError

if TYPE_CHECKING:
    from ..allocator import SegmentInfo
    from .trace import Timeline

Json: TypeAlias = Any  # any value that `json.loads` returns
Snapshot = Mapping[str, Json]
SchemaCheck = Callable[[Json], None]
INTEGER_MAX = 1 << 62
STREAMS_MAX = 1 << 16
TIME_MS_MAX = 1e15
STATES = ("live", "cached", "waiting")
STATS = (
    "live_bytes",
    "live_blocks",
    "peak_live_bytes",
    "cached_bytes",
    "reserved_bytes",
    "allocations",
    "cache_hits",
)


def build(
    device: str,
    stats: Mapping[str, int],
    segments: Iterable[SegmentInfo],
    timeline: Timeline | None,
) -> dict[str, Json]:
    """Build the dict of a JSON snapshot; source lines are numbers, times milliseconds."""
    lines: dict[str | None, int] = {None: 0}

    def number(where: str | None) -> int:
        """Return the number of a source line, which its first use assigns."""
        return lines.setdefault(where, len(lines))

    pieces = [
        {
            "nbytes": s.nbytes,
            "stream": None if s.stream is None else str(s.stream),
            "blocks": [[b.offset, b.nbytes, b.state, number(b.where)] for b in s.blocks],
        }
        for s in segments
    ]
    events = list(timeline.events) if timeline is not None else []
    start = events[0].time if events else 0.0
    before = timeline.before if timeline is not None else {}
    rows = [
        [round((e.time - start) * 1e3, 4), e.change, number(e.where), *e[3:]]  # in `Event`'s order
        for e in events
    ]
    return {
        "version": 1,
        "device": device,
        "written": time.strftime("%Y-%m-%d %H:%M:%S"),
        "stats": dict(stats),
        "segments": pieces,
        "before": [[number(where), nbytes] for where, nbytes in before.items() if nbytes],
        "events": rows,
        "lines": list(lines),
    }


def load(file: Path) -> Snapshot:
    """Read and check a snapshot. Raises: ArgumentError, which names the file and the mistake."""
    try:
        value = json.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"{file} is not JSON: {error}") from error
    return check(value, str(file))


def check(value: Json, name: str = "the record") -> Snapshot:
    """Return the value if it is a snapshot. Raises: ArgumentError, which names a mistake."""
    if not isinstance(value, dict) or value.get("version") != 1:
        raise ArgumentError(f"{name} is not a memory snapshot of this version of dovetail")
    try:
        _HEAD(value)
        _build_body_check(len(value["lines"]))(value)
        _check_order(value["events"])
    except _SchemaError as mistake:
        path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in mistake.path)
        what = f"{path.lstrip('.')} {mistake.what}".lstrip()
        raise ArgumentError(f"{name} is not a memory snapshot of dovetail: {what}") from None
    snapshot: Snapshot = value
    return snapshot


# --- parts of a schema


class _SchemaError(Exception):
    """A mistake in a value, and the path to it, built from the inside out."""

    def __init__(self, what: str, *path: object) -> None:
        self.what, self.path = what, path


def _check_at(part: SchemaCheck, value: Json, at: object) -> None:
    """Check a part of a value; prepend `at` to the path of a _SchemaError."""
    try:
        part(value)
    except _SchemaError as mistake:
        raise _SchemaError(mistake.what, at, *mistake.path) from None


def _build_object_check(**parts: SchemaCheck) -> SchemaCheck:
    """Build a check for an object with at least these fields."""

    def check_fields(value: Json) -> None:
        """Raise _SchemaError unless the value is an object whose fields pass their checks."""
        if not isinstance(value, dict):
            raise _SchemaError("must be an object")
        for name, part in parts.items():
            if name not in value:
                raise _SchemaError(f"must have {name!r}")
            _check_at(part, value[name], name)

    return check_fields


def _build_list_check(part: SchemaCheck) -> SchemaCheck:
    """Build a check that raises _SchemaError unless a value is a list of items that pass `part`."""

    def check_each(value: Json) -> None:
        """Raise _SchemaError unless the value is a list whose items all pass."""
        if not isinstance(value, list):
            raise _SchemaError("must be a list")
        for i, item in enumerate(value):
            _check_at(part, item, i)

    return check_each


def _build_row_check(*parts: SchemaCheck) -> SchemaCheck:
    """Build a check for a list with exactly these parts."""

    def check_row(value: Json) -> None:
        """Raise _SchemaError unless the value is a list of this length whose items pass."""
        if not isinstance(value, list) or len(value) != len(parts):
            raise _SchemaError(f"must be a list of {len(parts)}")
        for i, (part, item) in enumerate(zip(parts, value, strict=True)):
            _check_at(part, item, i)

    return check_row


def _build_integer_check(low: int = 0, high: int = INTEGER_MAX) -> SchemaCheck:
    """Build a check for an int from `low` to `high`."""

    def check_integer(value: Json) -> None:
        """Raise _SchemaError unless the value is an int in the range; a bool is refused."""
        if type(value) is not int or not low <= value <= high:
            raise _SchemaError(f"must be an integer from {low:,} to {high:,}")

    return check_integer


def _check_time(value: Json) -> None:
    """Raise _SchemaError unless the value is a time in milliseconds, from 0 to the maximum."""
    if type(value) not in (int, float) or not 0 <= value <= TIME_MS_MAX:  # also refuses NaN
        raise _SchemaError(f"must be a time from 0 to {TIME_MS_MAX:g} ms")


def _check_text(value: Json) -> None:
    """Raise _SchemaError unless the value is a string."""
    if not isinstance(value, str):
        raise _SchemaError("must be a string")


def _check_text_or_none(value: Json) -> None:
    """Raise _SchemaError unless the value is a string or None."""
    if value is not None:
        _check_text(value)


def _check_state(value: Json) -> None:
    """Raise _SchemaError unless the value is a state of a block."""
    if value not in STATES:
        raise _SchemaError(f"must be one of {', '.join(STATES)}")


# --- the schema

_HEAD = _build_object_check(
    device=_check_text,
    written=_check_text,
    stats=_build_object_check(**dict.fromkeys(STATS, _build_integer_check())),
    lines=_build_list_check(_check_text_or_none),
)


def _build_body_check(lines: int) -> SchemaCheck:
    """Build the check of the parts that refer to source lines by number, from 0 to `lines` - 1.

    Bytes may be negative in a trace that began late.
    """
    line, size, change = (
        _build_integer_check(0, lines - 1),
        _build_integer_check(),
        _build_integer_check(-INTEGER_MAX),
    )
    stream = _build_integer_check(0, STREAMS_MAX)
    event = _build_row_check(
        _check_time, change, line, change, change, change, _build_integer_check(-1), stream
    )
    shape = _build_object_check(
        nbytes=_build_integer_check(1),
        stream=_check_text_or_none,
        blocks=_build_list_check(_build_row_check(size, size, _check_state, line)),
    )

    def segment(value: Json) -> None:
        """Raise _SchemaError unless the value is a segment whose blocks end within it."""
        shape(value)
        for i, (offset, nbytes, *_) in enumerate(value["blocks"]):
            if offset + nbytes > value["nbytes"]:
                raise _SchemaError("must end within its segment", "blocks", i)

    return _build_object_check(
        segments=_build_list_check(segment),
        before=_build_list_check(_build_row_check(line, change)),
        events=_build_list_check(event),
    )


def _check_order(events: list[list[Json]]) -> None:
    """Raise _SchemaError if an event is earlier than the event before it."""
    for i in range(1, len(events)):
        if events[i][0] < events[i - 1][0]:
            raise _SchemaError("must not be earlier than the event before it", "events", i)
