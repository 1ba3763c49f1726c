"""The Game of Life on a torus, by `roll`. Run: python examples/life_roll.py"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dovetail as dt
import numpy as np
from beside import Asked, asked, beside, picture

SHIFTS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]


def generations(xp: Any, field: Any, count: int) -> Any:
    """The field after `count` generations; neighbours are the field shifted in eight directions."""
    for _ in range(count):
        around = sum(xp.roll(field, shift, axis=(0, 1)) for shift in SHIFTS)
        field = ((around == 3) | ((around == 2) & (field == 1))).astype(xp.uint8)
    return field


def main(arguments: Sequence[str] | None = None) -> Asked:
    """The same soup here and in NumPy: every cell has to agree."""
    options = asked(__doc__, arguments)
    n, count = options.size(512, 64), options.size(100, 10)
    soup = (np.random.default_rng(0).random((n, n)) < 0.3).astype(np.uint8)
    field = dt.asarray(soup)
    beside(
        f"Life by roll, {n} x {n}, {count} generations",
        lambda: generations(dt, field, count),
        "NumPy",
        lambda: generations(np, soup, count),
        options,
        rtol=0, atol=0,
    )  # fmt: skip
    picture(options, lambda a: a.imshow(generations(dt, field, 200), cmap="Greys"))
    return options


if __name__ == "__main__":
    main()
