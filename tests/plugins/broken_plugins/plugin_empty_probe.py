"""A plugin that finds no device and gives no reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.extend import BackendInfo, DeviceInfo, hookimpl


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    return BackendInfo("empty_probe", "1")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Any:
    return []


@hookimpl
def dovetail_open(info: DeviceInfo) -> Any:
    raise NotImplementedError
