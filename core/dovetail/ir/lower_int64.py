"""The pass of `legalize` for devices without 64-bit integers: each becomes two words (`words`).

In memory an int64 is two uint32 elements, the low word first: the core's buffers and strides stay
as they are, and a kernel sees twice the elements. A scalar comes as two words, too, which
`backend.limits` makes of it. Indices have 32 bits by then (`indices`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import BY_CODE, DType, int32, uint32
from .int64_arith import (
    HALF,
    Words,
    add,
    bits_of,
    compare,
    constant,
    divide_by_half,
    division_step,
    float_of,
    is_negative,
    is_wide,
    mul,
    narrow,
    neg,
    select,
    shift,
    sub,
    widen,
    word,
)
from .language import (
    Atomic,
    Buffer,
    Loop,
    Statement,
    Store,
    Value,
    const,
    eq,
    load,
    ne,
    walk,
    where,
)
from .rewrite import PartsCloner, fresh_names

if TYPE_CHECKING:
    from .builder import Combine, Kernel
    from .target import Capabilities

_BITWISE = ("and", "or", "xor", "not")
_SUMS = {"add": add, "sub": sub, "mul": mul}
OF = "_of_"  # in the name of a combine, before its original dtypes: "argmax_of_f32_i64"


def int64_as_words(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return a kernel without 64-bit integers.

    The field `before` of the result is the given kernel. A kernel without such integers comes back
    as it is.
    """
    dtypes = [*(b.dtype for b in kernel.buffers), *(d for _, d in kernel.scalars)]
    if capabilities.int64 or not (
        any(map(is_wide, dtypes)) or any(_has_wide(s) for s in walk(kernel.body))
    ):
        return kernel
    buffers = {b: Buffer(b.name, uint32, b.access) for b in kernel.buffers if is_wide(b.dtype)}
    wide = [name for name, d in kernel.scalars if is_wide(d)]
    highs = dict(zip(wide, fresh_names(kernel, [f"{n}_high" for n in wide]), strict=True))
    scalars: list[tuple[str, DType]] = []
    for name, d in kernel.scalars:
        scalars += [(name, uint32), (highs[name], uint32)] if name in highs else [(name, d)]
    return kernel.with_body(
        _WordsCloner(buffers, highs).block(kernel.body),
        buffers=tuple(buffers.get(b, b) for b in kernel.buffers),
        scalars=tuple(scalars),
        before=kernel.before or kernel,
    )


def _has_wide(s: Statement) -> bool:
    if isinstance(s, Value):
        return is_wide(s.dtype) or any(is_wide(a.dtype) for a in s.args)
    if isinstance(s, Loop):
        return any(is_wide(v.dtype) for v in s.results)
    return is_wide(s.value.dtype)


