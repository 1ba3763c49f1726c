"""Alias analysis of two strided views of one storage.

It proves, for example, that two rows share no element, or that even and odd positions do not. A
write then needs no temporary, and pending readers of other elements need not run first.
"""

from __future__ import annotations

from math import gcd
from typing import TypeAlias

from ..layout import Shape

Axes: TypeAlias = list[tuple[int, int]]  # (stride, the last index), by falling strides


def are_disjoint(
    shape: Shape, strides: Shape, offset: int, shape_b: Shape, strides_b: Shape, offset_b: int
) -> bool:
    """Return True if the strides prove that two views share no element.

    False also if only a search could tell.
    """
    low, high, dense = _find_ends(shape, strides, offset)
    low_b, high_b, dense_b = _find_ends(shape_b, strides_b, offset_b)
    if high < low_b or high_b < low or low > high or low_b > high_b:
        return True
    if dense and dense_b:
        return False
    return _are_axes_disjoint(
        _find_axes(shape, strides), _find_axes(shape_b, strides_b), low_b - low
    )


def _find_ends(shape: Shape, strides: Shape, offset: int) -> tuple[int, int, bool]:
    """Return the lowest and highest offset, and True if enough elements exist to fill the range.

    Repeated elements count. The last offset of an empty view is before the first.
    """
    low = high = offset
    count = 1
    for k in range(len(shape)):
        n = shape[k]
        if n == 0:
            return 1, 0, False
        count *= n
        s = strides[k]
        if s < 0:
            low += (n - 1) * s
        else:
            high += (n - 1) * s
    return low, high, high - low < count


def _find_axes(shape: Shape, strides: Shape) -> Axes:
    """Return (s, sum of last indices of axes with stride s or -s) for each s > 0, falling."""
    last_by_stride: dict[int, int] = {}
    for n, s in zip(shape, strides, strict=True):
        if n > 1 and s:
            last_by_stride[abs(s)] = last_by_stride.get(abs(s), 0) + n - 1
    return sorted(last_by_stride.items(), reverse=True)


def _are_axes_disjoint(a: Axes, b: Axes, distance: int) -> bool:
    """Return True if the axes prove that `b`, `distance` after `a`, shares no element with `a`.

    The longest stride is taken as the length of rows. If no view crosses the end of a row, two
    views overlap only in rows that both have, and there only if their parts of a row overlap.
    """
    step = 0
    for s, _ in (*a, *b):
        step = gcd(step, s)
    if distance % step if step else distance:
        return True
    span_a, span_b = _span(a), _span(b)
    if distance > span_a or -distance > span_b:
        return True
    if not step:
        return False
    row = max(s for s, _ in (a[:1] + b[:1]))
    rows_a, inner_a = _split_rows(a, row)
    rows_b, inner_b = _split_rows(b, row)
    span_a, span_b = _span(inner_a), _span(inner_b)
    first, at = divmod(distance, row)
    if at + span_b >= row or span_a >= row:  # count rows from the other view's first element
        first, at = first + 1, at - row
        if span_b >= row or span_a - at >= row:
            return False
    if first > rows_a or -first > rows_b:
        return True
    return _are_axes_disjoint(inner_a, inner_b, at)


def _span(axes: Axes) -> int:
    """Return the distance from the first to the last element of the axes."""
    span = 0
    for s, last in axes:
        span += s * last
    return span


def _split_rows(axes: Axes, row: int) -> tuple[int, Axes]:
    """Return the last index along the stride `row` (0 if no axis has it), and the other axes."""
    return (axes[0][1], axes[1:]) if axes and axes[0][0] == row else (0, axes)
