"""A plugin whose info names another type than its entry point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.extend import BackendInfo, DeviceInfo, hookimpl


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    return BackendInfo("someone_else", "1")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Any:
    return [DeviceInfo("someone_else", 0, "nothing", "nothing-1")]


@hookimpl
def dovetail_open(info: DeviceInfo) -> Any:
    raise NotImplementedError
