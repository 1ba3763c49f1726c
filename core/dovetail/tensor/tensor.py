"""The Tensor: a device, a layout and a dtype over a deferred expression.

Functions of the public namespace live beside this file (`creation`, `elementwise`, ...), all made
of the few verbs here:
`apply` (an elementwise op), `reduce`, `view` (a move that shares memory), `assign` (write),
`evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

import numpy as np

from .. import layout as lay
from .. import settings
from ..arguments import BEYOND_FLOAT, shown
from ..backend import faults
from ..backend.streams import current_handle, wait
from ..device import Device, opened
from ..dtypes import DType, float32, float64
from ..engine import evaluate as run
from ..errors import (
    ArgumentError,
    DeviceError,
    DovetailError,
    DTypeError,
    GradientError,
    LayoutError,
    ReadOnlyError,
    ShapeError,
    ValueOverflow,
)
from ..graph.expr import (
    Expr,
    Spec,
    asked_at,
    binary_node,
    leaf,
    may_be_bad,
    node,
    overwritten,
    spec,
    storage_of,
    tape_of,
)
from ..graph.ownership import is_alone
from ..layout import Move, Shape, StridedView
from ..memory import DataPtr, Storage
from ..ops import table as ops
from ..ops.table import Op
from ..recent import Recent

PYTHON_NUMBERS = (bool, int, float, complex)


# --- operators -------------------------------------------------------------------------------


Operator = Callable[["Tensor", Any], "Tensor"]
# Of an op on operands: the result's spec, and for each operand the range that a Python int must fit
# (None in place of all, where there are no ints).
Limits = tuple[tuple[int, int, str] | None, ...]
Inferred = tuple[Spec, Limits | None]
SPECS = 4096  # combinations of operands whose results an operator remembers
APPLIED = 1 << 15  # and those that `apply` remembers, of all ops
Key = TypeVar("Key")
# An operator's keys are the operands' specs, or the types of numbers; the others have the op first.
_of_operators: dict[Op, Recent[tuple[Spec, Spec | type], Inferred]] = {}
_applied: Recent[tuple[Op, Any, Any], Inferred] = Recent(APPLIED)  # the operands; the op's attrs


def _operator(op: Op) -> tuple[Operator, Operator, Operator]:
    """Operator, reflected operator and in-place operator of a binary op. The first is dovetail's
    hot path.
    """
    known = _of_operators[op] = Recent(SPECS)
    specs = known.young

    def forward(self: Tensor, other: Any) -> Tensor:
        a = self._expr
        if type(other) is Tensor:
            b = other._expr
            found = specs.get((a.spec, b.spec))
            if found is None:
                found = inferred(known, (a.spec, b.spec), op, (a, b))
            return make(binary_node(op, a, b, found[0]))
        kind = type(other)
        if kind in PYTHON_NUMBERS:
            found = specs.get((a.spec, kind))
            if found is None:
                found = inferred(known, (a.spec, kind), op, (a, other))
            if found[1] is not None:
                low, high, _ = found[1][1]  # type: ignore[misc]  # an int's, which has one
                if not low <= other <= high:
                    check_limits(op, (a, other), found[1])
            return make(binary_node(op, a, other, found[0]))
        return NotImplemented if decides(other) else apply(op, (self, other))

    def reflected(self: Tensor, other: Any) -> Tensor:
        return NotImplemented if decides(other) else apply(op, (other, self))

    def inplace(self: Tensor, other: Any) -> Tensor:
        return in_place(op, self, other)  # never NotImplemented, which would rebind the name

    return forward, reflected, inplace


def _unary(op: Op) -> Callable[[Tensor], Tensor]:
    return lambda self: apply(op, (self,))


if TYPE_CHECKING:
    from .signatures import Methods
else:
    Methods = object

__all__ = ["Tensor", "evaluate"]


class Tensor(Methods):
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

    _expr: Expr
    _aliases: list[ref[Tensor]] | None  # all tensors over the same memory, once there are several

    def __init__(self) -> None:
        raise DTypeError("Tensor: make tensors with dt.asarray, dt.zeros, dt.empty, ...")

    # --- the trinity, shape and strides

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
    def size(self) -> int:
        """The number of elements.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.size
        6
        """
        return self._expr.spec.size

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

    def stride(self, axis: int | None = None) -> Any:
        """The strides, or that of one axis: how far it is to the next element.

        Units: elements, not bytes.
        Raises: AxisError.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.stride(), x.T.stride(0)
        ((3, 1), 1)
        """
        e = self._expr
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
        return 0 if self._expr.op is not None else self._expr.offset

    def is_contiguous(self) -> bool:
        """Whether the elements lie densely in row-major order.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.is_contiguous(), x.T.is_contiguous()
        (True, False)
        """
        e = self._expr
        return e.op is not None or lay.is_contiguous(e.spec.shape, e.strides)

    def storage(self) -> Storage:
        """The memory that this tensor and its views share; computes a pending value.

        Raises: OutOfMemoryError, and what the work that is pending raises.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.storage() is x[1].storage()
        True
        """
        return storage_of(evaluated(self))

    def data_ptr(self) -> int:
        """The address of the first element, where the host can reach the memory.

        Elsewhere it is the driver's handle of the memory. A pending value is computed.
        Units: bytes.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.data_ptr() % 64
        0
        """
        e = evaluated(self)
        ptr = storage_of(e).ptr
        at = ptr.offset + e.offset * self.itemsize
        address = opened(self.device).backend.host_address(ptr.handle, at)
        return int(address if address is not None else ptr.handle)

    @property
    def T(self) -> Tensor:
        """The transpose of a matrix: a view.

        Raises: ShapeError for other than 2 dimensions; see `dt.permute_dims`.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.T.shape
        (3, 2)
        """
        if self.ndim != 2:
            raise ShapeError(f"T: needs 2 dimensions, not shape {self.shape}; see dt.permute_dims")
        return view(self, ("permute", (1, 0)))

    @property
    def mT(self) -> Tensor:
        """The transpose of the last two dimensions: a view.

        Raises: ShapeError below 2 dimensions.

        >>> import dovetail as dt
        >>> x = dt.zeros((2, 3), device="reference")
        >>> x.mT.shape
        (3, 2)
        """
        if self.ndim < 2:
            raise ShapeError(f"mT: needs at least 2 dimensions, not shape {self.shape}")
        axes = (*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)
        return view(self, ("permute", axes))

    # --- looking

    def numpy(self) -> np.ndarray[Any, Any]:
        """The values as a NumPy array; where the host reaches the memory, a read-only view of it.

        The view shows later writes to the tensor; to write yourself, copy it. A pending value is
        computed.
        Raises: DTypeError for bfloat16, which NumPy lacks; IndexOutOfRange, each time, where the
        values come of a bad index.

        >>> import dovetail as dt
        >>> dt.zeros(2, device="reference").numpy()
        array([0., 0.], dtype=float32)
        """
        dtype = self.dtype.__numpy_dtype__
        if dtype is None:
            name = self.dtype.name
            raise DTypeError(f"numpy: NumPy has no {name}; use x.astype(dt.float32).numpy()")
        return host_array(self, dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """For `numpy.asarray(x)`."""
        found = self.numpy()
        if dtype is not None and np.dtype(dtype) != found.dtype:
            if copy is False:
                raise ArgumentError(
                    "__array__: another dtype needs a copy, and copy=False forbids it"
                )
            return found.astype(dtype)
        return found.copy() if copy else found

    def item(self) -> bool | int | float:
        """The value of a tensor of one element, as a Python number.

        A pending value is computed.
        Raises: ShapeError for more or no elements; IndexOutOfRange where it comes of a bad index.

        >>> import dovetail as dt
        >>> dt.asarray([[7]], device="reference").item()
        7
        """
        if self.size != 1:
            raise ShapeError(
                f"item: needs exactly one element, not shape {self.shape}; see tolist()"
            )
        x = self if self.dtype.__numpy_dtype__ is not None else apply(ops.ASTYPE, (self,), float32)
        return x.numpy().reshape(()).item()  # type: ignore[no-any-return]

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers; a 0-dimensional tensor gives the number.

        A pending value is computed.
        Raises: IndexOutOfRange where the values come of a bad index.

        >>> import dovetail as dt
        >>> dt.asarray([[1, 2], [3, 4]], device="reference").tolist()
        [[1, 2], [3, 4]]
        """
        x = self if self.dtype.__numpy_dtype__ is not None else apply(ops.ASTYPE, (self,), float32)
        return x.numpy().tolist()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError(
                f"bool: the truth of a tensor of shape {self.shape} is ambiguous; "
                "use dt.any or dt.all"
            )
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if not self.dtype.is_integer or self.size != 1:
            raise DTypeError(
                f"index: needs one integer, not {self.dtype.name} of shape {self.shape}"
            )
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __len__(self) -> int:
        if self.ndim == 0:
            raise DTypeError("len: a 0-dimensional tensor has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if self.ndim == 0:
            raise DTypeError("iter: iteration over a 0-dimensional tensor; see x.item()")
        return _rows(self)

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    # --- operators

    __add__, __radd__, __iadd__ = _operator(ops.ADD)
    __sub__, __rsub__, __isub__ = _operator(ops.SUBTRACT)
    __mul__, __rmul__, __imul__ = _operator(ops.MULTIPLY)
    __truediv__, __rtruediv__, __itruediv__ = _operator(ops.DIVIDE)
    __floordiv__, __rfloordiv__, __ifloordiv__ = _operator(ops.FLOOR_DIVIDE)
    __mod__, __rmod__, __imod__ = _operator(ops.REMAINDER)
    _power, __rpow__, __ipow__ = _operator(ops.POW)
    __and__, __rand__, __iand__ = _operator(ops.BITWISE_AND)
    __or__, __ror__, __ior__ = _operator(ops.BITWISE_OR)
    __xor__, __rxor__, __ixor__ = _operator(ops.BITWISE_XOR)
    __lshift__, __rlshift__, __ilshift__ = _operator(ops.LEFT_SHIFT)
    __rshift__, __rrshift__, __irshift__ = _operator(ops.RIGHT_SHIFT)
    __eq__ = _operator(ops.EQUAL)[0]  # type: ignore[assignment]  # elementwise, not bool
    __ne__ = _operator(ops.NOT_EQUAL)[0]  # type: ignore[assignment]
    __lt__ = _operator(ops.LESS)[0]
    __le__ = _operator(ops.LESS_EQUAL)[0]
    __gt__ = _operator(ops.GREATER)[0]
    __ge__ = _operator(ops.GREATER_EQUAL)[0]
    __neg__ = _unary(ops.NEGATIVE)
    __pos__ = _unary(ops.POSITIVE)
    __abs__ = _unary(ops.ABS)
    __invert__ = _unary(ops.BITWISE_INVERT)

    def __pow__(self, other: Any) -> Tensor:
        if type(other) is int and other == 2:
            return apply(ops.SQUARE, (self,))
        return self._power(other)

    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return other // self, other % self

    __hash__ = object.__hash__


def required(op: str, x: Any) -> Tensor:
    """`x`, which is a tensor. Raises: DTypeError."""
    if not isinstance(x, Tensor):
        raise DTypeError(f"{op}: needs a tensor, not {type(x).__name__}; see dt.asarray")
    return x


def operands(op: str, *given: Any) -> tuple[Any, ...]:
    """Tensors and Python numbers, at least one a tensor, all on one device; NumPy arrays and lists
    are brought there.

    Raises: DTypeError, DeviceError.
    """
    numbers = (Tensor, *PYTHON_NUMBERS, np.generic)
    found = tuple([x if isinstance(x, numbers) else beside(op, x, given) for x in given])
    places = {x.device for x in found if isinstance(x, Tensor)}
    if not places:
        raise DTypeError(f"{op}: at least one operand has to be a tensor; see dt.asarray")
    if len(places) > 1:
        names = " and ".join(sorted(map(str, places)))
        raise DeviceError(f"{op}: operands are on {names}; move one with x.to(device)")
    return found


def make(e: Expr) -> Tensor:
    """The tensor of a node."""
    t: Tensor = _new(Tensor)
    t._expr = e
    t._aliases = None
    if e.depth > settings.depth_limit:
        _bound(e)
    return t


def _bound(e: Expr) -> None:
    """Computes what is deep, and where each op runs at once, anything."""
    eager = settings.current().eager
    if eager or e.depth > settings.DEPTH_LIMIT:
        run.evaluate((e,), eager)


_new: Any = object.__new__


def evaluated(x: Tensor) -> Expr:
    """The tensor's node, now a leaf in memory."""
    e = x._expr
    if e.op is not None:
        run.evaluate((e,))
    elif e.storage.pending is not None:
        pending = storage_of(e).pending
        if pending is not None:
            run.evaluate((pending,))
            storage_of(e)
    return e


def host_array(x: Tensor, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The values as a NumPy array of a dtype of that size: read-only over the memory itself where
    the host reaches it, else a copy.
    """
    e = evaluated(x)
    where = opened(x.device)
    wait(where, current_handle(x.device))
    faults.look(storage_of(e))
    shared = _host_array(e, where.backend, dtype)
    return shared if shared is not None else _copied_array(x, where.backend, dtype)


def _rows(x: Tensor) -> Iterator[Tensor]:
    """x[0], x[1], ... of what is computed once, before."""
    evaluate(x)
    for i in range(x.shape[0]):
        yield _row(x, i)


def _row(x: Tensor, i: int) -> Tensor:
    """x[i], which general indexing takes four times as long for."""
    if type(x) is not Tensor or x._expr.op is not None or x._expr.tape is not None:
        return x[i]
    e = x._expr
    s = spec(e.spec.shape[1:], e.spec.dtype, e.spec.device)
    return alias(x, make(leaf(storage_of(e), s, e.strides[1:], e.offset + i * e.strides[0])))


def _host_array(e: Expr, backend: Any, dtype: Any) -> np.ndarray[Any, Any] | None:
    """A NumPy array over the leaf's memory, which it keeps alive; None where the host cannot reach
    it.
    """
    storage = storage_of(e)
    ptr = storage.ptr
    low, high = lay.span(StridedView(e.spec.shape, e.strides, e.offset))
    address = backend.host_address(ptr.handle, ptr.offset + low * dtype.itemsize)
    if address is None:
        return None
    if high == low:
        return np.empty(e.spec.shape, dtype)
    storage.seen = True
    raw = np.asarray(_HostMemory(address, (high - low) * dtype.itemsize, storage))
    flat = raw.view(dtype)
    strides = tuple(s * dtype.itemsize for s in e.strides)
    start = (e.offset - low) * dtype.itemsize
    out = np.ndarray(e.spec.shape, dtype, flat, start, strides)
    out.flags.writeable = False  # a write would be seen, or not, by pending work
    return out


class _HostMemory:
    """Memory as NumPy's array interface shows it; the storage lives as long as the array."""

    def __init__(self, address: int, nbytes: int, storage: Storage) -> None:
        self.__array_interface__ = {
            "data": (address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3,
        }  # fmt: skip
        self.storage = storage


def is_ours(memory: Any) -> bool:
    """Whether a buffer shows the memory of a tensor of this process."""
    while memory is not None and not isinstance(memory, _HostMemory):
        if isinstance(memory, PickleBuffer):
            memory = memory.raw()
        memory = memory.obj if isinstance(memory, memoryview) else getattr(memory, "base", None)
    return memory is not None


def _copied_array(x: Tensor, backend: Any, dtype: Any) -> np.ndarray[Any, Any]:
    e = evaluated(x if x.is_contiguous() else apply(ops.COPY, (x,)))
    ptr = storage_of(e).ptr
    out = np.empty(e.spec.shape, dtype)
    if out.size:
        flat = out.reshape(-1).view(np.uint8).data
        backend.copy_out(
            flat, ptr.handle, ptr.offset + e.offset * dtype.itemsize, current_handle(x.device)
        )
    return out


# --- elementwise ops ------------------------------------------------------------------------------


def apply(op: Op, args: Sequence[Any], attrs: Any = None, out: Tensor | None = None) -> Tensor:
    """An elementwise op on tensors and Python numbers, with broadcasting.

    Raises: ShapeError, DTypeError, DeviceError, ValueOverflow, naming op and operands.
    """
    if len(args) == 1 and out is None and type(args[0]) is Tensor:
        a = args[0]._expr
        found = _applied.young.get((op, a.spec, attrs))
        if found is None:
            found = inferred(_applied, (op, a.spec, attrs), op, (a,), attrs)
        return make(node(op, (a,), found[0], attrs))
    operands = tuple([a._expr if type(a) is Tensor else _operand(op, a, args) for a in args])
    key = tuple([a.spec if type(a) is Expr else type(a) for a in operands])
    found = _applied.young.get((op, key, attrs))
    if found is None:
        if any(isinstance(a, Tensor) for a in operands):
            given = [make(a) if type(a) is Expr else a for a in operands]
            made = dispatch("apply", operands, op, given, attrs)
            return made if out is None else write_out(op.name, out, made._expr)
        found = inferred(_applied, (op, key, attrs), op, operands, attrs)
    s, limits = found
    if limits is not None:
        check_limits(op, operands, limits)
    if out is not None:
        return write_out(op.name, out, node(op, operands, s, attrs))
    return make(node(op, operands, s, attrs))


def dispatch(verb: str, among: Sequence[Any], *args: Any) -> Any:
    """What the layout of the first operand that is not strided gives for `verb`.

    See `other_layouts.py`. Raises: LayoutError where that layout has no rule for the verb.
    """
    x: Any = next(x for x in among if isinstance(x, Tensor) and type(x) is not Tensor)
    return x.answer(verb, *args)


def _operand(op: Op, x: Any, among: Sequence[Any]) -> Any:
    """What stands for an operand that is no strided tensor: a number, a tensor of another layout,
    or the node of an array.
    """
    if type(x) in PYTHON_NUMBERS or isinstance(x, Tensor):
        return x
    x = x.item() if isinstance(x, np.generic) else x  # a number, or what is none: a date, a text
    for kind in PYTHON_NUMBERS:  # subclasses, such as an IntEnum
        if isinstance(x, kind):
            return kind(x)  # type: ignore[arg-type]
    return beside(op.name, x, among)._expr


Array = Tensor | np.ndarray[Any, Any] | Sequence[Any]  # an operand that has a shape
Operand = Array | bool | int | float
ARRAYS = (np.ndarray, list, tuple, range)  # what is an operand without being a tensor or a number
as_tensor: Any = None  # creation's `asarray`


def beside(name: str, x: Any, among: Sequence[Any]) -> Tensor:
    """An operand that is a list or a NumPy array, as a tensor on the device of those among which it
    stands. Raises: DTypeError for what is no operand, and where none of them is a tensor.
    """
    if not isinstance(x, ARRAYS) or decides(x):
        raise DTypeError(
            f"{name}: operands are tensors, NumPy arrays, lists and numbers, not "
            f"{type(x).__name__}; see "
            + ("`x is None`" if x is None and name in ("equal", "not_equal") else "dt.asarray")
        )
    tensors = [a for a in among if isinstance(a, Tensor)]
    if not tensors:
        raise DTypeError(f"{name}: at least one operand has to be a tensor; see dt.asarray")
    require_untaped(name, x)
    try:
        made: Tensor = as_tensor(x, device=tensors[0].device)
        exact = made.dtype is float32 and any(t.dtype is float64 for t in tensors)
        if exact and not isinstance(x, np.ndarray):  # no digit of a list is to be lost
            made = as_tensor(x, dtype=float64, device=made.device)
        return made
    except DovetailError as error:
        raise type(error)(f"{name}: {error}") from None


def brought(name: str, *operands: Any) -> tuple[Tensor, ...]:
    """The operands as tensors: lists and NumPy arrays are brought to the device of the others.

    Raises: DTypeError, also for numbers.
    """
    for x in operands:
        if not isinstance(x, (Tensor, *ARRAYS)):
            raise DTypeError(
                f"{name}: operands are tensors, NumPy arrays and lists, not {type(x).__name__}; "
                "see dt.asarray"
            )
    return tuple([x if isinstance(x, Tensor) else beside(name, x, operands) for x in operands])


def require_untaped(name: str, x: Any) -> None:
    """Raises: GradientError for a list with a tensor whose gradient would be lost: lists are read
    by value.
    """
    if isinstance(x, (list, tuple)):
        for part in x:
            require_untaped(name, part)
    elif isinstance(x, Tensor) and x.requires_grad:
        raise GradientError(
            f"{name}: a list is read by value, and a tensor in this one requires a gradient; use "
            "dt.stack, or x.detach()"
        )


def decides(other: Any) -> bool:
    """Whether an operand decides itself what an operator gives, as NumPy lets it: its class has an
    `__array_ufunc__` of its own, or None for it.
    """
    found = getattr(type(other), "__array_ufunc__", _NUMPYS)
    return found is not _NUMPYS and not isinstance(other, (Tensor, np.generic))


_NUMPYS = np.ndarray.__array_ufunc__


def inferred(
    known: Recent[Key, Inferred], key: Key, op: Op, operands: Sequence[Any], attrs: Any = None
) -> Inferred:
    """What `infer` says, or said before, noted under `key`."""
    found = known.find(key)
    if found is None:
        found = known[key] = infer(op, operands, attrs)
    return found


def infer(op: Op, operands: Sequence[Any], attrs: Any) -> Inferred:
    """What is known of an elementwise op's result."""
    tensors = [a for a in operands if type(a) is Expr]
    if not tensors:
        raise DTypeError(f"{op.name}: at least one operand has to be a tensor; see dt.asarray")
    devices = {a.spec.device for a in tensors}
    if len(devices) > 1:
        names = " and ".join(sorted(map(str, devices)))
        raise DeviceError(f"{op.name}: operands are on {names}; move one with x.to(device)")
    kinds = [a.spec.dtype if type(a) is Expr else type(a) for a in operands]
    casts, result = op.dtypes(op.name, kinds, attrs)
    shapes = [a.spec.shape for a in tensors]
    shape = shapes[0] if len(set(shapes)) == 1 else lay.broadcast_shapes(op.name, *shapes)
    limits = tuple(
        _range(d) if type(a) is int else None for a, d in zip(operands, casts, strict=True)
    )
    made = spec(shape, result, tensors[0].spec.device, op.name)
    return made, limits if any(limits) else None


def _range(d: DType) -> tuple[int, int, str]:
    """The ints that take part in an op as `d`, and its name. Floats come by way of a float64."""
    if d.is_integer:
        return d.min, d.max, d.name
    return 1 - BEYOND_FLOAT, BEYOND_FLOAT - 1, d.name


def check_limits(op: Op, operands: Sequence[Any], limits: Limits) -> None:
    """Raises ValueOverflow for a Python int that does not fit the dtype it takes part in."""
    for a, bounds in zip(operands, limits, strict=True):
        if bounds is not None and not bounds[0] <= a <= bounds[1]:
            low, high, name = bounds
            span = f" ({low}..{high})" if high < BEYOND_FLOAT - 1 else ""
            raise ValueOverflow(f"{op.name}: {shown(a)} does not fit {name}{span}")


def write_out(name: str, out: Tensor, result: Expr) -> Tensor:
    """Writes a result into `out=`, which must have exactly its shape, dtype and device."""
    if not isinstance(out, Tensor):
        raise DTypeError(f"{name}: out= must be a tensor, not {type(out).__name__}")
    have, want = out._expr.spec, result.spec
    if have is not want:
        error = ShapeError if have.shape != want.shape else DTypeError
        if have.device is not want.device:
            error = DeviceError  # type: ignore[assignment]
        raise error(f"{name}: out= is {have!r}, but the result is {want!r}; they must be the same")
    if result.tape is not None:
        raise GradientError(f"{name}: out= has no gradient; leave it out, or see dt.no_grad")
    only = [result]
    del result
    assign(name, out, only.pop())
    return out


# --- reductions -----------------------------------------------------------------------------------


def reduce(op: Op, x: Tensor, axes: Shape, keepdims: bool, attrs: Any = None) -> Tensor:
    """A reduction over `axes` (non-negative and sorted). With `keepdims` they stay, with size 1."""
    e = x._expr
    shape = e.spec.shape
    _, dtype = op.dtypes(op.name, [e.spec.dtype], attrs)
    kept = tuple([n for d, n in enumerate(shape) if d not in axes])
    full = tuple([1 if d in axes else n for d, n in enumerate(shape)]) if keepdims else kept
    return make(node(op, (e,), spec(full, dtype, e.spec.device, op.name), (axes, attrs)))


def untaped(x: Tensor) -> Tensor:
    """`x`, a result that nobody has seen yet, as something that no gradient flows through."""
    x._expr.tape = None
    return x


# --- views ----------------------------------------------------------------------------------------


def view(x: Tensor, m: Move) -> Tensor:
    """The tensor after a layout move, sharing memory. For a reshape that strides do not permit: a
    copy.
    """
    if type(x) is not Tensor:
        return dispatch("view", (x,), x, m)  # type: ignore[no-any-return]
    e = x._expr
    if e.op is not None:
        e = boxed(x)
    found = _moved.young.get((e.spec, e.strides, m)) or _move(e, m)
    if found is _COPY:
        return view(apply(ops.COPY, (x,)), m)
    s, strides, offset = found
    moves = (*e.moves, m) if storage_of(e).pending is not None else ()
    seen = leaf(e.storage, s, strides, e.offset + offset, moves)
    if e.tape is not None:
        seen.tape = tape_of(ops.VIEW, (e,), s, m)
    return alias(x, make(seen))


_COPY = (None, (), 0)  # stands for a move that strides do not permit
# a move of a layout -> spec, strides and offset: 1 us to work out
_moved: Recent[Any, Any] = Recent(8192)


def _move(e: Expr, m: Move) -> Any:
    key = (e.spec, e.strides, m)
    found = _moved.find(key)
    if found is None:
        after = lay.move(StridedView(e.spec.shape, e.strides, 0), m)
        found = _COPY
        if after is not None:
            s = spec(after.shape, e.spec.dtype, e.spec.device, m[0])
            found = (s, after.strides, after.offset)
        _moved[key] = found
    return found


def alias(x: Tensor, y: Tensor) -> Tensor:
    """`y`, noted as sharing x's memory: a write to one concerns the gradients of the other."""
    group = x._aliases
    if group is None:
        group = x._aliases = [ref(x)]
    group.append(ref(y))
    y._aliases = group
    n = len(group)
    if n >= 64 and not n & (n - 1):  # when doubled, so that many live ones cost no more each
        group[:] = [r for r in group if r() is not None]
    return y


def is_viewable(x: Tensor, m: Move) -> bool:
    """Whether the move shares memory."""
    e = x._expr
    strides = e.spec.strides if e.op is not None else e.strides
    return lay.move(StridedView(e.spec.shape, strides, 0), m) is not None


def boxed(x: Tensor) -> Expr:
    """Gives a pending tensor a storage without memory yet, which its views can share; its leaf."""
    e = x._expr
    storage = Storage(None, e.spec.size * e.spec.dtype.itemsize, e.spec.device)
    storage.pending = e
    x._expr = leaf(storage, e.spec, e.spec.strides, 0)
    x._expr.tape = e.tape
    return x._expr


# --- writing --------------------------------------------------------------------------------------


def assign(name: str, x: Tensor, value: Expr) -> None:
    """Makes `value` (of x's spec) the contents of `x`, as every view of the memory sees."""
    e = x._expr
    if e.op is not None and (asked_at or faults.tainted) and may_be_bad(value):
        e = boxed(x)  # what it is now must stay where the write is an error
    if e.op is not None:  # nobody else can see a pending value through another view
        # What is also someone else's (a leaf always is) must not become one with x: later writes
        # would be seen by both.
        only = [value]
        del value
        if only[0].op is None or only[0].tape is not None or not is_alone(only):
            only = [node(ops.COPY, (only[0],), only[0].spec)]
        if not settings.current().grad:
            only[0].tape = e.tape  # as of memory that is written: it is not recorded
        x._expr = make(only.pop())._expr
        overwritten(e, name)
        return
    check_writable(name, e)
    note = writing(name, x, value)
    only = [value]  # handed on, not kept: a node that anybody else refers to gets memory of its own
    del value
    try:
        run.write(only, e)
    except BaseException as error:
        torn(error, name, e)
        raise
    overwritten(e, name)
    if note is not None:
        note()


def torn(error: BaseException, name: str, e: Expr) -> None:
    """After an error in a write. Ours come before anything is written; Ctrl-C comes at any time, so
    values that were kept for gradients count as overwritten."""
    if not isinstance(error, DovetailError | MemoryError):
        overwritten(e, name)


def writing(name: str, x: Tensor, value: Expr) -> Callable[[], None] | None:
    """What is to be called after `value` has been written into x's memory, for the gradients' sake.

    Raises: GradientError where the write would break a gradient.
    """
    if taped_write is None or (value.tape is None and x._expr.tape is None and x._aliases is None):
        return None
    return taped_write(name, x, value)  # type: ignore[no-any-return]


taped_write: Any = None  # autograd's


def check_writable(name: str, e: Expr) -> None:
    """Raises ReadOnlyError where a write must not happen or would have no meaning."""
    if storage_of(e).read_only:
        raise ReadOnlyError(
            f"{name}: the memory of this {e.spec!r} is read-only; write to x.copy()"
        )
    if lay.repeats(StridedView(e.spec.shape, e.strides, 0)):
        raise ReadOnlyError(
            f"{name}: cannot write to a broadcast view (shape {e.spec.shape}, strides "
            f"{e.strides}): several elements share memory; write to x.copy()"
        )


def in_place(op: Op, x: Tensor, *others: Any, attrs: Any = None) -> Tensor:
    """`x` after op(x, others) has been written into it. The result must have x's shape and a dtype
    that fits.
    """
    if type(x) is not Tensor:
        raise LayoutError(
            f"{op.name} in place: a tensor of layout {x.layout.name} is not written in place; "
            f"use dt.{op.name}(), which returns a new one"
        )
    name, want = f"{op.name} in place", x._expr.spec
    made = apply(op, (x, *others), attrs)
    if type(made) is not Tensor:
        raise LayoutError(
            f"{op.name} in place: the result has the layout {made.layout.name}, and the tensor it "
            "would be written into is strided; convert the operand with to_dense()"
        )
    only = [made._expr]  # handed on, not kept: a node that nobody else holds gets no memory
    del made
    assign(op.name, x, fitted(name, only.pop(), want))
    return x


def fitted(name: str, e: Expr, want: Spec) -> Expr:
    """`e` broadcast and cast to `want`, where that loses no kind of number (float into int is an
    error).
    """
    have = e.spec
    if have is want:
        return e
    if have.device is not want.device:
        raise DeviceError(
            f"{name}: operands are on {have.device} and {want.device}; move one with x.to(device)"
        )
    if have.dtype is not want.dtype:
        order = "buif"
        a, b = have.dtype.kind, want.dtype.kind
        if order.index(a) > order.index(b) and (a, b) != ("i", "u"):
            raise DTypeError(
                f"{name}: {have.dtype.name} does not fit into {want.dtype.name}; "
                "cast it with astype()"
            )
        e = node(ops.ASTYPE, (e,), spec(have.shape, want.dtype, have.device), want.dtype)
    if have.shape != want.shape:
        if (
            len(have.shape) > len(want.shape)
            or lay.broadcast_shapes(name, have.shape, want.shape) != want.shape
        ):
            raise ShapeError(
                f"{name}: a value of shape {have.shape} does not fit into shape {want.shape}"
            )
        e = node(ops.VIEW, (e,), want, ("expand", want.shape))
    return e


# --- memory in and out ----------------------------------------------------------------------------


def from_host(values: np.ndarray[Any, Any], dtype: DType, device: Device) -> Tensor:
    """A new tensor with a copy of host values (of a NumPy dtype with dtype's bytes)."""
    e = fresh(spec(values.shape, dtype, device, "asarray"))  # first: it is what fails by name
    values = np.asarray(values, order="C")
    ptr = e.storage.ptr
    if values.size:
        flat = values.reshape(-1).view(np.uint8).data
        opened(device).backend.copy_in(ptr.handle, ptr.offset, flat, current_handle(device))
    return make(e)


def fresh(s: Spec) -> Expr:
    """A leaf over newly allocated, uninitialised memory."""
    nbytes = s.size * s.dtype.itemsize
    ptr: DataPtr = opened(s.device).allocator.allocate(nbytes, current_handle(s.device))
    return leaf(Storage(ptr, nbytes, s.device), s, s.strides, 0)


def evaluate(*tensors: Tensor) -> None:
    """Computes these tensors now, together, so that they share kernels; returns nothing.

    Shapes: any.
    Dtypes: all.
    Raises: OutOfMemoryError; IndexOutOfRange on devices that wait for their work; DTypeError for
    what is no tensor.

    >>> import dovetail as dt
    >>> x = dt.zeros(3, device="reference") + 1
    >>> dt.evaluate(x, x * 2)
    """
    for t in tensors:
        required("evaluate", t)
    run.evaluate([p._expr for t in tensors for p in _parts(t)])


def _parts(x: Any) -> Sequence[Tensor]:
    return (x,) if type(x) is Tensor else x.parts
