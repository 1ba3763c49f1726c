"""Fast paths of indexing, products, reductions and concatenation: calls like an earlier one.

The general path of such a function checks its operands and derives a node's spec and attributes.
Both depend only on the operands' specs and on the options, so the general path stores them here.
A function of this module builds the node of a repeated call, or returns None if it knows no such
call. This module is compiled; the modules of the general paths are Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .. import settings
from ..backend.faults import IndexPurpose
from ..device_class import opened as open_device
from ..dtypes import DType, bool_, float32, float64, int64
from ..engine import tracer_api
from ..engine.evaluate import may_write_at_once
from ..graph.expr import Args, Attrs, Expr, Spec, leaf, mark_index_check, node, spec, storage_of
from ..graph.refcount import Box
from ..layout import Move, Shape
from ..lru_cache import LRUCache
from ..memory.tracing.stacktrace import current_line
from ..ops import table as ops
from ..ops.kernel_ops import BLOCK_ELEMENTS
from ..ops.scatter import Manner
from ..ops.table import (
    ASTYPE,
    CLIP,
    CONCAT,
    COPY,
    FULL,
    GATHER,
    MATMUL,
    NO_VENDOR_ATTRS,
    ROUND,
    SCATTER,
    WHERE,
    Op,
)
from ..settings import current, flags
from ..tensor.c_fields import expr_of, is_strided, keep_class
from ..tensor.host import allocate_leaf, evaluate_leaf, item, reachable_address
from ..tensor.host_read import copy_bytes
from ..tensor.primitives import apply, apply_one, pending_view, view
from ..tensor.promotion import Operand
from ..tensor.slicing import is_integer_tensor
from ..tensor.tensor import Tensor, create_tensor
from ..tensor.writes import (
    cast_to_spec,
    value_node,
    write_tensor,
)
from .graph_cache import Recipe, replay_recipe

# --- single ops -----------------------------------------------------------------------------------

# A number and a dtype -> the arguments and attributes of a tensor filled with it.
fill_cache: LRUCache[tuple[int, DType], tuple[Args, Attrs]] = LRUCache(1024)


def copy_plain(x: Tensor) -> Tensor | None:
    """Return a pending copy of a tensor."""
    return apply_one(COPY, x, None) if is_strided(x) else None


def cast_plain(x: Tensor, dtype: object) -> Tensor | None:
    """Return a tensor cast to a dtype, a copy if it has that dtype."""
    if not is_strided(x) or type(dtype) is not DType:
        return None
    return apply(COPY, (x,)) if expr_of(x).spec.dtype is dtype else apply(ASTYPE, (x,), dtype)


def round_plain(x: Tensor) -> Tensor | None:
    """Return the nearest integers of a tensor of floats that is not widened."""
    if flags.has_autocast or not is_strided(x):
        return None
    d = expr_of(x).spec.dtype
    return apply(ROUND, (x,)) if d is float32 or d is float64 else None


def clip_plain(x: Tensor, low: object, high: object) -> Tensor | None:
    """Record `clip`; return None if a number as bound might have to be saturated or widened."""
    if flags.has_autocast or not is_strided(x):
        return None
    d = expr_of(x).spec.dtype
    for bound in (low, high):
        if type(bound) is int:
            if d is not float32 and d is not float64:
                return None
        elif type(bound) is not float and not is_strided(bound):
            return None
    return apply(CLIP, (x, low, high))


def empty_like_plain(x: Tensor) -> Tensor | None:
    """Return new memory of a tensor's shape, dtype and device."""
    if not is_strided(x) or (flags.may_fill_junk and settings.fills_junk()):
        return None
    return create_tensor(allocate_leaf(expr_of(x).spec))


def full_like_plain(x: Tensor, value: object = 0) -> Tensor | None:
    """Return a pending tensor of an int, in a tensor's shape, dtype and device."""
    if type(value) is not int or not is_strided(x):
        return None
    s = expr_of(x).spec
    key = (value, s.dtype)
    filling = fill_cache.young.get(key) or fill_cache.find(key)
    return None if filling is None else create_tensor(node(FULL, filling[0], s, filling[1]))


def ones_like_plain(x: Tensor) -> Tensor | None:
    """Return a pending tensor of ones, in a tensor's shape, dtype and device."""
    return full_like_plain(x, 1)


# --- reads at indices -----------------------------------------------------------------------------

TakeKey: TypeAlias = tuple[Spec, Spec, int, str]  # specs of a tensor and an index, axis and name

