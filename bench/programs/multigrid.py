"""V-cycles of multigrid for the Poisson equation in one dimension (numerical analysis; Briggs)."""

import numpy as np


def smooth(u, f, h, sweeps):
    for _ in range(sweeps):
        u[1:-1] += 2 / 3 * (0.5 * (u[:-2] + u[2:] + h * h * f[1:-1]) - u[1:-1])
    return u


def residual(u, f, h):
    r = np.zeros_like(u)
    r[1:-1] = f[1:-1] + (u[:-2] - 2 * u[1:-1] + u[2:]) / h**2
    return r


def restrict(r):
    coarse = r[::2].copy()
    coarse[1:-1] = 0.25 * (r[1:-2:2] + 2 * r[2:-1:2] + r[3::2])
    return coarse


def prolong(e):
    fine = np.zeros(2 * len(e) - 1)
    fine[::2] = e
    fine[1::2] = 0.5 * (e[:-1] + e[1:])
    return fine


def v_cycle(u, f, h):
    if len(u) == 3:
        u[1] = h * h * f[1] / 2
        return u
    u = smooth(u, f, h, 3)
    e = v_cycle(np.zeros((len(u) + 1) // 2), restrict(residual(u, f, h)), 2 * h)
    u += prolong(e)
    return smooth(u, f, h, 3)


def inputs():
    x = np.linspace(0.0, 1.0, 2**13 + 1)
    return (np.exp(x) * np.sin(8 * x) + (x > 0.5),)


def run(f):
    h = 1.0 / (len(f) - 1)
    u = np.zeros_like(f)
    norms = []
    for _ in range(12):
        u = v_cycle(u, f, h)
        norms.append(np.linalg.norm(residual(u, f, h)) * np.sqrt(h))
    return u[::16], np.array(norms[:5]), u.max()


def main():
    return run(*inputs())
