"""Cholesky factorisation by the Cholesky-Banachiewicz recurrence (numerical linear algebra)."""

import numpy as np


def cholesky(a):
    n = len(a)
    L = np.zeros((n, n), dtype=np.float64)
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j] - np.dot(L[i, :j], L[j, :j])
            if i == j:
                if s <= 0:
                    raise ValueError("matrix is not positive definite")
                L[i, j] = np.sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    return L


def inputs():
    np.random.seed(0)
    n = 120
    m = np.random.randn(n, n)
    return (m @ m.T + n * np.eye(n),)


def run(a):
    L = cholesky(a)
    logdet = 2.0 * np.sum(np.log(np.diag(L)))
    return L, logdet, np.allclose(L @ L.T, a)


def main():
    return run(*inputs())
