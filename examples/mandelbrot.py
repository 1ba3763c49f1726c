"""The Mandelbrot set in text, in plain tensor operations. Run: python examples/mandelbrot.py"""

from __future__ import annotations

import dovetail as dt
from dovetail import Tensor


def escape_times(width: int, height: int, steps: int, device: str | None = None) -> Tensor:
    """After how many steps each point leaves the disc of radius 2; `steps` where it never does."""
    x = dt.linspace(-2.1, 0.7, width, device=device)
    y = dt.expand_dims(dt.linspace(-1.2, 1.2, height, device=device), axis=1)
    re, im = dt.zeros((height, width), device=device), dt.zeros((height, width), device=device)
    times = dt.zeros((height, width), dtype=dt.int32, device=device)
    for _ in range(steps):
        re, im = re * re - im * im + x, 2 * re * im + y
        inside = re * re + im * im < 4
        re, im = dt.where(inside, re, 2.0), dt.where(inside, im, 2.0)
        times = times + dt.astype(inside, dt.int32)
    return times


def main(width: int = 78, height: int = 30, steps: int = 40, device: str | None = None) -> str:
    """The picture."""
    shades = " .,:;i1tfLCG08@"
    rows = escape_times(width, height, steps, device).tolist()
    return "\n".join("".join(shades[min(v * 14 // steps, 14)] for v in row) for row in rows)


if __name__ == "__main__":
    print(main())
