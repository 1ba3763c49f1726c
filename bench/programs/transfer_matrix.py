"""Thin-film reflectance by transfer matrices over wavelengths (optics; Hecht)."""

import numpy as np


def layer_matrices(n, d, wavelengths):
    delta = 2 * np.pi * n * d / wavelengths
    M = np.empty((len(wavelengths), 2, 2), dtype=complex)
    M[:, 0, 0] = M[:, 1, 1] = np.cos(delta)
    M[:, 0, 1] = 1j * np.sin(delta) / n
    M[:, 1, 0] = 1j * n * np.sin(delta)
    return M


def reflectance(indices, thicknesses, wavelengths, substrate=1.52):
    total = np.tile(np.eye(2, dtype=complex), (len(wavelengths), 1, 1))
    for n, d in zip(indices, thicknesses, strict=True):
        total = total @ layer_matrices(n, d, wavelengths)
    B = total[:, 0, 0] + total[:, 0, 1] * substrate
    C = total[:, 1, 0] + total[:, 1, 1] * substrate
    r = (B - C) / (B + C)
    return np.abs(r) ** 2, np.unwrap(np.angle(r))


def inputs():
    return np.linspace(400e-9, 800e-9, 2000), 550e-9


def run(wavelengths, centre):
    high, low = 2.35, 1.38
    pairs = np.arange(1, 9)
    peak = np.zeros(len(pairs))
    width = np.zeros_like(peak)
    for k, count in enumerate(pairs):
        n = np.array([high, low] * count + [high])
        R, phase = reflectance(n, centre / (4 * n), wavelengths)
        peak[k] = R.max()
        above = wavelengths[R > 0.5 * R.max()]
        width[k] = (above[-1] - above[0]) * 1e9
    absorbing = np.array([1.46, 0.2 + 3.4j, 1.46])
    metal, _ = reflectance(absorbing, np.array([90e-9, 30e-9, 90e-9]), wavelengths)
    return peak, width, R[::20], phase[::20], metal[::20]


def main():
    return run(*inputs())
