"""Vector, categorical and composed distributions at their borders, against closed forms.

The expected values are closed forms in mpmath with 50 digits. Gradients are central differences of
the closed form with 200 digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import dovetail as dt
import mpmath as mp
import numpy as np
import pytest

pytestmark = pytest.mark.values

D = dt.distributions
INF = math.inf
Params = dict[str, Any]


class Row(NamedTuple):
    """The cases of one distribution and its closed forms.

    build: return the distribution of tensors. cases: parameters, each with values of the support.
    log_density, moments: closed forms of object arrays of mpmath numbers. has_slope: the density
    has a gradient by the value.
    """

    build: Callable[..., Any]
    cases: list[tuple[Params, list[Any]]]
    log_density: Callable[..., Any]
    moments: Callable[..., dict[str, Any]]
    has_slope: bool = True


def log(x: Any) -> Any:
    return mp.log(x) if x else -mp.inf


def exp(x: Any) -> Any:
    return mp.mpf(0) if x == -mp.inf else mp.exp(x)


def xlogy(x: Any, y: Any) -> Any:
    return mp.mpf(0) if x == 0 and y == 0 else x * log(y)


def log_sum_exp(terms: list[Any]) -> Any:
    top = max(terms, key=mp.re)
    return top if top in (mp.inf, -mp.inf) else top + mp.log(sum(exp(t - top) for t in terms))


def chances(probs: Any = None, logits: Any = None) -> Any:
    """Return the normalised probabilities of kinds."""
    p = np.array([exp(x) for x in logits]) if probs is None else probs
    return p / sum(p)


def entropy_of(p: Any) -> Any:
    return -sum(xlogy(x, x) for x in p)


def one_hot(n: int, k: int) -> tuple[float, ...]:
    """Return the normalized probabilities of categories."""
    return tuple(float(i == k) for i in range(n))


KINDS: list[Params] = [
    {"probs": (1.0, 3.0)}, {"probs": (2.0,)}, {"probs": (0.0, 1.0, 0.0)},
    {"probs": (0.0, 0.25, 0.75)}, {"probs": (1e-30, 0.5, 0.5)}, {"probs": (1.0, 2.0**-20)},
    {"logits": (0.0, math.log(3.0))}, {"logits": (7.0,)}, {"logits": (-INF, 0.0, -INF)},
    {"logits": (-INF, 0.0, 1.0)}, {"logits": (-80.0, 0.0, 80.0)}, {"logits": (1e4, 1e4 + 1.0)},
]  # fmt: skip


def kinds_of(given: Params) -> int:
    (v,) = given.values()
    return len(v)


def counts(n: int, total: int) -> list[tuple[float, ...]]:
    """Return all ways to distribute a total among n categories."""
    ways = product(range(total + 1), repeat=n)
    return [tuple(map(float, c)) for c in ways if sum(c) == total]


def vary(p: Any) -> Any:
    return p * (1 - p)


def mode_of_kinds(p: Any) -> int:
    return int(np.argmax(p.astype(float)))


def multinomial_log(x: Any, **given: Any) -> Any:
    p = chances(**given)
    ways = mp.loggamma(sum(x) + 1) - sum(mp.loggamma(v + 1) for v in x)
    return ways + sum(xlogy(v, q) for v, q in zip(x, p, strict=True))


def multinomial_moments(total: int) -> Callable[..., dict[str, Any]]:
    def moments(**given: Any) -> dict[str, Any]:
        p = chances(**given)
        logs = [multinomial_log(np.array([mp.mpf(v) for v in x]), **given)
                for x in counts(len(p), total)]  # fmt: skip
        entropy = -sum(0 if v == -mp.inf else exp(v) * v for v in logs)
        return {"mean": total * p, "variance": total * vary(p), "entropy": entropy}

    return moments


def dirichlet_log(x: Any, concentration: Any) -> Any:
    a = concentration
    each = ((v - 1) * log(u) if v != 1 else 0 for u, v in zip(x, a, strict=True))
    return sum(each) - sum(map(mp.loggamma, a)) + mp.loggamma(sum(a))


def dirichlet_moments(concentration: Any) -> dict[str, Any]:
    a, total = concentration, sum(concentration)
    terms = [
        *map(mp.loggamma, a), *(-(v - 1) * mp.digamma(v) for v in a),
        -mp.loggamma(total), -(len(a) - total) * mp.digamma(total),
    ]  # fmt: skip
    return {
        "mean": a / total, "variance": a * (total - a) / total**2 / (total + 1),
        "entropy": sum(terms), "largest": max(map(abs, terms)),
    }  # fmt: skip


def covariance_of(**given: Any) -> Any:
    ((name, m),) = given.items()
    matrix = mp.matrix(m.tolist())
    if name == "scale_tril":
        n = matrix.rows
        lower = mp.matrix([[matrix[i, j] if j <= i else 0 for j in range(n)] for i in range(n)])
        return lower * lower.T
    return matrix if name == "covariance_matrix" else matrix**-1


def normal_log(x: Any, loc: Any, **given: Any) -> Any:
    cov, off = covariance_of(**given), mp.matrix((x - loc).tolist())
    n = len(loc)
    return -((off.T * cov**-1 * off)[0] + mp.log(mp.det(cov)) + n * mp.log(2 * mp.pi)) / 2


def normal_moments(loc: Any, **given: Any) -> dict[str, Any]:
    cov, n = covariance_of(**given), len(loc)
    return {
        "mean": loc, "variance": np.array([cov[i, i] for i in range(n)]), "mode": loc,
        "entropy": (n * (1 + mp.log(2 * mp.pi)) + mp.log(mp.det(cov))) / 2,
    }  # fmt: skip


def exponential_log(x: Any, rate: Any) -> Any:
    return mp.log(rate) - rate * x if mp.re(x) >= 0 else -mp.inf


def mixture_log(x: Any, rate: Any, **given: Any) -> Any:
    p = chances(**given)
    parts = zip(p, rate, strict=True)
    return log_sum_exp([log(w) + exponential_log(x, r) for w, r in parts])


def mixture_moments(rate: Any, **given: Any) -> dict[str, Any]:
    p = chances(**given)
    mean = sum(p / rate)
    return {"mean": mean, "variance": sum(p * 2 / rate**2) - mean**2}


def normal(x: Any) -> Any:
    return -(x**2) / 2 - mp.log(2 * mp.pi) / 2


def transformed(*transforms: Any) -> Callable[..., Any]:
    def build(loc: Any, scale: Any) -> Any:
        base = D.Normal(loc, scale, validate_args=False)
        return D.TransformedDistribution(base, list(transforms), validate_args=False)

    return build


def by_inverse(inverse: Callable[[Any], Any], log_slope: Callable[[Any], Any]) -> Any:
    """Return the closed form of a normal variable's transform. log_slope: log |dx/dy|."""

    def log_density(y: Any, loc: Any, scale: Any) -> Any:
        return normal((inverse(y) - loc) / scale) - mp.log(scale) + log_slope(y)

    return log_density


