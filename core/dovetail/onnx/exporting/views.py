"""Writers of constants, reductions, views, gathers, scatters and joins.

Each writer adds operators to the graph, and returns the name of their result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import dovetail as dt
from dovetail.extend import GraphNode

from .writer import GraphWriter, UnsupportedOpError, register_node_writer, size

W: TypeAlias = GraphWriter
N: TypeAlias = GraphNode
SLICE_END_MAX = 1 << 62


# --- constants ------------------------------------------------------------------------------------


@register_node_writer("full")
def _write_full(w: W, n: N) -> str:
    """Write a number, expanded to the shape."""
    one = w.number(n.args[0], n.dtype)
    if not n.shape:
        return one
    return w.add("Expand", [one, w.sizes(n.shape)])


@register_node_writer("arange")
def _write_arange(w: W, n: N) -> str:
    """Write Range in int64, times the step, plus the start."""
    start, step = n.args
    d = n.casts[0]
    count = w.add(
        "Range", [w.number(0, dt.int64), scalar(w, w.sizes(n.shape)), w.number(1, dt.int64)]
    )
    product = w.add("Mul", [w.cast(count, dt.int64, d), w.number(step, d)])
    return w.cast(w.add("Add", [product, w.number(start, d)]), d, n.dtype)


@register_node_writer("position")
def _write_position(w: W, n: N) -> str:
    """Write the row-major index of each element."""
    count = scalar(w, w.sizes([size(n.shape)]))
    indices = w.add("Range", [w.number(0, dt.int64), count, w.number(1, dt.int64)])
    return w.cast(w.reshape(indices, n.shape), dt.int64, n.dtype)


def scalar(w: W, name: str) -> str:
    """Write a vector of one element as a 0-d tensor."""
    return w.add("Reshape", [name, w.ints([])])


# --- reductions -----------------------------------------------------------------------------------

_REDUCTIONS = {
    "sum": "ReduceSum",
    "prod": "ReduceProd",
    "mean": "ReduceMean",
    "max": "ReduceMax",
    "min": "ReduceMin",
}


def _operand(n: N) -> N:
    """Return the first argument, which is a node."""
    a = n.args[0]
    assert isinstance(a, GraphNode)
    return a


def _keeps_axes(n: N) -> bool:
    """Return True if a reduction's result has as many axes as its operand: it keeps them."""
    return len(n.shape) == len(_operand(n).shape)


def _write_reduce(op: str, w: W, n: N) -> str:
    """Write a reduction, of bools as uint8. Raises: UnsupportedOpError for complex.

    Short integers are reduced as int32, as not all reductions have their dtypes.
    """
    axes, _ = n.attrs
    x, d = w.arg(n, 0), n.casts[0]
    if d.kind == "c":
        raise UnsupportedOpError("ONNX has no operators on complex numbers")
    if d.kind == "b":
        x, d = w.cast(x, d, dt.uint8), dt.uint8
    elif d.kind in "iu" and d.itemsize < 4:
        x, d = w.cast(x, d, dt.int32), dt.int32
    result = w.reduce(op, x, axes, _keeps_axes(n)) if axes else x
    return w.cast(result, d, n.dtype)


for _name, _op in _REDUCTIONS.items():
    register_node_writer(_name)(partial(_write_reduce, _op))


@register_node_writer("any", "all")
def _write_any_or_all(w: W, n: N) -> str:
    """Write ReduceMax or ReduceMin of int32 in place of bools."""
    axes, _ = n.attrs
    x = w.cast(w.arg(n, 0), dt.bool, dt.int32)
    op = "ReduceMax" if n.op == "any" else "ReduceMin"
    return w.cast(w.reduce(op, x, axes, _keeps_axes(n)) if axes else x, dt.int32, dt.bool)


@register_node_writer("count_nonzero")
def _write_count_nonzero(w: W, n: N) -> str:
    """Write ReduceSum of the nonzero mask in int64."""
    axes, _ = n.attrs
    x = w.cast(w.arg(n, 0), dt.bool, dt.int64)
    return w.reduce("ReduceSum", x, axes, _keeps_axes(n)) if axes else x


@register_node_writer("argmax", "argmin")
def _write_arg_reduction(w: W, n: N) -> str:
    """Write ArgMax or ArgMin; several axes are flattened to one first."""
    axes, _ = n.attrs
    x, a = w.arg(n, 0), _operand(n)
    op = "ArgMax" if n.op == "argmax" else "ArgMin"
    if n.casts[0].kind == "b":
        x = w.cast(x, dt.bool, dt.uint8)
    if len(axes) == 1:
        return w.add(op, [x], axis=axes[0], keepdims=int(_keeps_axes(n)))
    kept_axes = [d for d in range(len(a.shape)) if d not in axes]
    transposed = w.add("Transpose", [x], perm=[*kept_axes, *axes])
    flat = w.reshape(
        transposed, [*[a.shape[d] for d in kept_axes], size([a.shape[d] for d in axes])]
    )
    return w.reshape(w.add(op, [flat], axis=len(kept_axes), keepdims=0), n.shape)


