"""Longest common subsequence and the subsequence itself (dynamic programming; CLRS 15.4)."""

import numpy as np


def lcs(x, y):
    m, n = len(x), len(y)
    c = np.zeros((m + 1, n + 1), dtype=np.int32)
    for i in range(m):
        for j in range(n):
            if x[i] == y[j]:
                c[i + 1, j + 1] = c[i, j] + 1
            else:
                c[i + 1, j + 1] = max(c[i + 1, j], c[i, j + 1])
    result = []
    i, j = m, n
    while i and j:
        if x[i - 1] == y[j - 1]:
            result.append(x[i - 1])
            i, j = i - 1, j - 1
        elif c[i - 1, j] >= c[i, j - 1]:
            i -= 1
        else:
            j -= 1
    return c, result[::-1]


def inputs():
    text = "the quick brown fox jumps over the lazy dog while the five boxing wizards jump quickly "
    text += "sphinx of black quartz judge my vow and bright vixens jump while dozy fowl quack on "
    other = (
        "pack my box with five dozen liquor jugs and the quick daft zebras jump over the dog too "
    )
    other += "jackdaws love my big sphinx of quartz while waltz bad nymph for quick jigs vex now "
    return np.frombuffer(text.encode(), dtype=np.uint8), np.frombuffer(other.encode(), np.uint8)


def run(x, y):
    c, common = lcs(x, y)
    return c, np.array(common, dtype=np.uint8), c.max(), c.sum(axis=0)


def main():
    return run(*inputs())
