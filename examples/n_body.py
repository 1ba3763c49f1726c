"""A thousand bodies that attract each other, twenty steps. Run: python examples/n_body.py"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dovetail as dt
import numpy as np
from beside import Asked, asked, beside, picture

SOFT, TIME = 0.05, 0.01  # near bodies pass through each other; a step


def forces(xp: Any, x: Any, mass: Any) -> Any:
    """What pulls each body: (bodies, 3)."""
    apart = x[None, :, :] - x[:, None, :]
    square = xp.sum(apart * apart, axis=-1) + SOFT**2
    return xp.sum(apart * (mass / (square * xp.sqrt(square)))[:, :, None], axis=1)


def move(xp: Any, x: Any, v: Any, mass: Any, steps: int) -> tuple[Any, Any]:
    """Places and velocities after some steps, by leapfrog."""
    pull = forces(xp, x, mass)
    for _ in range(steps):
        v = v + 0.5 * TIME * pull
        x = x + TIME * v
        pull = forces(xp, x, mass)
        v = v + 0.5 * TIME * pull
    return x, v


def main(arguments: Sequence[str] | None = None) -> Asked:
    """The same bodies here and in NumPy."""
    options = asked(__doc__, arguments)
    n, steps = options.size(1000, 100), options.size(20, 5)
    rng = np.random.default_rng(0)
    start = [rng.standard_normal((n, 3)), 0.3 * rng.standard_normal((n, 3)), np.full(n, 1 / n)]
    theirs = [a.astype(np.float32) for a in start]
    ours = [dt.asarray(a) for a in theirs]
    beside(
        f"{n} bodies, {steps} steps",
        lambda: move(dt, *ours, steps),
        "NumPy",
        lambda: move(np, *theirs, steps),
        options,
        rtol=1e-3, atol=1e-4,
    )  # fmt: skip
    x, _ = move(dt, *ours, 5 * steps)
    picture(options, lambda a: a.scatter(x[:, 0], x[:, 1], s=4))
    return options


if __name__ == "__main__":
    main()
