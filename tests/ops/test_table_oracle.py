"""Every op of the table against an oracle that shares no code with dovetail.

The oracle uses Python's integers and fractions, NumPy, and mpmath. It covers whole ranges of dtypes
and special values. Results are exact, except for elementary functions, which are within the bounds
of docs/accuracy.md. Halves are computed in float32 (exactly), and rounded once.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import dovetail as dt
import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from dovetail.functions.elementwise.docstrings import OP_DOC_LINES
from dovetail.functions.elementwise.op_functions import FUNCTIONS
from dovetail.graph.expr import node, spec
from dovetail.ops import table as ops
from dovetail.tensor.primitives import apply
from dovetail.tensor.tensor import create_tensor
from dtype_values import (
    FLOATS,
    HALVES,
    INF,
    NAN,
    REAL,
    Host,
    back,
    host,
    rounded,
    spacing,
    tensor,
    values,
)
from places import ROOT

Rule = Callable[..., Any]


def tuples(d: dt.DType, count: int) -> list[Host]:
    """Return every combination of values, as `count` vectors."""
    rows = list(itertools.product(*(values(d, few=count > 2) for _ in range(count))))
    return [np.array([r[i] for r in rows], host(d)) for i in range(count)]


def differing(got: Host, want: Host, zeros: bool = True) -> Host:
    """Return where two arrays differ: NaNs are equal; zeros have signs on request."""
    assert got.shape == want.shape and got.dtype == want.dtype, (got.dtype, want.dtype, got.shape)
    if got.dtype.kind != "f":
        return np.asarray(got != want)
    same = (got == want) & ((np.signbit(got) == np.signbit(want)) | ((got != 0) if zeros else True))
    return ~(same | (np.isnan(got) & np.isnan(want)))


def expect(got: dt.Tensor, want: Host, what: str, *given: Host, zeros: bool = True) -> None:
    found = back(got)
    wrong = np.flatnonzero(differing(found, want, zeros))
    shown = [(*(a.flat[i].item() for a in given if a.size == want.size), want.flat[i].item(),
              found.flat[i].item()) for i in wrong[:5]]  # fmt: skip
    assert not wrong.size, f"{what}: {wrong.size} of {want.size}: (operands, right, found) {shown}"


# --- elementwise ops, exact


def wrapped(n: int, d: dt.DType) -> int:
    low = n & ((1 << d.bits) - 1)
    return low - (1 << d.bits) if d.kind == "i" and low >> (d.bits - 1) else low


def integer_power(x: int, y: int) -> int:
    if y >= 0:
        return pow(x, y, 1 << 64) if x >= 0 or y % 2 == 0 else -pow(-x, y, 1 << 64)
    return {1: 1, -1: -1 if y % 2 else 1}.get(x, 0)


def shifted(x: int, n: int, bits: int) -> int:
    return (x << n) if 0 <= n < bits else 0


def unshifted(x: int, n: int, bits: int) -> int:
    return (x >> n) if 0 <= n < bits else -1 if x < 0 else 0


INTEGER: dict[str, Rule] = {  # in Python's integers; results wrap around
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "pow": integer_power,
    "floor_divide": lambda x, y: x // y if y else 0,
    "python_floor_divide": lambda x, y: x // y if y else 0,
    "remainder": lambda x, y: x % y if y else 0,
    "maximum": max, "minimum": min, "clip": lambda x, a, b: min(max(x, a), b),
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "bitwise_left_shift": shifted, "bitwise_right_shift": unshifted,
    "bitwise_invert": operator.invert, "abs": abs, "negative": operator.neg,
    "positive": operator.pos, "sign": lambda x: (x > 0) - (x < 0), "square": lambda x: x * x,
    "ceil": int, "floor": int, "trunc": int, "round": int, "relu": lambda x: max(x, 0),
    "copy": int, "conj": int, "real": int, "imag": lambda x: 0,
    "gcd": math.gcd, "lcm": math.lcm,
}  # fmt: skip
BOOL: dict[str, Rule] = {
    "add": operator.or_, "multiply": operator.and_, "maximum": operator.or_,
    "minimum": operator.and_, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor, "bitwise_invert": operator.not_, "copy": bool,
    "clip": lambda x, a, b: (x or a) and b,
}  # fmt: skip
TESTS: dict[str, Rule] = {  # of every dtype, with bool results
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "greater": operator.gt,
    "less_equal": operator.le, "greater_equal": operator.ge,
    "logical_and": lambda x, y: bool(x) and bool(y), "logical_or": lambda x, y: bool(x) or bool(y),
    "logical_xor": lambda x, y: bool(x) != bool(y), "logical_not": operator.not_,
    "isnan": lambda x: x != x, "isinf": lambda x: x in (INF, -INF),
    "isfinite": lambda x: abs(x) < INF, "signbit": lambda x: math.copysign(1, x) < 0,
}  # fmt: skip


def remainder(x: Any, y: Any) -> Any:
    """Return the remainder with the sign of y, as in Python, for a float type of NumPy."""
    if not math.isfinite(x) or y == 0 or y != y:
        return type(x)(NAN)
    r = type(x)(math.fmod(float(x), float(y)))  # exact
    if r == 0:
        return np.copysign(r, y)
    return r if (r < 0) == (y < 0) else r + y


def floor_divide(x: Any, y: Any) -> Any:
    """Return the exact quotient rounded down; x / y if every float is an integer."""
    q = x / y
    if not math.isfinite(x) or y == 0 or y != y:
        return q
    if math.isinf(y):  # as in the standard: no quotient of finite and infinite is below -0
        return np.copysign(type(x)(0), q)
    if abs(q) >= {np.float32: 2.0**24, np.float64: 2.0**53}[type(x)]:
        return q
    found = math.floor(Fraction(float(x)) / Fraction(float(y)))
    return type(x)(found) if found else np.copysign(type(x)(0), q)


def python_floor_divide(x: Any, y: Any) -> Any:
    """Return the exact quotient rounded down, of infinities as Python does."""
    if y == 0 or not (math.isinf(x) or math.isinf(y)):
        return floor_divide(x, y)
    return type(x)(float(x) // float(y))


def next_after(x: float, y: float, d: dt.DType) -> float:
    """Return the neighbor of x among the floats of a dtype, from their ordering."""
    if x != x or y != y or x == y:
        return x + y if x != y else y
    up = y > x
    if x == 0:
        least = float(dt.finfo(d).smallest_normal) * float(dt.finfo(d).eps)
        return least if up else -least
    if d is dt.bfloat16:
        bits = int(np.float32(x).view("u4")) >> 16
        return float(np.uint32((bits + (1 if up == (x > 0) else -1)) << 16).view("f4"))
    pattern = np.array(x, host(d)).view(f"u{d.itemsize}")
    one = pattern.dtype.type(1)
    return float((pattern + one if up == (x > 0) else pattern - one).view(host(d)))


def scaled(x: Host, y: Host) -> Host:
    """Return x * 2**y, y truncated, rounded once."""
    n = np.where(np.isnan(y), 0, np.clip(y, -5000, 5000)).astype(int)
    return np.where(np.isnan(y), x.dtype.type(NAN), np.ldexp(x, n))


FLOAT: dict[str, Rule] = {  # of arrays, in float32 or float64
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "copysign": np.copysign, "abs": np.abs, "negative": np.negative, "positive": np.positive,
    "square": np.square, "reciprocal": lambda x: x.dtype.type(1) / x, "sqrt": np.sqrt,
    "ceil": np.ceil, "floor": np.floor, "trunc": np.trunc, "round": np.rint, "copy": np.copy,
    "sign": lambda x: np.where(x != 0, np.sign(x), x.dtype.type(0)),
    "conj": np.copy, "real": np.copy, "imag": np.zeros_like,
    "angle": lambda x: np.where(np.isnan(x), x, np.where(np.signbit(x), x.dtype.type(np.pi), 0)),
    "maximum": np.maximum, "minimum": np.minimum, "clip": np.clip,
    "relu": lambda x: np.where(x > 0, x, np.where(x <= 0, x.dtype.type(0), x)),
    "heaviside": np.heaviside, "ldexp": scaled,
    "deg2rad": lambda x: x * x.dtype.type(math.pi / 180),
    "rad2deg": lambda x: x * x.dtype.type(180 / math.pi),
    "frexp_mantissa": lambda x: np.frexp(x)[0],
    "remainder": lambda x, y: np.array(list(map(remainder, x, y)), x.dtype),
    "floor_divide": lambda x, y: np.array(list(map(floor_divide, x, y)), x.dtype),
    "python_floor_divide": lambda x, y: np.array(list(map(python_floor_divide, x, y)), x.dtype),
}  # fmt: skip
SIGNLESS = {"maximum", "minimum", "clip", "relu"}  # either of -0 and 0
OTHERWISE = {  # tests of their own below
    "where", "astype", "nextafter", "frexp_exponent",
}  # fmt: skip
SPECIAL_FUNCTIONS = {  # in test_special.py
    "erfinv", "ndtr", "ndtri", "logit", "lgamma", "gamma", "digamma", "i0", "i1", "sinc", "xlogy",
    "beta", "zeta",
}  # fmt: skip
TESTS_OF_FUNCTIONS = ROOT / "tests" / "functions"
ELSEWHERE = {  # ops whose oracles are in other files
    **dict.fromkeys(["random_uniform32", "random_uniform64", "random_normal32", "random_normal64",
                     "random_below"], "test_random.py: Random123's known answers"),
    **dict.fromkeys(SPECIAL_FUNCTIONS, "test_special.py"),
    "select": "test_order_statistics.py", "count_values": "test_histograms.py",
    "matmul": "test_linalg.py", "gather": "test_indexing.py", "scatter": "test_indexing.py",
    "checked_indices": "test_indexing.py", "count_blocks": "test_indexing.py: nonzero",
    "packed_positions": "test_indexing.py: nonzero",
    "true_positions": "test_indexing.py: nonzero", "count_runs": "test_sets.py",
    "run_bounds": "test_sets.py", "searchsorted": "test_sets.py",
    "sort": "test_sorting.py", "argsort": "test_sorting.py", "view": "test_manipulation.py",
    "concat": "test_manipulation.py", "full_complex": "test_complex.py",
    "cumulative_logsumexp": "test_cumulative.py",
    "cumulative_max": "test_torch_order_functions.py",
    "cumulative_min": "test_torch_order_functions.py",
    "scatter_reduce": "test_index_reductions.py", "convolution": "test_convolutions.py",
    "convolution_input": "test_convolutions.py", "convolution_weight": "test_convolutions.py",
}  # fmt: skip


def takes(name: str, d: dt.DType) -> bool:
    op = ops.TABLE[name]
    try:
        op.dtypes(name, [d] * op.arity, None)
    except dt.DTypeError:
        return False
    return True


def by_element(rule: Rule, arrays: Sequence[Host], d: dt.DType) -> list[Any]:
    bits = (d.bits,) if rule in (shifted, unshifted) else ()
    return [rule(*xs, *bits) for xs in zip(*(a.tolist() for a in arrays), strict=True)]


def exact(name: str, arrays: Sequence[Host], d: dt.DType) -> Host:
    """Return the exact result of an op for operands of one dtype."""
    if name in TESTS:
        return np.array(by_element(TESTS[name], arrays, d), bool)
    if d is dt.bool and name in BOOL:
        return np.array(by_element(BOOL[name], arrays, d), bool)
    if d.kind in "iu" and name in INTEGER:
        return np.array([wrapped(n, d) for n in by_element(INTEGER[name], arrays, d)], host(d))
    d = d if d.kind == "f" else dt.float32
    wide = [a.astype(np.float64 if d is dt.float64 else np.float32) for a in arrays]
    with np.errstate(all="ignore"):
        return rounded(FLOAT[name](*wide), d)


@pytest.mark.parametrize("name", sorted({*INTEGER, *BOOL, *TESTS, *FLOAT}))
def test_exact_ops_equal_the_oracle(device: dt.Device, name: str) -> None:
    count = 0
    for d in REAL:
        if (name == "pow" and d.kind == "f") or not takes(name, d):
            continue
        arrays = tuples(d, ops.TABLE[name].arity)
        got = apply(ops.TABLE[name], [tensor(a, d) for a in arrays])
        want = exact(name, arrays, d)
        expect(got, want, f"{name} of {d.name}", *arrays, zeros=name not in SIGNLESS)
        count += 1
    assert count >= 2


@pytest.mark.parametrize("d", FLOATS, ids=str)
def test_nextafter_equals_the_oracle(device: dt.Device, d: dt.DType) -> None:
    x, y = tuples(d, 2)
    want = [next_after(a, b, d) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    expect(dt.nextafter(tensor(x, d), tensor(y, d)), np.array(want, host(d)), d.name, x, y)


@pytest.mark.parametrize("d", REAL, ids=str)
def test_frexp_exponents_equal_numpy(device: dt.Device, d: dt.DType) -> None:
    a = values(d)
    wide = a.astype("f8" if d is dt.float64 else "f4")
    want = np.where(np.isfinite(wide), np.frexp(wide)[1], 0).astype("i4")
    expect(apply(ops.TABLE["frexp_exponent"], [tensor(a, d)]), want, d.name, a)


@pytest.mark.parametrize("d", HALVES, ids=str)
def test_nextafter_visits_every_half_in_order(device: dt.Device, d: dt.DType) -> None:
    """From the least to the largest and back, one step each."""
    bits = np.arange(1 << 15, dtype="u4")
    every = (bits << 16).view("f4") if d is dt.bfloat16 else bits.astype("u2").view("f2")
    every = every[np.isfinite(every)]
    line = np.concatenate([-every[:0:-1], every])
    x = tensor(line, d)
    above = back(dt.nextafter(x, INF))
    assert np.array_equal(above[:-1], line[1:]) and above[-1] == INF
    below = back(dt.nextafter(x, -INF))
    assert np.array_equal(below[1:], line[:-1]) and below[0] == -INF
    ends = tensor(np.array([INF, -INF], host(d)), d)
    assert back(dt.nextafter(ends, 0.0)).tolist() == [line[-1], line[0]]


@pytest.mark.parametrize("d", [dt.float32, dt.float64], ids=str)
def test_remainders_of_any_ratio_are_exact(device: dt.Device, d: dt.DType) -> None:
    rng = np.random.default_rng(8)
    x, y = (rng.integers(0, 1 << d.bits, 4000, dtype="u8").astype(f"u{d.itemsize}").view(host(d))
            for _ in range(2))  # fmt: skip
    top, least = float(dt.finfo(d).max), float(dt.finfo(d).smallest_normal) / 3
    x = np.where(np.isfinite(x), x, rounded(top, d))
    y = np.where(np.isfinite(y) & (y != 0), y, rounded(least, d))
    x[:4], y[:4] = [top, top, -top, 3e38], [least, -least, least, 1e-38]
    want = np.array([remainder(a, b) for a, b in zip(x, y, strict=True)], host(d))
    expect(dt.remainder(tensor(x, d), tensor(y, d)), want, d.name, x, y)
    assert np.count_nonzero(np.abs(want)) > 3900


@pytest.mark.parametrize("d", REAL, ids=str)
def test_where_equals_numpy(device: dt.Device, d: dt.DType) -> None:
    x, y = tuples(d, 2)
    mask = np.arange(x.size) % 3 == 0
    got = dt.where(tensor(mask, dt.bool), tensor(x, d), tensor(y, d))
    expect(got, np.where(mask, x, y), d.name, x, y)


def converted(x: Any, to: dt.DType, nearest: Rule) -> Any:
    if to is dt.bool:
        return x != 0
    if to.kind == "f":
        return nearest(x)
    if isinstance(x, float):
        x = 0 if x != x else to.max if x == INF else to.min if x == -INF else math.trunc(x)
        return min(max(x, to.min), to.max)
    return wrapped(int(x), to)


def nearest(x: Any, to: dt.DType) -> float:
    """Return the float of a dtype nearest to a Python number; ties go to the even one."""
    if not math.isfinite(x) or not x:
        return float(x)
    digits = {dt.float16: 11, dt.bfloat16: 8, dt.float32: 24, dt.float64: 53}[to]
    lowest = {dt.float16: -24, dt.bfloat16: -133, dt.float32: -149, dt.float64: -1074}[to]
    exact_x = Fraction(x)
    e = math.frexp(float(x))[1] if isinstance(x, float) else int(abs(x)).bit_length()
    unit = Fraction(2) ** max(e - digits, lowest)
    found = round(exact_x / unit) * unit  # Fraction rounds halves to even
    largest = float(dt.finfo(to).max)
    return math.copysign(float(abs(found)) if abs(found) <= largest else INF, x)


@pytest.mark.parametrize("d", REAL, ids=str)
@pytest.mark.parametrize("to", REAL, ids=str)
def test_casts_equal_the_oracle(device: dt.Device, d: dt.DType, to: dt.DType) -> None:
    a = values(d)
    if d.kind in "iu" and to.kind == "f":
        a = np.concatenate(
            [a, np.array([n for n in near_ties(to) if d.min <= n <= d.max], host(d))]
        )
    if d in (dt.float32, dt.float64) and to.kind == "f" and to.itemsize < d.itemsize:
        a = np.concatenate([a, np.array(list(map(float, near_ties(to))), host(d))])
    want = [converted(x, to, lambda x: nearest(x, to)) for x in a.tolist()]
    expect(dt.astype(tensor(a, d), to), np.array(want, host(to)), f"{d.name} to {to.name}", a)


def near_ties(to: dt.DType) -> list[int]:
    """Return integers next to the midpoints of two floats of a dtype.

    An intermediate rounding, to float32 say, would turn them into ties.
    """
    digits = {dt.float16: 11, dt.bfloat16: 8, dt.float32: 24, dt.float64: 53}[to]
    found = []
    for size in {digits + 4, 16, 27, 31, 33, 40, 60, 63, 64} - set(range(digits + 2)):
        # round to odd: the last bit marks the midpoint
        for m in ((1 << digits) + 1, (1 << (digits + 1)) - 3):
            middle = m << (size - digits - 1)
            found += [middle, middle + 1, middle - 1, -middle, 1 - middle, -1 - middle]
    return found


# --- elementary ops

mp = mpmath.mp
ELEMENTARY: dict[str, Rule] = {
    "exp": mp.exp, "exp2": lambda x: mp.mpf(2) ** x, "expm1": mp.expm1, "log": mp.log,
    "log2": lambda x: mp.log(x, 2), "log10": lambda x: mp.log(x, 10),
    "log1p": lambda x: mp.log(1 + x),
    "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "asin": mp.asin, "acos": mp.acos, "atan": mp.atan,
    "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh, "asinh": mp.asinh, "acosh": mp.acosh,
    "atanh": mp.atanh, "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)), "erf": mp.erf,
    "erfc": lambda x: mp.erfc(min(x, 1000)), "rsqrt": lambda x: 1 / mp.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "atan2": mp.atan2, "hypot": mp.hypot, "pow": lambda x, y: mp.power(x, y),
    "logaddexp": lambda x, y: max(x, y) + mp.log(1 + mp.exp(-abs(x - y))),
}  # fmt: skip


def c_power(x: float, y: float) -> float:
    """Return the power as in C: an error of Python's is NaN, a pole or an overflow."""
    try:
        return math.pow(x, y)
    except (ValueError, OverflowError):
        odd = y.is_integer() and int(y) % 2 == 1
        return math.copysign(INF, x) if x == 0 and odd else NAN if x < 0 and y % 1 else INF


