"""Functions and methods of PyTorch that model code uses most; `torch_functions` has the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .. import dtypes as D
from .. import layout as lay
from ..argument_checks import integer
from ..declarations import public
from ..device_class import opened
from ..dtypes import DType
from ..errors import ArgumentError, ArgumentTypeError, DeviceError
from ..tensor.host import evaluate
from ..tensor.promotion import Array, Operand
from ..tensor.tensor import Tensor, required, strided
from ..tensor.writes import write_result
from .datatypes import DTypeLike, astype, to
from .elementwise.op_functions import where
from .shape.copies import concat
from .shape.manipulation import broadcast_to, permute_dims, reshape, split

__all__ = ["cat", "chunk", "masked_fill", "t"]


@public(widen=False)
def cat(tensors: Sequence[Array], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Concatenate tensors along an existing axis: `dt.concat` under PyTorch's name.

    - `tensors`: a list or tuple of tensors.
    - `dim`: the axis.

    Shapes: equal except along that axis.
    Dtypes: all; the result has that to which they promote.
    Raises: ShapeError, DTypeError, AxisError, ArgumentError for none.

    >>> import dovetail as dt
    >>> dt.cat([dt.zeros(1), dt.ones(2)]).tolist()
    [0.0, 1.0, 1.0]
    """
    return concat(tensors, axis=dim, out=out)


@public(method=True, widen=False)
def masked_fill(x: Tensor, mask: Array, value: Operand) -> Tensor:
    """Return `dt.where(mask, value, x)` in the dtype of `x`.

    - `mask`: True where `value` replaces the element.
    - `value`: a number, or a tensor that broadcasts.

    Shapes: x and the mask broadcast.
    Dtypes: all; the mask is of bools.
    Gradient: flows to x and the value.
    Raises: ShapeError, DTypeError.
    See also: `where`, `masked_select`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0])
    >>> x.masked_fill(x > 1, 0.0).tolist()
    [1.0, 0.0]
    """
    return astype(where(mask, value, x), x.dtype, copy=False)


@public(method=True, widen=False)
def masked_fill_(x: Tensor, mask: Array, value: Operand) -> Tensor:
    """Write `value` into `x` where the mask is true, and return `x`.

    - `mask`: True where `value` replaces the element.
    - `value`: a number, or a tensor that broadcasts.

    Shapes: the mask broadcasts to the shape of x.
    Dtypes: all; the mask is of bools.
    Raises: ShapeError, DTypeError, ReadOnlyError, GradientError.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0])
    >>> x.masked_fill_(x > 1, 0.0).tolist()
    [1.0, 0.0]
    """
    return write_result("masked_fill_", x, [masked_fill(x, mask, value)])


