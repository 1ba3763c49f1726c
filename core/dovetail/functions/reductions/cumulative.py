"""Running sums and products, and differences along an axis.

The order is the same on every device; float16 and bfloat16 are accumulated in float32.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ... import layout as lay
from ...argument_checks import flag, integer
from ...dtypes import bool_
from ...errors import ArgumentError, DTypeError, ShapeError
from ...graph.expr import node, spec
from ...ops import table as ops
from ...tensor.other_layouts import call_along, has_rule
from ...tensor.primitives import apply, slice_along
from ...tensor.promotion import Array, Operand, as_tensors
from ...tensor.tensor import Tensor, create_tensor, required, to_strided
from ..creation.constructors import full
from ..datatypes import DTypeLike, any_dtype, result_type
from ..shape.copies import concat
from ..shape.manipulation import broadcast_to
from ..variants import public

__all__ = ["cumulative_logsumexp", "cumulative_prod", "cumulative_sum", "diff"]


@public(method=True, in_place=("cumulative_sum_", "cumsum_"), cache=True, widen=False)
def cumulative_sum(
    x: Tensor,
    /,
    axis: int | None = None,
    *,
    dtype: DTypeLike = None,
    include_initial: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the sums of the elements up to each one, along `axis`.

    - `axis`: one axis; required above one dimension.
    - `dtype`: the elements are cast to it first.
    - `include_initial`: True puts a 0 first, so that the axis is one longer.

    Shapes: of at least 1 dimension; the result has the same.
    Dtypes: all; integers and bool give int64 or uint64, float16 and bfloat16 are summed in float32.
    Order: k ascending, in blocks of 256 (docs/numerics.md): the same bits on every device.
    Raises: ArgumentError without axis, AxisError, DTypeError, ShapeError for no dimensions.
    See also: `cumulative_prod`, `sum`, `diff`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1, 2, 3])
    >>> dt.cumulative_sum(x).tolist(), dt.cumulative_sum(x, include_initial=True).tolist()
    ([1, 3, 6], [0, 1, 3, 6])
    """
    return _accumulate(ops.CUMULATIVE_SUM, x, axis, dtype, include_initial)


