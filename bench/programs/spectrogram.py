"""Spectrogram and overlap-add inverse of a chirp (signal processing; Oppenheim)."""

import numpy as np


def stft(x, window, hop):
    n = len(window)
    frames = 1 + (len(x) - n) // hop
    idx = np.arange(n)[None, :] + hop * np.arange(frames)[:, None]
    return np.fft.rfft(x[idx] * window, axis=-1)


def istft(S, window, hop):
    n = len(window)
    length = n + hop * (S.shape[0] - 1)
    x = np.zeros(length)
    weight = np.zeros(length)
    for k, frame in enumerate(np.fft.irfft(S, n, axis=-1)):
        x[k * hop : k * hop + n] += frame * window
        weight[k * hop : k * hop + n] += window**2
    return x / np.maximum(weight, 1e-8)


def inputs():
    fs = 16000
    t = np.arange(6 * fs) / fs
    rng = np.random.default_rng(23)
    chirp = np.sin(2 * np.pi * (200 * t + 450 * t**2))
    return chirp + 0.1 * rng.standard_normal(t.size), fs


def run(x, fs):
    window = np.hanning(512)
    S = stft(x, window, 128)
    db = 20 * np.log10(np.maximum(np.abs(S), 1e-6))
    ridge = np.argmax(db, axis=1) * fs / 512
    S[db < db.max() - 40] = 0
    y = istft(S, window, 128)
    error = np.sqrt(np.mean((x[1000 : len(y) - 1000] - y[1000:-1000]) ** 2))
    return db.mean(0), ridge, y[::100], error


def main():
    return run(*inputs())
