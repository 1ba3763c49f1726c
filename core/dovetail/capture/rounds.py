"""Rounds of loops that are ordinary pieces of the program, and loops of examples (`dt.vmap`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..arguments import shown
from ..device import Device, default_device
from ..dtypes import bool_, int64
from ..engine import recording
from ..errors import ArgumentTypeError, DTypeError, ShapeError
from ..graph.expr import Expr, node, spec, storage_of
from ..graph.ownership import Holder, is_alone
from ..ops import table as ops
from ..tensor.tensor import Tensor, make
from ..tensor.verbs import apply
from .pytree import Flat, rebuilt, tensor_leaves
from .tracer import Recorder

C = TypeVar("C")
R = TypeVar("R")
Y = TypeVar("Y")


def rounds(name: str, body: Callable[[Tensor, C], C], carried: Flat, indices: range) -> C:
    """Run a loop of which each iteration is an ordinary piece of the program."""
    leaves = copied(carried.leaves)
    device = leaves[0].device if leaves else default_device()
    for i in indices:
        made = carried_on(name, carried, body(index(i, device), rebuilt(carried, leaves)))
        leaves = separated(made, leaves)
    value: C = rebuilt(carried, leaves)
    return value


def copied(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return copies, so that a loop may write in them, and writes elsewhere do not change them."""
    return [apply(ops.COPY, (t,)) for t in tensors]


def separated(leaves: list[Tensor], before: Sequence[Tensor] = ()) -> list[Tensor]:
    """Return what an iteration gave, as copies where another name shares the memory.

    `leaves` is emptied. `before`: what the iteration got; a tensor that it gives back in the same
    position stays.
    """
    found: list[Tensor] = []
    for k in range(len(leaves)):
        holder = [leaves.pop(0)]
        is_same = k < len(before) and holder[0] is before[k]
        found.append(holder[0] if is_same or _is_unshared(holder) else copied(holder)[0])
    return found


def _is_unshared(holder: Holder[Tensor]) -> bool:
    """Return True if nothing else can write what this tensor stands for."""
    if not is_alone(holder):
        return False
    e = holder[0]._expr
    return e.op is not None or is_alone([storage_of(e)], 1)


def first(flat: Flat) -> Tensor | None:
    """The first tensor in containers."""
    return flat.leaves[0] if flat.leaves else None


def carried_on(name: str, carried: Flat, made: object) -> list[Tensor]:
    """What a body gave, which must be what it got. Raises: DTypeError, ShapeError."""
    flat = tensor_leaves(name, made, first(carried))
    if flat.tree != carried.tree:
        raise DTypeError(
            f"{name}: the body got {carried.tree} to carry and gave {flat.tree}; they must be the "
            "same containers"
        )
    for before, after in zip(carried.leaves, flat.leaves, strict=True):
        want, have = before._expr.spec, after._expr.spec
        if want is not have:
            error = ShapeError if want.shape != have.shape else DTypeError
            raise error(
                f"{name}: the body got {want!r} to carry and gave {have!r}; they must be the same, "
                "so cast with astype(), or begin with what it gives"
            )
    return list(flat.leaves)


def pair(name: str, made: tuple[C, Y]) -> tuple[C, Y]:
    """Return what the body of a scan gave. Raises: ArgumentTypeError where that is no pair."""
    if not isinstance(made, tuple) or len(made) != 2:
        raise ArgumentTypeError(
            f"{name}: f gives a pair, what is carried and a y, not {shown(made)}"
        )
    return made


def index(i: int, device: Device) -> Tensor:
    """The index of a round: a number that is given when it runs."""
    args = (*[i],)  # an object of its own, by which it may be known again
    return make(node(ops.FULL, args, spec((), int64, device), ((int64,), int64)))


