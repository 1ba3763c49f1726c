"""Streams: commands are collected in batches, which a queue runs in order.

A timeline semaphore counts the batches of a stream that are done. An event is a number of it.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from ctypes import byref
from functools import partial
from typing import Any

from dovetail.extend import DeviceError, Lock, bytes_at

from .loader import (
    BeginInfo,
    BufferCopy,
    CommandsInfo,
    LogicalDevice,
    MemoryBarrier,
    PoolInfo,
    QueryPoolInfo,
    SemaphoreInfo,
    SemaphoreType,
    SubmitInfo,
    TimelineInfo,
    VulkanError,
    WaitInfo,
    check,
)
from .memory import HOST_FLAGS, Memory, MemoryBlock

BATCH_LAUNCHES_MAX = 64  # launches that are submitted together
ARGUMENT_BYTES = 1 << 16  # memory of a batch for arguments that are no push constants
QUERIES = 256  # timestamps of a pool
_WAIT_NS = 10**9  # an interrupt of the user is seen between two waits
_TIMEOUT = 2
_ONCE = 1  # VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT
_RESETTABLE = 2  # VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT
_TIMELINE = 1
_TIMESTAMP = 2
_BOTTOM_OF_PIPE = 0x2000
_RESULT_64_WAIT = 3
# stages and accesses of shaders and copies, and of the host
WORK, HOST = 0x1800, 0x4000
_AFTER_WORK = MemoryBarrier(source=0x1040, target=0x1860)
_AFTER_BATCH = MemoryBarrier(source=0x1040, target=0x6000)
AFTER_WORK, AFTER_BATCH = byref(_AFTER_WORK), byref(_AFTER_BATCH)


class Batch:
    """A command buffer, and what lives until it has run.

    `kept`: the launched programs, queries and memory that its commands use.
    """

    def __init__(self, commands: int) -> None:
        self.commands, self.value = commands, 0
        # the results of ending and of submitting it: a call and its note are one step
        self.end: list[int] = []
        self.submission: list[int] = []
        self.described: Any = None  # the structures of its submission
        self.kept: list[Any] = []
        self.arguments: Any = None  # a block of memory, once arguments need it
        self.used = 0  # bytes of it


class Query:
    """A timestamp of a pool, which is free again when this object ends."""

    __slots__ = ("__del__", "index", "pool")

    __del__: Callable[[], object]  # in a slot: no interrupt comes between

    def __init__(self, pool: int, index: int, free: deque[tuple[int, int]]) -> None:
        self.pool, self.index = pool, index
        self.__del__ = partial(free.append, (pool, index))


class Event:
    """The place in a stream after a number of batches, and the time at which it is passed."""

    __slots__ = ("__weakref__", "query", "stream", "value")

    def __init__(self, stream: Stream, value: int, query: Query) -> None:
        self.stream, self.value, self.query = stream, value, query

    def is_done(self) -> bool:
        """Return True if the stream has passed the event; submit its work."""
        if self.value > self.stream.submitted:
            self.stream.flush()
        return self.stream.completed() >= self.value

    def read_ns(self) -> float:
        """Wait for the event; return its time in nanoseconds of the device's clock."""
        self.stream.wait(self.value)
        ticks, query, device = ctypes.c_uint64(), self.query, self.stream.device
        device.functions.GetQueryPoolResults(
            device.handle, query.pool, query.index, 1, 8, byref(ticks), 8, _RESULT_64_WAIT
        )
        return ticks.value * float(device.physical.tick_ns)


