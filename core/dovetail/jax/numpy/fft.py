"""The functions of `jax.numpy.fft`."""

from __future__ import annotations

from typing import Any

from ..dtype_config import with_dtypes
from ..lookup import make_module_dir, make_module_getattr, table

__all__: list[str] = []

_NAMES = {
    name: f"fft.{name}"
    for name in table("""
        fft fft2 fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn
        rfft rfft2 rfftn
    """)
}
_PLAIN = {"fftfreq": "fft.fftfreq", "rfftfreq": "fft.rfftfreq"}  # of a number of samples

_find_function = make_module_getattr(globals(), _NAMES)
_find_plain = make_module_getattr(globals(), _PLAIN, with_dtypes)
__dir__ = make_module_dir(globals(), _NAMES | _PLAIN)


def __getattr__(name: str) -> Any:
    """Return a function of the tables."""
    return (_find_plain if name in _PLAIN else _find_function)(name)
