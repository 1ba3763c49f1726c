"""The hook through which dovetail finds the layout CSC."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.extend import LayoutInfo, hookimpl, sparse_csc

import dovetail_sparse as namespace

from .gaps import gaps


@hookimpl
def dovetail_layout_info() -> LayoutInfo:
    """CSC; its functions and methods are in `plugin`, with those of COO."""
    return LayoutInfo(
        sparse_csc, from_dense=namespace.to_sparse_csc, keeps=LayoutInfo.keeps | {"diagonal"}
    )


@hookimpl
def dovetail_conformance() -> Mapping[str, str]:
    """What the layout kit is to expect."""
    return gaps()
