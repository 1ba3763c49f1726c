"""Fused optimiser steps: the updates of all parameters are recorded, then run in a few launches.

For a parameter with a sparse gradient, the rule is applied to the rows of the gradient; other rows
are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import dovetail as dt
from dovetail.extend import is_capturing, put_rows, rows_at, write_together

Tensors: TypeAlias = list[dt.Tensor]
Rule: TypeAlias = Callable[..., Sequence[dt.Tensor]]

STREAMS_MAX = 16  # tensors in one launch: measured on 100 tensors of 10,000 float32
FUSED_ELEMENTS_MAX = 1 << 16  # a larger tensor has a launch to itself


class StepOptions(NamedTuple):
    """The values that select the branches of a step; they contain no numbers."""

    rule: Hashable
    """The options of the optimiser's rule."""
    master_weights: bool
    """The last state tensor of each float16 or bfloat16 parameter is its float32 copy."""


def needs_master(p: dt.Tensor) -> bool:
    """Return True for a parameter in a dtype that is narrower than its compute dtype."""
    return p.dtype.compute is not p.dtype


class Bucket:
    """The parameters of one group that have the same number of steps.

    `options`: the values that select the rule's branches. `by_rows`: gradients are sparse.
    """

    __slots__ = ("by_rows", "grads", "group", "options", "params", "states")

    def __init__(self, group: dict[str, Any], options: StepOptions, by_rows: bool) -> None:
        self.group, self.options, self.by_rows = group, options, by_rows
        self.params: Tensors = []
        self.grads: list[Any] = []
        self.states: list[Tensors] = []

    def tensors(self) -> tuple[Tensors, list[Any], list[Tensors]]:
        """Return the parameters, their gradients, and the state tensors of each parameter."""
        return self.params, self.grads, self.states

    def gradient_values(self) -> Tensors:
        """Return the gradients, or the values of sparse gradients."""
        return [g.values() for g in self.grads] if self.by_rows else self.grads

    def without_tensors(self) -> Bucket:
        """Return a bucket of the same parameters without gradients and state."""
        bucket = Bucket(self.group, self.options, self.by_rows)
        bucket.params = self.params
        return bucket


def run_step(
    rule: Rule,
    plan: Sequence[StepOptions],
    tensors: Sequence[tuple[Tensors, Tensors, list[Tensors]]],
    numbers: Sequence[Sequence[Any]],
    skip: dt.Tensor | None = None,
    name: str = "step",
) -> None:
    """Update parameters and state tensors of several buckets in place, by few launches.

    `skip`: a bool on the device; where it is True, all stay as they are. `name`: the function that
    errors name.
    """
    for options, (params, grads, states), values in zip(plan, tensors, numbers, strict=True):
        for batch in _batches(params, states):
            targets: Tensors = []
            results: Tensors = []
            for i in batch:
                p = params[i].detach()
                targets += [p, *states[i]]
                results += _apply_rule(rule, options, values, p, grads[i], states[i], skip)
            write_together(name, targets, results)


def _apply_rule(
    rule: Rule,
    options: StepOptions,
    numbers: Sequence[Any],
    p: dt.Tensor,
    g: dt.Tensor,
    state: Tensors,
    skip: dt.Tensor | None,
) -> Tensors:
    """Return the new parameter and state tensors; float16 and bfloat16 are computed in float32.

    A float32 copy, the last state tensor, replaces the elements of the parameter that are its
    rounded values. Other elements were written since the last step, or have no copy yet.
    """
    dtypes = [x.dtype for x in (p, *state)]
    has_master = options.master_weights and needs_master(p)
    if has_master:
        *state, master = state
        p = dt.where(master.astype(p.dtype) == p, master, p.astype(master.dtype))
    inputs = [x.astype(x.dtype.compute, copy=False) for x in (p, g, *state)]
    results = [*rule(options.rule, numbers, *inputs)]
    if skip is not None:
        skip = skip.to(p.device)
        old = inputs[:1] + inputs[2:]
        results = [dt.where(skip, x, new) for x, new in zip(old, results, strict=True)]
    if has_master:
        results.append(results[0])
    return [new.astype(d, copy=False) for d, new in zip(dtypes, results, strict=True)]


def run_row_step(
    rule: Rule, bucket: Bucket, numbers: Sequence[Any], skip: dt.Tensor | None = None
) -> None:
    """Update in place the rows of parameters and states that sparse gradients contain."""
    for p, g, state in zip(*bucket.tensors(), strict=True):
        captured = is_capturing()
        index, values = _captured_rows(g) if captured else _unique_rows(g)
        targets = [p.detach(), *state]
        # without a reference from here, the reads of rows are fused with the rule
        state_rows = (rows_at(x, index) for x in state)
        rows = rows_at(targets[0], index)
        results = _apply_rule(rule, bucket.options, numbers, rows, values, [*state_rows], skip)
        if not captured:
            put_rows("step", targets, results, index)
            continue
        dt.evaluate(*results)
        for x, new in zip(targets, results, strict=True):
            x[index] = new  # duplicate rows are written with equal values


def _unique_rows(g: Any) -> tuple[dt.Tensor, dt.Tensor]:
    """Return the unique row indices of a gradient, and the sum of each row's values."""
    g = g.coalesce()
    return g.indices()[0], g.values()


def _captured_rows(g: Any) -> tuple[dt.Tensor, dt.Tensor]:
    """Return the row indices of a gradient, with duplicates, and the sum of each row's values.

    The number of unique rows is not used, because the host would have to read it.
    """
    index, values = g.indices()[0], g.values()
    if g.is_coalesced():
        return index, values
    position = dt.empty((g.shape[0],), dtype=dt.int64, device=g.device)
    position[index] = dt.arange(index.size, device=g.device)
    representative = dt.take(position, index)  # one position among the duplicates of each row
    sums = dt.zeros_like(values)
    sums.index_add_(0, representative, values)
    return index, dt.take(sums, representative, axis=0)


def _batches(params: Tensors, states: list[Tensors]) -> Iterator[list[int]]:
    """Yield positions of parameters of one shape and dtype that one launch updates."""
    pending: dict[Hashable, list[int]] = {}
    for i, p in enumerate(params):
        small = p.size <= FUSED_ELEMENTS_MAX
        limit = max(1, STREAMS_MAX // (len(states[i]) + 2)) if small else 1
        key = (p.shape, p.dtype, p.device)
        batch = pending.setdefault(key, [])
        batch.append(i)
        if len(batch) >= limit:
            yield pending.pop(key)
    yield from pending.values()
