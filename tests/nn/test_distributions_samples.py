"""Samples of distributions: moments, distances of distribution functions, shapes, streams."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest

D = dt.distributions
N = 20_000
FAR = 1.95 / math.sqrt(N)  # the Kolmogorov-Smirnov distance that 1 of 1000 samples exceeds

A, B = 2.5, 1.5
ONE: list[tuple[str, dict[str, Any]]] = [
    ("Normal", {"loc": 1.0, "scale": 2.0}),
    ("LogNormal", {"loc": 0.5, "scale": 0.4}),
    ("HalfNormal", {"scale": 2.0}),
    ("Uniform", {"low": -1.0, "high": 3.0}),
    ("Exponential", {"rate": 2.0}),
    ("Gamma", {"concentration": 0.3, "rate": 2.0}),
    ("Gamma", {"concentration": 2.5, "rate": 2.0}),
    ("Chi2", {"df": 3.0}),
    ("InverseGamma", {"concentration": 6.0, "rate": 2.0}),
    ("FisherSnedecor", {"df1": 4.0, "df2": 12.0}),
    ("Beta", {"concentration1": 0.4, "concentration0": 0.7}),
    ("Beta", {"concentration1": 2.5, "concentration0": 5.0}),
    ("Laplace", {"loc": 1.0, "scale": 2.0}),
    ("Cauchy", {"loc": 1.0, "scale": 2.0}),
    ("HalfCauchy", {"scale": 2.0}),
    ("StudentT", {"df": 5.0, "loc": 1.0, "scale": 2.0}),
    ("Gumbel", {"loc": 1.0, "scale": 2.0}),
    ("Weibull", {"scale": 2.0, "concentration": 1.5}),
    ("Pareto", {"scale": 2.0, "alpha": 5.0}),
    ("Bernoulli", {"probs": 0.3}),
    ("Binomial", {"total_count": 7, "probs": 0.3}),
    ("NegativeBinomial", {"total_count": 3.0, "probs": 0.4}),
    ("Poisson", {"rate": 3.5}),
    ("Geometric", {"probs": 0.3}),
]
OFTEN = ("Normal", "Uniform", "Gamma", "Bernoulli", "Gumbel")  # the others in exhaustive runs
SOME = [
    pytest.param(
        *case, id=f"{case[0]}-{i}", marks=() if case[0] in OFTEN else pytest.mark.exhaustive
    )
    for i, case in enumerate(ONE)
]
IDS = [f"{name}-{i}" for i, (name, _) in enumerate(ONE)]
WHOLE = {"Bernoulli", "Binomial", "NegativeBinomial", "Poisson", "Geometric"}


def on(given: dict[str, Any], d: str = "float32") -> dict[str, Any]:
    """Return parameters as tensors on the default device."""
    return {k: dt.asarray(v, dtype=getattr(dt, d)) for k, v in given.items()}


def drawn(p: Any, shape: tuple[int, ...], seed: int = 3) -> np.ndarray[Any, Any]:
    return p.sample(shape, generator=dt.random.default_rng(seed)).numpy().astype(np.float64)


@pytest.fixture(autouse=True)
def on_reference(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run on the reference unless a test names its devices: bits are the same on all."""
    if "device" in request.fixturenames:
        yield
        return
    before = dt.default_device()
    dt.set_default_device("reference")
    yield
    dt.set_default_device(before)


@pytest.mark.parametrize(("name", "given"), ONE, ids=IDS)
def test_sample_moments_equal_the_distribution(name: str, given: dict[str, Any]) -> None:
    p = getattr(D, name)(**on(given))
    n = N // 8 if name in WHOLE else N
    x = drawn(p, (n,))
    mean, variance = p.mean.item(), p.variance.item()
    if not (math.isfinite(mean) and math.isfinite(variance)):
        return
    assert abs(x.mean() - mean) < 5.0 * math.sqrt(variance / n)
    spread = ((x - mean) ** 2).std() / math.sqrt(n)
    assert abs(((x - mean) ** 2).mean() - variance) < 6.0 * spread


