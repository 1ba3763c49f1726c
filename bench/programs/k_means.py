"""k-means by Lloyd with a farthest-point start and silhouettes (machine learning; MacQueen)."""

import numpy as np


def inputs():
    rng = np.random.default_rng(71)
    centres = rng.uniform(-10, 10, (6, 2))
    return np.concatenate([c + rng.normal(size=(250, 2)) for c in centres]), 6


def farthest_first(X, k):
    chosen = [0]
    d = np.linalg.norm(X - X[0], axis=1)
    for _ in range(k - 1):
        chosen.append(int(np.argmax(d)))
        d = np.minimum(d, np.linalg.norm(X - X[chosen[-1]], axis=1))
    return X[chosen].copy()


def silhouette(X, labels, k):
    D = np.sqrt(((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))
    mean = np.stack([D[:, labels == c].mean(axis=1) for c in range(k)], axis=1)
    sizes = np.bincount(labels, minlength=k)
    rows = np.arange(len(X))
    a = mean[rows, labels] * sizes[labels] / (sizes[labels] - 1)
    mean[rows, labels] = np.inf
    b = mean.min(axis=1)
    return np.mean((b - a) / np.maximum(a, b))


def run(X, k):
    centres = farthest_first(X, k)
    for iteration in range(50):
        distances = np.linalg.norm(X[:, np.newaxis] - centres, axis=2)
        labels = np.argmin(distances, axis=1)
        new = np.array([X[labels == c].mean(axis=0) for c in range(k)])
        if np.allclose(new, centres, rtol=0, atol=1e-9):
            break
        centres = new
    inertia = np.sum(distances[np.arange(len(X)), labels] ** 2)
    return centres, labels, inertia, iteration, silhouette(X[::3], labels[::3], k)


def main():
    return run(*inputs())
