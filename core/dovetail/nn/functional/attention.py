"""Attention, softmax(query @ key.mT) @ value, without a matrix of all scores in memory.

The forward pass takes a tile of queries through the blocks of PRODUCT_BLOCK keys, in order: a
product for the scores, a kernel for mask, maximum and exponentials, a sum, a product with the
values. The softmax over each block is joined with that over the blocks before. One number per row
is stored, the logarithm of its sum. The backward pass recomputes the weights of a tile of keys from
it. Its products add in blocks of PRODUCT_BLOCK as well, so the tiles change no bits
(docs/numerics.md). Tiles are large, as recording the ops of one takes 0.2 ms in cold caches.
Source: Dao, Fu, Ermon, Rudra, Re, "FlashAttention", NeurIPS 2022; the order of the loops in the
backward pass is that of Dao, "FlashAttention-2", 2023.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import dovetail as dt
from dovetail.extend import (
    PRODUCT_BLOCK,
    PRODUCT_BLOCKS,
    ClosureSnapshot,
    call_along,
    write_together,
)

__all__ = ["scaled_dot_product_attention"]

Tensor: TypeAlias = dt.Tensor
Shape: TypeAlias = tuple[int, ...]
BatchSlices: TypeAlias = tuple[slice, ...]
OP_NAME = "scaled_dot_product_attention"
TILE_SCORES_MAX = 1 << 19  # a tile stays near the second-level cache
EVALUATED_SCORES_MIN = 1 << 15  # of one tile: two more launches cost less than exponentials twice
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

    - `query`, `key`, `value`: the queries, keys and values, with positions along the last axis but
      one.
    - `attn_mask`: bool, True where a query sees a key, or a float that is added to the scores.
    - `dropout_p`: the probability with which weights become 0, also outside of training.
    - `is_causal`: query i sees only keys up to i; a mask applies as well.
    - `scale`: the factor of the products, by default 1 / sqrt(e).
    - `enable_gqa`: several neighbouring heads of queries share a key and value.

    The result for a query that sees no key is zero.
    Shapes: `query` (..., l, e), `key` (..., s, e), `value` (..., s, v) give (..., l, v); the mask
    is broadcast to (..., l, s), and the axes before these to each other.
    Dtypes: floats, the same of all three; halves are computed in float32, and rounded once.
    Memory: one tile of scores at a time, also in the backward pass. Dropout stores a bool for each
    score, and gradients of gradients store all scores.
    Raises: ShapeError, DTypeError, DeviceError, ArgumentError.
    See also: `flex_attention`, `multi_head_attention_forward`, `dt.nn.MultiheadAttention`.
    Source: Vaswani et al., "Attention is all you need", 2017.

    >>> import dovetail as dt
    >>> q = dt.asarray([[1.0, 0.0], [0.0, 1.0]])
    >>> dt.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)[0].tolist()
    [1.0, 0.0]
    """
    operands = (query, key, value)
    require_fitting(operands, attn_mask)
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
    options = Options(
        bool(is_causal),
        scale_of_products(q, scale),
        0.0 if dropout_p == 1 else 1 / (1 - dropout_p),
        dt.finfo(compute).min,
    )
    tensors = (q, k, v) if attn_mask is None else (q, k, v, attn_mask)
    others = [x.layout for x in tensors if x.layout is not dt.strided]
    if others and dropout_p:
        raise dt.LayoutError(
            f"{OP_NAME}: dropout_p must be 0 for operands of the layout {others[0].name}, whose "
            f"workers would draw different masks, got {dropout_p}"
        )
    keep = None
    if dropout_p:
        keep = dt.random.uniform(shape, dtype=dt.float32, device=query.device) >= dropout_p
    mask = _broadcast_mask(attn_mask, shape, compute)
    q = dt.broadcast_to(q, (*batch, *q.shape[-2:]))
    k, v = (_with_batch_axes(x, batch) for x in (k, v))
    if others:
        out = _attend_in_layout((q, k, v), mask, options)
    else:
        out, _ = Attention.apply(q, k, v, mask, keep, options, None)
    return out if compute is query.dtype else dt.astype(out, query.dtype)


