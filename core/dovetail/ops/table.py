"""The table of ops: one row per op.

A row defines the op; nothing else in dovetail knows an op by name.

Kinds of row:
- `map`: elementwise with broadcasting. `expression(*values)` in the kernel IR.
- `generate`: elementwise without tensors: `expression(linear_index, *scalars)`.
- `reduce`: over axes. `before(value, k)` gives the values to combine, `after(results, n)` the
  result.
- `gather`: reads its first argument at computed indices.
- `join`: its arguments one after the other along an axis.
- `kernel`: has a kernel of its own, `build(site)`, or several: matmul, cumulative sums, searches.
- `view`: a `layout` move of one argument.
- `made`: not evaluated at all; the row is there for its gradient.

Operands are cast to the row's compute dtypes, and those of reduced precision to float32, before the
expression sees them; the result is cast to the row's result dtype. So every op in reduced precision
rounds once, at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NoReturn

from ..dtypes import DType, bool_, int64, uint8
from ..errors import InternalError
from ..ir.language import (
    Value,
    cast,
    complex_value,
    const,
    eq,
    floor,
    imag,
    ne,
    real,
    rint,
    sqrt,
    trunc,
    where,
)
from ..layout import Shape
from ..lazy_import import LazyFunctions
from . import arithmetic as ar
from . import complex_arithmetic as cx
from . import dtype_rules as rules
from . import elementary as el
from . import gradient as grad
from . import kernel_ops, scatter, sort
from . import trigonometry as tr
from .arithmetic import convert
from .dtype_rules import DTypeRule, analytic, arithmetic, fixed, floating, same
from .gradient import DEGREE, LN2, LN10, ROOT_HALF_BY_PI, TWO_BY_ROOT_PI, Rule, zero_gradient
from .kernel_context import Attrs, KernelSite, Launches

if TYPE_CHECKING:
    from . import complex_functions as cf
    from . import convolution, frexp, histogram, philox, scan, special
    from . import gamma_functions as gamma
else:  # loaded when the first kernel with such an op is built
    cf = LazyFunctions(".complex_functions", __package__)
    convolution = LazyFunctions(".convolution", __package__)
    frexp = LazyFunctions(".frexp", __package__)
    gamma = LazyFunctions(".gamma_functions", __package__)
    histogram = LazyFunctions(".histogram", __package__)
    philox = LazyFunctions(".philox", __package__)
    scan = LazyFunctions(".scan", __package__)
    special = LazyFunctions(".special", __package__)

OpKind = Literal["map", "generate", "reduce", "gather", "join", "kernel", "view", "made"]
VENDOR_SORT_ROW_ELEMENTS_MIN = (
    16  # elements: rows of 8 take 5 ns an element by rank, 6 by a library's call for each row
)
# For rows so long with keys of so few bits, radix passes are faster than a vendor's comparisons: a
# million int64 below 2**20 take 1.3 ms, not 4.6, and their positions 1.5, not 5.7. Keys that occur
# once each are an exception: the last pass then writes to addresses that are powers of two apart,
# of which few fit a cache, and takes ten times as long.
RADIX_ROW_ELEMENTS_MIN, RADIX_SORT_BITS_MAX, RADIX_ARGSORT_BITS_MAX = 1 << 15, 30, 32
REPEATED_COST_MAX = 8  # a value of a higher cost is stored where it would be computed again
NO_VENDOR_ATTRS = "generated"  # as attrs: dovetail's own kernels, even if the device has a routine


def _raise_missing_field(*args: object) -> NoReturn:
    """Raise InternalError: the field is not for the op's kind."""
    raise InternalError("the op has no such field: ops of its kind do not define it")


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Op:
    """One row.

    - `name`: the name, which is that of its function.
    - `kind`: the kind of op, such as "map", "reduce" or "kernel".
    - `dtypes`: the rule that gives the dtypes of operands and result.
    - `expression`: of a "map": builds the result's `Value` from those of the operands.
    - `cost`: about the number of vector instructions for one value: fusion weighs recomputing by
      it.
    - `combine`: of a "reduce": the name of its `Combine`.
    - `before`, `after`: of a "reduce": what is done to an element before, and to the result after.
    - `build`: of a "kernel": builds its one kernel at a `KernelSite`.
    - `launches`: of a "kernel": adds several launches, in place of `build`.
    - `vendor`: a function of (attrs, the result's shape, the operands' dtype); True if a library
      call may replace the op.
    - `widens`: of a "map": True if the expression sees reduced precision as float32.
    - `calls`: of a "kernel": True if `launches` adds library calls, too.
    - `updates`: of a "kernel": True if the result starts as the first operand, in its memory.
    - `many`: of a "kernel", how `vmap` batches it: more axes may be in "front" of those of its
      operands and its result, or their "first" axis has independent rows; "": one after the other.
    - `shared`: the operands that all rows of `many="first"` share.
    - `arity`: the number of operands.
    - `gradient`: a rule for each operand, or None if it has no gradient; () if none has one or
      `set_gradient` sets the rules.
    - `widens_gradient`: True if rules get operands of reduced precision as float32, and their
      results are rounded once.
    - `unbounded`: of a "map": True if a Python int outside of the operands' integer dtype compares
      as an infinity.
    - `unchecked_min`: of a "map": the second operand's smallest Python int that needs no check, if
      the result is an integer.
    - `placeholder`: of a "kernel": True if it has no kernel, because a tracer knows the value.
    - `purpose_at`: of a "kernel": the position in the attrs of an `IndexPurpose`, which has a size;
      -1: there is none.
    """

    name: str
    kind: OpKind
    dtypes: DTypeRule = _raise_missing_field
    expression: Callable[..., Value] = _raise_missing_field
    cost: int = 1
    combine: str = ""
    before: Callable[[Value, Value], Sequence[Value]] = _raise_missing_field
    after: Callable[[Sequence[Value], Value], Value] = _raise_missing_field
    build: Callable[[KernelSite], None] = _raise_missing_field
    launches: Callable[[Launches], None] | None = None  # several kernels, in place of `build`
    # (attrs, the result's shape, the operands' dtype) -> True if a library call may replace it
    vendor: Callable[[Attrs, Shape, DType], bool] = lambda attrs, shape, d: attrs != NO_VENDOR_ATTRS
    widens: bool = True  # of `map`: the expression sees reduced precision as float32
    calls: bool = False  # of `kernel`: `launches` adds library calls, too
    updates: bool = False  # of `kernel`: the result starts as the first operand, in its memory
    # Of `kernel`, how `vmap` batches it: more axes may be in "front" of those of its operands and
    # its result, or their "first" axis has independent rows; "": one after the other. `shared`: the
    # operands that all such rows share.
    many: Literal["front", "first", ""] = ""
    shared: tuple[int, ...] = ()
    arity: int = 1
    # A rule for each operand, or None if it has no gradient. It is empty if no operand has one, and
    # if the rules need more than elementwise functions: these are in `autograd.gradients`.
    gradient: tuple[Rule | None, ...] = ()
    # Rules get operands of reduced precision as float32, and their results are rounded once; not
    # rules that move elements, or are one product.
    widens_gradient: bool = True
    # Of `map`: a Python int outside of the operands' integer dtype compares as an infinity.
    unbounded: bool = False
    unchecked_min: int | None = None  # of `map`: the second operand's smallest int without a check
    placeholder: bool = False  # of `kernel`: it has no kernel, a tracer knows the value
    purpose_at: int = -1  # of `kernel`: the position of an `IndexPurpose` in the attrs

    def __repr__(self) -> str:
        return f"<op {self.name}>"


