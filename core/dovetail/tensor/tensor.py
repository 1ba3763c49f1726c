"""The Tensor: a device, a layout and a dtype over a deferred expression.

What it is stands here; what can be done with it is put on it by others: `operators` (`+`, `x.T`),
`host` (`x.numpy()`), and `functions` (`x.sum()`), all made of the few `verbs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast, overload

from .. import layout as lay
from .. import settings
from ..device_class import Device
from ..dtypes import DType
from ..engine import evaluate as run
from ..engine import lines, recording
from ..errors import ArgumentTypeError, DTypeError, LayoutError
from ..graph.expr import Expr, Spec, leaf, reads_exported
from ..layout import Shape
from ..memory.storage import Storage, storage_at
from ..records import DEPTH_LIMIT
from ..settings import flags
from .fields import Aliases, Fields, bind, made

if TYPE_CHECKING:
    from .attached import HostReads, Operators
    from .signatures import Methods

    class Attached(Operators, HostReads, Methods):
        """What other files put on Tensor."""
else:
    Attached = object

__all__ = ["Tensor"]


class Size(int):
    """A number of elements, an int; called it gives the shape that it is of, or one size of it.

    >>> import dovetail as dt
    >>> dt.zeros((2, 3), device="reference").size(-1)
    3
    """

    shape: Shape
    plain: int  # the same, for who asks of what type it is

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


def sized(s: Spec) -> Size:
    """The size of tensors of a Spec."""
    s.sized = found = counted(s.size, s.shape)
    return found


def counted(n: int, shape: Shape) -> Size:
    """The size of tensors of a shape, which have so many elements."""
    made = Size(n)
    made.shape, made.plain = shape, n
    return made


class Tensor(Fields, Attached):
    """An n-dimensional array: a device, a layout and a dtype over memory or pending work.

    Tensors are made by `dt.asarray`, `dt.zeros`, ... and by every op. What an op returns is
    computed when somebody looks at it; shape, dtype and device are known, and errors raised, at
    once. Functions of `dt` that take a tensor first are methods too: `dt.sum(x)` is `x.sum()`;
    those that end in "_" write into the tensor.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 2.0], [3.0, 4.0]], device="reference")
    >>> (x * 2).sum(axis=0).tolist()
    [8.0, 12.0]
    """

    __slots__ = ("__weakref__", "_aliases", "_expr")

    __array_priority__ = 1000.0  # Dask chooses by it; NumPy does not, as there is `__array_ufunc__`

    _expr: Expr
    _aliases: Aliases | None

    def __init__(self, *values: object, **options: object) -> None:
        raise DTypeError("Tensor: make tensors with dt.asarray, dt.zeros, dt.empty, ...")

    @property
    def device(self) -> Device:
        """The device that the memory is on.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.device
        device("reference")
        """
        return self._expr.spec.device

    @property
    def dtype(self) -> DType:
        """What the elements are: the one DType, to be compared with `is`.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.dtype is dt.float32
        True
        """
        return self._expr.spec.dtype

    @property
    def layout(self) -> lay.Layout:
        """How memory is interpreted: `dt.strided`, or what a layout plugin adds.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.layout is dt.strided
        True
        """
        return lay.strided

    @property
    def shape(self) -> Shape:
        """The size of each dimension, as a tuple of ints.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.shape
        (2, 3)
        """
        return self._expr.spec.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.ndim
        2
        """
        return len(self._expr.spec.shape)

    @property
    def size(self) -> Size:
        """The number of elements; called as PyTorch has it, the shape, or the size of one axis.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.size, x.size(), x.size(1)
        (6, (2, 3), 3)
        """
        s = self._expr.spec
        return s.sized or sized(s)  # type: ignore[return-value]  # made below

    @property
    def itemsize(self) -> int:
        """The bytes of one element.

        Units: bytes.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.itemsize
        4
        """
        return self._expr.spec.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, each counted once.

        Units: bytes; a broadcast view has more than its memory.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.nbytes
        24
        """
        return self.size * self.itemsize

    def __sizeof__(self) -> int:
        """The bytes of the object and of all elements, by which Dask plans what to keep and send.

        >>> import dovetail as dt
        >>> x = dt.zeros((100,), device="reference")
        >>> x.__sizeof__() > x.nbytes
        True
        """
        return object.__sizeof__(self) + self.nbytes

    def numel(self) -> int:
        """The number of elements, as PyTorch has it: `x.size`.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.numel()
        6
        """
        return self.size

    def dim(self) -> int:
        """The number of dimensions, as PyTorch has it: `x.ndim`.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.dim()
        2
        """
        return self.ndim

    @overload
    def stride(self, axis: None = None) -> Shape: ...
    @overload
    def stride(self, axis: int) -> int: ...
    def stride(self, axis: int | None = None) -> Shape | int:
        """The strides, or that of one axis: how far it is to the next element.

        Units: elements, not bytes.
        Raises: AxisError.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.stride(), x.T.stride(0)
        ((3, 1), 1)
        """
        e = strided("stride", self)._expr
        strides = e.spec.strides if e.op is not None else e.strides
        return strides if axis is None else strides[lay.axis("stride", axis, self.ndim)]

    def storage_offset(self) -> int:
        """The position of the first element in the storage.

        Units: elements, not bytes.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x[1].storage_offset()
        3
        """
        e = strided("storage_offset", self)._expr
        return 0 if e.op is not None else e.offset

    def is_contiguous(self, memory_format: None = None) -> bool:
        """Whether the elements lie densely in row-major order, which is the one format.

        Raises: ArgumentTypeError for another `memory_format` than None.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.is_contiguous(), x.T.is_contiguous()
        (True, False)
        """
        if memory_format is not None:
            raise ArgumentTypeError(
                "is_contiguous: memory_format is None: strides are row-major; see x.stride()"
            )
        e = self._expr
        return e.op is not None or lay.is_contiguous(e.spec.shape, e.strides)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise DTypeError("len: a 0-dimensional tensor has no length")
        return self.shape[0]

    __hash__ = object.__hash__


bind(Tensor)


def required(op: str, x: object) -> Tensor:
    """`x`, which is a tensor. Raises: DTypeError."""
    if not isinstance(x, Tensor):
        raise DTypeError(f"{op}: needs a tensor, not {type(x).__name__}; see dt.asarray")
    return x


def strided(op: str, x: object) -> Tensor:
    """`x`, which is a tensor over strided memory. Raises: DTypeError, LayoutError."""
    if type(x) is not Tensor:
        raise LayoutError(without_meaning(op, required(op, x)))
    return x


class OtherLayout(Protocol):
    """What a tensor that is not strided has; see `other_layouts.LayoutTensor`."""

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The strided tensors that it is made of."""

    def run_rule(self, verb: str, name: str, *args: object) -> Tensor:
        """What its layout's rule for a verb gives."""


