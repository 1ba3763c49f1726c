"""Rounds of loops that are ordinary pieces of the program, and loops of examples (`dt.vmap`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..capture.recorder import Recorder
from ..device import Device, default_device
from ..dtypes import bool_, int64
from ..engine import recording
from ..errors import DTypeError, ShapeError
from ..graph.expr import Expr, node, spec
from ..ops import table as ops
from ..tensor.tensor import Tensor, make
from ..tensor.verbs import apply
from .containers import Flat, rebuilt, tensor_leaves

C = TypeVar("C")
R = TypeVar("R")


def rounds(name: str, body: Callable[[Tensor, C], C], carried: Flat, indices: range) -> C:
    """A loop of which each round is an ordinary piece of the program."""
    value: C = rebuilt(carried, carried.leaves)
    device = carried.leaves[0].device if carried.leaves else default_device()
    for i in indices:
        value = rebuilt(carried, carried_on(name, carried, body(index(i, device), value)))
    return value


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


def both(name: str, pred: Tensor, yes: R, no: R) -> R:
    """Of two results the one that a bool of each example says, both being there."""
    flat = tensor_leaves(name, yes)
    others = carried_on(name, flat, no)
    truth = make(truth_of(pred))
    chosen = [apply(ops.WHERE, (truth, a, b)) for a, b in zip(flat.leaves, others, strict=True)]
    made: R = rebuilt(flat, chosen)
    return made


def many_while(
    name: str, condition: Callable[[C], object], body: Callable[[C], C], carried: Flat
) -> C:
    """A loop of examples, until none goes on; one that has stopped keeps what it had."""
    recorder = recording.current()
    assert recorder is not None
    value: C = rebuilt(carried, carried.leaves)
    while True:
        asked = condition(value)
        if not isinstance(asked, Tensor) or not recorder.batches(asked._expr):
            if not asked:
                return value
            value = rebuilt(carried, carried_on(name, carried, body(value)))
            continue
        truth = make(truth_of(asked))
        if not recorder.any_of(truth):
            return value
        after = rebuilt(carried, carried_on(name, carried, body(value)))
        value = both(name, truth, after, value)


def many_rounds(
    name: str, body: Callable[[Tensor, C], C], carried: Flat, lower: int | Tensor,
    upper: int | Tensor,
) -> C:  # fmt: skip
    """The rounds of a loop of examples, which may have bounds of their own."""
    given = [b for b in (lower, upper) if isinstance(b, Tensor)]
    if not any(recording.batches(b._expr) for b in given):
        return rounds(name, body, carried, range(int(lower), int(upper)))
    first = apply(ops.ADD, (given[0].reshape(()) * 0, lower))  # of the dtype of one of them
    both = tensor_leaves(name, (first, rebuilt(carried, carried.leaves)))

    def goes_on(c: tuple[Tensor, C]) -> Tensor:
        return apply(ops.LESS, (c[0], upper))

    def step(c: tuple[Tensor, C]) -> tuple[Tensor, C]:
        return c[0] + 1, body(c[0].astype(int64), c[1])

    return many_while(name, goes_on, step, both)[1]
