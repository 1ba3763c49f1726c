"""Kuramoto oscillators: order parameter against coupling (nonlinear dynamics; Strogatz)."""

import numpy as np


def inputs():
    rng = np.random.default_rng(34)
    return rng.uniform(0, 2 * np.pi, 300), np.tan(np.pi * (rng.random(300) * 0.9 - 0.45)) * 0.5


def order(theta):
    z = np.exp(1j * theta).mean()
    return abs(z), np.angle(z)


def run(theta0, omega):
    couplings = np.arange(0.0, 3.1, 0.5)
    result = np.zeros_like(couplings)
    dt = 0.05
    for c, K in enumerate(couplings):
        theta = theta0.copy()
        history = []
        for step in range(150):
            r, phase = order(theta)
            velocity = omega + K * r * np.sin(phase - theta)
            theta = np.mod(theta + dt * velocity, 2 * np.pi)
            if step > 75:
                history.append(r)
        result[c] = np.mean(history)
    return couplings, result, np.cos(theta)


def main():
    return run(*inputs())
