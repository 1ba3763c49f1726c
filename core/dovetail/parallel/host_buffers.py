"""Host memory of tensors and arrays, as the bytes of messages, and reductions of it.

A value is a tensor of any device, or a NumPy array; its result has the same class. A tensor whose
dtype NumPy lacks, such as bfloat16, is sent as unsigned integers of the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

import dovetail as dt
from dovetail.extend import arguments

Value: TypeAlias = "dt.Tensor | np.ndarray[Any, Any]"
Buffer: TypeAlias = "np.ndarray[Any, Any]"
HOST_MEMORY = 1  # the number of DLPack for memory that the host can address
BITS = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}  # by size in bytes
REDUCTIONS: dict[str, tuple[Any, Callable[..., dt.Tensor]]] = {
    "sum": (np.add, dt.add),
    "prod": (np.multiply, dt.multiply),
    "min": (None, dt.minimum),  # NumPy's may differ in the sign of a zero
    "max": (None, dt.maximum),
    "mean": (np.add, dt.add),
}


class Spec(NamedTuple):
    """The dtype and the shape of a value, as all ranks must agree on them."""

    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


def check_value(op: str, x: object, name: str = "tensor") -> Value:
    """Return a value. Raises: ArgumentTypeError, and GradientError if it requires a gradient."""
    if isinstance(x, np.ma.MaskedArray):
        raise dt.ArgumentTypeError(
            f"{op}: {name} must not be a masked array, because masks are not sent; send x.data and "
            "x.mask"
        )
    if isinstance(x, np.ndarray):
        if x.dtype.hasobject or x.dtype.kind not in "biufc" or not x.dtype.isnative:
            raise dt.DTypeError(
                f"{op}: {name} must have numbers in this machine's byte order, got {x.dtype}"
            )
        return x
    if not isinstance(x, dt.Tensor):
        raise arguments.refused(op, name, "a Tensor or a NumPy array", x)
    tensor = x
    if tensor.layout is not dt.strided:
        raise dt.LayoutError(
            f"{op}: {name} must be strided, got {tensor.layout}; send its parts, or x.to_dense()"
        )
    if tensor.requires_grad and dt.is_grad_enabled():
        raise dt.GradientError(
            f"{op}: gradients do not flow through messages; pass {name}.detach(), or send the "
            "gradients themselves"
        )
    return tensor


def spec_of(x: Value) -> Spec:
    """Return the dtype and the shape of a value."""
    return Spec(x.dtype.name, tuple(x.shape))


def read_buffer(x: Value) -> Buffer:
    """Return the elements of a value as a flat array: its memory if that is contiguous, or a copy.

    The memory must not change until the messages with it are sent.
    """
    if isinstance(x, np.ndarray):
        return np.ascontiguousarray(x).reshape(-1)
    flat = x.detach().reshape(-1)
    array = _bits(flat).numpy()
    return np.ascontiguousarray(array)


class Result:
    """A new value like another one, whose elements are written into the flat array `buffer`."""

    def __init__(self, like: Value, shape: Sequence[int] | None = None) -> None:
        self._like = like
        self._shape = tuple(like.shape if shape is None else shape)
        self._tensor: dt.Tensor | None = None
        if isinstance(like, np.ndarray):
            self.buffer: Buffer = np.empty(int(np.prod(self._shape)), like.dtype)
            return
        size, name = int(np.prod(self._shape)), _bits_name(like)
        tensor = dt.empty((size,), dtype=name, device=like.device)
        if tensor.__dlpack_device__()[0] == HOST_MEMORY:
            self._tensor = tensor
            self.buffer = tensor.numpy()
        else:
            self.buffer = np.empty(size, name)

    def value(self) -> Any:
        """Return the tensor on the device of the other one, or the array."""
        like = self._like
        if isinstance(like, np.ndarray):
            return self.buffer.reshape(self._shape)
        tensor = self._tensor
        if tensor is None:
            tensor = dt.asarray(self.buffer, device=like.device)
        return _view(tensor, like.dtype).reshape(self._shape)


def _bits_name(x: dt.Tensor) -> str:
    """Return the name of a dtype of the same bits that NumPy has."""
    name = x.dtype.name
    return name if _is_numpy(x.dtype) else BITS[x.dtype.itemsize]


def _is_numpy(dtype: dt.DType) -> bool:
    """Return True if NumPy itself has the dtype."""
    return getattr(np, dtype.name, None) is not None


def _bits(x: dt.Tensor) -> dt.Tensor:
    """Return a tensor as one of a dtype that NumPy has."""
    return x if _is_numpy(x.dtype) else x.view(BITS[x.dtype.itemsize])


def _view(x: dt.Tensor, dtype: dt.DType) -> dt.Tensor:
    """Return a tensor of bits as one of the dtype."""
    return x if x.dtype is dtype else x.view(dtype)


def bytes_of(buffer: Buffer) -> memoryview:
    """Return the bytes of a flat array."""
    view: Any = buffer.view(np.uint8)  # mypy's ndarray is no buffer in Python 3.11
    return memoryview(view)


class Reduction:
    """A reduction of flat arrays of values like `x`, element by element, with dovetail's bits.

    NumPy adds and multiplies integers and real floats with the same bits, and without a copy.
    """

    def __init__(self, op: str, name: str, x: Value) -> None:
        """Check that values of this dtype can be reduced so. Raises: ArgumentError, DTypeError."""
        self.name = arguments.choice(op, name, "op", tuple(REDUCTIONS))
        dtype = spec_of(x).dtype
        is_numpy = isinstance(x, np.ndarray) or _is_numpy(x.dtype)
        kind = np.dtype(dtype).kind if is_numpy else "f"
        advice = {
            ("b", "sum"): 'cast it to int64, or take "max", which is a logical or',
            ("b", "prod"): 'take "min", which is a logical and',
            ("c", "min"): "reduce its real and imaginary parts",
            ("c", "max"): "reduce its real and imaginary parts",
            **{(k, "mean"): 'take "sum", or cast it to float32' for k in "biu"},
        }.get((kind, name))
        if advice is not None:
            raise dt.DTypeError(f"{op}: {name!r} is not defined for {dtype}; {advice}")
        ufunc, self._function = REDUCTIONS[name]
        self._ufunc = ufunc if is_numpy and kind != "c" else None
        self._dtype = (
            x.dtype if isinstance(x, dt.Tensor) else dt.asarray(np.empty(0, x.dtype)).dtype
        )

    def combine(self, a: Buffer, b: Buffer, out: Buffer) -> None:
        """Write the reduction of two arrays into `out`, which may be one of them."""
        if self._ufunc is not None:
            with np.errstate(all="ignore"):  # sums that overflow are infinite, without a warning
                self._ufunc(a, b, out=out)
        else:
            out[:] = _bits(self._function(self._tensor(a), self._tensor(b))).numpy()

    def finish(self, out: Buffer, size: int) -> None:
        """Divide a sum by the number of ranks, if the reduction is a mean."""
        if self.name == "mean":
            out[:] = _bits(self._tensor(out) / size).numpy()

    def _tensor(self, buffer: Buffer) -> dt.Tensor:
        """Return bits as a tensor of the dtype."""
        return _view(dt.asarray(buffer), self._dtype)
