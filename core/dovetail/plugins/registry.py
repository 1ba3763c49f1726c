"""The registry of backend plugins: discovery, life cycle, diagnosis.

Discovery reads package metadata only. A plugin is imported, checked and probed when its device
type is first used, each in a try of its own, so a broken plugin affects only users of its name.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from .. import callbacks, environment
from ..argument_checks import shown
from ..backend import diskcache
from ..backend.interface import INTERFACE, Backend, DeviceInfo, Unavailable
from ..device_class import DEFAULT_DEVICE_TYPE, DEFAULT_DEVICE_VARIABLE, Device, device
from ..errors import DeviceError, PluginError, SlowDeviceWarning
from ..install_source import backend_distributions, install_command
from ..lazy_import import LazyModule
from . import validate_hooks
from .device_handle import OpenedDevice
from .entry import GROUP_PREFIX, PluginEntry, installed
from .hooks import REQUIRED_HOOKS, BackendHookSpecs
from .limited import call_with_time_limit
from .plugin_registry import PluginRegistry, nearest_names
from .plugin_state import BROKEN_STATES, PluginRecord, PluginState, error_line

if TYPE_CHECKING:
    from . import fallback_device
else:
    fallback_device = LazyModule(".fallback_device", __package__)

__all__ = ["devices", "installed", "open_device", "records"]

# Plugins of the core, loaded in the same way as installed ones.
BUILT_IN = (PluginEntry("reference", "dovetail.plugins.builtin"),)
_ALLOW_VARIABLE, _STRICT_VARIABLE = "DOVETAIL_BACKENDS", "DOVETAIL_STRICT_PLUGINS"


class DeviceRegistry(PluginRegistry):
    """The backend plugins of one process."""

    plugin_kind = "device type"
    groups, interface, hooks = GROUP_PREFIX, INTERFACE, BackendHookSpecs
    info_hook, required = REQUIRED_HOOKS[0], REQUIRED_HOOKS[1:]
    has_time_limit = True

    def __init__(
        self,
        find: Callable[[], Iterable[PluginEntry]] = installed,
        environ: Mapping[str, str] = os.environ,
        built_in: Iterable[PluginEntry] = BUILT_IN,
    ) -> None:
        super().__init__(find, environ, built_in)

    def _discover(self) -> dict[str, PluginRecord]:
        """Return a record of each name; warn if the allow list excludes all installed plugins."""
        records = super()._discover()
        self._warn_if_nothing_allowed(records)
        return records

    def _create_record(self, name: str, entries: list[PluginEntry]) -> PluginRecord:
        """Create a device type's record, blocked if not built in and missing in an allow list."""
        record = super()._create_record(name, entries)
        if not self._is_allowed(record):
            reason = f"{_ALLOW_VARIABLE}={self._environ[_ALLOW_VARIABLE]} excludes it"
            record.fail(PluginState.BLOCKED, reason, f"add {name} to that list")
        return record

    def _is_allowed(self, record: PluginRecord) -> bool:
        """Return True if the allow list is empty or names this type, and for built-in plugins."""
        allow_list = self._read_allow_list()
        return (
            not allow_list
            or record.type in allow_list
            or all(e in self._built_in for e in record.entries)
        )

    def _read_allow_list(self) -> list[str]:
        """Return the device types that may be loaded; an empty list allows all."""
        text = environment.read_text(_ALLOW_VARIABLE, self._environ) or ""
        return [s.strip() for s in text.split(",") if s.strip()]

    def _warn_if_nothing_allowed(self, types: Iterable[str]) -> None:
        """Warn if the allow list has no installed device type; it stays in force."""
        allow_list, installed_types = self._read_allow_list(), ", ".join(types)
        if allow_list and not {*allow_list} & {*types}:
            expected = f"a list of installed device types ({installed_types})"
            value = self._environ[_ALLOW_VARIABLE]
            environment.warn_invalid(
                _ALLOW_VARIABLE, value, expected, "only built-in devices can be used"
            )

    # --- one plugin
    def accept_info(self, record: PluginRecord, info: object) -> None:
        """Validate the info of a plugin and probe its devices, or mark its record as failed.

        Raises: PluginError for an invalid info.
        """
        checked = validate_hooks.validate_backend_info(info)
        if self.check_description(record, checked.type, checked.minimum_interface, "backend"):
            self._probe(record)

    def _probe(self, record: PluginRecord) -> None:
        """Call the plugin's probe within the time limit; store its devices or mark it failed."""
        devices, error = call_with_time_limit("dovetail_probe", partial(self._call_probe, record))
        if error is not None:
            hint = f"tell the authors of {record.distribution}"
            record.fail(PluginState.PROBE_FAILED, error_line(error), hint, error)
        elif isinstance(devices, Unavailable):
            record.fail(PluginState.UNAVAILABLE, devices.reason, devices.hint)
        else:
            record.devices, record.state = devices, PluginState.AVAILABLE

    def _call_probe(self, record: PluginRecord) -> tuple[DeviceInfo, ...] | Unavailable:
        """Call and validate the plugin's probe. Raises: PluginError for an invalid answer."""
        config = self.config(record.type)
        return validate_hooks.validate_probe(
            record.type, self.call(record, "dovetail_probe", config=config)
        )

    def config(self, type: str) -> dict[str, str]:
        """Return the settings for one device type, from the environment.

        DOVETAIL_CPU_THREADS=4 is {"threads": "4"}.
        """
        prefix = f"DOVETAIL_{type.upper()}_"
        return {
            k.removeprefix(prefix).lower(): v
            for k, v in self._environ.items()
            if k.startswith(prefix)
        }

    # --- devices
    def devices(self) -> list[Device]:
        """Probe all plugins, and return every usable device; skip unusable plugins."""
        records = [self.probe(name) for name in self.records()]
        return [device(f"{d.type}:{d.index}") for r in records for d in r.devices]

    def open(self, dev: Device) -> OpenedDevice:
        """Open a device; return the same object each time.

        Raises: DeviceError for an unknown type or index, UnavailableError with reason and hint,
        PluginError with the plugin's own traceback.
        """
        return dev.opened or self._open(dev, ())

    def _open(self, dev: Device, opening_devices: tuple[Device, ...]) -> OpenedDevice:
        """Open a device and its companions, or mark the record OPEN_FAILED and raise its error.

        `opening_devices`: devices that have this one as companion.
        """
        if environment.read_flag(_STRICT_VARIABLE, self._environ):
            self._require_working_plugins()
        record = self.probe(dev.type)
        if record.state not in (PluginState.AVAILABLE, PluginState.OPEN, PluginState.OPEN_FAILED):
            raise record.error()
        info = next((d for d in record.devices if d.index == dev.index), None)
        if info is None:
            available = ", ".join(f"{d.type}:{d.index} ({d.name})" for d in record.devices)
            raise DeviceError(f'no device "{dev.type}:{dev.index}" exists; available: {available}')
        _import_early()
        try:
            companion = self._find_or_open_companion(dev, info.companion, (*opening_devices, dev))
            with record.lock:  # another thread may open a device of another type
                opened = dev.opened or self._call_open_hook(record, info, companion)
                dev.opened = opened
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            record.fail(PluginState.OPEN_FAILED, error_line(error), "run `dovetail doctor`", error)
            raise record.error() from error
        record.state, record.reason, record.hint, record.traceback = PluginState.OPEN, "", "", ""
        return opened

    def _call_open_hook(
        self, record: PluginRecord, info: DeviceInfo, companion: OpenedDevice | None
    ) -> OpenedDevice:
        """Call the plugin's `dovetail_open`, and return the state of the open device."""
        dev = device(f"{info.type}:{info.index}")
        if info in record.opening:  # this thread has the lock, so it is a recursive call
            raise PluginError(f"dovetail_open must not use the device that it opens, {dev}")
        record.opening.append(info)
        try:
            backend = self.call(record, "dovetail_open", info=info, config=self.config(dev.type))
        finally:
            record.opening.remove(info)
        if not isinstance(backend, Backend):
            raise TypeError(f"dovetail_open must return a Backend, got {backend!r}")
        own_calls = validate_hooks.validate_routines("library_calls", backend.library_calls())
        extra = self.call(record, "dovetail_library_calls", device=dev)
        calls = {**own_calls, **validate_hooks.validate_routines("dovetail_library_calls", extra)}
        return fallback_device.open_with_companion(dev, backend, companion, calls)

    def _find_or_open_companion(
        self, dev: Device, name: object, opening_devices: tuple[Device, ...]
    ) -> OpenedDevice | None:
        """Open a device's companion; None for no name. Raises: DeviceError if that fails."""
        if name is None:
            return None
        prefix = f"{dev} names {shown(name)} as its companion (DeviceInfo.companion)"
        if not isinstance(name, str):
            raise DeviceError(f'{prefix}; it must be the name of a device, such as "reference"')
        try:
            companion = device(name, "DeviceInfo.companion")
            if companion in opening_devices:
                chain = " -> ".join(
                    map(str, [*opening_devices[opening_devices.index(companion) :], companion])
                )
                raise DeviceError(f"a device must not be its own companion: {chain}")
            return companion.opened or self._open(companion, opening_devices)
        except (DeviceError, PluginError) as error:
            raise DeviceError(f"{prefix}, which cannot be opened: {error}") from error

    def _require_working_plugins(self) -> None:
        """Probe all plugins; raise the error of the first broken one."""
        for name in self.records():
            record = self.probe(name)
            if record.state in BROKEN_STATES:
                raise record.error()

    def unknown_name_error(self, name: str) -> DeviceError:
        """Build the error for a device type that is not installed, with advice."""
        types = list(self.records())
        # "cpu" is no helpful suggestion for it
        near = [] if name == "gpu" else nearest_names(name, types)
        text = f'dovetail has no backend for "{name}"; installed: {", ".join(types)}'
        if near:
            text += f'; did you mean "{near[0]}"?'
        if self._environ.get(DEFAULT_DEVICE_VARIABLE, "").partition(":")[0] == name:
            text += f"; {DEFAULT_DEVICE_VARIABLE} selects it"
        if name in backend_distributions():
            return DeviceError(
                f"{text}; to install it: {install_command(backend_distributions()[name])}"
            )
        return DeviceError(f"{text}; see `dovetail doctor`")


