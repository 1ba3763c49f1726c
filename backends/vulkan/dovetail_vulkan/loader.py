"""Vulkan by ctypes: the system's loader, the functions and structures in use, physical devices."""

from __future__ import annotations

import ctypes
import itertools
import struct
import sys
from collections.abc import Callable, Collection, Mapping
from ctypes import byref
from functools import cache
from typing import Any, ClassVar

from dovetail.extend import DeviceError, Lock, Process

LIBRARIES = {
    "win32": ("vulkan-1.dll",),
    "darwin": ("libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib"),
}.get(sys.platform, ("libvulkan.so.1", "libvulkan.so"))
API_VERSION = 1 << 22 | 2 << 12  # Vulkan 1.2
VALIDATION_LAYER = b"VK_LAYER_KHRONOS_validation"
LAYER_NOT_PRESENT, INCOMPATIBLE_DRIVER = -6, -9
LLVMPIPE = 13  # VkDriverId of Mesa's Vulkan on the CPU
# VkPhysicalDeviceType: the order of devices, the discrete GPU first, and the name of each type
DEVICE_TYPES = {2: "discrete", 1: "integrated", 3: "virtual", 0: "other", 4: "CPU"}
STATUS_NAMES = {
    -1: "VK_ERROR_OUT_OF_HOST_MEMORY",
    -2: "VK_ERROR_OUT_OF_DEVICE_MEMORY",
    -3: "VK_ERROR_INITIALIZATION_FAILED",
    -4: "VK_ERROR_DEVICE_LOST",
    -5: "VK_ERROR_MEMORY_MAP_FAILED",
    -6: "VK_ERROR_LAYER_NOT_PRESENT",
    -7: "VK_ERROR_EXTENSION_NOT_PRESENT",
    -8: "VK_ERROR_FEATURE_NOT_PRESENT",
    -9: "VK_ERROR_INCOMPATIBLE_DRIVER",
    -10: "VK_ERROR_TOO_MANY_OBJECTS",
    -13: "VK_ERROR_UNKNOWN",
}
_COMPUTE_QUEUE = 2
_PORTABILITY = b"VK_KHR_portability_enumeration"
_SUBSET = b"VK_KHR_portability_subset"  # a device that has this extension must enable it
_lock = Lock()


