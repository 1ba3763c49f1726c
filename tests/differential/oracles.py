"""What the expressions of the rows may name."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import scipy
import scipy.linalg
import scipy.special


def written(function: Callable[..., Any], x: Any, *more: Any, **keywords: Any) -> Any:
    """Call a function that writes into its first argument, and return that."""
    function(x, *more, **keywords)
    return x


@functools.lru_cache(maxsize=None)
def torch() -> Any:
    return importlib.import_module("torch")


def torch_names() -> dict[str, Any]:
    t = torch()
    return {"torch": t, "F": t.nn.functional, "W": written, "I": t.tensor, "np": np}


def _power(x: Any, y: Any) -> Any:
    """Return x ** y; the nearest integer to 0 for negative powers of integers."""
    if np.asarray(x).dtype.kind not in "iu":
        return np.power(x, y)
    inverse = np.where(np.abs(x) == 1, np.where(y % 2 == 0, np.ones_like(x), x), np.zeros_like(x))
    return np.where(y < 0, inverse, np.power(x, np.where(y < 0, 0, y)))


DOVETAIL: dict[str, Any] = {
    "dt": dt, "np": np, "F": dt.nn.functional, "W": written, "moduli": lambda z: dt.sort(dt.abs(z), axis=-1),
    "I": lambda a: dt.asarray(a, dtype=dt.int64) if a != [] else dt.zeros(0, dtype=dt.int64),
}  # fmt: skip
NUMPY: dict[str, Any] = {
    "np": np, "scipy": scipy, "special": scipy.special, "W": written, "I": np.asarray,
    "moduli": lambda z: np.sort(np.abs(z), axis=-1), "pow": _power, "float": float,
}  # fmt: skip
