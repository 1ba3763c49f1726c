"""LU factorisation with partial pivoting (numerical linear algebra; Golub and Van Loan, 3.4)."""

import numpy as np


def lu(a):
    n = a.shape[0]
    u = a.copy()
    perm = np.arange(n)
    for k in range(n - 1):
        p = k + np.argmax(np.abs(u[k:, k]))
        if u[p, k] == 0.0:
            raise ValueError("matrix is singular")
        if p != k:
            u[[k, p]] = u[[p, k]]
            perm[[k, p]] = perm[[p, k]]
        u[k + 1 :, k] /= u[k, k]
        u[k + 1 :, k + 1 :] -= np.outer(u[k + 1 :, k], u[k, k + 1 :])
    lower = np.tril(u, -1) + np.eye(n)
    return perm, lower, np.triu(u)


def solve(perm, lower, upper, b):
    n = len(b)
    y = np.zeros(n)
    for i in range(n):
        y[i] = b[perm[i]] - lower[i, :i] @ y[:i]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - upper[i, i + 1 :] @ x[i + 1 :]) / upper[i, i]
    return x


def inputs():
    rng = np.random.default_rng(0)
    n = 320
    return rng.standard_normal((n, n)), rng.standard_normal(n)


def run(a, b):
    perm, lower, upper = lu(a)
    x = solve(perm, lower, upper, b)
    residual = np.linalg.norm(a @ x - b)
    return x, perm, np.abs(np.diag(upper)).min(), residual < 1e-9


def main():
    return run(*inputs())
