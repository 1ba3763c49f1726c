"""Streams as queues whose work runs as late as the driver's rules allow.

The order across streams is legal but random, so that a missing wait is found.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

LENGTH = 1000  # of a queue; a launch into a full one waits, as in the driver


class Op:
    """One piece of queued work;

    `needs` run before it, in addition to earlier work of its stream.
    """

    __slots__ = ("at", "done", "needs", "stream", "work")

    def __init__(self, stream: Stream, work: Callable[[], None] | None, needs: list[Op]) -> None:
        self.stream, self.work, self.needs = stream, work, needs
        self.done, self.at = False, 0


class Stream:
    """A queue. `blocking`: it keeps the order with the default stream."""

    def __init__(self, blocking: bool) -> None:
        self.blocking = blocking
        self.queue: deque[Op] = deque()

    @property
    def last(self) -> Op | None:
        """Return the last queued operation if it has not run yet."""
        return self.queue[-1] if self.queue else None


class Event:
    """The marker that was queued at the last record."""

    def __init__(self, timing: bool) -> None:
        self.timing = timing
        self.marker: Op | None = None


class Scheduler:
    """All streams of a context, and the order in which their work runs."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.default = Stream(blocking=True)
        self.streams: list[Stream] = [self.default]

    def create(self, blocking: bool) -> Stream:
        """Create a stream."""
        self.streams.append(Stream(blocking))
        return self.streams[-1]

    def enqueue(
        self, stream: Stream, work: Callable[[], None] | None, needs: Iterable[Op] = ()
    ) -> Op:
        """Queue work without running it."""
        op = Op(stream, work, [n for n in (*needs, *self._legacy(stream)) if not n.done])
        stream.queue.append(op)
        if len(stream.queue) > LENGTH:
            self.finish(stream.queue[0])
        return op

    def _legacy(self, stream: Stream) -> Iterator[Op]:
        """Return the dependencies of the default stream's rule: it waits for blocking streams,
        and they for it.
        """
        others = self.streams if stream is self.default else [self.default]
        if stream.blocking:
            yield from (s.last for s in others if s.blocking and s is not stream and s.last)

    def finish(self, op: Op | None) -> None:
        """Run the dependencies of `op` and then `op`; at random run other work too."""
        wanted = [op] if op else []
        while wanted:
            if wanted[-1].done:
                wanted.pop()
                continue
            head = wanted[-1].stream.queue[0]
            missing = next((n for n in head.needs if not n.done), None)
            if missing is not None:
                wanted.append(missing)
            elif self.chance.random() < 0.3 and (other := self._other(head.stream)):
                self._do(other)
            else:
                self._do(head)

    def step(self, stream: Stream) -> None:
        """Run one piece of a stream's work with its dependencies."""
        if stream.queue:
            self.finish(stream.queue[0])

    def finish_all(self) -> None:
        """Run everything, in any order."""
        while waiting := [s for s in self.streams if s.queue]:
            self.step(self.chance.choice(waiting))

    def _other(self, stream: Stream) -> Op | None:
        heads = [s.queue[0] for s in self.streams if s.queue and s is not stream]
        ready = [h for h in heads if all(n.done for n in h.needs)]
        return self.chance.choice(ready) if ready else None

    def _do(self, op: Op) -> None:
        op.stream.queue.popleft()
        op.done, op.needs = True, []
        work, op.work = op.work, None
        if work is not None:
            work()
        op.at = time.perf_counter_ns()
