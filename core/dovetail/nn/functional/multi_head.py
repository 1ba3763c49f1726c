"""Attention of several heads: products with weights before it and after it."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple, TypeAlias

import dovetail as dt
from dovetail.extend import widen_halves

from .attention import scaled_dot_product_attention
from .dropouts import dropout
from .precision import other_dtype, tensors

__all__ = ["multi_head_attention_forward"]

Tensor: TypeAlias = dt.Tensor
NAME = "multi_head_attention_forward"


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None,
    bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
    out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """What attention of several heads gives, and its weights where they are needed.

    `embed_dim_to_check`: the size e of a query; `num_heads`: into how many parts of equal size it
    falls. `in_proj_weight`: of queries, keys and values, one below the other; with
    `use_separate_proj_weight` each has its own, `q_proj_weight`, `k_proj_weight` and
    `v_proj_weight`; `in_proj_bias`: of all three, one after the other. `out_proj_weight`,
    `out_proj_bias`: of the product with what heads give. `bias_k`, `bias_v`: one more key and
    value; `add_zero_attn`: one more of zeros. Masks are bool, True where a key is *not* seen, or
    floats that are added to scores: `attn_mask` for each query, `key_padding_mask` for all of them.
    `is_causal`: query i sees keys up to i; with `attn_mask` it says that this is such a mask.
    `dropout_p`: the probability with which weights become 0, while `training`. `need_weights`:
    False never has a matrix of all scores. `static_k`, `static_v`: heads that are taken in place of
    products with `key` and `value`. A query that sees no key gets zeros, and weights of zero.
    Shapes: `query` (l, n, e), key (s, n, ...), value (s, n, ...), or all without n; attn_mask (l,
    s) or (n * heads, l, s), key_padding_mask (n, s); the result (l, n, e), and weights (n, l, s),
    or (n, heads, l, s) unless `average_attn_weights`.
    Dtypes: floats, the same for all; masks of bool or floats. Attention of float16 and bfloat16
    heads is computed in float32 and rounded once; products with weights are as in `linear`.
    Raises: ShapeError, DTypeError, ArgumentError.
    Source: Vaswani et al., "Attention is all you need", 2017.

    >>> import dovetail as dt
    >>> x, w = dt.ones((3, 1, 2), device="reference"), dt.ones((6, 2), device="reference")
    >>> out, weights = dt.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 2, 1, w, None, None, None, False, 0.0, w[:2], None)
    >>> out.shape, weights.shape
    ((3, 1, 2), (1, 3, 3))
    """
    tensors("multi_head_attention_forward", query, key, value)
    alone = query.ndim == 2
    _require_fitting(query, key, value, embed_dim_to_check, num_heads)
    projected = _projected(
        (query, key, value), in_proj_weight, in_proj_bias,
        (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None,
    )  # fmt: skip
    if alone:
        projected = tuple(dt.expand_dims(x, axis=1) for x in projected)
        if key_padding_mask is not None:
            key_padding_mask = dt.expand_dims(key_padding_mask, axis=0)
    q, k, v = projected
    masks = _Masks(attn_mask, key_padding_mask)
    masks.require_fitting(q.shape[1], num_heads, q.shape[0], k.shape[0])
    if attn_mask is not None and is_causal and not need_weights and key_padding_mask is None:
        masks = _Masks(None, None)  # as the mask says
    causal = is_causal and masks.attn is None
    if bias_k is not None and bias_v is not None:
        k, v = (dt.concat([x, _repeated(b, x)]) for x, b in ((k, bias_k), (v, bias_v)))
        masks, causal = masks.with_one_more(k.shape[0], causal, q)
    q, k, v = (_heads(x, num_heads) for x in (q, k, v))
    k = k if static_k is None else _static("static_k", static_k, q)
    v = v if static_v is None else _static("static_v", static_v, q)
    if add_zero_attn:
        k, v = (dt.concat([x, dt.zeros_like(x[:, :, :1])], axis=2) for x in (k, v))
        masks, causal = masks.with_one_more(k.shape[2], causal, q)
    mask, p = masks.joined(num_heads), dropout_p if training else 0.0
    if need_weights:
        out, weights = _with_weights(q, k, v, mask, p, causal, average_attn_weights)
    else:
        out, weights = scaled_dot_product_attention(q, k, v, mask, p, causal), None
    joined = dt.reshape(dt.moveaxis(out, 2, 0), (q.shape[2], q.shape[0], embed_dim_to_check))
    _require_dtype("query", query, out_proj_weight=out_proj_weight, out_proj_bias=out_proj_bias)
    made = joined @ out_proj_weight.mT
    made = made if out_proj_bias is None else made + out_proj_bias
    if alone:
        made, weights = dt.squeeze(made, axis=1), None if weights is None else weights[0]
    return made, weights


def _require_fitting(q: Tensor, k: Tensor, v: Tensor, size: int, heads: int) -> None:
    shapes = f"shapes {q.shape}, {k.shape} and {v.shape} of query, key and value"
    if q.ndim not in (2, 3) or k.ndim != q.ndim or v.ndim != q.ndim:
        raise dt.ShapeError(f"{NAME}: {shapes}: give (length, batch, size), or (length, size)")
    if q.shape[-1] != size:
        raise dt.ShapeError(f"{NAME}: {shapes}: query has {q.shape[-1]}, not embed_dim {size}")
    if k.shape[:-1] != v.shape[:-1] or k.shape[1:-1] != q.shape[1:-1]:
        raise dt.ShapeError(f"{NAME}: {shapes}: as many keys as values, and one batch of all")
    if heads < 1 or size % heads:
        raise dt.ArgumentError(f"{NAME}: embed_dim {size} is no multiple of {heads} heads")


def _projected(
    given: tuple[Tensor, Tensor, Tensor], weight: Tensor | None, bias: Tensor | None,
    own: tuple[Tensor | None, Tensor | None, Tensor | None] | None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Products with the weights: one product where all three are one."""
    size = given[0].shape[-1]
    if own is None and weight is None:
        raise dt.ArgumentError(
            f"{NAME}: give in_proj_weight, or three and use_separate_proj_weight"
        )
    if own is None and given[0] is given[1] is given[2]:
        assert weight is not None
        _require_dtype("query", given[0], in_proj_weight=weight, in_proj_bias=bias)
        made = given[0] @ weight.mT
        made = made if bias is None else made + bias
        return tuple(made[..., i * size : (i + 1) * size] for i in range(3))
    found = []
    for i, x in enumerate(given):
        w = weight[i * size : (i + 1) * size] if own is None and weight is not None else None
        w = own[i] if own is not None else w
        if w is None or w.ndim != 2 or w.shape[1] != x.shape[-1]:
            raise dt.ShapeError(
                f"{NAME}: {('query', 'key', 'value')[i]} of shape {x.shape} does not fit weights "
                f"of shape {None if w is None else w.shape}"
            )
        _require_dtype(("query", "key", "value")[i], x, weight=w, in_proj_bias=bias)
        made = x @ w.mT
        found.append(made if bias is None else made + bias[i * size : (i + 1) * size])
    return tuple(found)


