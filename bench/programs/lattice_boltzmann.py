"""Lattice Boltzmann D2Q9 flow past a cylinder (computational fluid dynamics; Succi)."""

import numpy as np

C = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]])
W = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
OPPOSITE = [0, 3, 4, 1, 2, 7, 8, 5, 6]


def equilibrium(rho, u):
    cu = 3.0 * np.einsum("qd,dxy->qxy", C.astype(float), u)
    usqr = 1.5 * (u[0] ** 2 + u[1] ** 2)
    return rho * W[:, None, None] * (1 + cu + 0.5 * cu**2 - usqr)


def inputs():
    nx, ny = 160, 64
    x, y = np.mgrid[:nx, :ny]
    obstacle = (x - nx // 4) ** 2 + (y - ny // 2) ** 2 < (ny // 9) ** 2
    u = np.zeros((2, nx, ny))
    u[0] = 0.08 * (1 + 1e-2 * np.sin(2 * np.pi * y / (ny - 1)))
    return obstacle, u


def run(obstacle, inflow):
    tau = 0.6
    f = equilibrium(np.ones(obstacle.shape), inflow)
    drag = []
    for _ in range(60):
        f[[3, 7, 6], -1, :] = f[[3, 7, 6], -2, :]
        rho = f.sum(axis=0)
        u = np.einsum("qd,qxy->dxy", C.astype(float), f) / rho
        u[:, 0, :] = inflow[:, 0, :]
        feq = equilibrium(rho, u)
        fout = f - (f - feq) / tau
        for q in range(9):
            fout[q, obstacle] = f[OPPOSITE[q], obstacle]
        for q in range(9):
            f[q] = np.roll(np.roll(fout[q], C[q, 0], axis=0), C[q, 1], axis=1)
        drag.append(u[0][obstacle].sum())
    vorticity = np.gradient(u[1], axis=0) - np.gradient(u[0], axis=1)
    return u, vorticity, np.array(drag), rho.mean()


def main():
    return run(*inputs())
