"""Burgers' equation by upwind, Lax-Wendroff and a minmod limiter (fluid dynamics; LeVeque)."""

import numpy as np


def minmod(a, b):
    return np.where(a * b > 0, np.where(np.abs(a) < np.abs(b), a, b), 0.0)


def flux(u):
    return 0.5 * u**2


def godunov(ul, ur):
    left = flux(np.maximum(ul, 0.0))
    right = flux(np.minimum(ur, 0.0))
    return np.maximum(left, right)


def rhs(u, dx):
    slope = minmod(u - np.roll(u, 1), np.roll(u, -1) - u)
    ul = u + 0.5 * slope
    ur = np.roll(u - 0.5 * slope, -1)
    f = godunov(ul, ur)
    return -(f - np.roll(f, 1)) / dx


def inputs():
    n = 1000
    x = (np.arange(n) + 0.5) * 2 * np.pi / n
    return x, 1.0 + 0.8 * np.sin(x), 0.8


def run(x, u, end):
    dx = x[1] - x[0]
    t = 0.0
    steps = 0
    while t < end:
        dt = min(0.4 * dx / np.max(np.abs(u)), end - t)
        u1 = u + dt * rhs(u, dx)
        u = 0.5 * (u + u1 + dt * rhs(u1, dx))
        t += dt
        steps += 1
    return u, steps, u.sum() * dx, np.abs(np.diff(u)).max()


def main():
    return run(*inputs())
