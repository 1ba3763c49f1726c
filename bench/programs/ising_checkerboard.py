"""Ising model by checkerboard Metropolis (statistical physics; Newman and Barkema)."""

import numpy as np


def sweep(spins, beta, rng, masks):
    for mask in masks:
        neighbours = (
            np.roll(spins, 1, axis=0)
            + np.roll(spins, -1, axis=0)
            + np.roll(spins, 1, axis=1)
            + np.roll(spins, -1, axis=1)
        )
        dE = 2 * spins * neighbours
        accept = rng.random(spins.shape) < np.exp(-beta * dE)
        spins[accept & mask] *= -1


def inputs():
    return 64, np.array([1.5, 2.0, 2.27, 2.5, 3.5])


def run(n, temperatures):
    rng = np.random.default_rng(0)
    checker = np.indices((n, n)).sum(axis=0) % 2
    masks = checker == 0, checker == 1
    magnetisation = []
    energies = []
    spins = rng.choice([-1, 1], size=(n, n))
    for T in temperatures:
        m, e = 0.0, 0.0
        for step in range(40):
            sweep(spins, 1.0 / T, rng, masks)
            if step >= 20:
                m += abs(spins.mean())
                e -= np.mean(spins * (np.roll(spins, 1, 0) + np.roll(spins, 1, 1)))
        magnetisation.append(m / 20)
        energies.append(e / 20)
    return np.array(magnetisation), np.array(energies), spins


def main():
    return run(*inputs())
