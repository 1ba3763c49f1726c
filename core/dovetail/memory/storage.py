"""Storages: flat runs of bytes that tensors view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import ref

from .. import callbacks
from ..arguments import LARGEST, integer
from ..compat import hints
from ..device_class import Device, usable
from ..errors import of_this_process
from ..freelists import keep
from .allocator import obtained
from .overlap import Overlap, connect_foreign
from .pointer import DataPtr

if TYPE_CHECKING:
    from ..backend.faults import Check
    from ..dtypes import DType
    from ..graph.expr import Expr, Watch
    from ..tensor.tensor import Tensor
    from .allocator import Allocator

__all__ = ["Storage"]


class Storage:
    """A flat run of bytes on one device, shared by the views of it; it shows its elements.

    `nbytes`: how many. `device`: on which device. `allocator`: whose memory it is; unless given,
    the device's own.

    `len`, indices, slices, iteration and `tolist` speak of elements of `dtype`: that of the tensor
    that it was got from, else bytes. What is written by an index is seen by all tensors over it,
    and gradients that need what was there say so; no gradient flows.
    Units: bytes, where it says nbytes.
    Raises: ArgumentTypeError, ArgumentError, DeviceError, OutOfMemoryError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 2.0], [3.0, 4.0]], device="reference")
    >>> s = x.T.storage()
    >>> s
    <Storage of 4 float32, 16 bytes, on reference>
    >>> s[1], s[1:3].tolist(), len(s)
    (2.0, [2.0, 3.0], 4)
    >>> s[0] = 9.0
    >>> x.tolist()
    [[9.0, 2.0], [3.0, 4.0]]
    >>> dt.Storage(3, "reference")
    <Storage of 3 bytes on reference>
    """

    # A storage without memory yet (`ptr` is None) has a `pending` expression. `read_only` forbids
    # writes. `seen`: other code may read it; `exports`: the number of owners by which other code
    # may write it now. `checks`: of the indices that its values depend on, if some may be out of
    # range (`faults`). `watch`: set while a value is saved for a gradient (`expr`). `overlap`: the
    # storages that overlap this one (`overlap`). `serial`: how many storages were made before.
    __slots__ = (
        "__weakref__", "checks", "device", "dtype", "exports", "nbytes", "overlap", "pending",
        "ptr", "read_only", "readers", "seen", "serial", "watch",
    )  # fmt: skip

    ptr: DataPtr
    dtype: DType | None  # of its elements, where a tensor has said it
    pending: Expr | None  # the deferred expression that will fill it, while `ptr` is None
    checks: tuple[Check, ...]
    watch: Watch | None
    overlap: Overlap | None
    exports: list[None] | None  # an entry for each `Export` that is alive
    readers: list[ref[Expr]] | None  # the pending nodes that read it, as far as `expr` noted them

    if not TYPE_CHECKING:  # what is misspelt is for type checkers to say

        def __getattr__(self, name: str) -> NoReturn:
            raise hints.absent(self, name)

    def __init__(
        self,
        nbytes: int,
        device: Device | str | None = None,
        *,
        allocator: Allocator | None = None,
    ) -> None:
        size, dev = integer("Storage", nbytes, "nbytes", 0, LARGEST), usable(device, "Storage")
        self.ptr = obtained("Storage", size, dev, allocator)
        self.nbytes, self.device = size, dev
        self.dtype = self.pending = self.watch = None
        self.readers = self.overlap = self.exports = None
        self.checks, self.read_only, self.seen = (), False, False
        self.serial = next_serial()
        if allocator is not None:
            connect_foreign(self)

    def is_exported(self) -> bool:
        """Return True if code outside of dovetail may write to it now."""
        return bool(self.exports)

    def view(self, dtype: DType | str | None = None) -> Tensor:
        """All of it as a vector over the same memory; bytes that are left over stay out.

        `dtype`: what the bits are read as; unless given, what its elements are.
        Raises: DTypeError, also for bool unless these are bools.

        >>> import dovetail as dt
        >>> s = dt.ones(1, device="reference").storage()
        >>> [hex(v) for v in s.view(dt.uint32).tolist()]
        ['0x3f800000']
        """
        return callbacks.view_storage(self, dtype)

    def tolist(self) -> list[bool | int | float]:
        """Its elements as Python numbers."""
        found: list[bool | int | float] = self.view().tolist()  # type: ignore[assignment]  # a vector
        return found

    def __len__(self) -> int:
        found: int = self.nbytes // (1 if self.dtype is None else self.dtype.itemsize)
        return found

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[bool | int | float]:
        return iter(self.tolist())

    def __getitem__(self, key: int | slice) -> Any:
        found = self.view()[_key(key)]
        return found if isinstance(key, slice) else found.item()

    def __setitem__(self, key: int | slice, value: Any) -> None:
        self.view()[_key(key)] = value

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise of_this_process("a Storage")

    def __repr__(self) -> str:
        of = "" if self.dtype is None else f"{len(self)} {self.dtype.name}, "
        return f"<Storage of {of}{self.nbytes} bytes{',' * bool(of)} on {self.device}>"


keep(Storage)


def _key(key: object) -> Any:
    """What a storage is asked for. Raises: ArgumentTypeError."""
    return key if isinstance(key, slice) else integer("Storage", key, "the index")


_serial = 0


def next_serial() -> int:
    """Return how many storages were made before; under threads two may have one number."""
    global _serial
    _serial += 1
    return _serial


def storage_over(ptr: DataPtr, device: Device) -> Storage:
    """The storage of memory that has just been allocated."""
    made = Storage.__new__(Storage)
    made.ptr, made.nbytes, made.device = ptr, ptr.nbytes, device
    made.dtype = made.pending = made.watch = None
    made.readers = made.overlap = made.exports = None
    made.checks, made.read_only, made.seen = (), False, False
    made.serial = next_serial()
    return made


def storage_at(
    ptr: DataPtr | None, nbytes: int, device: Device, read_only: bool = False
) -> Storage:
    """A storage of so many bytes at a pointer; without memory yet where that is None."""
    made = Storage.__new__(Storage)
    made.ptr = ptr  # type: ignore[assignment]  # None only while pending, when nobody asks
    made.nbytes, made.device = nbytes, device
    made.dtype = made.pending = made.watch = None
    made.readers = made.overlap = made.exports = None
    made.checks, made.read_only, made.seen = (), read_only, False
    made.serial = next_serial()
    return made
