"""The functions and structures of Vulkan that the backend uses, as ctypes."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from ctypes import byref
from typing import Any, ClassVar

from dovetail.extend import DeviceError

# Names of the results -1, -2, ..., which are errors
_ERRORS = """OUT_OF_HOST_MEMORY OUT_OF_DEVICE_MEMORY INITIALIZATION_FAILED DEVICE_LOST
    MEMORY_MAP_FAILED LAYER_NOT_PRESENT EXTENSION_NOT_PRESENT FEATURE_NOT_PRESENT
    INCOMPATIBLE_DRIVER TOO_MANY_OBJECTS FORMAT_NOT_SUPPORTED FRAGMENTED_POOL UNKNOWN
""".split()  # noqa: SIM905 - a table of words
LAYER_NOT_PRESENT, INCOMPATIBLE_DRIVER = -6, -9
_TYPES: dict[str, Any] = {
    "P": ctypes.c_void_p,  # also a handle of an object that the loader dispatches on
    "Q": ctypes.c_uint64,  # also another handle
    "I": ctypes.c_uint32,
    "Z": ctypes.c_size_t,
    "f": ctypes.c_float,
    "i": ctypes.c_int32,  # also a VkResult
    "v": None,
}
# Types of result and parameters, and the functions that have them. The commands of each launch
# declare no parameters, and get handles as objects of ctypes: the four calls of a launch take
# 1.4 us so, and 3.7 us with declared parameters (Intel Xeon, CPython 3.11, 2026-12-03).
_SIGNATURES = """
i:P EnumerateInstanceVersion EndCommandBuffer
i:PP BeginCommandBuffer
i:PPP EnumerateInstanceExtensionProperties CreateInstance EnumeratePhysicalDevices
i:PPP AllocateCommandBuffers
i:PPPP EnumerateDeviceExtensionProperties CreateDevice AllocateMemory CreateBuffer CreateCommandPool
i:PPPP CreatePipelineCache CreatePipelineLayout CreateQueryPool CreateSemaphore CreateShaderModule
i:PIPQ QueueSubmit
i:PPQ WaitSemaphores
i:PQP GetSemaphoreCounterValue
i:PQPP GetPipelineCacheData
i:PQIPPP CreateComputePipelines
i:PQQQ BindBufferMemory
i:PQQQIP MapMemory
i:PQIIZPQI GetQueryPoolResults
v:PP GetPhysicalDeviceFeatures2 GetPhysicalDeviceProperties2 GetPhysicalDeviceMemoryProperties
v:PPP GetPhysicalDeviceQueueFamilyProperties
v:PIIP GetDeviceQueue
v:PQP DestroyBuffer DestroyPipeline DestroyPipelineCache DestroyShaderModule FreeMemory
v:PQP GetBufferMemoryRequirements
v:PIQI CmdWriteTimestamp
v:PQII CmdResetQueryPool
v:PQQIP CmdCopyBuffer
v: CmdBindPipeline CmdDispatch CmdPipelineBarrier CmdPushConstants
P:PP GetDeviceProcAddr
Q:PP GetBufferDeviceAddress
"""
_SIGNATURE_OF = {n: s for s, *names in map(str.split, _SIGNATURES.split("\n")[1:-1]) for n in names}


class VulkanError(DeviceError):
    """A function of Vulkan failed with `status`."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


def check(status: int, name: str) -> int:
    """Return the VkResult of a function if it is no error. Raises: VulkanError."""
    if status >= 0:
        return status
    error = f"VK_ERROR_{_ERRORS[-1 - status]}" if -status <= len(_ERRORS) else str(status)
    raise VulkanError(f"vulkan: vk{name} failed: {error}", status)


class Functions:
    """The functions of Vulkan without their prefix vk, each looked up at its first use.

    A VkResult that is an error raises VulkanError.
    """

    def __init__(self, find: Callable[[Any, bytes], int | None], owner: Any) -> None:
        self._find, self._owner = find, owner

    def __getattr__(self, name: str) -> Any:
        function = self.find(name)
        if _SIGNATURE_OF[name].startswith("i"):
            function.errcheck = lambda status, _f, _a: check(status, name)
        setattr(self, name, function)
        return function

    def find(self, name: str) -> Any:
        """Return a function that checks no VkResult: C alone, which no interrupt divides."""
        result, _, parameters = _SIGNATURE_OF[name].partition(":")
        address = self._find(self._owner, f"vk{name}".encode())
        if not address:
            raise VulkanError(f"vulkan: the driver does not have the function vk{name}")
        return ctypes.CFUNCTYPE(_TYPES[result], *(_TYPES[p] for p in parameters))(address)


def create(function: Any, owner: int, info: Structure) -> int:
    """Call a vkCreate function for an owner; return the handle. Raises: VulkanError."""
    handle = ctypes.c_uint64()
    function(owner, byref(info), None, byref(handle))
    return handle.value


def enumerate_items(function: Any, type_: Any, *arguments: Any) -> list[Any]:
    """Return the items that a function gives, which is called for their number first."""
    count = ctypes.c_uint32()
    function(*arguments, byref(count), None)
    items = (type_ * count.value)()
    function(*arguments, byref(count), items)
    return list(items)[: count.value]


