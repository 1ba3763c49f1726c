"""Dtype rules: the dtypes that an op's operands are cast to, and the dtype of its result."""

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
from .kernel_context import Attrs
from .sort import key_dtype

Given: TypeAlias = DType | type[object]  # an operand: its dtype, or the type of a Python number
Dtypes: TypeAlias = tuple[tuple[DType, ...], DType]  # (dtypes of the casts, dtype of the result)
DTypeRule: TypeAlias = Callable[[str, Sequence[Given], Attrs], Dtypes]  # of (op's name, ...)


def common(op: str, operands: Sequence[Given], *, allowed: str = "biuf") -> DType:
    """Return the dtype operands promote to; Python numbers are weak.

    Weak numbers only change the kind.
    Raises: DTypeError for operands that do not promote, and for a kind that is not `allowed`.
    """
    strong = _strong_dtypes(operands)
    weak = [d for d in operands if not isinstance(d, DType)]
    dtype = strong[0] if strong else (bool_ if all(w is bool for w in weak) else int64)
    for d in strong[1:]:
        dtype = _promote(op, dtype, d)
    for w in weak:
        if w is complex and dtype.kind != "c":
            dtype = complex128 if dtype is float64 else complex64
        elif w is float and dtype.kind in "biu":
            dtype = float32
        elif w is int and dtype.kind == "b":
            dtype = int64
    if dtype.kind not in allowed:
        raise DTypeError(
            f"{op}: expected {_describe_kinds(allowed)}, got {dtype.name}; use "
            f"{_BOOL_EQUIVALENTS.get(op, '') if dtype.kind == 'b' else ''}"
            f"{_CONVERSIONS.get(dtype.kind, 'astype()')}"
        )
    return dtype


_CONVERSIONS = {"b": "x.astype(dt.int8)", "c": "dt.real, dt.imag or dt.abs"}
_BOOL_EQUIVALENTS = {"negative": "~x or ", "subtract": "x ^ y or "}


def _promote(op: str, a: DType, b: DType) -> DType:
    """Return the common dtype of two. Raises: DTypeError that names the op."""
    try:
        return promote(a, b)
    except DTypeError as e:
        raise DTypeError(f"{op}: {e}") from None


def _describe_kinds(allowed: str) -> str:
    """Return the words for kinds of dtypes, for an error message."""
    words = {
        "b": "bool",
        "i": "signed integers",
        "u": "unsigned integers",
        "f": "floats",
        "c": "complex numbers",
    }
    return ", ".join(words[k] for k in allowed)


def _strong_dtypes(operands: Sequence[Given]) -> tuple[DType, ...]:
    """Return the dtypes of operands that are tensors; leave out Python numbers."""
    return tuple([d for d in operands if isinstance(d, DType)])


# --- elementwise ----------------------------------------------------------------------------------


