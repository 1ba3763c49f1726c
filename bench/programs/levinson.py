"""Levinson-Durbin recursion and linear prediction of a signal (signal processing; Hayes)."""

import numpy as np


def autocorrelation(x, lags):
    n = len(x)
    r = np.empty(lags + 1)
    for k in range(lags + 1):
        r[k] = np.dot(x[: n - k], x[k:]) / n
    return r


def levinson(r, order):
    a = np.zeros(order + 1)
    a[0] = 1.0
    reflection = np.zeros(order)
    error = r[0]
    for i in range(1, order + 1):
        acc = r[i]
        for j in range(1, i):
            acc += a[j] * r[i - j]
        k = -acc / error
        reflection[i - 1] = k
        prev = a.copy()
        for j in range(1, i):
            a[j] = prev[j] + k * prev[i - j]
        a[i] = k
        error *= 1.0 - k * k
    return a, reflection, error


def inputs():
    rng = np.random.default_rng(10)
    t = np.arange(60000)
    return (np.sin(0.1 * t) + 0.5 * np.sin(0.37 * t + 1) + 0.2 * rng.standard_normal(60000),)


def run(x):
    r = autocorrelation(x, 160)
    a, reflection, error = levinson(r, 160)
    residual = np.convolve(x, a)[: len(x)]
    gain = 10 * np.log10(np.var(x) / np.var(residual[160:]))
    spectrum = error / np.abs(np.fft.rfft(a, 1024)) ** 2
    return a, reflection, error, gain, np.argmax(spectrum)


def main():
    return run(*inputs())
