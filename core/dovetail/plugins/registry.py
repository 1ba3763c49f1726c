"""Plugins: how a device type becomes a backend. Discovery, life cycle, diagnosis.

Discovery reads package metadata only. A plugin is imported, checked and probed when its device type
is first named, each in its own try, so that a broken one harms nobody who does not ask for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module

import numpy as np

from .. import environment
from ..arguments import shown
from ..backend import diskcache
from ..backend.interface import INTERFACE, Backend, DeviceInfo, Unavailable
from ..device_class import DEFAULT, VARIABLE, Device, device
from ..errors import DeviceError, PluginError, SlowDeviceWarning
from . import answers
from .companion import accompanied
from .entry import GROUP, GROUPS, Entry, installed, offers
from .hooks import REQUIRED, Hooks
from .limited import call_limited
from .opened import Opened
from .origin import obtain
from .plugin_registry import PluginRegistry, nearest
from .record import BROKEN, Record, State, line

__all__ = ["devices", "installed", "open_device", "records"]

# Plugins that come with the core: data, loaded by the same path as an installed one.
BUILT_IN = (Entry("reference", "dovetail.plugins.builtin"),)
_ALLOWED, _STRICT = "DOVETAIL_BACKENDS", "DOVETAIL_STRICT_PLUGINS"


class DeviceRegistry(PluginRegistry):
    """All device types of one process."""

    what = "device type"
    groups, interface, hooks = GROUPS, INTERFACE, Hooks
    info_hook, required = REQUIRED[0], REQUIRED[1:]
    is_limited = True

    def __init__(
        self,
        find: Callable[[], Iterable[Entry]] = installed,
        environ: Mapping[str, str] = os.environ,
        built_in: Iterable[Entry] = BUILT_IN,
    ) -> None:
        super().__init__(find, environ, built_in)

    def _discover(self) -> dict[str, Record]:
        found = super()._discover()
        self._check_listed(found)
        return found

    def _record(self, name: str, entries: list[Entry]) -> Record:
        record = super()._record(name, entries)
        if not self._allowed(record):
            reason = f"{_ALLOWED}={self._environ[_ALLOWED]} leaves it out"
            record.fail(State.BLOCKED, reason, f"add {name} to that list")
        return record

    def _allowed(self, record: Record) -> bool:
        listed = self._listed()
        return (
            not listed or record.type in listed or all(e in self._built_in for e in record.entries)
        )

    def _listed(self) -> list[str]:
        """The device types that may be loaded; none: all."""
        given = environment.text(_ALLOWED, self._environ) or ""
        return [s.strip() for s in given.split(",") if s.strip()]

    def _check_listed(self, known: Iterable[str]) -> None:
        """A list that allows nothing that there is has been misspelt. It stays in force."""
        listed, there = self._listed(), ", ".join(known)
        if listed and not {*listed} & {*known}:
            wanted = f"a list of installed device types ({there})"
            given = self._environ[_ALLOWED]
            environment.nonsense(_ALLOWED, given, wanted, "only what is built in can be used")

    # --- one plugin
    def accept(self, record: Record, info: object) -> None:
        """Take the info of a plugin and probe it, or record why the plugin cannot be used.

        Raises: PluginError for an info that is none.
        """
        checked = answers.backend_info(info)
        if self.check_description(record, checked.type, checked.minimum_interface, "backend"):
            self._probe(record)

    def _probe(self, record: Record) -> None:
        found, error = call_limited("dovetail_probe", partial(self._probed, record))
        if error is not None:
            hint = f"tell the authors of {record.distribution}"
            record.fail(State.PROBE_FAILED, line(error), hint, error)
        elif isinstance(found, Unavailable):
            record.fail(State.UNAVAILABLE, found.reason, found.hint)
        else:
            record.devices, record.state = found, State.AVAILABLE

    def _probed(self, record: Record) -> tuple[DeviceInfo, ...] | Unavailable:
        config = self.config(record.type)
        return answers.probed(record.type, self.call(record, "dovetail_probe", config=config))

    def config(self, type: str) -> dict[str, str]:
        """The settings for one device type, from the environment.

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
        """Every device that can be used here; plugins that cannot are left out (see `records`)."""
        records = [self.probe(name) for name in self.records()]
        return [device(f"{d.type}:{d.index}") for r in records for d in r.devices]

    def open(self, dev: Device) -> Opened:
        """The opened device, the same one each time.

        Raises: DeviceError for an unknown type or index, UnavailableError with reason and hint,
        PluginError with the plugin's own traceback."""
        return dev.opened or self._open(dev, ())

    def _open(self, dev: Device, waiting: tuple[Device, ...]) -> Opened:
        """Return the opened device. `waiting`: the devices of which it is the companion."""
        if environment.flag(_STRICT, self._environ):
            self._insist()
        record = self.probe(dev.type)
        if record.state not in (State.AVAILABLE, State.OPEN, State.OPEN_FAILED):
            raise record.error()
        info = next((d for d in record.devices if d.index == dev.index), None)
        if info is None:
            have = ", ".join(f"{d.type}:{d.index} ({d.name})" for d in record.devices)
            raise DeviceError(f'there is no device "{dev.type}:{dev.index}"; there are: {have}')
        _import_early()
        try:
            companion = self._companion(dev, info.companion, (*waiting, dev))
            with record.lock:  # of this type alone: another thread may open another one
                opened = dev.opened or self._open_with_companion(record, info, companion)
                dev.opened = opened
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            record.fail(State.OPEN_FAILED, line(error), "run `dovetail doctor`", error)
            raise record.error() from error
        record.state, record.reason, record.hint, record.traceback = State.OPEN, "", "", ""
        return opened

    def _open_with_companion(
        self, record: Record, info: DeviceInfo, companion: Opened | None
    ) -> Opened:
        """Call the plugin's `dovetail_open`; return the device, with a companion if it has one."""
        dev = device(f"{info.type}:{info.index}")
        if info in record.opening:  # by this thread, which has the lock
            raise PluginError(f"dovetail_open uses the device that it opens, {dev}")
        record.opening.append(info)
        try:
            backend = self.call(record, "dovetail_open", info=info, config=self.config(dev.type))
        finally:
            record.opening.remove(info)
        if not isinstance(backend, Backend):
            raise TypeError(f"dovetail_open returned {backend!r}, not a Backend")
        own = answers.routines("library_calls", backend.library_calls())
        extra = self.call(record, "dovetail_library_calls", device=dev)
        calls = {**own, **answers.routines("dovetail_library_calls", extra)}
        return accompanied(dev, backend, companion, calls)

    def _companion(self, dev: Device, name: object, waiting: tuple[Device, ...]) -> Opened | None:
        """Return the companion that a device names, opened. Raises: DeviceError."""
        if name is None:
            return None
        said = f"{dev} names {shown(name)} as its companion (DeviceInfo.companion)"
        if not isinstance(name, str):
            raise DeviceError(f'{said}: that is to be the name of a device, such as "reference"')
        try:
            companion = device(name, "DeviceInfo.companion")
            if companion in waiting:
                way = " -> ".join(map(str, [*waiting[waiting.index(companion) :], companion]))
                raise DeviceError(f"by way of companions it would be its own: {way}")
            return companion.opened or self._open(companion, waiting)
        except (DeviceError, PluginError) as error:
            raise DeviceError(f"{said}, which cannot be had: {error}") from error

    def _insist(self) -> None:
        for name in self.records():
            record = self.probe(name)
            if record.state in BROKEN:
                raise record.error()

    def unknown(self, name: str) -> DeviceError:
        """See `PluginRegistry.unknown`."""
        known = list(self.records())
        near = [] if name == "gpu" else nearest(name, known)  # which is not near to "cpu"
        text = f'no device type "{name}" is installed; known: {", ".join(known)}.'
        if near:
            text += f' Did you mean "{near[0]}"?'
        if self._environ.get(VARIABLE, "").partition(":")[0] == name:
            text += f" {VARIABLE} asks for it."
        if name in offers():
            return DeviceError(f"{text} To have it: {obtain(offers()[name])}")
        return DeviceError(
            f'{text} A device comes with a package that has an entry point in the group "{GROUP}"; '
            "`dovetail doctor` shows those that were found."
        )


