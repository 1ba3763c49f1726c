"""The frequencies of a spectrum, and spectra with the frequency 0 in their middle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import layout as lay
from ..argument_checks import integer, real
from ..errors import ArgumentError, DTypeError
from ..functions.creation.from_values import asarray
from ..functions.datatypes import DeviceLike, DTypeLike, get_default_dtype, real_dtype
from ..functions.shape.copies import roll
from ..functions.variants import public
from ..tensor.tensor import Tensor, required

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def _create_frequencies(
    name: str, k: np.ndarray, n: int, d: float, dtype: DTypeLike, device: DeviceLike
) -> Tensor:
    """Return k / (n d) as a tensor. Raises: ArgumentError if d is 0, DTypeError unless a float."""
    spacing = real(name, d, "d")
    if spacing == 0:
        raise ArgumentError(f"{name}: d, the spacing of the samples, must not be 0")
    wanted = get_default_dtype() if dtype is None else real_dtype(name, dtype)
    if wanted.kind != "f":
        raise DTypeError(f"{name}: dtype must be floating-point, got {wanted.name}")
    return asarray(k / (n * spacing), dtype=wanted, device=device)


@public(out=True)
def fftfreq(
    n: int,
    /,
    *,
    d: float = 1.0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the frequencies of the result of `fft` for n points: 0, 1, ..., -2, -1, over n d.

    - `n`: the number of points.
    - `d`: the time between points, a number.

    Shapes: (n,).
    Dtypes: `dtype`, a float, float32 unless given.
    Units: the inverse of that of `d`.
    Raises: ArgumentError for an n below 1 and a d of 0, DTypeError, DeviceError.
    See also: `fft.rfftfreq`, `fft.fftshift`.

    >>> import dovetail as dt
    >>> dt.fft.fftfreq(4, d=0.5).tolist()
    [0.0, 0.5, -1.0, -0.5]
    """
    n = integer("fftfreq", n, "n", 1)
    k = np.arange(n)
    return _create_frequencies("fftfreq", np.where(k < (n + 1) // 2, k, k - n), n, d, dtype, device)


@public(out=True)
def rfftfreq(
    n: int,
    /,
    *,
    d: float = 1.0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the frequencies of the result of `rfft` for n points: 0, 1, ..., over n d.

    - `n`: the number of points.
    - `d`: the time between points, a number.

    Units: the inverse of that of `d`.
    Shapes: (n // 2 + 1,).
    Dtypes: `dtype`, a float, float32 unless given.
    Raises: ArgumentError for an n below 1 and a d of 0, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.fft.rfftfreq(4, d=0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    n = integer("rfftfreq", n, "n", 1)
    return _create_frequencies("rfftfreq", np.arange(n // 2 + 1), n, d, dtype, device)


@public(out=True, widen=False)
def fftshift(
    x: Tensor, /, axes: int | Sequence[int] | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return a spectrum rolled so that frequency 0 is in the middle of some axes, of all for None.

    - `axes`: the axes to shift, an int or a tuple; None shifts all.

    Shapes: any; the result has the same.
    Dtypes: all.
    Raises: AxisError.
    See also: `fft.ifftshift`, `roll`.

    >>> import dovetail as dt
    >>> dt.fft.fftshift(dt.asarray([0, 1, 2, -2, -1])).tolist()
    [-2, -1, 0, 1, 2]
    """
    return _roll_half("fftshift", x, axes, 1)


@public(out=True, widen=False)
def ifftshift(
    x: Tensor, /, axes: int | Sequence[int] | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return a spectrum with the frequency 0 first: the inverse of `fftshift`.

    - `axes`: the axes to shift, an int or a tuple; None shifts all.

    Shapes: any; the result has the same.
    Dtypes: all.
    Raises: AxisError.

    >>> import dovetail as dt
    >>> dt.fft.ifftshift(dt.asarray([-2, -1, 0, 1, 2])).tolist()
    [0, 1, 2, -2, -1]
    """
    return _roll_half("ifftshift", x, axes, -1)


def _roll_half(name: str, x: Tensor, axes: int | Sequence[int] | None, direction: int) -> Tensor:
    """Return `x` rolled by half of each axis, forwards (1) or backwards (-1). Raises: AxisError."""
    chosen = lay.axes(name, axes, required(name, x).ndim)
    return roll(x, shift=tuple([direction * (x.shape[a] // 2) for a in chosen]), axis=chosen)
