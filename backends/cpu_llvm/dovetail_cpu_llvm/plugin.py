"""Device type "cpu": the hooks through which dovetail finds, probes and opens it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
    install_command,
    source_digest,
)

from . import __version__, native, numa

L1_CACHE_BYTES_MIN = 1 << 15  # bytes of a first cache, at least


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    """Return the description of this plugin."""
    return BackendInfo("cpu", __version__, (1, 0), "the host's CPU, compiled with LLVM")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Sequence[DeviceInfo] | Unavailable:
    """Return the one device, or Unavailable if llvmlite cannot be imported."""
    try:
        import llvmlite
        import llvmlite.binding as llvm

        targets = importlib.import_module(f"{__package__}.targets")
    except (ImportError, OSError) as error:
        return Unavailable(
            f"llvmlite cannot be imported: {error}",
            install_command("llvmlite", option="--upgrade"),
        )
    target = targets.read_target()
    if target.missing:
        return Unavailable(
            f"{targets.TARGET_VARIABLE}={target.name} needs instructions that this CPU lacks: "
            f"{', '.join(target.missing)}",
            f"unset {targets.TARGET_VARIABLE}, or set it to a smaller set: avx2, sse",
        )
    half = frozenset((float16,)) if target.has_halves else frozenset()
    capabilities = Capabilities(
        dtypes=frozenset((bool_, *INTEGERS, float16, bfloat16, float32, float64)),
        native_halves=half,
        concurrency=os.cpu_count() or 1,
        near=L1_CACHE_BYTES_MIN,
    )
    name, version = llvm.get_host_cpu_name(), ".".join(map(str, llvm.llvm_version_info))
    fingerprint = (
        f"{target.cpu} {target.features} llvm {version} llvmlite {llvmlite.__version__} "
        f"{__version__} {target.name} {source_digest(Path(__file__).parent)}"
    )
    details = {"cpu": name, "target": target.name, "llvm": version}
    details["llvmlite"] = llvmlite.__version__
    return [DeviceInfo("cpu", 0, name, fingerprint, capabilities, _read_total_memory(), details)]


def _read_total_memory() -> int:
    """Return the bytes of physical memory, or 0 if the system does not report them."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


@hookimpl
def dovetail_open(info: DeviceInfo, config: Mapping[str, str]) -> Backend:
    """Open the device, and return its backend."""
    device = importlib.import_module(f"{__package__}.device")  # which loads llvmlite
    backend: Backend = device.CpuBackend(info)
    return backend


@hookimpl
def dovetail_diagnostics() -> Mapping[str, str]:
    """Return if the native module is compiled, NUMA policies, and the target if LLVM loads."""
    texts = {"threads and launches": "compiled" if native.native else native.NOT_COMPILED}
    texts["NUMA"] = numa.describe()
    with suppress(ImportError, OSError):  # the probe has reported a missing llvmlite
        targets = importlib.import_module(f"{__package__}.targets")
        texts["target"] = targets.read_target().describe()
    return texts
