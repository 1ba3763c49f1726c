"""Convolution by im2col with pooling, and its gradient (neural networks; CS231n)."""

import numpy as np


def im2col_indices(shape, size):
    n, c, h, w = shape
    out_h, out_w = h - size + 1, w - size + 1
    i0 = np.tile(np.repeat(np.arange(size), size), c)
    i1 = np.repeat(np.arange(out_h), out_w)
    j0 = np.tile(np.arange(size), size * c)
    j1 = np.tile(np.arange(out_w), out_h)
    k = np.repeat(np.arange(c), size * size).reshape(-1, 1)
    return k, i0.reshape(-1, 1) + i1, j0.reshape(-1, 1) + j1


def forward(x, W, b):
    n, c, h, w = x.shape
    f, _, size, _ = W.shape
    k, i, j = im2col_indices(x.shape, size)
    cols = x[:, k, i, j]
    out = np.einsum("fp,npq->nfq", W.reshape(f, -1), cols) + b[:, None]
    out = out.reshape(n, f, h - size + 1, w - size + 1)
    active = np.maximum(out, 0)
    pooled = active.reshape(n, f, out.shape[2] // 2, 2, out.shape[3] // 2, 2).max(axis=(3, 5))
    return pooled, (cols, active, (k, i, j))


def backward(dpool, x, W, cache):
    cols, active, (k, i, j) = cache
    n, f = dpool.shape[:2]
    up = dpool.repeat(2, axis=2).repeat(2, axis=3)
    largest = active.reshape(n, f, dpool.shape[2], 2, dpool.shape[3], 2).max(axis=(3, 5))
    mask = (active == largest.repeat(2, 2).repeat(2, 3)) & (active > 0)
    dout = (up * mask).reshape(n, f, -1)
    dW = np.einsum("nfq,npq->fp", dout, cols).reshape(W.shape)
    dcols = np.einsum("fp,nfq->npq", W.reshape(f, -1), dout)
    dx = np.zeros_like(x)
    np.add.at(dx, (slice(None), k, i, j), dcols)
    return dx, dW, dout.sum(axis=(0, 2))


def inputs():
    rng = np.random.default_rng(91)
    return (
        rng.normal(size=(16, 3, 18, 18)),
        rng.normal(size=(8, 3, 3, 3)) * 0.2,
        rng.normal(size=8) * 0.1,
    )


def run(x, W, b):
    target = np.ones((16, 8, 8, 8)) * 0.3
    W, b = W.copy(), b.copy()
    losses = []
    for _ in range(5):
        pooled, cache = forward(x, W, b)
        diff = pooled - target
        losses.append(0.5 * np.mean(diff**2))
        dx, dW, db = backward(diff / diff.size, x, W, cache)
        W -= 2.0 * dW
        b -= 2.0 * db
    return np.array(losses), W, b, dx


def main():
    return run(*inputs())