def no_moments(**given: Any) -> dict[str, Any]:
    return {}


UNIT = {"loc": 0.0, "scale": 1.0}
MOVED = {"loc": -0.5, "scale": 2.0}
SHARES = [(0.25, 0.25, 0.5), (1.0 - 2.0**-10, 2.0**-11, 2.0**-11), (2.0**-20, 0.5, 0.5 - 2.0**-20)]
CORNERS = [(0.0, 0.5, 0.5), (1.0, 0.0, 0.0)]
NEAR_SINGULAR = ((1.0, 1.0 - 2.0**-12), (1.0 - 2.0**-12, 1.0))
EYE = ((1.0, 0.0), (0.0, 1.0))

ROWS: dict[str, Row] = {
    "Categorical": Row(
        lambda **p: D.Categorical(**p, validate_args=False),
        [(p, list(range(kinds_of(p)))) for p in KINDS],
        lambda x, **p: log(chances(**p)[int(x)]),
        lambda **p: {"entropy": entropy_of(chances(**p)), "mode": mode_of_kinds(chances(**p))},
        has_slope=False,
    ),
    **{
        name: Row(
            lambda name=name, **p: getattr(D, name)(**p, validate_args=False),
            [(p, [one_hot(kinds_of(p), k) for k in range(kinds_of(p))]) for p in KINDS],
            lambda x, **p: log(chances(**p)[mode_of_kinds(x)]),
            lambda **p: {
                "mean": chances(**p), "variance": vary(chances(**p)),
                "entropy": entropy_of(chances(**p)),
                "mode": one_hot(len(chances(**p)), mode_of_kinds(chances(**p))),
            },
            has_slope=False,
        )
        for name in ("OneHotCategorical", "OneHotCategoricalStraightThrough")
    },
    **{
        f"Multinomial-{n}": Row(
            lambda n=n, **p: D.Multinomial(n, **p, validate_args=False),
            [(p, counts(kinds_of(p), n)) for p in KINDS],
            multinomial_log,
            multinomial_moments(n),
            has_slope=False,
        )
        for n in (0, 1, 3)
    },
    "Dirichlet": Row(
        lambda **p: D.Dirichlet(**p, validate_args=False),
        [
            ({"concentration": (2.0,)}, [(1.0,)]),
            ({"concentration": (1.0, 1.0, 1.0)}, SHARES + CORNERS),
            ({"concentration": (1.0, 2.0, 3.0)}, SHARES + CORNERS[:1]),
            ({"concentration": (0.5, 1.0, 2.0)}, SHARES + CORNERS[:1]),
            ({"concentration": (1e-3, 1e-3, 1e-3)}, SHARES),
            ({"concentration": (1e-30, 1e-30, 2.0)}, SHARES),
            ({"concentration": (1e-30, 1e-30, 1e-30)}, SHARES),
            ({"concentration": (1e6, 1e6, 2e6)}, SHARES),
            ({"concentration": (1e6, 1.0, 1e-3)}, SHARES),
        ],
        dirichlet_log,
        dirichlet_moments,
    ),
    "MultivariateNormal": Row(
        lambda **p: D.MultivariateNormal(**p, validate_args=False),
        [
            *(
                ({"loc": (0.0, 1.0), name: m}, [(0.0, 1.0), (1.0, -2.0), (1e4, -1e4)])
                for name in ("covariance_matrix", "precision_matrix", "scale_tril")
                for m in (EYE, ((4.0, 0.0), (0.0, 2.0**-20)))
            ),
            ({"loc": (0.0, 1.0), "covariance_matrix": NEAR_SINGULAR}, [(0.0, 1.0), (1.0, 2.0)]),
            ({"loc": (0.0, 1.0), "precision_matrix": NEAR_SINGULAR}, [(0.0, 1.0), (1.0, 2.0)]),
            ({"loc": (0.0, 1.0), "scale_tril": ((1.0, 0.0), (1.0, 1e-18))}, [(0.0, 1.0)]),
            ({"loc": (3.0,), "scale_tril": ((1e-15,),)}, [(3.0,)]),
        ],
        normal_log,
        normal_moments,
    ),
    "Independent": Row(
        lambda rate: D.Independent(D.Exponential(rate, validate_args=False), 1),
        [({"rate": (1.0, 3e-20, 1e10)}, [(0.0, 0.0, 0.0), (1.0, 1e20, 1e-10)]),
         ({"rate": (2.0,)}, [(0.0,), (3.0,)])],
        lambda x, rate: sum(exponential_log(*v) for v in zip(x, rate, strict=True)),
        lambda rate: {"mean": 1 / rate, "variance": 1 / rate**2,
                      "entropy": sum(1 - mp.log(r) for r in rate)},
    ),
    "MixtureSameFamily": Row(
        lambda rate, **p: D.MixtureSameFamily(
            D.Categorical(**p, validate_args=False),
            D.Exponential(rate, validate_args=False), validate_args=False,
        ),
        [
            ({"probs": (1.0, 3.0), "rate": (1.0, 2.0)}, [0.0, 0.7, 300.0]),
            ({"probs": (0.0, 1.0), "rate": (1.0, 2.0)}, [0.0, 0.7, 300.0]),
            ({"logits": (-INF, 0.0), "rate": (1.0, 2.0)}, [0.0, 0.7, 300.0]),
            ({"logits": (-80.0, 80.0), "rate": (1.0, 2.0)}, [0.0, 0.7, 300.0]),
            ({"probs": (2.0,), "rate": (2.0,)}, [0.0, 3.0]),
        ],
        mixture_log,
        mixture_moments,
    ),
    "TransformedDistribution-exp": Row(
        transformed(D.ExpTransform()),
        [(UNIT, [1e-30, 1.0, 1e20]), (MOVED, [1e-30, 1.0])],
        by_inverse(mp.log, lambda y: -mp.log(y)),
        no_moments,
    ),
    "TransformedDistribution-sigmoid": Row(
        transformed(D.SigmoidTransform()),
        [(UNIT, [1e-30, 0.5, 1.0 - 2.0**-20]), (MOVED, [1e-30, 0.25])],
        by_inverse(lambda y: mp.log(y / (1 - y)), lambda y: -mp.log(y) - mp.log(1 - y)),
        no_moments,
    ),
    "TransformedDistribution-tanh": Row(
        transformed(D.TanhTransform()),
        [(UNIT, [0.0, 1e-30, 1.0 - 2.0**-20, 2.0**-20 - 1.0]), (MOVED, [0.5])],
        by_inverse(mp.atanh, lambda y: -mp.log(1 - y**2)),
        no_moments,
    ),
    "TransformedDistribution-softplus": Row(
        transformed(D.SoftplusTransform()),
        [(UNIT, [1e-30, 1.0, 80.0]), (MOVED, [1e-30, 1.0])],
        by_inverse(lambda y: mp.log(mp.expm1(y)), lambda y: -mp.log(-mp.expm1(-y))),
        no_moments,
    ),
    "TransformedDistribution-affine": Row(
        transformed(D.AffineTransform(1.0, -1e20)),
        [(UNIT, [1.0, 1e20, -3e20])],
        by_inverse(lambda y: (y - 1) / -mp.mpf(1e20), lambda y: -mp.log(mp.mpf(1e20))),
        no_moments,
    ),
}  # fmt: skip
NAMES = {key.split("-")[0] for key in ROWS}
CASES = [(key, i) for key, row in ROWS.items() for i in range(len(row.cases))]
IDS = [f"{key}-{i}" for key, i in CASES]
EPS = {"float64": 2.0**-52, "float32": 2.0**-23}