def _attend_in_layout(operands: Sequence[Tensor], mask: Tensor | None, options: Options) -> Tensor:
    """Return attention of tensors of another layout, by its rule "along": batches are alike."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return attention of strided tensors."""
        out, _ = Attention.apply(q, k, v, mask, None, options, None)
        return out

    tensors = operands if mask is None else (*operands, mask)
    ndim = operands[0].ndim
    out: Tensor = call_along(OP_NAME, attend, tensors, (ndim - 2, ndim - 1))
    return out


# --- operands -------------------------------------------------------------------------------------


def require_fitting(operands: Sequence[Tensor], mask: Tensor | None, op: str = OP_NAME) -> None:
    """Raise an error for a type, dtype or shape of query, key, value or mask that does not fit."""
    for name, x in zip(("query", "key", "value"), operands, strict=True):
        if not isinstance(x, dt.Tensor):
            raise dt.ArgumentTypeError(f"{op}: {name} must be a tensor, got {type(x).__name__}")
        if x.dtype not in FLOATS:
            raise dt.DTypeError(
                f"{op}: {name} must have a float dtype, got {x.dtype}; use x.astype(dt.float32)"
            )
    q, k, v = operands
    shapes = f"shapes {q.shape}, {k.shape} and {v.shape} of query, key and value"
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise dt.ShapeError(
            f"{op}: query, key and value must have at least 2 dimensions, (..., rows, size), "
            f"got {shapes}"
        )
    if not q.dtype is k.dtype is v.dtype:
        raise dt.DTypeError(
            f"{op}: query, key and value must have the same dtype, got {q.dtype}, {k.dtype} "
            f"and {v.dtype}; use x.astype(dtype)"
        )
    if q.shape[-1] != k.shape[-1]:
        raise dt.ShapeError(
            f"{op}: query and key must have the same size along the last axis, got {shapes}"
        )
    if k.shape[-2] != v.shape[-2]:
        raise dt.ShapeError(
            f"{op}: key and value must have the same size along axis -2, got {shapes}"
        )
    if mask is None:
        return
    if not isinstance(mask, dt.Tensor):
        raise dt.ArgumentTypeError(f"{op}: attn_mask must be a tensor, got {type(mask).__name__}")
    if mask.dtype not in (dt.bool, dt.float32, q.dtype):
        raise dt.DTypeError(
            f"{op}: attn_mask must be bool (True: attend), float32 or {q.dtype}, got {mask.dtype}"
        )
    if mask.ndim < 2 or any(
        a not in (1, b) for a, b in zip(mask.shape[-2:], (q.shape[-2], k.shape[-2]), strict=True)
    ):
        raise dt.ShapeError(
            f"{op}: attn_mask must broadcast to the scores' shape (..., {q.shape[-2]}, "
            f"{k.shape[-2]}), got shape {mask.shape}"
        )


def scale_of_products(query: Tensor, scale: float | None) -> float:
    """Return the factor of the products, by default 1 / sqrt(size of a query)."""
    return 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else float(scale)


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


# --- tiles ----------------------------------------------------------------------------------------


class Options(NamedTuple):
    """The options of a call.

    `scale` of the products, `keep_scale` of weights after dropout, the `lowest` finite score.
    """

    causal: bool
    scale: float
    keep_scale: float
    lowest: float


