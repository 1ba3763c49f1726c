"""The hook through which dovetail finds COO; those of CSR, CSC and BSR are in `plugin_csr`, ..."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.extend import LayoutInfo, hookimpl, sparse_coo

import dovetail_sparse as namespace

from .gaps import gaps


@hookimpl
def dovetail_layout_info() -> LayoutInfo:
    """Sparse COO: `dt.sparse`, what makes sparse tensors, and `x.to_sparse()` and its like."""
    return LayoutInfo(
        sparse_coo,
        functions={
            "sparse": namespace,
            "sparse_coo_tensor": namespace.sparse_coo_tensor,
            "sparse_csr_tensor": namespace.sparse_csr_tensor,
            "sparse_csc_tensor": namespace.sparse_csc_tensor,
            "sparse_bsr_tensor": namespace.sparse_bsr_tensor,
        },
        methods={
            "to_sparse": namespace.to_sparse,
            "to_sparse_csr": namespace.to_sparse_csr,
            "to_sparse_csc": namespace.to_sparse_csc,
            "to_sparse_bsr": namespace.to_sparse_bsr,
        },
        from_dense=namespace.to_sparse,
        keeps=LayoutInfo.keeps | {"diagonal"},
    )


@hookimpl
def dovetail_conformance() -> Mapping[str, str]:
    """What the layout kit is to expect."""
    return gaps()
