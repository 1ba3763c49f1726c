"""Window functions under SciPy's names, symmetric by default, and under PyTorch's, periodic."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...argument_checks import dimensions, flag, integer, real
from ...dtypes import float32, float64
from ...ops import table as ops
from ...tensor.primitives import apply
from ...tensor.tensor import Tensor
from ..datatypes import DeviceLike, DTypeLike, cast, get_default_dtype, real_dtype
from ..variants import public
from .constructors import arange, ones

__all__ = [
    "bartlett",
    "bartlett_window",
    "blackman",
    "blackman_window",
    "hamming",
    "hamming_window",
    "hann",
    "hann_window",
    "kaiser",
    "kaiser_window",
]


def _evaluate_window(
    op: str, n: int, sym: bool, dtype: DTypeLike, device: DeviceLike, f: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return `f` at n even points from -1 to 1, the last one left out unless `sym`."""
    (n,) = dimensions(op, (integer(op, n, "n", 0),))
    d = get_default_dtype() if dtype is None else real_dtype(op, dtype)
    wide = float64 if d is float64 else float32
    gaps = n - 1 if flag(op, sym, "sym") else n
    if n <= 1 or not gaps:
        return ones((n,), dtype=d, device=device)
    twice = arange(
        -gaps, -gaps + 2 * n, 2, dtype=wide, device=device
    )  # exact and symmetric about 0
    return cast(f(twice / float(gaps)), d)


def _sum_cosines(x: Tensor, *factors: float) -> Tensor:
    """Return the sum of factor k times cos(k pi x)."""
    total: Tensor | float = factors[0]
    for k, a in enumerate(factors[1:], 1):
        total = apply(ops.TABLE["cos"], (x * (math.pi * k),)) * a + total
    assert isinstance(total, Tensor)
    return total


