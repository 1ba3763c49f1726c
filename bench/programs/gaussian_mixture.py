"""Expectation maximisation for a mixture of Gaussians (machine learning; Bishop, chapter 9)."""

import numpy as np


def inputs():
    rng = np.random.default_rng(72)
    a = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 600)
    b = rng.multivariate_normal([4, 1], [[0.5, -0.2], [-0.2, 0.8]], 400)
    c = rng.multivariate_normal([1, 5], [[1.5, 0], [0, 0.3]], 500)
    return np.vstack((a, b, c)), np.array([[-1.0, 0.0], [3.0, 3.0], [0.0, 4.0]])


def log_density(X, mu, sigma):
    d = X.shape[1]
    diff = X - mu
    solved = np.linalg.solve(sigma, diff.T).T
    _, logdet = np.linalg.slogdet(sigma)
    return -0.5 * (d * np.log(2 * np.pi) + logdet + np.sum(diff * solved, axis=1))


def run(X, means, iterations=40):
    n, d = X.shape
    k = len(means)
    means = means.copy()
    sigmas = np.array([np.eye(d) for _ in range(k)])
    weights = np.ones(k) / k
    trace = []
    for _ in range(iterations):
        logp = np.empty((n, k))
        for c in range(k):
            logp[:, c] = np.log(weights[c]) + log_density(X, means[c], sigmas[c])
        norm = np.logaddexp.reduce(logp, axis=1)
        trace.append(norm.sum())
        r = np.exp(logp - norm[:, None])
        nk = r.sum(axis=0)
        weights = nk / n
        for c in range(k):
            means[c] = r[:, c] @ X / nk[c]
            diff = X - means[c]
            sigmas[c] = (r[:, c, None] * diff).T @ diff / nk[c] + 1e-6 * np.eye(d)
    labels = r.argmax(axis=1)
    return np.array(trace), weights, means, sigmas, np.bincount(labels)


def main():
    return run(*inputs())
