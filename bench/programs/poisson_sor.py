"""Poisson equation by red-black SOR and by loops over points (PDEs; Numerical Recipes, 20.5)."""

import numpy as np


def sor_loops(f, h, omega, sweeps):
    n, m = f.shape
    u = np.zeros((n, m))
    for _ in range(sweeps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                r = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]
                u[i, j] += omega / 4 * (r - h * h * f[i, j])
    return u


def sor_red_black(f, h, omega, sweeps):
    u = np.zeros_like(f)
    i, j = np.indices(f.shape)
    inside = (i > 0) & (i < f.shape[0] - 1) & (j > 0) & (j < f.shape[1] - 1)
    red = inside & ((i + j) % 2 == 0)
    black = inside & ((i + j) % 2 == 1)
    for _ in range(sweeps):
        for mask in (red, black):
            r = np.zeros_like(u)
            r[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
            r -= 4 * u + h * h * f
            u[mask] += omega / 4 * r[mask]
    return u


def inputs():
    x = np.linspace(0, 1, 101)
    y = x[:, np.newaxis]
    return (-2 * np.pi**2 * np.sin(np.pi * x) * np.sin(np.pi * y),)


def run(f):
    coarse = f[::4, ::4]
    n = coarse.shape[0]
    u = sor_loops(coarse, 1 / (n - 1), 2 / (1 + np.sin(np.pi / n)), 40)
    v = sor_red_black(f, 0.01, 1.9, 60)
    return u, v, u[n // 2, n // 2]


def main():
    return run(*inputs())
