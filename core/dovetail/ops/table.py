"""THE table: one row per op. A row says what the op means; nothing else in dovetail knows an op by
name.

Kinds of row:
- `map`: elementwise with broadcasting. `expression(*values)` in the loop language.
- `generate`: elementwise without tensors: `expression(linear_index, *scalars)`.
- `reduce`: over axes. `before(value, k)` gives what is combined, `after(results, n)` what comes
out.
- `gather`: reads its first argument at computed places.
- `rows`: a kernel of its own, `build(site)`: matmul, cumulative sums, searches.
- `view`: a `layout` move of one argument.

Operands are cast to the row's compute dtypes, and float16/bfloat16 to float32, before the
expression sees them;
the result is cast to the row's result dtype. So every op on halves rounds once, at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..dtypes import (
    COMPLEX,
    INTEGERS,
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int32,
    int64,
    promote,
    uint8,
    uint32,
    uint64,
)
from ..errors import DTypeError, NotYetError
from ..kernel.language import (
    Value,
    bitcast,
    cast,
    const,
    eq,
    floor,
    fma,
    fold_loop,
    ne,
    quo,
    reduce_loop,
    rem,
    rint,
    sqrt,
    trunc,
    where,
)
from ..recent import Recent
from . import elementary as el
from . import philox
from . import scan as scans
from . import scatter as scatters
from . import sort as radix

Dtypes = tuple[tuple[DType, ...], DType]  # (what the operands are cast to, what comes out)
SPECS = 4096  # combinations of operands whose results an op remembers
GENERATED = "generated"  # as attrs: no vendor routine, whatever the device offers


@dataclass(eq=False, slots=True)
class Op:
    """One row. `cost` is about the number of vector instructions for one value: fusion weighs
    recomputing by it.
    """

    name: str
    kind: str
    dtypes: Callable[..., Dtypes] = None  # type: ignore[assignment]
    expression: Callable[..., Value] = None  # type: ignore[assignment]
    cost: int = 1
    combine: str = ""
    before: Callable[[Value, Value], Sequence[Value]] = None  # type: ignore[assignment]
    after: Callable[[Sequence[Value], Value], Value] = None  # type: ignore[assignment]
    build: Callable[[Any], None] = None  # type: ignore[assignment]
    launches: Callable[[Any], None] | None = None  # of `rows`: several kernels, in place of `build`
    vendor: Callable[[Any], bool] = lambda attrs: attrs != GENERATED  # may it be a library call?
    widens: bool = True  # of `map`: the expression sees halves as float32, not as they are
    updates: bool = (
        False  # of `rows`: the result starts as the first operand, in its memory if it can
    )
    arity: int = 1
    gradient: Any = None  # a rule per operand; written in `autograd.gradients`, in terms of tensors
    specs: Recent[Any, Any] = field(default_factory=lambda: Recent(SPECS))  # of operands -> result

    def __repr__(self) -> str:
        return f"<op {self.name}>"


TABLE: dict[str, Op] = {}


def row(name: str, kind: str, **facts: Any) -> Op:
    """Adds a row."""
    TABLE[name] = op = Op(name, kind, **facts)
    return op


# --- dtype rules. Operands come as DTypes and, for Python numbers, as bool, int, float or complex -

_PYTHON_KINDS = {bool: "b", int: "iu", float: "f", complex: "c"}


def common(op: str, operands: Sequence[Any], *, allowed: str = "biuf") -> DType:
    """The dtype in which operands meet. Python numbers are weak: they only change the kind.

    Raises: DTypeError where none exists or its kind is not allowed; NotYetError for complex.
    """
    strong = [d for d in operands if isinstance(d, DType)]
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


def same(allowed: str = "biuf") -> Callable[..., Dtypes]:
    """All operands meet in one dtype, which comes out."""

    def rule(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
        d = common(op, operands, allowed=allowed)
        return (d,) * len(operands), d

    return rule


def _floating(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    """All operands meet in a float; integers and bool become the default one, float32."""
    d = common(op, operands)
    d = d if d.kind == "f" else float32
    return (d,) * len(operands), d


def _comparison(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    d = common(op, operands)
    return (d,) * len(operands), bool_


def _logical(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    common(op, operands)
    return (bool_,) * len(operands), bool_


def _selection(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    d = common(op, operands[1:])
    if operands[0] is not bool_:
        raise DTypeError(
            f"{op}: the condition must be bool, not {getattr(operands[0], 'name', operands[0])}"
        )
    return (bool_, d, d), d


def _astype(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    return tuple(operands), attrs


# --- expressions ----------------------------------------------------------------------------------


def convert(x: Value, to: DType) -> Value:
    """`x` as another dtype, everywhere defined: a float out of an integer's range saturates, NaN
    gives 0.
    """
    if x.dtype is to:
        return x
    if to.kind == "b":
        return ne(cast(x, float32) if x.dtype.is_float and x.dtype.itemsize == 2 else x, 0)
    if x.dtype.kind == "f" and to.kind in "iu":
        return _saturate(x, to)
    if x.dtype.kind == "f" or to.kind != "f" or to.itemsize > 2:
        return cast(x, to)
    return cast(
        _towards_odd(x) if to is bfloat16 and x.dtype.itemsize > 2 else cast(x, float32), to
    )


def _towards_odd(x: Value) -> Value:
    """An integer as the float32 beside it, of two the odd one, so that rounding that once more
    rounds as if it were the first time. Source: Boldo and Melquiond 2008.
    """
    near = cast(x, float32)
    again = _saturate(near, x.dtype)
    b = bitcast(near, int32)
    out = eq(again < x, const(0, x.dtype) <= x)
    odd = bitcast(b + where(out, const(1, int32), const(-1, int32)), float32)
    return where(eq(again, x) | ne(b & 1, 0), near, odd)


def _saturate(x: Value, to: DType) -> Value:
    if x.dtype.itemsize == 2:
        x = cast(x, float32)
    low, high = float(to.min), float(to.max + 1)  # exact: powers of two
    inside = (const(low, x.dtype) <= x) & (x < high)
    safe = cast(where(inside, x, 0.0), to)
    too_high = where(const(high, x.dtype) <= x, const(to.max, to), safe)
    return where(x < low, const(to.min, to), too_high)


def _add(x: Value, y: Value) -> Value:
    return x | y if x.dtype is bool_ else x + y


def _multiply(x: Value, y: Value) -> Value:
    return x & y if x.dtype is bool_ else x * y


def _absolute(x: Value) -> Value:
    if x.dtype.kind == "f":
        bits = uint64 if x.dtype is float64 else uint32
        mask = const((1 << (x.dtype.bits - 1)) - 1, bits)
        return bitcast(bitcast(x, bits) & mask, x.dtype)
    return where(x < 0, const(0, x.dtype) - x, x) if x.dtype.kind == "i" else x


def _negative(x: Value) -> Value:
    return -x if x.dtype.kind in "fi" else const(0, x.dtype) - x


def _sign(x: Value) -> Value:
    if x.dtype.kind == "u":
        return cast(ne(x, 0), x.dtype)
    s = where(
        x < 0,
        const(-1, x.dtype),
        where(const(0, x.dtype) < x, const(1, x.dtype), const(0, x.dtype)),
    )
    return where(ne(x, x), x, s) if x.dtype.kind == "f" else s


def _signbit(x: Value) -> Value:
    return bitcast(x, int64 if x.dtype is float64 else int32) < 0


def _copysign(x: Value, y: Value) -> Value:
    bits = uint64 if x.dtype is float64 else uint32
    sign = const(1 << (x.dtype.bits - 1), bits)
    return bitcast((bitcast(x, bits) & ~sign) | (bitcast(y, bits) & sign), x.dtype)


def _maximum(x: Value, y: Value) -> Value:
    if x.dtype is bool_:
        return x | y
    return where((x < y) | ne(y, y), y, x) if x.dtype.kind == "f" else where(x < y, y, x)


def _minimum(x: Value, y: Value) -> Value:
    if x.dtype is bool_:
        return x & y
    return where((y < x) | ne(y, y), y, x) if x.dtype.kind == "f" else where(y < x, y, x)


def _clip(x: Value, low: Value, high: Value) -> Value:
    return _minimum(_maximum(x, low), high)


def _guarded(y: Value, x: Value) -> Value:
    """A divisor with which quo and rem are defined: 1 in place of 0 and of -1 under MIN."""
    bad = eq(y, 0)
    if y.dtype.kind == "i":
        bad = bad | (eq(y, -1) & eq(x, y.dtype.min))
    return where(bad, const(1, y.dtype), y)


def _floor_divide(x: Value, y: Value) -> Value:
    """Integers: towards minus infinity; x // 0 is 0; MIN // -1 wraps to MIN."""
    if x.dtype.kind == "f":
        return _float_divmod(x, y)[0]
    d = _guarded(y, x)
    q = quo(x, d)
    if x.dtype.kind == "i":
        r = x - q * d
        q = q - cast(ne(r, 0) & ((r ^ d) < 0), x.dtype)
    return where(eq(y, 0), const(0, x.dtype), q)


