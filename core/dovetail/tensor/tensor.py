"""The Tensor: a device, a layout and a dtype over a deferred expression.

This module has the fields and properties. Other modules attach the methods: `operators` (`+`,
`x.T`), `host` (`x.numpy()`), and `functions` (`x.sum()`), all composed of the few `primitives`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast, overload

from .. import layout as lay
from .. import settings
from ..device_class import Device
from ..dtypes import DType
from ..engine import evaluate as run
from ..engine import provenance, tracer_api
from ..errors import ArgumentTypeError, DTypeError, LayoutError
from ..graph.expr import Expr, Spec, leaf, reads_exported
from ..layout import Shape
from ..memory.storage import Storage, storage_at
from ..records import DEPTH_LIMIT
from ..settings import flags
from .c_fields import AliasGroup, Fields, expr_of, is_strided, new_tensor, register_tensor_class

if TYPE_CHECKING:
    from .attached import AttachedMethods
else:
    AttachedMethods = object

__all__ = ["Tensor"]


class Size(int):
    """A number of elements: an int that, if called, returns the shape, or the size of one axis.

    >>> import dovetail as dt
    >>> dt.zeros((2, 3)).size(-1)
    3
    """

    shape: Shape
    value: int  # the value as an int, for code that compares types

    @overload
    def __call__(self, dim: None = None) -> Shape: ...
    @overload
    def __call__(self, dim: int) -> int: ...
    def __call__(self, dim: int | None = None) -> Shape | int:
        if dim is None:
            return self.shape
        return self.shape[lay.axis("size", dim, len(self.shape))]

    def __reduce__(self) -> tuple[object, ...]:
        return int, (int(self),)


def size_of_spec(s: Spec) -> Size:
    """Create the Size of tensors of a Spec, and cache it in `s.sized`."""
    s.sized = size = create_size(s.size, s.shape)
    return size


def create_size(n: int, shape: Shape) -> Size:
    """Return the Size of tensors of a shape with `n` elements."""
    size = Size(n)
    size.shape, size.value = shape, n
    return size


class Tensor(Fields, AttachedMethods):
    """An n-dimensional array: a device, a layout and a dtype over memory or pending work.

    Tensors are made by `dt.asarray`, `dt.zeros`, ... and by every op. The result of an op is
    computed when its values are read; shape, dtype and device are known, and errors raised, at
    once. Functions of `dt` whose first argument is a tensor are methods too: `dt.sum(x)` is
    `x.sum()`; those that end in "_" write into the tensor.

    - `values`, `options`: none; the class cannot be called.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> (x * 2).sum(axis=0).tolist()
    [8.0, 12.0]
    """

    __slots__ = ("__weakref__", "_aliases", "_expr")

    __array_priority__ = 1000.0  # for Dask; NumPy uses `__array_ufunc__`
    _divides_as_python = False  # of a subclass: True if its `inf // 1` is NaN

    _expr: Expr
    _aliases: AliasGroup | None

    def __init__(self, *values: object, **options: object) -> None:
        raise DTypeError(
            "Tensor: the class cannot be called; use dt.asarray, dt.zeros, dt.empty, ..."
        )

    @property
    def device(self) -> Device:
        """The device that the memory is on.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.device
        device("reference")
        """
        return expr_of(self).spec.device

    @property
    def dtype(self) -> DType:
        """The dtype of the elements: a unique object, compared with `is`.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3))
        >>> x.dtype is dt.float32
        True
        """
        return expr_of(self).spec.dtype

    @property
    def layout(self) -> lay.Layout:
        """The layout of the memory: `dt.strided`, or one of a layout plugin.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3))
        >>> x.layout is dt.strided
        True
        """
        return lay.strided

    @property
    def shape(self) -> Shape:
        """The size of each dimension, as a tuple of ints.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3))
        >>> x.shape
        (2, 3)
        """
        return expr_of(self).spec.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3))
        >>> x.ndim
        2
        """
        return len(expr_of(self).spec.shape)

    @property
    def size(self) -> Size:
        """The number of elements; a call, as in PyTorch, returns the shape or the size of one axis.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3))
        >>> x.size, x.size(), x.size(1)
        (6, (2, 3), 3)
        """
        s = expr_of(self).spec
        return s.sized or size_of_spec(s)  # type: ignore[return-value]  # made below

    @property
    def itemsize(self) -> int:
        """The bytes of one element.

        Units: bytes.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3))
        >>> x.itemsize
        4
        """
        return expr_of(self).spec.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, each counted once.

        Units: bytes; a broadcast view has more than its memory.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3))
        >>> x.nbytes
        24
        """
        return self.size * self.itemsize

    def __sizeof__(self) -> int:
        """Return the bytes of the object and of all elements, for Dask's scheduler.

        >>> import dovetail as dt
        >>> x = dt.zeros((100,))
        >>> x.__sizeof__() > x.nbytes
        True
        """
        return object.__sizeof__(self) + self.nbytes

    def numel(self) -> int:
        """Return the number of elements: PyTorch's name of `x.size`.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3))
        >>> x.numel()
        6
        """
        return self.size

    def dim(self) -> int:
        """Return the number of dimensions: PyTorch's name of `x.ndim`.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3))
        >>> x.dim()
        2
        """
        return self.ndim

    @overload
    def stride(self, axis: None = None) -> Shape: ...
    @overload
    def stride(self, axis: int) -> int: ...
    def stride(self, axis: int | None = None) -> Shape | int:
        """Return the strides, or that of one axis: the distance to the next element.

        Units: elements, not bytes.
        Raises: AxisError.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3))
        >>> x.stride(), x.T.stride(0)
        ((3, 1), 1)
        """
        e = strided("stride", self)._expr
        strides = e.spec.strides if e.op is not None else e.strides
        return strides if axis is None else strides[lay.axis("stride", axis, self.ndim)]

    def storage_offset(self) -> int:
        """Return the position of the first element in the storage.

        Units: elements, not bytes.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3))
        >>> x[1].storage_offset()
        3
        """
        e = strided("storage_offset", self)._expr
        return 0 if e.op is not None else e.offset

    def is_contiguous(self, memory_format: None = None) -> bool:
        """Return True if the elements are dense in row-major order, the only memory format.

        - `memory_format`: only None; strides are always row-major.

        Raises: ArgumentTypeError for another `memory_format` than None.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3))
        >>> x.is_contiguous(), x.T.is_contiguous()
        (True, False)
        """
        if memory_format is not None:
            raise ArgumentTypeError(
                "is_contiguous: memory_format must be None; strides are always row-major, "
                "see x.stride()"
            )
        e = self._expr
        return e.op is not None or lay.is_contiguous(e.spec.shape, e.strides)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise DTypeError("len: expected at least 1 dimension, got shape ()")
        return self.shape[0]

    __hash__ = object.__hash__


register_tensor_class(Tensor)


def required(op: str, x: object) -> Tensor:
    """Return `x`. Raises: DTypeError if it is no tensor.

    - `op`: the function that errors name.
    - `x`: any object.
    """
    if not isinstance(x, Tensor):
        raise DTypeError(f"{op}: expected a tensor, got {type(x).__name__}; use dt.asarray")
    return x


def strided(op: str, x: object) -> Tensor:
    """Return `x`. Raises: LayoutError if it is not strided, DTypeError if it is no tensor."""
    if not is_strided(x):
        raise LayoutError(unsupported_layout_text(op, required(op, x)))
    return x


class OtherLayout(Protocol):
    """The interface of a tensor that is not strided; see `other_layouts.LayoutTensor`."""

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The strided tensors that this one is made of."""

    def to_dense(self) -> Tensor:
        """Return the elements as a strided tensor."""

    def run_rule(self, verb: str, name: str, *args: object) -> Tensor:
        """Run the layout's rule for a verb, in the name of function `name`."""


