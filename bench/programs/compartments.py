"""Epidemics: SIR by Euler for several rates, and on a lattice (epidemiology; Keeling)."""

import numpy as np


def sir(beta, gamma, s, i, dt, steps):
    S, I, R = np.zeros(steps), np.zeros(steps), np.zeros(steps)
    S[0], I[0], R[0] = s, i, 1 - s - i
    for t in range(steps - 1):
        new_infected = beta * S[t] * I[t] * dt
        recovered = gamma * I[t] * dt
        S[t + 1] = S[t] - new_infected
        I[t + 1] = I[t] + new_infected - recovered
        R[t + 1] = R[t] + recovered
    return S, I, R


def lattice(rng, n, p, recover, steps):
    state = np.zeros((n, n), dtype=np.int8)
    state[n // 2, n // 2] = 1
    counts = np.zeros((steps, 3), dtype=int)
    for t in range(steps):
        infected = state == 1
        near = np.zeros((n, n), dtype=int)
        near[1:] += infected[:-1]
        near[:-1] += infected[1:]
        near[:, 1:] += infected[:, :-1]
        near[:, :-1] += infected[:, 1:]
        catch = rng.random((n, n)) < 1 - (1 - p) ** near
        heal = rng.random((n, n)) < recover
        state[(state == 0) & catch] = 1
        state[infected & heal] = 2
        counts[t] = [np.sum(state == k) for k in range(3)]
    return counts, state


def inputs():
    return np.array([0.2, 0.35, 0.5]), 0.1, np.random.default_rng(111).poisson(3.0, (40, 25))


def run(betas, gamma, cases):
    S, I, R = zip(*(sir(b, gamma, 0.99, 0.01, 0.1, 2500) for b in betas), strict=True)
    peaks = np.array([i.max() for i in I]), np.array([np.argmax(i) for i in I])
    counts, state = lattice(np.random.default_rng(112), 80, 0.3, 0.2, 100)
    growth = np.log((cases[1:].sum(1) + 1) / (cases[:-1].sum(1) + 1))
    return peaks[0], peaks[1], np.array(R)[:, ::100], S[0][-1], counts, state, growth


def main():
    return run(*inputs())
