"""Mandelbrot set by masks and a Julia set by points (fractals; Peitgen and Richter)."""

import numpy as np


def mandelbrot(xmin, xmax, ymin, ymax, xn, yn, maxiter, horizon=2.0):
    X = np.linspace(xmin, xmax, xn, dtype=np.float64)
    Y = np.linspace(ymin, ymax, yn, dtype=np.float64)
    C = X + Y[:, None] * 1j
    N = np.zeros(C.shape, dtype=int)
    Z = np.zeros(C.shape, np.complex128)
    for n in range(maxiter):
        inside = np.abs(Z) < horizon
        N[inside] = n
        Z[inside] = Z[inside] ** 2 + C[inside]
    N[N == maxiter - 1] = 0
    return Z, N


def julia(points, c, maxiter):
    counts = np.zeros(points.shape, dtype=np.int32)
    for i in range(points.shape[0]):
        for j in range(points.shape[1]):
            z = points[i, j]
            n = 0
            while abs(z) <= 2 and n < maxiter:
                z = z * z + c
                n += 1
            counts[i, j] = n
    return counts


def inputs():
    x, y = np.meshgrid(np.linspace(-1.51, 1.49, 45), np.linspace(-1.02, 0.98, 30))
    return x + 1j * y, complex(-0.4, 0.6)


def run(points, c):
    Z, N = mandelbrot(-2.25, 0.75, -1.25, 1.25, 225, 200, 30)
    finite = np.abs(Z) <= 2
    counts = julia(points, c, 30)
    return N, finite.sum(), counts, np.bincount(counts.ravel())


def main():
    return run(*inputs())
