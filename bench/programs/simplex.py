"""Simplex method on a dense tableau with Bland's rule (operations research; Chvatal)."""

import numpy as np


def simplex(c, A, b):
    m, n = A.shape
    T = np.zeros((m + 1, n + m + 1))
    T[:m, :n] = A
    T[:m, n : n + m] = np.eye(m)
    T[:m, -1] = b
    T[-1, :n] = -c
    basis = list(range(n, n + m))
    pivots = 0
    while True:
        entering = -1
        for j in range(n + m):
            if T[-1, j] < -1e-9:
                entering = j
                break
        if entering < 0:
            break
        leaving, best = -1, np.inf
        for i in range(m):
            if T[i, entering] > 1e-9:
                ratio = T[i, -1] / T[i, entering]
                if ratio < best:
                    leaving, best = i, ratio
        if leaving < 0:
            raise ValueError("problem is unbounded")
        T[leaving] /= T[leaving, entering]
        for i in range(m + 1):
            if i != leaving and T[i, entering] != 0:
                T[i] -= T[i, entering] * T[leaving]
        basis[leaving] = entering
        pivots += 1
    x = np.zeros(n + m)
    x[basis] = T[:m, -1]
    return x[:n], T[-1, -1], pivots


def inputs():
    rng = np.random.default_rng(106)
    m, n = 80, 100
    return rng.uniform(1, 10, n), rng.uniform(0.1, 5, (m, n)), rng.uniform(50, 200, m)


def run(c, A, b):
    x, value, pivots = simplex(c, A, b)
    slack = b - A @ x
    return x, value, pivots, np.all(slack > -1e-7), np.isclose(c @ x, value)


def main():
    return run(*inputs())
