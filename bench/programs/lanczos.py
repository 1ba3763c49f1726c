"""Lanczos tridiagonalisation with reorthogonalisation (numerical linear algebra; Demmel, 7.3)."""

import numpy as np


def lanczos(matvec, q, steps):
    n = q.shape[0]
    Q = np.zeros((steps, n))
    alpha = np.zeros(steps)
    beta = np.zeros(steps - 1)
    Q[0] = q / np.linalg.norm(q)
    for j in range(steps):
        z = matvec(Q[j])
        alpha[j] = Q[j].dot(z)
        z -= Q[: j + 1].T @ (Q[: j + 1] @ z)
        z -= Q[: j + 1].T @ (Q[: j + 1] @ z)
        if j < steps - 1:
            beta[j] = np.linalg.norm(z)
            Q[j + 1] = z / beta[j]
    return alpha, beta


def inputs():
    n = 6000
    return np.linspace(0.0, 1.0, n) ** 2 * 50, np.random.default_rng(7).random(n)


def run(potential, start):
    def hamiltonian(v):
        out = (2.0 + potential) * v
        out[1:] -= v[:-1]
        out[:-1] -= v[1:]
        return out

    alpha, beta = lanczos(hamiltonian, start, 120)
    T = np.diag(alpha) + np.diag(beta, 1) + np.diag(beta, -1)
    ritz = np.linalg.eigvalsh(T)
    return alpha[:10], beta[:10], ritz[-5:], T.shape


def main():
    return run(*inputs())
