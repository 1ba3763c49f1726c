"""Schroedinger equation by split-step Fourier: tunnelling of a packet (quantum mechanics; Feit)."""

import numpy as np


def inputs():
    n = 1024
    x = np.linspace(-100, 100, n, endpoint=False)
    psi = np.exp(-((x + 40) ** 2) / (4 * 8.0**2)) * np.exp(1j * 1.2 * x)
    psi /= np.sqrt(np.sum(np.abs(psi) ** 2) * (x[1] - x[0]))
    V = np.where(np.abs(x) < 1.5, 0.8, 0.0)
    return x, psi, V


def run(x, psi, V):
    dx = x[1] - x[0]
    dt, steps = 0.1, 500
    k = 2 * np.pi * np.fft.fftfreq(x.size, d=dx)
    half_potential = np.exp(-0.5j * V * dt)
    kinetic = np.exp(-0.5j * k**2 * dt)
    position = np.zeros(steps)
    psi = psi.copy()
    for n in range(steps):
        psi *= half_potential
        psi = np.fft.ifft(kinetic * np.fft.fft(psi))
        psi *= half_potential
        position[n] = np.sum(x * np.abs(psi) ** 2) * dx
    density = np.abs(psi) ** 2
    transmitted = density[x > 1.5].sum() * dx
    norm = np.trapezoid(density, x)
    return psi, position, transmitted, norm


def main():
    return run(*inputs())
