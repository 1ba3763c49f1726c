"""Writing at indices: `x[key] = value`, `scatter_`, `index_add_`.

Integers, slices, `...` and None write through a view, arrays through the `scatter` row, in which
the last of several values for one place wins.

A node that is to be written is made in a function of its own, which holds nothing of it after: what
nobody else refers to gets no memory, but is computed in the kernel that writes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from ... import layout as lay
from ...arguments import named
from ...dtypes import bool_
from ...errors import DeviceError, ShapeError
from ...graph.expr import Expr, Spec, ask, node, spec
from ...graph.ownership import Holder, take
from ...layout import Shape
from ...memory.tracing.stacktrace import line
from ...ops import table as ops
from ...ops.scatter import FEW, Manner
from ...ops.table import SCATTER, WHERE
from ...recent import Recent
from ...tensor.fields import alias, expr_of, is_strided
from ...tensor.host import fresh, from_host
from ...tensor.operands import Operand
from ...tensor.slicing import basic_leaf, is_integer_tensor
from ...tensor.tensor import Tensor, make, required, strided
from ...tensor.verbs import apply, pending_view, view
from ...tensor.writes import to_spec, value_node, write, write_value
from ..datatypes import cast
from ..graph_cache import Recipe, again, recipe
from ..variants import into
from .index_keys import (
    Key,
    Part,
    Selection,
    along,
    basic_view,
    checked,
    index_array,
    is_array,
    is_mask,
    key_parts,
    parts_along,
    positions_along,
    select,
)

__all__ = ["index_add", "scatter"]

How = Literal["set", "add"]


def setitem(x: Tensor, key: Key, value: Operand) -> None:
    """`x[key] = value`: the value is broadcast and cast to the memory of `x[key]`.

    Where integer arrays name a place several times, the last value stays. A mask with a value that
    does not depend on the number of its true elements needs no host read.
    Raises: as `x[key]`; DTypeError where the value's kind does not fit; ReadOnlyError;
    GradientError.

    >>> import dovetail as dt
    >>> x = dt.asarray([1, -2, 3], device="reference")
    >>> x[x < 0] = 0
    >>> x.tolist()
    [1, 0, 3]
    """
    e = basic_leaf(x, key)
    if e is not None:
        write_value("setitem", alias(x, make(e)), value)
        return
    if is_integer_tensor(key) and is_strided(x) and expr_of(x).spec.shape:
        write("setitem", x, _put_at(x, key, value), updates=True)
        return
    if type(value) in _NUMBERS and is_strided(x) and is_strided(key):
        made = _number_under(x, key, value)
        if made:
            write("setitem", x, made)
            return
    parts = key_parts(strided("setitem", x), key)
    if not any(is_array(p) for p in parts):
        write_value("setitem", basic_view(x, parts), value)
    elif not _written_by_mask(x, parts, value):
        _scatter("setitem", select("setitem", x, parts), value, "set")


_NUMBERS = (int, float, bool)


def _number_under(x: Tensor, mask: Tensor, value: Operand) -> Holder[Expr]:
    """What x is after `x[mask] = value`; nothing where this is for the general way."""
    e, under = expr_of(x), expr_of(mask)
    s = e.spec
    if e.op is not None or e.storage.pending is not None or not s.shape:
        return []
    if under.spec is not spec(s.shape, bool_, s.device):
        return []
    number = to_spec("setitem", value_node("setitem", value, s.dtype, s.device), s)
    return [node(WHERE, (under, number, e), s)]


# --- masks ----------------------------------------------------------------------------------------


def _written_by_mask(x: Tensor, parts: list[Part], value: Operand) -> bool:
    """Writes by `where`, if the only array is a mask and the value is the same under all of it."""
    arrays = [part for part in parts if is_array(part)]
    mask = arrays[0]
    if len(arrays) > 1 or isinstance(mask, bool) or not is_mask(mask) or mask.ndim == 0:
        return False
    if any(not isinstance(p, slice) for p in parts if p is not mask):
        return False
    lead = next(i for i, p in enumerate(parts) if p is mask)
    if tuple(mask.shape) != x.shape[lead : lead + mask.ndim]:
        return False  # the general way raises the error
    after = len(parts) - lead - 1
    new = _value_at_mask(x, mask.ndim, lead, after, value)
    if not new:
        return False
    whole = [slice(None)] * mask.ndim
    target = basic_view(x, [*parts[:lead], *whole, *parts[lead + 1 :]])
    write("setitem", target, [_chosen(_over(mask, after, x), new, target._expr)])
    return True


def _value_at_mask(x: Tensor, dims: int, lead: int, after: int, value: Operand) -> Holder[Expr]:
    """The value, with axes of size 1 for those of the mask.

    Nothing comes back where it has one value for each true element.
    """
    e = value_node("setitem", value, x.dtype, x.device)
    shape = e.spec.shape
    cut = len(shape) - after - 1  # the value's axis along the true elements
    if (cut >= 0 and shape[cut] != 1) or cut > lead:
        return []
    if cut < 0:
        return [e]
    return [pending_view(e, ("reshape", (*shape[:cut], *(1,) * dims, *shape[cut + 1 :])))]


def _over(mask: Tensor | np.ndarray, after: int, x: Tensor) -> Expr:
    """The mask's node, with axes of size 1 for those after it."""
    if isinstance(mask, np.ndarray):
        mask = from_host(mask, bool_, x.device)
    return pending_view(strided("setitem", mask)._expr, ("reshape", (*mask.shape, *(1,) * after)))


