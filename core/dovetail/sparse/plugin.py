"""Plugin of the layout COO; CSR, CSC and BSR have plugins of their own, such as `plugin_csr`."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.extend import LayoutInfo, hookimpl, sparse_coo

from .blocks import sparse_bsr_tensor, to_sparse_bsr
from .compressed import sparse_csc_tensor, sparse_csr_tensor, to_sparse_csc, to_sparse_csr
from .construct import sparse_coo_tensor, to_sparse
from .xfails import gaps


@hookimpl
def dovetail_layout_info() -> LayoutInfo:
    """Describe sparse COO: the constructors of sparse tensors, and the methods `x.to_sparse*()`."""
    return LayoutInfo(
        sparse_coo,
        functions={
            "sparse_coo_tensor": sparse_coo_tensor,
            "sparse_csr_tensor": sparse_csr_tensor,
            "sparse_csc_tensor": sparse_csc_tensor,
            "sparse_bsr_tensor": sparse_bsr_tensor,
        },
        methods={
            "to_sparse": to_sparse,
            "to_sparse_csr": to_sparse_csr,
            "to_sparse_csc": to_sparse_csc,
            "to_sparse_bsr": to_sparse_bsr,
        },
        from_dense=to_sparse,
        keeps=LayoutInfo.keeps | {"diagonal"},
    )


@hookimpl
def dovetail_conformance() -> Mapping[str, str]:
    """Return the declared gaps, for the layout kit."""
    return gaps()
