"""Gray-Scott reaction and diffusion (pattern formation; Pearson, Science 1993)."""

import numpy as np


def laplacian(Z):
    return Z[:-2, 1:-1] + Z[1:-1, :-2] - 4 * Z[1:-1, 1:-1] + Z[1:-1, 2:] + Z[2:, 1:-1]


def inputs():
    n = 128
    np.random.seed(3)
    U = np.ones((n + 2, n + 2))
    V = np.zeros((n + 2, n + 2))
    r = 12
    U[n // 2 - r : n // 2 + r, n // 2 - r : n // 2 + r] = 0.50
    V[n // 2 - r : n // 2 + r, n // 2 - r : n // 2 + r] = 0.25
    U += 0.05 * np.random.random((n + 2, n + 2))
    V += 0.05 * np.random.random((n + 2, n + 2))
    return U, V, 0.16, 0.08, 0.035, 0.065


def run(U, V, Du, Dv, F, k):
    U, V = U.copy(), V.copy()
    u, v = U[1:-1, 1:-1], V[1:-1, 1:-1]
    for _ in range(200):
        Lu = laplacian(U)
        Lv = laplacian(V)
        uvv = u * v * v
        u += Du * Lu - uvv + F * (1 - u)
        v += Dv * Lv + uvv - (F + k) * v
        for Z in (U, V):
            Z[0, :] = Z[-2, :]
            Z[-1, :] = Z[1, :]
            Z[:, 0] = Z[:, -2]
            Z[:, -1] = Z[:, 1]
    return u, V, v.max(), np.count_nonzero(v > 0.2)


def main():
    return run(*inputs())
