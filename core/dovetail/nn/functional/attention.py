"""Attention: softmax(query @ key.mT) @ value, with no matrix of all scores kept.

The scores are made a block at a time: a product of some rows with all keys that they see, one fused
kernel for mask, greatest, exponential and sum, and a product with the values. Kept is a number for
each row, the logarithm of its sum; the way back makes the scores of a block of keys again from it.
For 64 heads of 512 x 64, causal, a kernel with a row at a point takes 13 times as long as this.
Source: Dao, Fu, Ermon, Rudra, Re, "FlashAttention", NeurIPS 2022, for the way back; the order of
its loops is that of Dao, "FlashAttention-2", 2023.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import dovetail as dt

from .small_products import products

__all__ = ["scaled_dot_product_attention"]

Tensor: TypeAlias = dt.Tensor
Shape: TypeAlias = tuple[int, ...]
Cut: TypeAlias = tuple[slice, ...]
NAME = "scaled_dot_product_attention"
ROOM = 1 << 20  # scores at a time: they and what is made of them stay in a processor's last cache
STEP = 64  # rows of a block at least: shorter ones make products slow
WORTH = 1 << 17  # scores that a block has so that leaving out what is masked is worth a launch
HALVES = (dt.float16, dt.bfloat16)
FLOATS = (dt.float32, dt.float64, *HALVES)


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """The values, weighted for each query by the softmax of its products with the keys.

    `attn_mask`: bool, True where a query sees a key, or a float that is added to the scores.
    `is_causal`: query i sees keys up to i alone; with a mask, both hold. `scale`: of the products,
    1 / sqrt(e) for None. `dropout_p`: weights are made 0 with this probability, whether or not
    something trains. `enable_gqa`: each key and value is that of several neighbouring heads. A
    query that sees no key gets zeros.
    Shapes: `query` (..., l, e), `key` (..., s, e), `value` (..., s, v) give (..., l, v); the mask
    is broadcast to (..., l, s), and the axes before these to each other.
    Dtypes: floats, the same of all three; halves are computed in float32, and rounded once.
    Memory: a block of scores at a time, never all of them; the way back too. Dropout keeps a bool
    for each score, and gradients of gradients all scores.
    Raises: ShapeError, DTypeError, DeviceError, ArgumentError.
    Source: Vaswani et al., "Attention is all you need", 2017.

    >>> import dovetail as dt
    >>> q = dt.asarray([[1.0, 0.0], [0.0, 1.0]], device="reference")
    >>> dt.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)[0].tolist()
    [1.0, 0.0]
    """
    given = (query, key, value)
    _require_fitting(given, attn_mask)
    if not 0.0 <= dropout_p <= 1.0:
        raise dt.ArgumentError(f"{NAME}: dropout_p is from 0 to 1, not {dropout_p}")
    if enable_gqa:
        return _grouped(query, key, value, attn_mask, dropout_p, is_causal, scale)
    batch = _batch(given, attn_mask)
    if key.shape[-2] == 0:
        shape = (*batch, query.shape[-2], value.shape[-1])
        return dt.zeros(shape, dtype=query.dtype, device=query.device)
    asked = dt.float32 if query.dtype in HALVES else query.dtype
    q, k, v = (x if x.dtype is asked else dt.astype(x, asked) for x in given)
    shape = (*batch, q.shape[-2], k.shape[-2])
    how = _How(
        bool(is_causal),
        1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else float(scale),
        0.0 if dropout_p == 1 else 1 / (1 - dropout_p),
    )
    keep = None
    if dropout_p:
        keep = dt.random.uniform(shape, dtype=dt.float32, device=query.device) >= dropout_p
    out, _ = _Attention.apply(
        dt.broadcast_to(q, (*batch, *q.shape[-2:])), _with_axes(k, batch), _with_axes(v, batch),
        _mask(attn_mask, shape, asked), keep, how,
    )  # fmt: skip
    return out if asked is query.dtype else dt.astype(out, query.dtype)


# --- what is given --------------------------------------------------------------------------------


def _require_fitting(given: Sequence[Tensor], mask: Tensor | None) -> None:
    for name, x in zip(("query", "key", "value"), given, strict=True):
        if not isinstance(x, dt.Tensor):
            raise dt.ArgumentTypeError(f"{NAME}: {name} is a tensor, not a {type(x).__name__}")
        if x.dtype not in FLOATS:
            raise dt.DTypeError(f"{NAME}: {name} is {x.dtype}; give floats: x.astype(dt.float32)")
    q, k, v = given
    shapes = f"shapes {q.shape}, {k.shape} and {v.shape} of query, key and value"
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise dt.ShapeError(f"{NAME}: {shapes}: each needs 2 dimensions or more, (..., rows, size)")
    if not q.dtype is k.dtype is v.dtype:
        raise dt.DTypeError(
            f"{NAME}: {q.dtype}, {k.dtype} and {v.dtype} of query, key and value differ; use astype"
        )
    if q.shape[-1] != k.shape[-1]:
        raise dt.ShapeError(f"{NAME}: {shapes}: the last axes of query and key differ")
    if k.shape[-2] != v.shape[-2]:
        raise dt.ShapeError(f"{NAME}: {shapes}: there are as many keys as values, in axis -2")
    if mask is None:
        return
    if not isinstance(mask, dt.Tensor):
        raise dt.ArgumentTypeError(f"{NAME}: attn_mask is a tensor, not a {type(mask).__name__}")
    if mask.dtype not in (dt.bool, dt.float32, q.dtype):
        raise dt.DTypeError(
            f"{NAME}: attn_mask is {mask.dtype}; give bool (True: seen), float32 or {q.dtype}"
        )
    if mask.ndim < 2 or any(
        a not in (1, b) for a, b in zip(mask.shape[-2:], (q.shape[-2], k.shape[-2]), strict=True)
    ):
        raise dt.ShapeError(
            f"{NAME}: attn_mask of shape {mask.shape} does not fit scores of shape "
            f"(..., {q.shape[-2]}, {k.shape[-2]})"
        )


def _batch(given: Sequence[Tensor], mask: Tensor | None) -> Shape:
    """The axes before the last two, of all that is given."""
    every = [*given, *(() if mask is None else (mask,))]
    try:
        return tuple(dt.broadcast_shapes(*[x.shape[:-2] for x in every]))
    except dt.ShapeError as error:
        raise dt.ShapeError(
            f"{NAME}: shapes {', '.join(str(x.shape) for x in every)} differ in axes before the "
            "last two; heads of fewer keys than queries need enable_gqa=True"
        ) from error


def _with_axes(x: Tensor, batch: Shape) -> Tensor:
    """A view with as many axes as there are, of size 1 where it is the same all along them."""
    lacking = len(batch) + 2 - x.ndim
    return x if not lacking else dt.reshape(x, (1,) * lacking + x.shape)


def _mask(mask: Tensor | None, shape: Shape, asked: Any) -> Tensor | None:
    if mask is None:
        return None
    mask = _with_axes(mask, shape[:-2])
    if mask.dtype is not dt.bool and mask.dtype is not asked:
        mask = dt.astype(mask, asked)
    return dt.broadcast_to(mask, (*mask.shape[:-2], *shape[-2:]))


def _grouped(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None,
    dropout_p: float, is_causal: bool, scale: float | None,
) -> Tensor:  # fmt: skip
    """The same where there are several heads of queries for each of keys and values, in axis -3."""
    if min(query.ndim, key.ndim, value.ndim) < 3:
        raise dt.ShapeError(
            f"{NAME}: enable_gqa needs heads in axis -3; shapes are {query.shape}, {key.shape} and "
            f"{value.shape}"
        )
    heads = query.shape[-3]
    for name, x in (("key", key), ("value", value)):
        if not x.shape[-3] or heads % x.shape[-3]:
            raise dt.ShapeError(
                f"{NAME}: {heads} heads of queries are no multiple of the {x.shape[-3]} of {name}"
            )
    n = max(key.shape[-3], value.shape[-3])
    key, value = (
        x if x.shape[-3] == n else dt.repeat(x, n // x.shape[-3], axis=-3) for x in (key, value)
    )
    if mask is not None and mask.ndim > 2:
        cut = (n, heads // n) if mask.shape[-3] == heads else (1, 1)
        if mask.shape[-3] not in (1, heads):
            raise dt.ShapeError(
                f"{NAME}: attn_mask of shape {mask.shape} does not fit {heads} heads of queries"
            )
        mask = dt.reshape(mask, (*mask.shape[:-3], *cut, *mask.shape[-2:]))
    out = scaled_dot_product_attention(
        dt.reshape(query, (*query.shape[:-3], n, heads // n, *query.shape[-2:])),
        dt.expand_dims(key, axis=-3), dt.expand_dims(value, axis=-3),
        mask, dropout_p, is_causal, scale,
    )  # fmt: skip
    return dt.reshape(out, (*out.shape[:-4], heads, *out.shape[-2:]))


# --- blocks ---------------------------------------------------------------------------------------


class _How(NamedTuple):
    """The numbers of a call: the scale of products, and that of weights which dropout leaves."""

    causal: bool
    scale: float
    kept: float


def _blocks(batch: Shape, rows: int, columns: int, causal: bool) -> list[tuple[Cut, int, int]]:
    """Which matrices of the batch, and from which row to which, are done at a time."""
    each = max(math.prod(batch) * columns, 1)
    step = ROOM // each
    if causal:  # the shorter they are, the less is computed that is masked
        step = min(step, WORTH // each)
    step = max(min(step // STEP * STEP, rows), min(STEP, rows), 1)
    starts = range(0, rows, step)
    cuts = _cuts(batch, max(ROOM // (step * columns), 1))
    return [(cut, a, min(a + step, rows)) for cut in cuts for a in starts]


def _cuts(batch: Shape, many: int) -> Iterator[Cut]:
    """Cuts of the axes of a batch, each of about so `many` matrices."""
    if math.prod(batch) <= many:
        yield ()
        return
    axis = 0
    while math.prod(batch[axis + 1 :]) > many:
        axis += 1
    step = many // math.prod(batch[axis + 1 :])
    for outer in itertools.product(*map(range, batch[:axis])):
        for a in range(0, batch[axis], step):
            yield (*[slice(i, i + 1) for i in outer], slice(a, min(a + step, batch[axis])))


def _part(x: Tensor, cut: Cut, a: int = 0, b: int | None = None, axis: int = -2) -> Tensor:
    """What a block needs of an operand: matrices, and rows or columns of them."""
    if cut:
        x = x[tuple(c if n > 1 else slice(None) for c, n in zip(cut, x.shape, strict=False))]
    if b is None or (a, b) == (0, x.shape[axis]):
        return x
    return x[..., a:b, :] if axis == -2 else x[..., a:b]


class _Sum:
    """A tensor that is put together of blocks, and of sums of them."""

    def __init__(self, like: Tensor) -> None:
        self.total = dt.empty(like.shape, dtype=like.dtype, device=like.device)
        self._done: set[tuple[object, ...]] = set()

    def add(self, x: Tensor, cut: Cut, a: int, b: int, begins: bool | None = None) -> None:
        """Adds to rows a to b; the first that comes there, or what `begins`, is assigned."""
        place = _part(self.total, cut, a, b)
        if begins is None:
            wide = [n > 1 for n in self.total.shape]
            key = (a, *[(c.start if w else 0) for c, w in zip(cut, wide, strict=False)])
            begins = key not in self._done
            self._done.add(key)
        if begins:
            place[...] = x
        else:
            place += x


def _summed(x: Tensor, shape: Shape) -> Tensor:
    """The sum over axes before the last two that an operand does not have."""
    axes = tuple(d for d, n in enumerate(shape[:-2]) if n == 1 and x.shape[d] != 1)
    return dt.sum(x, axis=axes, keepdims=True) if axes else x


# --- there and back -------------------------------------------------------------------------------


class _Attention(dt.autograd.Function):
    """The values' sums, and the logarithm of each row's sum of exponentials, with gradients."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, keep: Tensor | None,
        how: _How,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        ctx.how = how
        with products(q):
            out, sums = _There(q, k, v, mask, keep, how).made()
        ctx.save_for_backward(q, k, v, mask, keep, out, sums)
        return out, sums

    @staticmethod
    def backward(ctx: Any, g: Tensor, g_sums: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, mask, keep, out, sums = ctx.saved_tensors
        slope = dt.sum(g * out, axis=-1, keepdims=True) - g_sums
        needs = ctx.needs_input_grad
        with products(q):
            back = _Back((q, k, v, mask), keep, ctx.how, g, sums, slope, needs)
            return (*back.made(), None, None)


class _There(NamedTuple):
    """The way there: blocks of queries."""

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    keep: Tensor | None
    how: _How

    def made(self) -> tuple[Tensor, Tensor]:
        """The result, and the logarithms of the sums."""
        q, k, v, how = self.q, self.k, self.v, self.how
        batch, rows, columns = q.shape[:-2], q.shape[-2], k.shape[-2]
        operands = q * how.scale, dt.copy(k.mT), dt.arange(max(rows, columns), device=q.device)
        blocks = _blocks(batch, rows, columns, how.causal)
        if len(blocks) == 1:
            return self._block(operands, *blocks[0])
        out = dt.empty((*batch, rows, v.shape[-1]), dtype=q.dtype, device=q.device)
        sums = dt.empty((*batch, rows, 1), dtype=q.dtype, device=q.device)
        for cut, a, b in blocks:
            made, its = self._block(operands, cut, a, b)
            _part(out, cut, a, b)[...] = made
            _part(sums, cut, a, b)[...] = its
        return out, sums

    def _block(
        self, operands: tuple[Tensor, Tensor, Tensor], cut: Cut, a: int, b: int
    ) -> tuple[Tensor, Tensor]:
        (q, k, at), how = operands, self.how
        end = min(b, k.shape[-1]) if how.causal else k.shape[-1]
        scores = _part(q, cut, a, b) @ _part(k, cut, 0, end, -1)
        if how.causal:
            scores = dt.where(at[a:b, None] >= at[:end], scores, -math.inf)
        if self.mask is not None:
            scores = _masked(scores, _part(_part(self.mask, cut, a, b), (), 0, end, -1))
        top = dt.max(scores, axis=-1, keepdims=True)
        if self.mask is not None:
            top = dt.where(top == -math.inf, 0.0, top)
        weights = dt.exp(scores - top)
        total = dt.sum(weights, axis=-1, keepdims=True)
        if self.keep is not None:
            left = _part(_part(self.keep, cut, a, b), (), 0, end, -1)
            weights = dt.where(left, weights * how.kept, 0.0)
        made = weights @ _part(self.v, cut, 0, end)
        if self.mask is None:
            return made / total, top + dt.log(total)
        none = total == 0  # a row that sees nothing: exp(score - inf) is 0 on the way back, too
        return made / dt.where(none, 1.0, total), dt.where(none, math.inf, top + dt.log(total))


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    return dt.where(mask, scores, -math.inf) if mask.dtype is dt.bool else scores + mask


class _Back(NamedTuple):
    """The way back: blocks of keys, the scores of each made again, with a row for each key."""

    given: tuple[Tensor, Tensor, Tensor, Tensor | None]  # query, key, value, mask
    keep: Tensor | None
    how: _How
    g: Tensor
    sums: Tensor
    slope: Tensor
    needs: Sequence[bool]

    def made(self) -> tuple[Tensor | None, ...]:
        """The gradients of what was given."""
        (q, k, _, _), how = self.given, self.how
        scaled, at = q * how.scale, dt.arange(max(q.shape[-2], k.shape[-2]), device=q.device)
        operands = scaled, dt.copy(scaled.mT), self.g, dt.copy(self.g.mT), at
        blocks = _blocks(q.shape[:-2], k.shape[-2], q.shape[-2], how.causal)
        if len(blocks) == 1 or dt.is_grad_enabled():
            found = self._block(operands, (), 0, k.shape[-2])
            return tuple(
                x if x is None or like is None else _summed(x, like.shape)
                for x, like in zip(found, self.given, strict=True)
            )
        like = *self.given[:3], None if self.given[3] is None else self.given[3].mT
        totals = [
            None if x is None or not needs else _Sum(x)
            for x, needs in zip(like, self.needs, strict=False)
        ]
        for cut, a, b in blocks:
            self._added(totals, self._block(operands, cut, a, b), cut, a, b)
        of_q, of_k, of_v, across = (None if t is None else t.total for t in totals)
        return of_q, of_k, of_v, None if across is None else across.mT

    def _added(
        self, totals: Sequence[_Sum | None], found: tuple[Tensor | None, ...],
        cut: Cut, a: int, b: int,
    ) -> None:  # fmt: skip
        """Puts the gradients of a block where they belong."""
        rows = self.given[0].shape[-2]
        start = min(a, rows) if self.how.causal else 0
        for n, (total, x) in enumerate(zip(totals, found, strict=True)):
            if total is None or x is None:
                continue
            x = _summed(x, total.total.shape)
            if n == 0:
                if start < rows:
                    total.add(x, cut, start, rows, begins=a == 0)
            else:
                total.add(x if n < 3 else x.mT, cut, a, b)

    def _block(
        self, operands: Sequence[Tensor], cut: Cut, a: int, b: int
    ) -> tuple[Tensor | None, ...]:
        """The gradients of queries that see the keys a to b, of these, their values and mask."""
        (_, k, v, mask), (q, q_across, g, g_across, at) = self.given, operands
        rows = q.shape[-2]
        start = min(a, rows) if self.how.causal else 0
        keys = _part(k, cut, a, b)
        scores = keys @ _part(q_across, cut, start, rows, -1)
        if self.how.causal:
            scores = dt.where(at[a:b, None] <= at[start:rows], scores, -math.inf)
        if mask is not None:
            scores = _masked(scores, self._across(mask, cut, a, b, start))
        weights = dt.exp(scores - _part(self.sums.mT, cut, start, rows, -1))
        slopes = _part(v, cut, a, b) @ _part(g_across, cut, start, rows, -1)
        used = weights
        if self.keep is not None:
            left = self._across(self.keep, cut, a, b, start)
            slopes = dt.where(left, slopes * self.how.kept, 0.0)
            used = dt.where(left, weights * self.how.kept, 0.0)
        slopes = weights * (slopes - _part(self.slope.mT, cut, start, rows, -1))
        return (
            slopes.mT @ (keys * self.how.scale) if self.needs[0] else None,
            slopes @ _part(q, cut, start, rows) if self.needs[1] else None,
            used @ _part(g, cut, start, rows) if self.needs[2] else None,
            self._of_mask(slopes, start) if self.needs[3] else None,
        )

    def _across(self, x: Tensor, cut: Cut, a: int, b: int, start: int) -> Tensor:
        """What a block has of the mask, with a row for each key."""
        return _part(_part(x, cut, start, x.shape[-2]), (), a, b, -1).mT

    def _of_mask(self, slopes: Tensor, start: int) -> Tensor:
        """The gradient of a float mask's columns, zero for queries before the first that sees."""
        found = slopes.mT
        if not start:
            return found
        shape = (*found.shape[:-2], start, found.shape[-1])
        zeros = dt.zeros(shape, dtype=found.dtype, device=found.device)
        return dt.concat([zeros, found], axis=-2)
