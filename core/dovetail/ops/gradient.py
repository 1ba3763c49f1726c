"""The language of gradients of elementwise rows, and the gradients that take more than a line.

A rule gives the gradient for one operand. Its parameters say what it needs, and so what is kept for
it: `g` the incoming gradient, `x`, `y`, `z` the operands, `r` the result. Tensors are a layer above
this package, so their functions come in too: `dt`. The result may have the result's shape though
the operand was broadcast, and another dtype: the caller corrects both.

Where a function has no derivative the choices are PyTorch's: |x| and sign give 0 at 0, relu 0 at 0;
clip passes the gradient at its bounds; maximum and minimum of two tensors give half to each of two
equals, and all of it to a tensor equal to a Python number. Rounding, sign and floor division give
zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from ..settings import current

LN2, LN10, TWO_BY_ROOT_PI = math.log(2.0), math.log(10.0), 2.0 / math.sqrt(math.pi)
ROOT_HALF_BY_PI, DEGREE = math.sqrt(0.5 / math.pi), math.pi / 180.0
ZETA_ASYMPTOTIC_MIN = 2.0**53  # for larger x zeta(2, x) is 1 / x in double precision

Rule: TypeAlias = Callable[..., Any]  # takes any of these parameters; gives a tensor, or None


class Arithmetic(Protocol):
    """The operators that rules apply to tensors."""

    def __add__(self, other: Self | float, /) -> Self: ...
    def __radd__(self, other: float, /) -> Self: ...
    def __sub__(self, other: Self | float, /) -> Self: ...
    def __rsub__(self, other: float, /) -> Self: ...
    def __mul__(self, other: Self | complex, /) -> Self: ...
    def __rmul__(self, other: complex, /) -> Self: ...
    def __truediv__(self, other: Self | float, /) -> Self: ...
    def __rtruediv__(self, other: float, /) -> Self: ...
    def __neg__(self) -> Self: ...


T = TypeVar("T", bound=Arithmetic)


class Functions(Protocol[T]):
    """The functions that rules apply to tensors: `dt`, which has all the elementwise ones."""

    def zeros_like(self, x: T, /) -> T: ...
    def ones_like(self, x: T, /) -> T: ...
    def where(self, condition: T, x1: T | float, x2: T | float, /) -> T: ...
    def equal(self, x1: T, x2: T | float, /) -> T: ...
    def less(self, x1: T, x2: T | float, /) -> T: ...
    def less_equal(self, x1: T, x2: T | float, /) -> T: ...
    def greater(self, x1: T, x2: T | float, /) -> T: ...
    def greater_equal(self, x1: T, x2: T | float, /) -> T: ...
    def logical_and(self, x1: T, x2: T, /) -> T: ...
    def logical_not(self, x: T, /) -> T: ...
    def logical_or(self, x1: T, x2: T, /) -> T: ...
    def sign(self, x: T, /) -> T: ...
    def abs(self, x: T, /) -> T: ...
    def conj(self, x: T, /) -> T: ...
    def real(self, x: T, /) -> T: ...
    def is_complex(self, x: T, /) -> bool: ...
    def sqrt(self, x: T, /) -> T: ...
    def rsqrt(self, x: T, /) -> T: ...
    def copysign(self, x1: T, x2: T | float, /) -> T: ...
    def pow(self, x1: T | float, x2: T | float, /) -> T: ...
    def exp(self, x: T, /) -> T: ...
    def log(self, x: T, /) -> T: ...
    def round(self, x: T, /) -> T: ...
    def sin(self, x: T, /) -> T: ...
    def sinc(self, x: T, /) -> T: ...
    def cos(self, x: T, /) -> T: ...
    def i0(self, x: T, /) -> T: ...
    def zeta(self, x1: T | float, x2: T | float, /) -> T: ...


def rsqrt(dt: Functions[T], x: T) -> T:
    """Return 1 / sqrt(x), also of complex numbers."""
    return 1.0 / dt.sqrt(x) if dt.is_complex(x) else dt.rsqrt(x)


def acosh(dt: Functions[T], g: T, x: T) -> T:
    """Return the gradient of acosh.

    For complex numbers the product of two roots is on the right side of the branch cut.
    """
    if dt.is_complex(x):
        return g / dt.conj(dt.sqrt(x - 1.0) * dt.sqrt(x + 1.0))
    return g * dt.rsqrt(x * x - 1.0)


def imag(dt: Functions[T], g: T, x: T) -> T:
    """Return the gradient of the imaginary part; 0 for real numbers."""
    return g * 1j if dt.is_complex(x) else dt.zeros_like(g)


def angle(dt: Functions[T], g: T, x: T) -> T:
    """Return the gradient of the angle: i z / |z|**2, and 0 at 0."""
    if not dt.is_complex(x):
        return dt.zeros_like(g)
    size = dt.abs(x)
    none = dt.equal(size, 0)
    safe = dt.where(none, 1.0, size)
    return dt.where(none, 0.0, g * ((x / safe) * 1j) / safe)


def sign(dt: Functions[T], g: T, x: T, r: T) -> T:
    """Return the gradient of z / |z|: the part of g across z, divided by |z|.

    It is 0 at 0, and for real numbers.
    """
    if not dt.is_complex(x):
        return dt.zeros_like(g)
    size = dt.abs(x)
    none = dt.equal(size, 0)
    along = dt.real(dt.conj(r) * g)
    return dt.where(none, 0.0, (g - r * along) / dt.where(none, 1.0, size))


def zero_gradient(dt: Functions[T], g: T) -> T:
    """Return zeros, the gradient of an op that is constant between its jumps."""
    return dt.zeros_like(g)


def pow_base(dt: Functions[T], g: T, x: T, y: T | float) -> T:
    """Return the gradient of x ** y by x."""
    if isinstance(y, int | float):
        if y == 0:
            return dt.zeros_like(g)
        return g * y if y == 1 else g * dt.conj(dt.pow(x, y - 1) * y)
    none = dt.equal(y, 0)
    steady = dt.where(none, 1.0, y)  # an infinite slope would have a NaN gradient
    return dt.where(none, 0.0, g * dt.conj(steady * dt.pow(x, steady - 1.0)))


def pow_exponent(dt: Functions[T], g: T, x: T | float, y: T, r: T) -> T:
    """Return the gradient of x ** y by y: 0 if the base is 0 and the exponent is not negative."""
    if isinstance(x, int | float):
        if x != 0 and dt.is_complex(y):
            return g * dt.conj(r * dt.log(dt.zeros_like(y) + x))
        if x != 0:
            return g * r * (math.log(x) if x > 0 else math.nan)
        level = dt.greater_equal(dt.real(y), 0)
        return dt.where(level, 0.0, dt.where(level, 1.0, g * r) * -math.inf)
    if dt.is_complex(r):  # a negative real number has a logarithm there
        x = dt.zeros_like(r) + x
    at_zero = dt.logical_and(dt.equal(x, 0), dt.greater_equal(dt.real(y), 0))
    if current().grad:  # the rule itself is differentiated: it must compute nothing infinite
        x = dt.where(at_zero, 1.0, x)
        r = dt.pow(x, y)
    return dt.where(at_zero, 0.0, g * dt.conj(r * dt.log(x)))


def maximum(dt: Functions[T], g: T, x: T, y: T | float) -> T:
    """Return the gradient of the larger one by the first operand."""
    if isinstance(y, int | float):
        return dt.where(dt.greater_equal(x, y), g, 0.0)
    return dt.where(dt.less(x, y), 0.0, dt.where(dt.equal(x, y), g * 0.5, g))


def minimum(dt: Functions[T], g: T, x: T, y: T | float) -> T:
    """Return the gradient of the smaller one by the first operand."""
    if isinstance(y, int | float):
        return dt.where(dt.less_equal(x, y), g, 0.0)
    return dt.where(dt.greater(x, y), 0.0, dt.where(dt.equal(x, y), g * 0.5, g))


def copysign(dt: Functions[T], g: T, x: T, y: T | float) -> T:
    """Return the gradient of copysign: sign of the result times sign of the operand; 0 at 0."""
    return g * dt.sign(x) * dt.copysign(dt.ones_like(x), y)


def divide_by_square_sum(dt: Functions[T], v: T | float, x: T | float, y: T | float) -> T:
    """Return v / (x**2 + y**2), and 0 at the origin; one of x and y is a tensor."""
    total = x * x + y * y
    assert not isinstance(total, int | float)
    return dt.where(dt.equal(total, 0), 0.0, v / total)


def clip_value(dt: Functions[T], g: T, x: T, y: T | float, z: T | float) -> T:
    """Return the gradient of x between the bounds y and z by x."""
    return dt.where(dt.logical_and(dt.greater_equal(x, y), dt.less_equal(x, z)), g, 0.0)


def clip_low(dt: Functions[T], g: T, x: T, y: T, z: T | float) -> T:
    """Return the gradient of clip by the lower bound."""
    return dt.where(dt.logical_and(dt.less(x, y), dt.less(y, z)), g, 0.0)


def clip_high(dt: Functions[T], g: T, x: T, y: T, z: T) -> T:
    """Return the gradient of clip by the upper bound."""
    return dt.where(dt.logical_or(dt.greater(x, z), dt.greater(y, z)), g, 0.0)


def xlogy_factor(dt: Functions[T], g: T, x: T | float, y: T | float) -> T:
    """Return the gradient of x * log(y) by x: 0 if both are 0."""
    if isinstance(y, int | float):
        return g * (math.log(y) if y > 0 else -math.inf if y == 0 else math.nan)
    none = dt.less_equal(y, 0)
    if isinstance(x, int | float):
        none = none if x == 0 else dt.logical_and(none, dt.less(y, y))
    else:
        none = dt.logical_and(dt.equal(x, 0), none)
    return dt.where(none, 0.0, g * dt.log(dt.where(none, 1.0, y)))


def digamma(dt: Functions[T], g: T, x: T) -> T:
    """Return the gradient of digamma: zeta(2, x), mirrored below 0, and infinity at poles."""
    below = dt.less(x, 0)
    a = dt.where(below, 1.0 - x, x)
    slope = dt.where(
        dt.greater(a, ZETA_ASYMPTOTIC_MIN), 1.0 / a, dt.zeta(2.0, a)
    )  # whose square may overflow
    sine = dt.sin(dt.where(below, x - dt.round(x), 0.5) * math.pi)  # 0 at poles
    return g * dt.where(below, math.pi**2 / (sine * sine) - slope, slope)


def i1(dt: Functions[T], g: T, x: T, r: T) -> T:
    """Return the gradient of i1: i0(x) - r / x for the result r, and 1/2 at 0."""
    origin = dt.equal(x, 0)
    return g * dt.where(origin, 0.5, dt.i0(x) - r / dt.where(origin, 1.0, x))


def sinc(dt: Functions[T], g: T, x: T) -> T:
    """Return the gradient of sinc: (cos(pi x) - r) / x for the result r, and 0 at 0."""
    origin = dt.equal(x, 0)
    cosine = dt.cos((x - 2.0 * dt.round(x * 0.5)) * math.pi)  # pi x is not exact
    return g * dt.where(origin, 0.0, (cosine - dt.sinc(x)) / dt.where(origin, 1.0, x))


def frexp_mantissa(dt: Functions[T], g: T, x: T, r: T) -> T:
    """Return the gradient of the mantissa: 1 / 2**e for the exponent e; 0 at 0."""
    none = dt.equal(x, 0)
    return dt.where(none, 0.0, g * (r / dt.where(none, 1.0, x)))


def heaviside_middle(dt: Functions[T], g: T, x: T | float) -> T:
    """Return the gradient of the step by its value at 0."""
    if isinstance(x, int | float):
        return g if x == 0 else dt.zeros_like(g)
    return dt.where(dt.equal(x, 0), g, 0.0)
