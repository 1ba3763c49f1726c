"""A pass of `legalize` for atomics that a device lacks.

There may be none of 64 bits. Where numbers are words, a carry gets lost between two words of 32
bits, or into a neighbour within one. A kernel with such an atomic does all of its points in one, in
order, so that it may load, compute and store.
"""

from __future__ import annotations

from .builder import Kernel
from .language import (
    Atomic,
    Buffer,
    Loop,
    Store,
    Value,
    binary,
    const,
    load,
    walk,
    where,
)
from .rewrite import Cloner
from .target import Capabilities


def serialize_carrying_atomics(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return a kernel of one point whose loops walk the grid; the kernel if it lacks no atomic."""
    sizes = {1, 2} if capabilities.storage_bits == 32 else set()
    if not capabilities.int64:
        sizes.add(8)
    lacks_wide = capabilities.int64 and capabilities.atomic_bits == 32
    lacking = {
        s
        for s in walk(kernel.body)
        if isinstance(s, Atomic)
        and ((lacks_wide and s.buffer.dtype.itemsize == 8) or _carries(s, sizes))
    }
    targets = {s.buffer for s in lacking}
    if not targets:
        return kernel
    buffers = {b: Buffer(b.name, b.dtype, "rw") for b in targets}
    loops = [Loop("fold", const(0, kernel.index), n) for n in kernel.grid]
    cloner = _SequentialCloner(buffers, [loop.var for loop in loops], lacking)
    body = cloner.block(kernel.body)
    for loop in reversed(loops):
        loop.set_body(body)
        body = (loop,)
    parameters = tuple(buffers.get(b, b) for b in kernel.buffers)
    return kernel.with_body(body, buffers=parameters, grid=())


def _carries(s: Atomic, sizes: set[int]) -> bool:
    """Return True for an atomic on elements of these sizes whose bits depend on each other."""
    return s.buffer.dtype.itemsize in sizes and s.op in ("add", "min", "max")


class _SequentialCloner(Cloner):
    """A cloner that runs the iterations of a kernel one after the other."""

    def __init__(
        self, buffers: dict[Buffer, Buffer], points: list[Value], lacking: set[Atomic]
    ) -> None:
        super().__init__(buffers)
        self.points, self.lacking = points, lacking

    def operand(self, v: Value) -> Value:
        """Return the loop variable that walks an axis for a grid index, else the replacement."""
        return self.points[v.axis] if v.op == "index" else super().operand(v)

    def copy_loop_head(self, old: Loop) -> Loop:
        """Return the copy of a loop without its body; a map becomes a fold."""
        new = super().copy_loop_head(old)
        new.kind = "fold" if old.kind == "map" else old.kind
        return new

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        """Return an effect's copy; a lacking atomic becomes a load, an operation and a store."""
        new = super().effect(s)
        if isinstance(s, Store) or s not in self.lacking:
            return new
        current = load(new.buffer, new.index, new.when)
        a, b = (current, new.value) if s.op == "max" else (new.value, current)
        if s.op in ("min", "max"):
            value = where(binary("lt", a, b), new.value, current)
        else:
            value = binary(s.op, current, new.value)
        self.emit(value)
        return Store(new.buffer, new.index, value, new.when)
