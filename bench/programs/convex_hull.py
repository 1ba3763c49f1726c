"""Gift wrapping and the monotone chain, with area and diameter (geometry; de Berg)."""

import numpy as np


def cross(o, a, b):
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


def gift_wrapping(points):
    start = int(np.lexsort((points[:, 1], points[:, 0]))[0])
    hull = []
    current = start
    while True:
        hull.append(current)
        candidate = (current + 1) % len(points)
        for j in range(len(points)):
            if cross(points[current], points[candidate], points[j]) < 0:
                candidate = j
        current = candidate
        if current == start:
            return hull


def monotone_chain(points):
    pts = points[np.lexsort((points[:, 1], points[:, 0]))]
    halves = []
    for sequence in (pts, pts[::-1]):
        half = []
        for p in sequence:
            while len(half) >= 2 and cross(half[-2], half[-1], p) <= 0:
                half.pop()
            half.append(p)
        halves.append(half[:-1])
    return np.array(halves[0] + halves[1])


def inputs():
    return (np.random.default_rng(104).normal(size=(900, 2)),)


def run(points):
    wrapped = points[gift_wrapping(points)]
    chain = monotone_chain(points)
    x, y = wrapped.T
    area = 0.5 * abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))
    edges = np.diff(wrapped, axis=0, append=wrapped[:1])
    perimeter = np.sqrt((edges**2).sum(axis=1)).sum()
    diameter = np.linalg.norm(wrapped[:, None] - wrapped[None, :], axis=-1).max()
    return wrapped, np.array_equal(wrapped, chain), area, perimeter, diameter


def main():
    return run(*inputs())
