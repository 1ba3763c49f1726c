"""Thomas algorithm in Crank-Nicolson steps (numerical methods for PDEs; Smith, chapter 2)."""

import numpy as np


def thomas(a, b, c, d):
    n = len(d)
    cp = np.zeros(n)
    dp = np.zeros(n)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x = np.zeros(n)
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def inputs():
    x = np.linspace(0, 1, 302)[1:-1]
    return np.sin(np.pi * x) + 0.5 * np.sin(4 * np.pi * x), 0.4


def run(u, r):
    n = len(u)
    a = np.full(n, -r / 2)
    b = np.full(n, 1 + r)
    c = np.full(n, -r / 2)
    for _ in range(40):
        d = (1 - r) * u
        d[1:] += r / 2 * u[:-1]
        d[:-1] += r / 2 * u[1:]
        u = thomas(a, b, c, d)
    return u, u.max(), np.argmax(u)


def main():
    return run(*inputs())
