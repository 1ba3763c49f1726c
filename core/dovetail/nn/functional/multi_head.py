"""Multi-head attention, with its input and output projections."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple, TypeAlias

import dovetail as dt
from dovetail.extend import arguments, widen_halves

from .attention import scaled_dot_product_attention
from .dropouts import dropout
from .precision import dtype_mismatch_error, obey_autocast, require_tensors

__all__ = ["multi_head_attention_forward"]

Tensor: TypeAlias = dt.Tensor
OP_NAME = "multi_head_attention_forward"


@obey_autocast("multi_head_attention_forward")
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return the output of multi-head attention, and its weights if they are needed.

    - `query`, `key`, `value`: the queries, keys and values before their projections.
    - `embed_dim_to_check`: the size e of a query.
    - `num_heads`: the number of equal parts into which it is split.
    - `in_proj_weight`: the weights of queries, keys and values, one below the other.
    - `in_proj_bias`: the three biases, one after the other.
    - `bias_k`, `bias_v`: an additional key and value.
    - `add_zero_attn`: add a key and value of zeros.
    - `dropout_p`: the probability with which weights become 0, while `training`.
    - `out_proj_weight`, `out_proj_bias`: the projection of the heads' output.
    - `key_padding_mask`: for all queries: bool, True for keys that are *not* seen, or floats that
      are added to scores.
    - `need_weights`: False returns None for the weights, and avoids a matrix of all scores.
    - `attn_mask`: for each query: bool, True for keys that are *not* seen, or floats that are added
      to scores.
    - `use_separate_proj_weight`: use `q_proj_weight`, `k_proj_weight` and `v_proj_weight` in place
      of `in_proj_weight`.
    - `q_proj_weight`, `k_proj_weight`, `v_proj_weight`: the separate weights.
    - `static_k`, `static_v`: heads that replace the projections of `key` and `value`.
    - `average_attn_weights`: False returns the weights of each head, True their mean.
    - `is_causal`: query i sees keys up to i; with `attn_mask` it asserts that this mask is causal.

    For a query that sees no key, result and weights are 0.
    Shapes: `query` (l, n, e), key (s, n, ...), value (s, n, ...), or all without n; attn_mask (l,
    s) or (n * heads, l, s), key_padding_mask (n, s); the result (l, n, e), and weights (n, l, s),
    or (n, heads, l, s) unless `average_attn_weights`.
    Dtypes: floats, the same for all; masks of bool or floats. Attention of float16 and bfloat16
    heads is computed in float32 and rounded once; products with weights are as in `linear`.
    Raises: ShapeError, DTypeError, ArgumentError.
    Source: Vaswani et al., "Attention is all you need", 2017.

    >>> import dovetail as dt
    >>> x, w = dt.ones((3, 1, 2)), dt.ones((6, 2))
    >>> out, weights = dt.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 2, 1, w, None, None, None, False, 0.0, w[:2], None)
    >>> out.shape, weights.shape
    ((3, 1, 2), (1, 3, 3))
    """
    require_tensors("multi_head_attention_forward", query, key, value)
    is_unbatched = query.ndim == 2
    size = arguments.integer(OP_NAME, embed_dim_to_check, "embed_dim_to_check")
    _require_fitting(query, key, value, size, arguments.integer(OP_NAME, num_heads, "num_heads"))
    _require_bias("in_proj_bias", in_proj_bias, 3 * embed_dim_to_check)
    _require_bias("out_proj_bias", out_proj_bias, out_proj_weight.shape[0])
    projected = _project_inputs(
        (query, key, value),
        in_proj_weight,
        in_proj_bias,
        (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None,
    )
    if is_unbatched:
        projected = tuple(dt.expand_dims(x, axis=1) for x in projected)
        if key_padding_mask is not None:
            key_padding_mask = dt.expand_dims(key_padding_mask, axis=0)
    q, k, v = projected
    masks = _Masks(attn_mask, key_padding_mask)
    masks.require_fitting(q.shape[1], num_heads, q.shape[0], k.shape[0])
    if attn_mask is not None and is_causal and not need_weights and key_padding_mask is None:
        masks = _Masks(None, None)  # is_causal asserts that the mask is causal
    causal = is_causal and masks.attn is None
    if bias_k is not None and bias_v is not None:
        k, v = (dt.concat([x, _repeat_over_batch(b, x)]) for x, b in ((k, bias_k), (v, bias_v)))
        masks, causal = masks.add_key(k.shape[0], causal, q)
    q, k, v = (_split_heads(x, num_heads) for x in (q, k, v))
    k = k if static_k is None else _split_batch("static_k", static_k, q)
    v = v if static_v is None else _split_batch("static_v", static_v, q)
    if add_zero_attn:
        k, v = (dt.concat([x, dt.zeros_like(x[:, :, :1])], axis=2) for x in (k, v))
        masks, causal = masks.add_key(k.shape[2], causal, q)
    mask, p = masks.merge(num_heads), dropout_p if training else 0.0
    if need_weights:
        out, weights = _attend_with_weights(q, k, v, mask, p, causal, average_attn_weights)
    else:
        out, weights = scaled_dot_product_attention(q, k, v, mask, p, causal), None
    joined = dt.reshape(dt.moveaxis(out, 2, 0), (q.shape[2], q.shape[0], embed_dim_to_check))
    _require_dtype("query", query, out_proj_weight=out_proj_weight, out_proj_bias=out_proj_bias)
    result = joined @ out_proj_weight.mT
    result = result if out_proj_bias is None else result + out_proj_bias
    if is_unbatched:
        result, weights = dt.squeeze(result, axis=1), None if weights is None else weights[0]
    return result, weights


def _require_fitting(q: Tensor, k: Tensor, v: Tensor, size: int, heads: int) -> None:
    """Raise ShapeError for shapes that do not fit, ArgumentError for heads that do not divide."""
    shapes = f"shapes {q.shape}, {k.shape} and {v.shape} of query, key and value"
    if q.ndim not in (2, 3) or k.ndim != q.ndim or v.ndim != q.ndim:
        raise dt.ShapeError(
            f"{OP_NAME}: query, key and value must have shape (length, batch, size) or (length, "
            f"size), got {shapes}"
        )
    if q.shape[-1] != size:
        raise dt.ShapeError(
            f"{OP_NAME}: the last axis of query must have the size of embed_dim, {size}, got "
            f"{q.shape[-1]} ({shapes})"
        )
    if k.shape[:-1] != v.shape[:-1] or k.shape[1:-1] != q.shape[1:-1]:
        raise dt.ShapeError(
            f"{OP_NAME}: key and value must have the same length, and query, key and value the "
            f"same batch size, got {shapes}"
        )
    if heads < 1 or size % heads:
        raise dt.ArgumentError(
            f"{OP_NAME}: embed_dim must be divisible by num_heads, got {size} and {heads}"
        )


def _require_bias(name: str, bias: Tensor | None, size: int) -> None:
    """Raise ShapeError for a bias of another shape than (size,)."""
    if bias is not None and bias.shape != (size,):
        raise dt.ShapeError(f"{OP_NAME}: {name} must have shape ({size},), got shape {bias.shape}")


def _project_inputs(
    inputs: tuple[Tensor, Tensor, Tensor],
    weight: Tensor | None,
    bias: Tensor | None,
    separate: tuple[Tensor | None, Tensor | None, Tensor | None] | None,
) -> tuple[Tensor, ...]:
    """Return the projections of query, key and value; one product if all three are one tensor.

    `weight`: the three weights, one below the other, or None with `separate` weights.
    """
    size = inputs[0].shape[-1]
    if separate is None and weight is None:
        raise dt.ArgumentError(
            f"{OP_NAME}: in_proj_weight is missing; pass it, or use_separate_proj_weight=True "
            "with q_proj_weight, k_proj_weight and v_proj_weight"
        )
    if separate is None and inputs[0] is inputs[1] is inputs[2]:
        assert weight is not None
        _require_dtype("query", inputs[0], in_proj_weight=weight, in_proj_bias=bias)
        product = inputs[0] @ weight.mT
        product = product if bias is None else product + bias
        return tuple(product[..., i * size : (i + 1) * size] for i in range(3))
    projections = []
    for i, x in enumerate(inputs):
        w = weight[i * size : (i + 1) * size] if separate is None and weight is not None else None
        w = separate[i] if separate is not None else w
        if w is None or w.ndim != 2 or w.shape[1] != x.shape[-1]:
            raise dt.ShapeError(
                f"{OP_NAME}: the weight of {('query', 'key', 'value')[i]} must have shape "
                f"(embed_dim, {x.shape[-1]}), got shape {None if w is None else w.shape} for an "
                f"input of shape {x.shape}"
            )
        _require_dtype(("query", "key", "value")[i], x, weight=w, in_proj_bias=bias)
        product = x @ w.mT
        projections.append(product if bias is None else product + bias[i * size : (i + 1) * size])
    return tuple(projections)


def _require_dtype(name: str, x: Tensor, **weights: Tensor | None) -> None:
    """Raise DTypeError if weights have another dtype than their input."""
    for key, w in weights.items():
        if w is not None and w.dtype is not x.dtype:
            raise dtype_mismatch_error(OP_NAME, x, key, w, name)


def _repeat_over_batch(b: Tensor, x: Tensor) -> Tensor:
    """Return a key or value repeated for each example of a batch."""
    return dt.broadcast_to(b, (1, x.shape[1], x.shape[2]))


def _split_heads(x: Tensor, heads: int) -> Tensor:
    """Reshape (length, batch, heads * size) to (batch, heads, length, size)."""
    length, batch, size = x.shape
    return dt.permute_dims(dt.reshape(x, (length, batch, heads, size // heads)), (1, 2, 0, 3))


def _split_batch(name: str, x: Tensor, q: Tensor) -> Tensor:
    """Reshape (batch * heads, length, size) to (batch, heads, length, size)."""
    batch, heads, _, size = q.shape
    if x.ndim != 3 or x.shape[0] != batch * heads or x.shape[2] != size:
        raise dt.ShapeError(
            f"{OP_NAME}: {name} must have shape ({batch * heads}, length, {size}), got shape "
            f"{x.shape}"
        )
    return dt.reshape(x, (batch, heads, *x.shape[1:]))


class _Masks(NamedTuple):
    """The attention mask of each query and the padding mask of keys."""

    attn: Tensor | None
    padding: Tensor | None

    def require_fitting(self, batch: int, heads: int, rows: int, columns: int) -> None:
        """Raise an error if a mask has a shape or dtype that does not fit."""
        for name, mask in (("attn_mask", self.attn), ("key_padding_mask", self.padding)):
            if mask is not None and mask.dtype is not dt.bool and mask.dtype.kind != "f":
                raise dt.DTypeError(
                    f"{OP_NAME}: {name} must be bool (True: ignore) or float, got {mask.dtype}"
                )
        if self.padding is not None and self.padding.shape != (batch, columns):
            raise dt.ShapeError(
                f"{OP_NAME}: key_padding_mask must have shape {(batch, columns)}, got shape "
                f"{self.padding.shape}"
            )
        fitting = (rows, columns), (batch * heads, rows, columns)
        if self.attn is not None and self.attn.shape not in fitting:
            raise dt.ShapeError(
                f"{OP_NAME}: attn_mask must have shape {fitting[0]} or {fitting[1]}, got shape "
                f"{self.attn.shape}"
            )

    def add_key(self, n: int, causal: bool, q: Tensor) -> tuple[_Masks, bool]:
        """Return masks for an additional last key that all queries see, and the new `causal`.

        `n`: the number of keys with that key.
        """
        attn = self.attn
        if causal:  # the last key is seen by all queries, so causality needs a mask
            rows = q.shape[0] if q.ndim == 3 else q.shape[2]
            numbers = dt.arange(max(rows, n), device=q.device)
            attn = numbers[:rows, None] < numbers[: n - 1]
        return _Masks(_add_visible_column(attn), _add_visible_column(self.padding)), False

    def merge(self, heads: int) -> Tensor | None:
        """Combine both masks to one for `scaled_dot_product_attention`, True to attend, or None."""
        masks: list[Tensor] = []
        if self.attn is not None:
            m = self.attn
            m = m if m.ndim == 2 else dt.reshape(m, (-1, heads, *m.shape[1:]))
            masks.append(m)
        if self.padding is not None:
            masks.append(self.padding[:, None, None, :])
        if not masks:
            return None
        if all(m.dtype is dt.bool for m in masks):
            return ~masks[0] if len(masks) == 1 else ~(masks[0] | masks[1])
        floats = [
            dt.where(m, -math.inf, dt.zeros((), device=m.device)) if m.dtype is dt.bool else m
            for m in masks
        ]
        return floats[0] if len(floats) == 1 else floats[0] + floats[1]


def _add_visible_column(mask: Tensor | None) -> Tensor | None:
    """Return a mask with an additional column, for a key that all queries see."""
    if mask is None:
        return None
    column = dt.zeros((*mask.shape[:-1], 1), dtype=mask.dtype, device=mask.device)
    return dt.concat([mask, column], axis=-1)


@partial(widen_halves, widen="first")
def _attend_with_weights(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float, causal: bool, average: bool
) -> tuple[Tensor, Tensor]:
    """Return (attention, weights after dropout); in a bool mask, True lets a query see a key.

    Other masks are added. `average`: True averages the weights over heads.
    """
    rows, columns = q.shape[2], k.shape[2]
    scores = (q * (1 / math.sqrt(q.shape[-1]))) @ k.mT
    if causal:
        numbers = dt.arange(max(rows, columns), device=q.device)
        scores = dt.where(numbers[:rows, None] >= numbers[:columns], scores, -math.inf)
    if mask is not None and mask.dtype is dt.bool:
        scores = dt.where(mask, scores, -math.inf)
    elif mask is not None:
        scores = scores + dt.astype(mask, scores.dtype)
    top = dt.max(scores, axis=-1, keepdims=True).detach()
    top = top if mask is None else dt.where(top == -math.inf, 0.0, top)
    weights = dt.exp(scores - top)
    total = dt.sum(weights, axis=-1, keepdims=True)
    weights = weights / (total if mask is None else dt.where(total == 0, 1.0, total))
    weights = dropout(weights, p) if p else weights
    return weights @ v, dt.mean(weights, axis=1) if average else weights
