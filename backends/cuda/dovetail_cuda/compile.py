"""The compiler from CUDA C to programs: by NVRTC, or from a cubin that it made earlier."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dovetail.extend import CompileError, Kernel, Schedule, ScheduledCompiler, ScheduledProgram

from . import driver as cuda
from . import schedule

OPTIONS = ("--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")
# With `fast_math`: --use_fast_math without --ftz=true, as denormals stay.
FAST_OPTIONS = ("--fmad=true", "--prec-div=false", "--prec-sqrt=false", "--ftz=false")


class CudaFunction:
    """A loaded function of a cubin. Its module is unloaded when the next one is."""

    __slots__ = ("__del__", "handle", "module")

    __del__: Callable[[], object]  # in a slot: no interrupt comes between

    def __init__(self, name: str, cubin: bytes, unused_modules: deque[Any]) -> None:
        while unused_modules:
            cuda.driver.cuModuleUnload(unused_modules.popleft())
        self.module = cuda.unwrap_result(cuda.driver.cuModuleLoadData(cubin), "cuModuleLoadData")
        self.__del__ = partial(unused_modules.append, self.module)
        loaded = cuda.driver.cuModuleGetFunction(self.module, name.encode())
        self.handle = cuda.unwrap_result(loaded, "cuModuleGetFunction")


CudaProgram = ScheduledProgram[CudaFunction]


class Compiler(ScheduledCompiler[CudaFunction]):
    """The compiler of one device, whose context is current wherever this is called."""

    refusals = (cuda.CudaError,)

    def __init__(self, arch: str, fingerprint: str) -> None:
        self.arch, self.fingerprint = arch, fingerprint
        # modules of programs without references, to be unloaded
        self._unused_modules: deque[Any] = deque()

    def first(self, kernel: Kernel) -> str:
        """Return the name of the schedule that is compiled before any size is known."""
        return schedule.first(kernel)

    def best(self, kernel: Kernel, ints: Sequence[int], grid: Sequence[int]) -> str:
        """Choose the schedule for a launch of these sizes; return its name."""
        return schedule.best(kernel, ints, grid)

    def schedule(self, kernel: Kernel, name: str) -> Schedule:
        """Return the schedule that `first` or `best` names; the plain one for any other name."""
        return schedule.schedule(kernel, name)

    def build(self, kernel: Kernel, source: str) -> tuple[CudaFunction, bytes]:
        """Compile a source by NVRTC; return the loaded function and the cubin.

        Raises: CompileError if NVRTC rejects the source; CudaError, MemoryError if the driver
        cannot load the cubin.
        """
        arithmetic = FAST_OPTIONS if kernel.fast_math else OPTIONS
        cubin = compile_cubin(source, self.arch, kernel, arithmetic=arithmetic)
        return self.revive(kernel, cubin), cubin

    def revive(self, kernel: Kernel, binary: bytes) -> CudaFunction:
        """Load the kernel's function from a cubin. Raises: CudaError, MemoryError if that fails."""
        return self.function(schedule.STYLE.entry(kernel), binary)

    def function(self, name: str, binary: bytes) -> CudaFunction:
        """Load a cubin's function into the current context.

        Raises: CudaError, MemoryError if that fails.
        """
        return CudaFunction(name, binary, self._unused_modules)


def compile_cubin(
    source: str,
    arch: str,
    kernel: object = "",
    extra_options: Sequence[str] = (),
    arithmetic: Sequence[str] = OPTIONS,
) -> bytes:
    """Compile a text with NVRTC; no GPU is needed. Raises: CompileError with kernel and log."""
    n, ask = cuda.nvrtc, cuda.unwrap_nvrtc_result
    created = n.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    program = ask(created, "nvrtcCreateProgram")
    try:
        options = [
            f"--gpu-architecture={arch}".encode(),
            *(o.encode() for o in (*arithmetic, *extra_options)),
        ]
        if n.nvrtcCompileProgram(program, len(options), options)[0] != 0:
            message = f"NVRTC rejected a kernel for {arch}: {_read_log(program)}"
            raise CompileError(f"{message}\n\n{kernel}\n\n{source}")
        cubin = bytearray(ask(n.nvrtcGetCUBINSize(program), "nvrtcGetCUBINSize"))
        ask(n.nvrtcGetCUBIN(program, cubin), "nvrtcGetCUBIN")
        return bytes(cubin)
    finally:
        n.nvrtcDestroyProgram(program)


def _read_log(program: Any) -> str:
    """Return the compiler's log of a program as text."""
    status, size = cuda.nvrtc.nvrtcGetProgramLogSize(program)
    log = bytearray(size if status == 0 else 0)
    cuda.nvrtc.nvrtcGetProgramLog(program, log)
    return bytes(log).rstrip(b"\0").decode(errors="replace").strip()
