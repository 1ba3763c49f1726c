"""Shallow water by two-step Lax-Wendroff with reflecting walls (geophysics; Moler, Experiments)."""

import numpy as np

G, DT, DX, DY = 9.8, 0.02, 1.0, 1.0


def reflect(H, U, V):
    H[:, 0], U[:, 0], V[:, 0] = H[:, 1], U[:, 1], -V[:, 1]
    H[:, -1], U[:, -1], V[:, -1] = H[:, -2], U[:, -2], -V[:, -2]
    H[0], U[0], V[0] = H[1], -U[1], V[1]
    H[-1], U[-1], V[-1] = H[-2], -U[-2], V[-2]


def fluxes(H, U, V):
    return U**2 / H + G / 2 * H**2, U * V / H, V**2 / H + G / 2 * H**2


def half_step(H, U, V, axis, d):
    a = (slice(1, None), slice(1, -1)) if axis == 0 else (slice(1, -1), slice(1, None))
    b = (slice(None, -1), slice(1, -1)) if axis == 0 else (slice(1, -1), slice(None, -1))
    F, FG, Gv = fluxes(H, U, V)
    mass, along, across = (U, F, FG) if axis == 0 else (V, FG, Gv)
    h = (H[a] + H[b]) / 2 - DT / (2 * d) * (mass[a] - mass[b])
    u = (U[a] + U[b]) / 2 - DT / (2 * d) * (along[a] - along[b])
    v = (V[a] + V[b]) / 2 - DT / (2 * d) * (across[a] - across[b])
    return h, u, v


def inputs():
    n = 96
    x, y = np.ogrid[-3:3:21j, -3:3:21j]
    H = np.ones((n + 2, n + 2))
    H[20:41, 30:51] += 1.5 * np.exp(-(x**2) - y**2)
    return H, np.zeros_like(H), np.zeros_like(H)


def run(H, U, V):
    H, U, V = H.copy(), U.copy(), V.copy()
    for _ in range(120):
        reflect(H, U, V)
        hx, ux, vx = half_step(H, U, V, 0, DX)
        hy, uy, vy = half_step(H, U, V, 1, DY)
        Fx, FGx, _ = fluxes(hx, ux, vx)
        _, FGy, Gy = fluxes(hy, uy, vy)
        H[1:-1, 1:-1] -= DT / DX * np.diff(ux, axis=0) + DT / DY * np.diff(vy, axis=1)
        U[1:-1, 1:-1] -= DT / DX * np.diff(Fx, axis=0) + DT / DY * np.diff(FGy, axis=1)
        V[1:-1, 1:-1] -= DT / DX * np.diff(FGx, axis=0) + DT / DY * np.diff(Gy, axis=1)
    return H, U, V, H[1:-1, 1:-1].sum()


def main():
    return run(*inputs())
