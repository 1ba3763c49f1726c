"""Distributions at the borders of their support and parameters, against SciPy and closed forms."""

from __future__ import annotations

import inspect
import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import dovetail as dt
import mpmath as mp
import numpy as np
import pytest
import scipy.stats as st
from extreme_words import ExtremeGenerator
from test_vector_distribution_borders import HALVES, NAMES, assert_halves_are_rounded

pytestmark = pytest.mark.values

D = dt.distributions
INF, NAN = math.inf, math.nan
mp.mp.dps = 50


class Row(NamedTuple):
    """The cases of one class.

    law: SciPy's distribution of the parameters. log_density: the closed form in mpmath, which is
    differentiated by parameters and value. ends: lower and upper end of the support.
    """

    params: list[dict[str, float]]
    values: list[float]
    law: Callable[..., Any]
    log_density: Callable[..., Any]
    ends: tuple[float, float] = (-INF, INF)


def xlogy(x: Any, y: Any) -> Any:
    return 0 * y if x == 0 and y == 0 else x * (mp.log(y) if y else -mp.inf)


def log_beta(a: Any, b: Any) -> Any:
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def log_binomial(n: Any, x: Any) -> Any:
    return mp.loggamma(n + 1) - mp.loggamma(x + 1) - mp.loggamma(n - x + 1)


def chance(probs: Any = None, logits: Any = None) -> Any:
    """Return the probabilities of success and failure."""
    if logits is None:
        return probs, 1 - probs
    return 1 / (1 + mp.exp(-logits)), 1 / (1 + mp.exp(logits))


def p_of(probs: float | None = None, logits: float | None = None) -> float:
    if logits is not None and abs(logits) == INF:
        return float(logits > 0)
    return float(chance(probs, logits)[0])


def both(**given: Any) -> list[dict[str, Any]]:
    """Return borders of a probability, as `probs` and as `logits`."""
    chances = [{"probs": p} for p in (0.0, 1.0, 0.3, 1e-30, 1.0 - 2.0**-20)]
    logits = [{"logits": x} for x in (-INF, INF, -30.0, 30.0, 0.4)]
    return [{**given, **c} for c in [*chances, *logits]]


REALS = [-1e25, -40.0, -1e-3, 0.0, 0.7, 40.0, 1e25]
ABOVE = [-1.0, 0.0, 1e-30, 0.4, 1.0, 3.0, 80.0, 1e20]
SCALES = [{"loc": 0.0, "scale": 1.0}, {"loc": -2.5, "scale": 1e-3}, {"loc": 3.0, "scale": 1e20}]
COUNTS = [-1.0, 0.0, 1.0, 2.0, 3.0, 40.0]
LOG_PI = mp.log(mp.pi)

