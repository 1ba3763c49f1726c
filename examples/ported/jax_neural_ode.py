"""A neural ordinary differential equation, written for JAX.

A small network is the velocity field of a spiral. Runge-Kutta steps in a `lax.scan` solve the
equation. Adam, written by hand over the tree of parameters, trains the network by gradients
through the solver.
Source: Chen et al., "Neural Ordinary Differential Equations", 2018.
"""

from functools import partial
from itertools import pairwise

import jax
import jax.flatten_util
import jax.numpy as jnp
from jax import lax, random


def init_params(key, sizes):
    params = []
    for n, m in pairwise(sizes):
        key, key_w = random.split(key)
        w = random.normal(key_w, (n, m)) * jnp.sqrt(2.0 / (n + m))
        params.append({"w": w, "b": jnp.zeros(m)})
    return params


def velocity(params, t, y):
    *hidden, last = params
    h = y**3
    for layer in hidden:
        h = jnp.tanh(h @ layer["w"] + layer["b"])
    return h @ last["w"] + last["b"]


def odeint(f, y0, ts):
    """Return the solution at times `ts` by the classical Runge-Kutta method."""

    def step(carry, t_next):
        t, y = carry
        h = t_next - t
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + h / 2, y + h / 2 * k2)
        k4 = f(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return (t_next, y), y

    _, ys = lax.scan(step, (ts[0], y0), ts[1:])
    return jnp.concatenate([y0[None], ys])


def true_velocity(t, y):
    return y**3 @ jnp.array([[-0.1, 2.0], [-2.0, -0.1]])


def loss_fn(params, y0, ts, targets):
    ys = jax.vmap(lambda y: odeint(partial(velocity, params), y, ts))(y0)
    error = ys - targets
    penalty = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params))
    return jnp.mean(jnp.abs(error)) + 1e-5 * penalty, jnp.max(jnp.abs(error))


def adam_init(params):
    m, v = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
    return m, v, jnp.zeros((), dtype=jnp.int32)


def adam_update(grads, state, params, rate, b1=0.9, b2=0.999, eps=1e-8):
    m, v, count = state
    count = count + 1
    m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, grads)
    v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * jnp.square(g), v, grads)

    def new(p, m, v):
        return p - rate * (m / (1 - b1**count)) / (jnp.sqrt(v / (1 - b2**count)) + eps)

    return jax.tree.map(new, params, m, v), (m, v, count)


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, state, y0, ts, targets):
    (loss, worst), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, y0, ts, targets)
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / norm), grads)
    params, state = adam_update(grads, state, params, 0.01)
    return params, state, loss, worst


def main(seed=0, rounds=60, batch=8, length=16, hidden=16):
    """Return the losses, the last largest error, the field at a point, and all parameters."""
    key_params, key_batch = random.split(random.key(seed))
    ts = jnp.linspace(0.0, 3.0, 200)
    orbit = jax.jit(partial(odeint, true_velocity))(jnp.array([2.0, 0.0]), ts)
    params = init_params(key_params, [2, hidden, hidden, 2])
    state = adam_init(params)
    losses = []
    for i in range(rounds):
        key = random.fold_in(key_batch, i)
        start = random.randint(key, (batch,), 0, len(ts) - length)
        targets = jax.vmap(lambda s: lax.dynamic_slice(orbit, (s, 0), (length, 2)))(start)
        params, state, loss, worst = train_step(params, state, targets[:, 0], ts[:length], targets)
        losses.append(loss)
    flat, _ = jax.flatten_util.ravel_pytree(params)
    at_start = velocity(params, 0.0, orbit[0])
    return {"losses": jnp.stack(losses), "worst": worst, "velocity": at_start, "params": flat}


if __name__ == "__main__":
    for name, value in main().items():
        print(name, value)
