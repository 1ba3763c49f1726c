"""kernel -> C -> shared object -> function."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from dovetail.extend import CompileError, CStyle, Kernel, Program, bool_

# Contraction would change bits; errno and undefined overflow would only cost time and trust.
FLAGS = "-O2 -fPIC -shared -ffp-contract=off -fno-math-errno -fwrapv -w".split()
STYLE = CStyle()


def find_compiler() -> list[str] | None:
    """The command of the C compiler: $CC, or the first found on PATH; None where there is none."""
    asked = shlex.split(os.environ.get("CC", ""))
    for command in [asked] if asked else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(command[0]):
            return command
    return None


class CProgram(Program):
    """A shared object, loaded. Its bytes follow a digest of the source that they were made from."""

    def __init__(self, kernel: Kernel, source: str, binary: bytes) -> None:
        self.kernel, self.source, self.binary = kernel, source, binary
        digest = _digest(source)
        if not binary.startswith(digest):
            raise ValueError("this binary was made from another source")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kernel.so"
            path.write_bytes(binary[len(digest) :])
            self._library = ctypes.CDLL(str(path))
        self.function = self._library[STYLE.entry(kernel)]
        pointers, ints = [ctypes.c_void_p] * len(kernel.buffers), [ctypes.c_int64] * len(kernel.ints)
        held = (ctypes.c_uint8 if d is bool_ else _ctype(d.__numpy_dtype__) for _, d in kernel.scalars)
        self.function.argtypes, self.function.restype = [*pointers, *ints, *held], None


class Compiler:
    """Compiles for one device."""

    def __init__(self, command: list[str]) -> None:
        self.command = command

    def compile(self, kernel: Kernel) -> CProgram:
        """The program for `kernel`. Raises: CompileError with the kernel and the compiler's log."""
        source = STYLE.render(kernel)
        return CProgram(kernel, source, _digest(source) + self.build(kernel, source))

    def build(self, kernel: Kernel, source: str) -> bytes:
        """The shared object that the compiler makes of `source`."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kernel.so"
            command = [*self.command, *FLAGS, "-x", "c", "-", "-o", str(path), "-lm"]
            done = subprocess.run(command, input=source, capture_output=True, text=True)
            if done.returncode:
                raise CompileError(f"{shlex.join(command)}\n{done.stderr}\n{kernel}\n\n{source}")
            return path.read_bytes()


def _digest(source: str) -> bytes:
    return hashlib.sha256(source.encode()).digest()
