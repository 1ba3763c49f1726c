"""Arithmetic of small arrays that the host computes at once.

It serves a subclass of Tensor whose programs read most results: to record an op, and to launch a
kernel for a few elements, takes three to five times as long. Each op is rounded correctly in IEEE
arithmetic, and products are summed in the order of `ops.kernel_ops`, so the bits are those of a
kernel; a result with NaN, whose bits may differ, is left to the kernel. Results without dimensions
are NumPy's scalars. In pure Python the kernels compute everything.
"""

from __future__ import annotations

from typing import Any

from .tensor import Tensor


def compute(op: int, x: object, y: object) -> Any:
    """Return an op of two operands, or None for the general path.

    An operand is a tensor in memory, or a Python number. Both are float64, int64 or bool, and
    integers beside float64 become float64.

    - `op`: 0 to 10: add, subtract, multiply, divide, and of integers floor_divide and remainder;
      maximum, minimum; of integers and bools and, or, xor.
    """
    return None


def compare(op: int, x: object, y: object) -> Any:
    """Return a comparison of two operands, as `compute`, or None for the general path.

    - `op`: 0 to 5: <, <=, ==, !=, >, >=.
    """
    return None


def compute_unary(op: int, x: Tensor) -> Any:
    """Return a function of the elements of a tensor in memory, or None for the general path.

    - `op`: 0 to 8: negative, absolute, sqrt, square, floor, ceil, rint, trunc, invert.
    """
    return None


def update(op: int, x: Tensor, y: object, address: int) -> bool:
    """Write an op of two operands, as `compute`, into the first; return False with nothing done.

    - `address`: the host address of x's first element.
    """
    return False


def select(condition: Tensor, x: object, y: object) -> Tensor | None:
    """Return elements of `x` where a condition is True, else of `y`; None for the general path.

    - `condition`: a bool tensor of the result's shape, in memory.
    - `x`, `y`: operands as in `compute`.
    """
    return None


def multiply_matrices(x: Tensor, y: Tensor) -> Any:
    """Return the product of float64 vectors or matrices in memory; None for the general path.

    That of two vectors is NumPy's scalar.
    """
    return None
