"""`np.linalg`: NumPy's linear algebra for ndarrays, by `dt.linalg`."""

from __future__ import annotations

from typing import Any

import numpy as _host

from .. import Tensor as _Tensor
from ..errors import DovetailError as _DovetailError
from ..errors import LinAlgError as _LinAlgError
from .calls import call_on_host as _call_on_host
from .creation import asarray as _asarray
from .namespace import LINALG

# So `except np.linalg.LinAlgError` catches the error, also if it is raised when a value is read.
_LinAlgError.__bases__ = (_DovetailError, _host.linalg.LinAlgError)


def matrix_power(a: Any, n: Any) -> Any:
    """Return square matrices to an integer power; integers and bools stay such unless n < 0."""
    x = _asarray(a)
    if isinstance(x, _Tensor) and n < 0:
        return matrix_power(LINALG["inv"](x), -n)
    if not isinstance(x, _Tensor) or (x.dtype.kind in "iufc" and x.dtype.name != "float16"):
        return LINALG["matrix_power"](x, n)
    return _call_on_host(_host.linalg.matrix_power, (x, n), {})


def qr(a: Any, mode: str = "reduced") -> Any:
    """Return the factors Q and R; mode "raw" returns LAPACK's, computed by the host."""
    if mode == "raw":
        return _call_on_host(_host.linalg.qr, (a, mode), {})
    return LINALG["qr"](a) if mode == "reduced" else LINALG["qr"](a, mode)


globals().update({k: v for k, v in LINALG.items() if k not in ("matrix_power", "qr")})
__all__ = sorted(LINALG)


def __dir__() -> list[str]:
    return __all__
