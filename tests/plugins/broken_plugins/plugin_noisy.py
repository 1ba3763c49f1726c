"""A working plugin that prints at import, in its hooks, and at exit, as many drivers do."""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dovetail.backend.reference import ReferenceBackend
from dovetail.extend import Backend, BackendInfo, DeviceInfo, hookimpl

print("Welcome to NOISY!", end="")
atexit.register(print, "{}\nGoodbye.")


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    return BackendInfo("noisy", "1")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Sequence[DeviceInfo]:
    print("probing ...", end="")
    return [replace(ReferenceBackend.info, type="noisy")]


@hookimpl
def dovetail_open(info: DeviceInfo) -> Backend:
    return ReferenceBackend()