def _chosen(mask: Expr, new: Holder[Expr], old: Expr) -> Expr:
    """`new` where the mask is true, else `old`."""
    if mask.spec.device is not old.spec.device:
        raise DeviceError(f"index: is on {mask.spec.device}, the tensor on {old.spec.device}")
    return node(WHERE, (mask, to_spec("setitem", take(new), old.spec), old), old.spec)


# --- arrays ---------------------------------------------------------------------------------------


def _scatter(name: str, s: Selection, value: Operand, how: How) -> None:
    """Stores or adds a value at what a key selects."""
    taken = [i.axis for i in s.indices]
    kept = [d for d in s.result if d >= 0]
    ones = [d for d in range(s.merged.ndim) if d not in taken and d not in kept]
    rest = tuple(s.merged.shape[d] for d in kept) + (1,) * len(ones)
    order = (*taken, *kept, *ones)
    whole = order == (*range(len(order)),)
    target = s.merged if whole else view(s.merged, ("permute", order))
    made = [_scattered(name, s, target, _value(name, value, target), rest, how)]
    if s.shares:
        write(name, target, made, updates=True)
        return
    back = ("permute", tuple(order.index(d) for d in range(len(order))))
    write(name, s.sliced, [pending_view(take(made), back, ("reshape", s.sliced.shape))])


def _scattered(name: str, s: Selection, target: Tensor, e: Expr, rest: Shape, how: How) -> Expr:
    """The op that updates the target with a value."""
    values = target._expr.spec
    unique = len(s.indices) == 1 and s.indices[0].unique
    places = math.prod(s.shape) * math.prod(rest)
    simple = places < FEW and not unique and target._expr.tape is None and e.tape is None
    number = simple and _is_number(e, values)
    rows = e.args[0] if number else _value_rows(name, s, e, rest)
    asked = None
    if simple and len(s.indices) == 1 and not s.indices[0].known and values.size:
        asked = s.asked(name, s.indices[0])
    found = [s.known(name, i) if asked is None else i.node for i in s.indices]
    indices = [_index_rows(s, i, rest) for i in found]
    made = node(SCATTER, (target._expr, rows, *indices), values, Manner(how, unique, number, asked))
    if asked is not None:
        ask(made, line())
    return made


def _value(name: str, value: Operand, target: Tensor) -> Expr:
    want = expr_of(target).spec
    return value_node(name, value, want.dtype, want.device)


def _is_number(e: Expr, want: Spec) -> bool:
    """Whether a value is nothing but a Python number, in the dtype that is wanted."""
    return e.op is ops.FULL and not e.spec.shape and e.attrs == ((want.dtype,), want.dtype)


def _value_rows(name: str, s: Selection, e: Expr, rest: Shape) -> Expr:
    """The value as (number of places, *rest)."""
    want, n = s.merged._expr.spec, math.prod(s.shape)
    if e.spec.size == 1 and len(e.spec.shape) <= len(s.full_shape):
        scalar = spec((), want.dtype, want.device)
        one = to_spec(name, pending_view(e, ("reshape", ())), scalar)
        return pending_view(one, ("reshape", (1,) * (1 + len(rest))), ("expand", (n, *rest)))
    axes = range(len(s.full_shape))
    front = tuple(axes[s.front : s.front + len(s.shape)])
    order = front + tuple(d for d in axes if d not in front)
    e = to_spec(name, e, spec(s.full_shape, want.dtype, want.device))
    moved = e if order == (*axes,) else pending_view(e, ("permute", order))
    return pending_view(moved, ("reshape", (n, *rest)))


def _index_rows(s: Selection, i: Expr, rest: Shape) -> Expr:
    """An index's positions as (number of places, *rest)."""
    n = math.prod(s.shape)
    column = ("reshape", (n, *(1,) * len(rest)))
    return pending_view(i, ("expand", s.shape), column, ("expand", (n, *rest)))


