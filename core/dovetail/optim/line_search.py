"""A line search for a step that satisfies the strong Wolfe conditions.

Source: Nocedal and Wright, Numerical Optimization (2006), algorithms 3.5 and 3.6. The safeguards
and bounds are those of Schmidt's minFunc, which PyTorch's LBFGS also uses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import dovetail as dt

SUFFICIENT_DECREASE, CURVATURE = 1e-4, 0.9


class LineSearchPoint(NamedTuple):
    """A point at step `t` along the direction; `slope`: the derivative of the loss by `t`."""

    t: float
    loss: float
    gradient: dt.Tensor
    slope: float


Evaluate = Callable[[float], LineSearchPoint]


def cubic_minimum(
    a: LineSearchPoint, b: LineSearchPoint, low: float | None = None, high: float | None = None
) -> float:
    """Return the minimum of the cubic through two points with their slopes, within bounds.

    `low`, `high`: the bounds, by default the two points.
    """
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
    denominator = b.slope - a.slope + 2 * d2
    if denominator == 0:
        return (low + high) / 2.0
    return min(max(b.t - (b.t - a.t) * ((b.slope + d2 - d1) / denominator), low), high)


class LineSearch:
    """A search from the point `start` with t = 0, in at most `rounds_max` rounds."""

    def __init__(self, evaluate: Evaluate, start: LineSearchPoint, rounds_max: int) -> None:
        self._evaluate, self.start, self.rounds_max = evaluate, start, rounds_max
        self.evaluations = self.rounds = 0

    def _evaluate_at(self, t: float) -> LineSearchPoint:
        """Count an evaluation and return the point at step `t`."""
        self.evaluations += 1
        return self._evaluate(t)

    def _fails_decrease(self, p: LineSearchPoint) -> bool:
        """Return True if a point misses the sufficient decrease of the loss; False for a NaN."""
        return p.loss > self.start.loss + SUFFICIENT_DECREASE * p.t * self.start.slope

    def _meets_curvature(self, p: LineSearchPoint) -> bool:
        """Return True if the slope's magnitude at a point has fallen enough."""
        return abs(p.slope) <= -CURVATURE * self.start.slope

    def run(self, t: float, width: float, tolerance: float) -> LineSearchPoint:
        """Return a point that satisfies the conditions, or the best one, from a first step `t` on.

        `width`: the greatest magnitude in the direction. `tolerance`: the change of an element
        below which the search ends.
        """
        previous, current = self.start, self._evaluate_at(t)
        while self.rounds < self.rounds_max:
            if self._fails_decrease(current) or (self.rounds > 1 and current.loss >= previous.loss):
                return self._zoom(previous, current, width, tolerance)
            if self._meets_curvature(current):
                return current
            if current.slope >= 0:
                return self._zoom(previous, current, width, tolerance)
            low = current.t + 0.01 * (current.t - previous.t)
            t = cubic_minimum(previous, current, low, current.t * 10)
            previous, current = current, self._evaluate_at(t)
            self.rounds += 1
        return current if current.loss < self.start.loss else self.start

    def _zoom(
        self, a: LineSearchPoint, b: LineSearchPoint, width: float, tolerance: float
    ) -> LineSearchPoint:
        """Narrow a bracket; return a point that meets the Wolfe conditions, or the best so far."""
        low, high = (a, b) if a.loss <= b.loss else (b, a)
        near_end = False
        while self.rounds < self.rounds_max and abs(high.t - low.t) * width >= tolerance:
            t, near_end = self._next_step(low, high, near_end)
            current = self._evaluate_at(t)
            self.rounds += 1
            if self._fails_decrease(current) or current.loss >= low.loss:
                high = current
                if high.loss < low.loss:
                    low, high = high, low
                continue
            if self._meets_curvature(current):
                return current
            if current.slope * (high.t - low.t) >= 0:
                high = low
            low = current
        return low

    def _next_step(
        self, low: LineSearchPoint, high: LineSearchPoint, was_near_end: bool
    ) -> tuple[float, bool]:
        """Return the next step to evaluate, and True if it is close to an end of the bracket.

        A second step in succession close to an end is moved inwards, to make progress.
        """
        t = cubic_minimum(low, high)
        first, last = min(low.t, high.t), max(low.t, high.t)
        margin = 0.1 * (last - first)
        if min(last - t, t - first) >= margin:
            return t, False
        if not was_near_end and first < t < last:
            return t, True
        return (last - margin if abs(t - last) < abs(t - first) else first + margin), False
