"""OpenCL C to programs: by the driver, or from the binary that it gave earlier."""

from __future__ import annotations

from typing import Any

import pyopencl as cl

from dovetail.extend import CompileError, Kernel, Program, shareable

from .render import OpenCLStyle

import os
LANES_ALWAYS = bool(os.environ.get("LN"))
STYLE = OpenCLStyle()
EXACT = "-cl-fp32-correctly-rounded-divide-sqrt"


class OpenCLProgram(Program):
    """A built program and the name of its function. `lanes`: a group of work items does one point."""

    def __init__(self, kernel: Kernel, built: Any, source: str, lanes: bool) -> None:
        self.kernel, self.built, self.source, self.lanes = kernel, built, source, lanes
        self.entry = STYLE.entry(kernel)

    @property
    def binary(self) -> bytes:  # type: ignore[override]
        """The device's own format."""
        found: bytes = self.built.get_info(cl.program_info.BINARIES)[0]
        return found


class Compiler:
    """Builds for one device."""

    def __init__(self, context: Any, device: Any, exact: bool) -> None:
        self.context, self.device = context, device
        self.options = [EXACT] if exact else []

    def compile(self, kernel: Kernel) -> OpenCLProgram:
        """The program for `kernel`. Raises: CompileError with the kernel and the driver's log."""
        lanes = LANES_ALWAYS and shareable(kernel)
        source = STYLE.render(kernel, lanes)
        try:
            built = self._build(cl.Program(self.context, source))
        except cl.RuntimeError as error:
            log = f"{self.device.name} refused a kernel: {error}"
            raise CompileError(f"{log}\n\n{kernel}\n\n{source}") from error
        return OpenCLProgram(kernel, built, source, lanes)

    def load(self, kernel: Kernel, binary: bytes) -> OpenCLProgram:
        """The program from a binary. Raises: pyopencl's error if the driver does not like it."""
        lanes = LANES_ALWAYS and shareable(kernel)
        built = self._build(cl.Program(self.context, [self.device], [binary]))
        return OpenCLProgram(kernel, built, STYLE.render(kernel, lanes), lanes)

    def _build(self, program: Any) -> Any:
        return program.build(self.options, devices=[self.device], cache_dir=False)
