"""`dt.device`, in all the ways of naming one; who names devices within calls `device.device`."""

from __future__ import annotations

from ..arguments import integer
from ..device_class import Device, default_device
from ..device_class import device as named

__all__ = ["device"]


def device(
    spec: Device | str | None = None, index: int | None = None, *, type: str | None = None
) -> Device:
    """The device named by `spec`: "opencl", "opencl:1", a `Device`, or None for the default device.

    Naming a device does not open it, nor look whether it exists. `type`, `index`: the parts of a
    name, which may be given by themselves; without a type it is that of the default device.
    Raises: DeviceError for a malformed name, ArgumentTypeError.

    >>> import dovetail as dt
    >>> dt.device("opencl:1")
    device("opencl:1")
    >>> dt.device("opencl", 1) is dt.device(type="opencl", index=1) is dt.device("opencl:1")
    True
    """
    wanted = type if spec is None else spec
    if index is None:
        return named(wanted)
    index = integer("device", index, "index", 0)
    if wanted is None:
        wanted = default_device().type
    return named(f"{wanted.type if isinstance(wanted, Device) else wanted}:{index}")
