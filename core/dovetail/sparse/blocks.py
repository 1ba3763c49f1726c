"""Compressed rows of blocks (BSR): matrices whose entries are small dense matrices of one size.

Such a matrix is a hybrid COO tensor of (block rows, block columns, rows, columns), whose first two
dimensions are sparse. The positions of its single elements are computed once for each pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dovetail as dt
from dovetail.extend import (
    DeviceLike,
    DTypeLike,
    Layout,
    arguments,
    required,
    rows_at,
    scatter_rows,
    sparse_bsr,
)

from .compressed import as_values, check_parts, required_matrix
from .construct import to_sparse
from .pattern import Pattern, cache_on_pattern, linear
from .tensor import COO, Entries, coo
from .view_rules import fully_sparse, view

Tensor = dt.Tensor
Shape = tuple[int, ...]
Block = tuple[int, int]


class BSR(Entries):
    """A sparse matrix by rows of blocks: starts of block rows, block columns, and blocks.

    Block columns ascend within a block row, each there once. Gradients flow through `values()`.

    >>> import dovetail as dt
    >>> blocks = dt.asarray([[[1.0, 2.0], [3.0, 4.0]]])
    >>> x = dt.sparse_bsr_tensor([0, 1], [1], blocks, (2, 4))
    >>> x.blocksize, x.to_dense().tolist()
    ((2, 2), [[0.0, 0.0, 1.0, 2.0], [0.0, 0.0, 3.0, 4.0]])
    """

    __slots__ = ()

    def as_coo(self) -> COO:
        """Return the elements, zeros within blocks included, as a coalesced COO matrix."""
        return bsr_to_coo(self)

    @property
    def layout(self) -> Layout:
        """`dt.sparse_bsr`."""
        return sparse_bsr

    @property
    def blocksize(self) -> Block:
        """The numbers of rows and of columns of a block."""
        rows, columns = self._values.shape[1:]
        return rows, columns

    @property
    def shape(self) -> Shape:
        """The numbers of rows and of columns."""
        return tuple(n * b for n, b in zip(self.pattern.shape, self.blocksize, strict=True))

    @property
    def nnz(self) -> int:
        """The number of stored elements: all elements of the stored blocks."""
        rows, columns = self.blocksize
        return self.pattern.count * rows * columns

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The starts of block rows, the block columns, and the blocks."""
        return self.pattern.bounds, self.pattern.coords[1], self._values

    def crow_indices(self) -> Tensor:
        """Return the start of each block row among the blocks, and the end of the last, int64."""
        return self.pattern.bounds

    def col_indices(self) -> Tensor:
        """Return the block column of each block, int64."""
        return self.pattern.coords[1]

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return the constructor and its arguments, for `copy` and `pickle`."""
        return bsr, (self.pattern, self._values)


def bsr(pattern: Pattern, values: Tensor) -> BSR:
    """Build the matrix of a coalesced pattern of blocks and the blocks."""
    x: BSR = object.__new__(BSR)
    x.pattern, x._values = pattern, values
    return x


def as_hybrid(x: BSR) -> COO:
    """Return the blocks as a hybrid COO tensor of 4 dimensions; computes nothing."""
    return coo(x.pattern, x.values())


def from_hybrid(x: COO) -> BSR:
    """Coalesce a hybrid tensor of 4 dimensions and build the BSR matrix of its blocks."""
    x = x.coalesce()
    return bsr(x.pattern, x.values())


def transpose_blocks(x: BSR) -> BSR:
    """Return the transposed matrix: the order of the blocks, and each block, are transposed."""
    return from_hybrid(view(as_hybrid(x), ("permute", (1, 0, 3, 2))))


# --- to and from COO -----------------------------------------------------------------------------


def bsr_to_coo(x: BSR) -> COO:
    """Return the elements, zeros within blocks included, as a coalesced COO matrix."""
    pattern, order = single_elements(x.pattern, x.blocksize)
    return coo(pattern, rows_at(x.values().reshape(-1), order))


@cache_on_pattern
def single_elements(p: Pattern, block: Block) -> tuple[Pattern, Tensor]:
    """Return the pattern of single elements, and the index of each in the blocks; cached."""
    if block not in p.derived:
        count = p.count * block[0] * block[1]
        flat = dt.arange(count, device=p.device).reshape(p.count, *block)
        spread = view(fully_sparse(coo(p, flat)), ("permute", (0, 2, 1, 3)))
        shape = (p.shape[0] * block[0], p.shape[1] * block[1])
        elements = view(spread, ("reshape", shape)).coalesce()
        dt.evaluate(elements.values())
        p.derived[block] = elements.pattern, elements.values()
    result: tuple[Pattern, Tensor] = p.derived[block]
    return result


def is_divisible(shape: Shape, block: Block) -> bool:
    """Return True if a matrix of this shape consists of whole blocks."""
    return all(n % b == 0 for n, b in zip(shape, block, strict=True))


def coo_to_bsr(x: COO, block: Block) -> BSR:
    """Return a COO matrix as BSR. Raises: LayoutError if its shape is no multiple of the block."""
    if not is_divisible(x.shape, block):
        raise dt.LayoutError(
            f"to_sparse_bsr: shape {x.shape} must be divisible by the blocksize {block}; use "
            "another blocksize or x.to_sparse_csr()"
        )
    x = fully_sparse(x).coalesce()
    pattern, at = _block_pattern(x.pattern, block)
    size = pattern.count * block[0] * block[1]
    blank = dt.zeros(size, dtype=x.dtype, device=x.device)
    values = scatter_rows(blank, x.values(), at) if x.nnz else blank
    return bsr(pattern, values.reshape(pattern.count, *block))


@cache_on_pattern
def _block_pattern(p: Pattern, block: Block) -> tuple[Pattern, Tensor]:
    """Return the pattern of the stored blocks, and each entry's index in their elements; cached."""
    name = ("blocks", block)
    if name not in p.derived:
        rows, columns = p.coords
        shape = (p.shape[0] // block[0], p.shape[1] // block[1])
        coords = [rows // block[0], columns // block[1]]
        with_repeats = Pattern(coords, shape, p.count, p.device)
        if p.count:
            runs = with_repeats.runs((0, 1), with_repeats.order())
            owner = runs.owners()
            coords = [runs.values_of_first(c) for c in coords]
            count = runs.starts.shape[0]
        else:
            owner, count = rows, 0
        at = linear([owner, rows % block[0], columns % block[1]], (count, *block), p)
        dt.evaluate(at, *coords)
        pattern = Pattern(coords, shape, count, p.device, unsorted_dims=0, unique=True)
        p.derived[name] = pattern, at
    result: tuple[Pattern, Tensor] = p.derived[name]
    return result


def default_blocksize(shape: Shape) -> Block:
    """Return blocks of two rows and two columns; of one along an axis of odd size."""
    rows, columns = (2 if n % 2 == 0 else 1 for n in shape)
    return rows, columns


def from_dense(x: Tensor) -> BSR:
    """Return a matrix as BSR with the default block size. Raises: LayoutError unless 2-d."""
    if x.ndim != 2:
        raise dt.LayoutError(
            f"to_sparse_bsr: expected a matrix, got shape {x.shape}; use x.to_sparse()"
        )
    return to_sparse_bsr(x, default_blocksize(x.shape))


@arguments.public(widen=False)
def to_sparse_bsr(x: Tensor, blocksize: Sequence[int]) -> BSR:
    """Convert a matrix to compressed rows of blocks; a block is stored if any element is nonzero.

    - `blocksize`: the numbers of rows and of columns of a block, which divide those of `x`.

    Shapes: of 2 dimensions; the result has the same.
    Dtypes: all; the result has the same.
    Cost: one host read, of the number of blocks.
    Raises: LayoutError for another number of dimensions and for blocks that do not fit;
    ArgumentError, DTypeError if x is no tensor.

    >>> import dovetail as dt
    >>> x = dt.asarray([[0, 0, 1, 2], [0, 0, 3, 4]]).to_sparse_bsr((2, 2))
    >>> x.col_indices().tolist(), x.values().tolist()
    ([1], [[[1, 2], [3, 4]]])
    """
    required("to_sparse_bsr", x)
    block = _check_blocksize("to_sparse_bsr", blocksize)
    if isinstance(x, BSR) and x.blocksize == block:
        return x
    if x.ndim != 2:
        raise dt.LayoutError(
            f"to_sparse_bsr: expected a matrix, got shape {x.shape}; use x.to_sparse()"
        )
    return coo_to_bsr(required_matrix("to_sparse_bsr", "sparse_bsr", to_sparse(x)), block)


def _check_blocksize(name: str, blocksize: object) -> Block:
    """Return two positive ints. Raises: ArgumentError for another number or an int below 1."""
    sizes = arguments.integers(name, blocksize, "blocksize")
    if len(sizes) != 2 or min(sizes) < 1:
        raise dt.ArgumentError(
            f"{name}: blocksize must be two positive integers (rows, columns), got {sizes}"
        )
    return sizes[0], sizes[1]


@arguments.public(widen=False)
def sparse_bsr_tensor(
    crow_indices: object,
    col_indices: object,
    values: object,
    size: Sequence[int] | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    check_invariants: bool = True,
) -> BSR:
    """Build a sparse matrix by rows of blocks: as `sparse_csr_tensor`, each value a small matrix.

    - `crow_indices`: the start of each block row among the blocks, and the end of the last one.
    - `col_indices`: the block column of each block; they ascend within a block row.
    - `values`: the blocks, one for each column.
    - `size`: the shape, a multiple of the blocks'; None is as small as the indices permit.
    - `requires_grad`: True to record the gradient of the values.
    - `check_invariants`: check the indices, which takes one host read; False trusts them.

    Tensors are stored without a copy: do not write to the indices afterwards.
    Shapes: crow_indices (block rows + 1), col_indices (blocks), values (blocks, rows, columns).
    Dtypes: indices are stored as int64; values any, `dtype` if given.
    Raises: OutOfRangeError, ShapeError, DTypeError, DeviceError, ArgumentError for indices that do
    not ascend.
    See also: `sparse_csr_tensor`, `to_sparse_bsr`, `BSR`.

    >>> import dovetail as dt
    >>> x = dt.sparse_bsr_tensor([0, 1], [1], [[[1.0, 2.0], [3.0, 4.0]]])
    >>> x.to_dense().tolist()
    [[0.0, 0.0, 1.0, 2.0], [0.0, 0.0, 3.0, 4.0]]
    """
    name = "sparse_bsr_tensor"
    values = as_values(values, dtype, device, (crow_indices, col_indices))
    if values.ndim != 3 or 0 in values.shape[1:]:
        raise dt.ShapeError(
            f"{name}: values must have the shape (blocks, rows, columns) with rows and columns at "
            f"least 1, got shape {values.shape}"
        )
    if size is not None:
        size = _size_in_blocks(name, size, values.shape[1:])
    pattern, stored = check_parts(
        name,
        ("crow_indices", "col_indices"),
        (crow_indices, col_indices),
        values,
        size,
        dtype,
        device,
        check_invariants,
        3,
    )
    x = bsr(pattern, stored)
    is_leaf = arguments.flag(name, requires_grad, "requires_grad")
    return x.requires_grad_() if is_leaf else x


def _size_in_blocks(name: str, size: Sequence[int], block: Shape) -> Shape:
    """Return the shape counted in blocks. Raises: ShapeError if the blocks do not fit."""
    shape = arguments.integers(name, size, "size")
    if len(shape) != 2 or any(n % b for n, b in zip(shape, block, strict=True)):
        raise dt.ShapeError(
            f"{name}: size must be two dimensions divisible by the block {block}, got {shape}"
        )
    return tuple(n // b for n, b in zip(shape, block, strict=True))
