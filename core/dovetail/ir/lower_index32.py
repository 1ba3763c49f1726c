"""The pass of `legalize` for devices whose indices have 32 bits.

Integers of the kernel, the grid, loops, and indices into buffers become int32. A value that is
computed from these integers alone is *pure*: `backend.limits` launches nothing for which such a
value does not fit. Arithmetic modulo 2**32 gives the right index, even if an intermediate value
wraps. An operation that needs exact numbers (a comparison, a quotient) is done in int32 if its
operands are pure, else in int64, as is all that the kernel computes for its results.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..dtypes import int32, int64
from .builder import Kernel
from .language import OPERANDS, Atomic, Block, Loop, Store, Value, cast, const, walk
from .rewrite import Cloner
from .target import Capabilities

_MODULAR = ("add", "sub", "mul", "neg", "and", "or", "xor", "not", "where")
_COMPARISONS = ("lt", "le", "eq", "ne")


def lower_index_width(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return a kernel whose integers and indices have the device's index width.

    A companion with 64-bit indices asks for int64: it gets kernels that were made for another
    device.
    """
    if kernel.index.bits == capabilities.index_bits:
        return kernel
    return _IndexCloner(kernel).clone_kernel(kernel)


class _IndexUses:
    """The int64 values of a kernel that are pure, wanted in 32 bits, and wanted in 64."""

    def __init__(self, kernel: Kernel) -> None:
        self.ints = frozenset(kernel.ints)
        self.pure_ids: set[int] = set()
        self.narrow_ids: set[int] = set()
        self.wide_ids: set[int] = set()
        for s in walk(kernel.body):
            if isinstance(s, Value) and s.dtype is int64 and self._is_computed_from_pure(s):
                self.pure_ids.add(id(s))
        self._record_block(kernel.body)

    def is_pure(self, v: Value) -> bool:
        """Return True if a value depends on integers of the launch, the grid and loops alone."""
        if v.op == "const":
            return v.dtype is int64 and int32.min <= v.number <= int32.max
        return _is_int(v, self.ints) or id(v) in self.pure_ids

    def _is_computed_from_pure(self, v: Value) -> bool:
        """Return True if 32-bit arithmetic on pure operands computes the int64 value exactly."""
        if v.op == "cast":
            return v.args[0].dtype.kind == "b"
        if v.op in ("shl", "shr"):
            amount = v.args[1]
            return self.is_pure(v.args[0]) and amount.op == "const" and 0 <= amount.number < 32
        args = v.args[v.op == "where" :]
        return v.op in (*_MODULAR, "quo", "rem") and all(map(self.is_pure, args))

    def is_computed_narrow(self, v: Value) -> bool:
        """Return True if a value is needed in 32 bits, and is computed (not only cast) in them."""
        if id(v) not in self.narrow_ids:
            return False
        if v.op == "cast":
            return v.args[0].dtype.kind != "f"
        return v.op in _MODULAR or id(v) in self.pure_ids

    def is_pure_comparison(self, v: Value) -> bool:
        """Return True if a value compares pure values, which is done in 32 bits."""
        return v.op in _COMPARISONS and all(map(self.is_pure, v.args))

    def _record_block(self, block: Block) -> None:
        """Record in `narrow_ids` and `wide_ids` the widths that a block needs, users first."""
        for s in reversed(block):
            if isinstance(s, Value):
                self._record_value(s)
            elif isinstance(s, Loop):
                _add_int64_ids(self.wide_ids, s.update)
                self._record_block(s.body)
                _add_int64_ids(self.narrow_ids, (s.start, s.stop))
                _add_int64_ids(self.wide_ids, s.init)
            else:
                _add_int64_ids(self.narrow_ids, (s.index,))
                _add_int64_ids(self.wide_ids, (s.value,))

    def _record_value(self, v: Value) -> None:
        """Record the widths in which the int64 arguments of a value are needed."""
        if v.dtype is int64 and id(v) in self.narrow_ids and not self.is_computed_narrow(v):
            self.wide_ids.add(id(v))
        if v.op == "load" or self.is_pure_comparison(v):
            _add_int64_ids(self.narrow_ids, v.args)
            return
        if self.is_computed_narrow(v):
            _add_int64_ids(self.wide_ids if v.op == "cast" else self.narrow_ids, v.args)
        if v.dtype is not int64 or id(v) in self.wide_ids:
            _add_int64_ids(self.wide_ids, v.args)


