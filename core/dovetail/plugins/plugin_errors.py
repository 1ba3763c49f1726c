"""Errors for a plugin's unexpected exceptions: they name device, package and kernel."""

from __future__ import annotations

from ..device_class import Device
from ..errors import DovetailError, PluginError
from .registry import registry


def raise_plugin_error(device: Device, action: str, kernel: object, error: Exception) -> None:
    """Raise PluginError from an unexpected exception; return for DovetailError and MemoryError.

    The caller re-raises those two unchanged.
    """
    if isinstance(error, (DovetailError, MemoryError)):
        return
    record = registry.records().get(device.type)
    package = " ".join((record.distribution, record.version)).strip() if record else ""
    whose = f"the authors of {record.distribution}" if record and package else "its authors"
    raise PluginError(
        f"{action} on {device}{f' ({package})' if package else ''} raised "
        f"{type(error).__name__}: {error}\n"
        f"This is a bug in the plugin: its traceback is above, the kernel is below. Report it to "
        f"{whose}; `dovetail test-backend {device}` finds further faults.\n{kernel}"
    ) from error
