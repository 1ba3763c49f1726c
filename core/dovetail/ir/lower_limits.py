"""Passes of `legalize` for devices with limits on the offsets of buffers or on launch grids.

Offsets and points that do not fit a launch come as integers, after those that the kernel has:
`backend.limits` gives them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import DType
from .analysis import grid_index
from .builder import Kernel
from .language import Atomic, Buffer, Store, Value, const, quo, rem
from .rewrite import Cloner, fresh_names
from .target import Capabilities


def lower_buffer_offsets(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return a kernel whose buffers begin at aligned offsets plus an index, a new integer.

    With `offset_params` each begins at its whole allocation.
    """
    if capabilities.offset_alignment == 1 and not capabilities.offset_params:
        return kernel
    names = fresh_names(kernel, [f"at{k}" for k in range(len(kernel.buffers))])
    starts = [Value("param", kernel.index, (), n) for n in names]
    cloner = _OffsetCloner({b.name: s for b, s in zip(kernel.buffers, starts, strict=True)})
    units = [b.dtype.itemsize for b in kernel.buffers]
    offset_ints = tuple(zip(names, units, strict=True)) if capabilities.offset_params else ()
    return kernel.with_body(
        cloner.block(kernel.body), ints=(*kernel.ints, *names), offset_ints=offset_ints
    )


def append_buffer(kernel: Kernel, name: str, dtype: DType) -> tuple[Kernel, Buffer, Value]:
    """Return a legalised kernel with one buffer more, the buffer, and its first element's index.

    The index is a new integer, or 0 on devices without `offset_params`.
    """
    buffer = Buffer(fresh_names(kernel, [name])[0], dtype, "rw")
    kernel = kernel.with_body(kernel.body, buffers=(*kernel.buffers, buffer))
    if not kernel.offset_ints:
        return kernel, buffer, const(0, kernel.index)
    (start,) = fresh_names(kernel, [f"at{len(kernel.offset_ints)}"])
    offset_ints = (*kernel.offset_ints, (start, dtype.itemsize))
    ints = (*kernel.ints, start)
    kernel = kernel.with_body(kernel.body, ints=ints, offset_ints=offset_ints)
    return kernel, buffer, Value("param", kernel.index, (), start)


class _OffsetCloner(Cloner):
    """A cloner that adds the buffer's first element to each index."""

    def __init__(self, starts: dict[str, Value]) -> None:
        super().__init__()
        self.starts = starts

    def rewrite_value(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        """Return a load whose index starts at the buffer's first element; None for other values."""
        if v.op != "load":
            return None
        return self.copy_with_args(v, (args[0] + self.starts[v.buffer.name], *args[1:]))

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        """Return the copy of an effect whose index starts at the buffer's first element."""
        new = super().effect(s)
        new.index = new.index + self.starts[s.buffer.name]
        self.emit(new.index)
        return new


def split_grid(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return a kernel of which a launch does a part of the grid.

    The first point and the count of points are integers, for each axis. If the grid has more axes
    than the device, the first ones become one.
    """
    count = min(len(capabilities.max_grid), len(kernel.grid))
    if not count:
        return kernel
    firsts = fresh_names(kernel, [f"first{k}" for k in range(count)])
    points = fresh_names(kernel, [f"points{k}" for k in range(count)])
    indices = [
        grid_index(k, kernel.index) + Value("param", kernel.index, (), n)
        for k, n in enumerate(firsts)
    ]
    first_extents = kernel.grid[: len(kernel.grid) - count + 1]
    cloner = _GridCloner([*_unfold_index(indices[0], first_extents), *indices[1:]])
    for v in cloner.points:
        cloner.emit(v)
    body = (*cloner.statements, *cloner.block(kernel.body))
    grid = tuple(Value("param", kernel.index, (), n) for n in points)
    return kernel.with_body(body, ints=(*kernel.ints, *firsts, *points), grid=grid)


def _unfold_index(index: Value, extents: Sequence[Value]) -> list[Value]:
    """Return the indices along axes of these extents, from the index along their joint axis."""
    inner: list[Value] = []
    for n in reversed(extents[1:]):
        inner.append(rem(index, n))
        index = quo(index, n)
    return [index, *reversed(inner)]


class _GridCloner(Cloner):
    """A cloner that replaces the grid's indices."""

    def __init__(self, points: list[Value]) -> None:
        super().__init__()
        self.points = points

    def operand(self, v: Value) -> Value:
        """Return the point along an axis for an index of the grid, else the replacement."""
        return self.points[v.axis] if v.op == "index" else super().operand(v)