def parts_of(x: Tensor) -> tuple[Tensor, ...]:
    """The strided tensors that a tensor of any layout is made of."""
    return (x,) if type(x) is Tensor else cast(OtherLayout, x).parts


def without_meaning(name: str, x: Tensor, beside: str = "") -> str:
    """What is said where an op has no meaning for a tensor's layout."""
    return (
        f"{name}: has no meaning for the layout {x.layout.name}{beside} "
        f"({x.dtype.name}{list(x.shape)} on {x.device}); convert it with x.to_dense()"
    )


def make(e: Expr) -> Tensor:
    """The tensor of a node."""
    t = made(Tensor, e)
    if e.depth > flags.depth:
        _bound(e)
    return t


def _bound(e: Expr) -> None:
    """Computes what is deep, what others may change, and where each op runs at once, anything."""
    eager = settings.is_eager()
    if flags.depth == 0 and settings.current().lines:
        lines.note(e)
    if eager and (looker := settings.current().anomaly) is not None:
        looker.look(e)
        return
    if is_to_finish(e):
        run.finish(e)
    if eager or e.depth > DEPTH_LIMIT:
        run.evaluate((e,), eager)


def is_to_finish(e: Expr) -> bool:
    """Whether a node reads what others may write to, so that it is not to be left pending.

    A captured function leaves nothing pending, and reads at each call what is there then.
    """
    return flags.depth == 0 and recording.current() is None and reads_exported(e)


def lazy_storage(x: Tensor) -> Expr:
    """Gives a pending tensor a storage without memory yet, which its views can share; its leaf."""
    e = x._expr
    x._expr = leaf(waiting_storage(e), e.spec, e.spec.strides, 0)
    x._expr.tape = e.tape
    return x._expr


def waiting_storage(e: Expr) -> Storage:
    """A storage without memory yet, which a pending node will fill."""
    storage = storage_at(None, e.spec.size * e.spec.dtype.itemsize, e.spec.device)
    storage.pending = e
    return storage


def untaped(x: Tensor) -> Tensor:
    """`x`, a result that nobody has seen yet, as something that no gradient flows through."""
    x._expr.tape = None
    return x
