"""Level 6: streams and events. In order within a stream; what an event marks is done before
what waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ..backend import limits
from ..backend.host import array_at
from ..backend.interface import QueuedLaunch, Replay
from ..backend.streams import Stream, default_stream
from ..dtypes import float32
from ..ir.builder import Kernel, KernelBuilder
from ..ir.language import fold_loop, load
from ..memory.pointer import StreamHandle
from ..tensor.host import evaluate, from_host
from .kit import Kit, host
from .values import Array, bytes_view, finite_values

COPIES = ("copy_in", "queue_copy_in")


def double() -> Kernel:
    """Build the kernel x = x * 2 + 1, in place."""
    b = KernelBuilder("doubled")
    x = b.buffer("x", float32, "rw")
    i = b.axis(b.int("n"))
    b.store(x, i, load(x, i) * 2.0 + 1.0)
    return b.build()


def scaling_kernel() -> Kernel:
    """Build the kernel y = x * c + 1 with a scalar `c`."""
    b = KernelBuilder("scaled")
    x, y, c = b.buffer("x", float32, "r"), b.buffer("y", float32, "w"), b.scalar("c", float32)
    i = b.axis(b.int("n"))
    b.store(y, i, load(x, i) * c + 1.0)
    return b.build()


def settling_kernel() -> Kernel:
    """Build a kernel that takes long and has few points, so that the host gets ahead of it."""
    b = KernelBuilder("settling")
    x = b.buffer("x", float32, "rw")
    i, rounds = b.axis(b.int("n")), b.int("rounds")
    loop = fold_loop(0, rounds, [load(x, i)], lambda k, value: [value * 0.5 + 1.0])
    b.store(x, i, loop.results[0])
    return b.build()


QUEUE_ELEMENTS = 100_000
BUSY_ELEMENTS, BUSY_ROUNDS = 1024, 6000
CLOCK_SKEW_MS_MAX = 1.0  # milliseconds by which the device's clock and the host's may differ


class Queue:
    """A buffer, and launches on it."""

    def __init__(self, kit: Kit) -> None:
        self.kit, self.backend = kit, kit.backend
        self.ptr = kit.opened.allocator.allocate(4 * QUEUE_ELEMENTS)
        self.launch = kit.bind(double(), (QUEUE_ELEMENTS,), (QUEUE_ELEMENTS,))
        self.expected = np.zeros(QUEUE_ELEMENTS, np.float32)

    def fill(self, value: float, stream: StreamHandle, how: str = "copy_in") -> Array:
        """Copy a value in by method `how`, and expect it; return the source, to be kept alive."""
        source = np.full(QUEUE_ELEMENTS, value, np.float32)
        self.expected[:] = source
        copy = getattr(self.backend, how)
        copy(self.ptr.handle, self.ptr.offset, bytes_view(source), stream)
        return source

    def queue_launches(self, times: int, stream: StreamHandle) -> None:
        """Launch `double` several times on a stream, and update the expected values."""
        for _ in range(times):
            self.launch((self.ptr.handle, self.ptr.offset), (), stream)
            self.expected = self.expected * np.float32(2) + np.float32(1)

    def read(self, stream: StreamHandle) -> Array:
        """Copy the buffer to a new array on the host, on a stream."""
        actual = np.empty(QUEUE_ELEMENTS, np.float32)
        self.backend.copy_out(bytes_view(actual), self.ptr.handle, self.ptr.offset, stream)
        return actual

    def check(self, stream: StreamHandle, what: str) -> None:
        """Fail unless the buffer, read on a stream, has the expected values."""
        self.kit.check_same_bits(
            self.read(stream), self.expected, float32, what, lambda: str(double())
        )


def test_work_on_a_stream_is_in_order(kit: Kit) -> None:
    """Check that a copy in, 20 launches and a copy out run in order."""
    for stream in (None, kit.backend.create_stream()):
        q = Queue(kit)
        q.fill(1.0, stream)
        q.queue_launches(20, stream)
        q.check(stream, "copy out after work queued on its stream")


class BusyWork:
    """Work that precedes other work on a stream."""

    def __init__(self, kit: Kit) -> None:
        self.kit, self.ptr = kit, kit.opened.allocator.allocate(4 * BUSY_ELEMENTS)
        self.launch = kit.bind(settling_kernel(), (BUSY_ELEMENTS, BUSY_ROUNDS), (BUSY_ELEMENTS,))

    def queue_launches(self, stream: StreamHandle) -> None:
        """Fill the memory, and queue eight launches that work on it."""
        at, offset = self.ptr.handle, self.ptr.offset
        self.kit.backend.copy_in(at, offset, bytes_view(np.ones(BUSY_ELEMENTS, np.float32)), stream)
        for _ in range(8):
            self.launch((at, offset), (), stream)

    def check(self, stream: StreamHandle) -> None:
        """Fail unless the work was done: all numbers have settled."""
        actual = np.empty(BUSY_ELEMENTS, np.float32)
        self.kit.backend.copy_out(bytes_view(actual), self.ptr.handle, self.ptr.offset, stream)
        expected = np.full(BUSY_ELEMENTS, 2, np.float32)
        self.kit.check_same_bits(
            actual, expected, float32, "work before others'", lambda: str(settling_kernel())
        )


@pytest.mark.parametrize("copy", COPIES)
def test_copies_in_wait_for_work_before_them(kit: Kit, copy: str) -> None:
    """Check that a copy in does not overwrite memory that an earlier launch reads."""
    for stream in (None, kit.backend.create_stream()):
        busy, a, b = BusyWork(kit), Queue(kit), Queue(kit)
        for q in (a, b):
            q.fill(1.5, stream)
        read = kit.bind(scaling_kernel(), (QUEUE_ELEMENTS,), (QUEUE_ELEMENTS,))
        busy.queue_launches(stream)
        read((a.ptr.handle, a.ptr.offset, b.ptr.handle, b.ptr.offset), (3.0,), stream)
        b.expected = a.expected * np.float32(3) + np.float32(1)
        sources = a.fill(-7.0, stream, copy)
        b.check(stream, f"what a launch read before {copy} overwrote it")
        a.check(stream, f"what {copy} wrote")
        busy.check(stream)
        del sources


def test_queued_copies_out_are_in_order(kit: Kit) -> None:
    """Check that a queued copy out runs after earlier launches and before later ones."""
    for stream in (None, kit.backend.create_stream()):
        busy, q, actual = BusyWork(kit), Queue(kit), np.empty(QUEUE_ELEMENTS, np.float32)
        q.fill(1.0, stream)
        busy.queue_launches(stream)
        q.queue_launches(20, stream)
        before = q.expected.copy()
        kit.backend.queue_copy_out(bytes_view(actual), q.ptr.handle, q.ptr.offset, stream)
        q.queue_launches(3, stream)
        kit.backend.synchronize(stream)
        kit.check_same_bits(actual, before, float32, "a queued copy out, with work after it", str)
        q.check(stream, "work after a queued copy out")


def test_memory_that_is_used_again_is_not_overwritten_early(kit: Kit) -> None:
    """Check y = x + 1 if x is freed before the launch runs and its memory is reused."""
    values, others = (
        finite_values(float32, QUEUE_ELEMENTS, 3),
        np.full(QUEUE_ELEMENTS, 7, np.float32),
    )
    for _ in range(4):
        busy, x = BusyWork(kit), from_host(values, float32, kit.device)
        busy.queue_launches(None)
        y = x + 1.0
        evaluate(y)
        del x
        z = [from_host(others, float32, kit.device) for _ in range(3)]
        what = "y = x + 1, where the memory of x was written anew"
        kit.check_same_bits(host(y), values + np.float32(1), float32, what, str)
        for each in z:
            kit.check_same_bits(host(each), others, float32, "what was written there", str)
        busy.check(None)


def test_a_device_that_says_it_waits_has_waited(kit: Kit) -> None:
    """Check that work is done when `launch` returns, if `asynchronous` is False."""
    if kit.backend.asynchronous:
        kit.comparisons += 1  # it promises nothing
        return
    for stream in (None, kit.backend.create_stream()):
        q, busy = Queue(kit), BusyWork(kit)
        q.fill(0.5, stream)
        busy.queue_launches(stream)
        q.queue_launches(20, stream)
        done = kit.backend.event_done(kit.backend.record_event(stream))
        address = kit.backend.host_address(q.ptr.handle, q.ptr.offset)
        memory = (
            None if address is None else array_at(address, (QUEUE_ELEMENTS,), (1,), float32).copy()
        )
        assert done, kit.failure(
            "asynchronous is False, and work is not done when launch returns", str(double())
        )
        if memory is not None:
            kit.check_same_bits(
                memory, q.expected, float32, "the host's view right after a launch", str
            )
        q.check(stream, "work that was not waited for")


def make_sequential_replay(launches: Sequence[QueuedLaunch]) -> Replay:
    """Return a replay for a backend that has no sequences."""

    def replay(at: list[Any], variables: list[Any], stream: StreamHandle) -> None:
        """Run the launches one by one, with addresses from `at` and scalars from `variables`."""
        for launch, buffers, scalars in launches:
            handles = [x for k, byte in buffers for x in (at[2 * k], at[2 * k + 1] + byte)]
            launch(tuple(handles), [x if k is None else variables[k] for x, k in scalars], stream)

    return replay


def test_a_sequence_does_its_launches_in_order(kit: Kit) -> None:
    """Check a sequence of launches (one by one if the backend has none) with other addresses."""
    n, launches = QUEUE_ELEMENTS // 2, []
    bound = kit.bind(scaling_kernel(), (n,), (n,))
    for k in range(6):
        buffers = ((k % 2, 4 * n * (k // 2 % 2)), ((k + 1) % 2, 4 * n * ((k + 1) // 2 % 2)))
        scalar = (float(k), None if k % 3 else k // 3)
        launches.append(QueuedLaunch(bound, buffers, (scalar,)))
    run = limits.sequence(kit.backend, launches) or make_sequential_replay(launches)
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
            kit.check_same_bits(
                q.read(stream), q.expected, float32, "a sequence", lambda: str(scaling_kernel())
            )


def test_launches_given_together_are_done_in_order(kit: Kit) -> None:
    """Check that `launch_all` runs launches in the order of the list.

    A device that changes launches gets them one by one.
    """
    n = QUEUE_ELEMENTS // 2
    bound = kit.bind(scaling_kernel(), (n,), (n,))
    for value, stream in ((1.0, None), (2.0, kit.backend.create_stream())):
        busy, a, b = BusyWork(kit), Queue(kit), Queue(kit)
        for q in (a, b):
            q.fill(value, stream)
        launches = []
        for k in range(6):
            x, low = (a, b)[k % 2], n * (k // 2 % 2)
            y, to = (b, a)[k % 2], n * ((k + 1) // 2 % 2)
            buffers = (x.ptr.handle, x.ptr.offset + 4 * low, y.ptr.handle, y.ptr.offset + 4 * to)
            launches.append((bound, buffers, (k + 0.5,)))
            source = x.expected[low : low + n]
            y.expected[to : to + n] = source * np.float32(k + 0.5) + np.float32(1)
        busy.queue_launches(stream)
        if kit.backend.info.capabilities.changes_launches:  # whose launches never come together
            for launch, buffers, scalars in launches:
                launch(buffers, scalars, stream)
        else:
            kit.backend.launch_all(launches, stream)
        sources = [q.expected.copy() for q in (a, b)]
        for q, expected in zip((a, b), sources, strict=True):
            actual = q.read(stream)
            kit.check_same_bits(
                actual, expected, float32, "launches given together", lambda: str(scaling_kernel())
            )
        busy.check(stream)


def test_synchronize_waits(kit: Kit) -> None:
    """Check that `synchronize`, of a stream and of the device, waits for queued launches."""
    stream = kit.backend.create_stream()
    q = Queue(kit)
    q.fill(1.0, stream)
    q.queue_launches(20, stream)
    kit.backend.synchronize(stream)
    q.check(None, "after synchronize(stream), seen from the default stream")
    q.queue_launches(20, stream)
    kit.backend.synchronize()
    q.check(None, "after synchronize() of the device")


def test_streams_wait_for_events(kit: Kit) -> None:
    """Check work that alternates between two streams, ordered by events."""
    streams = [kit.backend.create_stream() for _ in range(2)]
    q = Queue(kit)
    q.fill(0.5, streams[0])
    for k in range(6):
        q.queue_launches(3, streams[k % 2])
        event = kit.backend.record_event(streams[k % 2])
        kit.backend.wait_event(streams[(k + 1) % 2], event)
    q.check(streams[0], "work that went between two streams")


def test_the_host_waits_for_an_event(kit: Kit) -> None:
    """Check that an event is done, with its work, after `wait_event` of the host."""
    stream = kit.backend.create_stream()
    q = Queue(kit)
    q.fill(0.5, stream)
    q.queue_launches(20, stream)
    event = kit.backend.record_event(stream)
    kit.backend.wait_event(None, event)
    assert kit.backend.event_done(event), kit.failure(
        "an event has not passed, though the host waited for it", ""
    )
    q.check(None, "after the host waited for an event")


def test_memory_is_not_reused_while_another_stream_reads_it(kit: Kit) -> None:
    """Check that freed memory is not reused while another stream still reads from it."""
    values, zeros = finite_values(float32, QUEUE_ELEMENTS, 1), np.zeros(QUEUE_ELEMENTS, np.float32)
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
        kit.check_same_bits(
            host(y), expected, float32, "what another stream read of freed memory", str
        )
        del taking


def test_events_measure_time(kit: Kit) -> None:
    """Check that `elapsed_ms` is positive, additive, and at most the time on the host."""
    stream = kit.backend.create_stream()
    q = Queue(kit)
    q.fill(0.5, stream)
    kit.backend.synchronize(stream)
    before = time.perf_counter_ns()
    marks = [kit.backend.record_event(stream)]
    for _ in range(2):
        q.queue_launches(20, stream)
        marks.append(kit.backend.record_event(stream))
    kit.backend.synchronize(stream)
    most = (time.perf_counter_ns() - before) / 1e6 + CLOCK_SKEW_MS_MAX
    first, second, both = (
        kit.backend.elapsed_ms(marks[i], marks[j]) for i, j in ((0, 1), (1, 2), (0, 2))
    )
    measured = f"elapsed_ms: {first}, then {second}, {both} in all; {most:.3f} went by on the host"
    assert first > 0 and second > 0, kit.failure(f"{measured}: 20 launches took no time", "")
    assert both <= most * 1.1, kit.failure(f"{measured}: more than that", "")
    assert abs(first + second - both) <= max(0.01 * both, 0.002), kit.failure(
        f"{measured}: parts and whole differ", ""
    )
    q.check(stream, "work between two events")


def test_threads_launch_at_once(kit: Kit) -> None:
    """Check that two threads, each with its own buffer, get correct results at once."""
    queues = [Queue(kit) for _ in range(2)]

    def run(q: Queue, value: float) -> None:
        """Fill the queue's buffer, and launch 30 times on the default stream."""
        q.fill(value, None)
        q.queue_launches(30, None)

    threads = [threading.Thread(target=run, args=(q, k + 0.25)) for k, q in enumerate(queues)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    kit.backend.synchronize()
    for k, q in enumerate(queues):
        q.check(None, f"the buffer of thread {k}")
