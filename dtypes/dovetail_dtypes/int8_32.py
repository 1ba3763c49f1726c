"""The format int8_32: blocks of 32 integers of 8 bits with a float32 scale."""

from __future__ import annotations

from dovetail.extend import BlockInfo, hookimpl

from .blocks import FORMATS


@hookimpl
def dovetail_dtype_info() -> BlockInfo:
    """Return the description of the format."""
    return FORMATS["int8_32"].info()