def _add_int64_ids(ids: set[int], values: Iterable[Value]) -> None:
    """Add the ids of the int64 values to `ids`."""
    ids.update(id(v) for v in values if v.dtype is int64)


class _IndexCloner(Cloner):
    """A cloner that gives integers of 64 bits 32, and those of 32 bits 64.

    `operand` gives a value in its old width, `index_operand` in the new one. To int32, values that
    are computed from the kernel's integers are computed in the widths in which they are wanted.
    """

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.ints = frozenset(kernel.ints)
        self.uses = _IndexUses(kernel) if kernel.index is int64 else None
        self.index = int64 if self.uses is None else int32
        self.narrowed: dict[int, Value] = {}  # id of an old value -> the value in 32 bits

    def clone_kernel(self, kernel: Kernel) -> Kernel:
        """Return the kernel with indices, bounds and extents in the new width."""
        grid = tuple(self.index_operand(n) for n in kernel.grid)
        return kernel.with_body(self.block(kernel.body), grid=grid, index=self.index)

    def index_operand(self, v: Value) -> Value:
        """Return an integer of the old kernel as an index, a bound or an extent of the new one."""
        if id(v) in self.narrowed:
            return self.narrowed[id(v)]
        if v.op == "const":
            return const(_wrap_int32(int(v.number)), self.index)
        return self.index_value(v) if _is_int(v, self.ints) else cast(self.operand(v), self.index)

    def index_value(self, v: Value) -> Value:
        """Return an integer of the launch, of the grid or of a loop."""
        return self.replacements[v] if v.op == "loopvar" else Value(v.op, self.index, (), v.attr)

    def operand(self, v: Value) -> Value:
        """Return the replacement of an operand in its old width; indices are cast back to it."""
        return cast(self.index_value(v), v.dtype) if _is_int(v, self.ints) else super().operand(v)

    def value(self, v: Value) -> None:
        """Emit a value's statement in its old width, in 32 bits or in both, as its users need."""
        args, uses = self.operands(v.args), self.uses
        if uses is not None:
            if uses.is_computed_narrow(v):
                self.narrowed[id(v)] = self._compute_in_32_bits(v)
                self.emit(self.narrowed[id(v)])
            if uses.is_pure_comparison(v):
                args = tuple(map(self.index_operand, v.args))
            elif v.dtype is int64 and id(v) not in uses.wide_ids:
                return
        if v.op == "load":
            args = (self.index_operand(v.index), *args[1:])
        self.replacements[v] = self.copy_with_args(v, args)
        self.emit(self.replacements[v])

    def _compute_in_32_bits(self, v: Value) -> Value:
        """Return a new value: the operation in int32."""
        if v.op == "cast":
            return cast(self.operand(v.args[0]), int32)
        args = (self.index_operand(a) if a.dtype is int64 else self.operand(a) for a in v.args)
        return Value(v.op, int32, tuple(args))

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        """Return the copy of a store or an atomic, whose index has the new width."""
        new = super().effect(s)
        new.index = self.index_operand(s.index)
        self.emit(new.index)
        self.emit(new.value)
        return new

    def copy_loop_head(self, old: Loop) -> Loop:
        """Return the copy of a loop without its body; its bounds have the new width."""
        start, stop = self.index_operand(old.start), self.index_operand(old.stop)
        init = self.operands(old.init)
        for v in (start, stop, *init):
            self.emit(v)
        return Loop(old.kind, start, stop, old.combine, init)

    def loop(self, old: Loop) -> Loop:
        """Return the copy of a loop; casts that its updates need are added to its body."""
        new = super().loop(old)
        for v in new.update:  # a loop's variable, cast
            if v.op not in OPERANDS and v not in self.emitted:
                self.emitted.add(v)
                new.body = (*new.body, v)
        return new


def _is_int(v: Value, ints: frozenset[str]) -> bool:
    """Return True if a value is a grid index, a loop variable or an integer of the launch."""
    return v.op in ("index", "loopvar") or (v.op == "param" and v.name in ints)


def _wrap_int32(n: int) -> int:
    """Return `n` modulo 2**32, as a signed 32-bit number."""
    return (n - int32.min) % (1 << 32) + int32.min