@pytest.mark.parametrize(("name", "given"), ONE, ids=IDS)
def test_kolmogorov_smirnov_distance_is_small(name: str, given: dict[str, Any]) -> None:
    stats = pytest.importorskip("scipy.stats")
    g = given
    theirs = {
        "Normal": lambda: stats.norm(g["loc"], g["scale"]),
        "LogNormal": lambda: stats.lognorm(g["scale"], scale=math.exp(g["loc"])),
        "HalfNormal": lambda: stats.halfnorm(scale=g["scale"]),
        "Uniform": lambda: stats.uniform(g["low"], g["high"] - g["low"]),
        "Exponential": lambda: stats.expon(scale=1 / g["rate"]),
        "Gamma": lambda: stats.gamma(g["concentration"], scale=1 / g["rate"]),
        "Chi2": lambda: stats.chi2(g["df"]),
        "InverseGamma": lambda: stats.invgamma(g["concentration"], scale=g["rate"]),
        "FisherSnedecor": lambda: stats.f(g["df1"], g["df2"]),
        "Beta": lambda: stats.beta(g["concentration1"], g["concentration0"]),
        "Laplace": lambda: stats.laplace(g["loc"], g["scale"]),
        "Cauchy": lambda: stats.cauchy(g["loc"], g["scale"]),
        "HalfCauchy": lambda: stats.halfcauchy(scale=g["scale"]),
        "StudentT": lambda: stats.t(g["df"], g["loc"], g["scale"]),
        "Gumbel": lambda: stats.gumbel_r(g["loc"], g["scale"]),
        "Weibull": lambda: stats.weibull_min(g["concentration"], scale=g["scale"]),
        "Pareto": lambda: stats.pareto(g["alpha"], scale=g["scale"]),
        "Bernoulli": lambda: stats.bernoulli(g["probs"]),
        "Binomial": lambda: stats.binom(g["total_count"], g["probs"]),
        "NegativeBinomial": lambda: stats.nbinom(g["total_count"], 1 - g["probs"]),
        "Poisson": lambda: stats.poisson(g["rate"]),
        "Geometric": lambda: stats.geom(g["probs"], loc=-1),
    }[name]()
    n = N // 8 if name in WHOLE else N
    x = drawn(getattr(D, name)(**on(given)), (n,))
    far = 1.95 / math.sqrt(n)
    if name in WHOLE:
        ends = np.arange(x.max() + 1)
        have = np.array([(x <= k).mean() for k in ends])
        assert np.abs(have - theirs.cdf(ends)).max() < far
        assert (x == np.floor(x)).all()
    else:
        assert stats.kstest(x, theirs.cdf).statistic < far


