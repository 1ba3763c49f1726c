"""Erosion, dilation, distance transform and skeleton by morphology (image processing; Serra)."""

import numpy as np


def dilate(mask):
    out = mask.copy()
    out[1:] |= mask[:-1]
    out[:-1] |= mask[1:]
    out[:, 1:] |= mask[:, :-1]
    out[:, :-1] |= mask[:, 1:]
    return out


def erode(mask):
    return ~dilate(~mask)


def distance_by_sweeps(mask):
    h, w = mask.shape
    d = np.where(mask, h + w, 0)
    for i in range(1, h):
        d[i] = np.minimum(d[i], d[i - 1] + 1)
    for i in range(h - 2, -1, -1):
        d[i] = np.minimum(d[i], d[i + 1] + 1)
    for j in range(1, w):
        d[:, j] = np.minimum(d[:, j], d[:, j - 1] + 1)
    for j in range(w - 2, -1, -1):
        d[:, j] = np.minimum(d[:, j], d[:, j + 1] + 1)
    return d


def inputs():
    rng = np.random.default_rng(30)
    mask = np.zeros((480, 480), dtype=bool)
    y, x = np.ogrid[:480, :480]
    for _ in range(40):
        cy, cx, r = rng.integers(20, 460), rng.integers(20, 460), rng.integers(6, 45)
        mask |= (y - cy) ** 2 + (x - cx) ** 2 <= r * r
    return (mask,)


def run(mask):
    mask = mask.copy()
    mask[[0, -1], :] = mask[:, [0, -1]] = False
    distance = distance_by_sweeps(mask)
    skeleton = np.zeros_like(mask)
    layers = np.zeros(mask.shape, dtype=np.int16)
    current = mask
    while current.any():
        eroded = erode(current)
        opened = dilate(eroded)
        skeleton |= current & ~opened
        layers += current
        current = eroded
    return distance, skeleton, layers.max(), np.array_equal(layers, distance), int(skeleton.sum())


def main():
    return run(*inputs())
