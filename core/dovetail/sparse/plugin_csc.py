"""Plugin of the layout CSC."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.extend import LayoutInfo, hookimpl, sparse_csc

from .compressed import to_sparse_csc
from .xfails import gaps


@hookimpl
def dovetail_layout_info() -> LayoutInfo:
    """Describe CSC; `plugin` adds its functions and methods, with those of COO."""
    return LayoutInfo(sparse_csc, from_dense=to_sparse_csc, keeps=LayoutInfo.keeps | {"diagonal"})


@hookimpl
def dovetail_conformance() -> Mapping[str, str]:
    """Return the declared gaps, for the layout kit."""
    return gaps()
