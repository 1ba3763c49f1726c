"""Devices: the places of memory and of work.

A device is a name and an index; a plugin implements it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from . import callbacks, environment, settings
from .argument_checks import shown
from .compat import hints
from .declarations import public
from .errors import DeviceError
from .records import DeviceRecord

if TYPE_CHECKING:
    from .plugins.device_handle import OpenedDevice

__all__ = ["Device", "default_device", "set_default_device"]

# data, not a branch: the only place in the core that spells a backend's device type
DEFAULT_DEVICE_TYPE = "cpu"
DEFAULT_DEVICE_VARIABLE = "DOVETAIL_DEFAULT_DEVICE"
_SPEC = re.compile(r"([a-z][a-z0-9_]{0,63})(?::([0-9]{1,9}))?")


class Device(DeviceRecord):
    """One device, such as `dt.device("opencl:1")`; instances are unique, so `is` compares them.

    It equals its names, too, with the hash of the shortest. As a context it is the default device,
    of this thread, or asyncio task, alone.
    The attribute `opened` is None until the first use, then the open device
    (`plugins.OpenedDevice`), so that the hot path is `dev.opened or open_device(dev)`.

    - `type`: the name of the device type, such as "opencl".
    - `index`: the number of the device of its type, from 0.

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
    opened: OpenedDevice | None
    changes: Mapping[str, Device]  # of the settings, inside

    def __init__(self, type: str, index: int) -> None:
        self.type, self.index, self.opened = type, index, None
        self.changes, self._hash = {"device": self}, hash(str(self))

    def __str__(self) -> str:
        return self.type if self.index == 0 else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f'device("{self}")'

    if not TYPE_CHECKING:  # a type checker must report misspelt names

        def __getattr__(self, name: str) -> NoReturn:
            raise hints.missing_attribute(self, name)

    __hash__ = DeviceRecord.__hash__  # a class with an `__eq__` does not inherit it

    def __eq__(self, other: object) -> bool:
        if type(other) is Device:
            return self is other
        return isinstance(other, str) and _parse_key(other) == (self.type, self.index)

    def _repr_html_(self) -> str:
        """Return the HTML table of the device that notebooks show."""
        html: str = import_module(".insight.device_pages", __package__).html([self])
        return html

    def __enter__(self) -> Device:
        settings.enter_block(self)
        return self

    def __exit__(self, *exc: object) -> None:
        settings.leave_block(self)

    def __reduce__(self) -> tuple[object, ...]:
        return (device, (str(self),))


_interned: dict[tuple[str, int], Device] = {}
_specs: dict[str, Device] = {}  # spellings already parsed; "cpu" and "cpu:0" are one device
process_default: Device | None = None  # of all contexts, once it is chosen


def device(spec: Device | str | None = None, op: str = "device") -> Device:
    """Return the device of a name: "opencl", "opencl:1", a `Device`, or None for the default.

    A name neither opens a device nor checks that it exists. `op`: the name for the error.
    Raises: DeviceError for a malformed name, naming `op`.

    >>> import dovetail as dt
    >>> dt.device("opencl:1")
    device("opencl:1")
    """
    if isinstance(spec, Device):
        return spec
    if spec is None:
        return default_device()
    parsed = _specs.get(spec) if isinstance(spec, str) else None
    return parsed or _parse_device(spec, op)


def _parse_device(spec: Any, op: str) -> Device:
    """Return the unique device of a name; cache the spelling. Raises: DeviceError if invalid."""
    key = _parse_key(spec) if isinstance(spec, str) else None
    if key is None:
        lower = spec.lower() if isinstance(spec, str) else ""
        hint = f'; did you mean "{lower}"?' if _parse_key(lower) else ""
        raise DeviceError(
            f'{op}: expected a device name such as "cpu" or "opencl:1", got {shown(spec)}{hint}'
        )
    _specs[spec] = interned = _interned.setdefault(key, Device(*key))
    return interned


def _parse_key(spec: str) -> tuple[str, int] | None:
    """Return the type and index that a name denotes, or None for a malformed name."""
    match = _SPEC.fullmatch(spec)
    return None if match is None else (match[1], int(match[2] or 0))


def default_device() -> Device:
    """Return the device of tensors that are made without `device=`, chosen at the first use.

    It is the device of `with dt.device("opencl"):`, else of `set_default_device`, else of the
    variable DOVETAIL_DEFAULT_DEVICE; else it is "cpu". If no backend for "cpu" is installed, it is
    "reference", the slow interpreter of the core, and one `SlowDeviceWarning` says so.

    >>> import dovetail as dt
    >>> dt.zeros(1, device=dt.default_device()).device is dt.default_device()
    True
    """
    return settings.current().device or process_default or _set_default(device(_choose_default()))


def _choose_default() -> str:
    """Return the device name of the environment, or the usual one; warn about an invalid name.

    A device that does not exist is an error at its first use: no other device replaces it.
    """
    spec = environment.read_text(DEFAULT_DEVICE_VARIABLE)
    if spec is not None and _SPEC.fullmatch(spec):
        return spec
    if spec is not None:
        environment.warn_invalid(
            DEFAULT_DEVICE_VARIABLE, spec, "the name of a device", f"using {DEFAULT_DEVICE_TYPE}"
        )
    return callbacks.default_device_type()


@public(widen=False)
def set_default_device(spec: Device | str) -> Device:
    """Make `spec` the default device of this process, and return it.

    It belongs to the process, not to a context: threads that load or compute must make tensors on
    the device that the program chose. It is opened, so that a device that does not exist is an
    error here; the default of the variable DOVETAIL_DEFAULT_DEVICE is opened at its first use.
    Raises: DeviceError for a malformed name or a device that does not exist, UnavailableError,
    PluginError.

    >>> import dovetail as dt
    >>> before = dt.default_device()
    >>> dt.set_default_device("reference")
    device("reference")
    >>> dt.zeros(2).device, dt.set_default_device(before) is before
    (device("reference"), True)
    """
    return _set_default(usable(spec, "set_default_device"))


def _set_default(dev: Device) -> Device:
    """Store the default device of the process, and return it."""
    global process_default
    process_default = dev
    return dev


def known_types() -> Iterable[str]:
    """Return the names of the installed device types; plugins are not imported."""
    return callbacks.known_device_types()


def opened(dev: Device) -> OpenedDevice:
    """Return the open device of `dev`; open it if need be."""
    handle: OpenedDevice | None = dev.opened
    if handle is not None:
        return handle
    return callbacks.open_device(dev)


def usable(spec: Device | str | None = None, op: str = "device") -> Device:
    """Return the device named by `spec`, opened and ready for use.

    Raises: DeviceError, UnavailableError or PluginError where there is no such device to be had.
    """
    dev = device(spec, op)
    opened(dev)
    return dev


def opened_devices() -> list[Device]:
    """Return the devices that have been opened so far."""
    return [dev for dev in list(_interned.values()) if dev.opened is not None]
