"""Hamiltonian Monte Carlo as one captured loop: `python bench/hmc.py`, `python bench/hmc.py jax`.

200 steps of 10 leapfrog steps in each of 16 chains, which sample the posterior of a logistic
regression. Random numbers come from outside, so that JAX computes the same samples. Each
contestant has a process of its own; the second run of dovetail's finds its kernels on disk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from loops_in_captures import Case, main

STEPS, LEAPS, CHAINS = 200, 10, 16
ROWS, WEIGHTS = 100, 5
STEP_SIZE = 0.03


def inputs() -> list[np.ndarray]:
    """Return first weights, momenta and uniform numbers of each chain, then the data."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, WEIGHTS))
    labels = (rng.random(ROWS) < 1 / (1 + np.exp(-x @ rng.normal(size=WEIGHTS)))) * 1.0
    return [
        rng.normal(size=(CHAINS, WEIGHTS)),
        rng.normal(size=(CHAINS, STEPS, WEIGHTS)),
        rng.random((CHAINS, STEPS)),
        x,
        labels,
    ]


def chain_of(xp: Any, grad: Any, scan: Any, fori_loop: Any) -> Any:
    """Return the function of one chain, in terms of one of the libraries."""

    def chain(w: Any, momenta: Any, uniform: Any, x: Any, labels: Any) -> Any:
        def energy(w: Any) -> Any:
            z = x @ w
            return xp.logaddexp(0.0 * z, z).sum() - (labels * z).sum() + 0.5 * (w * w).sum()

        force = grad(energy)

        def leap(i: Any, state: Any) -> Any:
            w, p = state
            p = p - 0.5 * STEP_SIZE * force(w)
            w = w + STEP_SIZE * p
            return w, p - 0.5 * STEP_SIZE * force(w)

        def step(w: Any, drawn: Any) -> Any:
            p, u = drawn
            before = energy(w) + 0.5 * (p * p).sum()
            proposed, p = fori_loop(0, LEAPS, leap, (w, p))
            after = energy(proposed) + 0.5 * (p * p).sum()
            w = xp.where(xp.log(u) < before - after, proposed, w)
            return w, w

        return scan(step, w, (momenta, uniform))[1]

    return chain


def ours(dt: Any) -> Any:
    """Return the captured function of all chains."""
    chain = chain_of(dt, dt.func.grad, dt.scan, dt.fori_loop)
    return dt.jit(dt.vmap(chain, in_axes=(0, 0, 0, None, None)))


def theirs(jax: Any) -> Any:
    """Return the same in JAX."""
    chain = chain_of(jax.numpy, jax.grad, jax.lax.scan, jax.lax.fori_loop)
    return jax.jit(jax.vmap(chain, in_axes=(0, 0, 0, None, None)))


if __name__ == "__main__":
    main(Case("hmc", inputs, ours, theirs))
