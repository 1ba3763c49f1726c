"""A histogram with integer atomics, as a kernel. Run: python examples/histogram_kernel.py"""

from __future__ import annotations

import math

import dovetail as dt
from dovetail import Tensor


@dt.kernel
def count(counts: dt.InOut, x: dt.In, low: float, width: float):
    """Adds the elements of `x` to the bins that they fall in; what is outside is left out."""
    for i in dt.grid(len(x)):
        bin = math.floor((x[i] - low) / width)
        if 0 <= bin < len(counts):
            dt.atomic_add(counts, bin, 1)


def main(size: int = 100_000, bins: int = 40, device: str | None = None) -> Tensor:
    """How often normal numbers fall into bins between -4 and 4."""
    x = dt.random.default_rng(0).normal((size,), device=device)
    counts = dt.zeros(bins, dtype=dt.int32, device=device)
    count(counts, x, -4.0, 8.0 / bins)
    return counts


if __name__ == "__main__":
    counts = main()
    for n in counts.tolist():
        print("#" * (n // 150))
