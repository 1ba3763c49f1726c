"""What a backend plugin implements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import pluggy

from ..backend.interface import Backend, BackendInfo, DeviceInfo, Unavailable
from ..device_class import Device
from .opened import LibraryCalls

hookspec = pluggy.HookspecMarker("dovetail")
hookimpl = pluggy.HookimplMarker("dovetail")


class Hooks:
    """What a backend plugin implements, as module-level functions marked with `hookimpl`."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_backend_info() -> BackendInfo:  # type: ignore[empty-body]  # pluggy calls plugins'
        """Pure data; must not touch the device."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_probe(config: Mapping[str, str]) -> Sequence[DeviceInfo] | Unavailable:  # type: ignore[empty-body]  # pluggy calls plugins'
        """The devices there are, or why there are none.

        `config` holds DOVETAIL_<TYPE>_<KEY> as {key: value}.
        """

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_open(info: DeviceInfo, config: Mapping[str, str]) -> Backend:  # type: ignore[empty-body]  # pluggy calls plugins'
        """The backend of one probed device."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_library_calls(device: Device) -> LibraryCalls:  # type: ignore[empty-body]  # pluggy calls plugins'
        """Optional: vendor routines by op and dtype, beside `Backend.library_calls`."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_diagnostics() -> Mapping[str, str]:  # type: ignore[empty-body]  # pluggy calls plugins'
        """Optional: lines for `dovetail doctor`, e.g. the driver's version."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_conformance() -> Mapping[str, str]:  # type: ignore[empty-body]  # pluggy calls plugins'
        """Optional: declared gaps, {conformance case: reason}."""


REQUIRED = ("dovetail_backend_info", "dovetail_probe", "dovetail_open")
HOOKS = tuple(name for name in vars(Hooks) if name.startswith("dovetail_"))


# --- the same for type checkers: `plugin: BackendHooks = dovetail_mine.plugin` checks a module's


class BackendHooks(Protocol):
    """The hooks that every backend plugin has; a module is one, if its functions are these."""

    def dovetail_backend_info(self) -> BackendInfo:
        """Pure data; must not touch the device."""

    def dovetail_probe(self, config: Mapping[str, str]) -> Sequence[DeviceInfo] | Unavailable:
        """The devices there are, or why there are none."""

    def dovetail_open(self, info: DeviceInfo, config: Mapping[str, str]) -> Backend:
        """The backend of one probed device."""


class LibraryCallsHook(Protocol):
    """`dovetail_library_calls`: vendor routines by (op, dtype)."""

    def __call__(self, device: Device) -> LibraryCalls:
        """Beside those of `Backend.library_calls`."""


class DiagnosticsHook(Protocol):
    """`dovetail_diagnostics`: what `dovetail doctor` shows beside the state, by names."""

    def __call__(self) -> Mapping[str, str]:
        """Such as {"driver": "12.4"}."""


class ConformanceHook(Protocol):
    """`dovetail_conformance`: what the device cannot do, {pattern of case names: reason}."""

    def __call__(self) -> Mapping[str, str]:
        """Strict in both directions."""