ROWS: dict[str, Row] = {
    "Normal": Row(
        SCALES,
        REALS,
        lambda loc, scale: st.norm(loc, scale),
        lambda x, loc, scale: (
            -(((x - loc) / scale) ** 2) / 2 - mp.log(scale) - mp.log(2 * mp.pi) / 2
        ),
    ),
    "LogNormal": Row(
        [{"loc": 0.0, "scale": 1.0}, {"loc": -1.0, "scale": 0.1}],
        ABOVE,
        lambda loc, scale: st.lognorm(scale, scale=math.exp(loc)),
        lambda x, loc, scale: (
            -(((mp.log(x) - loc) / scale) ** 2) / 2 - mp.log(scale * x) - mp.log(2 * mp.pi) / 2
        ),
        (0.0, INF),
    ),
    "HalfNormal": Row(
        [{"scale": 1.0}, {"scale": 1e-3}],
        ABOVE[:-1],
        lambda scale: st.halfnorm(scale=scale),
        lambda x, scale: -((x / scale) ** 2) / 2 - mp.log(scale) + mp.log(2 / mp.pi) / 2,
        (0.0, INF),
    ),
    "Laplace": Row(
        SCALES,
        REALS,
        lambda loc, scale: st.laplace(loc, scale),
        lambda x, loc, scale: -abs(x - loc) / scale - mp.log(2 * scale),
    ),
    "Cauchy": Row(
        SCALES,
        REALS,
        lambda loc, scale: st.cauchy(loc, scale),
        lambda x, loc, scale: -LOG_PI - mp.log(scale) - mp.log(1 + ((x - loc) / scale) ** 2),
    ),
    "HalfCauchy": Row(
        [{"scale": 1.0}, {"scale": 1e-3}],
        ABOVE,
        lambda scale: st.halfcauchy(scale=scale),
        lambda x, scale: mp.log(2) - LOG_PI - mp.log(scale) - mp.log(1 + (x / scale) ** 2),
        (0.0, INF),
    ),
    "StudentT": Row(
        [
            {"df": 1.0, "loc": 0.0, "scale": 1.0},
            {"df": 0.01, "loc": 0.0, "scale": 2.0},
            {"df": 2.0, "loc": 1.0, "scale": 1.0},
            {"df": 61.0, "loc": 0.0, "scale": 1.0},
            {"df": 1e7, "loc": 0.0, "scale": 1.0},
        ],
        REALS,
        lambda df, loc, scale: st.t(df, loc, scale),
        lambda x, df, loc, scale: (
            mp.loggamma((df + 1) / 2)
            - mp.loggamma(df / 2)
            - mp.log(df * mp.pi) / 2
            - mp.log(scale)
            - (df + 1) / 2 * mp.log(1 + ((x - loc) / scale) ** 2 / df)
        ),
    ),
    "Gumbel": Row(
        [{"loc": 0.0, "scale": 1.0}, {"loc": -2.0, "scale": 0.5}],
        [-80.0, -3.0, 0.0, 0.7, 40.0, 1e9],
        lambda loc, scale: st.gumbel_r(loc, scale),
        lambda x, loc, scale: (loc - x) / scale - mp.exp((loc - x) / scale) - mp.log(scale),
    ),
    "Uniform": Row(
        [{"low": 0.0, "high": 1.0}, {"low": -3.0, "high": -2.5}, {"low": -3e38, "high": 3e38}],
        [-1e5, -3.0, -2.7, 0.0, 0.4, 2.0],
        lambda low, high: st.uniform(low, high - low),
        lambda x, low, high: -mp.log(high - low),
    ),
    "Exponential": Row(
        [{"rate": 1.0}, {"rate": 3e-20}, {"rate": 1e10}],
        ABOVE,
        lambda rate: st.expon(scale=1 / rate),
        lambda x, rate: mp.log(rate) - rate * x,
        (0.0, INF),
    ),
    "Gamma": Row(
        [
            {"concentration": a, "rate": b}
            for a, b in ((1.0, 1.0), (1e-3, 2.0), (0.5, 1e-5), (30.0, 1.0))
        ],
        ABOVE,
        lambda concentration, rate: st.gamma(concentration, scale=1 / rate),
        lambda x, concentration, rate: (
            concentration * mp.log(rate)
            + (concentration - 1) * mp.log(x)
            - rate * x
            - mp.loggamma(concentration)
        ),
        (0.0, INF),
    ),
    "Chi2": Row(
        [{"df": 2.0}, {"df": 0.01}, {"df": 5.0}],
        ABOVE,
        lambda df: st.chi2(df),
        lambda x, df: (df / 2 - 1) * mp.log(x) - x / 2 - mp.loggamma(df / 2) - df / 2 * mp.log(2),
        (0.0, INF),
    ),
    "InverseGamma": Row(
        [
            {"concentration": a, "rate": b}
            for a, b in ((1.0, 1.0), (0.5, 2.0), (2.0, 1.0), (3.0, 1.0))
        ],
        ABOVE,
        lambda concentration, rate: st.invgamma(concentration, scale=rate),
        lambda x, concentration, rate: (
            concentration * mp.log(rate)
            - (concentration + 1) * mp.log(x)
            - rate / x
            - mp.loggamma(concentration)
        ),
        (0.0, INF),
    ),
    "FisherSnedecor": Row(
        [{"df1": a, "df2": b} for a, b in ((2.0, 3.0), (1.0, 2.0), (3.0, 5.0), (4.0, 4.0))],
        ABOVE,
        lambda df1, df2: st.f(df1, df2),
        lambda x, df1, df2: (
            df1 / 2 * mp.log(df1 / df2)
            + (df1 / 2 - 1) * mp.log(x)
            - (df1 + df2) / 2 * mp.log(1 + df1 / df2 * x)
            - log_beta(df1 / 2, df2 / 2)
        ),
        (0.0, INF),
    ),
    "Weibull": Row(
        [{"scale": s, "concentration": k} for s, k in ((1.0, 1.0), (2.0, 0.5), (0.5, 3.0))],
        ABOVE[:-1],
        lambda scale, concentration: st.weibull_min(concentration, scale=scale),
        lambda x, scale, concentration: (
            mp.log(concentration / scale)
            + (concentration - 1) * mp.log(x / scale)
            - (x / scale) ** concentration
        ),
        (0.0, INF),
    ),
    "Pareto": Row(
        [{"scale": 1.0, "alpha": a} for a in (1.0, 2.0, 0.5, 5.0)],
        [-1.0, 0.0, 0.5, 1.0, 1.5, 1e20],
        lambda scale, alpha: st.pareto(alpha, scale=scale),
        lambda x, scale, alpha: mp.log(alpha) + alpha * mp.log(scale) - (alpha + 1) * mp.log(x),
        (1.0, INF),
    ),
    "Beta": Row(
        [
            {"concentration1": a, "concentration0": b}
            for a, b in (
                (1.0, 1.0),
                (1.0, 3.0),
                (3.0, 1.0),
                (0.5, 0.5),
                (0.5, 1.0),
                (1e-3, 2.0),
                (9.0, 4.0),
            )
        ],
        [-0.5, 0.0, 1e-30, 0.25, 0.5, 1.0 - 2.0**-20, 1.0, 1.5],
        lambda concentration1, concentration0: st.beta(concentration1, concentration0),
        lambda x, concentration1, concentration0: (
            (concentration1 - 1) * mp.log(x)
            + (concentration0 - 1) * mp.log(1 - x)
            - log_beta(concentration1, concentration0)
        ),
        (0.0, 1.0),
    ),
    "Bernoulli": Row(
        both(),
        [-1.0, 0.0, 1.0, 2.0],
        lambda **p: st.bernoulli(p_of(**p)),
        lambda x, **p: xlogy(x, chance(**p)[0]) + xlogy(1 - x, chance(**p)[1]),
    ),
    "Binomial": Row(
        [
            *both(total_count=3.0),
            {"total_count": 0.0, "probs": 0.3},
            {"total_count": 0.0, "probs": 0.0},
        ],
        COUNTS,
        lambda total_count, **p: st.binom(total_count, p_of(**p)),
        lambda x, total_count, **p: (
            log_binomial(total_count, x)
            + xlogy(x, chance(**p)[0])
            + xlogy(total_count - x, chance(**p)[1])
        ),
    ),
    "NegativeBinomial": Row(
        [
            {"total_count": n, **c}
            for n in (3.0, 0.5)
            for c in (
                {"probs": 0.0},
                {"probs": 0.3},
                {"probs": 1e-30},
                {"logits": -INF},
                {"logits": -30.0},
            )
        ],
        COUNTS,
        lambda total_count, **p: st.nbinom(total_count, 1 - p_of(**p)),
        lambda x, total_count, **p: (
            mp.loggamma(total_count + x)
            - mp.loggamma(x + 1)
            - mp.loggamma(total_count)
            + xlogy(x, chance(**p)[0])
            + total_count * mp.log(chance(**p)[1])
        ),
    ),
    "Geometric": Row(
        [
            {"probs": 1.0},
            {"probs": 0.3},
            {"probs": 1e-30},
            {"probs": 1.0 - 2.0**-20},
            {"logits": INF},
            {"logits": 30.0},
            {"logits": -30.0},
            {"logits": 0.4},
        ],
        COUNTS,
        lambda **p: st.geom(p_of(**p), loc=-1),
        lambda x, **p: mp.log(chance(**p)[0]) + xlogy(x, chance(**p)[1]),
    ),
    "Poisson": Row(
        [{"rate": 0.0}, {"rate": 1e-30}, {"rate": 0.3}, {"rate": 50.0}],
        COUNTS,
        lambda rate: st.poisson(rate),
        lambda x, rate: xlogy(x, rate) - rate - mp.loggamma(x + 1),
    ),
}
WITHOUT_ENTROPY = {"Poisson", "NegativeBinomial", "FisherSnedecor"}  # as in PyTorch
DISCRETE = {"Bernoulli", "Binomial", "NegativeBinomial", "Geometric", "Poisson"}
ABSTRACT = {"Distribution", "ExponentialFamily"}
CASES = [(n, i) for n, row in ROWS.items() for i in range(len(row.params))]
IDS = [f"{n}-{i}" for n, i in CASES]
SCALED = {"Normal", "HalfNormal", "Laplace", "Gumbel", "Exponential", "StudentT", "Weibull"}
CLOSE = {"float64": 3e-12, "float32": 4e-6}


