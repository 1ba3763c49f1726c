"""Streams: commands are collected in batches, which a queue runs in order.

A timeline semaphore counts the batches of a stream that are done. An event is a number of it.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from ctypes import byref
from functools import partial
from itertools import starmap
from typing import Any

from dovetail.extend import DeviceError, Lock, bytes_at

from . import vulkan as vk
from .loader import LogicalDevice
from .memory import HOST_FLAGS, Memory, MemoryBlock

BATCH_LAUNCHES_MAX = 64  # launches that are submitted together
ARGUMENT_BYTES = 1 << 16  # bytes of a block for arguments that are no push constants
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
_BEGIN = vk.BeginInfo(flags=_ONCE)
AFTER_WORK = (WORK, WORK, 0, 1, byref(_AFTER_WORK), 0, None, 0, None)
BEFORE_HOST = (WORK, HOST, 0, 1, byref(_BEFORE_HOST), 0, None, 0, None)


class CommandBuffer:
    """A command buffer of the driver, and blocks of memory for the arguments of its launches."""

    def __init__(self, handle: ctypes.c_void_p, memory: Memory) -> None:
        self.handle, self.memory = handle, memory
        self.pipeline: object = None  # the one that is bound
        self.blocks: list[MemoryBlock] = []
        self.argument_bytes = 0  # bytes in use, over all blocks

    def store_arguments(self, data: bytes) -> bytes:
        """Store arguments, at most ARGUMENT_BYTES; return their address as bytes."""
        number, start = divmod(self.argument_bytes, ARGUMENT_BYTES)
        if start + len(data) > ARGUMENT_BYTES:
            number, start = number + 1, 0
        if number == len(self.blocks):
            self.blocks.append(self.memory.allocate_block(ARGUMENT_BYTES, HOST_FLAGS))
        block = self.blocks[number]
        bytes_at(block.host + start, len(data))[:] = data
        self.argument_bytes = number * ARGUMENT_BYTES + start + -(-len(data) // 16) * 16
        return (block.address + start).to_bytes(8, "little")


class Batch:
    """Commands that are submitted together, as functions that record them.

    They hold the programs, events and structures that live until the batch has run.
    """

    def __init__(self) -> None:
        self.value = 0  # its number in the stream
        self.commands: list[tuple[Any, ...]] = []  # a function and its arguments
        self.waits: dict[int, int] = {}  # semaphores and values that it waits for
        self.results: list[int] = []  # of submitting it
        self.buffer: CommandBuffer | None = None  # the submitted one


class Event:
    """The end of a batch of a stream, with a timestamp, whose query this object returns."""

    __slots__ = ("__del__", "__weakref__", "query", "stream", "value")

    __del__: Callable[[], object]  # in a slot: no interrupt comes between

    def __init__(self, stream: Stream, queries: deque[tuple[int, int]]) -> None:
        self.stream, self.query = stream, queries.popleft()
        self.value = 0  # the number of its batch, once it is queued
        self.__del__ = partial(queries.append, self.query)

    def is_done(self) -> bool:
        """Return True if the stream has passed the event; submit its work."""
        self.stream.flush(self.value)
        return self.stream.count_done() >= self.value

    def read_ticks(self) -> int:
        """Wait for the event; return its time in ticks of the device's clock."""
        self.stream.wait(self.value)
        ticks, device = ctypes.c_uint64(), self.stream.device
        device.functions.GetQueryPoolResults(
            device.handle, *self.query, 1, 8, byref(ticks), 8, _RESULT_64_WAIT
        )
        return ticks.value


