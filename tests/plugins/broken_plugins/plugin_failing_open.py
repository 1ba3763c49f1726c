"""A plugin whose device cannot be opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.extend import BackendInfo, DeviceInfo, hookimpl


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    return BackendInfo("failing_open", "1")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Any:
    return [DeviceInfo("failing_open", 0, "nothing", "nothing-1")]


@hookimpl
def dovetail_open(info: DeviceInfo) -> Any:
    raise OSError("the door is locked")
