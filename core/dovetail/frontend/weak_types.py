"""Numbers in a user's kernel, and how their types promote.

A number that comes from a tensor is a `Value` with a dtype, and promotes as tensors do. Any other
number (an index, a size, an argument, a constant) is weakly typed: an int of 64 bits, a float64 or
a bool, which takes the dtype of the element that it meets. A number that is known while the kernel
is compiled is a Python number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from ..dtypes import KIND_RANKS, DType, bool_, complex128, float64, int64
from ..errors import DTypeError, ValueOverflowError
from ..ir.language import Value, cast, complex_value, const, where
from ..ops.arithmetic import convert
from ..ops.dtype_rules import Given
from ..ops.table import TABLE, Op

PYTHON_TYPES: dict[str, type[object]] = {"b": bool, "i": int, "f": float, "c": complex}
KINDS = {python_type: kind for kind, python_type in PYTHON_TYPES.items()}
WIDEST_DTYPES = {"b": bool_, "i": int64, "f": float64, "c": complex128}


class WeakNumber:
    """A weakly typed number that is known only when the kernel runs.

    `kind` is "b", "i", "f" or "c". An argument has no value until an operation needs it in some
    dtype: `declare` then makes it a scalar of the kernel.
    """

    __slots__ = ("_declare", "_value", "kind")

    def __init__(
        self, kind: str, value: Value | None = None, declare: Callable[[DType], Value] | None = None
    ) -> None:
        self.kind, self._value, self._declare = kind, value, declare

    def cast(self, dtype: DType) -> Value:
        """Return the value as a dtype; a number that is not declared yet is declared."""
        if self._value is not None:
            return convert(self._value, dtype)
        assert self._declare is not None
        if dtype.kind == "c":
            return complex_value(self.cast(dtype.part), const(0, dtype.part))
        if KIND_RANKS[dtype.kind] < KIND_RANKS[self.kind]:
            return convert(self._declare(WIDEST_DTYPES[self.kind]), dtype)
        return convert(self._declare(dtype.compute), dtype)


Number: TypeAlias = "bool | int | float | complex | WeakNumber | Value"
Condition: TypeAlias = "Value | None"  # None holds everywhere


def is_number(x: object) -> bool:
    """Return True if a kernel can compute with `x`."""
    return isinstance(x, bool | int | float | complex | WeakNumber | Value)


def is_constant(x: object) -> bool:
    """Return True if a number is known while the kernel is compiled."""
    return not isinstance(x, Value | WeakNumber)


def kind_of(x: Number) -> str:
    """Return the kind of a number's dtype; of a weakly typed one "b", "i", "f" or "c"."""
    if isinstance(x, Value):
        return x.dtype.kind
    return x.kind if isinstance(x, WeakNumber) else KINDS[type(x)]


def _promotion_type(x: Number) -> Given:
    """Return a number's dtype, or its Python type, as the dtype rules of the op table need."""
    if isinstance(x, Value):
        return x.dtype
    return PYTHON_TYPES[x.kind] if isinstance(x, WeakNumber) else type(x)


def as_dtype(x: Number, dtype: DType) -> Value:
    """Return a number as a dtype.

    Raises: ValueOverflowError, DTypeError if a constant does not fit.

    A float constant is truncated to an integer.
    """
    if isinstance(x, Value):
        return convert(x, dtype)
    if isinstance(x, WeakNumber):
        return x.cast(dtype)
    if dtype.kind == "c":
        z = complex(x)
        return complex_value(const(z.real, dtype.part), const(z.imag, dtype.part))
    if isinstance(x, complex):
        raise DTypeError(f"{x} does not fit {dtype.name}")
    if dtype.kind == "b":
        return const(x != 0, dtype)
    if dtype.kind in "iu":
        if isinstance(x, float):
            x = int(x)
        if not dtype.min <= x <= dtype.max:
            raise ValueOverflowError(f"{x} does not fit {dtype.name} ({dtype.min}..{dtype.max})")
    return convert(const(x, dtype.compute), dtype)


def as_value(x: Number) -> Value:
    """Return a number as an IR value; a weakly typed one in the widest dtype of its kind."""
    return x if isinstance(x, Value) else as_dtype(x, WIDEST_DTYPES[kind_of(x)])


def as_element(x: Number, dtype: DType) -> Value:
    """Return a number as an element to store. Raises: DTypeError if its kind would be lost."""
    if KIND_RANKS[kind_of(x)] > KIND_RANKS[dtype.kind]:
        kind = _promotion_type(x)
        name = kind.name if isinstance(kind, DType) else f"a Python {kind.__name__}"
        raise DTypeError(
            f"{name} does not fit into {dtype.name}; cast it: dt.astype(..., dt.{dtype.name})"
        )
    return as_dtype(x, dtype)


