"""Classical and modified Gram-Schmidt (numerical linear algebra; Trefethen and Bau, lecture 8)."""

import numpy as np


def classical(a):
    m, n = a.shape
    q = np.zeros((m, n))
    r = np.zeros((n, n))
    for j in range(n):
        v = a[:, j].copy()
        for i in range(j):
            r[i, j] = q[:, i] @ a[:, j]
            v -= r[i, j] * q[:, i]
        r[j, j] = np.linalg.norm(v)
        q[:, j] = v / r[j, j]
    return q, r


def modified(a):
    v = a.astype(float)
    n = v.shape[1]
    r = np.zeros((n, n))
    for i in range(n):
        r[i, i] = np.sqrt(np.sum(v[:, i] ** 2))
        v[:, i] /= r[i, i]
        r[i, i + 1 :] = v[:, i] @ v[:, i + 1 :]
        v[:, i + 1 :] -= np.outer(v[:, i], r[i, i + 1 :])
    return v, r


def inputs():
    return (np.random.default_rng(2).random((200, 70)) + np.eye(200, 70),)


def run(a):
    q1, r1 = classical(a)
    q2, r2 = modified(a)
    eye = np.eye(a.shape[1])
    orthogonal = np.abs(q2.T @ q2 - eye).max() < 1e-10
    return r1, r2, q2, orthogonal, np.allclose(q1 @ r1, a)


def main():
    return run(*inputs())
