"""Floating-point operations of an op, counted from the shapes of its operands and its result."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..dtypes import DType
from ..layout import Shape
from . import table
from .table import TABLE

# Elementwise rows that move or select values.
_MOVES = frozenset({table.ASTYPE, table.WHERE})
_RUNNING = frozenset({table.CUMULATIVE_SUM, table.CUMULATIVE_PROD, table.CUMULATIVE_LOGSUMEXP})


def count_flops(name: str, operands: Sequence[Shape], shape: Shape, dtype: DType) -> int:
    """Return the number of floating-point operations of an op; 0 for a name without a row.

    `operands`: the shapes of its tensors. `shape`, `dtype`: those of its result. A multiply-add of
    a product or a convolution counts as 2. An elementwise op counts as 1 for each element of its
    result, a reduction or running sum as 1 for each element that it reads. Moves, comparisons,
    integers, sorts, gathers and random numbers count as 0; complex numbers count as real ones.
    """
    op = TABLE.get(name)
    if op is None or dtype.kind not in "fc":
        return 0
    if op.kind == "map":
        return 0 if op in _MOVES or not op.cost else math.prod(shape)
    if op.kind == "reduce" or op in _RUNNING:
        return math.prod(operands[0])
    if op is table.MATMUL:
        return 2 * math.prod(shape) * operands[0][-1]
    if op is table.RECURRENCE:
        return 2 * math.prod(shape)
    if op in (table.CONVOLUTION, table.CONVOLUTION_INPUT, table.CONVOLUTION_WEIGHT):
        return _count_convolution(op, operands, shape)
    return 0


def _count_convolution(op: table.Op, operands: Sequence[Shape], shape: Shape) -> int:
    """Return the operations of y[n, o, p] = sum of x[n, c, ...] w[o, c, i], whichever is computed.

    Each element of y takes part in one multiply-add for each element of w[o]; padding counts.
    """
    if op is table.CONVOLUTION:
        y, w = shape, operands[1]
    elif op is table.CONVOLUTION_INPUT:
        y, w = operands[:2]
    else:
        y, w = operands[1], shape
    biases = math.prod(shape) * (len(operands) - 2)
    return 2 * math.prod(y) * math.prod(w[1:]) + biases
