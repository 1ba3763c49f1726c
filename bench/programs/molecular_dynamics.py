"""Velocity Verlet of a Lennard-Jones fluid with periodic boundaries (molecular dynamics; Allen)."""

import numpy as np


def forces(pos, box, cutoff):
    n = pos.shape[0]
    i, j = np.triu_indices(n, k=1)
    d = pos[i] - pos[j]
    d -= box * np.rint(d / box)
    r2 = np.einsum("ij,ij->i", d, d)
    near = r2 < cutoff * cutoff
    d, r2, i, j = d[near], r2[near], i[near], j[near]
    inv6 = 1.0 / r2**3
    f = (48 * inv6 * (inv6 - 0.5) / r2)[:, None] * d
    total = np.zeros_like(pos)
    np.add.at(total, i, f)
    np.subtract.at(total, j, f)
    return total, 4 * np.sum(inv6 * (inv6 - 1)), np.sum(48 * inv6 * (inv6 - 0.5))


def inputs():
    side, spacing = 5, 1.2
    grid = np.arange(side) * spacing
    pos = np.stack(np.meshgrid(grid, grid, grid), axis=-1).reshape(-1, 3)
    vel = np.random.default_rng(31).normal(0, 1, pos.shape)
    return pos, vel - vel.mean(axis=0), side * spacing


def run(pos, vel, box):
    dt, steps = 0.002, 40
    pos, vel = pos.copy(), vel.copy()
    f, _, _ = forces(pos, box, 2.5)
    record = np.empty((steps, 3))
    for k in range(steps):
        vel += 0.5 * dt * f
        pos = (pos + dt * vel) % box
        f, potential, virial = forces(pos, box, 2.5)
        vel += 0.5 * dt * f
        kinetic = 0.5 * (vel**2).sum()
        record[k] = kinetic, potential, (2 * kinetic + virial) / (3 * box**3)
    speeds, _ = np.histogram(np.linalg.norm(vel, axis=1), bins=8, range=(0, 6))
    return vel, record, speeds.sum()


def main():
    return run(*inputs())
