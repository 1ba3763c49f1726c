"""Label propagation and modularity on a planted partition (graphs; Zhu and Ghahramani)."""

import numpy as np


def inputs():
    rng = np.random.default_rng(54)
    n, groups = 480, 4
    truth = np.arange(n) % groups
    p = np.where(truth[:, None] == truth[None, :], 0.15, 0.02)
    upper = np.triu(rng.random((n, n)) < p, 1)
    seeds = np.concatenate([np.flatnonzero(truth == g)[:3] for g in range(groups)])
    return (upper | upper.T).astype(float), truth, seeds


def modularity(A, labels):
    m = A.sum() / 2
    k = A.sum(axis=1)
    same = labels[:, None] == labels
    return ((A - np.outer(k, k) / (2 * m)) * same).sum() / (2 * m)


def run(A, truth, seeds):
    n, groups = len(A), int(truth.max()) + 1
    degree = A.sum(axis=1)
    P = A / np.where(degree == 0, 1, degree)[:, None]
    F = np.full((n, groups), 1 / groups)
    clamp = np.eye(groups)[truth[seeds]]
    history = []
    for _ in range(100):
        F[seeds] = clamp
        new = P @ F
        new[degree == 0] = 1 / groups
        history.append(np.abs(new - F).max())
        F = new
        F /= F.sum(axis=1, keepdims=True)
    labels = F.argmax(axis=1)
    confusion = np.zeros((groups, groups), dtype=int)
    np.add.at(confusion, (truth, labels), 1)
    triangles = np.trace(np.linalg.matrix_power(A, 3)) / 6
    return F, confusion, modularity(A, labels), np.mean(labels == truth), triangles, history[0]


def main():
    return run(*inputs())
