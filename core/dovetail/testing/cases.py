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

STORED = tuple(d for d in ALL if d not in COMPLEX)
ROWS, COLUMNS = 7, 37
LARGE = 70_001  # elements: enough for a backend to share them among threads
CHEAP = 8  # rows that cost more are run in fewer layouts: their kernels take long to compile

Place = Callable[[Array, DType, Device], T.Tensor]


# --- layouts


def dense(v: Array, d: DType, on: Device) -> T.Tensor:
    return from_host(v, d, on)


def transposed(v: Array, d: DType, on: Device) -> T.Tensor:
    axes = tuple(reversed(range(v.ndim)))
    return view(from_host(np.ascontiguousarray(v.T), d, on), ("permute", axes))


def flipped(v: Array, d: DType, on: Device) -> T.Tensor:
    reversed_values = np.ascontiguousarray(np.flip(v))
    return view(
        from_host(reversed_values, d, on),
        ("slice", tuple(n - 1 for n in v.shape), v.shape, (-1,) * v.ndim),
    )


def spaced(v: Array, d: DType, on: Device) -> T.Tensor:
    """Return every second element of every axis, from 1, with other values between."""
    wide = np.resize(specials(d)[::-1], tuple(2 * n + 1 for n in v.shape))
    wide[tuple(slice(1, 2 * n, 2) for n in v.shape)] = v
    return view(from_host(wide, d, on), ("slice", (1,) * v.ndim, v.shape, (2,) * v.ndim))


def repeated(v: Array, d: DType, on: Device) -> T.Tensor:
    """Return the first row again and again: stride zero."""
    return view(from_host(np.ascontiguousarray(v[:1]), d, on), ("expand", v.shape))


def first_column(v: Array, d: DType, on: Device) -> T.Tensor:
    """Return the first column again and again: the inner stride is zero."""
    return view(from_host(np.ascontiguousarray(v[:, :1]), d, on), ("expand", v.shape))


def a_row(v: Array, d: DType, on: Device) -> T.Tensor:
    """Return a row that broadcasts."""
    return from_host(np.ascontiguousarray(v[0]), d, on)


def single(v: Array, d: DType, on: Device) -> T.Tensor:
    """0-dimensional."""
    return from_host(v.reshape(-1)[:1].reshape(()), d, on)


def empty(v: Array, d: DType, on: Device) -> T.Tensor:
    return from_host(v[:0], d, on)


LAYOUTS: dict[str, tuple[Place, Place, Place]] = {
    "contiguous": (dense, dense, dense),
    "transposed": (transposed, transposed, transposed),
    "flipped": (flipped, flipped, flipped),
    "spaced": (spaced, spaced, spaced),
    "repeated": (repeated, repeated, repeated),
    "turned and straight": (transposed, dense, flipped),
    "rows and columns": (a_row, first_column, dense),
    "0-d": (single, single, single),
    "0-d and straight": (single, dense, spaced),
    "empty": (empty, empty, empty),
}
MAIN = (bool_, float32, int64)
FEW = ("contiguous", "turned and straight", "0-d", "empty")
SOME = (*FEW, "spaced", "rows and columns")


def layouts(op: Op, d: DType) -> Sequence[str]:
    """Return the layouts in which a row is tried at a dtype.

    Each costs a compilation, so not every combination of row, dtype and layout is tried, but every
    pair. Cheap rows of three dtypes, of 1, 4 and 8 bytes, and three rows of all dtypes have all
    layouts; others have one that differs from dtype to dtype.
    """
    if op.cost >= CHEAP:
        return FEW if d is float32 else FEW[:2]
    if d in MAIN or op in (ops.ADD, ops.NEGATIVE, ops.WHERE):
        return tuple(LAYOUTS)
    return "contiguous", SOME[1 + ALL.index(d) % (len(SOME) - 1)]


# --- dtypes of rows


def operands(op: Op, d: DType) -> tuple[DType, ...]:
    """Return the dtypes of the operands of an elementwise row at `d`."""
    return (bool_, d, d) if op is ops.WHERE else (d,) * op.arity


def takes(op: Op, d: DType, attrs: Any = None) -> bool:
    try:
        op.dtypes(op.name, operands(op, d), attrs)
    except DovetailError:
        return False
    return True


def rows(kind: str) -> list[Op]:
    return [op for op in ops.TABLE.values() if op.kind == kind]


MAPS = [(op.name, d) for op in rows("map") if op is not ops.ASTYPE for d in STORED if takes(op, d)]
# Costly rows compute integers in float32: one such dtype stands for all.
MAPS = [
    (n, d)
    for n, d in MAPS
    if ops.TABLE[n].cost < CHEAP or d.kind == "f" or d is int32 or n == "pow"
]
CHEAP_MAPS = [(n, d) for n, d in MAPS if ops.TABLE[n].cost < CHEAP]


def grids(op: Op, d: DType) -> list[Array]:
    """Return an array for each operand."""
    return [sample(e, (ROWS, COLUMNS), seed) for seed, e in enumerate(operands(op, d))]


REDUCTIONS = [(op.name, d) for op in rows("reduce") for d in STORED if takes(op, d)]


def indices(values: Array, on: Device) -> T.Tensor:
    return from_host(values.astype(np.int64), int64, on)
