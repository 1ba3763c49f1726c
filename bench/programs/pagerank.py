"""PageRank by power iteration over edges and by a dense matrix (graphs; Langville and Meyer)."""

import numpy as np


def pagerank_edges(src, dst, n, damping=0.85, tol=1e-12):
    out_degree = np.bincount(src, minlength=n)
    dangling = out_degree == 0
    rank = np.full(n, 1.0 / n)
    weight = 1.0 / np.maximum(out_degree, 1)
    for iteration in range(200):
        new = np.zeros(n)
        np.add.at(new, dst, (rank * weight)[src])
        new = damping * (new + rank[dangling].sum() / n) + (1 - damping) / n
        change = np.abs(new - rank).sum()
        rank = new
        if change < tol:
            break
    return rank, iteration


def pagerank_dense(src, dst, n, iterations=60):
    M = np.zeros((n, n))
    M[dst, src] = 1
    columns = M.sum(axis=0)
    M[:, columns == 0] = 1
    M /= M.sum(axis=0, keepdims=True)
    v = np.ones((n, 1)) / n
    G = 0.85 * M + 0.15 / n
    for _ in range(iterations):
        v = G @ v
    return v.flatten()


def inputs():
    rng = np.random.default_rng(50)
    n, m = 1000, 20000
    edges = np.column_stack([rng.integers(0, n, m), (n * rng.random(m) ** 2).astype(int)])
    edges = np.unique(edges[edges[:, 0] != edges[:, 1]], axis=0)
    return edges, n


def run(edges, n):
    src, dst = edges.T
    rank, iterations = pagerank_edges(src, dst, n)
    dense = pagerank_dense(src, dst, n)
    top = np.argsort(rank)[-10:][::-1]
    return rank, top, iterations, np.allclose(rank, dense, rtol=1e-4)


def main():
    return run(*inputs())
