# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.linalg`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from collections.abc import Sequence
from dovetail.functions.datatypes import DTypeLike
from dovetail.functions.products.matrix_products import Axes
from dovetail.linalg.eigenvalues import EigResult, EighResult
from dovetail.linalg.factors import LUResult, Mode, QRResult, SVDResult
from dovetail.linalg.least_squares import LstsqResult, Threshold
from dovetail.linalg.norms import Axis, Order
from dovetail.linalg.solving import SlogdetResult
from dovetail.tensor.promotion import Array
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any, overload

def block_diag(*arrays: AnyTensor, out: AnyTensor | None = None) -> Tensor:
    """Return a matrix with the given blocks on its diagonal, one after the other, and 0
    elsewhere."""
@overload
def cholesky(x: AnyTensor, /, *, upper: bool = False, out: AnyTensor | None = None) -> Tensor:
    """Return the lower triangular L of Hermitian, positive definite matrices: `L @
    conj(L).mT`."""
@overload
def cholesky(input: AnyTensor, *, upper: bool = False, out: AnyTensor | None = None) -> Tensor: ...
def cholesky_solve(
    b: Array, factor: Array, /, *, upper: bool = False, out: AnyTensor | None = None
) -> Tensor:
    """Return the solutions x of `a @ x = b`, given the Cholesky factor of a, which comes
    second."""
@overload
def cond(x: AnyTensor, /, *, ord: Order | None = None, out: AnyTensor | None = None) -> Tensor:
    """Return the condition numbers of matrices: the norm times that of the inverse."""
@overload
def cond(input: AnyTensor, *, ord: Order | None = None, out: AnyTensor | None = None) -> Tensor: ...
@overload
def cross(x1: Array, x2: Array, /, *, axis: int = -1, out: AnyTensor | None = None) -> Tensor:
    """Return the cross products of vectors of three elements along an axis."""
