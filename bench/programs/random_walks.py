"""Random walks in the plane, first passage and diffusion (statistical physics)."""

import numpy as np


def inputs():
    rng = np.random.default_rng(33)
    return (rng.integers(0, 4, size=(1000, 500)),)


def run(moves):
    directions = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    paths = directions[moves].cumsum(axis=1)
    r2 = (paths**2).sum(axis=-1)
    msd = r2.mean(axis=0)
    t = np.arange(1, msd.size + 1)
    slope, intercept = np.polyfit(t, msd, 1)
    passed = r2 >= 15**2
    hit = passed.any(axis=1)
    first = np.where(hit, passed.argmax(axis=1), -1)
    returns = (r2 == 0).sum(axis=1)
    ends, counts = np.unique(paths[:, -1], axis=0, return_counts=True)
    quartiles = np.percentile(first[hit], [25, 50, 75])
    x = np.abs(paths[..., 0]).max(axis=1)
    return msd, slope, intercept, first, returns, ends[counts.argmax()], quartiles, x


def main():
    return run(*inputs())