def _row_tiles(
    batch: Shape, rows: int, columns: int, causal: bool
) -> list[tuple[BatchSlices, int, int]]:
    """Return tiles of queries, for one block of keys: (slices of the batch axes, rows a to b)."""
    block = min(PRODUCT_BLOCK, max(columns, 1))
    step = max(min(rows, TILE_SCORES_MAX // block), 1)
    # later blocks of keys are seen by fewer queries
    size = step * block // (2 if causal and columns > block else 1)
    cuts = _batch_slices(batch, max(TILE_SCORES_MAX // size, 1))
    return [(cut, a, min(a + step, rows)) for cut in cuts for a in range(0, rows, step)]


def _key_tiles(
    batch: Shape, rows: int, columns: int, causal: bool
) -> list[tuple[BatchSlices, int, int]]:
    """Return tiles of keys, which keep the order of products over queries and over keys."""
    takes_all = not causal and rows * columns <= TILE_SCORES_MAX
    step = max(columns if takes_all else min(PRODUCT_BLOCK, columns), 1)
    cuts = _batch_slices(batch, max(TILE_SCORES_MAX // max(step * rows, 1), 1))
    return [(cut, a, min(a + step, columns)) for cut in cuts for a in range(0, columns, step)]


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


def _select_matrices(x: Tensor, cut: BatchSlices) -> Tensor:
    """Return some of an operand's matrices; axes of size 1 are broadcast."""
    if not cut:
        return x
    return x[tuple([c if n > 1 else slice(None) for c, n in zip(cut, x.shape, strict=False)])]


def _select_fields(operands: object, cut: BatchSlices, names: str) -> dict[str, Any]:
    """Return some of the matrices of the fields with these names; None for those that are None."""
    fields = {name: getattr(operands, name) for name in names.split()}
    return {name: None if x is None else _select_matrices(x, cut) for name, x in fields.items()}


def _slice_rows(x: Tensor, a: int, b: int) -> Tensor:
    """Return rows a to b of matrices."""
    return x if (a, b) == (0, x.shape[-2]) else x[..., a:b, :]


def _slice_columns(x: Tensor, a: int, b: int) -> Tensor:
    """Return columns a to b of matrices."""
    return x if (a, b) == (0, x.shape[-1]) else x[..., a:b]


def _apply_mask(scores: Tensor, mask: Tensor) -> Tensor:
    """Return scores with -inf where a bool mask is False, or with a float mask added."""
    return dt.where(mask, scores, -math.inf) if mask.dtype is dt.bool else scores + mask


class _TileSum:
    """A tensor that accumulates tiles; `has_gaps`: parts of it may get none, and are zero."""

    def __init__(self, like: Tensor, has_gaps: bool) -> None:
        create = dt.zeros if has_gaps else dt.empty
        self.total = create(like.shape, dtype=like.dtype, device=like.device)
        self._has_gaps = has_gaps
        self._initialised: set[tuple[object, ...]] = set()

    def add_part(
        self, x: Tensor, cut: BatchSlices, part: Callable[[Tensor], Tensor], key: int
    ) -> tuple[Tensor, Tensor]:
        """Return a part of a cut of the total, and its sum with `x`.

        Without gaps the first tile with this key and cut is returned as it is.
        """
        target = part(_select_matrices(self.total, cut))
        x = _sum_to_shape(x, self.total.shape)
        starts = [c.start for c, n in zip(cut, self.total.shape, strict=False) if n > 1]
        if self._has_gaps or (key, *starts) in self._initialised:
            return target, target + x
        self._initialised.add((key, *starts))
        return target, x


def _sum_to_shape(x: Tensor, shape: Shape) -> Tensor:
    """Sum over the batch axes along which an operand of that shape was broadcast."""
    axes = tuple(d for d, n in enumerate(shape[:-2]) if n == 1 and x.shape[d] != 1)
    return dt.sum(x, axis=axes, keepdims=True) if axes else x


# --- functions of scores --------------------------------------------------------------------------


class ScoreFunctions(NamedTuple):
    """The user's functions of scores and positions, and the positions.

    `b`, `h` number the matrices along the batch axes, and broadcast to a tile; `numbers` are those
    of queries and keys. `reads`: the tensors of the closure to which gradients flow. `snapshots`:
    the closures of the functions at the time of the call, by name; empty without gradients.
    `blocks`: for each block of queries and block of keys, False if `mask_mod` hides all of it; None
    if that is not known. Blocks that are left out change no bits, but for NaN and infinities.
    """

    score_mod: Callable[..., Tensor] | None
    mask_mod: Callable[..., Tensor] | None
    b: Tensor
    h: Tensor
    numbers: Tensor
    blocks: Sequence[Sequence[bool]] | None = None
    reads: Sequence[Tensor] = ()
    snapshots: Mapping[str, ClosureSnapshot] = MappingProxyType({})

    def constants(self) -> list[Tensor]:
        """Return the tensors without gradients that the snapshots name; none without snapshots."""
        return [t for snapshot in self.snapshots.values() for t in snapshot.constants()]

    def list_visible_keys(self, a: int, b: int, end: int) -> list[int]:
        """Return the first keys of the blocks up to `end` that some of queries a to b see."""
        starts = range(0, end, PRODUCT_BLOCK)
        if self.blocks is None:
            return [*starts]
        rows = self.blocks[a // PRODUCT_BLOCK : -(-b // PRODUCT_BLOCK)]
        return [k for k in starts if any(row[k // PRODUCT_BLOCK] for row in rows)]

    def find_queries(self, a: int, b: int, rows: int) -> tuple[int, int]:
        """Return the range of the queries that see some of keys a to b, in whole blocks.

        It begins with a group of a product's blocks, so that sums keep their order. It is all or
        none for gradients of `reads`, which are sums over a tile.
        """
        if self.blocks is None:
            return 0, rows
        keys = slice(a // PRODUCT_BLOCK, -(-b // PRODUCT_BLOCK))
        visible = [i for i, row in enumerate(self.blocks) if any(row[keys])]
        if not visible:
            return 0, 0
        if self.reads:
            return 0, rows
        start, stop = visible[0] * PRODUCT_BLOCK, (visible[-1] + 1) * PRODUCT_BLOCK
        group = PRODUCT_BLOCK * PRODUCT_BLOCKS
        return (start if rows <= group else start // group * group), min(stop, rows)

    def for_backward(self, reads: Sequence[Tensor]) -> ScoreFunctions:
        """Return the functions as they were in the forward pass; `reads`: the saved tensors.

        Raises: GradientError if the closure of a function has changed.
        """
        for name, snapshot in self.snapshots.items():
            path = snapshot.find_change()
            if path is not None:
                raise dt.GradientError(
                    f"{snapshot.name}: {name} reads {path.key!r}, which has changed since the "
                    "forward pass, and the gradient runs it again; keep it unchanged until then"
                )
        functions: dict[str, Any] = {n: s.function() for n, s in self.snapshots.items()}
        return self._replace(**functions, reads=reads)

    def select(self, cut: BatchSlices) -> ScoreFunctions:
        """Return the functions for some of the matrices."""
        return self._replace(**_select_fields(self, cut, "b h"))

    def change(self, scores: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        """Return the scores that `score_mod` makes of a tile."""
        if self.score_mod is None:
            return scores
        changed = self.score_mod(scores, self.b, self.h, queries, keys)
        changed = changed if changed.dtype is scores.dtype else dt.astype(changed, scores.dtype)
        return changed if changed.shape == scores.shape else dt.broadcast_to(changed, scores.shape)

    def hide(self, scores: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        """Return scores with -inf where `mask_mod` is False."""
        if self.mask_mod is None:
            return scores
        return dt.where(self.mask_mod(self.b, self.h, queries, keys), scores, -math.inf)

    def change_recorded(
        self, scores: Tensor, queries: Tensor, keys: Tensor
    ) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, list[Tensor | None]]]]:
        """Return the changed scores, and the function that takes their gradient back.

        It returns the gradients of the scores and of the tensors that `score_mod` reads.
        """
        if self.score_mod is None:
            return scores, lambda g: (g, [])
        is_deep = dt.is_grad_enabled()
        with dt.enable_grad():
            x = scores if is_deep and scores.requires_grad else scores.detach().requires_grad_()
            changed = self.change(x, queries, keys)

        def differentiate(g: Tensor) -> tuple[Tensor, list[Tensor | None]]:
            """Return the gradients of the scores and of the tensors read."""
            if not changed.requires_grad:
                return dt.zeros_like(scores), [None] * len(self.reads)
            inputs = [x, *self.reads]
            first, *others = dt.grad(changed, inputs, g, create_graph=is_deep, allow_unused=True)
            return dt.zeros_like(scores) if first is None else first, others

        return changed, differentiate


def find_visible_blocks(
    mask_mod: Callable[..., Tensor], sizes: tuple[int | None, int | None, int, int], device: Any
) -> list[list[bool]]:
    """Return, for each block of queries and block of keys, True if some score is visible.

    `sizes`: the numbers of batches, heads, queries and keys.
    """
    *_, rows, columns = sizes
    counts = sizes[0] or 1, sizes[1] or 1, rows, columns
    b, h, queries, keys = (dt.arange(n, dtype=dt.int32, device=device) for n in counts)
    blocks = []
    for first in range(0, rows, PRODUCT_BLOCK):
        tile = queries[first : first + PRODUCT_BLOCK, None]
        mask = mask_mod(b[:, None, None, None], h[:, None, None], tile, keys)
        shape = (*counts[:2], len(tile), columns)
        visible: Any = dt.any(dt.broadcast_to(mask, shape), axis=(0, 1, 2)).tolist()
        starts = range(0, columns, PRODUCT_BLOCK)
        blocks.append([any(visible[k : k + PRODUCT_BLOCK]) for k in starts])
    return blocks


def hides_scores(functions: ScoreFunctions | None) -> bool:
    """Return True if a `mask_mod` hides scores, so that blocks may be left out."""
    return functions is not None and functions.mask_mod is not None


# --- forward and backward -------------------------------------------------------------------------


class Attention(dt.autograd.Function):
    """Attention and the logarithm of each row's sum of exponentials, with gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        keep: Tensor | None,
        options: Options,
        functions: ScoreFunctions | None,
        *reads: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return attention and the row sums' logarithms; save them with the operands.

        `reads`: the tensors that `functions` read and that have gradients.
        """
        ctx.options, ctx.functions = options, functions
        numbers = dt.arange(max(q.shape[-2], k.shape[-2]), device=q.device)
        keys = dt.copy(k.mT * options.scale)
        out, sums = _Forward(q, keys, v, mask, keep, numbers, options, functions).compute()
        constants = [] if functions is None else functions.constants()  # must not be overwritten
        ctx.read_count = len(reads)
        ctx.save_for_backward(q, k, v, mask, keep, out, sums, *reads, *constants)
        return out, sums

    @staticmethod
    def backward(ctx: Any, g: Tensor, g_sums: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of query, key, value, a float mask and the tensors read."""
        q, k, v, mask, keep, out, sums, *others = ctx.saved_tensors
        reads = others[: ctx.read_count]
        slope = dt.sum(g * out, axis=-1, keepdims=True) - g_sums
        scale = ctx.options.scale
        mask, keep = (None if x is None else x.mT for x in (mask, keep))
        functions = ctx.functions and ctx.functions.for_backward(reads)
        of_q, of_k, of_v, of_mask, *of_reads = _Backward(
            *(q * scale, dt.copy(q.mT), k * scale, v, mask, keep),
            *(sums.mT, slope.mT, dt.copy(g.mT), g),
            dt.arange(max(q.shape[-2], k.shape[-2]), device=q.device),
            ctx.options,
            functions,
            ctx.needs_input_grad,
        ).compute()
        of_q, of_mask = (None if x is None else x.mT for x in (of_q, of_mask))
        return of_q, of_k, of_v, of_mask, None, None, None, *of_reads


class _Partial(NamedTuple):
    """A softmax over some keys: each row's maximum score, sum of weights, and sum of values.

    Weights are the exponentials of scores less the maximum.
    """

    top: Tensor
    total: Tensor
    values: Tensor

    def join(self, other: _Partial) -> _Partial:
        """Return the softmax over the keys of both."""
        top = dt.maximum(self.top, other.top)
        a, b = dt.exp(self.top - top), dt.exp(other.top - top)
        return _Partial(top, self.total * a + other.total * b, self.values * a + other.values * b)

    def finish(self, has_mask: bool) -> tuple[Tensor, Tensor]:
        """Return the weighted mean of the values, and the logarithm of the sum of exponentials."""
        if not has_mask:
            return self.values / self.total, self.top + dt.log(self.total)
        # for a row that sees no key, an infinite sum makes exp(score - sum) 0 in the backward pass
        blind = self.total == 0
        return (
            self.values / dt.where(blind, 1.0, self.total),
            dt.where(blind, math.inf, self.top + dt.log(self.total)),
        )


class _Forward(NamedTuple):
    """The forward pass, over tiles of queries and blocks of keys."""

    q: Tensor
    k: Tensor  # scaled and transposed
    v: Tensor
    mask: Tensor | None
    keep: Tensor | None
    numbers: Tensor  # of positions
    options: Options
    functions: ScoreFunctions | None

    def compute(self) -> tuple[Tensor, Tensor]:
        """Return the result, and the logarithm of each row's sum of exponentials."""
        batch, rows = self.q.shape[:-2], self.q.shape[-2]
        tiles = _row_tiles(batch, rows, self.v.shape[-2], self.options.causal)
        keys = self._count_visible_keys(rows)
        if len(tiles) <= 1 and keys <= PRODUCT_BLOCK:
            is_large = math.prod(batch) * rows * keys >= EVALUATED_SCORES_MIN
            return self._finish(self._attend_to((0, rows), (0, keys), is_large))
        out, sums = (
            dt.empty((*batch, rows, n), dtype=self.q.dtype, device=self.q.device)
            for n in (self.v.shape[-1], 1)
        )
        for cut, a, b in tiles:
            self.select(cut)._write_rows([_select_matrices(x, cut) for x in (out, sums)], a, b)
        return out, sums

    def select(self, cut: BatchSlices) -> _Forward:
        """Return the pass over some of the matrices."""
        functions = self.functions and self.functions.select(cut)
        fields = _select_fields(self, cut, "q k v mask keep")
        return self._replace(**fields, functions=functions)

    def _finish(self, softmax: _Partial) -> tuple[Tensor, Tensor]:
        """Return the result of some queries, and the logarithm of each row's sum."""
        may_see_none = self.mask is not None or self.functions is not None
        values, sums = softmax.finish(may_see_none)
        return (values + 0.0 if hides_scores(self.functions) else values), sums  # no -0: see below

    def _count_visible_keys(self, rows: int) -> int:
        """Return the number of keys that the first `rows` queries see."""
        return min(self.v.shape[-2], max(rows, 1)) if self.options.causal else self.v.shape[-2]

    def _write_rows(self, results: Sequence[Tensor], a: int, b: int) -> None:
        """Write the result of queries a to b, and the logarithm of each row's sum."""

        def write(rows: _Partial, a: int, b: int) -> None:
            """Write results and logarithms of sums for queries a to b, which see no more keys."""
            values = list(self._finish(rows))
            write_together(OP_NAME, [_slice_rows(x, a, b) for x in results], values)

        end, softmax = self._count_visible_keys(b), None
        starts: Sequence[int] = range(0, end, PRODUCT_BLOCK)
        if self.functions is not None:
            starts = self.functions.list_visible_keys(a, b, end) or [0]
        for first in starts:
            if softmax is not None:
                dt.evaluate(*softmax)
                if self.options.causal and first > a:
                    n, count = b - a, first - a
                    write(_Partial(*(_slice_rows(x, 0, count) for x in softmax)), a, first)
                    softmax, a = _Partial(*(_slice_rows(x, count, n) for x in softmax)), first
            block = self._attend_to((a, b), (first, min(first + PRODUCT_BLOCK, end)), True)
            softmax = block if softmax is None else softmax.join(block)
            del block
        assert softmax is not None
        write(softmax, a, b)

    def _attend_to(
        self, rows: tuple[int, int], keys: tuple[int, int], evaluates: bool = False
    ) -> _Partial:
        """Return row maxima, sums of weights and weighted values of queries over some keys.

        evaluates: compute weights and their sum now. A kernel with both would compute the weights
        twice, and one of the sum and its logarithm takes twice as long as two.
        """
        (a, b), (first, stop) = rows, keys
        scores = _slice_rows(self.q, a, b) @ _slice_columns(self.k, first, stop)
        if self.functions is not None:
            indices = self.functions.numbers[a:b, None], self.functions.numbers[first:stop]
            scores = self.functions.hide(self.functions.change(scores, *indices), *indices)
        if self.options.causal and stop > a + 1:
            sees = self.numbers[a:b, None] >= self.numbers[first:stop]
            scores = dt.where(sees, scores, -math.inf)
        if self.mask is not None:
            scores = _apply_mask(scores, _slice_columns(_slice_rows(self.mask, a, b), first, stop))
        # a finite maximum gives weights of 0, if all keys of the block are masked
        top = dt.maximum(dt.max(scores, axis=-1, keepdims=True), self.options.lowest)
        weights = dt.exp(scores - top)
        if evaluates:
            dt.evaluate(weights)
        total = dt.sum(weights, axis=-1, keepdims=True)
        if evaluates:
            dt.evaluate(total)
        if self.keep is not None:
            keep = _slice_columns(_slice_rows(self.keep, a, b), first, stop)
            weights = dt.where(keep, weights * self.options.keep_scale, 0.0)
        values = weights @ _slice_rows(self.v, first, stop)
        if hides_scores(self.functions):
            # A hidden block adds nothing, as if it was left out: no NaN, and no zero that could
            # change a sign, as `_finish` has no -0.
            values = dt.where(total == 0, 0.0, values)
        return _Partial(top, total, values)


class _Backward(NamedTuple):
    """The backward pass, over tiles of keys. It recomputes scores, with a row for each key."""

    q: Tensor  # scaled
    q_transposed: Tensor  # not scaled
    k: Tensor  # scaled
    v: Tensor
    mask: Tensor | None  # transposed, as all that follow but g
    keep: Tensor | None
    sums: Tensor
    slope: Tensor
    g_transposed: Tensor
    g: Tensor
    numbers: Tensor
    options: Options
    functions: ScoreFunctions | None
    needs: Sequence[bool]

    def compute(self) -> list[Tensor | None]:
        """Return gradients of transposed queries, keys, values and mask, and of tensors read."""
        rows, columns = self.q.shape[-2], self.k.shape[-2]
        tiles = _key_tiles(self.q.shape[:-2], rows, columns, self.options.causal)
        reads = [] if self.functions is None else self.functions.reads
        inputs = self.q_transposed, self.k, self.v, self.mask, *reads
        needs = *self.needs[:4], *[True] * len(reads)
        if len(tiles) == 1 or dt.is_grad_enabled():
            whole = self._differentiate(0, columns, 0, rows)
            return [
                x if x is None or like is None else _sum_to_shape(x, like.shape)
                for x, like in zip(whole, inputs, strict=True)
            ]
        totals = [
            None if x is None or not is_needed else _TileSum(x, hides_scores(self.functions))
            for x, is_needed in zip(inputs, needs, strict=True)
        ]
        for cut, a, b in tiles:
            self._accumulate(totals, cut, a, b)
        return [None if t is None else t.total for t in totals]

    def _accumulate(
        self, totals: Sequence[_TileSum | None], cut: BatchSlices, a: int, b: int
    ) -> None:
        """Add the gradients of a tile to the totals, in place."""
        start, stop = self._find_queries(a, b)
        if start == stop and self.functions is not None:
            return
        keys = partial(_slice_rows, a=a, b=b)
        queries = partial(_slice_columns, a=start, b=stop)
        slices: list[tuple[BatchSlices, Callable[[Tensor], Tensor], int]]
        slices = [(cut, queries, 0), *[(cut, keys, a)] * 3]
        slices += [((), lambda whole: whole, 0)] * (len(totals) - len(slices))
        pairs = [
            total.add_part(x, *where)
            for total, x, where in zip(
                totals, self.select(cut)._differentiate(a, b, start, stop), slices, strict=True
            )
            if total is not None and x is not None
        ]
        targets, values = map(list, zip(*pairs, strict=True))
        del pairs
        write_together(OP_NAME, targets, values)

    def select(self, cut: BatchSlices) -> _Backward:
        """Return the pass over some of the matrices."""
        names = "q q_transposed k v mask keep sums slope g_transposed g"
        functions = self.functions and self.functions.select(cut)
        return self._replace(**_select_fields(self, cut, names), functions=functions)

    def _find_queries(self, a: int, b: int) -> tuple[int, int]:
        """Return the range of the queries that see some of keys a to b."""
        rows = self.q.shape[-2]
        if self.functions is not None:
            return self.functions.find_queries(a, b, rows)
        return (min(a, rows) if self.options.causal else 0), rows

    def _differentiate(self, a: int, b: int, start: int, stop: int) -> tuple[Tensor | None, ...]:
        """Return gradients for keys a to b, queries start to stop: of q^T, k, v, mask^T, reads.

        The tile is keys a to b and queries from `start` to `stop`. A gradient that is not needed is
        None.
        """
        options = self.options

        def part(x: Tensor) -> Tensor:
            """Return the tile's queries of transposed rows."""
            return _slice_columns(x, start, stop)

        keys = _slice_rows(self.k, a, b)
        scores = keys @ part(self.q_transposed)
        differentiate, of_reads = None, list[Tensor | None]()
        if self.functions is not None:
            indices = self.functions.numbers[start:stop], self.functions.numbers[a:b, None]
            scores, differentiate = self.functions.change_recorded(scores, *indices)
            scores = self.functions.hide(scores, *indices)
        if options.causal:
            sees = self.numbers[a:b, None] <= self.numbers[start:stop]
            scores = dt.where(sees, scores, -math.inf)
        if self.mask is not None:
            scores = _apply_mask(scores, part(_slice_rows(self.mask, a, b)))
        weights = dt.exp(scores - part(self.sums))
        slopes = _slice_rows(self.v, a, b) @ part(self.g_transposed)
        used = weights
        if self.keep is not None:
            keep = part(_slice_rows(self.keep, a, b))
            slopes = dt.where(keep, slopes * options.keep_scale, 0.0)
            used = dt.where(keep, weights * options.keep_scale, 0.0)
        slopes = weights * (slopes - part(self.slope))
        if differentiate is not None:
            slopes, of_reads = differentiate(slopes)
        return (
            keys.mT @ slopes if self.needs[0] else None,
            slopes @ _slice_rows(self.q, start, stop) if self.needs[1] else None,
            used @ _slice_rows(self.g, start, stop) if self.needs[2] else None,
            _with_zeros_before(slopes, start) if self.needs[3] else None,
            *of_reads,
        )


def _with_zeros_before(x: Tensor, columns: int) -> Tensor:
    """Return a matrix with columns of zeros before its own."""
    if not columns:
        return x
    zeros = dt.zeros((*x.shape[:-1], columns), dtype=x.dtype, device=x.device)
    return dt.concat([zeros, x], axis=-1)
