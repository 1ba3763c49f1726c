"""Reductions of small arrays that the host computes at once: `x.sum()`, `x.max(axis=0)`.

As `host_arithmetic` it serves a subclass of Tensor whose programs read most results. Elements are
combined in the canonical order of sums (docs/numerics.md), so the bits are those of a kernel; NaN,
whose bits may differ, is left to the kernel. In pure Python the kernels compute everything.
"""

from __future__ import annotations

from typing import Any

OPS = {
    name: op
    for op, name in enumerate(
        ["sum", "prod", "max", "min", "argmax", "argmin", "any", "all", "mean", "count_nonzero"]
    )
}


def reduce(op: int, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return a reduction `f(x, axis, keepdims=...)` of a small array; None for the general path.

    The array is float64, int64 or bool, and in memory; the axis is an int or None. A result of no
    dimensions is NumPy's scalar.

    - `op`: the position in `OPS`.
    - `args`, `options`: the arguments of the call.
    """
    return None
