"""Simulated annealing and 2-opt for the travelling salesman (optimisation; Kirkpatrick 1983)."""

import numpy as np


def tour_length(order, D):
    return D[order, np.roll(order, -1)].sum()


def nearest_neighbour(D):
    n = len(D)
    left = np.ones(n, dtype=bool)
    order = np.zeros(n, dtype=int)
    left[0] = False
    for k in range(1, n):
        row = np.where(left, D[order[k - 1]], np.inf)
        order[k] = row.argmin()
        left[order[k]] = False
    return order


def two_opt(order, D):
    n = len(order)
    improved = True
    while improved:
        improved = False
        for i in range(1, n - 1):
            a, b = order[i - 1], order[i]
            for j in range(i + 1, n):
                c, d = order[j], order[(j + 1) % n]
                if D[a, c] + D[b, d] < D[a, b] + D[c, d] - 1e-10:
                    order[i : j + 1] = order[i : j + 1][::-1].copy()
                    b = order[i]
                    improved = True
    return order


def anneal(order, D, rng, steps):
    order = order.copy()
    n = len(order)
    length = tour_length(order, D)
    for k in range(steps):
        temperature = 0.3 * 0.999**k
        i, j = np.sort(rng.choice(n, 2, replace=False))
        proposal = order.copy()
        proposal[i:j] = order[i:j][::-1]
        change = tour_length(proposal, D) - length
        if change < 0 or rng.random() < np.exp(-change / temperature):
            order, length = proposal, length + change
    return order


def inputs():
    return (np.random.default_rng(107).random((35, 2)),)


def run(cities):
    D = np.linalg.norm(cities[:, None, :] - cities[None, :, :], axis=-1)
    rng = np.random.default_rng(108)
    greedy = nearest_neighbour(D)
    opted = two_opt(greedy.copy(), D)
    annealed = anneal(greedy, D, rng, 1500)
    lengths = [tour_length(o, D) for o in (greedy, opted, annealed)]
    return np.array(lengths), greedy, opted, annealed


def main():
    return run(*inputs())
