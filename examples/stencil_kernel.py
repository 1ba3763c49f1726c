"""Heat over a plate with a halo, as a kernel of loops. Run: python examples/stencil_kernel.py"""

from __future__ import annotations

import dovetail as dt
from dovetail import Tensor


@dt.kernel
def spread(after: dt.Out, before: dt.In, rate: float):
    """One step: the halo, one cell wide, keeps its values."""
    rows, columns = before.shape
    for i, j in dt.grid((1, rows - 1), (1, columns - 1)):
        across = before[i, j - 1] + before[i, j + 1]
        around = before[i - 1, j] + before[i + 1, j] + across
        after[i, j] = before[i, j] + rate * (around - 4 * before[i, j])


def main(size: int = 64, steps: int = 500, device: str | None = None) -> Tensor:
    """The plate after some steps, heated along one edge."""
    plate = dt.zeros((size, size), device=device)
    plate[0, :] = 100.0
    other = plate.copy()
    for _ in range(steps):
        spread(other, plate, 0.2)
        plate, other = other, plate
    return plate


if __name__ == "__main__":
    plate = main()
    for row in plate[::4, ::2].tolist():
        print("".join(" .:-=+*#%@"[min(int(v / 10), 9)] for v in row))
