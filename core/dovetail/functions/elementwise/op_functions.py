"""The elementwise functions: one per row of the op table, and a few compositions of rows.

`dt.add(x, y)` returns its result, `dt.add(x, y, out=z)` writes it into `z`; `x.add(y)` and
`x.add_(y)` are the methods. Each row of kind `map` gives a function. Its docstring is built from
the row's dtype rule and its entry in `docstrings`.
"""

# ruff: noqa: F405 - the functions of rows are defined by `globals().update` below

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, overload

from ... import callbacks
from ... import layout as lay
from ...argument_checks import flag, integer
from ...argument_checks import real as real_number
from ...compat.keywords import MISSING, rebind_keywords
from ...declarations import METHODS
from ...dtypes import DType, bool_, complex64, float32, float64, int64, uint64
from ...engine import tracer_api
from ...errors import ArgumentError, DovetailError, DTypeError
from ...ops import table as ops
from ...ops.dtype_rules import DTypeRule, Dtypes
from ...ops.table import TABLE, Op
from ...public_names import PublicSignature
from ...tensor.c_fields import is_strided
from ...tensor.primitives import apply, apply_one, apply_two, dispatch, in_place
from ...tensor.promotion import Array, Operand, as_tensors, convert_operands
from ...tensor.tensor import Tensor, drop_tape, required
from ...tensor.writes import write_out
from ...tracebacks import hide_internal_frames
from ..datatypes import as_dtype, cast, device_of, move, move_to_supporting_device, result_type
from ..indexing.masks import nonzero
from ..known_calls import clip_plain, round_plain
from ..plain_calls import accelerate
from ..reductions.statistics import all as all_
from ..reductions.statistics import max as max_
from ..reductions.statistics import sum as sum_
from ..variants import public
from .docstrings import OP_DOC_LINES, SEE_ALSO

if TYPE_CHECKING:
    from .signatures import *  # noqa: F403 - the functions of rows, for type checkers

Number = bool | int | float
Function = Callable[..., Tensor]

# --- functions of rows ----------------------------------------------------------------------------

# Rows of one or two operands without a function of their own: `dt.astype` and `dt.copy` do more,
# `dt.frexp` returns both of its parts, and `python_floor_divide` is of other namespaces.
OPS_WITHOUT_FUNCTION = (
    "astype",
    "copy",
    "frexp_mantissa",
    "frexp_exponent",
    "python_floor_divide",
)
FUNCTIONS: dict[str, Op] = {  # the public functions that are one row each
    name: op
    for name, op in TABLE.items()
    if op.kind == "map" and op.arity <= 2 and name not in OPS_WITHOUT_FUNCTION
}
# The largest measured error in ulp, in float32 and float64, rounded up. Source: docs/accuracy.md.
ULP = {
    "exp": (0.91, 0.84), "exp2": (0.90, 0.72), "expm1": (0.89, 0.97), "log": (0.87, 0.79),
    "log2": (0.98, 0.93), "log10": (0.91, 0.83), "log1p": (0.94, 0.89), "sin": (0.83, 0.82),
    "cos": (0.88, 0.82), "tan": (0.90, 0.90), "asin": (0.72, 0.76), "acos": (0.68, 0.74),
    "atan": (1.00, 0.94), "sinh": (0.99, 0.75), "cosh": (0.75, 0.68), "tanh": (0.95, 0.64),
    "asinh": (0.99, 0.91), "acosh": (0.94, 0.87), "atanh": (0.96, 0.88), "cbrt": (0.51, 0.50),
    "erf": (0.95, 0.76), "erfc": (0.96, 1.52), "sigmoid": (1.18, 0.85), "rsqrt": (0.50, 0.50),
    "atan2": (0.85, 0.86), "hypot": (0.50, 0.50), "pow": (0.71, 0.57), "logaddexp": (0.56, 0.55),
    "erfinv": (5.28, 4.55), "ndtr": (2.29, 2.06), "ndtri": (4.37, 3.47), "logit": (2.25, 2.05),
    "lgamma": (5.75, 2.85), "gamma": (0.60, 0.57), "digamma": (2.78, 2.78), "i0": (3.77, 3.23),
    "i1": (3.73, 2.73), "sinc": (3.56, 2.78), "xlogy": (1.37, 1.32), "beta": (0.59, 0.59),
    "zeta": (6.98, 11.45),
}  # fmt: skip
_NOT_C99 = (
    "sigmoid", "rsqrt", "logaddexp", "erfinv", "ndtr", "ndtri", "logit", "digamma", "i0", "i1",
    "sinc", "xlogy", "beta", "zeta",
)  # fmt: skip
_CORRECTLY_ROUNDED = ("add", "subtract", "multiply", "divide", "square", "reciprocal", "sqrt")


