"""Lid-driven cavity flow, step 11 of the twelve steps to Navier-Stokes (fluid dynamics; Barba)."""

import numpy as np


def build_up_b(b, rho, dt, u, v, dx, dy):
    b[1:-1, 1:-1] = rho * (
        1
        / dt
        * ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx) + (v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy))
        - ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx)) ** 2
        - 2 * ((u[2:, 1:-1] - u[0:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, 0:-2]) / (2 * dx))
        - ((v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy)) ** 2
    )
    return b


def pressure_poisson(p, dx, dy, b, nit):
    pn = np.empty_like(p)
    for _ in range(nit):
        pn = p.copy()
        p[1:-1, 1:-1] = (
            (pn[1:-1, 2:] + pn[1:-1, 0:-2]) * dy**2 + (pn[2:, 1:-1] + pn[0:-2, 1:-1]) * dx**2
        ) / (2 * (dx**2 + dy**2)) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0
    return p


def advance(w, un, vn, p_gradient, dt, dx, dy, nu):
    return (
        w[1:-1, 1:-1]
        - un[1:-1, 1:-1] * dt / dx * (w[1:-1, 1:-1] - w[1:-1, 0:-2])
        - vn[1:-1, 1:-1] * dt / dy * (w[1:-1, 1:-1] - w[0:-2, 1:-1])
        - p_gradient
        + nu * dt / dx**2 * (w[1:-1, 2:] - 2 * w[1:-1, 1:-1] + w[1:-1, 0:-2])
        + nu * dt / dy**2 * (w[2:, 1:-1] - 2 * w[1:-1, 1:-1] + w[0:-2, 1:-1])
    )


def inputs():
    return np.zeros((41, 41)), np.zeros((41, 41)), np.zeros((41, 41)), 40


def run(u, v, p, nt, rho=1.0, nu=0.1, dt=0.001):
    u, v, p = u.copy(), v.copy(), p.copy()
    dx = dy = 2 / (len(u) - 1)
    b = np.zeros_like(u)
    for _ in range(nt):
        un, vn = u.copy(), v.copy()
        b = build_up_b(b, rho, dt, u, v, dx, dy)
        p = pressure_poisson(p, dx, dy, b, 20)
        px = dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, 0:-2])
        py = dt / (2 * rho * dy) * (p[2:, 1:-1] - p[0:-2, 1:-1])
        u[1:-1, 1:-1] = advance(un, un, vn, px, dt, dx, dy, nu)
        v[1:-1, 1:-1] = advance(vn, un, vn, py, dt, dx, dy, nu)
        u[0, :] = u[:, 0] = u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = v[-1, :] = v[:, 0] = v[:, -1] = 0
    return u, v, p


def main():
    return run(*inputs())
