"""Bootstrap particle filter with systematic resampling (signal processing; Gordon et al., 1993)."""

import numpy as np


def inputs():
    rng = np.random.default_rng(83)
    steps = 60
    x = np.zeros(steps)
    for t in range(1, steps):
        x[t] = 0.7 * x[t - 1] + 2 * np.cos(0.3 * t) + rng.normal()
    return x, x**2 / 20 + x + rng.normal(0, 0.7, steps)


def systematic(weights, u):
    n = len(weights)
    positions = (np.arange(n) + u) / n
    cumulative = np.cumsum(weights)
    cumulative[-1] = 1.0
    return np.searchsorted(cumulative, positions)


def run(x, y):
    rng = np.random.default_rng(84)
    n = 4000
    particles = rng.normal(0, 2, n)
    estimate = np.zeros(len(y))
    effective = np.zeros(len(y))
    log_likelihood = 0.0
    for t, obs in enumerate(y):
        particles = 0.7 * particles + 2 * np.cos(0.3 * t) + rng.standard_normal(n)
        expected = particles**2 / 20 + particles
        logw = -0.5 * ((obs - expected) / 0.7) ** 2
        shift = logw.max()
        w = np.exp(logw - shift)
        log_likelihood += shift + np.log(w.mean())
        w /= w.sum()
        estimate[t] = np.average(particles, weights=w)
        effective[t] = 1.0 / np.sum(w**2)
        particles = particles[systematic(w, rng.random())]
    return estimate, effective, log_likelihood, np.sqrt(np.mean((estimate - x) ** 2))


def main():
    return run(*inputs())
