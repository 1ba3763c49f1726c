"""American put on a Cox-Ross-Rubinstein tree, by levels and by nodes (finance; Hull)."""

import numpy as np


def by_levels(S, K, T, r, sigma, n):
    dt = T / n
    u = np.exp(sigma * np.sqrt(dt))
    d = 1 / u
    p = (np.exp(r * dt) - d) / (u - d)
    discount = np.exp(-r * dt)
    j = np.arange(n + 1)
    prices = S * u**j * d ** (n - j)
    values = np.maximum(K - prices, 0)
    boundary = np.zeros(n)
    for i in range(n - 1, -1, -1):
        prices = prices[1:] * d
        hold = discount * (p * values[1:] + (1 - p) * values[:-1])
        exercise = K - prices
        values = np.maximum(hold, exercise)
        early = exercise > hold
        boundary[i] = prices[early].max() if early.any() else 0.0
    return values[0], boundary


def by_nodes(S, K, T, r, sigma, n):
    dt = T / n
    u = np.exp(sigma * np.sqrt(dt))
    p = (np.exp(r * dt) - 1 / u) / (u - 1 / u)
    V = np.zeros((n + 1, n + 1))
    for j in range(n + 1):
        V[n, j] = max(0.0, K - S * u ** (2 * j - n))
    for i in range(n - 1, -1, -1):
        for j in range(i + 1):
            hold = np.exp(-r * dt) * (p * V[i + 1, j + 1] + (1 - p) * V[i + 1, j])
            V[i, j] = max(hold, K - S * u ** (2 * j - i))
    return V[0, 0]


def inputs():
    return 100.0, 105.0, 1.0, 0.05, 0.25


def run(S, K, T, r, sigma):
    price, boundary = by_levels(S, K, T, r, sigma, 1200)
    small = by_nodes(S, K, T, r, sigma, 100)
    return price, boundary, small


def main():
    return run(*inputs())
