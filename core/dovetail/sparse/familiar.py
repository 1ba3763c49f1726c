"""What others' names for sparse tensors are here, for the error of who asks for them."""

from __future__ import annotations

from typing import NoReturn

from dovetail.extend import arguments

_COO = "dt.sparse_coo_tensor(indices, values, shape); of a strided tensor x.to_sparse()"
_CSR = "dt.sparse_csr_tensor(crow, col, values, shape); of a strided tensor x.to_sparse_csr()"
_CSC = "dt.sparse_csc_tensor(ccol, row, values, shape); of a strided tensor x.to_sparse_csc()"
_BSR = "dt.sparse_bsr_tensor(crow, col, values, shape); of a strided tensor x.to_sparse_bsr(size)"
_OTHER = "COO, or of SciPy's own kind dt.sparse.from_scipy(x)"
_WAYS = {  # what to write: their names for it, SciPy's, PyTorch's and JAX's
    _COO: "coo_matrix coo_array coo_tensor BCOO",
    _CSR: "csr_matrix csr_array csr_tensor BCSR",
    _CSC: "csc_matrix csc_array csc_tensor",
    _BSR: "bsr_matrix bsr_array bsr_tensor",
    _OTHER: "lil_matrix lil_array dok_matrix dok_array dia_matrix dia_array spmatrix sparray",
    "dt.sparse.to_sparse(x), x.to_sparse()": "fromdense asarray array from_dense",
    "x @ y": "mm matmul addmm spmm bcoo_dot_general dot",
    "x.sum(axis)": "sum",
    "dt.softmax(x.to_dense(), axis)": "softmax log_softmax",
    "x.to_dense()": "todense",
    "x.layout is not dt.strided": """
        issparse isspmatrix isspmatrix_csr isspmatrix_coo isspmatrix_csc is_sparse
    """,
    "dt.eye(n).to_sparse()": "eye identity eye_array",
    "dt.sparse_coo_tensor of the places of a diagonal": "diags diags_array spdiags dia_tensor",
    "dt.sparse.from_scipy(scipy.sparse.random(n, m, density))": "random random_array rand",
    "dt.concat, dt.stack": "vstack hstack block_array bmat block_diag",
    "dt.sparse.load": "load_npz",
    "dt.sparse.save": "save_npz",
    "dt.sparse.linalg.cg, dt.sparse.linalg.gmres": "spsolve",
}
INSTEAD = {theirs: way for way, names in _WAYS.items() for theirs in names.split()}


def refuse(name: str) -> NoReturn:
    """The `__getattr__` of the package. Raises: AttributeError."""
    known = arguments.told(INSTEAD[name], name) if name in INSTEAD else ""
    raise AttributeError(f"module 'dovetail.sparse' has no attribute {name!r}{known}")
