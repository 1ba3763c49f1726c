"""Rows of a table: `embedding`, bags of rows, and one-hot vectors."""

from __future__ import annotations

from typing import Any, TypeAlias

import dovetail as dt
from dovetail.extend import arguments, in_range, read_at

from .precision import cast_like, require_floats, require_tensors, widen_half
from .softmax_functions import length

__all__ = ["embedding", "embedding_bag", "one_hot"]

Tensor: TypeAlias = dt.Tensor


class _ScaledGradient(dt.autograd.Function):
    """The identity, whose gradient is multiplied by a factor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: Tensor) -> Tensor:
        """Return `x` unchanged and save the factor."""
        ctx.save_for_backward(factor)
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        """Return the gradient times the factor."""
        return gradients[0] * ctx.saved_tensors[0], None


class _SparseRows(dt.autograd.Function):
    """Rows of a table, with a sparse gradient of the rows that were read."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, at: Tensor, op: str) -> Tensor:
        """Return the rows at the indices; save the indices and the weight's shape."""
        ctx.save_for_backward(at)
        ctx.shape = weight.shape
        return read_at(op, weight, at, 0, from_end=False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        """Return the gradient of the table as a sparse tensor of the rows read."""
        (at,) = ctx.saved_tensors
        g = gradients[0].reshape((at.size, ctx.shape[1]))
        rows = at.reshape((1, at.size))
        return (
            dt.sparse_coo_tensor(rows, g, ctx.shape, check_invariants=False),
            None,
            None,
        )


def _check_input(op: str, input: Tensor, weight: Tensor) -> None:
    """Raise an error unless `weight` is a matrix of floats and `input` holds integers."""
    require_floats(op, weight)
    if weight.ndim != 2:
        raise dt.ShapeError(
            f"{op}: weight must have 2 dimensions, (rows, columns), got shape {weight.shape}"
        )
    if not isinstance(input, dt.Tensor) or input.dtype.kind not in "iu":
        what = input.dtype.name if isinstance(input, dt.Tensor) else type(input).__name__
        raise dt.DTypeError(
            f"{op}: input must hold integers, got {what}; use input.astype(dt.int64)"
        )


def padding_row(op: str, padding_idx: int | None, rows: int) -> int | None:
    """Return the padding row counted from the start, None for None.

    Raises: ArgumentTypeError if it is no int, ArgumentError if it is out of range.
    """
    if padding_idx is None:
        return None
    row = arguments.integer(op, padding_idx, "padding_idx")
    if not -rows <= row < rows:
        raise dt.ArgumentError(f"{op}: padding_idx {row} is out of range for {rows} rows")
    return row % rows


def renormalize_rows(weight: Tensor, at: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows that are read to a norm of at most `max_norm`, in place."""
    with dt.no_grad():
        rows = dt.take(weight, at.reshape(-1), axis=0)
        norms = length(widen_half(rows), norm_type, 1, True)
        factor = dt.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)
        weight[at.reshape(-1)] = cast_like(
            widen_half(rows) * factor, rows
        )  # equal for duplicate indices


def _read_rows(
    op: str, at: Tensor, weight: Tensor, padding: int | None, by_frequency: bool, sparse: bool
) -> Tensor:
    """Return rows of the table, with gradients scaled or zeroed as the options say."""
    if not (weight.requires_grad and dt.is_grad_enabled()):
        return read_at(op, weight, at, 0, from_end=False)
    rows = (
        _SparseRows.apply(weight, at, op) if sparse else read_at(op, weight, at, 0, from_end=False)
    )
    factor: Tensor | None = None
    if padding is not None:
        factor = (at != padding).astype(rows.dtype)
    if by_frequency:
        flat = at.reshape(-1)
        kind = rows.dtype.compute  # counts overflow in float16
        times = dt.zeros(weight.shape[0], dtype=kind, device=at.device)
        times = times.index_add(0, flat, dt.ones(flat.shape, dtype=kind, device=at.device))
        inverse = (1.0 / dt.take(times, at, axis=0)).astype(rows.dtype)
        factor = inverse if factor is None else factor * inverse
    return rows if factor is None else _ScaledGradient.apply(rows, dt.expand_dims(factor, -1))


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return rows of `weight` by index; with `max_norm`, first scale these rows in place.

    - `weight`: the table, whose rows are read.
    - `padding_idx`: a row without a gradient.
    - `max_norm`, `norm_type`: before rows are read, scale them in place to at most this norm.
    - `scale_grad_by_freq`: divide gradients by the number of times a row is read.
    - `sparse`: the gradient of the weight is a sparse COO tensor with an entry for each row that is
      read, in that order, so that indices may repeat.

    Shapes: input any, weight (rows, n); the result (*input.shape, n).
    Dtypes: input integers, weight floats.
    Raises: ShapeError, DTypeError, ArgumentError; OutOfRangeError, also for negative numbers, when
    the work runs.
    See also: `embedding_bag`, `one_hot`, `dt.take`, `dt.nn.Embedding`.

    >>> import dovetail as dt
    >>> w = dt.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> dt.nn.functional.embedding(dt.asarray([1, 0]), w).tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """
    _check_input("embedding", input, weight)
    padding = padding_row("embedding", padding_idx, weight.shape[0])
    if max_norm is not None:
        input = in_range("embedding", input, weight.shape[0])
        renormalize_rows(weight, input, max_norm, norm_type)
    return _read_rows("embedding", input, weight, padding, scale_grad_by_freq, sparse)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return sums, means or maxima of bags of rows; with `max_norm`, scale rows in place.

    - `input`: a bag of indices in each row; or all bags concatenated in one dimension, with
      `offsets`.
    - `offsets`: for one dimension, the first position of each bag: they begin with 0 and do not
      decrease.
    - `max_norm`, `norm_type`, `scale_grad_by_freq`, `sparse`: as for `embedding`.
    - `mode`: "sum", "mean" or "max"; the result of an empty bag is 0.
    - `per_sample_weights`: a factor for each row, only for "sum".
    - `include_last_offset`: True if `offsets` has the end of the last bag, too.
    - `padding_idx`: a row that is ignored.

    Shapes: input (bags, n) or (n,), weight (rows, m), offsets (bags,); the result (bags, m).
    Dtypes: input and offsets integers, weight floats.
    Raises: ShapeError, DTypeError, ArgumentError; OutOfRangeError when the work runs, also for
    negative numbers, and for offsets that do not begin with 0, decrease, or exceed the length.
    See also: `embedding`, `dt.nn.EmbeddingBag`.

    >>> import dovetail as dt
    >>> w = dt.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> bags = dt.asarray([[1, 0], [1, 1]])
    >>> dt.nn.functional.embedding_bag(bags, w, mode="sum").tolist()
    [[4.0, 6.0], [6.0, 8.0]]
    """
    op = "embedding_bag"
    _check_input(op, input, weight)
    _require_bags(op, input, offsets, mode, per_sample_weights)
    if offsets is not None:
        _require_offsets(op, offsets, include_last_offset)
    padding = padding_row(op, padding_idx, weight.shape[0])
    if max_norm is not None:
        input = in_range(op, input, weight.shape[0])
        renormalize_rows(weight, input, max_norm, norm_type)
    by_frequency = scale_grad_by_freq and mode != "max"
    rows = _read_rows(op, input, weight, padding, by_frequency, sparse)
    x = widen_half(rows)
    if per_sample_weights is not None:
        x = x * dt.expand_dims(widen_half(per_sample_weights), -1)
    counts = None if padding is None else input != padding
    if input.ndim == 2:
        return cast_like(_reduce_equal_bags(x, counts, mode), rows)
    assert offsets is not None
    bags = offsets.shape[0] - include_last_offset
    if bags == 0:
        return rows[:0]
    starts = _check_offsets(op, offsets.astype(dt.int64), input.shape[0])
    # rows after the last offset, if it is an end, are in a bag that is left out
    return cast_like(_reduce_bags(x, counts, starts, mode)[:bags], rows)


def _require_bags(
    op: str, input: Tensor, offsets: Tensor | None, mode: str, factors: Tensor | None
) -> None:
    """Raise ArgumentError or ShapeError for a mode, input, offsets or factors that do not fit."""
    if mode not in ("sum", "mean", "max"):
        raise dt.ArgumentError(f"{op}: mode must be 'sum', 'mean' or 'max', got {mode!r}")
    if input.ndim not in (1, 2):
        raise dt.ShapeError(
            f"{op}: input must have shape (bags, n) or (n,), got shape {input.shape}"
        )
    if (input.ndim == 1) != (offsets is not None):
        needs = "needs offsets" if input.ndim == 1 else "takes no offsets"
        raise dt.ArgumentError(f"{op}: an input of shape {input.shape} {needs}")
    if factors is not None and mode != "sum":
        raise dt.ArgumentError(
            f"{op}: per_sample_weights are only allowed with mode='sum', got mode={mode!r}"
        )
    if factors is not None and factors.shape != input.shape:
        raise dt.ShapeError(
            f"{op}: per_sample_weights must have the input's shape {input.shape}, got shape "
            f"{factors.shape}"
        )


def _require_offsets(op: str, offsets: Tensor, include_last: bool) -> None:
    """Raise DTypeError or ShapeError unless offsets are a vector of integers, with the end."""
    if not isinstance(offsets, dt.Tensor) or offsets.dtype.kind not in "iu":
        what = offsets.dtype.name if isinstance(offsets, dt.Tensor) else type(offsets).__name__
        raise dt.DTypeError(
            f"{op}: offsets must hold integers, got {what}; use offsets.astype(dt.int64)"
        )
    if offsets.ndim != 1:
        raise dt.ShapeError(f"{op}: offsets must have 1 dimension, got shape {offsets.shape}")
    if include_last and offsets.shape[0] == 0:
        raise dt.ShapeError(
            f"{op}: with include_last_offset=True, offsets must have at least one element, the end "
            "of the last bag"
        )


def _check_offsets(op: str, offsets: Tensor, n: int) -> Tensor:
    """Return int64 offsets, which are checked when the work runs: they rise from 0 to `n`."""
    zero = dt.zeros(1, dtype=dt.int64, device=offsets.device)
    before = dt.concat([zero, offsets[:-1]])
    first = dt.arange(offsets.shape[0], device=offsets.device) == 0
    valid = dt.where(first, offsets == 0, (before <= offsets) & (offsets <= n))
    bad = dt.where(offsets == 0, before, offsets)  # not 0, which the check accepts
    rule = f"offsets must begin with 0, not decrease, and be at most {n}, the input's length"
    return offsets + in_range(op, dt.where(valid, 0, bad), 1, rule=rule)


def _reduce_equal_bags(x: Tensor, counts: Tensor | None, mode: str) -> Tensor:
    """Reduce bags of one length: x is (bags, n, m), the result (bags, m); the max of none is 0."""
    if mode == "max":
        if counts is not None:
            x = dt.where(dt.expand_dims(counts, -1), x, -float("inf"))
        empty = x.shape[1] == 0
        best = dt.zeros((x.shape[0], x.shape[2]), device=x.device) if empty else first_max(x, 1)
        if counts is None or empty:
            return best.astype(x.dtype)
        return dt.where(dt.expand_dims(dt.any(counts, axis=1), -1), best, 0.0)
    if counts is None:
        total = x.sum(axis=1)
        return total if mode == "sum" else total / max(x.shape[1], 1)
    total = dt.where(dt.expand_dims(counts, -1), x, 0.0).sum(axis=1)
    if mode == "sum":
        return total
    return total / dt.expand_dims(dt.maximum(counts.sum(axis=1), 1), -1)


def first_max(x: Tensor, axis: int) -> Tensor:
    """Return the maximum along an axis, with the gradient to the first of equals, as in PyTorch."""
    at = dt.expand_dims(dt.argmax(x, axis=axis), axis)
    return dt.take_along_axis(x, at, axis=axis).squeeze(axis)


def _reduce_bags(x: Tensor, counts: Tensor | None, offsets: Tensor, mode: str) -> Tensor:
    """Reduce consecutive bags of different lengths: x is (n, m), the result (bags, m)."""
    (n, m), bags = x.shape, offsets.shape[0]
    shape = (bags, m)
    if n == 0:  # multiplied, so that the check of the offsets runs
        zeros = dt.zeros(shape, dtype=x.dtype, device=x.device)
        return zeros + x.sum() * dt.expand_dims(offsets.astype(x.dtype), -1)
    positions = dt.arange(n, dtype=dt.int64, device=x.device)
    bag = dt.searchsorted(offsets, positions, side="right") - 1
    if mode == "max":
        if counts is not None:
            x = dt.where(dt.expand_dims(counts, -1), x, -float("inf"))
        return _max_of_bags(x, counts, bag, shape)
    if counts is not None:
        x = dt.where(dt.expand_dims(counts, -1), x, 0.0)
    total = dt.zeros(shape, dtype=x.dtype, device=x.device).index_add(0, bag, x)
    if mode == "sum":
        return total
    ones = dt.ones(n, dtype=x.dtype, device=x.device) if counts is None else counts.astype(x.dtype)
    lengths = dt.zeros(bags, dtype=x.dtype, device=x.device).index_add(0, bag, ones)
    return total / dt.expand_dims(dt.maximum(lengths, 1.0), -1)


def _max_of_bags(x: Tensor, counts: Tensor | None, bag: Tensor, shape: tuple[int, int]) -> Tensor:
    """Return the maximum of each bag over its rows that count; padding does not."""
    n = x.shape[0]
    values = x.detach()
    each_row = [~counts, bag] if counts is not None else [bag]
    *last, bags = (dt.broadcast_to(dt.expand_dims(key, -1), x.shape) for key in each_row)
    order = dt.lexsort([*last, -values, ~dt.isnan(values), bags], axis=0)
    first = dt.searchsorted(bag, dt.arange(shape[0], dtype=bag.dtype, device=bag.device))
    at = dt.take(order, dt.minimum(first, n - 1), axis=0)
    numbers = dt.expand_dims(dt.arange(shape[0], device=x.device), -1)
    occupied = dt.expand_dims(first < n, -1) & (dt.take(bag, at) == numbers)
    if counts is not None:
        occupied = occupied & dt.take(counts, at)
    return dt.where(occupied, dt.take_along_axis(x, at, axis=0), 0.0)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return 1 at the class of each element along a new last axis, 0 elsewhere.

    - `tensor`: the classes, integers from 0.
    - `num_classes`: the number of classes; -1 takes one more than the largest class, which the host
      reads.

    Shapes: any; the result (*tensor.shape, num_classes).
    Dtypes: integers; the result int64.
    Raises: DTypeError, ArgumentError; OutOfRangeError for a class that is none, when the work runs.
    See also: `embedding`, `cross_entropy`.

    >>> import dovetail as dt
    >>> dt.nn.functional.one_hot(dt.asarray([1, 0])).tolist()
    [[0, 1], [1, 0]]
    """
    require_tensors("one_hot", tensor)
    if tensor.dtype.kind not in "iu":
        raise dt.DTypeError(
            f"one_hot: classes must have an integer dtype, got {tensor.dtype.name}; use "
            "x.astype(dt.int64)"
        )
    num_classes = arguments.integer("one_hot", num_classes, "num_classes")
    if num_classes == -1:
        if not tensor.size:
            raise dt.ArgumentError(
                "one_hot: num_classes cannot be inferred from an empty tensor; pass num_classes"
            )
        num_classes = int(dt.max(tensor).item()) + 1
    if num_classes < 1:
        raise dt.ArgumentError(f"one_hot: num_classes must be positive, got {num_classes}")
    at = in_range("one_hot", tensor, num_classes)
    classes = dt.arange(num_classes, dtype=dt.int64, device=tensor.device)
    return (dt.expand_dims(at, -1) == classes).astype(dt.int64)
