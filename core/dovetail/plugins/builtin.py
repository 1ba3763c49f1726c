"""The plugin that comes with the core: the reference interpreter as a device.

It is loaded like any other plugin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..backend.interface import Backend, BackendInfo, DeviceInfo
from ..backend.reference import ReferenceBackend
from .hooks import hookimpl


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    """Return the description of the plugin."""
    summary = "NumPy interpreter of kernels: slow, exact, always available"
    return BackendInfo("reference", "1", summary=summary)


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Sequence[DeviceInfo]:
    """Return the description of the one device, the interpreter; `config` has no effect."""
    return [ReferenceBackend.info]


@hookimpl
def dovetail_open(info: DeviceInfo, config: Mapping[str, str]) -> Backend:
    """Create the interpreter, the backend of the device; the arguments have no effect."""
    return ReferenceBackend()