class _WordsCloner(PartsCloner):
    """A cloner whose `parts` has the two words of each 64-bit integer."""

    def __init__(self, buffers: dict[Buffer, Buffer], highs: dict[str, str]) -> None:
        super().__init__(buffers)
        self.highs = highs  # name of a scalar -> name of its high word

    def part(self, d: DType) -> DType | None:
        """Return the dtype of a word for 64-bit integers, or None."""
        return uint32 if is_wide(d) else None

    def parts_of(self, v: Value) -> Words:
        """Return the words of an operand."""
        if v.op == "const":
            return constant(int(v.number))
        if v.op == "param":
            low, high = (Value("param", uint32, (), n) for n in (v.name, self.highs[v.name]))
            return low, high
        return self.parts[id(v)]

    def value(self, v: Value) -> None:
        """Copy a value's statement, or those of its words."""
        if is_wide(v.dtype):
            self.parts[id(v)] = words = self._words(v)
            for w in words:
                self.emit(w)
        elif any(is_wide(a.dtype) for a in v.args):
            self.new[v] = self._single(v)
            self.emit(self.new[v])
        else:
            super().value(v)

    def _single(self, v: Value) -> Value:
        """Return a narrower value that is computed from 64-bit integers."""
        signed = v.args[0].dtype.kind == "i"
        operands = [self.parts_of(a) for a in v.args]
        if v.op == "cast":
            return narrow(operands[0], v.dtype, signed)
        if v.op == "bitcast":
            return float_of(operands[0])
        return compare(v.op, operands[0], operands[1], signed)

    def _words(self, v: Value) -> Words:
        """Return the words of an operation's result."""
        if v.op == "load":
            first, second = self.both(self.operand(v.index))
            when = self.operands(v.args[1:])
            buffer = self.buffers[v.buffer]
            return load(buffer, first, *when), load(buffer, second, *when)
        if v.op in ("cast", "bitcast") and not is_wide(v.args[0].dtype):
            return (widen if v.op == "cast" else bits_of)(self.operand(v.args[0]))
        if v.op == "where":
            return select(self.operand(v.args[0]), *map(self.parts_of, v.args[1:]))
        signed = v.dtype.kind == "i"
        a, *others = map(self.parts_of, v.args)
        if v.op in _SUMS:
            return _SUMS[v.op](a, *others)
        if v.op in ("shl", "shr"):
            return shift(v.op, a, others[0][0], signed)
        if v.op in ("quo", "rem"):
            return self._divide(a, others[0], signed)[v.op == "rem"]
        if v.op in _BITWISE:
            low, high = (Value(v.op, uint32, words) for words in zip(a, *others, strict=True))
            return low, high
        return neg(a) if v.op == "neg" else a  # a cast or a bitcast between the two dtypes

    # --- quotients, in a loop

    def _divide(self, a: Words, b: Words, signed: bool) -> tuple[Words, Words]:
        """Return quotient and remainder, towards zero."""
        if not signed:
            return self._divide_unsigned(a, b)
        signs = is_negative(a), is_negative(b)
        quotient, remainder = self._divide_unsigned(_size(a, signs[0]), _size(b, signs[1]))
        return (
            select(signs[0] ^ signs[1], neg(quotient), quotient),
            select(signs[0], neg(remainder), remainder),
        )

    def _divide_unsigned(self, a: Words, b: Words) -> tuple[Words, Words]:
        """Return quotient and remainder of unsigned numbers.

        A small divisor is divided by digits. Otherwise a loop computes one bit in each of 64
        iterations.
        """
        low, high = b
        if low.op == high.op == "const" and high.number == 0 and 0 < low.number <= HALF:
            return divide_by_half(a, low)
        small = eq(high, 0) & (low <= HALF) & ne(low, 0)
        by_digits = divide_by_half(a, where(small, low, 1))
        stop = where(small, const(0, int32), 64)
        loop = Loop("fold", const(0, int32), stop, None, (*a, word(0), word(0)))
        loop.carry, loop.results = (
            tuple(Value(op, uint32, (), (loop, k)) for k in range(4)) for op in ("carry", "result")
        )
        for v in (*by_digits[0], *by_digits[1], loop.stop, *loop.init, *b):
            self.emit(v)
        outer, self.out = self.out, []
        now, remainder_now = (loop.carry[0], loop.carry[1]), (loop.carry[2], loop.carry[3])
        quotient, remainder = division_step(now, remainder_now, b)
        loop.update = *quotient, *remainder
        for v in loop.update:
            self.emit(v)
        loop.body, self.out = tuple(self.out), outer
        self.out.append(loop)
        results = loop.results
        return (
            select(small, by_digits[0], (results[0], results[1])),
            select(small, by_digits[1], (results[2], results[3])),
        )

    # --- effects and loops

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        """Return the copy of a store or an atomic; of 64 bits the second of two."""
        if not is_wide(s.value.dtype):
            return super().effect(s)
        buffer, when = self.buffers[s.buffer], None if s.when is None else self.operand(s.when)
        indices = self.both(self.operand(s.index))
        low, high = (
            Store(buffer, at, w, when)
            if isinstance(s, Store)
            else Atomic(s.op, buffer, at, w, when)
            for at, w in zip(indices, self.parts_of(s.value), strict=True)
        )
        self.out.append(low)
        return high

    def head(self, old: Loop) -> Loop:
        """Return the copy of a loop without its body."""
        new = super().head(old)
        if old.combine is not None and any(is_wide(v.dtype) for v in old.results):
            new.combine = old.combine + OF + "_".join(v.dtype.code for v in old.results)
        return new


def _size(a: Words, negative: Value) -> Words:
    """Return |a|, as an unsigned number."""
    if a[0].op == a[1].op == "const":
        n = int(a[1].number) << 32 | int(a[0].number)
        return constant(n if n < 1 << 63 else -n)
    return select(negative, neg(a), a)


# --- combines ------------------------------------------------------------------------------------


def dtypes_of(codes: str) -> tuple[DType, ...]:
    """Return the dtypes that the name of a combine says. Raises: ValueError."""
    dtypes = [BY_CODE.get(code) for code in codes.split("_")]
    if None in dtypes:
        raise ValueError(codes)
    return tuple(d for d in dtypes if d is not None)


def combine_in_words(rule: Combine, name: str) -> Combine:
    """Return a combine of values of which some are 64-bit integers, in words."""
    cloner = _WordsCloner({}, {})
    left, right = _args(cloner, "left", rule.left), _args(cloner, "right", rule.right)
    body = cloner.block(rule.body)
    return rule._replace(
        name=name,
        identity=cloner.operands(rule.identity),
        left=left,
        right=right,
        body=tuple(s for s in body if isinstance(s, Value)),
        result=cloner.operands(rule.result),
    )


def _args(cloner: _WordsCloner, side: str, old: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return the operands of one side, two for each of 64 bits."""
    new: list[Value] = []
    for v in old:
        dtypes = (uint32, uint32) if is_wide(v.dtype) else (v.dtype,)
        own = [Value("arg", d, (), (side, len(new) + i)) for i, d in enumerate(dtypes)]
        if len(own) == 2:
            cloner.parts[id(v)] = own[0], own[1]
        else:
            cloner.new[v] = own[0]
        new += own
    return tuple(new)
