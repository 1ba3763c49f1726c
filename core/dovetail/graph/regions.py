"""Whether two views of one storage are of different elements.

The rows before one and that row are, and the odd places and the even ones. A write need neither
wait for who reads elsewhere nor go by way of other memory.
"""

from __future__ import annotations

from math import gcd
from typing import TypeAlias

from ..layout import Shape

Axes: TypeAlias = list[tuple[int, int]]  # (stride, the last index), by falling strides


def are_apart(
    shape: Shape, strides: Shape, offset: int, shape_b: Shape, strides_b: Shape, offset_b: int
) -> bool:
    """Whether two views have no element in common, as far as strides say.

    False also where it would take a search to know.
    """
    low, high, dense = _ends(shape, strides, offset)
    low_b, high_b, dense_b = _ends(shape_b, strides_b, offset_b)
    if high < low_b or high_b < low or low > high or low_b > high_b:
        return True
    if dense and dense_b:
        return False
    return _are_apart(_axes(shape, strides), _axes(shape_b, strides_b), low_b - low)


def _ends(shape: Shape, strides: Shape, offset: int) -> tuple[int, int, bool]:
    """The first and the last element, and whether those between are all there.

    The last is before the first where there is none.
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


def _axes(shape: Shape, strides: Shape) -> Axes:
    """The axes along which there is more than one element."""
    found: dict[int, int] = {}
    for n, s in zip(shape, strides, strict=True):
        if n > 1 and s:
            found[abs(s)] = found.get(abs(s), 0) + n - 1
    return sorted(found.items(), reverse=True)


def _are_apart(a: Axes, b: Axes, ahead: int) -> bool:
    """Whether no element of `b`, which begins so far `ahead`, is one of `a`.

    With the longest stride as the length of rows: where no view runs over the end of a row, the two
    meet only in rows that both have, and there only if their parts of a row meet.
    """
    step = 0
    for s, _ in (*a, *b):
        step = gcd(step, s)
    if ahead % step if step else ahead:
        return True
    span_a, span_b = _span(a), _span(b)
    if ahead > span_a or -ahead > span_b:
        return True
    if not step:
        return False
    row = max(s for s, _ in (a[:1] + b[:1]))
    rows_a, rest_a = _cut(a, row)
    rows_b, rest_b = _cut(b, row)
    span_a, span_b = _span(rest_a), _span(rest_b)
    first, at = divmod(ahead, row)
    if at + span_b >= row or span_a >= row:  # with the other's first element at a row's beginning
        first, at = first + 1, at - row
        if span_b >= row or span_a - at >= row:
            return False
    if first > rows_a or -first > rows_b:
        return True
    return _are_apart(rest_a, rest_b, at)


def _span(axes: Axes) -> int:
    found = 0
    for s, last in axes:
        found += s * last
    return found


def _cut(axes: Axes, row: int) -> tuple[int, Axes]:
    """The last index along the stride `row`, and the other axes."""
    return (axes[0][1], axes[1:]) if axes and axes[0][0] == row else (0, axes)
