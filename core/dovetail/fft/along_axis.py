"""Transforms along one axis of complex tensors: by stages, or by a convolution with a chirp."""

from __future__ import annotations

import math

import numpy as np

from ..functions.shape.padding import pad
from ..layout import Shape
from ..ops import table as ops
from ..tensor.tensor import Tensor
from ..tensor.verbs import apply, slice_along, view
from .roots import convolution_length, factors, roots, table
from .stages import Way, staged


def transform(x: Tensor, axis: int, way: Way) -> Tensor:
    """The sums over j of x[j] exp(-2 pi i j k / n), or the other way with +, times a scale."""
    n = x.shape[axis]
    if n == 1 or not x.size:
        return apply(ops.COPY, (x,)) if way.scale == 1.0 else x * way.scale
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    rows = view(x, ("reshape", (outer, n, inner)))
    found = staged(rows, way) if factors(n) else _by_chirp(rows, way)
    return view(found, ("reshape", x.shape))


def along(values: Tensor, axis: int, ndim: int) -> Tensor:
    """A vector along one of several axes, to be broadcast along the others."""
    shape: Shape = tuple(values.shape[0] if d == axis else 1 for d in range(ndim))
    return view(values, ("reshape", shape))


def _by_chirp(x: Tensor, way: Way) -> Tensor:
    """By jk = (j^2 + k^2 - (k - j)^2) / 2, where a prime is too large for a stage.

    Source: Bluestein, A linear filtering approach to the computation of discrete Fourier transform,
    1970.
    """
    n = x.shape[1]
    m = convolution_length(2 * n - 1)
    side = "back" if way.back else "there"
    chirp = table(f"chirp {side}", n, x.dtype, x.device, lambda: _chirp(n, way.back))
    filtering = table(f"filter {side}", n, x.dtype, x.device, lambda: _filter(n, m, way.back))
    chirp = along(chirp, 1, 3)
    spread = pad(x * chirp, ((0, 0), (0, m - n), (0, 0)))
    spectrum = transform(spread, 1, Way(False)) * along(filtering, 1, 3)
    found = transform(spectrum, 1, Way(True, way.scale))
    return slice_along(found, 1, 0, n) * chirp


def _chirp(n: int, back: bool) -> np.ndarray:
    """exp(-pi i j^2 / n) for j < n, or its conjugate."""
    j = np.arange(n)
    found = roots(j * j % (2 * n), 2 * n)
    return found.conj() if back else found


def _filter(n: int, m: int, back: bool) -> np.ndarray:
    """The spectrum of what the chirped numbers are convolved with, over their number."""
    chirp = _chirp(n, not back)
    spread = np.zeros(m, np.complex128)
    spread[:n] = chirp
    spread[m - n + 1 :] = chirp[:0:-1]
    return np.fft.fft(spread, norm="forward")
