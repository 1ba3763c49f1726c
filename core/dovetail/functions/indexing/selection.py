"""Values chosen by conditions, by number, or put at places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ... import layout as lay
from ...arguments import choice as one_of
from ...arguments import function as a_function
from ...arguments import named, sequence
from ...dtypes import int64
from ...engine import recording
from ...errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from ...ops import table as ops
from ...tensor.host import from_host, values_of
from ...tensor.operands import ARRAYS, Array, Operand, beside, operands
from ...tensor.tensor import Tensor, required, strided
from ...tensor.verbs import apply
from ...tensor.writes import write_result
from ..creation.constructors import zeros
from ..creation.from_values import asarray
from ..datatypes import DTypeLike, as_dtype, cast, meet, result_type
from ..shape.manipulation import broadcast_to, ravel, reshape
from ..variants import into
from .index_keys import index_array
from .index_writes import scatter_, setitem

__all__ = ["choose", "piecewise", "put", "put_along_axis", "select", "vectorize"]


@into(widen=False)
def select(
    conditions: Sequence[Array], choices: Sequence[Operand], default: Operand = 0, /, *,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """At each place the first of some choices whose condition holds there, else a default.

    `conditions`: a list of tensors of bool. `choices`: as many tensors or numbers. `default`: what
    is taken where no condition holds.
    Shapes: all are broadcast.
    Dtypes: conditions bool; the result has the promoted dtype of choices and default.
    Gradient: flows to what is chosen only.
    Raises: ArgumentError for other numbers of conditions and choices or for none; ShapeError,
    DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> x = dt.asarray([-1, 2, 9], device="reference")
    >>> dt.select([x < 0, x < 5], [0, x], 5).tolist()
    [0, 2, 5]
    """
    asked = sequence("select", conditions, "conditions", "tensors")
    given = sequence("select", choices, "choices", "tensors or numbers")
    if len(asked) != len(given) or not asked:
        raise ArgumentError(
            f"select: {len(asked)} conditions and {len(given)} choices: as many, and one at least"
        )
    values = operands("select", *asked, *given, default)
    wheres, parts = values[: len(asked)], values[len(asked) :]
    d = result_type(*parts) if any(isinstance(v, Tensor) for v in parts) else None
    result = parts[-1]
    for condition, value in zip(reversed(wheres), reversed(parts[:-1]), strict=True):
        if d is not None and not isinstance(value, Tensor) and not isinstance(result, Tensor):
            result = as_dtype("select", result, d, values)  # two numbers do not know the dtype
        result = apply(ops.WHERE, (condition, value, result))
    assert isinstance(result, Tensor)
    return result


@into(widen=False)
def piecewise(
    x: Tensor, conditions: Sequence[Array], functions: Sequence[Operand | Callable[..., Operand]],
    /, *, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """A function by parts: where a condition holds the value of its function, the last one wins.

    `conditions`: a list of tensors of bool. `functions`: as many functions of a tensor or numbers,
    and one more for where none holds, which is 0 otherwise. A function sees all of `x`, unlike
    NumPy's: so no shape depends on values.
    Shapes: conditions broadcast to x's; the result has x's.
    Dtypes: all; the result has x's.
    Gradient: flows through the function that is chosen.
    Raises: ArgumentError for another number of functions; ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> x = dt.asarray([-2.0, 3.0], device="reference")
    >>> dt.piecewise(x, [x < 0, x >= 0], [lambda v: -v, 7]).tolist()
    [2.0, 7.0]
    """
    required("piecewise", x)
    given = sequence("piecewise", functions, "functions", "functions or numbers")
    listed = [conditions] if isinstance(conditions, (Tensor, np.ndarray)) else conditions
    asked = sequence("piecewise", listed, "conditions", "tensors")
    if len(given) not in (len(asked), len(asked) + 1):
        raise ArgumentError(
            f"piecewise: {len(asked)} conditions and {len(given)} functions: as many, or one more"
        )
    if len(given) == len(asked):
        given = [*given, 0]
    *values, result = [meet("piecewise", x, f(x) if callable(f) else f)[1] for f in given]
    result = apply(ops.WHERE, (apply(ops.EQUAL, (x, x)), result, result))
    for condition, value in zip(asked, values, strict=True):
        result = apply(ops.WHERE, (condition, value, result))
    found = cast(result, x.dtype)
    if found.shape != x.shape:
        raise ShapeError(f"piecewise: what comes out has shape {found.shape}, x {x.shape}")
    return found


MODES = ("raise", "wrap", "clip")


@into(widen=False)
def choose(
    x: Array, choices: Sequence[Operand], /, *, mode: str = "raise", out: Tensor | None = None
) -> Tensor:
    """At each place one of some choices, whose number stands in `x`.

    `choices`: a list of tensors or numbers. `mode`: what becomes of numbers out of range: "raise"
    has the host look for them, "wrap" takes them modulo how many there are, "clip" the nearest.
    Shapes: all are broadcast.
    Dtypes: x integers; the result has the promoted dtype of the choices.
    Gradient: flows to what is chosen only.
    Raises: IndexOutOfRange, ArgumentError for no choices or another mode; ShapeError, DTypeError,
    DeviceError.

    >>> import dovetail as dt
    >>> dt.choose(dt.asarray([0, 1, 0], device="reference"), [[1, 2, 3], 10]).tolist()
    [1, 10, 3]
    """
    one_of("choose", mode, "mode", MODES)
    given = sequence("choose", choices, "choices", "tensors or numbers")
    if not given:
        raise ArgumentError("choose: needs at least one choice")
    at, *values = operands("choose", x, *given)
    if not isinstance(at, Tensor) or not at.dtype.is_integer:
        raise DTypeError(f"choose: x holds integers, not {getattr(at, 'dtype', type(at).__name__)}")
    at = _within("choose", cast(at, int64), len(values), mode)
    if any(isinstance(v, Tensor) for v in values):
        values = [*meet("choose", *values)]
    result = values[-1]
    for i in range(len(values) - 1, -1, -1):
        result = apply(ops.WHERE, (apply(ops.EQUAL, (at, i)), values[i], result))
    assert isinstance(result, Tensor)
    return result


def _within(op: str, at: Tensor, n: int, mode: str) -> Tensor:
    """Return positions in 0..n-1; those of "raise" are checked by the host."""
    if mode == "wrap":
        return apply(ops.REMAINDER, (at, n))
    if mode == "clip":
        return apply(ops.CLIP, (at, 0, n - 1))
    values = recording.look(partial(values_of, op), at)
    if values.size and not (values.min() >= 0 and values.max() < n):
        raise IndexOutOfRange(f"{op}: numbers {values.min()}..{values.max()} of {n} choices")
    return at


# --- putting --------------------------------------------------------------------------------------


@into(widen=False)
def put(
    x: Tensor, indices: Array, values: Operand, /, *, mode: str = "raise", out: Tensor | None = None
) -> Tensor:
    """This tensor, after values have been written at places of its raveled elements.

    `indices`: integers, negative ones counted from the end. `values`: as many, or fewer that are
    repeated; of several for one place the last one stays. `mode`: what becomes of indices out of
    range: "raise", "wrap" or "clip", which takes negative ones as 0.
    Shapes: any; it writes through views of the memory, and returns `x`.
    Dtypes: `values` are cast to x's where that loses no kind of number.
    Raises: IndexOutOfRange, DTypeError, ShapeError for no values, ReadOnlyError, GradientError for
    a leaf that requires one, ArgumentError for another mode.

    >>> import dovetail as dt
    >>> dt.put(dt.zeros((2, 2), device="reference"), [0, -1], [7, 9]).tolist()
    [[7.0, 0.0], [0.0, 9.0]]
    """
    one_of("put", mode, "mode", MODES)
    strided("put", x)
    at = index_array("put", indices)
    at = at if isinstance(at, Tensor) else from_host(np.asarray(at, np.int64), int64, x.device)
    at = ravel(at)
    if not at.size:
        return x
    if mode != "raise":
        at = _within("put", cast(at, int64), max(x.size, 1), mode)
    if isinstance(values, ARRAYS):
        values = beside("put", values, (x,))
    if isinstance(values, Tensor):
        values = _repeated(ravel(values), at.size)
    flat = reshape(x, (-1,))
    if x.is_contiguous():
        setitem(flat, at, values)
        return x
    flat = apply(ops.COPY, (flat,))
    setitem(flat, at, values)
    return write_result("put", x, [reshape(flat, x.shape)])


def _repeated(values: Tensor, n: int) -> Tensor:
    """The first `n` of a vector that is repeated."""
    if not values.size:
        raise ShapeError(f"put: no values for {n} places")
    if values.size in (1, n):
        return values
    rounds = -(-n // values.size)
    wide = reshape(broadcast_to(values, (rounds, values.size)), (-1,))
    return wide[:n]


@into(widen=False)
def put_along_axis(
    arr: Tensor, indices: Array, values: Operand, axis: int = -1, *, out: Tensor | None = None
) -> Tensor:
    """This tensor, after values have been written at `indices` along `axis`.

    `arr`: the tensor, which is written. `indices`: as for `take_along_axis`, which reads what this
    writes. `values`: a tensor or number.
    Shapes: `indices` and `values` broadcast to arr's along all other axes. It returns `arr`.
    Dtypes: `indices` integers; `values` are cast to arr's where that loses no kind of number.
    Raises: IndexOutOfRange, ShapeError, DTypeError, AxisError, ReadOnlyError, GradientError for a
    leaf that requires one.

    >>> import dovetail as dt
    >>> x = dt.zeros((2, 2), device="reference")
    >>> dt.put_along_axis(x, [[1], [0]], 5, axis=1).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    x = strided("put_along_axis", arr)
    d = lay.axis("put_along_axis", axis, x.ndim)
    at = index_array("put_along_axis", indices)
    at = at if isinstance(at, Tensor) else from_host(np.asarray(at, np.int64), int64, x.device)
    if at.ndim != x.ndim:
        raise ShapeError(f"put_along_axis: indices of shape {at.shape} for x of shape {x.shape}")
    shape = (*x.shape[:d], at.shape[d], *x.shape[d + 1 :])
    return scatter_(x, d, broadcast_to(at, shape), values)


