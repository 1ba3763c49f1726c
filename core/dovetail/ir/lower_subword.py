"""A pass of `legalize` for memory that is only read and written in words of 32 bits.

Elements of one and two bytes lie in uint32 words, at the addresses that they always have. A load
shifts one out. A store clears its bits by an atomic "and" and sets them by an "or": other points
may write to the same word at the same time, and no point reads what another one writes.
"""

from __future__ import annotations

from ..dtypes import DType, bool_, uint8, uint16, uint32
from .builder import Kernel
from .language import Atomic, Buffer, Store, Value, cast, const, load, ne
from .rewrite import Cloner
from .target import Capabilities


def lower_subword_elements(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return a kernel without buffers of one- and two-byte elements.

    The field `before` of the result is the given kernel.
    """
    narrow = [b for b in kernel.buffers if b.dtype.itemsize < 4]
    if capabilities.storage_bits == 8 or not narrow:
        return kernel
    buffers = {
        b: Buffer(b.name, uint32, "r" if b.access == "r" else "rw")  # a store keeps its neighbours
        for b in narrow
    }
    return kernel.with_body(
        _WordCloner(buffers).block(kernel.body),
        buffers=tuple(buffers.get(b, b) for b in kernel.buffers),
        before=kernel,
    )


class _WordCloner(Cloner):
    """A cloner that accesses elements of `buffers` in words."""

    def rewrite_value(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        """Replace a load of a narrow element by a shift of its word; None for other values."""
        if v.op != "load" or v.buffer not in self.buffers:
            return None
        word, shift = _word_and_shift(v.dtype, args[0])
        bits = load(self.buffers[v.buffer], word, *args[1:]) >> shift
        return ne(bits & 0xFF, 0) if v.dtype is bool_ else cast(bits, v.dtype)

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        """Replace a narrow effect by atomics on words; append all but the last, return the last."""
        new = super().effect(s)
        if s.buffer not in self.buffers:
            return new
        d = s.buffer.dtype
        word, shift = _word_and_shift(d, new.index)
        unsigned = uint8 if d.itemsize == 1 else uint16
        bits = cast(new.value if d is bool_ else cast(new.value, unsigned), uint32) << shift
        other_bits = ~(const((1 << d.bits) - 1, uint32) << shift)
        ops_and_values = [("and", other_bits), ("or", bits)]
        if isinstance(new, Atomic):
            ops_and_values = [("and", bits | other_bits) if new.op == "and" else ("or", bits)]
        atomics = [Atomic(op, new.buffer, word, value, new.when) for op, value in ops_and_values]
        for a in atomics:
            self.emit(a.index)
            self.emit(a.value)
        self.statements += atomics[:-1]
        return atomics[-1]


def _word_and_shift(d: DType, index: Value) -> tuple[Value, Value]:
    """Return the word that an element lies in, and its shift there in bits."""
    count = 2 if d.itemsize == 1 else 1  # bits of the index that are within a word
    within = cast(index & ((1 << count) - 1), uint32)
    return index >> count, within << (5 - count)
