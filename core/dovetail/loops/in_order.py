"""A pass of `legalize` for atomics that a device has no operation for, because numbers are words.

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


def carries_in_order(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """A kernel of one point, whose loops do those of the grid; the kernel where nothing carries."""
    sizes = {1, 2} if capabilities.storage_bits == 32 else set()
    if not capabilities.int64:
        sizes.add(8)
    found = {s.buffer for s in walk(kernel.body) if _carries(s, sizes) and isinstance(s, Atomic)}
    if not found:
        return kernel
    buffers = {b: Buffer(b.name, b.dtype, "rw") for b in found}
    loops = [Loop("fold", const(0, kernel.index), n) for n in kernel.grid]
    cloner = _InOrder(buffers, [loop.var for loop in loops], sizes)
    body = cloner.block(kernel.body)
    for loop in reversed(loops):
        loop.body, loop.effects = body, tuple(s for s in body if not isinstance(s, Value))
        body = (loop,)
    held = tuple(buffers.get(b, b) for b in kernel.buffers)
    return kernel.with_body(body, buffers=held, grid=())


def _carries(s: Statement, sizes: set[int]) -> bool:
    """Whether it is an atomic whose bits depend on each other, on elements of such sizes."""
    return (
        isinstance(s, Atomic) and s.buffer.dtype.itemsize in sizes and s.op in ("add", "min", "max")
    )


class _InOrder(Cloner):
    """Copies a kernel, one iteration after the other."""

    def __init__(self, buffers: dict[Buffer, Buffer], points: list[Value], sizes: set[int]) -> None:
        super().__init__(buffers)
        self.points, self.sizes = points, sizes

    def operand(self, v: Value) -> Value:
        return self.points[v.axis] if v.op == "index" else super().operand(v)

    def head(self, old: Loop) -> Loop:
        new = super().head(old)
        new.kind = "fold" if old.kind == "map" else old.kind
        return new

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        new = super().effect(s)
        if isinstance(s, Store) or not _carries(s, self.sizes):
            return new
        held = load(new.buffer, new.index, new.when)
        a, b = (held, new.value) if s.op == "max" else (new.value, held)
        value = held + new.value if s.op == "add" else where(binary("lt", a, b), new.value, held)
        self.emit(value)
        return Store(new.buffer, new.index, value, new.when)
