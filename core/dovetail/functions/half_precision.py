"""Composed functions of float16 and bfloat16 operands, computed in float32 and rounded once.

A function made of several ops would round each intermediate: a sum of squares overflows at 65,520,
a count beyond 2048 is not exact. The wrappers of public functions (`declarations.public`) therefore
call them with operands cast to `DType.compute`, and round their results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from typing import Any, ParamSpec, TypeVar
from typing import cast as cast_type

import numpy as np

from ..declarations import Widen
from ..dtypes import DType, dtype, promote
from ..tensor.c_fields import expr_of, is_strided
from ..tensor.tensor import Tensor
from ..tensor.writes import write_node_out
from .datatypes import any_dtype, cast

P = ParamSpec("P")
R = TypeVar("R")
Function = Callable[..., Any]
Options = dict[str, Any]


def _is_half(a: object) -> bool:
    """Return True for a tensor of reduced precision, or a list or tuple that holds one."""
    if is_strided(a):
        own = expr_of(a).spec.dtype
        return own.compute is not own
    if isinstance(a, (list, tuple)):
        return any(map(_is_half, a))
    return isinstance(a, Tensor) and a.dtype.compute is not a.dtype


def holds_half(args: tuple[Any, ...], options: Options) -> bool:
    """Return True if an operand is of reduced precision, or a dtype is given, which may be."""
    for a in args:
        if _is_half(a):
            return True
    for name in options:
        if name == "dtype":
            if options[name] is not None:
                return True
        elif name != "out" and _is_half(options[name]):
            return True
    return False


def widen_halves(composed: Callable[P, R], widen: Widen = True) -> Callable[P, R]:
    """Return the function with half operands cast to float32 and its results rounded once.

    - `composed`: the function.
    - `widen`: see `declarations.public`; "first" rounds results to the dtype of the first tensor.
    """
    if not widen:
        return composed

    @wraps(composed)
    def call(*args: P.args, **options: P.kwargs) -> R:
        """Call the function; with a half operand, compute in float32 and round once."""
        if holds_half(args, options):
            result: R = call_in_float32(composed, args, options, widen)
            return result
        return composed(*args, **options)

    cast_type(Any, call).widen = widen  # a test reads it
    return call


def call_in_float32(
    composed: Function, args: tuple[Any, ...], options: Options, widen: Widen
) -> Any:
    """Call a function with half operands cast to float32, and round its float32 results once."""
    operands = _Operands()
    args = tuple([operands.widen(a) for a in args])
    wide = {n: a if n in ("out", "dtype") else operands.widen(a) for n, a in options.items()}
    if wide.get("dtype") is None:
        target = operands.result_dtype(widen)
    else:
        target = any_dtype(composed.__name__, wide["dtype"])
        if target.compute is not target:
            wide["dtype"] = target.compute
    out = wide.pop("out", None)
    result = operands.round_results(composed(*args, **wide), target)
    return result if out is None else write_node_out(composed.__name__, out, [result._expr])


class _Operands:
    """The operands of one call: the float32 cast of each half, and the dtypes that decide."""

    def __init__(self) -> None:
        self.casts: list[tuple[Tensor, Tensor]] = []
        self.dtypes: list[DType] = []

    def widen(self, a: Any) -> Any:
        """Cast halves to float32, also in lists and tuples; record dtypes of floats."""
        if isinstance(a, Tensor):
            return self._wide_tensor(a)
        if isinstance(a, (list, tuple)):
            items = [self.widen(v) for v in a]
            if any(isinstance(v, float) for v in items):  # a list of numbers has a dtype of its own
                self.dtypes.append(dtype(float))
            return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
        if isinstance(a, np.ndarray) and a.dtype.kind in "fc":
            self.dtypes.append(dtype(a.dtype))
        return a

    def _wide_tensor(self, a: Tensor) -> Tensor:
        """Return the float32 cast of a tensor, one per tensor; record its own dtype."""
        for before, wide in self.casts:
            if before is a:  # one cast for each tensor, so that its gradient is rounded once
                return wide
        if a.dtype.kind in "fc":
            self.dtypes.append(a.dtype)
        wide = cast(a, a.dtype.compute)
        self.casts.append((a, wide))
        return wide

    def result_dtype(self, widen: Widen) -> DType | None:
        """Return the dtype of results, None if no operand is a float."""
        if not self.dtypes:
            return None
        return self.dtypes[0] if widen == "first" else reduce(promote, self.dtypes)

    def round_results(self, result: Any, target: DType | None) -> Any:
        """Cast results of float32 to a half `target`; return an operand in its own dtype."""
        if isinstance(result, tuple):
            items = [self.round_results(x, target) for x in result]
            return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
        if isinstance(result, list):
            return [self.round_results(x, target) for x in result]
        if not isinstance(result, Tensor):
            return result
        for before, wide in self.casts:
            if result is wide:  # an operand itself
                return before
        if target is None or result.dtype is not target.compute:
            return result
        return cast(result, target)
