"""A pass of `legalize` that expresses complex values as two floats each.

In memory a complex64 is one word of 64 bits, its real part in the low half: one load or store moves
it whole, contiguous where the buffer is, and its halves are shifted apart. A complex128 is two
float64 elements side by side.
"""

from __future__ import annotations

from ..dtypes import COMPLEX, DType, complex64, float32, float64, uint32, uint64
from .builder import Kernel
from .language import (
    Atomic,
    Buffer,
    Loop,
    Statement,
    Store,
    Value,
    bitcast,
    cast,
    complex_product_parts,
    eq,
    fma,
    load,
    ne,
    walk,
    where,
)
from .rewrite import PartsCloner
from .target import Capabilities

_STORAGE_DTYPES = {
    d: uint64 if d is complex64 else float64 for d in COMPLEX
}  # dtypes of the buffers


def lower_complex_to_pairs(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return the kernel with each complex value as a pair of floats; `capabilities` is unused."""
    if not any(_is_complex(s) for s in walk(kernel.body)):
        return kernel
    buffers = {
        b: Buffer(b.name, _STORAGE_DTYPES[b.dtype], b.access)
        for b in kernel.buffers
        if b.dtype in _STORAGE_DTYPES
    }
    changed = tuple(buffers.get(b, b) for b in kernel.buffers)
    return kernel.with_body(_PairCloner(buffers).block(kernel.body), buffers=changed)


def _is_complex(s: Statement) -> bool:
    """Return True if a statement has a complex value or result."""
    if isinstance(s, Loop):
        return any(v.dtype.kind == "c" for v in s.results)
    return (s if isinstance(s, Value) else s.value).dtype.kind == "c"


class _PairCloner(PartsCloner):
    """A cloner whose `parts` has the two floats of each complex value."""

    def __init__(self, buffers: dict[Buffer, Buffer]) -> None:
        super().__init__(buffers)
        self.words: dict[int, Value] = {}  # of complex64 values that were loaded

    def part_dtype(self, d: DType) -> DType | None:
        """Return the dtype of the parts of a complex number, or None."""
        return d.part if d.kind == "c" else None

    def value(self, v: Value) -> None:
        """Emit and store the copy of a value's statement, or those of its parts."""
        if v.dtype.kind == "c":
            self.parts[id(v)] = own = (
                self._load_parts(v) if v.op == "load" else self._operation_parts(v)
            )
            for part in own:
                self.emit(part)
        elif any(a.dtype.kind == "c" for a in v.args):
            self.replacements[v] = self._real_result(v)
            self.emit(self.replacements[v])
        else:
            super().value(v)

    def _load_parts(self, v: Value) -> tuple[Value, Value]:
        """Return the two parts of a loaded complex value; remember the word of a complex64."""
        buffer, (index, *when) = self.buffers[v.buffer], self.operands(v.args)
        if v.dtype is complex64:
            self.words[id(v)] = word = load(buffer, index, *when)
            halves = (cast(w, uint32) for w in (word, word >> 32))
            re, im = (bitcast(half, float32) for half in halves)
            return re, im
        first, second = self.part_indices(index)
        return load(buffer, first, *when), load(buffer, second, *when)

    def _operation_parts(self, v: Value) -> tuple[Value, Value]:
        """Return the parts of an operation's result."""
        if v.op == "where":
            c, a, b, x, y = self.operands(v.args)
            return where(c, a, x), where(c, b, y)
        if v.op == "complex":
            a, b = self.operands(v.args)
            return a, b
        if v.op in ("cast", "neg"):
            a, b = self.operands(v.args)
            return (-a, -b) if v.op == "neg" else (cast(a, v.dtype.part), cast(b, v.dtype.part))
        if v.op == "fma":
            a, b, c, d, e, f = self.operands(v.args)
            return fma(-b, d, fma(a, c, e)), fma(b, c, fma(a, d, f))
        a, b, c, d = self.operands(v.args)
        if v.op == "mul":
            return complex_product_parts(a, b, c, d)
        return (a + c, b + d) if v.op == "add" else (a - c, b - d)

    def _real_result(self, v: Value) -> Value:
        """Return a real result of complex operands: a part, or a comparison."""
        if v.op in ("real", "imag"):
            return self.parts[id(v.args[0])][v.op == "imag"]
        a, b, c, d = self.operands(v.args)
        return eq(a, c) & eq(b, d) if v.op == "eq" else ne(a, c) | ne(b, d)

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        """Return a store's copy; for complex128 append the first half's, return the second's."""
        if s.value.dtype.kind != "c":
            return super().effect(s)
        buffer, index = self.buffers[s.buffer], self.operand(s.index)
        when = None if s.when is None else self.operand(s.when)
        if s.value.dtype is complex64:
            return Store(buffer, index, self._memory_word(s.value), when)
        re, im = self.parts[id(s.value)]
        first, second = self.part_indices(index)
        self.statements.append(Store(buffer, first, re, when))
        return Store(buffer, second, im, when)

    def _memory_word(self, v: Value) -> Value:
        """Return a complex64 as the 64-bit word that is stored in memory."""
        if id(v) in self.words:
            return self.words[id(v)]
        low, high = (cast(bitcast(p, uint32), uint64) for p in self.parts[id(v)])
        word = low | (high << 32)
        self.emit(word)
        return word

    def copy_loop_head(self, old: Loop) -> Loop:
        """Return the copy of a loop without its body; a complex product gets its own combine."""
        new = super().copy_loop_head(old)
        if old.combine == "mul" and old.results[0].dtype.kind == "c":
            new.combine = "complex_mul"
        return new
