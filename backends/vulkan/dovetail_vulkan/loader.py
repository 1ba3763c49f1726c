"""The system's Vulkan loader, and the devices that it finds."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Collection
from ctypes import byref
from functools import cache
from typing import Any

from dovetail.extend import Lock, Process

from . import vulkan as vk

LIBRARIES = {
    "win32": ("vulkan-1.dll",),
    "darwin": ("libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib"),
}.get(sys.platform, ("libvulkan.so.1", "libvulkan.so"))
API_VERSION = 1 << 22 | 2 << 12  # Vulkan 1.2
VALIDATION_LAYER = b"VK_LAYER_KHRONOS_validation"
LLVMPIPE = 13  # VkDriverId of Mesa's Vulkan on the CPU
# VkPhysicalDeviceType: the order of devices, the discrete GPU first, and the name of each type
DEVICE_TYPES = {2: "discrete", 1: "integrated", 3: "virtual", 0: "other", 4: "CPU"}
_COMPUTE_QUEUE = 2
_DEVICE_LOCAL_HEAP = 1
_PORTABILITY = b"VK_KHR_portability_enumeration"
_SUBSET = b"VK_KHR_portability_subset"  # a device that has this extension must enable it
# Names of the features in use, by their position in Features, Features11 and Features12
_FEATURES = (
    {39: "shaderFloat64", 40: "shaderInt64", 41: "shaderInt16"},
    {0: "storageBuffer16BitAccess"},
    {2: "storageBuffer8BitAccess", 5: "shaderBufferInt64Atomics", 8: "shaderInt8"}
    | {37: "timelineSemaphore", 38: "bufferDeviceAddress"},
)
REQUIRED = ("timelineSemaphore", "bufferDeviceAddress")
# The order of float controls in Properties12, each for 16, 32 and 64 bits
SIGNED_ZERO_INF_NAN_PRESERVE, DENORM_PRESERVE, _DENORM_FLUSH, ROUND_TO_EVEN = range(4)
_lock = Lock()


@cache
def library() -> ctypes.CDLL:
    """Return the system's Vulkan loader. Raises: OSError with the error of each name."""
    errors = []
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            errors.append(str(error))
    raise OSError("; ".join(errors))


def format_version(version: int) -> str:
    """Return a version of Vulkan as text."""
    return f"{version >> 22 & 0x7F}.{version >> 12 & 0x3FF}.{version & 0xFFF}"


def _strings(names: Collection[bytes]) -> Any:
    """Return an array of C strings."""
    return (ctypes.c_char_p * len(names))(*names)


class Instance:
    """An instance of Vulkan, in which devices are found and opened.

    Raises: OSError without a loader; VulkanError if it has no 1.2, or not the validation layer.
    """

    def __init__(self, validate: bool) -> None:
        find = library().vkGetInstanceProcAddr
        find.restype, find.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)
        base, version = vk.Functions(find, None), ctypes.c_uint32()
        base.EnumerateInstanceVersion(byref(version))
        if version.value < API_VERSION:
            raise vk.VulkanError(f"vulkan: the loader has {format_version(version.value)}, not 1.2")
        offered = vk.enumerate_items(base.EnumerateInstanceExtensionProperties, vk.Extension, None)
        extensions = [e.name for e in offered if e.name == _PORTABILITY]
        layers = [VALIDATION_LAYER] if validate else []
        info = vk.InstanceInfo(
            flags=len(extensions),  # VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR
            application=vk.ApplicationInfo(name=b"dovetail", api=API_VERSION),
            layers=len(layers),
            layer=_strings(layers),
            extensions=len(extensions),
            extension=_strings(extensions),
        )
        self.handle = ctypes.c_void_p()
        base.CreateInstance(byref(info), None, byref(self.handle))
        self.functions = vk.Functions(find, self.handle)

    def devices(self) -> list[PhysicalDevice]:
        """Return the physical devices, discrete GPUs first and CPUs last."""
        find = self.functions.EnumeratePhysicalDevices
        handles = vk.enumerate_items(find, ctypes.c_void_p, self.handle)
        devices = [PhysicalDevice(self, handle) for handle in handles]
        return sorted(devices, key=lambda d: [*DEVICE_TYPES].index(d.properties.kind))


_instances: dict[bool, Instance] = {}


def instance(validate: bool = False) -> Instance:
    """Return this process's Vulkan instance, with or without validation; create it on first use."""
    with _lock:
        if validate not in _instances:
            _instances[validate] = Instance(validate)
        return _instances[validate]


def find_device_heap(memory: vk.Structure) -> int:
    """Return the bytes of the largest heap that is the device's own, if it has one.

    A discrete GPU also has heaps of the host's memory, which may be larger.
    """
    heaps = list(memory.heaps)[: memory.heap_count]
    own = [h for h in heaps if h.flags & _DEVICE_LOCAL_HEAP]
    return max(int(h.size) for h in own or heaps)