def test_borders_have_a_row_for_every_distribution() -> None:
    classes = {
        n for n in dir(D)
        if inspect.isclass(c := getattr(D, n)) and issubclass(c, D.Distribution)
    }  # fmt: skip
    assert classes == {*ROWS} | NAMES | ABSTRACT


@pytest.fixture(autouse=True, params=["reference"])
def device(request: pytest.FixtureRequest) -> Any:
    before = dt.default_device()
    dt.set_default_device(request.param)
    yield request.param
    dt.set_default_device(before)


def made(
    name: str, given: dict[str, float], d: str, grad: bool = False
) -> tuple[Any, dict[str, Any]]:
    """Return a distribution of tensors, and the tensors."""
    tensors = {k: dt.asarray(v, dtype=d) for k, v in given.items()}
    if grad:
        tensors = {k: v if k == "total_count" else v.requires_grad_() for k, v in tensors.items()}
    return getattr(D, name)(**tensors, validate_args=False), tensors


def rounded(v: float, d: str) -> float:
    with np.errstate(over="ignore"):
        return float(np.dtype(d).type(v))


def in_dtype(given: dict[str, float], d: str) -> dict[str, float]:
    return {k: rounded(v, d) for k, v in given.items()}


def exact(name: str, x: float, given: dict[str, float]) -> float:
    """Return the log density by the closed form, at a value inside the support."""
    return float(ROWS[name].log_density(mp.mpf(x), **{k: mp.mpf(v) for k, v in given.items()}))


def is_inside(name: str, x: float, given: dict[str, float]) -> bool:
    low, high = ROWS[name].ends
    if name in DISCRETE:
        top = {"Bernoulli": 1.0, "Binomial": given.get("total_count", 0.0)}.get(name, INF)
        return 0.0 <= x <= top and all(
            0 < p_of(**{k: v}) < 1 for k, v in given.items() if k in ("probs", "logits")
        )
    if name == "Uniform":
        return given["low"] < x < given["high"]
    return low < x < high


def assert_close(have: Any, want: float, close: float, what: str) -> None:
    have = float(have)
    if math.isnan(want) or math.isinf(want):
        assert have == want or (math.isnan(have) and math.isnan(want)), (what, have, want)
    else:
        assert abs(have - want) <= close * max(abs(want), 1e-30) or (
            abs(have - want) <= close * 0.3
        ), (what, have, want)