def _build_unary(op: Op) -> Function:
    """Return a function that applies a row to one operand, or writes into `out`."""

    def function(
        x: Tensor = MISSING, /, *more: object, out: Tensor | None = None, **theirs: object
    ) -> Tensor:
        """Apply the row; accept the arguments of other libraries, too."""
        try:
            if more or theirs:
                return rebind_keywords(function, locals())
            return apply_one(op, x, out)
        except DovetailError as error:
            hide_internal_frames(error)
            raise

    return function


def _build_binary(op: Op) -> Function:
    """Return a function that applies a row to two operands, or writes into `out`."""

    def function(
        x1: Operand = MISSING,
        x2: Operand = MISSING,
        /,
        *more: object,
        out: Tensor | None = None,
        **theirs: object,
    ) -> Tensor:
        """Apply the row; accept the arguments of other libraries, too."""
        try:
            if more or theirs or x2 is MISSING:
                return rebind_keywords(function, locals())
            return apply_two(op, x1, x2, out)
        except DovetailError as error:
            hide_internal_frames(error)
            raise

    return function


def _build_unary_in_place(op: Op) -> Function:
    """Return a method that writes a row's result into its operand and returns that."""

    def method(x: Tensor, /, *more: object, **theirs: object) -> Tensor:
        """Write the row's result into `x`, and return `x`."""
        if more or theirs:
            return rebind_keywords(method, locals())
        return in_place(op, x)

    return method


def _build_binary_in_place(op: Op) -> Function:
    """Return a method that writes a row's result into its first operand and returns that."""

    def method(x1: Tensor, x2: Operand = MISSING, /, *more: object, **theirs: object) -> Tensor:
        """Write the row's result into `x1`, and return `x1`."""
        if more or theirs or x2 is MISSING:
            return rebind_keywords(method, locals())
        return in_place(op, x1, x2)

    return method


def _set_name(function: Function, name: str, doc: str) -> Function:
    """Set a function's name, which tracebacks also show, its docstring and public signature."""
    function.__name__ = function.__qualname__ = name
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)
    function.__doc__ = doc
    vars(function)["__signature__"] = PublicSignature.of(function)
    return function


def _build_function(op: Op) -> Function:
    """Return the public function of a row, with its name and docstring."""
    if op.arity == 1:
        return accelerate(_set_name(_build_unary(op), op.name, _docstring(op)), op)
    return accelerate(_with_methods(_set_name(_build_binary(op), op.name, _docstring(op))), op)


def _with_methods(function: Function) -> Function:
    """Attach the methods of NumPy's ufuncs, whose module is loaded at their first call."""
    for method in ("reduce", "accumulate", "outer", "at", "reduceat"):
        setattr(function, method, partial(_as_ufunc, function.__name__, method))
    return function


def _as_ufunc(name: str, method: str, *operands: object, **options: object) -> object:
    """Call a method of NumPy's ufunc `name` on tensors; import its module first."""
    result: object = import_module("..numpy.ufunc_methods", __package__).call_ufunc_method(
        name, method, *operands, **options
    )
    return result


IN_PLACE_DOC = """Write the result of `dt.{0}` into this tensor's memory and return the tensor.

The result is broadcast to this tensor's shape and cast to its dtype, if that loses no kind
of number. Every view of the memory sees it.
Raises: as `dt.{0}`; ReadOnlyError; GradientError for a leaf that requires one.

`dt.{0}`: {1}"""