def _remainder(x: Value, y: Value) -> Value:
    """The sign of y; integers: x % 0 is 0."""
    if x.dtype.kind == "f":
        return _float_divmod(x, y)[1]
    d = _guarded(y, x)
    r = rem(x, d)
    if x.dtype.kind == "i":
        r = where(ne(r, 0) & ((r ^ d) < 0), r + d, r)
    return where(eq(y, 0), const(0, x.dtype), r)


def _float_divmod(x: Value, y: Value) -> tuple[Value, Value]:
    """Floor quotient and remainder; the remainder has the sign of y and is that of exact
    arithmetic, rounded once.

    Special values are the Array API's: 1 // -inf is -0, 1 % -inf is -inf. The quotient is x / y,
    rounded, where every float is an integer.
    """
    zero, inf = const(0.0, x.dtype), const(float("inf"), x.dtype)
    rest = _reduced(x, y)
    steps = floor(rest / y)
    r = fma(-steps, y, rest)
    # The quotient was rounded: the remainder may have come out on the wrong side of 0 or of y.
    under = ne(r, zero) & _signbit(_flip(r, y))
    r, down = where(under, r + y, r), where(under, steps - 1.0, steps)
    past = (_absolute(y) <= _absolute(r)) & ~under
    r, steps = where(past, r - y, r), where(past, down + 1.0, down)
    large = const(_INTEGERS_FROM[x.dtype], x.dtype) <= _absolute(x / y)
    q = where(large, x / y, steps)
    small = _absolute(x) < _absolute(y)
    opposite = _signbit(_flip(x, y)) & ne(x, zero)
    r = where(small, where(opposite, x + y, x), r)
    q = where(small, where(opposite, const(-1.0, x.dtype), _copysign(zero, _flip(x, y))), q)
    q = where(eq(_absolute(y), inf) & (_absolute(x) < inf), _copysign(zero, _flip(x, y)), q)
    r = where(eq(r, zero), _copysign(zero, y), r)
    return where(eq(y, zero), x / y, q), r