def truth_of(pred: Tensor) -> Expr:
    """A node of one bool."""
    e = pred.reshape(())._expr
    if e.spec.dtype is not bool_:
        e = apply(ops.NOT_EQUAL, (make(e), 0))._expr
    return apply(ops.COPY, (make(e),))._expr


def is_of_examples() -> bool:
    """Whether a function runs on examples, and nothing is captured in here."""
    return not isinstance(recording.current(), Recorder | None)


def branches_of_examples(
    name: str, pred: Tensor, true_fn: Callable[[], R], false_fn: Callable[[], R]
) -> R:
    """Run both branches of `cond`, and choose by the bool of each example.

    What a branch writes in place is written for the examples that choose it.
    """
    truth = make(truth_of(pred))
    with recording.selecting(truth):
        yes = true_fn()
    flat = tensor_leaves(name, yes)
    with recording.selecting(apply(ops.LOGICAL_NOT, (truth,))):
        no = false_fn()
    chosen = choose(truth, flat.leaves, carried_on(name, flat, no))
    result: R = rebuilt(flat, chosen)
    return result


def choose(truth: Tensor, yes: Sequence[Tensor], no: Sequence[Tensor]) -> list[Tensor]:
    """Return the leaves of each example's own choice."""
    return [apply(ops.WHERE, (truth, a, b)) for a, b in zip(yes, no, strict=True)]


def many_while(
    name: str, condition: Callable[[C], object], body: Callable[[C], C], carried: Flat
) -> C:
    """Run a loop of examples until all have stopped.

    An example that has stopped keeps what it carried, and writes nothing in place.
    """
    recorder = recording.current()
    assert recorder is not None
    leaves = copied(carried.leaves)
    active: Tensor | None = None  # None: all examples
    while True:
        with recording.selecting(active):
            asked = condition(rebuilt(carried, leaves))
        if isinstance(asked, Tensor) and recorder.batches(asked._expr):
            goes_on = make(truth_of(asked))
            active = goes_on if active is None else apply(ops.LOGICAL_AND, (active, goes_on))
            asked = recorder.any_of(active)
        if not asked:
            value: C = rebuilt(carried, leaves)
            return value
        with recording.selecting(active):
            after = carried_on(name, carried, body(rebuilt(carried, leaves)))
        leaves = separated(after, leaves) if active is None else choose(active, after, leaves)


def many_rounds(
    name: str, body: Callable[[Tensor, C], C], carried: Flat, lower: int | Tensor,
    upper: int | Tensor,
) -> C:  # fmt: skip
    """The rounds of a loop of examples, which may have bounds of their own."""
    given = [b for b in (lower, upper) if isinstance(b, Tensor)]
    if not any(recording.batches(b._expr) for b in given):
        return rounds(name, body, carried, range(int(lower), int(upper)))
    made: tuple[Tensor, C] = many_while(name, *as_while(name, body, carried, lower, upper))
    return made[1]


def as_while(
    name: str, body: Callable[[Tensor, C], C], carried: Flat, lower: int | Tensor,
    upper: int | Tensor,
) -> tuple[Callable[[Any], Tensor], Callable[[Any], tuple[Tensor, C]], Flat]:  # fmt: skip
    """Return a `fori_loop` as condition, body and initial value of a `while_loop`.

    It carries an index and what the `fori_loop` carries. One of the bounds is a tensor.
    """
    given = [b for b in (lower, upper) if isinstance(b, Tensor)]
    if isinstance(upper, Tensor):
        upper = copied([upper])[0]  # the body may write there
    first = apply(ops.ADD, (given[0].reshape(()) * 0, lower))  # of the dtype of one of them
    both = tensor_leaves(name, (first, rebuilt(carried, carried.leaves)))

    def goes_on(c: tuple[Tensor, C]) -> Tensor:
        return apply(ops.LESS, (c[0], upper))

    def step(c: tuple[Tensor, C]) -> tuple[Tensor, C]:
        return c[0] + 1, body(c[0].astype(int64), c[1])

    return goes_on, step, both