TABLE: dict[str, Op] = {}


def _add_op(op: Op) -> Op:
    """Put a row into TABLE by its name, and return the row."""
    TABLE[op.name] = op
    return op


# --- elementwise rows: name, dtypes, expression, then a gradient for each operand -----------------

NUMERIC, INTEGRAL = "iuf", "biu"
WITH_COMPLEX, ANY_KIND = "iufc", "biufc"


def _binary(
    name: str,
    rule: DTypeRule,
    expression: Callable[[Value, Value], Value],
    *gradient: Rule | None,
    cost: int = 1,
    widens: bool = True,
    unchecked_min: int | None = None,
) -> Op:
    """Add an elementwise op of two operands, one gradient rule for each, and return its row."""
    return _add_op(
        Op(
            name,
            "map",
            rule,
            expression,
            cost,
            widens=widens,
            arity=2,
            gradient=gradient,
            unchecked_min=unchecked_min,
        )
    )


def _comparison(name: str, rule: DTypeRule, expression: Callable[[Value, Value], Value]) -> Op:
    """Add an elementwise op of two operands without gradient, and return its row."""
    return _add_op(Op(name, "map", rule, expression, unbounded=True, arity=2))


def _unary(
    name: str,
    rule: DTypeRule,
    expression: Callable[[Value], Value],
    gradient: Rule | None = None,
    *,
    cost: int = 1,
) -> Op:
    """Add an elementwise op of one operand, and return its row."""
    rows = () if gradient is None else (gradient,)
    return _add_op(Op(name, "map", rule, expression, cost, gradient=rows))


