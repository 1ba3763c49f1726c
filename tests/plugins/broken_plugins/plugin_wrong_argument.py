"""A plugin with a hook that requests an unknown argument."""

from __future__ import annotations

from typing import Any

from dovetail.extend import hookimpl


@hookimpl
def dovetail_probe(settings: Any) -> Any:
    return []
