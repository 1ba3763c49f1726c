"""`np.fft`: NumPy's Fourier transforms for ndarrays, by `dt.fft`."""

from __future__ import annotations

import numpy as _host

from .namespace import build_submodule

globals().update(build_submodule(_host.fft))
__all__ = sorted(_host.fft.__all__)
