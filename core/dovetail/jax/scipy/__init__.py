"""The functions of `jax.scipy`: parts of `linalg` and `special`."""

from __future__ import annotations

from . import linalg, special

__all__ = ["linalg", "special"]