SPECIAL: dict[str, Rule] = {  # at zeros, infinities and NaN: C's, through NumPy
    "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "atan2": np.arctan2, "pow": c_power,
    "erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc),
}  # fmt: skip


def documented() -> dict[tuple[str, str], float]:
    """Return the largest error of each function in ulp, from docs/accuracy.md."""
    page = (ROOT / "docs" / "accuracy.md").read_text()
    rows = re.findall(r"\| (\w+) \| (float\d+) \| \w+ \| [^|]+ \| ([\d.]+) \|", page)
    return {(name, d): max(float(ulps), 1.0) for name, d, ulps in rows}


def truth(name: str, xs: tuple[float, ...], d: dt.DType) -> tuple[float, Any]:
    """Return the nearest float64, and the true value if it is finite and not special."""
    with np.errstate(all="ignore"):
        rule = SPECIAL.get(name) or getattr(np, name)
        quick = float(rule(*map(np.float64, xs)))
    pole = 0 in xs and (not any(xs) or quick == 0 or math.isinf(quick))
    pole |= name in ("log1p", "atanh") and math.isinf(quick)
    if pole or not all(map(math.isfinite, xs)) or math.isnan(quick):
        return quick, None
    value = ELEMENTARY[name](*map(mp.mpf, xs))
    if 0 in xs and len(xs) == 2:
        value = abs(value) * math.copysign(1, quick)  # mpmath's zeros have no sign
    return float(value), value