def _analytic(
    name: str,
    of_reals: Callable[[Value], Value],
    of_complex: Callable[[Value], Value],
    gradient: Rule,
    *,
    cost: int,
) -> Op:
    """Add an op of one float or complex operand, with an expression for each; return its row."""
    return _unary(name, analytic, cx.either(of_reals, of_complex), gradient, cost=cost)


# fmt: off
ADD = _binary("add", arithmetic(ANY_KIND), cx.either(ar.add, cx.add), lambda g: g, lambda g: g)
SUBTRACT = _binary("subtract", arithmetic(WITH_COMPLEX),
                   cx.either(lambda x, y: x - y, cx.subtract),
                   lambda g: g, lambda g: -g)
MULTIPLY = _binary("multiply", arithmetic(ANY_KIND), cx.either(ar.multiply, cx.multiply),
                   lambda dt, g, y: g * dt.conj(y), lambda dt, g, x: g * dt.conj(x))
DIVIDE = _binary("divide", rules.dividing, cx.either(lambda x, y: x / y, cx.divide),
                 lambda dt, g, y: g / dt.conj(y),
                 lambda dt, g, x, y: -g * dt.conj((x / y) / y), cost=4)
FLOOR_DIVIDE = _binary("floor_divide", same(NUMERIC), ar.floor_divide,
                       zero_gradient, zero_gradient, cost=20, unchecked_min=1)
# The operator // of tensors with NumPy's or PyTorch's meaning; only infinities differ.
PYTHON_FLOOR_DIVIDE = _binary("python_floor_divide", same(NUMERIC), ar.python_floor_divide,
                              zero_gradient, zero_gradient, cost=20, unchecked_min=1)
REMAINDER = _binary("remainder", same(NUMERIC), ar.remainder,
                    lambda g: g, lambda dt, g, x, y: -g * dt.floor_divide(x, y),
                    cost=20, unchecked_min=1)
POW = _binary("pow", same(WITH_COMPLEX), cx.either(ar.power, cf.pow),
              grad.pow_base, grad.pow_exponent, cost=60, unchecked_min=0)
ATAN2 = _binary("atan2", floating, tr.atan2,
                lambda dt, g, x, y: g * grad.divide_by_square_sum(dt, y, x, y),
                lambda dt, g, x, y: g * grad.divide_by_square_sum(dt, -x, x, y), cost=40)
HYPOT = _binary("hypot", floating, el.hypot,
                lambda g, x, r: g * (x / r), lambda g, y, r: g * (y / r), cost=20)
COPYSIGN = _binary("copysign", floating, ar.copysign, grad.copysign, zero_gradient)
NEXTAFTER = _binary("nextafter", floating, ar.nextafter, cost=8, widens=False)
LOGADDEXP = _binary("logaddexp", floating, el.logaddexp,
                    lambda dt, g, x, y: g * dt.sigmoid(x - y),
                    lambda dt, g, x, y: g * dt.sigmoid(y - x), cost=40)
MAXIMUM = _binary("maximum", same(), ar.maximum,
                  grad.maximum, lambda dt, g, x, y: grad.maximum(dt, g, y, x), cost=2)
MINIMUM = _binary("minimum", same(), ar.minimum,
                  grad.minimum, lambda dt, g, x, y: grad.minimum(dt, g, y, x), cost=2)
