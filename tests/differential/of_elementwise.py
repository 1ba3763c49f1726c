"""Rows of the elementwise functions."""

from __future__ import annotations

from differential.table import Row, group

ROWS = [
    *group(
        """
        dt.acos(x) | np.arccos(x)
        dt.acosh(x) | np.arccosh(x)
        dt.asin(x) | np.arcsin(x)
        dt.asinh(x) | np.arcsinh(x)
        dt.atan(x) | np.arctan(x)
        dt.atanh(x) | np.arctanh(x)
        dt.cos(x)
        dt.cosh(x)
        dt.exp(x)
        dt.expm1(x)
        dt.log(x)
        dt.log1p(x)
        dt.log2(x)
        dt.log10(x)
        dt.sin(x)
        dt.sinh(x)
        dt.sqrt(x)
        dt.tan(x)
        dt.tanh(x)
        """,
        of="biuhfc", ulps=6, zeros=True,
    ),
    *group(
        """
        dt.cbrt(x)
        dt.deg2rad(x)
        dt.exp2(x)
        dt.expit(x) | special.expit(x)
        dt.rad2deg(x)
        dt.rsqrt(x) | 1 / np.sqrt(x)
        dt.sigmoid(x) | special.expit(x)
        """,
        of="biuhf", zeros=True,
    ),
    # docs/accuracy.md measures these against mpmath; SciPy's own errors are of the same size.
    *group(
        """
        dt.digamma(x) | special.digamma(x)
        dt.erf(x) | special.erf(x)
        dt.erfc(x) | special.erfc(x)
        dt.erfinv(x) | special.erfinv(x)
        dt.gamma(x) | special.gamma(x)
        dt.i0(x) | special.i0(x)
        dt.i1(x) | special.i1(x)
        dt.lgamma(x) | special.gammaln(x)
        dt.logit(x) | special.logit(x)
        dt.ndtr(x) | special.ndtr(x)
        dt.ndtri(x) | special.ndtri(x)
        """,
        of="biuhf", ulps=64, scale="1.0", but={"special": "the ends of their ranges: tests/functions/test_special.py"},
    ),
    *group(
        """
        dt.polygamma(1, x) | np.where(x >= 0, special.polygamma(1, np.abs(x)), np.nan)
        dt.polygamma(2, x) | np.where(x >= 0, special.polygamma(2, np.abs(x)), np.nan)
        """,
        of="biuhf", ulps=64,
    ),
    Row("dt.sinc(x)", "np.where((x == np.floor(x)) & (x != 0), 0.0, np.sinc(x))", of="biuhf", ulps=8, scale="1.0"),
    *group(
        """
        dt.abs(x)
        dt.negative(x)
        dt.positive(x)
        dt.reciprocal(x) | 1 / x
        dt.sign(x)
        dt.square(x)
        dt.conj(x)
        """,
        of="iuhfc",
    ),
    *group(
        """
        dt.ceil(x)
        dt.floor(x)
        dt.round(x)
        dt.trunc(x)
        dt.relu(x) | np.maximum(x, 0)
        dt.nan_to_num(x) | np.nan_to_num(x, posinf=top, neginf=-top)
        dt.nan_to_num(x, nan=2, posinf=7, neginf=-7)
        dt.clip(x, 1, 3)
        dt.clip(x, min=1)
        dt.clip(x, max=2)
        dt.copysign(x, -1.0)
        """,
    ),
    *group(
        """
        dt.isfinite(x)
        dt.isinf(x)
        dt.isnan(x)
        dt.isreal(x)
        dt.iscomplex(x)
        dt.logical_not(x)
        """,
        of="biuhfc",
    ),
    *group(
        """
        dt.angle(x)
        dt.real(x)
        dt.imag(x)
        """,
        of="iuhfc", ulps=4,
    ),
    *group(
        """
        dt.isneginf(x)
        dt.isposinf(x)
        dt.frexp(x)
        dt.modf(x)
        """,
        of="biuhf",
    ),
    Row("dt.signbit(x)", of="hf"),
    Row("dt.bitwise_invert(x)", of="biu"),
    Row("dt.bitwise_count(x)", of="biu"),
    *group(
        """
        dt.add(x, y)
        dt.subtract(x, y)
        dt.multiply(x, y)
        dt.divide(x, y)
        dt.equal(x, y)
        dt.not_equal(x, y)
        dt.isclose(x, y)
        dt.isclose(x, y, equal_nan=True)
        """,
        of="iuhfc", shapes="pair", ulps=8,
    ),
    *group(
        """
        dt.atan2(x, y) | np.arctan2(x, y)
        dt.copysign(x, y)
        dt.fmax(x, y)
        dt.fmin(x, y)
        dt.fmod(x, y)
        dt.greater(x, y)
        dt.greater_equal(x, y)
        dt.heaviside(x, y)
        dt.hypot(x, y)
        dt.less(x, y)
        dt.less_equal(x, y)
        dt.maximum(x, y)
        dt.minimum(x, y)
        dt.remainder(x, y)
        dt.xlogy(x, y) | special.xlogy(x, y)
        dt.where(x > 0, x, y)
        dt.where(x > y, 1, x)
        dt.clip(x, y, 3)
        dt.clip(x, y, x)
        """,
        shapes="pair",
    ),
    *group(
        """
        dt.bitwise_and(x, y)
        dt.bitwise_or(x, y)
        dt.bitwise_xor(x, y)
        dt.gcd(x, y)
        dt.lcm(x, y)
        dt.logical_and(x, y)
        dt.logical_or(x, y)
        dt.logical_xor(x, y)
        """,
        of="biu", shapes="pair",
    ),
    *group(
        """
        dt.divmod(x, y)
        dt.floor_divide(x, y)
        """,
        shapes="pair", but={"special": "inf // 2 is inf here, NaN in NumPy"},
    ),
    Row("dt.pow(x, y)", "pow(x, y)", of="iuhf", shapes="pair"),
    Row("dt.pow(x, y)", of="c", shapes="pair", ulps=64),
    *group(
        """
        dt.logaddexp(x, y)
        dt.logaddexp2(x, y)
        """,
        shapes="pair", scale="1 + np.maximum(np.abs(x), np.abs(y))",
    ),
    *group(
        """
        dt.beta(x, y) | np.where((x >= 0) & (y >= 0), special.beta(x, y), np.nan)
        dt.zeta(x, y) | np.where((x >= 1) & (y >= 0), special.zeta(x, y), np.nan)
        """,
        shapes="pair", ulps=64, but={"special": "the ends of their ranges: tests/functions/test_special.py"},
    ),
    Row("dt.ldexp(x, y)", "np.where(np.isnan(y), np.nan, np.ldexp(x, np.clip(np.nan_to_num(y), -5000, 5000).astype(int)))",
        of="iuhf", shapes="pair"),
    *group(
        """
        dt.bitwise_left_shift(x, y)
        dt.bitwise_right_shift(x, y)
        """,
        of="iu", shapes="pair",
    ),
    *group(
        """
        dt.round(x, 1)
        dt.round(x, decimals=3)
        """,
        but={f"{d} special": "x * 10 rounds and overflows in this dtype, as in NumPy" for d in ("bfloat16", "float32")},
    ),
    Row("dt.round(x, -1)", of="iu", shapes="any", but={"special": "NumPy rounds integers in float64; those out of range wrap here"}),
    Row("dt.round(x, -1)", of="hf"),
    Row("dt.nextafter(x, y)", of="f", shapes="pair", but={"float32": "tests/ops/test_table_oracle.py goes through halves and float32"}),
    Row("x + 0 if dt.allclose(x, y) else y + 0", "x + 0 if np.allclose(x, y) else y + 0", shapes="pair"),
]  # fmt: skip