def in_place_method(op: Op) -> Function:
    """Return the method that writes a row's result into its first operand."""
    method = _build_unary_in_place(op) if op.arity == 1 else _build_binary_in_place(op)
    doc = IN_PLACE_DOC.format(op.name, _docstring(op))
    return _set_name(method, f"{op.name}_", doc)


@cache  # the function and the in-place method share it
def _docstring(op: Op) -> str:
    """Return the cached docstring of a row's function."""
    return "\n".join(_docstring_lines(op))


def _docstring_lines(op: Op) -> Iterator[str]:
    """Yield the lines of a row's docstring: summary, shapes, dtypes, errors, names, examples."""
    operands = "each element" if op.arity == 1 else "x1 and x2, element by element"
    summary, *more = OP_DOC_LINES.get(op.name, (f"Return `{op.name}` of {operands}.",))
    examples = [text for text in more if " -> " in text]
    gradient = [text for text in more if text.startswith("Gradient:")]
    yield from (summary, "", *(text for text in more if text not in examples + gradient))
    if op.arity == 1:
        yield "Shapes: any; the result has the same."
    else:
        yield "Shapes: broadcast; a Python number has none, and takes the other operand's dtype."
    yield f"Dtypes: {_describe_dtypes(op.dtypes, op.arity)}."
    yield from (*_describe_accuracy(op.name), *_describe_complex(op), *gradient)
    if op.arity == 1:
        yield "Raises: DTypeError."
    else:
        yield "Raises: ShapeError, DTypeError, DeviceError, ValueOverflowError with the operands."
    if op.name in SEE_ALSO:
        yield f"See also: {', '.join([f'`{n}`' for n in SEE_ALSO[op.name].split()])}."
    for text in examples:
        arguments, result = text.split(" -> ")
        arguments = arguments.replace("[", "dt.asarray([", 1).replace("]", "])", 1)
        yield from (
            "",
            ">>> import dovetail as dt",
            f">>> dt.{op.name}({arguments}).tolist()",
            result,
        )


def _describe_accuracy(name: str) -> list[str]:
    """Return the docstring's lines about the error of floats; none if it is not measured."""
    if name in _CORRECTLY_ROUNDED:
        return ["Accuracy: floats are correctly rounded (IEEE 754)."]
    if name not in ULP:
        return []
    single, double = ULP[name]
    bound = f"within {single:.2f} ulp in float32, {double:.2f} in float64, as measured"
    lines = [f"Accuracy: {bound} (docs/accuracy.md)."]
    return lines if name in _NOT_C99 else [*lines, "Special values: as in C99, annex F."]


def _describe_complex(op: Op) -> list[str]:
    """Return the line about complex operands, except for plain arithmetic."""
    if (
        op.name in _CORRECTLY_ROUNDED[:5]
        or op.name not in (*ULP, *_CORRECTLY_ROUNDED)
        or not _takes_complex(op)
    ):
        return []
    return ["Complex: special values and branch cuts as in C99, annex G (docs/numerics.md)."]


def _takes_complex(op: Op) -> bool:
    """Return True if a row's dtype rule accepts complex64 for all operands."""
    try:
        op.dtypes(op.name, [complex64] * op.arity, None)
    except DTypeError:
        return False
    return True


_KINDS = {
    bool_: "bool",
    int64: "signed integers",
    uint64: "unsigned integers",
    float32: "floats",
    complex64: "complex",
}


@lru_cache
def _describe_dtypes(rule: DTypeRule, arity: int) -> str:
    """Describe the dtypes that a rule accepts and returns, found by calling it with samples."""
    accepted: dict[DType, Dtypes] = {}
    for sample in _KINDS:
        try:
            accepted[sample] = rule("", [sample] * arity, None)
        except DTypeError:
            continue
    kinds = "all" if len(accepted) == len(_KINDS) else ", ".join(_KINDS[d] for d in accepted)
    if all(result is bool_ for _, result in accepted.values()):
        counting = (
            ", nonzero (NaN too) counting as true" if accepted[float32][0][0] is bool_ else ""
        )
        return f"{kinds}{counting}; gives bool"
    gives_parts = complex64 in accepted and accepted[complex64][1] is float32
    of_complex = ";\ncomplex operands give the dtype of their parts" if gives_parts else ""
    if int64 in accepted and accepted[int64][1] is float32:
        both = "floats and complex" if complex64 in accepted else "floats"
        return f"{both}; integers and bool become float32{of_complex}"
    return f"{kinds}; the result has the {'promoted one' if arity == 2 else 'same'}{of_complex}"


