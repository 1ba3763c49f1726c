"""Markowitz frontier and random portfolios (finance; Luenberger)."""

import numpy as np


def inputs():
    rng = np.random.default_rng(42)
    market = rng.normal(0.0004, 0.01, 1000)
    betas = rng.uniform(0.5, 1.5, 25)
    returns = market[:, None] * betas + rng.normal(0.0002, 0.012, (1000, 25)) * betas
    return returns, rng.dirichlet(np.ones(25), size=20000)


def frontier(mu, cov, targets):
    n = len(mu)
    M = np.zeros((n + 2, n + 2))
    M[:n, :n] = 2 * cov
    M[:n, n] = M[n, :n] = mu
    M[:n, n + 1] = M[n + 1, :n] = 1
    rhs = np.zeros((n + 2, len(targets)))
    rhs[n] = targets
    rhs[n + 1] = 1
    return np.linalg.solve(M, rhs)[:n].T


def run(returns, weights):
    mu = returns.mean(axis=0) * 252
    cov = np.cov(returns, rowvar=False) * 252
    targets = np.linspace(mu.min(), mu.max(), 40)
    w = frontier(mu, cov, targets)
    risk = np.sqrt(np.diagonal(w @ cov @ w.T))
    random_return = weights @ mu
    random_risk = np.sqrt(np.einsum("ki,ij,kj->k", weights, cov, weights))
    sharpe = random_return / random_risk
    best = np.argsort(sharpe)[::-1][:10]
    wealth = np.cumprod(1 + returns @ weights[best].T, axis=0)
    drawdown = (1 - wealth / np.maximum.accumulate(wealth, axis=0)).max(axis=0)
    inverse = np.linalg.inv(cov)
    minimum = inverse.sum(axis=1) / inverse.sum()
    return w, risk, sharpe[best], drawdown, minimum, np.linalg.cond(cov)


def main():
    return run(*inputs())
