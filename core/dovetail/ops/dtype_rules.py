"""Dtype rules: what the operands of an op are cast to, and what comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..dtypes import COMPLEX, DType, bool_, float32, int64, promote, uint64
from ..errors import DTypeError, NotYetError
from .site import Attrs
from .sort import key_dtype

Given: TypeAlias = DType | type[object]  # an operand: its dtype or, of a Python number, its type
Dtypes: TypeAlias = tuple[tuple[DType, ...], DType]  # (what operands are cast to, what comes out)
DTypeRule: TypeAlias = Callable[[str, Sequence[Given], Attrs], Dtypes]  # by the op's name


def common(op: str, operands: Sequence[Given], *, allowed: str = "biuf") -> DType:
    """The dtype in which operands meet. Python numbers are weak: they only change the kind.

    Raises: DTypeError where none exists or its kind is not allowed; NotYetError for complex.
    """
    strong = _strong(operands)
    weak = [d for d in operands if not isinstance(d, DType)]
    found = strong[0] if strong else (bool_ if all(w is bool for w in weak) else int64)
    for d in strong[1:]:
        found = _promote(op, found, d)
    for w in weak:
        if w is complex:
            raise NotYetError(f"{op}: complex numbers come with a later version")
        if w is float and found.kind in "biu":
            found = float32
        elif w is int and found.kind == "b":
            found = int64
    if found in COMPLEX:
        raise NotYetError(f"{op}: complex dtypes come with a later version")
    if found.kind not in allowed:
        raise DTypeError(
            f"{op}: does not take {found.name}; it takes {_kinds(allowed)}; see astype()"
        )
    return found


def _promote(op: str, a: DType, b: DType) -> DType:
    try:
        return promote(a, b)
    except DTypeError as e:
        raise DTypeError(f"{op}: {e}") from None


def _kinds(allowed: str) -> str:
    words = {"b": "bool", "i": "signed integers", "u": "unsigned integers", "f": "floats"}
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


def floating(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """All operands meet in a float; integers and bool become the default one, float32."""
    d = common(op, operands)
    d = d if d.kind == "f" else float32
    return (d,) * len(operands), d


def comparison(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """All operands meet in one dtype; bool comes out."""
    d = common(op, operands)
    return (d,) * len(operands), bool_


def predicate(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Bool, of one operand of any dtype."""
    return (common(op, operands),), bool_


def predicate_of_floats(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Bool, of one float."""
    return (common(op, operands, allowed="f"),), bool_


def logical(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """All operands are cast to bool, which comes out."""
    common(op, operands)
    return (bool_,) * len(operands), bool_


def selection(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """A condition, and two operands that meet in one dtype."""
    d = common(op, operands[1:])
    if operands[0] is not bool_:
        raise DTypeError(
            f"{op}: the condition must be bool, not {getattr(operands[0], 'name', operands[0])}"
        )
    return (bool_, d, d), d


def as_told(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """The operand as it is; `attrs` comes out."""
    return _strong(operands), attrs


def declared(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """attrs = (dtypes of the scalars, dtype of the result)."""
    scalars, result = attrs
    return scalars, result


# --- reductions -----------------------------------------------------------------------------------


def summing(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Small integers and bool sum to int64 or uint64, unless `attrs` says otherwise."""
    d = common(op, operands) if attrs is None else attrs
    if attrs is None and d.kind in "biu":
        d = uint64 if d.kind == "u" else int64
    return (d.compute,), d


def averaging(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """A float; integers and bool become the default one, float32."""
    d = common(op, operands)
    d = d if d.kind == "f" else float32
    return (d.compute,), d


def keeping(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """The operand's dtype."""
    d = common(op, operands)
    return (d.compute,), d


def testing(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Bool, of one operand that is cast to it."""
    common(op, operands)
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
    d = common(op, operands, allowed="iuf")
    return (d,) * len(operands), d


def integers(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Positions, of positions."""
    return (int64,) * len(operands), int64


def searching(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """A position; the first two operands meet in one dtype, a third has positions."""
    d = common(op, operands[:2])
    return (d, d, *(int64 for _ in operands[2:])), int64


def sorting(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """The operand's dtype; its number is of that of the keys."""
    d = common(op, operands[:1])
    return (d, key_dtype(d)), d


def ordering(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """A position; operands as for `sorting`."""
    return sorting(op, operands, attrs)[0], int64


def grouping(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """A position; the first operand has any dtype, a second has positions."""
    return (common(op, operands[:1]), *(int64 for _ in operands[1:])), int64


def running(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """As a sum; `attrs` has the dtype in its last place."""
    return summing(op, operands, attrs[2])


def scattering(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """The first operand's dtype, to which the second one is cast; the others are positions."""
    first = _strong(operands)[0]
    return (first, first, *(int64 for _ in operands[2:])), first


def fixed(casts: tuple[DType, ...], result: DType) -> DTypeRule:
    """The same dtypes whatever comes in."""
    return lambda op, operands, attrs: (casts, result)
