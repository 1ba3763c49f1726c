"""A plugin that waits for a program that never ends and outlives its parent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from dovetail.extend import BackendInfo, DeviceInfo, hookimpl


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    return BackendInfo("hanging_child", "1")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Any:
    print("asking", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"])


@hookimpl
def dovetail_open(info: DeviceInfo) -> Any:
    raise NotImplementedError
