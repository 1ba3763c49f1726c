"""OpenCL C to programs: by the driver, or from a binary that it gave earlier."""

from __future__ import annotations

import threading
import warnings
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
_lock = threading.RLock()  # drivers compile one at a time anyway, and so do filters of warnings


class OpenCLProgram(Program):
    """A built program. `lanes`: a group of work items does one point; there may be another way too."""

    def __init__(self, compiler: Compiler, kernel: Kernel, lanes: bool, built: Any) -> None:
        self.kernel, self.lanes = kernel, lanes
        self.source = STYLE.render(kernel, lanes)
        self._compiler, self._built = compiler, {lanes: built}

    @property
    def binary(self) -> bytes:  # type: ignore[override]
        """The device's own format."""
        return _binary(self._built[self.lanes])

    def function(self, lanes: bool) -> Any:
        """A new kernel object, whose arguments are nobody else's."""
        with _lock:
            if lanes not in self._built:
                self._built[lanes] = self._compiler.other(self.kernel, lanes)
        return cl.Kernel(self._built[lanes], STYLE.entry(self.kernel))


class Compiler:
    """Builds for one device. `groups`: its compiler is good at work items that work together."""

    def __init__(self, context: Any, device: Any, fingerprint: str, exact: bool, groups: bool) -> None:
        self.context, self.device, self.fingerprint = context, device, fingerprint
        self.groups, self.options = groups, [EXACT] if exact else []

    def lanes(self, kernel: Kernel) -> bool:
        """Whether a group is to do one point, where rows are not short."""
        return self.groups and shareable(kernel) and along_rows(kernel)

    def compile(self, kernel: Kernel) -> OpenCLProgram:
        """The program for `kernel`. Raises: CompileError with the kernel and the driver's log."""
        lanes = self.lanes(kernel)
        return OpenCLProgram(self, kernel, lanes, self._from_source(kernel, lanes))

    def load(self, kernel: Kernel, binary: bytes) -> OpenCLProgram:
        """The program from a binary. Raises: pyopencl's error if the driver does not like it."""
        return OpenCLProgram(self, kernel, self.lanes(kernel), self._from_binary(binary))

    def other(self, kernel: Kernel, lanes: bool) -> Any:
        """The same kernel in the way that was not the first choice: it has a place of its own on disk."""
        key = (self.fingerprint, f"lanes={lanes} {kernel}")
        binary = cached_binary(*key)
        if binary is not None:
            try:
                return self._from_binary(binary)
            except cl.Error:  # then it is compiled
                pass
        built = self._from_source(kernel, lanes)
        cache_binary(*key, _binary(built))
        return built

    def _from_source(self, kernel: Kernel, lanes: bool) -> Any:
        source = STYLE.render(kernel, lanes)
        try:
            return self._build(cl.Program(self.context, source))
        except cl.Error as error:
            log = f"{self.device.name} refused a kernel: {error}"
            raise CompileError(f"{log}\n\n{kernel}\n\n{source}") from error

    def _from_binary(self, binary: bytes) -> Any:
        return self._build(cl.Program(self.context, [self.device], [binary]))

    def _build(self, program: Any) -> Any:
        with _lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # of any driver that says anything
            return program.build(self.options, devices=[self.device], cache_dir=False)


def _binary(built: Any) -> bytes:
    found: bytes = built.get_info(cl.program_info.BINARIES)[0]
    return found
