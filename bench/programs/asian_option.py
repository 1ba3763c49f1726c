"""Asian option by Monte Carlo with antithetic and control variates (finance; Glasserman)."""

import numpy as np


def inputs():
    return 100.0, 100.0, 0.05, 0.2, 1.0, 50, 10000


def run(S0, K, r, sigma, T, steps, paths):
    np.random.seed(1234)
    dt = T / steps
    z = np.random.standard_normal((paths // 2, steps))
    z = np.concatenate((z, -z), axis=0)
    increments = (r - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * z
    S = S0 * np.exp(np.cumsum(increments, axis=1))
    arithmetic = np.exp(-r * T) * np.maximum(S.mean(axis=1) - K, 0)
    geometric = np.exp(-r * T) * np.maximum(np.exp(np.log(S).mean(axis=1)) - K, 0)
    C = np.cov(arithmetic, geometric)
    beta = C[0, 1] / C[1, 1]
    adjusted = arithmetic - beta * (geometric - geometric.mean())
    stderr = arithmetic.std(ddof=1) / np.sqrt(paths), adjusted.std(ddof=1) / np.sqrt(paths)
    barrier = (S.max(axis=1) < 130) * np.maximum(S[:, -1] - K, 0)
    correlation = np.corrcoef(arithmetic, geometric)[0, 1]
    return arithmetic.mean(), np.array(stderr), beta, barrier.mean(), correlation, S[::500, -1]


def main():
    return run(*inputs())
