"""Logistic regression by gradient descent and by Newton (statistics; Hastie et al., 4.4)."""

import numpy as np


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def newton(X, y, lam, iterations=8):
    beta = np.zeros(X.shape[1])
    for _ in range(iterations):
        p = sigmoid(X @ beta)
        W = p * (1 - p)
        hessian = X.T @ (X * W[:, None]) + lam * np.eye(X.shape[1])
        beta += np.linalg.solve(hessian, X.T @ (y - p) - lam * beta)
    return beta, np.sqrt(np.diag(np.linalg.inv(hessian)))


def gradient_descent(X, y, rate, epochs):
    theta = np.zeros(X.shape[1])
    velocity = np.zeros_like(theta)
    losses = []
    for _ in range(epochs):
        p = sigmoid(X.dot(theta))
        losses.append(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)))
        velocity = 0.9 * velocity - rate * X.T.dot(p - y) / len(y)
        theta += velocity
    return theta, losses


def auc(y, score):
    order = np.argsort(score)
    ranks = np.empty(len(score))
    ranks[order] = np.arange(1, len(score) + 1)
    positive = y == 1
    n1, n0 = positive.sum(), (~positive).sum()
    return (ranks[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0)


def inputs():
    rng = np.random.default_rng(74)
    X = rng.normal(size=(3000, 12))
    beta = rng.normal(size=12)
    return X, (rng.random(3000) < sigmoid(X @ beta - 0.4)).astype(np.float64)


def run(X, y):
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X = np.hstack([np.ones((len(X), 1)), X])
    beta, error = newton(X, y, 1e-3)
    theta, losses = gradient_descent(X, y, 0.5, 200)
    accuracy = np.mean((sigmoid(X @ theta) > 0.5) == y)
    return beta, beta / error, theta, np.array(losses), accuracy, auc(y, X @ beta)


def main():
    return run(*inputs())
