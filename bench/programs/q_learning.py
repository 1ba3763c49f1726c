"""Value iteration and Q-learning in a grid world (reinforcement learning; Sutton and Barto)."""

import numpy as np

MOVES = np.array([[-1, 0], [0, 1], [1, 0], [0, -1]])


def value_iteration(reward, walls, gamma, tol=1e-10):
    h, w = reward.shape
    V = np.zeros((h, w))
    while True:
        padded = np.pad(V, 1, mode="edge")
        blocked = np.pad(walls, 1, mode="constant", constant_values=True)
        Q = np.empty((4, h, w))
        for a, (dy, dx) in enumerate(MOVES):
            there = padded[1 + dy : 1 + dy + h, 1 + dx : 1 + dx + w]
            stop = blocked[1 + dy : 1 + dy + h, 1 + dx : 1 + dx + w]
            Q[a] = reward + gamma * np.where(stop, V, there)
        new = np.where(walls, 0, Q.max(axis=0))
        if np.abs(new - V).max() < tol:
            return new, Q.argmax(axis=0)
        V = new


def q_learning(reward, walls, goal, rng, episodes):
    h, w = reward.shape
    Q = np.zeros((h, w, 4))
    lengths = []
    for _ in range(episodes):
        y, x = 0, 0
        steps = 0
        while (y, x) != goal and steps < 100:
            a = rng.integers(4) if rng.random() < 0.2 else np.argmax(Q[y, x])
            ny, nx = y + MOVES[a, 0], x + MOVES[a, 1]
            if ny < 0 or ny >= h or nx < 0 or nx >= w or walls[ny, nx]:
                ny, nx = y, x
            target = reward[ny, nx] + 0.9 * np.max(Q[ny, nx])
            Q[y, x, a] += 0.5 * (target - Q[y, x, a])
            y, x = ny, nx
            steps += 1
        lengths.append(steps)
    return Q, lengths


def inputs():
    walls = np.zeros((8, 8), dtype=bool)
    walls[2, 1:6] = walls[5, 3:] = True
    reward = np.full((8, 8), -0.04)
    reward[7, 7] = 1.0
    return reward, walls


def run(reward, walls):
    V, policy = value_iteration(reward, walls, 0.95)
    Q, lengths = q_learning(reward, walls, (7, 7), np.random.default_rng(115), 100)
    return V, Q, np.array(lengths), Q.max(axis=2), policy[V > 15]


def main():
    return run(*inputs())
