"""Convolutions and their gradients, for operands that fit: the base of `dt.nn`'s functions.

Inputs (..., n, c, *axes) and weights (..., o, c // groups, *taps) give (..., n, o, *positions).
"""

from __future__ import annotations

from ...dtypes import DType
from ...graph.expr import Expr, node, spec
from ...layout import Shape
from ...ops import table as ops
from ...ops.convolution import Geometry
from ...tensor.tensor import Tensor, create_tensor, strided


def _convolution_expr(
    op: ops.Op, operands: tuple[Tensor, ...], shape: Shape, geometry: Geometry
) -> Tensor:
    """Record one of the convolution ops, with a result of this shape; return its tensor."""
    args: tuple[Expr, ...] = tuple([strided(op.name, x)._expr for x in operands])
    dtype: DType = args[0].spec.dtype
    return create_tensor(node(op, args, spec(shape, dtype, args[0].spec.device), geometry))


def convolved(
    x: Tensor, w: Tensor, bias: Tensor | None, positions: Shape, geometry: Geometry
) -> Tensor:
    """Return the pending convolution of `x`, with so many positions along each axis.

    - `x`: the input.
    - `w`: the weights.
    - `bias`: the bias, or None.
    - `positions`: the number of positions along each axis.
    - `geometry`: stride, padding, dilation and groups.
    """
    operands = (x, w) if bias is None else (x, w, bias)
    lead = x.ndim - len(positions) - 1
    shape = (*x.shape[:lead], w.shape[lead - 1], *positions)
    return _convolution_expr(ops.CONVOLUTION, operands, shape, geometry)


def transposed(y: Tensor, w: Tensor, sizes: Shape, geometry: Geometry) -> Tensor:
    """Return the gradient of a convolution by its input of these sizes, for a gradient `y`.

    - `y`: the gradient of the result.
    - `w`: the weights.
    - `sizes`: the sizes of the input along each axis.
    - `geometry`: stride, padding, dilation and groups.
    """
    lead = y.ndim - len(sizes) - 1
    channels = w.shape[lead] * geometry.groups
    shape = (*y.shape[:lead], channels, *sizes)
    return _convolution_expr(ops.CONVOLUTION_INPUT, (y, w), shape, geometry)


def weight_gradient(x: Tensor, y: Tensor, taps: Shape, geometry: Geometry) -> Tensor:
    """Return the gradient of a convolution by its weights, for a gradient `y`."""
    lead = x.ndim - len(taps) - 1
    channels = x.shape[lead] // geometry.groups
    shape = (*x.shape[: lead - 1], y.shape[lead], channels, *taps)
    return _convolution_expr(ops.CONVOLUTION_WEIGHT, (x, y), shape, geometry)
