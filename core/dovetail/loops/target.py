"""What a device can do, as far as kernels are concerned: its capabilities."""

from __future__ import annotations

from dataclasses import dataclass

from ..dtypes import FLOATS, INTEGERS, DType, bool_


@dataclass(frozen=True)
class Capabilities:
    """What kernels for this device may contain.

    The core legalises the rest away, or refuses it clearly. `native_halves`: of float16, bfloat16,
    those that the device loads, stores and casts to and from float32.
    """

    dtypes: frozenset[DType] = frozenset((bool_, *INTEGERS, *FLOATS))  # that buffers may hold
    native_halves: frozenset[DType] = frozenset()
    exact_division: bool = True  # whether float32 div and sqrt round correctly
    float64: bool = True
    concurrency: int = 1  # how many independent grid points keep the device busy
    # Bytes that a grid point may write and soon read again at little cost, its loops being as quick
    # as neighbouring points are: of a first cache. 0 where points share what is near.
    near: int = 0
