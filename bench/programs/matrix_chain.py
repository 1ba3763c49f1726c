"""Matrix-chain order and optimal polygon triangulation (dynamic programming; CLRS 15.2)."""

import numpy as np


def matrix_chain(p):
    n = len(p) - 1
    m = np.zeros((n, n))
    s = np.zeros((n, n), dtype=int)
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            m[i, j] = np.inf
            for k in range(i, j):
                q = m[i, k] + m[k + 1, j] + p[i] * p[k + 1] * p[j + 1]
                if q < m[i, j]:
                    m[i, j] = q
                    s[i, j] = k
    return m, s


def triangulate(x, y):
    n = len(x)
    d = np.hypot(x[:, None] - x, y[:, None] - y)
    cost = np.zeros((n, n))
    for gap in range(2, n):
        for i in range(n - gap):
            j = i + gap
            k = np.arange(i + 1, j)
            cost[i, j] = np.min(cost[i, k] + cost[k, j] + d[i, k] + d[k, j] + d[i, j])
    return cost


def depth(s, i, j):
    if i == j:
        return 0
    return 1 + max(depth(s, i, s[i, j]), depth(s, s[i, j] + 1, j))


def inputs():
    rng = np.random.default_rng(65)
    angle = np.sort(rng.uniform(0, 2 * np.pi, 40))
    return rng.integers(5, 80, 41), 2 * np.cos(angle), np.sin(angle)


def run(p, x, y):
    m, s = matrix_chain(p)
    cost = triangulate(x, y)
    return m, s, depth(s, 0, len(p) - 2), cost, cost[0, -1]


def main():
    return run(*inputs())
