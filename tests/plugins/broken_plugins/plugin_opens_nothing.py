"""A plugin whose open hook returns no backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.extend import BackendInfo, DeviceInfo, hookimpl


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    return BackendInfo("opens_nothing", "1")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Any:
    return [DeviceInfo("opens_nothing", 0, "nothing", "nothing-1")]


@hookimpl
def dovetail_open(info: DeviceInfo) -> Any:
    return "a backend"
