"""A device: where memory is and where work runs.

A name and an index; what stands behind it is a plugin's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from . import callbacks, environment, settings
from .arguments import named, shown
from .compat import hints
from .errors import DeviceError
from .records import DeviceRecord

if TYPE_CHECKING:
    from .plugins.opened import Opened

__all__ = ["Device", "default_device", "set_default_device"]

# data, not a branch: the only place in the core that spells a backend's device type
DEFAULT = "cpu"
VARIABLE = "DOVETAIL_DEFAULT_DEVICE"
_SPEC = re.compile(r"([a-z][a-z0-9_]{0,63})(?::([0-9]{1,9}))?")


class Device(DeviceRecord):
    """One device, such as `dt.device("opencl:1")`; instances are unique, so `is` compares them.

    It equals its names, too, with the hash of the shortest. As a context it is the default device,
    of this thread, or asyncio task, alone.

    Attributes: `type` ("opencl"), `index` (1), and `opened`: None until first used, then what
    stands behind it (`plugins.Opened`), so that the hot path is `dev.opened or open_device(dev)`.

    >>> import dovetail as dt
    >>> d = dt.device("opencl:1")
    >>> d.type, d.index, d is dt.device("opencl:1")
    ('opencl', 1, True)
    >>> d == "opencl:1", d in {"cpu", "opencl:1"}
    (True, True)
    >>> with dt.device("reference"):
    ...     x = dt.zeros(3)
    >>> x.device
    device("reference")
    """

    __slots__ = ("changes", "index", "type")

    type: str
    index: int
    opened: Opened | None
    changes: Mapping[str, Device]  # of the settings, inside

    def __init__(self, type: str, index: int) -> None:
        self.type, self.index, self.opened = type, index, None
        self.changes, self._hash = {"device": self}, hash(str(self))

    def __str__(self) -> str:
        return self.type if self.index == 0 else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f'device("{self}")'

    if not TYPE_CHECKING:  # what is misspelt is for type checkers to say

        def __getattr__(self, name: str) -> NoReturn:
            raise hints.absent(self, name)

    __hash__ = DeviceRecord.__hash__  # which a class with an `__eq__` does not inherit

    def __eq__(self, other: object) -> bool:
        if type(other) is Device:
            return self is other
        return isinstance(other, str) and _key(other) == (self.type, self.index)

    def _repr_html_(self) -> str:
        found: str = import_module(".insight.device_pages", __package__).html([self])
        return found

    def __enter__(self) -> Device:
        settings.enter(self)
        return self

    def __exit__(self, *exc: object) -> None:
        settings.leave(self)

    def __reduce__(self) -> tuple[object, ...]:
        return (device, (str(self),))


_interned: dict[tuple[str, int], Device] = {}
_specs: dict[str, Device] = {}  # spellings already parsed; "cpu" and "cpu:0" are one device
_default: Device | None = None


def device(spec: Device | str | None = None, op: str = "device") -> Device:
    """The device named by `spec`: "opencl", "opencl:1", a `Device`, or None for the default device.

    Naming a device does not open it, nor look whether it exists. `op`: the name for the error.
    Raises: DeviceError for a malformed name, naming `op`.

    >>> import dovetail as dt
    >>> dt.device("opencl:1")
    device("opencl:1")
    """
    if isinstance(spec, Device):
        return spec
    if spec is None:
        return default_device()
    known = _specs.get(spec) if isinstance(spec, str) else None
    return known or _parse(spec, op)


def _parse(spec: Any, op: str) -> Device:
    key = _key(spec) if isinstance(spec, str) else None
    if key is None:
        lower = spec.lower() if isinstance(spec, str) else ""
        meant = f'did you mean "{lower}"?' if _key(lower) else 'write one like "opencl:1"'
        raise DeviceError(f"{op}: {shown(spec)} names no device; {meant}")
    _specs[spec] = found = _interned.setdefault(key, Device(*key))
    return found


def _key(spec: str) -> tuple[str, int] | None:
    """Type and index of the device of this name; None where it names none."""
    match = _SPEC.fullmatch(spec)
    return None if match is None else (match[1], int(match[2] or 0))


def default_device() -> Device:
    """The device of tensors made without `device=`.

    `with dt.device("opencl"):` chose it, else `set_default_device`, else the variable
    DOVETAIL_DEFAULT_DEVICE; else it is "cpu". Where no backend for that is installed it is
    "reference", the slow interpreter of the core, and one `SlowDeviceWarning` says so.

    >>> import dovetail as dt
    >>> dt.zeros(1, device=dt.default_device()).device is dt.default_device()
    True
    """
    return settings.current().device or _default or set_default_device(_chosen())


def _chosen() -> str:
    """What the environment names.

    A device that is not there is an error when it is used: nothing runs elsewhere because of that.
    """
    spec = environment.text(VARIABLE)
    if spec is not None and _SPEC.fullmatch(spec):
        return spec
    if spec is not None:
        environment.nonsense(VARIABLE, spec, "the name of a device", f"{DEFAULT} is used")
    return callbacks.usual_device_type()


@named(widen=False)
def set_default_device(spec: Device | str) -> Device:
    """Makes `spec` the default device of this process, and returns it.

    It belongs to the process, not to a context: threads that are started to load or to compute
    are to make tensors where the program said. It is opened when it is first used.
    Raises: DeviceError for a malformed name.

    >>> import dovetail as dt
    >>> before = dt.default_device()
    >>> dt.set_default_device("reference")
    device("reference")
    >>> dt.zeros(2).device, dt.set_default_device(before) is before
    (device("reference"), True)
    """
    global _default
    _default = device(spec, "set_default_device")
    return _default


def known_types() -> Iterable[str]:
    """Return the installed device types."""
    return callbacks.known_device_types()


def opened(dev: Device) -> Opened:
    """What stands behind `dev`, opened now if need be."""
    found: Opened | None = dev.opened
    if found is not None:
        return found
    return callbacks.open_device(dev)


def usable(spec: Device | str | None = None, op: str = "device") -> Device:
    """The device named by `spec`, opened: for whoever is about to put something there.

    Raises: DeviceError, UnavailableError or PluginError where there is no such device to be had.
    """
    found = device(spec, op)
    opened(found)
    return found


def opened_devices() -> list[Device]:
    """The devices that have been opened so far."""
    return [dev for dev in list(_interned.values()) if dev.opened is not None]
