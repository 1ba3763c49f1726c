"""Biquad cascade, sample by sample, for one channel and for many (signal processing)."""

import numpy as np


def lowpass(fc, fs, q):
    w = 2 * np.pi * fc / fs
    alpha = np.sin(w) / (2 * q)
    b = np.array([(1 - np.cos(w)) / 2, 1 - np.cos(w), (1 - np.cos(w)) / 2])
    a = np.array([1 + alpha, -2 * np.cos(w), 1 - alpha])
    return b / a[0], a / a[0]


def biquad(b, a, x):
    y = np.zeros_like(x)
    x1 = x2 = y1 = y2 = 0.0
    for n in range(len(x)):
        xn = x[n]
        yn = b[0] * xn + b[1] * x1 + b[2] * x2 - a[1] * y1 - a[2] * y2
        x2, x1 = x1, xn
        y2, y1 = y1, yn
        y[n] = yn
    return y


def filter_channels(b, a, x):
    y = np.zeros_like(x)
    for n in range(2, x.shape[1]):
        y[:, n] = b[0] * x[:, n] + b[1] * x[:, n - 1] + b[2] * x[:, n - 2]
        y[:, n] -= a[1] * y[:, n - 1] + a[2] * y[:, n - 2]
    return y


def inputs():
    rng = np.random.default_rng(28)
    t = np.arange(8000) / 8000
    x = np.sin(2 * np.pi * 50 * t) + np.sin(2 * np.pi * 2500 * t)
    return x, rng.standard_normal((32, 2000))


def run(x, channels):
    b, a = lowpass(400.0, 8000.0, 0.707)
    y = biquad(b, a, biquad(b, a, x))
    z = filter_channels(b, a, channels)
    w = np.linspace(0, np.pi, 64)
    e = np.exp(-1j * np.outer(w, np.arange(3)))
    response = np.abs(e @ b) / np.abs(e @ a)
    return y, z[:, ::20], response, y[4000:].std()


def main():
    return run(*inputs())
