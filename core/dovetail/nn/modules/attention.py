"""`MultiheadAttention`, whose state has PyTorch's keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import dovetail as dt

from .. import init
from ..functional.multi_head import multi_head_attention_forward
from ..functional.precision import require_tensors
from ..functional.sizes import check_counts, check_probability
from .linear import Linear
from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from dovetail.extend import DeviceLike, DTypeLike

__all__ = ["MultiheadAttention"]

Tensor: TypeAlias = dt.Tensor


class MultiheadAttention(Module):
    """Multi-head attention; see `dt.nn.functional.multi_head_attention_forward`.

    - `embed_dim`: the size of a query and of the result.
    - `num_heads`: the number of heads; it divides `embed_dim`.
    - `dropout`: the dropout probability of the weights in training.
    - `bias`: False has no biases.
    - `add_bias_kv`: add a learnable key and value.
    - `add_zero_attn`: add a key and value of zeros.
    - `kdim`, `vdim`: sizes of keys and values. Default: `embed_dim`.
    - `batch_first`: True if queries, keys, values and the result are (batch, positions, features),
      else (positions, batch, features).

    A call `attention(query, key, value)` returns the output and the weights, or None in their place
    with `need_weights=False`, which avoids a matrix of all scores. It accepts `attn_mask`,
    `key_padding_mask` and `is_causal`. Masks are bool, True where a key is *not* seen, or floats
    that are added to scores.
    Raises: ShapeError, DTypeError, ArgumentError.
    See also: `TransformerEncoderLayer`, `dt.nn.functional.scaled_dot_product_attention`.

    >>> import dovetail as dt
    >>> attention = dt.nn.MultiheadAttention(4, 2)
    >>> x = dt.ones((3, 1, 4))
    >>> out, weights = attention(x, x, x)
    >>> out.shape, weights.shape
    ((3, 1, 4), (1, 3, 3))
    """

    in_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    q_proj_weight: Tensor | None
    k_proj_weight: Tensor | None
    v_proj_weight: Tensor | None
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        embed_dim, num_heads = check_counts(op, 1, embed_dim=embed_dim, num_heads=num_heads)
        if embed_dim % num_heads:
            raise dt.ArgumentError(
                f"{op}: embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}"
            )
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.dropout = check_probability(op, dropout, "dropout")
        self.kdim, self.vdim = check_counts(
            op, kdim=embed_dim if kdim is None else kdim, vdim=embed_dim if vdim is None else vdim
        )
        self.batch_first, self.add_zero_attn = batch_first, add_zero_attn
        self.head_dim = embed_dim // num_heads
        one = self._qkv_same_embed_dim = self.kdim == embed_dim == self.vdim
        shapes: dict[str, tuple[int, ...] | None] = {
            "q_proj_weight": None if one else (embed_dim, embed_dim),
            "k_proj_weight": None if one else (embed_dim, self.kdim),
            "v_proj_weight": None if one else (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim) if one else None,
            "in_proj_bias": (3 * embed_dim,) if bias else None,
            "bias_k": (1, 1, embed_dim) if add_bias_kv else None,
            "bias_v": (1, 1, embed_dim) if add_bias_kv else None,
        }
        for name, shape in shapes.items():
            x = None if shape is None else dt.empty(shape, dtype=dtype, device=device)
            self.register_parameter(name, None if x is None else Parameter(x))
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Draw new weights, and set the projections' biases to 0."""
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            weight = getattr(self, name)
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.constant_(bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the output of attention, and its weights or None without `need_weights`.

        - `query`, `key`, `value`: of shape (positions, batch, features), or by `batch_first`; or
          without batch.
        - `key_padding_mask`: for all queries, of shape (batch, keys).
        - `need_weights`: False returns None for the weights, and avoids a matrix of all scores.
        - `attn_mask`: for each query, of shape (queries, keys) or (batch * heads, queries, keys).
        - `average_attn_weights`: False returns the weights of each head, True their mean.
        - `is_causal`: query i sees keys up to i; `attn_mask` may be left out then.

        Masks are bool, True where a key is *not* seen, or floats that are added to scores.
        """
        require_tensors(type(self).__name__, query, key, value)
        batch_first = self.batch_first and query.ndim == 3
        operands = [query, key, value]
        if batch_first:  # operands that are one tensor stay one tensor
            transposed = {id(x): dt.moveaxis(x, 0, 1) for x in operands if x.ndim == 3}
            operands = [transposed.get(id(x), x) for x in operands]
        out, weights = multi_head_attention_forward(
            operands[0],
            operands[1],
            operands[2],
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            not self._qkv_same_embed_dim,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return dt.moveaxis(out, 0, 1) if batch_first else out, weights
