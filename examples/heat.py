"""Heat spreading over a plate: slices, in-place writes and fusion. Run: python examples/heat.py"""

from __future__ import annotations

import dovetail as dt
from dovetail import Tensor


def spread(plate: Tensor, rate: float = 0.2) -> None:
    """One step of the heat equation, written into the inner cells; the edges keep their values."""
    inner = plate[1:-1, 1:-1]
    around = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
    plate[1:-1, 1:-1] = inner + rate * (around - 4 * inner)


def main(size: int = 64, steps: int = 500, device: str | None = None) -> Tensor:
    """The plate after some steps, heated along one edge."""
    plate = dt.zeros((size, size), device=device)
    plate[0, :] = 100.0
    for _ in range(steps):
        spread(plate)
    return plate


if __name__ == "__main__":
    plate = main()
    shades = " .:-=+*#%@"
    for row in plate[::4, ::2].tolist():
        print("".join(shades[min(int(v / 10), 9)] for v in row))
    print(f"mean temperature {dt.mean(plate).item():.2f}")
