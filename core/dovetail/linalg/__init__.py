"""Linear algebra: products, factors, equations, norms. Matrices are the last two axes of a batch.

LAPACK computes factors on the host, for every device; nothing is copied if the device shares its
memory with the host. Real matrices of up to 32 rows, one or many, are solved, inverted
and so on by generated kernels on the device. A function reads its operands' values when it is
called, and its result's if the result can be an error. In a captured function LAPACK is called
at replay, in its place among the launches.

A matrix without a result raises LinAlgError (a ValueError) with its position in the batch.
"""

from typing import TYPE_CHECKING

from ..errors import LinAlgError as LinAlgError  # NumPy has it here
from ..functions.numpy.protocol import MODULE_RESOLVERS
from ..functions.products.matrix_products import (
    diagonal,
    matmul,
    matrix_transpose,
    outer,
    tensordot,
    vecdot,
    vendor_products,
)
from ..lazy_import import late
from ..public_names import publish_all

if TYPE_CHECKING:
    from .eigenvalues import eig, eigh, eigvals, eigvalsh
    from .factors import cholesky, lu, lu_solve, qr, svd, svdvals
    from .least_squares import cond, lstsq, matrix_rank, pinv
    from .matrix_functions import (
        block_diag,
        cross,
        expm,
        householder,
        kron,
        matrix_power,
        multi_dot,
        trace,
    )
    from .norms import matrix_norm, norm, vector_norm
    from .solving import det, inv, slogdet, solve
    from .triangular import cholesky_solve, solve_triangular
else:
    _HOMES = {
        "eigenvalues": "eig eigh eigvals eigvalsh",
        "factors": "cholesky lu lu_solve qr svd svdvals",
        "least_squares": "cond lstsq matrix_rank pinv",
        "norms": "matrix_norm norm vector_norm",
        "numpy_names": "LINALG_FUNCTIONS",
        "matrix_functions": "block_diag cross expm householder kron matrix_power multi_dot trace",
        "solving": "det inv slogdet solve",
        "triangular": "cholesky_solve solve_triangular",
    }
    __getattr__ = late(__name__, {n: home for home, names in _HOMES.items() for n in names.split()})
    MODULE_RESOLVERS["numpy.linalg"] = lambda function: __getattr__("LINALG_FUNCTIONS").get(
        function
    )


__all__ = [
    "block_diag",
    "cholesky",
    "cholesky_solve",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "householder",
    "inv",
    "kron",
    "lstsq",
    "lu",
    "lu_solve",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
    "vendor_products",
]


def __dir__() -> list[str]:
    return __all__


publish_all(globals())
