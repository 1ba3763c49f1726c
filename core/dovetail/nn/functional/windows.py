"""Windows of a grid: where they lie, their elements, and the largest of these."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, TypeAlias

import dovetail as dt
from dovetail.extend import arguments

from .sizes import Sizes, sizes

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor


class Windows:
    """Windows of an input's last axes, and the input with what is around it."""

    def __init__(
        self, op: str, x: Tensor, kernel: Sizes, stride: Sizes | None, padding: Sizes,
        dilation: Sizes, ceil_mode: bool, axes: int,
    ) -> None:  # fmt: skip
        self.kernel = sizes(op, kernel, "kernel_size", axes, 1)
        empty = stride is None or (isinstance(stride, (list, tuple)) and not stride)
        self.stride = self.kernel if empty else sizes(op, stride, "stride", axes, 1)
        self.padding = sizes(op, padding, "padding", axes)
        self.dilation = sizes(op, dilation, "dilation", axes, 1)
        self.within = x.shape[-axes:]
        arguments.flag(op, ceil_mode, "ceil_mode")
        found = []
        for n, k, s, p, d in self._axes():
            if 2 * p > d * (k - 1) + 1:
                raise dt.ArgumentError(
                    f"{op}: padding={padding!r} is at most half of what a window reaches over, "
                    f"{tuple([e * (m - 1) + 1 for e, m in zip(self.dilation, self.kernel)])}"  # noqa: B905
                )
            found.append(self._count(n + 2 * p - d * (k - 1) - 1, n + p, s, ceil_mode))
        self.counts = tuple(found)
        if min(self.counts) < 1 or 0 in self.within:
            raise dt.ShapeError(
                f"{op}: windows of {self.kernel} do not fit into an input of shape {x.shape}"
            )

    def _axes(self) -> Iterator[tuple[int, int, int, int, int]]:
        return zip(
            self.within, self.kernel, self.stride, self.padding, self.dilation, strict=True
        )  # fmt: skip

    @staticmethod
    def _count(room: int, end: int, stride: int, ceil_mode: bool) -> int:
        if room < 0 and not (ceil_mode and room > -stride):
            return 0
        if not ceil_mode:
            return room // stride + 1
        count = -(-room // stride) + 1
        return count - 1 if (count - 1) * stride >= end else count  # it starts in the padding

    @property
    def are_parts(self) -> bool:
        """Whether the windows are the parts of a grid, each element being in one."""
        parts = zip(self.within, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        return all(s == k and n % k == p == 0 and d == 1 for n, k, s, p, d in parts)

    def around(self, x: Tensor, value: float) -> Tensor:
        """The input with a number around it, as far as windows reach."""
        widths = [(0, 0)] * (x.ndim - len(self.kernel))
        for (n, k, s, p, d), m in zip(self._axes(), self.counts, strict=True):
            widths.append((p, max(0, (m - 1) * s + d * (k - 1) + 1 - n - p)))
        if not any(w for pair in widths for w in pair):
            return x
        return dt.pad(x, widths, constant_values=value)

    def taps(self, around: Tensor) -> Iterator[tuple[tuple[int, ...], Tensor]]:
        """Element by element of a window: which it is, and that element of all windows."""
        for tap in product(*map(range, self.kernel)):
            key: list[slice] = []
            for i, s, d, m in zip(tap, self.stride, self.dilation, self.counts, strict=True):
                key.append(slice(i * d, i * d + (m - 1) * s + 1, s))
            yield tap, around[(..., *key)]

    def parts(self, x: Tensor) -> Tensor:
        """The parts of a grid, each one's elements along the last axes."""
        rank = len(self.kernel)
        lead = x.shape[:-rank]
        split = [n for pair in zip(self.counts, self.kernel, strict=True) for n in pair]
        at = len(lead)
        order = (*range(at), *range(at, at + 2 * rank, 2), *range(at + 1, at + 2 * rank, 2))
        return x.reshape((*lead, *split)).permute_dims(order)

    def places(self, which: Tensor) -> Tensor:
        """Where in the unpadded grid, raveled, an element of each window lies, by its number."""
        total, left = None, which.astype(dt.int64)
        for a, (n, k, s, p, d) in enumerate(self._axes()):
            after = math.prod(self.kernel[a + 1 :])
            tap = left // after % k if a else left // after
            start = dt.arange(self.counts[a], dtype=dt.int64, device=which.device) * s - p
            start = start.reshape((-1, *(1,) * (len(self.kernel) - a - 1)))
            at = dt.clip(tap * d + start, 0, n - 1)
            total = at if total is None else total * n + at
        assert total is not None
        return total

    def spread(self, g: Tensor, which: Tensor | None = None) -> Tensor:
        """What windows have, added up at their elements: at all of each, or at that one.

        Element u * stride + b of an axis is element a * stride + b of window u - a. So nothing is
        put anywhere: each element takes what it is given, the windows before it first.
        """
        rank, lead = len(self.kernel), g.shape[: g.ndim - len(self.kernel)]
        before = [-(-k // s) - 1 for k, s in zip(self.kernel, self.stride, strict=True)]
        reach = [-(-(n + p) // s) for n, _, s, p, _ in self._axes()]
        around = [(0, 0)] * len(lead)
        for b, u, m in zip(before, reach, self.counts, strict=True):
            around.append((b, max(0, u - m)))
        plain = all(w == (0, 0) for w in around)
        g = g if plain else dt.pad(g, around)
        which = which if plain or which is None else dt.pad(which, around)
        total: Tensor | None = None
        split = [n for pair in zip(reach, self.stride, strict=True) for n in pair]
        for back in product(*[range(b, -1, -1) for b in before]):
            pairs = zip(before, back, reach, strict=True)
            key = (..., *[slice(b - a, b - a + u) for b, a, u in pairs])
            column = (*lead, *[n for u in reach for n in (u, 1)])
            part = g[key].reshape(column)
            there = self._numbers(back, g.device)
            here = there >= 0 if which is None else which[key].reshape(column) == there
            part = dt.where(here, part, 0.0)
            total = part if total is None else total + part
        assert total is not None
        total = total.expand((*lead, *split)).reshape(
            (*lead, *[u * s for u, s in zip(reach, self.stride, strict=True)])
        )
        inner = [slice(p, p + n) for p, n in zip(self.padding, self.within, strict=True)]
        return total if total.shape[-rank:] == self.within else total[(..., *inner)]

    def _numbers(self, back: Sequence[int], device: dt.Device) -> Tensor:
        """Of elements u * stride + b, by b: their numbers in the window `back` before; else -1."""
        total, fits = None, None
        for a, s in enumerate(self.stride):
            at = dt.arange(s, dtype=dt.int16, device=device) + back[a] * s
            at = at.reshape((-1, *(1, 1) * (len(self.stride) - a - 1)))
            inside = at < self.kernel[a]
            total = at if total is None else total * self.kernel[a] + at
            fits = inside if fits is None else fits & inside
        assert total is not None
        assert fits is not None
        return dt.where(fits, total, -1)


class Largest(dt.autograd.Function):
    """The largest element of each window, and which one it is of those."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Windows, least: float) -> tuple[Tensor, Tensor]:
        best, which = largest(w.taps(w.around(x, least)), None)
        ctx.windows = w
        ctx.save_for_backward(which)
        ctx.mark_non_differentiable(which)
        return best, which

    @staticmethod
    def backward(ctx: Any, g: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        (which,) = ctx.saved_tensors
        return ctx.windows.spread(g, which), None, None


class Added(dt.autograd.Function):
    """The sum of the elements of each window."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Windows) -> Tensor:
        ctx.windows, total = w, None
        for _, part in w.taps(w.around(x, 0.0)):
            total = part if total is None else total + part
        assert total is not None
        return total

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return ctx.windows.spread(g), None


def largest(
    taps: Iterator[tuple[tuple[int, ...], Tensor]],
    places: Callable[[tuple[int, ...]], Tensor] | None,
) -> tuple[Tensor, Tensor]:
    """The largest element of each window, NaN being larger than any.

    Then its number in the window, or its place where `places` says which that is.
    """
    best: Tensor | None = None
    at: Tensor | None = None
    for number, (tap, x) in enumerate(taps):
        here = number if places is None else places(tap)
        if best is None or at is None:
            best = x
            at = dt.zeros(x.shape, dtype=dt.int16, device=x.device) if isinstance(
                here, int) else here.expand(x.shape)  # fmt: skip
            continue
        better = x > best
        if x.dtype.kind == "f":
            better = better | dt.isnan(x)
        best, at = dt.where(better, x, best), dt.where(better, here, at)
    assert best is not None
    assert at is not None
    return best, at


def largest_of(x: Tensor, w: Windows) -> tuple[Tensor, Tensor]:
    """The largest element of each window, and its number in that."""
    least = -math.inf if x.dtype.kind == "f" else int(dt.iinfo(x.dtype).min)
    if max(w.dilation) == 1 and x.dtype.kind == "f":
        best, which = Largest.apply(x, w, least)
        return best, which
    return largest(w.taps(w.around(x, least)), None)


def require_numbers(op: str, x: Tensor, kinds: str = "iuf") -> None:
    if x.dtype.kind not in kinds:
        what = "real numbers" if kinds == "iuf" else "floats"
        raise dt.DTypeError(f"{op}: an input of {x.dtype.name}; it has {what}")
