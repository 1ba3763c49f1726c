"""Dtype rules: what the operands of an op are cast to, and what comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..dtypes import (
    DType,
    bool_,
    complex64,
    complex128,
    float32,
    float64,
    int32,
    int64,
    promote,
    uint64,
)
from ..errors import DTypeError
from .site import Attrs
from .sort import key_dtype

Given: TypeAlias = DType | type[object]  # an operand: its dtype or, of a Python number, its type
Dtypes: TypeAlias = tuple[tuple[DType, ...], DType]  # (what operands are cast to, what comes out)
DTypeRule: TypeAlias = Callable[[str, Sequence[Given], Attrs], Dtypes]  # by the op's name


def common(op: str, operands: Sequence[Given], *, allowed: str = "biuf") -> DType:
    """The dtype in which operands meet. Python numbers are weak: they only change the kind.

    Raises: DTypeError where none exists or its kind is not allowed.
    """
    strong = _strong(operands)
    weak = [d for d in operands if not isinstance(d, DType)]
    found = strong[0] if strong else (bool_ if all(w is bool for w in weak) else int64)
    for d in strong[1:]:
        found = _promote(op, found, d)
    for w in weak:
        if w is complex and found.kind != "c":
            found = complex128 if found is float64 else complex64
        elif w is float and found.kind in "biu":
            found = float32
        elif w is int and found.kind == "b":
            found = int64
    if found.kind not in allowed:
        raise DTypeError(
            f"{op}: does not take {found.name}; it takes {_kinds(allowed)}; see "
            + ("dt.real, dt.imag and dt.abs" if found.kind == "c" else "astype()")
        )
    return found


def _promote(op: str, a: DType, b: DType) -> DType:
    try:
        return promote(a, b)
    except DTypeError as e:
        raise DTypeError(f"{op}: {e}") from None


def _kinds(allowed: str) -> str:
    words = {"b": "bool", "i": "signed integers", "u": "unsigned integers", "f": "floats",
             "c": "complex numbers"}  # fmt: skip
    return ", ".join(words[k] for k in allowed)


def _strong(operands: Sequence[Given]) -> tuple[DType, ...]:
    """The dtypes of operands that are tensors."""
    return tuple([d for d in operands if isinstance(d, DType)])


# --- elementwise ----------------------------------------------------------------------------------


def same(allowed: str = "biuf") -> DTypeRule:
    """All operands meet in one dtype, which comes out."""

    def rule(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
        d = common(op, operands, allowed=allowed)
        return (d,) * len(operands), d

    return rule


def arithmetic(allowed: str) -> DTypeRule:
    """As `same`, but beside complex operands real ones stay real, in the dtype of parts."""

    def rule(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
        return _beside_complex(operands, common(op, operands, allowed=allowed))

    return rule


def _beside_complex(operands: Sequence[Given], d: DType) -> Dtypes:
    if d.kind != "c":
        return (d,) * len(operands), d
    return tuple([d if _is_complex(x) else d.part for x in operands]), d


def _is_complex(x: Given) -> bool:
    return x.kind == "c" if isinstance(x, DType) else x is complex


def dividing(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """As `arithmetic`; integers and bool become the default float, float32."""
    d = common(op, operands, allowed="biufc")
    return _beside_complex(operands, d if d.kind in "fc" else float32)


def analytic(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """As `floating`, of complex operands too."""
    d = common(op, operands, allowed="biufc")
    d = d if d.kind in "fc" else float32
    return (d,) * len(operands), d


def size(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Of a number its dtype, of a complex one that of its parts."""
    d = common(op, operands, allowed="iufc")
    return (d,), d.part


