"""A plugin whose probe never returns."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from dovetail.extend import BackendInfo, DeviceInfo, hookimpl


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    return BackendInfo("hanging_probe", "1")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Any:
    time.sleep(3600)


@hookimpl
def dovetail_open(info: DeviceInfo) -> Any:
    raise NotImplementedError
