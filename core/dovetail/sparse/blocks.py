"""Compressed rows of blocks (BSR): matrices whose entries are small dense matrices of one size.

Such a matrix is a hybrid COO tensor of (block rows, block columns, rows, columns), whose first two
dimensions are sparse; where its single elements are, is worked out once for a pattern.
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

from .compressed import from_parts, required_matrix, values_beside
from .construct import to_sparse
from .moves import fully_sparse, view
from .pattern import Pattern, derives, linear
from .tensor import COO, Entries, coo

Tensor = dt.Tensor
Shape = tuple[int, ...]
Block = tuple[int, int]


class BSR(Entries):
    """A sparse matrix by rows of blocks: starts of block rows, block columns, and blocks.

    Block columns ascend within a block row, each there once. Gradients flow through `values()`.

    >>> import dovetail as dt
    >>> blocks = dt.asarray([[[1.0, 2.0], [3.0, 4.0]]], device="reference")
    >>> x = dt.sparse_bsr_tensor([0, 1], [1], blocks, (2, 4))
    >>> x.blocksize, x.to_dense().tolist()
    ((2, 2), [[0.0, 0.0, 1.0, 2.0], [0.0, 0.0, 3.0, 4.0]])
    """

    __slots__ = ()

    def as_coo(self) -> COO:
        """Its elements, those that are 0 within blocks too, as a coalesced COO matrix."""
        return of_bsr(self)

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
        """The number of stored elements: of blocks, times what each holds."""
        rows, columns = self.blocksize
        return self.pattern.count * rows * columns

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The starts of block rows, the block columns, and the blocks."""
        return self.pattern.bounds, self.pattern.coords[1], self._values

    def crow_indices(self) -> Tensor:
        """Where each block row starts among the blocks, and where the last ends, int64."""
        return self.pattern.bounds

    def col_indices(self) -> Tensor:
        """The block column of each block, int64."""
        return self.pattern.coords[1]

    def __reduce_ex__(self, protocol: Any) -> Any:
        """For `copy` and `pickle`."""
        return bsr, (self.pattern, self._values)


def bsr(pattern: Pattern, values: Tensor) -> BSR:
    """The matrix of a coalesced pattern of blocks, and the blocks."""
    x: BSR = object.__new__(BSR)
    x.pattern, x._values = pattern, values
    return x


def hybrid(x: BSR) -> COO:
    """The blocks as a hybrid tensor of 4 dimensions; nothing is computed."""
    return coo(x.pattern, x.values())


def of_hybrid(x: COO) -> BSR:
    """The opposite of `hybrid`."""
    x = x.coalesce()
    return bsr(x.pattern, x.values())


def swapped(x: BSR) -> BSR:
    """The transpose: of the blocks, and within each."""
    return of_hybrid(view(hybrid(x), ("permute", (1, 0, 3, 2))))


# --- to and from COO -----------------------------------------------------------------------------


def of_bsr(x: BSR) -> COO:
    """Its elements, those that are 0 within blocks too, as a coalesced COO matrix."""
    pattern, order = single_elements(x.pattern, x.blocksize)
    return coo(pattern, rows_at(x.values().reshape(-1), order))


@derives
def single_elements(p: Pattern, block: Block) -> tuple[Pattern, Tensor]:
    """The pattern of single elements, and where among those of all blocks each one is."""
    if block not in p.kept:
        count = p.count * block[0] * block[1]
        flat = dt.arange(count, device=p.device).reshape(p.count, *block)
        spread = view(fully_sparse(coo(p, flat)), ("permute", (0, 2, 1, 3)))
        shape = (p.shape[0] * block[0], p.shape[1] * block[1])
        apart = view(spread, ("reshape", shape)).coalesce()
        dt.evaluate(apart.values())
        p.kept[block] = apart.pattern, apart.values()
    found: tuple[Pattern, Tensor] = p.kept[block]
    return found


def fits(shape: Shape, block: Block) -> bool:
    """Whether a matrix can be cut into blocks."""
    return all(n % b == 0 for n, b in zip(shape, block, strict=True))


def bsr_of(x: COO, block: Block) -> BSR:
    """A COO matrix in blocks. Raises: LayoutError where they do not fit its shape."""
    if not fits(x.shape, block):
        raise dt.LayoutError(
            f"to_sparse_bsr: sparse_bsr holds whole blocks: shape {x.shape} cannot be cut into "
            f"blocks of {block}; see x.to_sparse_csr()"
        )
    x = fully_sparse(x).coalesce()
    pattern, at = _blocks(x.pattern, block)
    size = pattern.count * block[0] * block[1]
    blank = dt.zeros(size, dtype=x.dtype, device=x.device)
    values = scatter_rows(blank, x.values(), at) if x.nnz else blank
    return bsr(pattern, values.reshape(pattern.count, *block))


