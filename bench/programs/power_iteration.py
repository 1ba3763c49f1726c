"""Power iteration with deflation for the leading eigenpairs (numerical linear algebra)."""

import numpy as np


def leading(a, x, tol=1e-11, max_iter=3000):
    x = x / np.linalg.norm(x)
    value = 0.0
    for it in range(max_iter):
        y = a @ x
        x = y / np.linalg.norm(y)
        new = x @ a @ x
        if abs(new - value) < tol * abs(new):
            break
        value = new
    return new, x, it


def inputs():
    rng = np.random.default_rng(3)
    q, _ = np.linalg.qr(rng.standard_normal((400, 400)))
    values = 10.0 * 0.8 ** np.arange(400)
    return (q * values) @ q.T, rng.standard_normal(400)


def run(a, x0):
    a = a.copy()
    values = []
    for _ in range(4):
        value, x, _ = leading(a, x0)
        values.append(value)
        a -= value * np.outer(x, x)
    return np.array(values), np.trace(a)


def main():
    return run(*inputs())
