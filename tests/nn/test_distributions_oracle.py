"""Distributions against PyTorch: values and gradients over batches of parameters."""

from __future__ import annotations

import warnings
from typing import Any

import dovetail as dt
import numpy as np
import pytest

torch = pytest.importorskip("torch")

D, TD = dt.distributions, torch.distributions

A = np.array([0.3, 1.0, 2.5])
B = np.array([[0.4], [3.0]])
PLACE = np.array([-1.5, 0.0, 2.0])
P = np.array([[0.1, 0.5, 0.9], [0.35, 0.7, 0.25]])
KINDS = np.array([[0.2, 0.5, 0.3], [0.7, 0.1, 0.2]])
LOGITS = np.log(KINDS) + 1.0
REALS = np.array([[-2.0, 0.3, 4.0], [0.5, -0.7, 1.1]])
ABOVE = np.array([[0.05, 1.3, 4.0], [0.6, 2.0, 0.9]])
SHARES = np.array([[0.05, 0.3, 0.99], [0.6, 0.5, 0.2]])
COUNTS = np.array([[0.0, 2.0, 1.0], [3.0, 1.0, 0.0]])
BITS = np.array([[0.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
HOT = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
VECTOR = np.array([0.5, -1.0, 2.0])
COVARIANCE = np.array([[2.0, 0.3, -0.2], [0.3, 1.0, 0.4], [-0.2, 0.4, 1.5]])
LOWER = np.linalg.cholesky(COVARIANCE)
MANY = np.stack([LOWER, LOWER * 2.0])

# name, parameters by name, a value
CASES: list[tuple[str, dict[str, Any], Any]] = [
    ("Normal", {"loc": PLACE, "scale": B}, REALS),
    ("Normal", {"loc": 0.5, "scale": 2.0}, REALS),
    ("LogNormal", {"loc": PLACE, "scale": B}, ABOVE),
    ("HalfNormal", {"scale": A}, ABOVE),
    ("MultivariateNormal", {"loc": VECTOR, "covariance_matrix": COVARIANCE}, REALS),
    ("MultivariateNormal", {"loc": VECTOR, "precision_matrix": COVARIANCE}, REALS),
    ("MultivariateNormal", {"loc": VECTOR, "scale_tril": LOWER}, REALS),
    ("MultivariateNormal", {"loc": VECTOR, "scale_tril": MANY}, REALS),
    ("MultivariateNormal", {"loc": VECTOR, "scale_tril": MANY}, REALS[0]),
    ("Uniform", {"low": PLACE - 3.0, "high": PLACE + 3.0}, PLACE + 0.5),
    ("Bernoulli", {"probs": P}, BITS),
    ("Bernoulli", {"logits": REALS}, BITS),
    ("Categorical", {"probs": KINDS}, np.array([[0, 1], [2, 2], [1, 0]])),
    ("Categorical", {"logits": LOGITS}, np.array([1, 2])),
    ("Categorical", {"probs": KINDS[0]}, np.array([[0, 1], [2, 2]])),
    ("OneHotCategorical", {"probs": KINDS}, HOT),
    ("OneHotCategorical", {"logits": LOGITS}, HOT),
    ("Multinomial", {"total_count": 4, "probs": KINDS}, np.array([[1.0, 2, 1], [4, 0, 0]])),
    ("Multinomial", {"total_count": 4, "logits": LOGITS}, np.array([[1.0, 2, 1], [4, 0, 0]])),
    ("Binomial", {"total_count": 4, "probs": P}, COUNTS),
    ("Binomial", {"total_count": 4, "logits": REALS}, COUNTS),
    ("NegativeBinomial", {"total_count": 4.0, "probs": P * 0.97}, COUNTS),
    ("NegativeBinomial", {"total_count": 2.5, "logits": REALS}, COUNTS),
    ("Poisson", {"rate": A}, COUNTS),
    ("Geometric", {"probs": P}, COUNTS),
    ("Geometric", {"logits": REALS}, COUNTS),
    ("Exponential", {"rate": A}, ABOVE),
    ("Gamma", {"concentration": A, "rate": B}, ABOVE),
    ("Chi2", {"df": A}, ABOVE),
    ("InverseGamma", {"concentration": A + 2.0, "rate": B}, ABOVE),
    ("FisherSnedecor", {"df1": A + 2.0, "df2": B + 5.0}, ABOVE),
    ("Beta", {"concentration1": A, "concentration0": B}, SHARES),
    ("Dirichlet", {"concentration": np.stack([A, A[::-1] + 1.0])}, KINDS),
    ("Dirichlet", {"concentration": A}, KINDS),
    ("Laplace", {"loc": PLACE, "scale": B}, REALS),
    ("Cauchy", {"loc": PLACE, "scale": B}, REALS),
    ("HalfCauchy", {"scale": A}, ABOVE),
    ("StudentT", {"df": A + 2.5, "loc": PLACE, "scale": B}, REALS),
    ("Gumbel", {"loc": PLACE, "scale": B}, REALS),
    ("Weibull", {"scale": A, "concentration": B + 1.0}, ABOVE),
    ("Pareto", {"scale": A, "alpha": B + 2.1}, ABOVE + 3.0),
]
IDS = [f"{name}-{'-'.join(given)}-{i}" for i, (name, given, _) in enumerate(CASES)]
NEEDS_WHOLE = {"total_count"}


def ours(given: dict[str, Any], dtype: dt.DType) -> dict[str, Any]:
    return {
        k: dt.asarray(v, dtype=dtype).requires_grad_() if isinstance(v, np.ndarray) else v
        for k, v in given.items()
    }


def theirs(given: dict[str, Any], dtype: Any = None) -> dict[str, Any]:
    # numbers are float32 in dovetail where they are in torch
    return {
        k: torch.tensor(v, dtype=dtype or torch.float64, requires_grad=True)
        if isinstance(v, np.ndarray) else v
        for k, v in given.items()
    }  # fmt: skip


def compare(have: dt.Tensor, want: Any, close: float, what: str) -> None:
    found, wanted = have.detach().numpy(), want.detach().numpy()
    assert found.shape == wanted.shape, what
    np.testing.assert_allclose(
        found.astype(np.float64), wanted.astype(np.float64), rtol=close, atol=close, err_msg=what
    )


def gradients(f: Any, given: dict[str, Any]) -> list[Any] | None:
    tensors = [v for v in given.values() if hasattr(v, "requires_grad") and v.requires_grad]
    if not tensors or not f.requires_grad:
        return None
    weights = np.linspace(0.5, 1.5, int(np.prod(f.shape))).reshape(f.shape)
    if isinstance(f, dt.Tensor):
        total = (f * dt.asarray(weights, dtype=f.dtype)).sum()
        return [
            dt.zeros_like(t) if g is None else g
            for t, g in zip(
                tensors,
                dt.autograd.grad(total, tensors, retain_graph=True, allow_unused=True),
                strict=True,
            )
        ]
    total = (f * torch.tensor(weights, dtype=f.dtype)).sum()
    return [
        torch.zeros_like(t) if g is None else g
        for t, g in zip(
            tensors, torch.autograd.grad(total, tensors, retain_graph=True, allow_unused=True),
            strict=True,
        )
    ]  # fmt: skip


def check(
    have: Any, want: Any, a: dict[str, Any], b: dict[str, Any], close: float, what: str
) -> None:
    compare(have, want, close, what)
    if not bool(torch.isfinite(want).all()):
        return
    mine, other = gradients(have, a), gradients(want, b)
    assert (mine is None) == (other is None), what
    for g, w in zip(mine or (), other or (), strict=True):
        compare(g, w, 10 * close, f"gradient of {what}")


@pytest.mark.parametrize(("name", "given", "value"), CASES, ids=IDS)
@pytest.mark.parametrize(
    ("device", "d"),
    [
        ("reference", "float64"),
        ("reference", "float32"),
        pytest.param("cpu", "float64", marks=pytest.mark.exhaustive),
        pytest.param("cpu", "float32", marks=pytest.mark.exhaustive),
    ],
    indirect=["device"],
)
def test_values_and_gradients_equal_pytorch(
    device: dt.Device, name: str, given: dict[str, Any], value: Any, d: str
) -> None:
    close = 2e-9 if d == "float64" else 2e-5
    numbers = not any(isinstance(v, np.ndarray) for v in given.values())
    if numbers:
        close = 1e-5
    a, b = ours(given, getattr(dt, d)), theirs(given)
    p, q = getattr(D, name)(**a), getattr(TD, name)(**b)
    assert p.batch_shape == tuple(q.batch_shape) and p.event_shape == tuple(q.event_shape)
    assert p.has_rsample == q.has_rsample or name == "OneHotCategoricalStraightThrough"
    assert p.has_enumerate_support == q.has_enumerate_support
    whole = value.dtype.kind == "i"
    x = dt.asarray(value) if whole else dt.asarray(value, dtype=getattr(dt, d)).requires_grad_()
    y = torch.tensor(value) if whole else torch.tensor(value, requires_grad=True)
    discrete = q.support.is_discrete
    a2, b2 = (a, b) if discrete else ({**a, "value": x}, {**b, "value": y})
    check(p.log_prob(x), q.log_prob(y), a2, b2, close, "log_prob")
    for what in ("mean", "variance", "stddev", "mode"):
        try:
            want = getattr(q, what)
        except NotImplementedError:
            continue
        if name == "Beta" and what == "mode":
            # The density has its supremum at an end, where it grows fastest. PyTorch takes either
            # end if both concentrations are below 1, and gives NaN if one of them is 1.
            one, zero = q.concentration1, q.concentration0
            at_end = (one <= 1) & (zero <= 1) & (one + zero < 2)
            want = torch.where(at_end, torch.where(one >= zero, 1.0, 0.0), want)
        compare(getattr(p, what), want, close, what)
    rounded = 1e-7 if name == "Multinomial" else close  # PyTorch's has lgamma(n) in float32
    try:
        check(p.entropy(), q.entropy(), a, b, max(rounded, close), "entropy")
    except NotImplementedError:
        with pytest.raises(NotImplementedError):
            q.entropy()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = q.cdf(y)
    except NotImplementedError:
        pass
    else:
        params = (a, b) if name in ("Gamma", "Chi2", "InverseGamma") else (a2, b2)
        if name in ("Gamma", "Chi2", "InverseGamma"):
            compare(p.cdf(x), want, close, "cdf")
        else:
            check(p.cdf(x), want, *params, close, "cdf")
    u = SHARES if q.batch_shape in ((), (3,), (2, 3)) else SHARES[:, :1]
    try:
        want = q.icdf(torch.tensor(u))
    except (NotImplementedError, AttributeError):
        return
    check(p.icdf(dt.asarray(u, dtype=getattr(dt, d))), want, a, b, 20 * close, "icdf")


PAIRS: dict[str, dict[str, Any]] = {
    "Normal": {"loc": PLACE, "scale": B},
    "LogNormal": {"loc": PLACE, "scale": B},
    "HalfNormal": {"scale": A},
    "Uniform": {"low": np.array([[0.1, 0.2, 0.3]] * 2), "high": np.array([[0.5, 0.9, 0.7]] * 2)},
    "Bernoulli": {"probs": P},
    "Binomial": {"total_count": 4, "probs": P},
    "Categorical": {"probs": KINDS},
    "OneHotCategorical": {"probs": KINDS},
    "Poisson": {"rate": A},
    "Geometric": {"probs": P},
    "Exponential": {"rate": A},
    "Gamma": {"concentration": A, "rate": B},
    "Chi2": {"df": A},
    "Beta": {"concentration1": A, "concentration0": B},
    "Dirichlet": {"concentration": np.stack([A, A[::-1] + 1.0])},
    "Laplace": {"loc": PLACE, "scale": B},
    "Cauchy": {"loc": PLACE, "scale": B},
    "Gumbel": {"loc": PLACE, "scale": B},
    "Pareto": {"scale": A, "alpha": B + 2.1},
    "MultivariateNormal": {"loc": VECTOR, "covariance_matrix": COVARIANCE},
}

FINITE: dict[tuple[str, str], dict[str, Any]] = {  # where those of above would all be infinite
    ("Uniform", "Pareto"): {"scale": np.array([0.05, 0.5, 0.2]), "alpha": B + 2.1},
    ("Beta", "Uniform"): {
        "low": np.array([[-1.0, 0.5, -2.0]] * 2),
        "high": np.array([[2.0] * 3] * 2),
    },
}


def other_than(given: dict[str, Any]) -> dict[str, Any]:
    """Return slightly different parameters."""
    found = {}
    for name, v in given.items():
        if name in ("covariance_matrix",):
            found[name] = v + 0.5 * np.eye(3)
        elif name == "low":
            found[name] = v - 0.05
        elif name == "probs":
            found[name] = v[::-1].copy()
        elif isinstance(v, np.ndarray):
            found[name] = v * (1.2 if (v > 0).all() else 1.0) + (0.0 if (v > 0).all() else 0.3)
        else:
            found[name] = v
    return found


def registered(first: str, second: str) -> bool:
    from torch.distributions.kl import _dispatch_kl

    rule = _dispatch_kl(getattr(TD, first), getattr(TD, second))
    return rule is not NotImplemented and (
        first == second or rule.__name__ not in ("_kl_expfamily_expfamily",)
    )


ALL = [(f, s) for f in PAIRS for s in PAIRS if registered(f, s)]


def test_every_kl_pair_of_pytorch_is_registered() -> None:
    assert len(ALL) > 55
    assert ("Normal", "Gumbel") in ALL and ("Uniform", "Pareto") in ALL


@pytest.mark.parametrize(
    "device",
    ["reference", pytest.param("cpu", marks=pytest.mark.exhaustive)],
    indirect=True,
)
@pytest.mark.parametrize(("first", "second"), ALL, ids=[f"{f}-{s}" for f, s in ALL])
def test_kl_divergences_equal_pytorch(device: dt.Device, first: str, second: str) -> None:
    left, right = PAIRS[first], FINITE.get((first, second), PAIRS[second])
    if first == second:
        right = other_than(right)
    a, b, c, d = ours(left, dt.float64), ours(right, dt.float64), theirs(left), theirs(right)
    try:
        want = TD.kl_divergence(getattr(TD, first)(**c), getattr(TD, second)(**d))
    except NotImplementedError:
        with pytest.raises(dt.UnsupportedError):
            D.kl_divergence(getattr(D, first)(**a), getattr(D, second)(**b))
        return
    have = D.kl_divergence(getattr(D, first)(**a), getattr(D, second)(**b))
    every = {f"p_{k}": v for k, v in a.items()} | {f"q_{k}": v for k, v in b.items()}
    others = {f"p_{k}": v for k, v in c.items()} | {f"q_{k}": v for k, v in d.items()}
    if not bool(torch.isfinite(want).all()):
        wanted = np.broadcast_to(want.detach().numpy(), have.shape)
        np.testing.assert_allclose(have.detach().numpy(), wanted, rtol=1e-9)
    else:
        check(have, want, every, others, 2e-9, "kl")
