"""CUDA C to programs: by NVRTC, or from a cubin that it made earlier."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from dovetail.extend import CompileError, Kernel, Program, cache_binary, cached_binary

from . import driver as cuda
from . import ways

OPTIONS = ("--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")


class CudaProgram(Program):
    """A kernel as the driver has loaded it, in the ways in which it was launched."""

    def __init__(self, compiler: Compiler, kernel: Kernel, way: str, made: _Made) -> None:
        self.kernel, self.way, self.source, self.binary = kernel, way, made.source, made.cubin
        self._compiler, self._made, self._lock = compiler, {way: made}, threading.Lock()

    def function(self, way: str) -> Any:
        """The driver's function for one of the ways."""
        with self._lock:
            if way not in self._made:
                self._made[way] = self._compiler.other(self.kernel, way)
            return self._made[way].function


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
        way = ways.first(kernel)
        source = ways.text(kernel, way).source()
        cubin = to_cubin(source, self.arch, kernel)
        return CudaProgram(self, kernel, way, _Made(ways.STYLE.entry(kernel), source, cubin))

    def load(self, kernel: Kernel, binary: bytes) -> CudaProgram:
        """The program from a cubin. Raises: CudaError if the driver does not take it."""
        way = ways.first(kernel)
        source = ways.text(kernel, way).source()
        return CudaProgram(self, kernel, way, _Made(ways.STYLE.entry(kernel), source, binary))

    def other(self, kernel: Kernel, way: str) -> _Made:
        """The kernel in a way that was not the first choice; on disk under its own text."""
        source, name = ways.text(kernel, way).source(), ways.STYLE.entry(kernel)
        cubin = cached_binary(self.fingerprint, source)
        if cubin is not None:
            with suppress(cuda.CudaError):
                return _Made(name, source, cubin)
        cubin = to_cubin(source, self.arch, kernel)
        cache_binary(self.fingerprint, source, cubin)
        return _Made(name, source, cubin)


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
