"""Methods of NumPy's ufuncs, such as `dt.add.reduce`; loaded when one is called."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentTypeError
from ...tensor.tensor import Tensor
from ..creation.from_values import asarray
from .protocol import _OTHER_NAME, array_ufunc

_NUMPY_UFUNC_NAMES = {ours: theirs for theirs, ours in _OTHER_NAME.items()}


def call_ufunc_method(name: str, method: str, *operands: Any, **options: Any) -> object:
    """Call a method of NumPy's ufunc on tensors. Raises: ArgumentTypeError without a tensor."""
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
    operand_count = {"outer": len(more), "at": len(more), "reduceat": 1}.get(method, 0)
    options.update(zip(("axis", "dtype"), more[operand_count:], strict=False))
    return array_ufunc(x, ufunc, method, x, *more[:operand_count], **options)
