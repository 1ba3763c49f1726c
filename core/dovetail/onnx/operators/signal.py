"""Fourier transforms and mel filters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import dovetail as dt

from ..library import dtype_of
from .table import OperatorCall, register_operator

Tensor = dt.Tensor


def _to_pairs(z: Tensor) -> Tensor:
    """Return complex numbers as pairs of floats along a new last axis."""
    return dt.stack([dt.real(z), dt.imag(z)], axis=-1)


@register_operator("DFT", host=(1, 2), folds=False)
def _dft(call: OperatorCall, x: Tensor, length: Any = None, axis: Any = None) -> Tensor:
    """Return the Fourier transform of real numbers or pairs along an axis, or its inverse."""
    at = call.get("axis", 1) if axis is None else call.number(axis)
    if call.version >= 20 and axis is None:
        at = -2
    at = call.axis(at, x.ndim)
    inverse, half = bool(call.get("inverse", 0)), bool(call.get("onesided", 0))
    n = x.shape[at] if length is None else call.number(length)
    call.reserve(16 * max(n, 0) * (math.prod(x.shape) // max(x.shape[at] * x.shape[-1], 1)))
    is_real = x.shape[-1] == 1
    if inverse and half:
        whole = x[..., 0] + 1j * x[..., 1]
        return dt.expand_dims(
            dt.fft.irfft(whole, n=n if length is not None else None, axis=at), axis=-1
        )
    z = x[..., 0] if is_real else x[..., 0] + 1j * x[..., 1]
    if inverse:
        return _to_pairs(dt.fft.ifft(z + 0j, n=n, axis=at))
    if half:
        return _to_pairs(dt.fft.rfft(z, n=n, axis=at))
    return _to_pairs(dt.fft.fft(z + 0j, n=n, axis=at))


@register_operator("STFT", host=(1, 3), folds=False)
def _stft(
    call: OperatorCall, x: Tensor, step: Any, window: Tensor | None = None, length: Any = None
) -> Tensor:
    """Return the Fourier transforms of overlapping frames, as (real, imaginary) pairs.

    Raises: ArgumentError without window and length, and for steps and lengths that do not fit `x`.
    """
    hop = call.number(step)
    if length is not None:
        size = call.number(length)
    elif window is not None:
        size = window.shape[0]
    else:
        raise dt.ArgumentError("STFT: window or frame_length must be given")
    if x.ndim == 3:
        x = x[..., 0] if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1]
    if hop < 1 or not 1 <= size <= x.shape[1]:
        raise dt.ArgumentError(
            "STFT: frame_step must be at least 1 and the frame length between 1 and "
            f"{x.shape[1]}, got {hop} and {size}"
        )
    count = (x.shape[1] - size) // hop + 1
    x = x.contiguous()
    frames = dt.as_strided(x, (x.shape[0], count, size), (x.stride()[0], hop, 1))
    frames = frames if window is None else frames * window
    if call.get("onesided", 1) and x.dtype.kind == "f":
        return _to_pairs(dt.fft.rfft(frames, axis=-1))
    return _to_pairs(dt.fft.fft(frames + 0j, axis=-1))


@register_operator("MelWeightMatrix", host=(0, 1, 2, 3, 4), folds=False)
def _mel(call: OperatorCall, bins: Any, size: Any, rate: Any, low: Any, high: Any) -> np.ndarray:
    """Build triangular filters, equidistant on the mel scale.

    Raises: ArgumentError for sizes, a rate or edges that are out of range.
    """
    count, points = call.number(bins), call.number(size) // 2 + 1
    begin, end = (float(call.array(v).reshape(-1)[0]) for v in (low, high))
    samples = call.number(rate)
    d = dtype_of(call.get("output_datatype", 1), "MelWeightMatrix")
    if not 0 <= count <= 1 << 16 or not 0 <= points <= 1 << 20:
        raise dt.ArgumentError(
            "MelWeightMatrix: num_mel_bins must be between 0 and 65536 and the number of "
            f"frequencies between 0 and 1048576, got {count} and {points}"
        )
    if not (0 <= begin <= end < math.inf and samples > 0):
        raise dt.ArgumentError(
            "MelWeightMatrix: sample_rate must be positive and lower_edge_hertz between 0 and "
            f"upper_edge_hertz, got {samples}, {begin} and {end}"
        )
    call.reserve((8 + d.itemsize) * points * count + 8 * 8 * (points + count))
    first, last = (2595 * np.log10(1 + e / 700) for e in (begin, end))
    mels = first + np.arange(count + 2) * ((last - first) / (count + 2))
    edges = 700 * (10 ** (mels / 2595) - 1)
    positions = np.floor((call.number(size) + 1) * edges / samples)
    if count and not (positions[-2] < points and positions[-1] <= points):
        raise dt.ArgumentError(
            "MelWeightMatrix: upper_edge_hertz must be at most sample_rate / 2, got "
            f"{end} for a rate of {samples}"
        )
    at = positions.astype(np.int64)
    filters = np.zeros((points, count))
    for i in range(count):
        low_at, middle, high_at = at[i : i + 3]
        rising = np.arange(low_at, middle + 1)
        falling = np.arange(middle, high_at)
        filters[rising, i] = (rising - low_at) / (middle - low_at) if middle > low_at else 1.0
        filters[falling, i] = (high_at - falling) / max(high_at - middle, 1)
    return np.asarray(filters, d.__numpy_dtype__)
