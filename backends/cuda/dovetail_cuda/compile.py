"""CUDA C to programs: by NVRTC, or from a cubin that it made earlier."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from dovetail.extend import (
    CompileError,
    Kernel,
    Program,
    along_rows,
    cache_binary,
    cached_binary,
    shareable,
)

from . import driver as cuda
from .render import CudaStyle

STYLE = CudaStyle()
OPTIONS = ("--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")


class CudaProgram(Program):
    """A kernel as the driver has loaded it. `lanes`: a warp does one point, where that pays."""

    def __init__(self, compiler: Compiler, kernel: Kernel, lanes: bool, made: _Made) -> None:
        self.kernel, self.lanes, self.source, self.binary = kernel, lanes, made.source, made.cubin
        self._compiler, self._made, self._lock = compiler, {lanes: made}, threading.Lock()

    def function(self, lanes: bool) -> Any:
        """The driver's function, in which a warp, or a thread, does one point."""
        with self._lock:
            if lanes not in self._made:
                self._made[lanes] = self._compiler.other(self.kernel, lanes)
            return self._made[lanes].function


class _Made:
    """One text, compiled and loaded."""

    def __init__(self, name: str, source: str, cubin: bytes) -> None:
        self.source, self.cubin = source, cubin
        self.module = cuda.answer(cuda.driver.cuModuleLoadData(cubin), "cuModuleLoadData")
        found = cuda.driver.cuModuleGetFunction(self.module, name.encode())
        self.function = cuda.answer(found, "cuModuleGetFunction")


class Compiler:
    """Builds for one device, whose context is current wherever this is called."""

    def __init__(self, arch: str, fingerprint: str) -> None:
        self.arch, self.fingerprint = arch, fingerprint

    def compile(self, kernel: Kernel) -> CudaProgram:
        """The program for `kernel`. Raises: CompileError with the kernel and NVRTC's log."""
        lanes = by_lanes(kernel)
        return CudaProgram(self, kernel, lanes, self._build(kernel, lanes))

    def load(self, kernel: Kernel, binary: bytes) -> CudaProgram:
        """The program from a cubin. Raises: CudaError if the driver does not take it."""
        lanes = by_lanes(kernel)
        made = _Made(STYLE.entry(kernel), STYLE.render(kernel, lanes), binary)
        return CudaProgram(self, kernel, lanes, made)

    def other(self, kernel: Kernel, lanes: bool) -> _Made:
        """The kernel in the way that was not the first choice; on disk under its own name."""
        source = STYLE.render(kernel, lanes)
        cubin = cached_binary(self.fingerprint, source)
        if cubin is not None:
            with suppress(cuda.CudaError):
                return _Made(STYLE.entry(kernel), source, cubin)
        made = self._build(kernel, lanes)
        cache_binary(self.fingerprint, source, made.cubin)
        return made

    def _build(self, kernel: Kernel, lanes: bool) -> _Made:
        source = STYLE.render(kernel, lanes)
        return _Made(STYLE.entry(kernel), source, to_cubin(source, self.arch, kernel))


def by_lanes(kernel: Kernel) -> bool:
    """Whether a warp is to do one point, where rows are not short."""
    return shareable(kernel) and along_rows(kernel)


def to_cubin(source: str, arch: str, kernel: object = "") -> bytes:
    """What NVRTC makes of a text; no GPU is needed. Raises: CompileError with kernel and log."""
    n, ask = cuda.nvrtc, cuda.compiler_answer
    made = n.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    program = ask(made, "nvrtcCreateProgram")
    try:
        options = [f"--gpu-architecture={arch}".encode(), *(o.encode() for o in OPTIONS)]
        if n.nvrtcCompileProgram(program, len(options), options)[0] != 0:
            said = f"NVRTC refused a kernel for {arch}: {_log(program)}"
            raise CompileError(f"{said}\n\n{kernel}\n\n{source}")
        cubin = bytearray(ask(n.nvrtcGetCUBINSize(program), "nvrtcGetCUBINSize"))
        ask(n.nvrtcGetCUBIN(program, cubin), "nvrtcGetCUBIN")
        return bytes(cubin)
    finally:
        n.nvrtcDestroyProgram(program)


def _log(program: Any) -> str:
    status, size = cuda.nvrtc.nvrtcGetProgramLogSize(program)
    log = bytearray(size if status == 0 else 0)
    cuda.nvrtc.nvrtcGetProgramLog(program, log)
    return bytes(log).rstrip(b"\0").decode(errors="replace").strip()
