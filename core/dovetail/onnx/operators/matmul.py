"""Products of matrices, and determinants."""

from __future__ import annotations

import dovetail as dt

from .table import OperatorCall, register_operator

Tensor = dt.Tensor


@register_operator("MatMul", folds=False)
def _matmul(call: OperatorCall, x: Tensor, y: Tensor) -> Tensor:
    """Return the matrix product."""
    return dt.matmul(x, y)


@register_operator("Gemm", folds=False)
def _gemm(call: OperatorCall, x: Tensor, y: Tensor, c: Tensor | None = None) -> Tensor:
    """Return alpha x y + beta c, with x and y transposed if the node says so."""
    x = x.permute_dims((1, 0)) if call.get("transA", 0) else x
    y = y.permute_dims((1, 0)) if call.get("transB", 0) else y
    product = _scale(dt.matmul(x, y), call.get("alpha", 1.0))
    if c is None or call.get("beta", 1.0) == 0:
        return product
    return product + _scale(c, call.get("beta", 1.0))


def _scale(x: Tensor, factor: float) -> Tensor:
    """Multiply by a factor, which is truncated to an integer for integers."""
    if factor == 1:
        return x
    return x * factor if x.dtype.kind == "f" else x * int(factor)


@register_operator("Einsum", folds=False)
def _einsum(call: OperatorCall, *xs: Tensor) -> Tensor:
    """Return the sum of products that the equation describes."""
    return dt.einsum(call.get("equation").replace(" ", ""), *xs)


@register_operator("Det", folds=False)
def _det(call: OperatorCall, x: Tensor) -> Tensor:
    """Return the determinant of each matrix."""
    return dt.linalg.det(x)


def subtract_zero_point(x: Tensor, zero: Tensor | None, rows: bool = False) -> Tensor:
    """Return quantised values as int32 minus the zero point; `rows`: one for each row."""
    wide = x.astype(dt.int32)
    if zero is None:
        return wide
    off = zero.astype(dt.int32)
    if rows and off.ndim == 1 and off.shape[0] > 1:
        off = dt.expand_dims(off, axis=1)
    return wide - off


@register_operator("MatMulInteger", folds=False)
def _matmul_integer(
    call: OperatorCall,
    x: Tensor,
    y: Tensor,
    x_zero: Tensor | None = None,
    y_zero: Tensor | None = None,
) -> Tensor:
    """Return the int32 product of integers after subtraction of their zero points."""
    return dt.matmul(subtract_zero_point(x, x_zero, True), subtract_zero_point(y, y_zero))


def round_and_clamp(x: Tensor, d: dt.DType) -> Tensor:
    """Round, clip to the range of an integer dtype, and cast to it."""
    info = dt.iinfo(d)
    return dt.clip(dt.round(x), float(info.min), float(info.max)).astype(dt.int64).astype(d)


@register_operator("QLinearMatMul", folds=False)
def _qlinear_matmul(
    call: OperatorCall,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    y: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    scale: Tensor,
    zero: Tensor,
) -> Tensor:
    """Multiply quantised matrices, and requantise the product."""
    product = dt.matmul(
        subtract_zero_point(x, x_zero, True), subtract_zero_point(y, y_zero)
    ).astype(dt.float32)
    factor = (
        _to_column(x_scale, dt.float32) * y_scale.astype(dt.float32) / _to_column(scale, dt.float32)
    )
    scaled = dt.round(product * factor) + _to_column(zero, dt.float32)
    return round_and_clamp(scaled, zero.dtype)


def _to_column(x: Tensor, d: dt.DType) -> Tensor:
    """Cast to `d`, and make a vector of several elements a column."""
    x = x.astype(d)
    return dt.expand_dims(x, axis=1) if x.ndim == 1 and x.shape[0] > 1 else x