@overload
def cross(
    input: Array, other: Array, *, dim: int = -1, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def det(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the determinants of square matrices."""
@overload
def det(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def diagonal(x: AnyTensor, /, *, offset: int = 0) -> Tensor:
    """Return a view of the diagonals of the last two axes; see `dt.diagonal`."""
@overload
def diagonal(input: AnyTensor, *, offset: int = 0) -> Tensor: ...
@overload
def eig(x: AnyTensor, /, *, out: Sequence[AnyTensor] | None = None) -> EigResult:
    """Return the eigenvalues of square matrices, in no order, and their vectors, as unit
    columns."""
@overload
def eig(input: AnyTensor, *, out: Sequence[AnyTensor] | None = None) -> EigResult: ...
@overload
def eigh(x: AnyTensor, /, *, out: Sequence[AnyTensor] | None = None) -> EighResult:
    """Return the eigenvalues of Hermitian matrices, ascending, and their vectors, as
    columns."""
@overload
def eigh(input: AnyTensor, *, out: Sequence[AnyTensor] | None = None) -> EighResult: ...
@overload
def eigvals(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the eigenvalues of square matrices, in no order; see `eig`."""
@overload
def eigvals(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def eigvalsh(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the eigenvalues of Hermitian matrices, ascending; see `eigh`."""
@overload
def eigvalsh(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def expm(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the exponentials of square matrices, by scaling and squaring."""
@overload
def expm(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def householder(x: AnyTensor, tau: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the first columns of a product of Householder reflections, as in LAPACK's QR."""
@overload
def householder(input: AnyTensor, tau: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def inv(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the inverses of square matrices."""
@overload
def inv(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def kron(x1: Array, x2: Array, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the Kronecker product: a block for each element of `x1`, the element times
    `x2`."""
@overload
def kron(input: Array, other: Array, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def lstsq(x1: Array, x2: Array, /, rcond: float | None = None) -> LstsqResult:
    """Return the x of least norm that minimises the norm of `x1 @ x - x2`, and its
    statistics."""
@overload
def lstsq(input: Array, other: Array, rcond: float | None = None) -> LstsqResult: ...
@overload
def lu(x: AnyTensor, /, *, out: Sequence[AnyTensor] | None = None) -> LUResult:
    """Return the factors of Gaussian elimination with partial pivoting: x is `P @ L @ U`."""
@overload
def lu(input: AnyTensor, *, out: Sequence[AnyTensor] | None = None) -> LUResult: ...
@overload
def lu_solve(
    lu: LUResult | tuple[AnyTensor, AnyTensor, AnyTensor], x2: Array, /, *, out: AnyTensor | None = None
) -> Tensor:
    """Return the solutions x of `a @ x = x2`, given the LU factors of a."""
@overload
def lu_solve(
    lu: LUResult | tuple[AnyTensor, AnyTensor, AnyTensor], other: Array, *, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def matmul(
    x1: Array, x2: Array, /, *, dtype: DTypeLike = None, out: AnyTensor | None = None
) -> Tensor:
    """Return the matrix product over the last two axes; the axes before them are
    broadcast."""
@overload
def matmul(
    input: Array, other: Array, *, dtype: DTypeLike = None, out: AnyTensor | None = None
) -> Tensor: ...
def matrix_exp(*args: Any, **options: Any) -> Any: ...
@overload
def matrix_norm(
    x: AnyTensor, /, *, keepdims: bool = False, ord: Order = "fro", out: AnyTensor | None = None
) -> Tensor:
    """Return the norms of matrices."""
@overload
def matrix_norm(
    input: AnyTensor, *, keepdim: bool = False, ord: Order = "fro", out: AnyTensor | None = None
) -> Tensor: ...
@overload
def matrix_power(x: AnyTensor, n: int, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return square matrices to the power n; their inverses to -n if n is negative."""
@overload
def matrix_power(input: AnyTensor, n: int, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def matrix_rank(
    x: AnyTensor, /, *, rtol: Threshold = None, hermitian: bool = False, out: AnyTensor | None = None
) -> Tensor:
    """Return the number of non-zero singular values of each matrix."""
@overload
def matrix_rank(
    input: AnyTensor, *, rtol: Threshold = None, hermitian: bool = False, out: AnyTensor | None = None
) -> Tensor: ...
def matrix_transpose(x: AnyTensor, /) -> Tensor:
    """Return a view of `x` with its last two axes exchanged, like `x.mT`."""
def multi_dot(arrays: Sequence[AnyTensor], /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the product of several matrices, in the order of the fewest multiplications."""
@overload
def norm(
    x: AnyTensor,
    ord: Order | None = None,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the norm of a matrix for two axes, else of vectors, as NumPy's and PyTorch's
    `norm`."""
@overload
def norm(
    input: AnyTensor,
    ord: Order | None = None,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
) -> Tensor: ...
@overload
def outer(x1: Array, x2: Array, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the products of every element of one vector with every element of the other."""
@overload
def outer(input: Array, other: Array, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def pinv(x: AnyTensor, /, *, rtol: Threshold = None, out: AnyTensor | None = None) -> Tensor:
    """Return the Moore-Penrose pseudo-inverses of matrices."""
@overload
def pinv(input: AnyTensor, *, rtol: Threshold = None, out: AnyTensor | None = None) -> Tensor: ...
@overload
def qr(x: AnyTensor, /, *, mode: Mode = "reduced", out: Sequence[AnyTensor] | None = None) -> QRResult:
    """Return orthonormal Q and upper triangular R whose products `Q @ R` are x."""
@overload
def qr(
    input: AnyTensor, *, mode: Mode = "reduced", out: Sequence[AnyTensor] | None = None
) -> QRResult: ...
@overload
def slogdet(x: AnyTensor, /, *, out: Sequence[AnyTensor] | None = None) -> SlogdetResult:
    """Return the signs of determinants and the logarithms of their absolute values."""
@overload
def slogdet(input: AnyTensor, *, out: Sequence[AnyTensor] | None = None) -> SlogdetResult: ...
@overload
def solve(x1: Array, x2: Array, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the solutions x of the equations `x1 @ x = x2`, with one exact solution each."""
@overload
def solve(input: Array, other: Array, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def solve_triangular(
    x1: Array, x2: Array, /, *, upper: bool, unit_diagonal: bool = False, out: AnyTensor | None = None
) -> Tensor:
    """Return the solutions x of `x1 @ x = x2` for triangular x1."""
@overload
def solve_triangular(
    input: Array,
    other: Array,
    *,
    upper: bool,
    unit_diagonal: bool = False,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def svd(
    x: AnyTensor, /, *, full_matrices: bool = True, out: Sequence[AnyTensor] | None = None
) -> SVDResult:
    """Return the singular value decomposition: x is `U @ diag(S) @ Vh`, with S descending."""
@overload
def svd(
    input: AnyTensor, *, full_matrices: bool = True, out: Sequence[AnyTensor] | None = None
) -> SVDResult: ...
@overload
def svdvals(x: AnyTensor, /, *, out: AnyTensor | None = None) -> Tensor:
    """Return the singular values of matrices, descending; see `svd`."""
@overload
def svdvals(input: AnyTensor, *, out: AnyTensor | None = None) -> Tensor: ...
@overload
def tensordot(
    x1: Array, x2: Array, /, *, axes: Axes = 2, dtype: DTypeLike = None, out: AnyTensor | None = None
) -> Tensor:
    """Return the sum of products over pairs of axes, computed by one `matmul`."""
@overload
def tensordot(
    input: Array,
    other: Array,
    *,
    dims: Axes = 2,
    dtype: DTypeLike = None,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def trace(
    x: AnyTensor, /, *, offset: int = 0, dtype: DTypeLike = None, out: AnyTensor | None = None
) -> Tensor:
    """Return the sums of diagonals of matrices."""
@overload
def trace(
    input: AnyTensor, *, offset: int = 0, dtype: DTypeLike = None, out: AnyTensor | None = None
) -> Tensor: ...
def vander(*args: Any, **options: Any) -> Any: ...
@overload
def vecdot(x1: Array, x2: Array, /, *, axis: int = -1, out: AnyTensor | None = None) -> Tensor:
    """Return the sum of the products of two tensors along `axis`, after broadcasting."""
@overload
def vecdot(
    input: Array, other: Array, *, dim: int = -1, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def vector_norm(
    x: AnyTensor,
    /,
    *,
    axis: Axis = None,
    keepdims: bool = False,
    ord: int | float = 2,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the norms of vectors along one axis, or of all elements along several."""
@overload
def vector_norm(
    input: AnyTensor,
    *,
    dim: Axis = None,
    keepdim: bool = False,
    ord: int | float = 2,
    out: AnyTensor | None = None,
) -> Tensor: ...
from dovetail.linalg import vendor_products as vendor_products
def __getattr__(name: str) -> Any: ...
