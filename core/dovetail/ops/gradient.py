"""What the gradients of elementwise rows are written in, and those that take more than a line.

A rule gives the gradient for one operand. Its parameters say what it needs, and so what is kept for
it: `g` the gradient that comes in, `x`, `y`, `z` the operands, `r` the result. Tensors stand above
this room, so their functions come in too: `dt`. What comes out may have the result's shape where
the operand was broadcast, and another dtype: both are put right centrally.

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

Rule: TypeAlias = Callable[..., Any]  # of any of these parameters; to a tensor, or None


class Arithmetic(Protocol):
    """What rules do with a tensor by operators."""

    def __add__(self, other: Self | float, /) -> Self: ...
    def __radd__(self, other: float, /) -> Self: ...
    def __sub__(self, other: Self | float, /) -> Self: ...
    def __rsub__(self, other: float, /) -> Self: ...
    def __mul__(self, other: Self | float, /) -> Self: ...
    def __rmul__(self, other: float, /) -> Self: ...
    def __truediv__(self, other: Self | float, /) -> Self: ...
    def __rtruediv__(self, other: float, /) -> Self: ...
    def __neg__(self) -> Self: ...


T = TypeVar("T", bound=Arithmetic)


class Functions(Protocol[T]):
    """What rules do with tensors by functions: `dt`, which has all the elementwise ones."""

    def zeros_like(self, x: T, /) -> T: ...
    def ones_like(self, x: T, /) -> T: ...
    def where(self, condition: T, x1: T | float, x2: T | float, /) -> T: ...
    def equal(self, x1: T, x2: T | float, /) -> T: ...
    def less(self, x1: T, x2: T | float, /) -> T: ...
    def less_equal(self, x1: T, x2: T | float, /) -> T: ...
    def greater(self, x1: T, x2: T | float, /) -> T: ...
    def greater_equal(self, x1: T, x2: T | float, /) -> T: ...
    def logical_and(self, x1: T, x2: T, /) -> T: ...
    def logical_or(self, x1: T, x2: T, /) -> T: ...
    def sign(self, x: T, /) -> T: ...
    def copysign(self, x1: T, x2: T | float, /) -> T: ...
    def pow(self, x1: T | float, x2: T | float, /) -> T: ...
    def log(self, x: T, /) -> T: ...


def flat(dt: Functions[T], g: T) -> T:
    """Zeros: the op is constant between its jumps."""
    return dt.zeros_like(g)


def pow_base(dt: Functions[T], g: T, x: T, y: T | float) -> T:
    """Of x ** y by x."""
    if isinstance(y, int | float):
        if y == 0:
            return dt.zeros_like(g)
        return g * y if y == 1 else g * (dt.pow(x, y - 1) * y)
    none = dt.equal(y, 0)
    steady = dt.where(none, 1.0, y)  # where the slope is infinite, its own gradient is NaN
    return dt.where(none, 0.0, g * (steady * dt.pow(x, steady - 1.0)))


def pow_exponent(dt: Functions[T], g: T, x: T | float, y: T, r: T) -> T:
    """Of x ** y by y: 0 where the base is 0 and the exponent is not negative."""
    if isinstance(x, int | float):
        if x != 0:
            return g * r * (math.log(x) if x > 0 else math.nan)
        level = dt.greater_equal(y, 0)
        return dt.where(level, 0.0, dt.where(level, 1.0, g * r) * -math.inf)
    at_zero = dt.logical_and(dt.equal(x, 0), dt.greater_equal(y, 0))
    if current().grad:  # the rule is differentiated in turn: nothing infinite may be on that way
        x = dt.where(at_zero, 1.0, x)
        r = dt.pow(x, y)
    return dt.where(at_zero, 0.0, g * (r * dt.log(x)))


def maximum(dt: Functions[T], g: T, x: T, y: T | float) -> T:
    """Of the larger one by the first operand."""
    if isinstance(y, int | float):
        return dt.where(dt.greater_equal(x, y), g, 0.0)
    return dt.where(dt.less(x, y), 0.0, dt.where(dt.equal(x, y), g * 0.5, g))


def minimum(dt: Functions[T], g: T, x: T, y: T | float) -> T:
    """Of the smaller one by the first operand."""
    if isinstance(y, int | float):
        return dt.where(dt.less_equal(x, y), g, 0.0)
    return dt.where(dt.greater(x, y), 0.0, dt.where(dt.equal(x, y), g * 0.5, g))


def copysign(dt: Functions[T], g: T, x: T, y: T | float) -> T:
    """The sign that came out, by the sign that went in; 0 at 0."""
    return g * dt.sign(x) * dt.copysign(dt.ones_like(x), y)


def by_square_sum(dt: Functions[T], v: T | float, x: T | float, y: T | float) -> T:
    """v / (x**2 + y**2), and 0 at the origin; one of x and y is a tensor."""
    total = x * x + y * y
    assert not isinstance(total, int | float)
    return dt.where(dt.equal(total, 0), 0.0, v / total)


def clip_value(dt: Functions[T], g: T, x: T, y: T | float, z: T | float) -> T:
    """Of x between the bounds y and z by x."""
    return dt.where(dt.logical_and(dt.greater_equal(x, y), dt.less_equal(x, z)), g, 0.0)


def clip_low(dt: Functions[T], g: T, x: T, y: T, z: T | float) -> T:
    """The same by the lower bound."""
    return dt.where(dt.logical_and(dt.less(x, y), dt.less(y, z)), g, 0.0)


def clip_high(dt: Functions[T], g: T, x: T, y: T, z: T) -> T:
    """The same by the upper bound."""
    return dt.where(dt.logical_or(dt.greater(x, z), dt.greater(y, z)), g, 0.0)
