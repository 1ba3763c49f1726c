"""Inference of the Spec of an elementwise op's result, cached by the kinds of its operands."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TypeAlias, TypeVar

from .. import layout as lay
from ..argument_checks import BEYOND_FLOAT, shown
from ..dtypes import BY_NAME, DType
from ..environment import warn_user
from ..errors import ArgumentError, DeviceError, DTypeError, ValueOverflowError
from ..graph.expr import Expr, Spec, spec
from ..identity_cache import IdentityCache
from ..lru_cache import LRUCache
from ..ops.table import Op

# The smallest and the largest int that are recorded without a further check, and the dtype's name.
Range: TypeAlias = tuple[int, int, str]
Limits: TypeAlias = tuple[Range | None, ...]  # one per operand; None unless it is a Python int


# The result's spec, and the limits of Python ints (None if no operand is an int).
Inferred: TypeAlias = tuple[Spec, Limits | None]
OPERATOR_SPECS_MAX = 4096  # cached combinations of operands per operator
APPLY_CACHE_MAX = 1 << 15  # cached combinations of `apply`, for all ops
Key = TypeVar("Key", bound=Hashable)
# An operator's keys are the operands' specs, or types of numbers; `apply`'s: (op, these, attrs).
operator_caches: dict[Op, LRUCache[tuple[Spec | type, Spec | type], Inferred]] = {}
apply_cache: LRUCache[tuple[object, ...], Inferred] = LRUCache(APPLY_CACHE_MAX)


# by op and the two operands' specs, or types of numbers
recent_binary: IdentityCache[Inferred] = IdentityCache()
recent_unary: IdentityCache[Inferred] = IdentityCache()  # by op, the operand's spec, attrs


def infer_cached(
    cache: LRUCache[Key, Inferred],
    key: Key,
    op: Op,
    operands: Sequence[object],
    attrs: object = None,
) -> Inferred:
    """Return the cached result of `infer` for `key`; call `infer` and cache it if missing."""
    result = cache.find(key)
    if result is None:
        result = cache[key] = infer(op, operands, attrs)
    return result


def infer_binary(
    op: Op, a: object, kind_of_a: Spec | type, b: object, kind_of_b: Spec | type
) -> Inferred:
    """Infer the result of an operator on two operands, and cache it for the fast path."""
    result = infer_cached(operator_caches[op], (kind_of_a, kind_of_b), op, (a, b))
    recent_binary.put(op, kind_of_a, kind_of_b, result)
    return result


def infer_unary(op: Op, a: Expr, attrs: object) -> Inferred:
    """Infer the result of an op on one node, and cache it for the fast path."""
    result = infer_cached(apply_cache, (op, a.spec, attrs), op, (a,), attrs)
    recent_unary.put(op, a.spec, attrs, result)
    return result


def infer(op: Op, operands: Sequence[object], attrs: object) -> Inferred:
    """Infer an elementwise op's result spec and the limits of its Python ints; no caching.

    Raises: DTypeError, also without a tensor; DeviceError, ShapeError.
    """
    tensors = [a for a in operands if type(a) is Expr]
    if not tensors:
        raise DTypeError(f"{op.name}: at least one operand must be a tensor; use dt.asarray")
    devices = {a.spec.device for a in tensors}
    if len(devices) > 1:
        names = " and ".join(sorted(map(str, devices)))
        raise DeviceError(f"{op.name}: operands are on {names}; move one with x.to(device)")
    kinds = [a.spec.dtype if type(a) is Expr else type(a) for a in operands]
    casts, result = op.dtypes(op.name, kinds, attrs)
    shapes = [a.spec.shape for a in tensors]
    shape = shapes[0] if len(set(shapes)) == 1 else lay.broadcast_shapes(op.name, *shapes)
    limits = tuple(
        [
            _int_range(d, op.unchecked_min if k == 1 else None) if type(a) is int else None
            for k, (a, d) in enumerate(zip(operands, casts, strict=True))
        ]
    )
    result_spec = spec(shape, result, tensors[0].spec.device, op.name)
    return result_spec, limits if any(limits) else None


def _int_range(d: DType, unchecked_min: int | None) -> Range:
    """Return the range of ints that an operand of dtype `d` accepts unchecked, and d's name."""
    if d.is_integer:
        return d.min if unchecked_min is None else max(d.min, unchecked_min), d.max, d.name
    return 1 - BEYOND_FLOAT, BEYOND_FLOAT - 1, d.name


def is_within(operands: Sequence[object], limits: Limits) -> bool:
    """Return True if each Python int operand lies within its limits."""
    return all(
        bounds is None or not isinstance(a, int) or bounds[0] <= a <= bounds[1]
        for a, bounds in zip(operands, limits, strict=True)
    )


def replace_overflowing_ints(
    op: Op, operands: Sequence[object], limits: Limits
) -> tuple[object, ...]:
    """Return the operands with an infinity for each Python int that does not fit its dtype.

    Raises: ValueOverflowError if the op needs the int itself, or its dtype has infinities;
    ArgumentError for a negative power of integers. Warns of a division of integers by 0.
    """
    values: list[object] = []
    for a, bounds in zip(operands, limits, strict=True):
        if bounds is None or not isinstance(a, int) or bounds[0] <= a <= bounds[1]:
            values.append(a)
        elif op.unbounded and bounds[1] < BEYOND_FLOAT - 1:
            values.append(math.inf if a > bounds[1] else -math.inf)
        elif bounds[1] < BEYOND_FLOAT - 1 and BY_NAME[bounds[2]].min <= a <= bounds[1]:
            _check_int(op.name, a)
            values.append(a)
        else:
            _, high, name = bounds
            span = f" ({BY_NAME[name].min}..{high})" if high < BEYOND_FLOAT - 1 else ""
            raise ValueOverflowError(f"{op.name}: {shown(a)} does not fit {name}{span}")
    return tuple(values)


def _check_int(op: str, value: int) -> None:
    """Check an int that is the second operand of an op with `unchecked_min` on integers.

    Raises: ArgumentError for a negative power. Warns of a division by 0.
    """
    if op == "pow":
        raise ArgumentError(
            f"pow: an integer must not be raised to the negative power {value}; use "
            f"x.astype(dt.float64) ** {value}"
        )
    if value == 0:
        warn_user(f"{op}: a division of integers by 0 gives 0", RuntimeWarning)
