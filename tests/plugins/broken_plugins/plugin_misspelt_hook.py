"""A plugin with a misspelt hook name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.extend import hookimpl


@hookimpl
def dovetail_porbe(config: Mapping[str, str]) -> Any:
    return []
