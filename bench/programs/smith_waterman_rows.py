"""Smith-Waterman local alignment by antidiagonals (bioinformatics; Durbin et al.)."""

import numpy as np


def inputs():
    rng = np.random.default_rng(61)
    a = rng.integers(0, 20, 500)
    b = np.concatenate([rng.integers(0, 20, 150), a[100:330], rng.integers(0, 20, 120)])
    flips = rng.integers(0, b.size, 50)
    b[flips] = (b[flips] + 1) % 20
    S = np.full((20, 20), -2.0)
    S[np.diag_indices(20)] = 4 + np.arange(20) % 3
    return a, b, S


def run(a, b, S):
    n, m = a.size, b.size
    score = S[a[:, None], b[None, :]]
    gap = 3.0
    previous = np.zeros(n + 1)
    current = np.zeros(n + 1)
    best, where = 0.0, (0, 0)
    peaks = np.zeros(n + m - 1)
    for d in range(2, n + m + 1):
        i = np.arange(max(1, d - m), min(n, d - 1) + 1)
        j = d - i
        new = np.zeros(n + 1)
        candidate = np.stack(
            [previous[i - 1] + score[i - 1, j - 1], current[i - 1] - gap, current[i] - gap]
        )
        new[i] = np.maximum(candidate.max(axis=0), 0.0)
        peaks[d - 2] = new.max()
        if peaks[d - 2] > best:
            best = peaks[d - 2]
            where = np.argmax(new), d - np.argmax(new)
        previous, current = current, new
    return best, np.array(where), peaks


def main():
    return run(*inputs())
