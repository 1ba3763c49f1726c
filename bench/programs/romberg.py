"""Romberg, Gauss-Legendre and Simpson quadrature (numerical analysis; Burden and Faires)."""

import numpy as np


def romberg(f, a, b, levels):
    R = np.zeros((levels, levels))
    h = b - a
    R[0, 0] = 0.5 * h * (f(a) + f(b))
    for i in range(1, levels):
        h /= 2
        x = a + h * np.arange(1, 2**i, 2)
        R[i, 0] = 0.5 * R[i - 1, 0] + h * np.sum(f(x))
        for j in range(1, i + 1):
            R[i, j] = R[i, j - 1] + (R[i, j - 1] - R[i - 1, j - 1]) / (4**j - 1)
    return R


def gauss_legendre(n):
    k = np.arange(1, n)
    beta = k / np.sqrt(4.0 * k**2 - 1)
    nodes, vectors = np.linalg.eigh(np.diag(beta, -1) + np.diag(beta, 1))
    return nodes, 2 * vectors[0] ** 2


def simpson(y, h):
    return h / 3 * (y[0] + y[-1] + 4 * y[1:-1:2].sum() + 2 * y[2:-1:2].sum())


def inputs():
    return np.linspace(0.1, 3.0, 40), 9


def run(parameters, levels):
    integrals = np.zeros((len(parameters), 3))
    nodes, weights = gauss_legendre(24)
    x = np.linspace(0, 2, 2001)
    for i, k in enumerate(parameters):

        def f(t, k=k):
            return np.exp(-k * t) * np.sin(3 * t) + k * np.sqrt(t + 1)

        R = romberg(f, 0.0, 2.0, levels)
        integrals[i, 0] = R[-1, -1]
        integrals[i, 1] = np.dot(weights, f(nodes + 1))
        integrals[i, 2] = simpson(f(x), x[1] - x[0])
    spread = np.ptp(integrals, axis=1)
    return integrals, spread.max() < 1e-8, R[:5, :3], np.sort(weights)[::2]


def main():
    return run(*inputs())
