"""Ising model, one spin after the other (statistical physics; Giordano and Nakanishi)."""

import numpy as np


def inputs():
    rng = np.random.RandomState(42)
    n, moves = 24, 12000
    return rng.randint(0, 2, (n, n)) * 2 - 1, rng.randint(0, n, (moves, 2)), rng.rand(moves)


def run(lattice, sites, r):
    lattice = lattice.copy()
    n = len(lattice)
    beta = 1 / 2.1
    weights = {dE: np.exp(-beta * dE) for dE in (4, 8)}
    M = lattice.sum()
    trace = np.zeros(len(r) // 100)
    flips = 0
    for k, (i, j) in enumerate(sites):
        s = lattice[i, j]
        around = (
            lattice[(i + 1) % n, j]
            + lattice[i - 1, j]
            + lattice[i, (j + 1) % n]
            + lattice[i, j - 1]
        )
        dE = 2 * s * around
        if dE <= 0 or r[k] < weights[int(dE)]:
            lattice[i, j] = -s
            M -= 2 * s
            flips += 1
        if k % 100 == 0:
            trace[k // 100] = M / n**2
    return lattice, trace, flips, M


def main():
    return run(*inputs())
