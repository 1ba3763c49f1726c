"""A plugin without a device on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.extend import BackendInfo, DeviceInfo, Unavailable, hookimpl


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    return BackendInfo("unavailable", "1")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Any:
    return Unavailable("no such card", "buy one")


@hookimpl
def dovetail_open(info: DeviceInfo) -> Any:
    raise NotImplementedError
