"""A pass of `legalize` for compilers that rewrite float expressions.

A launch on such a device brings an integer, `zero`, which is 0, but no compiler knows that. A float
whose bits were xor-ed with it is *hidden*: a compiler knows neither its value nor the operation
that gave it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ..dtypes import DType, float32, float64, int32, int64
from .builder import Kernel, combine
from .language import Block, Loop, Statement, Value, bitcast, cast, walk
from .rewrite import Cloner, fresh_names
from .target import Capabilities

# Operations that a compiler cannot fuse with a product among their operands.
_NEVER_FUSED = ("mul", "div", "sqrt", "trunc", "floor", "rint", "lt", "le", "eq", "ne", "bitcast")
_BITS_DTYPE = {float32: int32, float64: int64}  # the integers that hold the bits of a float
_BITS_FORMAT = {float32: ("f", "i"), float64: ("d", "q")}  # of `struct`, for both


def hiding_zeros(capabilities: Capabilities) -> tuple[int, ...]:
    """Return the integers that each launch on a device brings to hide floats."""
    return (0,) if capabilities.contraction or capabilities.algebra != "exact" else ()


def hide_floats(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return a kernel that hides floats from a compiler that would rewrite expressions of them.

    With `contraction` it hides each product that may meet a sum, with `algebra` "zeros" the float
    constants 0 and -0.
    """
    if not hiding_zeros(capabilities):
        return kernel
    (name,) = fresh_names(kernel, ["zero"])
    if kernel.fast_math:  # the launch passes the integer all the same
        return kernel.with_body(kernel.body, ints=(*kernel.ints, name))
    cloner = _HidingCloner(kernel, capabilities, Value("param", kernel.index, (), name))
    body = cloner.block(kernel.body)
    return kernel.with_body((*cloner.prologue, *body), ints=(*kernel.ints, name))


def _summand_ids(block: Block) -> Iterator[int]:
    """Yield ids of the operands of operations that a compiler may fuse with a product."""
    for s in walk(block):
        if isinstance(s, Value):
            if s.op not in _NEVER_FUSED:
                yield from map(id, s.args)
        elif isinstance(s, Loop):
            yield from map(id, (*s.init, *s.update))


class _HidingCloner(Cloner):
    """A cloner that hides some floats of a kernel."""

    def __init__(self, kernel: Kernel, capabilities: Capabilities, zero: Value) -> None:
        super().__init__()
        self.prologue: list[Statement] = []  # statements before the kernel's own
        self.summand_ids = set(_summand_ids(kernel.body) if capabilities.contraction else ())
        self.hides_zeros = capabilities.algebra == "zeros"
        self._zero = zero
        self._hoisted: dict[object, Value] = {}  # a dtype -> its zero; a constant -> its equal

    def zero(self, d: DType) -> Value:
        """Return the zero of the launch in a dtype."""
        if d not in self._hoisted:
            self._hoisted[d] = self.hoist(cast(self._zero, d))
        return self._hoisted[d]

    def hoist(self, v: Value) -> Value:
        """Return a value after placing it, and its operands, before the kernel's statements."""
        outer, self.statements = self.statements, self.prologue
        self.emit(v)
        self.statements = outer
        return v

    def operand(self, v: Value) -> Value:
        """Return the replacement of an operand; a zero of the launch for a constant that hides."""
        if v.op == "const" and self.hides_zeros and v.dtype in _BITS_DTYPE and v.number == 0:
            return self.hide_constant(v)
        return super().operand(v)

    def hide_constant(self, v: Value) -> Value:
        """Return a float constant, made of its bits and the zero of the launch."""
        if v not in self._hoisted:
            d, (number, bits) = _BITS_DTYPE[v.dtype], _BITS_FORMAT[v.dtype]
            pattern: int = struct.unpack(bits, struct.pack(number, v.number))[0]
            hidden = bitcast(self.zero(d) ^ pattern, v.dtype)
            self._hoisted[v] = self.hoist(hidden)
        return self._hoisted[v]

    def rewrite_value(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        """Return a product that may meet a sum, hidden; None for other values."""
        if v.op != "mul" or v.dtype not in _BITS_DTYPE or id(v) not in self.summand_ids:
            return None
        d = _BITS_DTYPE[v.dtype]
        return bitcast(bitcast(self.copy_with_args(v, args), d) ^ self.zero(d), v.dtype)

    def copy_loop_head(self, old: Loop) -> Loop:
        """Return the copy of a loop without its body; a reduction may start at hidden values."""
        new = super().copy_loop_head(old)
        if old.combine is not None:
            rule = combine(old.combine, tuple(u.dtype for u in old.update))
            start = self.operands(rule.identity)
            new.init = new.init if start == rule.identity else start
        return new
