"""Adapters: the devices that wgpu finds, each once, and the devices opened on them."""

from __future__ import annotations

from typing import Any

import wgpu

# Graphics APIs, the preferred ones first. OpenGL is not used.
APIS = ("Metal", "Vulkan", "D3D12")
KINDS = ("DiscreteGPU", "IntegratedGPU", "CPU", "Unknown")
STORAGE_BUFFERS_MIN = 8  # of a kernel: what WebGPU promises
TIMESTAMPS = frozenset(("timestamp-query", "timestamp-query-inside-encoders"))


def list_adapters() -> list[Any]:
    """Return the usable adapters, discrete GPUs first.

    An adapter that several APIs offer is listed under the preferred one.
    """
    usable = [a for a in wgpu.gpu.enumerate_adapters_sync() if not find_lacks(a)]
    usable.sort(key=lambda a: APIS.index(a.info["backend_type"]))
    apis = dict[tuple[object, ...], str]()
    for a in usable:
        apis.setdefault(_identify(a), a.info["backend_type"])
    listed = [a for a in usable if a.info["backend_type"] == apis[_identify(a)]]
    return sorted(listed, key=lambda a: KINDS.index(a.info["adapter_type"]))


def find_lacks(adapter: Any) -> str:
    """Return what an adapter lacks, as text; "" if it is usable."""
    api, buffers = (
        adapter.info["backend_type"],
        adapter.limits["max-storage-buffers-per-shader-stage"],
    )
    if api not in APIS:
        return f"{api} is not used"
    return "" if buffers >= STORAGE_BUFFERS_MIN else f"it has {buffers} storage buffers"


def open_device(adapter: Any) -> Any:
    """Return a device with all limits of an adapter, and timestamps if it has them."""
    features = TIMESTAMPS if adapter.features >= TIMESTAMPS else frozenset()
    return adapter.request_device_sync(
        required_limits=dict(adapter.limits), required_features=sorted(features)
    )


def _identify(adapter: Any) -> tuple[object, ...]:
    """Return the facts that are the same for an adapter under each API."""
    info = adapter.info
    return info["vendor_id"], info["device_id"], info["device"]