# --- integers along the first axis ----------------------------------------------------------------

# The specs of a tensor, of its index and of a value, and whether that is a number -> how the value
# and the index become operands, the op's attributes, whether these are of a number, and whether
# indices are checked. It is found once, which takes 8 us.
_PUT: Recent[tuple[Spec, Spec, Spec, bool], tuple[Recipe, Recipe, Manner, bool, bool]]
_PUT = Recent(1024)
_PUT_LATELY = _PUT.young  # which stays the same dict


def _put_at(x: Tensor, index: Tensor, value: Operand) -> Holder[Expr]:
    """The op of `x[index] = value`, as `_scattered`."""
    e, i = expr_of(x), expr_of(index)
    v = _value("setitem", value, x)
    key = (e.spec, i.spec, v.spec, _is_number(v, e.spec))
    taped = e.tape is not None or v.tape is not None
    found = None if taped else _PUT_LATELY.get(key) or _PUT.find(key)
    if found is None:
        made = _scattered("setitem", along("setitem", x, index, 0), x, v, e.spec.shape[1:], "set")
        if not taped:
            _, rows, indices = made.args
            to_rows = [] if made.attrs.number else recipe(rows, [v])
            to_indices = recipe(indices, [i])
            if to_rows is not None and to_indices is not None:
                manner = made.attrs
                _PUT[key] = to_rows, to_indices, manner, manner.number, manner.asked is not None
        return [made]
    to_rows, to_indices, manner, number, asks = found
    rows = v.args[0] if number else again(to_rows, [v])
    made = node(SCATTER, (e, rows, again(to_indices, [i])), e.spec, manner)
    if asks:
        ask(made, line())
    return [made]


# --- places that are all there --------------------------------------------------------------------


def scatter_to(values: Tensor, positions: Tensor) -> Tensor:
    """A vector with values[i] at positions[i], which are all of its places, each once."""
    out = make(fresh(values._expr.spec))
    args = (out._expr, values._expr, positions._expr)
    write("scatter", out, [node(SCATTER, args, out._expr.spec, Manner("set", True))], updates=True)
    return out


# --- functions ------------------------------------------------------------------------------------


@into(widen=False)
def index_add(
    x: Tensor, dim: int, index: Operand, source: Operand, *, out: Tensor | None = None
) -> Tensor:
    """A copy of `x` to whose slices at `index` along `dim` those of `source` have been added.

    `source`: a tensor, an array or a number, broadcast. Additions to one place happen one after the
    other, in the order of `index`, those of float16 and bfloat16 in float32 and rounded at the end:
    the same bits everywhere.
    Shapes: `index` is a vector; `source` has x's shape, with its length along `dim`.
    Dtypes: `index` integers; `source` is cast to x's where that loses no kind of number.
    Raises: IndexOutOfRange, ShapeError, DTypeError, AxisError, DeviceError.

    >>> import dovetail as dt
    >>> dt.index_add(dt.zeros(3, device="reference"), 0, [0, 0, 2], [1, 2, 3]).tolist()
    [3.0, 0.0, 3.0]
    """
    return index_add_(apply(ops.COPY, (required("index_add", x),)), dim, index, source)


@named(widen=False)
def index_add_(x: Tensor, dim: int, index: Operand, source: Operand) -> Tensor:
    """`x`, after the slices of `source` along `dim` have been added to its slices at `index`.

    Parameters, order and dtypes are as for `dt.index_add`.
    Shapes: `index` is a vector; `source` has x's shape, with its length along `dim`.
    Dtypes: `index` integers; `source` is cast to x's where that loses no kind of number.
    Raises: IndexOutOfRange, ShapeError, DTypeError, AxisError, ReadOnlyError, GradientError for a
    leaf that requires a gradient.

    >>> import dovetail as dt
    >>> dt.zeros(3, device="reference").index_add_(0, [0, 0, 2], [1, 2, 3]).tolist()
    [3.0, 0.0, 3.0]
    """
    if strided("index_add", x).dtype.compute is not x.dtype:
        return _added_in_float32(index_add_, x, dim, index, source)
    d = lay.axis("index_add", dim, x.ndim)
    array = index_array("index_add", index)
    if array.ndim != 1:
        raise ShapeError(f"index_add: index is a vector, not of shape {tuple(array.shape)}")
    _scatter("index_add", select("index_add", x, parts_along(x, d, array)), source, "add")
    return x


