"""Matplotlib takes tensors as they are. Run: python examples/plots.py --out plots.png"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import dovetail as dt
import numpy as np
from beside import Asked, asked, beside
from matplotlib.figure import Figure


def drawn(xp: Any, normal: Any) -> Figure:
    """Lines, points, bars and an image, of dovetail's tensors or NumPy's arrays."""
    figure = Figure(figsize=(8, 6), dpi=80, layout="constrained")
    (lines, points), (bars, image) = figure.subplots(2, 2)
    x = xp.linspace(0, 6, 200)
    lines.plot(x, xp.sin(x), x, xp.cos(x))
    lines.fill_between(x, xp.sin(x), 0 * x, alpha=0.3)
    points.scatter(normal[:, 0], normal[:, 1], c=normal[:, 2], s=8)
    bars.bar(xp.arange(8), xp.sum(normal**2, axis=0)[:8])
    y = xp.linspace(-3, 3, 96)
    image.imshow(xp.exp(-(y[:, None] ** 2) - y**2) * xp.cos(4 * y), cmap="RdBu")
    image.contour(xp.exp(-(y[:, None] ** 2) - y**2))
    return figure


def pixels(figure: Figure) -> np.ndarray:
    """What the picture looks like."""
    file = io.BytesIO()
    figure.savefig(file, format="rgba")
    return np.frombuffer(file.getvalue(), np.uint8)


def main(arguments: Sequence[str] | None = None) -> Asked:
    """The same picture of tensors and of arrays."""
    options = asked(__doc__, arguments)
    normal = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32)
    ours = dt.asarray(normal)
    beside(
        "a picture of tensors",
        lambda: pixels(drawn(dt, ours)),
        "NumPy",
        lambda: pixels(drawn(np, normal)),
        options,
        rtol=0, atol=80,  # float32 and float64 may round to neighbouring pixels
    )  # fmt: skip
    if options.out:
        drawn(dt, ours).savefig(options.out)
        print(f"Picture: {options.out}")
    return options


if __name__ == "__main__":
    main()
