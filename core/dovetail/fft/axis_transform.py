"""Transforms along one axis of complex tensors: by stages, or by a convolution with a chirp."""

from __future__ import annotations

import math

import numpy as np

from ..functions.shape.padding import pad
from ..layout import Shape
from ..ops import table as ops
from ..tensor.primitives import apply, slice_along, view
from ..tensor.tensor import Tensor
from .stages import FourierAttrs, run_stages
from .twiddles import convolution_length, factors, roots, table


def transform(x: Tensor, axis: int, attrs: FourierAttrs) -> Tensor:
    """Return the transform along `axis`, forward or inverse as `attrs` say, times their scale.

    It sums x[j] exp(-2 pi i j k / n) over j; the inverse has + in place of -.
    """
    n = x.shape[axis]
    if n == 1 or not x.size:
        return apply(ops.COPY, (x,)) if attrs.scale == 1.0 else x * attrs.scale
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    rows = view(x, ("reshape", (outer, n, inner)))
    result = run_stages(rows, attrs) if factors(n) else _convolve_with_chirp(rows, attrs)
    return view(result, ("reshape", x.shape))


def broadcast_along(values: Tensor, axis: int, ndim: int) -> Tensor:
    """Return the vector `values` along `axis` of `ndim` axes; the other axes have size 1."""
    shape: Shape = tuple(values.shape[0] if d == axis else 1 for d in range(ndim))
    return view(values, ("reshape", shape))


def _convolve_with_chirp(x: Tensor, attrs: FourierAttrs) -> Tensor:
    """Return the transform along axis 1, of any length n, as a convolution with a chirp.

    The identity is jk = (j^2 + k^2 - (k - j)^2) / 2.

    Source: Bluestein, A linear filtering approach to the computation of discrete Fourier transform,
    1970.
    """
    n = x.shape[1]
    m = convolution_length(2 * n - 1)
    side = "back" if attrs.is_inverse else "there"
    chirp = table(f"chirp {side}", n, x.dtype, x.device, lambda: _chirp(n, attrs.is_inverse))
    filtering = table(
        f"filter {side}", n, x.dtype, x.device, lambda: _filter(n, m, attrs.is_inverse)
    )
    chirp = broadcast_along(chirp, 1, 3)
    padded = pad(x * chirp, ((0, 0), (0, m - n), (0, 0)))
    spectrum = transform(padded, 1, FourierAttrs(False)) * broadcast_along(filtering, 1, 3)
    convolution = transform(spectrum, 1, FourierAttrs(True, attrs.scale))
    return slice_along(convolution, 1, 0, n) * chirp


def _chirp(n: int, is_inverse: bool) -> np.ndarray:
    """Return exp(-pi i j^2 / n) for j < n, or its conjugate."""
    j = np.arange(n)
    values = roots(j * j % (2 * n), 2 * n)
    return values.conj() if is_inverse else values


def _filter(n: int, m: int, is_inverse: bool) -> np.ndarray:
    """Return the spectrum of the convolution's filter, padded to m points, divided by m."""
    chirp = _chirp(n, not is_inverse)
    padded = np.zeros(m, np.complex128)
    padded[:n] = chirp
    padded[m - n + 1 :] = chirp[:0:-1]
    return np.fft.fft(padded, norm="forward")
