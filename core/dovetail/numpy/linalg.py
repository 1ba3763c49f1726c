"""`np.linalg`: NumPy's linear algebra for ndarrays, by `dt.linalg`."""

from __future__ import annotations

from .namespace import LINALG

globals().update(LINALG)
__all__ = sorted(LINALG)