@pytest.mark.parametrize("d", ["float64", "float32"])
@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_log_prob_at_borders_and_in_tails(name: str, case: int, d: str) -> None:
    row = ROWS[name]
    given = in_dtype(row.params[case], d)
    p, _ = made(name, given, d)
    top = float(dt.finfo(getattr(dt, d)).max)
    for v in row.values:
        x = rounded(v, d)
        have = p.log_prob(dt.asarray(x, dtype=d)).item()
        if is_inside(name, x, given):
            want = exact(name, x, given)
        else:
            law = row.law(**given)
            with np.errstate(all="ignore"):
                want = float((law.logpmf if name in DISCRETE else law.logpdf)(x))
            if name == "Uniform" and x == given["high"]:
                want = -INF  # as PyTorch has it
        want = math.copysign(INF, want) if abs(want) > top else want
        assert_close(have, want, CLOSE[d], f"{name}({given}).log_prob({x})")


@pytest.mark.parametrize("d", HALVES)
@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_half_results_are_the_rounded_float64_results(name: str, case: int, d: str) -> None:
    def build(**params: dt.Tensor) -> Any:
        return getattr(D, name)(**params, validate_args=False)

    values = [v for v in ROWS[name].values if abs(v) < 6e4 or d == "bfloat16"]
    assert_halves_are_rounded(build, ROWS[name].params[case], values, d, f"{name}-{case}")


@pytest.mark.parametrize("d", ["float64", "float32"])
@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_cdf_and_icdf_at_borders(name: str, case: int, d: str) -> None:
    row, given = ROWS[name], in_dtype(ROWS[name].params[case], d)
    p, _ = made(name, given, d)
    law = row.law(**given)
    try:
        p.cdf(dt.asarray(0.5, dtype=d))
    except dt.UnsupportedError:
        return
    for v in [*row.values, -INF, INF]:
        x = rounded(v, d)
        want = float(law.cdf(x))
        have = p.cdf(dt.asarray(x, dtype=d)).item()
        assert_close(have, want, 3e-6 if d == "float32" else 1e-11, f"{name}({given}).cdf({x})")
    try:
        p.icdf(dt.asarray(0.5, dtype=d))
    except dt.UnsupportedError:
        return
    for u in (0.0, 1e-20, 0.25, 0.5, 0.75, 1.0 - 2.0**-20, 1.0):
        with np.errstate(all="ignore"):
            want = float(law.ppf(rounded(u, d)))
        have = p.icdf(dt.asarray(u, dtype=d)).item()
        if name == "Uniform" and given["high"] > 1e38:
            want = given["low"] * (1 - u) + given["high"] * u
        want = math.copysign(INF, want) if abs(want) > float(dt.finfo(getattr(dt, d)).max) else want
        close = 2e-5 if d == "float32" else 1e-9
        scale = max(abs(want), given.get("scale", 0.0)) if math.isfinite(want) else 1.0
        assert have == want or abs(have - want) <= close * scale, (
            f"{name}({given}).icdf({u})",
            have,
            want,
        )


@pytest.mark.parametrize("d", ["float64", "float32"])
@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_moments_and_entropy_at_borders(name: str, case: int, d: str) -> None:
    row, given = ROWS[name], in_dtype(ROWS[name].params[case], d)
    p, _ = made(name, given, d)
    top = float(dt.finfo(getattr(dt, d)).max)
    law = row.law(**given)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wanted = {
            "mean": float(law.mean()),
            "variance": float(law.var()),
            "entropy": float(law.entropy()),
        }
    if name in ("Cauchy", "HalfCauchy"):  # as PyTorch has them
        wanted["mean"], wanted["variance"] = NAN if name == "Cauchy" else INF, INF
    if name == "StudentT":
        wanted["mean"] = given["loc"] if given["df"] > 1 else NAN
        wanted["variance"] = (
            wanted["variance"] if given["df"] > 2 else INF if given["df"] > 1 else NAN
        )
    if name == "FisherSnedecor":
        wanted["mean"] = wanted["mean"] if given["df2"] > 2 else NAN
        wanted["variance"] = wanted["variance"] if given["df2"] > 4 else NAN
    if name in ("Geometric", "NegativeBinomial", "Bernoulli", "Binomial"):
        wanted |= of_chances(name, given)
    if name == "Uniform" and given["high"] > 1e38:
        half = given["high"] / 2 - given["low"] / 2
        wanted = {
            "mean": 0.0,
            "variance": (half / math.sqrt(3)) ** 2,
            "entropy": math.log(half) + math.log(2),
        }
    if name in WITHOUT_ENTROPY:
        wanted.pop("entropy", None)
    for what, want in wanted.items():
        want = INF if want > top else want
        have = p.entropy() if what == "entropy" else getattr(p, what)
        close = 1e-4 if d == "float32" else 1e-8 if what == "entropy" else 1e-10
        assert_close(have.item(), want, close, f"{name}({given}).{what}")
    for v in p.mode.reshape((-1,)).tolist():
        if not math.isnan(v) and name not in DISCRETE:
            here = p.log_prob(dt.asarray(v, dtype=d)).item()
            for other in row.values:
                there = p.log_prob(dt.asarray(other, dtype=d)).item()
                assert here == there or here >= there - 1e-5 * abs(there), (
                    f"{name}({given}).mode {v} {other}"
                )


