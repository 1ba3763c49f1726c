"""Random distributions against SciPy, choices and shuffles, equal bits on every device; bad
input.
"""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
import scipy.stats as st

N = 4000
Draw = Callable[..., dt.Tensor]
CONTINUOUS: dict[str, tuple[tuple[Any, ...], Any]] = {
    "exponential": ((2.5,), st.expon(scale=2.5)),
    "laplace": ((1.0, 2.0), st.laplace(1.0, 2.0)),
    "truncated_normal": ((-1.0, 2.5), st.truncnorm(-1.0, 2.5)),
    "gamma": ((0.4, 3.0), st.gamma(0.4, scale=3.0)),
    "beta": ((2.0, 0.7), st.beta(2.0, 0.7)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_samples_follow_their_distribution(device: dt.Device, name: str, dtype: str) -> None:
    args, law = CONTINUOUS[name]
    g = dt.random.default_rng(11)
    x = getattr(dt.random, name)(*args, N, dtype=dtype, generator=g)
    assert x.shape == (N,) and x.dtype.name == dtype and x.device is device
    assert st.kstest(x.numpy().astype("f8"), law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("mean", [0.3, 4.0, 9.9, 11.0, 250.0])
def test_poisson_counts_follow_their_distribution(device: dt.Device, mean: float) -> None:
    x = dt.random.poisson(mean, N, generator=dt.random.default_rng(3)).numpy()
    assert x.dtype == np.int64 and x.min() >= 0
    assert abs(x.mean() - mean) < 5 * (mean / N) ** 0.5
    assert abs(x.var() / mean - 1) < 0.15
    assert abs((x <= mean).mean() - st.poisson(mean).cdf(mean)) < 0.04


@pytest.mark.parametrize(("n", "p"), [(5, 0.3), (30, 0.9), (40, 0.5), (1000, 0.2), (10**5, 0.5)])
def test_binomial_counts_follow_their_distribution(device: dt.Device, n: int, p: float) -> None:
    x = dt.random.binomial(n, p, N, generator=dt.random.default_rng(5)).numpy()
    law = st.binom(n, p)
    assert x.dtype == np.int64 and x.min() >= 0 and x.max() <= n
    assert abs(x.mean() - law.mean()) < 5 * law.std() / N**0.5
    assert abs(x.var() / law.var() - 1) < 0.15
    assert abs((x <= law.mean()).mean() - law.cdf(law.mean())) < 0.04


def test_binomial_parameters_may_be_tensors(device: dt.Device) -> None:
    n, p = dt.asarray([[0], [3], [500]]), dt.asarray([0.0, 1.0, 0.5])
    x = dt.random.binomial(n, p, (200, 3, 3)).numpy()
    assert (x[:, :, 0] == 0).all() and (x[:, :, 1] == [0, 3, 500]).all()
    assert x[:, 1, 2].max() <= 3 and abs(x[:, 2, 2].mean() - 250) < 6
    assert dt.random.binomial(3, 0.5, 2, dtype="float32").dtype is dt.float32
    with pytest.raises(dt.DTypeError, match="binomial: n must hold integers"):
        dt.random.binomial(dt.ones(2), 0.5)
    with pytest.raises(dt.ArgumentError, match=r"binomial: p must be between 0 and 1, got 1\.5"):
        dt.random.binomial(3, 1.5)
    with pytest.raises(dt.ArgumentError, match="binomial: n must not be negative"):
        dt.random.binomial(-1, 0.5)


def test_multinomial_counts_follow_their_distribution(device: dt.Device) -> None:
    p = np.array([0.1, 0.2, 0.3, 0.0, 0.4])
    x = dt.random.multinomial(100, 7 * p, 1500, generator=dt.random.default_rng(5)).numpy()
    assert x.shape == (1500, 5) and (x.sum(1) == 100).all() and x.min() == 0
    np.testing.assert_allclose(x.mean(0), 100 * p, atol=0.6)
    want = 100 * (np.diag(p) - np.outer(p, p))
    np.testing.assert_allclose(np.cov(x.T), want, atol=2.5)
    assert dt.random.multinomial(4, [1.0], (2, 2)).tolist() == [[[4], [4]], [[4], [4]]]
    assert dt.random.multinomial(4, [[1.0], [2.0]], 3).tolist() == [[[4], [4]]] * 3  # a batch
    with pytest.raises(dt.ShapeError, match="multinomial: p must be a non-empty vector"):
        dt.random.multinomial(4, 1.0)


@pytest.mark.parametrize(
    "p", [[0.0, 0.0, 0.0], [[1.0, 0.0], [0.0, 0.0]], [-1.0, 2.0], [np.nan, 1.0], [np.inf, 1.0]]
)
def test_multinomial_of_invalid_weights_raises(p: Any, device: dt.Device) -> None:
    for given in (p, dt.asarray(p)):
        with pytest.raises(dt.ArgumentError, match="multinomial: p must have no negative"):
            dt.random.multinomial(5, given)


def test_distribution_parameters_may_be_tensors(device: dt.Device) -> None:
    scale = dt.asarray([[1.0], [100.0]])
    x = dt.random.exponential(scale, (2, 500))
    assert 20 < x[1].mean().item() / x[0].mean().item() < 500
    assert dt.random.gamma(dt.asarray([0.5, 50.0], dtype="float64")).dtype is dt.float64
    rates = dt.random.poisson(dt.asarray([[0.0], [2.0], [40.0]]), (3, 300)).numpy()
    assert rates[0].max() == 0 and abs(rates[1].mean() - 2) < 0.6 and abs(rates[2].mean() - 40) < 2
    coins = dt.random.bernoulli(dt.asarray([0.0, 1.0, 0.5]), (200, 3)).numpy()
    assert not coins[:, 0].any() and coins[:, 1].all() and 60 < coins[:, 2].sum() < 140
    assert dt.random.bernoulli(0.5, 3, dtype="float32").dtype is dt.float32
    d = dt.random.dirichlet([1.0, 2.0, 5.0], 800).numpy()
    np.testing.assert_allclose(d.sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose(d.mean(0), [1 / 8, 2 / 8, 5 / 8], atol=0.03)


def test_every_device_draws_the_same_numbers(
    device: dt.Device, thinned: Callable[..., Any]
) -> None:
    def drawn(on: str) -> list[list[float]]:
        g = dt.random.default_rng(5)
        chosen = thinned([*CONTINUOUS.items()], 3)
        found = [getattr(g, n)(*a, 50, device=on).tolist() for n, (a, _) in chosen]
        return [*found, g.poisson(20.0, 50, device=on).tolist(), g.choice(9, 5, device=on).tolist()]

    assert drawn(str(device)) == drawn("reference")


def test_choice_draws_with_and_without_replacement(device: dt.Device) -> None:
    g = dt.random.default_rng(2)
    x = dt.asarray([10, 20, 30])
    assert {*g.choice(x, 200).tolist()} == {10, 20, 30}
    assert sorted(g.choice(x, 3, replace=False).tolist()) == [10, 20, 30]
    assert g.choice(5, (2, 3)).shape == (2, 3) and g.choice(x).shape == ()
    picked = g.choice(3, 2000, p=[0.7, 0.0, 0.3]).numpy()
    assert not (picked == 1).any() and abs((picked == 0).mean() - 0.7) < 0.05
    assert sorted(g.choice(4, 3, replace=False, p=[0.5, 0.0, 0.25, 0.25]).tolist()) == [0, 2, 3]
    rows = g.choice(dt.asarray([[1, 2, 3], [4, 5, 6]]), 2, axis=1)
    assert rows.shape == (2, 2) and ((rows[1] - rows[0]) == 3).all()


def test_shuffle_permutes_in_place(device: dt.Device) -> None:
    x = dt.arange(100)
    assert dt.random.shuffle(x, generator=dt.random.default_rng(1)) is x
    assert sorted(x.tolist()) == [*range(100)] != x.tolist()
    y = dt.arange(12).reshape(2, 6)
    dt.random.shuffle(y, axis=1)
    assert (y[1] - y[0] == 6).all()


def test_rand_randn_and_other_short_names(device: dt.Device) -> None:
    assert dt.random.rand(2, 3).shape == dt.random.rand((2, 3)).shape == (2, 3)
    assert dt.random.randn().shape == () and dt.random.randn(4, dtype="float64").dtype is dt.float64
    k = dt.random.randint(3, 5, 50)
    assert {*k.tolist()} == {3, 4}


def test_spawned_generators_are_independent() -> None:
    def spawned() -> list[dt.random.Generator]:
        return dt.random.default_rng(7).spawn(3)

    found = [g.uniform(4, device="reference").tolist() for g in spawned()]
    assert found == [g.uniform(4, device="reference").tolist() for g in spawned()]
    assert len({tuple(f) for f in found}) == 3
    first = dt.random.default_rng(7)
    assert [g.state for g in first.spawn(2)] != [g.state for g in first.spawn(2)]


def test_invalid_arguments_of_sampling_raise() -> None:
    r = dt.random
    calls: list[tuple[Any, type[Exception], str]] = [
        (
            lambda: r.bernoulli(1.5, 3),
            dt.ArgumentError,
            "bernoulli: p must be between 0 and 1, got 1.5",
        ),
        (lambda: r.exponential("a"), dt.ArgumentTypeError, "exponential: scale"),
        (lambda: r.laplace(0.0, 1.0, 3, dtype="int8"), dt.DTypeError, "laplace: dtype must be"),
        (lambda: r.gamma(dt.ones(3, device="reference"), 1.0, (2,)), dt.ShapeError, "gamma"),
        (lambda: r.poisson(-1.0), dt.ArgumentError, "poisson: lam"),
        (lambda: r.choice(0, 1), dt.ArgumentError, "choice: .*from 0 values"),
        (
            lambda: r.choice(3, 4, replace=False),
            dt.ArgumentError,
            "choice: cannot draw 4 samples from 3",
        ),
        (lambda: r.choice(2, 1, p=[0.5]), dt.ShapeError, "choice: p must have shape"),
        (lambda: r.choice(2, 1, p=[0.5, 0.9]), dt.ArgumentError, "choice: p must not be negative"),
        (
            lambda: r.choice(2, 2, replace=False, p=[1.0, 0.0]),
            dt.ArgumentError,
            "choice: cannot draw 2",
        ),
        (lambda: r.dirichlet([[1.0]]), dt.ShapeError, "dirichlet: alpha must be"),
        (lambda: r.shuffle([1, 2]), dt.DTypeError, "shuffle"),
        (lambda: r.rand(-1), dt.ShapeError, "rand"),
        (lambda: r.default_rng(1).spawn(-1), dt.ArgumentError, "spawn: n"),
        (lambda: r.default_rng(1).nosuch(), AttributeError, "nosuch"),
    ]
    for call, error, says in calls:
        with pytest.raises(error, match=says):
            call()