EQUAL = _comparison("equal", rules.equality, ar.comparing(eq))
NOT_EQUAL = _comparison("not_equal", rules.equality, ar.comparing(ne))
LESS = _comparison("less", rules.comparison, ar.ordered(lambda x, y: x < y))
LESS_EQUAL = _comparison("less_equal", rules.comparison, ar.ordered(lambda x, y: x <= y))
GREATER = _comparison("greater", rules.comparison, ar.ordered(lambda x, y: y < x))
GREATER_EQUAL = _comparison("greater_equal", rules.comparison, ar.ordered(lambda x, y: y <= x))
LOGICAL_AND = _binary("logical_and", rules.logical, lambda x, y: x & y)
LOGICAL_OR = _binary("logical_or", rules.logical, lambda x, y: x | y)
LOGICAL_XOR = _binary("logical_xor", rules.logical, lambda x, y: x ^ y)
BITWISE_AND = _binary("bitwise_and", same(INTEGRAL), lambda x, y: x & y)
BITWISE_OR = _binary("bitwise_or", same(INTEGRAL), lambda x, y: x | y)
BITWISE_XOR = _binary("bitwise_xor", same(INTEGRAL), lambda x, y: x ^ y)
LEFT_SHIFT = _binary("bitwise_left_shift", same("iu"), ar.shift_left, cost=2)
RIGHT_SHIFT = _binary("bitwise_right_shift", same("iu"), ar.shift_right, cost=2)

LOGICAL_NOT = _unary("logical_not", rules.logical, lambda x: ~x)
BITWISE_INVERT = _unary("bitwise_invert", same(INTEGRAL), lambda x: ~x)
ABS = _unary("abs", rules.size, cx.either(ar.absolute, cx.absolute),
             lambda dt, g, x: g * dt.sign(x))
NEGATIVE = _unary("negative", same(WITH_COMPLEX), ar.negative, lambda g: -g)
POSITIVE = _unary("positive", same(WITH_COMPLEX), lambda x: x, lambda g: g, cost=0)
SIGN = _unary("sign", same(WITH_COMPLEX), cx.either(ar.sign, cx.sign), grad.sign, cost=4)
SQUARE = _unary("square", same(WITH_COMPLEX), lambda x: x * x,
                lambda dt, g, x: g * dt.conj(x * 2.0))
RECIPROCAL = _unary("reciprocal", analytic, cx.either(lambda x: 1.0 / x, cx.reciprocal),
                    lambda dt, g, r: -g * dt.conj(r * r), cost=4)
SQRT = _unary("sqrt", analytic, cx.either(sqrt, cx.square_root),
              lambda dt, g, r: g / dt.conj(r * 2.0), cost=4)
CONJ = _unary("conj", same(WITH_COMPLEX), cx.either(lambda x: x, cx.conj), lambda dt, g: dt.conj(g))
REAL = _unary("real", rules.size, cx.either(lambda x: x, real), lambda g: g)
IMAG = _unary("imag", rules.size, cx.either(lambda x: const(0, x.dtype), imag), grad.imag)
ANGLE = _unary("angle", rules.turn, cx.either(cx.angle_of_real, cx.angle), grad.angle, cost=40)
CEIL = _unary("ceil", same(NUMERIC), ar.ceil, zero_gradient, cost=2)
FLOOR = _unary("floor", same(NUMERIC), ar.rounding(floor), zero_gradient)
TRUNC = _unary("trunc", same(NUMERIC), ar.rounding(trunc), zero_gradient)
ROUND = _unary("round", same(WITH_COMPLEX),
               cx.either(ar.rounding(rint), lambda z: complex_value(rint(real(z)), rint(imag(z)))),
               zero_gradient)
ISNAN = _unary("isnan", rules.predicate, lambda x: ne(x, x))
ISINF = _unary("isinf", rules.predicate, cx.either(ar.isinf, cx.is_infinite), cost=2)
ISFINITE = _unary("isfinite", rules.predicate, cx.either(ar.isfinite, cx.all_finite), cost=2)
SIGNBIT = _unary("signbit", rules.predicate_of_floats, ar.signbit)

