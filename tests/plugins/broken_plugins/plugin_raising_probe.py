"""A plugin whose probe raises instead of returning Unavailable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.extend import BackendInfo, DeviceInfo, hookimpl


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    return BackendInfo("raising_probe", "1")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Any:
    raise OSError("the bus is on fire")


@hookimpl
def dovetail_open(info: DeviceInfo) -> Any:
    raise NotImplementedError