def _require_dtype(name: str, x: Tensor, **weights: Tensor | None) -> None:
    """Raises: DTypeError where weights have another dtype than what they are multiplied with."""
    for key, w in weights.items():
        if w is not None and w.dtype is not x.dtype:
            raise other_dtype(NAME, x, key, w, name)


def _repeated(b: Tensor, x: Tensor) -> Tensor:
    """One more key or value for each of a batch."""
    return dt.broadcast_to(b, (1, x.shape[1], x.shape[2]))


def _heads(x: Tensor, heads: int) -> Tensor:
    """(length, batch, heads * size) as (batch, heads, length, size)."""
    length, batch, size = x.shape
    return dt.permute_dims(dt.reshape(x, (length, batch, heads, size // heads)), (1, 2, 0, 3))


def _static(name: str, x: Tensor, q: Tensor) -> Tensor:
    """What was given for all heads, (batch * heads, length, size)."""
    batch, heads, _, size = q.shape
    if x.ndim != 3 or x.shape[0] != batch * heads or x.shape[2] != size:
        raise dt.ShapeError(
            f"{NAME}: {name} of shape {x.shape}: give ({batch * heads}, length, {size})"
        )
    return dt.reshape(x, (batch, heads, *x.shape[1:]))


class _Masks(NamedTuple):
    """What each query does not see, and what nobody sees."""

    attn: Tensor | None
    padding: Tensor | None

    def require_fitting(self, batch: int, heads: int, rows: int, columns: int) -> None:
        """Raises where one is of no shape or dtype that fits."""
        for name, mask in (("attn_mask", self.attn), ("key_padding_mask", self.padding)):
            if mask is not None and mask.dtype is not dt.bool and mask.dtype.kind != "f":
                raise dt.DTypeError(
                    f"{NAME}: {name} is {mask.dtype}; give bool (True: not seen) or a float"
                )
        if self.padding is not None and self.padding.shape != (batch, columns):
            raise dt.ShapeError(
                f"{NAME}: key_padding_mask of shape {self.padding.shape}, where {(batch, columns)} "
                "fits"
            )
        fitting = (rows, columns), (batch * heads, rows, columns)
        if self.attn is not None and self.attn.shape not in fitting:
            raise dt.ShapeError(
                f"{NAME}: attn_mask of shape {self.attn.shape}, where {fitting[0]} or {fitting[1]} "
                "fits"
            )

    def with_one_more(self, n: int, causal: bool, q: Tensor) -> tuple[_Masks, bool]:
        """The same where there is one more key, which all see."""
        attn = self.attn
        if causal:  # a mask from now on, since it sees the last key, too
            rows = q.shape[0] if q.ndim == 3 else q.shape[2]
            at = dt.arange(max(rows, n), device=q.device)
            attn = at[:rows, None] < at[: n - 1]
        return _Masks(_wider(attn), _wider(self.padding)), False

    def joined(self, heads: int) -> Tensor | None:
        """One mask for both, as `scaled_dot_product_attention` has it."""
        found: list[Tensor] = []
        if self.attn is not None:
            m = self.attn
            m = m if m.ndim == 2 else dt.reshape(m, (-1, heads, *m.shape[1:]))
            found.append(m)
        if self.padding is not None:
            found.append(self.padding[:, None, None, :])
        if not found:
            return None
        if all(m.dtype is dt.bool for m in found):
            return ~found[0] if len(found) == 1 else ~(found[0] | found[1])
        added = [
            dt.where(m, -math.inf, dt.zeros((), device=m.device)) if m.dtype is dt.bool else m
            for m in found
        ]
        return added[0] if len(added) == 1 else added[0] + added[1]


def _wider(mask: Tensor | None) -> Tensor | None:
    """With one more column, of what all see."""
    if mask is None:
        return None
    seen = dt.zeros((*mask.shape[:-1], 1), dtype=mask.dtype, device=mask.device)
    return dt.concat([mask, seen], axis=-1)


@partial(widen_halves, widen="first")
def _with_weights(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float, causal: bool, average: bool
) -> tuple[Tensor, Tensor]:
    """Return attention, and the weights that it gives values, averaged over heads if wanted."""
    rows, columns = q.shape[2], k.shape[2]
    scores = (q * (1 / math.sqrt(q.shape[-1]))) @ k.mT
    if causal:
        at = dt.arange(max(rows, columns), device=q.device)
        scores = dt.where(at[:rows, None] >= at[:columns], scores, -math.inf)
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
