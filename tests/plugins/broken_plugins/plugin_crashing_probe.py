"""A plugin whose probe ends its process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from dovetail.extend import BackendInfo, DeviceInfo, hookimpl


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    return BackendInfo("crashing_probe", "1")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Any:
    os._exit(7)


@hookimpl
def dovetail_open(info: DeviceInfo) -> Any:
    raise NotImplementedError
