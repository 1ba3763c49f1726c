"""NumPy's namespace for dovetail: `import dovetail.numpy as np`.

A program that is written for NumPy runs with this import in place of NumPy's: the names, the
positional parameters, the default dtypes (float64, int64, complex128), the promotion and the random
numbers are NumPy's. Arrays are `ndarray`s: tensors whose work is deferred, fused and
differentiable, on any device. Dtypes and scalars such as `np.float64` are NumPy's own.

What dovetail lacks, such as text files, is computed by NumPy on the host.
"""

from __future__ import annotations

import numpy as _host

from ..decorated_functions import set_pickled_name as _set_pickled_name

from .. import Tensor as _Tensor  # noqa: F401  # isort: skip  # loads the core with its methods
from . import fft as fft
from . import lib as lib
from . import linalg as linalg
from . import polynomial as polynomial
from . import random as random
from . import testing as testing
from .namespace import NAMESPACE as _NAMESPACE

globals().update(_NAMESPACE)

__all__ = sorted(
    {*_NAMESPACE} | {"emath", "fft", "lib", "linalg", "polynomial", "random", "testing"}
)
__version__ = _host.__version__
__array_api_version__ = "2024.12"
emath = lib.scimath
for _name in __all__:
    for _module in (fft, lib, linalg, random, testing):
        if _name == _module.__name__.rpartition(".")[2]:
            for _part in _module.__all__:
                _set_pickled_name(getattr(_module, _part), _module.__name__, _part)
    _set_pickled_name(globals()[_name], __name__, _name)


def __getattr__(name: str) -> object:
    """Return a name of NumPy that is not in its `__all__`. Raises: AttributeError as NumPy does."""
    if name.startswith("__") and name != "__config__":
        raise AttributeError(f"module 'dovetail.numpy' has no attribute {name!r}")
    return getattr(_host, name)


def __dir__() -> list[str]:
    return [*__all__, "__array_api_version__", "__version__"]
