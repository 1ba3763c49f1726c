"""What a backend plugin implements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pluggy

from ..backend.interface import Backend, BackendInfo, DeviceInfo, Unavailable
from ..device import Device
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