@pytest.mark.parametrize("name", sorted(ELEMENTARY))
def test_elementary_ops_are_within_the_documented_error(device: dt.Device, name: str) -> None:
    limits = documented()
    with mp.workprec(200 if name not in ("sin", "cos", "tan") else 1300):
        for d in FLOATS:
            wide = dt.float64 if d is dt.float64 else dt.float32
            bound = limits[name, wide.name] + 0.001
            arrays = [values(d)] if ops.TABLE[name].arity == 1 else sampled(d)
            got = back(apply(ops.TABLE[name], [tensor(a, d) for a in arrays]))
            for *xs, found in zip(*(a.tolist() for a in arrays), got.tolist(), strict=True):
                assert near(name, tuple(xs), found, d, bound), (
                    d.name,
                    xs,
                    found,
                    truth(name, tuple(xs), d),
                )


def sampled(d: dt.DType) -> list[Host]:
    """Return pairs of values: all special ones, and some of the others."""
    few, some = values(d, few=True), values(d)[::5]
    x = np.concatenate([np.repeat(few, few.size), np.repeat(some, some.size)])
    return [x, np.concatenate([np.tile(few, few.size), np.tile(some, some.size)])]


def near(name: str, xs: tuple[float, ...], found: float, d: dt.DType, bound: float) -> bool:
    """Return whether a result is within the bound; a half is rounded once from a value within
    it.
    """
    want, value = truth(name, xs, d)
    if value is None or not math.isfinite(found) or math.isinf(want):
        limit = nearest(want, d)
        if value is None or math.isnan(found) or not math.isfinite(limit):
            return found == limit or (math.isnan(found) and math.isnan(limit))
        return abs(value) >= float(dt.finfo(d).max)  # it may round up to infinity
    if name == "logaddexp" and abs(value) < 0.5:
        return abs(found - value) <= bound * spacing(max(map(abs, xs)), d)
    wide = dt.float64 if d is dt.float64 else dt.float32
    slack = bound * spacing(want, wide)
    if d in HALVES:
        slack += spacing(want, d) / 2
    return bool(abs(mp.mpf(found) - value) <= slack * 1.0000001)


