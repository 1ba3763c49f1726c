"""The primitives of which all functions of the public namespace are composed.

These are `apply` (an elementwise op), `reduce`, `view` (a move that shares memory) and `in_place`;
`dispatch` calls the rule of another layout for a primitive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from .. import callbacks
from .. import layout as lay
from ..argument_checks import DIMENSIONS
from ..compat.keywords import MISSING
from ..dtypes import complex64, complex128, float64
from ..engine.traced_numbers import TracedFloat
from ..graph.expr import Expr, Spec, binary_node, leaf, node, spec, storage_of, tape_of
from ..identity_cache import IdentityCache
from ..layout import Move, Shape, StridedView
from ..lru_cache import LRUCache
from ..ops import table as ops
from ..ops.table import Op
from ..settings import flags
from .c_fields import expr_of, is_strided, keep_class, record_alias
from .immediate import compute_unary
from .promotion import PYTHON_NUMBERS, as_operand, number_as_tensor, number_of_traced
from .result_type import (
    apply_cache,
    infer_cached,
    infer_unary,
    is_within,
    recent_binary,
    recent_unary,
    replace_overflowing_ints,
)
from .slicing import basic_leaf
from .tensor import OtherLayout, Size, Tensor, attach_lazy_storage, create_tensor
from .writes import (
    full_complex,
    require_strided_target,
    write_node_out,
    write_out,
    write_result,
)

# a Tensor is one of another layout
Argument: TypeAlias = Expr | Tensor | bool | int | float | complex

_young_inferred = apply_cache.young  # the cache keeps this dict object
_FULL_SLICES = (slice(None),) * DIMENSIONS


# --- other layouts --------------------------------------------------------------------------------


def dispatch(verb: str, name: str, operands: Sequence[object], *args: object) -> Tensor:
    """Run the rule for `verb` of the first operand with a layout other than strided.

    name: the function in whose name errors are raised.
    Raises: LayoutError if that layout has no such rule.
    """
    x, *_ = [x for x in operands if isinstance(x, Tensor) and not is_strided(x)]
    other: OtherLayout = x  # type: ignore[assignment]  # a proper subclass of Tensor is a LayoutTensor
    return other.run_rule(verb, name, *args)


# --- elementwise ops ------------------------------------------------------------------------------


def _is_plain(a: object) -> bool:
    """Return True for a strided tensor and for a number of a built-in Python type."""
    return is_strided(a) or type(a) in PYTHON_NUMBERS


def _apply_cached_binary(op: Op, a: Expr, other: object) -> Tensor | None:
    """Record an op of a node and a tensor or number if its spec is cached, else return None."""
    if is_strided(other):
        b = expr_of(other)
        inferred = recent_binary.get(op, a.spec, b.spec)
        if inferred is None:
            return None
        return keep_class(create_tensor(binary_node(op, a, b, inferred[0])), other)
    if type(other) is Size:
        other = other.value
    inferred = recent_binary.get(op, a.spec, type(other))
    if inferred is None or inferred[1] is not None:  # the number must be checked against limits
        return None
    return create_tensor(binary_node(op, a, other, inferred[0]))


def apply(
    op: Op, args: Sequence[object], attrs: object = None, out: Tensor | None = None
) -> Tensor:
    """Record an elementwise op on tensors and Python numbers, broadcast, or write it into `out`.

    - `op`: a row of the op table, of kind "map".
    - `args`: the operands: tensors and Python numbers.
    - `attrs`: the static attributes of this use.

    Raises: ShapeError, DTypeError, DeviceError, ValueOverflowError, naming op and operands.
    """
    if out is None and is_strided(args[0]):
        e = expr_of(args[0])
        if len(args) == 3 and attrs is None:
            result = _apply_cached_ternary(op, args)
            if result is not None:
                return result
        if len(args) == 1:
            inferred = recent_unary.get(op, e.spec, attrs)
            if inferred is None:
                inferred = infer_unary(op, e, attrs)
            return keep_class(_record_unary(op, e, inferred[0], attrs), args[0])
        if len(args) == 2 and attrs is None:
            result = _apply_cached_binary(op, e, args[1])
            if result is not None:
                return keep_class(result, args[0])
    return _apply_general(op, args, attrs, out)


def _record_unary(op: Op, e: Expr, s: Spec, attrs: object) -> Tensor:
    """Record an op of one node, or compute it at once for a single number."""
    if len(s.shape) == 0 and attrs is None:
        result = compute_unary(op, e, s)
        if result is not None:
            return result
    return create_tensor(node(op, (e,), s, attrs))


def apply_one(op: Op, x: object, out: Tensor | None) -> Tensor:
    """Record an op of one operand, or write its result into `out`; a fast path of `apply`."""
    if flags.has_autocast and out is None:
        x = callbacks.autocast_operand(op.name, x)
    if out is None and is_strided(x):
        e = expr_of(x)
        inferred = recent_unary.get(op, e.spec, None)
        if inferred is None:
            inferred = infer_unary(op, e, None)
        return keep_class(_record_unary(op, e, inferred[0], None), x)
    return _apply_general(op, (x,), None, out)


def apply_two(op: Op, x1: object, x2: object, out: Tensor | None) -> Tensor:
    """Record an op of two operands, or write its result into `out`; a fast path of `apply`."""
    if out is None and is_strided(x1):
        result = _apply_cached_binary(op, expr_of(x1), x2)
        if result is not None:
            return keep_class(result, x1)
    return _apply_general(op, (x1, x2), None, out)


def apply_cached(
    ops_by_key: IdentityCache[Op], key: object, x1: object, x2: object, out: Tensor | None
) -> Tensor | None:
    """Record the op that is cached for `key` and the operands' specs; return None without one.

    `x2`: MISSING if there is one operand.
    """
    if not is_strided(x1):
        return None
    if x2 is MISSING:
        op = ops_by_key.get(key, expr_of(x1).spec)
        return None if op is None else apply_one(op, x1, out)
    kind = expr_of(x2).spec if is_strided(x2) else type(x2)
    op = ops_by_key.get(key, expr_of(x1).spec, kind)
    return None if op is None else apply_two(op, x1, x2, out)


def _apply_cached_ternary(op: Op, args: Sequence[object]) -> Tensor | None:
    """Record an op of three tensors and numbers if its spec is cached, else return None."""
    operands: list[Argument] = []
    key: list[object] = []
    for a in args:
        if is_strided(a):
            e = expr_of(a)
            operands.append(e)
            key.append(e.spec)
        elif type(a) is float or type(a) is int or type(a) is bool:
            operands.append(a)
            key.append(type(a))
        else:
            return None
    inferred = _young_inferred.get((op, tuple(key), None))
    if inferred is None or inferred[1] is not None:  # the numbers must be checked against limits
        return None
    result = create_tensor(node(op, tuple(operands), inferred[0], None))
    for a in args:
        keep_class(result, a)
    return result


def _apply_general(op: Op, args: Sequence[object], attrs: object, out: Tensor | None) -> Tensor:
    """Record any elementwise op: infer its spec, dispatch layouts, check ints, fill the cache.

    The first of numbers without a tensor becomes one, on the default device.
    """
    operands = tuple([expr_of(a) if is_strided(a) else _convert_operand(op, a, args) for a in args])
    key = tuple([a.spec if type(a) is Expr else type(a) for a in operands])
    inferred = apply_cache.young.get((op, key, attrs))
    if inferred is None:
        if _has_other_layout(operands):
            tensors = [create_tensor(a) if type(a) is Expr else a for a in operands]
            result = dispatch("apply", op.name, operands, op, tensors, attrs)
            return result if out is None else write_out(op.name, out, result)
        if not any([type(a) is Expr for a in operands]):
            return _apply_general(op, (number_as_tensor(op.name, args[0]), *args[1:]), attrs, out)
        inferred = infer_cached(apply_cache, (op, key, attrs), op, operands, attrs)
    s, limits = inferred
    if len(key) == 2 and attrs is None and _is_plain(args[0]) and _is_plain(args[1]):
        recent_binary.put(op, key[0], key[1], inferred)
    if limits is not None and not is_within(operands, limits):
        replaced = replace_overflowing_ints(op, operands, limits)
        if replaced != operands:
            others = [create_tensor(a) if type(a) is Expr else a for a in replaced]
            return _apply_general(op, others, attrs, out)
    if out is not None:
        return write_node_out(op.name, out, [node(op, operands, s, attrs)])
    result = create_tensor(node(op, operands, s, attrs))
    for a in args:
        keep_class(result, a)
    return result


def _has_other_layout(operands: Sequence[Argument]) -> bool:
    """Return True if an operand is a tensor of another layout."""
    return any([isinstance(a, Tensor) for a in operands])


def _convert_operand(op: Op, x: object, operands: Sequence[object]) -> Argument:
    """Convert an operand that is no strided tensor, for a node's arguments.

    The result is a number, a tensor of another layout, or the node of an array.
    """
    if type(x) is TracedFloat:
        x = number_of_traced(x, operands)
    if type(x) is complex:
        return _create_complex_node(op, x, operands)
    if type(x) in PYTHON_NUMBERS or isinstance(x, Tensor):
        return x  # type: ignore[return-value]  # mypy does not narrow by `in`
    for kind in PYTHON_NUMBERS:  # subclasses, such as an IntEnum
        if isinstance(x, kind) and not isinstance(x, np.generic):
            return _convert_operand(op, kind(x), operands)  # type: ignore[arg-type]  # it is one of `kind`
    return as_operand(op.name, x, operands)._expr


def _create_complex_node(op: Op, x: complex, operands: Sequence[object]) -> Expr:
    """Return the node of a complex number, with the dtype that it has next to these operands."""
    tensors = [t for t in operands if isinstance(t, Tensor)]
    if not tensors:
        return number_as_tensor(op.name, x)._expr
    d = complex128 if any([t.dtype.part is float64 for t in tensors]) else complex64
    return full_complex(x, spec((), d, tensors[0].device))


def in_place(op: Op, x: Tensor, *others: object, attrs: object = None) -> Tensor:
    """Write op(x, others) into the memory of `x`, for all its views, and return `x`.

    The result must have x's shape and a dtype that fits. Raises: LayoutError, for another layout.
    """
    require_strided_target(op.name, x)
    return write_result(op.name, x, [apply(op, (x, *others), attrs)])


# --- reductions -----------------------------------------------------------------------------------


def reduce(op: Op, x: Tensor, axes: Shape, keepdims: bool, attrs: object = None) -> Tensor:
    """Record a reduction over `axes` (non-negative, sorted); `keepdims` keeps them with size 1.

    - `op`: a row of the op table, of kind "reduce".
    - `axes`: the axes, not negative, sorted.
    - `attrs`: the static attributes of this use.
    """
    e = expr_of(x)
    shape = e.spec.shape
    _, dtype = op.dtypes(op.name, [e.spec.dtype], attrs)
    remaining = tuple([n for d, n in enumerate(shape) if d not in axes])
    full = tuple([1 if d in axes else n for d, n in enumerate(shape)]) if keepdims else remaining
    s = spec(full, dtype, e.spec.device, op.name)
    return keep_class(create_tensor(node(op, (e,), s, (axes, attrs))), x)


# --- views ----------------------------------------------------------------------------------------

MoveResult: TypeAlias = tuple[Spec, Shape, int]  # spec and strides after a move, and the offset

# The results of moves, which take 1 us to compute; False if the move needs a copy.
_moves: LRUCache[tuple[Spec, Shape, Move], MoveResult | Literal[False]] = LRUCache(8192)


def view(x: Tensor, m: Move, name: str = "") -> Tensor:
    """Return the tensor after a layout move, as a view; a copy where a reshape needs one.

    A reshape that the strides do not permit is a copy. `name`: the function, if it is not named
    like the move.
    """
    if not is_strided(x):
        return dispatch("view", name or m[0], (x,), x, m)
    viewed_leaf = view_node(x, m)
    return (
        view(apply(ops.COPY, (x,)), m)
        if viewed_leaf is None
        else record_alias(x, create_tensor(viewed_leaf))
    )


def view_node(x: Tensor, m: Move) -> Expr | None:
    """Return the leaf of a view (`x` gets a lazy storage if pending), or None if it needs a copy.

    No alias is recorded: callers other than `view` use the node as an operand, or own `x`.
    """
    e = expr_of(x)
    if e.op is not None:
        e = attach_lazy_storage(x)
    result = _moves.young.get((e.spec, e.strides, m)) or _apply_move(e, m)
    if not result:
        return None
    s, strides, offset = result
    moves = (*e.moves, m) if storage_of(e).pending is not None else ()
    viewed_leaf = leaf(e.storage, s, strides, e.offset + offset, moves)
    if e.tape is not None:
        viewed_leaf.tape = tape_of(ops.VIEW, (e,), s, m)
    return viewed_leaf


def _apply_move(e: Expr, m: Move) -> MoveResult | Literal[False]:
    """Return the cached spec, strides and added offset after a move; False if it must copy."""
    key = (e.spec, e.strides, m)
    result = _moves.find(key)
    if result is None:
        after = lay.apply_move(StridedView(e.spec.shape, e.strides, 0), m)
        result = False
        if after is not None:
            s = spec(after.shape, e.spec.dtype, e.spec.device, m[0])
            result = (s, after.strides, after.offset)
        _moves[key] = result
    return result


def slice_along(x: Tensor, axis: int, start: int, length: int, name: str = "") -> Tensor:
    """Return a view of `length` positions along an axis >= 0, without checks."""
    e = basic_leaf(x, (*_FULL_SLICES[:axis], slice(start, start + length)))
    if e is not None:
        return record_alias(x, create_tensor(e))
    return view(x, lay.slice_along(x.shape, axis, start, length), name)


def select_along(x: Tensor, axis: int, position: int, name: str = "") -> Tensor:
    """Return a view of one position along an axis, without that axis."""
    e = basic_leaf(x, (*_FULL_SLICES[:axis], position))
    if e is not None:
        return record_alias(x, create_tensor(e))
    rest = x.shape[:axis] + x.shape[axis + 1 :]
    return view(slice_along(x, axis, position, 1, name), ("reshape", rest), name)


def is_viewable(x: Tensor, m: Move) -> bool:
    """Return True if a move needs no copy; pending memory counts as contiguous."""
    e = expr_of(x)
    strides = e.spec.strides if e.op is not None else e.strides
    return lay.apply_move(StridedView(e.spec.shape, strides, 0), m) is not None


def pending_view(e: Expr, *moves: Move) -> Expr:
    """Record layout moves as ops, skipping those without effect; the result shares no memory."""
    for m in moves:
        shape = lay.move_shape(e.spec.shape, m)
        if shape != e.spec.shape or m[0] in ("permute", "slice"):
            e = node(ops.VIEW, (e,), spec(shape, e.spec.dtype, e.spec.device), m)
    return e
