"""Selection of values by conditions or indices, and writes at positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ... import layout as lay
from ...argument_checks import choice as one_of
from ...argument_checks import function as a_function
from ...argument_checks import sequence
from ...dtypes import int64
from ...engine import tracer_api
from ...errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from ...ops import table as ops
from ...tensor.host import from_host, read_values
from ...tensor.primitives import apply
from ...tensor.promotion import ARRAY_TYPES, Array, Operand, as_operand, convert_operands
from ...tensor.tensor import Tensor, required, strided
from ...tensor.writes import write_result
from ..creation.constructors import zeros
from ..creation.from_values import asarray
from ..datatypes import DTypeLike, as_dtype, cast, promote_operands, result_type
from ..shape.manipulation import broadcast_to, ravel, reshape
from ..variants import public
from .index_keys import index_array
from .index_reads import MODES, wrap_or_clip
from .index_writes import scatter_along, set_rows

__all__ = ["choose", "piecewise", "put", "put_along_axis", "select", "vectorize"]


@public(out=True, widen=False)
def select(
    conditions: Sequence[Array],
    choices: Sequence[Operand],
    default: Operand = 0,
    /,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return at each position the first choice whose condition holds there, else a default.

    - `conditions`: a list of tensors of bool.
    - `choices`: as many tensors or numbers.
    - `default`: the value where no condition holds, a number or a tensor.

    Shapes: all are broadcast.
    Dtypes: conditions bool; the result has the promoted dtype of choices and default.
    Gradient: flows only to the chosen elements.
    Raises: ArgumentError for different numbers of conditions and choices or for none; ShapeError,
    DTypeError, DeviceError.
    See also: `where`, `choose`, `piecewise`.

    >>> import dovetail as dt
    >>> x = dt.asarray([-1, 2, 9])
    >>> dt.select([x < 0, x < 5], [0, x], 5).tolist()
    [0, 2, 5]
    """
    tests = sequence("select", conditions, "conditions", "tensors")
    listed = sequence("select", choices, "choices", "tensors or numbers")
    if len(tests) != len(listed) or not tests:
        raise ArgumentError(
            f"select: expected as many choices as conditions, and at least one, "
            f"got {len(tests)} conditions and {len(listed)} choices"
        )
    values = convert_operands("select", *tests, *listed, default)
    masks, choice_values = values[: len(tests)], values[len(tests) :]
    d = result_type(*choice_values) if any(isinstance(v, Tensor) for v in choice_values) else None
    result = choice_values[-1]
    for condition, value in zip(reversed(masks), reversed(choice_values[:-1]), strict=True):
        if d is not None and not isinstance(value, Tensor) and not isinstance(result, Tensor):
            result = as_dtype("select", result, d, values)  # two numbers alone do not have it
        result = apply(ops.WHERE, (condition, value, result))
    assert isinstance(result, Tensor)
    return result


