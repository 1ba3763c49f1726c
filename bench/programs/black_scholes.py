"""Black-Scholes prices and Greeks of a book of options (finance; Hull)."""

import numpy as np


def cdf(x):
    a1, a2, a3, a4, a5 = 0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429
    k = 1.0 / (1.0 + 0.2316419 * np.abs(x))
    poly = k * (a1 + k * (a2 + k * (a3 + k * (a4 + k * a5))))
    tail = pdf(x) * poly
    return np.where(x >= 0, 1.0 - tail, tail)


def pdf(x):
    return np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)


def inputs():
    rng = np.random.default_rng(40)
    n = 200_000
    S = rng.uniform(50, 150, n)
    K = rng.uniform(50, 150, n)
    T = rng.uniform(0.05, 2.0, n)
    sigma = rng.uniform(0.1, 0.6, n)
    return S, K, T, sigma, rng.random(n) < 0.5


def run(S, K, T, sigma, is_call, r=0.03):
    sqrt_t = np.sqrt(T)
    d1 = (np.log(S / K) + (r + 0.5 * sigma**2) * T) / (sigma * sqrt_t)
    d2 = d1 - sigma * sqrt_t
    discount = K * np.exp(-r * T)
    call = S * cdf(d1) - discount * cdf(d2)
    put = discount * cdf(-d2) - S * cdf(-d1)
    price = np.where(is_call, call, put)
    delta = cdf(d1) - np.where(is_call, 0.0, 1.0)
    gamma = pdf(d1) / (S * sigma * sqrt_t)
    vega = S * pdf(d1) * sqrt_t
    parity = np.max(np.abs(call - put - S + discount))
    total = np.array([price.sum(), delta.sum(), gamma.sum(), vega.sum()])
    return price, total, parity < 1e-9


def main():
    return run(*inputs())
