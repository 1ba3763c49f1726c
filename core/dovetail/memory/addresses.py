"""The check of a raw address that a user passes as memory."""

from __future__ import annotations

from ..device_class import Device, opened
from ..errors import ArgumentError


def require_memory(op: str, low: int, nbytes: int, device: Device) -> None:
    """Raise ArgumentError, in the name of `op`, if the address range is visibly no memory in use.

    The range is refused if the device's allocator holds it unused, or if the process has no memory
    there. Other errors cannot be detected.
    """
    opened_device = opened(device)
    if not nbytes or not opened_device.backend.host:
        return
    if opened_device.allocator.is_freed(low):
        raise ArgumentError(
            f"{op}: the memory at {low:#x} was freed: no tensor on {device} uses it any more"
        )
    try:
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            for probe in (low, low + nbytes - 1):
                memory.seek(probe)
                memory.read(1)
    except (FileNotFoundError, PermissionError):  # only Linux has this file
        return
    except (OSError, OverflowError, ValueError):
        raise ArgumentError(
            f"{op}: the {nbytes} bytes from {low:#x} must be memory of this process, and "
            f"{probe:#x} is not"
        ) from None