def parts_of(x: Tensor) -> tuple[Tensor, ...]:
    """Return the strided tensors that a tensor of any layout is made of."""
    return (x,) if is_strided(x) else cast(OtherLayout, x).parts


def to_strided(x: Tensor) -> Tensor:
    """Return `x`, or a dense copy if it is of another layout."""
    return x if is_strided(x) else cast(OtherLayout, x).to_dense()


def unsupported_layout_text(name: str, x: Tensor, addition: str = "") -> str:
    """Return the error text for an op `name` that the layout of `x` does not support."""
    return (
        f"{name}: not supported for the layout {x.layout.name}{addition} "
        f"({x.dtype.name}{list(x.shape)} on {x.device}); use x.to_dense()"
    )


def create_tensor(e: Expr) -> Tensor:
    """Create the tensor of a node; evaluate it in eager mode, or if it may not stay pending."""
    t = new_tensor(Tensor, e)
    if e.depth > flags.depth:
        _settle_new_node(e)
    return t


def _settle_new_node(e: Expr) -> None:
    """Record a node's line under `record_lines`; evaluate the node if it may not stay pending.

    It is evaluated if it is too deep, reads exported memory, or is recorded in eager mode. In eager
    mode an anomaly checker, if there is one, gets it instead.
    """
    eager = settings.is_eager()
    if flags.depth == 0 and settings.current().records_lines:
        provenance.record_line(e)
    if eager and (watcher := settings.current().anomaly) is not None:
        watcher.check_node(e)
        return
    if must_evaluate(e):
        run.evaluate_and_wait(e)
    if eager or e.depth > DEPTH_LIMIT:
        run.evaluate((e,), eager)


def must_evaluate(e: Expr) -> bool:
    """Return True if a node reads exported memory, so that it must not stay pending.

    A captured function leaves nothing pending, and reads the current values at each call.
    """
    return flags.depth == 0 and tracer_api.current() is None and reads_exported(e)


def attach_lazy_storage(x: Tensor) -> Expr:
    """Replace a pending tensor's node by a leaf over a lazy storage, and return that leaf."""
    e = x._expr
    x._expr = leaf(create_lazy_storage(e), e.spec, e.spec.strides, 0)
    x._expr.tape = e.tape
    return x._expr


def create_lazy_storage(e: Expr) -> Storage:
    """Create a storage without memory, which the pending node `e` fills when it runs."""
    storage = storage_at(None, e.spec.size * e.spec.dtype.itemsize, e.spec.device)
    storage.pending = e
    return storage


def drop_tape(x: Tensor) -> Tensor:
    """Remove the tape of a new result in place, so that no gradient flows, and return it."""
    x._expr.tape = None
    return x
