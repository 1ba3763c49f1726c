"""Levenshtein distance of words in two rolling rows, and clusters of them (string algorithms)."""

import numpy as np

WORDS = "kitten sitting mitten fitting knitting smitten written bitten hitting spitting".split()
WORDS += "saturday sunday monday tuesday wednesday thursday friday yesterday today someday".split()
WORDS += "algorithm logarithm rhythm arithmetic athletic aesthetic synthetic sympathetic".split()
WORDS += "intention execution extension invention convention connection correction".split()


def levenshtein(s, t):
    previous = np.arange(len(t) + 1)
    for i, a in enumerate(s):
        current = np.empty_like(previous)
        current[0] = i + 1
        for j, b in enumerate(t):
            cost = 0 if a == b else 1
            current[j + 1] = min(current[j] + 1, previous[j + 1] + 1, previous[j] + cost)
        previous = current
    return previous[-1]


def inputs():
    return ([np.array([ord(c) for c in word]) for word in WORDS],)


def run(words):
    n = len(words)
    D = np.zeros((n, n), dtype=int)
    for i in range(n):
        for j in range(i):
            D[i, j] = D[j, i] = levenshtein(words[i], words[j])
    close = (D <= 3) & ~np.eye(n, dtype=bool)
    nearest = np.argmin(D + 100 * np.eye(n, dtype=int), axis=1)
    reach = np.eye(n, dtype=bool) | close
    for _ in range(5):
        reach = (reach.astype(int) @ reach.astype(int)) > 0
    return D, nearest, close.sum(axis=0), np.unique(reach, axis=0).shape


def main():
    return run(*inputs())