# --- Python functions -----------------------------------------------------------------------------


@named(widen=False)
def vectorize(
    function: Callable[..., object], /, *, dtype: DTypeLike = None
) -> Callable[..., Tensor]:
    """A function of tensors made of a function of Python numbers, which the host calls in a loop.

    `function`: gets one number of each operand, and returns one. It is for convenience, as
    NumPy's: what is made of `dt`'s functions runs on the device and needs none of it.
    Shapes: of what it makes: operands are broadcast.
    Dtypes: the result has `dtype`, or that of the numbers that come out.
    Raises: ArgumentTypeError for no function; what it makes: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> collatz = dt.vectorize(lambda n: n // 2 if n % 2 == 0 else 3 * n + 1)
    >>> collatz(dt.asarray([3, 4], device="reference")).tolist()
    [10, 2]
    """
    a_function("vectorize", function)

    def vectorized(*given: Operand) -> Tensor:
        found = operands("vectorize", *given)
        device = next(x.device for x in found if isinstance(x, Tensor))
        arrays = [values_of("vectorize", x) if isinstance(x, Tensor) else x for x in found]
        wide = np.broadcast_arrays(*arrays)
        rows = zip(*[a.ravel().tolist() for a in wide], strict=True)
        made = [function(*row) for row in rows]
        if not made:
            return zeros(wide[0].shape, dtype=dtype, device=device)
        result = beside("vectorize", made, found) if dtype is None else made
        return reshape(asarray(result, dtype=dtype, device=device), wide[0].shape)

    return vectorized
