"""The hook through which dovetail finds this layout."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.extend import LayoutInfo, hookimpl, sparse_coo

import dovetail_sparse as namespace

from .gaps import gaps


@hookimpl
def dovetail_layout_info() -> LayoutInfo:
    """Sparse COO: `dt.sparse`, `dt.sparse_coo_tensor` and `x.to_sparse()`."""
    return LayoutInfo(
        sparse_coo,
        functions={"sparse": namespace, "sparse_coo_tensor": namespace.sparse_coo_tensor},
        methods={"to_sparse": namespace.to_sparse},
        from_dense=namespace.to_sparse,
        keeps=LayoutInfo.keeps | {"diagonal"},
    )


@hookimpl
def dovetail_conformance() -> Mapping[str, str]:
    """What the layout kit is to expect."""
    return gaps()
