"""The hooks of backend plugins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import pluggy

from ..backend.interface import Backend, BackendInfo, DeviceInfo, Unavailable
from ..device_class import Device
from .device_handle import LibraryCalls

hookspec = pluggy.HookspecMarker("dovetail")
hookimpl = pluggy.HookimplMarker("dovetail")


class BackendHookSpecs:
    """The hooks of a backend plugin: module-level functions marked with `hookimpl`."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_backend_info() -> BackendInfo:  # type: ignore[empty-body]  # pluggy calls plugins'
        """Return the description of the plugin: pure data, without touching the device."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_probe(config: Mapping[str, str]) -> Sequence[DeviceInfo] | Unavailable:  # type: ignore[empty-body]  # pluggy calls plugins'
        """Return the devices, or the reason why there are none.

        `config` holds DOVETAIL_<TYPE>_<KEY> as {key: value}.
        """

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_open(info: DeviceInfo, config: Mapping[str, str]) -> Backend:  # type: ignore[empty-body]  # pluggy calls plugins'
        """Return the backend of one probed device."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_library_calls(device: Device) -> LibraryCalls:  # type: ignore[empty-body]  # pluggy calls plugins'
        """Return vendor routines by op and dtype, besides `Backend.library_calls`. Optional."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_diagnostics() -> Mapping[str, str]:  # type: ignore[empty-body]  # pluggy calls plugins'
        """Return lines for `dovetail doctor`, for example the driver's version. Optional."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_conformance() -> Mapping[str, str]:  # type: ignore[empty-body]  # pluggy calls plugins'
        """Return declared gaps: {conformance case: reason}. Optional."""


REQUIRED_HOOKS = ("dovetail_backend_info", "dovetail_probe", "dovetail_open")
HOOKS = tuple(name for name in vars(BackendHookSpecs) if name.startswith("dovetail_"))


# --- for type checkers: `plugin: BackendHooks = dovetail_mine.plugin` checks a module's hooks


class BackendHooks(Protocol):
    """The required hooks of a backend plugin; a module with these functions satisfies it."""

    def dovetail_backend_info(self) -> BackendInfo:
        """Return the description of the plugin: pure data, without touching the device."""

    def dovetail_probe(self, config: Mapping[str, str]) -> Sequence[DeviceInfo] | Unavailable:
        """Return the devices, or the reason why there are none.

        - `config`: the values of the variables DOVETAIL_<TYPE>_<KEY> by key.
        """

    def dovetail_open(self, info: DeviceInfo, config: Mapping[str, str]) -> Backend:
        """Return the backend of one probed device.

        - `info`: one of the devices that `dovetail_probe` returned.
        - `config`: the values of the variables DOVETAIL_<TYPE>_<KEY> by key.
        """


class LibraryCallsHook(Protocol):
    """`dovetail_library_calls`: vendor routines by (op, dtype)."""

    def __call__(self, device: Device) -> LibraryCalls:
        """Return vendor routines, besides those of `Backend.library_calls`."""


class DiagnosticsHook(Protocol):
    """`dovetail_diagnostics`: named lines for `dovetail doctor`."""

    def __call__(self) -> Mapping[str, str]:
        """Return the lines, such as {"driver": "12.4"}."""


class ConformanceHook(Protocol):
    """`dovetail_conformance`: declared gaps of the device, {pattern of case names: reason}."""

    def __call__(self) -> Mapping[str, str]:
        """Return the gaps. A declared gap that works is an error, too."""
