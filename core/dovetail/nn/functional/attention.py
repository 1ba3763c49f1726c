"""Attention, softmax(query @ key.mT) @ value, without a matrix of all scores in memory.

The scores are computed one block at a time: a product of some rows with all keys that they see, one
fused kernel for mask, maximum, exponential and sum, and a product with the values. One number per
row is stored, the logarithm of its sum. The backward pass recomputes the scores of a block of keys
from it. For 64 causal heads of 512 x 64, a kernel with one row per point takes 13 times as long.
Source: Dao, Fu, Ermon, Rudra, Re, "FlashAttention", NeurIPS 2022, for the backward pass; the order
of its loops is that of Dao, "FlashAttention-2", 2023.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import dovetail as dt

__all__ = ["scaled_dot_product_attention"]

Tensor: TypeAlias = dt.Tensor
Shape: TypeAlias = tuple[int, ...]
BatchSlices: TypeAlias = tuple[slice, ...]
OP_NAME = "scaled_dot_product_attention"
BLOCK_SCORES_MAX = 1 << 20  # a block and its intermediates stay in a processor's last-level cache
BLOCK_ROWS_MIN = 64  # products of fewer rows are slow
CAUSAL_BLOCK_SCORES = 1 << 17  # smaller blocks skip more masked scores; each costs a launch
HALVES = (dt.float16, dt.bfloat16)
FLOATS = (dt.float32, dt.float64, *HALVES)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return values weighted for each query by the softmax of its products with the keys.

    `attn_mask`: bool, True where a query sees a key, or a float that is added to the scores.
    `is_causal`: query i sees only keys up to i; a mask applies as well. `scale`: the factor of the
    products, by default 1 / sqrt(e). `dropout_p`: the probability with which weights become 0, also
    outside of training. `enable_gqa`: several neighbouring heads of queries share a key and value.
    The result for a query that sees no key is zero.
    Shapes: `query` (..., l, e), `key` (..., s, e), `value` (..., s, v) give (..., l, v); the mask
    is broadcast to (..., l, s), and the axes before these to each other.
    Dtypes: floats, the same of all three; halves are computed in float32, and rounded once.
    Memory: one block of scores at a time, also in the backward pass. Dropout stores a bool for each
    score, and gradients of gradients store all scores.
    Raises: ShapeError, DTypeError, DeviceError, ArgumentError.
    Source: Vaswani et al., "Attention is all you need", 2017.

    >>> import dovetail as dt
    >>> q = dt.asarray([[1.0, 0.0], [0.0, 1.0]], device="reference")
    >>> dt.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)[0].tolist()
    [1.0, 0.0]
    """
    operands = (query, key, value)
    _require_fitting(operands, attn_mask)
    if not 0.0 <= dropout_p <= 1.0:
        raise dt.ArgumentError(f"{OP_NAME}: dropout_p must be between 0 and 1, got {dropout_p}")
    if enable_gqa:
        return _attend_grouped(query, key, value, attn_mask, dropout_p, is_causal, scale)
    batch = _batch_shape(operands, attn_mask)
    if key.shape[-2] == 0:
        shape = (*batch, query.shape[-2], value.shape[-1])
        return dt.zeros(shape, dtype=query.dtype, device=query.device)
    compute = dt.float32 if query.dtype in HALVES else query.dtype
    q, k, v = (x if x.dtype is compute else dt.astype(x, compute) for x in operands)
    shape = (*batch, q.shape[-2], k.shape[-2])
    options = _Options(
        bool(is_causal),
        1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else float(scale),
        0.0 if dropout_p == 1 else 1 / (1 - dropout_p),
    )
    keep = None
    if dropout_p:
        keep = dt.random.uniform(shape, dtype=dt.float32, device=query.device) >= dropout_p
    out, _ = _Attention.apply(
        dt.broadcast_to(q, (*batch, *q.shape[-2:])),
        _with_batch_axes(k, batch),
        _with_batch_axes(v, batch),
        _broadcast_mask(attn_mask, shape, compute),
        keep,
        options,
    )
    return out if compute is query.dtype else dt.astype(out, query.dtype)


# --- operands -------------------------------------------------------------------------------------


