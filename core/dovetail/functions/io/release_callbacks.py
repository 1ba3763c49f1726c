"""C functions that release exported memory: other libraries call them.

In the compiled form (`release_callbacks.pyx`) they are C, and work while an exception is pending.
A callback of `ctypes` loses that exception, so there is none for Arrow, whose consumers drop
capsules in such a state.
"""

from __future__ import annotations

import atexit
import ctypes
from typing import Any

live_exports: dict[int, tuple[Any, ...]] = {}  # address of a struct -> what must live as long as it

_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, _Callback]
# The destructor must not change the reference count of a dying capsule, so it gets its address.
_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _discard(capsule: int) -> None:
    """Release the struct of a dying capsule, unless a consumer has taken it."""
    name = _capsule_name(capsule)
    if not name.startswith(b"used_"):
        live_exports.pop(_capsule_pointer(capsule, name), None)


_release_callback = _Callback(live_exports.pop)  # in C: Ctrl-C in a callback would be lost
_discard_callback = _Callback(_discard)
RELEASE = ctypes.cast(_release_callback, ctypes.c_void_p).value or 0
RELEASE_SCHEMA = RELEASE_ARRAY = 0


def new_capsule(address: int, name: bytes) -> object:
    """Return a capsule that drops what `live_exports` has for the address; `name` is a constant."""
    capsule: object = _new_capsule(address, name, _discard_callback)
    return capsule


@atexit.register
def _leak_exports() -> None:
    """Make exported structs safe to release after Python has shut down: no callback runs then."""
    for managed, *_ in live_exports.values():
        managed.deleter = None
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(managed))
