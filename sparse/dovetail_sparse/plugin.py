"""The hook through which dovetail finds this layout."""

from __future__ import annotations

from dovetail.extend import LayoutInfo, hookimpl, sparse_coo

from . import namespace, rules  # noqa: F401 - rules fills COO.rules
from .construct import sparse_coo_tensor, to_sparse


@hookimpl
def dovetail_layout_info() -> LayoutInfo:
    """Sparse COO."""
    return LayoutInfo(
        sparse_coo,
        functions={"sparse": namespace, "sparse_coo_tensor": sparse_coo_tensor},
        methods={"to_sparse": to_sparse},
    )
