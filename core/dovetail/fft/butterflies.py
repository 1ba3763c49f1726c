"""Transforms of a few points in registers: the work of one grid point of a stage.

All are forward: of x[0..r-1] the sums over j of x[j] w^(j k), w = exp(-2 pi i / r). The order of
operations is fixed by r, so every device gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeAlias

from ..ir.language import Value, complex_product_parts, const
from .twiddles import root

Point: TypeAlias = tuple[Value, Value]  # the real and the imaginary part
RADIX_FACTORS = {
    4: (2, 2),
    8: (2, 4),
    9: (3, 3),
    16: (4, 4),
    32: (4, 8),
}  # factors of composite radices


def transform(x: Sequence[Point], on_intermediate: Callable[..., None]) -> list[Point]:
    """Return the forward transform of `x`, a number of points that is a radix, as IR values.

    `on_intermediate` gets intermediate values, in an order in which few of them wait in registers.
    """
    r = len(x)
    if r == 2:
        return [_plus(*x), _minus(*x)]
    return (
        _transform_composite(x, *RADIX_FACTORS[r], on_intermediate)
        if r in RADIX_FACTORS
        else _transform_odd_prime(x)
    )


def rotate(z: Point, c: Value, s: Value) -> Point:
    """Return z times c + s i."""
    return complex_product_parts(*z, c, s)


def _plus(a: Point, b: Point) -> Point:
    """Return the sum of two points."""
    return a[0] + b[0], a[1] + b[1]


def _minus(a: Point, b: Point) -> Point:
    """Return the difference of two points."""
    return a[0] - b[0], a[1] - b[1]


def _transform_composite(
    x: Sequence[Point], a: int, b: int, on_intermediate: Callable[..., None]
) -> list[Point]:
    """Return the transform of a * b points: a at a time, rotated, then b at a time."""
    n = a * b
    rows = []
    for j in range(b):
        rows.append(
            [
                _multiply_by_root(z, j * k, n)
                for k, z in enumerate(transform(x[j::b], on_intermediate))
            ]
        )
        for z in rows[-1]:
            on_intermediate(*z)
    points: list[Point] = [x[0]] * n
    for k in range(a):
        points[k::a] = transform([row[k] for row in rows], on_intermediate)
    return points


def _multiply_by_root(z: Point, k: int, n: int) -> Point:
    """Return z w^k for the n-th root w; multiples of an eighth turn need no full product."""
    re, im = z
    eighth, between = divmod(8 * (k % n), n)
    if between or eighth > 3:
        c, s = root(k, n)
        return rotate(z, const(c, re.dtype), const(s, re.dtype))
    if eighth == 2:
        return im, -re
    if eighth % 2:
        half = math.sqrt(0.5)
        return (
            ((re + im) * half, (im - re) * half)
            if eighth == 1
            else ((im - re) * half, -((re + im) * half))
        )
    return z


def _transform_odd_prime(x: Sequence[Point]) -> list[Point]:
    """Return the transform of an odd number of points by sums and differences of x[j], x[-j]."""
    r, h = len(x), len(x) // 2
    sums = [_plus(x[j], x[r - j]) for j in range(1, h + 1)]
    differences = [_minus(x[j], x[r - j]) for j in range(1, h + 1)]
    points = list(x)
    points[0] = reduce(_plus, sums, x[0])
    for k in range(1, h + 1):
        even, turns = x[0], list[Point]()
        for j in range(1, h + 1):
            c, s = root(j * k, r)
            even = _plus(even, _scale(sums[j - 1], c))
            turns.append(_scale(differences[j - 1], -s))
        odd = reduce(_plus, turns)
        points[k] = even[0] + odd[1], even[1] - odd[0]
        points[r - k] = even[0] - odd[1], even[1] + odd[0]
    return points


def _scale(z: Point, factor: float) -> Point:
    """Return a point times a real factor."""
    return z[0] * factor, z[1] * factor
