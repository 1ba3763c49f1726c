"""Windows of a grid: where they lie, their elements, and the largest of these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TypeAlias

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

    def places(self, tap: Sequence[int], device: dt.Device) -> Tensor:
        """Where in the unpadded grid, raveled, that element of each window lies."""
        total: Tensor | None = None
        for a, (n, _, s, p, d) in enumerate(self._axes()):
            at = dt.arange(self.counts[a], dtype=dt.int64, device=device) * s + (tap[a] * d - p)
            at = dt.clip(at, 0, n - 1).reshape((-1, *(1,) * (len(tap) - a - 1)))
            total = at if total is None else total * n + at
        assert total is not None
        return total


def largest(
    taps: Iterator[tuple[tuple[int, ...], Tensor]],
    places: Callable[[tuple[int, ...]], Tensor] | None,
) -> tuple[Tensor, Tensor | None]:
    """The largest element of each window, NaN being larger than any, and where it lies."""
    best: Tensor | None = None
    place: Tensor | None = None
    for tap, x in taps:
        if best is None:
            best, place = x, None if places is None else places(tap).expand(x.shape)
            continue
        better = x > best
        if x.dtype.kind == "f":
            better = better | dt.isnan(x)
        best = dt.where(better, x, best)
        if places is not None and place is not None:
            place = dt.where(better, places(tap), place)
    assert best is not None
    return best, place


def require_numbers(op: str, x: Tensor, kinds: str = "iuf") -> None:
    if x.dtype.kind not in kinds:
        what = "real numbers" if kinds == "iuf" else "floats"
        raise dt.DTypeError(f"{op}: an input of {x.dtype.name}; it has {what}")
