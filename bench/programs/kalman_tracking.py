"""Kalman filter and Rauch-Tung-Striebel smoother of a moving target (control; Kalman 1960)."""

import numpy as np


def inputs():
    rng = np.random.default_rng(82)
    steps = 300
    t = np.arange(steps)
    truth = np.column_stack([0.5 * t, 20 * np.sin(t / 30)])
    return truth + rng.normal(0, 2.0, truth.shape), truth


def run(z, truth):
    dt = 1.0
    F = np.array([[1, 0, dt, 0], [0, 1, 0, dt], [0, 0, 1, 0], [0, 0, 0, 1]])
    H = np.eye(2, 4)
    Q = 0.05 * np.block([[np.eye(2) / 4, np.eye(2) / 2], [np.eye(2) / 2, np.eye(2)]])
    R = 4.0 * np.eye(2)
    n = len(z)
    x = np.zeros(4)
    P = np.diag([10.0, 10.0, 5.0, 5.0])
    xs, Ps, xp, Pp = [], [], [], []
    nis = np.zeros(n)
    for k in range(n):
        x = F @ x
        P = F @ P @ F.T + Q
        xp.append(x)
        Pp.append(P)
        innovation = z[k] - H @ x
        S = H @ P @ H.T + R
        K = P @ H.T @ np.linalg.inv(S)
        x = x + K @ innovation
        P = (np.eye(4) - K @ H) @ P
        nis[k] = innovation @ np.linalg.solve(S, innovation)
        xs.append(x)
        Ps.append(P)
    smooth = np.array(xs)
    for k in range(n - 2, -1, -1):
        C = Ps[k] @ F.T @ np.linalg.inv(Pp[k + 1])
        smooth[k] = xs[k] + C @ (smooth[k + 1] - xp[k + 1])
    rmse = np.sqrt(np.mean((smooth[:, :2] - truth) ** 2, axis=0))
    return np.array(xs), smooth, nis.mean(), rmse, P


def main():
    return run(*inputs())
