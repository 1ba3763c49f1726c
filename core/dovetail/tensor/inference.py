"""The Spec of an elementwise op's result, worked out once for each kind of operands."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TypeAlias, TypeVar

from .. import layout as lay
from ..arguments import BEYOND_FLOAT, shown
from ..dtypes import DType
from ..errors import DeviceError, DTypeError, ValueOverflow
from ..graph.expr import Expr, Spec, spec
from ..memo import Memo
from ..ops.table import Op
from ..recent import Recent

Range: TypeAlias = tuple[int, int, str]  # the least and the largest int, and the dtype's name
Limits: TypeAlias = tuple[Range | None, ...]  # of a Python int at each place; None elsewhere


# Of an op on operands: the result's spec, and for each operand the range that a Python int must fit
# (None in place of all, where there are no ints).
Inferred: TypeAlias = tuple[Spec, Limits | None]
SPECS = 4096  # combinations of operands whose results an operator remembers
APPLIED = 1 << 15  # and those that `apply` remembers, of all ops
Key = TypeVar("Key", bound=Hashable)
# An operator's keys are the operands' specs, or types of numbers; `apply`'s are (op, these, attrs).
of_operators: dict[Op, Recent[tuple[Spec | type, Spec | type], Inferred]] = {}
applied: Recent[tuple[object, ...], Inferred] = Recent(APPLIED)


lately: Memo[Inferred] = (
    Memo()
)  # by the op, and what the two operands are: specs, or the types of numbers
lately_of_one: Memo[Inferred] = Memo()  # by the op, the operand's spec, attrs


def inferred(
    known: Recent[Key, Inferred], key: Key, op: Op, operands: Sequence[object],
    attrs: object = None,
) -> Inferred:  # fmt: skip
    """What `infer` says, or said before, noted under `key`."""
    found = known.find(key)
    if found is None:
        found = known[key] = infer(op, operands, attrs)
    return found


def inferred_of_two(
    op: Op, a: object, kind_of_a: Spec | type, b: object, kind_of_b: Spec | type
) -> Inferred:
    """The same for an operator's two operands, each of a kind."""
    found = inferred(of_operators[op], (kind_of_a, kind_of_b), op, (a, b))
    lately.put(op, kind_of_a, kind_of_b, found)
    return found


def inferred_of_one(op: Op, a: Expr, attrs: object) -> Inferred:
    """The same for one operand that is a node."""
    found = inferred(applied, (op, a.spec, attrs), op, (a,), attrs)
    lately_of_one.put(op, a.spec, attrs, found)
    return found


def infer(op: Op, operands: Sequence[object], attrs: object) -> Inferred:
    """What is known of an elementwise op's result."""
    tensors = [a for a in operands if type(a) is Expr]
    if not tensors:
        raise DTypeError(f"{op.name}: at least one operand has to be a tensor; see dt.asarray")
    devices = {a.spec.device for a in tensors}
    if len(devices) > 1:
        names = " and ".join(sorted(map(str, devices)))
        raise DeviceError(f"{op.name}: operands are on {names}; move one with x.to(device)")
    kinds = [a.spec.dtype if type(a) is Expr else type(a) for a in operands]
    casts, result = op.dtypes(op.name, kinds, attrs)
    shapes = [a.spec.shape for a in tensors]
    shape = shapes[0] if len(set(shapes)) == 1 else lay.broadcast_shapes(op.name, *shapes)
    limits = tuple(
        _range(d) if type(a) is int else None for a, d in zip(operands, casts, strict=True)
    )
    made = spec(shape, result, tensors[0].spec.device, op.name)
    return made, limits if any(limits) else None


def _range(d: DType) -> Range:
    """The ints that take part in an op as `d`, and its name. Floats come by way of a float64."""
    if d.is_integer:
        return d.min, d.max, d.name
    return 1 - BEYOND_FLOAT, BEYOND_FLOAT - 1, d.name


def is_within(operands: Sequence[object], limits: Limits) -> bool:
    """Return True if every Python int fits the dtype it takes part in."""
    return all(
        bounds is None or not isinstance(a, int) or bounds[0] <= a <= bounds[1]
        for a, bounds in zip(operands, limits, strict=True)
    )


def with_infinities(op: Op, operands: Sequence[object], limits: Limits) -> tuple[object, ...]:
    """Return the operands with an infinity for each Python int that does not fit its dtype.

    Raises: ValueOverflow where the op needs the int itself, or its dtype has infinities.
    """
    values: list[object] = []
    for a, bounds in zip(operands, limits, strict=True):
        if bounds is None or not isinstance(a, int) or bounds[0] <= a <= bounds[1]:
            values.append(a)
        elif op.unbounded and bounds[1] < BEYOND_FLOAT - 1:
            values.append(math.inf if a > bounds[1] else -math.inf)
        else:
            low, high, name = bounds
            span = f" ({low}..{high})" if high < BEYOND_FLOAT - 1 else ""
            raise ValueOverflow(f"{op.name}: {shown(a)} does not fit {name}{span}")
    return tuple(values)
