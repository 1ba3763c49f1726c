"""Conway's game of life: R-pentomino, glider gun and a soup (cellular automata; Gardner)."""

import numpy as np

GUN = """
........................O...........
......................O.O...........
............OO......OO............OO
...........O...O....OO............OO
OO........O.....O...OO..............
OO........O...O.OO....O.O...........
..........O.....O.......O...........
...........O...O....................
............OO......................
"""


def iterate(Z):
    N = (
        Z[0:-2, 0:-2] + Z[0:-2, 1:-1] + Z[0:-2, 2:]
        + Z[1:-1, 0:-2] + Z[1:-1, 2:]
        + Z[2:, 0:-2] + Z[2:, 1:-1] + Z[2:, 2:]
    )  # fmt: skip
    birth = (N == 3) & (Z[1:-1, 1:-1] == 0)
    survive = ((N == 2) | (N == 3)) & (Z[1:-1, 1:-1] == 1)
    Z[...] = 0
    Z[1:-1, 1:-1][birth | survive] = 1
    return Z


def iterate_torus(Z):
    n = sum(np.roll(Z, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    return ((n == 3) | (Z.astype(bool) & (n == 2))).astype(np.uint8)


def inputs():
    soup = (np.random.default_rng(100).random((160, 160)) < 0.35).astype(np.uint8)
    gun = np.array([[c == "O" for c in line] for line in GUN.split()], dtype=int)
    board = np.zeros((120, 120), dtype=int)
    board[5:14, 5:41] = gun
    return board, soup


def run(board, soup):
    Z = board.copy()
    population = np.zeros(200, dtype=int)
    for k in range(200):
        population[k] = Z.sum()
        iterate(Z)
    for _ in range(60):
        soup = iterate_torus(soup)
    return Z, population, soup, soup.sum(), np.flatnonzero(np.diff(population) == 0).size


def main():
    return run(*inputs())
