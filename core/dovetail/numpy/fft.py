"""`np.fft`: NumPy's Fourier transforms for ndarrays, by `dt.fft`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as _host

from .. import Tensor as _Tensor
from .calls import call_on_host as _call_on_host
from .calls import from_host as _from_host
from .namespace import build_submodule


def _wrap_frequencies(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return NumPy's `fftfreq` or `rfftfreq`, with a spacing that may be a tensor."""

    @wraps(theirs, updated=())
    def call(n: int, d: Any = 1.0, device: Any = None) -> Any:
        """Return the frequencies as an ndarray."""
        if not isinstance(d, _Tensor):
            return _call_on_host(theirs, (n, d), {"device": device})
        return _from_host(_host.rint(theirs(n) * n)) * (1.0 / (n * d))  # NumPy's formula

    return call


globals().update(build_submodule(_host.fft))
globals().update(
    {name: _wrap_frequencies(getattr(_host.fft, name)) for name in ("fftfreq", "rfftfreq")}
)
__all__ = sorted(_host.fft.__all__)


def __dir__() -> list[str]:
    return __all__