class PhysicalDevice:
    """A device that the loader finds: what it is, and what it can do."""

    def __init__(self, owner: Instance, handle: int) -> None:
        self.owner, self.handle, call = owner, handle, owner.functions
        self.properties, more, self._driver = vk.Properties(), vk.Properties11(), vk.Properties12()
        call.GetPhysicalDeviceProperties2(handle, byref(self.properties))
        find = call.GetPhysicalDeviceQueueFamilyProperties
        families = vk.enumerate_items(find, vk.QueueFamily, handle)
        computing = [i for i, f in enumerate(families) if f.flags & _COMPUTE_QUEUE]
        timed = [i for i in computing if families[i].timestamp_bits]  # events are timestamps
        self.family = max(timed, key=lambda i: families[i].count, default=-1)
        self.queues = families[self.family].count if timed else 0
        self.timestamp_bits = families[self.family].timestamp_bits if timed else 0
        self.features: frozenset[str] = frozenset()
        if self.properties.api >= API_VERSION:
            vk.chain(self.properties, more, self._driver)
            call.GetPhysicalDeviceProperties2(handle, byref(self.properties))
            features = vk.Features(), vk.Features11(), vk.Features12()
            call.GetPhysicalDeviceFeatures2(handle, byref(vk.chain(*features)))
            pairs = zip(features, _FEATURES, strict=True)
            self.features = frozenset(
                n for f, names in pairs for i, n in names.items() if f.flags[i]
            )
        memory = vk.MemoryProperties()
        call.GetPhysicalDeviceMemoryProperties(handle, byref(memory))
        self.memory_types = [t.flags for t in memory.types[: memory.type_count]]
        self.total_memory = find_device_heap(memory)
        self.allocation_bytes_max = int(more.allocation_max)
        find = call.EnumerateDeviceExtensionProperties
        offered = vk.enumerate_items(find, vk.Extension, handle, None)
        self.extensions = [e.name for e in offered if e.name == _SUBSET]
        self.name = self.properties.name.decode(errors="replace")
        self.kind = DEVICE_TYPES[self.properties.kind]
        self.version = format_version(self.properties.api)
        self.driver_id = int(self._driver.driver)
        names = self._driver.name, self._driver.info
        self.driver = " ".join(name.decode(errors="replace").strip() for name in names).strip()
        limits = bytes(self.properties.limits)
        self.groups_max = struct.unpack_from("3I", limits, 220)  # of a dispatch, along x, y and z
        (self.tick_ns,) = struct.unpack_from("f", limits, 424)

    def missing(self) -> list[str]:
        """Return what the device lacks for this backend; nothing if it can be used."""
        if self.properties.api < API_VERSION:
            return [f"Vulkan 1.2 (it has {self.version})"]
        queue = [] if self.queues else ["a compute queue with timestamps"]
        return queue + [name for name in REQUIRED if name not in self.features]

    def float_control(self, control: int) -> frozenset[int]:
        """Return the bits of the floats that have one of the float controls."""
        flags = self._driver.floats[3 * control : 3 * control + 3]
        return frozenset(bits for bits, flag in zip((16, 32, 64), flags, strict=True) if flag)

    def open(self, process: Process) -> LogicalDevice:
        """Open the device, with the features in use. Raises: VulkanError."""
        features = vk.Features(), vk.Features11(), vk.Features12()
        for f, names in zip(features, _FEATURES, strict=True):
            for position, name in names.items():
                f.flags[position] = name in self.features
        priorities = (ctypes.c_float * self.queues)(*[1.0] * self.queues)
        info = vk.DeviceInfo(
            next=vk.chain(*features),
            count=1,
            queues=vk.QueueInfo(family=self.family, count=self.queues, priorities=priorities),
            extensions=len(self.extensions),
            extension=_strings(self.extensions),
        )
        handle = vk.create(self.owner.functions.CreateDevice, self.handle, info)
        return LogicalDevice(self, handle, process)


class LogicalDevice:
    """An open device: its functions, and its queues, each with a lock for submissions."""

    def __init__(self, physical: PhysicalDevice, handle: int, process: Process) -> None:
        self.physical, self.handle, self.process = physical, handle, process
        self.name, self.ended = physical.name, False
        self.functions = vk.Functions(physical.owner.functions.GetDeviceProcAddr, handle)
        self.queues: list[tuple[int, Lock]] = []
        for number in range(physical.queues):
            queue = ctypes.c_void_p()
            self.functions.GetDeviceQueue(handle, physical.family, number, byref(queue))
            self.queues.append((queue.value or 0, Lock()))

    def create(self, kind: str, info: vk.Structure) -> int:
        """Create an object of this device, such as a "Buffer". Raises: VulkanError."""
        return vk.create(getattr(self.functions, f"Create{kind}"), self.handle, info)

    def destroy(self, kind: str, handle: int) -> None:
        """Destroy an object that no queued work uses; not at the end, nor in a child of fork()."""
        if self.process.alive and not self.ended:
            getattr(self.functions, f"Destroy{kind}")(self.handle, handle, None)