# --- reductions

REDUCTIONS = [
    "sum",
    "prod",
    "mean",
    "max",
    "min",
    "any",
    "all",
    "count_nonzero",
    "argmax",
    "argmin",
]
SHAPES = [(7,), (1, 5), (33, 3), (3, 4100), (2, 0), (0, 3)]


def material(d: dt.DType, shape: tuple[int, ...], name: str, rng: np.random.Generator) -> Host:
    """Return elements for which any order of combination is exact: small integers, powers of
    two.
    """
    if d is dt.bool:
        return rng.random(shape) < 0.6
    if name in ("sum", "mean", "count_nonzero", "any", "all") or d.kind != "f":
        low = 0 if d.kind == "u" else -3
        small = rng.integers(low, 4, shape)
        if d.kind in "iu" and name in ("sum", "prod"):  # they wrap
            return rng.integers(d.min, d.max, shape, dtype=host(d), endpoint=True)
        return small.astype(host(d)) * (rng.random(shape) < 0.5)
    if name == "prod":
        return rng.choice([1.0, 2.0, 0.5, -1.0], shape, p=[0.4, 0.25, 0.25, 0.1]).astype(host(d))
    special = rng.choice(values(d), shape)
    return np.where(np.isnan(special) & (rng.random(shape) < 0.9), host(d).type(1), special)


