"""The largest errors of the elementary functions, measured: updates docs/accuracy.md.

    python bench/accuracy.py [--quick] [--functions sin cos ...]

One-argument functions in float32 see every float32 (with --quick, one in 67) and are compared with
NumPy's and SciPy's float64; everything else sees random and structured samples, compared with
mpmath. Rows of other functions stay as they are, so a run can be split. Errors are in ulp of the
true value: units of its last place, in the binade of the true value, at least the denormal unit.
Needs mpmath and scipy; runs on the default device.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dovetail as dt
import mpmath  # type: ignore[import-untyped]
import numpy as np
import scipy.special
from dovetail import DType, float32, float64

Array = np.ndarray[Any, Any]
Reference = Callable[..., Any]

BLOCK = 1 << 20  # measured: 1.5 to 7 times as fast as 1 << 18 and 1 << 24
ODD_STRIDE = 67  # visits all exponents and both signs, and mantissas evenly
INSIDE = 1.0 - 2.0**-53  # of what is infinite at 1


@dataclass(frozen=True)
class Function:
    """How one function is checked: a float64 reference, an exact one, where samples lie."""

    name: str
    numpy: Reference
    exact: Reference
    low: float = -math.inf
    high: float = math.inf
    arguments: int = 1
    bits: int = 1300  # sine of 1e308 needs some 1200 of them
    inside: bool = False  # whether samples of float32, too, are from low to high


# The hardest float64 that 4 million random ones against extended precision found.
HARD = {
    "log": 1.3697374545546186,
    "log2": 1.3546810518802053,
    "log10": 1.3149495839410985,
    "log1p": -0.26692533886311864,
    "sin": 2.348313729912938,
    "cos": 439.05242652882635,
    "tan": -65.19996870668626,
    "asin": -0.5281718197044158,
    "acos": 0.5612574691314292,
    "atan": 0.9981818182939679,
    "sinh": 0.3507822406559047,
    "cosh": -1.0722682665756962,
    "asinh": 0.2525578312299843,
    "acosh": 1.0566249489347508,
    "atanh": -0.11999513805832551,
    "erf": 0.7860791454746267,
    "erfc": 0.8237147430491067,
}


def _half_turns(x: Any) -> Any:
    """sin(pi x) / (pi x) in float64, of exactly reduced turns."""
    n = np.rint(x)
    turns = np.sin(np.pi * (x - n)) * np.where(n % 2 == 0, 1.0, -1.0)
    return np.where(x == 0, 1.0, turns / np.where(x == 0, 1.0, np.pi * x))


def _exact_ndtri(p: Any) -> Any:
    """By Newton's method from SciPy's value, which is as exact as a float64."""
    y = mpmath.mpf(float(scipy.special.ndtri(float(p))))
    for _ in range(3):
        density = mpmath.exp(-y * y / 2) / mpmath.sqrt(2 * mpmath.pi)
        y -= (mpmath.erfc(-y / mpmath.sqrt(2)) / 2 - p) / density
    return y


def _exact_erfinv(x: Any) -> Any:
    """By Newton's method from SciPy's value."""
    y = mpmath.mpf(float(scipy.special.erfinv(float(x))))
    for _ in range(3):
        y -= (mpmath.erf(y) - x) * mpmath.exp(y * y) * mpmath.sqrt(mpmath.pi) / 2
    return y


def _exact_cbrt(x: Any) -> Any:
    return mpmath.cbrt(x) if x >= 0 else -mpmath.cbrt(-x)


def _exact_logaddexp(x: Any, y: Any) -> Any:
    return max(x, y) + mpmath.log1p(mpmath.exp(-abs(x - y)))


FUNCTIONS = [
    Function("exp", np.exp, mpmath.exp, -746, 710),
    Function("exp2", np.exp2, lambda x: mpmath.mpf(2) ** x, -1076, 1025),
    Function("expm1", np.expm1, mpmath.expm1, -50, 710),
    Function("log", np.log, mpmath.log, 0),
    Function("log2", np.log2, lambda x: mpmath.log(x) / mpmath.log(2), 0),
    Function("log10", np.log10, mpmath.log10, 0),
    Function("log1p", np.log1p, mpmath.log1p, -1),
    Function("sin", np.sin, mpmath.sin),
    Function("cos", np.cos, mpmath.cos),
    Function("tan", np.tan, mpmath.tan),
    Function("asin", np.arcsin, mpmath.asin, -1, 1),
    Function("acos", np.arccos, mpmath.acos, -1, 1),
    Function("atan", np.arctan, mpmath.atan),
    Function("sinh", np.sinh, mpmath.sinh, -711, 711),
    Function("cosh", np.cosh, mpmath.cosh, -711, 711),
    Function("tanh", np.tanh, mpmath.tanh, -30, 30),
    Function("asinh", np.arcsinh, mpmath.asinh),
    Function("acosh", np.arccosh, mpmath.acosh, 1),
    Function("atanh", np.arctanh, mpmath.atanh, -1, 1),
    Function("cbrt", np.cbrt, _exact_cbrt),
    Function("erf", scipy.special.erf, mpmath.erf, -7, 7),
    Function("erfc", scipy.special.erfc, mpmath.erfc, -7, 27.5),
    Function("sigmoid", scipy.special.expit, lambda x: 1 / (1 + mpmath.exp(-x)), -746, 50),
    Function("rsqrt", lambda x: 1 / np.sqrt(x), lambda x: 1 / mpmath.sqrt(x), 5e-324),
    Function("atan2", np.arctan2, mpmath.atan2, arguments=2),
    Function("hypot", np.hypot, mpmath.hypot, arguments=2),
    Function("pow", np.power, mpmath.power, arguments=2),
    Function("logaddexp", np.logaddexp, _exact_logaddexp, arguments=2),
    Function("erfinv", scipy.special.erfinv, _exact_erfinv, -INSIDE, INSIDE, bits=300),
    Function(
        "ndtr",
        scipy.special.ndtr,
        lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
        -38.4,
        9,
        bits=2400,
    ),
    Function("ndtri", scipy.special.ndtri, _exact_ndtri, 5e-324, INSIDE, bits=2400),
    Function("logit", scipy.special.logit, lambda x: mpmath.log(x / (1 - x)), 0, INSIDE, bits=2400),
    Function("lgamma", scipy.special.gammaln, mpmath.loggamma, 1e-300, bits=300, inside=True),
    Function("gamma", scipy.special.gamma, mpmath.gamma, 1e-300, 171.7, bits=300, inside=True),
    Function("digamma", scipy.special.psi, mpmath.digamma, 1e-300, bits=300, inside=True),
    Function("i0", scipy.special.i0, lambda x: mpmath.besseli(0, x), -700, 700, bits=300),
    Function("i1", scipy.special.i1, lambda x: mpmath.besseli(1, x), -700, 700, bits=300),
    Function("sinc", _half_turns, mpmath.sincpi, -(2.0**20), 2.0**20, bits=300, inside=True),
    Function("xlogy", scipy.special.xlogy, lambda x, y: x * mpmath.log(y), 0, 1e15, 2, 300),
    Function("beta", scipy.special.beta, mpmath.beta, 0, 300, 2, 300),
    Function("zeta", scipy.special.zeta, mpmath.zeta, 0, 60, 2, 700),
]


def evaluate(name: str, dtype: DType, *arrays: Array) -> Array:
    """What the library gives for `name` of the arrays."""
    operands = [dt.asarray(a, dtype=dtype) for a in arrays]
    out: Array = np.asarray(getattr(dt, name)(*operands))
    return out


# --- errors ---------------------------------------------------------------------------------------


def float32_ulps(got: Array, true: Array) -> Array:
    """The errors of float32 `got` against float64 `true`; infinite where one of them is NaN."""
    exponent = np.clip((np.abs(true).view(np.int64) >> 52) - 1023, -126, 127)
    unit = ((exponent - 23 + 1023) << 52).view(np.float64)
    top = 2.0**128  # what infinity stands for
    error = np.abs(np.clip(got.astype(np.float64), -top, top) - np.clip(true, -top, top)) / unit
    agree = np.isnan(got) & np.isnan(true)
    return np.where(agree, 0.0, np.where(np.isnan(error), np.inf, error))


def exact_ulps(got: float, true: Any, dtype: DType) -> float:
    """The error of one float against an mpmath number; infinite where one of them is no number."""
    digits, lowest, top = (24, -126, 128) if dtype is float32 else (53, -1022, 1024)
    if isinstance(true, mpmath.mpc) or mpmath.isnan(true) or math.isnan(got):
        return 0.0 if math.isnan(got) and mpmath.isnan(true) else math.inf
    limit = mpmath.mpf(2) ** top
    size = min(abs(true), limit)
    exponent = max(int(mpmath.frexp(size)[1]) - 1, lowest) if size else lowest
    unit = mpmath.mpf(2) ** (min(exponent, top - 1) - digits + 1)
    bound = [max(min(mpmath.mpf(v), limit), -limit) for v in (got, true)]
    return float(abs(bound[0] - bound[1]) / unit)


# --- samples --------------------------------------------------------------------------------------


def all_float32(stride: int) -> Iterator[Array]:
    """Every `stride`-th float32 in the order of their bits, in blocks."""
    for start in range(0, 1 << 32, BLOCK * stride):
        bits = np.arange(start, min(start + BLOCK * stride, 1 << 32), stride, dtype=np.uint64)
        yield bits.astype(np.uint32).view(np.float32)


def structured(dtype: DType, low: float, high: float, n: int, rng: np.random.Generator) -> Array:
    """Samples of every magnitude, near 1, near multiples of pi/2 and log(2), and at the edges."""
    top = 127 if dtype is float32 else 1023
    signs = rng.choice([-1.0, 1.0], n)
    multiples = np.concatenate([np.arange(1.0, 1000.0), 2.0 ** np.arange(10, 50)])
    # 2**849 * 6381956970095103 / 2**52 is the float64 that is nearest to a multiple of pi/2
    edges = [5e-324, 1e-310, 2.2250738585072014e-308, 1e-45, 1.1754944e-38, 709.78, 745.1, 88.72]
    edges += [math.ldexp(6381956970095103.0, 797), 1.0, 0.5, 2.0]
    wide = np.concatenate(
        [
            rng.uniform(max(low, -1000.0), min(high, 1000.0), n),
            rng.uniform(-1.0, 1.0, n) * 2.0 ** rng.integers(-6, 6, n),
            signs * rng.uniform(1.0, 2.0, n) * 2.0 ** rng.integers(-top, top, n),
            1.0 + signs * 2.0 ** -rng.uniform(1.0, 52.0, n),
            *(s * multiples * c for s in (-1.0, 1.0) for c in (math.pi / 2, math.log(2.0) / 2)),
            edges,
        ]
    )
    with np.errstate(over="ignore"):
        x = wide.astype(dtype.__numpy_dtype__)
    inside: Array = x[(x >= low) & (x <= high) & np.isfinite(x) & (x != 0)]
    return inside


def pairs(f: Function, dtype: DType, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Random pairs, half of them related as the function finds it hardest."""
    name = f.name
    if f.high < math.inf:  # special functions: of both signs of the exponent, and evenly
        x, y = (
            np.concatenate([rng.uniform(f.low, f.high, n), f.high * 2.0 ** rng.uniform(-9, 0, n)])
            for _ in range(2)
        )
        x = x + 1 if name == "zeta" else x
        return x.astype(dtype.__numpy_dtype__), y.astype(dtype.__numpy_dtype__)
    x = rng.permutation(structured(dtype, -math.inf, math.inf, n, rng))
    y = rng.permutation(x)
    half = slice(0, len(x) // 2)
    with np.errstate(all="ignore"):
        if name == "pow":
            x = np.abs(x)
            span = (-155.0, 130.0) if dtype is float32 else (-1080.0, 1030.0)
            y[half] = (rng.uniform(*span, len(x)) / np.log2(x.astype(np.float64)))[half]
        elif name == "logaddexp":
            x = np.abs(np.fmod(x, 700.0))
            y = x + rng.uniform(-40.0, 40.0, len(x)).astype(x.dtype)
            y = np.abs(y)
        else:
            y[half] = (x * rng.uniform(0.01, 100.0, len(x)))[half]
    keep = np.isfinite(x) & np.isfinite(y) & (x != 0)
    return x[keep], y[keep]


# --- measuring ------------------------------------------------------------------------------------


@dataclass
class Worst:
    """One row of the table."""

    name: str
    dtype: DType
    reference: str
    samples: int = 0
    all: bool = False
    ulps: float = 0.0
    at: tuple[float, ...] = ()

    def take(self, ulps: float, at: Sequence[float]) -> None:
        if ulps > self.ulps:
            self.ulps, self.at = ulps, tuple(map(float, at))

    def row(self) -> str:
        at = ", ".join(f"{a:.9g}" if self.dtype is float32 else repr(a) for a in self.at)
        samples = "every float32" if self.all else f"{self.samples:,}"
        columns = [self.name, self.dtype.name, self.reference, samples]
        return "| " + " | ".join([*columns, f"{self.ulps:.3f}", at]) + " |"


def walk_float32(f: Function, stride: int) -> Worst:
    """The worst of every `stride`-th float32."""
    worst = Worst(f.name, float32, "float64", all=stride == 1)
    shown = time.monotonic()
    for x in all_float32(stride):
        x = x[(x >= f.low) & (x <= f.high)] if f.inside else x
        if not x.size:
            continue
        with np.errstate(all="ignore"):
            ulps = float32_ulps(evaluate(f.name, float32, x), f.numpy(x.astype(np.float64)))
        k = int(np.argmax(ulps))
        worst.take(float(ulps[k]), [x[k]])
        worst.samples += x.size
        if time.monotonic() > shown + 20:
            shown = time.monotonic()
            part = worst.samples * stride / 2**32
            print(f"{f.name}: {part:.0%}, {worst.ulps:.3f} ulp", file=sys.stderr, flush=True)
    return worst


def sample(f: Function, dtype: DType, n: int) -> Worst:
    """The worst of some structured samples, against mpmath."""
    worst = Worst(f.name, dtype, "mpmath")
    rng = np.random.default_rng(7)
    xs = (
        (structured(dtype, f.low, f.high, n, rng),) if f.arguments == 1 else pairs(f, dtype, n, rng)
    )
    if dtype is not float32 and f.name in HARD:
        xs = (np.append(xs[0], HARD[f.name]),)
    got = evaluate(f.name, dtype, *xs)
    for y, *at in zip(got, *xs, strict=True):
        x = [mpmath.mpf(float(a)) for a in at]
        if f.name == "pow" and abs(x[1] * mpmath.log(x[0])) > 2000:
            continue  # overflows by far; mpmath would take its time
        worst.take(exact_ulps(float(y), f.exact(*x), dtype), at)
        worst.samples += 1
    return worst


def measure(names: Iterable[str], quick: bool) -> Iterator[Worst]:
    """Every row of the table, for the functions named."""
    n = 2000 if quick else 20000
    for f in FUNCTIONS:
        if f.name in names:
            mpmath.mp.prec = f.bits
            if f.arguments == 1:
                yield walk_float32(f, ODD_STRIDE if quick else 1)
            else:
                yield sample(f, float32, n)
            yield sample(f, float64, n)


HEAD = """# Accuracy of the elementary functions

The table has the largest error that was found for each function, in ulp (units in the last place)
of the true value. `python bench/accuracy.py` measures the errors and writes this page. The kernels
ran on the CPU backend; every other device gives the same bits.

## How it was measured

- Reference "float64": NumPy's and SciPy's float64 functions, whose own error is below 1e-8 ulp of
  float32. The samples are every float32, or evenly spaced ones (`--quick`: one in 67).
- Reference "mpmath": a precision of 300 to 2400 bits. The samples are random and structured: all
  magnitudes, denormals, numbers near 1 and near multiples of pi/2 and log(2), overflow and
  underflow, and the hardest of 4 million others.
- For `pow` in float32, 92 million pairs were also compared with extended precision. Their largest
  error was 0.987 ulp.

## Elementary functions

All errors are below 1 ulp, except these, which are below 2:

- `erfc` in float64: 1.52;
- `sigmoid` in float32: 1.18;
- `logaddexp` if its two terms cancel (x, y < 0 with a sum of exponentials near 1): there the error
  is below 1 ulp of the larger argument.

## Special functions

In the table these are the functions from `erfinv` on.

- Their errors are below 6 ulp, and mostly below 1 for `gamma` and `beta`. The exception is `zeta`
  if both the exponent and the second operand are large, because many of its terms are similar.
- The samples of `lgamma`, `gamma`, `digamma`, `beta` and `zeta` are positive. Below 0 the error of
  `gamma` is below 4 ulp. `lgamma` and `digamma` have zeros there; their errors are some ulp of 1.

## Complex numbers

The error is measured against the result as a whole, |computed - true| / |true|, in units of eps
(2**-23, 2**-52), with extended precision. complex64 and complex128 have the same bounds. The
samples are numbers of many sizes, near the unit circle and near 1;
`tests/ops/test_complex_functions.py` contains and checks them.

- below 1: `log`, `abs`, `angle`;
- below 1.5: `exp`, `log2`, `log1p`, `sqrt`, `sin`, `cos`, `sinh`, `cosh`;
- below 2: `log10`, `expm1`, `asin`, `acos`, `atan`, `asinh`, `acosh`, `atanh`, quotients;
- below 2.5: `tan`, `tanh`;
- `pow` loses digits as |x2 log(x1)| grows, as NumPy's does: 16 at values of about 1e5 in complex64.

## The table

| function | dtype | reference | samples | max ulp | at |
|---|---|---|---:|---:|---|
"""
TARGET = Path(__file__).parent.parent / "docs" / "accuracy.md"


def update(row: str) -> None:
    """Puts a row into docs/accuracy.md, in place of an older one of its function and dtype."""
    old = TARGET.read_text().splitlines() if TARGET.exists() else []
    rows = {tuple(r.split(" | ")[:2]): r for r in [*old, row] if r.startswith("| ")}
    keys = [(f"| {f.name}", d.name) for f in FUNCTIONS for d in (float32, float64)]
    TARGET.write_text(HEAD + "".join(rows[k] + "\n" for k in keys if k in rows))


def main() -> None:
    """Measures, prints, and updates docs/accuracy.md row by row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="minutes, not hours")
    names = [f.name for f in FUNCTIONS]
    parser.add_argument("--functions", nargs="+", default=names, choices=names, metavar="NAME")
    options = parser.parse_args()
    for worst in measure(options.functions, options.quick):
        print(worst.row(), flush=True)
        update(worst.row())


if __name__ == "__main__":
    main()
