"""Small products of matrices: NumPy's BLAS, called by a bound launch without NumPy in between.

NumPy takes longer to find out which routine it is than a product of 32 x 32 takes. What it finds is
the same for all memory of the same shapes and strides, so it is found once: `routine` decides as
NumPy's `matmul` does, and the bits are those of `numpy.matmul`. Where NumPy would look at addresses
or at more than two dimensions, and where its BLAS is another than OpenBLAS, it is called itself.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from dovetail.extend import StridedOperand, float32, float64

ROUTINES = ("sgemm", "dgemm", "sgemv", "dgemv")
LIBRARIES = "*openblas64*"  # those in NumPy's wheels; their integers have 64 bits
ROW_MAJOR, COLUMN_MAJOR = 101, 102  # CBLAS's
AS_IT_IS, TRANSPOSED = 111, 112
LIMIT = (1 << 31) - 2  # of sizes and strides that NumPy hands on

Shape = tuple[int, ...]

_LETTERS = {float32: "s", float64: "d"}


class Routine(NamedTuple):
    """A routine of BLAS, by the kernel that calls it, and the integers that this is given."""

    kernel: str
    ints: tuple[int, ...]


def symbols() -> dict[str, int]:
    """Where the process has the routines, by their names here; empty where it has them not."""
    root = Path(np.__file__).parent
    found = [*(root.parent / "numpy.libs").glob(LIBRARIES), *root.glob(f".dylibs/{LIBRARIES}")]
    mode = getattr(os, "RTLD_NOLOAD", None)  # NumPy's own copy, or none
    if mode is None or len(found) != 1:
        return {}
    try:
        library = ctypes.CDLL(str(found[0]), mode=mode | os.RTLD_LAZY)
        return {f"cblas_{name}": _address(library, f"scipy_cblas_{name}64_") for name in ROUTINES}
    except (OSError, AttributeError):
        return {}


def _address(library: ctypes.CDLL, symbol: str) -> int:
    return int(ctypes.cast(library[symbol], ctypes.c_void_p).value or 0)


def routine(inputs: Sequence[StridedOperand], output: StridedOperand) -> Routine | None:
    """What NumPy would call for these operands, wherever they lie; None where that depends."""
    (_, _, x, xs, dtype), (_, _, y, ys, _) = inputs
    _, _, shape, outs, _ = output
    letter = _LETTERS.get(dtype)
    if letter is None or not len(x) == len(y) == len(shape) == 2:
        return None
    (m, k), n = x, y[1]
    if min(m, k, n) < 1 or max(m, k, n) > LIMIT or k == 1 or m == n == 1:
        return None
    if m == 1:
        return _with_vector(f"{letter}gemv_left", y[::-1], ys[::-1], xs[1], outs[1])
    if n == 1:
        return _with_vector(f"{letter}gemv_right", x, xs, ys[0], outs[0])
    first, second = _order(x, xs), _order(y, ys)
    if first is None or second is None or outs != (n, 1):
        return None
    if m == n and xs == ys[::-1] and first[0] != second[0]:
        return None  # perhaps a matrix times its own transpose, for which there is another routine
    ints = (first[0], second[0], m, n, k, first[1], second[1], n)
    return Routine(f"{letter}gemm", ints)


def _with_vector(kernel: str, shape: Shape, strides: Shape, step: int, to: int) -> Routine | None:
    """A matrix times a vector of the stride `step`, into one of the stride `to`."""
    rows, columns = shape
    found = _order(shape, strides)
    if found is None or not 1 <= step <= LIMIT or not 1 <= to <= LIMIT:
        return None
    order = COLUMN_MAJOR if found[0] == AS_IT_IS else ROW_MAJOR
    return Routine(kernel, (order, columns, rows, found[1], step, to))


def _order(shape: Shape, strides: Shape) -> tuple[int, int] | None:
    """Whether a matrix is transposed, and from one row to the next."""
    if _is_dense(strides[0], strides[1], shape[1]):
        return AS_IT_IS, strides[0]
    if _is_dense(strides[1], strides[0], shape[0]):
        return TRANSPOSED, strides[1]
    return None


def _is_dense(outer: int, inner: int, length: int) -> bool:
    """Whether rows of so many neighbours lie one after the other."""
    return inner == 1 and length <= outer <= LIMIT


# --- as machine code ------------------------------------------------------------------------------

_REAL = {"s": "float", "d": "double"}
_PRODUCT = (
    f"i32 {ROW_MAJOR}, i32 %t3, i32 %t4, i64 %w5, i64 %w6, i64 %w7, REAL 1.0, ptr %a0, i64 %w8, "
    "ptr %a1, i64 %w9, REAL 0.0, ptr %a2, i64 %w10"
)
_WITH_VECTOR = (
    f"i32 %t3, i32 {TRANSPOSED}, i64 %w4, i64 %w5, REAL 1.0, ptr MATRIX, i64 %w6, "
    "ptr VECTOR, i64 %w7, REAL 0.0, ptr %a2, i64 %w8"
)
# Kernels: the routine that each calls, how many integers it is given, and the arguments.
_FORMS = {
    "gemm": ("gemm", 8, _PRODUCT),
    "gemv_left": ("gemv", 6, _WITH_VECTOR.replace("MATRIX", "%a1").replace("VECTOR", "%a0")),
    "gemv_right": ("gemv", 6, _WITH_VECTOR.replace("MATRIX", "%a0").replace("VECTOR", "%a1")),
}
KERNELS = tuple(f"{letter}{form}" for letter in _REAL for form in _FORMS)


def ir(triple: str) -> str:
    """The kernels: of the addresses of both operands and of the result, and of integers."""
    parts, declared = [f'target triple = "{triple}"'], {}
    for letter, real in _REAL.items():
        for form, (name, ints, arguments) in _FORMS.items():
            given = arguments.replace("REAL", real)
            types = ", ".join(a.split()[0] for a in given.split(", "))
            called = f"cblas_{letter}{name}"
            declared[called] = f"declare void @{called}({types})"
            parts.append(_kernel(f"{letter}{form}", called, ints, given))
    return "\n".join([*parts, *declared.values()])


def _kernel(name: str, called: str, ints: int, arguments: str) -> str:
    lines = []
    for i in range(3 + ints):
        lines.append(f"  %p{i} = getelementptr i64, ptr %slots, i64 {i}")
        lines.append(f"  %w{i} = load i64, ptr %p{i}")
    lines += [f"  %a{i} = inttoptr i64 %w{i} to ptr" for i in range(3)]
    lines += [f"  %t{i} = trunc i64 %w{i} to i32" for i in (3, 4)]
    lines += [f"  call void @{called}({arguments})", "  ret void"]
    return "\n".join((f"define void @{name}(ptr %slots, i64 %begin, i64 %end) {{", *lines, "}"))
