"""Filters as wide as the steps they bridge: grids made smaller without aliasing.

Source: Pillow's resampling, whose places and weights PyTorch's `antialias=True` has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

import dovetail as dt

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor
Array: TypeAlias = np.ndarray[Any, Any]


def _linear(d: Array) -> Array:
    found: Array = np.maximum(1 - np.abs(d), 0)
    return found


def _cubic(d: Array) -> Array:
    """Keys, 1981, with a = -1/2."""
    d = np.abs(d)
    near, far = (1.5 * d - 2.5) * d * d + 1, (((d - 5) * d + 8) * d - 4) * -0.5
    return np.where(d < 1, near, np.where(d < 2, far, 0))


def _lanczos(d: Array) -> Array:
    found: Array = np.where(np.abs(d) < 3, np.sinc(d) * np.sinc(d / 3), 0)
    return found


FILTERS: dict[str, tuple[int, Callable[[Array], Array]]] = {  # how wide they are, what they weigh
    "bilinear": (2, _linear),
    "bicubic": (4, _cubic),
    "lanczos": (6, _lanczos),
}


def filtered(x: Tensor, axis: int, m: int, step: Any, mode: str) -> Tensor:
    """The weighted means around `m` places along an axis, `step` apart, a scalar of NumPy's."""
    at, weights, within = _table(x.shape[axis], m, step, mode)
    trailing = (1,) * (x.ndim - axis - 1)
    found = dt.take(x, dt.asarray(at, device=x.device), axis=axis)
    if not within.all():  # nothing of an element that is not weighed, were it inf or NaN
        inside = dt.asarray(within, device=x.device).reshape((*within.shape, *trailing))
        found = dt.where(inside, found, 0.0)
    by = dt.asarray(weights, dtype=x.dtype, device=x.device)
    return (found * by.reshape((*weights.shape, *trailing))).sum(axis + 1)


def _table(n: int, m: int, step: Any, mode: str) -> tuple[Array, Array, Array]:
    """For each place the elements that it reads, their weights, and which of them count."""
    kind = type(step)
    taps, weigh = FILTERS[mode]
    wide = max(step, kind(1))
    reach = kind(taps * 0.5) * wide
    middle = step * (np.arange(m, dtype=kind) + kind(0.5))
    first = np.maximum((middle - reach + kind(0.5)).astype(np.int64), 0)
    last = np.minimum((middle + reach + kind(0.5)).astype(np.int64), n)
    at = first[:, None] + np.arange(np.max(last - first))
    within = at < last[:, None]
    away = (at - middle[:, None] + kind(0.5)) * (kind(1) / wide)
    weights = np.where(within, weigh(away), 0)
    at = np.minimum(at, last[:, None] - 1)
    return at, (weights / weights.sum(1, keepdims=True)).astype(kind), within
