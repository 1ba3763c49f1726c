"""A plugin that needs a later minor version of the interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.extend import BackendInfo, DeviceInfo, hookimpl


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    return BackendInfo("newer", "1", (1, 99))


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Any:
    return [DeviceInfo("newer", 0, "nothing", "nothing-1")]


@hookimpl
def dovetail_open(info: DeviceInfo) -> Any:
    raise NotImplementedError
