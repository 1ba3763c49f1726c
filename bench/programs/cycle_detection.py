"""Floyd's cycles of maps, Pollard's rho and functional graphs (algorithms; Knuth 3.1)."""

import numpy as np


def floyd(f, x0):
    tortoise, hare = f[x0], f[f[x0]]
    while tortoise != hare:
        tortoise = f[tortoise]
        hare = f[f[hare]]
    mu = 0
    tortoise = x0
    while tortoise != hare:
        tortoise, hare = f[tortoise], f[hare]
        mu += 1
    lam = 1
    hare = f[tortoise]
    while tortoise != hare:
        hare = f[hare]
        lam += 1
    return lam, mu


def all_cyclic(f):
    alive = np.ones(len(f), dtype=bool)
    while True:
        image = np.zeros_like(alive)
        image[f[alive]] = True
        image &= alive
        if image.sum() == alive.sum():
            return np.flatnonzero(alive)
        alive = image


def pollard_rho(n):
    x = y = np.int64(2)
    d = np.int64(1)
    while d == 1:
        x = (x * x + 1) % n
        y = (y * y + 1) % n
        y = (y * y + 1) % n
        d = np.gcd(np.abs(x - y), n)
    return d


def inputs():
    f = np.random.default_rng(103).integers(0, 20000, 20000)
    return f, np.array([10403, 1000003 * 1009, 32399, 8051, 455459, 90949 * 211])


def run(f, numbers):
    results = np.array([floyd(f, x) for x in range(0, 20000, 600)])
    cyclic = all_cyclic(f)
    factors = np.array([pollard_rho(n) for n in numbers])
    steps = f.copy()
    for _ in range(5):
        steps = steps[steps]
    return results, cyclic, factors, (numbers % factors == 0).all(), np.unique(steps).size


def main():
    return run(*inputs())
