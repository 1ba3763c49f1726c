"""Fourier transforms: of any length, along any axes, on every device with the same bits.

A length whose primes are at most 13 takes a kernel for each factor of up to 32 (`stages`); others
are convolutions with a chirp. Tables of roots are computed on the host, once per length, and
cached.
"""

from typing import TYPE_CHECKING

from ..lazy_import import late

if TYPE_CHECKING:
    from .frequencies import fftfreq, fftshift, ifftshift, rfftfreq
    from .real_transforms import hfft, ihfft, irfft, irfft2, irfftn, rfft, rfft2, rfftn
    from .transforms import fft, fft2, fftn, ifft, ifft2, ifftn
else:
    _HOMES = {
        "frequencies": "fftfreq fftshift ifftshift rfftfreq",
        "real_transforms": "hfft ihfft irfft irfft2 irfftn rfft rfft2 rfftn",
        "transforms": "fft fft2 fftn ifft ifft2 ifftn",
    }
    __getattr__ = late(__name__, {n: home for home, names in _HOMES.items() for n in names.split()})

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def __dir__() -> list[str]:
    return __all__
