"""Site percolation: spanning clusters by a burning front (statistical physics; Stauffer)."""

import numpy as np


def burns_through(grid):
    n = grid.shape[0]
    burnt = np.zeros_like(grid)
    front = np.zeros_like(grid)
    front[0] = grid[0]
    time = 0
    while front.any():
        burnt |= front
        spread = np.zeros_like(front)
        spread[1:, :] |= front[:-1, :]
        spread[:-1, :] |= front[1:, :]
        spread[:, 1:] |= front[:, :-1]
        spread[:, :-1] |= front[:, 1:]
        front = spread & grid & ~burnt
        time += 1
    return burnt[n - 1].any(), time, np.sum(burnt)


def inputs():
    return np.random.default_rng(32).random((3, 48, 48)), np.linspace(0.5, 0.7, 9)


def run(samples, probabilities):
    spanning = np.zeros(len(probabilities))
    times = np.zeros((len(probabilities), len(samples)), dtype=int)
    burnt = np.zeros_like(times)
    for i, p in enumerate(probabilities):
        for j, sample in enumerate(samples):
            through, times[i, j], burnt[i, j] = burns_through(sample < p)
            if through:
                spanning[i] += 1
    spanning /= len(samples)
    return spanning, times, burnt


def main():
    return run(*inputs())