# PyTorch's and Python's names of the methods of rows
METHOD_ALIASES = {
    "multiply": ("mul", "mul_"),
    "subtract": ("sub", "sub_"),
    "divide": ("div", "div_"),
    "negative": ("neg", "neg_"),
    "equal": ("eq",),
    "not_equal": ("ne",),
    "less": ("lt",),
    "less_equal": ("le",),
    "greater": ("gt",),
    "greater_equal": ("ge",),
    "conj": ("conjugate",),
}
_PLAIN_NAMES_TAKEN = ("real", "imag", "pow", "round")  # by properties, and by functions below
# Neither NumPy nor PyTorch writes these in place: they answer a question, or select a part.
WITHOUT_IN_PLACE = frozenset(
    ["angle", "imag", "isfinite", "isinf", "isnan", "positive", "real", "signbit"]
)


def _declare_row(op: Op) -> Function:
    """Return the public function of a row; declare its methods, the in-place ones too."""
    function, method = _build_function(op), in_place_method(op)
    in_place = () if op.name in WITHOUT_IN_PLACE else (f"{op.name}_",)
    for name in (op.name, *in_place, *METHOD_ALIASES.get(op.name, ())):
        if name not in _PLAIN_NAMES_TAKEN:
            METHODS[name] = method if name[-1] == "_" else function
    return function


if not TYPE_CHECKING:  # type checkers read the stub
    globals().update({name: _declare_row(op) for name, op in FUNCTIONS.items()})
    __all__ = [
        *FUNCTIONS,
        "allclose",
        "array_equal",
        "clip",
        "isclose",
        "log_softmax",
        "softmax",
        "where",
    ]

# --- compositions of rows -------------------------------------------------------------------------


@public(method=True, wrap=False)
def pow(
    x1: Operand = MISSING,
    x2: Operand = MISSING,
    /,
    *more: object,
    out: Tensor | None = None,
    **theirs: object,
) -> Tensor:
    """Return x1 to the power x2.

    A negative power of an integer is truncated: 2 ** -1 is 0. The power 2 is a multiplication.
    Shapes: broadcast; a Python number has none.
    Dtypes: integers, floats and complex; the promoted dtype. A number takes the other's dtype.
    Accuracy: within 0.85 ulp in float32, 0.82 in float64, as measured (docs/accuracy.md);
    0.99 in 92 million pairs of float32. A complex power is exp(x2 log(x1)), its absolute value by a
    real power.
    Special values: x ** 0 and 1 ** y are 1, also for NaN; a non-integer power of a negative number
    is NaN (C99, annex F).
    Gradient: 0 for x1 where x2 is 0; 0 for x2 where x1 is 0 and x2 not negative.
    Raises: ShapeError, DTypeError, DeviceError, ValueOverflowError, naming the operands.

    >>> import dovetail as dt
    >>> dt.pow(dt.asarray([2, 3]), 2).tolist()
    [4, 9]
    """
    if more or theirs:
        return rebind_keywords(pow, locals())
    if callbacks.run_autocast is not None and out is None:
        x1, x2 = (callbacks.autocast_operand("pow", x) for x in (x1, x2))
    if type(x2) is int and x2 == 2 and isinstance(x1, Tensor) and x1.dtype is not bool_:
        return apply(ops.SQUARE, (x1,), None, out)
    return apply(ops.POW, (x1, x2), None, out)


_with_methods(pow)