class VulkanError(DeviceError):
    """A function of Vulkan failed with `status`."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


# --- functions

# The parameters of each function. P: pointer, or handle of an object that the loader dispatches on.
# Q: 64 bits, such as other handles. I: 32 bits. Z: size_t. Before the colon the result: i is a
# VkResult, v is nothing.
_SIGNATURES = {
    "EnumerateInstanceVersion": "i:P",
    "EnumerateInstanceExtensionProperties": "i:PPP",
    "CreateInstance": "i:PPP",
    "EnumeratePhysicalDevices": "i:PPP",
    "GetPhysicalDeviceProperties2": "v:PP",
    "GetPhysicalDeviceFeatures2": "v:PP",
    "GetPhysicalDeviceMemoryProperties": "v:PP",
    "GetPhysicalDeviceQueueFamilyProperties": "v:PPP",
    "EnumerateDeviceExtensionProperties": "i:PPPP",
    "CreateDevice": "i:PPPP",
    "GetDeviceProcAddr": "P:PP",
    "DestroyDevice": "v:PP",
    "DeviceWaitIdle": "i:P",
    "GetDeviceQueue": "v:PIIP",
    "QueueSubmit": "i:PIPQ",
    "CreateBuffer": "i:PPPP",
    "DestroyBuffer": "v:PQP",
    "GetBufferMemoryRequirements": "v:PQP",
    "GetBufferDeviceAddress": "Q:PP",
    "AllocateMemory": "i:PPPP",
    "FreeMemory": "v:PQP",
    "BindBufferMemory": "i:PQQQ",
    "MapMemory": "i:PQQQIP",
    "CreateShaderModule": "i:PPPP",
    "DestroyShaderModule": "v:PQP",
    "CreatePipelineCache": "i:PPPP",
    "GetPipelineCacheData": "i:PQPP",
    "DestroyPipelineCache": "v:PQP",
    "CreatePipelineLayout": "i:PPPP",
    "DestroyPipelineLayout": "v:PQP",
    "CreateComputePipelines": "i:PQIPPP",
    "DestroyPipeline": "v:PQP",
    "CreateCommandPool": "i:PPPP",
    "DestroyCommandPool": "v:PQP",
    "AllocateCommandBuffers": "i:PPP",
    "BeginCommandBuffer": "i:PP",
    "EndCommandBuffer": "i:P",
    "CmdBindPipeline": "v:PIQ",
    "CmdPushConstants": "v:PQIIIP",
    "CmdDispatch": "v:PIII",
    "CmdPipelineBarrier": "v:PIIIIPIPIP",
    "CmdCopyBuffer": "v:PQQIP",
    "CmdResetQueryPool": "v:PQII",
    "CmdWriteTimestamp": "v:PIQI",
    "CreateQueryPool": "i:PPPP",
    "DestroyQueryPool": "v:PQP",
    "GetQueryPoolResults": "i:PQIIZPQI",
    "CreateSemaphore": "i:PPPP",
    "DestroySemaphore": "v:PQP",
    "WaitSemaphores": "i:PPQ",
    "GetSemaphoreCounterValue": "i:PQP",
}
_TYPES: Mapping[str, Any] = {
    "P": ctypes.c_void_p,
    "Q": ctypes.c_uint64,
    "I": ctypes.c_uint32,
    "Z": ctypes.c_size_t,
    "f": ctypes.c_float,
    "i": ctypes.c_int32,
    "v": None,
}


class Functions:
    """The functions of Vulkan without their prefix vk, each looked up at its first use.

    A VkResult that is an error raises VulkanError.
    """

    def __init__(self, find: Callable[[Any, bytes], int | None], owner: Any) -> None:
        self._find, self._owner = find, owner

    def __getattr__(self, name: str) -> Any:
        function = self.unchecked(name)
        if _SIGNATURES[name].startswith("i"):
            function.errcheck = lambda status, _f, _a: check(status, name)
        setattr(self, name, function)
        return function

    def unchecked(self, name: str) -> Any:
        """Return a function whose VkResult is not checked: C alone, which no interrupt divides."""
        result, _, parameters = _SIGNATURES[name].partition(":")
        prototype = ctypes.CFUNCTYPE(_TYPES[result], *(_TYPES[p] for p in parameters))
        address = self._find(self._owner, f"vk{name}".encode())
        if not address:
            raise VulkanError(f"vulkan: the driver does not have the function vk{name}")
        return prototype(address)


def check(status: int, name: str) -> int:
    """Return a VkResult that is no error. Raises: VulkanError."""
    if status < 0:
        raise VulkanError(f"vulkan: vk{name} failed: {STATUS_NAMES.get(status, status)}", status)
    return status


# --- structures


class Structure(ctypes.Structure):
    """A structure of Vulkan.

    Fields are given by name. Bytes, arrays and structures become pointers, and are kept alive.
    """

    STYPE: ClassVar[int | None] = None

    def __init__(self, **values: Any) -> None:
        self._kept = values
        if self.STYPE is not None:
            values["stype"] = self.STYPE
        super().__init__(**{name: self._convert(name, value) for name, value in values.items()})

    def _convert(self, name: str, value: Any) -> Any:
        """Return the value of a field: the address for an object that a pointer points to."""
        if isinstance(value, bytes):
            value = self._kept[name] = ctypes.create_string_buffer(value)
        is_pointer = isinstance(value, (ctypes.Array, ctypes.Structure))
        embedded = any(f[0] == name and f[1] is type(value) for f in self._fields_)
        return ctypes.addressof(value) if is_pointer and not embedded else value


def _structure(stype: int | None, text: str, **embedded: Any) -> Any:
    """Return the class of a structure from words "type:name", with type and pNext if it has them.

    A type may be followed by a count, for an array.
    """
    fields: list[tuple[str, Any]] = [] if stype is None else [("stype", _TYPES["I"])]
    if stype is not None:
        fields.append(("next", _TYPES["P"]))
    for word in text.split():
        type_, _, name = word.partition(":")
        kind = embedded.get(type_) or _TYPES[type_[0]]
        fields.append((name, kind * int(type_[1:]) if type_[1:].isdigit() else kind))
    return type("Structure", (Structure,), {"_fields_": fields, "STYPE": stype})


ApplicationInfo = _structure(0, "P:name I:version P:engine I:engine_version I:api")
InstanceInfo = _structure(1, "I:flags P:application I:layers P:layer I:extensions P:extension")
QueueInfo = _structure(2, "I:flags I:family I:count P:priorities")
DeviceCreateInfo = _structure(
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
Extension = _structure(None, "C:name I:version", C=ctypes.c_char * 256)
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
    Name=ctypes.c_char * 256,
    Uuid=ctypes.c_ubyte * 16,
    Limits=ctypes.c_uint64 * 63,
)
Properties11 = _structure(50, "I21:ids Q:max_allocation")
Properties12 = _structure(
    52,
    "I:driver_id Name:driver_name Name:driver_info I:conformance I2:independence I15:floats "
    "I32:others",
    Name=ctypes.c_char * 256,
)
Features = _structure(1000059000, "I55:flags")
Features11 = _structure(49, "I12:flags")
Features12 = _structure(51, "I47:flags")


def create(function: Any, owner: int, info: Structure) -> int:
    """Call a vkCreate or vkAllocate function of an owner; return the handle. Raises: VulkanError"""
    handle = ctypes.c_uint64()
    function(owner, byref(info), None, byref(handle))
    return handle.value


def _list(function: Any, type_: Any, *arguments: Any) -> list[Any]:
    """Return the items that an enumerating function of Vulkan gives."""
    count = ctypes.c_uint32()
    function(*arguments, byref(count), None)
    items = (type_ * count.value)()
    function(*arguments, byref(count), items)
    return list(items)[: count.value]


def _pointers(names: Collection[bytes]) -> Any:
    """Return an array of C strings."""
    return (ctypes.c_char_p * len(names))(*names)


# --- the instance, and what there is


@cache
def library() -> ctypes.CDLL:
    """Return the system's Vulkan loader. Raises: OSError with all names that were tried."""
    errors = []
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            errors.append(str(error))
    raise OSError("; ".join(errors))