EXP = _analytic("exp", el.exp, cf.exp, lambda dt, g, r: g * dt.conj(r), cost=14)
_analytic("exp2", el.exp2, cf.exp2, lambda dt, g, r: g * dt.conj(r * LN2), cost=14)
_analytic("expm1", el.expm1, cf.expm1, lambda dt, g, x: g * dt.conj(dt.exp(x)), cost=20)
LOG = _analytic("log", el.log, cf.log, lambda dt, g, x: g / dt.conj(x), cost=20)
_analytic("log2", el.log2, cf.log2, lambda dt, g, x: g / dt.conj(x * LN2), cost=20)
_analytic("log10", el.log10, cf.log10, lambda dt, g, x: g / dt.conj(x * LN10), cost=20)
_analytic("log1p", el.log1p, cf.log1p, lambda dt, g, x: g / dt.conj(x + 1.0), cost=25)
_analytic("sin", tr.sin, cf.sin, lambda dt, g, x: g * dt.conj(dt.cos(x)), cost=30)
_analytic("cos", tr.cos, cf.cos, lambda dt, g, x: -g * dt.conj(dt.sin(x)), cost=30)
_analytic("tan", tr.tan, cf.tan, lambda dt, g, r: g * dt.conj(r * r + 1.0), cost=40)
_analytic("asin", tr.asin, cf.asin,
          lambda dt, g, x: g * dt.conj(grad.rsqrt(dt, 1.0 - x * x)), cost=25)
_analytic("acos", tr.acos, cf.acos,
          lambda dt, g, x: -g * dt.conj(grad.rsqrt(dt, 1.0 - x * x)), cost=25)
_analytic("atan", tr.atan, cf.atan, lambda dt, g, x: g / dt.conj(x * x + 1.0), cost=25)
_analytic("sinh", el.sinh, cf.sinh, lambda dt, g, x: g * dt.conj(dt.cosh(x)), cost=30)
_analytic("cosh", el.cosh, cf.cosh, lambda dt, g, x: g * dt.conj(dt.sinh(x)), cost=25)
_analytic("tanh", el.tanh, cf.tanh, lambda dt, g, r: g * dt.conj(1.0 - r * r), cost=25)
_analytic("asinh", el.asinh, cf.asinh,
          lambda dt, g, x: g * dt.conj(grad.rsqrt(dt, x * x + 1.0)), cost=40)
_analytic("acosh", el.acosh, cf.acosh, grad.acosh, cost=40)
_analytic("atanh", el.atanh, cf.atanh, lambda dt, g, x: g / dt.conj(1.0 - x * x), cost=40)
_unary("cbrt", floating, el.cbrt, lambda g, r: g / (r * r * 3.0), cost=20)
_unary("erf", floating, special.erf,
       lambda dt, g, x: g * (dt.exp(-(x * x)) * TWO_BY_ROOT_PI), cost=40)
_unary("erfc", floating, special.erfc,
       lambda dt, g, x: g * (dt.exp(-(x * x)) * -TWO_BY_ROOT_PI), cost=40)
_unary("erfinv", floating, special.erfinv,
       lambda dt, g, r: g * (dt.exp(r * r) * (1.0 / TWO_BY_ROOT_PI)), cost=60)
_unary("ndtr", floating, special.ndtr,
       lambda dt, g, x: g * (dt.exp(x * x * -0.5) * ROOT_HALF_BY_PI), cost=50)
_unary("ndtri", floating, special.ndtri,
       lambda dt, g, r: g * (dt.exp(r * r * 0.5) * (1.0 / ROOT_HALF_BY_PI)), cost=60)
_unary("logit", floating, special.logit, lambda g, x: g / (x * (1.0 - x)), cost=50)
_unary("lgamma", floating, gamma.lgamma, lambda dt, g, x: g * dt.digamma(x), cost=250)
_unary("gamma", floating, gamma.gamma, lambda dt, g, x, r: g * (r * dt.digamma(x)), cost=250)
_unary("digamma", floating, gamma.digamma, grad.digamma, cost=120)
_unary("i0", floating, special.i0, lambda dt, g, x: g * dt.i1(x), cost=60)
_unary("i1", floating, special.i1, grad.i1, cost=60)
_unary("sinc", floating, special.sinc, grad.sinc, cost=30)
_unary("deg2rad", floating, lambda x: x * DEGREE, lambda g: g * DEGREE)
_unary("rad2deg", floating, lambda x: x * (1.0 / DEGREE), lambda g: g * (1.0 / DEGREE))
_unary("frexp_mantissa", floating, frexp.frexp_mantissa, grad.frexp_mantissa, cost=6)
_unary("frexp_exponent", rules.exponent, frexp.frexp_exponent, cost=6)
_binary("ldexp", floating, frexp.ldexp, lambda dt, g, y: dt.ldexp(g, y), zero_gradient, cost=10)
_binary("heaviside", floating, frexp.heaviside,
        zero_gradient, grad.heaviside_middle, cost=3)
