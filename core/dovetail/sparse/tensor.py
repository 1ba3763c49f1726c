"""The sparse COO tensor, and the base class of the tensors of all sparse layouts."""

from __future__ import annotations

from typing import Any, Self

import dovetail as dt
from dovetail.extend import (
    Layout,
    LayoutTensor,
    Op,
    apply,
    required,
    rows_at,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
)

from .pattern import Pattern
from .sparse_ops import Runs

Tensor = dt.Tensor
Shape = tuple[int, ...]


class Entries(LayoutTensor):
    """The base class of sparse tensors of all layouts: a pattern of positions, and values.

    Gradients flow through the values.
    """

    __slots__ = ("_values", "pattern")

    related = frozenset((sparse_bsr, sparse_coo, sparse_csc, sparse_csr))
    pattern: Pattern
    _values: Tensor

    def _with(self, values: Tensor) -> Self:
        """Return a tensor of the same pattern with other values."""
        result = object.__new__(type(self))
        result.pattern, result._values = self.pattern, values
        return result

    def as_coo(self) -> COO:
        """Return the same entries as COO."""
        raise NotImplementedError

    # --- properties

    @property
    def device(self) -> dt.Device:
        """The device of the values."""
        return self._values.device

    @property
    def dtype(self) -> dt.DType:
        """The dtype of the elements."""
        return self._values.dtype

    @property
    def nnz(self) -> int:
        """The number of stored entries; a position that occurs twice counts twice."""
        return self.pattern.count

    @property
    def density(self) -> float:
        """The fraction of the elements that is stored."""
        return self.pattern.count / self.pattern.size if self.pattern.size else 0.0

    def values(self) -> Tensor:
        """Return the values, (nnz, *dense dimensions); gradients flow through them."""
        return self._values

    # --- gradients: those of the values

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]  # that of the values: not settable
        """True if gradients flow to or through the values."""
        return self._values.requires_grad

    @property
    def is_leaf(self) -> bool:  # type: ignore[override]  # that of the values: not settable
        """True if no recorded op computed the values."""
        return self._values.is_leaf

    @property
    def grad_fn(self) -> object:  # type: ignore[override]  # it cannot be set, nor a strided one's
        """The tape node of the op that computed the values."""
        return self._values.grad_fn

    @property
    def grad(self) -> Self | None:  # type: ignore[override]  # as above
        """The gradient of the values that `backward` has accumulated, at their positions."""
        g = self._values.grad
        return None if g is None else self._with(g)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Record the gradient of the values from now on, or stop doing so; return this tensor.

        - `requires_grad`: True records it, False stops.
        """
        self._values.requires_grad_(requires_grad)
        return self

    def backward(self, *args: object, **options: object) -> None:
        """Raise LayoutError: gradients start from a strided tensor.

        - `args`, `options`: any arguments.

        Raises: LayoutError.
        """
        raise dt.LayoutError(
            "backward: the tensor must be strided, got a sparse layout; sum it, or use x.values() "
            "or x.to_dense()"
        )

    def detach(self) -> Self:
        """Return the same entries as a tensor that stops gradients."""
        return self._with(self._values.detach())


class COO(Entries):
    """A sparse tensor: entries at int64 positions along the sparse dimensions, 0 everywhere else.

    Each entry is a number or, of a hybrid tensor, a block over the dense dimensions, which come
    last. A position may occur several times until `coalesce()`: its element is the sum. Such
    tensors are not changed in place; `x += y` makes a new one. Gradients flow through `values()`.

    >>> import dovetail as dt
    >>> x = dt.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> x.nnz, x.to_dense().tolist()
    (2, [[0.0, 0.0, 3.0], [4.0, 0.0, 0.0]])
    """

    __slots__ = ()

    def as_coo(self) -> COO:
        """Return this tensor."""
        return self

    @property
    def layout(self) -> Layout:
        """`dt.sparse_coo`."""
        return sparse_coo

    @property
    def shape(self) -> Shape:
        """The size of each dimension, the sparse ones first."""
        return self.pattern.shape + self._values.shape[1:]

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The vectors of positions, and the values."""
        return (*self.pattern.coords, self._values)

    def sparse_dim(self) -> int:
        """Return the number of sparse dimensions."""
        return len(self.pattern.shape)

    def dense_dim(self) -> int:
        """Return the number of dense dimensions."""
        return self._values.ndim - 1

    def indices(self) -> Tensor:
        """Return the positions, (sparse_dim, nnz) int64, in the order in which they are stored."""
        return self.pattern.indices

    def is_coalesced(self) -> bool:
        """Return True if positions are known to be in lexicographic order without repetition."""
        return self.pattern.is_coalesced

    def coalesce(self) -> COO:
        """Return the same elements with positions in lexicographic order without repetition.

        Values at one position are added in stored order. The number of positions depends on data:
        two rounds of kernels with one host read between.
        """
        if self.is_coalesced():
            return self
        try:
            pattern, runs = self.pattern.coalesce()
        except dt.CaptureError as error:
            error.args = (
                f"{error}. The number of positions of a sum is such a value; pass "
                "x.coalesce() to the captured function",
                *error.args[1:],
            )
            raise
        return coo(pattern, self._values if runs is None else _sum_runs(self._values, runs))

    def accumulated(self, other: Tensor) -> Tensor:
        """Return the sum of two gradients of a tensor: the entries of both, or a strided tensor.

        - `other`: the other gradient, of the same shape.

        It does not sort, and the host reads nothing.
        """
        if (
            not isinstance(other, COO)
            or self.shape != other.shape
            or self.sparse_dim() != other.sparse_dim()
        ):
            return super().accumulated(other)
        if self.pattern is other.pattern:
            return self._with(self._values + other._values)
        mine, theirs = self.pattern, other.pattern
        coords = [dt.concat([a, b]) for a, b in zip(mine.coords, theirs.coords, strict=True)]
        count = mine.count + theirs.count
        return coo(
            Pattern(coords, mine.shape, count, mine.device),
            dt.concat([self._values, other._values]),
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return the constructor and its arguments, for `copy` and `pickle`."""
        return coo, (self.pattern, self._values)


def required_sparse(op: str, x: Any) -> Entries:
    """Return `x` if it is sparse. Raises: LayoutError if strided, DTypeError for no tensor."""
    if not isinstance(required(op, x), Entries):
        raise dt.LayoutError(
            f"{op}: expected a sparse tensor, got {x.dtype.name}{list(x.shape)} of layout "
            f"{x.layout.name}; use x.to_sparse()"
        )
    return x  # type: ignore[no-any-return]  # narrowed by `required`


def coo(pattern: Pattern, values: Tensor) -> COO:
    """Build the COO tensor of a pattern and its values."""
    x: COO = object.__new__(COO)
    x.pattern, x._values = pattern, values
    return x


def _sum_runs(values: Tensor, runs: Runs) -> Tensor:
    """Return the sum of each run; values that only move are gathered."""
    if runs.starts.size == values.shape[0]:  # no two values are added: they only move
        return values if runs.order is None else rows_at(values, runs.order)
    return runs.combine("sum", values)


def apply_to_values(op: Op, x: COO, attrs: Any = None) -> COO:
    """Apply a unary op to each stored value; for an uncoalesced tensor, the op must be linear."""
    return coo(x.pattern, apply(op, (x.values(),), attrs))
