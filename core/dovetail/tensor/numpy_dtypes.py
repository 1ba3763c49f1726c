"""The NumPy dtypes of floats that NumPy itself lacks; the package ml_dtypes has them."""

from __future__ import annotations

import numpy as np

from ..dtypes import FOREIGN_NAMES, DType
from ..errors import DTypeError
from ..install_source import install_command


def find_ml_dtype(d: DType) -> np.dtype:
    """Return the dtype of the package ml_dtypes with the bits of a float that NumPy lacks.

    Raises: DTypeError if the package lacks it, or is not installed.
    """
    names = FOREIGN_NAMES.get(d, ())
    advice = "use x.astype(dt.float32).numpy()"
    if names:
        try:
            import ml_dtypes
        except ImportError:
            advice = f"{install_command('ml_dtypes')}, or {advice}"
        else:
            for name in names:
                if hasattr(ml_dtypes, name):
                    match: np.dtype = np.dtype(getattr(ml_dtypes, name))
                    return match
    raise DTypeError(f"numpy: NumPy has no {d.name}; {advice}")
