"""A plugin that opens, but whose launches do nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dovetail.backend.reference import ReferenceBackend
from dovetail.extend import Backend, BackendInfo, DeviceInfo, hookimpl


class Idle(ReferenceBackend):
    """A backend that computes nothing."""

    def launch(self, *arguments: Any, **named: Any) -> None:
        pass


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    return BackendInfo("wrong_numbers", "1")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Sequence[DeviceInfo]:
    return [replace(ReferenceBackend.info, type="wrong_numbers")]


@hookimpl
def dovetail_open(info: DeviceInfo) -> Backend:
    return Idle()
