"""Natural cubic spline and Newton interpolation (numerical analysis; Burden and Faires)."""

import numpy as np


def natural_spline(x, y):
    n = len(x) - 1
    h = np.diff(x)
    alpha = np.zeros(n)
    for i in range(1, n):
        alpha[i] = 3 / h[i] * (y[i + 1] - y[i]) - 3 / h[i - 1] * (y[i] - y[i - 1])
    low = np.ones(n + 1)
    mu, z, c = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    b, d = np.zeros(n), np.zeros(n)
    for i in range(1, n):
        low[i] = 2 * (x[i + 1] - x[i - 1]) - h[i - 1] * mu[i - 1]
        mu[i] = h[i] / low[i]
        z[i] = (alpha[i] - h[i - 1] * z[i - 1]) / low[i]
    for j in range(n - 1, -1, -1):
        c[j] = z[j] - mu[j] * c[j + 1]
        b[j] = (y[j + 1] - y[j]) / h[j] - h[j] * (c[j + 1] + 2 * c[j]) / 3
        d[j] = (c[j + 1] - c[j]) / (3 * h[j])
    return y[:-1], b, c[:-1], d


def evaluate(x, coefficients, t):
    i = np.clip(np.searchsorted(x, t, side="right") - 1, 0, len(x) - 2)
    a, b, c, d = (k[i] for k in coefficients)
    s = t - x[i]
    return a + s * (b + s * (c + s * d))


def divided_differences(x, y):
    table = y.copy()
    n = len(x)
    for j in range(1, n):
        table[j:] = (table[j:] - table[j - 1 : -1]) / (x[j:] - x[:-j])
    return table


def inputs():
    x = np.sort(np.random.default_rng(105).uniform(0, 20, 2500))
    return x, np.sin(x) + 0.2 * np.cos(5 * x)


def run(x, y):
    coefficients = natural_spline(x, y)
    t = np.linspace(x[0], x[-1], 50000)
    s = evaluate(x, coefficients, t)
    error = np.max(np.abs(s - np.sin(t) - 0.2 * np.cos(5 * t)))
    nodes = np.cos((2 * np.arange(20) + 1) * np.pi / 40)
    newton = divided_differences(nodes, 1 / (1 + 25 * nodes**2))
    linear = np.interp(t[::100], x, y)
    return s[::50], error < 1.0, newton[:10], linear, coefficients[2][::100]


def main():
    return run(*inputs())
