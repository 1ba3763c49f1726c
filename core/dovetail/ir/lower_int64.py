"""The pass of `legalize` for devices without 64-bit integers: each becomes two (`int64_arith`).

In memory an int64 is two uint32 elements, the low word first: the core's buffers and strides stay
as they are, and a kernel sees twice the elements. A scalar comes as two words, too, which
`backend.limits` makes of it. Indices have 32 bits by then (`lower_index32`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import BY_CODE, DType, int32, uint32
from .int64_arith import (
    HALF_MASK,
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
    word_constant,
)
from .language import (
    COMBINE_NAME_SEPARATOR,
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
_ARITHMETIC = {"add": add, "sub": sub, "mul": mul}


def lower_int64_to_words(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return a kernel without 64-bit integers.

    The field `before` of the result is the given kernel. A kernel without such integers comes back
    as it is.
    """
    dtypes = [*(b.dtype for b in kernel.buffers), *(d for _, d in kernel.scalars)]
    if capabilities.int64 or not (
        any(map(is_wide, dtypes)) or any(_has_wide_integer(s) for s in walk(kernel.body))
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


def _has_wide_integer(s: Statement) -> bool:
    """Return True if a result, an argument or a stored value is a 64-bit integer."""
    if isinstance(s, Value):
        return is_wide(s.dtype) or any(is_wide(a.dtype) for a in s.args)
    if isinstance(s, Loop):
        return any(is_wide(v.dtype) for v in s.results)
    return is_wide(s.value.dtype)


class _WordsCloner(PartsCloner):
    """A cloner whose `parts` has the two words of each 64-bit integer."""

    def __init__(self, buffers: dict[Buffer, Buffer], highs: dict[str, str]) -> None:
        super().__init__(buffers)
        self.high_names = highs  # name of a scalar -> name of its high word

    def part_dtype(self, d: DType) -> DType | None:
        """Return the dtype of a word for 64-bit integers, or None."""
        return uint32 if is_wide(d) else None

    def parts_of(self, v: Value) -> Words:
        """Return the words of an operand."""
        if v.op == "const":
            return constant(int(v.number))
        if v.op == "param":
            low, high = (Value("param", uint32, (), n) for n in (v.name, self.high_names[v.name]))
            return low, high
        return self.parts[id(v)]

    def value(self, v: Value) -> None:
        """Emit and store the copy of a value's statement, or those of its words."""
        if is_wide(v.dtype):
            self.parts[id(v)] = words = self._result_words(v)
            for w in words:
                self.emit(w)
        elif any(is_wide(a.dtype) for a in v.args):
            self.replacements[v] = self._narrow_result(v)
            self.emit(self.replacements[v])
        else:
            super().value(v)

    def _narrow_result(self, v: Value) -> Value:
        """Return a narrower value that is computed from 64-bit integers."""
        signed = v.args[0].dtype.kind == "i"
        operands = [self.parts_of(a) for a in v.args]
        if v.op == "cast":
            return narrow(operands[0], v.dtype, signed)
        if v.op == "bitcast":
            return float_of(operands[0])
        return compare(v.op, operands[0], operands[1], signed)

    def _result_words(self, v: Value) -> Words:
        """Return the words of an operation's result."""
        if v.op == "load":
            first, second = self.part_indices(self.operand(v.index))
            when = self.operands(v.args[1:])
            buffer = self.buffers[v.buffer]
            return load(buffer, first, *when), load(buffer, second, *when)
        if v.op in ("cast", "bitcast") and not is_wide(v.args[0].dtype):
            return (widen if v.op == "cast" else bits_of)(self.operand(v.args[0]))
        if v.op == "where":
            return select(self.operand(v.args[0]), *map(self.parts_of, v.args[1:]))
        signed = v.dtype.kind == "i"
        a, *others = map(self.parts_of, v.args)
        if v.op in _ARITHMETIC:
            return _ARITHMETIC[v.op](a, *others)
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
        """Return quotient and remainder, towards zero; may append a loop to the block."""
        if not signed:
            return self._divide_unsigned(a, b)
        signs = is_negative(a), is_negative(b)
        quotient, remainder = self._divide_unsigned(
            _magnitude(a, signs[0]), _magnitude(b, signs[1])
        )
        return (
            select(signs[0] ^ signs[1], neg(quotient), quotient),
            select(signs[0], neg(remainder), remainder),
        )

    def _divide_unsigned(self, a: Words, b: Words) -> tuple[Words, Words]:
        """Return quotient and remainder; append a loop, unless the divisor is a small constant.

        A small divisor is divided by digits. Otherwise a loop computes one bit in each of 64
        iterations.
        """
        low, high = b
        if low.op == high.op == "const" and high.number == 0 and 0 < low.number <= HALF_MASK:
            return divide_by_half(a, low)
        small = eq(high, 0) & (low <= HALF_MASK) & ne(low, 0)
        by_digits = divide_by_half(a, where(small, low, 1))
        stop = where(small, const(0, int32), 64)
        loop = Loop("fold", const(0, int32), stop, None, (*a, word_constant(0), word_constant(0)))
        loop.carry, loop.results = (
            tuple(Value(op, uint32, (), (loop, k)) for k in range(4)) for op in ("carry", "result")
        )
        for v in (*by_digits[0], *by_digits[1], loop.stop, *loop.init, *b):
            self.emit(v)
        outer, self.statements = self.statements, []
        now, remainder_now = (loop.carry[0], loop.carry[1]), (loop.carry[2], loop.carry[3])
        quotient, remainder = division_step(now, remainder_now, b)
        loop.update = *quotient, *remainder
        for v in loop.update:
            self.emit(v)
        loop.body, self.statements = tuple(self.statements), outer
        self.statements.append(loop)
        results = loop.results
        return (
            select(small, by_digits[0], (results[0], results[1])),
            select(small, by_digits[1], (results[2], results[3])),
        )

    # --- effects and loops

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        """Return an effect's copy; for 64 bits append the low word's, return the high word's."""
        if not is_wide(s.value.dtype):
            return super().effect(s)
        buffer, when = self.buffers[s.buffer], None if s.when is None else self.operand(s.when)
        indices = self.part_indices(self.operand(s.index))
        low, high = (
            Store(buffer, at, w, when)
            if isinstance(s, Store)
            else Atomic(s.op, buffer, at, w, when)
            for at, w in zip(indices, self.parts_of(s.value), strict=True)
        )
        self.statements.append(low)
        return high

    def copy_loop_head(self, old: Loop) -> Loop:
        """Return the copy of a loop without its body; its combine gets a name for words."""
        new = super().copy_loop_head(old)
        if old.combine is not None and any(is_wide(v.dtype) for v in old.results):
            new.combine = (
                old.combine + COMBINE_NAME_SEPARATOR + "_".join(v.dtype.code for v in old.results)
            )
        return new


def _magnitude(a: Words, negative: Value) -> Words:
    """Return |a|, as an unsigned number."""
    if a[0].op == a[1].op == "const":
        n = int(a[1].number) << 32 | int(a[0].number)
        return constant(n if n < 1 << 63 else -n)
    return select(negative, neg(a), a)


# --- combines ------------------------------------------------------------------------------------


def parse_dtype_codes(codes: str) -> tuple[DType, ...]:
    """Return the dtypes of codes such as "f32_i64". Raises: ValueError for an unknown code."""
    dtypes = [BY_CODE.get(code) for code in codes.split("_")]
    if None in dtypes:
        raise ValueError(codes)
    return tuple(d for d in dtypes if d is not None)


def lower_combine(rule: Combine, name: str) -> Combine:
    """Return a combine of values of which some are 64-bit integers, in words."""
    cloner = _WordsCloner({}, {})
    left, right = (
        _combine_operands(cloner, "left", rule.left),
        _combine_operands(cloner, "right", rule.right),
    )
    body = cloner.block(rule.body)
    return rule._replace(
        name=name,
        identity=cloner.operands(rule.identity),
        left=left,
        right=right,
        body=tuple(s for s in body if isinstance(s, Value)),
        result=cloner.operands(rule.result),
    )


def _combine_operands(cloner: _WordsCloner, side: str, old: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return the operands of one side, two for each of 64 bits, and bind them in the cloner."""
    new: list[Value] = []
    for v in old:
        dtypes = (uint32, uint32) if is_wide(v.dtype) else (v.dtype,)
        own = [Value("arg", d, (), (side, len(new) + i)) for i, d in enumerate(dtypes)]
        if len(own) == 2:
            cloner.parts[id(v)] = own[0], own[1]
        else:
            cloner.replacements[v] = own[0]
        new += own
    return tuple(new)
