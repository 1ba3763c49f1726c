"""Attention whose scores are changed and masked by functions of their positions.

The functions run on tiles of scores, with indices that broadcast to the tile. What they record
fuses with the kernels of `attention`, so no matrix of all scores is stored.
Source: Dong, Feng, Guessous, Liang, He, "Flex Attention: A Programming Model for Generating
Optimized Attention Kernels", 2024; the names are PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, overload

import dovetail as dt
from dovetail.extend import ClosureSnapshot, is_capturing

from .attention import (
    HALVES,
    Attention,
    Options,
    ScoreFunctions,
    find_visible_blocks,
    require_fitting,
    scale_of_products,
)

__all__ = ["BlockMask", "create_block_mask", "flex_attention"]

Tensor: TypeAlias = dt.Tensor
ScoreMod: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
MaskMod: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
OP_NAME = "flex_attention"


class BlockMask(NamedTuple):
    """A function that masks scores, and the sizes for which it is meant; None fits any size.

    - `mask_mod`: a function (b, h, q_idx, kv_idx) that returns True where a query sees a key.
    - `B`, `H`, `Q_LEN`, `KV_LEN`: the numbers of batches, heads, queries and keys.
    - `blocks`: for each block of queries and block of keys, False if `mask_mod` hides all of it;
      None if that is not known.

    >>> from dovetail.nn import functional as F
    >>> mask = F.create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 8, 16)
    >>> isinstance(mask, F.BlockMask), mask.KV_LEN
    (True, 16)
    """

    mask_mod: MaskMod
    B: int | None
    H: int | None
    Q_LEN: int
    KV_LEN: int
    blocks: Sequence[Sequence[bool]] | None = None  # see `ScoreFunctions`


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = 128,
) -> BlockMask:
    """Return the mask of a function, for `flex_attention`.

    - `mask_mod`: a function (b, h, q_idx, kv_idx) of int32 tensors that broadcast to each other; it
      returns True where the query sees the key.
    - `B`, `H`, `Q_LEN`, `KV_LEN`: the numbers of batches, heads, queries and keys. None for a
      number on which the function does not depend.
    - `device`: where the function is computed.
    - `BLOCK_SIZE`: has no effect.

    The function is computed for all scores, and blocks of 256 queries and 256 keys without a
    visible score are left out later. In a captured function (`dt.jit`) nothing is computed, and all
    blocks are kept; create the mask outside of it.
    Raises: ArgumentTypeError, and what the function raises.

    >>> from dovetail.nn import functional as F
    >>> F.create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 8, 8).Q_LEN
    8
    """
    _require_function("create_block_mask", "mask_mod", mask_mod)
    zero = dt.zeros((1, 1, 1, 1), dtype=dt.int32, device=device)
    _require_mask("create_block_mask", mask_mod, zero)
    blocks = (
        None if is_capturing() else find_visible_blocks(mask_mod, (B, H, Q_LEN, KV_LEN), device)
    )
    return BlockMask(mask_mod, B, H, Q_LEN, KV_LEN, blocks)


@overload
def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: Literal[False] = False,
    *,
    mask_mod: MaskMod | None = None,
) -> Tensor: ...
@overload
def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    return_lse: Literal[True],
    mask_mod: MaskMod | None = None,
) -> tuple[Tensor, Tensor]: ...
def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    *,
    mask_mod: MaskMod | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Return attention with functions that change and mask the scores.

    - `query`, `key`, `value`: the queries, keys and values, of four dimensions.
    - `score_mod`: a function (score, b, h, q_idx, kv_idx) that returns new scores; None changes
      none.
    - `block_mask`: a `mask_mod` by `create_block_mask`.
    - `scale`: the factor of the products, by default 1 / sqrt(e).
    - `enable_gqa`: several neighbouring heads of queries share a key and value.
    - `return_lse`: also return the logarithm of each row's sum of exponentials.
    - `mask_mod`: a function (b, h, q_idx, kv_idx) that returns True where a query sees a key.

    The result for a query that sees no key is zero, and its logarithm -inf.
    The functions run on tiles: `score` is a tensor of scaled products, and the indices are int32
    tensors that broadcast to it, so they must compute each element from its score and indices
    alone. They may read other tensors at these indices, and gradients flow to those that
    `score_mod` reads. In the backward pass `score_mod` runs again.
    Shapes: `query` (b, h, l, e), `key` (b, h, s, e), `value` (b, h, s, v) give (b, h, l, v).
    Dtypes: floats, the same of all three; halves are computed in float32, and rounded once.
    Memory: one tile of scores at a time, also in the backward pass.
    Raises: ShapeError, DTypeError, DeviceError, ArgumentError, ArgumentTypeError, GradientError.
    See also: `create_block_mask`, `scaled_dot_product_attention`.

    >>> import dovetail as dt
    >>> from dovetail.nn import functional as F
    >>> x = dt.asarray([[[[1.0, 0.0], [0.0, 1.0]]]])
    >>> causal = lambda b, h, q_idx, kv_idx: q_idx >= kv_idx
    >>> F.flex_attention(x, x, x, mask_mod=causal)[0, 0, 0].tolist()
    [1.0, 0.0]
    """
    _require_operands(query, key, value, enable_gqa)
    if score_mod is not None:
        _require_function(OP_NAME, "score_mod", score_mod)
    mask_mod = _choose_mask(block_mask, mask_mod, query, key)
    blocks = None if block_mask is None else block_mask.blocks
    compute = dt.float32 if query.dtype in HALVES else query.dtype
    q, k, v = (x if x.dtype is compute else dt.astype(x, compute) for x in (query, key, value))
    b, h, rows, _ = q.shape
    heads = k.shape[1]
    if enable_gqa and heads != h:  # the heads that share a key are an axis of their own
        q = dt.reshape(q, (b, heads, h // heads, *q.shape[2:]))
        k, v = (dt.expand_dims(x, axis=2) for x in (k, v))
    shape = (*q.shape[:-1], v.shape[-1])
    if not k.shape[-2]:
        out, sums = dt.zeros(shape, dtype=compute, device=q.device), None
    else:
        functions = _number_positions(score_mod, mask_mod, q, k)._replace(blocks=blocks)
        options = Options(False, scale_of_products(q, scale), 1.0, dt.finfo(compute).min)
        functions = _find_reads(functions, q)
        out, sums = Attention.apply(q, k, v, None, None, options, functions, *functions.reads)
    out = dt.reshape(out, (b, h, rows, shape[-1]))
    out = out if compute is query.dtype else dt.astype(out, query.dtype)
    if not return_lse:
        return out
    if sums is None:
        return out, dt.full((b, h, rows), -math.inf, dtype=compute, device=q.device)
    sums = dt.reshape(sums, (b, h, rows))
    return out, dt.where(sums == math.inf, -math.inf, sums)  # of a row that sees no key


# --- operands -------------------------------------------------------------------------------------


def _require_function(op: str, name: str, value: object) -> None:
    """Raise ArgumentTypeError unless an argument is a function."""
    if not callable(value):
        raise dt.ArgumentTypeError(
            f"{op}: {name} must be a function of tensors, got {type(value).__name__}"
        )


def _require_operands(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    """Raise an error for operands that do not fit to each other."""
    require_fitting((query, key, value), None, OP_NAME)
    shapes = f"shapes {query.shape}, {key.shape} and {value.shape}"
    if not query.ndim == key.ndim == value.ndim == 4:
        raise dt.ShapeError(
            f"{OP_NAME}: query, key and value must have 4 dimensions, (batch, heads, rows, size), "
            f"got {shapes}"
        )
    if query.shape[0] != key.shape[0] or key.shape[:2] != value.shape[:2]:
        raise dt.ShapeError(
            f"{OP_NAME}: query, key and value must have the same batch, and key and value the same "
            f"heads, got {shapes}"
        )
    heads, shared = query.shape[1], key.shape[1]
    if not enable_gqa and heads != shared:
        raise dt.ShapeError(
            f"{OP_NAME}: query and key must have the same number of heads, got {heads} and "
            f"{shared}; if keys have fewer heads, pass enable_gqa=True"
        )
    if enable_gqa and (not shared or heads % shared):
        raise dt.ShapeError(
            f"{OP_NAME}: the number of query heads must be a multiple of the heads of key, got "
            f"{heads} and {shared}"
        )


def _choose_mask(
    block_mask: BlockMask | None, mask_mod: MaskMod | None, query: Tensor, key: Tensor
) -> MaskMod | None:
    """Return the function that masks scores, from either argument; None for none."""
    if block_mask is None:
        if mask_mod is not None:
            _require_function(OP_NAME, "mask_mod", mask_mod)
        return mask_mod
    if not isinstance(block_mask, BlockMask):
        raise dt.ArgumentTypeError(
            f"{OP_NAME}: block_mask must come from create_block_mask, got "
            f"{type(block_mask).__name__}; a function is passed as mask_mod="
        )
    if mask_mod is not None:
        raise dt.ArgumentError(f"{OP_NAME}: pass block_mask or mask_mod, not both")
    sizes = (*query.shape[:3], key.shape[2])
    for name, size, wanted in zip(BlockMask._fields[1:5], sizes, block_mask[1:5], strict=True):
        if wanted not in (None, 1, size) or (wanted == 1 != size and name[-3:] == "LEN"):
            raise dt.ShapeError(
                f"{OP_NAME}: block_mask was created for {name}={wanted}, but query and key have "
                f"{size}"
            )
    return block_mask.mask_mod


# --- functions of scores --------------------------------------------------------------------------


def _number_positions(
    score_mod: ScoreMod | None, mask_mod: MaskMod | None, q: Tensor, k: Tensor
) -> ScoreFunctions:
    """Return the functions with the indices of batches, heads, queries and keys."""
    b, *heads = q.shape[:-2]
    ones = [1] * len(heads)

    def number(n: int) -> Tensor:
        """Return the numbers up to n."""
        return dt.arange(n, dtype=dt.int32, device=q.device)

    return ScoreFunctions(
        score_mod,
        mask_mod,
        dt.reshape(number(b), (b, *ones, 1, 1)),
        dt.reshape(number(math.prod(heads)), (1, *heads, 1, 1)),
        number(max(q.shape[-2], k.shape[-2])),
    )


def _find_reads(functions: ScoreFunctions, q: Tensor) -> ScoreFunctions:
    """Return the functions with the tensors that receive gradients, after a trial of one score.

    Nothing of the trial is computed. Raises: ShapeError, DTypeError, ArgumentTypeError for results
    that are no scores or no mask.
    """
    one, zero = (1,) * q.ndim, dt.zeros((1,) * q.ndim, dtype=dt.int32, device=q.device)
    score = dt.zeros(one, dtype=q.dtype, device=q.device)
    indices = [zero] * 4
    if functions.mask_mod is not None:
        _require_mask(OP_NAME, functions.mask_mod, zero)
    has_gradients = dt.is_grad_enabled()
    snapshots = {
        name: ClosureSnapshot(OP_NAME, f)
        for name, f in (("score_mod", functions.score_mod), ("mask_mod", functions.mask_mod))
        if f is not None and has_gradients
    }
    reads: list[Tensor] = []
    if functions.score_mod is not None:
        score.requires_grad_(has_gradients)
        result = functions.score_mod(score, *indices)
        _require_elements(OP_NAME, "score_mod", result, one)
        if has_gradients:
            reads = snapshots["score_mod"].find_gradient_reads(score, result)
    return functions._replace(reads=reads, snapshots=snapshots)


def _require_mask(op: str, mask_mod: MaskMod, zero: Tensor) -> None:
    """Raise an error unless a function of indices returns bools; `zero`: an index."""
    visible = mask_mod(zero, zero, zero, zero)
    _require_elements(op, "mask_mod", visible, zero.shape)
    if visible.dtype is not dt.bool:
        raise dt.DTypeError(
            f"{op}: mask_mod must return bool, True where a query sees a key, got {visible.dtype}"
        )


def _require_elements(op: str, name: str, result: object, shape: Sequence[int]) -> None:
    """Raise an error unless a function returned a tensor that broadcasts to the shape."""
    if not isinstance(result, dt.Tensor):
        raise dt.ArgumentTypeError(
            f"{op}: {name} must return a tensor, got {type(result).__name__}"
        )
    if result.size != 1 or result.ndim > len(shape):
        raise dt.ShapeError(
            f"{op}: {name} must return one element for each score, got shape {result.shape} "
            f"for one score; read other tensors at the indices, as bias[h, q_idx, kv_idx]"
        )
