"""Race detection: find two points of a grid that write to one place.

A copy of the kernel records, for each place, the first and the last point that store there. If they
differ, several points write to the place. Atomics are no races.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..backend.streams import current_handle
from ..dtypes import int32
from ..engine import launch_eager, programs
from ..engine.evaluate import evaluate
from ..engine.launching import BoundKernel
from ..fusion.plan import PlannedLaunch
from ..graph.expr import Expr, leaf, node, spec, storage_of
from ..ir.builder import Kernel
from ..ir.language import Atomic, Block, Buffer, Loop, Store, Value, cast
from ..ir.rewrite import Cloner
from ..ops.table import FULL
from ..plugins.device_handle import OpenedDevice
from .compile import CompiledKernel
from .source import FunctionSource

POINTS_MAX = 1 << 31  # points are numbered in int32; larger grids are not checked
NO_FIRST_WRITER, NO_LAST_WRITER = POINTS_MAX - 1, -1


class _WriterRecorder(Cloner):
    """A copier of kernels that replaces stores by records of the point that stores.

    `records`: by the id of a buffer, those for the first and for the last point.
    """

    def __init__(self, kernel: Kernel, records: Mapping[int, list[Buffer]]) -> None:
        super().__init__()
        self.records = records
        point = Value("index", kernel.grid[0].dtype, (), 0)
        for axis, extent in enumerate(kernel.grid[1:], 1):
            point = point * extent + Value("index", extent.dtype, (), axis)
        self.point = cast(point, int32)

    def block(self, block: Block) -> Block:
        """Copy a block; make recorded stores atomics of the point's number, drop other effects."""
        outer, self.statements = self.statements, []
        if not self.emitted:
            self.emit(self.point)
        for s in block:
            if isinstance(s, Value):
                self.value(s)
            elif isinstance(s, Loop):
                self.statements.append(self.loop(s))
            elif isinstance(s, Store) and id(s.buffer) in self.records:
                index = self.operand(s.index)
                when = None if s.when is None else self.operand(s.when)
                for op, buffer in zip(("min", "max"), self.records[id(s.buffer)], strict=True):
                    self.statements.append(Atomic(op, buffer, index, self.point, when))
        copy, self.statements = tuple(self.statements), outer
        return copy


def check_races(
    opened: OpenedDevice,
    source: FunctionSource,
    compiled: CompiledKernel,
    step: BoundKernel,
    leaf_of: Mapping[int, Expr],
    numbers: Sequence[float | int | bool],
) -> None:
    """Run a recording kernel, and raise KernelError if two points write to one place.

    A grid of POINTS_MAX points or more is not checked.

    leaf_of: the tensors, by their positions among the arguments.
    """
    written = [k for k in dict.fromkeys(compiled.tensors) if k >= 0 and k in compiled.stores]
    if step.has_empty_grid or math.prod(step.step.grid) >= POINTS_MAX or not written:
        return
    original = compiled.kernel
    records = {k: [Buffer(f"{n}{k}", int32, "rw") for n in ("least", "most")] for k in written}
    by_buffer = {id(original.buffers[compiled.tensors.index(k)]): records[k] for k in written}
    body = _WriterRecorder(original, by_buffer).block(original.body)
    read = [
        (buffer, k)
        for buffer, k in zip(original.buffers, compiled.tensors, strict=True)
        if k >= 0 and buffer.access != "w"
    ]
    buffers = [buffer for buffer, _ in read] + [buffer for k in written for buffer in records[k]]
    kernel = original.with_body(body, buffers=tuple(buffers))
    leaves = [leaf_of[k] for _, k in read]
    for k in written:
        leaves += [
            _allocate_writer_records(leaf_of[k], x) for x in (NO_FIRST_WRITER, NO_LAST_WRITER)
        ]
    slots = tuple((i, 0) for i in range(len(leaves)))
    planned = PlannedLaunch(
        kernel, slots, (), step.step.ints, step.step.scalars, step.step.grid, step.step.reasons, 0
    )
    run = BoundKernel(planned, len(numbers), programs.bind_launch(opened, planned))
    targets = tuple(range(len(read), len(leaves)))
    launch_eager.launch_steps(source.kernel, (run,), leaves, targets, [*numbers], None)
    for i, k in enumerate(written):
        record_position = len(read) + 2 * i
        first, last = (
            _read_to_host(opened, e) for e in leaves[record_position : record_position + 2]
        )
        for offset, writers in enumerate(zip(first, last, strict=True)):
            if writers[0] < writers[1]:
                points = " and ".join(str(_unravel_point(n, step.step.grid)) for n in writers)
                name = [*source.tree.args.posonlyargs, *source.tree.args.args][k].arg
                element = f"{name}{list(_element_index(leaf_of[k], offset))}"
                source.raise_kernel_error(
                    compiled.stores[k][0], f"{points} of the grid both write to {element}"
                )


def _allocate_writer_records(e: Expr, value: int) -> Expr:
    """Return an int32 leaf, filled with `value`, for each place that the strides of `e` reach."""
    ends = [(n - 1) * s for n, s in zip(e.spec.shape, e.strides, strict=True)]
    lowest = sum(min(0, x) for x in ends)
    size = 1 + sum(max(0, x) for x in ends) - lowest
    memory_spec = spec((size,), int32, e.spec.device)
    memory = node(FULL, (value,), memory_spec, ((int32,), int32))
    evaluate((memory,))
    return leaf(storage_of(memory), memory_spec, (1,), -lowest)


def _read_to_host(opened: OpenedDevice, e: Expr) -> Sequence[int]:
    """Wait for a tensor of int32, copy its elements to the host, and return them."""
    data = bytearray(e.spec.size * e.spec.itemsize)
    ptr, stream = storage_of(e).ptr, current_handle(e.spec.device)
    opened.backend.copy_out(memoryview(data), ptr.handle, ptr.offset, stream)
    return memoryview(data).cast("i")


def _unravel_point(number: int, grid: Sequence[int]) -> tuple[int, ...]:
    """Return the point of a grid with this row-major number."""
    point = []
    for extent in reversed(grid):
        number, i = divmod(number, extent)
        point.append(i)
    return tuple(reversed(point))


def _element_index(e: Expr, offset: int) -> tuple[int, ...]:
    """Return the indices of the element at `offset` elements from the lowest address."""
    index = [0] * len(e.strides)
    for d in sorted(range(len(e.strides)), key=lambda d: -abs(e.strides[d])):
        n, s = e.spec.shape[d], e.strides[d]
        if n > 1 and s:
            k, offset = divmod(offset, abs(s))
            index[d] = k if s > 0 else n - 1 - k
    return tuple(index)
