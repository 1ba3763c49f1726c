"""A hook that asks for an argument which does not exist."""

from __future__ import annotations

from typing import Any

from dovetail.extend import hookimpl


@hookimpl
def dovetail_probe(settings: Any) -> Any:
    return []
