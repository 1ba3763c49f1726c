"""Double pendulum by the Runge-Kutta method of fourth order (classical mechanics; Goldstein)."""

import numpy as np

G, L1, L2, M1, M2 = 9.81, 1.0, 1.0, 1.0, 1.0


def derivatives(state):
    t1, w1, t2, w2 = state
    delta = t2 - t1
    c, s = np.cos(delta), np.sin(delta)
    den1 = (M1 + M2) * L1 - M2 * L1 * c * c
    dydx = np.zeros_like(state)
    dydx[0] = w1
    dydx[1] = (
        M2 * L1 * w1 * w1 * s * c
        + M2 * G * np.sin(t2) * c
        + M2 * L2 * w2 * w2 * s
        - (M1 + M2) * G * np.sin(t1)
    ) / den1
    dydx[2] = w2
    den2 = L2 / L1 * den1
    dydx[3] = (
        -M2 * L2 * w2 * w2 * s * c
        + (M1 + M2) * (G * np.sin(t1) * c - L1 * w1 * w1 * s - G * np.sin(t2))
    ) / den2
    return dydx


def rk4(f, y, dt):
    k1 = f(y)
    k2 = f(y + dt / 2 * k1)
    k3 = f(y + dt / 2 * k2)
    k4 = f(y + dt * k3)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def inputs():
    return np.radians([120.0, 0.0, -10.0, 0.0]), 0.01, 300


def run(state, dt, steps):
    path = np.empty((steps, 4))
    path[0] = state
    for i in range(1, steps):
        path[i] = rk4(derivatives, path[i - 1], dt)
    x = L1 * np.sin(path[:, 0]) + L2 * np.sin(path[:, 2])
    y = -L1 * np.cos(path[:, 0]) - L2 * np.cos(path[:, 2])
    return path, x, y


def main():
    return run(*inputs())
