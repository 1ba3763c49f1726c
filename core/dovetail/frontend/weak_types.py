"""Numbers in kernels of loops: elements, and Python's numbers beside them.

What comes from tensors has a dtype, and promotes as tensors do; everything else (indices, sizes,
arguments, constants) is a Python number: an int of 64 bits, a float64 or a bool, which takes the
dtype of the element that it meets. What is known while the kernel is made is a Python object.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from ..dtypes import DType, bool_, complex128, float64, int64
from ..errors import DTypeError, ValueOverflow
from ..loops.language import Value, cast, const, pair, where
from ..ops.arithmetic import convert
from ..ops.dtype_rules import Given
from ..ops.table import TABLE, Op

TYPES: dict[str, type[object]] = {"b": bool, "i": int, "f": float, "c": complex}
WIDE = {"b": bool_, "i": int64, "f": float64, "c": complex128}
ORDER = "bifc"


class Weak:
    """A Python number that is known only when the kernel runs. `kind`: "b", "i", "f" or "c".

    An argument has no value before somebody asks in which dtype: `declare` makes it.
    """

    __slots__ = ("_declare", "_value", "kind")

    def __init__(
        self, kind: str, value: Value | None = None, declare: Callable[[DType], Value] | None = None
    ) -> None:
        self.kind, self._value, self._declare = kind, value, declare

    @property
    def value(self) -> Value:
        """The value, as wide as Python's."""
        return self.cast(WIDE[self.kind]) if self._value is None else self._value

    def cast(self, dtype: DType) -> Value:
        """The value as a dtype."""
        if self._value is not None:
            return convert(self._value, dtype)
        assert self._declare is not None
        if dtype.kind == "c":
            return pair(self.cast(dtype.part), const(0, dtype.part))
        if ORDER.find(dtype.kind.replace("u", "i")) < ORDER.index(self.kind):
            return convert(self._declare(WIDE[self.kind]), dtype)
        return convert(self._declare(dtype.compute), dtype)


Number: TypeAlias = "bool | int | float | complex | Weak | Value"


def is_number(x: object) -> bool:
    """Whether a kernel computes with it."""
    return isinstance(x, bool | int | float | complex | Weak | Value)


def given(x: Number) -> Given:
    """What rules of dtypes see of a number."""
    if isinstance(x, Value):
        return x.dtype
    return TYPES[x.kind] if isinstance(x, Weak) else type(x)


def kind_of(x: Number) -> str:
    """The kind of a number's dtype; of Python's "b", "i", "f" or "c"."""
    if isinstance(x, Value):
        return x.dtype.kind
    if isinstance(x, Weak):
        return x.kind
    return {bool: "b", int: "i", float: "f", complex: "c"}[type(x)]


def as_dtype(x: Number, dtype: DType) -> Value:
    """A number as a dtype. Raises: ValueOverflow, for a constant that does not fit."""
    if isinstance(x, Value):
        return convert(x, dtype)
    if isinstance(x, Weak):
        return x.cast(dtype)
    if dtype.kind == "c":
        z = complex(x)
        return pair(const(z.real, dtype.part), const(z.imag, dtype.part))
    if isinstance(x, complex):
        raise DTypeError(f"{x} does not fit {dtype.name}")
    if dtype.kind == "b":
        return const(x != 0, dtype)
    if dtype.kind in "iu":
        if isinstance(x, float):
            x = int(x)
        if not dtype.min <= x <= dtype.max:
            raise ValueOverflow(f"{x} does not fit {dtype.name} ({dtype.min}..{dtype.max})")
    return convert(const(x, dtype.compute), dtype)


def value_of(x: Number) -> Value:
    """A number in the dtype that it has; Python's as wide as they are."""
    if isinstance(x, Value):
        return x
    return x.value if isinstance(x, Weak) else as_dtype(x, WIDE[kind_of(x)])


def stored(x: Number, dtype: DType) -> Value:
    """A number as an element of a tensor. Raises: DTypeError where a kind of number is lost."""
    order = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    if order[kind_of(x)] > order[dtype.kind]:
        found = given(x)
        name = found.name if isinstance(found, DType) else f"a Python {found.__name__}"
        raise DTypeError(
            f"{name} does not fit into {dtype.name}; cast it: dt.astype(..., dt.{dtype.name})"
        )
    return as_dtype(x, dtype)


