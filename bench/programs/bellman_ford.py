"""Bellman-Ford by loops over edges and by vectors, and a minimum spanning tree by Prim (graphs)."""

import numpy as np


def bellman_ford(n, src, dst, w, source):
    dist = np.full(n, np.inf)
    pred = -np.ones(n, dtype=int)
    dist[source] = 0
    for _ in range(n - 1):
        changed = False
        for e in range(len(w)):
            u, v = src[e], dst[e]
            if dist[u] + w[e] < dist[v]:
                dist[v] = dist[u] + w[e]
                pred[v] = u
                changed = True
        if not changed:
            break
    return dist, pred


def bellman_ford_vector(n, src, dst, w, source):
    dist = np.full(n, np.inf)
    dist[source] = 0.0
    while True:
        new = dist.copy()
        np.minimum.at(new, dst, dist[src] + w)
        if np.array_equal(new, dist):
            return dist
        dist = new


def prim(W):
    n = W.shape[0]
    inside = np.zeros(n, dtype=bool)
    best = W[0].copy()
    inside[0] = True
    total = 0.0
    for _ in range(n - 1):
        best[inside] = np.inf
        v = np.argmin(best)
        total += best[v]
        inside[v] = True
        best = np.minimum(best, W[v])
    return total


def inputs():
    rng = np.random.default_rng(52)
    n, m = 300, 2500
    points = rng.random((n, 2))
    return rng.integers(0, n, m), rng.integers(0, n, m), rng.uniform(0.1, 2, m), points


def run(src, dst, w, points):
    n = len(points)
    dist, pred = bellman_ford(n, src, dst, w, 0)
    same = np.array_equal(dist, bellman_ford_vector(n, src, dst, w, 0))
    W = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
    return dist, pred, same, prim(W)


def main():
    return run(*inputs())
