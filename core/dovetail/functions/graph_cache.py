"""What a function made of several ops records for tensors: found out once, then done again.

The nodes that `softmax` makes depend on the tensor's spec and the axis alone. To go through rules,
broadcasting and defaults takes longer than to make them, so what was made is noted, node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..device_class import Device, default_device
from ..dtypes import DType
from ..engine.events import counters
from ..graph.expr import Args, Attrs, Expr, Spec, ask, leaf, node, storage_of
from ..layout import Move, Shape
from ..memory.storage import Storage
from ..memory.tracing.stacktrace import line
from ..ops.table import Op
from ..recent import Recent
from ..settings import current, flags
from ..tensor.fields import expr_of, is_strided
from ..tensor.tensor import Tensor, make, waiting_storage


class Step:
    """One node: its op, its arguments, and whether it checks indices when it runs.

    Or, without an op, a leaf that sees the memory of its one argument: its strides, and how far it
    starts from the argument's start, by which moves where that is pending.
    """

    __slots__ = (
        "args", "asks", "attrs", "moves", "numbers", "offset", "op", "plain", "spec", "strides",
    )  # fmt: skip

    op: Op | None
    args: tuple[int, ...]  # positions of those made before, first the given ones; -1: a number
    numbers: tuple[Any, ...]  # in the places of arguments
    attrs: Attrs
    spec: Spec
    plain: bool  # whether it is made of numbers alone
    asks: bool
    strides: Shape
    offset: int
    moves: tuple[Move, ...]

    def __init__(self, e: Expr, args: tuple[int, ...]) -> None:
        self.op, self.attrs, self.spec, self.args = e.op, e.attrs, e.spec, args
        self.numbers = tuple([None if type(a) is Expr else a for a in e.args])
        self.plain = all(k < 0 for k in args)
        self.asks = e.asked_at is not None
        self.strides, self.offset, self.moves = (), 0, ()
        if e.op is None:
            self.strides, self.offset, self.moves = e.strides, e.offset, e.moves


Recipe: TypeAlias = list[Step]
Sources: TypeAlias = dict[Storage, tuple[int, Expr]]  # the given leaves, by what they are over


def recipe(
    made: Expr, given: Sequence[Expr], views: bool = False, checks: bool = True
) -> Recipe | None:
    """How a node was made of given nodes and numbers alone; None where more is in it.

    No steps: it is the last of them. `views`: there may be what sees the memory of given leaves,
    and depends on how they lie (`described`). `checks`: whether there may be what checks indices,
    on behalf of the line that has it made again.
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
    found = _found(made, index, sources, steps, len(given), views)
    return steps if found and (checks or not any(step.asks for step in steps)) else None


def _found(
    e: Expr, index: dict[Expr, int], sources: Sources, steps: Recipe, count: int, views: bool
) -> bool:
    """Whether `e` can be made again; adds the steps to it."""
    if e in index:
        return True
    if e.tape is not None:
        return False
    if e.op is not None:
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
        elif step.plain:
            args = step.numbers
        else:
            found: list[object] = [None] * len(places)
            for k in range(len(places)):
                j = places[k]
                found[k] = made[j] if j >= 0 else step.numbers[k]
            args = tuple(found)
        e = node(step.op, args, step.spec, step.attrs)
        if step.asks:
            ask(e, line())
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


_ONCE: Recipe = []  # known of arguments that came once: more are likely the second time
_NEVER: Recipe = []  # of those whose result cannot be made again


