"""Making tensors: from Python and NumPy values, or from nothing.

What a formula gives stays pending, so it fuses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ..arguments import (
    BEYOND_FLOAT,
    choice,
    dimensions,
    flag,
    integer,
    integers,
    named,
    number,
    real,
    shown,
)
from ..device import device, usable
from ..dtypes import DType, bool_, dtype, float32, float64, int64
from ..errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    NotYetError,
    ShapeError,
    ValueOverflow,
)
from ..graph.expr import Spec, node, spec
from ..layout import Shape
from ..ops import table as ops
from ..tensor import operands
from ..tensor.host import evaluate, fresh, from_host, values_of
from ..tensor.operands import Scalar
from ..tensor.tensor import Tensor, make, required, strided
from ..tensor.verbs import apply, view
from .datatypes import DeviceLike, DTypeLike, cast, move, real_dtype
from .interop import HasDLPack, adopt, from_dlpack

ShapeLike: TypeAlias = int | Sequence[int] | np.ndarray | Tensor
Fill: TypeAlias = Scalar | np.generic | np.ndarray | Tensor  # one number

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "full", "full_like", "get_default_dtype",
    "linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

_default_dtype = float32


def get_default_dtype() -> DType:
    """The dtype of tensors made from Python floats, and of `zeros`, `ones`, ...: float32.

    >>> import dovetail as dt
    >>> dt.get_default_dtype()
    dovetail.float32
    """
    return _default_dtype


def extents(op: str, shape: object) -> Shape:
    """A shape from an int or a sequence of ints. Raises: ShapeError."""
    listed = values_of(op, shape).tolist() if isinstance(shape, Tensor | np.ndarray) else shape
    try:
        return dimensions(op, integers(op, listed, "shape"))
    except ArgumentTypeError:
        raise ShapeError(
            f"{op}: a shape is an int or a tuple of ints, not {shown(shape)}"
        ) from None


def generate(
    op: ops.Op,
    shape: Shape,
    scalars: Sequence[Scalar],
    kinds: Sequence[DType],
    out: DType,
    wanted: DeviceLike,
    name: str = "",
) -> Tensor:
    """A pending tensor whose elements are a function of their linear index and of scalars.

    The scalars are given at run time. `name` is the function's, where that is not the op's.
    """
    s = spec(shape, out, usable(wanted, name or op.name), name or op.name)
    return make(node(op, tuple(scalars), s, (tuple(kinds), out)))


# --- from values ---------------------------------------------------------------------------------


def asarray(
    obj: object, /, *, dtype: DTypeLike = None, device: DeviceLike = None, copy: bool | None = None
) -> Tensor:
    """A tensor of numbers, nested lists, an array or anything else with DLPack or `__array__`.

    What is a tensor already, of this dtype and on this device, is returned as it is. All else is
    copied, also the memory of arrays. `copy`: True always copies; False never does: it shares the
    memory of an array, or fails.
    Shapes: that of `obj`; lists must not be ragged.
    Dtypes: of arrays their own; Python floats give the default dtype (float32), ints int64, bools
    bool; `dtype` is another one. A number that it cannot hold is an error.
    Raises: ShapeError for ragged lists, DTypeError, ValueOverflow, NotYetError (complex),
    ArgumentError (`copy=False`), DeviceError.

    >>> import dovetail as dt
    >>> dt.asarray([[1, 2], [3, 4]], device="reference").shape
    (2, 2)
    """
    want = None if dtype is None else real_dtype("asarray", dtype)
    copy = copy if copy is None else flag("asarray", copy, "copy")
    if isinstance(obj, Tensor):
        return _from_tensor(obj, want, device, copy)
    if isinstance(obj, np.ndarray):
        return _from_numpy(obj, want, device, copy)
    if isinstance(obj, bool | int | float | complex | np.generic | list | tuple | range):
        if copy is False:
            raise ArgumentError(
                f"asarray: copy=False cannot share the memory of a {type(obj).__name__}"
            )
        return _from_values(obj, want, device)
    if hasattr(obj, "__dlpack__"):
        given: HasDLPack = obj  # type: ignore[assignment]  # from_dlpack checks the rest
        try:
            shared = from_dlpack(given, copy=copy if copy is False else None)
        except (DeviceError, BufferError):
            if copy is False or not hasattr(obj, "__array__"):
                raise
        else:
            return _from_shared(shared, want, device, copy)
    return _from_numpy(_host_values(obj), want, device, copy)


operands.as_tensor = asarray


def _from_shared(x: Tensor, want: DType | None, wanted: DeviceLike, copy: bool | None) -> Tensor:
    """Foreign memory is copied at once: who knows when that changes."""
    if copy is False:
        return _from_tensor(x, want, wanted, False)
    found = _from_tensor(x, want, wanted, True)
    evaluate(found)
    return found


def _host_values(obj: object) -> np.ndarray:
    """What has `__array__`, the array interface or the buffer protocol."""
    if hasattr(obj, "__array__") or hasattr(obj, "__array_interface__"):
        return np.asarray(obj)
    try:
        return np.asarray(memoryview(obj))  # type: ignore[arg-type]  # it says so if not
    except (TypeError, ValueError):
        raise DTypeError(
            f"asarray: cannot make a tensor of {type(obj).__name__}; give numbers, nested lists, "
            f"or an array"
        ) from None


def _from_tensor(x: Tensor, want: DType | None, wanted: DeviceLike, copy: bool | None) -> Tensor:
    target = x.device if wanted is None else usable(wanted, "asarray")
    same = (want is None or want is x.dtype) and target is x.device
    if same and copy is not True:
        return x
    if copy is False:
        raise ArgumentError(
            f"asarray: {x.dtype.name} on {x.device} as {(want or x.dtype).name} on {target} "
            f"needs a copy, "
            "and copy=False forbids it"
        )
    if same:
        return apply(ops.COPY, (x,))
    return cast(move(x, target), want)


def _from_numpy(a: np.ndarray, want: DType | None, wanted: DeviceLike, copy: bool | None) -> Tensor:
    have = real_dtype("asarray", a.dtype)
    if copy is False:
        if want not in (None, have) or not a.dtype.isnative:
            raise ArgumentError(
                f"asarray: {a.dtype} as {(want or have).name} needs a copy; copy=False forbids it"
            )
        return adopt(a, have, device(wanted, "asarray"))
    native = a if a.dtype.isnative else a.astype(a.dtype.newbyteorder("="))
    return cast(from_host(native, have, device(wanted, "asarray")), want)


def _from_values(obj: object, want: DType | None, wanted: DeviceLike) -> Tensor:
    leaf = _first_leaf(obj)
    if isinstance(leaf, Tensor):
        return _from_tensors(obj, want, leaf.device if wanted is None else wanted)
    values = _nested(obj, want)
    have = real_dtype("asarray", values.dtype)
    if want is None and have is float64 and not isinstance(leaf, np.generic | np.ndarray):
        want = _default_dtype
    if want is None or want is have:
        return from_host(values, have, device(wanted, "asarray"))
    known = want.__numpy_dtype__
    if known is not None and (have.kind, want.kind) != ("f", "f"):
        return from_host(
            _in_range(values, have, want).astype(known), want, device(wanted, "asarray")
        )
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32 if known is None else known)
    return cast(from_host(narrow, dtype(narrow.dtype), device(wanted, "asarray")), want)


def _first_leaf(obj: object) -> object:
    while isinstance(obj, list | tuple) and obj:
        obj = obj[0]
    return 0.0 if isinstance(obj, list | tuple) else obj


def _from_tensors(obj: object, want: DType | None, wanted: DeviceLike) -> Tensor:
    """Nested lists of tensors of one shape, as a stack of them on the host's side of things."""
    return asarray(_nested_tensors(obj), dtype=want, device=wanted)


