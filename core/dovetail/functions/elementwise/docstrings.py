"""What the docstrings of the functions that are one row each say of them."""

from __future__ import annotations

# Of a function its sentence, where "`name` of each element" does not do, what else there is to say,
# and an example, which runs as a doctest.
SENTENCES: dict[str, tuple[str, ...]] = {
    # arithmetic
    "add": ("The sum x1 + x2; for bool: or.", "[1, 2], [3, 4] -> [4, 6]"),
    "subtract": ("x1 - x2.", "[5, 2], 1 -> [4, 1]"),
    "multiply": ("The product x1 * x2; for bool: and.", "[1, 2], [3, 4] -> [3, 8]"),
    "divide": (
        "The quotient x1 / x2, always a float.",
        "A number over 0 is infinite, 0 over 0 NaN.",
        "[1, 3], 2 -> [0.5, 1.5]",
    ),
    "floor_divide": (
        "The quotient x1 / x2 of exact arithmetic, rounded down.",
        "For integers x // 0 is 0, and MIN // -1 wraps to MIN.",
        "Gradient: 0 everywhere.",
        "[7, -7], 2 -> [3, -4]",
    ),
    "remainder": (
        "What x1 leaves when divided by x2, with the sign of x2.",
        "Of floats it is that of exact arithmetic, rounded once.",
        "x % 0 is 0 for integers, NaN for floats.",
        "Gradient: 1 for x1, -floor(x1 / x2) for x2.",
        "[7, -7], 3 -> [1, 2]",
    ),
    "maximum": (
        "The larger of two elements; NaN wins.",
        "Gradient: half to each where equal, all of it beside a number, all to both of NaN.",
        "[1, 5], [3, 4] -> [3, 5]",
    ),
    "minimum": (
        "The smaller of two elements; NaN wins.",
        "Gradient: half to each where equal, all of it beside a number, all to both of NaN.",
        "[1, 5], [3, 4] -> [1, 4]",
    ),
    "atan2": (
        "The angle in radians of the point (x2, x1), in -pi..pi.",
        "Gradient: 0 at (0, 0).",
        "[1.0, 0.0], [0.0, -1.0] -> [1.5707963705062866, 3.1415927410125732]",
    ),
    "hypot": (
        "The length sqrt(x1**2 + x2**2), without overflow.",
        "Beside an infinite operand it is inf, also of NaN.",
        "Gradient: NaN at (0, 0).",
        "[3.0], [4.0] -> [5.0]",
    ),
    "copysign": (
        "|x1| with the sign of x2.",
        "The signs of -0.0 and of NaN count.",
        "Gradient: 0 where x1 is 0.",
        "[1.0, 2.0], [-1.0, 1.0] -> [-1.0, 2.0]",
    ),
    "nextafter": (
        "The next number of their dtype after x1 in the direction of x2.",
        "Gradient: none flows.",
        "[1.0], [2.0] -> [1.0000001192092896]",
    ),
    "logaddexp": (
        "log(exp(x1) + exp(x2)), without overflow.",
        "Where the two terms cancel, the error is below 1 ulp of the larger operand.",
        "[1000.0], [1000.0] -> [1000.6931762695312]",
    ),
    "pow": ("x1 to the power x2.", "[2, 3], 3 -> [8, 27]"),
    "round": (
        "The nearest integer; halves go to the even one.",
        "Gradient: 0 everywhere.",
        "[0.5, 1.5, 2.6] -> [0.0, 2.0, 3.0]",
    ),
    "conj": ("The complex conjugate, a - bi; a real number itself.", "[1 + 2j] -> [(1-2j)]"),
    "real": (
        "The real part, in memory of its own; a real number itself.",
        "[1 + 2j, 3] -> [1.0, 3.0]",
    ),
    "imag": (
        "The imaginary part, in memory of its own; 0 of a real number.",
        "[1 + 2j, 3] -> [2.0, 0.0]",
    ),
    "angle": (
        "The angle to the positive real axis in radians, in -pi..pi.",
        "Gradient: 0 at 0.",
        "[1j, -1] -> [1.5707963705062866, 3.1415927410125732]",
    ),
    "abs": (
        "The absolute value; of a complex number its distance from 0.",
        "Of the least integer of a signed dtype it wraps to itself.",
        "Gradient: 0 at 0.",
        "[-1, 2] -> [1, 2]",
    ),
    "negative": ("-x.", "Integers wrap.", "[1, -2] -> [-1, 2]"),
    "positive": ("x itself, as a new tensor.", "[1, -2] -> [1, -2]"),
    "sign": (
        "The sign of x: -1, 0 or 1; of a complex number x / abs(x), and 0 of 0; NaN stays.",
        "Gradient: 0 everywhere, but of complex numbers.",
        "[-3, 0, 5] -> [-1, 0, 1]",
    ),
    "square": ("x * x.", "Integers wrap.", "[2, 3] -> [4, 9]"),
    "reciprocal": ("1 / x.", "Always a float; of 0 it is infinite.", "[2.0, 4.0] -> [0.5, 0.25]"),
    "sqrt": (
        "The square root; NaN below 0, but of complex numbers.",
        "Gradient: infinite at 0.",
        "[4.0, 9.0] -> [2.0, 3.0]",
    ),
    "rsqrt": (
        "1 / sqrt(x).",
        "NaN below 0, infinite at 0.",
        "[4.0, 2.0] -> [0.5, 0.7071067690849304]",
    ),
    "cbrt": ("The cube root, also of negative numbers.", "[8.0, -27.0] -> [2.0, -3.0]"),
    "ceil": (
        "The least integer that is not less than x.",
        "Integers stay as they are.",
        "Gradient: 0 everywhere.",
        "[1.2, -1.2] -> [2.0, -1.0]",
    ),
    "floor": (
        "The largest integer that is not more than x.",
        "Integers stay as they are.",
        "Gradient: 0 everywhere.",
        "[1.2, -1.2] -> [1.0, -2.0]",
    ),
    "trunc": (
        "The integer part of x, without its fraction.",
        "Integers stay as they are.",
        "Gradient: 0 everywhere.",
        "[1.7, -1.7] -> [1.0, -1.0]",
    ),
    "relu": ("max(x, 0); NaN stays.", "Gradient: 0 at 0.", "[-1.5, 0.0, 2.0] -> [0.0, 0.0, 2.0]"),
    # comparison and logic
    "equal": ("x1 == x2.", "NaN equals nothing; -0.0 equals 0.", "[1, 2], [1, 3] -> [True, False]"),
    "not_equal": (
        "x1 != x2.",
        "NaN differs from everything; -0.0 equals 0.",
        "[1, 2], [1, 3] -> [False, True]",
    ),
    "less": ("x1 < x2.", "False where one is NaN.", "[1, 2], 2 -> [True, False]"),
    "less_equal": ("x1 <= x2.", "False where one is NaN.", "[1, 3], 2 -> [True, False]"),
    "greater": ("x1 > x2.", "False where one is NaN.", "[1, 3], 2 -> [False, True]"),
    "greater_equal": ("x1 >= x2.", "False where one is NaN.", "[1, 2], 2 -> [False, True]"),
    "logical_and": ("Whether both are true.", "[1, 0], [2, 3] -> [True, False]"),
    "logical_or": ("Whether one or both are true.", "[1, 0], [0, 0] -> [True, False]"),
    "logical_xor": ("Whether one only is true.", "[1, 0], [2, 3] -> [False, True]"),
    "logical_not": ("Whether x is zero, or False.", "[0, 2] -> [True, False]"),
    "bitwise_and": ("The bits that are set in both.", "[6], [3] -> [2]"),
    "bitwise_or": ("The bits that are set in one or both.", "[6], [3] -> [7]"),
    "bitwise_xor": ("The bits that are set in one only.", "[6], [3] -> [5]"),
    "bitwise_left_shift": (
        "x1 * 2**x2, wrapping.",
        "An amount below 0, or of all bits or more, shifts everything out.",
        "[3], [2] -> [12]",
    ),
    "bitwise_right_shift": (
        "x1 / 2**x2 rounded down.",
        "An amount below 0, or of all bits or more, shifts everything out: 0, or -1 below 0.",
        "[12], [2] -> [3]",
    ),
    "bitwise_invert": ("All bits flipped; for bool: not.", "[0, 5] -> [-1, -6]"),
    "isnan": ("Whether x is NaN.", "[1.0] -> [False]"),
    "isinf": ("Whether x is inf or -inf.", "[1.0] -> [False]"),
    "isfinite": ("Whether x is neither infinite nor NaN.", "[1.0] -> [True]"),
    "signbit": ("Whether the sign bit is set: -0.0 has it.", "[1.0, -0.0] -> [False, True]"),
    # elementary functions: within 1 ulp, and the same bits on every device
    "exp": ("e to the power x.", "[0.0, 1.0] -> [1.0, 2.7182817459106445]"),
    "exp2": ("2 to the power x.", "[3.0, 0.5] -> [8.0, 1.4142135381698608]"),
    "expm1": ("exp(x) - 1, accurate near 0.", "[0.0, 1.0] -> [0.0, 1.718281865119934]"),
    "log": (
        "The natural logarithm; -inf at 0, NaN below.",
        "[1.0, 2.0] -> [0.0, 0.6931471824645996]",
    ),
    "log2": (
        "The logarithm to base 2; -inf at 0, NaN below.",
        "[8.0, 3.0] -> [3.0, 1.5849624872207642]",
    ),
    "log10": (
        "The logarithm to base 10; -inf at 0, NaN below.",
        "[1000.0, 2.0] -> [3.0, 0.3010300099849701]",
    ),
    "log1p": (
        "log(1 + x), accurate near 0; -inf at -1, NaN below.",
        "[0.0, 1.0] -> [0.0, 0.6931471824645996]",
    ),
    "sin": (
        "The sine of an angle in radians; NaN of infinity.",
        "[0.0, 1.0] -> [0.0, 0.8414709568023682]",
    ),
    "cos": (
        "The cosine of an angle in radians; NaN of infinity.",
        "[0.0, 1.0] -> [1.0, 0.5403023362159729]",
    ),
    "tan": (
        "The tangent of an angle in radians; NaN of infinity.",
        "[0.0, 1.0] -> [0.0, 1.5574077367782593]",
    ),
    "asin": (
        "The inverse sine in radians, in -pi/2..pi/2; NaN outside of -1..1.",
        "[0.0, 1.0] -> [0.0, 1.5707963705062866]",
    ),
    "acos": (
        "The inverse cosine in radians, in 0..pi; NaN outside of -1..1.",
        "[1.0, 0.0] -> [0.0, 1.5707963705062866]",
    ),
    "atan": (
        "The inverse tangent in radians, in -pi/2..pi/2.",
        "[0.0, 1.0] -> [0.0, 0.7853981852531433]",
    ),
    "sinh": ("The hyperbolic sine.", "[0.0, 1.0] -> [0.0, 1.175201177597046]"),
    "cosh": ("The hyperbolic cosine.", "[0.0, 1.0] -> [1.0, 1.5430806875228882]"),
    "tanh": ("The hyperbolic tangent.", "[0.0, 1.0] -> [0.0, 0.7615941762924194]"),
    "asinh": ("The inverse hyperbolic sine.", "[0.0, 1.0] -> [0.0, 0.8813735842704773]"),
    "acosh": (
        "The inverse hyperbolic cosine; NaN below 1.",
        "[1.0, 2.0] -> [0.0, 1.316957950592041]",
    ),
    "atanh": (
        "The inverse hyperbolic tangent; infinite at -1 and 1, NaN outside.",
        "[0.0, 0.5] -> [0.0, 0.5493061542510986]",
    ),
    "erf": ("The error function.", "[0.0, 1.0] -> [0.0, 0.8427007794380188]"),
    "erfc": (
        "1 - erf(x), accurate where that is small.",
        "[0.0, 5.0] -> [1.0, 1.5374598295869735e-12]",
    ),
    "sigmoid": ("1 / (1 + exp(-x)).", "[0.0] -> [0.5]"),
    "erfinv": (
        "The inverse of the error function; infinite at -1 and 1, NaN outside.",
        "[0.0, 0.5] -> [0.0, 0.47693631052970886]",
    ),
    "ndtr": (
        "The probability that a normally distributed number is below x.",
        "[0.0, -1.0] -> [0.5, 0.15865525603294373]",
    ),
    "ndtri": (
        "What a normally distributed number is below with probability x; NaN outside of 0..1.",
        "[0.5, 0.25] -> [0.0, -0.6744897961616516]",
    ),
    "logit": (
        "The inverse of sigmoid, log(x / (1 - x)); infinite at 0 and 1, NaN outside.",
        "[0.5, 0.75] -> [0.0, 1.0986123085021973]",
    ),
    "lgamma": (
        "The logarithm of |gamma(x)|; infinite at 0 and negative integers.",
        "Below 0 the bound is one of absolute error where the result is near 0.",
        "[1.0, 5.0] -> [0.0, 3.178053855895996]",
    ),
    "gamma": (
        "The gamma function; (x - 1)! of a positive integer, NaN at negative ones.",
        "[5.0, 0.5] -> [24.0, 1.7724539041519165]",
    ),
    "digamma": (
        "The derivative of lgamma; NaN at negative integers.",
        "Below 0 the bound is one of absolute error where the result is near 0.",
        "[1.0, 2.0] -> [-0.5772156715393066, 0.42278432846069336]",
    ),
    "i0": (
        "The modified Bessel function of the first kind and order 0.",
        "[0.0, 1.0] -> [1.0, 1.2660658359527588]",
    ),
    "i1": (
        "The modified Bessel function of the first kind and order 1.",
        "[0.0, 1.0] -> [0.0, 0.5651590824127197]",
    ),
    "sinc": (
        "sin(pi * x) / (pi * x), and 1 at 0.",
        "[0.0, 0.5, 1.0] -> [1.0, 0.6366197466850281, -0.0]",
    ),
    "deg2rad": ("Degrees as radians.", "[180.0] -> [3.1415927410125732]"),
    "rad2deg": ("Radians as degrees.", "[1.0] -> [57.295780181884766]"),
    "ldexp": (
        "x1 * 2**x2, with one rounding; x2 is truncated to an integer.",
        "Gradient: none flows to x2.",
        "[1.5, 3.0], [2, -1] -> [6.0, 1.5]",
    ),
    "heaviside": (
        "0 where x1 is negative, 1 where it is positive, and x2 where it is 0.",
        "Gradient: 0 for x1; for x2 where x1 is 0.",
        "[-2.0, 0.0, 3.0], 0.5 -> [0.0, 0.5, 1.0]",
    ),
    "gcd": (
        "The greatest common divisor; never negative but for MIN, and 0 of 0 and 0.",
        "[12, -18], 8 -> [4, 2]",
    ),
    "lcm": (
        "The least common multiple, which wraps; 0 where an operand is 0.",
        "[4, -6], 10 -> [20, 30]",
    ),
    "xlogy": (
        "x1 * log(x2), and 0 where x1 is 0, unless x2 is NaN.",
        "Gradient: where both are 0, it is 0 by x1 and NaN by x2, as in PyTorch.",
        "[0.0, 2.0], [0.0, 1.0] -> [0.0, 0.0]",
    ),
    "beta": (
        "gamma(x1) * gamma(x2) / gamma(x1 + x2) for positive numbers; NaN for negative ones.",
        "[1.0, 2.0], 3.0 -> [0.3333333432674408, 0.0833333358168602]",
    ),
    "zeta": (
        "The Hurwitz zeta function: the sum of (x2 + k)**-x1 over k = 0, 1, 2, ...",
        "Riemann's with x2 = 1. Infinite at x1 = 1 and x2 = 0, NaN for x1 < 1 or x2 < 0.",
        "Gradient: none flows to x1.",
        "[2.0, 4.0], 1.0 -> [1.644934058189392, 1.0823233127593994]",
    ),
}