@public(method=True, in_place=("cumulative_prod_", "cumprod_"), cache=True, widen=False)
def cumulative_prod(
    x: Tensor,
    /,
    axis: int | None = None,
    *,
    dtype: DTypeLike = None,
    include_initial: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the products of the elements up to each one, along `axis`.

    - `axis`: one axis; required above one dimension.
    - `dtype`: the elements are cast to it first.
    - `include_initial`: True puts a 1 first, so that the axis is one longer.

    Shapes: of at least 1 dimension; the result has the same.
    Dtypes: all; integers and bool give int64 or uint64, float16 and bfloat16 use float32.
    Order: k ascending, one after the other: the same bits on every device.
    Gradient: exact where elements are 0, and so are all higher derivatives.
    Raises: ArgumentError without axis, AxisError, DTypeError, ShapeError for no dimensions.
    See also: `cumulative_sum`, `prod`.

    >>> import dovetail as dt
    >>> dt.cumulative_prod(dt.asarray([1, 2, 3])).tolist()
    [1, 2, 6]
    """
    return _accumulate(ops.CUMULATIVE_PROD, x, axis, dtype, include_initial)


@public(method=True, in_place=True, cache=True)
def cumulative_logsumexp(
    x: Tensor,
    /,
    axis: int | None = None,
    *,
    dtype: DTypeLike = None,
    include_initial: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the logarithms of the sums of exponentials up to each element, along `axis`.

    No intermediate overflows.

    - `axis`: one axis; required above one dimension.
    - `dtype`: the elements are cast to it first.
    - `include_initial`: True puts a -inf first, so that the axis is one longer.

    Shapes: of at least 1 dimension; the result has the same.
    Dtypes: floats; integers and bool become float32, float16 and bfloat16 are computed in float32.
    Order: k ascending, each by `logaddexp` of the one before: the same bits on every device.
    Raises: ArgumentError without axis, AxisError, DTypeError, ShapeError for no dimensions.
    See also: `logsumexp`, `cumulative_sum`.

    >>> import dovetail as dt
    >>> dt.cumulative_logsumexp(dt.zeros(3)).tolist()
    [0.0, 0.6931471824645996, 1.0986123085021973]
    """
    return _accumulate(ops.CUMULATIVE_LOGSUMEXP, x, axis, dtype, include_initial)


def _accumulate(op: ops.Op, x: Tensor, axis: int | None, dtype: DTypeLike, initial: bool) -> Tensor:
    """Return the pending result of a running op.

    Raises: ShapeError for no dimensions, ArgumentError for several without an axis, DTypeError for
    the dtype bool.
    """
    initial = flag(op.name, initial, "include_initial")
    x = required(op.name, x)
    if x.ndim == 0:
        raise ShapeError(
            f"{op.name}: expected at least 1 dimension, got shape (); use dt.reshape(x, (1,))"
        )
    if axis is None and x.ndim > 1:
        raise ArgumentError(f"{op.name}: axis= must be given for shape {x.shape}")
    d = lay.axis(op.name, 0 if axis is None else axis, x.ndim)
    if has_rule(x, "along"):
        function = partial(_accumulate, op, axis=d, dtype=dtype, initial=initial)
        result: Tensor = call_along(op.name, function, (x,), (d,))
        return result
    x = to_strided(x)
    attrs = (d, initial, None if dtype is None else any_dtype(op.name, dtype))
    _, kind = op.dtypes(op.name, [x.dtype], attrs)
    if kind is bool_:
        raise DTypeError(f"{op.name}: dtype must not be bool; use dt.any or dt.all")
    shape = (*x.shape[:d], x.shape[d] + initial, *x.shape[d + 1 :])
    return create_tensor(node(op, (x._expr,), spec(shape, kind, x.device, op.name), attrs))


@public(method=True, cache=True)
def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Operand | None = None,
    append: Operand | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the differences of neighbours along `axis`, taken `n` times.

    For bool, True means that two neighbours differ.

    - `n`: how many times the differences are taken; 0 returns `x`.
    - `prepend`, `append`: numbers or tensors that are joined to `x` before and after it first,
      unless n is 0.

    Shapes: at least 1 dimension; the axis is n shorter, or empty. `prepend` and `append` may differ
    from `x` along the axis; a number or a 0-dimensional tensor is broadcast to one slice.
    Dtypes: all; integers wrap.
    Raises: ArgumentError for n < 0, ShapeError, AxisError, DTypeError, DeviceError.
    See also: `cumulative_sum`, `gradient`, `ediff1d`.

    >>> import dovetail as dt
    >>> dt.diff(dt.asarray([1, 4, 9])).tolist()
    [3, 5]
    """
    n = integer("diff", n, "n", 0)
    if required("diff", x).ndim == 0:
        raise ShapeError("diff: expected at least 1 dimension, got shape ()")
    d = lay.axis("diff", axis, x.ndim)
    pieces = [p if p is x else _edge(x, p, d) for p in (prepend, x, append) if p is not None]
    x = concat(pieces, axis=d) if n and len(pieces) > 1 else x
    for _ in range(min(n, x.shape[d])):  # empty from there on
        op = ops.NOT_EQUAL if x.dtype is bool_ else ops.SUBTRACT
        less = max(x.shape[d] - 1, 0)
        x = apply(op, (slice_along(x, d, 1, less), slice_along(x, d, 0, less)))
    return x


def _edge(x: Tensor, value: Operand, d: int) -> Array:
    """Return the array to join to `x` along axis `d`; a scalar is broadcast to one slice."""
    shape = (*x.shape[:d], 1, *x.shape[d + 1 :])
    if isinstance(value, bool | int | float | complex):
        return full(shape, value, dtype=result_type(x, value), device=x.device)
    value = np.asarray(value) if isinstance(value, np.generic) else value
    if isinstance(value, Tensor | np.ndarray) and value.ndim == 0:
        return broadcast_to(as_tensors("diff", x, value)[1], shape)
    return value
