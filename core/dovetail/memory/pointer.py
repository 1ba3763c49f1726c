"""Pointers: memory on a device, and what gives it back.

After c10's model (PyTorch): a `DataPtr` owns memory through a context and a deleter, so that
pointers outlive a replaced allocator and foreign memory needs no special case.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, TypeAlias

from ..device import Device
from ..errors import DTypeError

Handle: TypeAlias = Any  # an address, or an object of a driver's: the backend's own affair
StreamHandle: TypeAlias = Any  # likewise; None is the default stream
Context: TypeAlias = Any  # whatever a deleter needs
Deleter = Callable[[Context], object]


class DataPtr:
    """Memory on a device, given back exactly once: when this object dies or is released.

    `handle` and byte `offset` are what a backend takes; `deleter(context)` gives the memory back.

    >>> import dovetail as dt
    >>> ptr = dt.memory.get_allocator("reference").allocate(100)
    >>> ptr.nbytes >= 100
    True
    >>> ptr.release()
    """

    __slots__ = ("__del__", "context", "copy", "device", "handle", "nbytes", "offset")

    copy: Any  # of host memory, once a device has copied from or to it: see `transfer`

    # What gives the memory back, if anything does: called once by Python (PEP 442), which reports
    # errors in it. It lies in a slot, and is no method: at the start of a function in Python Ctrl-C
    # may come, and then this would not be done, and Python would print that it was not.
    __del__: Callable[[], object]

    def __init__(
        self,
        handle: Handle,
        offset: int,
        nbytes: int,
        device: Device,
        context: Context = None,
        deleter: Deleter | None = None,
    ) -> None:
        self.handle = handle
        self.offset = offset
        self.nbytes = nbytes
        self.device = device
        self.context = context
        if deleter is not None:
            self.__del__ = partial(deleter, context)

    def release(self) -> None:
        """Gives the memory back now.

        An error in the deleter is reported, not raised.
        """
        heir = DataPtr(self.handle, self.offset, self.nbytes, self.device)
        with suppress(AttributeError):
            heir.__del__ = self.__del__
            del self.__del__  # no call stands between the two, so no Ctrl-C either
        self.context = None  # the heir ends here: Python reports an error as of any `__del__`

    def detach(self) -> Context:
        """The context, for the caller to give the memory back, with `Allocator.raw_deallocate`."""
        with suppress(AttributeError):
            del self.__del__
        return self.context

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise of_this_process("a DataPtr")

    def __repr__(self) -> str:
        return f"<DataPtr {self.handle!r}+{self.offset}, {self.nbytes} bytes on {self.device}>"


def of_this_process(what: str) -> DTypeError:
    """The error for whoever would copy or send it."""
    return DTypeError(
        f"pickle, copy: {what} is memory of this process; copy or send a tensor over it"
    )


def foreign(
    owner: object, handle: Handle, nbytes: int, device: Device, offset: int = 0,
    deleter: Deleter | None = None,
) -> DataPtr:  # fmt: skip
    """A DataPtr to memory that `owner` keeps alive, at least until `deleter(owner)` has returned.

    `owner`: an array, a DLPack capsule, a mapped file. `handle`, `offset`: what the backend takes,
    and where in it the memory begins. `nbytes`: how much there is. `deleter`: called once at the
    end.
    Units: bytes.
    Raises: nothing.

    >>> import dovetail as dt
    >>> a = bytearray(64)
    >>> ptr = dt.memory.foreign(a, 0, len(a), dt.device("reference"))
    >>> ptr.nbytes, ptr.context is a
    (64, True)
    """
    return DataPtr(handle, offset, nbytes, device, owner, deleter)