def reduced(name: str, a: Host, axis: Any, d: dt.DType) -> Host:
    if name in ("sum", "prod", "mean"):
        kind = {"b": "i8", "i": "i8", "u": "u8"}.get(d.kind, "f8")
        if name == "mean":
            with np.errstate(all="ignore"):
                n = np.float64(a.size if axis is None else a.shape[axis])
                total = a.sum(axis, dtype="f8")
                out = d if d.kind == "f" else dt.float32
                wide = "f4" if out.itemsize < 8 else "f8"
                return rounded(total.astype(wide) / n.astype(wide), out)
        with np.errstate(all="ignore"):
            found = np.asarray(getattr(a, name)(axis, dtype=kind))
        return rounded(found.astype("f4") if d in HALVES else found, d) if d.kind == "f" else found
    return np.asarray(getattr(np, name)(a, axis))


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_equal_the_oracle(device: dt.Device, name: str) -> None:
    rng = np.random.default_rng(len(name))
    for d, shape in itertools.product(REAL, SHAPES):
        a = material(d, shape, name, rng)
        for axis in (None, 0, -1):
            empty = not (a.size if axis is None else a.shape[axis])
            if empty and name in ("max", "min", "argmax", "argmin"):
                continue
            got = getattr(dt, name)(tensor(a, d), axis=axis)
            what = f"{name} of {d.name} {shape} along {axis}"
            expect(got, reduced(name, a, axis, d), what, zeros=name not in ("max", "min"))