@pytest.fixture(autouse=True)
def device() -> Iterator[None]:
    before = dt.default_device()
    dt.set_default_device("reference")
    with mp.workdps(50):
        yield
    dt.set_default_device(before)


def tensors_of(given: Params, d: str, grad: bool = False) -> Params:
    found = {k: dt.asarray(v, dtype=d) for k, v in given.items()}
    return {k: v.requires_grad_() for k, v in found.items()} if grad else found


def numbers_of(x: Any) -> Any:
    """Return the exact numbers of a tensor as mpmath numbers in an object array."""
    wide = x.astype(dt.float64).numpy()
    return np.vectorize(mp.mpf, otypes=[object])(wide) if wide.ndim else mp.mpf(float(wide))


def assert_close(have: Any, want: Any, close: float, what: str) -> None:
    top = mp.mpf(float(dt.finfo(have.dtype).max) if have.dtype.kind == "f" else 2.0**63)
    want = np.vectorize(lambda v: mp.sign(v) * mp.inf if abs(v) > top else v, otypes=[object])(want)
    want = want.astype(float)
    have = have.astype(dt.float64).numpy()
    same = (have == want) | (np.isnan(have) & np.isnan(want))
    with np.errstate(invalid="ignore"):
        near = np.abs(have - want) <= close * np.maximum(np.abs(want), 0.3)
    assert have.shape == want.shape and (same | near).all(), (what, have, want)