@public(out=True)
def hann(
    n: int,
    /,
    *,
    sym: bool = True,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the Hann window of n points, NumPy's `hanning`: a raised cosine.

    - `n`: the number of points.
    - `sym`: True is for filters; False gives one period of a periodic window, for spectra.

    Shapes: (n,).
    Dtypes: `dtype`, a float, float32 unless given.
    Raises: ArgumentError for a negative n, DTypeError, DeviceError.
    See also: `hamming`, `blackman`, `kaiser`, `fft.rfft`.

    >>> import dovetail as dt
    >>> dt.hann(3).tolist()
    [0.0, 1.0, 0.0]
    """
    return _evaluate_window("hann", n, sym, dtype, device, lambda x: _sum_cosines(x, 0.5, 0.5))


@public(out=True)
def hamming(
    n: int,
    /,
    *,
    sym: bool = True,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the Hamming window of n points: 0.54 + 0.46 times a cosine.

    - `n`: the number of points.
    - `sym`: True is for filters; False gives one period of a periodic window, for spectra.

    Shapes: (n,).
    Dtypes: `dtype`, a float, float32 unless given.
    Raises: ArgumentError for a negative n, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> round(dt.hamming(3)[0].item(), 4)
    0.08
    """
    return _evaluate_window("hamming", n, sym, dtype, device, lambda x: _sum_cosines(x, 0.54, 0.46))


@public(out=True)
def blackman(
    n: int,
    /,
    *,
    sym: bool = True,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the Blackman window of n points: a sum of two cosines.

    - `n`: the number of points.
    - `sym`: True is for filters; False gives one period of a periodic window, for spectra.

    Shapes: (n,).
    Dtypes: `dtype`, a float, float32 unless given.
    Raises: ArgumentError for a negative n, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> round(dt.blackman(5)[1].item(), 4)
    0.34
    """
    return _evaluate_window(
        "blackman", n, sym, dtype, device, lambda x: _sum_cosines(x, 0.42, 0.5, 0.08)
    )


@public(out=True)
def bartlett(
    n: int,
    /,
    *,
    sym: bool = True,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the Bartlett window of n points: a triangle from 0 to 1 and back.

    - `n`: the number of points.
    - `sym`: True is for filters; False gives one period of a periodic window, for spectra.

    Shapes: (n,).
    Dtypes: `dtype`, a float, float32 unless given.
    Raises: ArgumentError for a negative n, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.bartlett(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _evaluate_window("bartlett", n, sym, dtype, device, lambda x: 1.0 - apply(ops.ABS, (x,)))


@public(out=True)
def kaiser(
    n: int,
    beta: float,
    /,
    *,
    sym: bool = True,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the Kaiser window of n points, a ratio of Bessel functions.

    - `n`: the number of points.
    - `beta`: larger values give a narrower window; 0 is a rectangle.
    - `sym`: True is for filters; False gives one period of a periodic window, for spectra.

    Shapes: (n,).
    Dtypes: `dtype`, a float, float32 unless given.
    Raises: ArgumentError for a negative n, ArgumentTypeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.kaiser(3, 2.0)[1].item()
    1.0
    """
    b = real("kaiser", beta, "beta")

    def bessel(x: Tensor) -> Tensor:
        """Return I0(b sqrt(1 - x**2)) / I0(b)."""
        i0 = ops.TABLE["i0"]
        inside = apply(ops.SQRT, (apply(ops.MAXIMUM, (1.0 - x * x, 0.0)),)) * b
        return apply(i0, (inside,)) / apply(i0, (x * 0.0 + b,))

    return _evaluate_window("kaiser", n, sym, dtype, device, bessel)


@public(widen=False)
def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the Hann window of `hann(n, sym=False)`, PyTorch's `hann_window`.

    - `window_length`: the number of points.
    - `periodic`: True gives one period, for spectra; False the symmetric window.

    Shapes: (window_length,).
    Dtypes: `dtype`, a float, float32 unless given.
    Raises: ArgumentError for a negative length, DTypeError, DeviceError.
    See also: `hann`, `stft`.

    >>> import dovetail as dt
    >>> print(dt.hann_window(4))
    [0. , 0.5, 1. , 0.5]
    """
    sym = not flag("hann_window", periodic, "periodic")
    return hann(window_length, sym=sym, dtype=dtype, device=device)


@public(widen=False)
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the window alpha + beta times a cosine, PyTorch's `hamming_window`.

    - `window_length`: the number of points.
    - `periodic`: True gives one period, for spectra; False the symmetric window.
    - `alpha`, `beta`: the mean, and the factor of the cosine.

    Shapes: (window_length,).
    Dtypes: `dtype`, a float, float32 unless given.
    Raises: ArgumentError for a negative length, DTypeError, DeviceError.
    See also: `hamming`, `stft`.

    >>> import dovetail as dt
    >>> round(dt.hamming_window(4)[0].item(), 4)
    0.08
    """
    op = "hamming_window"
    a, b = real(op, alpha, "alpha"), real(op, beta, "beta")
    sym = not flag(op, periodic, "periodic")
    return _evaluate_window(op, window_length, sym, dtype, device, lambda x: _sum_cosines(x, a, b))


@public(widen=False)
def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the Blackman window of `blackman(n, sym=False)`, PyTorch's `blackman_window`.

    - `window_length`: the number of points.
    - `periodic`: True gives one period, for spectra; False the symmetric window.

    Shapes: (window_length,).
    Dtypes: `dtype`, a float, float32 unless given.
    Raises: ArgumentError for a negative length, DTypeError, DeviceError.
    See also: `blackman`, `stft`.

    >>> import dovetail as dt
    >>> round(dt.blackman_window(4)[1].item(), 4)
    0.34
    """
    sym = not flag("blackman_window", periodic, "periodic")
    return blackman(window_length, sym=sym, dtype=dtype, device=device)


@public(widen=False)
def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the triangle of `bartlett(n, sym=False)`, PyTorch's `bartlett_window`.

    - `window_length`: the number of points.
    - `periodic`: True gives one period, for spectra; False the symmetric window.

    Shapes: (window_length,).
    Dtypes: `dtype`, a float, float32 unless given.
    Raises: ArgumentError for a negative length, DTypeError, DeviceError.
    See also: `bartlett`, `stft`.

    >>> import dovetail as dt
    >>> dt.bartlett_window(4).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    sym = not flag("bartlett_window", periodic, "periodic")
    return bartlett(window_length, sym=sym, dtype=dtype, device=device)


@public(widen=False)
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the Kaiser window of `kaiser(n, beta, sym=False)`, PyTorch's `kaiser_window`.

    - `window_length`: the number of points.
    - `periodic`: True gives one period, for spectra; False the symmetric window.
    - `beta`: larger values give a narrower window; 0 is a rectangle.

    Shapes: (window_length,).
    Dtypes: `dtype`, a float, float32 unless given.
    Raises: ArgumentError for a negative length, DTypeError, DeviceError.
    See also: `kaiser`, `stft`.

    >>> import dovetail as dt
    >>> dt.kaiser_window(4)[2].item()
    1.0
    """
    sym = not flag("kaiser_window", periodic, "periodic")
    return kaiser(window_length, beta, sym=sym, dtype=dtype, device=device)
