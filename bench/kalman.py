"""A Kalman filter as one captured loop: `python bench/kalman.py`, `python bench/kalman.py jax`.

500 steps in each of 64 series, float64, with `solve` and `cholesky` in each step. Each contestant
has a process of its own; the second run of dovetail's finds its kernels on disk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from loops_in_captures import Case, main

STEPS, SERIES = 500, 64
STATE, OBSERVED = 4, 2


def inputs() -> list[np.ndarray]:
    """Return the observations of each series, and what the model is made of."""
    rng = np.random.default_rng(0)
    transition = np.eye(STATE) + 0.1 * np.eye(STATE, k=2)
    observation = np.eye(OBSERVED, STATE)
    return [
        rng.normal(size=(SERIES, STEPS, OBSERVED)).cumsum(1),
        transition,
        observation,
        0.05 * np.eye(STATE),
        0.5 * np.eye(OBSERVED),
    ]


def filter_of(xp: Any, scan: Any) -> Any:
    """Return the filter of one series, in terms of one of the libraries."""

    def one_series(observed: Any, f: Any, h: Any, q: Any, r: Any) -> Any:
        def step(state: Any, y: Any) -> Any:
            mean, covariance, log_likelihood = state
            mean, covariance = f @ mean, f @ covariance @ f.T + q
            residual, s = y - h @ mean, h @ covariance @ h.T + r
            gain = xp.linalg.solve(s, h @ covariance).T
            root = xp.linalg.cholesky(s)
            white = xp.linalg.solve(root, residual)
            density = 0.5 * (white * white).sum() + xp.log(xp.linalg.diagonal(root)).sum()
            mean, covariance = mean + gain @ residual, covariance - gain @ h @ covariance
            return (mean, covariance, log_likelihood - density), mean

        first = 0.0 * observed[0, 0]
        start = (xp.zeros(STATE, dtype=observed.dtype), xp.eye(STATE, dtype=observed.dtype), first)
        (_, _, log_likelihood), means = scan(step, start, observed)
        return means, log_likelihood

    return one_series


def ours(dt: Any) -> Any:
    """Return the captured function of all series."""
    return dt.jit(dt.vmap(filter_of(dt, dt.scan), in_axes=(0, None, None, None, None)))


def theirs(jax: Any) -> Any:
    """Return the same in JAX."""
    one = filter_of(jax.numpy, jax.lax.scan)
    return jax.jit(jax.vmap(one, in_axes=(0, None, None, None, None)))


if __name__ == "__main__":
    main(Case("kalman", inputs, ours, theirs))
