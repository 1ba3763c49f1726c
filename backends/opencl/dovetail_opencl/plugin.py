"""The hooks of device type "opencl", through which dovetail finds, probes and opens it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
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
    float64,
    hookimpl,
    install_command,
)

from . import __version__, loader

# bits of CL_DEVICE_SINGLE_FP_CONFIG and its kin
_DENORM, _INF_NAN, _NEAREST, _FMA, _EXACT = 1 << 0, 1 << 1, 1 << 2, 1 << 5, 1 << 7
_CAST_FLAGS = _DENORM | _INF_NAN | _NEAREST  # loads, stores and casts of float16 need these
_ARITHMETIC_FLAGS = _CAST_FLAGS | _FMA  # float64 arithmetic needs these


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    """Return the description of this plugin."""
    return BackendInfo("opencl", __version__, (1, 0), "any OpenCL device")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Sequence[DeviceInfo] | Unavailable:
    """Return the usable devices of all platforms, or Unavailable with the reasons and a fix."""
    try:
        platforms = loader.platforms()
    except (ImportError, OSError) as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == "pyopencl"
        hint = install_command("pyopencl", option="" if absent else "--force-reinstall")
        return Unavailable(f"pyopencl cannot be imported: {error}", hint)
    devices = [d for p in platforms for d in devices_of(p)]
    if not devices:
        return Unavailable(
            "; ".join([loader.explain_no_device(), *_explain_silent_platforms(platforms)]),
            loader.suggest_fix(),
        )
    return [describe(d, i) for i, d in enumerate(devices)]


def devices_of(platform: Any) -> list[Any]:
    """Return the devices that compile kernels and round to nearest; none if the platform fails."""
    try:
        devices = [d for d in platform.get_devices() if d.available and d.compiler_available]
        return [d for d in devices if d.single_fp_config & _NEAREST]
    except RuntimeError:
        return []


def _explain_silent_platforms(platforms: Sequence[Any]) -> list[str]:
    """Return a sentence with the reason for each platform without a usable device."""
    return [f"{p.name} has {_explain_platform(p)}" for p in platforms if not devices_of(p)]


def _explain_platform(platform: Any) -> str:
    """Return the reason why a platform has no usable device."""
    try:
        return (
            f"{len(platform.get_devices())} devices, none with a compiler and rounding to nearest"
        )
    except RuntimeError as error:
        return f"no device ({error})"


def describe(device: Any, index: int) -> DeviceInfo:
    """Build the DeviceInfo of a pyopencl device."""
    platform, name = device.platform, device.name.strip()
    versions = (platform.name, platform.version, device.version, device.driver_version, __version__)
    return DeviceInfo(
        "opencl",
        index,
        name,
        " | ".join((name, *versions, device.extensions)),
        capabilities(device),
        device.global_mem_size,
        {"platform": platform.name, "version": device.version, "driver": device.driver_version},
    )


def capabilities(device: Any) -> Capabilities:
    """Return the kernel features that a device supports, by its float configurations.

    The core makes up for what float32 lacks. float64 and float16 are used if they lack nothing.
    CL_FP_FMA only says that fma is fast: the built-in function is exact in the full profile.
    """
    extensions, single = device.extensions.split(), device.single_fp_config
    float64_ = (
        "cl_khr_fp64" in extensions
        and device.double_fp_config & _ARITHMETIC_FLAGS == _ARITHMETIC_FLAGS
    )
    half = "cl_khr_fp16" in extensions and device.half_fp_config & _CAST_FLAGS == _CAST_FLAGS
    return Capabilities(
        dtypes=frozenset((bool_, *INTEGERS, float16, bfloat16, float32))
        | (frozenset((float64,)) if float64_ else frozenset()),
        native_halves=frozenset((float16,)) if half else frozenset(),
        exact_division=bool(single & _EXACT),
        float64=float64_,
        fma=device.profile == "FULL_PROFILE" or bool(single & _FMA),
        denormals=bool(single & _DENORM),
        nan=bool(single & _INF_NAN),
        concurrency=device.max_compute_units,
    )


@hookimpl
def dovetail_open(info: DeviceInfo, config: Mapping[str, str]) -> Backend:
    """Open a device, and return its backend."""
    device = importlib.import_module(f"{__package__}.device")  # loads pyopencl
    backend: Backend = device.OpenCLBackend(info)
    return backend


@hookimpl
def dovetail_diagnostics() -> Mapping[str, str]:
    """Return the state of runtimes, drivers and platforms, for the doctor."""
    runtime = loader.intel_runtime()
    facts = {"intel runtime from pip": str(runtime or "not installed")}
    for name, reason in loader.load_errors().items():
        facts[f"driver {name}"] = f"cannot be loaded: {reason}"
    try:
        silent = _explain_silent_platforms(loader.platforms())
    except (ImportError, OSError):  # as the probe has said
        silent = []
    return facts | ({"without a device": "; ".join(silent)} if silent else {})