@derives
def _blocks(p: Pattern, block: Block) -> tuple[Pattern, Tensor]:
    """The pattern of blocks that entries are in, and where among all of theirs each one is."""
    name = ("blocks", block)
    if name not in p.kept:
        rows, columns = p.coords
        shape = (p.shape[0] // block[0], p.shape[1] // block[1])
        coords = [rows // block[0], columns // block[1]]
        places = Pattern(coords, shape, p.count, p.device)
        if p.count:
            runs = places.runs((0, 1), places.order())
            owner = runs.owners()
            coords = [runs.firsts(c) for c in coords]
            count = runs.starts.shape[0]
        else:
            owner, count = rows, 0
        at = linear([owner, rows % block[0], columns % block[1]], (count, *block), p)
        dt.evaluate(at, *coords)
        whole = Pattern(coords, shape, count, p.device, unsorted_dims=0, unique=True)
        p.kept[name] = whole, at
    found: tuple[Pattern, Tensor] = p.kept[name]
    return found


def usual_block(shape: Shape) -> Block:
    """Two rows and two columns, where they fit."""
    rows, columns = (2 if n % 2 == 0 else 1 for n in shape)
    return rows, columns


def from_dense(x: Tensor) -> BSR:
    """A strided matrix in blocks of two by two, where they fit."""
    if x.ndim != 2:
        raise dt.LayoutError(
            f"to_sparse_bsr: sparse_bsr holds matrices, not shape {x.shape}; see x.to_sparse()"
        )
    return to_sparse_bsr(x, usual_block(x.shape))


@arguments.named(widen=False)
def to_sparse_bsr(x: Tensor, blocksize: Sequence[int]) -> BSR:
    """The same elements by compressed rows of blocks; stored is a block with anything in it.

    `blocksize`: the numbers of rows and of columns of a block, which divide those of `x`. How many
    blocks there are depends on data: one host read.
    Shapes: of 2 dimensions; the result has the same.
    Dtypes: all; the result has the same.
    Raises: LayoutError for another number of dimensions and for blocks that do not fit;
    ArgumentError, DTypeError for what is no tensor.

    >>> import dovetail as dt
    >>> x = dt.asarray([[0, 0, 1, 2], [0, 0, 3, 4]], device="reference").to_sparse_bsr((2, 2))
    >>> x.col_indices().tolist(), x.values().tolist()
    ([1], [[[1, 2], [3, 4]]])
    """
    required("to_sparse_bsr", x)
    block = _blocksize("to_sparse_bsr", blocksize)
    if isinstance(x, BSR) and x.blocksize == block:
        return x
    if x.ndim != 2:
        raise dt.LayoutError(
            f"to_sparse_bsr: sparse_bsr holds matrices, not shape {x.shape}; see x.to_sparse()"
        )
    return bsr_of(required_matrix("to_sparse_bsr", "sparse_bsr", to_sparse(x)), block)


def _blocksize(name: str, given: object) -> Block:
    found = arguments.integers(name, given, "blocksize")
    if len(found) != 2 or min(found) < 1:
        raise dt.ArgumentError(
            f"{name}: blocksize is the rows and columns of a block, at least 1, not {found}"
        )
    return found[0], found[1]


@arguments.named(widen=False)
def sparse_bsr_tensor(
    crow_indices: object, col_indices: object, values: object,
    size: Sequence[int] | None = None, *, dtype: DTypeLike = None, device: DeviceLike = None,
    requires_grad: bool = False, check_invariants: bool = True,
) -> BSR:  # fmt: skip
    """A sparse matrix by rows of blocks: as `sparse_csr_tensor`, each value a small matrix.

    `crow_indices`, `col_indices`: integers that count blocks; columns ascend within a row.
    `values`: the blocks, one for each column.
    `size`: the shape, a multiple of the blocks'; left out, as small as the indices permit.
    `requires_grad`: whether the gradient of the values is wanted.
    `check_invariants`: indices are checked, which takes one host read; False trusts them. Tensors
    are kept, not copied: do not write to the indices afterwards.
    Shapes: crow_indices (block rows + 1), col_indices (blocks), values (blocks, rows, columns).
    Dtypes: indices are kept as int64; values any, `dtype` if given.
    Raises: IndexOutOfRange, ShapeError, DTypeError, DeviceError, ArgumentError for indices that do
    not ascend.

    >>> import dovetail as dt
    >>> x = dt.sparse_bsr_tensor([0, 1], [1], [[[1.0, 2.0], [3.0, 4.0]]], device="reference")
    >>> x.to_dense().tolist()
    [[0.0, 0.0, 1.0, 2.0], [0.0, 0.0, 3.0, 4.0]]
    """
    name = "sparse_bsr_tensor"
    values = values_beside(values, dtype, device, (crow_indices, col_indices))
    if values.ndim != 3 or 0 in values.shape[1:]:
        raise dt.ShapeError(
            f"{name}: values are (blocks, rows, columns) of blocks that hold something, not of "
            f"shape {values.shape}"
        )
    if size is not None:
        size = _in_blocks(name, size, values.shape[1:])
    pattern, stored = from_parts(
        name, ("crow_indices", "col_indices"), (crow_indices, col_indices), values, size, dtype,
        device, check_invariants, 3,
    )  # fmt: skip
    made = bsr(pattern, stored)
    wanted = arguments.flag(name, requires_grad, "requires_grad")
    return made.requires_grad_() if wanted else made


def _in_blocks(name: str, size: Sequence[int], block: Shape) -> Shape:
    shape = arguments.integers(name, size, "size")
    if len(shape) != 2 or any(n % b for n, b in zip(shape, block, strict=True)):
        raise dt.ShapeError(f"{name}: size {shape} is no matrix of whole blocks of {block}")
    return tuple(n // b for n, b in zip(shape, block, strict=True))
