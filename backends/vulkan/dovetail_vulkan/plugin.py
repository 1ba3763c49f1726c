"""The hooks of device type "vulkan", through which dovetail finds, probes and opens it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dovetail.extend import (
    INTEGERS,
    Backend,
    BackendInfo,
    Capabilities,
    DeviceInfo,
    Unavailable,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    hookimpl,
    probe_floats,
    source_digest,
)

from . import __version__, loader
from .loader import DENORM_PRESERVE, LLVMPIPE, SIGNED_ZERO_INF_NAN_PRESERVE, PhysicalDevice
from .schedule import FIRST_GROUP
from .vulkan import INCOMPATIBLE_DRIVER, LAYER_NOT_PRESENT, VulkanError

GPU_CONCURRENCY = 1 << 14  # points that keep a GPU busy; Vulkan does not tell its size
# Mesa's driver for the CPU ends all loops of a work item after these iterations, in silence.
LLVMPIPE_ITERATIONS_MAX = 65_535
POINTS_MAX = 1 << 31  # points along an axis, so that their numbers fit in 32 bits
# What a device needs to compute with integers of 8 and 16 bits, and to access them in memory
NARROW_FEATURES = frozenset(
    ("shaderInt8", "shaderInt16", "storageBuffer8BitAccess", "storageBuffer16BitAccess")
)
DRIVER_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")  # by which users name drivers
LOADER_PACKAGE = "libvulkan1"  # of Debian and Ubuntu, for the hints
DRIVERS = (
    "your GPU's Vulkan driver (NVIDIA: NVIDIA's driver; AMD, Intel, or a CPU alone: "
    "mesa-vulkan-drivers on Debian and Ubuntu)"
)


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    """Return the description of this plugin."""
    return BackendInfo("vulkan", __version__, (1, 0), "any Vulkan device")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Sequence[DeviceInfo] | Unavailable:
    """Return the usable physical devices, or Unavailable with the reasons and a fix."""
    try:
        devices = loader.instance(validates(config)).devices()
    except OSError as error:
        return Unavailable(
            f"Vulkan's loader cannot be loaded: {error}",
            f"install your GPU's driver, or the loader ({LOADER_PACKAGE} on Debian and Ubuntu, "
            "vulkan-loader on Fedora, MoltenVK on macOS)",
        )
    except VulkanError as error:
        no_driver = error.status == INCOMPATIBLE_DRIVER
        reason = "Vulkan's loader finds no driver" if no_driver else str(error)
        return Unavailable(reason, suggest_fix(error.status))
    usable = usable_devices(devices)
    if not usable:
        reasons = [f"{d.name} lacks {', '.join(d.missing())}" for d in devices]
        return Unavailable("; ".join(["no Vulkan device can be used", *reasons]), suggest_fix())
    return [describe(d, i) for i, d in enumerate(usable)]


def validates(config: Mapping[str, str]) -> bool:
    """Return True if the validation layer checks all calls: DOVETAIL_VULKAN_VALIDATE=1."""
    return config.get("validate", "0") not in ("", "0")


def usable_devices(devices: Sequence[PhysicalDevice]) -> list[PhysicalDevice]:
    """Return the physical devices that lack nothing."""
    return [d for d in devices if not d.missing()]


def suggest_fix(status: int = 0) -> str:
    """Return the steps that may give a device, as text."""
    if status == LAYER_NOT_PRESENT:
        return "install the validation layer (vulkan-validationlayers on Debian and Ubuntu)"
    steps = [
        f"unset {v}, which hides all other drivers" for v in DRIVER_VARIABLES if v in os.environ
    ]
    return ", or ".join([*steps, f"install {DRIVERS}"])


def describe(device: PhysicalDevice, index: int) -> DeviceInfo:
    """Build the DeviceInfo of a physical device."""
    p, source = device.properties, source_digest(Path(__file__).parent)
    ids = (p.driver, p.vendor, p.device, bytes(p.uuid).hex())
    facts = (device.name, device.driver, device.version, *ids, *sorted(device.features), source)
    return DeviceInfo(
        "vulkan",
        index,
        device.name,
        " | ".join(map(str, facts)),
        capabilities(device),
        device.total_memory,
        {"version": device.version, "driver": device.driver, "kind": device.kind},
        None if device.driver_id == LLVMPIPE else "reference",  # if floats turn out incomplete
    )


def capabilities(device: PhysicalDevice) -> Capabilities:
    """Return the kernel features that a device supports.

    Vulkan promises neither exact division and square roots nor an fma that rounds once. Mesa's
    driver for the CPU has the first, and keeps subnormals, although it does not say so.
    """
    has, llvmpipe = device.features.__contains__, device.driver_id == LLVMPIPE
    int64, float64_ = has("shaderInt64"), has("shaderFloat64") and llvmpipe
    narrow, groups = device.features >= NARROW_FEATURES, device.groups_max
    return Capabilities(
        dtypes=frozenset((bool_, *INTEGERS, float16, bfloat16, float32))
        | (frozenset((float64,)) if float64_ else frozenset()),
        exact_division=llvmpipe,
        float64=float64_,
        fma=False,
        algebra="zeros",  # gallivm folds x + 0.0
        atomic_bits=64 if has("shaderBufferInt64Atomics") else 32,
        max_buffer=min(device.allocation_bytes_max, device.total_memory),
        denormals=llvmpipe or 32 in device.float_control(DENORM_PRESERVE),
        nan=32 in device.float_control(SIGNED_ZERO_INF_NAN_PRESERVE),
        concurrency=os.cpu_count() or 1 if device.kind == "CPU" else GPU_CONCURRENCY,
        max_grid=(groups[2], groups[1], min(groups[0] * FIRST_GROUP[0], POINTS_MAX)),
        max_iterations=LLVMPIPE_ITERATIONS_MAX if llvmpipe else 0,
        int64=int64,
        index_bits=64 if int64 else 32,
        storage_bits=8 if narrow else 32,
        offset_alignment=1 if narrow else 4,
    )


@hookimpl
def dovetail_open(info: DeviceInfo, config: Mapping[str, str]) -> Backend:
    """Open a device, and return its backend, whose floats are measured."""
    module = importlib.import_module(f"{__package__}.device")
    devices = usable_devices(loader.instance(validates(config)).devices())
    opened = module.VulkanBackend(info, devices[info.index])
    backend: Backend = opened
    can = probe_floats(backend)
    # SwiftShader refuses the largest allocation that it declares.
    largest = opened.memory.find_largest_block(can.max_buffer)
    backend.info = replace(info, capabilities=replace(can, max_buffer=largest))
    return backend


@hookimpl
def dovetail_diagnostics() -> Mapping[str, str]:
    """Return the state of the loader and of each physical device, for the doctor."""
    try:
        devices = loader.instance().devices()
    except (OSError, VulkanError):  # as the probe has said
        return {}
    facts = {v: os.environ[v] for v in DRIVER_VARIABLES if v in os.environ}
    for number, device in enumerate(devices):
        facts[f"device {number}"] = f"{device.name}, {device.driver}, Vulkan {device.version}"
        if device.missing():
            facts[f"device {number}"] += f", lacks {', '.join(device.missing())}"
    if all(device.kind == "CPU" for device in devices):
        facts["GPU"] = f"none is found; if there is one, {suggest_fix()}"
    return facts