# A wrong digit of a parameter changes a density by its condition number: the part of the
# tolerance that a case adds is the largest product of a parameter and the derivative by it.
def condition(row: Row, x: Any, given: Params) -> float:
    total = 0.0
    for name, v in (("value", x), *given.items()):
        if name == "value" and not row.has_slope:
            continue
        slope = derivative(row, name, x, given)
        for s, u in zip(np.ravel(slope), np.ravel(v), strict=True):
            if mp.isfinite(s) and mp.isfinite(u):
                total += abs(float(s * u))
    return total


def derivative(row: Row, name: str, x: Any, given: Params) -> Any:
    """Return the derivative of the closed form by the value or a parameter."""
    at = np.array(x if name == "value" else given[name], dtype=object)
    slopes = np.empty(at.shape, dtype=object)
    with mp.workdps(200):
        for place in np.ndindex(at.shape):
            slopes[place] = slope_at(row, name, x, given, at, place)
    return slopes


def slope_at(row: Row, name: str, x: Any, given: Params, at: Any, place: Any) -> Any:
    if not mp.isfinite(at[place]):
        return mp.mpf(0)
    step = abs(at[place]) * mp.mpf(10) ** -60 or mp.mpf(10) ** -140
    sides = []
    for side in (step, -step):
        moved = at.copy()
        moved[place] += side
        point = moved if moved.ndim else moved.item()
        f = row.log_density(x if name != "value" else point,
                            **{**given, **({name: point} if name != "value" else {})})  # fmt: skip
        sides.append(f)
    slope = (sides[0] - sides[1]) / (2 * step)
    return mp.re(slope)


def prepared(key: str, case: int, d: str, grad: bool = False) -> tuple[Any, Params, Params]:
    given = tensors_of(ROWS[key].cases[case][0], d, grad)
    return ROWS[key].build(**given), given, {k: numbers_of(v) for k, v in given.items()}


@pytest.mark.parametrize("d", EPS)
@pytest.mark.parametrize(("key", "case"), CASES, ids=IDS)
def test_log_prob_at_borders_equals_the_closed_form(key: str, case: int, d: str) -> None:
    p, _, exact = prepared(key, case, d)
    for v in ROWS[key].cases[case][1]:
        x = dt.asarray(v, dtype=d)
        want = ROWS[key].log_density(numbers_of(x), **exact)
        close = 8 * EPS[d] * max(1.0, condition(ROWS[key], numbers_of(x), exact))
        assert_close(p.log_prob(x), want, close, f"{key}-{case} {d} at {v}")


@pytest.mark.parametrize("d", EPS)
@pytest.mark.parametrize(("key", "case"), CASES, ids=IDS)
def test_moments_and_entropy_at_borders_equal_closed_forms(key: str, case: int, d: str) -> None:
    p, _, exact = prepared(key, case, d)
    wanted = ROWS[key].moments(**exact)
    largest = max(1.0, float(wanted.pop("largest", 1)))  # a float32 entropy of 1e6 cancels
    for what, want in wanted.items():
        have, scale = (p.entropy(), largest) if what == "entropy" else (getattr(p, what), 1.0)
        assert_close(have, want, 64 * EPS[d] * scale, f"{key}-{case} {d} {what}")


@pytest.mark.parametrize("d", EPS)
@pytest.mark.parametrize(("key", "case"), CASES, ids=IDS)
def test_gradients_of_log_prob_at_borders_equal_the_closed_form(
    key: str, case: int, d: str
) -> None:
    row = ROWS[key]
    for v in row.cases[case][1]:
        p, given, exact = prepared(key, case, d, grad=True)
        x = dt.asarray(v, dtype=d)
        at = numbers_of(x)
        y = p.log_prob(x.requires_grad_() if row.has_slope else x)
        wanted = {"value": x, **given} if row.has_slope else given
        found = dt.autograd.grad(y, [*wanted.values()], allow_unused=True)
        for (name, t), g in zip(wanted.items(), found, strict=True):
            have = dt.zeros_like(t) if g is None else g
            assert not bool(dt.isnan(have).any()), f"{key}-{case} {d} at {v} by {name}"
            if not mp.isfinite(row.log_density(at, **exact)) or v in CORNERS:
                continue
            want = derivative(row, name, at, exact)
            assert_close(have, want, 1e3 * EPS[d], f"{key}-{case} {d} at {v} by {name}")


