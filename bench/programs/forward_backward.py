"""Forward-backward and Baum-Welch with scaling (hidden Markov models; Rabiner 1989)."""

import numpy as np


def forward(pi, A, B, obs):
    T, K = len(obs), len(pi)
    alpha = np.zeros((T, K))
    c = np.zeros(T)
    alpha[0] = pi * B[:, obs[0]]
    c[0] = alpha[0].sum()
    alpha[0] /= c[0]
    for t in range(1, T):
        alpha[t] = (alpha[t - 1] @ A) * B[:, obs[t]]
        c[t] = alpha[t].sum()
        alpha[t] /= c[t]
    return alpha, c


def backward(A, B, obs, c):
    T, K = len(obs), A.shape[0]
    beta = np.ones((T, K))
    for t in range(T - 2, -1, -1):
        beta[t] = A @ (B[:, obs[t + 1]] * beta[t + 1]) / c[t + 1]
    return beta


def inputs():
    rng = np.random.default_rng(64)
    segments = [rng.integers(0, 3, 40) if k % 2 else rng.integers(2, 6, 60) for k in range(8)]
    A = np.array([[0.8, 0.2], [0.3, 0.7]])
    B = rng.dirichlet(np.ones(6), 2)
    return np.concatenate(segments), np.array([0.5, 0.5]), A, B


def run(obs, pi, A, B):
    likelihoods = []
    for _ in range(12):
        alpha, c = forward(pi, A, B, obs)
        beta = backward(A, B, obs, c)
        likelihoods.append(np.log(c).sum())
        gamma = alpha * beta
        xi = alpha[:-1, :, None] * A * (B[:, obs[1:]].T * beta[1:] / c[1:, None])[:, None, :]
        pi = gamma[0]
        A = xi.sum(axis=0) / gamma[:-1].sum(axis=0)[:, None]
        B = np.stack([gamma[obs == s].sum(axis=0) for s in range(6)], axis=1)
        B = B / gamma.sum(axis=0)[:, None]
    return np.array(likelihoods), A, B, gamma


def main():
    return run(*inputs())
