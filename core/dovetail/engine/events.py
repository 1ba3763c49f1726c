"""Counters of evaluation, and events for the profiles that are being taken."""

from __future__ import annotations

import threading
import time
from typing import TypedDict, Unpack

from ..locks import Lock
from ..records import Counters
from ..settings import flags


class Details(TypedDict, total=False):
    """Details of an event: a launch's grid and device, bytes moved and live, steps of a plan.

    `module`: the name of the module whose forward ran it, if a profile has modules.
    """

    grid: tuple[int, ...]
    bytes: int
    live: int
    steps: int
    device: str
    module: str


class ProfileEvent(TypedDict):
    """A named span of time, from `begun` to `ended` in nanoseconds of time.perf_counter_ns."""

    name: str
    begun: int
    ended: int
    thread: int
    details: Details


counters = Counters()
# One list per active profile; each gets the events of all threads.
profiles: tuple[list[ProfileEvent], ...] = ()
_profiles_lock = Lock()
_slow_path_blocks = 0  # active blocks that disable the fast paths of evaluation


def start_profile(events: list[ProfileEvent]) -> None:
    """Append the events of all threads to this list from now on; disable the fast paths."""
    global profiles
    with _profiles_lock:
        profiles = (*profiles, events)
        flags.is_observed = True


def stop_profile(events: list[ProfileEvent]) -> None:
    """Stop appending events to this list; enable the fast paths if no profile and no block is left.

    Profiles that overlap may end in any order.
    """
    global profiles
    with _profiles_lock:
        profiles = tuple(p for p in profiles if p is not events)
        flags.is_observed = bool(profiles) or _slow_path_blocks > 0


def change_slow_path_blocks(change: int) -> None:
    """Add `change` to the number of blocks that disable fast paths to get more detailed errors."""
    global _slow_path_blocks
    with _profiles_lock:
        _slow_path_blocks += change
        flags.is_observed = bool(profiles) or _slow_path_blocks > 0


def note(name: str, begun: int, **details: Unpack[Details]) -> None:
    """Append an event from `begun` (in ns) until now to each active profile."""
    if profiles:
        event = ProfileEvent(
            name=name,
            begun=begun,
            ended=time.perf_counter_ns(),
            thread=threading.get_ident(),
            details=details,
        )
        for events in profiles:
            events.append(event)