@public(method=True, widen=False)
def chunk(x: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split `x` along an axis into at most `chunks` views of one size; the last may be smaller.

    - `chunks`: the number of parts. If the size is not a multiple of it there may be fewer, as in
      PyTorch.
    - `dim`: the axis.

    Shapes: of at least one axis.
    Dtypes: all.
    Raises: ArgumentError for less than one, AxisError.
    See also: `array_split`, which always gives this number, and `split`.

    >>> import dovetail as dt
    >>> [part.tolist() for part in dt.arange(5).chunk(2)]
    [[0, 1, 2], [3, 4]]
    """
    count = integer("chunk", chunks, "chunks")
    if count < 1:
        raise ArgumentError(f"chunk: chunks must be at least 1, got {count}")
    axis = lay.axis("chunk", integer("chunk", dim, "dim"), strided("chunk", x).ndim)
    return split(x, max(-(-x.shape[axis] // count), 1), axis)


@public(method=True, widen=False)
def t(x: Tensor) -> Tensor:
    """Return a view with both axes exchanged, like `x.T`; a vector is returned as a view of itself.

    Shapes: at most two axes.
    Dtypes: all.
    Raises: ArgumentError for more of them.

    >>> import dovetail as dt
    >>> dt.ones((2, 3)).t().shape
    (3, 2)
    """
    if required("t", x).ndim > 2:
        raise ArgumentError(
            f"t: expected at most 2 dimensions, got {x.ndim}; use x.mT or dt.permute_dims"
        )
    return permute_dims(x, tuple(reversed(range(x.ndim))))


@public(method=True, widen=False)
def type_as(x: Tensor, other: Tensor) -> Tensor:
    """Return the elements of x in the dtype of another tensor; x itself if it has that dtype.

    - `other`: the tensor.

    Shapes: any; the result has x's.
    Dtypes: all.
    Raises: DTypeError unless it is a tensor.

    >>> import dovetail as dt
    >>> dt.ones(2).type_as(dt.zeros(1, dtype=dt.int32)).dtype
    dovetail.int32
    """
    return astype(x, strided("type_as", other).dtype, copy=False)


@public(method=True, widen=False)
def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """Return a view of x, broadcast to the shape of another tensor.

    - `other`: the tensor.

    Shapes: x broadcasts to that of `other`.
    Dtypes: all.
    Raises: ShapeError.

    >>> import dovetail as dt
    >>> dt.ones(3).expand_as(dt.zeros((2, 3))).shape
    (2, 3)
    """
    return broadcast_to(x, strided("expand_as", other).shape)


@public(method=True, widen=False)
def reshape_as(x: Tensor, other: Tensor) -> Tensor:
    """Return `x` in the shape of another tensor; a view if strides permit it.

    - `other`: the tensor, with an equal number of elements.

    Shapes: any.
    Dtypes: all.
    Raises: ShapeError.

    >>> import dovetail as dt
    >>> dt.ones(6).reshape_as(dt.zeros((2, 3))).shape
    (2, 3)
    """
    return reshape(x, strided("reshape_as", other).shape)


def move_to_type(x: Tensor, device_type: str, device: int | str | None = None) -> Tensor:
    """Return the tensor on a device of a type, as PyTorch's `x.cuda(1)`.

    device: its number, or its name; None is the first device of the type.
    Raises: DeviceError for a device of another type, or without such a device.
    """
    name = device_type if device is None else f"{device_type}:{device}"
    name = device if isinstance(device, str) else name
    if name.partition(":")[0] != device_type:
        raise DeviceError(f"{device_type}: expected a device of this type, got {name!r}")
    return to(x, name)


def _conversion_method(name: str, dtype: DType) -> Callable[[Tensor], Tensor]:
    """Return a method such as `x.float()`, with its name and docstring."""

    def convert(x: Tensor) -> Tensor:
        """Cast `x` to the dtype; return `x` itself if it has that dtype."""
        return astype(x, dtype, copy=False)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"""Return the elements as {dtype.name}; x itself if it has that dtype.

    Dtypes: all, as for `dt.astype`.
    Raises: DTypeError if the device has no such dtype.

    >>> import dovetail as dt
    >>> dt.ones(2, dtype=dt.uint8).{name}().dtype
    dovetail.{dtype.name}
    """
    return convert


def convert_type(x: Tensor, dtype: DTypeLike = None, non_blocking: bool = False) -> Tensor:
    """Cast `x` to a dtype, as PyTorch's `x.type(dtype)`; return `x` itself if it has that dtype.

    Raises: ArgumentTypeError without a dtype, for which PyTorch returns the name of a class.
    """
    if dtype is None:
        raise ArgumentTypeError("type: a dtype is missing; that of the tensor is x.dtype")
    return astype(x, dtype, copy=False)


def compute_and_wait(x: Tensor) -> Tensor:
    """Return the tensor when its value is in memory, as `block_until_ready` of JAX does."""
    evaluate(x)
    opened(x.device).backend.synchronize()
    return x


# Not declared: methods `float` and `int` of the class would hide Python's from type checkers.
HIDDEN_METHODS: dict[str, Callable[..., Tensor]] = {
    "block_until_ready": compute_and_wait,
    "type": convert_type,
} | {
    name: _conversion_method(name, dtype)
    for name, dtype in {
        "float": D.float32,
        "double": D.float64,
        "half": D.float16,
        "bfloat16": D.bfloat16,
        "int": D.int32,
        "long": D.int64,
        "bool": D.bool_,
        "byte": D.uint8,
        "char": D.int8,
        "short": D.int16,
        "cfloat": D.complex64,
        "cdouble": D.complex128,
    }.items()
}
