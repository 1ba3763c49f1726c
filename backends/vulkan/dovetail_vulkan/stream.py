"""Streams: commands are collected in batches, which a queue runs in order.

A timeline semaphore counts the batches of a stream that are done. An event is a number of it.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from ctypes import byref
from functools import partial
from operator import call
from typing import Any

from dovetail.extend import DeviceError, Lock, bytes_at

from . import vulkan as vk
from .loader import LogicalDevice
from .memory import HOST_FLAGS, Memory, MemoryBlock

BATCH_LAUNCHES_MAX = 64  # launches that are submitted together
ARGUMENT_BYTES = 1 << 16  # memory of a batch for arguments that are no push constants
QUERIES = 256  # timestamps of a pool
_WAIT_NS = 10**9  # the user's interrupt is seen between two waits
_TIMEOUT = 2  # VK_TIMEOUT
_ONCE = 1  # VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT
_RESETTABLE = 2  # VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT
_TIMELINE = 1  # VK_SEMAPHORE_TYPE_TIMELINE
_TIMESTAMP = 2  # VK_QUERY_TYPE_TIMESTAMP
_RESULT_64_WAIT = 3  # VK_QUERY_RESULT_64_BIT, VK_QUERY_RESULT_WAIT_BIT
_BOTTOM_OF_PIPE = 0x2000
WORK, HOST = 0x1800, 0x4000  # stages: shaders and copies; the host
# Writes of shaders and copies come before their reads and writes, and before those of the host.
_AFTER_WORK = vk.MemoryBarrier(source=0x1040, target=0x1860)
_BEFORE_HOST = vk.MemoryBarrier(source=0x1040, target=0x6000)
AFTER_WORK = (WORK, WORK, 0, 1, byref(_AFTER_WORK), 0, None, 0, None)
BEFORE_HOST = (WORK, HOST, 0, 1, byref(_BEFORE_HOST), 0, None, 0, None)


class Batch:
    """A command buffer, and the programs, events and structures that live until it has run."""

    def __init__(self, commands: int) -> None:
        self.commands, self.value = commands, 0
        self.uses: list[Any] = []
        self.results: list[int] = []  # of ending and submitting it
        self.arguments: MemoryBlock | None = None  # once arguments need it
        self.argument_bytes = 0


class Event:
    """The end of a batch of a stream, with a timestamp, whose query this object returns."""

    __slots__ = ("__del__", "__weakref__", "query", "stream", "value")

    __del__: Callable[[], object]  # in a slot: no interrupt comes between

    def __init__(self, stream: Stream, value: int, queries: deque[tuple[int, int]]) -> None:
        self.stream, self.value, self.query = stream, value, queries.popleft()
        self.__del__ = partial(queries.append, self.query)

    def is_done(self) -> bool:
        """Return True if the stream has passed the event; submit its work."""
        self.stream.flush(self.value)
        return self.stream.count_done() >= self.value

    def read_ns(self) -> float:
        """Wait for the event; return its time in nanoseconds of the device's clock."""
        self.stream.wait(self.value)
        ticks, device = ctypes.c_uint64(), self.stream.device
        device.functions.GetQueryPoolResults(
            device.handle, *self.query, 1, 8, byref(ticks), 8, _RESULT_64_WAIT
        )
        return ticks.value * float(device.physical.tick_ns)