def _nested_tensors(obj: object) -> np.ndarray:
    if isinstance(obj, list | tuple):
        parts = [_nested_tensors(part) for part in obj]
        _require_even(obj)
        return np.stack(parts)
    return strided("asarray", obj).numpy() if isinstance(obj, Tensor) else np.asarray(obj)


def _nested(obj: object, want: DType | None) -> np.ndarray:
    try:
        values = np.array(obj)
    except ValueError:
        _require_even(obj)
        raise
    if values.dtype == object:
        _require_even(obj)
        if all(isinstance(v, int) for v in values.flat):
            raise ValueOverflow("asarray: an integer fits neither int64 nor uint64; use floats")
    if values.dtype == object or values.dtype.kind not in "biufc":
        found = next((v for v in values.flat if not isinstance(v, int | float)), values.dtype)
        raise DTypeError(f"asarray: cannot make numbers of {type(found).__name__}")
    if values.size == 0 and values.dtype == np.float64 and want is None:
        return values.astype(np.float32)
    return values


def _require_even(obj: object) -> None:
    """Raises: ShapeError for the first place where nested lists differ in length."""

    def walk(part: object, at: str) -> Shape:
        if not isinstance(part, list | tuple):
            return tuple(getattr(part, "shape", ()))
        shapes = [walk(p, f"{at}[{i}]") for i, p in enumerate(part)]
        for i, s in enumerate(shapes):
            if s != shapes[0]:
                raise ShapeError(
                    f"asarray: nested lists are ragged: {at}[0] has shape {shapes[0]}, but "
                    f"{at}[{i}] has {s}; "
                    "pad them to one length"
                )
        return (len(part), *(shapes[0] if shapes else ()))

    walk(obj, "obj")


