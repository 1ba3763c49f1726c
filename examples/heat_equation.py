"""Heat on a small plate, 64 x 64: many small steps. Run: python examples/heat_equation.py"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dovetail as dt
import numpy as np
from beside import Asked, asked, beside, picture


def spread(plate: Any, count: int, rate: float = 0.2) -> Any:
    """Writes `count` steps into the inner points; the edge keeps its temperature."""
    for _ in range(count):
        inner = plate[1:-1, 1:-1]
        around = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
        plate[1:-1, 1:-1] = inner + rate * (around - 4 * inner)
    return plate


def main(arguments: Sequence[str] | None = None) -> Asked:
    """The same plate here and in NumPy; and with the loop captured by `dt.jit`."""
    options = asked(__doc__, arguments)
    count = options.size(1000, 50)
    hot = np.zeros((64, 64), np.float32)
    hot[0] = 100
    plate = dt.asarray(hot)
    ten = dt.jit(lambda u: spread(u, 10))

    def captured() -> dt.Tensor:
        u = plate.copy()
        for _ in range(count // 10):
            ten(u)
        return u

    plain = lambda: spread(hot.copy(), count)  # noqa: E731
    name = f"heat, 64 x 64, {count} steps"
    tolerance = {"rtol": 1e-4, "atol": 1e-3}
    beside(name, lambda: spread(plate.copy(), count), "NumPy", plain, options, **tolerance)
    beside(f"{name}, captured", captured, "NumPy", plain, options, **tolerance)
    picture(options, lambda a: a.imshow(spread(plate.copy(), 1000), cmap="inferno"))
    return options


if __name__ == "__main__":
    main()
