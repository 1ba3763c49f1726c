"""The hooks of device type "cuda", through which dovetail finds, probes and opens it."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dovetail.extend import (
    FLOATS,
    INTEGERS,
    Backend,
    BackendInfo,
    Capabilities,
    DeviceInfo,
    Unavailable,
    bool_,
    hookimpl,
    install_command,
    source_digest,
)

from . import __version__

DRIVER_VERSION_MIN = 12000  # the first driver that loads cubins of a CUDA 12 compiler
_DRIVER_HINT = "install NVIDIA's driver, version 525 or later: https://www.nvidia.com/drivers"
_PACKAGES = ("cuda-bindings", "nvidia-cuda-nvrtc-cu12")
NO_DEVICE = 100


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    """Return the description of this plugin."""
    return BackendInfo("cuda", __version__, (1, 0), "NVIDIA's GPUs")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Sequence[DeviceInfo] | Unavailable:
    """Return all GPUs in the driver's order (see CUDA_VISIBLE_DEVICES), or Unavailable."""
    try:
        cuda = importlib.import_module(f"{__package__}.driver")
        version = ".".join(map(str, cuda.nvrtc.nvrtcVersion()[1:]))
    except (ImportError, OSError, RuntimeError) as error:
        hint = install_command(*_PACKAGES, option="--force-reinstall")
        return Unavailable(f"NVIDIA's compiler cannot be loaded: {error}", hint)
    try:
        return _describe_devices(cuda, version)
    except (OSError, RuntimeError) as error:
        return Unavailable(f"NVIDIA's driver cannot be loaded: {error}", _DRIVER_HINT)


def _describe_devices(cuda: Any, compiler: str) -> Sequence[DeviceInfo] | Unavailable:
    """Return all GPUs; Unavailable for none or an old driver. Raises: CudaError if a call fails."""
    status = cuda.driver.cuInit(0)[0]
    if status == NO_DEVICE:
        return Unavailable("the driver finds no GPU", "check `nvidia-smi` and CUDA_VISIBLE_DEVICES")
    cuda.unwrap_result((status,), "cuInit")
    version = cuda.unwrap_result(cuda.driver.cuDriverGetVersion(), "cuDriverGetVersion")
    if version < DRIVER_VERSION_MIN:
        return Unavailable(
            f"NVIDIA's driver must support CUDA 12, got {_format_version(version)}", _DRIVER_HINT
        )
    count = cuda.unwrap_result(cuda.driver.cuDeviceGetCount(), "cuDeviceGetCount")
    return [_describe(cuda, i, version, compiler) for i in range(count)]


def _format_version(version: int) -> str:
    """Format a driver's version number, such as 12040 as "12.4"."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _describe(cuda: Any, index: int, version: int, compiler: str) -> DeviceInfo:
    """Build the DeviceInfo of a GPU from the driver's attributes."""
    d, device = cuda.driver, cuda.unwrap_result(cuda.driver.cuDeviceGet(index), "cuDeviceGet")
    name = cuda.unwrap_result(d.cuDeviceGetName(100, device), "cuDeviceGetName")
    name = name.split(b"\0")[0].decode().strip()
    major, minor, units, threads = (
        cuda.unwrap_result(d.cuDeviceGetAttribute(getattr(d.CUdevice_attribute, a), device), a)
        for a in _ATTRIBUTES
    )
    arch, source = f"sm_{major}{minor}", source_digest(Path(__file__).parent)
    return DeviceInfo(
        "cuda",
        index,
        name,
        " | ".join((arch, compiler, __version__, source)),
        Capabilities(
            dtypes=frozenset((bool_, *INTEGERS, *FLOATS)), concurrency=units * threads // 128
        ),
        cuda.unwrap_result(d.cuDeviceTotalMem(device), "cuDeviceTotalMem"),
        {
            "arch": arch,
            "driver": _format_version(version),
            "compiler": compiler,
            "units": str(units),
        },
    )


_ATTRIBUTES = (
    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
    "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT",
    "CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR",
)


@hookimpl
def dovetail_open(info: DeviceInfo, config: Mapping[str, str]) -> Backend:
    """Open a device, and return its backend."""
    device = importlib.import_module(f"{__package__}.device")  # loads the bindings
    backend: Backend = device.CudaBackend(info)
    return backend


@hookimpl
def dovetail_diagnostics() -> Mapping[str, str]:
    """Return the installed versions of NVIDIA's packages, for the doctor."""
    versions = {}
    for distribution in _LIBRARIES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[distribution] = importlib.metadata.version(distribution)
    return versions


_LIBRARIES = (
    "cuda-bindings",
    "nvidia-cuda-nvrtc-cu12",
    "nvidia-cuda-nvrtc",
    "nvidia-cublas-cu12",
    "nvidia-cublas",
)