_binary("gcd", same("iu"), frexp.gcd, cost=900)
_binary("lcm", same("iu"), frexp.lcm, cost=900)
_binary("xlogy", floating, special.xlogy, grad.xlogy_factor, lambda g, x, y: g * (x / y), cost=25)
_binary("beta", floating, gamma.beta,
        lambda dt, g, x, y, r: g * (r * (dt.digamma(x) - dt.digamma(x + y))),
        lambda dt, g, x, y, r: g * (r * (dt.digamma(y) - dt.digamma(x + y))), cost=600)
_binary("zeta", floating, gamma.zeta,
        None, lambda dt, g, x, y: -g * (x * dt.zeta(x + 1.0, y)), cost=900)
_unary("rsqrt", floating, el.rsqrt, lambda g, r: g * (r * r * r * -0.5), cost=8)
_unary("sigmoid", floating, el.sigmoid, lambda g, r: g * (r * (1.0 - r)), cost=20)

# x <= 0 instead of x < 0, so that -0 gives 0, as maximum(x, 0) may.
RELU = _unary("relu", same(NUMERIC), lambda x: where(x <= 0, const(0, x.dtype), x),
              lambda dt, g, r: dt.where(r <= 0, 0.0, g))
WHERE = _add_op(Op("where", "map", rules.selection, where, arity=3, gradient=(
    None, lambda dt, g, x: dt.where(x, g, 0.0), lambda dt, g, x: dt.where(x, 0.0, g))))
CLIP = _add_op(Op("clip", "map", same(), ar.clip, 4, arity=3,
               gradient=(grad.clip_value, grad.clip_low, grad.clip_high)))
ASTYPE = _unary("astype", rules.as_told, lambda x: x, lambda g: g)
COPY = _unary("copy", same(ANY_KIND), lambda x: x, lambda g: g, cost=0)  # a new contiguous tensor

# --- generators: the linear index of an element, then scalars -------------------------------------


def _generate(name: str, expression: Callable[..., Value], arity: int, cost: int) -> Op:
    """Add an op that computes each element from its index and scalars; return its row."""
    return _add_op(Op(name, "generate", rules.declared, expression, cost, arity=arity))


def _linspace(i: Value, start: Value, stop: Value, step: Value, gaps: Value) -> Value:
    """Return the element, computed from the nearer end, so that both ends are exact."""
    up, down = start + convert(i, step.dtype) * step, stop - convert(gaps - i, step.dtype) * step
    return where(i < gaps - i, up, down)


FULL = _generate("full", lambda i, x: x, 1, 0)
FULL_COMPLEX = _generate("full_complex", lambda i, re, im: complex_value(re, im), 2, 0)
ARANGE = _generate("arange", lambda i, start, step: start + convert(i, start.dtype) * step, 2, 2)
LINSPACE = _generate("linspace", _linspace, 4, 4)
POSITION = _generate("position", lambda i: i, 0, 0)


# --- reductions -----------------------------------------------------------------------------------


def _as_tuple(x: Value, k: Value) -> tuple[Value, ...]:
    """Return the value to combine, in a tuple."""
    return (x,)


def _comparable(x: Value, k: Value) -> tuple[Value, ...]:
    """Return x, a bool as uint8, in a tuple; the position k is ignored."""
    return (cast(x, uint8) if x.dtype is bool_ else x,)


def _with_position(x: Value, k: Value) -> tuple[Value, ...]:
    """Return the value to compare, and its position."""
    return (*_comparable(x, k), k)


def _first_result(results: Sequence[Value], n: Value) -> Value:
    """Return the only result of a combine."""
    return results[0]


def _reduce(name: str, rule: DTypeRule, combine: str,
            before: Callable[[Value, Value], Sequence[Value]] = _as_tuple,
            after: Callable[[Sequence[Value], Value], Value] = _first_result) -> Op:
    """Add a reduction by a combine of the kernel IR, and return its row."""
    return _add_op(Op(name, "reduce", rule, combine=combine, before=before, after=after))


