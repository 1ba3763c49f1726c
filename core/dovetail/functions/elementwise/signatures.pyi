# Written by tools/faces.py for type checkers:
# the functions that are rows of the op table.
# fmt: off
# isort: off

from dovetail.tensor.promotion import Operand
from dovetail.tensor.tensor import Tensor
from typing import overload

@overload
def abs(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the absolute value, also of complex numbers."""
@overload
def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def acos(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse cosine in radians, in 0..pi; NaN outside of -1..1."""
@overload
def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def acosh(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse hyperbolic cosine; NaN below 1."""
@overload
def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def add(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the sum x1 + x2; for bool: or."""
@overload
def add(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def angle(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the angle to the positive real axis in radians, in -pi..pi."""
@overload
def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def asin(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse sine in radians, in -pi/2..pi/2; NaN outside of -1..1."""
@overload
def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def asinh(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse hyperbolic sine."""
@overload
def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def atan(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse tangent in radians, in -pi/2..pi/2."""
@overload
def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def atan2(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the angle in radians of the point (x2, x1), in -pi..pi."""
@overload
def atan2(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def atanh(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse hyperbolic tangent; infinite at -1 and 1, NaN outside."""
@overload
def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def beta(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return gamma(x1) * gamma(x2) / gamma(x1 + x2); NaN for negative numbers."""
@overload
def beta(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_and(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the bits that are set in both operands."""
@overload
def bitwise_and(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_invert(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return x with all bits flipped; for bool: not."""
@overload
def bitwise_invert(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_left_shift(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return x1 * 2**x2, wrapping."""
@overload
def bitwise_left_shift(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_or(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the bits that are set in one or both operands."""
@overload
def bitwise_or(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_right_shift(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return x1 / 2**x2 rounded down."""
@overload
def bitwise_right_shift(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_xor(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the bits that are set in exactly one operand."""
@overload
def bitwise_xor(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def cbrt(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the cube root, also of negative numbers."""
@overload
def cbrt(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ceil(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the least integer that is not less than x."""
@overload
def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def conj(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the complex conjugate, a - bi; a real number stays."""
@overload
def conj(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def copysign(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return |x1| with the sign of x2."""
@overload
def copysign(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def cos(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the cosine of an angle in radians; NaN for infinity."""
@overload
def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def cosh(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the hyperbolic cosine."""
@overload
def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def deg2rad(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Convert degrees to radians."""
@overload
def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def digamma(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the derivative of lgamma; NaN at negative integers."""
@overload
def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def divide(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the quotient x1 / x2, always a float."""
@overload
def divide(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def equal(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return x1 == x2."""
@overload
def equal(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def erf(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the error function."""
@overload
def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def erfc(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return 1 - erf(x), accurate where it is small."""
@overload
def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def erfinv(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse of the error function; infinite at -1 and 1, NaN outside."""
@overload
def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def exp(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return e to the power x."""
@overload
def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def exp2(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return 2 to the power x."""
@overload
def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def expm1(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return exp(x) - 1, accurate near 0."""
@overload
def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def floor(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the largest integer that is not more than x."""
@overload
def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def floor_divide(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the quotient x1 / x2 of exact arithmetic, rounded down."""
@overload
def floor_divide(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def gamma(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the gamma function: (x - 1)! for a positive integer, NaN at negative ones."""
@overload
def gamma(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def gcd(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the greatest common divisor; negative only for MIN, and 0 for 0 and 0."""
@overload
def gcd(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def greater(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return x1 > x2."""
@overload
def greater(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def greater_equal(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return x1 >= x2."""
@overload
def greater_equal(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def heaviside(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return 0 where x1 is negative, 1 where it is positive, and x2 where it is 0."""
@overload
def heaviside(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def hypot(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the length sqrt(x1**2 + x2**2), without overflow."""
@overload
def hypot(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def i0(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the modified Bessel function of the first kind and order 0."""
@overload
def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def i1(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the modified Bessel function of the first kind and order 1."""
@overload
def i1(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def imag(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the imaginary part as a new tensor; 0 for a real number."""
@overload
def imag(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def isfinite(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return True where x is neither infinite nor NaN."""
@overload
def isfinite(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def isinf(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return True where x is inf or -inf."""
@overload
def isinf(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def isnan(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return True where x is NaN."""
@overload
def isnan(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def lcm(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the least common multiple, which wraps; 0 where an operand is 0."""
@overload
def lcm(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ldexp(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return x1 * 2**x2, with one rounding; x2 is truncated to an integer."""
@overload
def ldexp(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def less(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return x1 < x2."""
@overload
def less(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def less_equal(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return x1 <= x2."""
@overload
def less_equal(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def lgamma(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the logarithm of |gamma(x)|; infinite at 0 and negative integers."""
@overload
def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def log(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the natural logarithm; -inf at 0, NaN below."""
@overload
def log(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def log1p(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return log(1 + x), accurate near 0; -inf at -1, NaN below."""
@overload
def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def log2(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the logarithm to base 2; -inf at 0, NaN below."""
@overload
def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def log10(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the logarithm to base 10; -inf at 0, NaN below."""
@overload
def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def logaddexp(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return log(exp(x1) + exp(x2)), without overflow."""
@overload
def logaddexp(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def logical_and(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return True where both operands are true."""
@overload
def logical_and(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def logical_not(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return True where x is zero or False."""
@overload
def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def logical_or(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return True where one or both operands are true."""
@overload
def logical_or(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def logical_xor(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return True where exactly one operand is true."""
@overload
def logical_xor(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def logit(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse of sigmoid, log(x / (1 - x)); infinite at 0 and 1, NaN outside."""
@overload
def logit(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def maximum(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the larger of two elements; NaN if one is NaN."""
@overload
def maximum(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def minimum(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the smaller of two elements; NaN if one is NaN."""
@overload
def minimum(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def multiply(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the product x1 * x2; for bool: and."""
@overload
def multiply(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ndtr(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the probability that a standard normal variable is below x."""
@overload
def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ndtri(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the standard normal quantile of probability x; NaN outside of 0..1."""
@overload
def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def negative(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return -x."""
@overload
def negative(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def nextafter(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the next number of their dtype after x1 in the direction of x2."""
@overload
def nextafter(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def not_equal(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return x1 != x2."""
@overload
def not_equal(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def positive(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return x as a new tensor."""
@overload
def positive(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def rad2deg(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Convert radians to degrees."""
@overload
def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def real(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the real part as a new tensor; a real number stays."""
@overload
def real(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def reciprocal(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return 1 / x."""
@overload
def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def relu(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return max(x, 0); NaN stays."""
@overload
def relu(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def remainder(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the remainder of x1 / x2, with the sign of x2."""
@overload
def remainder(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def rsqrt(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return 1 / sqrt(x)."""
@overload
def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sigmoid(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return 1 / (1 + exp(-x))."""
@overload
def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sign(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the sign of x: -1, 0 or 1; x / abs(x) for complex numbers, 0 at 0; NaN stays."""
@overload
def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def signbit(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return True where the sign bit is set, as in -0.0."""
@overload
def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sin(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the sine of an angle in radians; NaN for infinity."""
@overload
def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sinc(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return sin(pi * x) / (pi * x), and 1 at 0."""
@overload
def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sinh(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the hyperbolic sine."""
@overload
def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sqrt(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the square root; NaN for negative real numbers."""
@overload
def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def square(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return x * x."""
@overload
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def subtract(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return x1 - x2."""
@overload
def subtract(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def tan(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the tangent of an angle in radians; NaN for infinity."""
@overload
def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def tanh(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the hyperbolic tangent."""
@overload
def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def trunc(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the integer part of x, without its fraction."""
@overload
def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def xlogy(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return x1 * log(x2), and 0 where x1 is 0, unless x2 is NaN."""
@overload
def xlogy(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def zeta(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the Hurwitz zeta function: the sum of (x2 + k)**-x1 over k = 0, 1, 2, ..."""
@overload
def zeta(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
