"""FDTD of a TM wave in a box with a dielectric slab (electromagnetics; Taflove)."""

import numpy as np


def inputs():
    n = 150
    eps = np.ones((n, n))
    eps[90:110, 20:130] = 4.0
    return eps, 200


def run(eps, steps):
    n, m = eps.shape
    Ez = np.zeros((n, m))
    Hx = np.zeros((n, m - 1))
    Hy = np.zeros((n - 1, m))
    S = 1 / np.sqrt(2.0)
    probe = np.zeros(steps)
    for t in range(steps):
        Hx -= S * (Ez[:, 1:] - Ez[:, :-1])
        Hy += S * (Ez[1:, :] - Ez[:-1, :])
        curl = (Hy[1:, 1:-1] - Hy[:-1, 1:-1]) - (Hx[1:-1, 1:] - Hx[1:-1, :-1])
        Ez[1:-1, 1:-1] += S * curl / eps[1:-1, 1:-1]
        Ez[60, 75] += np.sin(2 * np.pi * t / 25) * min(1.0, t / 30)
        probe[t] = Ez[100, 75]
    spectrum = np.abs(np.fft.rfft(probe * np.hanning(steps)))
    return Ez, probe, np.argmax(spectrum), 0.5 * np.sum(eps * Ez**2)


def main():
    return run(*inputs())
