"""Conjugate gradients on the five-point Laplacian (numerical linear algebra; Shewchuk)."""

import numpy as np


def laplacian(u):
    out = 4.0 * u
    out[1:, :] -= u[:-1, :]
    out[:-1, :] -= u[1:, :]
    out[:, 1:] -= u[:, :-1]
    out[:, :-1] -= u[:, 1:]
    return out


def cg(apply, b, iterations):
    x = np.zeros_like(b)
    r = b - apply(x)
    p = r.copy()
    rs = np.sum(r * r)
    history = [rs]
    for _ in range(iterations):
        ap = apply(p)
        alpha = rs / np.sum(p * ap)
        x += alpha * p
        r -= alpha * ap
        rs_new = np.sum(r * r)
        p = r + (rs_new / rs) * p
        rs = rs_new
        history.append(rs)
    return x, history


def inputs():
    n = 128
    y, x = np.mgrid[0:n, 0:n] / n
    return (np.sin(3 * np.pi * x) * np.cos(np.pi * y) + x * y,)


def run(b):
    x, history = cg(laplacian, b, 120)
    return x, np.sqrt(np.array(history[:20])), np.vdot(x, b)


def main():
    return run(*inputs())
