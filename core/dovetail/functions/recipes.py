"""What a function made of several ops records for tensors: found out once, then done again.

The nodes that `softmax` makes depend on the tensor's spec and the axis alone. To go through rules,
broadcasting and defaults takes longer than to make them, so what was made is noted, node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..graph.expr import Args, Attrs, Expr, Spec, ask, leaf, node, storage_of
from ..layout import Move, Shape
from ..memo import Memo
from ..memory.callers import caller
from ..memory.storage import Storage
from ..ops.table import Op
from ..recent import Recent
from ..tensor.fields import expr_of, is_strided
from ..tensor.tensor import Tensor, make, waiting_storage


class Step:
    """One node: its op, its arguments, and whether it checks indices when it runs.

    Or, without an op, a leaf that sees the memory of its one argument: its strides, and how far it
    starts from the argument's start, by which moves where that is pending.
    """

    __slots__ = ("args", "asks", "attrs", "moves", "numbers", "offset", "op", "spec", "strides")

    op: Op | None
    args: tuple[int, ...]  # positions of those made before, first the given ones; -1: a number
    numbers: tuple[Any, ...]  # in the places of arguments
    attrs: Attrs
    spec: Spec
    asks: bool
    strides: Shape
    offset: int
    moves: tuple[Move, ...]

    def __init__(self, e: Expr, args: tuple[int, ...]) -> None:
        self.op, self.attrs, self.spec, self.args = e.op, e.attrs, e.spec, args
        self.numbers = tuple([None if type(a) is Expr else a for a in e.args])
        self.asks = e.asked_at is not None
        self.strides, self.offset, self.moves = (), 0, ()
        if e.op is None:
            self.strides, self.offset, self.moves = e.strides, e.offset, e.moves


Recipe: TypeAlias = list[Step]
Sources: TypeAlias = dict[Storage, tuple[int, Expr]]  # the given leaves, by what they are over


def recipe(made: Expr, given: Sequence[Expr], views: bool = False) -> Recipe | None:
    """How a node was made of given nodes and numbers alone; None where more is in it.

    No steps: it is the last of them. `views`: there may be what sees the memory of given leaves,
    and depends on how they lie (`described`); and nothing that checks indices.
    """
    steps: Recipe = []
    sources: Sources = {}
    if views:
        for i, e in enumerate(given):
            if e.op is None and sources.setdefault(storage_of(e), (i, e))[1] is not e:
                return None  # which of them would be seen?
    index = {e: i for i, e in reversed([*enumerate(given)])}
    if made in index and made is not given[-1]:
        return None
    return steps if _found(made, index, sources, steps, len(given), views) else None


def _found(
    e: Expr, index: dict[Expr, int], sources: Sources, steps: Recipe, count: int, views: bool
) -> bool:
    """Whether `e` can be made again; adds the steps to it."""
    if e in index:
        return True
    if e.tape is not None:
        return False
    if e.op is not None:
        if views and e.asked_at is not None:
            return False
        for a in e.args:
            if type(a) is Expr and not _found(a, index, sources, steps, count, views):
                return False
        made = Step(e, tuple([index[a] if type(a) is Expr else -1 for a in e.args]))
    else:
        storage = storage_of(e)
        if not views or storage not in sources:
            pending = storage.pending
            if not views or pending is None:
                return False
            if not _found(pending, index, sources, steps, count, views):
                return False
            made = Step(e, (index[pending],))
        else:
            i, source = sources[storage]
            made = Step(e, (i,))
            made.offset -= source.offset
            made.moves = e.moves[len(source.moves) :]
    steps.append(made)
    index[e] = count + len(steps) - 1
    return True


def described(e: Expr) -> tuple[object, ...]:
    """What a recipe with views depends on of a given node."""
    if e.op is not None:
        return (e.spec,)
    return (e.spec, e.strides, None if storage_of(e).pending is None else e.moves)


def again(steps: Recipe, given: list[Expr]) -> Expr:
    """What a recipe makes of nodes."""
    made = list(given)
    storages: dict[int, Storage] | None = None
    for step in steps:
        places = step.args
        j = places[0] if places else -1
        if step.op is None:
            if storages is None:
                storages = {}
            made.append(_seen(step, made[j], storages))
            continue
        args: Args
        if len(places) == 1 and j >= 0:  # most have one or two, which no list is made of
            args = (made[j],)
        elif len(places) == 2:
            k = places[1]
            args = (
                made[j] if j >= 0 else step.numbers[0],
                made[k] if k >= 0 else step.numbers[1],
            )
        else:
            args = tuple([
                n if j < 0 else made[j] for j, n in zip(places, step.numbers, strict=True)
            ])  # fmt: skip
        e = node(step.op, args, step.spec, step.attrs)
        if step.asks:
            ask(e, caller())
        made.append(e)
    return made[-1]


def _seen(step: Step, source: Expr, storages: dict[int, Storage]) -> Expr:
    """A leaf that sees the memory of another, or of a node, one storage for each of these."""
    if source.op is None:
        moves = () if storage_of(source).pending is None else source.moves + step.moves
        offset = source.offset + step.offset
        return leaf(source.storage, step.spec, step.strides, offset, moves)
    at = step.args[0]
    if at not in storages:
        storages[at] = waiting_storage(source)
    return leaf(storages[at], step.spec, step.strides, step.offset, step.moves)


_known: Recent[tuple[object, ...], Recipe] = Recent(2048)
_lately: Memo[Recipe] = Memo()  # the same by who they are


def composed(function: Callable[..., Tensor], x: Tensor, option: object) -> Tensor:
    """`function(x, option)`, which makes one result of `x` and numbers that the option says."""
    if not is_strided(x) or type(option) is not int:
        return function(x, option)
    given = expr_of(x)
    if given.tape is not None:
        return function(x, option)
    steps = _lately.get(function, given.spec, option)
    if steps is not None:
        return make(again(steps, [given]))
    key = (function, given.spec, option)
    steps = _known.find(key)
    if steps is not None:
        _lately.put(function, given.spec, option, steps)
        return make(again(steps, [given]))
    result = function(x, option)
    found = recipe(expr_of(result), [given])
    if found:
        _known[key] = found
    return result
