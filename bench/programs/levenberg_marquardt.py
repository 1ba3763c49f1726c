"""Nonlinear least squares by Levenberg and Marquardt (optimisation; Nocedal)."""

import numpy as np


def model(p, t):
    return p[0] * np.exp(-p[1] * t) * np.cos(p[2] * t + p[3]) + p[4]


def numerical_jacobian(f, p, t):
    J = np.empty((t.size, p.size))
    for k in range(p.size):
        step = np.zeros_like(p)
        step[k] = 1e-6 * max(1.0, abs(p[k]))
        J[:, k] = (f(p + step, t) - f(p - step, t)) / (2 * step[k])
    return J


def fit(t, y, p, max_iter=60):
    damping = 1e-2
    residual = y - model(p, t)
    cost = residual @ residual
    for _ in range(max_iter):
        J = numerical_jacobian(model, p, t)
        A = J.T @ J
        g = J.T @ residual
        if np.max(np.abs(g)) < 1e-5:
            break
        delta = np.linalg.solve(A + damping * np.diag(np.diag(A)), g)
        trial = y - model(p + delta, t)
        if trial @ trial < cost:
            p = p + delta
            residual, cost = trial, trial @ trial
            damping = max(damping / 5, 1e-12)
        else:
            damping *= 4
    return p, cost, A


def inputs():
    rng = np.random.default_rng(109)
    t = np.linspace(0, 10, 2000)
    curves = [(1 + 0.1 * k, 0.3 + 0.02 * k, 2.5, 0.4, 0.2) for k in range(8)]
    return t, np.array([model(c, t) + 0.05 * rng.standard_normal(t.size) for c in curves])


def run(t, ys):
    parameters, costs, errors = [], [], []
    for y in ys:
        p, cost, A = fit(t, y, np.array([1.0, 0.2, 2.4, 0.3, 0.0]))
        sigma = np.sqrt(np.diag(np.linalg.inv(A)) * cost / (len(t) - len(p)))
        parameters.append(p)
        costs.append(cost)
        errors.append(sigma)
    return np.stack(parameters), np.array(costs), np.array(errors)


def main():
    return run(*inputs())
