"""The Mandelbrot set by a kernel of one's own. Run: python examples/mandelbrot_kernel.py [DEVICE]

The loop over steps is in the kernel: nothing is stored but the picture. It has the same bits on
every device.
"""

from __future__ import annotations

import hashlib
import sys
from typing import Any

import dovetail as dt
from dovetail import Tensor


@dt.elementwise
def escape_time(x: Any, y: Any, *, steps: int) -> Any:
    """After how many steps x + iy leaves the disc of radius 2; `steps` where it never does."""

    def step(i: Any, carried: Any) -> Any:
        re, im, count = carried
        inside = re * re + im * im < 4
        re, im = re * re - im * im + x, 2 * re * im + y
        return dt.where(inside, re, 2.0), dt.where(inside, im, 2.0), count + inside.astype(dt.int32)

    zero = x * 0
    return dt.fori_loop(0, steps, step, (zero, zero, 0))[2].astype(dt.int32)


def picture(width: int, height: int, steps: int, device: str | None = None) -> Tensor:
    """Escape times over the whole set, (height, width): one kernel, from the axes on."""
    x = dt.linspace(-2.1, 0.7, width, device=device)
    y = dt.linspace(-1.2, 1.2, height, device=device)
    return escape_time(x, dt.expand_dims(y, axis=1), steps=steps)


def digest(times: Tensor) -> str:
    """The first digits of a picture's SHA-256."""
    return hashlib.sha256(times.numpy().tobytes()).hexdigest()[:16]


def main(width: int = 78, height: int = 30, steps: int = 40, device: str | None = None) -> str:
    """The picture in characters."""
    shades = " .,:;i1tfLCG08@"
    rows = picture(width, height, steps, device).tolist()
    return "\n".join("".join(shades[min(v * 14 // steps, 14)] for v in row) for row in rows)


if __name__ == "__main__":
    print(main(device=sys.argv[1] if len(sys.argv) > 1 else None))
    for where in map(str, dt.devices()):
        print(f"{where:12} {digest(picture(320, 240, 100, where))}")