@pytest.mark.parametrize("d", FLOATS, ids=str)
def test_sums_and_products_of_special_values_equal_the_oracle(
    device: dt.Device, d: dt.DType
) -> None:
    for a in ([INF, 1.0], [INF, -INF], [NAN, 1.0], [-INF, 2.0, 3.0], [0.0, INF], [-0.0, -0.0]):
        x = tensor(np.array(a, host(d)), d)
        with np.errstate(all="ignore"):
            for name in ("sum", "prod", "mean"):
                want = getattr(np.array(a, "f8"), name)()
                expect(getattr(dt, name)(x), np.array(want, host(d)), f"{name} of {a}", zeros=False)


# --- scans


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_scans_equal_the_oracle(device: dt.Device, name: str) -> None:
    """Sequential; sums of floats in blocks of 256; halves in float32, rounded once."""
    rng = np.random.default_rng(5)
    rule = operator.add if name == "cumulative_sum" else operator.mul
    for d, shape in itertools.product(REAL, [(7,), (1, 5), (33, 3), (2, 600), (2, 0)]):
        a = values(d)[rng.integers(0, values(d).size, shape)]
        if d.kind == "f":
            a = np.where(np.isfinite(a), a, host(d).type(1))
        for axis in {0, len(shape) - 1}:
            got = getattr(dt, name)(tensor(a, d), axis=axis)
            what = f"{name} of {d.name} {shape} along {axis}"
            expect(got, scanned(rule, a, axis, d), what, zeros=rule is operator.mul)  # 0 + -0