@pytest.mark.parametrize("d", EPS)
@pytest.mark.parametrize(("key", "case"), CASES, ids=IDS)
def test_gradients_of_entropy_at_borders_equal_the_closed_form(key: str, case: int, d: str) -> None:
    p, given, exact = prepared(key, case, d, grad=True)
    if "entropy" not in (moments := ROWS[key].moments(**exact)):
        with pytest.raises(dt.UnsupportedError, match="entropy"):
            p.entropy()
        return
    found = dt.autograd.grad(p.entropy(), [*given.values()], allow_unused=True)
    closed = ROWS[key]._replace(log_density=lambda x, **p: ROWS[key].moments(**p)["entropy"])
    for (name, t), g in zip(given.items(), found, strict=True):
        have = dt.zeros_like(t) if g is None else g
        inside = name != "probs" or all(exact[name])  # otherwise the entropy has an infinite slope
        want = derivative(closed, name, None, exact) if inside else np.zeros(t.shape, dtype=object)
        if any(abs(v) > float(dt.finfo(t.dtype).max) for v in np.ravel(want)):
            continue
        assert not bool(dt.isnan(have).any()), f"{key}-{case} {d} by {name}"
        if inside:
            close = 1e3 * EPS[d] * max(1.0, float(moments.get("largest", 1)))
            assert_close(have, want, close, f"{key}-{case} {d} by {name}")


OUTSIDE = {
    "Categorical": [-1.0, 99.0],
    "Dirichlet": [-0.5],
    "Multinomial": [-1.0],
    "Independent": [-1.0],
    "MixtureSameFamily": [-1.0, -INF],
    "TransformedDistribution-exp": [-INF, -1.0, 0.0],
    "TransformedDistribution-sigmoid": [-INF, -1.0, 2.0, INF],
    "TransformedDistribution-tanh": [-INF, -2.0, -1.0, 1.0, 2.0, INF],
    "TransformedDistribution-softplus": [-INF, -1.0, 0.0],
    "TransformedDistribution-affine": [-INF, INF],
}


@pytest.mark.parametrize("d", EPS)
@pytest.mark.parametrize(("key", "case"), CASES, ids=IDS)
def test_log_prob_outside_of_the_support_is_minus_infinity_without_gradient(
    key: str, case: int, d: str
) -> None:
    row = ROWS[key]
    inside = np.array(row.cases[case][1][0], dtype=float)
    for v in OUTSIDE.get(key, OUTSIDE.get(key.split("-")[0], [])):
        p, given, _ = prepared(key, case, d, grad=True)
        at = np.array(v)
        if inside.ndim:
            at = inside.copy()
            at[-1] = v
        x = dt.asarray(at.tolist(), dtype=d)
        x = x.requires_grad_() if row.has_slope else x
        y = p.log_prob(x)
        assert y.item() == -INF, (key, case, v, y)
        leaves = [*given.values(), x] if row.has_slope else [*given.values()]
        for g in dt.autograd.grad(y, leaves, allow_unused=True) if y.requires_grad else ():
            assert g is None or not bool(dt.isnan(g).any()), (key, case, v, g)


@pytest.mark.parametrize("n", [0, 3])
@pytest.mark.parametrize(("key", "case"), CASES, ids=IDS)
def test_batches_at_borders_repeat_the_single_distribution(key: str, case: int, n: int) -> None:
    row = ROWS[key]
    one, given, _ = prepared(key, case, "float64")
    wide = {k: dt.stack([t] * n) if n else dt.zeros((0, *t.shape), dtype="float64")
            for k, t in given.items()}  # fmt: skip
    wide = {k: t.requires_grad_() for k, t in wide.items()}
    p = row.build(**wide)
    assert p.batch_shape == (n,) and p.event_shape == one.event_shape
    assert p.sample((2,)).shape == (2, n, *p.event_shape)
    values = dt.asarray(row.cases[case][1], dtype="float64")
    have = p.log_prob(dt.expand_dims(values, 1))
    want = dt.stack([one.log_prob(v) for v in dt.unstack(values)])
    np.testing.assert_array_equal(have.numpy(), np.stack([want.numpy()] * n, 1) if n
                                  else np.zeros((len(want), 0)))  # fmt: skip
    have[dt.isfinite(have)].sum().backward()
    assert all(t.grad is None or t.grad.shape == t.shape for t in wide.values())
    for what in row.moments(**{k: numbers_of(t) for k, t in given.items()}):
        if what != "largest":
            x, y = (q.entropy() if what == "entropy" else getattr(q, what) for q in (p, one))
            np.testing.assert_array_equal(x.numpy(), np.broadcast_to(y.numpy(), (n, *y.shape)))