@public(out=True, widen=False)
def piecewise(
    x: Tensor,
    conditions: Sequence[Array],
    functions: Sequence[Operand | Callable[..., Operand]],
    /,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Evaluate a piecewise function: the value of the last function whose condition holds.

    Unlike in NumPy, a function gets all of `x`, so that no shape depends on values.

    - `conditions`: a list of tensors of bool.
    - `functions`: as many functions of a tensor or numbers, and optionally one more for positions
      where none holds, default 0.

    Shapes: conditions broadcast to x's; the result has x's.
    Dtypes: all; the result has x's.
    Gradient: flows through the chosen function.
    Raises: ArgumentError for another number of functions; ShapeError, DTypeError, DeviceError.
    See also: `select`, `where`, `choose`.

    >>> import dovetail as dt
    >>> x = dt.asarray([-2.0, 3.0])
    >>> dt.piecewise(x, [x < 0, x >= 0], [lambda v: -v, 7]).tolist()
    [2.0, 7.0]
    """
    required("piecewise", x)
    pieces = sequence("piecewise", functions, "functions", "functions or numbers")
    listed = [conditions] if isinstance(conditions, (Tensor, np.ndarray)) else conditions
    masks = sequence("piecewise", listed, "conditions", "tensors")
    if len(pieces) not in (len(masks), len(masks) + 1):
        raise ArgumentError(
            f"piecewise: expected as many functions as conditions, or one more, "
            f"got {len(masks)} conditions and {len(pieces)} functions"
        )
    if len(pieces) == len(masks):
        pieces = [*pieces, 0]
    *values, result = [
        promote_operands("piecewise", x, f(x) if callable(f) else f)[1] for f in pieces
    ]
    result = apply(ops.WHERE, (apply(ops.EQUAL, (x, x)), result, result))
    for condition, value in zip(masks, values, strict=True):
        result = apply(ops.WHERE, (condition, value, result))
    result_cast = cast(result, x.dtype)
    if result_cast.shape != x.shape:
        raise ShapeError(
            f"piecewise: a function must return the shape {x.shape} of x, got {result_cast.shape}"
        )
    return result_cast


@public(method=True, out=True, widen=False)
def choose(
    x: Array, choices: Sequence[Operand], /, *, mode: str = "raise", out: Tensor | None = None
) -> Tensor:
    """Pick each element from one of `choices`, using `x` as the index.

    - `choices`: a list of tensors or numbers.
    - `mode`: the treatment of numbers out of range: for "raise" the host checks them, "wrap" takes
      them modulo the number of choices, "clip" the nearest.

    Shapes: all are broadcast.
    Dtypes: x integers; the result has the promoted dtype of the choices.
    Gradient: flows only to the chosen elements.
    Raises: OutOfRangeError, ArgumentError for no choices or another mode; ShapeError, DTypeError,
    DeviceError.
    See also: `select`, `where`, `take`.

    >>> import dovetail as dt
    >>> dt.choose(dt.asarray([0, 1, 0]), [[1, 2, 3], 10]).tolist()
    [1, 10, 3]
    """
    one_of("choose", mode, "mode", MODES)
    listed = sequence("choose", choices, "choices", "tensors or numbers")
    if not listed:
        raise ArgumentError("choose: expected at least one choice, got none")
    numbers, *values = convert_operands("choose", x, *listed)
    if not isinstance(numbers, Tensor) or not numbers.dtype.is_integer:
        raise DTypeError(
            f"choose: x must hold integers, got {getattr(numbers, 'dtype', type(numbers).__name__)}"
        )
    numbers = _bring_into_range("choose", cast(numbers, int64), len(values), mode)
    if any(isinstance(v, Tensor) for v in values):
        values = [*promote_operands("choose", *values)]
    result = values[-1]
    for i in range(len(values) - 1, -1, -1):
        result = apply(ops.WHERE, (apply(ops.EQUAL, (numbers, i)), values[i], result))
    assert isinstance(result, Tensor)
    return result


def _bring_into_range(op: str, positions: Tensor, n: int, mode: str) -> Tensor:
    """Return positions in 0..n-1 by `mode`; for "raise" the host checks them."""
    if mode != "raise":
        return wrap_or_clip(positions, n, mode)
    values = tracer_api.call_on_batch(partial(read_values, op), positions)
    if values.size and not (values.min() >= 0 and values.max() < n):
        raise OutOfRangeError(
            f"{op}: indices must be between 0 and {n - 1}, got {values.min()}..{values.max()}"
        )
    return positions


# --- writes ---------------------------------------------------------------------------------------


@public(method=True, out=True, widen=False)
def put(
    x: Tensor, indices: Array, values: Operand, /, *, mode: str = "raise", out: Tensor | None = None
) -> Tensor:
    """Write values at positions of the raveled elements of this tensor, and return it.

    - `indices`: integers; negative ones count from the end.
    - `values`: as many elements as indices, or fewer that are repeated; of several for one position
      the last one stays.
    - `mode`: the treatment of indices out of range: "raise", "wrap" or "clip", which takes negative
      ones as 0.

    Shapes: any; all views of the memory see the write.
    Dtypes: `values` are cast to x's if that loses no kind of number.
    Raises: OutOfRangeError, DTypeError, ShapeError for no values, ReadOnlyError, GradientError for
    a leaf that requires one, ArgumentError for another mode.
    See also: `put_along_axis`, `scatter`, `take`.

    >>> import dovetail as dt
    >>> dt.put(dt.zeros((2, 2)), [0, -1], [7, 9]).tolist()
    [[7.0, 0.0], [0.0, 9.0]]
    """
    one_of("put", mode, "mode", MODES)
    strided("put", x)
    positions = index_array("put", indices)
    positions = (
        positions
        if isinstance(positions, Tensor)
        else from_host(np.asarray(positions, np.int64), int64, x.device)
    )
    positions = ravel(positions)
    if not positions.size:
        return x
    if mode != "raise":
        positions = _bring_into_range("put", cast(positions, int64), max(x.size, 1), mode)
    if isinstance(values, ARRAY_TYPES):
        values = as_operand("put", values, (x,))
    if isinstance(values, Tensor):
        values = _repeat_to(ravel(values), positions.size)
    flat = reshape(x, (-1,))
    if x.is_contiguous():
        set_rows("put", flat, positions, values)
        return x
    flat = apply(ops.COPY, (flat,))
    set_rows("put", flat, positions, values)
    return write_result("put", x, [reshape(flat, x.shape)])


def _repeat_to(values: Tensor, n: int) -> Tensor:
    """Return the first `n` elements of a repeated vector; one element stays one."""
    if not values.size:
        raise ShapeError(f"put: expected at least one value for {n} positions, got none")
    if values.size in (1, n):
        return values
    rounds = -(-n // values.size)
    wide = reshape(broadcast_to(values, (rounds, values.size)), (-1,))
    return wide[:n]


@public(method=True, out=True, widen=False)
def put_along_axis(
    arr: Tensor, indices: Array, values: Operand, axis: int = -1, *, out: Tensor | None = None
) -> Tensor:
    """Write values at `indices` along `axis` of this tensor, and return it.

    - `arr`: the tensor to write.
    - `indices`: the positions along the axis, as for `take_along_axis`, the inverse operation.
    - `values`: a tensor or number, broadcast.

    Shapes: `indices` and `values` broadcast to arr's along all other axes.
    Dtypes: `indices` integers; `values` are cast to arr's if that loses no kind of number.
    Raises: OutOfRangeError, ShapeError, DTypeError, AxisError, ReadOnlyError, GradientError for a
    leaf that requires one.
    See also: `take_along_axis`, `scatter`.

    >>> import dovetail as dt
    >>> x = dt.zeros((2, 2))
    >>> dt.put_along_axis(x, [[1], [0]], 5, axis=1).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    x = strided("put_along_axis", arr)
    d = lay.axis("put_along_axis", axis, x.ndim)
    positions = index_array("put_along_axis", indices)
    positions = (
        positions
        if isinstance(positions, Tensor)
        else from_host(np.asarray(positions, np.int64), int64, x.device)
    )
    if positions.ndim != x.ndim:
        raise ShapeError(
            f"put_along_axis: indices must have {x.ndim} dimensions, as shape {x.shape}, "
            f"got shape {positions.shape}"
        )
    shape = (*x.shape[:d], positions.shape[d], *x.shape[d + 1 :])
    index = broadcast_to(positions, shape)
    return scatter_along("put_along_axis", x, d, index, values, "set")


# --- Python functions -----------------------------------------------------------------------------


@public(widen=False)
def vectorize(
    function: Callable[..., object], /, *, dtype: DTypeLike = None
) -> Callable[..., Tensor]:
    """Return a function of tensors that calls a function of Python numbers in a host loop.

    As in NumPy, this is only a convenience: a composition of `dt`'s functions runs on the device
    and does not need it.

    - `function`: gets one number of each operand, and returns one.
    - `dtype`: the dtype of the result; None takes the dtype of the returned numbers.

    Shapes: the returned function broadcasts its operands.
    Dtypes: the result has `dtype`, or the dtype of the returned numbers.
    Cost: the host calls the function for every element; `dt.vmap` does not.
    Raises: ArgumentTypeError unless it is a function; the returned function raises ShapeError,
    DTypeError, DeviceError.
    See also: `vmap`, `elementwise`.

    >>> import dovetail as dt
    >>> collatz = dt.vectorize(lambda n: n // 2 if n % 2 == 0 else 3 * n + 1)
    >>> collatz(dt.asarray([3, 4])).tolist()
    [10, 2]
    """
    a_function("vectorize", function)

    def vectorized(*args: Operand) -> Tensor:
        """Call the function for each element on the host; return a tensor of the results."""
        values = convert_operands("vectorize", *args)
        device = next(x.device for x in values if isinstance(x, Tensor))
        arrays = [read_values("vectorize", x) if isinstance(x, Tensor) else x for x in values]
        wide = np.broadcast_arrays(*arrays)
        rows = zip(*[a.ravel().tolist() for a in wide], strict=True)
        results = [function(*row) for row in rows]
        if not results:
            return zeros(wide[0].shape, dtype=dtype, device=device)
        result = as_operand("vectorize", results, values) if dtype is None else results
        return reshape(asarray(result, dtype=dtype, device=device), wide[0].shape)

    return vectorized
