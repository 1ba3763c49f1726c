"""Breadth-first search in a matrix and in compressed rows; topological order (graphs)."""

import numpy as np


def to_csr(src, dst, n):
    order = np.argsort(src, kind="stable")
    indices = dst[order]
    indptr = np.zeros(n + 1, dtype=int)
    np.cumsum(np.bincount(src, minlength=n), out=indptr[1:])
    return indptr, indices


def bfs(indptr, indices, start):
    n = len(indptr) - 1
    depth = np.full(n, -1)
    depth[start] = 0
    queue = [start]
    head = 0
    while head < len(queue):
        u = queue[head]
        head += 1
        for v in indices[indptr[u] : indptr[u + 1]]:
            if depth[v] < 0:
                depth[v] = depth[u] + 1
                queue.append(int(v))
    return depth


def bfs_matrix(A, start):
    depth = np.full(len(A), -1)
    frontier = np.zeros(len(A), dtype=bool)
    frontier[start] = True
    level = 0
    while np.any(frontier):
        depth[frontier] = level
        frontier = A[frontier].any(axis=0) & (depth < 0)
        level += 1
    return depth


def topological(A):
    degree = A.sum(axis=0)
    order = []
    ready = list(np.flatnonzero(degree == 0))
    while ready:
        u = ready.pop()
        order.append(u)
        for v in np.flatnonzero(A[u]):
            degree[v] -= 1
            if degree[v] == 0:
                ready.append(v)
    return np.array(order)


def inputs():
    rng = np.random.default_rng(55)
    return rng.integers(0, 1500, 8000), rng.integers(0, 1500, 8000)


def run(src, dst):
    n = 1500
    indptr, indices = to_csr(src, dst, n)
    depth = bfs(indptr, indices, 0)
    A = np.zeros((n, n), dtype=bool)
    A[src, dst] = True
    same = np.array_equal(depth, bfs_matrix(A, 0))
    order = topological(np.triu(A, 1)[:300, :300].astype(int))
    position = np.empty(300, dtype=int)
    position[order] = np.arange(300)
    i, j = np.nonzero(np.triu(A, 1)[:300, :300])
    return depth, same, len(order), np.all(position[i] < position[j])


def main():
    return run(*inputs())
