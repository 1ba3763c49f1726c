"""The hook through which dovetail finds the layout CSR."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.extend import LayoutInfo, hookimpl, sparse_csr

import dovetail_sparse as namespace

from .gaps import gaps


@hookimpl
def dovetail_layout_info() -> LayoutInfo:
    """CSR; its functions and methods are in `plugin`, with those of COO."""
    return LayoutInfo(
        sparse_csr, from_dense=namespace.to_sparse_csr, keeps=LayoutInfo.keeps | {"diagonal"}
    )


@hookimpl
def dovetail_conformance() -> Mapping[str, str]:
    """What the layout kit is to expect."""
    return gaps()