def _in_range(values: np.ndarray, have: DType, want: DType) -> np.ndarray:
    if have.is_integer and want.is_integer and values.size:
        low, high = int(values.min()), int(values.max())
        if low < want.min or high > want.max:
            bad = low if low < want.min else high
            raise ValueOverflow(f"asarray: {bad} does not fit {want.name} ({want.min}..{want.max})")
    return values


# --- from nothing --------------------------------------------------------------------------------


def empty(shape: ShapeLike, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """A new tensor of this shape, whose contents are whatever the memory holds.

    Shapes: `shape` is an int or a tuple of ints.
    Dtypes: `dtype`, the default one (float32) unless given.
    Raises: ShapeError, DTypeError, DeviceError, OutOfMemoryError.

    >>> import dovetail as dt
    >>> dt.empty((2, 3), device="reference").shape
    (2, 3)
    """
    return make(fresh(_spec("empty", shape, dtype, device)))


def _spec(op: str, shape: ShapeLike, dtype: DTypeLike, wanted: DeviceLike) -> Spec:
    found = _default_dtype if dtype is None else real_dtype(op, dtype)
    return spec(extents(op, shape), found, usable(wanted, op), op)


def zeros(shape: ShapeLike, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """A new tensor of this shape, filled with 0.

    Shapes: `shape` is an int or a tuple of ints.
    Dtypes: `dtype`, the default one (float32) unless given.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.zeros((2,), dtype=dt.int32, device="reference").tolist()
    [0, 0]
    """
    return _constant("zeros", shape, 0, _default_dtype if dtype is None else dtype, device)


def ones(shape: ShapeLike, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """A new tensor of this shape, filled with 1.

    Shapes: `shape` is an int or a tuple of ints.
    Dtypes: `dtype`, the default one (float32) unless given.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.ones((2,), dtype=dt.int32, device="reference").tolist()
    [1, 1]
    """
    return _constant("ones", shape, 1, _default_dtype if dtype is None else dtype, device)


def full(
    shape: ShapeLike, fill_value: Fill, *, dtype: DTypeLike = None, device: DeviceLike = None
) -> Tensor:
    """A new tensor of this shape, filled with one number.

    `fill_value`: a number, or a tensor or array of one element, which the host reads.
    Shapes: `shape` is an int or a tuple of ints.
    Dtypes: `dtype`; unless given that of `fill_value`: of Python's float float32, of int int64.
    Raises: ShapeError, DTypeError, DeviceError, ValueOverflow for a number that does not fit.

    >>> import dovetail as dt
    >>> dt.full(2, 7, device="reference").tolist()
    [7, 7]
    """
    return _full("full", shape, fill_value, dtype, device)


def _full(op: str, shape: ShapeLike, value: Fill, dtype: DTypeLike, wanted: DeviceLike) -> Tensor:
    if isinstance(value, Tensor | np.generic | np.ndarray):
        dtype = value.dtype if dtype is None else dtype
        if value.size != 1:
            raise ShapeError(f"{op}: the value must be one number, not of shape {value.shape}")
        value = values_of(op, value).item()
    if dtype is None:
        dtype = next((k for k in (bool, int, float) if isinstance(value, k)), float)
    return _constant(op, shape, value, dtype, wanted)


def _constant(
    op: str, shape: ShapeLike, value: object, dtype: DTypeLike, wanted: DeviceLike
) -> Tensor:
    d = _default_dtype if dtype is float else real_dtype(op, dtype)
    return generate(ops.FULL, extents(op, shape), (scalar(op, value, d),), (d,), d, wanted, op)


def scalar(op: str, value: object, d: DType) -> bool | int | float:
    """A Python number as dtype `d` would hold it. Raises: ValueOverflow, DTypeError."""
    if isinstance(value, complex):
        raise NotYetError(f"{op}: complex numbers come with a later version")
    if not isinstance(value, bool | int | float):
        raise DTypeError(f"{op}: the value must be a number, not {type(value).__name__}")
    if d.kind == "f":
        if isinstance(value, int) and not -BEYOND_FLOAT < value < BEYOND_FLOAT:
            raise ValueOverflow(f"{op}: {shown(value)} does not fit {d.name}")
        return float(value)
    if d.kind == "b":
        return bool(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueOverflow(f"{op}: {value} does not fit {d.name}")
    if not d.min <= int(value) <= d.max:
        raise ValueOverflow(f"{op}: {shown(value)} does not fit {d.name} ({d.min}..{d.max})")
    return int(value)


def empty_like(x: Tensor, /, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """A new tensor of x's shape, dtype and device, whose contents are whatever the memory holds.

    Shapes: any.
    Dtypes: x's, unless `dtype` is given.
    Raises: DTypeError, DeviceError, OutOfMemoryError.

    >>> import dovetail as dt
    >>> dt.empty_like(dt.zeros((2, 3), device="reference")).shape
    (2, 3)
    """
    dtype, device = _like("empty_like", x, dtype, device)
    return make(fresh(_spec("empty_like", x.shape, dtype, device)))


def zeros_like(x: Tensor, /, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """A new tensor of x's shape, dtype and device, filled with 0.

    Shapes: any; of sparse ones the result is strided.
    Dtypes: x's, unless `dtype` is given.
    Raises: DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.zeros_like(dt.asarray([5, 6], device="reference")).tolist()
    [0, 0]
    """
    dtype, device = _like("zeros_like", x, dtype, device)
    return _constant("zeros_like", x.shape, 0, dtype, device)


def ones_like(x: Tensor, /, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """A new tensor of x's shape, dtype and device, filled with 1.

    Shapes: any; of sparse ones the result is strided.
    Dtypes: x's, unless `dtype` is given.
    Raises: DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.ones_like(dt.asarray([5, 6], device="reference")).tolist()
    [1, 1]
    """
    dtype, device = _like("ones_like", x, dtype, device)
    return _constant("ones_like", x.shape, 1, dtype, device)


def full_like(
    x: Tensor, /, fill_value: Fill, *, dtype: DTypeLike = None, device: DeviceLike = None
) -> Tensor:
    """A new tensor of x's shape, dtype and device, filled with one number.

    `fill_value`: a number, or a tensor or array of one element, which the host reads.
    Shapes: any.
    Dtypes: x's, unless `dtype` is given.
    Raises: DTypeError, DeviceError, ShapeError, ValueOverflow for a number that does not fit.

    >>> import dovetail as dt
    >>> dt.full_like(dt.zeros(2, device="reference"), 7).tolist()
    [7.0, 7.0]
    """
    dtype, device = _like("full_like", x, dtype, device)
    return _full("full_like", x.shape, fill_value, dtype, device)


def _like(op: str, x: Tensor, dtype: DTypeLike, wanted: DeviceLike) -> tuple[DTypeLike, DeviceLike]:
    """Those of `x` where none are given."""
    required(op, x)
    return x.dtype if dtype is None else dtype, x.device if wanted is None else wanted


def arange(
    start: Fill,
    /,
    stop: Fill | None = None,
    step: Fill = 1,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Tensor:
    """The numbers from `start` up to but excluding `stop`, `step` apart.

    Given alone, `start` is where they stop, and they begin at 0. Number k is start + k * step, so
    errors do not add up.
    Shapes: (ceil((stop - start) / step),), or (0,).
    Dtypes: `dtype`; unless given int64 where all three are ints, else the default one (float32).
    Raises: ArgumentError for a zero step or no finite number of them, DTypeError for bool,
    ValueOverflow, ShapeError.

    >>> import dovetail as dt
    >>> dt.arange(2, 8, 3, device="reference").tolist()
    [2, 5]
    """
    start, stop = (0, start) if stop is None else (start, stop)
    start, stop, step = (
        _bound("arange", v, name) for v, name in ((start, "start"), (stop, "stop"), (step, "step"))
    )
    if step == 0:
        raise ArgumentError("arange: step must not be 0")
    ints = all(isinstance(v, int) for v in (start, stop, step))
    d = real_dtype("arange", dtype) if dtype is not None else (int64 if ints else _default_dtype)
    if d is bool_:
        raise DTypeError("arange: bool has no arithmetic; cast the result with astype()")
    count = _count(start, stop, step, ints)
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
    return generate(ops.ARANGE, (count,), (first, by), (wide, wide), d, device)


def _bound(op: str, value: object, name: str) -> int | float:
    """A number, also of a tensor or an array of one element."""
    if isinstance(value, Tensor | np.ndarray):
        if value.size != 1:
            raise ShapeError(f"{op}: {name} is one number, not of shape {value.shape}")
        value = values_of(op, value).item()
    if isinstance(value, complex):
        raise NotYetError(f"{op}: complex numbers come with a later version")
    return number(op, value, name)


def _count(start: float, stop: float, step: float, ints: bool) -> int:
    """How many numbers there are. Raises: ArgumentError, ShapeError."""
    if ints:
        found = int(-((start - stop) // step))
    else:
        a, b, s = (real("arange", v, "every bound") for v in (start, stop, step))
        length = (b - a) / s
        if not math.isfinite(length):
            raise ArgumentError(f"arange: from {a} to {b} by {s} are no finite number of steps")
        found = math.ceil(length)
    return dimensions("arange", (max(0, found),))[0]


def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` numbers evenly from `start` to `stop`; both ends are exact.

    `endpoint`: False leaves `stop` out.
    Shapes: (num,).
    Dtypes: `dtype`, the default one (float32) unless given; integers are truncated.
    Raises: ArgumentError for a negative `num`, DTypeError.

    >>> import dovetail as dt
    >>> dt.linspace(0, 1, 5, device="reference").tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    d = _default_dtype if dtype is None else real_dtype("linspace", dtype)
    start, stop = (
        _real_bound("linspace", v, name) for v, name in ((start, "start"), (stop, "stop"))
    )
    count = dimensions("linspace", (integer("linspace", num, "num", 0),))[0]
    endpoint = flag("linspace", endpoint, "endpoint")
    gaps = count - 1 if endpoint else count
    step = (stop - start) / gaps if gaps > 0 else 0.0
    wide = float64 if d is float64 else float32
    scalars = (start, stop if gaps > 0 else start, step, max(gaps, 0))
    return generate(ops.LINSPACE, (count,), scalars, (wide, wide, wide, int64), d, device)


def _real_bound(op: str, value: object, name: str) -> float:
    return real(op, _bound(op, value, name), name)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Tensor:
    """A matrix with ones on one diagonal and zeros elsewhere.

    `n_rows`, `n_cols`: its sizes; a square unless `n_cols` is given. `k`: which diagonal: 0 is the
    main one, above it positive, below it negative.
    Dtypes: `dtype`, the default one (float32) unless given.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.eye(2, 3, device="reference").tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    d = _default_dtype if dtype is None else real_dtype("eye", dtype)
    shape = extents("eye", (n_rows, n_rows if n_cols is None else n_cols))
    diagonal = _diagonal("eye", k, shape)
    return generate(ops.EYE, shape, (max(shape[1], 1), diagonal), (int64, int64), d, device)


def _diagonal(op: str, k: int, shape: Shape) -> int:
    """Which diagonal of a matrix; one that lies outside is as good as the next one outside."""
    return max(-shape[0] - 1, min(integer(op, k, "k"), shape[1] + 1))


@named
def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangles of matrices: what is above the k-th diagonal becomes 0.

    `k`: which diagonal: 0 is the main one, above it positive, below it negative.
    Shapes: of at least 2 dimensions; the matrices are in the last two. The result has the same.
    Dtypes: all.
    Raises: ShapeError below 2 dimensions.

    >>> import dovetail as dt
    >>> dt.tril(dt.asarray([[1, 2], [3, 4]], device="reference")).tolist()
    [[1, 0], [3, 4]]
    """
    return apply(ops.WHERE, (_below("tril", x, k), x, _zero(x)))


@named
def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangles of matrices: what is below the k-th diagonal becomes 0.

    `k`: which diagonal: 0 is the main one, above it positive, below it negative.
    Shapes: of at least 2 dimensions; the matrices are in the last two. The result has the same.
    Dtypes: all.
    Raises: ShapeError below 2 dimensions.

    >>> import dovetail as dt
    >>> dt.triu(dt.asarray([[1, 2], [3, 4]], device="reference")).tolist()
    [[1, 2], [0, 4]]
    """
    return apply(ops.WHERE, (_below("triu", x, integer("triu", k, "k") - 1), _zero(x), x))


def _zero(x: Tensor) -> bool | int:
    return False if x.dtype is bool_ else 0


def _below(op: str, x: Tensor, k: int) -> Tensor:
    if required(op, x).ndim < 2:
        raise ShapeError(f"{op}: needs at least 2 dimensions, not shape {x.shape}")
    shape = x.shape[-2:]
    scalars = (max(shape[1], 1), _diagonal(op, k, shape))
    return generate(ops.TRIANGLE, shape, scalars, (int64, int64), bool_, x.device)


@named
def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinate tensors of the grid that vectors span, as a tuple of views.

    `indexing`: "xy" has the first vector along axis 1 (of pictures), "ij" each along its own axis.
    Shapes: vectors; each result has all their sizes.
    Dtypes: all, one for all vectors.
    Raises: ShapeError for other than vectors, DTypeError for several dtypes, ArgumentError.

    >>> import dovetail as dt
    >>> x, y = dt.meshgrid(dt.asarray([1, 2], device="reference"), [3, 4])
    >>> x.tolist(), y.tolist()
    ([[1, 2], [1, 2]], [[3, 3], [4, 4]])
    """
    choice("meshgrid", indexing, "indexing", ("xy", "ij"))
    arrays = operands.brought("meshgrid", *arrays)
    if any(a.ndim != 1 for a in arrays):
        raise ShapeError(
            f"meshgrid: needs 1-dimensional tensors, not shapes {[a.shape for a in arrays]}"
        )
    if len({a.dtype for a in arrays}) > 1:
        raise DTypeError(
            f"meshgrid: tensors must have one dtype, not {[a.dtype.name for a in arrays]}"
        )
    order = list(range(len(arrays)))
    if indexing == "xy" and len(order) > 1:
        order[0], order[1] = 1, 0
    shape = tuple(arrays[i].size for i in order)
    found = []
    for d, a in enumerate(arrays):
        ones_ = tuple(a.size if order[i] == d else 1 for i in range(len(shape)))
        found.append(view(view(a, ("reshape", ones_)), ("expand", shape)))
    return tuple(found)