def scanned(rule: Rule, a: Host, axis: int, d: dt.DType) -> Host:
    wide = {"b": "i8", "i": "i8", "u": "u8"}.get(d.kind, "f8" if d is dt.float64 else "f4")
    rows = np.moveaxis(a, axis, 0).astype(wide)
    out = np.empty_like(rows)
    block = 256 if rule is operator.add and d.kind == "f" else max(len(rows), 1)
    with np.errstate(all="ignore"):
        for k in range(len(rows)):
            out[k] = rule(out[k - 1], rows[k]) if k % block else rows[k]
        before = np.zeros_like(out[0]) if len(rows) > block else None
        for start in range(0, len(rows), block) if before is not None else ():
            own = out[start : start + block]
            last = own[-1].copy()
            own += before
            before = before + last
    found = np.moveaxis(out, 0, axis)
    return rounded(found, d) if d.kind == "f" else found


@pytest.mark.parametrize("d", FLOATS, ids=str)
@pytest.mark.parametrize("lag", [0, 1])
def test_recurrence_equals_the_oracle(device: dt.Device, d: dt.DType, lag: int) -> None:
    rng = np.random.default_rng(lag)
    x, b = (rng.integers(-1, 2, (3, 20)).astype(host(d)) for _ in range(2))
    tensors = [tensor(a, d)._expr for a in (x, b)]
    got = create_tensor(node(ops.RECURRENCE, tuple(tensors), spec((3, 20), d, device), (1, lag)))
    want = b.copy()
    for k in range(1, 20):
        want[:, k] = x[:, k - lag] * want[:, k - 1] + b[:, k]
    expect(got, want, d.name, zeros=False)


# --- creation ops


@pytest.mark.parametrize("d", REAL, ids=str)
def test_creation_ops_equal_numpy(device: dt.Device, d: dt.DType) -> None:
    for x in values(d).tolist():
        expect(dt.full((2, 3), x, dtype=d), np.full((2, 3), x, host(d)), f"full {x}")
    for rows, columns, k in itertools.product((0, 1, 4), (1, 3, 5), (-2, 0, 1)):
        want = np.eye(rows, columns, k, host(d))
        expect(dt.eye(rows, columns, k=k, dtype=d), want, f"eye {rows} {columns} {k}")
        a = np.ones((rows, columns), host(d))
        expect(dt.tril(tensor(a, d), k=k), np.tril(a, k), "tril")
        expect(dt.triu(tensor(a, d), k=k), np.triu(a, k), "triu")
    if d is dt.bool:
        return
    low = 0 if d.kind == "u" else -5
    for start, stop, step in ((0, 7, 1), (low, 9, 3), (9, low, -4), (3, 3, 1)):
        if d.kind != "u" or step > 0:
            want = np.arange(start, stop, step).astype(host(d))
            expect(dt.arange(start, stop, step, dtype=d), want, f"arange {start} {stop} {step}")
    if d.kind == "f":
        for start, stop, n in ((0, 1, 5), (-3, 3, 7), (2, 2, 3), (0, 1, 1), (1, -1, 9), (0, 3, 4)):
            want = rounded(np.linspace(start, stop, n), d)
            expect(dt.linspace(start, stop, n, dtype=d), want, f"linspace {start} {stop} {n}")


