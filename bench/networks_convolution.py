"""Convolutions beside PyTorch's: rows for `networks.py`; run by itself, these alone.

32 x 64 x 32 x 32 by 64 filters 3 x 3 is what is asked for; the others are what networks have.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import dovetail as dt
import dovetail.nn.functional as F
import numpy as np
from benchmarks_page import measured
from comparison_cases import peer
from turns import OURS, Row, Work, measure, table

Array = np.ndarray


def _normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


def _row(
    name: str, x: tuple[int, ...], w: tuple[int, ...], options: tuple[int, ...],
    asked: Mapping[str, float], backward: bool,
) -> Row:  # fmt: skip
    """conv2d with padding, its gradients too if `backward`."""

    def make() -> dict[str, Work]:
        torch = peer("torch")
        a, b = _normal(*x), _normal(*w, seed=1)
        mine = [dt.asarray(v).requires_grad_(backward) for v in (a, b)]
        theirs = [torch.from_numpy(v).requires_grad_(backward) for v in (a, b)]

        def ours() -> object:
            y = F.conv2d(*mine, None, *options)
            if not backward:
                return dt.evaluate(y)
            found = dt.grad(y, mine, grad_outputs=dt.ones_like(y))
            dt.evaluate(y, *found)
            return found

        def others() -> object:
            y = torch.nn.functional.conv2d(*theirs, None, *options)
            return torch.autograd.grad(y, theirs, torch.ones_like(y)) if backward else y

        return {OURS: ours, "torch": others}

    return Row(f"conv2d {name}{', and back' if backward else ''}", make, asked)


SHAPES = (  # of x and w; stride, padding, dilation, groups
    ("32 x 64 x 32 x 32, 64 filters 3 x 3", (32, 64, 32, 32), (64, 64, 3, 3), (1, 1), 1.0),
    ("64 x 1 x 8 x 8, 16 filters 3 x 3", (64, 1, 8, 8), (16, 1, 3, 3), (1, 1), 0.0),
    ("64 x 16 x 8 x 8, 32 filters 3 x 3", (64, 16, 8, 8), (32, 16, 3, 3), (1, 1), 0.0),
    ("8 x 64 x 56 x 56, 64 filters 3 x 3", (8, 64, 56, 56), (64, 64, 3, 3), (1, 1), 0.0),
    ("8 x 256 x 14 x 14, 256 filters 3 x 3", (8, 256, 14, 14), (256, 256, 3, 3), (1, 1), 0.0),
    ("8 x 64 x 56 x 56, 128 filters, stride 2", (8, 64, 56, 56), (128, 64, 3, 3), (2, 1), 0.0),
    ("4 x 3 x 224 x 224, 64 filters 7 x 7", (4, 3, 224, 224), (64, 3, 7, 7), (2, 3), 0.0),
    ("8 x 256 x 28 x 28, 128 filters 1 x 1", (8, 256, 28, 28), (128, 256, 1, 1), (1, 0), 0.0),
    ("16 x 64 x 28 x 28, depthwise 3 x 3", (16, 64, 28, 28), (64, 1, 3, 3), (1, 1, 1, 64), 0.0),
)  # fmt: skip


def rows() -> list[Row]:
    """All of them; what is not asked for is shown."""
    return [
        _row(name, x, w, options, {"torch": least} if least else {}, backward)
        for name, x, w, options, least in SHAPES
        for backward in (False, True)
    ]


def main() -> int:
    """Measures and prints; 0."""
    return measured("convolutions", __doc__ or "", rows, measure, table, rounds=40)


if __name__ == "__main__":
    sys.exit(main())