def of_chances(name: str, given: dict[str, float]) -> dict[str, float]:
    """Return moments by closed forms: SciPy computes 1 - p from a rounded p."""
    chosen = {k: v for k, v in given.items() if k != "total_count"}
    p, q = chance(**{k: mp.mpf(v) for k, v in chosen.items()})
    n = mp.mpf(given.get("total_count", 1.0))
    h = -(xlogy(p, p) + xlogy(q, q))
    found = {
        "Geometric": lambda: {"mean": q / p, "variance": q / p**2, "entropy": h / p},
        "NegativeBinomial": lambda: {"mean": n * p / q, "variance": n * p / q**2},
        "Bernoulli": lambda: {"mean": p, "variance": p * q, "entropy": h},
        "Binomial": lambda: {"mean": n * p, "variance": n * p * q},
    }[name]()
    return {k: float(v) for k, v in found.items()}


@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_gradients_of_log_prob_equal_those_of_the_closed_form(name: str, case: int) -> None:
    row, given = ROWS[name], ROWS[name].params[case]
    if any(abs(v) == INF for v in given.values()):
        return
    p, tensors = made(name, given, "float64", grad=True)
    for v in row.values:
        if not is_inside(name, v, given) or not math.isfinite(exact(name, v, given)):
            continue
        x = dt.asarray(v, dtype="float64").requires_grad_()
        y = p.log_prob(x)
        wanted = {"value": x, **tensors} if name not in DISCRETE else dict(tensors)
        wanted.pop("total_count", None)
        found = dt.autograd.grad(y, [*wanted.values()], allow_unused=True, retain_graph=True)
        for what, g in zip(wanted, found, strict=True):
            if name in ("Laplace",) and v == given["loc"]:
                continue
            want = derivative(name, what, v, given)
            have = 0.0 if g is None else g.item()
            assert_close(have, want, 1e-9, f"{name}({given}).log_prob({v}) by {what}")


def derivative(name: str, what: str, x: float, given: dict[str, float]) -> float:
    """Return the derivative of the closed form by its value or a parameter."""
    exactly = {"value": mp.mpf(x), **{k: mp.mpf(v) for k, v in given.items()}}
    at = exactly[what]
    with mp.workdps(400):
        step = abs(at) * mp.mpf(10) ** -60 or mp.mpf(10) ** -60

        def f(t: Any) -> Any:
            point = {**exactly, what: t}
            return ROWS[name].log_density(point.pop("value"), **point)

        return float(mp.re(f(at + step) - f(at - step)) / (2 * step))


@pytest.mark.parametrize("d", ["float64", "float32"])
@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_gradients_at_borders_are_not_nan(name: str, case: int, d: str) -> None:
    row, given = ROWS[name], in_dtype(ROWS[name].params[case], d)
    for v in row.values:
        p, tensors = made(name, given, d, grad=True)
        params = [t for t in tensors.values() if t.requires_grad]
        y = p.log_prob(dt.asarray(rounded(v, d), dtype=d))
        names = [k for k, t in tensors.items() if t.requires_grad]
        for t, g in zip(
            names, dt.autograd.grad(y, params, allow_unused=True, retain_graph=True), strict=True
        ):
            assert g is None or not math.isnan(g.item()), f"{name}({given}).log_prob({v}) by {t}"
    if name not in WITHOUT_ENTROPY:
        p, tensors = made(name, given, d, grad=True)
        params = [t for t in tensors.values() if t.requires_grad]
        h = p.entropy()
        if h.requires_grad:
            for g in dt.autograd.grad(h, params, allow_unused=True, retain_graph=True):
                assert g is None or not math.isnan(g.item()), f"entropy of {name}({given})"


@pytest.mark.parametrize("d", ["float64", "float32", "float16"])
@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_samples_of_extreme_words_are_in_the_support(name: str, case: int, d: str) -> None:
    given = in_dtype(ROWS[name].params[case], d)
    if any(not math.isfinite(v) and k != "logits" for k, v in given.items()):
        return  # a parameter beyond the dtype
    if any(v == 0.0 != ROWS[name].params[case][k] for k, v in given.items()):
        return
    p, _ = made(name, given, d)
    x = p.sample((200,), generator=ExtremeGenerator(case))
    assert x.dtype.name == d and not bool(dt.isnan(x).any())
    low, high = ROWS[name].ends
    if name in DISCRETE:
        low, high = 0.0, {"Bernoulli": 1.0, "Binomial": given.get("total_count")}.get(name, INF)
    if name == "Uniform":
        low, high = given["low"], given["high"]
        assert x.max().item() < high
    assert low <= x.min().item() and x.max().item() <= high


# --- categories, simplices and vectors
# --------------------------------------------------------------


def t64(*x: Any) -> dt.Tensor:
    return dt.asarray(x, dtype="float64").requires_grad_()


KINDS = [{"probs": (0.0, 1.0, 0.0)}, {"probs": (0.0, 0.25, 0.75)}, {"logits": (-INF, 0.0, -INF)},
         {"logits": (-INF, 0.0, math.log(3.0))}, {"probs": (1e-30, 0.5, 0.5)}]  # fmt: skip


