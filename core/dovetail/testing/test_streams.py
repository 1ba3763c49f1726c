"""Level 6: streams and events. In order within a stream; what an event marks is done before
what waits for it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..backend.interface import QueuedLaunch, Replay
from ..backend.streams import Stream, default_stream
from ..dtypes import float32
from ..loops.builder import Kernel, KernelBuilder
from ..loops.language import load
from ..memory.pointer import StreamHandle
from ..tensor.host import evaluate, from_host
from .kit import Kit, host
from .values import Array, finite, raw


def doubled() -> Kernel:
    b = KernelBuilder("doubled")
    x = b.buffer("x", float32, "rw")
    i = b.axis(b.int("n"))
    b.store(x, i, load(x, i) * 2.0 + 1.0)
    return b.build()


def scaled() -> Kernel:
    b = KernelBuilder("scaled")
    x, y, c = b.buffer("x", float32, "r"), b.buffer("y", float32, "w"), b.scalar("c", float32)
    i = b.axis(b.int("n"))
    b.store(y, i, load(x, i) * c + 1.0)
    return b.build()


N = 100_000


class Queue:
    """A buffer, and launches on it."""

    def __init__(self, kit: Kit) -> None:
        self.kit, self.backend = kit, kit.backend
        self.ptr = kit.opened.allocator.allocate(4 * N)
        self.launch = self.backend.bind(kit.program(doubled()), (N,), (N,))
        self.expected = np.zeros(N, np.float32)

    def fill(self, value: float, stream: StreamHandle) -> None:
        self.expected[:] = value
        self.backend.copy_in(self.ptr.handle, self.ptr.offset, raw(self.expected), stream)

    def work(self, times: int, stream: StreamHandle) -> None:
        for _ in range(times):
            self.launch((self.ptr.handle, self.ptr.offset), (), stream)
            self.expected = self.expected * np.float32(2) + np.float32(1)

    def read(self, stream: StreamHandle) -> Array:
        found = np.empty(N, np.float32)
        self.backend.copy_out(raw(found), self.ptr.handle, self.ptr.offset, stream)
        return found

    def check(self, stream: StreamHandle, what: str) -> None:
        self.kit.same(self.read(stream), self.expected, float32, what, lambda: str(doubled()))


def test_work_on_a_stream_is_in_order(kit: Kit) -> None:
    for stream in (None, kit.backend.create_stream()):
        q = Queue(kit)
        q.fill(1.0, stream)
        q.work(20, stream)
        q.check(stream, "copy out after work queued on its stream")


def one_by_one(launches: Sequence[QueuedLaunch]) -> Replay:
    """What is done where a backend has no sequences."""

    def replay(at: list[Any], variables: list[Any], stream: StreamHandle) -> None:
        for launch, buffers, scalars in launches:
            handles = [x for k, byte in buffers for x in (at[2 * k], at[2 * k + 1] + byte)]
            launch(tuple(handles), [x if k is None else variables[k] for x, k in scalars], stream)

    return replay


def test_a_sequence_does_its_launches_in_order(kit: Kit) -> None:
    """Each reads what the one before wrote; slots and variables are other ones at each call."""
    n, launches = N // 2, []
    bound = kit.backend.bind(kit.program(scaled()), (n,), (n,))
    for k in range(6):
        places = ((k % 2, 4 * n * (k // 2 % 2)), ((k + 1) % 2, 4 * n * ((k + 1) // 2 % 2)))
        scalar = (float(k), None if k % 3 else k // 3)
        launches.append(QueuedLaunch(bound, places, (scalar,)))
    run = kit.backend.sequence(launches) or one_by_one(launches)
    for value, stream in ((1.0, None), (2.0, kit.backend.create_stream())):
        a, b = Queue(kit), Queue(kit)
        for q in (a, b):
            q.fill(value, stream)
        variables = [value + 0.5, value - 0.25]
        for launch in launches:
            ((i, low), (j, to)), ((c, variable),) = launch.buffers, launch.scalars
            x, y = ((a, b)[k].expected for k in (i, j))
            factor = np.float32(c if variable is None else variables[variable])
            y[to // 4 : to // 4 + n] = x[low // 4 : low // 4 + n] * factor + np.float32(1)
        at = [x for q in (a, b) for x in (q.ptr.handle, q.ptr.offset)]
        run(at, variables, stream)
        for q in (a, b):
            kit.same(q.read(stream), q.expected, float32, "a sequence", lambda: str(scaled()))


def test_synchronize_waits(kit: Kit) -> None:
    stream = kit.backend.create_stream()
    q = Queue(kit)
    q.fill(1.0, stream)
    q.work(20, stream)
    kit.backend.synchronize(stream)
    q.check(None, "after synchronize(stream), seen from the default stream")
    q.work(20, stream)
    kit.backend.synchronize()
    q.check(None, "after synchronize() of the device")


def test_streams_wait_for_events(kit: Kit) -> None:
    """Work goes to and fro between two streams, each time behind an event."""
    streams = [kit.backend.create_stream() for _ in range(2)]
    q = Queue(kit)
    q.fill(0.5, streams[0])
    for k in range(6):
        q.work(3, streams[k % 2])
        event = kit.backend.record_event(streams[k % 2])
        kit.backend.wait_event(streams[(k + 1) % 2], event)
    q.check(streams[0], "work that went between two streams")


def test_the_host_waits_for_an_event(kit: Kit) -> None:
    stream = kit.backend.create_stream()
    q = Queue(kit)
    q.fill(0.5, stream)
    q.work(20, stream)
    event = kit.backend.record_event(stream)
    kit.backend.wait_event(None, event)
    assert kit.backend.event_done(event), kit.failure(
        "an event has not passed, though the host waited for it", ""
    )
    q.check(None, "after the host waited for an event")


def test_memory_is_not_reused_while_another_stream_reads_it(kit: Kit) -> None:
    """A tensor dies while work on another stream still has to read it; the next one of its size
    must not take its place before that is done, and may afterwards."""
    values, zeros = finite(float32, N, 1), np.zeros(N, np.float32)
    other = Stream(kit.device)
    for _ in range(3):
        x = from_host(values, float32, kit.device)
        other.wait_stream(default_stream(kit.device))
        with other:
            y = x * 2.0
            for _ in range(10):
                y = y + x
            evaluate(y)
        del x
        taking = [from_host(zeros, float32, kit.device) for _ in range(12)]  # more than is cached
        kit.backend.synchronize()
        expected = values * np.float32(2)
        for _ in range(10):
            expected = expected + values
        kit.same(host(y), expected, float32, "what another stream read of freed memory", str)
        del taking


def test_events_measure_time(kit: Kit) -> None:
    stream = kit.backend.create_stream()
    q = Queue(kit)
    q.fill(0.5, stream)
    begun = kit.backend.record_event(stream)
    q.work(20, stream)
    ended = kit.backend.record_event(stream)
    kit.backend.synchronize(stream)
    assert 0 <= kit.backend.elapsed_ms(begun, ended) < 60_000
    q.check(stream, "work between two events")


def test_threads_launch_at_once(kit: Kit) -> None:
    """Two threads, each with its own buffer: programs and launches are shared, results are not."""
    queues = [Queue(kit) for _ in range(2)]

    def run(q: Queue, value: float) -> None:
        q.fill(value, None)
        q.work(30, None)

    threads = [threading.Thread(target=run, args=(q, k + 0.25)) for k, q in enumerate(queues)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    kit.backend.synchronize()
    for k, q in enumerate(queues):
        q.check(None, f"the buffer of thread {k}")
