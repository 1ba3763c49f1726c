"""Sparse COO tensors: a layout plugin of dovetail, found through `dovetail.layouts.v1`.

Users get them from `dt.sparse_coo_tensor` and `x.to_sparse()`; what else there is, is in
`dt.sparse`.
"""

from .construct import sparse_coo_tensor, to_sparse
from .tensor import COO

__all__ = ["COO", "sparse_coo_tensor", "to_sparse"]
