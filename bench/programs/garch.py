"""GARCH(1,1): simulation, likelihood by a loop and a grid search (econometrics; Bollerslev)."""

import numpy as np


def simulate(omega, alpha, beta, z):
    n = len(z)
    r = np.zeros(n)
    var = np.zeros(n)
    var[0] = omega / (1 - alpha - beta)
    r[0] = np.sqrt(var[0]) * z[0]
    for t in range(1, n):
        var[t] = omega + alpha * r[t - 1] ** 2 + beta * var[t - 1]
        r[t] = np.sqrt(var[t]) * z[t]
    return r, var


def negative_log_likelihood(r, omega, alpha, beta):
    v = np.full(alpha.shape, r.var())
    total = np.zeros(alpha.shape)
    for t in range(1, len(r)):
        v = omega + alpha * r[t - 1] ** 2 + beta * v
        total += np.log(v) + r[t] ** 2 / v
    return 0.5 * total


def inputs():
    return (np.random.default_rng(41).standard_normal(4000),)


def run(z):
    r, var = simulate(0.05, 0.1, 0.85, z)
    alpha, beta = np.meshgrid(np.arange(0.02, 0.3, 0.02), np.arange(0.6, 0.98, 0.02))
    omega = r.var() * np.clip(1 - alpha - beta, 0.005, None)
    nll = negative_log_likelihood(r, omega, alpha, beta)
    nll[alpha + beta >= 0.999] = np.inf
    i, j = np.unravel_index(nll.argmin(), nll.shape)
    value_at_risk = -1.645 * np.sqrt(var)
    violations = np.mean(r < value_at_risk)
    kurtosis = np.mean((r - r.mean()) ** 4) / r.var() ** 2
    return r, var, nll[i, j], alpha[i, j], beta[i, j], violations, kurtosis


def main():
    return run(*inputs())
