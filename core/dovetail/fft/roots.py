"""Roots of unity, the factors of a length, and tables of roots on devices.

exp(-2 pi i k / n) is reduced exactly, in integers, to an eighth of a turn, and computed there with
more digits than float64 has where the host's libm does: so tables are the nearest numbers of their
dtype, but for a few in a million.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arguments import host_memory
from ..device_class import Device
from ..dtypes import DType
from ..engine import recording
from ..graph.expr import storage_of
from ..recent import Recent
from ..tensor.host import from_host
from ..tensor.tensor import Tensor

# Bits of a radix: 16 points are what 32 registers hold. 32 points pay where two stages are all; in
# long transforms the first stage of 32 reads 62 rows of roots, and takes twice as long.
WIDE, WIDEST, SHORT = 4, 5, 10
ODD = (13, 11, 7, 5, 3)  # other radices, those first that soon give a vector of neighbours
KEPT = 1 << 28  # bytes of tables that are kept, at most
TABLES = 256  # and how many


def root(k: int, n: int) -> tuple[float, float]:
    """The parts of exp(-2 pi i k / n)."""
    found = roots(np.array([k]), n)[0]
    return float(found.real), float(found.imag)


def roots(k: np.ndarray, n: int) -> np.ndarray:
    """exp(-2 pi i k / n) for integers k, as complex128."""
    eighths = 8 * (k.astype(np.int64) % n)
    octant = eighths // n
    rest = eighths - octant * n  # n times the part of an eighth
    rest = np.where(octant % 2 == 1, n - rest, rest)
    angle = rest.astype(np.longdouble) * (np.arctan(np.longdouble(1)) / n)
    c, s = np.cos(angle).astype(np.float64), np.sin(angle).astype(np.float64)
    quarter = (octant + 1) // 2 % 4  # the nearest axis
    swapped = quarter % 2 == 1
    across = np.where(octant % 2 == 1, -s, s)  # from that axis on, counted as angles grow
    x, y = np.where(swapped, -across, c), np.where(swapped, c, across)
    behind = quarter >= 2
    found = np.empty(k.shape, np.complex128)
    found.real = np.where(behind, -x, x) + 0.0  # no -0
    found.imag = -np.where(behind, -y, y) + 0.0
    return found


def factors(n: int) -> tuple[int, ...] | None:
    """The radices of the stages of a transform of n points; None where a prime is too large.

    Powers of two come first, in as few stages as can be, of nearly the same size.
    """
    twos = (n & -n).bit_length() - 1
    stages = -(-twos // (WIDEST if twos <= SHORT else WIDE))
    found = [1 << ((twos + stages - 1 - i) // stages) for i in range(stages)]
    n >>= twos
    for r in ODD:
        while n % r == 0:
            found.append(r)
            n //= r
    return tuple(found) if n == 1 else None


# (what, n, dtype, device) -> a table
_tables: Recent[tuple[str, int, DType, Device], Tensor] = Recent(TABLES)


def table(
    what: str, n: int, dtype: DType, device: Device, make: Callable[[], np.ndarray]
) -> Tensor:
    """The table of this name for transforms of n points, on a device; made at most once in a while.

    Those used lately are kept. Raises: OutOfMemoryError.
    """
    key = what, n, dtype, device
    found = _tables.find(key)
    if found is None:
        with host_memory(f"fft: the roots of unity for {n:,} points"):
            values = make().astype(np.dtype(dtype.name))
        found = from_host(values, dtype, device)
        if recording.current() is None and 2 * found.nbytes <= KEPT:
            young = sum(t.nbytes for t in _tables.young.values())
            if 2 * (young + found.nbytes) > KEPT:
                _tables.turn()
            _tables[key] = found
            recording.keep_constant(storage_of(found._expr))
    return found


def stage_roots(n: int, dtype: DType, device: Device) -> Tensor:
    """Of all stages of a transform the roots that follow the butterflies, one after the other.

    Of a stage of radix r on m * r points: for k in 1..r-1 the real, then the imaginary parts of
    exp(-2 pi i p k / (m r)) for p in 0..m-1.
    """
    return table("stages", n, dtype, device, lambda: _listed(n))


def _listed(n: int) -> np.ndarray:
    listed, m = [np.zeros(1)], n
    for r in factors(n) or ():
        w = roots(np.arange(1, r)[:, None] * np.arange(m // r), m)
        listed.append(np.stack([w.real, w.imag], 1).reshape(-1))
        m //= r
    return np.concatenate(listed[1:-1] or listed[:1])  # the last stage does not turn


def starts(n: int) -> list[int]:
    """Where in that table each stage begins."""
    at, found, m = 0, list[int](), n
    for r in factors(n) or ():
        found.append(at)
        at, m = at + 2 * (r - 1) * (m // r), m // r
    return found


def convolution_length(n: int) -> int:
    """A length of at least n, little more, that takes few stages."""
    return min(odd << (-(-n // odd) - 1).bit_length() for odd in (1, 3, 5, 9, 15))
