"""The updates of all parameters, recorded first and then done in a few launches.

Those with sparse gradients have theirs row by row: what the rule says of a parameter, it says of
the rows that are there, and the others are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeAlias

import dovetail as dt
from dovetail.extend import is_capturing, put_rows, rows_at, write_together

Tensors: TypeAlias = list[dt.Tensor]
Rule: TypeAlias = Callable[..., Sequence[dt.Tensor]]

STREAMS = 16  # written and read by one launch: measured on 100 tensors of 10,000 float32
SMALL = 1 << 16  # elements above which a tensor has a launch to itself


class Bucket:
    """Parameters of one group that have had the same number of steps.

    `by_rows`: their gradients are sparse.
    """

    __slots__ = ("by_rows", "grads", "group", "kept", "options", "params")

    def __init__(self, group: dict[str, Any], options: Hashable, by_rows: bool) -> None:
        self.group, self.options, self.by_rows = group, options, by_rows
        self.params: Tensors = []
        self.grads: list[Any] = []
        self.kept: list[Tensors] = []

    def planned(self) -> Hashable:
        """What the rule depends on."""
        return self.options

    def tensors(self) -> tuple[Tensors, list[Any], list[Tensors]]:
        """Parameters, gradients, and what is kept of each."""
        return self.params, self.grads, self.kept

    def values(self) -> Tensors:
        """What the gradients consist of."""
        return [g.values() for g in self.grads] if self.by_rows else self.grads

    def without_tensors(self) -> Bucket:
        """The same, which holds no gradients."""
        made = Bucket(self.group, self.options, self.by_rows)
        made.params = self.params
        return made


def updated(
    rule: Rule, plan: Sequence[Hashable],
    tensors: Sequence[tuple[Tensors, Tensors, list[Tensors]]], numbers: Sequence[Sequence[float]],
) -> None:  # fmt: skip
    """Does a step: of each bucket, by the rule with its options, numbers and tensors."""
    for options, (params, grads, kept), given in zip(plan, tensors, numbers, strict=True):
        for some in _alike(params, kept):
            targets: Tensors = []
            values: Tensors = []
            for i in some:
                p = params[i].detach()
                targets += [p, *kept[i]]
                values += _stepped(rule, options, given, p, grads[i], kept[i])
            write_together("step", targets, values)


def _stepped(
    rule: Rule, options: Hashable, numbers: Sequence[float], p: dt.Tensor, g: dt.Tensor,
    kept: Tensors,
) -> Tensors:  # fmt: skip
    """Return what a parameter and its state become; halves are computed in float32."""
    made = rule(options, numbers, *[x.astype(x.dtype.compute, copy=False) for x in (p, g, *kept)])
    return [new.astype(x.dtype, copy=False) for x, new in zip((p, *kept), made, strict=True)]


def updated_rows(rule: Rule, bucket: Bucket, numbers: Sequence[float]) -> None:
    """Does a step of parameters with sparse gradients, by the rule with its numbers."""
    for p, g, kept in zip(*bucket.tensors(), strict=True):
        captured = is_capturing()
        at, values = _rows_captured(g) if captured else _rows(g)
        all_of_them = [p.detach(), *kept]
        # rows that nothing holds are read right where the rule needs them
        of_kept = (rows_at(k, at) for k in kept)
        rows = rows_at(all_of_them[0], at)
        made = _stepped(rule, bucket.options, numbers, rows, values, [*of_kept])
        if not captured:
            put_rows("step", all_of_them, made, at)
            continue
        dt.evaluate(*made)
        for x, new in zip(all_of_them, made, strict=True):
            x[at] = new  # a row may be there more than once, with the same values each time


def _rows(g: Any) -> tuple[dt.Tensor, dt.Tensor]:
    """Which rows a gradient has, each once, and their values."""
    g = g.coalesce()
    return g.indices()[0], g.values()


def _rows_captured(g: Any) -> tuple[dt.Tensor, dt.Tensor]:
    """The same, each as often as the gradient has it: with the sum of all its values each time.

    How many rows there are once each would be read by the host.
    """
    at, values = g.indices()[0], g.values()
    if g.is_coalesced():
        return at, values
    place = dt.empty((g.shape[0],), dtype=dt.int64, device=g.device)
    place[at] = dt.arange(at.size, device=g.device)
    one = dt.take(place, at)  # of each row's places
    sums = dt.zeros_like(values)
    sums.index_add_(0, one, values)
    return at, dt.take(sums, one, axis=0)


def _alike(params: Tensors, kept: list[Tensors]) -> Iterator[list[int]]:
    """Positions of parameters of one shape and dtype, as many as one launch takes."""
    open_: dict[Hashable, list[int]] = {}
    for i, p in enumerate(params):
        most = max(1, STREAMS // (len(kept[i]) + 2)) if p.size <= SMALL else 1
        key = (p.shape, p.dtype, p.device)
        some = open_.setdefault(key, [])
        some.append(i)
        if len(some) >= most:
            yield open_.pop(key)
    yield from open_.values()
