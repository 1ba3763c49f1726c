"""JPEG-like compression by the DCT of blocks of eight by eight (image processing; Wallace)."""

import numpy as np

Q = np.array(
    [
        [16, 11, 10, 16, 24, 40, 51, 61],
        [12, 12, 14, 19, 26, 58, 60, 55],
        [14, 13, 16, 24, 40, 57, 69, 56],
        [14, 17, 22, 29, 51, 87, 80, 62],
        [18, 22, 37, 56, 68, 109, 103, 77],
        [24, 35, 55, 64, 81, 104, 113, 92],
        [49, 64, 78, 87, 103, 121, 120, 101],
        [72, 92, 95, 98, 112, 100, 103, 99],
    ],
    dtype=np.float64,
)


def dct_matrix(n):
    k = np.arange(n).reshape(-1, 1)
    i = np.arange(n)
    D = np.sqrt(2 / n) * np.cos(np.pi * (2 * i + 1) * k / (2 * n))
    D[0] /= np.sqrt(2)
    return D


def inputs():
    y, x = np.mgrid[0:384, 0:384]
    img = 120 + 60 * np.sin(x * y / 2500.0) + 40 * (np.hypot(x - 100, y - 140) < 60)
    return (np.round(img).astype(np.uint8),)


def run(img, quality=0.937):
    D = dct_matrix(8)
    table = quality * Q
    shifted = img.astype(np.float64) - 128
    blocks = shifted.reshape(48, 8, 48, 8).swapaxes(1, 2)
    quantized = np.empty(blocks.shape, dtype=np.int32)
    for r in range(48):
        for c in range(48):
            quantized[r, c] = np.rint(D @ blocks[r, c] @ D.T / table)
    decoded = D.T @ (quantized * table) @ D
    restored = np.clip(decoded.swapaxes(1, 2).reshape(384, 384) + 128, 0, 255)
    mse = np.mean((restored - img) ** 2)
    psnr = 10 * np.log10(255.0**2 / mse)
    return quantized, psnr, np.count_nonzero(quantized) / img.size


def main():
    return run(*inputs())