def turn(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """The dtype of parts; integers and bool become the default float, float32."""
    (d,), _ = analytic(op, operands, attrs)
    return (d,), d.part


def equality(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """As `comparison`, of complex operands too."""
    return _comparing(op, operands, "biufc")


def floating(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """All operands meet in a float; integers and bool become the default one, float32."""
    d = common(op, operands)
    d = d if d.kind == "f" else float32
    return (d,) * len(operands), d


def exponent(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """One float, as of `floating`; int32 comes out."""
    return floating(op, operands, attrs)[0], int32


def comparison(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """All operands meet in one dtype, but uint64 and signed integers do not; bool comes out."""
    return _comparing(op, operands, "biuf")


def _comparing(op: str, operands: Sequence[Given], allowed: str) -> Dtypes:
    integers = [d for d in _strong(operands) if d.is_integer]
    if uint64 in integers and any(d.kind == "i" for d in integers):
        return tuple([uint64 if d is uint64 else int64 for d in integers]), bool_
    d = common(op, operands, allowed=allowed)
    return (d,) * len(operands), bool_


def predicate(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Bool, of one operand of any dtype."""
    return (common(op, operands, allowed="biufc"),), bool_


def predicate_of_floats(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Bool, of one float."""
    return (common(op, operands, allowed="f"),), bool_


def logical(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """All operands are cast to bool, which comes out."""
    common(op, operands, allowed="biufc")
    return (bool_,) * len(operands), bool_


def selection(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """A condition, and two operands that meet in one dtype."""
    d = common(op, operands[1:], allowed="biufc")
    if operands[0] is not bool_:
        given = getattr(operands[0], "name", operands[0])
        raise DTypeError(f"{op}: the condition must be bool, not {given}; write x != 0")
    return (bool_, d, d), d


def as_told(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """The operand as it is; `attrs` comes out. What is complex becomes nothing real but bool.

    Raises: DTypeError.
    """
    (d,) = casts = _strong(operands)
    if d.kind == "c" and attrs.kind not in "bc":
        raise DTypeError(
            f"{op}: {d.name} does not become {attrs.name}; take dt.real, dt.imag or dt.abs of it"
        )
    return casts, attrs


def declared(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """attrs = (dtypes of the scalars, dtype of the result)."""
    scalars, result = attrs
    return scalars, result


# --- reductions -----------------------------------------------------------------------------------


def summing(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Small integers and bool sum to int64 or uint64, unless `attrs` says otherwise."""
    d = common(op, operands, allowed="biufc") if attrs is None else attrs
    if attrs is None and d.kind in "biu":
        d = uint64 if d.kind == "u" else int64
    return (d.compute,), d


def averaging(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """A float or complex; integers and bool become the default float, float32."""
    d = common(op, operands, allowed="biufc")
    d = d if d.kind in "fc" else float32
    return (d.compute,), d


def keeping(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """The operand's dtype."""
    d = common(op, operands)
    return (d.compute,), d


def testing(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Bool, of one operand that is cast to it."""
    common(op, operands, allowed="biufc")
    return (bool_,), bool_


def counting(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """A place, as int64."""
    return (common(op, operands).compute,), int64


# --- views, gathers, kernels ----------------------------------------------------------------------


def as_given(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """The operand's dtype, in which nothing is computed."""
    casts = _strong(operands)
    return casts, casts[0]


def gathering(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """The first operand's dtype; the others are positions."""
    first = _strong(operands)[0]
    return (first, *(int64 for _ in operands[1:])), first


def contracting(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """All operands meet in one dtype that has sums and products."""
    d = common(op, operands, allowed="iufc")
    return (d,) * len(operands), d


def integers(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Positions, of positions."""
    return (int64,) * len(operands), int64


def tallying(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Numbers of elements, which are read as they are."""
    return _strong(operands), int64


def searching(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """A position; the first two operands meet in one dtype, a third has positions."""
    d = common(op, operands[:2])
    return (d, d, *(int64 for _ in operands[2:])), int64


def sorting(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """The operand's dtype; its number is of that of the keys."""
    d = common(op, operands[:1])
    return (d, key_dtype(d)), d


def selecting(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """As `sorting`; a second number is a rank."""
    casts, d = sorting(op, operands, attrs)
    return (*casts, int64), d


def ordering(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """A position; operands as for `sorting`."""
    return sorting(op, operands, attrs)[0], int64


def grouping(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """A position; the first operand has any dtype, a second has positions."""
    d = common(op, operands[:1], allowed="biufc")
    return (d, *(int64 for _ in operands[1:])), int64


def running(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """As a sum; `attrs` has the dtype in its last place."""
    return summing(op, operands, attrs[2])


def running_logs(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """As `floating`, of the dtype in the last place of `attrs` if there is one; halves widened."""
    d = floating(op, operands if attrs[2] is None else (attrs[2],), None)[1]
    return (d.compute,), d


def scattering(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """The first operand's dtype, to which the second one is cast; the others are positions."""
    first = _strong(operands)[0]
    return (first, first, *(int64 for _ in operands[2:])), first


def fixed(casts: tuple[DType, ...], result: DType) -> DTypeRule:
    """The same dtypes whatever comes in."""
    return lambda op, operands, attrs: (casts, result)
