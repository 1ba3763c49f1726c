"""Operands of the kit's cases: dtypes that a row takes, and tensors in memory layouts.

Each layout function returns a tensor of the given values in memory of a certain arrangement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..device_class import Device
from ..dtypes import ALL, COMPLEX, DType, bool_, float32, int32, int64
from ..errors import DovetailError
from ..ops import table as ops
from ..ops.table import Op
from ..tensor import tensor as T
from ..tensor.host import from_host
from ..tensor.primitives import view
from .values import Array, sample, specials

REAL_DTYPES = tuple(d for d in ALL if d not in COMPLEX)
ROWS, COLUMNS = 7, 37
THREADED_ELEMENTS = 70_001  # elements: enough for a backend to share them among threads
CHEAP_COST_MAX = (
    8  # rows that cost more are run in fewer layouts: their kernels take long to compile
)

Arrangement = Callable[[Array, DType, Device], T.Tensor]


# --- layouts


def dense(v: Array, d: DType, on: Device) -> T.Tensor:
    """Copy the array to a contiguous tensor on `on`."""
    return from_host(v, d, on)


def transposed(v: Array, d: DType, on: Device) -> T.Tensor:
    """Return a tensor equal to `v` in memory with the axes in reverse order."""
    axes = tuple(reversed(range(v.ndim)))
    return view(from_host(np.ascontiguousarray(v.T), d, on), ("permute", axes))


def flipped(v: Array, d: DType, on: Device) -> T.Tensor:
    """Return a tensor equal to `v` with a negative stride on every axis."""
    reversed_values = np.ascontiguousarray(np.flip(v))
    return view(
        from_host(reversed_values, d, on),
        ("slice", tuple(n - 1 for n in v.shape), v.shape, (-1,) * v.ndim),
    )


def spaced(v: Array, d: DType, on: Device) -> T.Tensor:
    """Return a tensor equal to `v` as every second element of a larger one, from element 1."""
    wide = np.resize(specials(d)[::-1], tuple(2 * n + 1 for n in v.shape))
    wide[tuple(slice(1, 2 * n, 2) for n in v.shape)] = v
    return view(from_host(wide, d, on), ("slice", (1,) * v.ndim, v.shape, (2,) * v.ndim))


def repeated(v: Array, d: DType, on: Device) -> T.Tensor:
    """Return the first row repeated to the shape of `v`, with stride zero along axis 0."""
    return view(from_host(np.ascontiguousarray(v[:1]), d, on), ("expand", v.shape))


def first_column(v: Array, d: DType, on: Device) -> T.Tensor:
    """Return the first column repeated to the shape of `v`, with stride zero along axis 1."""
    return view(from_host(np.ascontiguousarray(v[:, :1]), d, on), ("expand", v.shape))


def broadcast_row(v: Array, d: DType, on: Device) -> T.Tensor:
    """Return the first row alone, without the first axis, so that its use broadcasts."""
    return from_host(np.ascontiguousarray(v[0]), d, on)


def zero_dimensional(v: Array, d: DType, on: Device) -> T.Tensor:
    """Return the first element as a 0-d tensor."""
    return from_host(v.reshape(-1)[:1].reshape(()), d, on)


def empty(v: Array, d: DType, on: Device) -> T.Tensor:
    """Return a tensor of zero rows, with the other axes of `v`."""
    return from_host(v[:0], d, on)


LAYOUTS: dict[str, tuple[Arrangement, Arrangement, Arrangement]] = {
    "contiguous": (dense, dense, dense),
    "transposed": (transposed, transposed, transposed),
    "flipped": (flipped, flipped, flipped),
    "spaced": (spaced, spaced, spaced),
    "repeated": (repeated, repeated, repeated),
    "turned and straight": (transposed, dense, flipped),
    "rows and columns": (broadcast_row, first_column, dense),
    "0-d": (zero_dimensional, zero_dimensional, zero_dimensional),
    "0-d and straight": (zero_dimensional, dense, spaced),
    "empty": (empty, empty, empty),
}
MAIN_DTYPES = (bool_, float32, int64)
BASIC_LAYOUTS = ("contiguous", "turned and straight", "0-d", "empty")
VARIED_LAYOUTS = (*BASIC_LAYOUTS, "spaced", "rows and columns")


def layouts(op: Op, d: DType) -> Sequence[str]:
    """Return the names of the layouts in which a row is tried at a dtype.

    Each costs a compilation, so not every combination of row, dtype and layout is tried, but every
    pair. Cheap rows of three dtypes, of 1, 4 and 8 bytes, and three rows of all dtypes have all
    layouts; others have one that differs from dtype to dtype.
    """
    if op.cost >= CHEAP_COST_MAX:
        return BASIC_LAYOUTS if d is float32 else BASIC_LAYOUTS[:2]
    if d in MAIN_DTYPES or op in (ops.ADD, ops.NEGATIVE, ops.WHERE):
        return tuple(LAYOUTS)
    return "contiguous", VARIED_LAYOUTS[1 + ALL.index(d) % (len(VARIED_LAYOUTS) - 1)]


# --- dtypes of rows


def operands(op: Op, d: DType) -> tuple[DType, ...]:
    """Return the dtypes of the operands of an elementwise row at `d`."""
    return (bool_, d, d) if op is ops.WHERE else (d,) * op.arity


def accepts_dtype(op: Op, d: DType, attrs: Any = None) -> bool:
    """Return True if an elementwise row of the op table takes operands of `d`."""
    try:
        op.dtypes(op.name, operands(op, d), attrs)
    except DovetailError:
        return False
    return True


def rows(kind: str) -> list[Op]:
    """Return the rows of the op table of a kind, such as "map" or "reduce"."""
    return [op for op in ops.TABLE.values() if op.kind == kind]


MAPS = [
    (op.name, d)
    for op in rows("map")
    if op is not ops.ASTYPE
    for d in REAL_DTYPES
    if accepts_dtype(op, d)
]
# Costly rows compute integers in float32: one such dtype stands for all.
MAPS = [
    (n, d)
    for n, d in MAPS
    if ops.TABLE[n].cost < CHEAP_COST_MAX or d.kind == "f" or d is int32 or n == "pow"
]
CHEAP_MAPS = [(n, d) for n, d in MAPS if ops.TABLE[n].cost < CHEAP_COST_MAX]


def grids(op: Op, d: DType) -> list[Array]:
    """Return ROWS x COLUMNS special and ordinary values for each operand of a row at `d`."""
    return [sample(e, (ROWS, COLUMNS), seed) for seed, e in enumerate(operands(op, d))]


REDUCTIONS = [(op.name, d) for op in rows("reduce") for d in REAL_DTYPES if accepts_dtype(op, d)]


def indices(values: Array, on: Device) -> T.Tensor:
    """Copy the array to an int64 tensor on `on`."""
    return from_host(values.astype(np.int64), int64, on)
