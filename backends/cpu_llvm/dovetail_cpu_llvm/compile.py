"""Compilation of IR text to machine code, and linking of machine code into the process."""

from __future__ import annotations

import itertools
from ctypes import string_at
from functools import cache, cached_property
from typing import Any

import llvmlite.binding as llvm
from dovetail.extend import CompileError, Kernel, Lock, Program, register_lock

from .render import render
from .schedule import CpuSchedule, schedule
from .targets import NATIVE, Target, choose_target

_lock = Lock()  # of the linker, and while a compiler is made
register_lock(llvm.ffi.lib._lock._lock)  # each call of llvmlite takes it, a finaliser's too
_names = itertools.count()


class CpuProgram(Program):
    """A kernel's machine code in memory; `address` is valid as long as this object lives."""

    def __init__(
        self, kernel: Kernel, schedule: CpuSchedule, binary: bytes, source: str = ""
    ) -> None:
        self.kernel, self.schedule, self.binary, self.source = kernel, schedule, binary, source
        self._code = link(binary, ("kernel",))
        self.address: int = self._code["kernel"]


class Compiler:
    """LLVM's code generator for a target, by default the host's CPU; one thread at a time uses it.

    Several threads compile at the same time with one compiler each.
    """

    def __init__(self, target: Target | None = None) -> None:
        with _lock:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            self.target = target or choose_target(NATIVE)
            self.native = self.target.vector_bytes
            self.machine = self._create_machine()
            options = llvm.create_pipeline_tuning_options(2)
            self._builder = llvm.create_pass_builder(self.machine, options)
            self._lock = Lock()  # fork() waits for it, so that a child finds LLVM's locks free

    def _create_machine(self, **options: str) -> Any:
        """Create a code generator with further options of LLVM."""
        host = llvm.Target.from_default_triple()
        return host.create_target_machine(
            cpu=self.target.cpu, features=self.target.features, opt=2, jit=True, **options
        )

    @cached_property
    def small_model_machine(self) -> Any:
        """The code generator for kernels with several vectorized loops.

        Constants are operands in memory near the code. Otherwise the address of each one takes a
        register. Several loops need too many, so that each iteration loaded addresses and constants
        again: a softmax took 1.3 times as long. Other kernels keep constants in registers, which is
        faster: erf of float64 took 1.13 times as long with operands in memory.
        """
        return self._create_machine(codemodel="small", reloc="pic")

    def object_code(self, ir: str, machine: Any = None) -> bytes:
        """Compile IR text to an object file. Raises: RuntimeError with LLVM's message."""
        with self._lock:
            return _emit_object(machine or self.machine, self.optimize(ir))

    def optimize(self, ir: str) -> Any:
        """Parse IR text, run the passes, return the module. Raises: RuntimeError for invalid IR."""
        module = llvm.parse_assembly(ir, llvm.create_context())  # no other thread uses the context
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_aggressive_instcombine_pass()
        passes.add_simplify_cfg_pass()
        passes.run(module, self._builder)
        return module

    def compile(self, kernel: Kernel) -> CpuProgram:
        """Schedule, render, compile and link a kernel. Raises: CompileError if LLVM rejects it."""
        chosen = schedule(kernel, self.native)
        ir = ""
        try:
            ir = render(kernel, chosen)
            machine = self.small_model_machine if len(chosen.vectorized) > 1 else self.machine
            return CpuProgram(kernel, chosen, self.object_code(ir, machine), ir)
        except (RuntimeError, AssertionError, LookupError) as error:
            raise CompileError(f"LLVM rejected a kernel: {error}\n\n{kernel}\n\n{ir}") from error

    def load(self, kernel: Kernel, binary: bytes) -> CpuProgram:
        """Link object code of an earlier process. Raises: RuntimeError if the code is unusable."""
        return CpuProgram(kernel, schedule(kernel, self.native), binary)


def _emit_object(machine: Any, module: Any) -> bytes:
    """Return a module's object code, like `machine.emit_object`, without llvmlite's lock.

    Under that lock one thread at a time would be in LLVM, which needs none for a module with a
    context of its own. This is 85 % of a compilation. Raises: RuntimeError with LLVM's message.
    """
    lib = llvm.ffi.lib
    emit = getattr(lib, "_lib", lib).LLVMPY_TargetMachineEmitToMemory
    with llvm.ffi.OutputString() as message:
        buffer = emit(machine, module, 1, message)
        if not buffer:
            raise RuntimeError(str(message))
    try:
        return string_at(lib.LLVMPY_GetBufferStart(buffer), lib.LLVMPY_GetBufferSize(buffer))
    finally:
        lib.LLVMPY_DisposeMemoryBuffer(buffer)


@cache
def _create_linker() -> Any:
    """Create the process's linker on first use, and return it.

    JITLink puts code and constants into one block of memory; LLVM's older linker does not, and code
    of the small model cannot reach constants at a distance of more than 2 GB.
    """
    return llvm.create_lljit_compiler(use_jit_link=True)


def link(binary: bytes, symbols: tuple[str, ...], imports: dict[str, int] | None = None) -> Any:
    """Link object code while the returned object lives, which maps `symbols` to addresses."""
    library = llvm.JITLibraryBuilder().add_object_img(binary)
    library.add_current_process()  # libm, for the fma of a CPU that has none
    for symbol in symbols:
        library.export_symbol(symbol)
    for symbol, address in (imports or {}).items():
        library.import_symbol(symbol, address)
    with _lock:
        return library.link(_create_linker(), f"dovetail{next(_names)}")