# --- views ----------------------------------------------------------------------------------------


@register_node_writer("view")
def _write_view(w: W, n: N) -> str:
    """Write a view by the writer of its kind."""
    a = _operand(n)
    name: str = _VIEWS[n.attrs[0]](w, w.value(a), a, n)
    return name


def _write_permute(w: W, x: str, a: N, n: N) -> Any:
    """Write Transpose; return the name of its output."""
    return w.add("Transpose", [x], perm=list(n.attrs[1]))


def _write_expand(w: W, x: str, a: N, n: N) -> Any:
    """Write Expand."""
    return w.add("Expand", [x, w.sizes(n.shape)])


def _write_reshape(w: W, x: str, a: N, n: N) -> Any:
    """Write Reshape."""
    return w.reshape(x, n.shape)


def _write_slice(w: W, x: str, a: N, n: N) -> Any:
    """Write Slice over the axes that change, or Identity if none does."""
    starts, lengths, steps = n.attrs[1:]
    which = [
        d
        for d, (s, m, t) in enumerate(zip(starts, lengths, steps, strict=True))
        if (s, m, t) != (0, a.shape[d], 1)
    ]
    if not which:
        return w.add("Identity", [x])
    first = [starts[d] for d in which]
    last = []
    for d in which:
        stop = starts[d] + lengths[d] * steps[d]
        last.append(-SLICE_END_MAX if stop < 0 else SLICE_END_MAX if stop >= a.shape[d] else stop)
    first = [0 if lengths[d] == 0 else s for d, s in zip(which, first, strict=True)]
    last = [0 if lengths[d] == 0 else s for d, s in zip(which, last, strict=True)]
    each = [1 if lengths[d] == 0 else steps[d] for d in which]
    return w.add("Slice", [x, w.sizes(first), w.sizes(last), w.ints(which), w.ints(each)])


def _write_pad(w: W, x: str, a: N, n: N) -> Any:
    """Write Pad with zeros along one axis."""
    axis, start, whole = n.attrs[1:]
    begins = [start if d == axis else 0 for d in range(len(a.shape))]
    ends = [whole - start - a.shape[axis] if d == axis else 0 for d in range(len(a.shape))]
    return w.add("Pad", [x, w.sizes([*begins, *ends]), w.number(0, n.dtype)])


_VIEWS = {
    "permute": _write_permute,
    "expand": _write_expand,
    "reshape": _write_reshape,
    "slice": _write_slice,
    "pad": _write_pad,
}


def element_indices(shape: Sequence[int], strides: Sequence[int], offset: int) -> np.ndarray:
    """Return the indices of a view's elements in a flat tensor."""
    indices = np.full((), offset, np.int64)
    for d, (m, s) in enumerate(zip(shape, strides, strict=True)):
        at = np.arange(m, dtype=np.int64) * s
        indices = indices + at.reshape([-1 if e == d else 1 for e in range(len(shape))])
    return np.broadcast_to(indices, tuple(shape))


def _contiguous_strides(shape: Sequence[int]) -> list[int]:
    """Return the row-major strides of a shape, in elements."""
    strides, step = [], 1
    for m in reversed(shape):
        strides.append(step)
        step *= max(m, 1)
    return strides[::-1]


@register_node_writer("as_strided")
def _write_as_strided(w: W, n: N) -> str:
    """Write a strided view as Reshape if possible, else as Gather of the flat tensor."""
    a = _operand(n)
    shape, strides, offset = n.attrs
    x = w.value(a)
    if not offset and size(shape) == size(a.shape) and list(strides) == _contiguous_strides(shape):
        return w.reshape(x, shape)
    at = w.array(element_indices(shape, strides, offset), dt.int64)
    return w.add("Gather", [w.flatten(x), at], axis=0)


@register_node_writer("written")
def _write_into_view(w: W, n: N) -> str:
    """Write a tensor with the elements of a view replaced, by ScatterElements."""
    whole, value = n.args
    assert isinstance(whole, GraphNode) and isinstance(value, GraphNode)
    shape, strides, offset = n.attrs
    v = w.value(value)
    if not offset and size(shape) == size(n.shape) and list(strides) == _contiguous_strides(shape):
        return w.reshape(v, n.shape)
    at = w.array(element_indices(shape, strides, offset).reshape(-1), dt.int64)
    flat = w.add("ScatterElements", [w.flatten(w.value(whole)), at, w.flatten(v)], axis=0)
    return w.reshape(flat, n.shape)


@register_node_writer("concat")
def _write_concat(w: W, n: N) -> str:
    """Write Concat."""
    return w.add("Concat", w.args(n), axis=n.attrs)


# --- gathers and scatters -------------------------------------------------------------------------


def wrap_negative(w: W, index: str, size: int, checked: bool) -> str:
    """Write indices counted from the start of an axis; negative ones are wrapped if `checked`."""
    if not checked:
        return index
    below = w.add("Less", [index, w.number(0, dt.int64)])
    return w.where(below, w.add("Add", [index, w.number(size, dt.int64)]), index)


