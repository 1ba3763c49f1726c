"""Acts done again: launches in one piece where the backend has one for them, all else in turn."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

from ..backend.interface import QueuedLaunch, Replay
from ..engine import events
from ..engine.events import counters
from ..memory.pointer import StreamHandle
from ..plugins.opened import Opened

At: TypeAlias = list[Any]  # handle and byte offset of each slot
Env: TypeAlias = list[Any]  # numbers that differ from call to call


class Repeatable(Protocol):
    """What an act is, as far as a replay is concerned."""

    def run(self, opened: Opened, at: At, env: Env, stream: StreamHandle) -> None:
        """Does it, noting events."""

    def queued(self) -> QueuedLaunch | None:
        """Itself, where it is a launch that may be part of a sequence."""


class Replayer:
    """Does a program's acts again. `launches`: how many kernels and routines these are."""

    __slots__ = ("acts", "launches", "name", "opened", "steps")

    def __init__(
        self, opened: Opened, acts: Sequence[Repeatable], launches: int, name: str
    ) -> None:
        self.opened, self.acts, self.launches, self.name = opened, acts, launches, name
        self.steps: list[Replay] | None = None

    def run(self, at: At, env: Env, stream: StreamHandle) -> None:
        """Does them, on this memory and with these numbers."""
        if events.profiles:
            self._noted(at, env, stream)
        else:
            steps = self.steps
            if steps is None:
                steps = self.steps = self._prepared()
            for step in steps:
                step(at, env, stream)
        counters.launches += self.launches

    def _noted(self, at: At, env: Env, stream: StreamHandle) -> None:
        """The same while a profile is taken: each act notes itself."""
        if self.name:
            events.note(f"replay {self.name}", time.perf_counter_ns())
        for act in self.acts:
            act.run(self.opened, at, env, stream)

    def _prepared(self) -> list[Replay]:
        """The acts, launches that follow each other in one piece."""
        steps: list[Replay] = []
        waiting: list[QueuedLaunch] = []
        for act in self.acts:
            queued = act.queued()
            if queued is not None:
                waiting.append(queued)
            else:
                steps += self._sequence(waiting)
                waiting = []
                steps.append(partial(act.run, self.opened))
        return steps + self._sequence(waiting)

    def _sequence(self, launches: list[QueuedLaunch]) -> list[Replay]:
        """What does these launches, if there are any."""
        if not launches:
            return []
        return [self.opened.backend.sequence(launches) or OneByOne(launches)]


class OneByOne:
    """Launches in order, for backends that do not take them together."""

    __slots__ = ("launches",)

    def __init__(self, launches: list[QueuedLaunch]) -> None:
        self.launches = launches

    def __call__(self, at: At, env: Env, stream: StreamHandle) -> None:
        for queued in self.launches:
            self.launch(queued, at, env, stream)

    def launch(self, queued: QueuedLaunch, at: At, env: Env, stream: StreamHandle) -> None:
        """One of them."""
        start, buffers, scalars = queued
        handles: list[object] = []
        for slot, offset in buffers:
            handles.append(at[2 * slot])
            handles.append(at[2 * slot + 1] + offset)
        numbers = [x if k is None else env[k] for x, k in scalars]
        start(tuple(handles), numbers, stream)
