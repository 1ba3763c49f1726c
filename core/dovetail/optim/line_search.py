"""A step along a direction that satisfies the strong Wolfe conditions.

Source: Nocedal and Wright, Numerical Optimization (2006), algorithms 3.5 and 3.6; the safeguards
and bounds are those of Schmidt's minFunc, which PyTorch's LBFGS has, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import dovetail as dt

DECREASE, CURVATURE = 1e-4, 0.9


class Point(NamedTuple):
    """A step along the direction: how far, the loss there, its gradient, and that along it."""

    t: float
    loss: float
    gradient: dt.Tensor
    slope: float


Evaluate = Callable[[float], Point]


def lowest(a: Point, b: Point, low: float | None = None, high: float | None = None) -> float:
    """Where the cubic through two points with their slopes is least, within bounds."""
    if low is None or high is None:
        low, high = min(a.t, b.t), max(a.t, b.t)
    if a.t > b.t:
        a, b = b, a
    if a.t == b.t:
        return (low + high) / 2.0
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    below = b.slope - a.slope + 2 * d2
    if below == 0:
        return (low + high) / 2.0
    return min(max(b.t - (b.t - a.t) * ((b.slope + d2 - d1) / below), low), high)


class Search:
    """The search from a point with t = 0; `evaluations`: how many there were."""

    def __init__(self, evaluate: Evaluate, start: Point, most: int) -> None:
        self._evaluate, self.start, self.most = evaluate, start, most
        self.evaluations = self.rounds = 0

    def _at(self, t: float) -> Point:
        self.evaluations += 1
        return self._evaluate(t)

    def _is_high(self, p: Point) -> bool:
        return p.loss > self.start.loss + DECREASE * p.t * self.start.slope

    def _is_flat(self, p: Point) -> bool:
        return abs(p.slope) <= -CURVATURE * self.start.slope

    def found(self, t: float, width: float, tolerance: float) -> Point:
        """The point, from a first step `t` on.

        `width`: the greatest element of the direction; `tolerance`: of what is too small a change.
        """
        before, now = self.start, self._at(t)
        while self.rounds < self.most:
            if self._is_high(now) or (self.rounds > 1 and now.loss >= before.loss):
                return self._zoomed(before, now, width, tolerance)
            if self._is_flat(now):
                return now
            if now.slope >= 0:
                return self._zoomed(before, now, width, tolerance)
            least = now.t + 0.01 * (now.t - before.t)
            further = lowest(before, now, least, now.t * 10)
            before, now = now, self._at(further)
            self.rounds += 1
        return now if now.loss < self.start.loss else self.start

    def _zoomed(self, a: Point, b: Point, width: float, tolerance: float) -> Point:
        """The point between two that are on both sides of one."""
        low, high = (a, b) if a.loss <= b.loss else (b, a)
        stuck = False
        while self.rounds < self.most and abs(high.t - low.t) * width >= tolerance:
            t, stuck = self._between(low, high, stuck)
            now = self._at(t)
            self.rounds += 1
            if self._is_high(now) or now.loss >= low.loss:
                high = now
                if high.loss < low.loss:
                    low, high = high, low
                continue
            if self._is_flat(now):
                return now
            if now.slope * (high.t - low.t) >= 0:
                high = low
            low = now
        return low

    def _between(self, low: Point, high: Point, stuck: bool) -> tuple[float, bool]:
        """Where to look next, and whether that is close to an end: twice would be no progress."""
        t = lowest(low, high)
        first, last = min(low.t, high.t), max(low.t, high.t)
        margin = 0.1 * (last - first)
        if min(last - t, t - first) >= margin:
            return t, False
        if not stuck and first < t < last:
            return t, True
        return (last - margin if abs(t - last) < abs(t - first) else first + margin), False
