"""What a record of an allocator's memory has to be.

`timeline` makes it, `drawing` draws it, `replay` does it again. A file may come from anywhere, so
all of it is checked, once, before anything is made of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import ArgumentError

Json: TypeAlias = Any  # what `json.loads` gives: anything at all
Record = Mapping[str, Json]
Check = Callable[[Json], None]
MOST = 1 << 62  # of any whole number
STREAMS = 1 << 16
LATEST = 1e15  # milliseconds
STATES = ("live", "cached", "waiting")
STATS = ("live_bytes", "live_blocks", "peak_live_bytes", "cached_bytes", "reserved_bytes",
         "allocations", "cache_hits")  # fmt: skip


class _Wrong(Exception):
    """What is wrong, and where, from the inside out."""

    def __init__(self, what: str, *path: object) -> None:
        self.what, self.path = what, path


def load(file: Path) -> Record:
    """The record in a file. Raises: ArgumentError, which names the file and what is wrong there."""
    try:
        found = json.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"{file} is no JSON: {error}") from error
    return check(found, str(file))


def check(found: Json, name: str = "the record") -> Record:
    """The record, as it is. Raises: ArgumentError, which names the first thing that is wrong."""
    if not isinstance(found, dict) or found.get("version") != 1:
        raise ArgumentError(f"{name} is no snapshot of dovetail's memory, or of another version")
    try:
        _HEAD(found)
        _body(len(found["lines"]))(found)
        _require_order(found["events"])
    except _Wrong as wrong:
        path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in wrong.path)
        what = f"{path.lstrip('.')} {wrong.what}".lstrip()
        raise ArgumentError(f"{name} is no snapshot of dovetail's memory: {what}") from None
    checked: Record = found
    return checked


# --- what a schema is made of


def _within(part: Check, found: Json, at: object) -> None:
    try:
        part(found)
    except _Wrong as wrong:
        raise _Wrong(wrong.what, at, *wrong.path) from None


def _fields(**parts: Check) -> Check:
    def of(found: Json) -> None:
        if not isinstance(found, dict):
            raise _Wrong("is no object")
        for name, part in parts.items():
            if name not in found:
                raise _Wrong(f"has no {name!r}")
            _within(part, found[name], name)

    return of


def _each(part: Check) -> Check:
    def of(found: Json) -> None:
        if not isinstance(found, list):
            raise _Wrong("is no list")
        for i, one in enumerate(found):
            _within(part, one, i)

    return of


def _row(*parts: Check) -> Check:
    def of(found: Json) -> None:
        if not isinstance(found, list) or len(found) != len(parts):
            raise _Wrong(f"is no list of {len(parts)}")
        for i, (part, one) in enumerate(zip(parts, found, strict=True)):
            _within(part, one, i)

    return of


def _whole(low: int = 0, high: int = MOST) -> Check:
    def of(found: Json) -> None:
        if type(found) is not int or not low <= found <= high:
            raise _Wrong(f"is no whole number from {low:,} to {high:,}")

    return of


def _time(found: Json) -> None:
    if type(found) not in (int, float) or not 0 <= found <= LATEST:  # NaN is not
        raise _Wrong(f"is no time from 0 to {LATEST:g} ms")


def _text(found: Json) -> None:
    if not isinstance(found, str):
        raise _Wrong("is no text")


def _text_or_none(found: Json) -> None:
    if found is not None:
        _text(found)


def _state(found: Json) -> None:
    if found not in STATES:
        raise _Wrong(f"is none of {', '.join(STATES)}")


# --- the schema

_HEAD = _fields(
    device=_text,
    written=_text,
    stats=_fields(**dict.fromkeys(STATS, _whole())),
    lines=_each(_text_or_none),
)


def _body(lines: int) -> Check:
    """What refers to lines by their numbers. Bytes may be below 0 where a trace began late."""
    line, size, change = _whole(0, lines - 1), _whole(), _whole(-MOST)
    event = _row(_time, change, line, change, change, change, _whole(-1), _whole(0, STREAMS))
    shape = _fields(
        nbytes=_whole(1), stream=_text_or_none, blocks=_each(_row(size, size, _state, line))
    )

    def segment(found: Json) -> None:
        shape(found)
        for i, (offset, nbytes, *_) in enumerate(found["blocks"]):
            if offset + nbytes > found["nbytes"]:
                raise _Wrong("ends beyond its segment", "blocks", i)

    return _fields(segments=_each(segment), before=_each(_row(line, change)), events=_each(event))


def _require_order(events: list[list[Json]]) -> None:
    for i in range(1, len(events)):
        if events[i][0] < events[i - 1][0]:
            raise _Wrong("is before the event that precedes it", "events", i)
