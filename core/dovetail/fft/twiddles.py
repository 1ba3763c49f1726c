"""Roots of unity, the factors of a length, and tables of roots on devices.

exp(-2 pi i k / n) is reduced exactly, in integers, to an eighth of a turn, and computed there with
more digits than float64 has if the host's libm has them: so tables are the nearest numbers of their
dtype, but for a few in a million.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..argument_checks import host_memory
from ..device_class import Device
from ..dtypes import DType
from ..engine import tracer_api
from ..graph.expr import storage_of
from ..lru_cache import LRUCache
from ..tensor.host import from_host
from ..tensor.tensor import Tensor

# Bits of a radix: 16 points fill 32 registers. A radix of 32 is faster if there are two stages; in
# long transforms the first stage of 32 reads 62 rows of roots, and takes twice as long.
RADIX_BITS_MAX, TWO_STAGE_RADIX_BITS_MAX, TWO_STAGE_BITS_MAX = 4, 5, 10
ODD_RADICES = (13, 11, 7, 5, 3)  # other radices, large ones first: neighbours soon fill a vector
TABLE_CACHE_BYTES_MAX = 1 << 28  # bytes of cached tables, at most
TABLE_CACHE_MAX = 256  # number of cached tables, at most


def root(k: int, n: int) -> tuple[float, float]:
    """Return the real and imaginary part of exp(-2 pi i k / n)."""
    value = roots(np.array([k]), n)[0]
    return float(value.real), float(value.imag)


def roots(k: np.ndarray, n: int) -> np.ndarray:
    """Return exp(-2 pi i k / n) for integers k, as complex128."""
    eighths = 8 * (k.astype(np.int64) % n)
    octant = eighths // n
    remainder = eighths - octant * n  # n times the part of an eighth
    remainder = np.where(octant % 2 == 1, n - remainder, remainder)
    angle = remainder.astype(np.longdouble) * (np.arctan(np.longdouble(1)) / n)
    c, s = np.cos(angle).astype(np.float64), np.sin(angle).astype(np.float64)
    quarter = (octant + 1) // 2 % 4  # the nearest axis
    swapped = quarter % 2 == 1
    across = np.where(octant % 2 == 1, -s, s)  # the angle from that axis, with its sign
    x, y = np.where(swapped, -across, c), np.where(swapped, c, across)
    behind = quarter >= 2
    result = np.empty(k.shape, np.complex128)
    result.real = np.where(behind, -x, x) + 0.0  # no -0
    result.imag = -np.where(behind, -y, y) + 0.0
    return result


def factors(n: int) -> tuple[int, ...] | None:
    """Return the radices of the stages for n points, or None if a prime is too large.

    Powers of two come first, in as few stages as can be, of nearly the same size.
    """
    twos = (n & -n).bit_length() - 1
    stages = -(
        -twos // (TWO_STAGE_RADIX_BITS_MAX if twos <= TWO_STAGE_BITS_MAX else RADIX_BITS_MAX)
    )
    radices = [1 << ((twos + stages - 1 - i) // stages) for i in range(stages)]
    n >>= twos
    for r in ODD_RADICES:
        while n % r == 0:
            radices.append(r)
            n //= r
    return tuple(radices) if n == 1 else None


# (name, n, dtype, device) -> a table
_tables: LRUCache[tuple[str, int, DType, Device], Tensor] = LRUCache(TABLE_CACHE_MAX)


def table(
    name: str, n: int, dtype: DType, device: Device, make: Callable[[], np.ndarray]
) -> Tensor:
    """Return the cached table of this name for n points on a device; call `make` for a new one.

    Tables that are used rarely are dropped and computed again. Raises: OutOfMemoryError.
    """
    key = name, n, dtype, device
    cached = _tables.find(key)
    if cached is None:
        with host_memory(f"fft: the roots of unity for {n:,} points"):
            values = make().astype(np.dtype(dtype.name))
        cached = from_host(values, dtype, device)
        if tracer_api.current() is None and 2 * cached.nbytes <= TABLE_CACHE_BYTES_MAX:
            young = sum(t.nbytes for t in _tables.young.values())
            if 2 * (young + cached.nbytes) > TABLE_CACHE_BYTES_MAX:
                _tables.age()
            _tables[key] = cached
            tracer_api.keep_constant(storage_of(cached._expr))
    return cached


def stage_roots(n: int, dtype: DType, device: Device) -> Tensor:
    """Return the cached table of the roots of all stages but the last, as real numbers, by stage.

    For a stage of radix r on m * r points: for k in 1..r-1 the real, then the imaginary parts of
    exp(-2 pi i p k / (m r)) for p in 0..m-1.
    """
    return table("stages", n, dtype, device, lambda: _concatenate_roots(n))


def _concatenate_roots(n: int) -> np.ndarray:
    """Return the roots of all stages but the last, as `stage_roots` describes, on the host."""
    tables, m = [np.zeros(1)], n
    for r in factors(n) or ():
        w = roots(np.arange(1, r)[:, None] * np.arange(m // r), m)
        tables.append(np.stack([w.real, w.imag], 1).reshape(-1))
        m //= r
    return np.concatenate(tables[1:-1] or tables[:1])  # the last stage has no rotation


def starts(n: int) -> list[int]:
    """Return the position of each stage's roots in the table of `stage_roots`, in real numbers."""
    at, positions, m = 0, list[int](), n
    for r in factors(n) or ():
        positions.append(at)
        at, m = at + 2 * (r - 1) * (m // r), m // r
    return positions


def convolution_length(n: int) -> int:
    """Return a length from n to 1.25 n that `factors` splits into few stages."""
    return min(odd << (-(-n // odd) - 1).bit_length() for odd in (1, 3, 5, 9, 15))
