"""Pooling into a given number of windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TypeAlias

import dovetail as dt
from dovetail.extend import arguments

from .pooling import pool_means
from .sizes import check_sizes, with_batch, without_batch
from .windows import Windows, max_over_taps, require_dtype_kind, window_max

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
]

Tensor: TypeAlias = dt.Tensor
OutputSize: TypeAlias = int | Sequence[int | None] | None
MaxPoolResult: TypeAlias = Tensor | tuple[Tensor, Tensor]


def _output_sizes(op: str, output_size: OutputSize, within: Sequence[int]) -> tuple[int, ...]:
    """Return the number of windows per axis; None stands for the axis' size.

    Raises: ArgumentError for another number of sizes or one below 0, ArgumentTypeError for no ints.
    """
    if isinstance(output_size, (list, tuple)):
        requested = list(output_size)
    else:
        requested = [output_size] * len(within)
    if len(requested) != len(within):
        raise dt.ArgumentError(
            f"{op}: output_size must have {len(within)} sizes, one for each axis, got "
            f"{output_size!r} with {len(requested)}"
        )
    filled = tuple([n if m is None else m for m, n in zip(requested, within, strict=True)])
    return check_sizes(op, filled, "output_size", len(within))


def _spans(n: int, m: int) -> list[tuple[int, int]]:
    """Return the first element and the end of each of m windows over n elements."""
    return [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]


def _check_adaptive(
    op: str, input: Tensor, output_size: OutputSize, axes: int
) -> tuple[Tensor, bool, tuple[int, ...], bool]:
    """Return the batched input, its batch flag, the window counts, and if these divide evenly."""
    x, had_batch = with_batch(op, input, axes)
    if 0 in x.shape[2:]:
        raise dt.ShapeError(
            f"{op}: the input must not be empty along the pooled axes, got shape {x.shape}"
        )
    counts = _output_sizes(op, output_size, x.shape[2:])
    even = all(m and n % m == 0 for n, m in zip(x.shape[2:], counts, strict=True))
    return x, had_batch, counts, even


def _pool_adaptive_avg(axes: int, input: Tensor, output_size: OutputSize) -> Tensor:
    """Return the means of windows; where these are uneven, one axis after the other."""
    op = f"adaptive_avg_pool{axes}d"
    x, had_batch, counts, even = _check_adaptive(op, input, output_size, axes)
    require_dtype_kind(op, x, "f")
    if even:
        kernel = tuple([n // m for n, m in zip(x.shape[2:], counts, strict=True)])
        return without_batch(pool_means(axes, x, kernel, None, 0, False, True, None, op), had_batch)
    for a, m in enumerate(counts):
        x = _mean_along(x, 2 + a, m)
    return without_batch(x, had_batch)


def _mean_along(x: Tensor, axis: int, m: int) -> Tensor:
    """Return the means of `m` windows along an axis, which may have different lengths."""
    n = x.shape[axis]
    if m == n:
        return x
    spans = _spans(n, m)
    total: Tensor | None = None
    column = (-1, *(1,) * (x.ndim - axis - 1))
    for i in range(max((b - a for a, b in spans), default=1)):
        at = dt.asarray([min(a + i, b - 1) for a, b in spans], dtype=dt.int64, device=x.device)
        part = dt.take(x, at, axis=axis)
        if i and any(a + i >= b for a, b in spans):
            inside = dt.asarray([a + i < b for a, b in spans], device=x.device).reshape(column)
            part = dt.where(inside, part, 0.0)
        total = part if total is None else total + part
    assert total is not None
    lengths = dt.asarray([b - a for a, b in spans], dtype=x.dtype, device=x.device)
    return total / lengths.reshape(column)


def adaptive_avg_pool1d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Return the means of a given number of windows that cover signals evenly.

    - `output_size`: the number of windows; None for the number of elements. Window i of m covers
      elements floor(i * n / m) to ceil((i + 1) * n / m).

    Shapes: (n, c, length) or (c, length); the result has as many windows as last axis.
    Dtypes: floats; float16 and bfloat16 are summed in float32.
    Raises: ShapeError, ArgumentError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 2.0, 3.0]])
    >>> dt.nn.functional.adaptive_avg_pool1d(x, 2).tolist()
    [[1.5, 2.5]]
    """
    return _pool_adaptive_avg(1, input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Return the means of a given number of windows of images; see `adaptive_avg_pool1d`.

    - `output_size`: the number of windows: an int for all axes, or one for each. None keeps the
      input's size of an axis.

    Shapes: (n, c, h, w) or (c, h, w); the result has as many windows as last axes.
    Dtypes: floats; float16 and bfloat16 are summed in float32.
    Raises: ShapeError, ArgumentError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.arange(16.0).reshape((1, 4, 4))
    >>> dt.nn.functional.adaptive_avg_pool2d(x, 1).tolist()
    [[[7.5]]]
    """
    return _pool_adaptive_avg(2, input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Return the means of a given number of windows of volumes; see `adaptive_avg_pool1d`.

    - `output_size`: the number of windows: an int for all axes, or one for each. None keeps the
      input's size of an axis.

    Shapes: (n, c, d, h, w) or (c, d, h, w); the result has as many windows as last axes.
    Dtypes: floats; float16 and bfloat16 are summed in float32.
    Raises: ShapeError, ArgumentError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.arange(8.0).reshape((1, 2, 2, 2))
    >>> dt.nn.functional.adaptive_avg_pool3d(x, (None, 1, 1)).tolist()
    [[[[1.5]], [[5.5]]]]
    """
    return _pool_adaptive_avg(3, input, output_size)


def _pool_adaptive_max(
    axes: int, input: Tensor, output_size: OutputSize, return_indices: bool
) -> MaxPoolResult:
    """Return the maxima of windows, and their flat indices if `return_indices`."""
    op = f"adaptive_max_pool{axes}d"
    x, had_batch, counts, even = _check_adaptive(op, input, output_size, axes)
    require_dtype_kind(op, x)
    arguments.flag(op, return_indices, "return_indices")
    if even:
        kernel = tuple([n // m for n, m in zip(x.shape[2:], counts, strict=True)])
        w = Windows(op, x, kernel, None, 0, 1, False, axes)
        best, which = window_max(x, w)
        return (
            (without_batch(best, had_batch), without_batch(w.flat_indices(which), had_batch))
            if return_indices
            else without_batch(best, had_batch)
        )
    spans = [_spans(n, m) for n, m in zip(x.shape[2:], counts, strict=True)]
    taps = _uneven_taps(x, spans)
    best, indices = max_over_taps(taps, lambda tap: _uneven_indices(x, spans, tap))
    best = without_batch(best, had_batch)
    return (best, without_batch(indices, had_batch)) if return_indices else best


Spans: TypeAlias = list[list[tuple[int, int]]]


def _tap_positions(spans: list[tuple[int, int]], i: int, device: dt.Device) -> Tensor:
    """Return element i of each window, or the last one if a window has fewer elements."""
    return dt.asarray([min(a + i, b - 1) for a, b in spans], dtype=dt.int64, device=device)


def _uneven_taps(x: Tensor, spans: Spans) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """Yield the index of each element of the longest window, and that element of all windows."""
    longest = [max((b - a for a, b in along), default=1) for along in spans]
    for tap in product(*map(range, longest)):
        part = x
        for a, i in enumerate(tap):
            part = dt.take(part, _tap_positions(spans[a], i, x.device), axis=2 + a)
        yield tap, part


def _uneven_indices(x: Tensor, spans: Spans, tap: tuple[int, ...]) -> Tensor:
    """Return the flat index in the grid of one element of each window."""
    total: Tensor | None = None
    for a, i in enumerate(tap):
        at = _tap_positions(spans[a], i, x.device).reshape((-1, *(1,) * (len(tap) - a - 1)))
        total = at if total is None else total * x.shape[2 + a] + at
    assert total is not None
    return total


def adaptive_max_pool1d(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> MaxPoolResult:
    """Return the largest elements of a given number of windows of signals.

    - `output_size`: the number of windows; None for the input's length.

    See `adaptive_avg_pool1d` for the windows, and `max_pool1d` for the results.
    Shapes: (n, c, length) or (c, length); the result has as many windows as last axis.
    Dtypes: real numbers.
    Raises: ShapeError, ArgumentError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 2.0, 3.0]])
    >>> dt.nn.functional.adaptive_max_pool1d(x, 2).tolist()
    [[2.0, 3.0]]
    """
    return _pool_adaptive_max(1, input, output_size, return_indices)


def adaptive_max_pool2d(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> MaxPoolResult:
    """Return the maxima of a given number of windows of images; see `adaptive_max_pool1d`.

    - `output_size`: the number of windows: an int for all axes, or one for each. None keeps the
      input's size of an axis.

    Shapes: (n, c, h, w) or (c, h, w); the result has as many windows as last axes.
    Dtypes: real numbers.
    Raises: ShapeError, ArgumentError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.arange(16.0).reshape((1, 4, 4))
    >>> dt.nn.functional.adaptive_max_pool2d(x, 1).tolist()
    [[[15.0]]]
    """
    return _pool_adaptive_max(2, input, output_size, return_indices)


def adaptive_max_pool3d(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> MaxPoolResult:
    """Return the maxima of a given number of windows of volumes; see `adaptive_max_pool1d`.

    - `output_size`: the number of windows: an int for all axes, or one for each. None keeps the
      input's size of an axis.

    Shapes: (n, c, d, h, w) or (c, d, h, w); the result has as many windows as last axes.
    Dtypes: real numbers.
    Raises: ShapeError, ArgumentError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.arange(8.0).reshape((1, 2, 2, 2))
    >>> dt.nn.functional.adaptive_max_pool3d(x, (None, 1, 1)).tolist()
    [[[[3.0]], [[7.0]]]]
    """
    return _pool_adaptive_max(3, input, output_size, return_indices)
