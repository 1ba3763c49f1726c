"""Dynamic time warping with a band and the warping path (time series; Sakoe and Chiba)."""

import numpy as np


def dtw(s, t, window):
    n, m = len(s), len(t)
    w = max(window, abs(n - m))
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(max(1, i - w), min(m, i + w) + 1):
            cost = abs(s[i - 1] - t[j - 1])
            D[i, j] = cost + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    path = [(n, m)]
    i, j = n, m
    while i > 1 or j > 1:
        options = [D[i - 1, j - 1], D[i - 1, j], D[i, j - 1]]
        move = np.argmin(options)
        if move == 0:
            i, j = i - 1, j - 1
        elif move == 1:
            i -= 1
        else:
            j -= 1
        path.append((i, j))
    return D, np.array(path[::-1])


def inputs():
    t = np.linspace(0, 6, 160)
    return np.sin(t) + 0.1 * t, np.sin(t**1.1 * 0.85) + 0.09 * t


def run(s, t):
    D, path = dtw(s, t, 30)
    warp = path[:, 0] - path[:, 1]
    return D[-1, -1], path, warp.min(), warp.max(), D[-1, -10:]


def main():
    return run(*inputs())