def same(allowed: str = "biuf") -> DTypeRule:
    """Return a rule by which all operands meet in one dtype, that of the result."""

    def rule(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
        """Return the common dtype for operands and result. Raises: DTypeError for none."""
        d = common(op, operands, allowed=allowed)
        return (d,) * len(operands), d

    return rule


def arithmetic(allowed: str) -> DTypeRule:
    """Return a rule as `same`, but real operands beside complex ones stay real.

    They are cast to the dtype of the complex numbers' parts.
    """

    def rule(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
        """Return casts to the common dtype, to its part for real operands, and the dtype.

        Raises: DTypeError if there is no allowed one.
        """
        return _keep_reals(operands, common(op, operands, allowed=allowed))

    return rule


def _keep_reals(operands: Sequence[Given], d: DType) -> Dtypes:
    """Return the casts to `d`, for real operands to its part, and `d`."""
    if d.kind != "c":
        return (d,) * len(operands), d
    return tuple([d if _is_complex(x) else d.part for x in operands]), d


def _is_complex(x: Given) -> bool:
    """Return True for a complex dtype or Python's complex."""
    return x.kind == "c" if isinstance(x, DType) else x is complex


def dividing(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Promote as `arithmetic` does, complex too; integers and bool become float32."""
    d = common(op, operands, allowed="biufc")
    return _keep_reals(operands, d if d.kind in "fc" else float32)


def analytic(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Promote operands to one float or complex dtype; integers and bool become float32."""
    d = common(op, operands, allowed="biufc")
    d = d if d.kind in "fc" else float32
    return (d,) * len(operands), d


def size(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Take one number; the result is real: its dtype or its parts'. Raises: DTypeError for bool."""
    d = common(op, operands, allowed="iufc")
    return (d,), d.part


def turn(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Promote one operand as `analytic` does; the result is its dtype, or that of complex parts."""
    (d,), _ = analytic(op, operands, attrs)
    return (d,), d.part


def equality(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Promote operands as `comparison` does, complex ones too; the result is bool."""
    return _comparison_dtypes(op, operands, "biufc")


def floating(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Promote all real operands to one float; integers and bool become the default, float32."""
    d = common(op, operands)
    d = d if d.kind == "f" else float32
    return (d,) * len(operands), d


def exponent(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Promote to one float as `floating` does; the result is int32."""
    return floating(op, operands, attrs)[0], int32


def comparison(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Promote all operands to one dtype, except uint64 and signed integers; the result is bool."""
    return _comparison_dtypes(op, operands, "biuf")


def _comparison_dtypes(op: str, operands: Sequence[Given], allowed: str) -> Dtypes:
    """Return two operands' casts to a common dtype, and bool. Raises: DTypeError for none."""
    integers = [d for d in _strong_dtypes(operands) if d.is_integer]
    if uint64 in integers and any(d.kind == "i" for d in integers):
        return tuple([uint64 if d is uint64 else int64 for d in integers]), bool_
    d = common(op, operands, allowed=allowed)
    return (d,) * len(operands), bool_


def predicate(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Take one operand of any dtype; the result is bool."""
    return (common(op, operands, allowed="biufc"),), bool_


def predicate_of_floats(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Take one float; the result is bool. Raises: DTypeError for other kinds."""
    return (common(op, operands, allowed="f"),), bool_


def logical(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Cast all operands, which need no common dtype, to bool; the result is bool."""
    for operand in operands:
        common(op, (operand,), allowed="biufc")
    return (bool_,) * len(operands), bool_


def selection(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Take a condition, and promote two operands. Raises: DTypeError for a non-bool condition."""
    d = common(op, operands[1:], allowed="biufc")
    if operands[0] is not bool_:
        condition = getattr(operands[0], "name", operands[0])
        raise DTypeError(f"{op}: the condition must be bool, got {condition}; write x != 0")
    return (bool_, d, d), d


def as_told(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Take the operand as it is; the result has the dtype `attrs`.

    Raises: DTypeError for a complex operand and a real result, except bool.
    """
    casts = _strong_dtypes(operands)
    _refuse_complex_to_real(op, casts, attrs)
    return casts, attrs


def _refuse_complex_to_real(op: str, operands: Sequence[Given], target: DType) -> None:
    """Raise DTypeError for a complex operand and a real target dtype other than bool."""
    for d in _strong_dtypes(operands):
        if d.kind == "c" and target.kind not in "bc":
            raise DTypeError(
                f"{op}: {d.name} cannot be converted to {target.name}; use dt.real, dt.imag or "
                "dt.abs"
            )


def declared(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Take the dtypes from attrs = (dtypes of the scalars, dtype of the result)."""
    scalars, result = attrs
    return scalars, result


# --- reductions -----------------------------------------------------------------------------------


def summing(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Sum integers and bool as int64, unsigned as uint64, unless `attrs` names a dtype.

    Raises: DTypeError for complex operands and a real dtype.
    """
    if attrs is not None:
        _refuse_complex_to_real(op, operands, attrs)
        return (attrs.compute,), attrs
    d = common(op, operands, allowed="biufc")
    if d.kind in "biu":
        d = uint64 if d.kind == "u" else int64
    return (d.compute,), d


def averaging(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Promote to a float or complex dtype; integers and bool become the default float, float32."""
    d = common(op, operands, allowed="biufc")
    d = d if d.kind in "fc" else float32
    return (d.compute,), d


def keeping(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Keep a real operand's dtype, widened for the computation. Raises: DTypeError for complex."""
    d = common(op, operands)
    return (d.compute,), d


def testing(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Cast one operand to bool; the result is bool."""
    common(op, operands, allowed="biufc")
    return (bool_,), bool_


def counting(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Take one real operand; the result is a position, int64. Raises: DTypeError for complex."""
    return (common(op, operands).compute,), int64


# --- views, gathers, kernels ----------------------------------------------------------------------


def as_given(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Keep the operands' dtypes, not widened for the computation; the result has the first."""
    casts = _strong_dtypes(operands)
    return casts, casts[0]


def gathering(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Keep the first operand's dtype; cast the others, which are positions, to int64."""
    first = _strong_dtypes(operands)[0]
    return (first, *(int64 for _ in operands[1:])), first


def contracting(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Promote all operands to one dtype. Raises: DTypeError for bool, which has no sums."""
    d = common(op, operands, allowed="iufc")
    return (d,) * len(operands), d


def integers(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Cast all operands to int64; the result is int64, positions or counts."""
    return (int64,) * len(operands), int64


def tallying(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Take the operands as they are; the result is int64."""
    return _strong_dtypes(operands), int64


def searching(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Promote two real operands to one dtype, cast the others to int64; the result is int64."""
    d = common(op, operands[:2])
    return (d, d, *(int64 for _ in operands[2:])), int64


def sorting(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Keep the operand's dtype; the op's number has the dtype of the keys."""
    d = common(op, operands[:1])
    return (d, key_dtype(d)), d


def selecting(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Keep the operand's dtype as `sorting` does; a second number is a rank."""
    casts, d = sorting(op, operands, attrs)
    return (*casts, int64), d


def ordering(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Take operands as `sorting` does; the result has positions, int64."""
    return sorting(op, operands, attrs)[0], int64


def grouping(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Take an operand of any dtype, and positions; the result has positions, int64."""
    d = common(op, operands[:1], allowed="biufc")
    return (d, *(int64 for _ in operands[1:])), int64


def running(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Promote as for a sum; the last element of `attrs` names the dtype."""
    return summing(op, operands, attrs[2])


def running_logs(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Promote as `floating` does, to the last dtype of `attrs` if there is one.

    Halves are widened.
    """
    if attrs[2] is not None:
        _refuse_complex_to_real(op, operands, attrs[2])
    d = floating(op, operands if attrs[2] is None else (attrs[2],), None)[1]
    return (d.compute,), d


def scattering(op: str, operands: Sequence[Given], attrs: Attrs) -> Dtypes:
    """Keep the first operand's dtype, cast the second to it, and the positions to int64."""
    first = _strong_dtypes(operands)[0]
    return (first, first, *(int64 for _ in operands[2:])), first


def fixed(casts: tuple[DType, ...], result: DType) -> DTypeRule:
    """Return a rule that gives `casts` and `result`, whichever dtypes the operands have."""
    return lambda op, operands, attrs: (casts, result)
