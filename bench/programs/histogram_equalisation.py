"""Histogram equalisation, Otsu threshold and lookup tables (image processing; Gonzalez, 3)."""

import numpy as np


def equalise(img):
    hist = np.bincount(img.ravel(), minlength=256)
    cdf = hist.cumsum()
    cdf_min = cdf[np.nonzero(hist)[0][0]]
    lut = np.round((cdf - cdf_min) / (img.size - cdf_min) * 255).astype("uint8")
    return lut[img], hist


def otsu(hist):
    total = hist.sum()
    sum_all = np.dot(np.arange(256), hist)
    best, threshold = -1.0, 0
    w0 = 0
    sum0 = 0.0
    for t in range(256):
        w0 += hist[t]
        if w0 == 0:
            continue
        w1 = total - w0
        if w1 == 0:
            break
        sum0 += t * hist[t]
        m0, m1 = sum0 / w0, (sum_all - sum0) / w1
        between = w0 * w1 * (m0 - m1) ** 2
        if between > best:
            best, threshold = between, t
    return threshold


def inputs():
    rng = np.random.default_rng(25)
    img = rng.normal(90, 15, (900, 900))
    img[128:300, 100:420] += 55
    return (img.clip(0, 255).astype(np.uint8),)


def run(img):
    out, hist = equalise(img)
    t = otsu(hist)
    foreground = img > t
    gamma = (255 * (np.arange(256) / 255) ** 0.5).astype(np.uint8)
    tone = gamma[out]
    counts, edges = np.histogram(tone, bins=16, range=(0, 256))
    return out, t, foreground.mean(), counts, edges, tone.std()


def main():
    return run(*inputs())
