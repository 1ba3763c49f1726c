"""Floyd-Steinberg dithering by loops over pixels (image processing; Floyd and Steinberg, 1976)."""

import numpy as np


def dither(img, levels):
    out = img.astype(np.float64).copy()
    h, w = out.shape
    scale = levels - 1
    for y in range(h):
        for x in range(w):
            old = out[y, x]
            new = np.round(old * scale) / scale
            out[y, x] = new
            err = old - new
            if x + 1 < w:
                out[y, x + 1] += err * 7 / 16
            if y + 1 < h:
                if x > 0:
                    out[y + 1, x - 1] += err * 3 / 16
                out[y + 1, x] += err * 5 / 16
                if x + 1 < w:
                    out[y + 1, x + 1] += err / 16
    return out


def inputs():
    x = np.linspace(0, 1, 128)
    return (0.5 + 0.45 * np.sin(9 * x)[:, None] * np.cos(5 * x + 0.3)[None, :],)


def run(img):
    out = dither(img, 4)
    values, counts = np.unique(np.rint(out * 3).astype(int), return_counts=True)
    blocks = out.reshape(16, 8, 16, 8).mean(axis=(1, 3))
    return out, values, counts, blocks, abs(out.mean() - img.mean()) < 1e-2


def main():
    return run(*inputs())
