"""The format int4_32: blocks of 32 integers of 4 bits with a float32 scale."""

from __future__ import annotations

from dovetail.extend import BlockInfo, hookimpl

from .blocks import FORMATS


@hookimpl
def dovetail_dtype_info() -> BlockInfo:
    """Return the description of the format."""
    return FORMATS["int4_32"].info()
