"""Counters of evaluation, and events for the profiles that are being taken."""

from __future__ import annotations

import threading
import time
from typing import TypedDict, Unpack

from ..locks import Lock
from ..records import Counters
from ..settings import flags


class Details(TypedDict, total=False):
    """Details of an event: a launch's grid and device, bytes moved and live, steps of a plan."""

    grid: tuple[int, ...]
    bytes: int
    live: int
    steps: int
    device: str


class Event(TypedDict):
    """A named span of time, from `begun` to `ended` in nanoseconds of time.perf_counter_ns."""

    name: str
    begun: int
    ended: int
    thread: int
    details: Details


counters = Counters()
# One list per active profile; each gets the events of all threads.
profiles: tuple[list[Event], ...] = ()
_changing = Lock()
_watching = 0  # active blocks that disable the fast paths of evaluation


def begin(events: list[Event]) -> None:
    """Add the events from now on to this list."""
    global profiles
    with _changing:
        profiles = (*profiles, events)
        flags.profiled = True


def end(events: list[Event]) -> None:
    """Stop adding events to this list. Profiles that overlap may end in any order."""
    global profiles
    with _changing:
        profiles = tuple(p for p in profiles if p is not events)
        flags.profiled = bool(profiles) or _watching > 0


def watch(change: int) -> None:
    """Add to the number of blocks that disable fast paths to get more detailed errors."""
    global _watching
    with _changing:
        _watching += change
        flags.profiled = bool(profiles) or _watching > 0


def note(name: str, begun: int, **details: Unpack[Details]) -> None:
    """Add an event that ends now to the profiles."""
    if profiles:
        event = Event(
            name=name,
            begun=begun,
            ended=time.perf_counter_ns(),
            thread=threading.get_ident(),
            details=details,
        )
        for events in profiles:
            events.append(event)
