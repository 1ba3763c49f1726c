"""The hooks by which dovetail finds, probes and opens the device type "NAME"."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path

from dovetail import extend
from dovetail.extend import Backend, BackendInfo, DeviceInfo, Unavailable, hookimpl, source_digest

from . import __version__, driver
from .device import ItemBackend


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    """Describe this plugin."""
    return BackendInfo("NAME", __version__, (1, 0), "an accelerator, simulated")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> list[DeviceInfo] | Unavailable:
    """Return the one, simulated device, or the reason why it is unavailable."""
    command = driver.find_compiler()
    if command is None:
        reason = f"no C compiler was found: CC is {os.environ.get('CC')!r}, and PATH has none"
        return Unavailable(reason, "install gcc or clang, or set CC to the command of a C compiler")
    asked = subprocess.run([*command, "--version"], capture_output=True, text=True)
    version = asked.stdout.partition("\n")[0]
    made_by = [source_digest(Path(str(f)).parent) for f in (__file__, extend.__file__)]
    parts = (*command, version, platform.machine(), *made_by)  # everything that a binary depends on
    details = {"compiler": " ".join(command), "version": version}
    name, memory = "simulated accelerator", driver.MEMORY_BYTES
    fingerprint = " ".join(parts)
    return [DeviceInfo("NAME", 0, name, fingerprint, total_memory=memory, details=details)]


@hookimpl
def dovetail_open(info: DeviceInfo, config: Mapping[str, str]) -> Backend:
    """Return the backend of the opened device."""
    late = float(config.get("late_us", "100")) * 1e-6
    return ItemBackend(info, info.details["compiler"].split(), late)
