"""The compiler from kernels to pipelines: SPIR-V for the driver, or what it cached earlier."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from ctypes import byref
from functools import partial

from dovetail.extend import (
    CompileError,
    DeviceInfo,
    Kernel,
    Lock,
    Program,
    cache_binary,
    cached_binary,
)

from . import vulkan as vk
from .loader import (
    DENORM_PRESERVE,
    ROUND_TO_EVEN,
    SIGNED_ZERO_INF_NAN_PRESERVE,
    LogicalDevice,
    PhysicalDevice,
)
from .render import Features, Module, render
from .schedule import FIRST_GROUP, NARROW_GROUP, Group, Schedule, is_vectorizable, join_points
from .spirv import ENTRY, Capability, Mode, Op

COMPUTE = 0x20  # VK_SHADER_STAGE_COMPUTE_BIT
_HEADER_BYTES = 32  # of the data of a pipeline cache; its bytes from the 8th on name the device
_DIGEST_BYTES = 32

# Vulkan's features -> what modules may declare then
CAPABILITIES = {
    "shaderInt8": Capability.INT8,
    "shaderInt16": Capability.INT16,
    "shaderInt64": Capability.INT64,
    "shaderFloat64": Capability.FLOAT64,
    "storageBuffer8BitAccess": Capability.STORAGE_BUFFER_8_BIT,
    "storageBuffer16BitAccess": Capability.STORAGE_BUFFER_16_BIT,
    "shaderBufferInt64Atomics": Capability.INT64_ATOMICS,
}
FLOAT_CONTROLS = {
    Mode.DENORM_PRESERVE: DENORM_PRESERVE,
    Mode.SIGNED_ZERO_INF_NAN_PRESERVE: SIGNED_ZERO_INF_NAN_PRESERVE,
    Mode.ROUNDING_MODE_RTE: ROUND_TO_EVEN,
}


class Pipeline:
    """A pipeline and its module. The pipeline is destroyed with this object."""

    __slots__ = ("__del__", "handle", "layout", "module", "name")

    __del__: Callable[[], object]  # in a slot: no interrupt comes between

    def __init__(self, compiler: Compiler, name: str, module: Module, handle: int) -> None:
        self.name, self.module, self.handle = name, module, ctypes.c_uint64(handle)
        self.layout = ctypes.c_uint64(compiler.layout(module))
        self.__del__ = partial(compiler.device.destroy, "Pipeline", handle)


class VulkanProgram(Program):
    """A rendered kernel, and its pipelines by their schedules; `first` is built before launches."""

    def __init__(self, compiler: Compiler, kernel: Kernel) -> None:
        self.kernel, self.tile = kernel, join_points(kernel)
        self.is_vectorizable = is_vectorizable(kernel)
        self._compiler, self._pipelines, self._lock = compiler, dict[Schedule, Pipeline](), Lock()
        group = NARROW_GROUP if self.tile else FIRST_GROUP
        self.first = Schedule(group, jammed=self.tile is not None)
        self.module = self.render(self.first)
        self.source = list_instructions(self.module.words)

    def render(self, schedule: Schedule) -> Module:
        """Return the module of a schedule."""
        kernel = self.tile.kernel if schedule.jammed and self.tile else self.kernel
        return render(kernel, self._compiler.features, schedule.lanes, schedule.vectorized)

    def add(self, schedule: Schedule, module: Module, cache: bytes = b"") -> bytes:
        """Build the pipeline of a schedule; return the driver's data about it."""
        handle, data = self._compiler.build(self, schedule.group, module, cache)
        self._pipelines[schedule] = Pipeline(self._compiler, self.kernel.name, module, handle)
        return data

    def pipeline(self, schedule: Schedule) -> Pipeline:
        """Return the pipeline of a schedule; build it, with the disk cache, if it is missing."""
        with self._lock:
            if schedule not in self._pipelines:
                fingerprint, module = self._compiler.fingerprint, self.render(schedule)
                text = f"{schedule.group} {hashlib.sha256(module.words).hexdigest()}"
                cached = cached_binary(fingerprint, text)
                data = self.add(schedule, module, cached or b"")
                if cached is None:
                    cache_binary(fingerprint, text, data)
            return self._pipelines[schedule]