SUM = _reduce("sum", rules.summing, "add")
PROD = _reduce("prod", rules.summing, "mul")
MEAN = _reduce("mean", rules.averaging, "add",
               after=lambda r, n: cx.mean(r[0], convert(n, r[0].dtype.part)))
MAX = _reduce("max", rules.keeping, "max", _comparable)
MIN = _reduce("min", rules.keeping, "min", _comparable)
ANY = _reduce("any", rules.testing, "or")
ALL = _reduce("all", rules.testing, "and")
COUNT_NONZERO = _reduce("count_nonzero", fixed((bool_,), int64), "add",
                        lambda x, k: (cast(x, int64),))
ARGMAX = _reduce("argmax", rules.counting, "argmax", _with_position, lambda r, n: r[1])
ARGMIN = _reduce("argmin", rules.counting, "argmin", _with_position, lambda r, n: r[1])

# --- views and gathers ----------------------------------------------------------------------------

# attrs: a layout move.
VIEW = _add_op(Op("view", "view", rules.as_given, cost=0, widens_gradient=False))

# gather(x, index, ...): attrs = (result shape, for each result axis the axis of x or -1, the axis
# of x of each index, the purpose of each: (the op, the axis, its size)). Indices broadcast to the
# result's shape. Negative ones count from the end, and one out of range is an IndexError. With None
# as the last of attrs all are known to be in range and not negative.
GATHER = _add_op(Op("gather", "gather", rules.gathering, cost=4))

CONCAT = _add_op(
    Op("concat", "join", rules.as_given, cost=2, arity=0, widens_gradient=False)
)  # attrs: the axis

# Nodes that no plan evaluates: the rows are there for their gradients.
AS_STRIDED = Op("as_strided", "made")  # attrs: the operand's layout, the result's
# Memory with the operand put in; attrs: (layout, size).
PLACE = Op("place", "made", widens_gradient=False)
TO_DEVICE = Op("to_device", "made", widens_gradient=False)
# A view after a write to another; attrs: both layouts.
WRITTEN = Op("written", "made", arity=2, widens_gradient=False)

# --- kernel ops -----------------------------------------------------------------------------------


def _kernel(name: str, rule: DTypeRule, build: Callable[[KernelSite], None], arity: int = 1, *,
            widens_gradient: bool = True, purpose_at: int = -1) -> Op:
    """Add an op whose kernel `build` writes, and return its row."""
    return _add_op(Op(name, "kernel", rule, build=build, arity=arity,
                   widens_gradient=widens_gradient, purpose_at=purpose_at))


def _prefers_vendor_sort(attrs: sort.SortAttrs, shape: Shape, d: DType) -> bool:
    """Return True if a vendor's sort is faster: words of 32 bits are compared twice as fast."""
    return _prefers_vendor(attrs, shape, RADIX_SORT_BITS_MAX if d.itemsize == 8 else 0)


def _prefers_vendor_argsort(attrs: sort.SortAttrs, shape: Shape, d: DType) -> bool:
    """Return True if a vendor's argsort is faster."""
    return _prefers_vendor(attrs, shape, RADIX_ARGSORT_BITS_MAX)


def _prefers_vendor(attrs: sort.SortAttrs, shape: Shape, few_bits: int) -> bool:
    """Return True for ascending rows that are neither short nor both long and of few bits."""
    length = shape[-1]
    has_few_bits = attrs.stop - attrs.first <= few_bits and not attrs.may_have_unique_keys
    prefers_radix = has_few_bits and length >= RADIX_ROW_ELEMENTS_MIN
    return not attrs.descending and length >= VENDOR_SORT_ROW_ELEMENTS_MIN and not prefers_radix


MATMUL = _add_op(Op("matmul", "kernel", rules.contracting, launches=kernel_ops.matmul, calls=True,
                    arity=2, widens_gradient=False))
# Convolutions, of (x, w) or (x, w, bias); their gradients x of (y, w), and w of (x, y). attrs: a
# `convolution.Geometry`.
CONVOLUTION = _add_op(Op("convolution", "kernel", same("iuf"), launches=convolution.convolution,
                      calls=True, many="front", arity=2, widens_gradient=False))