_INTEGERS_FROM = {float32: 2.0**24, float64: 2.0**53}  # every float from here on is an integer


def _reduced(x: Value, y: Value) -> Value:
    """x, but where x / y is large x minus a multiple of y: below |y|, and exact.

    Long division of the mantissas, some bits of the quotient a step. With |r| <= d < 2 and a step
    of p - 3 bits (p: those of a mantissa) the digit is wrong by less than 7/8, so |r| stays below
    7/8 d; it is a multiple of d's last place, hence exact.
    """
    single = x.dtype is float32
    digit, bits = (21, int32) if single else (50, int64)
    steps = -(-(277 if single else 2098) // digit)  # exponents differ by no more
    (m, x_exponent), (d, y_exponent) = _mantissa(x), _mantissa(y)
    inverse = 1.0 / d

    def step(_: Value, r: Value, left: Value) -> tuple[Value, ...]:
        taken = where(left < 0, const(0, bits), where(left < digit, left, const(digit, bits)))
        shifted = r * _two_to(taken, x.dtype)
        return fma(-rint(shifted * inverse), d, shifted), left - taken

    r = fold_loop(0, steps, (m, x_exponent - y_exponent), step).results[0]
    half = y_exponent >> 1
    rest = r * _two_to(half, x.dtype) * _two_to(y_exponent - half, x.dtype)
    large = const(_INTEGERS_FROM[x.dtype], x.dtype) <= _absolute(x / y)
    usable = large & (_absolute(x) < float("inf")) & ne(y, 0.0)
    return where(usable, _flip(rest, x), x)


def _mantissa(x: Value) -> tuple[Value, Value]:
    """m and e with |x| = m * 2**e and 1 <= m < 2, of finite x other than 0."""
    width, lift, least = _FORMATS[x.dtype]
    tiny = _absolute(x) < least
    b = _pattern(_absolute(where(tiny, x * 2.0**lift, x)))
    bias = const((1 << (x.dtype.bits - width - 2)) - 1, b.dtype)
    e = (b >> width) - bias - where(tiny, const(lift, b.dtype), const(0, b.dtype))
    return bitcast((b & ((1 << width) - 1)) | (bias << width), x.dtype), e


# Of a float: the bits of its mantissa; by how many powers of two its denormals are made normal; the
# least normal.
_FORMATS = {float32: (23, 24, 2.0**-126), float64: (52, 53, 2.0**-1022)}


def _pattern(x: Value) -> Value:
    """The bits of a float, as a signed integer."""
    return bitcast(x, int64 if x.dtype is float64 else int32)


def _two_to(e: Value, d: DType) -> Value:
    """2**e as a normal float."""
    width = _FORMATS[d][0]
    return bitcast((e + const((1 << (d.bits - width - 2)) - 1, e.dtype)) << width, d)


def _flip(x: Value, y: Value) -> Value:
    """|x| with the sign of x * y."""
    bits = uint64 if x.dtype is float64 else uint32
    sign = const(1 << (x.dtype.bits - 1), bits)
    return bitcast(bitcast(x, bits) ^ (bitcast(y, bits) & sign), x.dtype)


def _pow(x: Value, y: Value) -> Value:
    return el.pow(x, y) if x.dtype.kind == "f" else _integer_pow(x, y)


def _integer_pow(x: Value, y: Value) -> Value:
    """By squaring, wrapping. A negative exponent gives the truncated quotient: 0, or a power of 1
    and -1.
    """
    one = const(1, x.dtype)

    def step(k: Value, result: Value, base: Value, e: Value) -> tuple[Value, ...]:
        result = where(ne(e & one, 0), result * base, result)
        return result, base * base, bitcast(bitcast(e, _unsigned(e)) >> 1, e.dtype)

    result = fold_loop(0, x.dtype.bits, (one, x, y), step).results[0]
    if x.dtype.kind == "u":
        return result
    odd = ne(y & one, 0)
    unit = where(
        eq(x, 1), one, where(eq(x, -1), where(odd, const(-1, x.dtype), one), const(0, x.dtype))
    )
    return where(y < 0, unit, result)


def _unsigned(v: Value) -> DType:
    return next(d for d in INTEGERS if d.kind == "u" and d.itemsize == v.dtype.itemsize)


def _shift_left(x: Value, n: Value) -> Value:
    """Amounts outside 0..bits-1 shift everything out."""
    ok = _in_range(x, n)
    return where(ok, x << where(ok, n, const(0, n.dtype)), const(0, x.dtype))


def _shift_right(x: Value, n: Value) -> Value:
    ok = _in_range(x, n)
    out = (
        where(x < 0, const(-1, x.dtype), const(0, x.dtype))
        if x.dtype.kind == "i"
        else const(0, x.dtype)
    )
    return where(ok, x >> where(ok, n, const(0, n.dtype)), out)


def _in_range(x: Value, n: Value) -> Value:
    ok = n < const(x.dtype.bits, n.dtype)
    return ok & (const(0, n.dtype) <= n) if n.dtype.kind == "i" else ok


def _nextafter(x: Value, y: Value) -> Value:
    """The next float from x towards y. Source: the order of IEEE 754 bit patterns.

    It sees halves as they are: in float32, which holds them all, the next one is a unit away.
    """
    d = x.dtype
    if d.itemsize == 2:
        x, y = cast(x, float32), cast(y, float32)
    unit = const(1 << _BELOW_HALVES.get(d, 0), _pattern(x).dtype)
    outwards = eq(x < y, const(0, x.dtype) < x)
    moved = bitcast(_pattern(x) + where(outwards, unit, -unit), x.dtype)
    tiny = bitcast(unit, x.dtype)
    if d is float16:
        tiny = const(2.0**-24, float32)
        moved = _next_float16(x, outwards, moved, tiny)
    moved = where(eq(x, 0), _copysign(tiny, y), moved)
    return where(ne(x, x) | ne(y, y), x + y, where(eq(x, y), y, moved))


_BELOW_HALVES = {float16: 13, bfloat16: 16}  # bits of a float32 below the last one of a half


def _next_float16(x: Value, outwards: Value, moved: Value, tiny: Value) -> Value:
    """`moved`, but denormals are `tiny` apart, and before infinity comes 65504."""
    size = _absolute(x)
    dense = (size < 2.0**-14) | (eq(size, 2.0**-14) & ~outwards)
    moved = where(dense, _copysign(where(outwards, size + tiny, size - tiny), x), moved)
    return where(eq(size, float("inf")), _copysign(const(65504.0, float32), x), moved)


def _ceil(x: Value) -> Value:
    return -floor(-x) if x.dtype.kind == "f" else x


def _rounding(rule: Callable[[Value], Value]) -> Callable[[Value], Value]:
    return lambda x: rule(x) if x.dtype.kind == "f" else x


def _isinf(x: Value) -> Value:
    return eq(_absolute(x), float("inf")) if x.dtype.kind == "f" else ne(x, x)


def _isfinite(x: Value) -> Value:
    return _absolute(x) < float("inf") if x.dtype.kind == "f" else eq(x, x)


def _cmp(rule: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """Orders for bool too: as 0 and 1."""

    def compare(x: Value, y: Value) -> Value:
        if x.dtype is bool_:
            x, y = cast(x, uint8), cast(y, uint8)
        return rule(x, y)

    return compare


# --- elementwise rows -----------------------------------------------------------------------------

NUMERIC, INTEGRAL = "iuf", "biu"


def _map(name: str, rule: Callable[..., Dtypes], expression: Callable[..., Value], cost: int = 1,
         arity: int = 2) -> Op:  # fmt: skip
    return row(name, "map", dtypes=rule, expression=expression, cost=cost, arity=arity)


ADD = _map("add", same(), _add)
SUBTRACT = _map("subtract", same(NUMERIC), lambda x, y: x - y)
MULTIPLY = _map("multiply", same(), _multiply)
DIVIDE = _map("divide", _floating, lambda x, y: x / y, 4)
FLOOR_DIVIDE = _map("floor_divide", same(NUMERIC), _floor_divide, 20)
REMAINDER = _map("remainder", same(NUMERIC), _remainder, 20)
POW = _map("pow", same(NUMERIC), _pow, 60)
ATAN2 = _map("atan2", _floating, el.atan2, 40)
HYPOT = _map("hypot", _floating, el.hypot, 20)
COPYSIGN = _map("copysign", _floating, _copysign)
NEXTAFTER = _map("nextafter", _floating, _nextafter, 8)
NEXTAFTER.widens = False
LOGADDEXP = _map("logaddexp", _floating, el.logaddexp, 40)
MAXIMUM = _map("maximum", same(), _maximum, 2)
MINIMUM = _map("minimum", same(), _minimum, 2)
EQUAL = _map("equal", _comparison, eq)
NOT_EQUAL = _map("not_equal", _comparison, ne)
LESS = _map("less", _comparison, _cmp(lambda x, y: x < y))
LESS_EQUAL = _map("less_equal", _comparison, _cmp(lambda x, y: x <= y))
GREATER = _map("greater", _comparison, _cmp(lambda x, y: y < x))
GREATER_EQUAL = _map("greater_equal", _comparison, _cmp(lambda x, y: y <= x))
LOGICAL_AND = _map("logical_and", _logical, lambda x, y: x & y)
LOGICAL_OR = _map("logical_or", _logical, lambda x, y: x | y)
LOGICAL_XOR = _map("logical_xor", _logical, lambda x, y: x ^ y)
BITWISE_AND = _map("bitwise_and", same(INTEGRAL), lambda x, y: x & y)
BITWISE_OR = _map("bitwise_or", same(INTEGRAL), lambda x, y: x | y)
BITWISE_XOR = _map("bitwise_xor", same(INTEGRAL), lambda x, y: x ^ y)
LEFT_SHIFT = _map("bitwise_left_shift", same("iu"), _shift_left, 2)
RIGHT_SHIFT = _map("bitwise_right_shift", same("iu"), _shift_right, 2)

LOGICAL_NOT = _map("logical_not", _logical, lambda x: ~x, arity=1)
BITWISE_INVERT = _map("bitwise_invert", same(INTEGRAL), lambda x: ~x, arity=1)
ABS = _map("abs", same(NUMERIC), _absolute, arity=1)
NEGATIVE = _map("negative", same(NUMERIC), _negative, arity=1)
POSITIVE = _map("positive", same(NUMERIC), lambda x: x, 0, 1)
SIGN = _map("sign", same(NUMERIC), _sign, 4, 1)
SQUARE = _map("square", same(NUMERIC), lambda x: x * x, 1, 1)
RECIPROCAL = _map("reciprocal", _floating, lambda x: 1.0 / x, 4, 1)
SQRT = _map("sqrt", _floating, sqrt, 4, 1)
CEIL = _map("ceil", same(NUMERIC), _ceil, 2, 1)
FLOOR = _map("floor", same(NUMERIC), _rounding(floor), 1, 1)
TRUNC = _map("trunc", same(NUMERIC), _rounding(trunc), 1, 1)
ROUND = _map("round", same(NUMERIC), _rounding(rint), 1, 1)


def _predicate(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    return (common(op, operands),), bool_


ISNAN = _map("isnan", _predicate, lambda x: ne(x, x), 1, 1)
ISINF = _map("isinf", _predicate, _isinf, 2, 1)
ISFINITE = _map("isfinite", _predicate, _isfinite, 2, 1)
SIGNBIT = _map("signbit", lambda op, d, a: ((common(op, d, allowed="f"),), bool_), _signbit, 1, 1)

for _name, _cost in {
    "exp": 14, "exp2": 14, "expm1": 20, "log": 20, "log2": 20, "log10": 20, "log1p": 25,
    "sin": 30, "cos": 30, "tan": 40, "asin": 25, "acos": 25, "atan": 25, "sinh": 30, "cosh": 25,
    "tanh": 25, "asinh": 40, "acosh": 40, "atanh": 40,
    "cbrt": 20, "erf": 40, "erfc": 40, "rsqrt": 8, "sigmoid": 20,
}.items():  # fmt: skip
    _map(_name, _floating, getattr(el, _name), _cost, 1)

# x <= 0 and not x < 0: so that -0 gives 0, as any way of writing it as a maximum may.
RELU = _map("relu", same(NUMERIC), lambda x: where(x <= 0, const(0, x.dtype), x), 1, 1)
WHERE = _map("where", _selection, where, 1, 3)
CLIP = _map("clip", same(), _clip, 4, 3)
ASTYPE = _map("astype", _astype, lambda x: x, 1, 1)
COPY = _map("copy", same(), lambda x: x, 0, 1)  # a new contiguous tensor of the same values

# --- generators: the linear index of an element, then scalars -------------------------------------


def _declared(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    """attrs = (dtypes of the scalars, dtype of the result)."""
    scalars, result = attrs
    return scalars, result


FULL = row("full", "generate", dtypes=_declared, expression=lambda i, x: x, arity=1, cost=0)
ARANGE = row("arange", "generate", dtypes=_declared, arity=2, cost=2,
             expression=lambda i, start, step: start + convert(i, start.dtype) * step)  # fmt: skip


def _linspace(i: Value, start: Value, stop: Value, step: Value, gaps: Value) -> Value:
    """From the nearer end, so that both ends are exact."""
    up, down = start + convert(i, step.dtype) * step, stop - convert(gaps - i, step.dtype) * step
    return where(i < gaps - i, up, down)


def _column_less_row(i: Value, columns: Value) -> Value:
    return i - quo(i, columns) * (columns + 1)


LINSPACE = row("linspace", "generate", dtypes=_declared, arity=4, cost=4, expression=_linspace)
# Matrices: the scalars are the number of columns and a diagonal.
EYE = row("eye", "generate", dtypes=_declared, arity=2, cost=4,
          expression=lambda i, columns, k: eq(_column_less_row(i, columns), k))  # fmt: skip
TRIANGLE = row("triangle", "generate", dtypes=_declared, arity=2, cost=4,
               expression=lambda i, columns, k: _column_less_row(i, columns) <= k)  # fmt: skip


# --- reductions -----------------------------------------------------------------------------------


def _accumulator(d: DType) -> DType:
    """Where halves are summed."""
    return float32 if d.is_float and d.itemsize == 2 else d


def _summing(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    """Small integers and bool sum to int64 or uint64, unless `attrs` says otherwise."""
    d = common(op, operands) if attrs is None else attrs
    if attrs is None and d.kind in "biu":
        d = uint64 if d.kind == "u" else int64
    return (_accumulator(d),), d


def _averaging(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    d = common(op, operands)
    d = d if d.kind == "f" else float32
    return (_accumulator(d),), d


def _keeping(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    d = common(op, operands)
    return (_accumulator(d),), d


def _testing(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    common(op, operands)
    return (bool_,), bool_


def _counting(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    return (_accumulator(common(op, operands)),), int64


def _one(x: Value, k: Value) -> tuple[Value, ...]:
    return (x,)


def _first(results: Sequence[Value], n: Value) -> Value:
    return results[0]


def _reduce(name: str, rule: Any, combine: str, before: Any = _one, after: Any = _first) -> Op:
    return row(name, "reduce", dtypes=rule, combine=combine, before=before, after=after)


def _ordered(x: Value, k: Value) -> tuple[Value, ...]:
    return (cast(x, uint8) if x.dtype is bool_ else x,)


SUM = _reduce("sum", _summing, "add")
PROD = _reduce("prod", _summing, "mul")
MEAN = _reduce("mean", _averaging, "add", after=lambda r, n: r[0] / convert(n, r[0].dtype))
MAX = _reduce("max", _keeping, "max", _ordered)
MIN = _reduce("min", _keeping, "min", _ordered)
ANY = _reduce("any", _testing, "or")
ALL = _reduce("all", _testing, "and")
COUNT_NONZERO = _reduce("count_nonzero", lambda op, d, a: ((bool_,), int64), "add",
                        lambda x, k: (cast(x, int64),))  # fmt: skip
ARGMAX = _reduce(
    "argmax", _counting, "argmax", lambda x, k: (*_ordered(x, k), k), lambda r, n: r[1]
)
ARGMIN = _reduce(
    "argmin", _counting, "argmin", lambda x, k: (*_ordered(x, k), k), lambda r, n: r[1]
)

# --- views and gathers ----------------------------------------------------------------------------


def _same_dtype(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    return tuple(operands), operands[0]


VIEW = row("view", "view", dtypes=_same_dtype, cost=0)  # attrs: a layout move


def _gathering(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    return (operands[0], *(int64 for _ in operands[1:])), operands[0]


# gather(x, index, ...): attrs = (result shape, for each result axis the axis of x or -1, the axis
# of x of each index, for what each is read: (the op, the axis, its size)). They broadcast to the
# result's shape. Negative ones count from the end, and one out of range is an IndexError; but for
# None in the last place all are known to be in range and not negative.
GATHER = row("gather", "gather", dtypes=_gathering, cost=4)

# What is made otherwise than by evaluating a node: the rows are there for their gradients.
CONCAT = Op("concat", "made", arity=0)  # attrs: the axis
AS_STRIDED = Op("as_strided", "made")  # attrs: the operand's layout, the result's
PLACE = Op("place", "made")  # memory with the operand put in; attrs: (layout, size)
TO_DEVICE = Op("to_device", "made")
WRITTEN = Op("written", "made", arity=2)  # a view after a write to another; attrs: both layouts

# --- kernels of their own -------------------------------------------------------------------------


def _contracting(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    d = common(op, operands, allowed="iuf")
    return (d,) * len(operands), d


def _matmul(site: Any) -> None:
    """(..., m, k) @ (..., k, n), k ascending; the last grid axis walks a row of the result."""
    *batch, m, n = [site.axis(-1, d) for d in range(site.rank(-1))]
    zero = const(0, _wide(site.casts[0]))

    def step(k: Value, total: Value) -> tuple[Value, ...]:
        x, y = site.read(0, *batch, m, k), site.read(1, *batch, k, n)
        return (fma(x, y, total) if total.dtype.kind == "f" else total + x * y,)

    length = site.size(0, site.rank(0) - 1)
    site.store(fold_loop(0, length, (zero,), step).results[0], *batch, m, n)


def _wide(d: DType) -> DType:
    return float32 if d.is_float and d.itemsize == 2 else d


MATMUL = row("matmul", "rows", dtypes=_contracting, build=_matmul, arity=2)


BLOCK = 4096  # elements of a mask that one grid point looks through


def _block(site: Any) -> tuple[Value, Value, Value]:
    """A grid axis over the blocks of operand 0, a vector: the block, its start and its stop."""
    block = site.axis(1, 0)  # the result of count_blocks, the second operand of true_positions
    start, n = block * BLOCK, site.size(0, 0)
    return block, start, where(start + BLOCK < n, start + BLOCK, n)


def _count_blocks(site: Any) -> None:
    """The number of true elements in each block of a mask."""
    block, start, stop = _block(site)
    total = reduce_loop("add", start, stop, lambda k: cast(site.read(0, k), int64))[0]
    site.store(total, block)


def _true_positions(site: Any) -> None:
    """The positions of the true elements of a mask, given how many there are before each block."""
    block, start, stop = _block(site)

    def step(k: Value, place: Value) -> Any:
        true = site.read(0, k)
        return (place + cast(true, int64),), [site.stored(k, place, when=true)]

    site.builder.effect(fold_loop(start, stop, (site.read(1, block),), step))


def _checked_indices(site: Any) -> None:
    """Indices along an axis, counted from its start. attrs: (the op that asks, the axis, its
    size).
    """
    at = [site.axis(-1, d) for d in range(site.rank(-1))]
    given, n = site.read(0, *at), site.number("n", site.attrs[2])
    i = where(given < 0, given + n, given)
    fine = (const(0, int64) <= i) & (i < n)
    site.check(fine, given, site.attrs)
    site.store(where(fine, i, 0), *at)  # others may read there before anybody looks


def _integers(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    return (int64,) * len(operands), int64


def _search(site: Any) -> None:
    """Where to insert values into a sorted vector. attrs: the side. Operand 2, if any, sorts it."""
    at = [site.axis(-1, d) for d in range(site.rank(-1))]
    n, wanted = site.size(0, 0), site.read(1, *at)
    zero = const(0, int64)

    def step(_: Value, low: Value, high: Value) -> tuple[Value, ...]:
        middle = (low + high) >> 1
        place = where(middle < n, middle, n - 1)
        here = site.read(0, place if len(site.casts) == 2 else site.read(2, place))
        right = _before(here, wanted) if site.attrs == "left" else ~_before(wanted, here)
        right, open_ = right & (low < high), low < high
        return where(right, middle + 1, low), where(open_ & ~right, middle, high)

    rounds = site.number("rounds", site.extent(0, 0).bit_length())
    site.store(fold_loop(0, rounds, (zero, n), step).results[0], *at)


def _before(x: Value, y: Value) -> Value:
    """Whether x stands before y in sorted order; NaN stands last."""
    if x.dtype is bool_:
        return ~x & y
    return (x < y) | (ne(y, y) & eq(x, x)) if x.dtype.kind == "f" else x < y


def _searching(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    d = common(op, operands[:2])
    return (d, d, *(int64 for _ in operands[2:])), int64


COUNT_BLOCKS = row(
    "count_blocks", "rows", dtypes=lambda op, d, a: ((bool_,), int64), build=_count_blocks
)
TRUE_POSITIONS = row("true_positions", "rows", dtypes=lambda op, d, a: ((bool_, int64), int64),
                     build=_true_positions, arity=2)  # fmt: skip
CHECKED_INDICES = row("checked_indices", "rows", dtypes=_integers, build=_checked_indices)
SCATTER = row("scatter", "rows", launches=scatters.scatter, updates=True, arity=3,
              dtypes=lambda op, d, a: ((d[0], d[0], *(int64 for _ in d[2:])), d[0]))  # fmt: skip
SEARCHSORTED = row("searchsorted", "rows", dtypes=_searching, build=_search, arity=2)


# Sorting along the last axis, stable, NaN last. attrs: a `radix.Order`; the number is the zero of
# the codes of integers. A vendor routine sorts in ascending order.


def _sorting(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    d = common(op, operands[:1])
    return (d, radix.code_dtype(d)), d


def _ordering(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    return _sorting(op, operands, attrs)[0], int64


def _ascends(attrs: Any) -> bool:
    return not attrs.descending


SORT = row("sort", "rows", dtypes=_sorting, launches=radix.sort, vendor=_ascends)
ARGSORT = row("argsort", "rows", dtypes=_ordering, launches=radix.argsort, vendor=_ascends)


# Running sums and products: k ascending, halves in float32. attrs: (axis, whether the initial value
# comes first, dtype).


def _running(op: str, operands: Sequence[Any], attrs: Any) -> Dtypes:
    return _summing(op, operands, attrs[2])


CUMULATIVE_SUM = row("cumulative_sum", "rows", dtypes=_running, launches=scans.running_sum)
CUMULATIVE_PROD = row("cumulative_prod", "rows", dtypes=_running, launches=scans.running_product)


def _recurrence(site: Any) -> None:
    """y[k] = x[k - lag] * y[k - 1] + b[k] along an axis, of x and b; y[0] = b[0]. attrs: (axis,
    lag), the lag being 0 or 1: each is what the gradient of the other needs, backwards.
    """
    axis, lag = site.attrs
    at = [const(0, int64) if d == axis else site.axis(-1, d) for d in range(site.rank(-1))]

    def step(k: Value, total: Value, before: Value) -> Any:
        place = [*at[:axis], k, *at[axis + 1 :]]
        factor, b = site.read(0, *place), site.read(1, *place)
        total = where(eq(k, 0), b, fma(before if lag else factor, total, b))
        return (total, factor), [site.stored(total, *place)]

    zero = const(0, _wide(site.casts[0]))
    site.builder.effect(fold_loop(0, site.size(0, axis), (zero, zero), step))


RECURRENCE = row("recurrence", "rows", dtypes=same("f"), build=_recurrence, arity=2)


# Random numbers: functions of the element's index, a seed and an offset.


def _random(name: str, expression: Callable[..., Value], arity: int, cost: int) -> Op:
    return row(name, "generate", dtypes=_declared, expression=expression, arity=arity, cost=cost)


RANDOM_UNIFORM32 = _random("random_uniform32", philox.uniform32, 4, 90)
RANDOM_UNIFORM64 = _random("random_uniform64", philox.uniform64, 2, 90)
RANDOM_NORMAL32 = _random("random_normal32", philox.normal32, 2, 150)
RANDOM_NORMAL64 = _random("random_normal64", philox.normal64, 2, 150)
RANDOM_BELOW = _random("random_below", philox.below, 4, 100)
