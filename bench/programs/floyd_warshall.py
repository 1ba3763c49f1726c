"""All shortest paths by Floyd and Warshall, with the paths (graphs; Cormen et al., 25.2)."""

import numpy as np


def floyd_warshall(w):
    n = len(w)
    dist = w.copy()
    nxt = np.where(np.isfinite(w), np.arange(n)[None, :], -1)
    for k in range(n):
        through = dist[:, k, None] + dist[None, k, :]
        shorter = through < dist
        dist[shorter] = through[shorter]
        nxt = np.where(shorter, nxt[:, [k]], nxt)
    return dist, nxt


def path(nxt, i, j):
    if nxt[i, j] == -1:
        return []
    nodes = [i]
    while i != j:
        i = nxt[i, j]
        nodes.append(int(i))
    return nodes


def inputs():
    rng = np.random.default_rng(51)
    n = 150
    w = np.full((n, n), np.inf)
    mask = rng.random((n, n)) < 0.04
    w[mask] = rng.uniform(1, 10, mask.sum())
    np.fill_diagonal(w, 0.0)
    return (w,)


def run(w):
    dist, nxt = floyd_warshall(w)
    reachable = np.isfinite(dist)
    longest = np.where(reachable, dist, -1).max(axis=1)
    a, b = np.unravel_index(np.argmax(np.where(reachable, dist, 0)), dist.shape)
    nodes = path(nxt, int(a), int(b))
    return dist[reachable], longest, longest.argmin(), np.array(nodes), reachable.sum()


def main():
    return run(*inputs())