# The node's attributes and spec; the check of the index, None if its reader checks; and the move
# that aligns the index with later axes, or None.
take_cache: LRUCache[TakeKey, tuple[Attrs, Spec, IndexPurpose | None, Move | None]]
take_cache = LRUCache(1024)


def read_cached(x: Tensor, key: object) -> Tensor | None:
    """Return `x[key]` for a cached index tensor of a vector, or a small mask; None on a miss."""
    if not is_strided(x) or not is_strided(key):
        return None
    s = expr_of(x).spec
    if is_integer_tensor(key):
        return take_cached("index", x, key, 0) if len(s.shape) == 1 else None
    if s.size > BLOCK_ELEMENTS or expr_of(key).spec is not spec(s.shape, bool_, s.device):
        return None
    if len(s.shape) == 1:
        flat, positions = x, pack_positions(expr_of(key))
    else:
        whole = ("reshape", (s.size,))
        flat, positions = view(x, whole), pack_positions(pending_view(expr_of(key), whole))
    return gather(flat, [expr_of(positions)], expr_of(positions).spec.shape, (-1,), (0,))


def take_cached(name: str, x: Tensor, index: Tensor, axis: int) -> Tensor | None:
    """Return the elements of `x` at an integer tensor along an axis; None on a cache miss."""
    e, i = expr_of(x), expr_of(index)
    key = (e.spec, i.spec, axis, name)
    cached = take_cache.young.get(key) or take_cache.find(key)
    if cached is None:
        return None
    attrs, s, check, move = cached
    if check is not None:
        i = record_check(check, i)
    gathered = node(GATHER, (e, i if move is None else pending_view(i, move)), s, attrs)
    if check is None:
        record_check_site(gathered)
    return keep_class(create_tensor(gathered), x)


def gather(
    x: Tensor,
    indices: Sequence[Expr],
    shape: Shape,
    axes: Shape,
    indexed_axes: Shape,
    index_checks: tuple[IndexPurpose, ...] | None = None,
) -> Tensor:
    """Record a gather; with checks, also the user's line for their errors."""
    attrs = (shape, axes, indexed_axes, index_checks)
    s = spec(shape, x.dtype, x.device, "index" if index_checks is None else index_checks[0].op)
    e = node(GATHER, (x._expr, *indices), s, attrs)
    if index_checks is not None:
        record_check_site(e)
    return keep_class(create_tensor(e), x)


def pack_positions(flat: Expr) -> Tensor:
    """Return the true positions of a mask of one block. One host read, of their number.

    The kernel writes their number behind them.
    """
    n, device = flat.spec.size, flat.spec.device
    e = node(ops.PACKED_POSITIONS, (flat,), spec((n + 1,), int64, device))
    evaluate_leaf(create_tensor(e))
    count = item(create_tensor(leaf(e.storage, spec((), int64, device), (), n)))
    return create_tensor(leaf(e.storage, spec((int(count),), int64, device), (1,), 0))


def record_check(check: IndexPurpose, e: Expr) -> Expr:
    """Return non-negative positions, which are checked when the work runs, before any write."""
    s = spec(e.spec.shape, int64, e.spec.device)
    checked_expr = node(ops.CHECKED_INDICES, (e,), s, (check, True, None))
    mark_index_check(checked_expr, current_line())
    return checked_expr


def record_check_site(e: Expr) -> None:
    """Record the user's line for the error of an expression that checks indices."""
    mark_index_check(e, current_line())
    if e.tape is not None:
        e.tape.recorded_line = e.check_line  # the gradient reads the indices again


# --- writes at indices ----------------------------------------------------------------------------

# Specs of a tensor, its index and a value, and True for a number -> the recipes of the operands for
# value and index, the op's attributes, True for a number, and True if the op checks its indices.
# A miss takes 8 us.
put_cache: LRUCache[tuple[Spec, Spec, Spec, bool], tuple[Recipe, Recipe, Manner, bool, bool]]
put_cache = LRUCache(1024)
_NUMBERS = (int, float, bool)


def write_cached(x: Tensor, key: object, value: Operand) -> bool:
    """Write `x[key] = value` and return True, or return False if the general path must write.

    The keys are an index tensor, and a mask of a number.
    """
    if not is_strided(x) or not expr_of(x).spec.shape:
        return False
    if is_integer_tensor(key):
        scattered = _put_cached(x, key, value)
        if scattered:
            write_tensor("setitem", x, scattered, is_update=True)
            return True
    elif type(value) in _NUMBERS and is_strided(key):
        replaced = _masked_number_expr(x, key, value)
        if replaced:
            write_tensor("setitem", x, replaced)
            return True
    return False