CONVOLUTION_INPUT = _add_op(Op("convolution_input", "kernel", same("iuf"), arity=2, many="front",
                            launches=convolution.convolution_input, calls=True,
                            widens_gradient=False))
CONVOLUTION_WEIGHT = _add_op(Op("convolution_weight", "kernel", same("iuf"), arity=2, many="front",
                             launches=convolution.convolution_weight, calls=True,
                             widens_gradient=False))
COUNT_BLOCKS = _kernel("count_blocks", fixed((bool_,), int64), kernel_ops.count_blocks)
TRUE_POSITIONS = _kernel(
    "true_positions", fixed((bool_, int64), int64), kernel_ops.true_positions, 2
)
PACKED_POSITIONS = _kernel("packed_positions", fixed((bool_,), int64), kernel_ops.packed_positions)
COUNT_RUNS = _kernel("count_runs", rules.grouping, kernel_ops.count_runs)
RUN_BOUNDS = _kernel("run_bounds", rules.grouping, kernel_ops.run_bounds, 2)
CHECKED_INDICES = _kernel("checked_indices", rules.integers, kernel_ops.checked_indices,
                          purpose_at=0)
SCATTER = _add_op(Op("scatter", "kernel", rules.scattering, launches=scatter.scatter, updates=True,
                  arity=3, widens_gradient=False,
                  purpose_at=scatter.Manner._fields.index("purpose")))
# A scatter of products or extremes. Its gradient needs the operands and the result.
SCATTER_REDUCE = _add_op(Op("scatter_reduce", "kernel", rules.scattering, launches=scatter.scatter,
                         updates=True, arity=3, widens_gradient=False,
                         purpose_at=SCATTER.purpose_at))
SEARCHSORTED = _kernel("searchsorted", rules.searching, kernel_ops.search_sorted, 2)

# Sorting along the last axis, stable, NaN last. attrs: a `sort.Order`; the number is the zero of
# the keys of integers. A vendor routine sorts in ascending order, and rows that are not
# VENDOR_SORT_ROW_ELEMENTS_MIN, nor RADIX_ROW_ELEMENTS_MIN with few bits.
SORT = _add_op(Op("sort", "kernel", rules.sorting, launches=sort.sort, vendor=_prefers_vendor_sort))
ARGSORT = _add_op(Op("argsort", "kernel", rules.ordering, launches=sort.argsort,
                  vendor=_prefers_vendor_argsort))

# The element at a rank of each row, and the counts of 0, 1, ...: both in `counting`.
SELECT = _add_op(Op("select", "kernel", rules.selecting, launches=histogram.select_by_rank))
COUNT_VALUES = _add_op(Op("count_values", "kernel", rules.tallying,
                          launches=histogram.count_values))

# Running sums, products, logarithms of sums, and extremes: k ascending, reduced precision in
# float32. attrs: (axis, True if the initial value comes first, dtype).
CUMULATIVE_SUM = _add_op(Op("cumulative_sum", "kernel", rules.running, launches=scan.running_sum))
CUMULATIVE_PROD = _add_op(Op("cumulative_prod", "kernel", rules.running,
                          launches=scan.running_product))
CUMULATIVE_LOGSUMEXP = _add_op(Op("cumulative_logsumexp", "kernel", rules.running_logs,
                               launches=scan.running_logsumexp))
CUMULATIVE_MAX = _add_op(Op("cumulative_max", "kernel", same("iuf"), launches=scan.running_maximum))
CUMULATIVE_MIN = _add_op(Op("cumulative_min", "kernel", same("iuf"), launches=scan.running_minimum))
RECURRENCE = _kernel("recurrence", same("fc"), kernel_ops.recurrence, 2)

# Random numbers: functions of the element's index, a seed and an offset.
RANDOM_UNIFORM32 = _generate("random_uniform32", philox.uniform32, 4, 90)
RANDOM_UNIFORM64 = _generate("random_uniform64", philox.uniform64, 2, 90)
RANDOM_NORMAL32 = _generate("random_normal32", philox.normal32, 2, 150)
RANDOM_NORMAL64 = _generate("random_normal64", philox.normal64, 2, 150)
RANDOM_BELOW = _generate("random_below", philox.uniform_below, 4, 100)
