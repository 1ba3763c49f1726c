"""Lotka-Volterra by an adaptive Runge-Kutta pair for many starting points (ecology; Fehlberg)."""

import numpy as np

A = [[], [1 / 4], [3 / 32, 9 / 32], [1932 / 2197, -7200 / 2197, 7296 / 2197]]
A += [[439 / 216, -8, 3680 / 513, -845 / 4104], [-8 / 27, 2, -3544 / 2565, 1859 / 4104, -11 / 40]]
B4 = np.array([25 / 216, 0, 1408 / 2565, 2197 / 4104, -1 / 5, 0])
B5 = np.array([16 / 135, 0, 6656 / 12825, 28561 / 56430, -9 / 50, 2 / 55])


def f(y):
    prey, predator = y
    return np.array([prey * (1.1 - 0.4 * predator), predator * (0.1 * prey - 0.4)])


def step(y, h):
    k = np.zeros((6, *y.shape))
    k[0] = f(y)
    for i in range(1, 6):
        dy = sum(a * k[j] for j, a in enumerate(A[i]))
        k[i] = f(y + h * dy)
    y4 = y + h * np.tensordot(B4, k, axes=1)
    y5 = y + h * np.tensordot(B5, k, axes=1)
    return y5, np.max(np.abs(y5 - y4) / (1e-6 + 1e-4 * np.abs(y5)))


def inputs():
    prey, predator = np.meshgrid(np.linspace(6, 14, 100), np.linspace(2, 6, 100))
    return (np.array([prey.ravel(), predator.ravel()]),)


def run(y):
    t, h, end = 0.0, 0.01, 8.0
    accepted = rejected = 0
    while t < end:
        h = min(h, end - t)
        y_new, error = step(y, h)
        if error <= 1:
            t += h
            y = y_new
            accepted += 1
        else:
            rejected += 1
        h *= min(4.0, max(0.2, 0.9 * error**-0.2))
    invariant = 0.1 * y[0] - 0.4 * np.log(y[0]) + 0.4 * y[1] - 1.1 * np.log(y[1])
    return y, invariant, accepted, rejected


def main():
    return run(*inputs())
