"""Connected components by two passes over pixels with union-find (image processing; Rosenfeld)."""

import numpy as np


def find(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


def label(mask):
    h, w = mask.shape
    labels = np.zeros((h, w), dtype=np.int64)
    parent = np.arange(h * w // 2 + 2)
    count = 0
    for i in range(h):
        for j in range(w):
            if not mask[i, j]:
                continue
            up = labels[i - 1, j] if i > 0 else 0
            left = labels[i, j - 1] if j > 0 else 0
            if up == 0 and left == 0:
                count += 1
                labels[i, j] = count
            elif up != 0 and left != 0:
                a, b = find(parent, up), find(parent, left)
                labels[i, j] = min(a, b)
                parent[max(a, b)] = min(a, b)
            else:
                labels[i, j] = up + left
    for k in range(1, count + 1):
        parent[k] = find(parent, k)
    roots, relabelled = np.unique(parent[labels], return_inverse=True)
    return relabelled.reshape(h, w), len(roots) - 1


def inputs():
    rng = np.random.default_rng(27)
    noise = rng.random((150, 150))
    smooth = sum(np.roll(noise, (i, j), (0, 1)) for i in range(-1, 2) for j in range(-1, 2)) / 9
    return (smooth > 0.52,)


def run(mask):
    labels, count = label(mask)
    areas = np.bincount(labels.ravel())[1:]
    biggest = np.argsort(-areas, kind="stable")[:5]
    ys, xs = np.nonzero(labels == biggest[0] + 1)
    box = ys.min(), ys.max(), xs.min(), xs.max()
    return labels, count, areas[biggest], np.array(box), ys.mean(), xs.mean()


def main():
    return run(*inputs())
