"""Linear interpolation between two values, shared by all functions that interpolate."""

from __future__ import annotations

from ...ops import table as ops
from ...tensor.primitives import apply
from ...tensor.tensor import Tensor
from ..creation.constructors import of_parts
from ..datatypes import cast

__all__: list[str] = []


def lerp(a: Tensor, b: Tensor, weight: Tensor) -> Tensor:
    """Interpolate between `a` (weight 0) and `b` (weight 1), in their dtype.

    The result is exact at the ends, stays between them, and is monotonic in the weight. Where
    `b - a` overflows or is infinite it is the weighted sum, so that every weight above 0 of an
    infinite end gives infinity. Weights are in 0..1; NaN gives NaN. It is computed in
    `DType.compute`.
    """
    d = a.dtype
    if d.kind == "c":
        real_and_imag = [lerp(apply(p, (a,)), apply(p, (b,)), weight) for p in (ops.REAL, ops.IMAG)]
        return of_parts(*real_and_imag)
    a, b, t = (cast(x, d.compute) for x in (a, b, weight))
    back, step = 1.0 - t, b - a
    inner = apply(ops.WHERE, (t < 0.5, a + step * t, b - step * back))
    inner = apply(ops.WHERE, (apply(ops.ISFINITE, (step,)), inner, a * back + b * t))
    inner = apply(ops.WHERE, (apply(ops.EQUAL, (t, 0.0)), a, inner))
    return cast(apply(ops.WHERE, (apply(ops.EQUAL, (t, 1.0)), b, inner)), d)
