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
    "at": "write x[i] = dt.{0}(x[i], y) if each place occurs once; if places occur again, sums are "
    "dt.index_add(x, 0, i, y), and for others a = x.numpy().copy(); np.{0}.at(a, i, y)",
    "reduceat": "write dt.{0} of parts, or np.{0}.reduceat(np.asarray(x), places)",
}


def call_ufunc_method(name: str, method: str, *operands: Any, **options: Any) -> object:
    """Call the method of NumPy's ufunc with this name on tensors. Raises: as `array_ufunc`."""
    if method in _METHOD_ADVICE:
        raise ArgumentTypeError(f"{name}.{method}: {_METHOD_ADVICE[method].format(name)}")
    if not operands:
        raise ArgumentTypeError(f"{name}.{method}: needs a tensor")
    first, *more = operands
    x = first if isinstance(first, Tensor) else asarray(first)
    out = options.pop("out", None)
    if out is not None:
        options["out"] = out if isinstance(out, tuple) else (out,)
    ufunc = getattr(np, _NUMPY_UFUNC_NAMES.get(name, name), None)
    if not isinstance(ufunc, np.ufunc):
        raise ArgumentTypeError(f"{name}.{method}: NumPy has no such ufunc, and so dt has not")
    if method != "outer":  # the others also take axis and dtype by position
        options.update(zip(("axis", "dtype"), more, strict=False))
        more = []
    return array_ufunc(x, ufunc, method, x, *more, **options)
