"""Waves on a square drum, leapfrog in time. Run: python examples/wave.py"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dovetail as dt
import numpy as np
from beside import Asked, asked, beside, picture

SPEED = 0.4  # (speed * time step / distance of points) squared; below 1/2


def step(u: Any, before: Any) -> None:
    """One step in time, written over the values of the step before."""
    inner = u[1:-1, 1:-1]
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    before[1:-1, 1:-1] = 2 * inner - before[1:-1, 1:-1] + SPEED * (around - 4 * inner)


def waves(u: Any, count: int) -> Any:
    """The drum after `count` steps; it begins at rest, and its edge stays where it is."""
    now, before = u.copy(), u.copy()
    for _ in range(count):
        step(now, before)
        now, before = before, now
    return now


def drop(n: int) -> np.ndarray:
    """A bump off the middle."""
    x = np.linspace(0, 1, n, dtype=np.float32)
    bump = np.exp(-200 * ((x - 0.4) ** 2 + (x[:, None] - 0.3) ** 2))
    bump[0] = bump[-1] = bump[:, 0] = bump[:, -1] = 0
    return bump.astype(np.float32)


def main(arguments: Sequence[str] | None = None) -> Asked:
    """The same drum here and in NumPy."""
    options = asked(__doc__, arguments)
    n, count = options.size(512, 64), options.size(200, 20)
    plain = drop(n)
    u = dt.asarray(plain)
    beside(
        f"waves, {n} x {n}, {count} steps",
        lambda: waves(u, count),
        "NumPy",
        lambda: waves(plain, count),
        options,
        rtol=1e-3, atol=1e-4,
    )  # fmt: skip
    picture(options, lambda a: a.imshow(waves(u, n), cmap="RdBu", vmin=-0.2, vmax=0.2))
    return options


if __name__ == "__main__":
    main()
