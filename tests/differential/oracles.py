"""The names that the expressions of the rows may use."""

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
    """Call a function that writes into its first argument, and return that argument."""
    function(x, *more, **keywords)
    return x


@functools.cache
def torch() -> Any:
    return importlib.import_module("torch")


def torch_names() -> dict[str, Any]:
    t = torch()
    return {"torch": t, "F": t.nn.functional, "W": written, "I": t.tensor, "np": np}


def _regular(x: Any) -> Any:
    """Return x with 5 added to its diagonal."""
    return x + 5 * _eye(x)


def _positive(x: Any) -> Any:
    """Return a positive definite matrix."""
    return x @ x.mT + _eye(x)


def _eye(x: Any) -> Any:
    library = dt if isinstance(x, dt.Tensor) else np
    return library.eye(x.shape[-1], dtype=x.dtype)


ON_BOTH = {"W": written, "np": np, "regular": _regular, "positive": _positive, "float": float}


def _power(x: Any, y: Any) -> Any:
    """Return x ** y; the nearest integer to 0 for negative powers of integers."""
    if np.asarray(x).dtype.kind not in "iu":
        return np.power(x, y)
    inverse = np.where(np.abs(x) == 1, np.where(y % 2 == 0, np.ones_like(x), x), np.zeros_like(x))
    return np.where(y < 0, inverse, np.power(x, np.where(y < 0, 0, y)))


DOVETAIL: dict[str, Any] = {
    **ON_BOTH, "dt": dt, "F": dt.nn.functional, "moduli": lambda z: dt.sort(dt.abs(z), axis=-1),
    "I": lambda a: dt.asarray(a, dtype=dt.int64) if a != [] else dt.zeros(0, dtype=dt.int64),
}  # fmt: skip
NUMPY: dict[str, Any] = {
    **ON_BOTH, "scipy": scipy, "special": scipy.special, "I": np.asarray,
    "moduli": lambda z: np.sort(np.abs(z), axis=-1), "pow": _power,
}  # fmt: skip
