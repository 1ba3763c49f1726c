"""Implied volatility by Newton for one option and by bisection for all (finance; Wilmott)."""

import math

import numpy as np


def norm_cdf(x):
    return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))


def price_and_vega(S, K, T, r, sigma):
    d1 = (math.log(S / K) + (r + 0.5 * sigma * sigma) * T) / (sigma * math.sqrt(T))
    d2 = d1 - sigma * math.sqrt(T)
    price = S * norm_cdf(d1) - K * math.exp(-r * T) * norm_cdf(d2)
    vega = S * math.sqrt(T) * math.exp(-0.5 * d1 * d1) / math.sqrt(2 * math.pi)
    return price, vega


def newton(target, S, K, T, r):
    sigma = 0.5
    for _ in range(50):
        price, vega = price_and_vega(S, K, T, r, sigma)
        change = (price - target) / vega
        sigma -= change
        if abs(change) < 1e-10:
            break
    return sigma


def inputs():
    rng = np.random.default_rng(43)
    K = np.repeat(np.arange(70.0, 135.0, 5.0), 100)
    T = np.tile(np.linspace(0.25, 2.0, 100), 13)
    smile = 0.2 + 0.1 * (np.log(K / 100) ** 2) / np.sqrt(T) + 0.02 * rng.random(K.size)
    return K, T, smile


def run(K, T, smile):
    S, r = 100.0, 0.02
    market = np.zeros(len(K))
    implied = np.empty_like(market)
    for i, (strike, expiry) in enumerate(zip(K, T, strict=True)):
        market[i], _ = price_and_vega(S, strike, expiry, r, smile[i])
        implied[i] = newton(market[i], S, strike, expiry, r)
    surface = implied.reshape(13, 100)
    skew = np.gradient(surface, axis=0)[:, ::20]
    return market, surface, skew, np.abs(implied - smile).max() < 1e-8


def main():
    return run(*inputs())
