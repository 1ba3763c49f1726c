"""Pointers: memory on a device, with the function that frees it.

After c10's model (PyTorch): a `DataPtr` owns memory through a context and a deleter, so that
pointers outlive a replaced allocator and foreign memory needs no special case.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, Protocol, TypeAlias

from ..device_class import Device
from ..errors import process_memory_error
from ..settings import require_eager_check
from .pointer_arguments import (
    check,
    check_deleter,
    is_same_deleter,
    pointer_text,
    split_deleter,
)

Handle: TypeAlias = Any  # an address or a driver's object; only the backend interprets it
StreamHandle: TypeAlias = Any  # a backend's handle; None is the default stream
Context: TypeAlias = Any  # the argument of the deleter
Deleter = Callable[[Context], object]


class HostCopy(Protocol):
    """A copy that a device makes from or to host memory."""

    @property
    def give_back(self) -> Callable[[], object] | None:
        """Return the function that frees the host memory after the copy, or None."""

    def wait(self) -> None:
        """Wait until the copy is complete."""


class DataPtr:
    """Memory on a device, freed exactly once: when this object dies or is released.

    - `handle`: the backend's handle of the memory.
    - `offset`: the start of the memory in the handle's, in bytes.
    - `nbytes`: the size of the memory.
    - `device`: the device that has the memory.
    - `context`: the argument of `deleter`, any object; it lives as long as the pointer.
    - `deleter`: a function that frees the memory by its context; None if the end of the context
      frees it.

    The ownership can change. Each of these calls is one step, also for threads and Ctrl-C, so the
    memory is freed exactly once: `deleter` can be set, `compare_exchange_deleter` replaces a known
    one, `move_context` moves the ownership to another pointer, `release_context` to the caller. A
    forked process frees its own copy.

    >>> import dovetail as dt
    >>> ptr = dt.memory.get_allocator("reference").allocate(100)
    >>> free = ptr.deleter
    >>> ptr.deleter = lambda context: (print("freed"), free(context))
    >>> ptr.nbytes >= 100, ptr.device_type()
    (True, 'reference')
    >>> ptr.release()
    freed
    """

    __slots__ = ("__del__", "_handle", "context", "copy", "device", "nbytes", "offset")

    # The function that frees the memory, if any. Python calls it once (PEP 442) and reports its
    # errors. It is in a slot and is no method, because Ctrl-C may interrupt a Python function at
    # its start: the memory would leak, and Python would print an error.
    __del__: Callable[[], object]
    give_back: Callable[[], object]  # another name of the slot
    copy: HostCopy | None  # a copy from or to host memory that may still be running

    def __init__(
        self,
        handle: Handle,
        offset: int,
        nbytes: int,
        device: Device,
        context: Context = None,
        deleter: Deleter | None = None,
    ) -> None:
        check(offset, nbytes, device, deleter)
        self._handle = handle
        self.copy = None
        self.offset = offset
        self.nbytes = nbytes
        self.device = device
        self.context = context
        if deleter is not None:
            self.__del__ = partial(deleter, context)

    def address(self) -> Handle:
        """Wait for a copy that uses the memory, then return the handle."""
        if self.copy is not None:
            self.land()
        return self._handle

    def _host_address(self, find: Callable[[Handle, int], int | None]) -> int:
        """Return the address where the host reaches the memory; 0 if it does not, or must wait.

        `find`: the backend's function of handle and offset, which the compiled form calls once.
        """
        if self.copy is not None or self._handle is None:
            return 0
        return find(self._handle, self.offset) or 0

    @property
    def handle(self) -> Handle:
        """Return the backend's handle, after a wait for a copy that uses the memory."""
        return self.address()

    def device_type(self) -> str:
        """Return the type of the device, such as "cpu"."""
        return self.device.type

    @property
    def deleter(self) -> Deleter | None:
        """The function that frees the memory by its context; None if the end of the context does.

        A deleter that is set replaces the present one, which is not called. So read that first, and
        call it in the new one, or use `compare_exchange_deleter`.
        """
        self.land()
        return self._deleter()

    @deleter.setter
    def deleter(self, deleter: Deleter | None) -> None:
        check_deleter("deleter", deleter)
        self.land()
        self.__del__ = _nothing if deleter is None else partial(deleter, self.context)

    def _deleter(self) -> Deleter | None:
        """Return the deleter, also while a copy uses the memory."""
        finalizer = getattr(self, "__del__", _nothing)
        return None if finalizer is _nothing else split_deleter(finalizer)

    def compare_exchange_deleter(self, expected: Deleter | None, new: Deleter | None) -> bool:
        """Replace the deleter if it is `expected`, in one step; return True if it was replaced.

        - `expected`: the deleter that `deleter` returned before.
        - `new`: a function that frees the memory by its context, or None.

        Raises: ArgumentTypeError.
        """
        check_deleter("compare_exchange_deleter", new)
        self.land()
        finalizer = getattr(self, "__del__", _nothing)
        successor = _nothing if new is None else partial(new, self.context)
        current = None if finalizer is _nothing else split_deleter(finalizer)
        if not is_same_deleter(current, expected):
            return False
        try:
            if self.__del__ is not finalizer:
                return False
        except AttributeError:
            if finalizer is not _nothing:
                return False
        self.__del__ = successor  # no call since the comparison: no other thread or Ctrl-C came
        return True

    def release(self) -> None:
        """Free the memory now.

        An error in the deleter is reported, not raised.
        """
        self._move_to(DataPtr(self._handle, self.offset, self.nbytes, self.device))
        self.context = None  # the heir has died: Python has reported an error in its `__del__`

    def _move_to(self, heir: DataPtr) -> DataPtr:
        """Move the deleter to `heir`, a pointer without one; return it."""
        with suppress(AttributeError):
            heir.__del__ = self.__del__
            del self.__del__  # no call in between, so no Ctrl-C can come
        self.copy = None
        return heir

    def move_context(self) -> DataPtr:
        """Return a pointer that owns the memory from now on; this one keeps the address only."""
        self.land()
        heir = DataPtr(self._handle, self.offset, self.nbytes, self.device, self.context)
        self._move_to(heir)
        self.context = None
        return heir

    def release_context(self) -> Context:
        """Drop the deleter and the context, and return the context, whose owner is the caller."""
        context = self.detach()
        self.context = None
        return context

    def detach(self) -> Context:
        """Drop the deleter and return the context; the caller frees it by `raw_deallocate`."""
        self.land()
        with suppress(AttributeError):
            del self.__del__
        return self.context

    def depart(self, copy: HostCopy, give_back: Callable[[], object]) -> None:
        """Mark host memory as used by a copy, and replace the pointer's deleter by `give_back`.

        Until the copy is complete, the end of this pointer calls `give_back`, and reads of the
        handle wait.

        - `copy`: the copy that uses the memory.
        - `give_back`: a function without arguments that frees the memory.
        """
        self.__del__, self.copy = give_back, copy

    def land(self) -> None:
        """Wait until no copy uses the memory; then take the deleter that the copy returns."""
        copy = self.copy
        if copy is not None:
            copy.wait()
            self.__del__, self.copy = copy.give_back or _nothing, None

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise process_memory_error("a DataPtr")

    def __repr__(self) -> str:
        return pointer_text(self._handle, self.offset, self.nbytes, self.device, self._deleter())


DataPtr.give_back = DataPtr.__del__  # type: ignore[misc]  # the slot; mypy takes it for a method


def _nothing() -> None:
    """Do nothing: the finalizer of a pointer without a deleter."""
    pass


class Exported(Protocol):
    """The fields of a storage that `Export` uses."""

    exports: list[None] | None


class Export:
    """The owner of a view by which other code may write to a storage.

    While it lives, work that reads the storage is computed at once.
    """

    # As for a pointer, the finalizer is in a slot: an interrupt in Python code would be lost.
    __slots__ = ("__del__", "__weakref__", "storage")

    __del__: Callable[[], object]

    def __init__(self, storage: Exported) -> None:
        if storage.exports is None:
            storage.exports = []
        self.storage = storage
        storage.exports.append(None)
        self.__del__ = storage.exports.pop
        require_eager_check(self)
