"""The Game of Life between dead borders, by slices in place. Run: python examples/life_slices.py"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dovetail as dt
import numpy as np
from beside import Asked, asked, beside, picture

SHIFTS = [(i, j) for i in (0, 1, 2) for j in (0, 1, 2) if (i, j) != (1, 1)]


def live(field: Any, count: int) -> Any:
    """Writes `count` generations into the inner cells, one after the other."""
    rows, columns = (n - 2 for n in field.shape)
    inner = field[1:-1, 1:-1]
    for _ in range(count):
        around = sum(field[i : i + rows, j : j + columns] for i, j in SHIFTS)
        inner[...] = (around == 3) | ((around == 2) & (inner == 1))
    return field


def main(arguments: Sequence[str] | None = None) -> Asked:
    """The same soup here and in NumPy: every cell has to agree."""
    options = asked(__doc__, arguments)
    n, count = options.size(512, 64), options.size(100, 10)
    soup = np.zeros((n, n), np.uint8)
    soup[1:-1, 1:-1] = np.random.default_rng(0).random((n - 2, n - 2)) < 0.3
    first = dt.asarray(soup)
    beside(
        f"Life by slices, {n} x {n}, {count} generations",
        lambda: live(first.copy(), count),
        "NumPy",
        lambda: live(soup.copy(), count),
        options,
        rtol=0, atol=0,
    )  # fmt: skip
    picture(options, lambda a: a.imshow(live(first.copy(), 200), cmap="Greys"))
    return options


if __name__ == "__main__":
    main()
