"""The few verbs that all functions of the public namespace are made of.

`apply` (an elementwise op), `reduce`, `view` (a move that shares memory), `in_place`; and
`dispatch`, which has another layout's rule for a verb do it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from .. import layout as lay
from ..arguments import DIMENSIONS
from ..compat.keywords import UNGIVEN
from ..dtypes import complex64, complex128, float64
from ..engine.traced_numbers import TracedFloat
from ..errors import DTypeError
from ..graph.expr import Expr, Spec, binary_node, leaf, node, spec, storage_of, tape_of
from ..layout import Move, Shape, StridedView
from ..memo import Memo
from ..ops import table as ops
from ..ops.table import Op
from ..recent import Recent
from .fields import alias, expr_of
from .inference import (
    applied,
    inferred,
    inferred_of_one,
    is_within,
    lately,
    lately_of_one,
    with_infinities,
)
from .operands import PYTHON_NUMBERS, beside
from .slicing import basic_leaf
from .tensor import OtherLayout, Size, Tensor, lazy_storage, make
from .writes import (
    full_complex,
    require_written_in_place,
    write_node_out,
    write_out,
    write_result,
)

Argument: TypeAlias = Expr | Tensor | bool | int | float | complex  # a Tensor: of another layout

_WHOLE = (slice(None),) * DIMENSIONS


# --- of any layout --------------------------------------------------------------------------------


def dispatch(verb: str, name: str, among: Sequence[object], *args: object) -> Tensor:
    """What the layout of the first operand that is not strided answers to `verb`.

    Its rule runs on behalf of the function `name`.

    See `other_layouts`. Raises: LayoutError where that layout has no such rule.
    """
    x = next(x for x in among if isinstance(x, Tensor) and type(x) is not Tensor)
    other: OtherLayout = x  # type: ignore[assignment]  # no Tensor itself, so a LayoutTensor
    return other.run_rule(verb, name, *args)


# --- elementwise ops ------------------------------------------------------------------------------


def _is_plain(a: object) -> bool:
    return type(a) is Tensor or type(a) in PYTHON_NUMBERS


def _of_two(op: Op, a: Expr, other: object) -> Tensor | None:
    """An op of a node and a tensor or number, where the result of such operands is known."""
    if type(other) is Tensor:
        b = expr_of(other)
        found = lately.get(op, a.spec, b.spec)
        return None if found is None else make(binary_node(op, a, b, found[0]))
    if type(other) is Size:
        other = other.plain
    found = lately.get(op, a.spec, type(other))
    if found is None or found[1] is not None:  # limits, that numbers have to keep
        return None
    return make(binary_node(op, a, other, found[0]))


def apply(
    op: Op, args: Sequence[object], attrs: object = None, out: Tensor | None = None
) -> Tensor:
    """An elementwise op on tensors and Python numbers, with broadcasting.

    Raises: ShapeError, DTypeError, DeviceError, ValueOverflow, naming op and operands.
    """
    if out is None and type(args[0]) is Tensor:
        e = expr_of(args[0])
        if len(args) == 1:
            found = lately_of_one.get(op, e.spec, attrs)
            if found is None:
                found = inferred_of_one(op, e, attrs)
            return make(node(op, (e,), found[0], attrs))
        if len(args) == 2 and attrs is None:
            made = _of_two(op, e, args[1])
            if made is not None:
                return made
    return _applied(op, args, attrs, out)


def apply_one(op: Op, x: object, out: Tensor | None) -> Tensor:
    """`apply` of a function of one operand."""
    if out is None and type(x) is Tensor:
        e = expr_of(x)
        found = lately_of_one.get(op, e.spec, None)
        if found is None:
            found = inferred_of_one(op, e, None)
        return make(node(op, (e,), found[0], None))
    return _applied(op, (x,), None, out)


def apply_two(op: Op, x1: object, x2: object, out: Tensor | None) -> Tensor:
    """`apply` of a function of two operands."""
    if out is None and type(x1) is Tensor:
        made = _of_two(op, expr_of(x1), x2)
        if made is not None:
            return made
    return _applied(op, (x1, x2), None, out)


def apply_noted(
    known: Memo[Op], key: object, x1: object, x2: object, out: Tensor | None
) -> Tensor | None:
    """What the op noted in `known` gives, by `key` and what one or two operands are.

    None where none is noted. `x2`: UNGIVEN where there is one operand.
    """
    if type(x1) is not Tensor:
        return None
    if x2 is UNGIVEN:
        op = known.get(key, expr_of(x1).spec)
        return None if op is None else apply_one(op, x1, out)
    kind = expr_of(x2).spec if type(x2) is Tensor else type(x2)
    op = known.get(key, expr_of(x1).spec, kind)
    return None if op is None else apply_two(op, x1, x2, out)


def _applied(op: Op, args: Sequence[object], attrs: object, out: Tensor | None) -> Tensor:
    operands = tuple([a._expr if type(a) is Tensor else _operand(op, a, args) for a in args])
    key = tuple([a.spec if type(a) is Expr else type(a) for a in operands])
    found = applied.young.get((op, key, attrs))
    if found is None:
        if _is_any_other(operands):
            given = [make(a) if type(a) is Expr else a for a in operands]
            made = dispatch("apply", op.name, operands, op, given, attrs)
            return made if out is None else write_out(op.name, out, made)
        found = inferred(applied, (op, key, attrs), op, operands, attrs)
    s, limits = found
    if len(key) == 2 and attrs is None and _is_plain(args[0]) and _is_plain(args[1]):
        lately.put(op, key[0], key[1], found)
    if limits is not None and not is_within(operands, limits):
        given = [make(a) if type(a) is Expr else a for a in operands]
        return _applied(op, with_infinities(op, given, limits), attrs, out)
    if out is not None:
        return write_node_out(op.name, out, [node(op, operands, s, attrs)])
    return make(node(op, operands, s, attrs))


def _is_any_other(operands: Sequence[Argument]) -> bool:
    """Whether an operand is a tensor of another layout."""
    return any(isinstance(a, Tensor) for a in operands)


def _operand(op: Op, x: object, among: Sequence[object]) -> Argument:
    """What stands for an operand that is no strided tensor.

    It is a number, a tensor of another layout, or the node of an array.
    """
    if type(x) is complex:
        return _complex(op, x, among)
    if type(x) in PYTHON_NUMBERS or isinstance(x, Tensor):
        return x  # type: ignore[return-value]  # mypy does not see what `in` says
    if type(x) is TracedFloat:
        return x.taken()
    for kind in PYTHON_NUMBERS:  # subclasses, such as an IntEnum
        if isinstance(x, kind) and not isinstance(x, np.generic):
            return _operand(op, kind(x), among)  # type: ignore[arg-type]  # it is one of `kind`
    return beside(op.name, x, among)._expr


def _complex(op: Op, x: complex, among: Sequence[object]) -> Expr:
    """The node of a complex number: of the dtype that it has beside these operands.

    Raises: DTypeError where none of them is a tensor.
    """
    tensors = [t for t in among if isinstance(t, Tensor)]
    if not tensors:
        raise DTypeError(f"{op.name}: at least one operand has to be a tensor; see dt.asarray")
    d = complex128 if any(t.dtype.part is float64 for t in tensors) else complex64
    return full_complex(x, spec((), d, tensors[0].device))


def in_place(op: Op, x: Tensor, *others: object, attrs: object = None) -> Tensor:
    """`x` after op(x, others) has been written into it.

    The result must have x's shape and a dtype that fits.
    """
    require_written_in_place(op.name, x)
    return write_result(op.name, x, [apply(op, (x, *others), attrs)])


# --- reductions -----------------------------------------------------------------------------------


def reduce(op: Op, x: Tensor, axes: Shape, keepdims: bool, attrs: object = None) -> Tensor:
    """A reduction over `axes` (non-negative and sorted). With `keepdims` they stay, with size 1."""
    e = x._expr
    shape = e.spec.shape
    _, dtype = op.dtypes(op.name, [e.spec.dtype], attrs)
    kept = tuple([n for d, n in enumerate(shape) if d not in axes])
    full = tuple([1 if d in axes else n for d, n in enumerate(shape)]) if keepdims else kept
    return make(node(op, (e,), spec(full, dtype, e.spec.device, op.name), (axes, attrs)))


# --- views ----------------------------------------------------------------------------------------

Moved: TypeAlias = tuple[Spec, Shape, int]  # spec and strides after a move, and how far it starts

# A move of a layout -> what that gives, which takes 1 us to find; False where it needs a copy.
_moves: Recent[tuple[Spec, Shape, Move], Moved | Literal[False]] = Recent(8192)


def view(x: Tensor, m: Move, name: str = "") -> Tensor:
    """The tensor after a layout move, sharing memory.

    It is a copy for a reshape that strides do not permit. `name` is the function's, where that is
    not the move's.
    """
    if type(x) is not Tensor:
        return dispatch("view", name or m[0], (x,), x, m)
    seen = seen_as(x, m)
    return view(apply(ops.COPY, (x,)), m) if seen is None else alias(x, make(seen))


def seen_as(x: Tensor, m: Move) -> Expr | None:
    """What `view` makes a tensor of; None where that is a copy.

    By itself it is for an operand, or for a result of which nobody has `x`: no alias is noted.
    """
    e = x._expr
    if e.op is not None:
        e = lazy_storage(x)
    found = _moves.young.get((e.spec, e.strides, m)) or _moved(e, m)
    if not found:
        return None
    s, strides, offset = found
    moves = (*e.moves, m) if storage_of(e).pending is not None else ()
    seen = leaf(e.storage, s, strides, e.offset + offset, moves)
    if e.tape is not None:
        seen.tape = tape_of(ops.VIEW, (e,), s, m)
    return seen


def _moved(e: Expr, m: Move) -> Moved | Literal[False]:
    key = (e.spec, e.strides, m)
    found = _moves.find(key)
    if found is None:
        after = lay.move(StridedView(e.spec.shape, e.strides, 0), m)
        found = False
        if after is not None:
            s = spec(after.shape, e.spec.dtype, e.spec.device, m[0])
            found = (s, after.strides, after.offset)
        _moves[key] = found
    return found


# A function, what it was given - a tensor's spec and strides, and ints - and the view that it gave:
# spec, strides and how far it starts.
_views: Recent[tuple[object, ...], Moved] = Recent(8192)
_young_views = _views.young  # which stays the same dict


def viewed(name: str, x: object, first: object = None, second: object = None) -> Tensor | None:
    """What a function that makes views gave for such a tensor, in memory, and these ints or tuples.

    None where it is not known; the function then tells `noted_view`.
    """
    if type(x) is not Tensor:
        return None
    e, given = expr_of(x), (first, second)
    if not _is_in_memory(e) or not _are_plain(given):  # equal ones would else be found: 1.0, True
        return None
    key = (name, e.spec, e.strides, given)
    found = _young_views.get(key) or _views.find(key)
    if found is None:
        return None
    s, strides, offset = found
    return alias(x, make(leaf(e.storage, s, strides, e.offset + offset)))


def _is_in_memory(e: Expr) -> bool:
    """Whether a node is a leaf in memory, through which no gradient flows."""
    return e.op is None and e.tape is None and e.storage.pending is None


def _are_plain(given: tuple[object, ...]) -> bool:
    """Whether they are ints, None or tuples of such."""
    for value in given:
        kind = type(value)
        if kind is tuple:
            if not _are_plain(value):  # type: ignore[arg-type]  # it is one
                return False
        elif kind is not int and value is not None:
            return False
    return True


def noted_view(
    seen: Tensor, name: str, x: object, first: object = None, second: object = None
) -> Tensor:
    """`seen`, a view of `x` that a function made, which `viewed` makes again."""
    given = (first, second)
    if type(x) is Tensor and type(seen) is Tensor and _are_plain(given):
        e, made = expr_of(x), expr_of(seen)
        if _is_in_memory(e) and made.op is None and made.storage is e.storage:
            found = made.spec, made.strides, made.offset - e.offset
            _views[name, e.spec, e.strides, given] = found
    return seen


def slice_along(x: Tensor, axis: int, start: int, length: int, name: str = "") -> Tensor:
    """A view of `length` consecutive places along one axis."""
    e = basic_leaf(x, (*_WHOLE[:axis], slice(start, start + length)))
    if e is not None:
        return alias(x, make(e))
    return view(x, lay.slice_along(x.shape, axis, start, length), name)


def place_along(x: Tensor, axis: int, place: int, name: str = "") -> Tensor:
    """A view of one place along an axis, without that axis."""
    e = basic_leaf(x, (*_WHOLE[:axis], place))
    if e is not None:
        return alias(x, make(e))
    rest = x.shape[:axis] + x.shape[axis + 1 :]
    return view(slice_along(x, axis, place, 1, name), ("reshape", rest), name)


def is_viewable(x: Tensor, m: Move) -> bool:
    """Whether the move shares memory."""
    e = x._expr
    strides = e.spec.strides if e.op is not None else e.strides
    return lay.move(StridedView(e.spec.shape, strides, 0), m) is not None


def pending_view(e: Expr, *moves: Move) -> Expr:
    """A node after some moves, as a node: nothing is shared."""
    for m in moves:
        shape = lay.move_shape(e.spec.shape, m)
        if shape != e.spec.shape or m[0] in ("permute", "slice"):
            e = node(ops.VIEW, (e,), spec(shape, e.spec.dtype, e.spec.device), m)
    return e
