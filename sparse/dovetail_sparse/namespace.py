"""`dt.sparse`: what there is for sparse tensors beyond the functions that all tensors share."""

from .construct import sparse_coo_tensor, to_sparse
from .tensor import COO

__all__ = ["COO", "sparse_coo_tensor", "to_sparse"]
