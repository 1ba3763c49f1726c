"""Hamiltonian Monte Carlo in several chains, written for JAX.

The chains sample the weights of a logistic regression. Each doubles or halves its own step size
until one leapfrog step is accepted about half of the time, then runs with a key per step.
Source: Hoffman and Gelman, "The No-U-Turn Sampler", 2014, algorithms 1 and 4.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import grad, jit, lax, random, vmap


class State(NamedTuple):
    """The position of a chain, and its log density there."""

    position: jax.Array
    log_p: jax.Array


def make_data(key, rows, columns):
    key_x, key_w, key_y = random.split(key, 3)
    x = random.normal(key_x, (rows, columns)).at[:, 0].set(1.0)
    w = random.uniform(key_w, (columns,), minval=-2.0, maxval=2.0)
    return x, random.bernoulli(key_y, jax.nn.sigmoid(x @ w)).astype(jnp.float32), w


def log_density(w, x, y):
    logits = x @ w
    return jnp.sum(y * logits - jax.nn.softplus(logits)) - 0.5 * jnp.sum(w**2)


def leapfrog(log_p, w, p, step_size, steps):
    def one_step(_, carry):
        w, p = carry
        p = p + 0.5 * step_size * grad(log_p)(w)
        w = w + step_size * p
        return w, p + 0.5 * step_size * grad(log_p)(w)

    return lax.fori_loop(0, steps, one_step, (w, p))


def find_step_size(log_p, key, w):
    p = random.normal(key, w.shape)
    energy = log_p(w) - 0.5 * p @ p

    def log_ratio(step_size):
        w_new, p_new = leapfrog(log_p, w, p, step_size, 1)
        return log_p(w_new) - 0.5 * p_new @ p_new - energy

    start = jnp.float32(0.1)
    direction = jnp.where(log_ratio(start) > jnp.log(0.5), 1.0, -1.0)

    def is_unbalanced(step_size):
        return direction * log_ratio(step_size) > -direction * jnp.log(2.0)

    return lax.while_loop(is_unbalanced, lambda step_size: step_size * 2.0**direction, start)


def hmc_step(log_p, step_size, leaps, state, key):
    key_p, key_u = random.split(key)
    p = random.normal(key_p, state.position.shape)
    w_new, p_new = leapfrog(log_p, state.position, p, step_size, leaps)
    log_p_new = log_p(w_new)
    log_ratio = log_p_new - 0.5 * p_new @ p_new - state.log_p + 0.5 * p @ p
    accepted = jnp.log(random.uniform(key_u)) < log_ratio
    proposal = State(w_new, log_p_new)
    state = jax.tree_util.tree_map(lambda new, old: jnp.where(accepted, new, old), proposal, state)
    return state, (state.position, accepted)


def run_chain(key, x, y, steps, leaps):
    log_p = partial(log_density, x=x, y=y)
    key_start, key_size, key_run = random.split(key, 3)
    w = 0.1 * random.normal(key_start, (x.shape[1],))
    step_size = 0.5 * find_step_size(log_p, key_size, w)
    step = partial(hmc_step, log_p, step_size, leaps)
    _, (samples, accepted) = lax.scan(step, State(w, log_p(w)), random.split(key_run, steps))
    return samples, accepted, step_size


@partial(jit, static_argnums=(3, 4))
def run_chains(keys, x, y, steps, leaps):
    return vmap(lambda key: run_chain(key, x, y, steps, leaps))(keys)


def main(seed=0, chains=4, steps=200, leaps=8, rows=60, columns=4):
    """Return the first samples, means, rate of acceptance, step sizes, and Gelman and Rubin's R."""
    key, key_data = random.split(random.key(seed))
    x, y, w = make_data(key_data, rows, columns)
    samples, accepted, step_size = run_chains(random.split(key, chains), x, y, steps, leaps)
    kept = samples[:, steps // 4 :]
    within, between = kept.var(axis=1, ddof=1).mean(axis=0), kept.mean(axis=1).var(axis=0, ddof=1)
    return {
        "truth": w,
        "first": samples[:, :5],
        "mean": kept.mean(axis=(0, 1)),
        "accepted": accepted.mean(),
        "step_size": step_size,
        "r_hat": jnp.sqrt((within + between) / within),
    }


if __name__ == "__main__":
    for name, value in main().items():
        print(name, value)