def divergence_of_kinds(a: Params, b: Params) -> Any:
    pairs = zip(chances(**a), chances(**b), strict=True)
    return sum(0 if p == 0 else p * (log(p) - log(q)) for p, q in pairs)


def divergence_of_shares(a: Params, b: Params) -> Any:
    (a,), (b,) = a.values(), b.values()
    first, second = sum(a), sum(b)
    slopes = [(v - w) * (mp.digamma(v) - mp.digamma(first)) for v, w in zip(a, b, strict=True)]
    norms = [mp.loggamma(w) - mp.loggamma(v) for v, w in zip(a, b, strict=True)]
    return mp.loggamma(first) - mp.loggamma(second) + sum(slopes) + sum(norms)


def divergence_of_vectors(a: Params, b: Params) -> Any:
    a, b = dict(a), dict(b)
    off = mp.matrix((b.pop("loc") - a.pop("loc")).tolist())
    first, second = covariance_of(**a), covariance_of(**b)
    inverse = second**-1
    product = inverse * first
    trace = sum(product[i, i] for i in range(first.rows))
    logs = mp.log(mp.det(second)) - mp.log(mp.det(first))
    return (trace - first.rows + (off.T * inverse * off)[0] + logs) / 2


def divergence_of_waits(a: Params, b: Params) -> Any:
    ratios = b["rate"] / a["rate"]
    return sum(r - 1 - mp.log(r) for r in ratios)


def divergence_of_normals(a: Params, b: Params) -> Any:
    ratio, off = a["scale"] / b["scale"], (a["loc"] - b["loc"]) / b["scale"]
    return (ratio**2 + off**2 - 1) / 2 - mp.log(ratio)


DIVERGENCES: dict[str, Callable[[Params, Params], Any]] = {
    "Categorical": divergence_of_kinds,
    "OneHotCategorical": divergence_of_kinds,
    "OneHotCategoricalStraightThrough": divergence_of_kinds,
    "Dirichlet": divergence_of_shares,
    "MultivariateNormal": divergence_of_vectors,
    "Independent": divergence_of_waits,
    "TransformedDistribution-exp": divergence_of_normals,
    "TransformedDistribution-sigmoid": divergence_of_normals,
    "TransformedDistribution-tanh": divergence_of_normals,
    "TransformedDistribution-softplus": divergence_of_normals,
    "TransformedDistribution-affine": divergence_of_normals,
}


def sizes_of(given: Params) -> list[int]:
    return [len(v) if isinstance(v, tuple) else 0 for v in given.values()]


PAIRS = [
    (key, i, j)
    for key in DIVERGENCES
    for i, (a, _) in enumerate(ROWS[key].cases)
    for j, (b, _) in enumerate(ROWS[key].cases)
    if sizes_of(a)[:1] == sizes_of(b)[:1]
]


@pytest.mark.parametrize("d", EPS)
@pytest.mark.parametrize(("key", "i", "j"), PAIRS, ids=[f"{k}-{i}-{j}" for k, i, j in PAIRS])
def test_divergence_at_borders_equals_the_closed_form(key: str, i: int, j: int, d: str) -> None:
    (p, ours, a), (q, theirs, b) = (prepared(key, case, d, grad=True) for case in (i, j))
    if key.startswith("Transformed"):
        q = D.TransformedDistribution(q.base_dist, p.transforms, validate_args=False)
    have = D.kl_divergence(p, q)
    want = DIVERGENCES[key](a, b)

    def closed(which: int) -> Row:
        pair = [a, b]

        def f(x: Any, **moved: Any) -> Any:
            pair[which] = moved
            return DIVERGENCES[key](*pair)

        return ROWS[key]._replace(log_density=f, has_slope=False)

    rows = [(closed(0), a, ours), (closed(1), b, theirs)]
    scale = max([1.0, *(condition(r, None, x) for r, x, _ in rows if mp.isfinite(want))])
    terms = [abs(mp.loggamma(v)) for g in (a, b) for v in g.get("concentration", ())]
    scale = max([scale, *map(float, terms)])
    assert_close(have, want, 32 * EPS[d] * scale, f"{key} {i} {j} {d}")
    if not have.requires_grad:
        return
    for row, x, leaves in rows:
        found = dt.autograd.grad(have, [*leaves.values()], allow_unused=True, retain_graph=True)
        for (name, t), g in zip(leaves.items(), found, strict=True):
            top = float(dt.finfo(t.dtype).max)
            if any(v**-2 > top for v in x.get("concentration", ())):  # so large is its trigamma
                continue
            if g is not None and bool(dt.isnan(g).any()):  # only if the slope overflows
                slopes = derivative(row, name, None, x)
                assert max(map(abs, np.ravel(slopes))) > top, (key, i, j, g)


@pytest.mark.parametrize("key", ["Multinomial-1", "MixtureSameFamily"])
def test_divergence_without_a_rule_raises_not_yet_error(key: str) -> None:
    p, _, _ = prepared(key, 0, "float64")
    with pytest.raises(dt.UnsupportedError, match="kl_divergence: dovetail has no rule"):
        D.kl_divergence(p, p)


