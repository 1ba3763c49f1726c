"""Gaussian process regression with a grid of hyperparameters (machine learning; Rasmussen)."""

import numpy as np


def kernel(a, b, length, amplitude):
    d = a[:, None] - b[None, :]
    return amplitude**2 * np.exp(-0.5 * (d / length) ** 2)


def log_marginal(x, y, length, amplitude, noise):
    K = kernel(x, x, length, amplitude) + noise**2 * np.eye(len(x))
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    return -0.5 * y @ alpha - np.log(np.diag(L)).sum() - 0.5 * len(x) * np.log(2 * np.pi)


def inputs():
    rng = np.random.default_rng(81)
    x = np.sort(rng.uniform(-5, 5, 100))
    return x, np.sin(x) + 0.1 * x**2 + 0.15 * rng.standard_normal(100)


def run(x, y):
    y = y - y.mean()
    lengths = np.linspace(0.4, 3.0, 8)
    noises = np.linspace(0.05, 0.4, 6)
    grid = np.array([[log_marginal(x, y, ell, 1.5, s) for s in noises] for ell in lengths])
    i, j = divmod(int(grid.argmax()), len(noises))
    K = kernel(x, x, lengths[i], 1.5)
    K[np.diag_indices_from(K)] += noises[j] ** 2
    test = np.linspace(-6, 6, 200)
    Ks = kernel(x, test, lengths[i], 1.5)
    mean = Ks.T @ np.linalg.solve(K, y)
    variance = 1.5**2 - np.einsum("ij,ij->j", Ks, np.linalg.solve(K, Ks))
    return grid, lengths[i], noises[j], mean, np.sqrt(np.maximum(variance, 0))


def main():
    return run(*inputs())
