"""Metropolis sampling of a posterior, a chain step by step (Bayesian statistics; Gelman)."""

import numpy as np


def log_posterior(theta, x, y):
    a, b, log_sigma = theta
    residual = y - a - b * x
    n = len(x)
    prior = -0.5 * (a**2 + b**2) / 100 - 0.5 * log_sigma**2
    return prior - n * log_sigma - 0.5 * np.sum(residual**2) * np.exp(-2 * log_sigma)


def inputs():
    rng = np.random.default_rng(75)
    x = rng.uniform(0, 5, 60)
    return x, 1.5 + 0.7 * x + rng.normal(0, 0.8, 60)


def run(x, y):
    rng = np.random.default_rng(76)
    steps = 3000
    theta = np.array([0.0, 0.0, 0.0])
    current = log_posterior(theta, x, y)
    chain = np.empty((steps, 3))
    accepted = 0
    for t in range(steps):
        proposal = theta + 0.12 * rng.standard_normal(3)
        new = log_posterior(proposal, x, y)
        if np.log(rng.random()) < new - current:
            theta, current = proposal, new
            accepted += 1
        chain[t] = theta
    kept = chain[500:]
    centred = kept - kept.mean(0)
    variance = np.sum(centred**2, axis=0)
    rho = np.array([np.sum(centred[k:] * centred[: len(kept) - k], axis=0) for k in range(50)])
    return (
        kept.mean(axis=0),
        np.cov(kept.T),
        accepted,
        rho / variance,
        np.percentile(kept, 97.5, axis=0),
    )


def main():
    return run(*inputs())
