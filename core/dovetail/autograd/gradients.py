"""Gradient rules of ops that need more than elementwise functions, in terms of tensors.

Rules of elementwise rows stand in the rows (see `ops.gradient`, which says how a rule names the
values it needs). Here a rule may also name `rest`, the operands after those with rules, and `c`,
the op's shapes and attributes. None: no gradient.

max and min over axes spread the gradient evenly over all extremes (as `torch.amax`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

from .. import layout as lay
from ..dtypes import float32, int64
from ..engine import evaluate as run
from ..functions.creation.constructors import generate
from ..functions.datatypes import cast, move
from ..functions.elementwise import op_functions as ew
from ..functions.products.convolutions import convolved, transposed, weight_gradient
from ..functions.products.matrix_products import matmul
from ..functions.reductions.statistics import any as any_
from ..functions.reductions.statistics import prod
from ..functions.reductions.statistics import sum as sum_
from ..graph.expr import Expr, leaf, mark_index_check, node, spec, tape_of
from ..layout import Shape, StridedView
from ..ops import table as ops
from ..ops.gradient import Rule
from ..ops.scatter import Manner
from ..settings import current
from ..tensor.c_fields import record_alias
from ..tensor.host import evaluate_leaf
from ..tensor.primitives import apply, slice_along, view
from ..tensor.tensor import Tensor, create_tensor
from .namespace import conj, ones, zeros
from .tape import RuleContext

# --- reductions ----------------------------------------------------------------------------------


def _keepdims_shape(c: RuleContext) -> Shape:
    """Return the operand's shape with 1 for each reduced axis."""
    axes = c.attrs[0]
    return tuple(1 if d in axes else n for d, n in enumerate(c.spec().shape))


