"""The CPU in a mode that flushes subnormal floats to zero, as devices `cpu_ftz` and others.

Each kernel sets the bits FTZ and DAZ of MXCSR when it begins, in the thread that runs it, and
restores MXCSR when it ends. The mode applies to float64 too, so these devices have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from dovetail.backend.interface import BackendInfo, DeviceInfo, LibraryCall
from dovetail.dtypes import DType, float64
from dovetail.plugins.hooks import hookimpl
from dovetail_cpu_llvm import plugin as cpu_plugin
from dovetail_cpu_llvm.compile import Compiler
from dovetail_cpu_llvm.device import CpuBackend

FLUSH_BITS = 0x8040  # FTZ and DAZ
_HEADER = "define void @kernel(ptr %args, i64 %begin, i64 %end) #0 {"
# A function of its own: the compiler may move float operations across `ldmxcsr`, but not a call.
_WRAPPER = f"""
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define void @kernel(ptr %args, i64 %begin, i64 %end) nounwind {{
  %before = alloca i32
  %flushing = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %before)
  %mode = load volatile i32, ptr %before
  %changed = or i32 %mode, {FLUSH_BITS}
  store volatile i32 %changed, ptr %flushing
  call void @llvm.x86.sse.ldmxcsr(ptr %flushing)
  call void @body(ptr %args, i64 %begin, i64 %end)
  call void @llvm.x86.sse.ldmxcsr(ptr %before)
  ret void
}}
"""
_ATTRIBUTES = 'nounwind noinline "denormal-fp-math"="preserve-sign,preserve-sign"'


class FlushingCompiler(Compiler):
    """A compiler whose kernels run with subnormals flushed."""

    def object_code(self, ir: str, machine: Any = None) -> bytes:
        assert _HEADER in ir
        ir = ir.replace(_HEADER, _HEADER.replace("void @kernel", "internal void @body"))
        ir = ir.replace("#0 = { nounwind", f"#0 = {{ {_ATTRIBUTES}")
        return super().object_code(ir + _WRAPPER, machine)


class FlushingPlugin:
    """A plugin whose one device is the CPU, flushing, with the capabilities that its backend
    declares.
    """

    def __init__(self, backend: type[FlushingCpu], name: str) -> None:
        self.backend, self.type = backend, name

    @hookimpl
    def dovetail_backend_info(self) -> BackendInfo:
        return BackendInfo(self.type, "1")

    @hookimpl
    def dovetail_probe(self, config: Mapping[str, str]) -> Sequence[DeviceInfo]:
        (info,) = cpu_plugin.dovetail_probe(config)  # type: ignore[misc]  # there is a CPU
        can = info.capabilities
        can = replace(can, float64=False, dtypes=can.dtypes - {float64}, **self.backend.says)
        fingerprint = f"{info.fingerprint} {self.type}"
        return [replace(info, type=self.type, fingerprint=fingerprint, capabilities=can)]

    @hookimpl
    def dovetail_open(self, info: DeviceInfo, config: Mapping[str, str]) -> FlushingCpu:
        return self.backend(info)

    @hookimpl
    def dovetail_conformance(self) -> Mapping[str, str]:
        return {}


class FlushingCpu(CpuBackend):
    """The CPU with subnormals flushed, which declares it. It has no companion."""

    plugin: ClassVar[FlushingPlugin]
    says: ClassVar[Mapping[str, Any]] = {"denormals": False}
    new_compiler = FlushingCompiler

    def library_calls(self) -> Mapping[tuple[str, DType], LibraryCall]:
        """Return no calls: those of the CPU do not flush."""
        return {}


class FlushingCpuWithoutFma(FlushingCpu):
    """The same without an fma."""

    says: ClassVar[Mapping[str, Any]] = {"denormals": False, "fma": False}


class CpuWithoutFloat64(FlushingCpu):
    """The CPU without float64, which flushes nothing: its kernels are those of the CPU."""

    says: ClassVar[Mapping[str, Any]] = {}
    new_compiler = Compiler


class LyingFlushingCpu(FlushingCpu):
    """The same, which does not declare it."""

    says: ClassVar[Mapping[str, Any]] = {}
    shown_by = "test_scalar_ops and add-float32"
    sign = "differ"


FlushingCpu.plugin = FlushingPlugin(FlushingCpu, "cpu_ftz")
FlushingCpuWithoutFma.plugin = FlushingPlugin(FlushingCpuWithoutFma, "cpu_ftz_no_fma")
CpuWithoutFloat64.plugin = FlushingPlugin(CpuWithoutFloat64, "cpu_no_float64")
LyingFlushingCpu.plugin = FlushingPlugin(LyingFlushingCpu, "cpu_ftz_lying")
DEVICES = (FlushingCpu, FlushingCpuWithoutFma, LyingFlushingCpu)
