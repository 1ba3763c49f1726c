"""The public `dt.device`, with all its spellings; other modules call `device_class.device`."""

from __future__ import annotations

from ..argument_checks import integer
from ..device_class import Device, default_device
from ..device_class import device as named

__all__ = ["device"]


def device(
    spec: Device | str | None = None, index: int | None = None, *, type: str | None = None
) -> Device:
    """Return the device named by `spec`: "opencl", "opencl:1", a `Device`, or None for the default.

    The call neither opens the device nor checks that it exists.

    - `spec`: a name such as "opencl" or "opencl:1", a `Device`, or None for the default.
    - `index`, `type`: the parts of a name, which may be passed separately; the default type is that
      of the default device.

    Raises: DeviceError for a malformed name, ArgumentTypeError.
    See also: `devices`, `set_default_device`, `default_device`.

    >>> import dovetail as dt
    >>> dt.device("opencl:1")
    device("opencl:1")
    >>> dt.device("opencl", 1) is dt.device(type="opencl", index=1) is dt.device("opencl:1")
    True
    """
    name = type if spec is None else spec
    if index is None:
        return named(name)
    index = integer("device", index, "index", 0)
    if name is None:
        name = default_device().type
    return named(f"{name.type if isinstance(name, Device) else name}:{index}")
