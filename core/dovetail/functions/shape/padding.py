"""Padding of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...argument_checks import choice, host_memory, integers, sequence, shown
from ...dtypes import int64
from ...errors import ArgumentError, ShapeError
from ...tensor.host import from_host
from ...tensor.tensor import Tensor, strided
from ..creation.constructors import Fill, full
from ..indexing.index_reads import take
from ..variants import public
from .copies import concat, copy

__all__ = ["pad"]

MODES = ("constant", "edge", "reflect", "symmetric", "wrap")
Widths = int | Sequence[int] | Sequence[Sequence[int]]


@public(out=True, widen=False)
def pad(
    x: Tensor,
    pad_width: Widths,
    /,
    mode: str = "constant",
    *,
    constant_values: Fill | Sequence[Fill] | Sequence[Sequence[Fill]] | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return a new tensor with more elements before and after those of `x` along each axis.

    - `pad_width`: one number for all axes, a pair (before, after) for all axes, or such a pair for
      each axis.
    - `mode`: "constant" adds a number; "edge" the nearest element; "reflect" and "symmetric"
      mirrored elements, without and with the one at the edge; "wrap" elements from the other end.
    - `constant_values`: the number that "constant" adds, or numbers in the form of `pad_width`.

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
    if mode != "constant" and constant_values is not None:
        raise ArgumentError(
            f'pad: constant_values must be left out with mode={mode!r}; it belongs to "constant"'
        )
    widths = _parse_widths(pad_width, strided("pad", x).ndim)
    fills = _parse_fills(0 if constant_values is None else constant_values, x.ndim)
    padded = x
    for d, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        if mode == "constant":
            pads = [
                _constant_pad(padded, d, n, fill)
                for n, fill in zip((before, after), fills[d], strict=True)
            ]
            padded = concat([pads[0], padded, pads[1]], axis=d)
        else:
            n = padded.shape[d]
            if not n:
                raise ShapeError(
                    f"pad: axis {d} must not be empty in this mode, got shape {x.shape}"
                )
            with host_memory(f"pad: {n + before + after:,} positions"):
                positions = _source_positions(mode, np.arange(-before, n + after), n)
            padded = take(padded, from_host(positions, int64, x.device), axis=d)
    return copy(x) if padded is x else padded


def _parse_widths(pad_width: Widths, ndim: int) -> list[tuple[int, int]]:
    """Return a (before, after) pair for each axis.

    Raises: ShapeError for another number of widths, ArgumentError for a width below 0 or of 2**40
    or more, ArgumentTypeError for other objects than ints.
    """
    listed = pad_width.tolist() if isinstance(pad_width, np.ndarray) else pad_width
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


def _parse_fills(values: Any, ndim: int) -> list[tuple[Any, Any]]:
    """Return a (before, after) pair of numbers for each axis. Raises: ShapeError for another form.

    A number that is no list stays as it is: `full` refuses what is no number.
    """
    if isinstance(values, Tensor) or not np.ndim(values):
        return [(values, values)] * ndim
    try:
        return [*map(tuple, np.broadcast_to(np.asarray(values, object), (ndim, 2)))]
    except ValueError:
        raise ShapeError(
            f"pad: constant_values must be a number, a pair, or a pair for each of {ndim} axes, "
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
