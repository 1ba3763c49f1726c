"""The functions of `jax.ops`."""

from __future__ import annotations

from .lookup import make_module_dir, make_module_getattr, table

__all__: list[str] = []

_NAMES = table("segment_max segment_min segment_prod segment_sum")
__getattr__ = make_module_getattr(globals(), _NAMES)
__dir__ = make_module_dir(globals(), _NAMES)
