"""Explicit heat equation in two dimensions with a hot disc (PDEs; scientific computing course)."""

import numpy as np


def inputs():
    nx = ny = 200
    u = np.full((nx, ny), 300.0)
    x, y = np.meshgrid(np.linspace(0, 10, nx), np.linspace(0, 10, ny), indexing="ij")
    u[(x - 5) ** 2 + (y - 5) ** 2 < 4] = 700.0
    return u, 4.0, 0.05


def step(u0, u, D, dt, dx2, dy2):
    u[1:-1, 1:-1] = u0[1:-1, 1:-1] + D * dt * (
        (u0[2:, 1:-1] - 2 * u0[1:-1, 1:-1] + u0[:-2, 1:-1]) / dx2
        + (u0[1:-1, 2:] - 2 * u0[1:-1, 1:-1] + u0[1:-1, :-2]) / dy2
    )
    return u.copy(), u


def run(u0, D, dx):
    dx2 = dx * dx
    dt = dx2 * dx2 / (2 * D * (dx2 + dx2))
    u = u0.copy()
    u0 = u0.copy()
    snapshots = np.zeros((5, *u.shape))
    for m in range(150):
        if m % 30 == 0:
            snapshots[m // 30] = u
        u0, u = step(u0, u, D, dt, dx2, dx2)
    return u, snapshots.mean(axis=(1, 2)), (u > 400).sum(), dt


def main():
    return run(*inputs())
