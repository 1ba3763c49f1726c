"""Cooley-Tukey FFT, recursive and in place with bit reversal (algorithms; Cormen et al., 30)."""

import numpy as np


def fft_recursive(x):
    n = len(x)
    if n <= 16:
        k = np.arange(n)
        return np.exp(-2j * np.pi * k * k[:, None] / n) @ x
    even = fft_recursive(x[::2])
    odd = fft_recursive(x[1::2])
    w = np.exp(-2j * np.pi * np.arange(n // 2) / n)
    return np.concatenate([even + w * odd, even - w * odd])


def bit_reverse(n):
    bits = n.bit_length() - 1
    index = np.arange(n)
    result = np.zeros(n, dtype=np.int64)
    for _ in range(bits):
        result = (result << 1) | (index & 1)
        index >>= 1
    return result


def fft_iterative(x):
    n = x.shape[0]
    a = x[bit_reverse(n)].astype(np.complex128)
    size = 2
    while size <= n:
        half = size // 2
        w = np.exp(-1j * np.pi * np.arange(half) / half)
        a = a.reshape(-1, size)
        t = w * a[:, half:]
        a[:, half:] = a[:, :half] - t
        a[:, :half] += t
        a = a.ravel()
        size *= 2
    return a


def inputs():
    rng = np.random.default_rng(29)
    return rng.standard_normal(2**13) + 1j * rng.standard_normal(2**13), rng.integers(0, 10, 2**12)


def run(x, digits):
    X = fft_recursive(x)
    Y = fft_iterative(x)
    padded = np.concatenate((digits, np.zeros_like(digits)))
    D = fft_iterative(padded)
    square = np.rint(np.real(np.conj(fft_iterative(np.conj(D * D)))) / len(padded)).astype(int)
    return X[::32], np.abs(X - Y).max() < 1e-8, square, np.allclose(X, np.fft.fft(x))


def main():
    return run(*inputs())