def _broadcast(g: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of a reduction's result at every element that was reduced into it."""
    return view(view(g, ("reshape", _keepdims_shape(c))), ("expand", c.spec().shape))


def _mean_gradient(g: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of a mean: `g` / count, broadcast over the reduced axes."""
    return _broadcast(g / float(max(math.prod(c.spec().shape[d] for d in c.attrs[0]), 1)), c)


def _prod_gradient(g: Tensor, c: RuleContext, x: Tensor) -> Tensor:
    """Return the gradient of a product over axes.

    If one factor is 0, only its own derivative is non-zero; if several are, none is. The fast way
    divides by factors and counts zeros, which has no derivative. If a second derivative may be
    wanted, the product of the other factors is computed from running products from both sides
    instead.
    """
    axes, x = c.attrs[0], conj(cast(x, g.dtype))
    if current().grad:
        return _broadcast(g, c) * _other_factors(x, axes)
    zero = ew.equal(x, 0)
    count = sum_(cast(zero, int64), axis=axes, keepdims=True)
    safe = ew.where(zero, 1.0, x)
    others = prod(safe, axis=axes, keepdims=True) / safe
    return _broadcast(g, c) * ew.where(ew.equal(cast(zero, int64), count), others, 0.0)


def _other_factors(x: Tensor, axes: Shape) -> Tensor:
    """Return for each element the product of all others of its row."""
    order = (*(d for d in range(x.ndim) if d not in axes), *axes)
    moved = view(x, ("permute", order))
    size = math.prod(x.shape[d] for d in axes)
    rows = view(moved, ("reshape", (x.size // max(size, 1), size)))
    others = _product_before(rows, 1) * _reverse_axis(_product_before(_reverse_axis(rows, 1), 1), 1)
    back = tuple(order.index(d) for d in range(x.ndim))
    return view(view(others, ("reshape", moved.shape)), ("permute", back))


def _extremes_gradient(g: Tensor, c: RuleContext, x: Tensor, r: Tensor) -> Tensor:
    """Return the gradient of max or min, spread evenly over the extreme elements and NaNs."""
    best = view(r, ("reshape", _keepdims_shape(c)))
    here = ew.logical_or(ew.equal(x, best), ew.isnan(x))
    count = sum_(cast(here, x.dtype), axis=c.attrs[0], keepdims=True)
    return ew.where(here, _broadcast(g, c) / count, 0.0)


# --- cumulative ----------------------------------------------------------------------------------


def _reverse_axis(x: Tensor, axis: int) -> Tensor:
    """Return a view of `x` with the axis reversed."""
    n = x.shape[axis]
    return view(x, lay.slice_along(x.shape, axis, n - 1, n, -1))


def _accumulate(op: ops.Op, x: Tensor, axis: int) -> Tensor:
    """Return the cumulative op along an axis, without an initial value."""
    return create_tensor(node(op, (x._expr,), x._expr.spec, (axis, False, None)))


def _sum_from_here(x: Tensor, axis: int) -> Tensor:
    """Return at each position the sum of the elements from it to the end of the axis."""
    return _reverse_axis(_accumulate(ops.CUMULATIVE_SUM, _reverse_axis(x, axis), axis), axis)


def _without_first(g: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of a running result, cut by the position of its initial value, if any."""
    axis, included, _ = c.attrs
    if not included:
        return g
    return slice_along(g, axis, 1, g.shape[axis] - 1)


def _cumulative_sum_gradient(g: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of a cumulative sum: the sum of `g` from each position on."""
    return _sum_from_here(_without_first(g, c), c.attrs[0])


def _product_before(x: Tensor, axis: int) -> Tensor:
    """Return for each element the product of the elements before it."""
    longer = tuple(n + (d == axis) for d, n in enumerate(x.shape))
    attrs = (axis, True, None)
    run_ = create_tensor(
        node(ops.CUMULATIVE_PROD, (x._expr,), spec(longer, x.dtype, x.device), attrs)
    )
    return view(run_, ("slice", (0,) * x.ndim, x.shape, (1,) * x.ndim))


def _cumulative_prod_gradient(g: Tensor, c: RuleContext, x: Tensor) -> Tensor:
    """Return the gradient of a running product.

    It is the product of all elements before, times s[i] = g[i] + x[i + 1] * s[i + 1]. There is no
    division, so zeros need no special case.
    """
    axis, g = c.attrs[0], _without_first(g, c)
    x = conj(cast(x, g.dtype))
    after = _build_recurrence(_reverse_axis(x, axis), _reverse_axis(g, axis), axis, 1)
    return _product_before(x, axis) * _reverse_axis(after, axis)


def _cumulative_logsumexp_gradient(g: Tensor, c: RuleContext, x: Tensor, r: Tensor) -> Tensor:
    """Return the sum over k >= j of g[k] exp(x[j] - r[k]).

    Positive and negative g are summed apart, as logarithms. Source: PyTorch's
    logcumsumexp_backward.
    """
    axis = c.attrs[0]
    g, r, x = _without_first(g, c), _without_first(r, c), cast(x, r.dtype)
    total: Tensor | None = None
    for sign in (1.0, -1.0):
        size = ew.where(g * sign > 0, ew.log(ew.where(g * sign > 0, g * sign, 1.0)), -math.inf)
        size = ew.where(r > -math.inf, size - r, -math.inf)
        after = _accumulate(ops.CUMULATIVE_LOGSUMEXP, _reverse_axis(size, axis), axis)
        share = ew.exp(_reverse_axis(after, axis) + x)
        total = share if total is None else total - share
    assert total is not None
    return total


def _build_recurrence(x: Tensor, b: Tensor, axis: int, lag: int) -> Tensor:
    """Return the linear recurrence with factors `x` and terms `b` along an axis."""
    return create_tensor(node(ops.RECURRENCE, (x._expr, b._expr), b._expr.spec, (axis, lag)))


def _recurrence_term_gradient(g: Tensor, c: RuleContext, x: Tensor) -> Tensor:
    """Return the recurrence run backwards, with the factors shifted by one."""
    axis, lag = c.attrs
    back = _build_recurrence(_reverse_axis(conj(x), axis), _reverse_axis(g, axis), axis, 1 - lag)
    return _reverse_axis(back, axis)


def _recurrence_factor_gradient(g: Tensor, c: RuleContext, x: Tensor, r: Tensor) -> Tensor:
    """Return the gradient of a recurrence by its factors."""
    axis, lag = c.attrs
    flow, r = _recurrence_term_gradient(g, c, x), conj(r)
    return _shift(flow, axis, 1) * r if lag else flow * _shift(r, axis, -1)


def _shift(x: Tensor, axis: int, step: int) -> Tensor:
    """Return at each position the element `step` (1 or -1) further along the axis, 0 at the end."""
    n = x.shape[axis]
    if n == 0:
        return x
    _, *back = lay.slice_along(x.shape, axis, int(step < 0), n - 1)
    return _undo_slice(slice_along(x, axis, int(step > 0), n - 1), x.shape, *back)


# --- matrix products -----------------------------------------------------------------------------


def _matmul_left_gradient(g: Tensor, y: Tensor) -> Tensor:
    """Return a matmul's gradient by the left: g @ y^H, or g[..., None] * conj(y) for a vector y."""
    if y.ndim == 1:
        return _append_axis(g) * conj(y)
    return g * conj(y.mT) if g.shape[-2:] == (1, 1) else matmul(g, conj(y.mT))


def _matmul_right_gradient(g: Tensor, x: Tensor) -> Tensor:
    """Return the gradient of a product by its right operand: x^H @ g; conj(x) * g for a vector."""
    if x.ndim == 1:
        return (_append_axis(conj(x)) if g.ndim else conj(x)) * g
    return conj(x.mT) * g if g.shape[-2:] == (1, 1) else matmul(conj(x.mT), g)


def _append_axis(x: Tensor) -> Tensor:
    """Return a view with an axis of size 1 behind the others."""
    return view(x, ("reshape", (*x.shape, 1)))


# --- convolutions --------------------------------------------------------------------------------


def _kernel_sizes(c: RuleContext, i: int) -> Shape:
    """Return the sizes of an operand's axes after its channels."""
    return c.spec(i).shape[-len(c.attrs.stride) :]


def _convolution_input_gradient(g: Tensor, y: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of a convolution by its input: a transposed convolution of `g`."""
    return transposed(g, y, _kernel_sizes(c, 0), c.attrs)


def _convolution_weight_gradient(g: Tensor, x: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of a convolution by its weight."""
    return weight_gradient(x, g, _kernel_sizes(c, 1), c.attrs)


def _convolution_bias_gradient(g: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of a convolution by its bias: the sum over batch and positions."""
    rank = len(c.attrs.stride)
    return sum_(g, axis=(g.ndim - rank - 2, *range(g.ndim - rank, g.ndim)))


def _conv_transpose_input_gradient(g: Tensor, y: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of a transposed convolution by its input: a convolution of `g`."""
    return convolved(g, y, None, _kernel_sizes(c, 0), c.attrs)


def _conv_transpose_weight_gradient(g: Tensor, x: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of a transposed convolution by its weight."""
    return weight_gradient(g, x, _kernel_sizes(c, 1), c.attrs)


def _weights_input_gradient(g: Tensor, y: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of a convolution's weight gradient by the convolution's input."""
    return transposed(y, g, _kernel_sizes(c, 0), c.attrs)


def _weights_output_gradient(g: Tensor, x: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of a convolution's weight gradient by the output's gradient."""
    return convolved(x, g, None, _kernel_sizes(c, 1), c.attrs)


# --- views ---------------------------------------------------------------------------------------


def _view_gradient(g: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of a view: its reshape, permutation, expansion or slice undone."""
    shape, m = c.spec().shape, c.attrs
    if m[0] == "reshape":
        return view(g, ("reshape", shape))
    if m[0] == "permute":
        return view(g, ("permute", tuple(m[1].index(d) for d in range(len(shape)))))
    return g if m[0] == "expand" else _undo_slice(g, shape, *m[1:])


def _undo_slice(g: Tensor, shape: Shape, starts: Shape, lengths: Shape, steps: Shape) -> Tensor:
    """Return `g` at the positions that a slice read, and zeros elsewhere.

    It is expressed as a gather, so that it fuses. A slice with gaps is written into zeros instead,
    because dividing positions took 9 times as long.
    """
    if 0 in lengths:
        return zeros(spec(shape, g.dtype, g.device))
    if any(abs(t) > 1 for t in steps):
        view_layout = lay.apply_move(lay.contiguous(shape), ("slice", starts, lengths, steps))
        assert view_layout is not None
        return view(scatter_to_memory(g, view_layout, math.prod(shape)), ("reshape", shape))
    for d, (start, step) in enumerate(zip(starts, steps, strict=True)):
        if step < 0:
            g = _reverse_axis(g, d)
            starts = (*starts[:d], start - lengths[d] + 1, *starts[d + 1 :])
    return _pad_with_zeros(g, shape, starts)


def _pad_with_zeros(g: Tensor, shape: Shape, starts: Shape) -> Tensor:
    """Return `g` at `starts` in a tensor of `shape`, else 0, as one gather that fuses."""
    cut = [d for d in range(len(shape)) if g.shape[d] != shape[d]]
    if not cut:
        return g
    inside: list[Tensor] = []
    positions: list[Expr] = []
    for d in cut:
        column = tuple(n if k == d else 1 for k, n in enumerate(shape))
        at = view(_arange(-starts[d], shape[d], g), ("reshape", column))
        inside.append(ew.logical_and(at >= 0, at < g.shape[d]))
        positions.append(ew.clip(at, 0, g.shape[d] - 1)._expr)
    axes = tuple(-1 if d in cut else d for d in range(len(shape)))
    attrs = (shape, axes, tuple(cut), None)
    read = create_tensor(
        node(ops.GATHER, (g._expr, *positions), spec(shape, g.dtype, g.device), attrs)
    )
    return ew.where(reduce(ew.logical_and, inside), read, 0.0)


def _arange(first: int, n: int, like: Tensor) -> Tensor:
    """Return the int64 numbers first, first + 1, ... (`n` of them) on the device of `like`."""
    return generate(ops.ARANGE, (n,), (first, 1), (int64, int64), int64, like.device)


# --- memory: as_strided, and writes that other tensors see --------------------------------------


def scatter_to_memory(g: Tensor, layout: StridedView, size: int) -> Tensor:
    """Return flat memory of `size`: `g` at the positions of `layout`, duplicates added, else 0."""
    if layout == lay.contiguous(layout.shape) and g.size == size:
        return view(g, ("reshape", (size,)))
    flat = zeros(spec((size,), g.dtype, g.device))
    if _overlaps_itself(layout):
        place_ = _memory_offsets(layout, g)
        operands = (flat._expr, view(g, ("reshape", (g.size,)))._expr, place_._expr)
        placed = create_tensor(node(ops.SCATTER, operands, flat._expr.spec, Manner("add")))
    else:
        placed = create_tensor(leaf(evaluate_leaf(flat).storage, flat._expr.spec, (1,), 0))
        if g.size:
            run.write(
                [g._expr], leaf(placed._expr.storage, g._expr.spec, layout.strides, layout.offset)
            )
        placed._expr.tape = tape_of(ops.PLACE, (g._expr,), placed._expr.spec, (layout, size))
    return placed


def _overlaps_itself(layout: StridedView) -> bool:
    """Return True if two elements may share an address."""
    reach = 0  # span of the axes with smaller strides; a larger stride cannot collide with them
    for stride, n in sorted(
        (abs(s), n) for s, n in zip(layout.strides, layout.shape, strict=True) if n > 1
    ):
        if stride <= reach:
            return True
        reach += stride * (n - 1)
    return False


def _memory_offsets(layout: StridedView, like: Tensor) -> Tensor:
    """Return the memory offsets of a layout's elements, flat, on the device of `like`."""
    at = generate(ops.FULL, (), (layout.offset,), (int64,), int64, like.device)
    for d, (n, stride) in enumerate(zip(layout.shape, layout.strides, strict=True)):
        column = (n, *(1,) * (len(layout.shape) - d - 1))
        at = at + view(_arange(0, n, like), ("reshape", column)) * stride
    return view(view(at, ("expand", layout.shape)), ("reshape", (math.prod(layout.shape),)))


def strided_view(memory: Tensor, layout: StridedView) -> Tensor:
    """Evaluate a flat memory, copied if it has gaps; return a view of it with a layout."""
    whole = lay.contiguous(memory.shape)
    e = evaluate_leaf(memory if memory.is_contiguous() else apply(ops.COPY, (memory,)))
    s = spec(layout.shape, memory.dtype, memory.device)
    view_leaf = leaf(e.storage, s, layout.strides, e.offset + layout.offset)
    view_leaf.tape = tape_of(ops.AS_STRIDED, (e,), s, (whole, layout, memory.size))
    return record_alias(memory, create_tensor(view_leaf))


def _as_strided_gradient(g: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of as_strided, through the whole memory.

    Elements outside of the operand's own view get no gradient.
    """
    source, view_layout, size = c.attrs
    return strided_view(scatter_to_memory(g, view_layout, size), source)


def _place_gradient(g: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of PLACE: the elements of `g` that the layout selects."""
    return strided_view(g, c.attrs[0])


def _memory_gradient_of_write(g: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of a write by the memory: `g`, but 0 where the write stored a value."""
    view_layout, written_layout, size = c.attrs
    flat = scatter_to_memory(
        ones(spec(written_layout.shape, g.dtype, g.device)), written_layout, size
    )
    return ew.where(ew.equal(strided_view(flat, view_layout), 0), g, 0.0)


def _value_gradient_of_write(g: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of a write by the value: the elements of `g` that were written."""
    view_layout, written_layout, size = c.attrs
    return apply(ops.COPY, (strided_view(scatter_to_memory(g, view_layout, size), written_layout),))


# --- gather and scatter --------------------------------------------------------------------------


def _gather_gradient(g: Tensor, c: RuleContext, rest: list[Tensor]) -> Tensor:
    """Return the gradient of a gather: zeros, with `g` added at the positions that were read.

    The order of the sum is that of the result, so the bits are the same on all devices.
    """
    shape, axes, of, asked = c.attrs
    source = c.spec().shape
    positions = rest
    if asked is not None:
        positions = [_check_indices_again(i, a, c.line) for i, a in zip(rest, asked, strict=True)]
    if _is_take_along_axis(shape, axes, of, source):
        return _scatter_by_mask(g, cast(positions[0], int64), of[0], source)
    lead = [d for d, a in enumerate(axes) if a < 0]
    tail = [d for d, a in enumerate(axes) if a >= 0]
    tail.sort(key=lambda d: axes[d])
    source_axes = [axes[d] for d in tail]
    unit_axes = [a for a in range(len(source)) if a not in of and a not in source_axes]
    wide = tuple(shape[d] for d in tail) + (1,) * len(unit_axes)
    rows = (math.prod(shape[d] for d in lead), *wide)

    def as_rows(t: Tensor) -> Tensor:
        """Return `t`, expanded to `shape`, as rows: leading axes first, the others flat behind."""
        t = view(t, ("expand", shape)) if t.shape != shape else t
        return view(view(t, ("permute", (*lead, *tail))), ("reshape", rows))

    indices = [as_rows(cast(i, int64)) for i in positions]
    onto = (*(source[a] for a in of), *wide)
    flat = zeros(spec(onto, g.dtype, g.device))
    operands = tuple(t._expr for t in (flat, as_rows(g), *indices))
    total = create_tensor(node(ops.SCATTER, operands, flat._expr.spec, Manner("add")))
    order = [*of, *source_axes, *unit_axes]
    back = view(total, ("permute", tuple(order.index(a) for a in range(len(order)))))
    if back.shape != source:  # an axis of size 1 was broadcast
        grown = tuple(a for a in range(len(source)) if back.shape[a] != source[a])
        back = sum_(back, axis=grown, keepdims=True)
    return back


def _is_take_along_axis(shape: Shape, axes: Shape, axes_read: Shape, source: Shape) -> bool:
    """Return True if a gather reads one element along one axis per position of the others."""
    if len(axes_read) != 1 or len(shape) != len(source) or shape[axes_read[0]] != 1:
        return False
    others = [d for d in range(len(source)) if d != axes_read[0]]
    return axes[axes_read[0]] < 0 and all(axes[d] == d and shape[d] == source[d] for d in others)


def _scatter_by_mask(g: Tensor, index: Tensor, axis: int, source: Shape) -> Tensor:
    """Return `g` at the index along an axis, else 0, by comparing positions, so that it fuses."""
    column = tuple(n if d == axis else 1 for d, n in enumerate(source))
    positions = view(_arange(0, source[axis], g), ("reshape", column))
    return ew.where(ew.equal(positions, index), g, 0.0)


def _check_indices_again(i: Tensor, purpose: object, line: str | None) -> Tensor:
    """Record a check of indices; return them counted from the start of the axis.

    The check must be repeated: the forward op may never run.
    """
    s = spec(i.shape, int64, i.device)
    e = node(ops.CHECKED_INDICES, (i._expr,), s, (purpose, True, None))
    if line is not None:
        mark_index_check(e, line)
    return create_tensor(e)


def _gather_values(t: Tensor, indices: list[Tensor], shape: Shape) -> Tensor:
    """Return the elements at the positions that a scatter wrote, in the shape of its values."""
    k = len(indices)
    axes = (-1, *range(k, k + len(shape) - 1))
    attrs = (shape, axes, tuple(range(k)), None)
    operands = (t._expr, *(i._expr for i in indices))
    return create_tensor(node(ops.GATHER, operands, spec(shape, t.dtype, t.device), attrs))


def _scatter_target_gradient(g: Tensor, c: RuleContext, rest: list[Tensor]) -> Tensor:
    """Return the gradient by a scatter's target: `g`, set to 0 at the positions if overwritten."""
    if c.attrs.operation == "add":
        return g
    values = zeros(spec(c.spec(1).shape, g.dtype, g.device))
    operands = (g._expr, values._expr, *(i._expr for i in rest))
    return create_tensor(node(ops.SCATTER, operands, g._expr.spec, Manner("set", unique=True)))


def _scatter_values_gradient(g: Tensor, c: RuleContext, rest: list[Tensor]) -> Tensor:
    """Return the gradient by a scatter's values; of duplicate positions only the last gets it."""
    shape = c.spec(1).shape
    values = _gather_values(g, rest, shape)
    if c.attrs.operation == "add" or c.attrs.unique:
        return values
    turn = view(_arange(0, shape[0], g), ("reshape", (shape[0], *(1,) * (len(shape) - 1))))
    turn = view(turn, ("expand", shape))
    blank = generate(ops.FULL, g.shape, (-1,), (int64,), int64, g.device)
    operands = (blank._expr, turn._expr, *(i._expr for i in rest))
    last = create_tensor(node(ops.SCATTER, operands, blank._expr.spec, Manner("set")))
    return ew.where(ew.equal(_gather_values(last, rest, shape), turn), values, 0.0)


def _scatter_node(x: Tensor, y: Tensor, indices: list[Tensor], mode: Manner) -> Tensor:
    """Return `x` with the values `y` combined into it at the positions `indices`."""
    op = ops.SCATTER if mode.operation == "add" else ops.SCATTER_REDUCE
    return create_tensor(node(op, tuple(t._expr for t in (x, y, *indices)), x._expr.spec, mode))


def _scatter_reduce_gradients(
    g: Tensor, c: RuleContext, x: Tensor, y: Tensor, r: Tensor, rest: list[Tensor]
) -> Tensor:
    """Return the gradient of products or extremes by target (operand 0) or values (operand 1).

    Extremes share it evenly. If one factor of a product is 0, only its own derivative is not zero.
    A quotient of the result, and not of other factors, lets second derivatives reach a lone zero.
    """
    x, y, shape = cast(x, g.dtype), cast(y, g.dtype), c.spec(1).shape
    if c.attrs.operation == "mul":
        x, y, r = conj(x), conj(y), conj(r)
        zero, zero_value = ew.equal(x, 0), ew.equal(y, 0)
        zeros_ = _scatter_node(cast(zero, int64), cast(zero_value, int64), rest, Manner("add"))
        safe, safe_value = ew.where(zero, 1.0, x), ew.where(zero_value, 1.0, y)
        others = ew.where(
            ew.equal(zeros_, 1), g * _scatter_node(safe, safe_value, rest, c.attrs), 0.0
        )
        if c.position == 0:
            return ew.where(zero, others, g * r / safe)
        others, product = (_gather_values(t, rest, shape) for t in (others, g * r))
        return ew.where(zero_value, others, product / safe_value)
    here = ew.logical_or(ew.equal(x, r), ew.isnan(x))
    value_here = ew.logical_or(ew.equal(y, _gather_values(r, rest, shape)), ew.isnan(y))
    ties = _scatter_node(cast(here, g.dtype), cast(value_here, g.dtype), rest, Manner("add"))
    share = g / ew.maximum(ties, 1.0)
    if c.position == 0:
        return ew.where(here, share, 0.0)
    return ew.where(value_here, _gather_values(share, rest, shape), 0.0)


# --- joining and moving ---------------------------------------------------------------------------


def _concat_gradient(g: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of a concatenation by one operand: its slice of `g`."""
    axis, i = c.attrs, c.position
    start = sum(s.shape[axis] for s in c.operands[:i] if s is not None)
    return slice_along(g, axis, start, c.spec().shape[axis])


def _to_device_gradient(g: Tensor, c: RuleContext) -> Tensor:
    """Return the gradient of a transfer: `g`, moved back to the operand's device."""
    return move(g, c.spec().device)


# --- masks of what a gradient reaches -------------------------------------------------------------


def _view_mask(mask: Tensor, c: RuleContext) -> Tensor:
    """Return the mask of a view's operand: True where a viewed element is reached."""
    shape, m = c.spec().shape, c.attrs
    if m[0] == "expand":
        lead = mask.ndim - len(shape)
        axes = tuple(d for d in range(mask.ndim) if d < lead or shape[d - lead] != mask.shape[d])
        return view(any_(mask, axis=axes, keepdims=True), ("reshape", shape))
    if m[0] == "slice":  # elements outside of the slice are not reached
        return ew.not_equal(_view_gradient(cast(mask, float32), c), 0)
    return _view_gradient(mask, c)


MASK_RULES: dict[ops.Op, Callable[[Tensor, RuleContext], Tensor]] = {
    ops.VIEW: _view_mask,
    ops.CONCAT: _concat_gradient,
    **dict.fromkeys((ops.SUM, ops.MEAN, ops.PROD, ops.MAX, ops.MIN), _broadcast),
}

# --- the rules -----------------------------------------------------------------------------------

GRADIENT_RULES: dict[ops.Op, tuple[Rule, ...]] = {
    ops.SUM: (_broadcast,),
    ops.MEAN: (_mean_gradient,),
    ops.PROD: (_prod_gradient,),
    ops.MAX: (_extremes_gradient,),
    ops.MIN: (_extremes_gradient,),
    ops.CUMULATIVE_SUM: (_cumulative_sum_gradient,),
    ops.CUMULATIVE_PROD: (_cumulative_prod_gradient,),
    ops.CUMULATIVE_LOGSUMEXP: (_cumulative_logsumexp_gradient,),
    ops.RECURRENCE: (_recurrence_factor_gradient, _recurrence_term_gradient),
    ops.MATMUL: (_matmul_left_gradient, _matmul_right_gradient),
    ops.CONVOLUTION: (
        _convolution_input_gradient,
        _convolution_weight_gradient,
        _convolution_bias_gradient,
    ),
    ops.CONVOLUTION_INPUT: (_conv_transpose_input_gradient, _conv_transpose_weight_gradient),
    ops.CONVOLUTION_WEIGHT: (_weights_input_gradient, _weights_output_gradient),
    ops.VIEW: (_view_gradient,),
    ops.AS_STRIDED: (_as_strided_gradient,),
    ops.PLACE: (_place_gradient,),
    ops.WRITTEN: (_memory_gradient_of_write, _value_gradient_of_write),
    ops.GATHER: (_gather_gradient,),
    ops.SCATTER: (_scatter_target_gradient, _scatter_values_gradient),
    ops.SCATTER_REDUCE: (_scatter_reduce_gradients, _scatter_reduce_gradients),
    ops.CONCAT: (_concat_gradient,),
    ops.TO_DEVICE: (_to_device_gradient,),
}
