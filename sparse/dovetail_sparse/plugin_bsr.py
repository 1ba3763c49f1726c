"""The hook through which dovetail finds the layout BSR."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.extend import LayoutInfo, hookimpl, sparse_bsr

from .blocks import from_dense
from .gaps import gaps


@hookimpl
def dovetail_layout_info() -> LayoutInfo:
    """BSR; its functions and methods are in `plugin`, with those of COO."""
    return LayoutInfo(sparse_bsr, from_dense=from_dense, keeps=LayoutInfo.keeps | {"diagonal"})


@hookimpl
def dovetail_conformance() -> Mapping[str, str]:
    """What the layout kit is to expect."""
    return gaps()
