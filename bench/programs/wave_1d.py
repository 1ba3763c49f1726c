"""Leapfrog for the wave equation on a string with two media (PDEs; Langtangen)."""

import numpy as np


def solver(initial, velocity, C, nt):
    nx = len(initial)
    q = C**2 * velocity**2
    u_prev = initial.copy()
    u = np.zeros(nx)
    u_next = np.zeros(nx)
    for i in range(1, nx - 1):
        u[i] = u_prev[i] + 0.5 * q[i] * (u_prev[i - 1] - 2 * u_prev[i] + u_prev[i + 1])
    energy = np.zeros(nt)
    for n in range(nt):
        u_next[1:-1] = -u_prev[1:-1] + 2 * u[1:-1] + q[1:-1] * (u[:-2] - 2 * u[1:-1] + u[2:])
        u_next[0] = 0
        u_next[-1] = 0
        energy[n] = np.sum((u_next - u) ** 2)
        u_prev, u, u_next = u, u_next, u_prev
    return u, energy


def inputs():
    x = np.linspace(0, 1, 1001)
    initial = np.exp(-0.5 * ((x - 0.3) / 0.03) ** 2)
    initial[0] = initial[-1] = 0.0
    return x, initial


def run(x, initial):
    velocity = np.where(x < 0.6, 1.0, 0.5)
    u, energy = solver(initial, velocity, 0.9, 1500)
    return u, energy[::50], x[np.argmax(np.abs(u))]


def main():
    return run(*inputs())
