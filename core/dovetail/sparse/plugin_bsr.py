"""Plugin of the layout BSR."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.extend import LayoutInfo, hookimpl, sparse_bsr

from .blocks import from_dense
from .xfails import gaps


@hookimpl
def dovetail_layout_info() -> LayoutInfo:
    """Describe BSR; `plugin` adds its functions and methods, with those of COO."""
    return LayoutInfo(sparse_bsr, from_dense=from_dense, keeps=LayoutInfo.keeps | {"diagonal"})


@hookimpl
def dovetail_conformance() -> Mapping[str, str]:
    """Return the declared gaps, for the layout kit."""
    return gaps()
