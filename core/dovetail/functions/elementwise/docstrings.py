"""Docstrings of the functions that are one row of the op table each."""

from __future__ import annotations

# Name -> first line of the docstring, further lines, and an example (with "->") that runs as a
# doctest. A function without an entry gets "Return `name` of each element."
OP_DOC_LINES: dict[str, tuple[str, ...]] = {
    # arithmetic
    "add": ("Return the sum x1 + x2; for bool: or.", "[1, 2], [3, 4] -> [4, 6]"),
    "subtract": ("Return x1 - x2.", "[5, 2], 1 -> [4, 1]"),
    "multiply": ("Return the product x1 * x2; for bool: and.", "[1, 2], [3, 4] -> [3, 8]"),
    "divide": (
        "Return the quotient x1 / x2, always a float.",
        "A number over 0 is infinite, 0 over 0 NaN.",
        "[1, 3], 2 -> [0.5, 1.5]",
    ),
    "floor_divide": (
        "Return the quotient x1 / x2 of exact arithmetic, rounded down.",
        "For integers x // 0 is 0, and MIN // -1 wraps to MIN.",
        "Gradient: 0 everywhere.",
        "[7, -7], 2 -> [3, -4]",
    ),
    "remainder": (
        "Return the remainder of x1 / x2, with the sign of x2.",
        "For floats it is the remainder of exact arithmetic, rounded once.",
        "x % 0 is 0 for integers, NaN for floats.",
        "Gradient: 1 for x1, -floor(x1 / x2) for x2.",
        "[7, -7], 3 -> [1, 2]",
    ),
    "maximum": (
        "Return the larger of two elements; NaN if one is NaN.",
        "Gradient: half to each of equal tensors, all of it next to a number, all to both of NaN.",
        "[1, 5], [3, 4] -> [3, 5]",
    ),
    "minimum": (
        "Return the smaller of two elements; NaN if one is NaN.",
        "Gradient: half to each of equal tensors, all of it next to a number, all to both of NaN.",
        "[1, 5], [3, 4] -> [1, 4]",
    ),
    "atan2": (
        "Return the angle in radians of the point (x2, x1), in -pi..pi.",
        "Gradient: 0 at (0, 0).",
        "[1.0, 0.0], [0.0, -1.0] -> [1.5707963705062866, 3.1415927410125732]",
    ),
    "hypot": (
        "Return the length sqrt(x1**2 + x2**2), without overflow.",
        "If one operand is infinite it is inf, even if the other is NaN.",
        "Gradient: NaN at (0, 0).",
        "[3.0], [4.0] -> [5.0]",
    ),
    "copysign": (
        "Return |x1| with the sign of x2.",
        "The signs of -0.0 and of NaN count.",
        "Gradient: 0 where x1 is 0.",
        "[1.0, 2.0], [-1.0, 1.0] -> [-1.0, 2.0]",
    ),
    "nextafter": (
        "Return the next number of their dtype after x1 in the direction of x2.",
        "Gradient: none.",
        "[1.0], [2.0] -> [1.0000001192092896]",
    ),
    "logaddexp": (
        "Return log(exp(x1) + exp(x2)), without overflow.",
        "Where the two terms cancel, the error is below 1 ulp of the larger operand.",
        "[1000.0], [1000.0] -> [1000.6931762695312]",
    ),
    "pow": ("Return x1 to the power x2.", "[2, 3], 3 -> [8, 27]"),
    "round": (
        "Return the nearest integer; halves go to the even one.",
        "Gradient: 0 everywhere.",
        "[0.5, 1.5, 2.6] -> [0.0, 2.0, 3.0]",
    ),
    "conj": ("Return the complex conjugate, a - bi; a real number stays.", "[1 + 2j] -> [(1-2j)]"),
    "real": (
        "Return the real part as a new tensor; a real number stays.",
        "[1 + 2j, 3] -> [1.0, 3.0]",
    ),
    "imag": (
        "Return the imaginary part as a new tensor; 0 for a real number.",
        "[1 + 2j, 3] -> [2.0, 0.0]",
    ),
    "angle": (
        "Return the angle to the positive real axis in radians, in -pi..pi.",
        "Gradient: 0 at 0.",
        "[1j, -1] -> [1.5707963705062866, 3.1415927410125732]",
    ),
    "abs": (
        "Return the absolute value, also of complex numbers.",
        "The least integer of a signed dtype wraps to itself.",
        "Gradient: 0 at 0.",
        "[-1, 2] -> [1, 2]",
    ),
    "negative": ("Return -x.", "Integers wrap.", "[1, -2] -> [-1, 2]"),
    "positive": ("Return x as a new tensor.", "[1, -2] -> [1, -2]"),
    "sign": (
        "Return the sign of x: -1, 0 or 1; x / abs(x) for complex numbers, 0 at 0; NaN stays.",
        "Gradient: 0 everywhere, except for complex numbers.",
        "[-3, 0, 5] -> [-1, 0, 1]",
    ),
    "square": ("Return x * x.", "Integers wrap.", "[2, 3] -> [4, 9]"),
    "reciprocal": ("Return 1 / x.", "Always a float; infinite for 0.", "[2.0, 4.0] -> [0.5, 0.25]"),
    "sqrt": (
        "Return the square root; NaN for negative real numbers.",
        "Gradient: infinite at 0.",
        "[4.0, 9.0] -> [2.0, 3.0]",
    ),
    "rsqrt": (
        "Return 1 / sqrt(x).",
        "NaN below 0, infinite at 0.",
        "[4.0, 2.0] -> [0.5, 0.7071067690849304]",
    ),
    "cbrt": ("Return the cube root, also of negative numbers.", "[8.0, -27.0] -> [2.0, -3.0]"),
    "ceil": (
        "Return the least integer that is not less than x.",
        "Integers stay as they are.",
        "Gradient: 0 everywhere.",
        "[1.2, -1.2] -> [2.0, -1.0]",
    ),
    "floor": (
        "Return the largest integer that is not more than x.",
        "Integers stay as they are.",
        "Gradient: 0 everywhere.",
        "[1.2, -1.2] -> [1.0, -2.0]",
    ),
    "trunc": (
        "Return the integer part of x, without its fraction.",
        "Integers stay as they are.",
        "Gradient: 0 everywhere.",
        "[1.7, -1.7] -> [1.0, -1.0]",
    ),
    "relu": (
        "Return max(x, 0); NaN stays.",
        "Gradient: 0 at 0.",
        "[-1.5, 0.0, 2.0] -> [0.0, 0.0, 2.0]",
    ),
    # comparison and logic
    "equal": (
        "Return x1 == x2.",
        "NaN equals nothing; -0.0 equals 0.",
        "[1, 2], [1, 3] -> [True, False]",
    ),
    "not_equal": (
        "Return x1 != x2.",
        "NaN differs from everything; -0.0 equals 0.",
        "[1, 2], [1, 3] -> [False, True]",
    ),
    "less": ("Return x1 < x2.", "False if one operand is NaN.", "[1, 2], 2 -> [True, False]"),
    "less_equal": (
        "Return x1 <= x2.",
        "False if one operand is NaN.",
        "[1, 3], 2 -> [True, False]",
    ),
    "greater": ("Return x1 > x2.", "False if one operand is NaN.", "[1, 3], 2 -> [False, True]"),
    "greater_equal": (
        "Return x1 >= x2.",
        "False if one operand is NaN.",
        "[1, 2], 2 -> [False, True]",
    ),
    "logical_and": ("Return True where both operands are true.", "[1, 0], [2, 3] -> [True, False]"),
    "logical_or": (
        "Return True where one or both operands are true.",
        "[1, 0], [0, 0] -> [True, False]",
    ),
    "logical_xor": (
        "Return True where exactly one operand is true.",
        "[1, 0], [2, 3] -> [False, True]",
    ),
    "logical_not": ("Return True where x is zero or False.", "[0, 2] -> [True, False]"),
    "bitwise_and": ("Return the bits that are set in both operands.", "[6], [3] -> [2]"),
    "bitwise_or": ("Return the bits that are set in one or both operands.", "[6], [3] -> [7]"),
    "bitwise_xor": ("Return the bits that are set in exactly one operand.", "[6], [3] -> [5]"),
    "bitwise_left_shift": (
        "Return x1 * 2**x2, wrapping.",
        "A shift below 0, or of all bits or more, gives 0.",
        "[3], [2] -> [12]",
    ),
    "bitwise_right_shift": (
        "Return x1 / 2**x2 rounded down.",
        "A shift below 0, or of all bits or more, gives 0, or -1 for negative x1.",
        "[12], [2] -> [3]",
    ),
    "bitwise_invert": ("Return x with all bits flipped; for bool: not.", "[0, 5] -> [-1, -6]"),
    "isnan": ("Return True where x is NaN.", "[1.0] -> [False]"),
    "isinf": ("Return True where x is inf or -inf.", "[1.0] -> [False]"),
    "isfinite": ("Return True where x is neither infinite nor NaN.", "[1.0] -> [True]"),
    "signbit": (
        "Return True where the sign bit is set, as in -0.0.",
        "[1.0, -0.0] -> [False, True]",
    ),
    # elementary functions: within 1 ulp, with equal bits on every device
    "exp": ("Return e to the power x.", "[0.0, 1.0] -> [1.0, 2.7182817459106445]"),
    "exp2": ("Return 2 to the power x.", "[3.0, 0.5] -> [8.0, 1.4142135381698608]"),
    "expm1": ("Return exp(x) - 1, accurate near 0.", "[0.0, 1.0] -> [0.0, 1.718281865119934]"),
    "log": (
        "Return the natural logarithm; -inf at 0, NaN below.",
        "[1.0, 2.0] -> [0.0, 0.6931471824645996]",
    ),
    "log2": (
        "Return the logarithm to base 2; -inf at 0, NaN below.",
        "[8.0, 3.0] -> [3.0, 1.5849624872207642]",
    ),
    "log10": (
        "Return the logarithm to base 10; -inf at 0, NaN below.",
        "[1000.0, 2.0] -> [3.0, 0.3010300099849701]",
    ),
    "log1p": (
        "Return log(1 + x), accurate near 0; -inf at -1, NaN below.",
        "[0.0, 1.0] -> [0.0, 0.6931471824645996]",
    ),
    "sin": (
        "Return the sine of an angle in radians; NaN for infinity.",
        "[0.0, 1.0] -> [0.0, 0.8414709568023682]",
    ),
    "cos": (
        "Return the cosine of an angle in radians; NaN for infinity.",
        "[0.0, 1.0] -> [1.0, 0.5403022766113281]",
    ),
    "tan": (
        "Return the tangent of an angle in radians; NaN for infinity.",
        "[0.0, 1.0] -> [0.0, 1.5574077367782593]",
    ),
    "asin": (
        "Return the inverse sine in radians, in -pi/2..pi/2; NaN outside of -1..1.",
        "[0.0, 1.0] -> [0.0, 1.5707963705062866]",
    ),
    "acos": (
        "Return the inverse cosine in radians, in 0..pi; NaN outside of -1..1.",
        "[1.0, 0.0] -> [0.0, 1.5707963705062866]",
    ),
    "atan": (
        "Return the inverse tangent in radians, in -pi/2..pi/2.",
        "[0.0, 1.0] -> [0.0, 0.7853981852531433]",
    ),
    "sinh": ("Return the hyperbolic sine.", "[0.0, 1.0] -> [0.0, 1.175201177597046]"),
    "cosh": ("Return the hyperbolic cosine.", "[0.0, 1.0] -> [1.0, 1.5430806875228882]"),
    "tanh": ("Return the hyperbolic tangent.", "[0.0, 1.0] -> [0.0, 0.7615941762924194]"),
    "asinh": ("Return the inverse hyperbolic sine.", "[0.0, 1.0] -> [0.0, 0.8813735842704773]"),
    "acosh": (
        "Return the inverse hyperbolic cosine; NaN below 1.",
        "[1.0, 2.0] -> [0.0, 1.316957950592041]",
    ),
    "atanh": (
        "Return the inverse hyperbolic tangent; infinite at -1 and 1, NaN outside.",
        "[0.0, 0.5] -> [0.0, 0.5493061542510986]",
    ),
    "erf": ("Return the error function.", "[0.0, 1.0] -> [0.0, 0.8427007794380188]"),
    "erfc": (
        "Return 1 - erf(x), accurate where it is small.",
        "[0.0, 5.0] -> [1.0, 1.5374598295869735e-12]",
    ),
    "sigmoid": ("Return 1 / (1 + exp(-x)).", "[0.0] -> [0.5]"),
    "erfinv": (
        "Return the inverse of the error function; infinite at -1 and 1, NaN outside.",
        "[0.0, 0.5] -> [0.0, 0.47693631052970886]",
    ),
    "ndtr": (
        "Return the probability that a standard normal variable is below x.",
        "[0.0, -1.0] -> [0.5, 0.15865525603294373]",
    ),
    "ndtri": (
        "Return the standard normal quantile of probability x; NaN outside of 0..1.",
        "[0.5, 0.25] -> [0.0, -0.6744897961616516]",
    ),
    "logit": (
        "Return the inverse of sigmoid, log(x / (1 - x)); infinite at 0 and 1, NaN outside.",
        "[0.5, 0.75] -> [0.0, 1.0986123085021973]",
    ),
    "lgamma": (
        "Return the logarithm of |gamma(x)|; infinite at 0 and negative integers.",
        "For x < 0 the bound is one of the absolute error where the result is near 0.",
        "[1.0, 5.0] -> [0.0, 3.178053855895996]",
    ),
    "gamma": (
        "Return the gamma function: (x - 1)! for a positive integer, NaN at negative ones.",
        "[5.0, 0.5] -> [24.0, 1.7724539041519165]",
    ),
    "digamma": (
        "Return the derivative of lgamma; NaN at negative integers.",
        "For x < 0 the bound is one of the absolute error where the result is near 0.",
        "[1.0, 2.0] -> [-0.5772156715393066, 0.42278432846069336]",
    ),
    "i0": (
        "Return the modified Bessel function of the first kind and order 0.",
        "[0.0, 1.0] -> [1.0, 1.2660658359527588]",
    ),
    "i1": (
        "Return the modified Bessel function of the first kind and order 1.",
        "[0.0, 1.0] -> [0.0, 0.5651590824127197]",
    ),
    "sinc": (
        "Return sin(pi * x) / (pi * x), and 1 at 0.",
        "[0.0, 0.5, 1.0] -> [1.0, 0.6366197466850281, -0.0]",
    ),
    "deg2rad": ("Convert degrees to radians.", "[180.0] -> [3.1415927410125732]"),
    "rad2deg": ("Convert radians to degrees.", "[1.0] -> [57.295780181884766]"),
    "ldexp": (
        "Return x1 * 2**x2, with one rounding; x2 is truncated to an integer.",
        "Gradient: none for x2.",
        "[1.5, 3.0], [2, -1] -> [6.0, 1.5]",
    ),
    "heaviside": (
        "Return 0 where x1 is negative, 1 where it is positive, and x2 where it is 0.",
        "Gradient: 0 for x1; for x2 where x1 is 0.",
        "[-2.0, 0.0, 3.0], 0.5 -> [0.0, 0.5, 1.0]",
    ),
    "gcd": (
        "Return the greatest common divisor; negative only for MIN, and 0 for 0 and 0.",
        "[12, -18], 8 -> [4, 2]",
    ),
    "lcm": (
        "Return the least common multiple, which wraps; 0 where an operand is 0.",
        "[4, -6], 10 -> [20, 30]",
    ),
    "xlogy": (
        "Return x1 * log(x2), and 0 where x1 is 0, unless x2 is NaN.",
        "Gradient: where both are 0, it is 0 by x1 and NaN by x2, as in PyTorch.",
        "[0.0, 2.0], [0.0, 1.0] -> [0.0, 0.0]",
    ),
    "beta": (
        "Return gamma(x1) * gamma(x2) / gamma(x1 + x2); NaN for negative numbers.",
        "[1.0, 2.0], 3.0 -> [0.3333333432674408, 0.0833333358168602]",
    ),
    "zeta": (
        "Return the Hurwitz zeta function: the sum of (x2 + k)**-x1 over k = 0, 1, 2, ...",
        "Riemann's with x2 = 1. Infinite at x1 = 1 and x2 = 0, NaN for x1 < 1 or x2 < 0.",
        "Gradient: none for x1.",
        "[2.0, 4.0], 1.0 -> [1.644934058189392, 1.0823233127593994]",
    ),
}

