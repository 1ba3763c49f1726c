"""Monte Carlo and quasi-Monte Carlo: pi, volumes of balls, Buffon's needle (probability)."""

import numpy as np


def van_der_corput(n, base):
    k = np.arange(1, n + 1)
    out = np.zeros(n)
    denominator = 1.0
    while (k > 0).any():
        denominator *= base
        out += (k % base) / denominator
        k //= base
    return out


def inputs():
    return 100000, [2, 3, 5, 7, 11, 13]


def run(n, bases):
    np.random.seed(42)
    x, y = np.random.rand(2, n)
    inside = x * x + y * y <= 1.0
    running = 4 * np.cumsum(inside) / np.arange(1, n + 1)
    halton = np.column_stack([van_der_corput(20000, b) for b in bases])
    radius2 = np.cumsum(halton**2, axis=1)
    volumes = 2.0 ** np.arange(1, len(bases) + 1) * np.mean(radius2 <= 1, axis=0)
    angle = np.random.uniform(0, np.pi / 2, n)
    centre = np.random.uniform(0, 0.5, n)
    crossing = centre <= 0.5 * np.sin(angle)
    z = np.random.exponential(1.0, n)
    weights = z**2.5 * np.exp(-z) / np.exp(-z)
    draws = np.random.randint(1, 7, size=(n // 10, 5))
    five = np.mean(draws.max(axis=1) == draws.min(axis=1)), draws.sum(axis=1).mean()
    return (
        running[::1000],
        volumes,
        2 / crossing.mean(),
        weights.mean(),
        np.array(five),
        halton[:20],
    )


def main():
    return run(*inputs())
