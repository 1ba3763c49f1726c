"""Convolution by shifted sums, separable blur and unsharp mask (image processing)."""

import numpy as np


def convolve2d(image, kernel):
    kh, kw = kernel.shape
    ph, pw = kh // 2, kw // 2
    padded = np.pad(image, ((ph, ph), (pw, pw)), mode="edge")
    out = np.zeros(image.shape, dtype=np.float64)
    for i in range(kh):
        for j in range(kw):
            window = padded[i : i + image.shape[0], j : j + image.shape[1]]
            out += kernel[kh - 1 - i, kw - 1 - j] * window
    return out


def gaussian(size, sigma):
    ax = np.arange(size) - size // 2
    k = np.exp(-(ax**2) / (2.0 * sigma**2))
    return k / k.sum()


def inputs():
    rng = np.random.default_rng(20)
    y, x = np.mgrid[:400, :400]
    image = 128 + 80 * np.sin(x / 9.0) * np.cos(y / 14.0) + rng.normal(0, 10, (400, 400))
    return (np.clip(image, 0, 255).astype(np.uint8),)


def run(image):
    g = gaussian(9, 1.8)
    blurred = convolve2d(image, np.outer(g, g))
    separable = convolve2d(convolve2d(image, g[None, :]), g[:, None])
    sharp = np.clip(image + 1.5 * (image - blurred), 0, 255).round().astype(np.uint8)
    emboss = convolve2d(image, np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]))
    return blurred, np.allclose(blurred, separable), sharp.mean(), emboss[::16, ::16]


def main():
    return run(*inputs())