@pytest.mark.parametrize("seed", [3, 4])
def test_kolmogorov_smirnov_test_detects_a_shift(seed: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    x = drawn(D.Normal(**on({"loc": 0.05, "scale": 1.0})), (N,), seed)
    assert stats.kstest(x, stats.norm.cdf).statistic > FAR


@pytest.mark.parametrize(("name", "given"), SOME)
@pytest.mark.parametrize("d", ["float64", "float16", "bfloat16"])
def test_samples_have_the_dtype_of_the_parameters(
    device: dt.Device, name: str, given: dict[str, Any], d: str
) -> None:
    p = getattr(D, name)(**on(given, d))
    x = p.sample((64,))
    assert x.dtype is getattr(dt, d) and x.device == device
    assert bool(dt.all(dt.isfinite(x)))
    assert p.log_prob(x).dtype is getattr(dt, d)


@pytest.mark.parametrize(("name", "given"), ONE, ids=IDS)
def test_shapes_of_samples_and_of_larger_batches(name: str, given: dict[str, Any]) -> None:
    make = getattr(D, name)
    first = next(iter(given))
    batch = dt.full((3, 1), float(given[first]))
    p = make(**{**given, first: batch})
    assert p.batch_shape == (3, 1) and p.sample().shape == (3, 1)
    assert p.sample((4, 2)).shape == (4, 2, 3, 1) and p.sample(4).shape == (4, 3, 1)
    q = p.expand((2, 3, 5))
    assert type(q) is type(p) and q.batch_shape == (2, 3, 5) and p.batch_shape == (3, 1)
    x = q.sample((4,))
    assert x.shape == (4, 2, 3, 5) and q.log_prob(x).shape == x.shape
    np.testing.assert_allclose(q.log_prob(x).numpy(), p.log_prob(x).numpy(), rtol=1e-5, atol=1e-6)
    assert q.mean.shape == (2, 3, 5) and q.variance.shape == (2, 3, 5)
    with pytest.raises(dt.ShapeError):
        p.expand((2, 2))


def test_samples_of_vector_distributions() -> None:
    probs = dt.asarray([[0.2, 0.5, 0.3], [0.7, 0.0, 0.3]])
    for name, extra in (
        ("Categorical", {}),
        ("OneHotCategorical", {}),
        ("Multinomial", {"total_count": 9}),
    ):
        p = getattr(D, name)(probs=probs, **extra)
        x = drawn(p, (2000,))
        own = () if name == "Categorical" else (3,)
        assert x.shape == (2000, 2, *own)
        q = p.expand((4, 2))
        assert q.sample((5,)).shape == (5, 4, 2, *own) and q.log_prob(q.sample()).shape == (4, 2)
        shares = (
            np.stack([(x == k).mean(axis=0) for k in range(3)], axis=-1) if not own
            else x.mean(axis=0) / extra.get("total_count", 1)
        )  # fmt: skip
        assert np.abs(shares - probs.numpy()).max() < 0.05
        assert shares[1, 1] == 0.0  # impossible values never occur
    x = drawn(D.Multinomial(9, probs=probs), (100,))
    assert (x.sum(axis=-1) == 9).all()


def test_categorical_samples_follow_the_probabilities() -> None:
    p = D.Categorical(dt.asarray([0.0, 0.25, 0.0, 0.75, 0.0]))
    x = drawn(p, (N,))
    assert set(np.unique(x)) == {1.0, 3.0} and abs((x == 3).mean() - 0.75) < 0.02
    assert p.sample().shape == ()


def test_dirichlet_samples_follow_their_distribution() -> None:
    a = dt.asarray([[0.3, 1.0, 2.0], [5.0, 0.05, 0.1]])
    p = D.Dirichlet(a)
    x = drawn(p, (N,))
    np.testing.assert_allclose(x.sum(axis=-1), 1.0, atol=1e-5)
    np.testing.assert_allclose(x.mean(axis=0), p.mean.numpy(), atol=0.01)
    np.testing.assert_allclose(x.var(axis=0), p.variance.numpy(), atol=0.01)
    assert x.min() > 0 and p.expand((4, 2)).sample((5,)).shape == (5, 4, 2, 3)


@pytest.mark.parametrize("which", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_multivariate_normal_samples_follow_their_distribution(which: str) -> None:
    c = np.array([[2.0, 0.3, -0.2], [0.3, 1.0, 0.4], [-0.2, 0.4, 1.5]], dtype=np.float32)
    given = {"covariance_matrix": c, "precision_matrix": np.linalg.inv(c),
             "scale_tril": np.linalg.cholesky(c)}[which]  # fmt: skip
    p = D.MultivariateNormal(dt.asarray([1.0, 0.0, -1.0]), **{which: dt.asarray(given)})
    x = drawn(p, (N,))
    np.testing.assert_allclose(x.mean(axis=0), [1.0, 0.0, -1.0], atol=0.05)
    np.testing.assert_allclose(np.cov(x.T), c, atol=0.08)
    for name in ("covariance_matrix", "precision_matrix", "scale_tril"):
        assert getattr(p.expand((2,)), name).shape == (2, 3, 3)
    np.testing.assert_allclose(p.covariance_matrix.numpy(), c, atol=1e-5)
    np.testing.assert_allclose(p.precision_matrix.numpy(), np.linalg.inv(c), atol=1e-5)
    q = p.expand((4,))
    y = q.sample((5,))
    assert y.shape == (5, 4, 3) and q.log_prob(y).shape == (5, 4)
    np.testing.assert_allclose(q.log_prob(y).numpy(), p.log_prob(y).numpy(), rtol=1e-5)


def test_mixture_samples_follow_their_distribution() -> None:
    mix = D.Categorical(dt.asarray([0.25, 0.75]))
    parts = D.Independent(D.Normal(dt.asarray([[0.0, 1.0], [4.0, 2.0]]), 0.5), 1)
    p = D.MixtureSameFamily(mix, parts)
    x = drawn(p, (N,))
    assert x.shape == (N, 2)
    np.testing.assert_allclose(x.mean(axis=0), p.mean.numpy(), atol=0.05)
    np.testing.assert_allclose(x.var(axis=0), p.variance.numpy(), atol=0.06)
    assert abs((x[:, 0] > 2).mean() - 0.75) < 0.02
    q = p.expand((3,))
    assert q.sample((4,)).shape == (4, 3, 2) and q.log_prob(q.sample((4,))).shape == (4, 3)


# --- streams --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "given"), SOME)
def test_samples_have_the_same_bits_on_every_device(name: str, given: dict[str, Any]) -> None:
    pytest.importorskip("dovetail_cpu_llvm")
    found = []
    for where in ("reference", "cpu"):
        params = {k: dt.asarray(v, dtype=dt.float32, device=where) for k, v in given.items()}
        with dt.vendor_products(False):
            x = getattr(D, name)(**params).sample((100,), generator=dt.random.default_rng(5))
            logs = getattr(D, name)(**params).log_prob(x)
        found.append((x.numpy().tobytes(), logs.numpy().tobytes()))
    assert found[0] == found[1]


def test_seed_determines_samples_and_the_stream_advances(device: dt.Device) -> None:
    p = D.Gamma(dt.asarray([0.5, 2.0]), 1.0)
    dt.random.manual_seed(5)
    first, second = p.sample((3,)).tolist(), p.sample((3,)).tolist()
    dt.random.manual_seed(5)
    assert p.sample((3,)).tolist() == first != second


@pytest.mark.parametrize(
    ("device", "make"),
    [
        ("cpu", lambda x: D.Normal(x, x.exp())),
        ("cpu", lambda x: D.Gamma(x.exp(), 1.0)),
        ("reference", lambda x: D.Beta(x.exp(), 2.0)),
        ("reference", lambda x: D.StudentT(x.exp() + 2.0, 0.0, 1.0)),
        ("reference", lambda x: D.Dirichlet(x.exp())),
        pytest.param("cpu", lambda x: D.Beta(x.exp(), 2.0), marks=pytest.mark.exhaustive),
        pytest.param("cpu", lambda x: D.Dirichlet(x.exp()), marks=pytest.mark.exhaustive),
    ],
    indirect=["device"],
    ids=["Normal", "Gamma", "Beta", "StudentT", "Dirichlet", "Beta-cpu", "Dirichlet-cpu"],
)
def test_captured_functions_draw_new_samples_and_have_gradients(
    device: dt.Device, make: Any
) -> None:
    def step(x: dt.Tensor) -> tuple[dt.Tensor, dt.Tensor]:
        x = x.detach().requires_grad_()
        p = make(x)
        y = p.rsample()
        loss = (p.log_prob(y.detach()) + y * y).sum()
        (g,) = dt.autograd.grad(loss, [x])
        return y.detach(), g

    x = dt.asarray([0.1, 0.7, -0.3])
    dt.random.manual_seed(11)
    plain = [[t.tolist() for t in step(x)] for _ in range(3)]
    dt.random.manual_seed(11)
    captured = dt.jit(step)
    assert [[t.tolist() for t in captured(x)] for _ in range(3)] == plain
    assert plain[0] != plain[1]


def test_sample_has_no_gradient_and_rsample_has_one() -> None:
    loc = dt.zeros(2).requires_grad_()
    p = D.Normal(loc, 1.0)
    assert not p.sample((3,)).requires_grad and p.rsample((3,)).requires_grad
    with pytest.raises(dt.UnsupportedError, match="rsample"):
        D.Poisson(dt.ones(2)).rsample()


def test_enumerate_support_lists_all_values() -> None:
    p = D.Bernoulli(dt.asarray([0.2, 0.7]))
    assert p.enumerate_support().tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert p.enumerate_support(expand=False).tolist() == [[0.0], [1.0]]
    assert D.Binomial(2, dt.asarray([0.2])).enumerate_support().tolist() == [[0.0], [1.0], [2.0]]
    assert D.Categorical(dt.ones((2, 3))).enumerate_support().shape == (3, 2)
    assert D.OneHotCategorical(dt.ones((2, 3))).enumerate_support().shape == (3, 2, 3)
    assert D.OneHotCategorical(dt.ones((2, 3))).enumerate_support(False).shape == (3, 1, 3)
    total = D.Binomial(5, dt.asarray([0.2, 0.6]))
    assert np.allclose(total.log_prob(total.enumerate_support()).exp().sum(axis=0).numpy(), 1.0)


def test_perplexity_and_straight_through_gradients() -> None:
    p = D.Categorical(dt.ones(8))
    assert abs(p.perplexity().item() - 8.0) < 1e-4
    logits = dt.asarray([0.3, -0.2, 1.0]).requires_grad_()
    x = D.OneHotCategoricalStraightThrough(logits=logits).rsample((50,))
    assert set(np.unique(x.detach().numpy().round(5))) == {0.0, 1.0}
    (g,) = dt.autograd.grad((x * dt.asarray([1.0, 2.0, 3.0])).sum(), [logits])
    assert bool((dt.abs(g) > 0).all())


def test_batches_of_multinomial_samples() -> None:
    p = dt.asarray([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]])
    x = dt.random.multinomial(8, p, 1000, generator=dt.random.default_rng(3))
    assert x.shape == (1000, 2, 3) and bool((x.sum(axis=-1) == 8).all())
    assert np.abs(x.numpy().mean(axis=0) - p.numpy() * 8).max() < 0.2
    one = dt.random.multinomial(8, p[0], 4, generator=dt.random.default_rng(3))
    assert one.shape == (4, 3)
    with pytest.raises(dt.ShapeError, match="multinomial"):
        dt.random.multinomial(8, dt.ones((2, 0)))