def _require_fitting(operands: Sequence[Tensor], mask: Tensor | None) -> None:
    """Raise an error for a type, dtype or shape of query, key, value or mask that does not fit."""
    for name, x in zip(("query", "key", "value"), operands, strict=True):
        if not isinstance(x, dt.Tensor):
            raise dt.ArgumentTypeError(
                f"{OP_NAME}: {name} must be a tensor, got {type(x).__name__}"
            )
        if x.dtype not in FLOATS:
            raise dt.DTypeError(
                f"{OP_NAME}: {name} must have a float dtype, got {x.dtype}; use "
                "x.astype(dt.float32)"
            )
    q, k, v = operands
    shapes = f"shapes {q.shape}, {k.shape} and {v.shape} of query, key and value"
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise dt.ShapeError(
            f"{OP_NAME}: query, key and value must have at least 2 dimensions, (..., rows, size), "
            f"got {shapes}"
        )
    if not q.dtype is k.dtype is v.dtype:
        raise dt.DTypeError(
            f"{OP_NAME}: query, key and value must have the same dtype, got {q.dtype}, {k.dtype} "
            f"and {v.dtype}; use x.astype(dtype)"
        )
    if q.shape[-1] != k.shape[-1]:
        raise dt.ShapeError(
            f"{OP_NAME}: query and key must have the same size along the last axis, got {shapes}"
        )
    if k.shape[-2] != v.shape[-2]:
        raise dt.ShapeError(
            f"{OP_NAME}: key and value must have the same size along axis -2, got {shapes}"
        )
    if mask is None:
        return
    if not isinstance(mask, dt.Tensor):
        raise dt.ArgumentTypeError(
            f"{OP_NAME}: attn_mask must be a tensor, got {type(mask).__name__}"
        )
    if mask.dtype not in (dt.bool, dt.float32, q.dtype):
        raise dt.DTypeError(
            f"{OP_NAME}: attn_mask must be bool (True: attend), float32 or {q.dtype}, got "
            f"{mask.dtype}"
        )
    if mask.ndim < 2 or any(
        a not in (1, b) for a, b in zip(mask.shape[-2:], (q.shape[-2], k.shape[-2]), strict=True)
    ):
        raise dt.ShapeError(
            f"{OP_NAME}: attn_mask must broadcast to the scores' shape (..., {q.shape[-2]}, "
            f"{k.shape[-2]}), got shape {mask.shape}"
        )


def _batch_shape(operands: Sequence[Tensor], mask: Tensor | None) -> Shape:
    """Return the broadcast shape of axes before the last two. Raises: ShapeError if none fits."""
    every = [*operands, *(() if mask is None else (mask,))]
    try:
        return tuple(dt.broadcast_shapes(*[x.shape[:-2] for x in every]))
    except dt.ShapeError as error:
        raise dt.ShapeError(
            f"{OP_NAME}: axes before the last two must broadcast, got shapes "
            f"{', '.join(str(x.shape) for x in every)}; if keys have fewer heads than queries, "
            "pass enable_gqa=True"
        ) from error


def _with_batch_axes(x: Tensor, batch: Shape) -> Tensor:
    """Return a view with as many batch axes as `batch`; axes that `x` lacks have size 1."""
    missing = len(batch) + 2 - x.ndim
    return x if not missing else dt.reshape(x, (1,) * missing + x.shape)


def _broadcast_mask(mask: Tensor | None, shape: Shape, dtype: Any) -> Tensor | None:
    """Return the mask, broadcast to the last two axes of the scores; a float mask as `dtype`."""
    if mask is None:
        return None
    mask = _with_batch_axes(mask, shape[:-2])
    if mask.dtype is not dt.bool and mask.dtype is not dtype:
        mask = dt.astype(mask, dtype)
    return dt.broadcast_to(mask, (*mask.shape[:-2], *shape[-2:]))


