"""Flow around a cylinder by a lattice Boltzmann method, written for JAX.

Two dimensions, nine velocities, one relaxation time. Walls above, below and at the cylinder
reflect, the left edge has a given velocity, the right edge lets the flow out.
Source: Krueger et al., "The Lattice Boltzmann Method", 2017, chapters 3 and 5.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

STEPS = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
VELOCITIES = jnp.array(STEPS)
WEIGHTS = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
OPPOSITE = jnp.array([0, 3, 4, 1, 2, 7, 8, 5, 6])
LEFT, MIDDLE, RIGHT = jnp.array([3, 6, 7]), jnp.array([0, 2, 4]), jnp.array([1, 5, 8])


def equilibrium(rho, u):
    along = jnp.einsum("qd,xyd->xyq", VELOCITIES, u)
    square = jnp.sum(u**2, axis=-1, keepdims=True)
    return rho[..., None] * WEIGHTS * (1 + 3 * along + 4.5 * along**2 - 1.5 * square)


def moments(f):
    rho = f.sum(axis=-1)
    return rho, jnp.einsum("xyq,qd->xyd", f, VELOCITIES) / rho[..., None]


def stream(f):
    for q, step in enumerate(STEPS):
        f = f.at[..., q].set(jnp.roll(f[..., q], step, axis=(0, 1)))
    return f


def open_ends(f, u_in):
    """Let the flow out at the right, and give it the velocity `u_in` at the left (Zou and He)."""
    f = f.at[-1, :, LEFT].set(f[-2, :, LEFT])
    u = moments(f)[1].at[0, 1:-1].set(u_in[1:-1])
    known = f[0, :, MIDDLE].sum(axis=0) + 2 * f[0, :, LEFT].sum(axis=0)
    rho = known / (1 - u[0, :, 0])
    inflow = equilibrium(rho[None], u[:1])[0]
    return f.at[0, :, RIGHT].set(inflow[:, RIGHT].T), u


def make_obstacle(nx, ny):
    x, y = jnp.meshgrid(jnp.arange(nx), jnp.arange(ny), indexing="ij")
    solid = (x - nx // 4) ** 2 + (y - ny // 2) ** 2 < (ny / 8) ** 2
    return solid.at[:, jnp.array([0, -1])].set(True)


@partial(jax.jit, static_argnames=("steps", "every"))
def run(f, solid, u_in, omega, steps, every):
    def step(f, _):
        f, u = open_ends(f, u_in)
        rho = f.sum(axis=-1)
        collided = f - omega * (f - equilibrium(rho, u))
        reflected = f[..., OPPOSITE]
        wall = jnp.where(solid[..., None], reflected, collided)
        push = jnp.where(solid[1:-1, 1:-1, None], f[1:-1, 1:-1] - reflected[1:-1, 1:-1], 0.0)
        return stream(wall), jnp.einsum("xyq,qd->d", push, VELOCITIES)

    def block(f, _):
        f, force = lax.scan(step, f, None, length=every)
        return f, (force.mean(axis=0), jnp.max(jnp.abs(moments(f)[1])))

    return lax.scan(block, f, None, length=steps // every)


def main(nx=80, ny=32, steps=200, every=20, reynolds=40.0, speed=0.08):
    """Return forces on the cylinder and top speeds over time, the mass, and the curl at the end."""
    solid = make_obstacle(nx, ny)
    y = jnp.arange(ny)
    profile = 4 * speed * y * (ny - 1 - y) / (ny - 1) ** 2
    u_in = jnp.stack([profile, 0.01 * speed * jnp.sin(2 * jnp.pi * y / ny)], axis=-1)
    u = jnp.where(solid[..., None], 0.0, jnp.broadcast_to(u_in, (nx, ny, 2)))
    omega = 1 / (3 * speed * (ny / 4) / reynolds + 0.5)
    f, (force, top) = run(equilibrium(jnp.ones((nx, ny)), u), solid, u_in, omega, steps, every)
    u = jnp.where(solid[..., None], 0.0, moments(f)[1])
    curl = jnp.gradient(u[..., 1], axis=0) - jnp.gradient(u[..., 0], axis=1)
    return {"force": force, "top": top, "mass": f.sum(), "curl": curl}


if __name__ == "__main__":
    for name, value in main().items():
        print(name, value)