def _import_early() -> None:
    """Import, now or at exit, the modules that later computing needs, and find the disk cache.

    A `__del__` may compute at interpreter exit, when imports fail. NumPy's methods import modules
    at their first call.
    """
    atexit.unregister(callbacks.import_late_modules)  # another device has been opened
    atexit.register(callbacks.import_late_modules)
    diskcache.prepare_cache()
    a = np.zeros(1, bool)
    a.sum(), a.any(), a.all(), a.max(), a.min(), a.mean(), a.prod(), str(a), repr(a)


registry = DeviceRegistry()


def open_device(dev: Device | str) -> OpenedDevice:
    """Open device `dev`; return the same object each time.

    It has a backend, an allocator and library calls.

    - `dev`: a `Device`, or its name.

    Raises: DeviceError for an unknown type or index, UnavailableError with reason and hint,
    PluginError with the plugin's own traceback.

    >>> import dovetail as dt
    >>> dt.plugins.open_device("reference").device
    device("reference")
    """
    return registry.open(device(dev))


class Devices(list[Device]):
    """A list of devices that notebooks show as a table."""

    def _repr_html_(self) -> str:
        """Return the HTML table of the devices that notebooks show."""
        html: str = import_module("..insight.device_pages", __package__).html(self)
        return html


def devices() -> list[Device]:
    """Return every device that can be used on this machine.

    Plugins are imported and probed for it; unusable ones are left out (`dovetail doctor` shows the
    reasons).

    >>> import dovetail as dt
    >>> dt.device("reference") in dt.devices()
    True
    """
    return Devices(registry.devices())


