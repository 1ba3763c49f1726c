"""Permutation test of a one-way analysis of variance and a rank test (statistics; Good)."""

import numpy as np


def f_statistic(values, groups, k):
    n = values.shape[-1]
    grand = values.mean(axis=-1)
    between = np.zeros_like(grand)
    within = np.zeros_like(grand)
    for g in range(k):
        members = values[..., groups == g]
        mean = members.mean(axis=-1)
        between += members.shape[-1] * (mean - grand) ** 2
        within += ((members - mean[..., None]) ** 2).sum(axis=-1)
    return (between / (k - 1)) / (within / (n - k))


def rank(x):
    order = x.argsort()
    ranks = np.empty(len(x))
    ranks[order] = np.arange(1, len(x) + 1)
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    return np.bincount(inverse, weights=ranks)[inverse] / counts[inverse]


def inputs():
    rng = np.random.default_rng(79)
    groups = np.repeat(np.arange(4), 20)
    return np.round(rng.normal(5, 1, 80) + 0.3 * groups, 2), groups


def run(values, groups):
    rng = np.random.default_rng(80)
    observed = f_statistic(values, groups, 4)
    shuffled = np.array([rng.permutation(values) for _ in range(3000)])
    f = f_statistic(shuffled, groups, 4)
    p = (np.sum(f >= observed) + 1) / (len(f) + 1)
    ranks = rank(values)
    sums = np.array([ranks[groups == g].sum() for g in range(4)])
    h = 12 / (80 * 81) * np.sum(sums**2 / 20) - 3 * 81
    density, edges = np.histogram(f, bins=20, range=(0, 10), density=True)
    return observed, p, h, ranks, density, edges


def main():
    return run(*inputs())
