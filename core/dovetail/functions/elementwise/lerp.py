"""Interpolation between two values, the one way in which the library does it."""

from __future__ import annotations

from ...ops import table as ops
from ...tensor.tensor import Tensor
from ...tensor.verbs import apply
from ..creation.constructors import of_parts
from ..datatypes import cast

__all__: list[str] = []


def lerp(a: Tensor, b: Tensor, weight: Tensor) -> Tensor:
    """Return what lies between `a` (weight 0) and `b` (weight 1), in their dtype.

    It is `a` and `b` at the ends, never leaves them, and never turns back as the weight grows.
    Where `b - a` overflows or is infinite it is the weighted sum, so that infinity is reached at
    once from a finite end. Weights are in 0..1; NaN gives NaN. It is computed in `DType.compute`.
    """
    d = a.dtype
    if d.kind == "c":
        parts = [lerp(apply(p, (a,)), apply(p, (b,)), weight) for p in (ops.REAL, ops.IMAG)]
        return of_parts(*parts)
    a, b, t = (cast(x, d.compute) for x in (a, b, weight))
    back, step = 1.0 - t, b - a
    inner = apply(ops.WHERE, (t < 0.5, a + step * t, b - step * back))
    inner = apply(ops.WHERE, (apply(ops.ISFINITE, (step,)), inner, a * back + b * t))
    inner = apply(ops.WHERE, (apply(ops.EQUAL, (t, 0.0)), a, inner))
    return cast(apply(ops.WHERE, (apply(ops.EQUAL, (t, 1.0)), b, inner)), d)
