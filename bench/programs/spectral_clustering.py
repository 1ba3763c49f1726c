"""Spectral clustering of two rings with the normalised Laplacian (graphs; Luxburg)."""

import numpy as np


def inputs():
    rng = np.random.default_rng(53)
    n = 180
    angle = rng.uniform(0, 2 * np.pi, 2 * n)
    radius = np.repeat([1.0, 3.0], n) + rng.normal(0, 0.1, 2 * n)
    return (np.c_[radius * np.cos(angle), radius * np.sin(angle)],)


def run(X):
    sq = np.sum(X**2, axis=1)
    d2 = np.maximum(sq[:, None] + sq[None, :] - 2 * X @ X.T, 0)
    W = np.exp(-d2 / (2 * 0.3**2))
    np.fill_diagonal(W, 0)
    degree = W.sum(axis=1)
    D = np.diag(1 / np.sqrt(degree))
    L = np.eye(len(X)) - D @ W @ D
    values, vectors = np.linalg.eigh(L)
    embedding = vectors[:, :2] / np.linalg.norm(vectors[:, :2], axis=1, keepdims=True)
    reference = embedding[0]
    first = np.abs(embedding @ reference) > 0.7
    labels = np.where(first, 0, 1)
    cut = W[labels == 0][:, labels == 1].sum()
    volume = np.array([degree[labels == c].sum() for c in (0, 1)])
    return values[:6], labels, cut, volume


def main():
    return run(*inputs())
