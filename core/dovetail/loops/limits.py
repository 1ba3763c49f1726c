"""Passes of `legalize` for devices that bind buffers, or launch grids, within limits.

What a launch cannot be told by its offsets and its grid comes as integers, after those that the
kernel has: `backend.limits` gives them.
"""

from __future__ import annotations

from collections.abc import Sequence

from .analysis import grid_index
from .builder import Kernel
from .language import Atomic, Store, Value, quo, rem
from .rewrite import Cloner, unused_names
from .target import Capabilities


def offsets_as_indices(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """A kernel whose buffers begin at aligned offsets, and at an index: an integer for each."""
    if capabilities.offset_alignment == 1:
        return kernel
    names = unused_names(kernel, [f"at{k}" for k in range(len(kernel.buffers))])
    starts = [Value("param", kernel.index, (), n) for n in names]
    cloner = _Starting({b.name: s for b, s in zip(kernel.buffers, starts, strict=True)})
    return kernel.with_body(cloner.block(kernel.body), ints=(*kernel.ints, *names))


class _Starting(Cloner):
    """Adds to each index where the buffer begins."""

    def __init__(self, starts: dict[str, Value]) -> None:
        super().__init__()
        self.starts = starts

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op != "load":
            return None
        return self.again(v, (args[0] + self.starts[v.buffer.name], *args[1:]))

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        new = super().effect(s)
        new.index = new.index + self.starts[s.buffer.name]
        self.emit(new.index)
        return new


def grids_in_parts(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """A kernel of which a launch does a part of the grid: from a first point on, so many of them.

    Both are integers, for each axis. The first axes of more than the device has become one.
    """
    count = min(len(capabilities.max_grid), len(kernel.grid))
    if not count:
        return kernel
    firsts = unused_names(kernel, [f"first{k}" for k in range(count)])
    points = unused_names(kernel, [f"points{k}" for k in range(count)])
    parts = [grid_index(k, kernel.index) + Value("param", kernel.index, (), n)
             for k, n in enumerate(firsts)]  # fmt: skip
    folded = kernel.grid[: len(kernel.grid) - count + 1]
    cloner = _Pointed([*_unfolded(parts[0], folded), *parts[1:]])
    for v in cloner.points:
        cloner.emit(v)
    body = (*cloner.out, *cloner.block(kernel.body))
    grid = tuple(Value("param", kernel.index, (), n) for n in points)
    return kernel.with_body(body, ints=(*kernel.ints, *firsts, *points), grid=grid)


def _unfolded(index: Value, extents: Sequence[Value]) -> list[Value]:
    """The indices along axes of these extents, of which one has been made."""
    found: list[Value] = []
    for n in reversed(extents[1:]):
        found.append(rem(index, n))
        index = quo(index, n)
    return [index, *reversed(found)]


class _Pointed(Cloner):
    """Puts other values in the place of the grid's indices."""

    def __init__(self, points: list[Value]) -> None:
        super().__init__()
        self.points = points

    def operand(self, v: Value) -> Value:
        return self.points[v.axis] if v.op == "index" else super().operand(v)