class Instance:
    """An instance of Vulkan, in which devices are found and opened.

    Raises: OSError without a loader; VulkanError if it has no 1.2, or not the validation layer.
    """

    def __init__(self, validate: bool = False) -> None:
        find = library().vkGetInstanceProcAddr
        find.restype, find.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)
        base, version = Functions(find, None), ctypes.c_uint32()
        base.EnumerateInstanceVersion(byref(version))
        if version.value < API_VERSION:
            raise VulkanError(f"vulkan: the loader has {format_version(version.value)}, not 1.2")
        offered = _list(base.EnumerateInstanceExtensionProperties, Extension, None)
        extensions = [e.name for e in offered if e.name == _PORTABILITY]
        layers = [VALIDATION_LAYER] if validate else []
        info = InstanceInfo(
            flags=len(extensions),  # VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR
            application=ApplicationInfo(name=b"dovetail", api=API_VERSION),
            layers=len(layers),
            layer=_pointers(layers),
            extensions=len(extensions),
            extension=_pointers(extensions),
        )
        self.handle = ctypes.c_void_p()
        base.CreateInstance(byref(info), None, byref(self.handle))
        self.functions = Functions(find, self.handle)

    def devices(self) -> list[Physical]:
        """Return the physical devices, discrete GPUs first and CPUs last."""
        handles = _list(self.functions.EnumeratePhysicalDevices, ctypes.c_void_p, self.handle)
        devices = [Physical(self, handle) for handle in handles]
        return sorted(devices, key=lambda d: [*DEVICE_TYPES].index(d.properties.kind))


_instances: dict[bool, Instance] = {}


def instance(validate: bool = False) -> Instance:
    """Return the instance of this process, with or without the validation layer."""
    with _lock:
        if validate not in _instances:
            _instances[validate] = Instance(validate)
        return _instances[validate]


_FEATURES = (  # names of the features in use, by structure and position
    {39: "shaderFloat64", 40: "shaderInt64", 41: "shaderInt16"},
    {0: "storageBuffer16BitAccess"},
    {
        2: "storageBuffer8BitAccess",
        5: "shaderBufferInt64Atomics",
        8: "shaderInt8",
        37: "timelineSemaphore",
        38: "bufferDeviceAddress",
    },
)
REQUIRED = ("timelineSemaphore", "bufferDeviceAddress", "shaderInt8", "shaderInt16")


def _chain(*structures: Structure) -> Structure:
    """Link structures by their pNext; return the first."""
    for first, second in itertools.pairwise(structures):
        first.next = ctypes.addressof(second)
    structures[0]._kept["chain"] = structures
    return structures[0]


