"""The hooks of device type "webgpu", through which dovetail finds, probes and opens it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

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
    hookimpl,
    install_command,
    probe_floats,
    source_digest,
)

from . import __version__

GPU_CONCURRENCY = 1 << 14  # points that keep a GPU busy; WebGPU does not tell its size
# Mesa's driver for the CPU ends all loops of a work item after these iterations, in silence.
LLVMPIPE_ITERATIONS_MAX = 65_535
BINDING_BYTES_MAX = 1 << 31  # bytes that 32-bit indices of all dtypes reach
GROUP_ITEMS = 64  # work items of a group
DRIVER_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")  # by which users name Vulkan drivers
DRIVERS = (
    "your GPU's driver (on Linux NVIDIA: NVIDIA's driver; AMD, Intel, or a CPU alone: "
    "mesa-vulkan-drivers on Debian and Ubuntu)"
)


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    """Return the description of this plugin."""
    return BackendInfo("webgpu", __version__, (1, 0), "any WebGPU device, by wgpu")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Sequence[DeviceInfo] | Unavailable:
    """Return the usable adapters, or Unavailable with the reason and a fix."""
    try:
        adapters = importlib.import_module(f"{__package__}.adapters").list_adapters()
    except (ImportError, OSError, RuntimeError) as error:
        return Unavailable(f"wgpu cannot be loaded: {error}", install_command("wgpu"))
    if not adapters:
        return Unavailable("wgpu finds no adapter", suggest_fix())
    return [describe(adapter, i) for i, adapter in enumerate(adapters)]


def suggest_fix() -> str:
    """Return the steps that may give an adapter, as text."""
    steps = [
        f"unset {v}, which hides all other drivers" for v in DRIVER_VARIABLES if v in os.environ
    ]
    return ", or ".join([*steps, f"install {DRIVERS}"])


def describe(adapter: Any, index: int) -> DeviceInfo:
    """Build the DeviceInfo of an adapter."""
    info, version = adapter.info, importlib.import_module("wgpu").__version__
    facts = [info[k] for k in ("device", "description", "backend_type", "vendor_id", "device_id")]
    facts += [version, sorted(adapter.limits.items()), source_digest(Path(__file__).parent)]
    return DeviceInfo(
        "webgpu",
        index,
        info["device"],
        " | ".join(map(str, facts)),
        capabilities(adapter),
        0,
        {"api": info["backend_type"], "driver": info["description"], "wgpu": version},
        None if is_llvmpipe(adapter) else "reference",  # if floats turn out incomplete
    )


def is_llvmpipe(adapter: Any) -> bool:
    """Return True for Mesa's driver for the CPU."""
    return "llvmpipe" in adapter.info["device"]


def capabilities(adapter: Any) -> Capabilities:
    """Return the kernel features that an adapter supports.

    WebGPU promises neither exact division and square roots nor an fma that rounds once.
    """
    limits, is_cpu = adapter.limits, adapter.info["adapter_type"] == "CPU"
    groups = limits["max-compute-workgroups-per-dimension"]
    binding = min(limits["max-storage-buffer-binding-size"], limits["max-buffer-size"])
    return Capabilities(
        dtypes=frozenset((bool_, *INTEGERS, float16, bfloat16, float32)),
        exact_division=False,
        float64=False,
        fma=False,
        algebra="free",
        concurrency=os.cpu_count() or 1 if is_cpu else GPU_CONCURRENCY,
        max_buffers=limits["max-storage-buffers-per-shader-stage"],
        max_buffer=min(binding & ~3, BINDING_BYTES_MAX),
        offset_params=True,
        max_grid=(groups, groups, groups * GROUP_ITEMS),
        max_iterations=LLVMPIPE_ITERATIONS_MAX if is_llvmpipe(adapter) else 0,
        reductions=False,
        index_bits=32,
        int64=False,
        storage_bits=32,
    )


@hookimpl
def dovetail_open(info: DeviceInfo, config: Mapping[str, str]) -> Backend:
    """Open a device, and return its backend, whose floats are measured.

    The algebra stays "free": a probe cannot see all that a compiler of shaders rewrites.
    """
    adapters = importlib.import_module(f"{__package__}.adapters").list_adapters()
    device = importlib.import_module(f"{__package__}.device")
    backend: Backend = device.WebgpuBackend(info, adapters[info.index])
    measured = replace(probe_floats(backend), algebra="free", contraction=False)
    backend.info = replace(info, capabilities=measured)
    return backend


@hookimpl
def dovetail_diagnostics() -> Mapping[str, str]:
    """Return each adapter, and why it is not used, for the doctor."""
    try:
        adapters = importlib.import_module(f"{__package__}.adapters")
    except (ImportError, OSError, RuntimeError):  # as the probe has said
        return {}
    facts = {"wgpu": adapters.wgpu.__version__}
    offered = adapters.wgpu.gpu.enumerate_adapters_sync()
    for number, adapter in enumerate(offered):
        lacks = adapters.find_lacks(adapter)
        name = f"{adapter.info['device']}, {adapter.info['description']}"
        facts[f"adapter {number}"] = f"{name}, {adapter.info['backend_type']}" + (
            f" ({lacks})" if lacks else ""
        )
    if offered and all(adapter.info["adapter_type"] == "CPU" for adapter in offered):
        facts["GPU"] = f"none is found; if there is one, {suggest_fix()}"
    return facts
