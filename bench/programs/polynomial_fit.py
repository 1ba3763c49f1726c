"""Polynomial least squares with ridge and cross-validation (numerical analysis, statistics)."""

import numpy as np


def fit(x, y, degree, lam):
    V = np.vander(x, degree + 1, increasing=True)
    gram = V.T @ V + lam * np.identity(degree + 1)
    return np.linalg.solve(gram, V.T @ y)


def predict(coefficients, x):
    result = np.zeros_like(x)
    for c in coefficients[::-1]:
        result = result * x + c
    return result


def cross_validate(x, y, degree, lam, folds=5):
    parts = np.array_split(np.arange(len(x)), folds)
    errors = []
    for k in range(folds):
        mask = np.ones(len(x), dtype=bool)
        mask[parts[k]] = False
        c = fit(x[mask], y[mask], degree, lam)
        errors.append(np.mean((predict(c, x[~mask]) - y[~mask]) ** 2))
    return np.mean(errors)


def inputs():
    rng = np.random.default_rng(9)
    x = rng.uniform(-1, 1, 2000)
    return x, np.sin(3 * x) + 0.3 * x**2 + 0.1 * rng.standard_normal(2000)


def run(x, y):
    degrees = np.arange(1, 10)
    lambdas = np.logspace(-4, 1, 6)
    table = np.zeros((len(degrees), len(lambdas)))
    for i, degree in enumerate(degrees):
        for j, lam in enumerate(lambdas):
            table[i, j] = cross_validate(x, y, degree, lam)
    i, j = np.unravel_index(np.argmin(table), table.shape)
    best = fit(x, y, degrees[i], lambdas[j])
    low_order, residuals, rank, _ = np.linalg.lstsq(np.vander(x, 4), y, rcond=None)
    return table, i, j, best, low_order, rank, residuals


def main():
    return run(*inputs())
