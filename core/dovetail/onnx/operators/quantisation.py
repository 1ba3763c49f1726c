"""Quantisation to integers with a scale, and dequantisation."""

from __future__ import annotations

from typing import Any

import dovetail as dt

from ..library import dtype_of
from .matmul import round_and_clamp
from .table import OperatorCall, register_operator

Tensor = dt.Tensor


def _broadcast_scale(call: OperatorCall, v: Tensor, x: Tensor) -> Tensor:
    """Broadcast a scale to elements: one for all, for each index of an axis, or for each block."""
    if v.ndim == 0 or v.size == 1:
        return v.reshape(())
    axis, block = call.axis(call.get("axis", 1), x.ndim), call.get("block_size", 0)
    if block:
        wide = dt.repeat(v, min(block, x.shape[axis]), axis=axis)
        return wide[(*(slice(None),) * axis, slice(0, x.shape[axis]))]
    return v.reshape([-1 if d == axis else 1 for d in range(x.ndim)])


@register_operator("QuantizeLinear", folds=False)
def _quantize_linear(
    call: OperatorCall, x: Tensor, scale: Tensor, zero: Tensor | None = None
) -> Tensor:
    """Return round(x / scale) + zero, limited to the integer dtype."""
    d: Any = dt.uint8 if zero is None else zero.dtype
    if zero is None and call.get("output_dtype", 0):
        d = dtype_of(call.get("output_dtype"), "QuantizeLinear")
    wide = dt.round(x.astype(dt.float32) / _broadcast_scale(call, scale, x).astype(dt.float32))
    if zero is not None:
        wide = wide + _broadcast_scale(call, zero, x).astype(dt.float32)
    return round_and_clamp(wide, d)


@register_operator("DequantizeLinear", folds=False)
def _dequantize_linear(
    call: OperatorCall, x: Tensor, scale: Tensor, zero: Tensor | None = None
) -> Tensor:
    """Return (x - zero) * scale, in the dtype of the scale or of the attribute."""
    wide = x.astype(dt.int32)
    if zero is not None:
        wide = wide - _broadcast_scale(call, zero, x).astype(dt.int32)
    result = wide.astype(dt.float32) * _broadcast_scale(call, scale, x).astype(dt.float32)
    to = call.get("output_dtype", 0)
    return result.astype(dtype_of(to, "DequantizeLinear") if to else scale.dtype)