def _put_cached(x: Tensor, index: Tensor, value: Operand) -> Box[Expr]:
    """Return, in a box, the expression of `x[index] = value`; an empty box if it is not known."""
    e, i = expr_of(x), expr_of(index)
    if e.tape is not None:
        return []
    s = e.spec
    v = value_node("setitem", value, s.dtype, s.device)
    if v.tape is not None:
        return []
    key = (s, i.spec, v.spec, is_number(v, s))
    cached = put_cache.young.get(key) or put_cache.find(key)
    if cached is None:
        return []
    to_rows, to_indices, manner, number, asks = cached
    rows = v.args[0] if number else replay_recipe(to_rows, [v])
    scattered = node(SCATTER, (e, rows, replay_recipe(to_indices, [i])), s, manner)
    if asks:
        mark_index_check(scattered, current_line())
    return [scattered]


def is_number(e: Expr, want: Spec) -> bool:
    """Return True if a value is a single Python number, in the target's dtype."""
    return e.op is ops.FULL and not e.spec.shape and e.attrs == ((want.dtype,), want.dtype)


def _masked_number_expr(x: Tensor, mask: Tensor, value: Operand) -> Box[Expr]:
    """Return x after `x[mask] = number` in a box, or an empty box if only the general path fits."""
    e, mask_expr = expr_of(x), expr_of(mask)
    s = e.spec
    if e.op is not None or storage_of(e).pending is not None:
        return []
    if mask_expr.spec is not spec(s.shape, bool_, s.device):
        return []
    number = cast_to_spec("setitem", value_node("setitem", value, s.dtype, s.device), s)
    return [node(WHERE, (mask_expr, number, e), s)]


# --- products -------------------------------------------------------------------------------------

COPY_TRANSPOSE_ROWS_MIN = 4  # rows of x1 from which a transposed x2 is copied
_ALLOWS_VENDOR = settings.allows_vendor_products()
# Specs of two matrices or vectors of one dtype, and attrs -> the spec of their product.
product_cache: LRUCache[tuple[Spec, Spec, str | None], Spec] = LRUCache(4096)


def product_routine() -> str | None:
    """Return the attributes of a product: None if a vendor's routine may compute it."""
    chosen = current().vendor_products
    return None if (_ALLOWS_VENDOR if chosen is None else chosen) else NO_VENDOR_ATTRS


def multiply_cached(x1: Tensor, x2: object) -> Tensor | None:
    """Return the matrix product of two strided tensors; None on a cache miss."""
    if not is_strided(x1) or not is_strided(x2):
        return None
    how = product_routine()
    left, right = expr_of(x1), expr_of(x2)
    key = (left.spec, right.spec, how)
    result_spec = product_cache.young.get(key) or product_cache.find(key)
    if result_spec is None:
        return None
    product = node(MATMUL, (left, with_dense_rows(left, right, how)), result_spec, how)
    return keep_class(keep_class(create_tensor(product), x1), x2)


def with_dense_rows(left: Expr, right: Expr, routine: str | None) -> Expr:
    """Return the second operand with dense rows, as generated kernels read it.

    A transposed operand, as in `x @ weight.mT`, takes 1.3 ms without and 0.04 ms with this copy
    (96 x 128 by 128 x 384 float32, two threads). Routines for products read any strides, and
    some of them cast.
    """
    s = right.spec
    if (
        right.op is not None
        or min(len(left.spec.shape), len(s.shape)) < 2
        or s.shape[-1] < 2
        or left.spec.shape[-2] < COPY_TRANSPOSE_ROWS_MIN
        or right.strides[-1] in (0, 1)
        or 0 in right.strides
    ):
        return right
    opened = open_device(s.device)
    name = "matmul", s.dtype
    accepted = opened.ordered_calls.get(name, (s.dtype,))
    dtype, pending = s.dtype, right.storage.pending
    if pending is not None and pending.op is ASTYPE:
        dtype = pending.args[0].spec.dtype
    has_routine = name in opened.library_calls and dtype in accepted
    if routine is None and (s.dtype in (float32, float64) or has_routine):
        return right  # without a routine, too: a graph must not depend on the number of rows
    return node(COPY, (right,), s)


# --- reductions -----------------------------------------------------------------------------------

# (op, operand spec, axis, keepdims, dtype) -> the spec and the attributes of the result's node.
reduction_cache: LRUCache[tuple[object, ...], tuple[Spec, tuple[Shape, DType | None]]]
reduction_cache = LRUCache(4096)


