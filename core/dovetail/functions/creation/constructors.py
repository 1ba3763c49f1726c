"""Creation functions: filled tensors, ranges and grids.

Results that a formula describes stay pending, so that they fuse with their consumers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np

from ... import callbacks, settings
from ...argument_checks import (
    LARGEST,
    choice,
    dimensions,
    flag,
    integer,
    integers,
    number,
    real,
    shown,
)
from ...compat.keywords import MISSING
from ...device_class import default_device, usable
from ...dtypes import DType, bool_, float32, float64, int64, promote
from ...engine.traced_numbers import TracedFloat
from ...errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    ShapeError,
)
from ...graph.expr import Spec, node, spec
from ...layout import Shape
from ...memory.allocator import Allocator
from ...ops import table as ops
from ...tensor import promotion
from ...tensor.c_fields import expr_of, is_strided
from ...tensor.host import allocate_leaf, allocate_leaf_from, from_host, read_values
from ...tensor.primitives import apply, dispatch, view
from ...tensor.promotion import Scalar
from ...tensor.tensor import Tensor, create_tensor, required
from ...tensor.writes import full_complex, write_value
from .. import datatypes
from ..datatypes import REAL, DeviceLike, DTypeLike, any_dtype, cast, real_dtype, scalar
from ..graph_cache import CachedFunction, clear_creation_caches
from ..known_calls import empty_like_plain, fill_cache, full_like_plain, ones_like_plain
from ..plain_calls import accelerate
from ..variants import create_with_out, public

# numbers of this absolute value and more round to infinity
FLOAT32_OVERFLOW_MIN = 2.0**128 - 2.0**103
ShapeLike: TypeAlias = int | Sequence[int] | np.ndarray | Tensor
Fill: TypeAlias = Scalar | np.generic | np.ndarray | Tensor  # one number
FillArguments: TypeAlias = tuple[tuple[Scalar], tuple[tuple[DType], DType]]

__all__ = [
    "arange",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]

datatypes.default_dtype_listeners.append(clear_creation_caches)

_ARRAYS = (Tensor, np.ndarray)


def extents(op: str, shape: object) -> Shape:
    """Return a shape from an int, ints or a host-read array. Raises: ShapeError for others."""
    if type(shape) is int and 0 <= shape <= LARGEST:
        return (shape,)
    if type(shape) is tuple and len(shape) == 1 and type(shape[0]) is int:
        return dimensions(op, shape)
    listed = read_values(op, shape).tolist() if isinstance(shape, _ARRAYS) else shape
    try:
        return dimensions(op, integers(op, listed, "shape"))
    except ArgumentTypeError:
        raise ShapeError(
            f"{op}: shape must be an int or a tuple of ints, got {shown(shape)}"
        ) from None


def generate(
    op: ops.Op,
    shape: Shape,
    scalars: Sequence[Scalar],
    kinds: Sequence[DType],
    out: DType,
    device: DeviceLike,
    name: str = "",
) -> Tensor:
    """Return a pending tensor whose elements are a function of their linear index and of scalars.

    The scalars are arguments of the launch. `name` is the function's, if it differs from the op's.
    """
    s = spec(shape, out, usable(device, name or op.name), name or op.name)
    return create_tensor(node(op, tuple(scalars), s, (tuple(kinds), out)))


def empty(
    shape: ShapeLike = MISSING,
    *more: object,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    allocator: Allocator | None = None,
    out: Tensor | None = None,
    **theirs: object,
) -> Tensor:
    """Return a new tensor of this shape, with arbitrary contents.

    In `dt.poison_empty()` the tensor holds NaN, or the largest integer.

    - `shape`: an int or a tuple of ints.
    - `allocator`: allocates the memory (docs/storage.md); None is the device's own. Not with `out`.
    - `out`: is returned unchanged if it has that shape.

    Shapes: `shape` is an int or a tuple of ints.
    Dtypes: `dtype`, the default one (float32) unless given.
    Raises: ShapeError, DTypeError, DeviceError, OutOfMemoryError.
    See also: `zeros`, `full`, `empty_like`, `poison_empty`.

    >>> import dovetail as dt
    >>> dt.empty((2, 3)).shape
    (2, 3)
    """
    if more or theirs or out is not None:
        return _create_from_variants(empty, locals())
    return _cached_empty.call((shape,), {"dtype": dtype, "device": device, "allocator": allocator})


def _allocate_shape(
    shape: ShapeLike,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    allocator: Allocator | None = None,
) -> Tensor:
    """Return a tensor of new memory, with the defaults for None."""
    return _allocate("empty", _resolve_spec("empty", shape, dtype, device), allocator)


def _allocate(op: str, s: Spec, allocator: Allocator | None = None) -> Tensor:
    """Return a tensor over new memory, filled with junk if the settings say so."""
    tensor = create_tensor(
        allocate_leaf(s) if allocator is None else allocate_leaf_from(op, s, allocator)
    )
    if settings.fills_junk():
        junk = math.nan if s.dtype.kind in "fc" else True if s.dtype is bool_ else s.dtype.max
        write_value(op, tensor, junk)
    return tensor


def _resolve_spec(op: str, shape: ShapeLike, dtype: DTypeLike, device_like: DeviceLike) -> Spec:
    """Return a spec, with the defaults for None. Raises: ShapeError, DTypeError, DeviceError."""
    resolved = datatypes.default_dtype if dtype is None else any_dtype(op, dtype)
    device = default_device() if device_like is None else usable(device_like, op)
    if device.opened is None:
        usable(device, op)
    return spec(extents(op, shape), resolved, device, op)


def zeros(
    shape: ShapeLike = MISSING,
    *more: object,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
    **theirs: object,
) -> Tensor:
    """Return a new tensor of this shape, filled with 0.

    Shapes: `shape` is an int or a tuple of ints.
    Dtypes: `dtype`, the default one (float32) unless given.
    Raises: ShapeError, DTypeError, DeviceError.
    See also: `ones`, `empty`, `full`, `zeros_like`.

    >>> import dovetail as dt
    >>> dt.zeros((2,), dtype=dt.int32).tolist()
    [0, 0]
    """
    if more or theirs or out is not None:
        return _create_from_variants(zeros, locals())
    return _cached_zeros.call((shape,), {"dtype": dtype, "device": device})


def ones(
    shape: ShapeLike = MISSING,
    *more: object,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
    **theirs: object,
) -> Tensor:
    """Return a new tensor of this shape, filled with 1.

    Shapes: `shape` is an int or a tuple of ints.
    Dtypes: `dtype`, the default one (float32) unless given.
    Raises: ShapeError, DTypeError, DeviceError.
    See also: `zeros`, `full`, `ones_like`.

    >>> import dovetail as dt
    >>> dt.ones((2,), dtype=dt.int32).tolist()
    [1, 1]
    """
    if more or theirs or out is not None:
        return _create_from_variants(ones, locals())
    return _cached_ones.call((shape,), {"dtype": dtype, "device": device})


def full(
    shape: ShapeLike = MISSING,
    fill_value: Fill = MISSING,
    *more: object,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
    **theirs: object,
) -> Tensor:
    """Return a new tensor of this shape, filled with one number.

    - `fill_value`: a number, or a tensor or array of one element.

    Shapes: `shape` is an int or a tuple of ints.
    Dtypes: `dtype`; unless given that of `fill_value`: of Python's float float32, of complex
    complex64, of int int64.
    Gradient: to a tensor `fill_value` on the same device, of the same kind of dtype and no wider.
    The host reads other tensors.
    Raises: ShapeError, DTypeError, DeviceError, ValueOverflowError for a number that does not fit.
    See also: `zeros`, `ones`, `full_like`, `Tensor.fill_`.

    >>> import dovetail as dt
    >>> dt.full(2, 7).tolist()
    [7, 7]
    """
    if more or theirs or out is not None:
        return _create_from_variants(full, locals())
    return _cached_full.call((shape, fill_value), {"dtype": dtype, "device": device})


def create_full(
    op: str,
    shape: ShapeLike,
    fill_value: Fill,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return a filled tensor; without a dtype, the value's kind of number decides it."""
    if isinstance(fill_value, TracedFloat):
        fill_value = callbacks.as_tensor(fill_value, dtype=dtype, device=device)
    if isinstance(fill_value, Tensor | np.generic | np.ndarray):
        dtype = fill_value.dtype if dtype is None else dtype
        if fill_value.size != 1:
            raise ShapeError(f"{op}: the value must be one number, got shape {fill_value.shape}")
        if (filled := _fill_from_tensor(op, shape, fill_value, dtype, device)) is not None:
            return filled
        fill_value = read_values(op, fill_value).item()
    if dtype is None:
        dtype = next((k for k in (bool, int, float, complex) if isinstance(fill_value, k)), float)
    return _fill_constant(op, shape, fill_value, dtype, device)


