"""Storages: flat runs of bytes that tensors view."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, NoReturn
from weakref import ref

from ..device import Device
from ..errors import of_this_process
from ..settings import ask_while
from .pointer import DataPtr

if TYPE_CHECKING:
    from ..backend.faults import Check
    from ..graph.expr import Expr, Watch


class Storage:
    """A flat run of bytes on one device, shared by the views of it.

    A storage without memory yet (`ptr` is None) has a `pending` expression instead. `read_only`
    forbids writes. `seen`: others than tensors may look; `export`: they may write now. `checks`: of
    the indices that its values come of, where they may be bad (`faults`). `watch`: where somebody
    has saved what is there now (`expr`).

    >>> import dovetail as dt
    >>> dt.zeros(3, device="reference").storage()
    <Storage of 12 bytes on reference>
    """

    __slots__ = (
        "__weakref__", "checks", "device", "export", "nbytes", "pending", "ptr", "read_only",
        "readers", "seen", "watch",
    )  # fmt: skip

    ptr: DataPtr
    pending: Expr | None  # the deferred expression that will fill it, while `ptr` is None
    checks: tuple[Check, ...]
    watch: Watch | None
    export: ref[Export] | None
    readers: list[ref[Expr]] | None  # the pending nodes that read it, as far as `expr` noted them

    def __init__(
        self, ptr: DataPtr | None, nbytes: int, device: Device, read_only: bool = False
    ) -> None:
        self.ptr = ptr  # type: ignore[assignment]  # None only while pending, when nobody asks
        self.pending = None
        self.nbytes = nbytes
        self.device = device
        self.checks = ()
        self.watch = None
        self.read_only = read_only
        self.seen = False
        self.readers = self.export = None

    def is_exported(self) -> bool:
        """Whether others than tensors may write to it now."""
        return self.export is not None and self.export() is not None

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise of_this_process("a Storage")

    def __repr__(self) -> str:
        return f"<Storage of {self.nbytes} bytes on {self.device}>"


def storage_over(ptr: DataPtr, device: Device) -> Storage:
    """The storage of memory that has just been allocated."""
    made = Storage.__new__(Storage)
    made.ptr, made.nbytes, made.device = ptr, ptr.nbytes, device
    made.pending = made.watch = made.readers = made.export = None
    made.checks, made.read_only, made.seen = (), False, False
    return made


class Export:
    """Memory that others than tensors may write to, by views that keep this alive.

    Meanwhile no work is left pending that reads it.
    """

    __slots__ = ("__weakref__", "storage")

    def __init__(self, storage: Storage) -> None:
        self.storage = storage


_exporting = Lock()


def exported(storage: Storage) -> Export:
    """The one export of a storage, for a view to hold."""
    with _exporting:
        found = None if storage.export is None else storage.export()
        if found is None:
            found = Export(storage)
            storage.export = ref(found)
            ask_while(found)
        return found