def apply_op(op: Op, *operands: Number) -> Number:
    """Apply an elementwise op of the table; the result is weakly typed if all operands are."""
    if any(isinstance(x, Value) for x in operands):
        return _apply_to_elements(op, operands)
    return _apply_to_weak(op, operands)


def _apply_to_elements(op: Op, operands: tuple[Number, ...]) -> Value:
    """Apply an op if some numbers have a dtype: promote and compute as on tensors."""
    casts, result = op.dtypes(op.name, [_promotion_type(x) for x in operands], None)
    values = [as_dtype(x, d) for x, d in zip(operands, casts, strict=True)]
    if op.widens:
        values = [cast(v, v.dtype.compute) for v in values]
    return convert(op.expression(*values), result)


def _apply_to_weak(op: Op, operands: tuple[Number, ...]) -> Number:
    """Compute on weakly typed numbers in the widest dtype; constants may give a Python number."""
    python_operator = _PYTHON_OPERATORS.get(op.name)
    if python_operator is not None and all(map(is_constant, operands)):
        return python_operator(*operands)  # type: ignore[no-any-return]  # a number of Python's
    kind = max((kind_of(x) for x in operands), key=KIND_RANKS.__getitem__)
    if op.name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert") and kind == "b":
        dtype = bool_
    elif op.name == "divide":
        dtype = float64
    else:
        dtype = WIDEST_DTYPES["i" if kind == "b" else kind]
    casts, result = op.dtypes(op.name, [dtype] * len(operands), None)
    if result.kind == "f":  # float functions take ints as float64, as in Python
        casts, result = (float64,) * len(operands), float64
    value = op.expression(*[as_dtype(x, d) for x, d in zip(operands, casts, strict=True)])
    return WeakNumber(result.kind, convert(value, result))


_PYTHON_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "divide": operator.truediv, "floor_divide": operator.floordiv, "remainder": operator.mod,
    "pow": operator.pow, "negative": operator.neg, "positive": operator.pos, "abs": operator.abs,
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt,
    "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift, "bitwise_right_shift": operator.rshift,
    "bitwise_invert": operator.invert, "logical_not": operator.not_,
    "maximum": max, "minimum": min,
}  # fmt: skip


def as_condition(x: Number) -> bool | Value:
    """Return the number as a condition: a bool if it is a constant, else an IR value."""
    return bool(x) if is_constant(x) else convert(as_value(x), bool_)


def conjunction(a: Condition, b: Condition) -> Condition:
    """Return the condition that holds where `a` and `b` hold."""
    if a is None or b is None:
        return b if a is None else a
    return a if a is b else a & b


def select(condition: Value, a: Number, b: Number) -> Number:
    """Return `a` where the condition holds, else `b`, in their common type."""
    if a is b or (is_constant(a) and is_constant(b) and repr(a) == repr(b)):  # 0.0 == -0.0
        return a
    if isinstance(a, Value) or isinstance(b, Value):
        return _apply_to_elements(TABLE["where"], (condition, a, b))
    kind = max(kind_of(a), kind_of(b), key=KIND_RANKS.__getitem__)
    dtype = WIDEST_DTYPES[kind]
    return WeakNumber(kind, where(condition, as_dtype(a, dtype), as_dtype(b, dtype)))


CarryType: TypeAlias = "DType | str"  # a dtype, or the kind of a weakly typed number


def carry_type(x: Number) -> CarryType:
    """Return the type in which a loop carries a number."""
    return x.dtype if isinstance(x, Value) else kind_of(x)


def is_same_type(a: CarryType, b: CarryType) -> bool:
    """Return True for one type. A dtype equals its NumPy code: float32 == "f" is True."""
    return type(a) is type(b) and a == b


def join_carry_type(a: CarryType, x: Number) -> CarryType:
    """Return the type for a carried number that may become `x`.

    Raises: DTypeError if none is common.
    """
    b = carry_type(x)
    if is_same_type(a, b):
        return a
    if isinstance(a, str) and isinstance(b, str):
        return max(a, b, key=KIND_RANKS.__getitem__)
    operand = a if isinstance(a, DType) else PYTHON_TYPES[a]
    return TABLE["where"].dtypes("a loop", (bool_, operand, _promotion_type(x)), None)[1]


def to_carry(x: Number, carried_as: CarryType) -> Value:
    """Return a number as a loop carries it: half floats as float32. `from_carry` is the inverse."""
    if isinstance(carried_as, str):
        return as_dtype(x, WIDEST_DTYPES[carried_as])
    return cast(as_dtype(x, carried_as), carried_as.compute)


def from_carry(value: Value, carried_as: CarryType) -> Number:
    """Return the number that a loop carries as `value`."""
    if isinstance(carried_as, str):
        return WeakNumber(carried_as, value)
    return convert(value, carried_as)
