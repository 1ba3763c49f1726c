"""A plugin that lacks a required hook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.extend import BackendInfo, hookimpl


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    return BackendInfo("no_open", "1")


@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Any:
    return []
