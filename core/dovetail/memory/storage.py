"""Storages: flat runs of bytes that tensors view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import ref

from .. import callbacks
from ..argument_checks import LARGEST, integer
from ..compat import hints
from ..device_class import Device, usable
from ..dtypes import uint8
from ..errors import process_memory_error
from ..object_pool import pool_objects
from .allocator import allocate_from
from .overlap import OverlapGroup, connect_foreign
from .pointer import DataPtr

if TYPE_CHECKING:
    from ..backend.faults import IndexCheck
    from ..dtypes import DType
    from ..graph.expr import Expr, Watch
    from ..tensor.tensor import Tensor
    from .allocator import Allocator

__all__ = ["Storage"]


class Storage:
    """A flat run of bytes on one device, shared by its views; it acts as a sequence of elements.

    `nbytes`: the size. `device`: the device. `allocator`: the allocator of the memory; by default
    that of the device.
    `len`, indices, slices, iteration and `tolist` use elements of `dtype`: that of the tensor whose
    storage it is, else bytes. All tensors over the memory see a write by index, and gradients that
    need the overwritten values raise an error. No gradient flows through a storage.

    - `nbytes`: the number of bytes.
    - `device`: the device; None is the default device.
    - `allocator`: the allocator of the memory; None is that of the device.

    Units: nbytes in bytes.
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
        "__weakref__",
        "checks",
        "device",
        "dtype",
        "exports",
        "nbytes",
        "overlap",
        "pending",
        "ptr",
        "read_only",
        "readers",
        "seen",
        "serial",
        "watch",
    )

    ptr: DataPtr
    dtype: DType | None  # of its elements; None: bytes
    pending: Expr | None  # the deferred expression that will fill it, while `ptr` is None
    checks: tuple[IndexCheck, ...]
    watch: Watch | None
    overlap: OverlapGroup | None
    exports: list[None] | None  # an entry for each `Export` that is alive
    readers: list[ref[Expr]] | None  # registered pending nodes that read it (`expr`)

    if not TYPE_CHECKING:  # otherwise type checkers accept misspelt names

        def __getattr__(self, name: str) -> NoReturn:
            raise hints.missing_attribute(self, name)

    def __init__(
        self,
        nbytes: int,
        device: Device | str | None = None,
        *,
        allocator: Allocator | None = None,
    ) -> None:
        size, dev = integer("Storage", nbytes, "nbytes", 0, LARGEST), usable(device, "Storage")
        self.ptr = allocate_from("Storage", size, dev, allocator)
        self.nbytes, self.device = size, dev
        self.dtype = self.pending = self.watch = None
        self.readers = self.overlap = self.exports = None
        self.checks, self.read_only, self.seen = (), False, False
        self.serial = next_serial()
        if allocator is not None:
            connect_foreign(self)

    def is_exported(self) -> bool:
        """Return True if code outside of dovetail may write to the storage now."""
        return bool(self.exports)

    def view(self, dtype: DType | str | None = None) -> Tensor:
        """Return the storage as a vector over the same memory, without bytes left over at the end.

        - `dtype`: the dtype of the vector; None is that of the elements.

        Raises: DTypeError, also for bool unless these are bools.

        >>> import dovetail as dt
        >>> s = dt.ones(1, device="reference").storage()
        >>> [hex(v) for v in s.view(dt.uint32).tolist()]
        ['0x3f800000']
        """
        return callbacks.view_storage(self, dtype)

    def data_ptr(self) -> int:
        """Return the address of the first byte, as `x.data_ptr()` does; `ptr` is the `DataPtr`.

        >>> import dovetail as dt
        >>> x = dt.zeros(3)
        >>> x.storage().data_ptr() == x.data_ptr() == x.storage().data()
        True
        """
        return self.view(uint8).data_ptr()

    def data(self) -> int:
        """Return the address of the first byte: another name of `data_ptr`."""
        return self.data_ptr()

    def device_type(self) -> str:
        """Return the type of the device, such as "cpu"."""
        return self.device.type

    def tolist(self) -> list[bool | int | float]:
        """Return the elements as Python numbers."""
        values: list[bool | int | float] = self.view().tolist()  # type: ignore[assignment]  # a vector
        return values

    def __len__(self) -> int:
        length: int = self.nbytes // (1 if self.dtype is None else self.dtype.itemsize)
        return length

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[bool | int | float]:
        return iter(self.tolist())

    def __getitem__(self, key: int | slice) -> Any:
        elements = self.view()[_validate_key(key)]
        return elements if isinstance(key, slice) else elements.item()

    def __setitem__(self, key: int | slice, value: Any) -> None:
        self.view()[_validate_key(key)] = value

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise process_memory_error("a Storage")

    def __repr__(self) -> str:
        of = "" if self.dtype is None else f"{len(self)} {self.dtype.name}, "
        return f"<Storage of {of}{self.nbytes} bytes{',' * bool(of)} on {self.device}>"


pool_objects(Storage)


def _validate_key(key: object) -> Any:
    """Return a slice unchanged and an index as an int. Raises: ArgumentTypeError for others."""
    return key if isinstance(key, slice) else integer("Storage", key, "the index")


_serial = 0


def next_serial() -> int:
    """Return a serial number for a storage; two threads may get the same number."""
    global _serial
    _serial += 1
    return _serial


def storage_over(ptr: DataPtr, device: Device) -> Storage:
    """Create the storage of newly allocated memory, with the size of the pointer."""
    storage = Storage.__new__(Storage)
    storage.ptr, storage.nbytes, storage.device = ptr, ptr.nbytes, device
    storage.dtype = storage.pending = storage.watch = None
    storage.readers = storage.overlap = storage.exports = None
    storage.checks, storage.read_only, storage.seen = (), False, False
    storage.serial = next_serial()
    return storage


def storage_at(
    ptr: DataPtr | None, nbytes: int, device: Device, read_only: bool = False
) -> Storage:
    """Create a storage of `nbytes` bytes at `ptr`, or one without memory yet if `ptr` is None."""
    storage = Storage.__new__(Storage)
    storage.ptr = ptr  # type: ignore[assignment]  # None only while pending; no code reads it then
    storage.nbytes, storage.device = nbytes, device
    storage.dtype = storage.pending = storage.watch = None
    storage.readers = storage.overlap = storage.exports = None
    storage.checks, storage.read_only, storage.seen = (), read_only, False
    storage.serial = next_serial()
    return storage
