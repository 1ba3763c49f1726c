"""Float operations that a compiler cannot rewrite, since it knows neither operands nor results.

A launch brings integers that are 0, but no compiler knows that. A float whose bits were xor-ed with
one of them is *hidden*. There are two such zeros, because a compiler cancels two xors with the same
one. Combines of hidden floats are made here as well; `hide_floats` is the pass over kernels.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from ..dtypes import DType, bool_, float32, float64, int32, int64
from .language import OPERANDS, Statement, Value, bitcast, cast, exact_key, ne, where
from .rewrite import Cloner

if TYPE_CHECKING:
    from .builder import Combine

BITS_DTYPE = {float32: int32, float64: int64}  # the integers that hold the bits of a float
_BITS_FORMAT = {float32: ("f", "i"), float64: ("d", "q")}  # of `struct`, for both
_INFINITY = {float32: 0x7F800000, float64: 0x7FF0 << 48}  # as bits
_ARITHMETIC = ("add", "sub", "mul", "div", "fma", "sqrt", "trunc", "floor", "rint", "cast")
_CANCELLING = ("add", "sub", "div", "fma")  # simplified by a compiler if two operands are equal
_COMPARISONS = ("lt", "le", "eq", "ne")


def bits_of_constant(v: Value) -> int:
    """Return the bits of a float constant as a signed integer."""
    number, bits = _BITS_FORMAT[v.dtype]
    pattern: int = struct.unpack(bits, struct.pack(number, v.number))[0]
    return pattern


def _bits(x: Value) -> Value:
    """Return the bits of a float as an integer."""
    d = BITS_DTYPE[x.dtype]
    return x.args[0] if x.op == "bitcast" and x.args[0].dtype is d else bitcast(x, d)


def _magnitude(x: Value) -> Value:
    """Return the bits of |x|."""
    return _bits(x) & BITS_DTYPE[x.dtype].max


def _is_nan(x: Value) -> Value:
    """Return True where a float is NaN, by its bits."""
    return _magnitude(x) > _INFINITY[x.dtype]


class HidingCloner(Cloner):
    """A cloner that hides all floats: constants and the results of operations."""

    def __init__(self, zeros: Sequence[Value]) -> None:
        super().__init__()
        self.prologue: list[Statement] = []  # statements before the copied ones
        self._zeros = zeros
        self._hoisted: dict[Hashable, Value] = {}  # zeros and constants of the prologue
        self._numbers: dict[Value, Hashable] = {}  # an old value -> a number; equal values share it
        self._number_by_key: dict[Hashable, int] = {}

    # --- hidden values

    def zero(self, d: DType, which: int = 0) -> Value:
        """Return a zero of the launch as an integer dtype."""
        if (d, which) not in self._hoisted:
            self._hoisted[d, which] = self._hoist(cast(self._zeros[which], d))
        return self._hoisted[d, which]

    def _hoist(self, v: Value) -> Value:
        """Return a value after placing it, and its operands, in the prologue."""
        outer, self.statements = self.statements, self.prologue
        self.emit(v)
        self.statements = outer
        return v

    def hide(self, x: Value, which: int = 0) -> Value:
        """Return a float, its bits xor-ed with a zero of the launch."""
        return bitcast(_bits(x) ^ self.zero(BITS_DTYPE[x.dtype], which), x.dtype)

    def hide_constant(self, v: Value) -> Value:
        """Return a float constant, made of its bits and a zero of the launch."""
        if v not in self._hoisted:
            bits = self.zero(BITS_DTYPE[v.dtype]) ^ bits_of_constant(v)
            self._hoisted[v] = self._hoist(bitcast(bits, v.dtype))
        return self._hoisted[v]

    def operand(self, v: Value) -> Value:
        """Return the replacement of an operand; a float constant is hidden."""
        if v.op == "const" and v.dtype in BITS_DTYPE:
            return self.hide_constant(v)
        return super().operand(v)

    # --- operations

    def value(self, v: Value) -> None:
        """Append a value's copy or replacement to the block, and give the value a number."""
        source = v.args[0].args[0] if v.args and v.args[0].args else None
        is_undone = v.op in ("neg", "bitcast") and v.op == v.args[0].op
        if source is not None and is_undone and source.dtype is v.dtype:
            self._numbers[v] = self._number(source)
        else:
            key = v.op, v.dtype, v.attr, *map(self._number, v.args)
            self._numbers[v] = self._number_by_key.setdefault(key, len(self._number_by_key))
        super().value(v)

    def _number(self, v: Value) -> Hashable:
        """Return a number, or a key, that all operands have which a compiler knows to be equal."""
        if v.op in OPERANDS:
            return v.op, v.dtype, exact_key(v.attr) if v.op == "const" else v.attr
        return self._numbers[v]

    def rewrite_value(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        """Return the replacement of an operation of floats; None for others, and for moves."""
        of_floats = bool(args) and args[-1].dtype in BITS_DTYPE
        if v.op in _COMPARISONS and of_floats:
            return self._compare(v, args)
        if v.op == "cast" and v.dtype is bool_ and of_floats:
            return ne(_magnitude(args[0]), 0)
        if v.dtype not in BITS_DTYPE:
            return None
        if v.op == "where":
            return bitcast(where(args[0], *map(_bits, args[1:])), v.dtype)
        if v.op == "neg":
            return self._negate(v, args)
        if v.op == "load" and v.when is not None:  # a compiler knows the 0 of a load that is masked
            return self.hide(self.copy_with_args(v, args))
        if v.op not in _ARITHMETIC:
            return None
        return self.hide(self.copy_with_args(v, self._distinguish_operands(v, args)))

    def _compare(self, v: Value, args: tuple[Value, ...]) -> Value:
        """Return a comparison that is right for NaN though the device's own may not be."""
        numbers = [x for old, x in zip(v.args, args, strict=True) if old.op != "const"]
        unordered = reduce(or_, map(_is_nan, dict.fromkeys(numbers or args)))
        if args[0] is args[1] and v.op in ("eq", "ne"):
            return unordered if v.op == "ne" else ~unordered
        own = self.copy_with_args(v, args)
        return own | unordered if v.op == "ne" else own & ~unordered

    def _negate(self, v: Value, args: tuple[Value, ...]) -> Value:
        """Return -x, by an xor of its bits that a compiler does not recognise as a change of sign.

        The other zero takes part: a sum that is hidden by the first one stays hidden.
        """
        (old,) = v.args
        if old.op == "neg":
            return self.operand(old.args[0])
        d = BITS_DTYPE[v.dtype]
        key = d, "sign"
        if key not in self._hoisted:
            self._hoisted[key] = self._hoist(self.zero(d, 1) ^ d.min)
        return bitcast(_bits(args[0]) ^ self._hoisted[key], v.dtype)

    def _distinguish_operands(self, v: Value, args: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return the operands, the last one hidden once more if a compiler knows it as another."""
        if v.op not in _CANCELLING:
            return args
        *others, last = map(self._number, v.args)
        return (*args[:-1], self.hide(args[-1], 1)) if last in others else args


# --- combines -------------------------------------------------------------------------------------


def has_floats(rule: Combine) -> bool:
    """Return True if a combine computes with floats."""
    return any(x.dtype.kind == "f" for v in rule.body for x in (v, *v.args))


def hide_combine(rule: Combine, name: str) -> Combine:
    """Return a combine whose floats are hidden by two zeros, which its reduction shares."""
    shared = tuple(Value("arg", int32, (), ("shared", i)) for i in range(2))
    cloner = HidingCloner(shared)
    body = cloner.block(rule.body)
    placed = tuple(s for s in (*cloner.prologue, *body) if isinstance(s, Value))
    return rule._replace(
        name=name, shared=shared, body=placed, result=tuple(map(cloner.operand, rule.result))
    )
