"""Radial Schroedinger equation by Numerov and by finite differences (atomic physics; Thijssen)."""

import numpy as np


def numerov(energy, r, ell):
    h = r[1] - r[0]
    k = 2 * (energy + 1 / r) - ell * (ell + 1) / r**2
    u = np.zeros_like(r)
    u[-1], u[-2] = 0.0, 1e-8
    c = h * h / 12
    for i in range(len(r) - 2, 0, -1):
        ahead = (1 + c * k[i + 1]) * u[i + 1]
        u[i - 1] = (2 * (1 - 5 * c * k[i]) * u[i] - ahead) / (1 + c * k[i - 1])
    return u


def count_nodes(u):
    return int(np.sum(u[1:] * u[:-1] < 0))


def shoot(r, ell, low, high):
    left = numerov(low, r, ell)[0]
    while high - low > 1e-7:
        middle = 0.5 * (low + high)
        value = numerov(middle, r, ell)[0]
        if left * value <= 0:
            high = middle
        else:
            low, left = middle, value
    return 0.5 * (low + high)


def inputs():
    return np.linspace(1e-3, 40, 800), [(0, -0.6, -0.4), (0, -0.15, -0.1), (1, -0.15, -0.1)]


def run(r, brackets):
    energies = np.array([shoot(r, ell, low, high) for ell, low, high in brackets[:2]])
    u = numerov(energies[0], r, 0)
    u /= np.sqrt(np.trapezoid(u**2, r))
    n = 300
    x = np.linspace(0, 30, n + 2)[1:-1]
    h = x[1] - x[0]
    H = np.diag(1 / h**2 - 1 / x) - 0.5 / h**2 * (np.eye(n, k=1) + np.eye(n, k=-1))
    values = np.linalg.eigvalsh(H)[:4]
    return energies, values, np.abs(u[::20]), count_nodes(u[5:700])


def main():
    return run(*inputs())
