"""Methods of NumPy's ufuncs, such as `dt.add.reduce`; loaded when one is called."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentTypeError
from ...tensor.tensor import Tensor
from ..creation.from_values import asarray
from .protocol import _OTHER_NAME, array_ufunc

_NUMPY_UFUNC_NAMES = {ours: theirs for theirs, ours in _OTHER_NAME.items()}
_METHOD_ADVICE = {
    "at": "use x[i] = dt.{0}(x[i], y) if no index repeats; for repeated indices use "
    "dt.index_add(x, 0, i, y) for sums, dt.index_reduce for products and extremes, otherwise "
    "a = x.numpy().copy(); np.{0}.at(a, i, y)",
    "reduceat": "use dt.{0} on slices, or np.{0}.reduceat(np.asarray(x), indices)",
}


def call_ufunc_method(name: str, method: str, *operands: Any, **options: Any) -> object:
    """Call a method of NumPy's ufunc on tensors. Raises: ArgumentTypeError for `at`, `reduceat`."""
    if method in _METHOD_ADVICE:
        raise ArgumentTypeError(f"{name}.{method}: {_METHOD_ADVICE[method].format(name)}")
    if not operands:
        raise ArgumentTypeError(f"{name}.{method}: expected a tensor, got no argument")
    first, *more = operands
    x = first if isinstance(first, Tensor) else asarray(first)
    out = options.pop("out", None)
    if out is not None:
        options["out"] = out if isinstance(out, tuple) else (out,)
    ufunc = getattr(np, _NUMPY_UFUNC_NAMES.get(name, name), None)
    if not isinstance(ufunc, np.ufunc):
        raise ArgumentTypeError(
            f"{name}.{method}: NumPy has no ufunc of this name, so dovetail has no such method"
        )
    if method != "outer":  # the others also take axis and dtype by position
        options.update(zip(("axis", "dtype"), more, strict=False))
        more = []
    return array_ufunc(x, ufunc, method, x, *more, **options)
