"""Global alignment of two sequences with traceback (bioinformatics; Needleman and Wunsch, 1970)."""

import numpy as np


def align(a, b, match=1, mismatch=-1, gap=-2):
    n, m = len(a), len(b)
    F = np.zeros((n + 1, m + 1), dtype=int)
    P = np.zeros((n + 1, m + 1), dtype=np.int8)
    F[:, 0] = gap * np.arange(n + 1)
    F[0, :] = gap * np.arange(m + 1)
    P[1:, 0] = 1
    P[0, 1:] = 2
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            diagonal = F[i - 1, j - 1] + (match if a[i - 1] == b[j - 1] else mismatch)
            up = F[i - 1, j] + gap
            left = F[i, j - 1] + gap
            best = max(diagonal, up, left)
            F[i, j] = best
            if best == diagonal:
                P[i, j] = 0
            elif best == up:
                P[i, j] = 1
            else:
                P[i, j] = 2
    return F, P


def traceback(P, a, b):
    i, j = len(a), len(b)
    top, bottom = [], []
    while i > 0 or j > 0:
        move = P[i, j]
        if move == 0:
            i, j = i - 1, j - 1
            top.append(a[i])
            bottom.append(b[j])
        elif move == 1:
            i -= 1
            top.append(a[i])
            bottom.append(-1)
        else:
            j -= 1
            top.append(-1)
            bottom.append(b[j])
    return np.array(top[::-1]), np.array(bottom[::-1])


def inputs():
    rng = np.random.default_rng(60)
    a = rng.integers(0, 4, 130)
    b = np.delete(a, [5, 40, 41, 90])
    b[rng.integers(0, len(b), 12)] = rng.integers(0, 4, 12)
    return a, b


def run(a, b):
    F, P = align(a, b)
    top, bottom = traceback(P, a, b)
    return F, top, bottom, F[-1, -1], np.sum(top == bottom)


def main():
    return run(*inputs())
