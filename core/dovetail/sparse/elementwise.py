"""Elementwise ops on the stored values, for ops with f(0, ...) = 0; others would be dense.

Several sparse operands are aligned to the union of their positions, or for products to the
intersection. With a strided operand, only ops that give 0 wherever the sparse operand is 0 have a
rule: multiply, divide, logical_and, bitwise_and and lcm.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

import dovetail as dt
from dovetail.extend import (
    Capabilities,
    DType,
    KernelBuilder,
    Op,
    apply,
    arguments,
    broadcast_shapes,
    const,
    gather_at,
    int64,
    interpret,
    legalize,
    rows_at,
)

from .merge import intersection, union
from .tensor import COO, apply_to_values, coo
from .view_rules import fully_sparse, view

Tensor = dt.Tensor

# Algebraic properties that the op table does not have and f(0, ...) = 0 does not imply. For
# products, an element that is not stored times infinity is 0.
LINEAR = frozenset(("positive", "copy", "negative"))  # f(a + b) = f(a) + f(b)
PRODUCTS = frozenset(("multiply", "logical_and", "bitwise_and", "lcm"))  # 0 if an operand is 0
SCALINGS = frozenset(("multiply", "divide"))  # by a number that is neither 0, infinite nor NaN


def elementwise(op: Op, args: Sequence[Any], attrs: Any) -> COO:
    """Return an elementwise op of operands of which at least one is sparse, as COO.

    Raises: LayoutError if the result would be dense; ShapeError, DTypeError, DeviceError.
    """
    _require_one_device(op, args)
    strided = [a for a in args if isinstance(a, Tensor) and not isinstance(a, COO)]
    if strided:
        return _apply_with_strided(op, args, attrs)
    _require_zero(op, args, attrs)
    sparse = [a for a in args if isinstance(a, COO)]
    if len(sparse) > 1:
        return _apply_to_several(op, args, attrs)
    (x,) = sparse
    if op.name in LINEAR:
        return apply_to_values(op, x, attrs)
    x = x.coalesce()
    values = apply(op, [x.values() if isinstance(a, COO) else a for a in args], attrs)
    return coo(x.pattern, values)


def _require_one_device(op: Op, args: Sequence[Any]) -> None:
    """Raise DeviceError if the tensors are on several devices."""
    devices = {a.device for a in args if isinstance(a, Tensor)}
    if len(devices) > 1:
        names = " and ".join(sorted(map(str, devices)))
        raise dt.DeviceError(f"{op.name}: operands are on {names}; move one with x.to(device)")


# --- the result at positions that are not stored -------------------------------------------------


def _require_zero(op: Op, args: Sequence[Any], attrs: Any) -> None:
    """Raise LayoutError if the op of zeros and the given numbers is not 0."""
    if op.name in SCALINGS and len(args) == 2 and _is_finite_nonzero(args[1]):
        return
    kinds = tuple(a.dtype if isinstance(a, COO) else type(a) for a in args)
    casts, _ = op.dtypes(op.name, kinds, attrs)
    numbers = tuple(0 if isinstance(a, COO) else a for a in args)
    nonzero = _evaluate_constants(op, tuple(map(_Constant, numbers, casts)))
    if nonzero:
        operands = ", ".join("0" if isinstance(a, COO) else arguments.shown(a) for a in args)
        raise dt.LayoutError(
            f"{op.name}: the result would be dense, because {op.name}({operands}) is {nonzero}; "
            "convert the sparse operand with x.to_dense()"
        )


def _is_finite_nonzero(number: Any) -> bool:
    """Return True for an int or a float that is neither 0 nor infinite nor NaN."""
    return isinstance(number, (int, float)) and number != 0 and abs(number) < float("inf")


class _Constant:
    """A number of a dtype, as a cache key: 0, 0.0, -0.0 and False are four different keys."""

    def __init__(self, number: Any, dtype: DType) -> None:
        self.number, self.dtype = number, dtype.compute
        self.key = (arguments.shown(number), self.dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Constant) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def fits(self) -> bool:
        """True if the dtype can hold the number; if not, the op itself raises the error."""
        d, number = self.dtype, self.number
        if d.kind in "iu":
            return bool(d.min <= number <= d.max)
        return not isinstance(number, int) or abs(number) < arguments.BEYOND_FLOAT


@lru_cache(1024)
def _evaluate_constants(op: Op, operands: tuple[_Constant, ...]) -> str:
    """Return the op's result for these numbers as text, or "" if it is 0; uses the interpreter."""
    if not all(x.fits for x in operands):
        return ""
    value = op.expression(*(const(x.number, x.dtype) for x in operands))
    builder = KernelBuilder(op.name)
    out = builder.buffer("out", value.dtype, "w")
    builder.store(out, builder.axis(const(1, int64)), value)
    result = np.zeros(1, value.dtype.__numpy_dtype__)
    interpret(legalize(builder.build(), Capabilities()), [result], (), (), (1,))
    return "" if result[0] == 0 else str(result[0])


