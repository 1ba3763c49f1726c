"""Antialiasing filters: filters as wide as the step between output positions, to shrink grids.

Source: Pillow's resampling, whose positions and weights PyTorch's `antialias=True` uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

import dovetail as dt

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor
Array: TypeAlias = np.ndarray[Any, Any]


def _linear_filter(d: Array) -> Array:
    """Return the triangle filter at distances `d`, of radius 1."""
    weights: Array = np.maximum(1 - np.abs(d), 0)
    return weights


def _cubic_filter(d: Array) -> Array:
    """Return Keys' cubic filter (1981) with a = -1/2 at distances `d`, of radius 2."""
    d = np.abs(d)
    near, far = (1.5 * d - 2.5) * d * d + 1, (((d - 5) * d + 8) * d - 4) * -0.5
    return np.where(d < 1, near, np.where(d < 2, far, 0))


def _lanczos_filter(d: Array) -> Array:
    """Return the Lanczos filter at distances `d`, of radius 3."""
    weights: Array = np.where(np.abs(d) < 3, np.sinc(d) * np.sinc(d / 3), 0)
    return weights


FILTERS: dict[str, tuple[int, Callable[[Array], Array]]] = {  # support and weight function
    "bilinear": (2, _linear_filter),
    "bicubic": (4, _cubic_filter),
    "lanczos": (6, _lanczos_filter),
}


def apply_filter(x: Tensor, axis: int, m: int, step: Any, mode: str) -> Tensor:
    """Return weighted means around `m` positions along an axis, `step` elements apart."""
    index, weights, valid = _tap_table(x.shape[axis], m, step, mode)
    trailing = (1,) * (x.ndim - axis - 1)
    values = dt.take(x, dt.asarray(index, device=x.device), axis=axis)
    if not valid.all():  # an invalid element may be inf or NaN, whose product with 0 is NaN
        inside = dt.asarray(valid, device=x.device).reshape((*valid.shape, *trailing))
        values = dt.where(inside, values, 0.0)
    factors = dt.asarray(weights, dtype=x.dtype, device=x.device)
    return (values * factors.reshape((*weights.shape, *trailing))).sum(axis + 1)


def _tap_table(n: int, m: int, step: Any, mode: str) -> tuple[Array, Array, Array]:
    """Return for each position the elements to read, their weights, and which of them are valid."""
    kind = type(step)
    taps, weigh = FILTERS[mode]
    scale = max(step, kind(1))
    reach = kind(taps * 0.5) * scale
    middle = step * (np.arange(m, dtype=kind) + kind(0.5))
    first = np.maximum((middle - reach + kind(0.5)).astype(np.int64), 0)
    last = np.minimum((middle + reach + kind(0.5)).astype(np.int64), n)
    index = first[:, None] + np.arange(np.max(last - first))
    valid = index < last[:, None]
    distance = (index - middle[:, None] + kind(0.5)) * (kind(1) / scale)
    weights = np.where(valid, weigh(distance), 0)
    index = np.minimum(index, last[:, None] - 1)
    return index, (weights / weights.sum(1, keepdims=True)).astype(kind), valid
