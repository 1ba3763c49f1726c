"""Loops of examples (`dt.vmap`) in captured functions: one loop over what all examples carry.

The loop runs outside of the function, and its body is the function's, mapped over the examples. A
carried tensor has an axis of examples if it differs between them before the first iteration or
after one. Which do is found by captures of the body, until no other one does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from ..engine import recording
from ..engine.recording import BatchTracer, UnrolledLoop
from ..functions.statistics import any as any_true
from ..graph.expr import storage_of
from ..ops.table import LOGICAL_AND
from ..settings import current, restore
from ..tensor.tensor import Tensor, make
from ..tensor.verbs import apply, view
from .pytree import Flat, flattened, rebuilt, tensor_leaves
from .rounds import as_while, carried_on, choose, copied, first, pair, truth_of
from .tracer import evaluate_pending

R = TypeVar("R")
C = TypeVar("C")
X = TypeVar("X")
Y = TypeVar("Y")


class _OneMoreDiffers(BaseException):
    """Raised where the body of a loop lets one more of its carried tensors differ."""

    def __init__(self, loop: BatchedLoop) -> None:
        super().__init__()
        self.loop = loop


class BatchedLoop:
    """A loop of examples that is one loop outside of the function.

    `carried`, `parts`: what the function carries, and of what an iteration gets a row.
    """

    def __init__(self, tracer: BatchTracer, carried: Flat, parts: Flat | None = None) -> None:
        self.tracer, self.carried, self.parts = tracer, carried, parts or flattened(())
        _require_untaped([*carried.leaves, *self.parts.leaves])
        evaluate_pending()
        tracer.settle()
        self._settings = current()
        self._differs = [tracer.differs(t) for t in carried.leaves]
        self._part_differs = [tracer.differs(t) for t in self.parts.leaves]
        self._result_differs: list[bool] = []  # of the other results of the body

    def run(self, loop: Callable[[list[Tensor], list[Tensor]], R]) -> R:
        """Return what `loop` gives outside, of what all examples carry and their parts."""
        while True:
            try:
                return self.tracer.outside(partial(self._run, loop))
            except _OneMoreDiffers as error:
                if error.loop is not self:
                    raise

    def _run(self, loop: Callable[[list[Tensor], list[Tensor]], R]) -> R:
        parts = _all(self.tracer, self.parts.leaves, self._part_differs)
        rows = [
            _swapped(x) if differs else x
            for x, differs in zip(parts, self._part_differs, strict=True)
        ]
        return loop(_all(self.tracer, self.carried.leaves, self._differs), rows)

    def iterate(
        self, body: Callable[[Any, Any], tuple[Sequence[Tensor], Sequence[Tensor]]],
        carried: Sequence[Tensor], parts: Sequence[Tensor] = (),
    ) -> tuple[list[Tensor], list[Tensor]]:  # fmt: skip
        """Return what all examples carry after the body, and what else it gives for all.

        `body`: of what one example carries, and a row of its parts. It gives leaves.
        """
        before = current()
        try:
            with self.tracer.iteration() as tracer:
                restore(self._settings)
                given = [
                    tracer.example(x, is_argument=True) if differs else x
                    for x, differs in zip(
                        (*carried, *parts), (*self._differs, *self._part_differs), strict=True
                    )
                ]
                n = len(carried)
                after, results = body(
                    rebuilt(self.carried, given[:n]), rebuilt(self.parts, given[n:])
                )
                _require_untaped([*after, *results])
                for k, t in enumerate(after):
                    if not self._differs[k] and tracer.differs(t):
                        self._let_differ(self._differs, k)
                self._result_differs = [tracer.differs(t) for t in results]
                return (
                    _all(tracer, after, self._differs[: len(after)]),
                    _all(tracer, results, self._result_differs),
                )
        except UnrolledLoop as error:
            for flags, inputs in ((self._differs, carried), (self._part_differs, parts)):
                for k, x in enumerate(inputs):
                    if not flags[k] and error.storage is storage_of(x._expr):
                        self._let_differ(flags, k)
            raise
        finally:
            restore(before)

    def iterated(
        self, body: Callable[[Any], Sequence[Tensor]]
    ) -> Callable[[Sequence[Tensor]], list[Tensor]]:
        """Return the body of a loop without parts and other results, for all examples."""
        return lambda carried: self.iterate(lambda c, x: (body(c), ()), carried)[0]

    def _let_differ(self, flags: list[bool], k: int) -> None:
        flags[k] = True
        raise _OneMoreDiffers(self)

    def examples(self, carried: Sequence[Tensor]) -> list[Tensor]:
        """Return what one example carries in the end."""
        return self._examples(carried, self._differs)

    def stacked(self, results: Sequence[Tensor]) -> list[Tensor]:
        """Return for one example what each iteration gave, stacked by the loop outside."""
        tracer = self.tracer
        swapped = [
            tracer.outside(partial(_swapped, t)) if differs else t
            for t, differs in zip(results, self._result_differs, strict=True)
        ]
        return self._examples(swapped, self._result_differs)

    def _examples(self, tensors: Sequence[Tensor], differs: Sequence[bool]) -> list[Tensor]:
        tracer = self.tracer
        return [
            tracer.example(t) if d else tracer.adopt(t)
            for t, d in zip(tensors, differs, strict=True)
        ]


def batch_tracer() -> BatchTracer | None:
    """Return the tracer of the examples of a captured function, if its loops may be one loop."""
    tracer = recording.current()
    if not isinstance(tracer, BatchTracer) or not tracer.is_capture or current().eager:
        return None
    return tracer


def _all(tracer: BatchTracer, tensors: Sequence[Tensor], differs: Sequence[bool]) -> list[Tensor]:
    """Return the tensors, with an axis of examples where they differ."""
    return [tracer.untaped(t) if d else t for t, d in zip(tensors, differs, strict=True)]


def _swapped(x: Tensor) -> Tensor:
    """Return a view with the first two axes, of examples and of iterations, exchanged."""
    return view(x, ("permute", (1, 0, *range(2, x.ndim))))


def _require_untaped(tensors: Sequence[Tensor]) -> None:
    """Raises: UnrolledLoop where gradients flow through the iterations."""
    if current().grad and any(t._expr.tape is not None for t in tensors):
        raise UnrolledLoop


# --- the loops


def scan_of_examples(
    name: str, tracer: BatchTracer, f: Callable[[C, X], tuple[C, Y]], carried: Flat, parts: Flat,
    at_once: Callable[[Any, Flat, Flat], tuple[Any, Any]],
) -> tuple[C, Y]:  # fmt: skip
    """Run a scan of examples as one scan outside, which `at_once` runs. Raises: UnrolledLoop."""
    loop, tree = BatchedLoop(tracer, carried, parts), list[Flat]()

    def body(c: C, x: X) -> tuple[list[Tensor], Sequence[Tensor]]:
        value, y = pair(name, f(c, x))
        ys = tensor_leaves(name, y, first(carried))
        tree[:] = [Flat((), ys.tree)]  # no tensors: their values are those of a capture
        return carried_on(name, carried, value), ys.leaves

    def outside(c: list[Tensor], x: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        step, flats = partial(loop.iterate, body), (flattened(c), flattened(x))
        if (outer := batch_tracer()) is not None:
            return scan_of_examples(name, outer, step, *flats, at_once)
        return at_once(step, *flats)

    after, ys = loop.run(outside)
    return rebuilt(carried, loop.examples(after)), rebuilt(tree[0], loop.stacked(ys))


def rounds_of_examples(
    name: str, tracer: BatchTracer, body: Callable[[Tensor, C], C], carried: Flat,
    bounds: Sequence[int | Tensor], repeat: Callable[[Any, Flat, Sequence[int | Tensor]], Any],
    go_on: Callable[[Any, Any, Flat], Any],
) -> C:  # fmt: skip
    """Run a `fori_loop` of examples as one loop outside. Raises: UnrolledLoop.

    `repeat`, `go_on`: run a loop that no example has of its own, with bounds or with a condition.
    """
    if any(tracer.differs(b) for b in bounds if isinstance(b, Tensor)):
        as_condition = as_while(name, body, carried, *bounds)
        in_the_end: tuple[Tensor, C] = while_of_examples(name, tracer, *as_condition, go_on)
        return in_the_end[1]
    loop = BatchedLoop(tracer, carried)

    def outside(c: list[Tensor], x: list[Tensor]) -> list[Tensor]:
        def step(i: Tensor, c: list[Tensor]) -> list[Tensor]:
            return loop.iterated(lambda c: carried_on(name, carried, body(i, c)))(c)

        if (outer := batch_tracer()) is not None:
            return rounds_of_examples(name, outer, step, flattened(c), bounds, repeat, go_on)
        made: list[Tensor] = repeat(step, flattened(c), bounds)
        return made

    value: C = rebuilt(carried, loop.examples(loop.run(outside)))
    return value


class _ConditionDiffers(BaseException):
    """Raised where the condition of a loop is not the same for each example."""

    def __init__(self, loop: BatchedLoop) -> None:
        super().__init__()
        self.loop = loop


def while_of_examples(
    name: str, tracer: BatchTracer, condition: Callable[[C], object], body: Callable[[C], C],
    carried: Flat, go_on: Callable[[Any, Any, Flat], Any],
) -> C:  # fmt: skip
    """Run a `while_loop` of examples as one loop outside, which `go_on` runs.

    Raises: UnrolledLoop.
    """
    loop = BatchedLoop(tracer, carried)

    def advance(c: C) -> list[Tensor]:
        return carried_on(name, carried, body(c))

    def ask(c: C, x: object) -> tuple[tuple[()], list[Tensor]]:
        return (), [_asked(condition(c))]

    def goes_on(c: list[Tensor]) -> Tensor:
        truth = loop.iterate(ask, c)[1][0]
        if truth.ndim:
            raise _ConditionDiffers(loop)
        return truth

    try:
        after = loop.run(_outside(name, go_on, goes_on, loop.iterated(advance)))
        value: C = rebuilt(carried, loop.examples(after))
        return value
    except _ConditionDiffers as error:
        if error.loop is not loop:
            raise
    # not within `except`: the error holds what is pending of the capture that it ended
    return _while_some_go_on(name, tracer, condition, body, carried, go_on)


def _while_some_go_on(
    name: str, tracer: BatchTracer, condition: Callable[[C], object], body: Callable[[C], C],
    carried: Flat, go_on: Callable[[Any, Any, Flat], Any],
) -> C:  # fmt: skip
    """Run a loop until all examples have stopped. It also carries which go on."""
    leaves, mask = copied(carried.leaves), recording.mask()
    active = _asked(condition(rebuilt(carried, leaves)))
    active = active if mask is None else apply(LOGICAL_AND, (mask, active))
    loop = BatchedLoop(tracer, flattened((leaves, active)))

    def advance(c: tuple[list[Tensor], Tensor]) -> list[Tensor]:
        before, active = c
        with recording.selecting(active):
            after = carried_on(name, carried, body(rebuilt(carried, before)))
        after = choose(active, after, before)
        with recording.selecting(active):
            truth = _asked(condition(rebuilt(carried, after)))
        return [*after, apply(LOGICAL_AND, (active, truth))]

    def goes_on(c: list[Tensor]) -> Tensor:
        return any_true(c[-1])

    after = loop.run(_outside(name, go_on, goes_on, loop.iterated(advance)))
    value: C = rebuilt(carried, loop.examples(after)[:-1])
    return value


def _outside(
    name: str, go_on: Callable[[Any, Any, Flat], Any], condition: Callable[[list[Tensor]], Tensor],
    body: Callable[[list[Tensor]], list[Tensor]],
) -> Callable[[list[Tensor], object], list[Tensor]]:  # fmt: skip
    """Return what runs a loop of unknown length outside, of what all examples carry."""

    def run(carried: list[Tensor], parts: object) -> list[Tensor]:
        flat = flattened(carried)
        if (outer := batch_tracer()) is not None:
            return while_of_examples(name, outer, condition, body, flat, go_on)
        made: list[Tensor] = go_on(condition, body, flat)
        return made

    return run


def _asked(truth: object) -> Tensor:
    """Raises: UnrolledLoop for a Python bool, which is the same in each iteration."""
    if not isinstance(truth, Tensor):
        raise UnrolledLoop
    return make(truth_of(truth))
