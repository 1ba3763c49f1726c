"""The updates of all parameters, recorded first and then done in a few launches."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeAlias

import dovetail as dt
from dovetail.extend import write_together

Tensors: TypeAlias = list[dt.Tensor]
Rule: TypeAlias = Callable[..., Sequence[dt.Tensor]]

STREAMS = 16  # written and read by one launch: measured on 100 tensors of 10,000 float32
SMALL = 1 << 16  # elements above which a tensor has a launch to itself


class Bucket:
    """Parameters of one group that have had the same number of steps."""

    __slots__ = ("grads", "group", "kept", "options", "params")

    def __init__(self, group: dict[str, Any], options: Hashable) -> None:
        self.group, self.options = group, options
        self.params: Tensors = []
        self.grads: Tensors = []
        self.kept: list[Tensors] = []

    def planned(self) -> Hashable:
        """What the rule depends on."""
        return self.options

    def without_tensors(self) -> Bucket:
        """The same, which holds no gradients."""
        made = Bucket(self.group, self.options)
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
                values += rule(options, given, p, grads[i], *kept[i])
            write_together("step", targets, values)


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
