"""Viterbi decoding of a hidden Markov model (speech, bioinformatics; Rabiner 1989)."""

import numpy as np


def viterbi(obs, log_start, log_trans, log_emit):
    T, K = len(obs), len(log_start)
    delta = np.zeros((T, K))
    psi = np.zeros((T, K), dtype=int)
    delta[0] = log_start + log_emit[:, obs[0]]
    for t in range(1, T):
        for k in range(K):
            scores = delta[t - 1] + log_trans[:, k]
            psi[t, k] = np.argmax(scores)
            delta[t, k] = scores[psi[t, k]] + log_emit[k, obs[t]]
    states = np.zeros(T, dtype=int)
    states[-1] = np.argmax(delta[-1])
    for t in range(T - 2, -1, -1):
        states[t] = psi[t + 1, states[t + 1]]
    return states, delta


def inputs():
    rng = np.random.default_rng(63)
    trans = rng.dirichlet(np.ones(5) * 0.5, 5) * 0.3 + 0.7 * np.eye(5)
    emit = rng.dirichlet(np.ones(12) * 0.4, 5)
    states, obs = [0], []
    for _ in range(600):
        obs.append(rng.choice(12, p=emit[states[-1]]))
        states.append(rng.choice(5, p=trans[states[-1]]))
    return np.array(obs), np.array(states[:-1]), trans, emit


def run(obs, truth, trans, emit):
    start = np.ones(5) / 5
    decoded, delta = viterbi(obs, np.log(start), np.log(trans), np.log(emit + 1e-12))
    changes = np.flatnonzero(np.diff(decoded)) + 1
    return decoded, delta[-1].max(), np.mean(decoded == truth), changes


def main():
    return run(*inputs())