class Stream:
    """Work in order, in batches. The lock is for the open batch and the lists of batches.

    Commands are recorded when their batch is submitted. Garbage collection, which runs finalizers
    that may launch and read, can come between any two statements that allocate objects. Such a
    nested `flush` records and submits the closing batch by itself, and the outer one drops what it
    recorded. Statements that belong together allocate no objects.
    """

    def __init__(self, device: LogicalDevice, memory: Memory, number: int) -> None:
        self.device, self.memory, self.call = device, memory, device.functions
        self._submit = self.call.find("QueueSubmit")
        self.queue, self._queue_lock = device.queues[number % len(device.queues)]
        self.lock = Lock()
        timeline = vk.SemaphoreType(kind=_TIMELINE)
        self.semaphore = device.create("Semaphore", vk.SemaphoreInfo(next=timeline))
        pool = vk.PoolInfo(flags=_RESETTABLE, family=device.physical.family)
        self._pool = device.create("CommandPool", pool)
        self.submitted = 0  # batches
        self.batch = Batch()  # the open one
        self.batch.value = 1
        self._closing: Batch | None = None  # the one that `flush` submits
        self._pending: deque[Batch] = deque()  # submitted
        self._idle: list[CommandBuffer] = []
        self._queries: deque[tuple[int, int]] = deque()

    # --- work; these take the lock

    def add(self, *command: Any) -> Batch:
        """Queue a command; return its batch.

        - `command`: a function that records it in a command buffer, and more arguments of it.
        """
        with self.lock:
            batch = self.batch
            batch.commands.append(command)
            return batch

    def copy(
        self, source: MemoryBlock, start: int, target: MemoryBlock, offset: int, nbytes: int
    ) -> None:
        """Queue a copy between blocks, from the byte `start` of one to `offset` of the other."""
        region = vk.BufferCopy(source=start, target=offset, size=nbytes)
        self.add(self._record_copy, source, target, region)

    def _record_copy(
        self, buffer: CommandBuffer, source: MemoryBlock, target: MemoryBlock, region: Any
    ) -> None:
        """Record a copy."""
        self.call.CmdPipelineBarrier(buffer.handle, *AFTER_WORK)
        self.call.CmdCopyBuffer(buffer.handle, source.buffer, target.buffer, 1, byref(region))

    def record(self) -> Event:
        """Return an event at the current end."""
        with self.lock:
            if not self._queries:
                info = vk.QueryPoolInfo(kind=_TIMESTAMP, count=QUERIES)
                pool = self.device.create("QueryPool", info)
                self._queries.extend((pool, i) for i in range(QUERIES))
            event = Event(self, self._queries)
            event.value = self.add(self._record_event, event).value
            return event

    def _record_event(self, buffer: CommandBuffer, event: Event) -> None:
        """Record the timestamp of an event."""
        self.call.CmdResetQueryPool(buffer.handle, *event.query, 1)
        self.call.CmdWriteTimestamp(buffer.handle, _BOTTOM_OF_PIPE, *event.query)

    def wait_for(self, event: Event) -> None:
        """Make later work wait for an event of another stream."""
        if event.stream is self:
            return
        event.stream.flush(event.value)
        with self.lock:
            self.flush()
            waits, semaphore = self.batch.waits, event.stream.semaphore
            waits[semaphore] = max(waits.get(semaphore, 0), event.value)

    def flush(self, value: int | None = None) -> None:
        """Submit the open batch, or an empty one that waits for events.

        If an interrupt comes in between, the next call goes on: a batch is submitted once, by one
        call of C. Raises: DeviceError if the device is lost.

        - `value`: the number of a batch; nothing is done if it is submitted.
        """
        with self.lock:
            value = self.batch.value if value is None else value
            while value > self.submitted:
                following = Batch()
                if self._closing is None:
                    if not (self.batch.commands or self.batch.waits):
                        return
                    following.value = self.batch.value + 1
                    self._closing, self.batch = self.batch, following
                self._submit_batch(self._closing)

    def _submit_batch(self, batch: Batch) -> None:
        """Record and submit the closing batch once, even if a nested `flush` runs in between.

        The caller holds the lock.

        Raises: DeviceError if the device is lost.
        """
        try:
            if not batch.results:
                buffer = self._record_batch(batch)
                info = self._describe(batch, buffer)
                # `starmap` calls the function of C with this tuple itself.
                results = starmap(self._submit, [(self.queue, 1, byref(info), 0)])
                with self._queue_lock:
                    if not batch.results:
                        batch.buffer = buffer
                        batch.results.extend(results)
                if batch.buffer is not buffer:
                    self._idle.append(buffer)
            vk.check(batch.results[0], "QueueSubmit")
        except vk.VulkanError as error:
            raise self.explain(error) from error
        if self._closing is batch:
            self.submitted, self._closing = batch.value, None
            self._pending.append(batch)

    def _record_batch(self, batch: Batch) -> CommandBuffer:
        """Return a command buffer with the commands of a batch."""
        if self._pending:
            self._recycle(self.count_done())
        if self._idle:
            buffer = self._idle.pop()
        else:
            buffer = CommandBuffer(self._allocate_commands(), self.memory)
        buffer.argument_bytes = 0
        self.call.BeginCommandBuffer(buffer.handle, byref(_BEGIN))
        for record, *arguments in tuple(batch.commands):
            record(buffer, *arguments)
        buffer.pipeline = None
        self.call.CmdPipelineBarrier(buffer.handle, *BEFORE_HOST)
        self.call.EndCommandBuffer(buffer.handle)
        return buffer

    def _allocate_commands(self) -> ctypes.c_void_p:
        """Allocate a command buffer."""
        commands, info = ctypes.c_void_p(), vk.CommandsInfo(pool=self._pool, count=1)
        self.call.AllocateCommandBuffers(self.device.handle, byref(info), byref(commands))
        return commands

    def _recycle(self, count: int) -> None:
        """Make the command buffers of batches up to a number, which have run, usable again."""
        while self._pending and self._pending[0].value <= count:
            batch = self._pending.popleft()
            if batch.buffer is not None:
                self._idle.append(batch.buffer)

    def _describe(self, batch: Batch, buffer: CommandBuffer) -> vk.Structure:
        """Return the submission of a batch: the events before it, and the number after it."""
        waits = len(batch.waits)
        timeline = vk.TimelineInfo(
            waits=waits,
            wait=(ctypes.c_uint64 * waits)(*batch.waits.values()),
            signals=1,
            signal=ctypes.c_uint64(batch.value),
        )
        info: vk.Structure = vk.SubmitInfo(
            next=timeline,
            waits=waits,
            wait=(ctypes.c_uint64 * waits)(*batch.waits),
            stages=(ctypes.c_uint32 * waits)(*[WORK] * waits),
            count=1,
            commands=(ctypes.c_void_p * 1)(buffer.handle),
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
        uses = [use for b in batches for command in b.commands for use in command]
        names = dict.fromkeys(use.name for use in uses if hasattr(use, "name"))
        work = f"; unfinished kernels: {', '.join(names)}" if names else ""
        return DeviceError(
            f"{self.device.name}: {error}{work}. If the device is lost, restart the process"
        )
