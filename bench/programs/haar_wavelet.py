"""Haar wavelet transform, thresholding and reconstruction (signal processing; Stollnitz)."""

import numpy as np


def forward(image, levels):
    out = image.astype(float)
    n = out.shape[0]
    for _ in range(levels):
        block = out[:n, :n].copy()
        lo = (block[:, 0::2] + block[:, 1::2]) / np.sqrt(2)
        hi = (block[:, 0::2] - block[:, 1::2]) / np.sqrt(2)
        block = np.hstack([lo, hi])
        lo = (block[0::2] + block[1::2]) / np.sqrt(2)
        hi = (block[0::2] - block[1::2]) / np.sqrt(2)
        out[:n, :n] = np.vstack((lo, hi))
        n //= 2
    return out


def inverse(coefficients, levels):
    out = coefficients.copy()
    n = out.shape[0] >> (levels - 1)
    for _ in range(levels):
        h = n // 2
        block = np.empty((n, n))
        block[0::2] = (out[:h, :n] + out[h:n, :n]) / np.sqrt(2)
        block[1::2] = (out[:h, :n] - out[h:n, :n]) / np.sqrt(2)
        out[:n, 0:n:2] = (block[:, :h] + block[:, h:]) / np.sqrt(2)
        out[:n, 1:n:2] = (block[:, :h] - block[:, h:]) / np.sqrt(2)
        n *= 2
    return out


def inputs():
    rng = np.random.default_rng(24)
    img = np.kron(rng.integers(0, 200, (8, 8)), np.ones((64, 64), dtype=int))
    return (img + rng.normal(0, 12, img.shape),)


def run(img):
    w = forward(img, 5)
    sigma = np.median(np.abs(w[256:, 256:])) / 0.6745
    threshold = sigma * np.sqrt(2 * np.log(img.size))
    kept = np.sign(w) * np.maximum(np.abs(w) - threshold, 0)
    kept[:16, :16] = w[:16, :16]
    denoised = inverse(kept, 5)
    return w[::8, ::8], denoised, sigma, (kept != 0).sum(), np.allclose(inverse(w, 5), img)


def main():
    return run(*inputs())
