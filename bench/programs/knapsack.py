"""0/1 knapsack by rows, unbounded coin change and a list of chosen items (dynamic programming)."""

import numpy as np


def knapsack(weights, values, capacity):
    n = len(weights)
    table = np.zeros((n + 1, capacity + 1), dtype=np.int64)
    for i in range(1, n + 1):
        w, v = weights[i - 1], values[i - 1]
        table[i] = table[i - 1]
        table[i, w:] = np.maximum(table[i - 1, w:], table[i - 1, : capacity + 1 - w] + v)
    chosen = []
    left = capacity
    for i in range(n, 0, -1):
        if table[i, left] != table[i - 1, left]:
            chosen.append(i - 1)
            left -= weights[i - 1]
    return table[n, capacity], chosen[::-1]


def coin_change(coins, amount):
    ways = np.zeros(amount + 1, dtype=np.int64)
    ways[0] = 1
    fewest = np.full(amount + 1, amount + 1)
    fewest[0] = 0
    for coin in coins:
        for a in range(coin, amount + 1):
            ways[a] += ways[a - coin]
            if fewest[a - coin] + 1 < fewest[a]:
                fewest[a] = fewest[a - coin] + 1
    return ways, fewest


def inputs():
    rng = np.random.default_rng(62)
    return rng.integers(5, 60, 250), rng.integers(10, 100, 250), 4000


def run(weights, values, capacity):
    best, chosen = knapsack(weights, values, capacity)
    ways, fewest = coin_change(np.array([1, 2, 5, 10, 20, 50, 100, 200]), 2000)
    total = values[chosen].sum()
    return best, np.array(chosen), total == best, weights[chosen].sum(), ways, fewest


def main():
    return run(*inputs())
