"""Gaussian elimination by three textbook loops (first course in linear algebra)."""

import numpy as np


def eliminate(A, b):
    n = A.shape[0]
    M = np.zeros((n, n + 1))
    M[:, :n] = A
    M[:, n] = b
    for i in range(n):
        pivot = i
        for k in range(i + 1, n):
            if abs(M[k, i]) > abs(M[pivot, i]):
                pivot = k
        if pivot != i:
            for j in range(n + 1):
                M[i, j], M[pivot, j] = M[pivot, j], M[i, j]
        for k in range(i + 1, n):
            factor = M[k, i] / M[i, i]
            for j in range(i, n + 1):
                M[k, j] -= factor * M[i, j]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        total = M[i, n]
        for j in range(i + 1, n):
            total -= M[i, j] * x[j]
        x[i] = total / M[i, i]
    return x


def inputs():
    rng = np.random.RandomState(8)
    return rng.uniform(-5, 5, (60, 60)), rng.uniform(-5, 5, 60)


def run(A, b):
    x = eliminate(A, b)
    return x, np.allclose(A.dot(x), b), np.sum(x)


def main():
    return run(*inputs())