# --- formulas in docstrings


def formula(name: str) -> Rule | None:
    """Return the formula of a docstring such as "Return x1 - x2.", or None if it has none."""
    sentence = OP_DOC_LINES.get(name, ("",))[0].removeprefix("Return ").removesuffix(".")
    text = re.sub(r"\|(.*?)\|", r"abs(\1)", sentence)
    try:
        code = compile(text, name, "eval")
    except SyntaxError:
        return None
    if not {"x", "x1"} & {*code.co_names} <= {*code.co_names} <= {"x", "x1", "x2", *dir(np)}:
        return None
    names = ("x",) if ops.TABLE[name].arity == 1 else ("x1", "x2")
    return lambda *xs: eval(code, {**vars(np), **dict(zip(names, xs, strict=True))})


def computes_in_floats_by_formula(name: str, d: dt.DType) -> bool:
    """Return True if integers would be cast to floats first; casts have their own tests."""
    op = ops.TABLE[name]
    return name in FORMULAS and op.dtypes(name, [d] * op.arity, None)[1].kind == "f"


FORMULAS = {name: rule for name in FUNCTIONS if (rule := formula(name)) is not None}


@pytest.mark.parametrize("name", sorted(FORMULAS))
@pytest.mark.parametrize("d", FLOATS, ids=str)
def test_formulas_in_docstrings_are_correct(device: dt.Device, name: str, d: dt.DType) -> None:
    """They are evaluated in float64 if that is wider, so intermediate overflow may differ."""
    arrays = tuples(d, ops.TABLE[name].arity)
    got = back(apply(ops.TABLE[name], [tensor(a, d) for a in arrays]))
    with np.errstate(all="ignore"):
        exactly = FORMULAS[name](*(a.astype("f8") for a in arrays))
        want = exactly if exactly.dtype.kind == "b" else rounded(exactly, d).astype("f8")
    limits = dt.finfo(d)
    least = 4 * float(limits.smallest_normal) * float(limits.eps)
    np.testing.assert_allclose(got, want, rtol=4 * float(limits.eps), atol=least, err_msg=name)


def test_formulas_are_distinguished_from_sentences() -> None:
    assert {"subtract", "less", "square", "sigmoid"} <= {*FORMULAS}
    assert not {"maximum", "isnan", "sign", "floor_divide", "where"} & {*FORMULAS}


# --- coverage


def test_every_op_has_an_oracle() -> None:
    covered = {*INTEGER, *BOOL, *TESTS, *FLOAT, *ELEMENTARY, *OTHERWISE, *REDUCTIONS, *ELSEWHERE}
    covered |= {*FORMULAS, "cumulative_sum", "cumulative_prod", "recurrence"}
    covered |= {"full", "arange", "linspace", "position"}
    assert covered == set(ops.TABLE)
    for where in set(ELSEWHERE.values()):
        assert (TESTS_OF_FUNCTIONS / where.partition(":")[0]).exists()
    for name, op in ops.TABLE.items():
        if op.kind == "map":
            known = {d: takes(name, d) for d in REAL} if name != "astype" else {}
            missing = [
                d.name for d, taken in known.items() if taken and not (
                    name in {*OTHERWISE, *TESTS, *ELEMENTARY, *SPECIAL_FUNCTIONS}
                    or (d.kind == "b" and name in BOOL) or (d.kind in "iu" and name in INTEGER)
                    or name in FLOAT or computes_in_floats_by_formula(name, d))
            ]  # fmt: skip
            assert missing == [], name


def test_wrong_value_is_detected() -> None:
    with pytest.raises(AssertionError, match="1 of 3"):
        expect(dt.asarray([1.0, 2.0, 4.0], device="reference"), np.array([1, 2, 3], "f4"), "x")
    with pytest.raises(AssertionError):
        expect(dt.asarray([-0.0], device="reference"), np.array([0.0], "f4"), "x")
    assert not near("exp", (1.0,), 2.7182822, dt.float32, 1.0)
    assert near("exp", (1.0,), float(np.float32(math.e)), dt.float32, 1.0)
