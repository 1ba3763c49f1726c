"""The error for a name that `dt.sparse` lacks, with the hint of `compat`."""

from __future__ import annotations

from typing import NoReturn

from dovetail.extend import arguments


def raise_missing_name(name: str) -> NoReturn:
    """Raise the AttributeError for a name: this is the `__getattr__` of the package."""
    hint = arguments.hints.find_hint("sparse", name)
    raise arguments.hints.attribute_error("module 'dovetail.sparse'", name, hint)