@into(widen=False)
def scatter(
    x: Tensor, dim: int, index: Operand, src: Operand, *, out: Tensor | None = None
) -> Tensor:
    """A copy of `x` with the elements of `src` put in at `index` along `dim`.

    Every element keeps its own position along the other axes. In two dimensions, with dim 0:
    out[index[i, j], j] = src[i, j]. Of several elements for one place the last one along `dim`
    stays. `src` is a tensor, an array or a number, broadcast.
    Shapes: `index` has as many dimensions as x, and is no longer than it along the others; `src`
    has the shape of `index`.
    Dtypes: `index` integers; `src` is cast to x's where that loses no kind of number.
    Raises: IndexOutOfRange, ShapeError, DTypeError, AxisError, DeviceError.

    >>> import dovetail as dt
    >>> dt.scatter(dt.zeros(4, device="reference"), 0, [1, 3], [7, 9]).tolist()
    [0.0, 7.0, 0.0, 9.0]
    """
    return scatter_(apply(ops.COPY, (required("scatter", x),)), dim, index, src)


@named(widen=False)
def scatter_(x: Tensor, dim: int, index: Operand, src: Operand) -> Tensor:
    """`x`, after every element of `src` was written to its own place, but at `index` along `dim`.

    Parameters are as for `dt.scatter`: of several elements for one place the last one stays.
    Shapes: `index` has as many dimensions as x, and is no longer than it along the others; `src`
    has the shape of `index`.
    Dtypes: `index` integers; `src` is cast to x's where that loses no kind of number.
    Raises: IndexOutOfRange, ShapeError, DTypeError, AxisError, ReadOnlyError, GradientError for a
    leaf that requires a gradient.

    >>> import dovetail as dt
    >>> dt.zeros(4, device="reference").scatter_(0, [1, 3], [7, 9]).tolist()
    [0.0, 7.0, 0.0, 9.0]
    """
    return _scatter_along("scatter", x, dim, index, src, "set")


@named(widen=False)
def scatter_add_(x: Tensor, dim: int, index: Operand, src: Operand) -> Tensor:
    """`x`, after every element of `src` was added at its own place, but at `index` along `dim`.

    Parameters are as for `dt.scatter`. Additions to one place happen one after the other, in order
    along `dim`, those of float16 and bfloat16 in float32 and rounded at the end: the same bits on
    every device.
    Shapes: `index` has as many dimensions as x, and is no longer than it along the others; `src`
    has the shape of `index`.
    Dtypes: `index` integers; `src` is cast to x's where that loses no kind of number.
    Raises: IndexOutOfRange, ShapeError, DTypeError, AxisError, ReadOnlyError, GradientError for a
    leaf that requires a gradient.

    >>> import dovetail as dt
    >>> dt.zeros(3, device="reference").scatter_add_(0, [0, 0, 2], [1, 2, 3]).tolist()
    [3.0, 0.0, 3.0]
    """
    if strided("scatter_add", x).dtype.compute is not x.dtype:
        return _added_in_float32(scatter_add_, x, dim, index, src)
    return _scatter_along("scatter_add", x, dim, index, src, "add")


def _added_in_float32(add_: Callable[..., Tensor], x: Tensor, *args: Operand) -> Tensor:
    """Write to `x`, of reduced precision, what `add_` gives in float32: sums are rounded once."""
    write_value(add_.__name__.rstrip("_"), x, add_(cast(x, x.dtype.compute), *args))
    return x


def _scatter_along(
    name: str, x: Tensor, dim: int, index: Operand, src: Operand, how: How
) -> Tensor:
    d = lay.axis(name, dim, strided(name, x).ndim)
    operands = _source_and_positions(name, x, d, index, src)
    shape = operands[0].spec.shape
    lengths = (*shape[:d], x.shape[d], *shape[d + 1 :])
    order = (d, *(i for i in range(x.ndim) if i != d))
    part = view(x, ("slice", (0,) * x.ndim, lengths, (1,) * x.ndim))
    target = view(part, ("permute", order))
    write(name, target, [_updating(target, operands, order, how)], updates=True)
    return x


def _source_and_positions(name: str, x: Tensor, d: int, index: Operand, src: Operand) -> list[Expr]:
    """What `scatter` takes besides its target, of the indices' shape."""
    positions, asked = positions_along(name, x, index, d)
    shape = positions.spec.shape
    if any(n > m for i, (n, m) in enumerate(zip(shape, x.shape, strict=True)) if i != d):
        raise ShapeError(f"{name}: indices of shape {shape} reach beyond shape {x.shape}")
    e = to_spec(name, value_node(name, src, x.dtype, x.device), spec(shape, x.dtype, x.device))
    return [e, positions if asked is None else checked(asked, positions)]


def _updating(target: Tensor, operands: list[Expr], order: Shape, how: How) -> Expr:
    """The op that updates the target with what is permuted as that is. It empties the list."""
    given = [pending_view(e, ("permute", order)) for e in operands]
    operands.clear()
    return node(SCATTER, (target._expr, *given), target._expr.spec, Manner(how))
