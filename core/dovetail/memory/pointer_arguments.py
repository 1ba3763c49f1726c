"""Validation of the arguments of `DataPtr`, and the parts of a pointer that both forms share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..argument_checks import LARGEST, function, integer, refused
from ..backend.streams import handle_text
from ..device_class import Device


def check(offset: object, nbytes: object, device: object, deleter: object) -> None:
    """Raise ArgumentTypeError or ArgumentError for an argument that `DataPtr` does not take."""
    integer("DataPtr", offset, "offset", 0, LARGEST)
    integer("DataPtr", nbytes, "nbytes", 0, LARGEST)
    if not isinstance(device, Device):
        raise refused("DataPtr", "device", 'a device such as dt.device("cpu")', device)
    check_deleter("DataPtr", deleter)


def check_deleter(op: str, deleter: object) -> None:
    """Raise ArgumentTypeError, in the name of `op`, unless a deleter is a function or None."""
    if deleter is not None:
        function(op, deleter, "deleter")


def split_deleter(finalizer: Any) -> Callable[[Any], object] | None:
    """Return the deleter of a finalizer without arguments: a partial call with the context last."""
    if type(finalizer) is not partial:
        return finalizer  # type: ignore[no-any-return]  # None, or of a block: see `BlockFinalizer`
    *first, _ = finalizer.args
    return partial(finalizer.func, *first) if first else finalizer.func


def is_same_deleter(a: Any, b: Any) -> bool:
    """Return True if two deleters are equal; two partial calls are if their parts are."""
    if type(a) is type(b) is partial:
        return bool((a.func, a.args) == (b.func, b.args))
    return bool(a is b or a == b)


def pointer_text(handle: object, offset: int, nbytes: int, device: Device, deleter: object) -> str:
    """Return the text of a pointer: device, address, size and, if it has one, the deleter."""
    at = handle_text(handle + offset if isinstance(handle, int) else handle)
    shift = f"+{offset}" if offset and not isinstance(handle, int) else ""
    free = ""
    if deleter is not None:
        name = getattr(deleter, "__qualname__", None) or type(deleter).__name__.lstrip("_")
        free = f", deleter={name}"
    return f"DataPtr({device}, {at}{shift}, {nbytes} bytes{free})"