def _fill_from_tensor(
    op: str, shape: ShapeLike, value: Fill, dtype: DTypeLike, device: DeviceLike
) -> Tensor | None:
    """Return a tensor filled on the device by a tensor's element; None if the host must read it.

    The host reads what is no strided tensor, is on another device, or is of another or wider dtype.
    """
    if not isinstance(value, Tensor) or not is_strided(value):
        return None
    d = any_dtype(op, dtype)
    fits = value.dtype.kind == d.kind and promote(value.dtype, d) is d
    if not fits or value.device is not usable(device, op):
        return None
    one = view(cast(value, d), ("reshape", ()), op)
    return apply(ops.COPY, (view(one, ("expand", extents(op, shape)), op),))


def _fill_shape(
    op: str, n: int, shape: ShapeLike, *, dtype: DTypeLike = None, device: DeviceLike = None
) -> Tensor:
    """Return a tensor filled with `n`, of the default dtype for None."""
    d = datatypes.default_dtype if dtype is None else dtype
    return _fill_constant(op, shape, n, d, device)


_cached_zeros = CachedFunction(partial(_fill_shape, "zeros", 0), creates=True)
_cached_ones = CachedFunction(partial(_fill_shape, "ones", 1), creates=True)
_cached_full = CachedFunction(partial(create_full, "full"), creates=True)
_cached_empty = CachedFunction(_allocate_shape, creates=True, allocates=True)
empty = accelerate(empty, _cached_empty)
zeros, ones = accelerate(zeros, _cached_zeros), accelerate(ones, _cached_ones)
full = accelerate(full, _cached_full)


