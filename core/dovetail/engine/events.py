"""What evaluation has done: counted always, and noted as events while a profile is taken."""

from __future__ import annotations

import threading
import time
from typing import TypedDict, Unpack

from ..locks import Lock
from ..records import Counters
from ..settings import flags


class Details(TypedDict, total=False):
    """What is known besides: a launch's grid and device, bytes moved and live, steps of a plan."""

    grid: tuple[int, ...]
    bytes: int
    live: int
    steps: int
    device: str


class Event(TypedDict):
    """Something that took time: from `begun` to `ended`, in nanoseconds of time.perf_counter_ns."""

    name: str
    begun: int
    ended: int
    thread: int
    details: Details


counters = Counters()
# Where events go, whatever thread they come from: a list for each profile that is being taken.
profiles: tuple[list[Event], ...] = ()
_changing = Lock()
_watching = 0  # blocks that want each evaluation to go the long way


def begin(events: list[Event]) -> None:
    """From now on events are added to this list, too."""
    global profiles
    with _changing:
        profiles = (*profiles, events)
        flags.profiled = True


def end(events: list[Event]) -> None:
    """From now on they are not. Profiles that overlap may end in any order."""
    global profiles
    with _changing:
        profiles = tuple(p for p in profiles if p is not events)
        flags.profiled = bool(profiles) or _watching > 0


def watch(change: int) -> None:
    """So many more want each evaluation to go the long way, on which errors say more."""
    global _watching
    with _changing:
        _watching += change
        flags.profiled = bool(profiles) or _watching > 0


def note(name: str, begun: int, **details: Unpack[Details]) -> None:
    """Adds an event that ends now to the profiles."""
    if profiles:
        event = Event(
            name=name, begun=begun, ended=time.perf_counter_ns(), thread=threading.get_ident(),
            details=details,
        )  # fmt: skip
        for events in profiles:
            events.append(event)