def reduction_key(
    op: Op, x: Tensor, axis: object, keepdims: bool, dtype: DType | None
) -> tuple[object, ...] | None:
    """Return the cache key of a reduction; None if a key cannot describe the call."""
    if is_strided(x) and type(keepdims) is bool and (axis is None or type(axis) is int):
        return op, expr_of(x).spec, axis, keepdims, dtype
    return None


def reduce_cached(
    op: Op, x: Tensor, axis: object, keepdims: bool, dtype: DType | None
) -> Tensor | None:
    """Return a reduction over one axis or all; None on a cache miss."""
    key = reduction_key(op, x, axis, keepdims, dtype)
    cached = None if key is None else reduction_cache.young.get(key) or reduction_cache.find(key)
    if cached is None:
        return None
    s, attrs = cached
    return keep_class(create_tensor(node(op, (expr_of(x),), s, attrs)), x)


# --- concatenation --------------------------------------------------------------------------------

# `concat` of at most this many tensors is a pending expression, index arithmetic in the kernel
# that reads it; more tensors are copied.
CONCAT_LAZY_TENSORS_MAX = 4

# Results of more tensors and of at most these bytes are copied by the host: 32 rows of 256 bytes
# take 0.02 ms, with a launch for each 0.2 ms.
HOST_COPY_BYTES_MAX = 1 << 16

# Key -> the moves to apply to the operands (None: none), the result's spec, and the axis.
concat_cache: LRUCache[tuple[object, ...], tuple[Sequence[Move] | None, Spec, int]]
concat_cache = LRUCache(4096)


def exprs_if_strided(arrays: object) -> list[Expr]:
    """Return the expressions of strided tensors; an empty list unless all are strided."""
    exprs: list[Expr] = []
    for a in arrays if isinstance(arrays, (list, tuple)) else ():
        if not is_strided(a):
            return []
        exprs.append(expr_of(a))
    return exprs


def concat_key(op: str, axis: object, exprs: Sequence[Expr]) -> tuple[object, ...]:
    """Return the cache key of a concatenation."""
    key: list[object] = [op, axis]
    for e in exprs:
        key.append(e.spec)
    return tuple(key)


def concat_cached(key: tuple[object, ...], exprs: Sequence[Expr]) -> Tensor | None:
    """Return the concatenation, with the views that the key names; None on a cache miss."""
    cached = concat_cache.young.get(key) or concat_cache.find(key)
    if cached is None:
        return None
    moves, result_spec, d = cached
    if moves is not None:
        exprs = [pending_view(e, m) for e, m in zip(exprs, moves, strict=True)]
    return create_tensor(node(CONCAT, tuple(exprs), result_spec, d))


def concat_plain(arrays: object) -> Tensor | None:
    """Return the concatenation along axis 0 of a list or tuple of tensors."""
    exprs = exprs_if_strided(arrays)
    return concat_cached(concat_key("concat", 0, exprs), exprs) if exprs else None


def join_on_host(op: str, exprs: Sequence[Expr]) -> Tensor | None:
    """Return the concatenation or stack along axis 0 of many small tensors, copied by the host.

    None is returned unless they are dense, in idle memory that the host reaches, and without
    gradients, and for results of more than HOST_COPY_BYTES_MAX.
    """
    if len(exprs) <= CONCAT_LAZY_TENSORS_MAX or tracer_api.current() is not None:
        return None
    first, stacks, rows = exprs[0].spec, op == "stack", 0
    addresses: list[int] = []
    for e in exprs:
        s = e.spec
        if s is not first and (
            stacks
            or s.dtype is not first.dtype
            or s.device is not first.device
            or len(s.shape) != len(first.shape)
            or s.shape[1:] != first.shape[1:]
        ):
            return None
        if e.op is not None or e.tape is not None or e.strides != s.strides or not s.size:
            return None
        address = reachable_address(e)
        if not address or not (stacks or s.shape):
            return None
        addresses.append(address)
        rows += 1 if stacks else s.shape[0]
    row_bytes = first.size * first.itemsize
    if not stacks:
        row_bytes //= first.shape[0]
    if rows * row_bytes > HOST_COPY_BYTES_MAX:
        return None
    shape = (rows, *(first.shape if stacks else first.shape[1:]))
    whole = allocate_leaf(spec(shape, first.dtype, first.device, op))
    target = reachable_address(whole)
    if not target or not may_write_at_once(whole.storage):
        return None
    for e, address in zip(exprs, addresses, strict=True):
        nbytes = e.spec.size * first.itemsize
        copy_bytes(target, address, nbytes)
        target += nbytes
    return create_tensor(whole)
