"""OpenCL C to programs: by the driver, or from a binary that it gave earlier."""

from __future__ import annotations

import hashlib
import threading
import warnings
from contextlib import suppress
from typing import Any

import pyopencl as cl
from dovetail.extend import (
    CompileError,
    Kernel,
    Program,
    along_rows,
    cache_binary,
    cached_binary,
    shareable,
)

from .render import OpenCLStyle

STYLE = OpenCLStyle()
EXACT = "-cl-fp32-correctly-rounded-divide-sqrt"
SEAL = hashlib.sha256().digest_size
_lock = threading.RLock()  # drivers compile one at a time anyway, and so do filters of warnings


class OpenCLProgram(Program):
    """A built program. `lanes`: a group of work items does one point, where that pays."""

    def __init__(
        self, compiler: Compiler, kernel: Kernel, lanes: bool, source: str, built: Any
    ) -> None:
        self.kernel, self.lanes, self.source = kernel, lanes, source
        self._compiler, self._built = compiler, {lanes: built}

    @property
    def binary(self) -> bytes:  # type: ignore[override]
        """A seal, then the device's own format."""
        return _sealed(self.source, self._built[self.lanes])

    def function(self, lanes: bool) -> Any:
        """A new kernel object, whose arguments are nobody else's."""
        with _lock:
            if lanes not in self._built:
                self._built[lanes] = self._compiler.other(self.kernel, lanes)
        return cl.Kernel(self._built[lanes], STYLE.entry(self.kernel))


class Compiler:
    """Builds for one device. `groups`: its compiler is good at work items that work together."""

    def __init__(
        self, context: Any, device: Any, fingerprint: str, exact: bool, groups: bool
    ) -> None:
        self.context, self.device, self.fingerprint = context, device, fingerprint
        self.groups, self.options = groups, [EXACT] if exact else []

    def lanes(self, kernel: Kernel) -> bool:
        """Whether a group is to do one point, where rows are not short."""
        return self.groups and shareable(kernel) and along_rows(kernel)

    def compile(self, kernel: Kernel) -> OpenCLProgram:
        """The program for `kernel`. Raises: CompileError with the kernel and the driver's log."""
        lanes = self.lanes(kernel)
        source = STYLE.render(kernel, lanes)
        return OpenCLProgram(self, kernel, lanes, source, self._from_source(kernel, source))

    def load(self, kernel: Kernel, binary: bytes) -> OpenCLProgram:
        """The program from a binary. Raises: ValueError or pyopencl's error if it is no good."""
        lanes = self.lanes(kernel)
        source = STYLE.render(kernel, lanes)
        return OpenCLProgram(self, kernel, lanes, source, self._from_binary(source, binary))

    def other(self, kernel: Kernel, lanes: bool) -> Any:
        """The kernel in the way that was not the first choice; on disk under its own name."""
        source = STYLE.render(kernel, lanes)
        key = (self.fingerprint, source)
        binary = cached_binary(*key)
        if binary is not None:
            with suppress(cl.Error, ValueError):
                return self._from_binary(source, binary)
        built = self._from_source(kernel, source)
        cache_binary(*key, _sealed(source, built))
        return built

    def _from_source(self, kernel: Kernel, source: str) -> Any:
        try:
            return self._build(cl.Program(self.context, source))
        except cl.Error as error:
            log = f"{self.device.name} refused a kernel: {error}"
            raise CompileError(f"{log}\n\n{kernel}\n\n{source}") from error

    def _from_binary(self, source: str, binary: bytes) -> Any:
        seal, content = binary[:SEAL], binary[SEAL:]
        if seal != _seal(source, content):
            raise ValueError("this binary was made from another source, or is damaged")
        return self._build(cl.Program(self.context, [self.device], [content]))

    def _build(self, program: Any) -> Any:
        with _lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # of any driver that says anything
            return program.build(self.options, devices=[self.device], cache_dir=False)


def _seal(source: str, content: bytes) -> bytes:
    """A digest of what belongs together: drivers crash on a binary that is cut short."""
    return hashlib.sha256(source.encode() + content).digest()


def _sealed(source: str, built: Any) -> bytes:
    content: bytes = built.get_info(cl.program_info.BINARIES)[0]
    return _seal(source, content) + content
