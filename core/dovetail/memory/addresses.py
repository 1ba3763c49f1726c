"""Whether there is memory at an address, as far as a process can see."""

from __future__ import annotations

from ..device_class import Device, opened
from ..errors import ArgumentError


def require_memory(op: str, low: int, nbytes: int, device: Device) -> None:
    """Raises: ArgumentError, on behalf of `op`, where it can be seen that there is no such memory.

    That is so where the device's allocator has it and nobody uses it, or the process does not.
    """
    where = opened(device)
    if not nbytes or not where.backend.host:
        return
    if where.allocator.is_freed(low):
        raise ArgumentError(
            f"{op}: the memory at {low:#x} was freed: no tensor on {device} uses it any more"
        )
    try:
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            for place in (low, low + nbytes - 1):
                memory.seek(place)
                memory.read(1)
    except (FileNotFoundError, PermissionError):  # not all systems have it
        return
    except (OSError, OverflowError, ValueError):
        raise ArgumentError(
            f"{op}: there is no memory at {place:#x}: the {nbytes} bytes from {low:#x} on are not "
            "all of this process"
        ) from None
