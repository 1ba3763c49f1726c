"""Cyclic Jacobi eigenvalue algorithm (numerical linear algebra; Numerical Recipes, 11.1)."""

import numpy as np


def jacobi(a, sweeps=8):
    a = a.copy()
    n = a.shape[0]
    v = np.eye(n)
    for _ in range(sweeps):
        off = np.sqrt(np.sum(np.tril(a, -1) ** 2))
        if off < 1e-12:
            break
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(a[p, q]) < 1e-15:
                    continue
                theta = (a[q, q] - a[p, p]) / (2.0 * a[p, q])
                t = 1.0 / (abs(theta) + np.sqrt(theta * theta + 1.0))
                if theta < 0:
                    t = -t
                c = 1.0 / np.sqrt(t * t + 1.0)
                s = t * c
                ap, aq = a[:, p].copy(), a[:, q].copy()
                a[:, p], a[:, q] = c * ap - s * aq, s * ap + c * aq
                ap, aq = a[p].copy(), a[q].copy()
                a[p], a[q] = c * ap - s * aq, s * ap + c * aq
                vp = v[:, p].copy()
                v[:, p] = c * vp - s * v[:, q]
                v[:, q] = s * vp + c * v[:, q]
    order = np.argsort(np.diag(a))
    return np.diag(a)[order], v[:, order]


def inputs():
    rng = np.random.default_rng(4)
    m = rng.standard_normal((20, 20))
    return ((m + m.T) / 2,)


def run(a):
    values, vectors = jacobi(a)
    return values, np.abs(vectors), np.allclose(a @ vectors, vectors * values)


def main():
    return run(*inputs())
