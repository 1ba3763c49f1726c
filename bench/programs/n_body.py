"""Gravitational n-body system by leapfrog with softening (astrophysics; Aarseth)."""

import numpy as np


def acceleration(pos, mass, G, softening):
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inv_r3 = dx**2 + dy**2 + dz**2 + softening**2
    inv_r3[inv_r3 > 0] = inv_r3[inv_r3 > 0] ** (-1.5)
    ax = G * (dx * inv_r3) @ mass
    ay = G * (dy * inv_r3) @ mass
    az = G * (dz * inv_r3) @ mass
    return np.hstack((ax, ay, az))


def energy(pos, vel, mass, G):
    kinetic = 0.5 * np.sum(mass * vel**2)
    delta = pos[:, np.newaxis, :] - pos[np.newaxis, :, :]
    r = np.sqrt(np.sum(delta**2, axis=-1))
    inverse = np.zeros_like(r)
    inverse[r > 0] = 1.0 / r[r > 0]
    potential = -G * np.sum(np.triu(mass * mass.T * inverse, 1))
    return kinetic, potential


def inputs():
    np.random.seed(17)
    n = 100
    mass = 20.0 * np.ones((n, 1)) / n
    pos = np.random.randn(n, 3)
    vel = np.random.randn(n, 3)
    vel -= np.mean(mass * vel, 0) / np.mean(mass)
    return pos, vel, mass


def run(pos, vel, mass):
    G, softening, dt = 1.0, 0.1, 0.01
    pos, vel = pos.copy(), vel.copy()
    acc = acceleration(pos, mass, G, softening)
    energies = np.zeros((2, 60))
    for i in range(60):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc = acceleration(pos, mass, G, softening)
        vel += acc * dt / 2.0
        energies[:, i] = energy(pos, vel, mass, G)
    return pos, vel, energies


def main():
    return run(*inputs())