def _fill_like(op: str, x: Tensor, value: Fill, dtype: DTypeLike, device: DeviceLike) -> Tensor:
    """Return a tensor of x's shape, filled with a number; x's dtype and device for None."""
    if dtype is None and device is None and is_strided(x) and type(value) in REAL:
        s = expr_of(x).spec
        convert: Callable[..., FillArguments] = (
            _convert_int if type(value) is int else _convert_fill
        )
        args, attrs = convert(op, value, s.dtype)
        if type(value) is int:
            fill_cache[value, s.dtype] = args, attrs
        return create_tensor(node(ops.FULL, args, s, attrs))
    dtype, device = _default_like(op, x, dtype, device)
    return create_full(op, x.shape, value, dtype=dtype, device=device)


def _convert_fill(op: str, value: object, d: DType) -> FillArguments:
    """Return the arguments and attributes of a pending tensor of one number."""
    return (scalar(op, value, d),), ((d,), d)


_convert_int = lru_cache(1024)(_convert_fill)  # a float is not cached: 0.0 equals -0.0


def _fill_constant(
    op: str, shape: ShapeLike, value: object, dtype: DTypeLike, device_like: DeviceLike
) -> Tensor:
    """Return a pending tensor of one number; `float` stands for the default dtype."""
    d = datatypes.default_dtype if dtype is float else any_dtype(op, dtype)
    if d.kind == "c" and isinstance(value, complex):
        return create_tensor(
            full_complex(value, spec(extents(op, shape), d, usable(device_like, op), op))
        )
    return generate(ops.FULL, extents(op, shape), (scalar(op, value, d),), (d,), d, device_like, op)


