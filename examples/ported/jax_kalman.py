"""A Kalman filter, its smoother, and a fit of its noise by gradients, written for JAX.

A point moves in a plane with a nearly constant velocity; a sensor measures its place. The filter
is a `lax.scan` over the measurements, and the gradient of the log likelihood runs backward
through it.
Source: Saerkkae, "Bayesian Filtering and Smoothing", 2013, chapters 4, 8 and 12.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax, random
from jax.scipy.linalg import cho_solve, solve_triangular


class Model(NamedTuple):
    """Matrices of a linear model with Gaussian noise."""

    transition: jax.Array
    observation: jax.Array
    process: jax.Array
    sensor: jax.Array


def make_model(params, dt=0.1):
    q, r = jnp.exp(params["log_q"]), jnp.exp(params["log_r"])
    eye = jnp.eye(2)
    transition = jnp.block([[eye, dt * eye], [jnp.zeros((2, 2)), eye]])
    process = q * jnp.block([[dt**3 / 3 * eye, dt**2 / 2 * eye], [dt**2 / 2 * eye, dt * eye]])
    return Model(transition, jnp.eye(2, 4), process, r**2 * eye)


def simulate(key, model, steps):
    root_q, root_r = jnp.linalg.cholesky(model.process), jnp.linalg.cholesky(model.sensor)

    def step(state, key):
        key_q, key_r = random.split(key)
        state = model.transition @ state + root_q @ random.normal(key_q, (4,))
        return state, (state, model.observation @ state + root_r @ random.normal(key_r, (2,)))

    start = jnp.array([0.0, 0.0, 1.0, 0.5])
    return lax.scan(step, start, random.split(key, steps))[1]


def kalman_filter(model, observations):
    f, h, q, r = model

    def step(carry, y):
        mean, cov = carry
        mean, cov = f @ mean, f @ cov @ f.T + q
        predicted = mean, cov
        residual, s = y - h @ mean, h @ cov @ h.T + r
        chol = jnp.linalg.cholesky(s)
        gain = cho_solve((chol, True), h @ cov).T
        white = solve_triangular(chol, residual, lower=True)
        log_det = 2 * jnp.log(jnp.diag(chol)).sum()
        log_p = -0.5 * (white @ white + log_det + y.shape[0] * jnp.log(2 * jnp.pi))
        mean, cov = mean + gain @ residual, cov - gain @ s @ gain.T
        return (mean, cov), (log_p, (mean, cov), predicted)

    start = jnp.zeros(4), 10.0 * jnp.eye(4)
    _, (log_p, filtered, predicted) = lax.scan(step, start, observations)
    return log_p.sum(), filtered, predicted


def smooth(model, filtered, predicted):
    means, covs = filtered

    def step(carry, inputs):
        later_mean, later_cov = carry
        mean, cov, next_mean, next_cov = inputs
        gain = jnp.linalg.solve(next_cov, model.transition @ cov).T
        mean = mean + gain @ (later_mean - next_mean)
        cov = cov + gain @ (later_cov - next_cov) @ gain.T
        return (mean, cov), mean

    inputs = means[:-1], covs[:-1], predicted[0][1:], predicted[1][1:]
    _, smoothed = lax.scan(step, (means[-1], covs[-1]), inputs, reverse=True)
    return jnp.concatenate([smoothed, means[-1:]])


def loss(params, observations):
    log_p = jax.vmap(lambda ys: kalman_filter(make_model(params), ys)[0])(observations)
    return -log_p.sum() / observations[..., 0].size


@partial(jax.jit, static_argnames="rounds")
def fit(params, observations, rounds, rate=0.3):
    def update(params, _):
        value, gradient = jax.value_and_grad(loss)(params, observations)
        return jax.tree.map(lambda p, g: p - rate * g, params, gradient), value

    return lax.scan(update, params, None, length=rounds)


def main(seed=0, series=4, steps=100, rounds=20):
    """Return the losses, the fitted parameters, and errors of the sensor, filter and smoother."""
    truth = {"log_q": jnp.log(0.5), "log_r": jnp.log(0.2)}
    keys = random.split(random.PRNGKey(seed), series)
    states, ys = jax.vmap(lambda key: simulate(key, make_model(truth), steps))(keys)
    params, losses = fit({"log_q": jnp.zeros(()), "log_r": jnp.zeros(())}, ys, rounds)

    model = make_model(params)
    _, filtered, predicted = jax.jit(jax.vmap(kalman_filter, in_axes=(None, 0)))(model, ys)
    smoothed = jax.vmap(smooth, in_axes=(None, 0, 0))(model, filtered, predicted)
    places = ys, filtered[0][..., :2], smoothed[..., :2]
    errors = jnp.array([jnp.sqrt(jnp.mean((p - states[..., :2]) ** 2)) for p in places])
    return {"losses": losses, "log_q": params["log_q"], "log_r": params["log_r"], "errors": errors}


if __name__ == "__main__":
    for name, value in main().items():
        print(name, value)