class Structure(ctypes.Structure):
    """A structure of Vulkan.

    Fields are given by name. Bytes and objects of ctypes become pointers, and are kept alive.
    """

    STYPE: ClassVar[int | None] = None

    def __init__(self, **values: Any) -> None:
        self.owned = values
        if self.STYPE is not None:
            values["stype"] = self.STYPE
        super().__init__(**{name: self._convert(name, value) for name, value in values.items()})

    def _convert(self, name: str, value: Any) -> Any:
        """Return the value of a field: the address for an object that a pointer points to."""
        if isinstance(value, int) or (name, type(value)) in self._fields_:
            return value
        if isinstance(value, bytes):
            value = self.owned[name] = ctypes.create_string_buffer(value)
        return ctypes.addressof(value)


def chain(*structures: Structure) -> Structure:
    """Link structures by their pNext; return the first, which keeps the others alive."""
    for first, second in itertools.pairwise(structures):
        first.next, first.owned["next"] = ctypes.addressof(second), second
    return structures[0]


def _structure(stype: int | None, text: str, **types: Any) -> Any:
    """Return the class of a structure from words "type:name".

    A type is a letter with a count for an array, or a key of `types`. A structure with an `stype`
    begins with it, and with its pNext.
    """
    words = [*(["I:stype", "P:next"] if stype is not None else []), *text.split()]
    fields: list[tuple[str, Any]] = []
    for type_, _, name in (word.partition(":") for word in words):
        kind, count = types.get(type_) or _TYPES[type_[0]], type_[1:]
        fields.append((name, kind * int(count) if count.isdigit() else kind))
    return type("Structure", (Structure,), {"_fields_": fields, "STYPE": stype})


_NAME = ctypes.c_char * 256
ApplicationInfo = _structure(0, "P:name I:version P:engine I:engine_version I:api")
InstanceInfo = _structure(1, "I:flags P:application I:layers P:layer I:extensions P:extension")
QueueInfo = _structure(2, "I:flags I:family I:count P:priorities")
DeviceInfo = _structure(
    3, "I:flags I:count P:queues I:layers P:layer I:extensions P:extension P:features"
)
SubmitInfo = _structure(4, "I:waits P:wait P:stages I:count P:commands I:signals P:signal")
TimelineInfo = _structure(1000207003, "I:waits P:wait I:signals P:signal")
AllocateInfo = _structure(5, "Q:size I:type")
AllocateFlags = _structure(1000060000, "I:flags I:mask")
SemaphoreInfo = _structure(9, "I:flags")
SemaphoreType = _structure(1000207002, "I:kind Q:value")
WaitInfo = _structure(1000207004, "I:flags I:count P:semaphores P:values")
QueryPoolInfo = _structure(11, "I:flags I:kind I:count I:statistics")
BufferInfo = _structure(12, "I:flags Q:size I:usage I:sharing I:families P:family")
AddressInfo = _structure(1000244001, "Q:buffer")
ShaderInfo = _structure(16, "I:flags Z:size P:code")
CacheInfo = _structure(17, "I:flags Z:size P:data")
StageInfo = _structure(18, "I:flags I:stage Q:module P:name P:specialization")
PipelineInfo = _structure(29, "I:flags Stage:stage Q:layout Q:base i:index", Stage=StageInfo)
LayoutInfo = _structure(30, "I:flags I:sets P:set I:ranges P:range")
PushRange = _structure(None, "I:stages I:offset I:size")
Specialization = _structure(None, "I:count P:entries Z:size P:data")
SpecializationEntry = _structure(None, "I:id I:offset Z:size")
PoolInfo = _structure(39, "I:flags I:family")
CommandsInfo = _structure(40, "Q:pool I:level I:count")
BeginInfo = _structure(42, "I:flags P:inheritance")
MemoryBarrier = _structure(46, "I:source I:target")
BufferCopy = _structure(None, "Q:source Q:target Q:size")
Requirements = _structure(None, "Q:size Q:alignment I:types")
Extension = _structure(None, "Name:name I:version", Name=_NAME)
QueueFamily = _structure(None, "I:flags I:count I:timestamp_bits I3:granularity")
MemoryType = _structure(None, "I:flags I:heap")
MemoryHeap = _structure(None, "Q:size I:flags")
MemoryProperties = _structure(
    None,
    "I:type_count Types:types I:heap_count Heaps:heaps",
    Types=MemoryType * 32,
    Heaps=MemoryHeap * 16,
)
Properties = _structure(
    1000059001,
    "I:api I:driver I:vendor I:device I:kind Name:name Uuid:uuid Limits:limits I5:sparse",
    Name=_NAME,
    Uuid=ctypes.c_ubyte * 16,
    Limits=ctypes.c_uint64 * 63,
)
Properties11 = _structure(50, "I21:ids Q:allocation_max")
Properties12 = _structure(
    52,
    "I:driver Name:name Name:info I:conformance I2:independence I15:floats I32:others",
    Name=_NAME,
)
Features = _structure(1000059000, "I55:flags")
Features11 = _structure(49, "I12:flags")
Features12 = _structure(51, "I47:flags")
