"""Elementary cellular automata, Langton's ant and a sand pile (complex systems; Wolfram)."""

import numpy as np


def elementary(rule, width, steps):
    table = np.array([rule >> k & 1 for k in range(8)], dtype=np.uint8)
    history = np.zeros((steps, width), dtype=np.uint8)
    history[0, width // 2] = 1
    for t in range(1, steps):
        row = history[t - 1]
        code = 4 * np.roll(row, 1) + 2 * row + np.roll(row, -1)
        history[t] = table[code]
    return history


def ant(size, steps):
    grid = np.zeros((size, size), dtype=bool)
    x = y = size // 2
    dx, dy = 0, -1
    for _ in range(steps):
        dx, dy = (-dy, dx) if grid[y, x] else (dy, -dx)
        grid[y, x] = not grid[y, x]
        x = (x + dx) % size
        y = (y + dy) % size
    return grid


def sand_pile(z):
    z = z.copy()
    topplings = 0
    while (z >= 4).any():
        n, z = z // 4, z % 4
        z[1:] += n[:-1]
        z[:-1] += n[1:]
        z[:, 1:] += n[:, :-1]
        z[:, :-1] += n[:, 1:]
        topplings += n.sum()
    return z, topplings


def inputs():
    pile = np.zeros((41, 41), dtype=np.int64)
    pile[20, 20] = 2000
    return (30, 90, 110), pile


def run(rules, pile):
    histories = [elementary(rule, 301, 150) for rule in rules]
    density = np.array([h.mean(axis=1) for h in histories])
    grid = ant(60, 6000)
    stable, topplings = sand_pile(pile)
    return np.array([h[-1] for h in histories]), density, grid, stable, topplings


def main():
    return run(*inputs())
