"""The pass of `legalize` for devices whose indices have 32 bits.

Integers of the kernel, the grid, loops, and indices into buffers become int32. What is made of
these integers alone is *pure*: nothing is launched where such a value does not fit
(`backend.limits`). Arithmetic modulo 2**32 gives the right index, whatever comes in between. What
has to know whole numbers (a comparison, a quotient) is done in int32 where it is of pure values,
else in int64, as all is that the kernel computes for its results.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..dtypes import DType, int32, int64
from .builder import Kernel
from .language import OPERANDS, Atomic, Block, Loop, Store, Value, cast, const, walk
from .rewrite import Cloner
from .target import Capabilities

_MODULAR = ("add", "sub", "mul", "neg", "and", "or", "xor", "not", "where")
_COMPARED = ("lt", "le", "eq", "ne")


def indices_in_bits(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """A kernel whose integers, grid, loops and indices are int32; int64 for a device with those.

    The latter is asked of a companion, which gets what was meant for another device.
    """
    if kernel.index.bits == capabilities.index_bits:
        return kernel
    cloner = _Narrowing(kernel) if kernel.index is int64 else _Resizing(kernel, int64)
    return cloner.kernel(kernel)


class _Uses:
    """Which int64 values of a kernel are pure, which are wanted in 32 bits, and which in 64."""

    def __init__(self, kernel: Kernel) -> None:
        self.ints = frozenset(kernel.ints)
        self.pure: set[int] = set()
        self.narrow: set[int] = set()
        self.wide: set[int] = set()
        for s in walk(kernel.body):
            if isinstance(s, Value) and s.dtype is int64 and self._made_pure(s):
                self.pure.add(id(s))
        self._block(kernel.body)

    def is_pure(self, v: Value) -> bool:
        """Whether it is made of integers of the launch, of the grid and of loops alone."""
        if v.op == "const":
            return v.dtype is int64 and int32.min <= v.number <= int32.max
        return _is_int(v, self.ints) or id(v) in self.pure

    def _made_pure(self, v: Value) -> bool:
        if v.op == "cast":
            return v.args[0].dtype.kind == "b"
        if v.op in ("shl", "shr"):
            amount = v.args[1]
            return self.is_pure(v.args[0]) and amount.op == "const" and 0 <= amount.number < 32
        args = v.args[v.op == "where" :]
        return v.op in (*_MODULAR, "quo", "rem") and all(map(self.is_pure, args))

    def narrows(self, v: Value) -> bool:
        """Whether it is wanted in 32 bits, and computed so: not only cast."""
        if id(v) not in self.narrow:
            return False
        if v.op == "cast":
            return v.args[0].dtype.kind != "f"
        return v.op in _MODULAR or id(v) in self.pure

    def compares(self, v: Value) -> bool:
        """Whether it compares pure values, which is done in 32 bits."""
        return v.op in _COMPARED and all(map(self.is_pure, v.args))

    def _block(self, block: Block) -> None:
        """Notes what statements want, each before those that compute it."""
        for s in reversed(block):
            if isinstance(s, Value):
                self._value(s)
            elif isinstance(s, Loop):
                _want(self.wide, s.update)
                self._block(s.body)
                _want(self.narrow, (s.start, s.stop))
                _want(self.wide, s.init)
            else:
                _want(self.narrow, (s.index,))
                _want(self.wide, (s.value,))

    def _value(self, v: Value) -> None:
        if v.dtype is int64 and id(v) in self.narrow and not self.narrows(v):
            self.wide.add(id(v))
        if v.op == "load" or self.compares(v):
            _want(self.narrow, v.args)
            return
        if self.narrows(v):
            _want(self.wide if v.op == "cast" else self.narrow, v.args)
        if v.dtype is not int64 or id(v) in self.wide:
            _want(self.wide, v.args)


def _want(where: set[int], values: Iterable[Value]) -> None:
    where.update(id(v) for v in values if v.dtype is int64)


class _Resizing(Cloner):
    """Has the kernel's integers in other bits; `operand` has them in those that they had."""

    def __init__(self, kernel: Kernel, index: DType) -> None:
        super().__init__()
        self.index, self.ints = index, frozenset(kernel.ints)

    def kernel(self, kernel: Kernel) -> Kernel:
        """The new kernel."""
        grid = tuple(self.place(n) for n in kernel.grid)
        return kernel.with_body(self.block(kernel.body), grid=grid, index=self.index)

    def place(self, v: Value) -> Value:
        """What an integer of the old kernel is as an index, a bound or an extent."""
        if v.op == "const":
            return const(_wrapped(int(v.number)), self.index)
        return self.int(v) if _is_int(v, self.ints) else cast(self.operand(v), self.index)

    def int(self, v: Value) -> Value:
        """An integer of the launch, of the grid or of a loop."""
        return self.new[v] if v.op == "loopvar" else Value(v.op, self.index, (), v.attr)

    def operand(self, v: Value) -> Value:
        return cast(self.int(v), v.dtype) if _is_int(v, self.ints) else super().operand(v)

    def value(self, v: Value) -> None:
        args = self.operands(v.args)
        if v.op == "load":
            args = (self.place(v.index), *args[1:])
        self.again_as(v, args)

    def again_as(self, v: Value, args: tuple[Value, ...]) -> None:
        """Puts a value once more, with other arguments."""
        self.new[v] = self.again(v, args)
        self.emit(self.new[v])

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        new = super().effect(s)
        new.index = self.place(s.index)
        self.emit(new.index)
        self.emit(new.value)
        return new

    def head(self, old: Loop) -> Loop:
        start, stop, init = self.place(old.start), self.place(old.stop), self.operands(old.init)
        for v in (start, stop, *init):
            self.emit(v)
        return Loop(old.kind, start, stop, old.combine, init)

    def loop(self, old: Loop) -> Loop:
        new = super().loop(old)
        for v in new.update:  # a loop's variable, cast
            if v.op not in OPERANDS and v not in self.emitted:
                self.emitted.add(v)
                new.body = (*new.body, v)
        return new


class _Narrowing(_Resizing):
    """An int64 value is there as it is wanted: `operand` has it in 64 bits, `place` in 32."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel, int32)
        self.uses = _Uses(kernel)
        self.narrowed: dict[int, Value] = {}  # id(old value) -> the same in 32 bits

    def place(self, v: Value) -> Value:
        return self.narrowed.get(id(v)) or super().place(v)

    def value(self, v: Value) -> None:
        if self.uses.narrows(v):
            new = self.narrowed[id(v)] = self._in_32_bits(v)
            self.emit(new)
        if self.uses.compares(v):
            self.again_as(v, tuple(map(self.place, v.args)))
        elif v.dtype is not int64 or id(v) in self.uses.wide:
            super().value(v)

    def _in_32_bits(self, v: Value) -> Value:
        if v.op == "cast":
            return cast(self.operand(v.args[0]), int32)
        args = (self.place(a) if a.dtype is int64 else self.operand(a) for a in v.args)
        return Value(v.op, int32, tuple(args))


def _is_int(v: Value, ints: frozenset[str]) -> bool:
    return v.op in ("index", "loopvar") or (v.op == "param" and v.name in ints)


def _wrapped(n: int) -> int:
    return (n - int32.min) % (1 << 32) + int32.min
