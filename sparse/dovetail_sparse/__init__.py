"""Sparse COO tensors: a layout plugin of dovetail, found through `dovetail.layouts.v1`.

Users get them from `dt.sparse_coo_tensor` and `x.to_sparse()`; what else there is, is in
`dt.sparse`.
"""

from . import rules
from .construct import sparse_coo_tensor, to_dense, to_sparse
from .convert import from_pydata, from_scipy, load, save, to_pydata, to_scipy
from .show import spy
from .tensor import COO

__all__ = [
    "COO",
    "from_pydata",
    "from_scipy",
    "load",
    "save",
    "sparse_coo_tensor",
    "spy",
    "to_dense",
    "to_pydata",
    "to_scipy",
    "to_sparse",
]

rules.install()
