"""Canny edges: Sobel, suppression of non-maxima, hysteresis (image processing; Canny 1986)."""

import numpy as np


def sobel(img):
    p = np.pad(img, 1, mode="reflect")
    gx = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
    gy = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
    return gx, gy


def thin(mag, angle):
    angle = np.rad2deg(angle) % 180
    p = np.pad(mag, 1)
    east, west = p[1:-1, 2:], p[1:-1, :-2]
    north, south = p[:-2, 1:-1], p[2:, 1:-1]
    ne, sw = p[:-2, 2:], p[2:, :-2]
    nw, se = p[:-2, :-2], p[2:, 2:]
    sector = [angle < 22.5, angle < 67.5, angle < 112.5, angle < 157.5]
    first = np.select(sector, [east, se, south, sw], default=east)
    second = np.select(sector, [west, nw, north, ne], default=west)
    return np.where((mag >= first) & (mag >= second), mag, 0.0)


def hysteresis(weak, strong):
    edges = strong.copy()
    while True:
        p = np.pad(edges, 1)
        near = np.zeros_like(edges)
        for dy in range(3):
            for dx in range(3):
                near |= p[dy : dy + edges.shape[0], dx : dx + edges.shape[1]]
        grown = near & weak | edges
        if (grown == edges).all():
            return edges
        edges = grown


def inputs():
    y, x = np.mgrid[:448, :448].astype(float)
    img = 90.0 * ((x - 197.3) ** 2 + (y - 188.7) ** 2 < 13000) + 60.0 * (x + 2 * y > 800.5)
    return (img + 8 * np.sin(x / 7.1) + 3 * np.cos(y / 3.3),)


def run(img):
    gx, gy = sobel(img)
    mag = np.hypot(gx, gy)
    thinned = thin(mag, np.arctan2(gy, gx))
    high = 0.3 * mag.max()
    edges = hysteresis(thinned > 0.1 * high, thinned > high)
    return mag, edges, edges.sum(), np.argwhere(edges)[:10]


def main():
    return run(*inputs())
