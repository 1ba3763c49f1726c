"""GMRES with Givens rotations (numerical linear algebra; Saad, Iterative Methods, 6.5)."""

import numpy as np


def gmres(A, b, m):
    n = b.size
    beta = np.linalg.norm(b)
    Q = np.zeros((n, m + 1))
    H = np.zeros((m + 1, m))
    cs, sn = np.zeros(m), np.zeros(m)
    g = np.zeros(m + 1)
    g[0] = beta
    Q[:, 0] = b / beta
    errors = [1.0]
    for k in range(m):
        w = A @ Q[:, k]
        for i in range(k + 1):
            H[i, k] = w @ Q[:, i]
            w = w - H[i, k] * Q[:, i]
        H[k + 1, k] = np.linalg.norm(w)
        Q[:, k + 1] = w / H[k + 1, k]
        for i in range(k):
            temp = cs[i] * H[i, k] + sn[i] * H[i + 1, k]
            H[i + 1, k] = -sn[i] * H[i, k] + cs[i] * H[i + 1, k]
            H[i, k] = temp
        rho = np.hypot(H[k, k], H[k + 1, k])
        cs[k], sn[k] = H[k, k] / rho, H[k + 1, k] / rho
        H[k, k], H[k + 1, k] = rho, 0.0
        g[k + 1] = -sn[k] * g[k]
        g[k] = cs[k] * g[k]
        errors.append(abs(g[k + 1]) / beta)
        if errors[-1] < 1e-9:
            break
    y = np.linalg.solve(H[: k + 1, : k + 1], g[: k + 1])
    return Q[:, : k + 1] @ y, errors


def inputs():
    rng = np.random.default_rng(6)
    n = 1200
    return np.eye(n) * 1.6 + rng.standard_normal((n, n)) / np.sqrt(n), rng.standard_normal(n)


def run(A, b):
    x, errors = gmres(A, b, 80)
    return x, len(errors), np.log10(errors[:8]), np.allclose(A @ x, b, atol=1e-6)


def main():
    return run(*inputs())
