"""Pointers: memory on a device, and what gives it back.

After c10's model (PyTorch): a `DataPtr` owns memory through a context and a deleter, so that
pointers outlive a replaced allocator and foreign memory needs no special case.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, Protocol, TypeAlias

from ..backend.streams import named_handle
from ..device_class import Device
from ..errors import of_this_process
from ..settings import ask_while
from .pointer_arguments import check

Handle: TypeAlias = Any  # an address, or an object of a driver's: the backend's own affair
StreamHandle: TypeAlias = Any  # likewise; None is the default stream
Context: TypeAlias = Any  # whatever a deleter needs
Deleter = Callable[[Context], object]


class Copy(Protocol):
    """A copy that a device makes from or to host memory."""

    @property
    def give_back(self) -> Callable[[], object] | None:
        """What gives the host's memory back, once it has landed."""

    def wait(self) -> None:
        """Returns when it has landed."""


class DataPtr:
    """Memory on a device, given back exactly once: when this object dies or is released.

    `handle` and byte `offset` are what a backend takes; `deleter(context)` gives the memory back.

    >>> import dovetail as dt
    >>> ptr = dt.memory.get_allocator("reference").allocate(100)
    >>> ptr.nbytes >= 100
    True
    >>> ptr.release()
    """

    __slots__ = ("__del__", "_handle", "context", "copy", "device", "nbytes", "offset")

    # What gives the memory back, if anything does: called once by Python (PEP 442), which reports
    # errors in it. It lies in a slot, and is no method: at the start of a function in Python Ctrl-C
    # may come, and then this would not be done, and Python would print that it was not.
    __del__: Callable[[], object]
    give_back: Callable[[], object]  # the same, by another name
    copy: Copy | None  # of host memory: one that a device may still be making from or to it

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
        """The handle, for the hot path, which is compiled: there it takes no look-up."""
        if self.copy is not None:
            self.land()
        return self._handle

    @property
    def handle(self) -> Handle:
        """What a backend takes; it waits for a copy that uses the memory."""
        return self.address()

    def release(self) -> None:
        """Gives the memory back now.

        An error in the deleter is reported, not raised.
        """
        heir = DataPtr(self._handle, self.offset, self.nbytes, self.device)
        with suppress(AttributeError):
            heir.__del__ = self.__del__
            del self.__del__  # no call stands between the two, so no Ctrl-C either
        self.context = None  # the heir ends here: Python reports an error as of any `__del__`

    def detach(self) -> Context:
        """The context, for the caller to give the memory back, with `Allocator.raw_deallocate`."""
        with suppress(AttributeError):
            del self.__del__
        return self.context

    def depart(self, copy: Copy, give_back: Callable[[], object]) -> None:
        """Says that host memory is used by a copy.

        Until that has landed, `give_back` is what the end of this pointer calls, and whoever asks
        for the handle waits.
        """
        self.__del__, self.copy = give_back, copy

    def land(self) -> None:
        """Returns when no copy uses the memory."""
        copy = self.copy
        if copy is not None:
            copy.wait()
            self.__del__, self.copy = copy.give_back or _nothing, None

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise of_this_process("a DataPtr")

    def __repr__(self) -> str:
        at = named_handle(self._handle)
        return f"<DataPtr {at}+{self.offset}, {self.nbytes} bytes on {self.device}>"


DataPtr.give_back = DataPtr.__del__  # type: ignore[misc]  # the slot, which mypy takes for a method


def _nothing() -> None:
    pass


class Exported(Protocol):
    """A storage, as far as an export knows it."""

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
        ask_while(self)
