"""CUDA C to programs: by NVRTC, or from a cubin that it made earlier."""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from dovetail.extend import CompileError, Kernel, Program, cache_binary, cached_binary

from . import driver as cuda
from . import ways

OPTIONS = ("--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")


class CudaProgram(Program):
    """A kernel as the driver has loaded it, in the ways in which it was launched."""

    def __init__(self, compiler: Compiler, kernel: Kernel, way: str, made: _Made) -> None:
        self.kernel, self.way, self.source, self.binary = kernel, way, made.source, made.binary
        self._compiler, self._made, self._lock = compiler, {way: made}, threading.Lock()

    def function(self, way: str) -> Any:
        """The driver's function for one of the ways."""
        with self._lock:
            if way not in self._made:
                self._made[way] = self._compiler.other(self.kernel, way)
            return self._made[way].function


class _Made:
    """One text, compiled and loaded. Its module is unloaded when the next one is."""

    __slots__ = ("__del__", "binary", "function", "module", "source")

    __del__: Callable[[], object]  # in a slot: no interrupt comes between

    def __init__(self, name: str, source: str, cubin: bytes, gone: deque[Any]) -> None:
        self.source, self.binary = source, _seal(source) + cubin
        while gone:
            cuda.driver.cuModuleUnload(gone.popleft())
        self.module = cuda.answer(cuda.driver.cuModuleLoadData(cubin), "cuModuleLoadData")
        self.__del__ = partial(gone.append, self.module)
        found = cuda.driver.cuModuleGetFunction(self.module, name.encode())
        self.function = cuda.answer(found, "cuModuleGetFunction")


class Compiler:
    """Builds for one device, whose context is current wherever this is called."""

    def __init__(self, arch: str, fingerprint: str) -> None:
        self.arch, self.fingerprint = arch, fingerprint
        self._gone: deque[Any] = deque()  # modules of programs that nobody has any more

    def compile(self, kernel: Kernel) -> CudaProgram:
        """The program for `kernel`. Raises: CompileError with the kernel and NVRTC's log."""
        way = ways.first(kernel)
        return CudaProgram(self, kernel, way, self._compiled(kernel, self._source(kernel, way)))

    def load(self, kernel: Kernel, binary: bytes) -> CudaProgram:
        """The program from a binary. Raises: ValueError or CudaError if it is no good."""
        way = ways.first(kernel)
        return CudaProgram(
            self, kernel, way, self._loaded(kernel, self._source(kernel, way), binary)
        )

    def other(self, kernel: Kernel, way: str) -> _Made:
        """The kernel in a way that was not the first choice; on disk under its own text."""
        source = self._source(kernel, way)
        binary = cached_binary(self.fingerprint, source)
        if binary is not None:
            with suppress(cuda.CudaError, ValueError):
                return self._loaded(kernel, source, binary)
        made = self._compiled(kernel, source)
        cache_binary(self.fingerprint, source, made.binary)
        return made

    def _source(self, kernel: Kernel, way: str) -> str:
        return ways.text(kernel, way).source()

    def _compiled(self, kernel: Kernel, source: str) -> _Made:
        cubin = to_cubin(source, self.arch, kernel)
        return _Made(ways.STYLE.entry(kernel), source, cubin, self._gone)

    def _loaded(self, kernel: Kernel, source: str, binary: bytes) -> _Made:
        if not binary.startswith(_seal(source)):
            raise ValueError("this binary was made from another source")
        cubin = binary[len(_seal(source)) :]
        return _Made(ways.STYLE.entry(kernel), source, cubin, self._gone)


def _seal(source: str) -> bytes:
    """What a binary begins with: the core may have changed what a kernel's text is."""
    return hashlib.sha256(source.encode()).digest()


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
