"""Rosenblatt's perceptron, one example after the other, and an averaged one (machine learning)."""

import numpy as np


def inputs():
    rng = np.random.default_rng(94)
    X = rng.normal(size=(3000, 2)) @ np.array([[2.0, 0.5], [0.3, 1.0]])
    margin = X @ np.array([1.0, -1.5]) + 0.4
    keep = np.abs(margin) > 0.02
    return X[keep], np.where(margin[keep] > 0, 1, -1)


def run(X, y):
    n = len(X)
    w = np.zeros(3)
    total = np.zeros(3)
    errors = []
    for _ in range(12):
        mistakes = 0
        for i in range(n):
            activation = w[0] + w[1] * X[i, 0] + w[2] * X[i, 1]
            if y[i] * activation <= 0:
                w[0] += y[i]
                w[1:] += y[i] * X[i]
                mistakes += 1
            total += w
        errors.append(mistakes)
        if mistakes == 0:
            break
    averaged = total / np.linalg.norm(total)
    predicted = np.sign(np.c_[np.ones(n), X] @ averaged)
    return w, averaged, np.array(errors), (predicted == y).mean()


def main():
    return run(*inputs())