@register_node_writer("checked_indices")
def _write_checked_indices(w: W, n: N) -> str:
    """Write indices with negative ones wrapped, and ignored ones replaced by 0."""
    (_, _, size), from_end, ignored = n.attrs
    i, zero = w.arg(n, 0), w.number(0, dt.int64)
    if ignored is not None:
        i = w.where(w.add("Equal", [i, w.number(ignored, dt.int64)]), zero, i)
    return wrap_negative(w, i, size, from_end)


@register_node_writer("gather")
def _write_gather(w: W, n: N) -> str:
    """Write a gather along one axis if possible, else of the flat tensor."""
    _, axes, at, _ = n.attrs
    x = _operand(n)
    if len(at) == 1:
        name = _write_gather_along_axis(w, n, x, axes, at[0])
        if name:
            return name
    return _write_gather_flat(w, n, x)


def _write_gather_along_axis(w: W, n: N, x: N, axes: Sequence[int], at: int) -> str:
    """Write Gather or GatherElements for indices along one axis; return "" if neither fits."""
    index = n.args[1]
    assert isinstance(index, GraphNode)
    rank, new = len(n.shape), [d for d, a in enumerate(axes) if a < 0]
    i = w.arg(n, 1)
    remaining = [a for a in range(len(x.shape)) if a != at]
    others = [a for a in axes if a >= 0]
    if others != remaining:
        return ""
    lead = (1,) * (rank - len(index.shape)) + tuple(index.shape)
    if all(lead[d] == 1 for d in range(rank) if d not in new) and new == list(
        range(at, at + len(new))
    ):
        shape = [n.shape[d] for d in new]
        if [lead[d] for d in new] != shape:
            i = w.add("Expand", [w.reshape(i, [lead[d] for d in new]), w.sizes(shape)])
        else:
            i = w.reshape(i, shape)
        return w.add("Gather", [w.value(x), i], axis=at)
    if new == [at] and rank == len(x.shape):
        if lead != tuple(n.shape):
            i = w.add("Expand", [i, w.sizes(n.shape)])
        return w.add("GatherElements", [w.value(x), i], axis=at)
    return ""


def _write_gather_flat(w: W, n: N, x: N) -> str:
    """Write a gather of any indices, by the elements' indices in the flat tensor."""
    shape, axes, at, checked = n.attrs
    steps, rank = _contiguous_strides(x.shape), len(shape)
    fixed = np.zeros((1,) * rank, np.int64)
    for d, a in enumerate(axes):
        if a >= 0:
            here = np.arange(shape[d], dtype=np.int64) * steps[a]
            fixed = fixed + here.reshape([-1 if e == d else 1 for e in range(rank)])
    total = w.array(np.ascontiguousarray(fixed), dt.int64)
    for k, a in enumerate(at):
        i = wrap_negative(w, w.arg(n, k + 1), x.shape[a], checked is not None)
        total = w.add("Add", [w.add("Mul", [i, w.number(steps[a], dt.int64)]), total])
    total = w.add("Expand", [total, w.sizes(shape)])
    return w.add("Gather", [w.flatten(w.value(x)), total], axis=0)


_REDUCTION = {
    "set": "none",
    "add": "add",
    "max": "max",
    "min": "min",
    "multiply": "mul",
    "prod": "mul",
    "mul": "mul",
    "maximum": "max",
    "minimum": "min",
}


@register_node_writer("scatter")
def _write_scatter(w: W, n: N) -> str:
    """Write a scatter as ScatterElements of the flat tensor.

    Raises: UnsupportedOpError for a reduction that ONNX lacks, or lacks at this opset.
    """
    x, rows, *indices = n.args
    how = _REDUCTION.get(n.attrs.operation)
    if how is None:
        raise UnsupportedOpError(f"ONNX has no scatter with the reduction {n.attrs.operation}")
    if how in ("max", "min"):
        w.require_opset(18, "ScatterElements with max and min")
    assert isinstance(x, GraphNode) and all(isinstance(i, GraphNode) for i in indices)
    where = max((tuple(i.shape) for i in indices if isinstance(i, GraphNode)), key=size)
    if isinstance(rows, GraphNode) and size(rows.shape) > size(where):
        where = tuple(rows.shape)
    steps, lead = _contiguous_strides(x.shape), len(indices)
    inner = element_indices(x.shape[lead:], steps[lead:], 0)
    total = w.array(np.ascontiguousarray(inner), dt.int64)
    for k in range(lead):
        i = wrap_negative(w, w.arg(n, k + 2), x.shape[k], n.attrs.purpose is not None)
        total = w.add("Add", [w.add("Mul", [i, w.number(steps[k], dt.int64)]), total])
    total = w.flatten(w.add("Expand", [total, w.sizes(where)]))
    values = w.flatten(w.add("Expand", [w.arg(n, 1, x.dtype), w.sizes(where)]))
    options = {} if how == "none" else {"reduction": how}
    flat = w.add(
        "ScatterElements", [w.flatten(w.arg(n, 0, x.dtype)), total, values], axis=0, **options
    )
    return w.reshape(flat, n.shape)