# Name -> the functions in the item "See also" of its docstring.
SEE_ALSO: dict[str, str] = {
    "add": "subtract addcmul sum",
    "subtract": "add negative diff",
    "multiply": "divide prod addcmul",
    "divide": "floor_divide reciprocal remainder",
    "floor_divide": "remainder divmod divide",
    "remainder": "fmod floor_divide divmod",
    "maximum": "minimum fmax max clip",
    "minimum": "maximum fmin min clip",
    "atan2": "atan angle hypot",
    "hypot": "abs linalg.vector_norm",
    "pow": "square sqrt float_power",
    "round": "floor ceil trunc",
    "abs": "sign negative linalg.vector_norm",
    "floor": "ceil trunc round",
    "ceil": "floor trunc round",
    "trunc": "floor round modf",
    "sqrt": "rsqrt cbrt square",
    "square": "sqrt pow",
    "relu": "maximum nn.functional.relu nn.ReLU",
    "equal": "not_equal isclose array_equal",
    "isnan": "isinf isfinite nan_to_num",
    "isinf": "isposinf isneginf isfinite",
    "isfinite": "isnan isinf",
    "logical_and": "logical_or bitwise_and all",
    "logical_or": "logical_and bitwise_or any",
    "logical_not": "bitwise_invert",
    "exp": "expm1 exp2 log softmax",
    "expm1": "exp log1p",
    "log": "log1p log2 log10 exp",
    "log1p": "log expm1",
    "sin": "cos tan asin",
    "cos": "sin tan acos",
    "tanh": "sigmoid atanh nn.Tanh",
    "sigmoid": "logit softmax tanh",
    "logit": "sigmoid",
    "erf": "erfc erfinv ndtr",
    "logaddexp": "logaddexp2 logsumexp",
    "lgamma": "gamma digamma",
    "gamma": "lgamma",
    "conj": "real imag matrix_transpose",
    "real": "imag abs angle",
    "imag": "real abs angle",
    "xlogy": "log",
    "i0": "i1 kaiser",
    "sign": "signbit copysign abs",
}