def _create_from_variants(function: Callable[..., Tensor], scope: dict[str, Any]) -> Tensor:
    """Call a creation function with separate sizes, a positional dtype, other names, or `out`."""
    more, out = list(scope.pop("more")), scope.pop("out", None)
    sizes = [scope.get("shape"), *more]
    if all(isinstance(n, int) for n in sizes) and "fill_value" not in scope:
        scope["shape"], more = sizes, []
    elif more and scope["dtype"] is None:
        scope["dtype"] = more.pop(0)
    return create_with_out(
        function, out, {**scope, "more": more, "out": None}, function is not empty
    )


def empty_like(
    x: Tensor = MISSING,
    /,
    *more: object,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    allocator: Allocator | None = None,
    **theirs: object,
) -> Tensor:
    """Return a new tensor of x's shape, dtype and device, with arbitrary contents.

    - `allocator`: allocates the memory; None is the device's own.

    Shapes: any.
    Dtypes: x's, unless `dtype` is given.
    Raises: DTypeError, DeviceError, OutOfMemoryError.

    >>> import dovetail as dt
    >>> dt.empty_like(dt.zeros((2, 3))).shape
    (2, 3)
    """
    if more or theirs:
        return _create_from_variants(empty_like, locals())
    if is_strided(x) and dtype is None and device is None and allocator is None:
        return _allocate("empty_like", expr_of(x).spec)
    dtype, device = _default_like("empty_like", x, dtype, device)
    return _allocate("empty_like", _resolve_spec("empty_like", x.shape, dtype, device), allocator)


def zeros_like(
    x: Tensor = MISSING,
    /,
    *more: object,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    **theirs: object,
) -> Tensor:
    """Return a new tensor of x's shape, dtype and device, filled with 0.

    Shapes: any; the result for a sparse tensor is strided.
    Dtypes: x's, unless `dtype` is given.
    Raises: DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.zeros_like(dt.asarray([5, 6])).tolist()
    [0, 0]
    """
    if more or theirs:
        return _create_from_variants(zeros_like, locals())
    return _fill_like("zeros_like", x, 0, dtype, device)


def ones_like(
    x: Tensor = MISSING,
    /,
    *more: object,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    **theirs: object,
) -> Tensor:
    """Return a new tensor of x's shape, dtype and device, filled with 1.

    Shapes: any; the result for a sparse tensor is strided.
    Dtypes: x's, unless `dtype` is given.
    Raises: DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.ones_like(dt.asarray([5, 6])).tolist()
    [1, 1]
    """
    if more or theirs:
        return _create_from_variants(ones_like, locals())
    return _fill_like("ones_like", x, 1, dtype, device)


def full_like(
    x: Tensor = MISSING,
    /,
    fill_value: Fill = MISSING,
    *more: object,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    **theirs: object,
) -> Tensor:
    """Return a new tensor of x's shape, dtype and device, filled with one number.

    - `fill_value`: a number, or a tensor or array of one element.

    Shapes: any.
    Dtypes: x's, unless `dtype` is given.
    Gradient: to a tensor `fill_value`, as for `full`.
    Raises: DTypeError, DeviceError, ShapeError, ValueOverflowError for a number that does not fit.

    >>> import dovetail as dt
    >>> dt.full_like(dt.zeros(2), 7).tolist()
    [7.0, 7.0]
    """
    if more or theirs:
        return _create_from_variants(full_like, locals())
    return _fill_like("full_like", x, fill_value, dtype, device)


empty_like = accelerate(empty_like, empty_like_plain)
zeros_like = accelerate(zeros_like, full_like_plain)
ones_like = accelerate(ones_like, ones_like_plain)
full_like = accelerate(full_like, full_like_plain, 2)


def _default_like(
    op: str, x: Tensor, dtype: DTypeLike, device_like: DeviceLike
) -> tuple[DTypeLike, DeviceLike]:
    """Return the dtype and the device, with those of `x` for None."""
    required(op, x)
    return x.dtype if dtype is None else dtype, x.device if device_like is None else device_like


