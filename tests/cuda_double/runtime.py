"""Loaded objects, launches on host threads, and device memory, through ctypes."""

from __future__ import annotations

import _ctypes
import ctypes
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from . import compiler

SLOT = 16  # bytes for each parameter of a launch
FINE, BAD_ADDRESS, BAD_COOPERATION, TRAP = range(4)
PAGE = 4096
POISON = bytes((0xA5, 0xA5, 0xC5, 0xFF))  # a NaN of every float type, and no small integer
_P, _U, _I, _N = ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_size_t


class _Entry(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("call", _P),
        ("count", _U),
        ("sizes", ctypes.POINTER(_U)),
        ("aims", ctypes.POINTER(_U)),
    )


class _Unit(ctypes.Structure):
    _fields_ = (
        ("entries", ctypes.POINTER(_Entry)),
        *((name, _P) for name in ("thread", "block", "block_dim", "grid_dim")),
        ("shared", _P),
        ("shared_end", _P),
        ("barrier", _P),
        ("warp", _P),
    )


@cache
def library() -> Any:
    """Return runtime.c, compiled and loaded."""
    lib = ctypes.CDLL(str(compiler.build_runtime()))
    lib.emu_reserve.argtypes, lib.emu_reserve.restype = [_N], _P
    for f in (lib.emu_commit, lib.emu_release, lib.emu_poison):
        f.argtypes = [_P, _N]
    lib.emu_link.argtypes = [_P]
    lib.emu_pack.argtypes = [_P, _P, _P]
    lib.emu_run.argtypes = [_P, _P, _P, _U * 6, _I, ctypes.c_uint64, ctypes.c_char_p, _I]
    return lib


@dataclass(frozen=True)
class Function:
    """A kernel of a loaded object."""

    name: str
    unit: Any
    entry: Any
    cooperates: bool
    aims: tuple[int, ...]  # alignment of each parameter's pointer target, or 0
    shared_bytes: int

    def pack(self, parameters: int) -> bytearray:
        """Copy the parameters' values from an array of pointers at an address."""
        slots = bytearray(SLOT * max(1, len(self.aims)))
        held = (ctypes.c_char * len(slots)).from_buffer(slots)
        library().emu_pack(ctypes.byref(self.entry), parameters, held)
        return slots

    def run(self, slots: bytearray, sizes: tuple[int, ...], seed: int) -> tuple[int, str]:
        """Run all blocks. Return the fault (FINE: none) and its reason."""
        said = ctypes.create_string_buffer(300)
        held = (ctypes.c_char * len(slots)).from_buffer(slots)
        unit, entry = ctypes.byref(self.unit), ctypes.byref(self.entry)
        numbers = (_U * 6)(*sizes)
        result = library().emu_run(
            unit, entry, held, numbers, self.cooperates, seed, said, len(said)
        )
        return result, said.value.decode()


@cache
def _work() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="cuda-double-")


class Loaded:
    """A loaded object, until `close`."""

    count = 0

    def __init__(self, binary: bytes, cooperates: bool) -> None:
        Loaded.count += 1
        # a unique name, because loaders cache by name
        path = Path(_work().name, f"{Loaded.count}.so")
        path.write_bytes(binary)
        self.library = ctypes.CDLL(str(path))
        path.unlink()
        self.unit = _Unit.in_dll(self.library, "emu_unit")
        library().emu_link(ctypes.byref(self.unit))
        self.functions = {f.name: f for f in self._functions(cooperates)}

    def _functions(self, cooperates: bool) -> list[Function]:
        shared, found, i = (self.unit.shared_end or 0) - (self.unit.shared or 0), [], 0
        while (entry := self.unit.entries[i]).name:
            aims = tuple(entry.aims[: entry.count])
            name = entry.name.decode()
            found.append(Function(name, self.unit, entry, cooperates, aims, shared))
            i += 1
        return found

    def close(self) -> None:
        """Unload the object; its functions must not be run any more."""
        self.functions = {}
        _ctypes.dlclose(self.library._handle)