@pytest.mark.parametrize("given", KINDS, ids=range(len(KINDS)))
def test_categorical_with_impossible_categories(given: dict[str, tuple[float, ...]]) -> None:
    ((which, v),) = given.items()
    p = np.array(v) if which == "probs" else np.exp(v) / np.exp(v).sum()
    with np.errstate(all="ignore"):
        logs = np.log(p)
    h = -sum(x * math.log(x) for x in p if x)
    for k in range(3):
        x = t64(*v)
        d = D.Categorical(**{which: x}, validate_args=False)
        y = d.log_prob(k)
        assert_close(y.item(), logs[k], 1e-14, f"{given} {k}")
        if p[k]:
            (g,) = dt.autograd.grad(y, [x])
            want = (np.eye(3)[k] - p) / (p[k] if which == "probs" else 1.0)
            if which == "probs":
                want = np.eye(3)[k] / p[k] - 1.0
            np.testing.assert_allclose(g.numpy(), want, atol=1e-12)
        hot = D.OneHotCategorical(**{which: t64(*v)}, validate_args=False)
        assert_close(hot.log_prob(dt.eye(3, dtype="float64")[k]).item(), logs[k], 1e-14, "hot")
        x = t64(*v)
        m = D.Multinomial(4, **{which: x}, validate_args=False)
        y = m.log_prob(dt.eye(3, dtype="float64")[k] * 4.0)
        assert_close(y.item(), 4 * logs[k], 1e-13, "multinomial")
        (g,) = dt.autograd.grad(y, [x])
        assert not bool(dt.isnan(g).any()) or math.isinf(logs[k])
    for make in (D.Categorical, D.OneHotCategorical, D.OneHotCategoricalStraightThrough):
        x = t64(*v)
        d = make(**{which: x}, validate_args=False)
        assert_close(d.entropy().item(), h, 1e-13, "entropy")
        (g,) = dt.autograd.grad(d.entropy(), [x])
        assert not bool(dt.isnan(g).any())
        s = d.sample((300,), generator=ExtremeGenerator())
        at = s.numpy().argmax(-1) if make is not D.Categorical else s.numpy()
        assert {int(k) for k in np.unique(at)} <= {k for k in range(3) if p[k]}
    x = t64(*v)
    m = D.Multinomial(3, **{which: x}, validate_args=False)
    assert_close(m.entropy().item(), float(st.multinomial(3, p).entropy()), 1e-9, "multinomial")
    (g,) = dt.autograd.grad(m.entropy(), [x])
    assert not bool(dt.isnan(g).any())
    assert bool((m.sample((9,), generator=ExtremeGenerator()).sum(axis=-1) == 3).all())


def test_categorical_outside_of_the_support_has_no_density() -> None:
    d = D.Categorical(t64(0.5, 0.5), validate_args=False)
    assert d.log_prob(dt.asarray([-1, 0, 2])).tolist() == [-INF, math.log(0.5), -INF]


def test_dirichlet_at_borders() -> None:
    a = t64(1.0, 0.5, 2.0)
    d = D.Dirichlet(a, validate_args=False)
    y = d.log_prob(dt.asarray([0.0, 0.5, 0.5], dtype="float64"))
    want = math.lgamma(3.5) - math.lgamma(0.5) - 0.5 * math.log(0.5) + math.log(0.5)
    assert_close(y.item(), want, 1e-14, "dirichlet")
    (g,) = dt.autograd.grad(y, [a])
    assert not bool(dt.isnan(g).any())
    logs = [d.log_prob(dt.asarray(x, dtype="float64")).item() for x in
            ((0.5, 0.0, 0.5), (0.5, 0.5, 0.0), (-0.5, 0.5, 1.0))]  # fmt: skip
    assert logs == [INF, -INF, -INF]
    for a, mode in (((0.5, 1.0), (0.0, 1.0)), ((0.5, 0.7), (0.0, 1.0)), ((1.0, 3.0), (0.0, 1.0))):
        assert D.Dirichlet(t64(*a)).mode.tolist() == list(mode)
        assert D.Beta(t64(a[1]), t64(a[0])).mode.tolist() == [1.0]
    for a in ((0.01, 0.02, 0.01), (1e-40, 1e-40, 1e-40), (1e-3, 5.0, 2.0)):
        for dtype in ("float16", "float32", "float64"):
            if dt.asarray(a, dtype=dtype).min().item() == 0.0:
                continue
            x = D.Dirichlet(dt.asarray(a, dtype=dtype)).sample((200,), generator=ExtremeGenerator())
            x = x.astype(dt.float64).numpy()
            assert np.isfinite(x).all() and x.min() >= 0 and x.max() <= 1
            np.testing.assert_allclose(
                x.sum(-1), 1.0, atol=4 * float(dt.finfo(getattr(dt, dtype)).eps)
            )
    for dtype in ("float32", "float64"):
        tiny = dt.asarray([1e-40, 1e-3, 1e-3], dtype=dtype)
        x = (
            D.Beta(tiny, dt.asarray([1e-40, 1e-3, 5.0], dtype=dtype))
            .sample((500,), generator=dt.random.default_rng(2))
            .numpy()
        )
        assert np.isfinite(x).all() and (x.mean(0)[:2] > 0.4).all() and (x.mean(0)[:2] < 0.6).all()


def test_log_prob_of_distant_vectors_is_finite() -> None:
    d = D.MultivariateNormal(dt.zeros(2, dtype="float32"), dt.eye(2, dtype="float32"))
    assert_close(d.log_prob(dt.asarray([1e18, 0.0])).item(), -5e35, 1e-6, "normal vectors")
    x = d.sample((200,), generator=ExtremeGenerator())
    assert bool(dt.isfinite(x).all()) and dt.abs(x).max().item() < 6.7


