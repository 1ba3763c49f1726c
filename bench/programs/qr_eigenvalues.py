"""Eigenvalues by shifted QR iteration with deflation (linear algebra; Trefethen and Bau, 28)."""

import numpy as np


def wilkinson_shift(T):
    a, b, c = T[-2, -2], T[-1, -2], T[-1, -1]
    delta = (a - c) / 2
    sign = 1.0 if delta >= 0 else -1.0
    return c - sign * b**2 / (abs(delta) + np.sqrt(delta**2 + b**2))


def eigenvalues(A):
    T = A.copy()
    values = []
    count = 0
    while T.shape[0] > 1:
        mu = wilkinson_shift(T)
        n = T.shape[0]
        Q, R = np.linalg.qr(T - mu * np.eye(n))
        T = R @ Q + mu * np.eye(n)
        count += 1
        if abs(T[-1, -2]) < 1e-13:
            values.append(T[-1, -1])
            T = T[:-1, :-1]
    values.append(T[0, 0])
    return np.sort(values), count


def inputs():
    n = 70
    d = np.cos(np.arange(n)) * 4
    e = 1.0 / np.arange(1, n)
    return (np.diag(d) + np.diag(e, 1) + np.diag(e, -1),)


def run(A):
    values, count = eigenvalues(A)
    exact = np.linalg.eigvalsh(A)
    return values, count < 500, np.max(np.abs(values - exact)) < 1e-10


def main():
    return run(*inputs())
