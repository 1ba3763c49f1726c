"""Padding of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ... import layout as lay
from ...argument_checks import choice, host_memory, integer, integers, sequence, shown
from ...dtypes import float64, int64
from ...errors import ArgumentError, ShapeError
from ...tensor.host import from_host
from ...tensor.other_layouts import require_along
from ...tensor.primitives import slice_along
from ...tensor.tensor import Tensor
from ..creation.constructors import Fill, arange, full
from ..datatypes import cast, move_as, move_to_supporting_device
from ..elementwise.op_functions import floor
from ..elementwise.op_functions import round as round_half_even
from ..indexing.index_reads import take
from ..reductions.order_statistics import median
from ..reductions.statistics import max as max_of
from ..reductions.statistics import mean as mean_of
from ..reductions.statistics import min as min_of
from ..variants import public
from .copies import concat, copy
from .manipulation import broadcast_to, flip, reshape

__all__ = ["pad"]

REPEATING = ("edge", "reflect", "symmetric", "wrap")  # each element is a copy of one of x
STATISTICS = {"mean": mean_of, "median": median, "maximum": max_of, "minimum": min_of}
MODES = ("constant", *REPEATING, "linear_ramp", *STATISTICS, "empty")
MODES_OF_OPTIONS = {
    "constant_values": ("constant",),
    "end_values": ("linear_ramp",),
    "stat_length": tuple(STATISTICS),
}
Widths = int | Sequence[int] | Sequence[Sequence[int]] | Mapping[int, int | Sequence[int]]
Fills = Fill | Sequence[Fill] | Sequence[Sequence[Fill]] | None


@public(out=True, widen=False)
def pad(
    x: Tensor,
    pad_width: Widths,
    /,
    mode: str = "constant",
    *,
    constant_values: Fills = None,
    end_values: Fills = None,
    stat_length: Widths | None = None,
    reflect_type: str = "even",
    out: Tensor | None = None,
) -> Tensor:
    """Return a new tensor with more elements before and after those of `x` along each axis.

    - `pad_width`: one number for all axes, a pair (before, after) for all axes, such a pair for
      each axis, or a dict of numbers or pairs by axis.
    - `mode`: "constant" adds a number; "edge" the nearest element; "reflect" and "symmetric"
      mirrored elements, without and with the one at the edge; "wrap" elements from the other end;
      "linear_ramp" a ramp from the edge to `end_values`; "mean", "median", "maximum" and "minimum"
      that of the vector along the axis; "empty" zeros, on which a program should not rely.
    - `constant_values`: the number that "constant" adds, or numbers in the form of `pad_width`.
    - `end_values`: the outermost number of "linear_ramp", 0 by default, or numbers in that form.
    - `stat_length`: the number of elements next to the edge that a statistic uses, or numbers in
      that form; None uses all.
    - `reflect_type`: "odd" mirrors elements at the edge's value too: 2 * edge - element.

    Shapes: any; each size grows by the two widths.
    Dtypes: all; the result has the same.
    Gradient: each element gets the sum over its copies.
    Raises: ArgumentError for a negative width, another mode, or a number that a mode does not take;
    ShapeError for an empty axis to repeat or a wrong number of widths, ValueOverflowError for a
    number that does not fit.
    See also: `nn.functional.pad`, which takes the last axis first.

    >>> import dovetail as dt
    >>> dt.pad(dt.asarray([1, 2, 3]), (2, 1), "reflect").tolist()
    [3, 2, 1, 2, 3, 2]
    """
    choice("pad", mode, "mode", MODES)
    options = (
        ("constant_values", constant_values),
        ("end_values", end_values),
        ("stat_length", stat_length),
    )
    for name, value in options:
        if value is not None and mode not in MODES_OF_OPTIONS[name]:
            allowed = " or ".join(f'"{m}"' for m in MODES_OF_OPTIONS[name])
            raise ArgumentError(
                f"pad: {name} must be left out with mode={mode!r}; it belongs to {allowed}"
            )
    is_odd = choice("pad", reflect_type, "reflect_type", ("even", "odd")) == "odd"
    widths = _parse_widths(pad_width, require_along("pad", x).ndim)
    filling = end_values if mode == "linear_ramp" else constant_values
    name = "end_values" if mode == "linear_ramp" else "constant_values"
    fills = _parse_fills(0 if filling is None else filling, x.ndim, name)
    lengths = _parse_lengths(stat_length, x.ndim)
    padded = x
    for d, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        n = padded.shape[d]
        if mode in ("constant", "empty"):
            pads = [
                _constant_pad(padded, d, n, fill)
                for n, fill in zip((before, after), fills[d], strict=True)
            ]
            padded = concat([pads[0], padded, pads[1]], axis=d)
        elif not n:
            raise ShapeError(f"pad: axis {d} must not be empty in this mode, got shape {x.shape}")
        elif mode == "linear_ramp":
            left = _ramp(_slice(padded, d, 0, 1), fills[d][0], before, d)
            right = _ramp(_slice(padded, d, n - 1, n), fills[d][1], after, d)
            padded = concat([left, padded, flip(right, axis=d)], axis=d)
        elif mode in STATISTICS:
            first, last = (min(n, m) for m in lengths[d])
            chunks = (_slice(padded, d, 0, first), before), (_slice(padded, d, n - last, n), after)
            left, right = (_statistic(mode, chunk, d, width) for chunk, width in chunks)
            padded = concat([left, padded, right], axis=d)
        elif is_odd and mode in ("reflect", "symmetric") and n > (mode == "reflect"):
            padded = _reflect_oddly(padded, d, before, after, int(mode == "reflect"))
        else:
            with host_memory(f"pad: {n + before + after:,} positions"):
                positions = _source_positions(mode, np.arange(-before, n + after), n)
            padded = take(padded, from_host(positions, int64, x.device), axis=d)
    return copy(x) if padded is x else padded


def _slice(x: Tensor, axis: int, start: int, stop: int) -> Tensor:
    """Return a view of the elements from `start` to `stop` along an axis."""
    return slice_along(x, axis, start, stop - start, "pad")


def _ramp(edge: Tensor, end: Any, n: int, axis: int) -> Tensor:
    """Return `n` numbers along an axis, from `end` to before `edge`; integers are rounded down."""
    d = edge.dtype
    work = d.compute if d.kind in "fc" else float64
    wide, end = move_to_supporting_device("pad", work, edge, end)
    shape = tuple([n if k == axis else 1 for k in range(edge.ndim)])
    steps = reshape(arange(n, dtype=work.part, device=wide.device), shape)
    ramp = steps * ((cast(wide, work) - end) / max(n, 1)) + end
    return move_as(floor(ramp) if d.kind in "iu" else ramp, d, edge.device)


def _statistic(mode: str, chunk: Tensor, axis: int, n: int) -> Tensor:
    """Return `n` copies along an axis of a statistic; means of integers are rounded to even."""
    d, home = chunk.dtype, chunk.device
    if mode in ("mean", "median") and d.kind not in "fc":
        (chunk,) = move_to_supporting_device("pad", float64, chunk)
        chunk = cast(chunk, float64)
    value = STATISTICS[mode](chunk, axis=axis, keepdims=True)
    value = move_as(round_half_even(value) if d.kind in "iu" else value, d, home)
    return broadcast_to(value, tuple([n if k == axis else m for k, m in enumerate(value.shape)]))


def _reflect_oddly(x: Tensor, axis: int, before: int, after: int, skipped: int) -> Tensor:
    """Return `x` with elements mirrored at the value of the edge, in whole periods at a time.

    skipped: 1 leaves the edge itself out of the mirrored elements, 0 repeats it.
    """
    period = x.shape[axis] - skipped
    while before or after:
        n = x.shape[axis]
        chunk = (n - skipped) // period * period
        left, right = min(before, chunk), min(after, chunk)
        first, last = _slice(x, axis, 0, 1), _slice(x, axis, n - 1, n)
        head = first * 2 - flip(_slice(x, axis, skipped, skipped + left), axis=axis)
        tail = last * 2 - flip(_slice(x, axis, n - skipped - right, n - skipped), axis=axis)
        x = concat([head, x, tail], axis=axis)
        before, after = before - left, after - right
    return x


def _parse_widths(pad_width: Widths, ndim: int) -> list[tuple[int, int]]:
    """Return a (before, after) pair for each axis.

    Raises: ShapeError for another number of widths, ArgumentError for a width below 0 or of 2**40
    or more, ArgumentTypeError for other objects than ints.
    """
    listed: Any = pad_width.tolist() if isinstance(pad_width, np.ndarray) else pad_width
    if isinstance(listed, Mapping):
        by_axis = {lay.axis("pad", d, ndim): width for d, width in listed.items()}
        listed = [integers("pad", by_axis.get(d, 0), "pad_width") for d in range(ndim)]
    if isinstance(listed, (list, tuple)) and any(isinstance(p, (list, tuple)) for p in listed):
        pairs = [
            integers("pad", sequence("pad", p, "pad_width", "ints"), "pad_width") for p in listed
        ]
    else:
        pairs = [integers("pad", listed, "pad_width")]
    pairs = pairs * ndim if len(pairs) == 1 else pairs
    if len(pairs) != ndim or any(len(p) not in (1, 2) for p in pairs):
        raise ShapeError(
            f"pad: pad_width must be a number, a pair, or a pair for each of {ndim} axes, "
            f"got {shown(pairs)}"
        )
    if any(not 0 <= n < 1 << 40 for p in pairs for n in p):
        raise ArgumentError(
            f"pad: widths must not be negative and must be below 2**40, got {shown(pairs)}"
        )
    return [(p[0], p[-1]) for p in pairs]


def _parse_lengths(stat_length: Any, ndim: int) -> list[tuple[int, int]]:
    """Return a (before, after) pair of lengths for each axis. Raises: ArgumentError below 1."""
    if stat_length is None:
        return [(1 << 40, 1 << 40)] * ndim
    pairs = _parse_fills(stat_length, ndim, "stat_length")
    return [
        (integer("pad", a, "stat_length", 1), integer("pad", b, "stat_length", 1)) for a, b in pairs
    ]


def _parse_fills(values: Any, ndim: int, name: str) -> list[tuple[Any, Any]]:
    """Return a (before, after) pair of numbers for each axis. Raises: ShapeError for another form.

    A number that is no list stays as it is: `full` refuses what is no number.
    """
    if isinstance(values, Tensor) or not np.ndim(values):
        return [(values, values)] * ndim
    try:
        return [*map(tuple, np.broadcast_to(np.asarray(values, object), (ndim, 2)))]
    except ValueError:
        raise ShapeError(
            f"pad: {name} must be a number, a pair, or a pair for each of {ndim} axes, "
            f"got {shown(values)}"
        ) from None


def _constant_pad(x: Tensor, axis: int, n: int, value: Fill) -> Tensor:
    """Return a filled tensor in the shape of `x`, but of size `n` along an axis."""
    shape = tuple(n if d == axis else m for d, m in enumerate(x.shape))
    return full(shape, value, dtype=x.dtype, device=x.device)


def _source_positions(mode: str, positions: np.ndarray, n: int) -> np.ndarray:
    """Return each element's source, for positions relative to the first element."""
    if mode == "edge":
        return np.asarray(np.clip(positions, 0, n - 1))
    if mode == "wrap":
        return np.asarray(positions % n)
    if mode == "symmetric":
        positions = positions % (2 * n)
        return np.asarray(np.minimum(positions, 2 * n - 1 - positions))
    if n == 1:
        return positions * 0
    positions = positions % (2 * n - 2)
    return np.asarray(np.minimum(positions, 2 * n - 2 - positions))