class Stream:
    """Work in order, in batches. The lock is for the open batch and the lists of batches."""

    def __init__(self, device: LogicalDevice, memory: Memory, number: int) -> None:
        self.device, self.memory, self.call = device, memory, device.functions
        self._end, self._submit = map(self.call.find, ("EndCommandBuffer", "QueueSubmit"))
        self.queue, self._queue_lock = device.queues[number % len(device.queues)]
        self.lock = Lock()
        timeline = vk.SemaphoreType(kind=_TIMELINE)
        self.semaphore = device.create("Semaphore", vk.SemaphoreInfo(next=timeline))
        pool = vk.PoolInfo(flags=_RESETTABLE, family=device.physical.family)
        self._pool = device.create("CommandPool", pool)
        self.submitted = 0  # batches
        self.batch: Batch | None = None  # the open one
        self._closing: Batch | None = None  # the one that `flush` submits
        self._pending: deque[Batch] = deque()  # submitted
        self._idle: list[Batch] = []
        self._waits: dict[int, int] = {}  # semaphores and values that the next batch waits for
        self._queries: deque[tuple[int, int]] = deque()

    # --- the open batch; the caller holds the lock

    def begin(self) -> Batch:
        """Return the open batch; open one if there is none."""
        if self._closing is not None:  # an interrupt came in between
            self.flush()
        if self.batch is not None:
            return self.batch
        if self._pending:
            self._recycle(self.count_done())
        batch = self._idle.pop() if self._idle else Batch(self._allocate_commands())
        self.call.BeginCommandBuffer(batch.commands, byref(vk.BeginInfo(flags=_ONCE)))
        self.batch = batch
        return batch

    def _allocate_commands(self) -> int:
        """Allocate a command buffer."""
        commands, info = ctypes.c_void_p(), vk.CommandsInfo(pool=self._pool, count=1)
        self.call.AllocateCommandBuffers(self.device.handle, byref(info), byref(commands))
        return commands.value or 0

    def _recycle(self, count: int) -> None:
        """Make the batches up to a number, which have run, usable again."""
        while self._pending and self._pending[0].value <= count:
            batch = self._pending.popleft()
            batch.uses.clear()
            batch.results.clear()
            batch.argument_bytes = 0
            self._idle.append(batch)

    def add(self, batch: Batch, used: Any) -> None:
        """Keep an object until a batch has run, and order the next command after those before."""
        batch.uses.append(used)
        self.call.CmdPipelineBarrier(batch.commands, *AFTER_WORK)

    def store_arguments(self, data: bytes) -> tuple[Batch, bytes]:
        """Store arguments in memory of the open batch; return it, and their address as bytes."""
        if self.begin().argument_bytes + len(data) > ARGUMENT_BYTES:
            self.flush()
        batch = self.begin()
        if batch.arguments is None:
            batch.arguments = self.memory.allocate_block(ARGUMENT_BYTES, HOST_FLAGS)
        block, start = batch.arguments, batch.argument_bytes
        bytes_at(block.host + start, len(data))[:] = data
        batch.argument_bytes += -(-len(data) // 16) * 16
        return batch, (block.address + start).to_bytes(8, "little")

    # --- work; these take the lock

    def copy(
        self, source: MemoryBlock, start: int, target: MemoryBlock, offset: int, nbytes: int
    ) -> None:
        """Queue a copy between blocks, from the byte `start` of one to `offset` of the other."""
        with self.lock:
            batch, region = self.begin(), vk.BufferCopy(source=start, target=offset, size=nbytes)
            self.add(batch, region)
            self.call.CmdCopyBuffer(batch.commands, source.buffer, target.buffer, 1, byref(region))

    def record(self) -> Event:
        """Return an event at the current end."""
        with self.lock:
            batch = self.begin()
            if not self._queries:
                info = vk.QueryPoolInfo(kind=_TIMESTAMP, count=QUERIES)
                pool = self.device.create("QueryPool", info)
                self._queries.extend((pool, i) for i in range(QUERIES))
            event = Event(self, self.submitted + 1, self._queries)
            batch.uses.append(event)
            self.call.CmdResetQueryPool(batch.commands, *event.query, 1)
            self.call.CmdWriteTimestamp(batch.commands, _BOTTOM_OF_PIPE, *event.query)
            return event

    def wait_for(self, event: Event) -> None:
        """Make later work wait for an event of another stream."""
        if event.stream is self:
            return
        event.stream.flush(event.value)
        with self.lock:
            self.flush()
            semaphore = event.stream.semaphore
            self._waits[semaphore] = max(self._waits.get(semaphore, 0), event.value)

    def flush(self, value: int | None = None) -> None:
        """Submit the open batch, or an empty one that waits for events.

        If an interrupt comes in between, the next call goes on: a batch is ended and submitted
        once, by one call of C. Raises: DeviceError if the device is lost.

        - `value`: the number of a batch; nothing is done if it is submitted.
        """
        with self.lock:
            if value is not None and value <= self.submitted:
                return
            if self._closing is None:
                if self.batch is None and not self._waits:
                    return
                self._closing = self.begin()
            batch, self.batch = self._closing, None
            if not batch.results:
                self.call.CmdPipelineBarrier(batch.commands, *BEFORE_HOST)
                info = self._describe(batch)
                end = partial(self._end, batch.commands)
                submit = partial(self._submit, self.queue, 1, byref(info), 0)
                with self._queue_lock:
                    batch.results.extend(map(call, (end, submit)))
            try:
                for result in batch.results:
                    vk.check(result, "QueueSubmit")
            except vk.VulkanError as error:
                raise self.explain(error) from error
            self._waits.clear()
            self.submitted = batch.value
            if not self._pending or self._pending[-1] is not batch:
                self._pending.append(batch)
            self._closing = None

    def _describe(self, batch: Batch) -> vk.Structure:
        """Return the submission of a batch: the events before it, and the number after it."""
        batch.value, waits = self.submitted + 1, len(self._waits)
        timeline = vk.TimelineInfo(
            waits=waits,
            wait=(ctypes.c_uint64 * waits)(*self._waits.values()),
            signals=1,
            signal=ctypes.c_uint64(batch.value),
        )
        info: vk.Structure = vk.SubmitInfo(
            next=timeline,
            waits=waits,
            wait=(ctypes.c_uint64 * waits)(*self._waits),
            stages=(ctypes.c_uint32 * waits)(*[WORK] * waits),
            count=1,
            commands=(ctypes.c_void_p * 1)(batch.commands),
            signals=1,
            signal=ctypes.c_uint64(self.semaphore),
        )
        return info

    # --- waiting

    def count_done(self) -> int:
        """Return the number of batches that are done. Raises: DeviceError if the device is lost."""
        count = ctypes.c_uint64()
        try:
            self.call.GetSemaphoreCounterValue(self.device.handle, self.semaphore, byref(count))
        except vk.VulkanError as error:
            raise self.explain(error) from error
        return count.value

    def wait(self, value: int | None = None) -> None:
        """Wait for a number of batches; None is all work. Raises: DeviceError for a lost device."""
        self.flush(value)
        value = self.submitted if value is None else value
        semaphore, count = ctypes.c_uint64(self.semaphore), ctypes.c_uint64(value)
        info = vk.WaitInfo(count=1, semaphores=semaphore, values=count)
        try:
            while self.call.WaitSemaphores(self.device.handle, byref(info), _WAIT_NS) == _TIMEOUT:
                pass
        except vk.VulkanError as error:
            raise self.explain(error) from error
        with self.lock:
            self._recycle(value)

    def explain(self, error: vk.VulkanError) -> DeviceError:
        """Return an error of the device that names the kernels of the unfinished batches."""
        batches = [*self._pending, *filter(None, (self._closing, self.batch))]
        names = dict.fromkeys(u.name for b in batches for u in b.uses if hasattr(u, "name"))
        work = f"; unfinished kernels: {', '.join(names)}" if names else ""
        return DeviceError(
            f"{self.device.name}: {error}{work}. If the device is lost, restart the process"
        )
