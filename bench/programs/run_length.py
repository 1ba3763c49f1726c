"""Run-length coding and move to front, by vectors and by loops (compression; Salomon)."""

import numpy as np


def encode(x):
    change = np.flatnonzero(x[1:] != x[:-1]) + 1
    starts = np.concatenate(([0], change))
    lengths = np.diff(np.append(starts, len(x)))
    return x[starts], lengths


def encode_loop(x):
    values, lengths = [], []
    current, count = x[0], 1
    for i in range(1, len(x)):
        if x[i] == current:
            count += 1
        else:
            values.append(current)
            lengths.append(count)
            current, count = x[i], 1
    values.append(current)
    lengths.append(count)
    return np.array(values), np.array(lengths)


def move_to_front(x, size):
    table = np.arange(size)
    out = np.empty_like(x)
    for i, symbol in enumerate(x):
        k = np.where(table == symbol)[0][0]
        out[i] = k
        if k > 0:
            table[1 : k + 1] = table[:k].copy()
            table[0] = symbol
    return out


def entropy(x):
    p = np.bincount(x) / x.size
    p = p[p > 0]
    return -(p * np.log2(p)).sum()


def inputs():
    rng = np.random.default_rng(102)
    return (np.repeat(rng.integers(0, 16, 3000), rng.integers(1, 9, 3000)),)


def run(x):
    values, lengths = encode(x)
    loop_values, loop_lengths = encode_loop(x)
    same = np.array_equal(values, loop_values) and (lengths == loop_lengths).all()
    decoded = np.repeat(values, lengths)
    moved = move_to_front(values, 16)
    deltas = np.ediff1d(values, to_begin=values[0])
    longest = values[lengths == lengths.max()]
    return (
        values,
        lengths,
        bool(same),
        (decoded == x).all(),
        moved,
        deltas.std(),
        entropy(moved),
        longest,
    )


def main():
    return run(*inputs())
