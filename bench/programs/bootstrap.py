"""Bootstrap intervals of mean, median and correlation, and the jackknife (statistics; Efron)."""

import numpy as np


def inputs():
    rng = np.random.default_rng(70)
    x = rng.gamma(2.0, 1.5, 200)
    y = 0.6 * x + rng.normal(0, 1, 200)
    return x, y, rng.integers(0, 200, (3000, 200))


def correlation(x, y):
    xc = x - x.mean(axis=-1, keepdims=True)
    yc = y - y.mean(axis=-1, keepdims=True)
    return (xc * yc).sum(-1) / np.sqrt((xc**2).sum(-1) * (yc**2).sum(-1))


def jackknife(x, y):
    n = len(x)
    values = np.empty(n)
    for i in range(n):
        values[i] = np.corrcoef(np.delete(x, i), np.delete(y, i))[0, 1]
    bias = (n - 1) * (values.mean() - np.corrcoef(x, y)[0, 1])
    return bias, np.sqrt((n - 1) / n * np.sum((values - values.mean()) ** 2))


def run(x, y, resamples):
    xb, yb = x[resamples], y[resamples]
    estimates = np.array([xb.mean(axis=1), np.median(xb, axis=1), correlation(xb, yb)])
    intervals = np.quantile(estimates, [0.025, 0.5, 0.975], axis=1)
    skewness = (
        np.mean((estimates - estimates.mean(1)[:, None]) ** 3, axis=1) / estimates.std(1) ** 3
    )
    bias, error = jackknife(x, y)
    return intervals, estimates.std(axis=1, ddof=1), skewness, bias, error


def main():
    return run(*inputs())
