"""`np.lib`: strided views and functions of complex results."""

from __future__ import annotations

import numpy.lib as _theirs
from numpy.lib import NumpyVersion, array_utils, format, introspect, mixins, npyio

from ..namespace import build_submodule
from . import scimath, stride_tricks

__all__ = [*_theirs.__all__]
_ = (NumpyVersion, array_utils, format, introspect, mixins, npyio, scimath, stride_tricks)
globals().update(
    {k: v for k, v in build_submodule(_theirs).items() if k not in ("scimath", "stride_tricks")}
)


def __dir__() -> list[str]:
    return __all__