def _import_early() -> None:
    """Has imported what computing needs: nothing can be while Python ends.

    And then a `__del__` may compute. NumPy's methods import when first called.
    """
    diskcache.ready()
    a = np.zeros(1, bool)
    a.sum(), a.any(), a.all(), a.max(), a.min(), a.mean(), a.prod(), str(a), repr(a)


registry = DeviceRegistry()


def open_device(dev: Device | str) -> Opened:
    """The opened device `dev`, the same one each time.

    It has a backend, an allocator and library calls.
    Raises: DeviceError for an unknown type or index, UnavailableError with reason and hint,
    PluginError with the plugin's own traceback.

    >>> import dovetail as dt
    >>> dt.plugins.open_device("reference").device
    device("reference")
    """
    return registry.open(device(dev))


class Devices(list[Device]):
    """A list of devices, of which a notebook shows a table."""

    def _repr_html_(self) -> str:
        found: str = import_module("..insight.device_pages", __package__).html(self)
        return found


def devices() -> list[Device]:
    """Every device that can be used on this machine.

    Plugins are imported and probed for it; those that cannot be used are left out (`dovetail
    doctor` says why).

    >>> import dovetail as dt
    >>> dt.device("reference") in dt.devices()
    True
    """
    return Devices(registry.devices())


def records() -> list[Record]:
    """What is known of every plugin, each probed: what `dovetail doctor` prints.

    >>> import dovetail as dt
    >>> [r.state.value for r in dt.plugins.records() if r.type == "reference"]
    ['open']
    """
    return [registry.probe(name) for name in registry.records()]


def usual() -> str:
    """The type of the default device where nobody has chosen one: "cpu".

    Where nobody brings that, the interpreter, so that the core alone works; one warning says so.
    """
    known = registry.records()
    if DEFAULT in known:
        return DEFAULT
    slow = BUILT_IN[0].name
    others = [name for name in known if name != slow]
    text = (
        f'no backend for the device "{DEFAULT}" is installed: {slow}, a slow interpreter, is used'
    )
    if DEFAULT in offers():
        text += f"; for a fast one: {obtain(offers()[DEFAULT])}"
    if others:
        text += f'; or choose one that is there: dovetail.set_default_device("{others[0]}")'
    environment.say_once(f"{text} (to keep {slow}, {VARIABLE}={slow})", SlowDeviceWarning)
    return slow


def __dir__() -> list[str]:
    return __all__