@public(cache="creation", widen=False)
def arange(
    start: Fill,
    /,
    stop: Fill | None = None,
    step: Fill = 1,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the numbers from `start` up to but excluding `stop`, `step` apart.

    Number k is start + k * step, so that errors do not accumulate.

    - `start`: the first number; with a single argument it is `stop`, and the numbers begin at 0.
    - `stop`: the end, which is excluded; None for a single argument.
    - `step`: the distance, which may be negative but not 0.

    Shapes: (ceil((stop - start) / step),), or (0,).
    Dtypes: `dtype`; default: int64 if all three are ints, else the default one (float32).
    Raises: ArgumentError for a zero step or an infinite count, DTypeError for bool,
    ValueOverflowError, ShapeError.
    See also: `linspace`, `logspace`, `meshgrid`.

    >>> import dovetail as dt
    >>> dt.arange(2, 8, 3).tolist()
    [2, 5]
    """
    start, stop = (0, start) if stop is None else (start, stop)
    start, stop, step = (
        v if type(v) is int else _one_number("arange", v, name)
        for v, name in ((start, "start"), (stop, "stop"), (step, "step"))
    )
    wanted = None if dtype is None else real_dtype("arange", dtype)
    ints = type(start) is type(stop) is type(step) is int
    resolve = _resolve_int_progression if ints else _resolve_progression
    count, first, by, wide, d = resolve(start, stop, step, wanted)
    return generate(ops.ARANGE, (count,), (first, by), (wide, wide), d, device)


def _resolve_progression(
    start: float, stop: float, step: float, dtype: DType | None
) -> tuple[int, int | float, int | float, DType, DType]:
    """Return count, first number, step, the dtype of both, and the dtype of the result.

    Raises: ArgumentError, ShapeError, DTypeError, ValueOverflowError.
    """
    if step == 0:
        raise ArgumentError("arange: step must not be 0")
    ints = all(isinstance(v, int) for v in (start, stop, step))
    d = dtype if dtype is not None else (int64 if ints else datatypes.default_dtype)
    if d is bool_:
        raise DTypeError(
            "arange: dtype must be numeric, got bool; use dt.arange(...).astype(dt.bool)"
        )
    count = _count_steps(start, stop, step, ints)
    if count and d.is_integer:
        scalar("arange", start, d), scalar("arange", start + (count - 1) * step, d)
    if d.kind == "f":
        start, step = real("arange", start, "start"), real("arange", step, "step")
    wide = d if d.kind == "f" else int64 if d.kind == "i" else d
    first, by = (
        (float(start), float(step))
        if d.kind == "f"
        else (int(start), int(step) % (wide.max + 1) if d.kind == "u" else int(step))
    )
    return count, first, by, wide, d


_resolve_int_progression = lru_cache(256)(_resolve_progression)


def _one_number(op: str, value: object, name: str) -> int | float:
    """Return a real number, or that of an array of one element, which the host reads.

    Raises: ShapeError for an array of another size, DTypeError for a complex number,
    ArgumentTypeError for other objects.
    """
    if isinstance(value, Tensor | np.ndarray):
        if value.size != 1:
            raise ShapeError(f"{op}: {name} must be one number, got shape {value.shape}")
        value = read_values(op, value).item()
    if isinstance(value, complex):
        raise DTypeError(f"{op}: {name} must be a real number, got {value}")
    return number(op, value, name)


def _count_steps(start: float, stop: float, step: float, ints: bool) -> int:
    """Return the number of elements of `arange`. Raises: ArgumentError if infinite, ShapeError."""
    if ints:
        count = int(-((start - stop) // step))
    else:
        a, b, s = (real("arange", v, "every bound") for v in (start, stop, step))
        length = (b - a) / s
        if not math.isfinite(length):
            raise ArgumentError(
                f"arange: the number of steps must be finite, got start={a}, stop={b}, step={s}"
            )
        count = math.ceil(length)
    return dimensions("arange", (max(0, count),))[0]


@public(cache="creation", widen=False)
def linspace(
    start: complex,
    stop: complex,
    /,
    num: int = 50,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    endpoint: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """Return `num` evenly spaced numbers from `start` to `stop`; both ends are exact.

    - `start`, `stop`: the ends, numbers or tensors of one element.
    - `num`: the number of elements.
    - `endpoint`: False leaves `stop` out, and the distance is (stop - start) / num.

    Shapes: (num,).
    Dtypes: `dtype`, the default one (float32, of complex ends complex64) unless given; integers are
    truncated.
    Raises: ArgumentError for a negative `num`, DTypeError.
    See also: `arange`, `logspace`, `geomspace`.

    >>> import dovetail as dt
    >>> dt.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if isinstance(start, complex) or isinstance(stop, complex):
        dtype = complex if dtype is None else dtype
    d = datatypes.default_dtype if dtype is None else any_dtype("linspace", dtype)
    if d.kind == "c":
        a, b = complex(start), complex(stop)
        re, im = (
            linspace(v, w, num, dtype=d.part, device=device, endpoint=endpoint)
            for v, w in ((a.real, b.real), (a.imag, b.imag))
        )
        return complex_from_parts(re, im)
    start, stop = (
        _real_bound("linspace", v, name) for v, name in ((start, "start"), (stop, "stop"))
    )
    count = dimensions("linspace", (integer("linspace", num, "num", 0),))[0]
    endpoint = flag("linspace", endpoint, "endpoint")
    gaps = count - 1 if endpoint else count
    wide = float64 if d is float64 else float32
    step = (stop - start) / gaps if gaps > 0 else 0.0
    if math.isinf(step):
        step = stop / gaps - start / gaps
    if not abs(step) < (math.inf if wide is float64 else FLOAT32_OVERFLOW_MIN):
        # infinite ends, with infinity or NaN between them, or finite ends beyond float32
        infinite = not math.isfinite(step)
        inner = [start + stop if infinite else start + i * step for i in range(1, gaps)]
        with np.errstate(over="ignore"):
            ends = np.asarray([start, *inner, stop][:count]).astype(wide.name)
        return cast(from_host(ends, wide, usable(device, "linspace")), d)
    scalars = (start, stop if gaps > 0 else start, step, max(gaps, 0))
    return generate(ops.LINSPACE, (count,), scalars, (wide, wide, wide, int64), d, device)


def complex_from_parts(re: Tensor, im: Tensor) -> Tensor:
    """Return re + im i, for floats of one dtype."""
    return apply(ops.ADD, (re, apply(ops.MULTIPLY, (im, 1j))))


def _real_bound(op: str, value: object, name: str) -> float:
    """Return a real number as a float, also from a tensor of one element, which the host reads.

    Raises: as `_one_number`; ArgumentError for a number beyond float64.
    """
    return real(op, _one_number(op, value, name), name)


@public(cache="creation", widen=False)
def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return a matrix with ones on one diagonal and zeros elsewhere.

    - `n_rows`: the number of rows.
    - `n_cols`: the number of columns; None takes `n_rows`.
    - `k`: the diagonal: 0 is the main one, positive ones are above it, negative ones below it.

    Shapes: (n_rows, n_cols).
    Dtypes: `dtype`, the default one (float32) unless given.
    Raises: ShapeError, DTypeError, DeviceError.
    See also: `diag`, `tri`, `linalg.diagonal`.

    >>> import dovetail as dt
    >>> dt.eye(2, 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    d = datatypes.default_dtype if dtype is None else any_dtype("eye", dtype)
    shape = extents("eye", (n_rows, n_rows if n_cols is None else n_cols))
    columns, diagonal = _columns_and_diagonal("eye", shape, k, device)
    return cast(apply(ops.EQUAL, (columns, diagonal)), d)


def _columns_and_diagonal(
    op: str, shape: Shape, k: int, device: DeviceLike
) -> tuple[Tensor, Tensor]:
    """Return the column numbers of a matrix, and each row's column on the k-th diagonal."""
    n, m = shape
    k = max(-n - 1, min(integer(op, k, "k"), m + 1))  # all diagonals outside are equal
    rows = generate(ops.POSITION, (n, 1), (), (), int64, device, op)
    columns = generate(ops.POSITION, (m,), (), (), int64, device, op)
    return columns, apply(ops.ADD, (rows, k)) if k else rows


@public(method=True, in_place=True, cache=True, widen=False)
def tril(x: Tensor, /, k: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return the lower triangles of matrices: elements above the k-th diagonal become 0.

    - `k`: the diagonal: 0 is the main one, positive ones are above it, negative ones below it.

    Shapes: of at least 2 dimensions; the matrices are in the last two. The result has the same.
    Dtypes: all.
    Raises: ShapeError below 2 dimensions.
    See also: `triu`, `tri`, `tril_indices`.

    >>> import dovetail as dt
    >>> dt.tril(dt.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 0], [3, 4]]
    """
    if not is_strided(x):
        return _dispatch_triangle("tril", x, k, False)
    return apply(ops.WHERE, (_lower_mask("tril", x, k), x, _zero_of(x)))


@public(method=True, in_place=True, cache=True, widen=False)
def triu(x: Tensor, /, k: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return the upper triangles of matrices: elements below the k-th diagonal become 0.

    - `k`: the diagonal: 0 is the main one, positive ones are above it, negative ones below it.

    Shapes: of at least 2 dimensions; the matrices are in the last two. The result has the same.
    Dtypes: all.
    Raises: ShapeError below 2 dimensions.
    See also: `tril`, `triu_indices`.

    >>> import dovetail as dt
    >>> dt.triu(dt.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 2], [0, 4]]
    """
    if not is_strided(x):
        return _dispatch_triangle("triu", x, k, True)
    return apply(ops.WHERE, (_lower_mask("triu", x, integer("triu", k, "k") - 1), _zero_of(x), x))


def _dispatch_triangle(op: str, x: Tensor, k: int, upper: bool) -> Tensor:
    """Return the lower or upper triangle of a tensor of another layout.

    Raises: ShapeError for fewer than 2 dimensions, LayoutError if the layout has no rule for it.
    """
    if required(op, x).ndim < 2:
        raise ShapeError(f"{op}: expected at least 2 dimensions, got shape {x.shape}")
    return dispatch("triangle", op, (x,), x, integer(op, k, "k"), upper)


def _zero_of(x: Tensor) -> bool | int:
    """Return False for a bool tensor, else 0."""
    return False if x.dtype is bool_ else 0


def _lower_mask(op: str, x: Tensor, k: int) -> Tensor:
    """Return a bool mask of the last two axes, True at and below the k-th diagonal."""
    if required(op, x).ndim < 2:
        raise ShapeError(f"{op}: expected at least 2 dimensions, got shape {x.shape}")
    n, m = x.shape[-2:]
    return apply(ops.LESS_EQUAL, _columns_and_diagonal(op, (n, m), k, x.device))


@public(widen=False)
def meshgrid(*arrays: Tensor, indexing: str = "xy", sparse: bool = False) -> tuple[Tensor, ...]:
    """Return coordinate tensors of the grid that vectors span, as a tuple of views.

    - `arrays`: vectors, one for each axis.
    - `indexing`: "xy" puts the first vector along axis 1 (as in images), "ij" each vector along its
      own axis.
    - `sparse`: True leaves size 1 where a coordinate is constant; such results broadcast.

    Shapes: vectors; each result has all their sizes.
    Dtypes: all; each result has that of its vector.
    Raises: ShapeError unless all are vectors, ArgumentError.
    See also: `indices`, `mgrid`, `broadcast_arrays`.

    >>> import dovetail as dt
    >>> x, y = dt.meshgrid(dt.asarray([1, 2]), [3, 4])
    >>> x.tolist(), y.tolist()
    ([[1, 2], [1, 2]], [[3, 3], [4, 4]])
    """
    choice("meshgrid", indexing, "indexing", ("xy", "ij"))
    arrays = promotion.as_tensors("meshgrid", *arrays)
    if any(a.ndim != 1 for a in arrays):
        raise ShapeError(
            f"meshgrid: expected 1-dimensional tensors, got shapes {[a.shape for a in arrays]}"
        )
    order = list(range(len(arrays)))
    if indexing == "xy" and len(order) > 1:
        order[0], order[1] = 1, 0
    shape = tuple(arrays[i].size for i in order)
    grids = []
    for d, a in enumerate(arrays):
        sizes = tuple(a.size if order[i] == d else 1 for i in range(len(shape)))
        grid = view(a, ("reshape", sizes))
        grids.append(grid if sparse else view(grid, ("expand", shape)))
    return tuple(grids)