@pytest.mark.parametrize("d", EPS)
def test_mixture_with_components_of_density_zero_or_infinity_is_right(d: str) -> None:
    for given in ({"probs": (0.25, 0.75)}, {"logits": (-INF, 0.0)}, {"probs": (0.0, 1.0)}):
        chosen = tensors_of(given, d, grad=True)
        low = dt.asarray((0.0, 2.0), dtype=d).requires_grad_()
        parts = D.Uniform(low, low + 1.0, validate_args=False)
        mix = D.MixtureSameFamily(D.Categorical(**chosen), parts, validate_args=False)
        p = chances(**{k: numbers_of(v) for k, v in chosen.items()})
        for x, want in ((0.5, log(p[0])), (2.5, log(p[1])), (1.5, -mp.inf), (-9.0, -mp.inf)):
            y = mix.log_prob(dt.asarray(x, dtype=d))
            assert_close(y, want, 4 * EPS[d], f"{given} at {x}")
            leaves = [*chosen.values(), low]
            for g in dt.autograd.grad(y, leaves, allow_unused=True, retain_graph=True):
                assert g is None or not bool(dt.isnan(g).any()), (given, x, g)
    infinite = D.Gamma(dt.asarray((0.5, 2.0), dtype=d), 1.0, validate_args=False)
    mix = D.MixtureSameFamily(D.Categorical(dt.asarray((0.5, 0.5), dtype=d)), infinite)
    assert mix.log_prob(dt.asarray(0.0, dtype=d)).item() == INF


ENDS = [
    (D.ExpTransform(), -INF, 0.0, -INF), (D.ExpTransform(), INF, INF, INF),
    (D.SoftplusTransform(), -INF, 0.0, -INF), (D.SoftplusTransform(), INF, INF, 0.0),
    (D.TanhTransform(), -INF, -1.0, -INF), (D.TanhTransform(), INF, 1.0, -INF),
    (D.PowerTransform(0.5), 0.0, 0.0, INF), (D.PowerTransform(2.0), 0.0, 0.0, -INF),
    (D.PowerTransform(2.0), INF, INF, INF), (D.PowerTransform(-1.0), INF, 0.0, -INF),
    (D.AffineTransform(1.0, -2.0), INF, -INF, math.log(2.0)),
    (D.AffineTransform(1.0, -2.0), -INF, INF, math.log(2.0)),
]  # fmt: skip


@pytest.mark.parametrize("d", EPS)
@pytest.mark.parametrize(("transform", "x", "y", "stretch"), ENDS)
def test_transform_at_the_ends_of_its_domain_has_the_limits(
    transform: Any, x: float, y: float, stretch: float, d: str
) -> None:
    start = dt.asarray(x, dtype=d)
    end = transform(start)
    assert end.item() == y and transform.inv(end).item() == x
    assert_close(transform.log_abs_det_jacobian(start, end), stretch, EPS[d], repr(transform))


@pytest.mark.parametrize("d", EPS)
@pytest.mark.parametrize("kind", [D.PowerTransform, lambda k: D.AffineTransform(0.5, k)])
@pytest.mark.parametrize("k", [0, 0.0, -0.0, np.float32(0), -2, INF, -INF, math.nan])
def test_transform_with_a_number_equals_that_with_a_tensor(kind: Any, k: float, d: str) -> None:
    x = dt.asarray((0.25, 1.0, 2.0), dtype=d)
    number, tensor = kind(k), kind(dt.asarray(float(k), dtype=d))
    for name, f in {
        "call": lambda t: t._call(x),
        "inverse": lambda t: t._inverse(x),
        "jacobian": lambda t: t.log_abs_det_jacobian(x, x),
        "sign": lambda t: dt.asarray(t.sign, dtype=d),
    }.items():
        np.testing.assert_array_equal(f(number).numpy(), f(tensor).numpy(), name)


@pytest.mark.parametrize("d", EPS)
def test_sigmoid_transform_stays_between_zero_and_one(d: str) -> None:
    t, facts = D.SigmoidTransform(), dt.finfo(getattr(dt, d))
    ends = t(dt.asarray((-INF, INF), dtype=d))
    assert ends.tolist() == [float(facts.smallest_normal), 1.0 - float(facts.eps)]
    assert bool(dt.isfinite(t.inv(dt.asarray((0.0, 1.0), dtype=d))).all())
    assert t.log_abs_det_jacobian(dt.asarray((-INF, INF), dtype=d), ends).tolist() == [-INF, -INF]


@pytest.mark.parametrize("d", EPS)
def test_sample_of_tanh_that_rounds_to_one_has_a_cached_density(d: str) -> None:
    loc = dt.asarray((-50.0, 50.0), dtype=d).requires_grad_()
    base = D.Normal(loc, 1.0)
    p = D.TransformedDistribution(base, D.TanhTransform(cache_size=1))
    y = p.rsample(generator=dt.random.default_rng(1))
    assert y.tolist() == [-1.0, 1.0]
    x = numbers_of(p.transforms[0].inv(y))
    want = [normal(v - m) + 2 * mp.log(mp.cosh(v)) for v, m in zip(x, (-50, 50), strict=True)]
    have = p.log_prob(y)
    assert_close(have, np.array(want), 64 * EPS[d], "tanh")
    (g,) = dt.autograd.grad(have.sum(), [loc])
    assert bool(dt.isfinite(g).all())


