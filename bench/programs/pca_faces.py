"""Principal components by the SVD, reconstruction and whitening (statistics; Jolliffe)."""

import numpy as np


def inputs():
    rng = np.random.default_rng(73)
    y, x = np.mgrid[-1:1:20j, -1:1:20j]
    basis = np.array(
        [np.exp(-((x - a) ** 2 + (y - b) ** 2) * 4) for a, b in rng.uniform(-1, 1, (12, 2))]
    )
    scores = rng.standard_normal((400, 12)) * np.linspace(4, 0.5, 12)
    return ((scores @ basis.reshape(12, -1)) + 0.05 * rng.standard_normal((400, 400)),)


def run(X):
    mean = X.mean(axis=0)
    Xc = X - mean
    U, s, Vt = np.linalg.svd(Xc, full_matrices=False)
    explained = s**2 / np.sum(s**2)
    k = int(np.searchsorted(np.cumsum(explained), 0.95)) + 1
    signs = np.sign(Vt[np.arange(k), np.abs(Vt[:k]).argmax(axis=1)])
    components = Vt[:k] * signs[:, None]
    scores = U[:, :k] * s[:k] * signs
    restored = scores @ components + mean
    error = np.sqrt(np.mean((X - restored) ** 2, axis=1))
    white = scores / scores.std(axis=0, ddof=1)
    outliers = np.argsort(np.sum(white**2, axis=1))[-5:]
    return explained[:15], k, components[:3], error, np.cov(white.T), outliers


def main():
    return run(*inputs())
