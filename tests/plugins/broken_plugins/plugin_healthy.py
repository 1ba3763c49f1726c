"""A healthy plugin: two devices, each a reference interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dovetail.backend.reference import ReferenceBackend
from dovetail.extend import Backend, BackendInfo, DeviceInfo, DType, float32, hookimpl


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    return BackendInfo("healthy", "1.2")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Sequence[DeviceInfo]:
    count = int(config.get("count", "2"))
    return [replace(ReferenceBackend.info, type="healthy", index=i) for i in range(count)]


@hookimpl
def dovetail_open(info: DeviceInfo) -> Backend:
    return ReferenceBackend()


@hookimpl
def dovetail_library_calls() -> Mapping[tuple[str, DType], Callable[..., Any]]:
    return {("matmul", float32): len}


@hookimpl
def dovetail_diagnostics() -> Mapping[str, str]:
    return {"driver": "42"}