def _attend_grouped(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> Tensor:
    """Compute attention in which several heads of queries, along axis -3, share keys and values."""
    if min(query.ndim, key.ndim, value.ndim) < 3:
        raise dt.ShapeError(
            f"{OP_NAME}: enable_gqa=True needs at least 3 dimensions, with the heads in axis -3, "
            f"got shapes {query.shape}, {key.shape} and {value.shape}"
        )
    heads = query.shape[-3]
    for name, x in (("key", key), ("value", value)):
        if not x.shape[-3] or heads % x.shape[-3]:
            raise dt.ShapeError(
                f"{OP_NAME}: the number of query heads must be a multiple of the heads of {name}, "
                f"got {heads} and {x.shape[-3]}"
            )
    n = max(key.shape[-3], value.shape[-3])
    key, value = (
        x if x.shape[-3] == n else dt.repeat(x, n // x.shape[-3], axis=-3) for x in (key, value)
    )
    if mask is not None and mask.ndim > 2:
        cut = (n, heads // n) if mask.shape[-3] == heads else (1, 1)
        if mask.shape[-3] not in (1, heads):
            raise dt.ShapeError(
                f"{OP_NAME}: attn_mask must have 1 or {heads} heads in axis -3, like query, got "
                f"shape {mask.shape}"
            )
        mask = dt.reshape(mask, (*mask.shape[:-3], *cut, *mask.shape[-2:]))
    out = scaled_dot_product_attention(
        dt.reshape(query, (*query.shape[:-3], n, heads // n, *query.shape[-2:])),
        dt.expand_dims(key, axis=-3),
        dt.expand_dims(value, axis=-3),
        mask,
        dropout_p,
        is_causal,
        scale,
    )
    return dt.reshape(out, (*out.shape[:-4], heads, *out.shape[-2:]))


# --- blocks ---------------------------------------------------------------------------------------


class _Options(NamedTuple):
    """The options of a call: `scale` of the products, `keep_scale` of weights after dropout."""

    causal: bool
    scale: float
    keep_scale: float


def _blocks(
    batch: Shape, rows: int, columns: int, causal: bool
) -> list[tuple[BatchSlices, int, int]]:
    """Return blocks of the scores: (slices of the batch axes, the first row, the end row)."""
    row_scores = max(math.prod(batch) * columns, 1)
    step = BLOCK_SCORES_MAX // row_scores
    if causal:  # shorter blocks compute fewer masked scores
        step = min(step, CAUSAL_BLOCK_SCORES // row_scores)
    step = max(min(step // BLOCK_ROWS_MIN * BLOCK_ROWS_MIN, rows), min(BLOCK_ROWS_MIN, rows), 1)
    starts = range(0, rows, step)
    cuts = _batch_slices(batch, max(BLOCK_SCORES_MAX // (step * columns), 1))
    return [(cut, a, min(a + step, rows)) for cut in cuts for a in starts]


def _batch_slices(batch: Shape, count: int) -> Iterator[BatchSlices]:
    """Yield slices of the batch axes, each of about `count` matrices; () stands for all."""
    if math.prod(batch) <= count:
        yield ()
        return
    axis = 0
    while math.prod(batch[axis + 1 :]) > count:
        axis += 1
    step = count // math.prod(batch[axis + 1 :])
    for outer in itertools.product(*map(range, batch[:axis])):
        for a in range(0, batch[axis], step):
            yield (*[slice(i, i + 1) for i in outer], slice(a, min(a + step, batch[axis])))


def _operand_block(
    x: Tensor, batch: BatchSlices, a: int = 0, b: int | None = None, axis: int = -2
) -> Tensor:
    """Return a block's part of an operand: its matrices, and rows (or columns) a to b of them."""
    if batch:
        x = x[tuple(c if n > 1 else slice(None) for c, n in zip(batch, x.shape, strict=False))]
    if b is None or (a, b) == (0, x.shape[axis]):
        return x
    return x[..., a:b, :] if axis == -2 else x[..., a:b]


class _BlockSum:
    """A tensor that accumulates blocks."""

    def __init__(self, like: Tensor) -> None:
        self.total = dt.empty(like.shape, dtype=like.dtype, device=like.device)
        self._initialised: set[tuple[object, ...]] = set()

    def add(
        self, x: Tensor, batch: BatchSlices, a: int, b: int, assign: bool | None = None
    ) -> None:
        """Add `x` to rows a to b of a cut.

        `assign`: assign instead of add. By default, the first block of these rows is assigned.
        """
        target = _operand_block(self.total, batch, a, b)
        if assign is None:
            wide = [n > 1 for n in self.total.shape]
            key = (a, *[(c.start if w else 0) for c, w in zip(batch, wide, strict=False)])
            assign = key not in self._initialised
            self._initialised.add(key)
        if assign:
            target[...] = x
        else:
            target += x


def _sum_to_shape(x: Tensor, shape: Shape) -> Tensor:
    """Sum over the batch axes along which an operand of that shape was broadcast."""
    axes = tuple(d for d, n in enumerate(shape[:-2]) if n == 1 and x.shape[d] != 1)
    return dt.sum(x, axis=axes, keepdims=True) if axes else x


# --- forward and backward -------------------------------------------------------------------------


class _Attention(dt.autograd.Function):
    """Attention and the logarithm of each row's sum of exponentials, with gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        keep: Tensor | None,
        options: _Options,
    ) -> tuple[Tensor, Tensor]:
        """Return attention and the row sums' logarithms; save them with the operands."""
        ctx.options = options
        out, sums = _Forward(q, k, v, mask, keep, options).compute()
        ctx.save_for_backward(q, k, v, mask, keep, out, sums)
        return out, sums

    @staticmethod
    def backward(ctx: Any, g: Tensor, g_sums: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of query, key, value and a float mask."""
        q, k, v, mask, keep, out, sums = ctx.saved_tensors
        slope = dt.sum(g * out, axis=-1, keepdims=True) - g_sums
        needs = ctx.needs_input_grad
        backward = _Backward((q, k, v, mask), keep, ctx.options, g, sums, slope, needs)
        return (*backward.compute(), None, None)


class _Forward(NamedTuple):
    """The forward pass, over blocks of queries."""

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    keep: Tensor | None
    options: _Options

    def compute(self) -> tuple[Tensor, Tensor]:
        """Return the result, and the logarithm of each row's sum of exponentials."""
        q, k, v, options = self.q, self.k, self.v, self.options
        batch, rows, columns = q.shape[:-2], q.shape[-2], k.shape[-2]
        numbers = dt.arange(max(rows, columns), device=q.device)
        operands = q * options.scale, dt.copy(k.mT), numbers
        blocks = _blocks(batch, rows, columns, options.causal)
        if len(blocks) == 1:
            return self._block(operands, *blocks[0])
        out = dt.empty((*batch, rows, v.shape[-1]), dtype=q.dtype, device=q.device)
        sums = dt.empty((*batch, rows, 1), dtype=q.dtype, device=q.device)
        for cut, a, b in blocks:
            block_out, block_sums = self._block(operands, cut, a, b)
            _operand_block(out, cut, a, b)[...] = block_out
            _operand_block(sums, cut, a, b)[...] = block_sums
        return out, sums

    def _block(
        self, operands: tuple[Tensor, Tensor, Tensor], cut: BatchSlices, a: int, b: int
    ) -> tuple[Tensor, Tensor]:
        """Return the result of queries a to b, and the logarithm of each row's sum."""
        (q, k, numbers), options = operands, self.options
        end = min(b, k.shape[-1]) if options.causal else k.shape[-1]
        scores = _operand_block(q, cut, a, b) @ _operand_block(k, cut, 0, end, -1)
        if options.causal:
            scores = dt.where(numbers[a:b, None] >= numbers[:end], scores, -math.inf)
        if self.mask is not None:
            scores = _apply_mask(
                scores, _operand_block(_operand_block(self.mask, cut, a, b), (), 0, end, -1)
            )
        top = dt.max(scores, axis=-1, keepdims=True)
        if self.mask is not None:
            top = dt.where(top == -math.inf, 0.0, top)
        weights = dt.exp(scores - top)
        total = dt.sum(weights, axis=-1, keepdims=True)
        if self.keep is not None:
            keep = _operand_block(_operand_block(self.keep, cut, a, b), (), 0, end, -1)
            weights = dt.where(keep, weights * options.keep_scale, 0.0)
        out = weights @ _operand_block(self.v, cut, 0, end)
        if self.mask is None:
            return out / total, top + dt.log(total)
        # for a row that sees no key, an infinite sum makes exp(score - sum) 0 in the backward pass
        blind = total == 0
        return out / dt.where(blind, 1.0, total), dt.where(blind, math.inf, top + dt.log(total))


def _apply_mask(scores: Tensor, mask: Tensor) -> Tensor:
    """Return scores with -inf where a bool mask is False, or with a float mask added."""
    return dt.where(mask, scores, -math.inf) if mask.dtype is dt.bool else scores + mask


class _Backward(NamedTuple):
    """The backward pass, over blocks of keys. It recomputes scores, with a row for each key."""

    inputs: tuple[Tensor, Tensor, Tensor, Tensor | None]  # query, key, value, mask
    keep: Tensor | None
    options: _Options
    g: Tensor
    sums: Tensor
    slope: Tensor
    needs: Sequence[bool]

    def compute(self) -> tuple[Tensor | None, ...]:
        """Return the gradients of query, key, value and mask."""
        (q, k, _, _), options = self.inputs, self.options
        numbers = dt.arange(max(q.shape[-2], k.shape[-2]), device=q.device)
        scaled = q * options.scale
        operands = scaled, dt.copy(scaled.mT), self.g, dt.copy(self.g.mT), numbers
        blocks = _blocks(q.shape[:-2], k.shape[-2], q.shape[-2], options.causal)
        if len(blocks) == 1 or dt.is_grad_enabled():
            gradients = self._block(operands, (), 0, k.shape[-2])
            return tuple(
                x if x is None or like is None else _sum_to_shape(x, like.shape)
                for x, like in zip(gradients, self.inputs, strict=True)
            )
        like = *self.inputs[:3], None if self.inputs[3] is None else self.inputs[3].mT
        totals = [
            None if x is None or not needs else _BlockSum(x)
            for x, needs in zip(like, self.needs, strict=False)
        ]
        for cut, a, b in blocks:
            self._accumulate(totals, self._block(operands, cut, a, b), cut, a, b)
        of_q, of_k, of_v, of_mask = (None if t is None else t.total for t in totals)
        return of_q, of_k, of_v, None if of_mask is None else of_mask.mT

    def _accumulate(
        self,
        totals: Sequence[_BlockSum | None],
        gradients: tuple[Tensor | None, ...],
        cut: BatchSlices,
        a: int,
        b: int,
    ) -> None:
        """Add the gradients of a block to the totals, in place."""
        rows = self.inputs[0].shape[-2]
        start = min(a, rows) if self.options.causal else 0
        for n, (total, x) in enumerate(zip(totals, gradients, strict=True)):
            if total is None or x is None:
                continue
            x = _sum_to_shape(x, total.total.shape)
            if n == 0:
                if start < rows:
                    total.add(x, cut, start, rows, assign=a == 0)
            else:
                total.add(x if n < 3 else x.mT, cut, a, b)

    def _block(
        self, operands: Sequence[Tensor], cut: BatchSlices, a: int, b: int
    ) -> tuple[Tensor | None, ...]:
        """Return the gradients of a block: keys a to b, their values, mask and queries."""
        (_, k, v, mask), (q, q_transposed, g, g_transposed, numbers) = self.inputs, operands
        rows, options = q.shape[-2], self.options
        start = min(a, rows) if options.causal else 0
        keys = _operand_block(k, cut, a, b)
        scores = keys @ _operand_block(q_transposed, cut, start, rows, -1)
        if options.causal:
            scores = dt.where(numbers[a:b, None] <= numbers[start:rows], scores, -math.inf)
        if mask is not None:
            scores = _apply_mask(scores, self._transposed_part(mask, cut, a, b, start))
        weights = dt.exp(scores - _operand_block(self.sums.mT, cut, start, rows, -1))
        slopes = _operand_block(v, cut, a, b) @ _operand_block(g_transposed, cut, start, rows, -1)
        used = weights
        if self.keep is not None:
            keep = self._transposed_part(self.keep, cut, a, b, start)
            slopes = dt.where(keep, slopes * options.keep_scale, 0.0)
            used = dt.where(keep, weights * options.keep_scale, 0.0)
        slopes = weights * (slopes - _operand_block(self.slope.mT, cut, start, rows, -1))
        return (
            slopes.mT @ (keys * options.scale) if self.needs[0] else None,
            slopes @ _operand_block(q, cut, start, rows) if self.needs[1] else None,
            used @ _operand_block(g, cut, start, rows) if self.needs[2] else None,
            self._mask_gradient(slopes, start) if self.needs[3] else None,
        )

    def _transposed_part(self, x: Tensor, cut: BatchSlices, a: int, b: int, start: int) -> Tensor:
        """Return a block's part of a mask, with a row for each key."""
        return _operand_block(_operand_block(x, cut, start, x.shape[-2]), (), a, b, -1).mT

    def _mask_gradient(self, slopes: Tensor, start: int) -> Tensor:
        """Return the gradient of a float mask's columns, with zeros for queries before `start`."""
        gradient = slopes.mT
        if not start:
            return gradient
        shape = (*gradient.shape[:-2], start, gradient.shape[-1])
        zeros = dt.zeros(shape, dtype=gradient.dtype, device=gradient.device)
        return dt.concat([zeros, gradient], axis=-2)