class Compiler:
    """The compiler of one device."""

    def __init__(self, device: LogicalDevice, info: DeviceInfo) -> None:
        self.device, self.fingerprint = device, info.fingerprint
        self.features = features(device.physical)
        self._layouts: dict[int, int] = {}  # by the bytes of push constants

    def compile(self, kernel: Kernel) -> VulkanProgram:
        """Render and build a kernel. Raises: CompileError if the driver rejects it."""
        program = VulkanProgram(self, kernel)
        data = program.add(program.first, program.module)
        program.binary = _digest(program.module.words, data) + data
        return program

    def load(self, kernel: Kernel, binary: bytes) -> VulkanProgram:
        """Build a kernel from the driver's data about it. Raises: ValueError if unusable."""
        program = VulkanProgram(self, kernel)
        data = binary[_DIGEST_BYTES:]
        if binary[:_DIGEST_BYTES] != _digest(program.module.words, data):
            raise ValueError("this binary belongs to another kernel, or is damaged")
        if data[16:_HEADER_BYTES] != bytes(self.device.physical.properties.uuid):
            raise ValueError("this binary was made by another driver")
        program.add(program.first, program.module, data)
        program.binary = binary
        return program

    def layout(self, module: Module) -> int:
        """Return the layout of pipelines with the push constants of a module."""
        nbytes = module.push_bytes
        if nbytes not in self._layouts:
            push = vk.PushRange(stages=COMPUTE, size=nbytes)
            info = vk.LayoutInfo(ranges=1, range=push)
            self._layouts[nbytes] = self.device.create("PipelineLayout", info)
        return self._layouts[nbytes]

    def build(
        self, program: VulkanProgram, group: Group, module: Module, cache: bytes
    ) -> tuple[int, bytes]:
        """Build a pipeline; return it, and the driver's data about it. Raises: CompileError."""
        words, device = module.words, self.device
        entries = (vk.SpecializationEntry * 3)()
        for axis, entry in enumerate(entries):
            entry.id, entry.offset, entry.size = axis, 4 * axis, 4
        sizes = vk.Specialization(
            count=3, entries=entries, size=12, data=(ctypes.c_uint32 * 3)(*group)
        )
        handles: list[tuple[str, int]] = []
        try:
            shader = device.create("ShaderModule", vk.ShaderInfo(size=len(words), code=words))
            handles.append(("ShaderModule", shader))
            previous = device.create("PipelineCache", vk.CacheInfo(size=len(cache), data=cache))
            handles.append(("PipelineCache", previous))
            stage = vk.StageInfo(
                stage=COMPUTE, module=shader, name=ENTRY.encode(), specialization=sizes
            )
            info, pipeline = (
                vk.PipelineInfo(stage=stage, layout=self.layout(module)),
                ctypes.c_uint64(),
            )
            device.functions.CreateComputePipelines(
                device.handle, previous, 1, byref(info), None, byref(pipeline)
            )
            return pipeline.value, self._read_cache(previous)
        except vk.VulkanError as error:
            log = f"{device.name} rejected a kernel: {error}"
            raise CompileError(f"{log}\n\n{program.kernel}\n\n{program.source}") from error
        finally:
            for kind, handle in handles:
                device.destroy(kind, handle)

    def _read_cache(self, cache: int) -> bytes:
        """Return the data of a pipeline cache."""
        read, size = self.device.functions.GetPipelineCacheData, ctypes.c_size_t()
        read(self.device.handle, cache, byref(size), None)
        data = ctypes.create_string_buffer(size.value)
        read(self.device.handle, cache, byref(size), data)
        return data.raw[: size.value]


def features(physical: PhysicalDevice) -> Features:
    """Return the features of SPIR-V that a device has."""
    controls = [(mode, physical.float_control(c)) for mode, c in FLOAT_CONTROLS.items()]
    modes = frozenset((mode, width) for mode, widths in controls for width in widths)
    return modes | {c for name, c in CAPABILITIES.items() if name in physical.features}


def list_instructions(words: bytes) -> str:
    """Return the instructions of a module as text, one a line: its name, and its operands."""
    code, lines, at = memoryview(words).cast("I"), [], 5  # after the header
    while at < len(code):
        count, op = divmod(code[at], 1 << 16)
        operands = " ".join(str(word) for word in code[at + 1 : at + count])
        lines.append(f"{Op(op).name.lower()} {operands}")
        at += count
    return "\n".join(lines)


def _digest(words: bytes, data: bytes) -> bytes:
    """Return a digest of a module, and of the driver's data about it."""
    return hashlib.sha256(words + data).digest()
