"""THE table: one row per op.

A row says what the op means; nothing else in dovetail knows an op by name.

Kinds of row:
- `map`: elementwise with broadcasting. `expression(*values)` in the loop language.
- `generate`: elementwise without tensors: `expression(linear_index, *scalars)`.
- `reduce`: over axes. `before(value, k)` gives what is combined, `after(results, n)` what comes
  out.
- `gather`: reads its first argument at computed places.
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
from typing import Literal, NoReturn

from ..dtypes import bool_, int64, uint8
from ..errors import InternalError
from ..kernel.language import Value, cast, const, eq, floor, ne, rint, sqrt, trunc, where
from ..layout import Shape
from . import arithmetic as ar
from . import dtype_rules as rules
from . import elementary as el
from . import gradient as grad
from . import kernels, philox, scan, scatter, sort, special
from . import trigonometry as tr
from .arithmetic import convert
from .dtype_rules import DTypeRule, fixed, floating, same
from .gradient import LN2, LN10, TWO_BY_ROOT_PI, Rule, flat
from .site import Attrs, KernelSite, Launches

Kind = Literal["map", "generate", "reduce", "gather", "join", "kernel", "view", "made"]
SHORT = 16  # elements: rows of 8 take 5 ns an element by rank, 6 by a library's call for each row
GENERATED = "generated"  # as attrs: no vendor routine, whatever the device offers


def _nothing(*args: object) -> NoReturn:
    raise InternalError("an op was asked for what ops of its kind do not have")


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """One row.

    `cost` is about the number of vector instructions for one value: fusion weighs recomputing by
    it.
    """

    name: str
    kind: Kind
    dtypes: DTypeRule = _nothing
    expression: Callable[..., Value] = _nothing
    cost: int = 1
    combine: str = ""
    before: Callable[[Value, Value], Sequence[Value]] = _nothing
    after: Callable[[Sequence[Value], Value], Value] = _nothing
    build: Callable[[KernelSite], None] = _nothing
    launches: Callable[[Launches], None] | None = None  # several kernels, in place of `build`
    # May it be a library call, with these attributes and a result of this shape?
    vendor: Callable[[Attrs, Shape], bool] = lambda attrs, shape: attrs != GENERATED
    widens: bool = True  # of `map`: the expression sees reduced precision as float32
    updates: bool = False  # of `kernel`: the result starts as the first operand, in its memory
    arity: int = 1
    # A rule for each operand, or None where it has no gradient; empty where none has, and where
    # the rules take more than elementwise functions: these are in `autograd.gradients`.
    gradient: tuple[Rule | None, ...] = ()

    def __repr__(self) -> str:
        return f"<op {self.name}>"


TABLE: dict[str, Op] = {}


def _row(op: Op) -> Op:
    """Adds a row."""
    TABLE[op.name] = op
    return op


# --- elementwise rows: name, dtypes, expression, then a gradient for each operand -----------------

NUMERIC, INTEGRAL = "iuf", "biu"


def _binary(name: str, rule: DTypeRule, expression: Callable[[Value, Value], Value],
            *gradient: Rule | None, cost: int = 1, widens: bool = True) -> Op:  # fmt: skip
    return _row(Op(name, "map", rule, expression, cost, widens=widens, arity=2, gradient=gradient))


def _unary(name: str, rule: DTypeRule, expression: Callable[[Value], Value],
           gradient: Rule | None = None, *, cost: int = 1) -> Op:  # fmt: skip
    rows = () if gradient is None else (gradient,)
    return _row(Op(name, "map", rule, expression, cost, gradient=rows))


ADD = _binary("add", same(), ar.add, lambda g: g, lambda g: g)
SUBTRACT = _binary("subtract", same(NUMERIC), lambda x, y: x - y, lambda g: g, lambda g: -g)
MULTIPLY = _binary("multiply", same(), ar.multiply, lambda g, y: g * y, lambda g, x: g * x)
DIVIDE = _binary("divide", floating, lambda x, y: x / y,
                 lambda g, y: g / y, lambda g, x, y: -g * ((x / y) / y), cost=4)  # fmt: skip
FLOOR_DIVIDE = _binary("floor_divide", same(NUMERIC), ar.floor_divide, flat, flat, cost=20)
REMAINDER = _binary("remainder", same(NUMERIC), ar.remainder,
                    lambda g: g, lambda dt, g, x, y: -g * dt.floor_divide(x, y),
                    cost=20)  # fmt: skip
POW = _binary("pow", same(NUMERIC), ar.power, grad.pow_base, grad.pow_exponent, cost=60)
ATAN2 = _binary("atan2", floating, tr.atan2,
                lambda dt, g, x, y: g * grad.by_square_sum(dt, y, x, y),
                lambda dt, g, x, y: g * grad.by_square_sum(dt, -x, x, y), cost=40)  # fmt: skip
HYPOT = _binary("hypot", floating, el.hypot,
                lambda g, x, r: g * (x / r), lambda g, y, r: g * (y / r), cost=20)  # fmt: skip
COPYSIGN = _binary("copysign", floating, ar.copysign, grad.copysign, flat)
NEXTAFTER = _binary("nextafter", floating, ar.nextafter, cost=8, widens=False)
LOGADDEXP = _binary("logaddexp", floating, el.logaddexp,
                    lambda dt, g, x, y: g * dt.sigmoid(x - y),
                    lambda dt, g, x, y: g * dt.sigmoid(y - x), cost=40)  # fmt: skip
MAXIMUM = _binary("maximum", same(), ar.maximum,
                  grad.maximum, lambda dt, g, x, y: grad.maximum(dt, g, y, x), cost=2)  # fmt: skip
MINIMUM = _binary("minimum", same(), ar.minimum,
                  grad.minimum, lambda dt, g, x, y: grad.minimum(dt, g, y, x), cost=2)  # fmt: skip
EQUAL = _binary("equal", rules.comparison, eq)
NOT_EQUAL = _binary("not_equal", rules.comparison, ne)
LESS = _binary("less", rules.comparison, ar.ordered(lambda x, y: x < y))
LESS_EQUAL = _binary("less_equal", rules.comparison, ar.ordered(lambda x, y: x <= y))
GREATER = _binary("greater", rules.comparison, ar.ordered(lambda x, y: y < x))
GREATER_EQUAL = _binary("greater_equal", rules.comparison, ar.ordered(lambda x, y: y <= x))
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
ABS = _unary("abs", same(NUMERIC), ar.absolute, lambda dt, g, x: g * dt.sign(x))
NEGATIVE = _unary("negative", same(NUMERIC), ar.negative, lambda g: -g)
POSITIVE = _unary("positive", same(NUMERIC), lambda x: x, lambda g: g, cost=0)
SIGN = _unary("sign", same(NUMERIC), ar.sign, flat, cost=4)
SQUARE = _unary("square", same(NUMERIC), lambda x: x * x, lambda g, x: g * (x * 2.0))
RECIPROCAL = _unary("reciprocal", floating, lambda x: 1.0 / x, lambda g, r: -g * (r * r), cost=4)
SQRT = _unary("sqrt", floating, sqrt, lambda g, r: g / (r * 2.0), cost=4)
CEIL = _unary("ceil", same(NUMERIC), ar.ceil, flat, cost=2)
FLOOR = _unary("floor", same(NUMERIC), ar.rounding(floor), flat)
TRUNC = _unary("trunc", same(NUMERIC), ar.rounding(trunc), flat)
ROUND = _unary("round", same(NUMERIC), ar.rounding(rint), flat)
ISNAN = _unary("isnan", rules.predicate, lambda x: ne(x, x))
ISINF = _unary("isinf", rules.predicate, ar.isinf, cost=2)
ISFINITE = _unary("isfinite", rules.predicate, ar.isfinite, cost=2)
SIGNBIT = _unary("signbit", rules.predicate_of_floats, ar.signbit)

EXP = _unary("exp", floating, el.exp, lambda g, r: g * r, cost=14)
_unary("exp2", floating, el.exp2, lambda g, r: g * (r * LN2), cost=14)
_unary("expm1", floating, el.expm1, lambda g, r: g * (r + 1.0), cost=20)
LOG = _unary("log", floating, el.log, lambda g, x: g / x, cost=20)
_unary("log2", floating, el.log2, lambda g, x: g / (x * LN2), cost=20)
_unary("log10", floating, el.log10, lambda g, x: g / (x * LN10), cost=20)
_unary("log1p", floating, el.log1p, lambda g, x: g / (x + 1.0), cost=25)
_unary("sin", floating, tr.sin, lambda dt, g, x: g * dt.cos(x), cost=30)
_unary("cos", floating, tr.cos, lambda dt, g, x: -g * dt.sin(x), cost=30)
_unary("tan", floating, tr.tan, lambda g, r: g * (r * r + 1.0), cost=40)
_unary("asin", floating, tr.asin, lambda dt, g, x: g * dt.rsqrt(1.0 - x * x), cost=25)
_unary("acos", floating, tr.acos, lambda dt, g, x: -g * dt.rsqrt(1.0 - x * x), cost=25)
_unary("atan", floating, tr.atan, lambda g, x: g / (x * x + 1.0), cost=25)
_unary("sinh", floating, el.sinh, lambda dt, g, x: g * dt.cosh(x), cost=30)
_unary("cosh", floating, el.cosh, lambda dt, g, x: g * dt.sinh(x), cost=25)
_unary("tanh", floating, el.tanh, lambda g, r: g * (1.0 - r * r), cost=25)
_unary("asinh", floating, el.asinh, lambda dt, g, x: g * dt.rsqrt(x * x + 1.0), cost=40)
_unary("acosh", floating, el.acosh, lambda dt, g, x: g * dt.rsqrt(x * x - 1.0), cost=40)
_unary("atanh", floating, el.atanh, lambda g, x: g / (1.0 - x * x), cost=40)
_unary("cbrt", floating, el.cbrt, lambda g, r: g / (r * r * 3.0), cost=20)
_unary("erf", floating, special.erf,
       lambda dt, g, x: g * (dt.exp(-(x * x)) * TWO_BY_ROOT_PI), cost=40)  # fmt: skip
_unary("erfc", floating, special.erfc,
       lambda dt, g, x: g * (dt.exp(-(x * x)) * -TWO_BY_ROOT_PI), cost=40)  # fmt: skip
_unary("rsqrt", floating, el.rsqrt, lambda g, r: g * (r * r * r * -0.5), cost=8)
_unary("sigmoid", floating, el.sigmoid, lambda g, r: g * (r * (1.0 - r)), cost=20)

# x <= 0 and not x < 0: so that -0 gives 0, as any way of writing it as a maximum may.
RELU = _unary("relu", same(NUMERIC), lambda x: where(x <= 0, const(0, x.dtype), x),
              lambda dt, g, r: dt.where(r <= 0, 0.0, g))  # fmt: skip
WHERE = _row(Op("where", "map", rules.selection, where, arity=3, gradient=(
    None, lambda dt, g, x: dt.where(x, g, 0.0), lambda dt, g, x: dt.where(x, 0.0, g))))  # fmt: skip
CLIP = _row(Op("clip", "map", same(), ar.clip, 4, arity=3,
               gradient=(grad.clip_value, grad.clip_low, grad.clip_high)))  # fmt: skip
ASTYPE = _unary("astype", rules.as_told, lambda x: x, lambda g: g)
COPY = _unary("copy", same(), lambda x: x, lambda g: g, cost=0)  # a new contiguous tensor

# --- generators: the linear index of an element, then scalars -------------------------------------


def _generate(name: str, expression: Callable[..., Value], arity: int, cost: int) -> Op:
    return _row(Op(name, "generate", rules.declared, expression, cost, arity=arity))


def _linspace(i: Value, start: Value, stop: Value, step: Value, gaps: Value) -> Value:
    """From the nearer end, so that both ends are exact."""
    up, down = start + convert(i, step.dtype) * step, stop - convert(gaps - i, step.dtype) * step
    return where(i < gaps - i, up, down)


FULL = _generate("full", lambda i, x: x, 1, 0)
ARANGE = _generate("arange", lambda i, start, step: start + convert(i, start.dtype) * step, 2, 2)
LINSPACE = _generate("linspace", _linspace, 4, 4)
POSITION = _generate("position", lambda i: i, 0, 0)


# --- reductions -----------------------------------------------------------------------------------


def _one(x: Value, k: Value) -> tuple[Value, ...]:
    return (x,)


def _ordered(x: Value, k: Value) -> tuple[Value, ...]:
    return (cast(x, uint8) if x.dtype is bool_ else x,)


def _placed(x: Value, k: Value) -> tuple[Value, ...]:
    return (*_ordered(x, k), k)


def _first(results: Sequence[Value], n: Value) -> Value:
    return results[0]


def _reduce(name: str, rule: DTypeRule, combine: str,
            before: Callable[[Value, Value], Sequence[Value]] = _one,
            after: Callable[[Sequence[Value], Value], Value] = _first) -> Op:  # fmt: skip
    return _row(Op(name, "reduce", rule, combine=combine, before=before, after=after))


SUM = _reduce("sum", rules.summing, "add")
PROD = _reduce("prod", rules.summing, "mul")
MEAN = _reduce("mean", rules.averaging, "add", after=lambda r, n: r[0] / convert(n, r[0].dtype))
MAX = _reduce("max", rules.keeping, "max", _ordered)
MIN = _reduce("min", rules.keeping, "min", _ordered)
ANY = _reduce("any", rules.testing, "or")
ALL = _reduce("all", rules.testing, "and")
COUNT_NONZERO = _reduce("count_nonzero", fixed((bool_,), int64), "add",
                        lambda x, k: (cast(x, int64),))  # fmt: skip
ARGMAX = _reduce("argmax", rules.counting, "argmax", _placed, lambda r, n: r[1])
ARGMIN = _reduce("argmin", rules.counting, "argmin", _placed, lambda r, n: r[1])

# --- views and gathers ----------------------------------------------------------------------------

VIEW = _row(Op("view", "view", rules.as_given, cost=0))  # attrs: a layout move

# gather(x, index, ...): attrs = (result shape, for each result axis the axis of x or -1, the axis
# of x of each index, for what each is read: (the op, the axis, its size)). They broadcast to the
# result's shape. Negative ones count from the end, and one out of range is an IndexError; but for
# None in the last place all are known to be in range and not negative.
GATHER = _row(Op("gather", "gather", rules.gathering, cost=4))

CONCAT = _row(Op("concat", "join", rules.as_given, cost=2, arity=0))  # attrs: the axis

# What is made otherwise than by evaluating a node: the rows are there for their gradients.
AS_STRIDED = Op("as_strided", "made")  # attrs: the operand's layout, the result's
PLACE = Op("place", "made")  # memory with the operand put in; attrs: (layout, size)
TO_DEVICE = Op("to_device", "made")
WRITTEN = Op("written", "made", arity=2)  # a view after a write to another; attrs: both layouts

# --- kernel ops -----------------------------------------------------------------------------------


def _kernel(name: str, rule: DTypeRule, build: Callable[[KernelSite], None], arity: int = 1) -> Op:
    return _row(Op(name, "kernel", rule, build=build, arity=arity))


def _ascends(attrs: sort.Order, shape: Shape) -> bool:
    return not attrs.descending and shape[-1] >= SHORT


MATMUL = _kernel("matmul", rules.contracting, kernels.matmul, 2)
COUNT_BLOCKS = _kernel("count_blocks", fixed((bool_,), int64), kernels.count_blocks)
TRUE_POSITIONS = _kernel("true_positions", fixed((bool_, int64), int64), kernels.true_positions, 2)
COUNT_RUNS = _kernel("count_runs", rules.grouping, kernels.count_runs)
RUN_BOUNDS = _kernel("run_bounds", rules.grouping, kernels.run_bounds, 2)
CHECKED_INDICES = _kernel("checked_indices", rules.integers, kernels.checked_indices)
SCATTER = _row(Op("scatter", "kernel", rules.scattering, launches=scatter.scatter, updates=True,
                  arity=3))  # fmt: skip
SEARCHSORTED = _kernel("searchsorted", rules.searching, kernels.search, 2)

# Sorting along the last axis, stable, NaN last. attrs: a `sort.Order`; the number is the zero of
# the keys of integers. A vendor routine sorts in ascending order, and rows that are not SHORT.
SORT = _row(Op("sort", "kernel", rules.sorting, launches=sort.sort, vendor=_ascends))
ARGSORT = _row(Op("argsort", "kernel", rules.ordering, launches=sort.argsort, vendor=_ascends))

# Running sums and products: k ascending, reduced precision in float32. attrs: (axis, whether the
# initial value comes first, dtype).
CUMULATIVE_SUM = _row(Op("cumulative_sum", "kernel", rules.running, launches=scan.running_sum))
CUMULATIVE_PROD = _row(Op("cumulative_prod", "kernel", rules.running,
                          launches=scan.running_product))  # fmt: skip
RECURRENCE = _kernel("recurrence", same("f"), kernels.recurrence, 2)

# Random numbers: functions of the element's index, a seed and an offset.
RANDOM_UNIFORM32 = _generate("random_uniform32", philox.uniform32, 4, 90)
RANDOM_UNIFORM64 = _generate("random_uniform64", philox.uniform64, 2, 90)
RANDOM_NORMAL32 = _generate("random_normal32", philox.normal32, 2, 150)
RANDOM_NORMAL64 = _generate("random_normal64", philox.normal64, 2, 150)
RANDOM_BELOW = _generate("random_below", philox.below, 4, 100)
