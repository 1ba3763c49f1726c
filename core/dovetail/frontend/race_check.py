"""Races: two points that write to one place. Found by a kernel that notes who would write where.

It does what the kernel does, but for each store to a tensor it notes the least and the largest
number of a point there; where the two differ, several points write. Atomics are no races.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..backend.streams import current_handle
from ..dtypes import int32
from ..engine import direct, programs
from ..engine.evaluate import evaluate
from ..engine.programs import BoundStep
from ..errors import KernelError
from ..fusion.plan import Step
from ..graph.expr import Expr, leaf, node, spec, storage_of
from ..loops.builder import Kernel
from ..loops.language import Atomic, Block, Buffer, Loop, Store, Value, cast
from ..loops.rewrite import Cloner
from ..ops.table import FULL
from ..plugins.opened import Opened
from .compile import Built
from .source import Source

MOST = 1 << 31  # points: more have no numbers in int32
NOBODY_YET, NOBODY = MOST - 1, -1


class _Noting(Cloner):
    """Copies a kernel; what it stores in some buffers is noted in two others instead."""

    def __init__(self, kernel: Kernel, noted: Mapping[int, tuple[Buffer, Buffer]]) -> None:
        super().__init__()
        self.noted = noted
        number = Value("index", kernel.grid[0].dtype, (), 0)
        for axis, extent in enumerate(kernel.grid[1:], 1):
            number = number * extent + Value("index", extent.dtype, (), axis)
        self.number = cast(number, int32)

    def block(self, block: Block) -> Block:
        outer, self.out = self.out, []
        if not self.emitted:
            self.emit(self.number)
        for s in block:
            if isinstance(s, Value):
                self.value(s)
            elif isinstance(s, Loop):
                self.out.append(self.loop(s))
            elif isinstance(s, Store) and id(s.buffer) in self.noted:
                index = self.operand(s.index)
                when = None if s.when is None else self.operand(s.when)
                for op, buffer in zip(("min", "max"), self.noted[id(s.buffer)], strict=True):
                    self.out.append(Atomic(op, buffer, index, self.number, when))
        done, self.out = tuple(self.out), outer
        return done


def check(
    opened: Opened, source: Source, b: Built, step: BoundStep, of: Mapping[int, Expr],
    numbers: Sequence[float | int | bool],
) -> None:  # fmt: skip
    """Returns if no two points of a launch write to one place. Raises: KernelError."""
    written = [k for k in dict.fromkeys(b.tensors) if k >= 0 and k in b.stores]
    if step.empty or math.prod(step.step.grid) >= MOST or not written:
        return
    at = {k: b.tensors.index(k) for k in written}
    shadows = {k: (_buffer(f"least{k}"), _buffer(f"most{k}")) for k in written}
    noted = {id(b.kernel.buffers[at[k]]): shadows[k] for k in written}
    body = _Noting(b.kernel, noted).block(b.kernel.body)
    kept = [
        (buffer, k) for buffer, k in zip(b.kernel.buffers, b.tensors, strict=True)
        if k >= 0 and buffer.access != "w"
    ]  # fmt: skip
    buffers = [buffer for buffer, _ in kept] + [x for k in written for x in shadows[k]]
    kernel = b.kernel.with_body(body, buffers=tuple(buffers))
    leaves = [of[k] for _, k in kept]
    for k in written:
        leaves += [_shadow(of[k], NOBODY_YET), _shadow(of[k], NOBODY)]
    slots = tuple((i, 0) for i in range(len(leaves)))
    planned = Step(
        kernel, slots, (), step.step.ints, step.step.scalars, step.step.grid, step.step.why, 0
    )
    run = BoundStep(planned, len(numbers), programs.launch_of(opened, planned))
    targets = tuple(range(len(kept), len(leaves)))
    direct.launch(source.called, (run,), leaves, targets, [*numbers], None)
    for i, k in enumerate(written):
        first = len(kept) + 2 * i
        _compare(opened, source, b, step.step.grid, k, of[k], leaves[first], leaves[first + 1])


def _buffer(name: str) -> Buffer:
    return Buffer(name, int32, "rw")


def _shadow(e: Expr, value: int) -> Expr:
    """Memory with a number for each place that the strides of a tensor reach."""
    ends = [(n - 1) * s for n, s in zip(e.spec.shape, e.strides, strict=True)]
    low = sum(min(0, x) for x in ends)
    size = 1 + sum(max(0, x) for x in ends) - low
    s = spec((size,), int32, e.spec.device)
    made = node(FULL, (value,), s, ((int32,), int32))
    evaluate((made,))
    return leaf(storage_of(made), s, (1,), -low)


def _compare(
    opened: Opened, source: Source, b: Built, grid: Sequence[int], k: int, e: Expr, least: Expr,
    most: Expr,
) -> None:  # fmt: skip
    found = [_host(opened, x) for x in (least, most)]
    for place, (a, z) in enumerate(zip(*found, strict=True)):
        if a < z:
            index = _index(e, place)
            nodes = b.stores[k]
            points = " and ".join(str(_point(n, grid)) for n in (a, z))
            name = [*source.tree.args.posonlyargs, *source.tree.args.args][k].arg
            raise KernelError(
                source.shown(nodes[0], f"{points} of the grid both write to {name}{list(index)}")
            )


def _point(number: int, grid: Sequence[int]) -> tuple[int, ...]:
    """The point of a grid that a number stands for, counted from its start."""
    found = []
    for n in reversed(grid):
        number, i = divmod(number, n)
        found.append(i)
    return tuple(reversed(found))


def _host(opened: Opened, e: Expr) -> Sequence[int]:
    data = bytearray(e.spec.size * e.spec.itemsize)
    ptr, stream = storage_of(e).ptr, current_handle(e.spec.device)
    opened.backend.copy_out(memoryview(data), ptr.handle, ptr.offset, stream)
    return memoryview(data).cast("i")


def _index(e: Expr, place: int) -> tuple[int, ...]:
    """The indices of an element that lies so many places behind the lowest one."""
    found = [0] * len(e.strides)
    for d in sorted(range(len(e.strides)), key=lambda d: -abs(e.strides[d])):
        n, s = e.spec.shape[d], e.strides[d]
        if n > 1 and s:
            k, place = divmod(place, abs(s))
            found[d] = k if s > 0 else n - 1 - k
    return tuple(found)
