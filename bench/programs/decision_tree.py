"""A classification tree grown by Gini impurity (machine learning; Breiman)."""

import numpy as np


def gini(counts):
    total = counts.sum(axis=-1, keepdims=True)
    p = counts / np.maximum(total, 1)
    return 1 - np.sum(p**2, axis=-1)


def best_split(X, y, classes):
    n, d = X.shape
    best = (np.inf, None, None)
    onehot = np.eye(classes)[y]
    for f in range(d):
        order = np.argsort(X[:, f], kind="stable")
        values = X[order, f]
        left = np.cumsum(onehot[order], axis=0)[:-1]
        right = onehot.sum(axis=0) - left
        k = np.arange(1, n)
        impurity = (k * gini(left) + (n - k) * gini(right)) / n
        impurity[values[1:] == values[:-1]] = np.inf
        i = int(np.argmin(impurity))
        if impurity[i] < best[0] - 1e-12:
            best = (impurity[i], f, (values[i] + values[i + 1]) / 2)
    return best


def grow(X, y, depth, classes):
    counts = np.bincount(y, minlength=classes)
    if depth == 0 or counts.max() == len(y) or len(y) < 4:
        return int(counts.argmax())
    _, feature, threshold = best_split(X, y, classes)
    if feature is None:
        return int(counts.argmax())
    mask = X[:, feature] <= threshold
    return (
        feature,
        threshold,
        grow(X[mask], y[mask], depth - 1, classes),
        grow(X[~mask], y[~mask], depth - 1, classes),
    )


def predict(tree, x):
    while isinstance(tree, tuple):
        feature, threshold, left, right = tree
        tree = left if x[feature] <= threshold else right
    return tree


def inputs():
    rng = np.random.default_rng(114)
    X = rng.uniform(-2, 2, (1000, 8))
    y = (X[:, 0] ** 2 + X[:, 1] ** 2 < 1.5).astype(int) + (X[:, 2] > 1)
    return X, y


def run(X, y):
    train = np.arange(len(X)) < 750
    tree = grow(X[train], y[train], 6, 3)
    predicted = np.array([predict(tree, x) for x in X[~train]])
    confusion = np.zeros((3, 3), dtype=int)
    for actual, guess in zip(y[~train], predicted, strict=True):
        confusion[actual, guess] += 1
    return predicted, confusion, confusion.trace() / confusion.sum(), tree[1]


def main():
    return run(*inputs())