def test_composed_distributions_at_borders() -> None:
    mix = D.Categorical(t64(0.0, 1.0), validate_args=False)
    parts = D.Exponential(t64(1.0, 2.0), validate_args=False)
    d = D.MixtureSameFamily(mix, parts, validate_args=False)
    logs = [d.log_prob(dt.asarray(x, dtype="float64")).item() for x in (-1.0, 0.0, 3.0)]
    assert logs[0] == -INF and abs(logs[1] - math.log(2.0)) < 1e-14
    assert abs(logs[2] - (math.log(2.0) - 6.0)) < 1e-14
    each = D.Independent(parts, 1, validate_args=False)
    assert each.log_prob(dt.asarray([-1.0, 1.0], dtype="float64")).item() == -INF
    share = D.TransformedDistribution(
        D.Normal(t64(0.0), 1.0), [D.SigmoidTransform()], validate_args=False
    )
    x = dt.asarray([-0.5, 0.5, 1.5], dtype="float64")
    assert share.cdf(x).tolist() == [0.0, 0.5, 1.0]
    assert [math.isinf(v) for v in share.log_prob(x).tolist()] == [True, False, True]


# --- divergences ----------------------------------------------------------------------------------


def kl(name: str, p: dict[str, Any], q: dict[str, Any]) -> float:
    first, second = (getattr(D, name)(**g, validate_args=False) for g in (p, q))
    return float(D.kl_divergence(first, second).item())


def test_kl_divergences_at_borders_equal_closed_forms() -> None:
    one = dt.asarray(1.0, dtype="float64")
    chances = (0.0, 1.0, 0.3)
    for a in chances:
        for b in chances:
            p, q = {"probs": one * a}, {"probs": one * b}
            want = sum(
                0.0 if x == 0 else INF if y == 0 else x * math.log(x / y)
                for x, y in ((a, b), (1 - a, 1 - b))
            )
            assert_close(kl("Bernoulli", p, q), want, 1e-14, f"{a} {b}")
            n = {"total_count": one * 3}
            assert_close(kl("Binomial", {**p, **n}, {**q, **n}), 3 * want, 1e-14, f"{a} {b}")
            both = ({"probs": dt.stack([v["probs"], 1 - v["probs"]])} for v in (p, q))
            assert_close(kl("Categorical", *both), want, 1e-14, f"{a} {b}")
            if a > 0:
                want = (math.log(a / b) if b else INF) + (
                    0.0 if a == 1 else INF if b == 1 else (1 - a) / a * math.log((1 - a) / (1 - b))
                    if b else INF
                )  # fmt: skip
                assert_close(kl("Geometric", p, q), want, 1e-14, f"{a} {b}")
    logits = {"logits": one * INF}, {"logits": one * 40.0}
    assert_close(kl("Bernoulli", *logits), math.log1p(math.exp(-40.0)), 1e-12, "logits")
    for a, b, want in ((0.0, 0.0, 0.0), (0.0, 2.0, 2.0), (2.0, 0.0, INF)):
        assert_close(kl("Poisson", {"rate": one * a}, {"rate": one * b}), want, 1e-14, "poisson")
    for name, first, second in (
        ("Bernoulli", {"probs": t64(0.0)}, {"probs": t64(0.5)}),
        (
            "Binomial",
            {"probs": t64(1.0), "total_count": 4.0},
            {"probs": t64(0.5), "total_count": 4.0},
        ),
        ("Categorical", {"probs": t64(0.0, 1.0)}, {"probs": t64(0.0, 1.0)}),
        ("Poisson", {"rate": t64(0.0)}, {"rate": t64(0.0)}),
    ):
        p, q = (getattr(D, name)(**g, validate_args=False) for g in (first, second))
        tensors = [v for g in (first, second) for v in g.values() if isinstance(v, dt.Tensor)]
        for g in dt.autograd.grad(
            D.kl_divergence(p, q).sum(), tensors, allow_unused=True, retain_graph=True
        ):
            assert g is None or not bool(dt.isnan(g).any()), name


# --- moments whose terms leave the range of the dtype ---------------------------------------------


def beta_variance(concentration1: Any, concentration0: Any) -> Any:
    n = concentration1 + concentration0
    return concentration1 * concentration0 / (n * n * (n + 1))


def f_variance(df1: Any, df2: Any) -> Any:
    return 2 * df2**2 * (df1 + df2 - 2) / (df1 * (df2 - 2) ** 2 * (df2 - 4))


def inverse_gamma_variance(concentration: Any, rate: Any) -> Any:
    return rate**2 / ((concentration - 1) ** 2 * (concentration - 2))


def pareto_variance(scale: Any, alpha: Any) -> Any:
    return scale**2 * alpha / ((alpha - 1) ** 2 * (alpha - 2))


def weibull_variance(scale: Any, concentration: Any) -> Any:
    k = 1 / concentration
    return scale**2 * (mp.gamma(2 * k + 1) - mp.gamma(k + 1) ** 2)


