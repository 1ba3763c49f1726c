"""The opened device: what `Backend` asks for, from the rooms next door."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from dovetail.extend import (
    HOST_MEMORY,
    BindingBackend,
    DeviceInfo,
    DType,
    Kernel,
    Launch,
    LibraryCall,
    QueuedLaunch,
    RawArgument,
    RawLaunch,
    Replay,
    StreamHandle,
    StridedOperand,
    address_of,
    bfloat16,
    float16,
    float32,
    float64,
    mark_ordered,
)

from .compile import Compiler, CpuProgram
from .gemm import choose_product, find_accepted_dtypes
from .launch import ChooseRoutine, Launcher
from .memory import operand_array, raw_memory
from .numa import Policy, check_policy, read_policy
from .patches import choose_convolution, choose_gradient
from .raw import compile_raw
from .sorting import argsort, sort, sort_routines
from .sorting_network import choose_argsort, choose_sort
from .targets import choose_target
from .threadpool_hook import register


class CpuBackend(BindingBackend):
    """The host's CPU. A handle is an address; every stream is in order and immediate."""

    dlpack_type = HOST_MEMORY
    new_compiler = Compiler

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self._memory = raw_memory()
        self._memory.policy = read_policy()
        self._target = choose_target(info.details["target"])
        self._compiler = self.new_compiler(self._target)
        self._compilers = threading.local()  # a thread's own, in the attribute `own`
        self._launcher = Launcher(self._compiler, info.fingerprint)
        register(self)

    def allocate(self, nbytes: int) -> int:
        """Allocate pages straight from the system; return their address. Raises: MemoryError."""
        return self._memory.allocate(nbytes)

    def free(self, handle: int, nbytes: int) -> None:
        """Return the pages of `allocate` to the system."""
        self._memory.free(handle, nbytes)

    def copy_in(
        self, handle: int, offset: int, source: memoryview, stream: StreamHandle = None
    ) -> None:
        """Copy host bytes to an address at once; streams are ignored."""
        ctypes.memmove(handle + offset, address_of(source), source.nbytes)

    def copy_out(
        self, target: memoryview, handle: int, offset: int, stream: StreamHandle = None
    ) -> None:
        """Copy bytes from an address to host memory at once; streams are ignored."""
        ctypes.memmove(address_of(target), handle + offset, target.nbytes)

    def host_address(self, handle: int, offset: int) -> int:
        """Return the address: a handle is one."""
        return handle + offset

    def adopt(self, address: int, nbytes: int) -> int:
        """Return the address itself: any host memory can be used."""
        return address

    def compile(self, kernel: Kernel) -> CpuProgram:
        """Compile a kernel by LLVM and link it. Raises: CompileError if LLVM rejects it."""
        register(self)  # it may have been imported meanwhile
        if not hasattr(self._compilers, "own"):
            self._compilers.own = self.new_compiler(self._target)
        program: CpuProgram = self._compilers.own.compile(kernel)
        return program

    @property
    def compile_threads(self) -> int:  # type: ignore[override]  # of a plain attribute
        """The number of threads that compile at the same time: that of the pool."""
        return self._launcher.pool.num_threads

    def load(self, kernel: Kernel, binary: bytes) -> CpuProgram:
        """Link the object code of an earlier process. Raises: RuntimeError if it is unusable."""
        register(self)
        return self._compiler.load(kernel, binary)

    def bound(self, program: CpuProgram, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return the launch of a program with fixed ints and grid, shared by threads if large."""
        return self._launcher.bind(program, ints, grid)

    def sequence(self, launches: Sequence[QueuedLaunch]) -> Replay:
        """Return one function that runs these launches in order."""
        return self._launcher.sequence(launches)

    def library_calls(self) -> Mapping[tuple[str, DType], LibraryCall]:
        """Return products by packed panels, and sorts by NumPy if the pool has few threads."""
        target, cpu = self._target, self.info.details["cpu"]
        accepted = find_accepted_dtypes(self._compiler.machine.triple, target)
        mark_ordered(matmul, accepted, scales=True)
        products: dict[tuple[str, DType], LibraryCall] = {("matmul", d): matmul for d in accepted}
        products |= {(name, d): call for name, call in _CONVOLUTIONS.items() for d in _WIDENED}
        return {**products, **sort_routines(self.get_num_threads(), target.vector_bytes, cpu)}

    def bind_call(
        self, routine: LibraryCall, inputs: Sequence[StridedOperand], output: StridedOperand
    ) -> Launch | None:
        """Return a launch of a product or of a sort, or None if `routine` must be called."""
        function = routine.func if isinstance(routine, partial) else routine  # of a sort: threads
        choose = _CHOICES.get(function)
        return None if choose is None else self._launcher.bind_routine(choose, inputs, output)

    raw_language, raw_grids = "C", False

    def compile_raw(
        self, source: str, name: str, arguments: Sequence[RawArgument], options: Sequence[str]
    ) -> RawLaunch:
        """Compile C with the system's compiler; return a caller of function `name`.

        Raises: CompileError if there is no compiler, or it rejects the text, or the text has no
        such function.
        """
        flags = (f"-march={self._target.march}", *options)
        return compile_raw(self.info.fingerprint, source, name, arguments, flags)

    def get_num_threads(self) -> int:
        """Return the number of threads that share a large launch."""
        register(self)
        return self._launcher.pool.num_threads

    def set_num_threads(self, n: int) -> None:
        """Set the number of threads that share a large launch.

        No result depends on it. Raises: ArgumentError for less than 1.
        """
        self._launcher.pool.set_num_threads(n)

    def get_numa_policy(self) -> Policy:
        """Return the NUMA policy of memory that is taken from the system from now on."""
        return self._memory.policy

    def set_numa_policy(self, policy: Policy) -> None:
        """Set the NUMA policy of memory that is taken from the system from now on.

        Raises: ArgumentError for an unknown node, DeviceError if the system refuses it.
        """
        check_policy(policy)
        self._memory.policy = policy


def matmul(
    backend: CpuBackend,
    inputs: Sequence[StridedOperand],
    output: StridedOperand,
    stream: StreamHandle,
) -> None:
    """Write a product that `bind_call` does not bind: sums of no products are 0."""
    operand_array(output)[...] = 0


@mark_ordered
def convolve(
    backend: CpuBackend,
    inputs: Sequence[StridedOperand],
    output: StridedOperand,
    stream: StreamHandle,
) -> None:
    """Raise RuntimeError: `bind_call` binds every convolution."""
    raise RuntimeError("a convolution is launched")


@mark_ordered
def correlate(
    backend: CpuBackend,
    inputs: Sequence[StridedOperand],
    output: StridedOperand,
    stream: StreamHandle,
) -> None:
    """Raise RuntimeError: `bind_call` binds every gradient of weights."""
    raise RuntimeError("a gradient of weights is launched")


_WIDENED = float32, float64, float16, bfloat16  # the core widens operands of halves
_CONVOLUTIONS = {
    "convolution": convolve,
    "convolution_input": convolve,
    "convolution_weight": correlate,
}
_CHOICES: dict[Callable[..., None], ChooseRoutine] = {
    matmul: choose_product,
    convolve: choose_convolution,
    correlate: choose_gradient,
    sort: choose_sort,
    argsort: choose_argsort,
}
