"""The compiler: kernel -> C -> shared object -> function."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from dovetail.extend import CompileError, CStyle, Kernel, Program

STYLE = CStyle()
# Contraction changes bits; signed integers must wrap; setting errno prevents inlining sqrt.
FLAGS = ["-O2", "-fPIC", "-shared", "-ffp-contract=off", "-fno-math-errno", "-fwrapv", "-w"]


def find_compiler() -> list[str] | None:
    """Return the command of the C compiler: $CC, or one from PATH; None if there is none."""
    asked = os.environ.get("CC", "").split()
    commands = [asked] if asked else [["cc"], ["gcc"], ["clang"]]
    return next((c for c in commands if shutil.which(c[0])), None)


class CProgram(Program):
    """A loaded shared object. Its constructor raises OSError or AttributeError for other data."""

    def __init__(self, kernel: Kernel, source: str, binary: bytes) -> None:
        self.kernel, self.source, self.binary = kernel, source, binary
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "kernel.so")
            path.write_bytes(binary)
            self.function = ctypes.CDLL(str(path))[STYLE.entry(kernel)]
        sorts = [ctypes.c_void_p] * len(kernel.buffers) + [ctypes.c_int64] * len(kernel.ints)
        held = [np.ctypeslib.as_ctypes_type(np.dtype(d.__numpy_dtype__)) for _, d in kernel.scalars]
        self.function.argtypes, self.function.restype = [*sorts, *held], None


def compile_kernel(command: Sequence[str], kernel: Kernel) -> CProgram:
    """Return the program of `kernel`, or raise CompileError with kernel and compiler log."""
    source = STYLE.render(kernel)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.so")
        build = [*command, *FLAGS, "-x", "c", "-", "-o", str(path), "-lm"]
        done = subprocess.run(build, input=source, capture_output=True, text=True)
        if done.returncode:
            raise CompileError(f"{' '.join(build)}\n{done.stderr}\n{kernel}\n\n{source}")
        return CProgram(kernel, source, path.read_bytes())
