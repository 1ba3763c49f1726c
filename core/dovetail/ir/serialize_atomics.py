"""A pass of `legalize` for atomics that a device lacks because its numbers are words.

A carry gets lost between two words of 32 bits, or into a neighbour within one. A kernel with such
an atomic does all of its points in one, in order, so that it may load, compute and store.
"""

from __future__ import annotations

from .builder import Kernel
from .language import (
    Atomic,
    Buffer,
    Loop,
    Statement,
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
    """Return a kernel of one point whose loops walk the grid; the kernel if nothing carries."""
    sizes = {1, 2} if capabilities.storage_bits == 32 else set()
    if not capabilities.int64:
        sizes.add(8)
    targets = {
        s.buffer
        for s in walk(kernel.body)
        if _is_carrying_atomic(s, sizes) and isinstance(s, Atomic)
    }
    if not targets:
        return kernel
    buffers = {b: Buffer(b.name, b.dtype, "rw") for b in targets}
    loops = [Loop("fold", const(0, kernel.index), n) for n in kernel.grid]
    cloner = _SequentialCloner(buffers, [loop.var for loop in loops], sizes)
    body = cloner.block(kernel.body)
    for loop in reversed(loops):
        loop.body, loop.effects = body, tuple(s for s in body if not isinstance(s, Value))
        body = (loop,)
    parameters = tuple(buffers.get(b, b) for b in kernel.buffers)
    return kernel.with_body(body, buffers=parameters, grid=())


def _is_carrying_atomic(s: Statement, sizes: set[int]) -> bool:
    """Return True for an atomic on elements of these sizes whose bits depend on each other."""
    return (
        isinstance(s, Atomic) and s.buffer.dtype.itemsize in sizes and s.op in ("add", "min", "max")
    )


class _SequentialCloner(Cloner):
    """A cloner that runs the iterations of a kernel one after the other."""

    def __init__(self, buffers: dict[Buffer, Buffer], points: list[Value], sizes: set[int]) -> None:
        super().__init__(buffers)
        self.points, self.sizes = points, sizes

    def operand(self, v: Value) -> Value:
        """Return the loop variable that walks an axis for a grid index, else the replacement."""
        return self.points[v.axis] if v.op == "index" else super().operand(v)

    def copy_loop_head(self, old: Loop) -> Loop:
        """Return the copy of a loop without its body; a map becomes a fold."""
        new = super().copy_loop_head(old)
        new.kind = "fold" if old.kind == "map" else old.kind
        return new

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        """Return an effect's copy; a carrying atomic becomes a load, an operation and a store."""
        new = super().effect(s)
        if isinstance(s, Store) or not _is_carrying_atomic(s, self.sizes):
            return new
        current = load(new.buffer, new.index, new.when)
        a, b = (current, new.value) if s.op == "max" else (new.value, current)
        value = (
            current + new.value if s.op == "add" else where(binary("lt", a, b), new.value, current)
        )
        self.emit(value)
        return Store(new.buffer, new.index, value, new.when)