class Physical:
    """A physical device: what it is, and what it can do."""

    def __init__(self, owner: Instance, handle: int) -> None:
        self.owner, self.handle, call = owner, handle, owner.functions
        self.properties, self._more, self._driver = Properties(), Properties11(), Properties12()
        memory = MemoryProperties()
        call.GetPhysicalDeviceMemoryProperties(handle, byref(memory))
        self.memory_types = [(t.flags, t.heap) for t in memory.types[: memory.type_count]]
        self.heaps = [(h.size, h.flags) for h in memory.heaps[: memory.heap_count]]
        call.GetPhysicalDeviceProperties2(handle, byref(self.properties))
        families = _list(call.GetPhysicalDeviceQueueFamilyProperties, QueueFamily, handle)
        computing = [i for i, f in enumerate(families) if f.flags & _COMPUTE_QUEUE]
        self.family = max(computing, key=lambda i: families[i].count, default=-1)
        self.queues = families[self.family].count if computing else 0
        self.features: frozenset[str] = frozenset()
        if self.properties.api >= API_VERSION:
            _chain(self.properties, self._more, self._driver)
            call.GetPhysicalDeviceProperties2(handle, byref(self.properties))
            structures = Features(), Features11(), Features12()
            call.GetPhysicalDeviceFeatures2(handle, byref(_chain(*structures)))
            pairs = zip(structures, _FEATURES, strict=True)
            self.features = frozenset(
                n for s, names in pairs for i, n in names.items() if s.flags[i]
            )
        offered = _list(call.EnumerateDeviceExtensionProperties, Extension, handle, None)
        self.extensions = [e.name for e in offered if e.name == _SUBSET]
        limits = bytes(self.properties.limits)
        self.group_counts = struct.unpack_from("3I", limits, 220)  # groups of a dispatch, at most
        (self.group_items,) = struct.unpack_from("I", limits, 232)
        (self.tick_ns,) = struct.unpack_from("f", limits, 424)  # nanoseconds of a timestamp's unit

    @property
    def name(self) -> str:
        """The name of the device."""
        name: bytes = self.properties.name
        return name.decode(errors="replace")

    @property
    def is_cpu(self) -> bool:
        """True for a driver that runs shaders on the CPU."""
        return DEVICE_TYPES.get(self.properties.kind) == "CPU"

    @property
    def driver_id(self) -> int:
        """The VkDriverId."""
        return int(self._driver.driver_id)

    @property
    def driver(self) -> str:
        """The name and version of the driver."""
        names = (self._driver.driver_name, self._driver.driver_info)
        return " ".join(n.decode(errors="replace") for n in names)

    @property
    def allocation_bytes_max(self) -> int:
        """The bytes of the largest allocation."""
        return int(self._more.max_allocation)

    def missing(self) -> list[str]:
        """Return what the device lacks for this backend; nothing if it can be used."""
        if self.properties.api < API_VERSION:
            return [f"Vulkan 1.2 (it has {format_version(self.properties.api)})"]
        queue = [] if self.queues else ["a compute queue"]
        return queue + [name for name in REQUIRED if name not in self.features]

    def float_control(self, control: int) -> frozenset[int]:
        """Return the widths of floats that have one of the controls below."""
        flags = self._driver.floats[3 * control :]
        return frozenset(bits for bits, flag in zip((16, 32, 64), flags, strict=False) if flag)

    def open(self, process: Process) -> LogicalDevice:
        """Open the device, with the features in use. Raises: VulkanError."""
        structures = Features(), Features11(), Features12()
        for s, names in zip(structures, _FEATURES, strict=True):
            for position, name in names.items():
                s.flags[position] = name in self.features
        priorities = (ctypes.c_float * self.queues)(*[1.0] * self.queues)
        info = DeviceCreateInfo(
            next=ctypes.addressof(_chain(*structures)),
            count=1,
            queues=QueueInfo(family=self.family, count=self.queues, priorities=priorities),
            extensions=len(self.extensions),
            extension=_pointers(self.extensions),
        )
        handle = create(self.owner.functions.CreateDevice, self.handle, info)
        return LogicalDevice(self, handle, process)


class LogicalDevice:
    """An open device: its functions, and its queues, each with a lock for submissions."""

    def __init__(self, physical: Physical, handle: int, process: Process) -> None:
        self.physical, self.handle, self.process = physical, handle, process
        self.name, self.ended = physical.name, False
        self.functions = Functions(physical.owner.functions.GetDeviceProcAddr, handle)
        self.queues: list[tuple[int, Lock]] = []
        for number in range(physical.queues):
            queue = ctypes.c_void_p()
            self.functions.GetDeviceQueue(handle, physical.family, number, byref(queue))
            self.queues.append((queue.value or 0, Lock()))

    def create(self, kind: str, info: Structure) -> int:
        """Create an object of this device, such as a "Buffer". Raises: VulkanError."""
        return create(getattr(self.functions, f"Create{kind}"), self.handle, info)

    def destroy(self, kind: str, handle: int) -> None:
        """Destroy an object that no queued work uses; not at the end, nor in a child of fork()."""
        if self.process.alive and not self.ended:
            getattr(self.functions, f"Destroy{kind}")(self.handle, handle, None)


SIGNED_ZERO_INF_NAN_PRESERVE, DENORM_PRESERVE, DENORM_FLUSH, ROUND_TO_EVEN = range(4)


def format_version(version: int) -> str:
    """Return a version of Vulkan as text."""
    return f"{version >> 22 & 0x7F}.{version >> 12 & 0x3FF}.{version & 0xFFF}"
