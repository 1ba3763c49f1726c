"""The ten nearest of many points to each query. Run: python examples/neighbours.py"""

from __future__ import annotations

from collections.abc import Sequence

import dovetail as dt
import numpy as np
from beside import Asked, asked, beside, picture

NEAREST = 10


def nearest(points: dt.Tensor, queries: dt.Tensor) -> dt.Tensor:
    """Squared distances of the nearest points to each query, ascending."""
    apart = (
        dt.sum(queries**2, axis=1)[:, None] - 2 * queries @ points.mT + dt.sum(points**2, axis=1)
    )
    return dt.topk(apart, NEAREST, axis=1, largest=False)[0]


def by_numpy(points: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """The same in NumPy."""
    apart = np.sum(queries**2, axis=1)[:, None] - 2 * queries @ points.T + np.sum(points**2, axis=1)
    return np.sort(np.partition(apart, NEAREST, axis=1)[:, :NEAREST], axis=1)


def main(arguments: Sequence[str] | None = None) -> Asked:
    """The same points here and in NumPy."""
    options = asked(__doc__, arguments)
    n, m = options.size(20_000, 2000), options.size(500, 50)
    rng = np.random.default_rng(0)
    points, queries = (rng.standard_normal((k, 16)).astype(np.float32) for k in (n, m))
    ours = dt.asarray(points), dt.asarray(queries)
    beside(
        f"{NEAREST} nearest of {n} points to {m}",
        lambda: nearest(*ours),
        "NumPy",
        lambda: by_numpy(points, queries),
        options,
        rtol=1e-4, atol=1e-4,
    )  # fmt: skip
    picture(options, lambda axes: axes.hist(nearest(*ours)[:, 0].numpy(), bins=40))
    return options


if __name__ == "__main__":
    main()