class Remade:
    """A function of tensors and options that makes one pending result of them, by `given`.

    What it makes depends on the specs of the tensors, how they lie and the options alone, and not
    on what the host reads: the second time it is noted, and made again of others like these. One
    that `makes` tensors of nothing depends on the default device and dtype, too.
    """

    __slots__ = ("_young", "function", "known", "makes")

    def __init__(self, function: Callable[..., Tensor], makes: bool = False) -> None:
        self.function, self.makes = function, makes
        self.known: Recent[tuple[object, ...], Recipe] = Recent(1024)
        self._young = self.known.young  # which stays the same dict
        if makes:
            makers.append(self.known)

    def given(self, args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
        """What the function gives for these arguments."""
        exprs: list[Expr] = []
        key: list[object] | None = None
        if flags.depth and not flags.captures:  # else ops run at once, or are looked at
            key = _key(args, options, exprs, self.makes)
        if key is None:
            return self.function(*args, **options)
        whole = tuple(key)
        steps = self._young.get(whole)
        if steps is None:
            steps = self.known.find(whole)
        if steps:
            return make(again(steps, exprs))
        return self._made(args, options, whole, exprs, steps)

    def _made(
        self, args: tuple[Any, ...], options: dict[str, Any], key: tuple[object, ...],
        exprs: list[Expr], steps: Recipe | None,
    ) -> Tensor:  # fmt: skip
        """The same, by the function."""
        before = counters.evaluations
        result = self.function(*args, **options)
        if steps is None:
            self.known[key] = _ONCE
        elif steps is _ONCE:
            found = None
            if is_strided(result) and counters.evaluations == before and _is_new(result, exprs):
                found = recipe(expr_of(result), exprs, views=_all_leaves(exprs))
            self.known[key] = found or _NEVER
        return result


makers: list[Recent[tuple[object, ...], Recipe]] = []


def forget_makers() -> None:
    """What was made of nothing is not known any more: the default dtype has changed."""
    for known in makers:
        known.turn()
        known.turn()


def _key(
    args: tuple[Any, ...], options: dict[str, Any], exprs: list[Expr], makes: bool
) -> list[object] | None:
    """All that a result depends on, but for the values of tensors; None where that is more.

    The nodes of tensors are added to `exprs`: no gradient flows through them.
    """
    key: list[object] = [current().reproducible]
    if makes and options.get("device") is None:  # whoever names one does not ask for the default
        device = default_device()
        if device.opened is None:
            return None
        key.append(device)
    for a in args:
        if not _is_described(a, key, exprs):
            return None
    for name in options:
        key.append(name)
        if type(options[name]) is str and name in ("dtype", "device"):
            return None  # plugins say what these names mean, and may go
        if not _is_described(options[name], key, exprs):
            return None
    return key if makes or exprs else None


def _is_new(result: Tensor, exprs: list[Expr]) -> bool:
    """Whether a result is none of these nodes, nor a view of one, which would be an alias."""
    e = expr_of(result)
    return e.op is not None or storage_of(e).pending not in (None, *exprs)


def _all_leaves(exprs: list[Expr]) -> bool:
    """Whether all are in memory: what is pending shares a storage with its views from then on."""
    return all(e.op is None for e in exprs)


_PENDING = object()  # in a key, of a node that is


def _is_described(a: object, key: list[object], exprs: list[Expr]) -> bool:
    """Whether an argument could be added to the key."""
    if is_strided(a):
        return _is_added(expr_of(a), key, exprs)
    kind = type(a)
    key.append(kind)
    if kind is float:  # no NaN equals another, and zeros differ
        key.append(a.hex() if a != a or a == 0 else a)  # type: ignore[attr-defined]  # as is said
    elif kind is tuple or kind is list:
        values: Any = a
        key.append(len(values))
        for value in values:
            if not _is_described(value, key, exprs):
                return False
    else:
        key.append(a)
        return _is_plain(a)
    return True


def _is_plain(a: object) -> bool:
    """Whether an option is equal only to what means the same."""
    kind = type(a)
    if kind is Device:
        return a.opened is not None  # type: ignore[attr-defined]  # as is said
    return kind is int or kind is bool or kind is str or a is None or kind is DType


def _is_added(e: Expr, key: list[object], exprs: list[Expr]) -> bool:
    """Whether the node of a tensor could be: no gradient flows through it, nor waits its memory."""
    if e.tape is not None or (e.op is None and e.storage.pending is not None):
        return False
    for other in exprs:
        if other is e or (e.op is None and other.op is None and other.storage is e.storage):
            return False  # which of them is read would not be known
    exprs.append(e)
    key.append(e.spec)
    if e.op is not None:
        key.append(_PENDING)
    elif e.strides is not e.spec.strides:
        key.append(e.strides)
    return True
