"""Backtracking: a sudoku and the queens of a board (recreational mathematics, search)."""

import numpy as np

PUZZLE = "534070000672195000098000560800060003400803001700020006060000280000419005000080079"


def possible(grid, y, x, n):
    if n in grid[y] or n in grid[:, x]:
        return False
    y0, x0 = y // 3 * 3, x // 3 * 3
    return not np.any(grid[y0 : y0 + 3, x0 : x0 + 3] == n)


def solve(grid):
    empty = np.argwhere(grid == 0)
    if len(empty) == 0:
        return True
    y, x = empty[0]
    for n in range(1, 10):
        if possible(grid, y, x, n):
            grid[y, x] = n
            if solve(grid):
                return True
            grid[y, x] = 0
    return False


def queens(n):
    columns = np.zeros(n, dtype=bool)
    rising = np.zeros(2 * n - 1, dtype=bool)
    falling = np.zeros(2 * n - 1, dtype=bool)

    def place(row):
        if row == n:
            return 1
        count = 0
        for c in range(n):
            if columns[c] or rising[row + c] or falling[row - c + n - 1]:
                continue
            columns[c] = rising[row + c] = falling[row - c + n - 1] = True
            count += place(row + 1)
            columns[c] = rising[row + c] = falling[row - c + n - 1] = False
        return count

    return place(0)


def inputs():
    return (np.array([int(c) for c in PUZZLE]).reshape(9, 9),)


def run(puzzle):
    grid = puzzle.copy()
    solved = solve(grid)
    boxes = grid.reshape(3, 3, 3, 3).sum(axis=(1, 3))
    return grid, solved, boxes, queens(6)


def main():
    return run(*inputs())
