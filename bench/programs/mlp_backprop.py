"""Two-layer network for classes of spirals, with gradients by hand (neural networks; CS231n)."""

import numpy as np


def inputs():
    np.random.seed(0)
    n, classes = 100, 3
    X = np.zeros((n * classes, 2))
    y = np.zeros(n * classes, dtype="uint8")
    for j in range(classes):
        ix = range(n * j, n * (j + 1))
        r = np.linspace(0.0, 1, n)
        t = np.linspace(j * 4, (j + 1) * 4, n) + np.random.randn(n) * 0.2
        X[ix] = np.c_[r * np.sin(t), r * np.cos(t)]
        y[ix] = j
    W = 0.1 * np.random.randn(2, 100)
    W2 = 0.1 * np.random.randn(100, classes)
    return X, y, W, W2


def run(X, y, W, W2):
    W, W2 = W.copy(), W2.copy()
    b, b2 = np.zeros((1, W.shape[1])), np.zeros((1, W2.shape[1]))
    num = X.shape[0]
    reg, rate = 1e-3, 0.5
    losses = []
    for i in range(150):
        hidden = np.maximum(0, np.dot(X, W) + b)
        scores = np.dot(hidden, W2) + b2
        exp_scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        probs = exp_scores / np.sum(exp_scores, axis=1, keepdims=True)
        data_loss = np.sum(-np.log(probs[range(num), y])) / num
        loss = data_loss + 0.5 * reg * (np.sum(W * W) + np.sum(W2 * W2))
        if i % 10 == 0:
            losses.append(loss)
        dscores = probs
        dscores[range(num), y] -= 1
        dscores /= num
        dW2 = np.dot(hidden.T, dscores)
        db2 = np.sum(dscores, axis=0, keepdims=True)
        dhidden = np.dot(dscores, W2.T)
        dhidden[hidden <= 0] = 0
        dW = np.dot(X.T, dhidden)
        db = np.sum(dhidden, axis=0, keepdims=True)
        W += -rate * (dW + reg * W)
        b += -rate * db
        W2 += -rate * (dW2 + reg * W2)
        b2 += -rate * db2
    predicted = np.argmax(np.maximum(0, X @ W + b) @ W2 + b2, axis=1)
    return np.array(losses), W2, b, np.mean(predicted == y)


def main():
    return run(*inputs())
