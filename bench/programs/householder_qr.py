"""Householder QR and least squares (numerical linear algebra; Trefethen and Bau, lecture 10)."""

import numpy as np


def householder(a):
    r = a.copy()
    m, n = r.shape
    vs = []
    for k in range(n):
        x = r[k:, k]
        v = x.copy()
        v[0] += np.sign(x[0]) * np.linalg.norm(x)
        v /= np.linalg.norm(v)
        r[k:, k:] -= 2.0 * np.outer(v, v @ r[k:, k:])
        vs.append(v)
    return vs, np.triu(r[:n])


def apply_q_transpose(vs, b):
    y = b.copy()
    for k, v in enumerate(vs):
        y[k:] -= 2.0 * v * (v @ y[k:])
    return y


def back_substitution(r, y):
    n = r.shape[1]
    x = np.empty(n)
    for i in reversed(range(n)):
        x[i] = (y[i] - np.dot(r[i, i + 1 :], x[i + 1 :])) / r[i, i]
    return x


def inputs():
    rng = np.random.default_rng(1)
    a = rng.normal(size=(500, 200))
    x = rng.normal(size=200)
    return a, a @ x + 0.01 * rng.normal(size=500)


def run(a, b):
    vs, r = householder(a)
    x = back_substitution(r, apply_q_transpose(vs, b)[: a.shape[1]])
    return r, x, np.linalg.norm(b - a @ x)


def main():
    return run(*inputs())
