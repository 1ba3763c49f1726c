"""Layers that read rows of a table: `Embedding`, `EmbeddingBag`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TypeAlias

import dovetail as dt

from .. import functional as F
from .. import init
from ..functional.embeddings import padding_row
from ..functional.sizes import check_counts
from .linear import empty_parameter
from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from dovetail.extend import DeviceLike, DTypeLike

__all__ = ["Embedding", "EmbeddingBag"]

Tensor: TypeAlias = dt.Tensor


class _Table(Module):
    """The base of embeddings: a weight of rows."""

    weight: Tensor

    def _create_weight(
        self,
        rows: int,
        columns: int,
        padding: int | None,
        weight: Tensor | None,
        learnt: bool,
        device: DeviceLike,
        dtype: DTypeLike,
    ) -> None:
        """Set `padding_idx` and `weight`, drawn or given.

        Raises: ArgumentError for a padding row out of range, ShapeError for a weight of another
        shape.
        """
        name = type(self).__name__
        self.padding_idx = padding_row(name, padding, rows)
        if weight is None:
            self.weight = empty_parameter((rows, columns), device, dtype)
            self.weight.requires_grad_(learnt)
            self.reset_parameters()
            return
        if weight.shape != (rows, columns):
            raise dt.ShapeError(
                f"{name}: weight must have shape ({rows}, {columns}), got shape {weight.shape}"
            )
        self.weight = Parameter(weight, requires_grad=learnt)

    def reset_parameters(self) -> None:
        """Draw a new normally distributed weight; the padding row is 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with dt.no_grad():
                self.weight[self.padding_idx] = 0.0


class Embedding(_Table):
    """A table of vectors, which are read by their indices: `embedding`.

    - `num_embeddings`: the number of rows: indices are from 0 to `num_embeddings - 1`.
    - `embedding_dim`: the number of elements of a row.
    - `padding_idx`: a row of zeros that is not trained.
    - `max_norm`: scale rows that are read to at most this norm, in place. None scales none.
    - `norm_type`: the order of that norm.
    - `scale_grad_by_freq`: divide gradients by the number of times a row is read.
    - `sparse`: the gradient of the weight is a sparse COO tensor.
    - `_weight`, `_freeze`: arguments of `from_pretrained`.

    The weight is (num_embeddings, embedding_dim), initially normally distributed.
    See also: `EmbeddingBag`, `dt.nn.functional.embedding`, `dt.nn.functional.one_hot`.

    >>> import dovetail as dt
    >>> layer = dt.nn.Embedding(10, 3)
    >>> layer, layer(dt.asarray([[1, 2]])).shape
    (Embedding(10, 3), (1, 2, 3))
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = check_counts(
            type(self).__name__, num_embeddings=num_embeddings, embedding_dim=embedding_dim
        )
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self._create_weight(
            num_embeddings, embedding_dim, padding_idx, _weight, not _freeze, device, dtype
        )

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.embedding`."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        return text + _changed_options(self)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """Return an embedding over the memory of a weight, not trained if `freeze` is True.

        - `embeddings`: the weight, of shape (num_embeddings, embedding_dim).
        - `freeze`: True does not train it.
        - `padding_idx`: a row that is not trained; its values stay.
        - `max_norm`, `norm_type`, `scale_grad_by_freq`, `sparse`: those of `Embedding`.

        Raises: ShapeError if the weight is not a matrix.
        """
        rows, columns = _matrix_sizes("Embedding", embeddings)
        return cls(
            rows,
            columns,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            embeddings,
            freeze,
        )


def _matrix_sizes(name: str, x: Tensor) -> tuple[int, int]:
    """Return the rows and columns of a weight. Raises: ShapeError unless it is a matrix."""
    if x.ndim != 2:
        raise dt.ShapeError(
            f"{name}.from_pretrained: the weight must have 2 dimensions, (rows, columns), got "
            f"shape {x.shape}"
        )
    return x.shape[0], x.shape[1]


def _changed_options(layer: Embedding | EmbeddingBag) -> str:
    """Return the options for `repr` that differ from their defaults."""
    text = "" if layer.max_norm is None else f", max_norm={layer.max_norm}"
    text += "" if layer.norm_type == 2 else f", norm_type={layer.norm_type}"
    if layer.scale_grad_by_freq:
        text += f", scale_grad_by_freq={layer.scale_grad_by_freq}"
    return text + (", sparse=True" if layer.sparse and isinstance(layer, Embedding) else "")


class EmbeddingBag(_Table):
    """A table of vectors, whose sum, mean or maximum is returned for each bag: `embedding_bag`.

    - `num_embeddings`: the number of rows: indices are from 0 to `num_embeddings - 1`.
    - `embedding_dim`: the number of elements of a row.
    - `max_norm`: scale rows that are read to at most this norm, in place. None scales none.
    - `norm_type`: the order of that norm.
    - `scale_grad_by_freq`: divide gradients by the number of times a row is read.
    - `mode`: "sum", "mean" or "max" of the rows of a bag.
    - `sparse`: the gradient of the weight is a sparse COO tensor.
    - `include_last_offset`: True if the offsets of a call have the end of the last bag, too.
    - `padding_idx`: a row that is ignored.

    A call `bag(input, offsets, per_sample_weights)` reads a bag in each row of `input`, or bags
    that begin at `offsets` of a vector.
    See also: `Embedding`, `dt.nn.functional.embedding_bag`.

    >>> import dovetail as dt
    >>> layer = dt.nn.EmbeddingBag(10, 3, mode="sum")
    >>> layer(dt.asarray([[1, 2], [3, 3]])).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = check_counts(
            type(self).__name__, num_embeddings=num_embeddings, embedding_dim=embedding_dim
        )
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.mode, self.include_last_offset = mode, include_last_offset
        self._create_weight(
            num_embeddings, embedding_dim, padding_idx, _weight, True, device, dtype
        )

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        """Apply `dt.nn.functional.embedding_bag`."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        options = _changed_options(self)
        text = f"{self.num_embeddings}, {self.embedding_dim}{options}, mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """Return bags over the memory of a weight, which is not trained if `freeze` is True.

        - `embeddings`: the weight, of shape (num_embeddings, embedding_dim).
        - `freeze`: True does not train it.
        - `max_norm`, `norm_type`, `scale_grad_by_freq`, `mode`, `sparse`, `include_last_offset`,
          `padding_idx`: those of `EmbeddingBag`.

        Raises: ShapeError if the weight is not a matrix.
        """
        rows, columns = _matrix_sizes("EmbeddingBag", embeddings)
        layer = cls(
            rows,
            columns,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        layer.weight.requires_grad_(not freeze)
        return layer
