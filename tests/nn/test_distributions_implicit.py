"""Implicit gradients of samples, against differences of distribution functions and PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.distributions import noise

D = dt.distributions
GRID = (1e-2, 0.1, 0.5, 1.0, 1.7, 4.0, 8.0, 13.0, 50.0, 1e3, 1e5)
QUANTILES = (1e-5, 0.01, 0.3, 0.5, 0.7, 0.99, 1 - 1e-5)


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


def gammas() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    special = pytest.importorskip("scipy.special")
    a, q = (x.ravel() for x in np.meshgrid(GRID, QUANTILES))
    x = special.gammaincinv(a, q)
    fine = x > 1e-30
    return a[fine], x[fine]


def betas() -> tuple[np.ndarray[Any, Any], ...]:
    special = pytest.importorskip("scipy.special")
    grid = (0.05, 0.4, 1.0, 3.0, 9.0, 60.0, 2e3)
    a, b, q = (x.ravel() for x in np.meshgrid(grid, grid, QUANTILES))
    x = special.betaincinv(a, b, q)
    fine = (x > 1e-12) & (x < 1 - 1e-6)
    return a[fine], b[fine], x[fine]


def close(have: np.ndarray[Any, Any], want: np.ndarray[Any, Any], to: float) -> bool:
    return bool((np.abs(have - want) <= to * np.abs(want)).all())


@pytest.mark.parametrize("d", ["float64", "float32"])
def test_gamma_gradient_equals_differences_of_the_cdf(device: dt.Device, d: str) -> None:
    special, stats = pytest.importorskip("scipy.special"), pytest.importorskip("scipy.stats")
    a, x = gammas()
    if d == "float32":
        a, x = (v.astype(np.float32).astype(np.float64) for v in (a, x))
    a, x = a[a < 1e4], x[a < 1e4]
    h = 1e-5 * a

    # the side with the smaller probability
    def tail(k: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.where(x < a, special.gammainc(k, x), -special.gammaincc(k, x))

    slope = (8 * (tail(a + h) - tail(a - h)) - tail(a + 2 * h) + tail(a - 2 * h)) / (12 * h)
    want = -slope / np.exp(stats.gamma.logpdf(x, a))
    have = noise.standard_gamma_grad(*(dt.asarray(v, dtype=getattr(dt, d)) for v in (a, x)))
    assert close(have.numpy(), want, 2e-5 if d == "float32" else 2e-6)


@pytest.mark.parametrize("d", ["float64", "float32"])
def test_gamma_cdf_equals_scipy(device: dt.Device, d: str) -> None:
    special = pytest.importorskip("scipy.special")
    a, x = gammas()
    a, x = a[a < 1e4], x[a < 1e4]
    p = D.Gamma(dt.asarray(a, dtype=getattr(dt, d)), 1.0)
    have = p.cdf(dt.asarray(x, dtype=getattr(dt, d))).numpy()
    rounded = (a + 1.0) * 2e-7 if d == "float32" else 1e-9  # the float32 values of a and of x
    assert (np.abs(have - special.gammainc(a, x)) <= np.maximum(rounded, 1e-9)).all()
    ends = dt.asarray([0.0, 1e-30, float("inf")], dtype=getattr(dt, d))
    assert D.Gamma(dt.ones(3, dtype=getattr(dt, d)), 1.0).cdf(ends).tolist()[::2] == [0.0, 1.0]


def test_gradients_of_the_cdf_equal_differences(device: dt.Device) -> None:
    a = dt.asarray([0.3, 2.0, 9.0], dtype=dt.float64).requires_grad_()
    x = dt.asarray([0.2, 3.0, 7.0], dtype=dt.float64).requires_grad_()
    ga, gx = dt.autograd.grad(D.Gamma(a, 1.0).cdf(x).sum(), [a, x])
    h = 1e-6
    with dt.no_grad():
        da = (D.Gamma(a + h, 1.0).cdf(x) - D.Gamma(a - h, 1.0).cdf(x)) / (2 * h)
        dx = (D.Gamma(a, 1.0).cdf(x + h) - D.Gamma(a, 1.0).cdf(x - h)) / (2 * h)
    np.testing.assert_allclose(ga.numpy(), da.numpy(), rtol=1e-6)
    np.testing.assert_allclose(gx.numpy(), dx.numpy(), rtol=1e-6)


def test_beta_gradient_equals_differences_of_the_cdf(device: dt.Device) -> None:
    special, stats = pytest.importorskip("scipy.special"), pytest.importorskip("scipy.stats")
    a, b, x = betas()
    h = 1e-5 * a

    def tail(k: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.where(x < a / (a + b), special.betainc(k, b, x), -special.betainc(b, k, 1 - x))

    slope = (8 * (tail(a + h) - tail(a - h)) - tail(a + 2 * h) + tail(a - 2 * h)) / (12 * h)
    want = -slope / np.exp(stats.beta.logpdf(x, a, b)) / (1 - x)
    have = noise.dirichlet_grad(*(dt.asarray(v, dtype=dt.float64) for v in (x, a, a + b))).numpy()
    assert close(have, want, 1e-4)


@pytest.mark.parametrize("d", ["float64", "float32"])
def test_gradients_equal_pytorch(device: dt.Device, d: str) -> None:
    torch = pytest.importorskip("torch")
    a, x = gammas()
    want = torch._standard_gamma_grad(torch.tensor(a), torch.tensor(x)).numpy()
    have = noise.standard_gamma_grad(*(dt.asarray(v, dtype=getattr(dt, d)) for v in (a, x)))
    off = np.abs(have.numpy() / want - 1)[a >= 0.1]  # PyTorch's error is 1e-3, and more below that
    assert np.quantile(off, 0.95) < 1e-3 and off.max() < 5e-3
    a, b, x = betas()
    some = (a > 0.3) & (b > 0.3) & (a < 100) & (b < 100) & (x > 1e-3) & (x < 0.999)
    a, b, x = a[some], b[some], x[some]
    want = torch._dirichlet_grad(*(torch.tensor(v) for v in (x, a, a + b))).numpy()
    have = noise.dirichlet_grad(*(dt.asarray(v, dtype=getattr(dt, d)) for v in (x, a, a + b)))
    assert np.quantile(np.abs(have.numpy() / want - 1), 0.9) < 3e-3


def test_gradient_of_an_expectation_by_samples(thinned: Callable[..., Any]) -> None:
    """The gradient of the mean of x * x is known; it is estimated by gradients of samples."""
    a = dt.asarray([0.4, 1.0, 3.0], dtype=dt.float64).requires_grad_()
    b = dt.asarray([2.0, 1.5, 4.0], dtype=dt.float64).requires_grad_()
    for make in thinned((D.Beta, D.Gamma, lambda a, b: D.StudentT(a + 4.0, 0.0, b)), 2):
        p = make(a, b)
        with dt.enable_grad():
            x = p.rsample((5000,), generator=dt.random.default_rng(3))
        have = dt.autograd.grad((x * x).mean(axis=0).sum(), [a, b])
        square = p.variance + p.mean * p.mean
        want = dt.autograd.grad(square.sum(), [a, b])
        for h, w in zip(have, want, strict=True):
            np.testing.assert_allclose(h.numpy(), w.numpy(), rtol=0.25, atol=0.03)


def test_dirichlet_sample_gradients_equal_the_exact_ones() -> None:
    a = dt.asarray([[0.4, 1.0, 3.0], [2.0, 0.2, 0.7]], dtype=dt.float64).requires_grad_()
    p = D.Dirichlet(a)
    x = p.rsample((5000,), generator=dt.random.default_rng(3))
    weights = dt.asarray([1.0, 2.0, -1.0], dtype=dt.float64)
    (have,) = dt.autograd.grad((x * x * weights).mean(axis=0).sum(), [a])
    (want,) = dt.autograd.grad(((p.variance + p.mean * p.mean) * weights).sum(), [a])
    np.testing.assert_allclose(have.numpy(), want.numpy(), rtol=0.1, atol=0.01)


def test_small_concentrations_give_finite_gradients() -> None:
    a = dt.full((1000,), 1e-3).requires_grad_()
    x = D.Gamma(a, 1.0).rsample()
    y = D.Beta(a, 1e-3).rsample()
    z = D.Dirichlet(dt.broadcast_to(a[:, None], (1000, 3))).rsample()
    for found in (x, y, z):
        assert bool(dt.all(dt.isfinite(found))) and bool(dt.all(found > 0))
        (g,) = dt.autograd.grad(found.sum(), [a])
        assert bool(dt.all(dt.isfinite(g)))
    assert bool(dt.all(y < 1))


def test_second_derivatives_of_samples() -> None:
    a = dt.asarray([0.7, 3.0], dtype=dt.float64).requires_grad_()
    x = dt.asarray([0.5, 4.0], dtype=dt.float64)
    (have,) = dt.autograd.grad(noise.standard_gamma_grad(a, x).sum(), [a])
    h = 1e-5
    with dt.no_grad():
        want = (noise.standard_gamma_grad(a + h, x) - noise.standard_gamma_grad(a - h, x)) / (2 * h)
    np.testing.assert_allclose(have.numpy(), want.numpy(), rtol=1e-5)
