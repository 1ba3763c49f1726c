"""Transforms along one axis of complex tensors: by stages, or by a convolution with a chirp."""

from __future__ import annotations

import math

import numpy as np

from ..functions.shape.padding import pad
from ..layout import Shape
from ..ops import table as ops
from ..tensor.primitives import apply, slice_along, view
from ..tensor.tensor import Tensor
from .stages import Way, run_stages
from .twiddles import convolution_length, factors, roots, table


def transform(x: Tensor, axis: int, way: Way) -> Tensor:
    """Return the sums over j of x[j] exp(-2 pi i j k / n), times a scale.

    The inverse has + in place of -.
    """
    n = x.shape[axis]
    if n == 1 or not x.size:
        return apply(ops.COPY, (x,)) if way.scale == 1.0 else x * way.scale
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    rows = view(x, ("reshape", (outer, n, inner)))
    result = run_stages(rows, way) if factors(n) else _convolve_with_chirp(rows, way)
    return view(result, ("reshape", x.shape))


def along(values: Tensor, axis: int, ndim: int) -> Tensor:
    """Return a vector along one of several axes, to be broadcast along the others."""
    shape: Shape = tuple(values.shape[0] if d == axis else 1 for d in range(ndim))
    return view(values, ("reshape", shape))


def _convolve_with_chirp(x: Tensor, way: Way) -> Tensor:
    """Transform by jk = (j^2 + k^2 - (k - j)^2) / 2, if a prime is too large for a stage.

    Source: Bluestein, A linear filtering approach to the computation of discrete Fourier transform,
    1970.
    """
    n = x.shape[1]
    m = convolution_length(2 * n - 1)
    side = "back" if way.back else "there"
    chirp = table(f"chirp {side}", n, x.dtype, x.device, lambda: _chirp(n, way.back))
    filtering = table(f"filter {side}", n, x.dtype, x.device, lambda: _filter(n, m, way.back))
    chirp = along(chirp, 1, 3)
    padded = pad(x * chirp, ((0, 0), (0, m - n), (0, 0)))
    spectrum = transform(padded, 1, Way(False)) * along(filtering, 1, 3)
    convolution = transform(spectrum, 1, Way(True, way.scale))
    return slice_along(convolution, 1, 0, n) * chirp


def _chirp(n: int, back: bool) -> np.ndarray:
    """Return exp(-pi i j^2 / n) for j < n, or its conjugate."""
    j = np.arange(n)
    values = roots(j * j % (2 * n), 2 * n)
    return values.conj() if back else values


def _filter(n: int, m: int, back: bool) -> np.ndarray:
    """Return the spectrum of the filter that the chirped numbers are convolved with, over m."""
    chirp = _chirp(n, not back)
    padded = np.zeros(m, np.complex128)
    padded[:n] = chirp
    padded[m - n + 1 :] = chirp[:0:-1]
    return np.fft.fft(padded, norm="forward")
