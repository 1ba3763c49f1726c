"""How tensors look: `tensor([[1., 2.]], dtype=float32, device="cpu")`.

Of a large one only the corners are fetched.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np

from .host import evaluated, item, shown
from .tensor import Tensor
from .verbs import slice_along

EDGE = 3  # items shown at either end of a long axis
THRESHOLD = 1000  # elements up to which all are shown
WIDTH = 88
PRECISION = 4


def _corners(x: Tensor, axis: int = 0) -> np.ndarray:
    """The first and last `EDGE` items of each long axis, and one between them for the dots."""
    if axis == x.ndim:
        return shown(x)
    n = x.shape[axis]
    if n <= 2 * EDGE + 1:
        return _corners(x, axis + 1)
    low, high = (
        _corners(slice_along(x, axis, s, k), axis + 1) for s, k in ((0, EDGE + 1), (n - EDGE, EDGE))
    )
    return np.concatenate([low, high], axis)


def _text(x: Tensor, prefix: str) -> str:
    large = x.size > THRESHOLD
    evaluated(x)  # once, rather than for each corner
    values = _corners(x) if large else shown(x)
    return np.array2string(
        values, max_line_width=WIDTH, precision=PRECISION, separator=", ", prefix=prefix,
        threshold=0 if large else THRESHOLD, edgeitems=EDGE,
    )  # fmt: skip


def texts(x: Tensor) -> np.ndarray:
    """Each element that `repr(x)` shows, as it shows it; where it has dots two places adjoin."""
    evaluated(x)
    values = shown(x) if x.size <= THRESHOLD else _without_middles(_corners(x), x)
    mark = "\x1f"  # that no number's text has
    line = np.array2string(
        values.reshape(-1), max_line_width=1 << 60, precision=PRECISION, separator=mark,
        threshold=values.size + 1,
    )  # fmt: skip
    return np.asarray(line[1:-1].split(mark)).reshape(values.shape)


def _without_middles(corners: np.ndarray, x: Tensor) -> np.ndarray:
    """Corners without what is where the dots are."""
    for axis, n in enumerate(x.shape):
        if n > 2 * EDGE:
            corners = np.delete(corners, slice(EDGE, corners.shape[axis] - EDGE), axis)
    return corners


def represent(x: Tensor) -> str:
    """`repr(x)`: the values, the shape where they do not show it, dtype and device."""
    facts = [f"dtype={x.dtype.name}", f'device="{x.device}"']
    if x.size == 0:
        return f"tensor([], shape={x.shape}, {', '.join(facts)})"
    if x.size > THRESHOLD:
        facts.insert(0, f"shape={x.shape}")
    text = f"tensor({_text(x, 'tensor(')}"
    joint = (
        ", " if len(text.rsplit("\n", 1)[-1]) + len(", ".join(facts)) + 3 <= WIDTH else ",\n       "
    )
    return f"{text}{joint}{', '.join(facts)})"


def text(x: Tensor) -> str:
    """`str(x)`: the values alone."""
    return _text(x, "") if x.size else "[]"


def formatted(x: Tensor, spec: str) -> str:
    """`format(x, spec)`: of one element as of its number."""
    return format(item(x), spec) if spec and x.size == 1 else text(x)


def in_notebook(x: Tensor) -> str:
    """What a notebook shows of a tensor, as HTML; docs/storage.md says what that is."""
    found: str = import_module("..insight.notebook", __package__).html(x)
    return found