def records() -> list[PluginRecord]:
    """Probe every plugin, and return their records: the data of `dovetail doctor`.

    >>> import dovetail as dt
    >>> [r.state.value for r in dt.plugins.records() if r.type == "reference"]
    ['open']
    """
    return [registry.probe(name) for name in registry.records()]


def default_type() -> str:
    """Return "cpu" if a plugin of that name is installed, else "reference", with a warning.

    A "cpu" plugin that is broken or blocked counts, too. "reference" lets the core work alone.
    """
    records = registry.records()
    if DEFAULT_DEVICE_TYPE in records:
        return DEFAULT_DEVICE_TYPE
    slow = BUILT_IN[0].name
    other_types = [name for name in records if name != slow]
    text = (
        f'no backend for the device "{DEFAULT_DEVICE_TYPE}" is installed; dovetail uses {slow}, a '
        "slow interpreter"
    )
    if distribution := backend_distributions().get(DEFAULT_DEVICE_TYPE):
        text += f"; to install a fast one: {install_command(distribution)}"
    if other_types:
        text += f'; or choose an installed one: dovetail.set_default_device("{other_types[0]}")'
    environment.warn_once(
        f"{text} (to keep {slow}, set {DEFAULT_DEVICE_VARIABLE}={slow})", SlowDeviceWarning
    )
    return slow


def __dir__() -> list[str]:
    return __all__