# --- several sparse operands ---------------------------------------------------------------------


def _apply_to_several(op: Op, args: Sequence[Any], attrs: Any) -> COO:
    """Return an op of several sparse operands, at the union or intersection of positions."""
    sparse = align([a for a in args if isinstance(a, COO)], op.name)
    joint = intersection if op.name in PRODUCTS and len(sparse) == 2 else union
    pattern, values = joint(sparse)
    next_values = iter(values)
    return coo(
        pattern, apply(op, [next(next_values) if isinstance(a, COO) else a for a in args], attrs)
    )


def align(tensors: Sequence[COO], name: str) -> list[COO]:
    """Return the tensors coalesced, with one shape and one number of sparse dimensions."""
    shape = broadcast_shapes(name, *(x.shape for x in tensors))
    expanded = [x if x.shape == shape else view(x, ("expand", shape)) for x in tensors]
    if len({x.sparse_dim() for x in expanded}) > 1:
        expanded = [fully_sparse(x) for x in expanded]
    return [x.coalesce() for x in expanded]


# --- a strided operand ---------------------------------------------------------------------------


def _apply_with_strided(op: Op, args: Sequence[Any], attrs: Any) -> COO:
    """Apply a product or quotient at the entries. Raises: LayoutError for ops with dense results.

    Elements that are not stored stay 0, even if the strided operand is 0, infinite or NaN there.
    """
    fits = op.name in PRODUCTS or (op.name == "divide" and isinstance(args[0], COO))
    if not fits or len(args) != 2:
        raise dt.LayoutError(
            f"{op.name}: the result of a sparse_coo and a strided tensor would be dense; convert "
            "the sparse operand with x.to_dense()"
        )
    first = isinstance(args[0], COO)
    x, y = (args[0], args[1]) if first else (args[1], args[0])
    shape = broadcast_shapes(op.name, x.shape, y.shape)
    x = (x if x.shape == shape else view(x, ("expand", shape))).coalesce()
    at_entries = elements_at_entries(y, x)
    pair = (x.values(), at_entries) if first else (at_entries, x.values())
    return coo(x.pattern, apply(op, pair, attrs))


def elements_at_entries(y: Tensor, x: COO) -> Tensor:
    """Return the elements (for a hybrid tensor the blocks) of strided `y` at the entries of `x`.

    `y` must broadcast to x's shape.
    """
    dims, p = x.sparse_dim(), x.pattern
    lead = x.ndim - y.ndim
    if not y.ndim or lead >= dims:
        return y
    dense = range(dims, x.ndim)
    at = {
        d - lead: p.coords[d].reshape(p.count, *(1,) * len(dense))
        for d in range(lead, dims)
        if y.shape[d - lead] != 1
    }
    if not at:
        return y.reshape(1, *y.shape[dims - lead :])
    shape = (p.count, *(y.shape[d - lead] for d in dense))
    return gather_at(y, at, shape, (-1, *(d - lead for d in dense)))


def softmax(x: COO, axis: int) -> COO:
    """Return softmax over the entries along an axis; missing elements count as minus infinity."""
    return _softmax(x, axis, logarithm=False)


def log_softmax(x: COO, axis: int) -> COO:
    """Return the logarithm of `softmax` at the entries."""
    return _softmax(x, axis, logarithm=True)


def _softmax(x: COO, axis: int, logarithm: bool) -> COO:
    """Return softmax, or its logarithm, over the entries along a sparse or a dense axis."""
    x = x.coalesce()
    p, values = x.pattern, _cast_to_float(x.values(), "log_softmax" if logarithm else "softmax")
    if axis >= x.sparse_dim():
        at = axis - x.sparse_dim() + 1
        return coo(p, dt.log_softmax(values, at) if logarithm else dt.softmax(values, at))
    if not p.count:
        return coo(p, values)
    other_axes = [d for d in range(len(p.shape)) if d != axis]
    order = None if axis == len(p.shape) - 1 else p.order_by(other_axes)
    runs = p.runs(other_axes, order)
    owner = runs.owners()
    shifted = values - rows_at(runs.combine("max", values.detach()), owner)
    e = dt.exp(shifted)
    total = runs.combine("sum", e)
    if logarithm:
        return coo(p, shifted - rows_at(dt.log(total), owner))
    return coo(p, e / rows_at(total, owner))


def _cast_to_float(values: Tensor, name: str) -> Tensor:
    """Return floats unchanged and integers as float32. Raises: DTypeError that names `name`."""
    if values.dtype.kind not in "iuf":
        hint = "dt.real, dt.imag or dt.abs" if values.dtype.kind == "c" else "astype()"
        raise dt.DTypeError(
            f"{name}: expected integers or floats, got {values.dtype.name}; use {hint}"
        )
    return values if values.dtype.kind == "f" else values.astype(dt.float32)