@public(method=True, compiled=partial(accelerate, work=round_plain))
def round(x: Tensor, /, decimals: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return the nearest integer, or multiple of 10**-decimals; halves go to the even one.

    Integers change only for negative `decimals`, exactly; a result that their dtype cannot hold
    wraps, as in all arithmetic.

    - `decimals`: digits after the point, from -308 to 308.

    Shapes: any; the result has the same.
    Dtypes: numbers, complex ones part by part; the result has the same.
    Gradient: 0 everywhere.
    Raises: DTypeError; ArgumentError for `decimals` out of range.
    See also: `floor`, `ceil`, `trunc`.

    >>> import dovetail as dt
    >>> dt.round(dt.asarray([0.5, 1.5, 2.6])).tolist()
    [0.0, 2.0, 3.0]
    """
    decimals = integer("round", decimals, "decimals", -308, 308)
    kind = required("round", x).dtype.kind
    if decimals < 0 and kind in "iu":
        tens = _round_to_tens(x, 10**-decimals)
        return tens if out is None else write_out("round", out, tens)
    if decimals == 0 or kind not in "fc":
        return apply(ops.ROUND, (x,), None, out)
    scale = 10.0 ** math.fabs(decimals)
    rounded = (
        _round_half_even(x * scale) / scale if decimals > 0 else _round_half_even(x / scale) * scale
    )
    return rounded if out is None else write_out("round", out, rounded)


def _round_to_tens(x: Tensor, tens: int) -> Tensor:
    """Return integers as multiples of a power of ten, by the size of each in uint64."""
    if tens > uint64.max:  # every integer is nearer to 0
        return apply(ops.MULTIPLY, (x, 0))
    wide = cast(x, uint64 if x.dtype is uint64 else int64)
    size = cast(apply(ops.ABS, (wide,)), uint64)
    count, below = floor_divide(size, tens), remainder(size, tens)
    odd = equal(remainder(count, 2), 1)
    above = subtract(tens, below)
    up = logical_or(greater(below, above), logical_and(equal(below, above), odd))
    size = multiply(add(count, cast(up, uint64)), tens)
    return cast(apply(ops.WHERE, (less(x, 0), subtract(0, size), size)), x.dtype)


def _round_half_even(x: Tensor) -> Tensor:
    """Return the nearest integers; halves go to the even one."""
    return apply(ops.ROUND, (x,))


@overload
def where(condition: Tensor, /) -> tuple[Tensor, ...]: ...
@overload
def where(
    condition: Array, x1: Operand, x2: Operand, /, *, out: Tensor | None = None
) -> Tensor: ...
def where(
    condition: Array = MISSING,
    x1: Operand = MISSING,
    x2: Operand = MISSING,
    /,
    *more: object,
    out: Tensor | None = None,
    **theirs: object,
) -> Tensor | tuple[Tensor, ...]:
    """Return x1 where the condition holds, x2 elsewhere.

    `where(condition)` is `nonzero(condition)`: the positions at which it holds, as in NumPy.

    - `condition`: a tensor of bool, or an array.

    Shapes: `condition`, x1 and x2 are broadcast; Python numbers have none.
    Dtypes: `condition` is bool, x1 and x2 are anything; the result has their promoted dtype.
    Gradient: flows only to the chosen operand; an infinite slope of the other has no effect.
    Raises: DTypeError unless the condition is bool; ShapeError, DeviceError, ValueOverflowError.
    See also: `select`, `choose`, `masked_fill`, `nonzero`.

    >>> import dovetail as dt
    >>> x = dt.asarray([-1, 2])
    >>> dt.where(x < 0, 0, x).tolist()
    [0, 2]
    """
    if more or theirs:
        return rebind_keywords(where, locals())
    if x1 is MISSING and x2 is MISSING and out is None:
        return nonzero(required("where", condition))
    if x1 is MISSING or x2 is MISSING:
        raise ArgumentError(
            "where: expected where(condition, x1, x2), or where(condition) for indices"
        )
    return apply(ops.WHERE, (condition, x1, x2), None, out)


where = accelerate(where, ops.WHERE)


@public(
    method=("clip", "clamp"),
    widen=False,
    compiled=partial(accelerate, work=clip_plain, count=3),
)
def clip(
    x: Tensor,
    /,
    min: Operand | None = None,
    max: Operand | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return x limited to the range from `min` to `max`.

    If min > max the result is max. NaN in x stays, and a bound that is NaN gives NaN.

    - `min`, `max`: the bounds: a tensor, a number, or None for no bound.

    Shapes: x and the bounds are broadcast.
    Dtypes: all, promoted; a number outside of an integer dtype's range bounds nothing or all.
    Gradient: at a bound it flows to x; where min > max, to `max`.
    Raises: ShapeError, DTypeError, DeviceError.
    See also: `minimum`, `maximum`, `where`.

    >>> import dovetail as dt
    >>> dt.clip(dt.asarray([-1, 2, 9]), 0, 5).tolist()
    [0, 2, 5]
    """
    required("clip", x)
    low, high = _saturate_bound(x, min), _saturate_bound(x, max)
    if low is not None and high is not None:
        return apply(ops.CLIP, (x, low, high), None, out)
    if low is not None:
        return apply(ops.MAXIMUM, (x, low), None, out)
    if high is not None:
        return apply(ops.MINIMUM, (x, high), None, out)
    return apply(ops.COPY, (x,), None, out)


def _saturate_bound(x: Tensor, b: Operand | None) -> Operand | None:
    """Return a Python int bound of an integer tensor saturated to its range; else `b` as it is."""
    if isinstance(b, int) and not isinstance(b, bool) and x.dtype.is_integer:
        return x.dtype.min if b < x.dtype.min else x.dtype.max if b > x.dtype.max else b
    return b


@public(method=True, in_place=True, cache=True)
def softmax(x: Tensor, /, axis: int = -1, *, out: Tensor | None = None) -> Tensor:
    """Return exp(x) divided by its sum along `axis`, without overflow, in one kernel.

    The largest element is subtracted first, so that exp cannot overflow. An element of -inf gives
    0; if all are -inf, or one is inf or NaN, all results along that axis are NaN. No elements give
    an empty result.

    - `axis`: one axis.

    Shapes: any of at least 1 dimension; the result has the same.
    Dtypes: integers (giving float32) and floats, not bool; float16 and bfloat16 are computed in
    float32.
    Order: the sum runs in the canonical order (docs/numerics.md): the same bits on every device.
    Gradient: y * (g - sum(g * y)), by differentiation of the steps.
    Raises: AxisError, DTypeError.
    See also: `log_softmax`, `logsumexp`.

    >>> import dovetail as dt
    >>> dt.softmax(dt.asarray([[1.0, 1.0], [0.0, -dt.inf]])).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    if not is_strided(required("softmax", x)):
        return dispatch("softmax", "softmax", (x,), x, lay.axis("softmax", axis, x.ndim))
    axis = lay.axis("softmax", axis, x.ndim)
    e = exp(_subtract_max(x, axis))
    return e / sum_(e, axis=axis, keepdims=True)


@public(method=True, in_place=True, cache=True)
def log_softmax(x: Tensor, /, axis: int = -1, *, out: Tensor | None = None) -> Tensor:
    """Return the logarithm of softmax along `axis`, accurate where softmax underflows.

    One kernel. An element of -inf gives -inf; if all are -inf, or one is inf or NaN, all results
    along that axis are NaN.

    Shapes: any of at least 1 dimension; the result has the same. `axis` is one integer.
    Dtypes: integers (giving float32) and floats, not bool.
    Order: the sum runs in the canonical order (docs/numerics.md): the same bits on every device.
    Raises: AxisError, DTypeError.
    See also: `softmax`, `logsumexp`.

    >>> import dovetail as dt
    >>> dt.log_softmax(dt.asarray([0.0, -1000.0])).tolist()
    [0.0, -1000.0]
    """
    if not is_strided(required("log_softmax", x)):
        along = lay.axis("log_softmax", axis, x.ndim)
        return dispatch("log_softmax", "log_softmax", (x,), x, along)
    axis = lay.axis("log_softmax", axis, x.ndim)
    d = _subtract_max(x, axis)
    return d - log(sum_(exp(d), axis=axis, keepdims=True))


def _subtract_max(x: Tensor, axis: int) -> Tensor:
    """Return x minus its maximum, so that exp cannot overflow.

    Integers are cast first, because their differences would wrap. No result depends on the
    maximum, so it has no gradient.
    """
    x = cast(x, float32) if x.dtype.kind in "iu" else x
    return x - (drop_tape(max_(x, axis=axis, keepdims=True)) if x.size else x)


@public(method=True, out=True)
def isclose(
    x1: Operand,
    x2: Operand,
    /,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return True where two tensors are equal up to rounding: |x1 - x2| <= atol + rtol * |x2|.

    Equal infinities are close.

    - `rtol`, `atol`: the relative and the absolute tolerance, numbers.
    - `equal_nan`: True makes NaN close to NaN.

    Shapes: broadcast; a Python number has none.
    Dtypes: all; integers and bool are compared in float64; complex ones by |x1 - x2|. Gives bool.
    Raises: ShapeError, DTypeError, DeviceError, ArgumentError for a tolerance that is not a number.
    See also: `allclose`, `equal`.

    >>> import dovetail as dt
    >>> dt.isclose(dt.asarray([1.0, 2.0]), 1.000001).tolist()
    [True, False]
    """
    values = convert_operands("isclose", x1, x2)
    d = result_type(*values)
    home = None
    if d.kind != "c" and any(isinstance(x, Tensor) and x.dtype.kind in "biu" for x in values):
        d = float64
        home = device_of(values)
        values = move_to_supporting_device("isclose", d, *values)
    a, b = (as_dtype("isclose", x, d, values) for x in values)
    rtol, atol = real_number("isclose", rtol, "rtol"), real_number("isclose", atol, "atol")
    near = less_equal(abs(subtract(a, b)), add(multiply(abs(b), rtol), atol))
    close = logical_or(logical_and(near, isfinite(b)), equal(a, b))
    if flag("isclose", equal_nan, "equal_nan"):
        close = logical_or(close, logical_and(isnan(a), isnan(b)))
    return close if home is None else move(close, home)


@public(method=True)
def allclose(
    x1: Operand,
    x2: Operand,
    /,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> bool:
    """Return True if all elements of two tensors are close.

    The call computes and reads the values. In a captured function it returns a bool tensor.

    - `rtol`, `atol`: the relative and the absolute tolerance, numbers.
    - `equal_nan`: True makes NaN close to NaN.

    Shapes: broadcast; of no elements: True.
    Dtypes: all; integers and bool are compared in float64.
    Raises: ShapeError, DTypeError, DeviceError, ArgumentError for a tolerance that is not a number.
    See also: `isclose`, `array_equal`.

    >>> import dovetail as dt
    >>> dt.allclose(dt.asarray([1.0, 2.0]), [1.0, 2.000001])
    True
    """
    return read_truth(all_(isclose(x1, x2, rtol=rtol, atol=atol, equal_nan=equal_nan)))


def read_truth(x: Tensor) -> bool:
    """Return a bool tensor of no dimensions as a bool; the tensor itself in a captured function.

    A captured function may return it, or choose by it with `where`. It is captured then; `if` asks
    for the value.
    """
    return x if tracer_api.is_captured() else bool(x)  # type: ignore[return-value]  # no bool is known


@public(widen=False)
def array_equal(x1: Array, x2: Array, /, *, equal_nan: bool = False) -> bool:
    """Return True if two tensors have one shape and equal elements.

    The call computes and reads the values. In a captured function it returns a bool tensor. Dtypes
    may differ.

    - `equal_nan`: if True, NaN equals NaN; otherwise it equals nothing.

    Shapes: any; tensors of different shapes are not equal, even if they broadcast.
    Dtypes: all.
    Raises: DTypeError, DeviceError.
    See also: `allclose`, `equal`, `array_equiv`.

    >>> import dovetail as dt
    >>> dt.array_equal(dt.asarray([1, 2]), [1, 2])
    True
    """
    x1, x2 = as_tensors("array_equal", x1, x2)
    equal_nan = flag("array_equal", equal_nan, "equal_nan")
    if x1.shape != x2.shape:
        return False
    same = equal(x1, x2)
    unordered = logical_and(isnan(x1), isnan(x2)) if equal_nan else None
    return read_truth(all_(same if unordered is None else logical_or(same, unordered)))
