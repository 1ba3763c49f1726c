"""Windows of a grid: their positions, their elements and their maxima."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, TypeAlias

import dovetail as dt
from dovetail.extend import arguments

from .sizes import Sizes, check_sizes

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor
STACKED_PHASES_MAX = 4  # of a stride: 2 take 0.4 of the time of short rows


class Windows:
    """The windows over the last axes of an input, and the padding that they reach into."""

    def __init__(
        self,
        op: str,
        x: Tensor,
        kernel: Sizes,
        stride: Sizes | None,
        padding: Sizes,
        dilation: Sizes,
        ceil_mode: bool,
        axes: int,
    ) -> None:
        self.kernel = check_sizes(op, kernel, "kernel_size", axes, 1)
        empty = stride is None or (isinstance(stride, (list, tuple)) and not stride)
        self.stride = self.kernel if empty else check_sizes(op, stride, "stride", axes, 1)
        self.padding = check_sizes(op, padding, "padding", axes)
        self.dilation = check_sizes(op, dilation, "dilation", axes, 1)
        self.within = x.shape[-axes:]
        arguments.flag(op, ceil_mode, "ceil_mode")
        counts = []
        for n, k, s, p, d in self._axes():
            if 2 * p > d * (k - 1) + 1:
                raise dt.ArgumentError(
                    f"{op}: padding must be at most half of the window's span "
                    f"{tuple([e * (m - 1) + 1 for e, m in zip(self.dilation, self.kernel)])}, "  # noqa: B905
                    f"got {padding!r}"
                )
            counts.append(self._count(n + 2 * p - d * (k - 1) - 1, n + p, s, ceil_mode))
        self.counts = tuple(counts)
        if min(self.counts) < 1 or 0 in self.within:
            raise dt.ShapeError(
                f"{op}: the window {self.kernel} must not exceed the padded input, got an input "
                f"of shape {x.shape}"
            )

    def _axes(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Return an iterator over (size, kernel, stride, padding, dilation) of each axis."""
        return zip(self.within, self.kernel, self.stride, self.padding, self.dilation, strict=True)

    @staticmethod
    def _count(span: int, end: int, stride: int, ceil_mode: bool) -> int:
        """Return the number of windows along an axis.

        `span`: the distance from the first window to the last possible one. `end`: the end of the
        elements, counted from the padding's start.
        """
        if span < 0 and not (ceil_mode and span > -stride):
            return 0
        if not ceil_mode:
            return span // stride + 1
        count = -(-span // stride) + 1
        # a last window that would start in the padding is left out
        return count - 1 if (count - 1) * stride >= end else count

    @property
    def are_tiles(self) -> bool:
        """Return True if the windows tile the grid: each element is in exactly one."""
        axes = self._axes()
        return all(s == k and n % k == p == 0 and d == 1 for n, k, s, p, d in axes)

    def pad(self, x: Tensor, value: float) -> Tensor:
        """Return the input, padded with `value` as far as windows reach."""
        widths = [(0, 0)] * (x.ndim - len(self.kernel))
        for (n, k, s, p, d), m in zip(self._axes(), self.counts, strict=True):
            widths.append((p, max(0, (m - 1) * s + d * (k - 1) + 1 - n - p)))
        if not any(w for pair in widths for w in pair):
            return x
        return dt.pad(x, widths, constant_values=value)

    def taps(self, padded: Tensor) -> Iterator[tuple[tuple[int, ...], Tensor]]:
        """Yield the index of each element of a window, and that element of all windows."""
        for tap in product(*map(range, self.kernel)):
            key: list[slice] = []
            for i, s, d, m in zip(tap, self.stride, self.dilation, self.counts, strict=True):
                key.append(slice(i * d, i * d + (m - 1) * s + 1, s))
            yield tap, padded[(..., *key)]

    def tiles(self, x: Tensor) -> Tensor:
        """Return the tiles of a grid, with the elements of each along the last axes."""
        rank = len(self.kernel)
        lead = x.shape[:-rank]
        split = [n for pair in zip(self.counts, self.kernel, strict=True) for n in pair]
        at = len(lead)
        order = (*range(at), *range(at, at + 2 * rank, 2), *range(at + 1, at + 2 * rank, 2))
        return x.reshape((*lead, *split)).permute_dims(order)

    def flat_indices(self, tap_number: Tensor) -> Tensor:
        """Return flat indices of one element of each window; in padding, of its next element.

        `tap_number`: the number of the element in its window.
        """
        total, numbers = None, tap_number.astype(dt.int64)
        for a, (n, k, s, p, d) in enumerate(self._axes()):
            inner = math.prod(self.kernel[a + 1 :])
            tap = numbers // inner % k if a else numbers // inner
            start = dt.arange(self.counts[a], dtype=dt.int64, device=tap_number.device) * s - p
            start = start.reshape((-1, *(1,) * (len(self.kernel) - a - 1)))
            if p and d > 1:  # padding that is as large as the maximum: the next element after it
                tap = dt.maximum(tap, (d - 1 - start) // d)
            at = dt.clip(tap * d + start, 0, n - 1)
            total = at if total is None else total * n + at
        assert total is not None
        return total

    def scatter_sum(self, g: Tensor, tap_number: Tensor | None = None) -> Tensor:
        """Add the value of each window to all its elements, or only to element `tap_number`.

        Element u * stride + b of an axis is element a * stride + b of window u - a. Therefore each
        element gathers its values, in order of the windows, and nothing is scattered.
        """
        rank, lead = len(self.kernel), g.shape[: g.ndim - len(self.kernel)]
        before = [-(-k // s) - 1 for k, s in zip(self.kernel, self.stride, strict=True)]
        reach = [-(-(n + p) // s) for n, _, s, p, _ in self._axes()]
        widths = [(0, 0)] * len(lead)
        for b, u, m in zip(before, reach, self.counts, strict=True):
            widths.append((b, max(0, u - m)))
        unpadded = all(w == (0, 0) for w in widths)
        g = g if unpadded else dt.pad(g, widths)
        tap_number = tap_number if unpadded or tap_number is None else dt.pad(tap_number, widths)
        *_, last = self.stride
        phases = range(last) if 1 < last <= STACKED_PHASES_MAX else (slice(None),)
        sums = [self._sum_phase(g, tap_number, before, reach, b) for b in phases]
        total = dt.stack(sums, axis=-1) if len(sums) > 1 else sums[0]
        split = [n for pair in zip(reach, self.stride, strict=True) for n in pair]
        total = total.expand((*lead, *split)).reshape(
            (*lead, *[u * s for u, s in zip(reach, self.stride, strict=True)])
        )
        inner = [slice(p, p + n) for p, n in zip(self.padding, self.within, strict=True)]
        return total if total.shape[-rank:] == self.within else total[(..., *inner)]

    def _sum_phase(
        self,
        g: Tensor,
        tap_number: Tensor | None,
        before: Sequence[int],
        reach: Sequence[int],
        phase: int | slice,
    ) -> Tensor:
        """Return the sums of `scatter_sum` for elements u * stride + `phase` of the last axis.

        Its other axes are (..., u, b): elements u * stride + b.
        """
        total: Tensor | None = None
        lead = g.shape[: g.ndim - len(reach)]
        column = [n for u in reach for n in (u, 1)]
        if isinstance(phase, int):
            column.pop()
        for back in product(*[range(b, -1, -1) for b in before]):
            pairs = zip(before, back, reach, strict=True)
            key = (..., *[slice(b - a, b - a + u) for b, a, u in pairs])
            part = g[key].reshape((*lead, *column))
            numbers = self._element_numbers(back, g.device)[..., phase]
            is_hit = (
                numbers >= 0
                if tap_number is None
                else tap_number[key].reshape((*lead, *column)) == numbers
            )
            part = dt.where(is_hit, part, 0.0)
            total = part if total is None else total + part
        assert total is not None
        return total

    def _element_numbers(self, back: Sequence[int], device: dt.Device) -> Tensor:
        """Return the numbers of elements u * stride + b, by b, in window u - `back`; -1 outside."""
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


class WindowMax(dt.autograd.Function):
    """The largest element of each window, and its number in the window."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Windows, fill: float) -> tuple[Tensor, Tensor]:
        """Return the maxima and their numbers in the windows; pad with `fill`."""
        best, which = max_over_taps(w.taps(w.pad(x, fill)), None)
        ctx.windows = w
        ctx.save_for_backward(which)
        ctx.mark_non_differentiable(which)
        return best, which

    @staticmethod
    def backward(ctx: Any, g: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        """Return the gradient, added at the maximum of each window."""
        (which,) = ctx.saved_tensors
        return ctx.windows.scatter_sum(g, which), None, None


class WindowSum(dt.autograd.Function):
    """The sum of the elements of each window."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Windows) -> Tensor:
        """Return the sums of windows of the input, padded with zeros; save the windows in `ctx`."""
        ctx.windows, total = w, None
        for _, part in w.taps(w.pad(x, 0.0)):
            total = part if total is None else total + part
        assert total is not None
        return total

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        """Return the gradient, added to each element of each window."""
        return ctx.windows.scatter_sum(g), None


def max_over_taps(
    taps: Iterator[tuple[tuple[int, ...], Tensor]],
    index_of: Callable[[tuple[int, ...]], Tensor] | None,
) -> tuple[Tensor, Tensor]:
    """Return the largest element of each window and its number in the window; NaN is largest.

    `index_of`: a function from a tap to indices, which are returned in place of its number.
    """
    best: Tensor | None = None
    index: Tensor | None = None
    for number, (tap, x) in enumerate(taps):
        tap_index = number if index_of is None else index_of(tap)
        if best is None or index is None:
            best = x
            if isinstance(tap_index, int):
                index = dt.zeros(x.shape, dtype=dt.int16, device=x.device)
            else:
                index = tap_index.expand(x.shape)
            continue
        better = x > best
        if x.dtype.kind == "f":
            better = better | dt.isnan(x)
        best, index = dt.where(better, x, best), dt.where(better, tap_index, index)
    assert best is not None
    assert index is not None
    return best, index


def window_max(x: Tensor, w: Windows) -> tuple[Tensor, Tensor]:
    """Return the largest element of each window, and its number in the window."""
    least = -math.inf if x.dtype.kind == "f" else int(dt.iinfo(x.dtype).min)
    if max(w.dilation) == 1 and x.dtype.kind == "f":
        best, which = WindowMax.apply(x, w, least)
        return best, which
    return max_over_taps(w.taps(w.pad(x, least)), None)


def require_dtype_kind(op: str, x: Tensor, kinds: str = "iuf") -> None:
    """Raise DTypeError for an input whose dtype is of another kind."""
    if x.dtype.kind not in kinds:
        what = "real" if kinds == "iuf" else "float"
        raise dt.DTypeError(f"{op}: the input must have a {what} dtype, got {x.dtype.name}")
