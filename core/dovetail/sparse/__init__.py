"""Sparse tensors, `dt.sparse`: four layouts, registered through entry points `dovetail.layouts.v1`.

`dt.sparse_coo_tensor`, `x.to_sparse()` and similar functions of `dt` build them. This package has
the layout classes, conversion from and to other libraries, files, and linear solvers.
"""

from typing import TYPE_CHECKING

from dovetail.extend import publish_all

from . import linalg, rules
from .blocks import BSR, sparse_bsr_tensor, to_sparse_bsr
from .compressed import CSC, CSR, sparse_csc_tensor, sparse_csr_tensor, to_sparse_csc, to_sparse_csr
from .construct import sparse_coo_tensor, to_dense, to_sparse
from .convert import from_pydata, from_scipy, load, save, to_pydata, to_scipy
from .missing_names import raise_missing_name
from .show import spy
from .tensor import COO

__all__ = [
    "BSR",
    "COO",
    "CSC",
    "CSR",
    "from_pydata",
    "from_scipy",
    "linalg",
    "load",
    "save",
    "sparse_bsr_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "spy",
    "to_dense",
    "to_pydata",
    "to_scipy",
    "to_sparse",
    "to_sparse_bsr",
    "to_sparse_csc",
    "to_sparse_csr",
]

rules.install()

publish_all(globals())


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = raise_missing_name