# --- operations -----------------------------------------------------------------------------------


def apply(op: Op, *operands: Number) -> Number:
    """An elementwise op of the table on numbers. Raises: DTypeError."""
    if any(isinstance(x, Value) for x in operands):
        return _of_elements(op, operands)
    return _of_python(op, operands)


def _of_elements(op: Op, operands: tuple[Number, ...]) -> Value:
    casts, result = op.dtypes(op.name, [given(x) for x in operands], None)
    values = [as_dtype(x, d) for x, d in zip(operands, casts, strict=True)]
    if op.widens:
        values = [cast(v, v.dtype.compute) for v in values]
    return convert(op.expression(*values), result)


def _of_python(op: Op, operands: tuple[Number, ...]) -> Number:
    """Of Python numbers alone: in int64, or in float64 where Python has a float."""
    known = [x for x in operands if not isinstance(x, Weak)]
    exact = _EXACT.get(op.name)
    if len(known) == len(operands) and exact is not None:
        return exact(*known)  # type: ignore[no-any-return]  # a number of Python's
    kind = max((kind_of(x) for x in operands), key=ORDER.index)
    if op.name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert") and kind == "b":
        wide = bool_
    elif op.name == "divide":
        wide = float64
    else:
        wide = WIDE["i" if kind == "b" else kind]
    casts, result = op.dtypes(op.name, [wide] * len(operands), None)
    if result.kind == "f":  # functions of ints are of floats, which Python has in float64
        casts, result = (float64,) * len(operands), float64
    found = op.expression(*[as_dtype(x, d) for x, d in zip(operands, casts, strict=True)])
    return Weak(result.kind, convert(found, result))


_EXACT: dict[str, Callable[..., Any]] = {
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


def truth(x: Number) -> bool | Value:
    """Whether a number is not zero."""
    if isinstance(x, Value | Weak):
        return convert(value_of(x), bool_)
    return bool(x)


def both(a: bool | Value | None, b: bool | Value | None) -> Value | None:
    """Where two conditions hold; None: everywhere. Neither is False."""
    found = [c for c in (a, b) if isinstance(c, Value)]
    return None if not found else found[0] if len(found) == 1 or found[0] is found[1] else (
        found[0] & found[1]
    )  # fmt: skip


def choose(c: Value, a: Number, b: Number) -> Number:
    """One of two numbers, in what they have in common."""
    if a is b:
        return a
    if not isinstance(a, Value | Weak) and type(a) is type(b) and a == b:
        return a
    if isinstance(a, Value) or isinstance(b, Value):
        return _of_elements(TABLE["where"], (c, a, b))
    kind = max(kind_of(a), kind_of(b), key=ORDER.index)
    return Weak(kind, where(c, as_dtype(a, WIDE[kind]), as_dtype(b, WIDE[kind])))


# --- what loops carry -----------------------------------------------------------------------------

Carried: TypeAlias = "DType | str"  # the dtype of an element, or the kind of a Python number


def carried(x: Number) -> Carried:
    """As what a loop carries a number."""
    return x.dtype if isinstance(x, Value) else kind_of(x)


def is_same(a: Carried, b: Carried) -> bool:
    """Whether two are one: a dtype equals its NumPy code, as float32 does "f"."""
    return type(a) is type(b) and a == b


def joined(a: Carried, x: Number) -> Carried:
    """As what it does where it may also become `x`. Raises: DTypeError."""
    b = carried(x)
    if is_same(a, b):
        return a
    if isinstance(a, str) and isinstance(b, str):
        return max(a, b, key=ORDER.index)
    if isinstance(x, Value):
        other: Given = a if isinstance(a, DType) else TYPES[a]
        return TABLE["where"].dtypes("a loop", (bool_, other, x.dtype), None)[1]
    assert isinstance(a, DType)
    return TABLE["where"].dtypes("a loop", (bool_, a, given(x)), None)[1]


def entering(x: Number, as_: Carried) -> Value:
    """A number as a loop carries it: halves in float32, which `leaving` takes back."""
    if isinstance(as_, str):
        return as_dtype(x, WIDE[as_])
    found = as_dtype(x, as_)
    return cast(found, as_.compute)


def leaving(v: Value, as_: Carried) -> Number:
    """What a loop carries, as a number."""
    if isinstance(as_, str):
        return Weak(as_, v)
    return convert(v, as_)
