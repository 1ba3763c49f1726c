"""Local regression with tricube weights and robust iterations (statistics; Cleveland 1979)."""

import numpy as np


def lowess(x, y, f=0.25, iterations=3):
    n = len(x)
    r = int(np.ceil(f * n))
    h = np.array([np.sort(np.abs(x - x[i]))[r] for i in range(n)])
    w = np.clip(np.abs((x[:, None] - x[None, :]) / h), 0.0, 1.0)
    w = (1 - w**3) ** 3
    fitted = np.zeros(n)
    delta = np.ones(n)
    for _ in range(iterations):
        for i in range(n):
            weights = delta * w[:, i]
            b = np.array([np.sum(weights * y), np.sum(weights * y * x)])
            A = np.array(
                [
                    [np.sum(weights), np.sum(weights * x)],
                    [np.sum(weights * x), np.sum(weights * x * x)],
                ]
            )
            beta = np.linalg.solve(A, b)
            fitted[i] = beta[0] + beta[1] * x[i]
        residuals = y - fitted
        s = np.median(np.abs(residuals))
        delta = np.clip(residuals / (6.0 * s), -1, 1)
        delta = (1 - delta**2) ** 2
    return fitted, delta


def inputs():
    rng = np.random.default_rng(78)
    x = np.sort(rng.uniform(0, 2 * np.pi, 300))
    y = np.sin(x) + 0.3 * rng.standard_normal(300)
    y[::25] += 3
    return x, y


def run(x, y):
    fitted, delta = lowess(x, y)
    return fitted, delta, np.sum(delta < 0.1), np.mean(np.abs(fitted - np.sin(x)))


def main():
    return run(*inputs())
