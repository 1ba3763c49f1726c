"""A plugin whose driver reads an invalid address."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import Any

from dovetail.extend import BackendInfo, DeviceInfo, hookimpl


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    return BackendInfo("dying_probe", "1")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Any:
    os.kill(os.getpid(), signal.SIGSEGV)


@hookimpl
def dovetail_open(info: DeviceInfo) -> Any:
    raise NotImplementedError