SIZES = [1e-30, 1e-20, 1e-10, 3.0, 7.0, 1e10, 3e19, 1e20, 1e30]
VARIANCES: dict[str, Callable[..., Any]] = {
    "Beta": beta_variance, "FisherSnedecor": f_variance, "InverseGamma": inverse_gamma_variance,
    "Pareto": pareto_variance, "Gamma": lambda concentration, rate: concentration / rate**2,
    "StudentT": lambda df, scale: scale**2 * df / (df - 2), "Weibull": weibull_variance,
    "HalfNormal": lambda scale: scale**2 * (1 - 2 / mp.pi), "Normal": lambda scale: scale**2,
    "Laplace": lambda scale: 2 * scale**2, "Gumbel": lambda scale: (scale * mp.pi) ** 2 / 6,
    "Exponential": lambda rate: 1 / rate**2, "Uniform": lambda high: high**2 / 12,
}  # fmt: skip
SMALL_AND_LARGE = {"Weibull": (0.7, 3.0, 9.0)}  # else the moments at scale 1 leave the range


@pytest.mark.parametrize("d", ["float64", "float32"])
@pytest.mark.parametrize("name", VARIANCES)
def test_variance_of_tiny_and_huge_parameters_is_right_if_representable(name: str, d: str) -> None:
    law = VARIANCES[name]
    names = [*inspect.signature(law).parameters]
    last = SMALL_AND_LARGE.get(name, SIZES) if len(names) > 1 else (None,)
    facts = dt.finfo(getattr(dt, d))
    low, top = float(facts.smallest_normal), float(facts.max)
    count = 0
    for sizes in itertools.product(SIZES, last):
        given = in_dtype(dict(zip(names, sizes, strict=False)), d)
        if any(given.get(k, 9.0) < 5.0 for k in ("df2", "alpha", "df")) or (
            name == "InverseGamma" and given["concentration"] < 5.0
        ):
            continue  # infinite, or none
        if name in ("Normal", "Laplace", "Gumbel"):
            p, _ = made(name, {"loc": 0.0, **given}, d)
        elif name == "Uniform":
            p, _ = made(name, {"low": 0.0, **given}, d)
        else:
            p, _ = made(name, given, d)
        want = law(**{k: mp.mpf(v) for k, v in given.items()})
        close = 2e-5 if d == "float32" else 1e-13
        for what, exact in (("variance", want), ("stddev", mp.sqrt(want))):
            if low < exact < top and (what == "variance" or low < want < top or name in SCALED):
                have = getattr(p, what).item()
                assert abs(have - exact) <= close * exact, (name, given, what, have, exact)
                count += 1
        if name == "Pareto":
            mean = mp.mpf(given["alpha"]) / (given["alpha"] - 1) * mp.mpf(given["scale"])
            assert abs(p.mean.item() - mean) <= close * mean
    assert count > 6


# --- Python numbers next to float64
# ------------------------------------------------------------------


@pytest.mark.parametrize("name", ROWS)
def test_python_floats_keep_their_value_next_to_float64(name: str) -> None:
    given = next(g for g in ROWS[name].params[::-1] if all(abs(v) < INF for v in g.values()))
    p, _ = made(name, given, "float64")
    v = 1.0 if name in DISCRETE else p.mean.item() * 1.1 if name != "Cauchy" else 0.3
    v = 1.3 if not math.isfinite(v) or name == "Uniform" else v
    x = dt.asarray(v, dtype="float64")
    assert p.log_prob(v).item() == p.log_prob(x).item()
    assert p.log_prob([v]).tolist() == [p.log_prob(x).item()]
    first, *rest = given
    mixed = getattr(D, name)(
        **{first: dt.asarray(given[first], dtype="float64"), **{k: given[k] for k in rest}},
        validate_args=False,
    )
    assert_close(mixed.log_prob(v).item(), p.log_prob(x).item(), 1e-14, name)


# --- reported examples
# ------------------------------------------------------------------------------


def test_reported_cases_at_borders() -> None:
    a = t64(1.0)
    y = D.Beta(a, t64(1.0)).log_prob(0.5)
    (g,) = dt.autograd.grad(y, [a])
    assert abs(g.item() - (1.0 + math.log(0.5))) < 1e-15
    b = t64(1.0)
    (g,) = dt.autograd.grad(D.Beta(t64(2.0), b).log_prob(0.25), [b])
    assert abs(g.item() - (math.log(0.75) + 1.5)) < 1e-14  # digamma(3) - digamma(1) is 1.5
    never = D.Bernoulli(dt.asarray([0.0]))
    assert never.log_prob(1.0).tolist() == [-INF] and never.log_prob(0.0).tolist() == [0.0]
    sure = D.Binomial(3, logits=dt.asarray([INF]))
    assert sure.log_prob(3.0).tolist() == [0.0] and sure.log_prob(2.0).tolist() == [-INF]
    waits = D.Geometric(logits=dt.asarray([30.0]))
    np.testing.assert_allclose(waits.log_prob(dt.asarray([1.0])).numpy(), [-30.0], rtol=1e-6)
    d = D.InverseGamma(dt.asarray([3.0]), 1.0, validate_args=False)
    assert d.cdf(-1.0).tolist() == [0.0]
    p = D.Normal(t64(0.0), t64(1.0)).log_prob(0.3)
    assert abs(p.item() - st.norm.logpdf(0.3)) < 1e-15
