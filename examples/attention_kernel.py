"""Attention, a row at a point: softmax(q k^T) v as one kernel.

Run: python examples/attention_kernel.py. The weights of a row are written, read again, and belong
to the caller afterwards.
"""

from __future__ import annotations

import dovetail as dt
from dovetail import Tensor


@dt.kernel
def attend(out: dt.Out, weights: dt.InOut, q: dt.In, k: dt.In, v: dt.In, scale: float):
    """One row of queries: scores, their softmax, and the sum of values with these weights."""
    n, size = k.shape
    for i in dt.grid(len(q)):
        for j in range(n):
            weights[i, j] = scale * sum(q[i, d] * k[j, d] for d in range(size))
        top = max(weights[i, j] for j in range(n))
        total = sum(dt.exp(weights[i, j] - top) for j in range(n))
        for j in range(n):
            weights[i, j] = dt.exp(weights[i, j] - top) / total
        for c in range(v.shape[1]):
            out[i, c] = sum(weights[i, j] * v[j, c] for j in range(n))


def main(rows: int = 48, size: int = 16, device: str | None = None) -> tuple[Tensor, Tensor]:
    """What comes out, and the weights, of positions that look for those near them."""
    at = dt.linspace(0.0, 6.0, rows, device=device)
    wave = dt.linspace(0.5, 4.0, size // 2, device=device)
    angle = dt.expand_dims(at, axis=1) * wave
    q = dt.concat([dt.sin(angle), dt.cos(angle)], axis=1)
    out, weights = dt.zeros((rows, size), device=device), dt.zeros((rows, rows), device=device)
    attend(out, weights, q, q, q, 2.0)
    return out, weights


if __name__ == "__main__":
    _, weights = main()
    for row in weights[::2].tolist():
        print("".join(" .:-=+*#%@"[min(int(w * 60), 9)] for w in row))
