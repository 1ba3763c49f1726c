"""Analysis of values that several loops over one row compute: a softmax's exponentials.

A reduction keeps its elements on the stack if they take many operations, and a later loop over the
same row loads them there. For rows that are too long it computes them again.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import takewhile
from typing import NamedTuple

from dovetail.extend import Atomic, Block, Kernel, Loop, Store, Value, uses, walk

REUSE_OPS_MIN = 8  # of a value: its store, load and branches take about four
REUSE_ELEMENTS_MAX = 32768  # of a row whose values are kept: they fit the second cache


class Reuse(NamedTuple):
    """A value of a loop that equals the element of an earlier reduction in the same iteration."""

    value: Value
    variable: Value  # of the loop
    source: Value  # the element
    body: Block  # the statements that only `value` needs, and `value`


def find_reuses(kernel: Kernel, vectorized: Container[int]) -> tuple[Reuse, ...]:
    """Return the reuses of a kernel's vectorized loops, one at most for each.

    vectorized: ids of these loops.
    Nothing is written between a reduction and a loop that reuses its elements.
    """
    reuses: list[Reuse] = []
    reductions: list[Loop] = []
    for s in kernel.body:
        if id(s) in vectorized and isinstance(s, Loop):
            matches = [
                r for first in reductions for u in first.update if (r := _match(first, u, s))
            ]
            reuses += sorted(matches, key=lambda r: -len(r.body))[:1]
        if any(isinstance(x, (Store, Atomic)) for x in walk((s,))):
            break
        if id(s) in vectorized and isinstance(s, Loop):
            reductions.append(s)
    return tuple(reuses)


def _match(first: Loop, update: Value, loop: Loop) -> Reuse | None:
    """Return the reuse of an element of `first` in a later loop, or None."""
    equal: dict[tuple[int, int], bool] = {(id(first.var), id(loop.var)): True}
    if update.dtype.kind != "f" or not all(
        x.start.op == "const" and x.start.number == 0 for x in (first, loop)
    ):
        return None
    stop = loop.stop  # of a loop that runs as a whole or not at all
    if stop.op == "where" and stop.args[1].op == "const" and stop.args[1].number == 0:
        stop = stop.args[2]
    if not _is_equal(first.stop, stop, equal):
        return None
    for v in takewhile(lambda s: isinstance(s, Value), loop.body):
        if isinstance(v, Value) and _is_equal(update, v, equal):
            body = _list_cone(loop.body, v, loop.update)
            return Reuse(v, loop.var, update, tuple(body)) if len(body) >= REUSE_OPS_MIN else None
    return None


def _is_equal(a: Value, b: Value, equal: dict[tuple[int, int], bool]) -> bool:
    """Return True if two values are computed in the same way; `equal` has the answers so far."""
    if a is b:
        return True
    key = id(a), id(b)
    if key not in equal:
        equal[key] = (
            a.op == b.op
            and a.op not in ("const", "loopvar")
            and a.dtype is b.dtype
            and a.attr == b.attr
            and len(a.args) == len(b.args)
            and all(_is_equal(x, y, equal) for x, y in zip(a.args, b.args, strict=True))
        )
    return equal[key]


def _list_cone(block: Block, value: Value, live_out: Sequence[Value]) -> list[Value]:
    """Return the values of a block that only `value` needs, and `value`, in order."""
    position = next(i for i, s in enumerate(block) if s is value)
    outside = {id(v) for v in live_out}
    outside |= {id(v) for s in block[position + 1 :] for v in uses(s)}
    cone, needed = [value], {id(v) for v in value.args}
    for s in reversed(block[:position]):
        if isinstance(s, Value) and id(s) in needed - outside:
            cone.append(s)
            needed |= {id(v) for v in s.args}
        else:
            outside |= {id(v) for v in uses(s)}
    return cone[::-1]
