"""A pass of `legalize` for memory that is read and written in words of 32 bits alone.

Elements of one and two bytes lie in uint32 words, as they do anyway. A load shifts one out. A store
clears its bits by an atomic "and" and sets them by an "or": what others write to the same word
meanwhile stays, and no point reads what another one writes.
"""

from __future__ import annotations

from ..dtypes import DType, bool_, uint8, uint16, uint32
from .builder import Kernel
from .language import Atomic, Buffer, Store, Value, cast, const, load, ne
from .rewrite import Cloner
from .target import Capabilities


def elements_in_words(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """A kernel without buffers of one- and two-byte elements, which knows the one `before` it."""
    narrow = [b for b in kernel.buffers if b.dtype.itemsize < 4]
    if capabilities.storage_bits == 8 or not narrow:
        return kernel
    buffers = {
        b: Buffer(b.name, uint32, "r" if b.access == "r" else "rw")  # beside what it writes
        for b in narrow
    }
    return kernel.with_body(
        _Packed(buffers).block(kernel.body),
        buffers=tuple(buffers.get(b, b) for b in kernel.buffers),
        before=kernel,
    )


class _Packed(Cloner):
    """Has elements of `buffers` in words."""

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op != "load" or v.buffer not in self.buffers:
            return None
        word, shift = _place(v.dtype, args[0])
        bits = load(self.buffers[v.buffer], word, *args[1:]) >> shift
        return ne(bits & 0xFF, 0) if v.dtype is bool_ else cast(bits, v.dtype)

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        new = super().effect(s)
        if s.buffer not in self.buffers:
            return new
        d = s.buffer.dtype
        word, shift = _place(d, new.index)
        held = uint8 if d.itemsize == 1 else uint16
        bits = cast(new.value if d is bool_ else cast(new.value, held), uint32) << shift
        others = ~(const((1 << d.bits) - 1, uint32) << shift)
        parts = [("and", others), ("or", bits)]
        if isinstance(new, Atomic):
            parts = [("and", bits | others) if new.op == "and" else ("or", bits)]
        made = [Atomic(op, new.buffer, word, value, new.when) for op, value in parts]
        for a in made:
            self.emit(a.index)
            self.emit(a.value)
        self.out += made[:-1]
        return made[-1]


def _place(d: DType, index: Value) -> tuple[Value, Value]:
    """Which word an element lies in, and by how many bits it is shifted there."""
    count = 2 if d.itemsize == 1 else 1  # bits of the index that are within a word
    within = cast(index & ((1 << count) - 1), uint32)
    return index >> count, within << (5 - count)