class Stream:
    """Work in order, in batches. The lock is for the open batch and the lists of batches."""

    def __init__(self, device: LogicalDevice, memory: Memory, number: int) -> None:
        self.device, self.memory, self.call = device, memory, device.functions
        self._submit = self.call.unchecked("QueueSubmit")
        self._end_commands = self.call.unchecked("EndCommandBuffer")
        self.queue, self._queue_lock = device.queues[number % len(device.queues)]
        self.lock = Lock()
        kind = SemaphoreType(kind=_TIMELINE)
        self.semaphore = device.create("Semaphore", SemaphoreInfo(next=kind))
        pool = PoolInfo(flags=_RESETTABLE, family=device.physical.family)
        self._pool = device.create("CommandPool", pool)
        self.submitted = 0  # batches
        self.batch: Batch | None = None  # the open one
        self._closing: Batch | None = None  # what `flush` submits
        self._pending: deque[Batch] = deque()  # submitted
        self._idle: list[Batch] = []
        self._waits: dict[int, int] = {}  # semaphores and values that the next batch waits for
        self._queries: deque[tuple[int, int]] = deque()

    # --- batches; the caller holds the lock

    def begin(self) -> Batch:
        """Return the open batch; open one if there is none."""
        if self._closing is not None:  # an interrupt came in between
            self.flush()
        if self.batch is not None:
            return self.batch
        if self._pending:
            self._recycle(self.completed())
        batch = self._idle.pop() if self._idle else Batch(self._allocate_commands())
        self.call.BeginCommandBuffer(batch.commands, byref(BeginInfo(flags=_ONCE)))
        self.batch = batch
        return batch

    def _allocate_commands(self) -> int:
        """Allocate a command buffer."""
        commands, info = ctypes.c_void_p(), CommandsInfo(pool=self._pool, count=1)
        self.call.AllocateCommandBuffers(self.device.handle, byref(info), byref(commands))
        return commands.value or 0

    def _recycle(self, completed: int) -> None:
        """Make the batches that have run usable again."""
        while self._pending and self._pending[0].value <= completed:
            batch = self._pending.popleft()
            batch.kept.clear()
            batch.end.clear()
            batch.submission.clear()
            batch.used = 0
            self._idle.append(batch)

    def keep(self, batch: Batch, used: Any) -> None:
        """Keep an object until a batch has run; a barrier orders the next command after others."""
        batch.kept.append(used)
        self.call.CmdPipelineBarrier(batch.commands, WORK, WORK, 0, 1, AFTER_WORK, 0, None, 0, None)

    def store_arguments(self, data: bytes) -> tuple[Batch, bytes]:
        """Store arguments in memory of the open batch; return it, and their address as bytes."""
        batch = self.begin()
        if batch.used + len(data) > ARGUMENT_BYTES:
            self.flush()
            batch = self.begin()
        if batch.arguments is None:
            batch.arguments = self.memory.allocate_block(ARGUMENT_BYTES, HOST_FLAGS)
        block, at = batch.arguments, batch.used
        bytes_at(block.host + at, len(data))[:] = data
        batch.used += -(-len(data) // 16) * 16
        return batch, (block.address + at).to_bytes(8, "little")

    def copy(
        self, source: MemoryBlock, start: int, target: MemoryBlock, place: int, nbytes: int
    ) -> None:
        """Queue a copy between blocks, from and to these offsets."""
        with self.lock:
            batch, region = self.begin(), BufferCopy(source=start, target=place, size=nbytes)
            self.keep(batch, region)
            self.call.CmdCopyBuffer(batch.commands, source.buffer, target.buffer, 1, byref(region))

    def flush(self) -> None:
        """Submit the open batch, or an empty one that waits for events.

        Each step of it is done once, although an interrupt may come between any two: the next call
        then goes on. Raises: DeviceError if the device is lost.
        """
        with self.lock:
            if self._closing is None:
                if self.batch is None and not self._waits:
                    return
                self._closing = self.begin()
            batch, self.batch = self._closing, None
            self._end(batch)
            if not batch.submission:
                info = self._describe(batch)
                with self._queue_lock:
                    batch.submission.extend(map(self._submit, (self.queue,), (1,), (info,), (0,)))
            try:
                check(batch.submission[0], "QueueSubmit")
            except VulkanError as error:
                raise self.explain(error) from error
            self._waits.clear()
            self.submitted = batch.value
            if not self._pending or self._pending[-1] is not batch:
                self._pending.append(batch)
            self._closing = None

    def _end(self, batch: Batch) -> None:
        """End the commands of a batch, after whose work the host sees what it wrote."""
        if not batch.end:
            self.call.CmdPipelineBarrier(
                batch.commands, WORK, HOST | WORK, 0, 1, AFTER_BATCH, 0, None, 0, None
            )
            batch.end.extend(map(self._end_commands, (batch.commands,)))

    def _describe(self, batch: Batch) -> Any:
        """Return the submission of a batch: the events before it, and the number after it."""
        batch.value = self.submitted + 1
        waits = len(self._waits)
        timeline = TimelineInfo(
            waits=waits,
            wait=(ctypes.c_uint64 * waits)(*self._waits.values()),
            signals=1,
            signal=(ctypes.c_uint64 * 1)(batch.value),
        )
        info = SubmitInfo(
            next=timeline,
            waits=waits,
            wait=(ctypes.c_uint64 * waits)(*self._waits),
            stages=(ctypes.c_uint32 * waits)(*[WORK] * waits),
            count=1,
            commands=(ctypes.c_void_p * 1)(batch.commands),
            signals=1,
            signal=(ctypes.c_uint64 * 1)(self.semaphore),
        )
        batch.described = info
        return byref(info)

    # --- waiting

    def completed(self) -> int:
        """Return the number of batches that are done. Raises: DeviceError if the device is lost."""
        value = ctypes.c_uint64()
        try:
            self.call.GetSemaphoreCounterValue(self.device.handle, self.semaphore, byref(value))
        except VulkanError as error:
            raise self.explain(error) from error
        return value.value

    def wait(self, value: int | None = None) -> None:
        """Wait for a number of batches; None is all work. Raises: DeviceError for a lost device."""
        if value is None or value > self.submitted:
            self.flush()
        value = self.submitted if value is None else value
        info = WaitInfo(
            count=1,
            semaphores=(ctypes.c_uint64 * 1)(self.semaphore),
            values=(ctypes.c_uint64 * 1)(value),
        )
        try:
            while self.call.WaitSemaphores(self.device.handle, byref(info), _WAIT_NS) == _TIMEOUT:
                pass
        except VulkanError as error:
            raise self.explain(error) from error
        with self.lock:
            self._recycle(value)

    def wait_for(self, event: Event) -> None:
        """Make later work wait for an event of another stream."""
        other = event.stream
        if other is self:
            return
        if event.value > other.submitted:
            other.flush()
        with self.lock:
            self.flush()
            self._waits[other.semaphore] = max(self._waits.get(other.semaphore, 0), event.value)

    def record(self) -> Event:
        """Return an event at the current end, with a timestamp."""
        with self.lock:
            batch = self.begin()
            if not self._queries:
                info = QueryPoolInfo(kind=_TIMESTAMP, count=QUERIES)
                pool = self.device.create("QueryPool", info)
                self._queries.extend((pool, i) for i in range(QUERIES))
            query = Query(*self._queries.popleft(), self._queries)
            batch.kept.append(query)
            self.call.CmdResetQueryPool(batch.commands, query.pool, query.index, 1)
            self.call.CmdWriteTimestamp(batch.commands, _BOTTOM_OF_PIPE, query.pool, query.index)
            return Event(self, self.submitted + 1, query)

    def explain(self, error: VulkanError) -> DeviceError:
        """Return an error of the device that names the kernels of the unfinished batches."""
        batches = [*self._pending, *([self.batch] if self.batch else [])]
        names = dict.fromkeys(k.name for b in batches for k in b.kept if hasattr(k, "name"))
        work = f"; unfinished kernels: {', '.join(names)}" if names else ""
        return DeviceError(
            f"{self.device.name}: {error}{work}. If the device is lost, restart the process"
        )
