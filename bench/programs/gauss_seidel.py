"""Gauss-Seidel and SOR on a diagonally dominant system (linear algebra; Saad, chapter 4)."""

import numpy as np


def sor(A, b, omega, tol=1e-10, max_sweeps=100):
    n = len(b)
    x = np.zeros_like(b)
    for sweep in range(max_sweeps):
        change = 0.0
        for i in range(n):
            sigma = A[i, :i] @ x[:i] + A[i, i + 1 :] @ x[i + 1 :]
            new = (1 - omega) * x[i] + omega * (b[i] - sigma) / A[i, i]
            change = max(change, abs(new - x[i]))
            x[i] = new
        if change < tol:
            break
    return x, sweep + 1


def inputs():
    rng = np.random.default_rng(5)
    n = 150
    A = rng.uniform(-1, 1, (n, n))
    A[np.arange(n), np.arange(n)] = np.abs(A).sum(axis=1)
    return A, rng.uniform(-1, 1, n)


def run(A, b):
    x, sweeps = sor(A, b, 1.0)
    y, sweeps_sor = sor(A, b, 1.1)
    return x, y, sweeps, sweeps_sor, np.linalg.norm(A @ x - b) < 1e-6


def main():
    return run(*inputs())
