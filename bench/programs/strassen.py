"""Strassen multiplication of matrices of integers by recursion (algorithms; Cormen et al., 4.2)."""

import numpy as np


def strassen(a, b, leaf=32):
    n = a.shape[0]
    if n <= leaf:
        return a @ b
    h = n // 2
    a11, a12, a21, a22 = a[:h, :h], a[:h, h:], a[h:, :h], a[h:, h:]
    b11, b12, b21, b22 = b[:h, :h], b[:h, h:], b[h:, :h], b[h:, h:]
    m1 = strassen(a11 + a22, b11 + b22)
    m2 = strassen(a21 + a22, b11)
    m3 = strassen(a11, b12 - b22)
    m4 = strassen(a22, b21 - b11)
    m5 = strassen(a11 + a12, b22)
    m6 = strassen(a21 - a11, b11 + b12)
    m7 = strassen(a12 - a22, b21 + b22)
    c = np.empty((n, n), dtype=a.dtype)
    c[:h, :h] = m1 + m4 - m5 + m7
    c[:h, h:] = m3 + m5
    c[h:, :h] = m2 + m4
    c[h:, h:] = m1 - m2 + m3 + m6
    return c


def inputs():
    rng = np.random.default_rng(11)
    return rng.integers(-9, 10, (256, 256)), rng.integers(-9, 10, size=(256, 256))


def run(a, b):
    c = strassen(a, b)
    return c, c.trace(), np.array_equal(c[:8], a[:8] @ b)


def main():
    return run(*inputs())
