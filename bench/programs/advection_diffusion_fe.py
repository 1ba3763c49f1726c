"""Linear finite elements, assembled element by element, for advection and diffusion (Elman)."""

import numpy as np


def assemble(nodes, elements, eps, beta):
    n = len(nodes)
    K = np.zeros((n, n))
    F = np.zeros(n)
    for e in elements:
        i, j = e
        h = nodes[j] - nodes[i]
        ke = eps / h * np.array([[1, -1], [-1, 1]]) + beta / 2 * np.array([[-1, 1], [-1, 1]])
        mid = 0.5 * (nodes[i] + nodes[j])
        fe = h / 2 * np.cos(mid) * np.ones(2)
        for a in range(2):
            for b in range(2):
                K[e[a], e[b]] += ke[a, b]
            F[e[a]] += fe[a]
    return K, F


def inputs():
    s = np.linspace(0, 1, 401)
    nodes = s**0.7
    elements = np.column_stack([np.arange(400), np.arange(1, 401)])
    return nodes, elements


def run(nodes, elements):
    K, F = assemble(nodes, elements, 0.05, 1.0)
    K[0, :] = 0.0
    K[-1, :] = 0.0
    K[0, 0] = K[-1, -1] = 1.0
    F[0], F[-1] = 0.0, 0.0
    u = np.linalg.solve(K, F)
    return u, u.max(), nodes[u.argmax()]


def main():
    return run(*inputs())