HALVES = ("float16", "bfloat16")


def is_within_a_unit(x: float, y: float, d: str) -> bool:
    """Return True if a half is adjacent to a number, or infinite if the number is too large."""
    facts = dt.finfo(getattr(dt, d))
    if math.isnan(y) or abs(y) > float(facts.max):
        return math.isnan(x) if math.isnan(y) else abs(x) >= float(facts.max) and (x > 0) == (y > 0)
    unit = 2.0 ** math.floor(math.log2(max(abs(y), float(facts.smallest_normal))))
    return abs(x - y) <= unit * float(facts.eps)


def answers(p: Any, values: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the result of each method and property that returns values."""
    yield from (answer(what, lambda what=what: getattr(p, what)) for what in
                ("mean", "mode", "variance", "stddev"))  # fmt: skip
    yield from (answer(what, getattr(p, what)) for what in ("entropy", "perplexity"))
    for x, what in product(values, ("log_prob", "cdf")):
        yield answer(f"{what} at {x.tolist()}", lambda what=what, x=x: getattr(p, what)(x))
    for share in (0.0, 0.25, 0.75, 1.0):
        x = dt.asarray(share, dtype=values[0].dtype)
        yield answer(f"icdf at {share}", lambda x=x: p.icdf(x))


def answer(what: str, value: Callable[[], Any]) -> tuple[str, Any]:
    try:
        return what, value()
    except dt.UnsupportedError:
        return what, None


def assert_halves_are_rounded(
    build: Callable[..., Any], given: Params, values: list[Any], d: str, what: str
) -> None:
    """Compare results of halves with those of the same numbers in float64.

    If float32 is a unit of the half off, because its terms cancel or leave its range, the result is
    that of float32: the tests of float32 bound its error.
    """
    halves, points = tensors_of(given, d), [dt.asarray(v, dtype=d) for v in values]
    if is_beyond(given, halves):
        return
    p, q, r = (
        answers(build(**{k: v.astype(wide) for k, v in halves.items()}),
                [x.astype(wide) for x in points])
        for wide in (d, "float32", "float64")
    )  # fmt: skip
    count = 0
    for (name, have), (_, near), (_, want) in zip(p, q, r, strict=True):
        assert (have is None) == (want is None), (what, name)
        if have is None:
            continue
        dtype = getattr(dt, d) if want.dtype.kind == "f" else want.dtype
        assert have.dtype is dtype and have.shape == want.shape, (what, name, have, want)
        for x, y, z in zip(*(v.reshape(-1).tolist() for v in (have, near, want)), strict=True):
            same = is_within_a_unit(x, z, d) or is_within_a_unit(x, y, d)
            assert same, (what, name, d, have, near, want)
        count += 1
    assert count > 3


def is_beyond(given: Params, halves: Params) -> bool:
    """Return True if a parameter leaves the range of the half, or a matrix becomes singular."""
    for name, v in halves.items():
        x, y = np.array(given[name], dtype=float), v.astype(dt.float64).numpy()
        if (np.isfinite(x) != np.isfinite(y)).any() or ((x == 0.0) != (y == 0.0)).any():
            return True
        if name.endswith("matrix") and np.linalg.det(y) == 0.0:
            return True
    return False


@pytest.mark.parametrize("d", HALVES)
@pytest.mark.parametrize(("key", "case"), CASES, ids=IDS)
def test_half_results_are_the_rounded_float64_results(key: str, case: int, d: str) -> None:
    given, values = ROWS[key].cases[case]
    assert_halves_are_rounded(ROWS[key].build, given, values, d, f"{key}-{case}")


@pytest.mark.parametrize("d", HALVES)
@pytest.mark.parametrize(("key", "i", "j"), PAIRS, ids=[f"{k}-{i}-{j}" for k, i, j in PAIRS])
def test_half_divergence_is_the_rounded_float64_divergence(
    key: str, i: int, j: int, d: str
) -> None:
    given = [ROWS[key].cases[case][0] for case in (i, j)]
    halves = [tensors_of(g, d) for g in given]
    if any(map(is_beyond, given, halves)):
        return
    found = []
    for wide in (d, "float32", "float64"):
        p, q = (ROWS[key].build(**{k: v.astype(wide) for k, v in g.items()}) for g in halves)
        if key.startswith("Transformed"):
            q = D.TransformedDistribution(q.base_dist, p.transforms, validate_args=False)
        found.append(D.kl_divergence(p, q))
    x, y, z = (v.item() for v in found)
    assert found[0].dtype is getattr(dt, d)
    assert is_within_a_unit(x, z, d) or is_within_a_unit(x, y, d), (key, i, j, d, found)
