"""Launches: constant arguments are packed once; a launch adds addresses and scalars."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from operator import add

from dovetail.extend import (
    Handles,
    Kernel,
    Launch,
    Process,
    Scalar,
    StreamHandle,
    argument_packer,
)

from .compile import COMPUTE, Pipeline, VulkanProgram
from .schedule import schedule_launch
from .stream import AFTER_WORK, BATCH_LAUNCHES_MAX, CommandBuffer, Stream


class Launcher:
    """A factory of bound launches on one device.

    - `shares`: True if groups compute points together. Lavapipe runs the items of a group one after
      the other: sums of 4096 rows of 1000 take 16 ms of processor time with it off, and 49 ms with
      it on (2 cores of a Zen 4, Mesa 22.3, 2026-12-02).
    - `concurrency`: the work items that keep the device busy.
    - `vectorizes`: True if work items compute neighbours. Only measured on lavapipe, where a vector
      costs less than its elements.
    """

    def __init__(
        self, stream: Stream, process: Process, shares: bool, vectorizes: bool, concurrency: int
    ) -> None:
        self.stream, self.process, self.concurrency = stream, process, concurrency
        self.shares, self.vectorizes = shares, vectorizes

    def bind(self, program: VulkanProgram, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return the function that queues `program` with these ints and this grid."""
        kernel, tile = program.kernel, program.tile
        if tile and not tile.suits(grid, self.concurrency):
            tile = None
        vectorizes = self.vectorizes and program.is_vectorizable
        schedule, ints, groups = schedule_launch(kernel, ints, grid, self.shares, tile, vectorizes)
        return VulkanLaunch(self, kernel, program.pipeline(schedule), ints, groups).launch


class VulkanLaunch:
    """A launch with everything fixed but buffers, scalars and stream."""

    def __init__(
        self,
        launcher: Launcher,
        kernel: Kernel,
        pipeline: Pipeline,
        ints: Sequence[int],
        groups: Sequence[int],
    ) -> None:
        self.process, self.stream, self.groups = launcher.process, launcher.stream, groups
        self.pipeline, self.ints = pipeline, ints
        self.in_buffer = pipeline.module.arguments_in_buffer
        pack = struct.Struct(pipeline.module.format).pack
        self._pack = argument_packer(pack, [d for _, d in kernel.scalars])

    def launch(self, buffers: Handles, scalars: Sequence[Scalar], stream: StreamHandle) -> None:
        """Queue the launch, and submit it with those before it if there are enough.

        Raises: DeviceError in a child of fork(), or if the device is lost.
        """
        if not self.process.alive:
            self.process.check()
        data = self._pack([*map(add, buffers[::2], buffers[1::2]), *self.ints], scalars)
        stream = stream or self.stream
        batch = stream.add(self._record, data, self.pipeline)
        if len(batch.commands) >= BATCH_LAUNCHES_MAX:
            stream.flush(batch.value)

    def _record(self, buffer: CommandBuffer, data: bytes, pipeline: Pipeline) -> None:
        """Record the launch with its packed arguments, after the work before it."""
        call, commands = self.stream.call, buffer.handle
        if self.in_buffer:
            data = buffer.store_arguments(data)
        call.CmdPipelineBarrier(commands, *AFTER_WORK)
        if buffer.pipeline is not pipeline:
            call.CmdBindPipeline(commands, 1, pipeline.handle)
            buffer.pipeline = pipeline
        call.CmdPushConstants(commands, pipeline.layout, COMPUTE, 0, len(data), data)
        call.CmdDispatch(commands, *self.groups)
