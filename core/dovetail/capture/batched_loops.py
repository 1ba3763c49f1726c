"""Loops of examples (`dt.vmap`) that run as one loop for all examples.

The loop runs outside of the mapped function, and its body is mapped over the examples. A carried
tensor has an axis of examples if it differs between them before the first iteration or after one.
The body is captured repeatedly to find these tensors, until no further one differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from ..engine import tracer_api
from ..engine.tracer_api import BatchTracer, UnrolledLoop
from ..functions.reductions.statistics import any as any_true
from ..graph.expr import storage_of
from ..ops.table import LOGICAL_AND
from ..settings import current, restore
from ..tensor.primitives import apply, view
from ..tensor.tensor import Tensor
from .captured_loops import capture_loop, capture_while
from .iterations import (
    Loop,
    as_while,
    choose,
    copy_all,
    is_any_taped,
    is_mapping,
    next_carry,
    truth_of,
)
from .pytree import Flat, flattened, rebuilt
from .tracer import evaluate_pending

R = TypeVar("R")
Condition = Callable[[Any], object]
Body = Callable[[Any], Any]


def run_loop(loop: Loop, reads: set[int] | None = None) -> tuple[Any, Any]:
    """Run a loop without gradients as one loop, see `capture_loop`. Raises: UnrolledLoop."""
    if (tracer := batch_tracer()) is not None:
        return _batch_loop(tracer, loop, reads)
    if is_mapping():
        raise UnrolledLoop
    return capture_loop(loop, reads)


def run_while(name: str, condition: Condition, body: Body, carry: Flat) -> Any:
    """Run a `while_loop` without gradients as one loop. Raises: UnrolledLoop."""
    if (tracer := batch_tracer()) is not None:
        return _batch_while(tracer, name, condition, body, carry)
    if is_mapping():
        raise UnrolledLoop
    return capture_while(name, condition, body, carry)


class _Restart(BaseException):
    """Raised where a capture has found out more of a loop, which is to be captured again.

    `condition_differs`: True if its condition is found to differ between examples, else one more
    of its carried tensors or xs.
    """

    def __init__(self, loop: _BatchedLoop, condition_differs: bool = False) -> None:
        super().__init__()
        self.loop, self.condition_differs = loop, condition_differs


class _BatchedLoop:
    """A loop of examples that is one loop outside of the function."""

    def __init__(self, tracer: BatchTracer, carry: Flat, xs: Flat | None = None) -> None:
        self.tracer, self.carry = tracer, carry.leaves
        self.xs = xs.leaves if xs is not None else ()
        _require_untaped([*self.carry, *self.xs])
        evaluate_pending()
        tracer.settle()
        self._settings = current()
        self._carry_differs = [tracer.differs(t) for t in self.carry]
        self._xs_differ = [tracer.differs(t) for t in self.xs]
        self._ys_differ: list[bool] = []

    def run(self, loop: Callable[[list[Tensor], list[Tensor]], R]) -> R:
        """Run `loop` outside of the function, on the carries and xs of all examples."""
        while True:
            try:
                return self.tracer.outside(partial(self._run, loop))
            except _Restart as error:
                if error.loop is not self or error.condition_differs:
                    raise

    def run_while(
        self,
        name: str,
        condition: Callable[[list[Tensor]], Tensor],
        body: Callable[[Any, Any], tuple[Sequence[Tensor], Sequence[Tensor]]],
    ) -> list[Tensor]:
        """Return the last carry of one example, of a loop of unknown length."""

        def outside(carry: list[Tensor], xs: list[Tensor]) -> list[Tensor]:
            after: list[Tensor] = run_while(
                name, condition, lambda c: self.iterate(body, c)[0], flattened(carry)
            )
            return after

        return self.examples(self.run(outside))

    def _run(self, loop: Callable[[list[Tensor], list[Tensor]], R]) -> R:
        xs = _all(self.tracer, self.xs, self._xs_differ)
        rows = [_swap_axes(x) if d else x for x, d in zip(xs, self._xs_differ, strict=True)]
        return loop(_all(self.tracer, self.carry, self._carry_differs), rows)

    def iterate(
        self,
        body: Callable[[Any, Any], tuple[Sequence[Tensor], Sequence[Tensor]]],
        carry: Sequence[Tensor],
        row: Sequence[Tensor] = (),
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Return the next carry of all examples, and a row of the ys of all.

        `body`: of leaves of one example's carry, and of a row of its xs. It gives leaves.
        """
        n, before = len(carry), current()
        differs = [*self._carry_differs, *self._xs_differ]
        try:
            with self.tracer.iteration() as tracer:
                restore(self._settings)
                body_inputs = [
                    tracer.example(x, is_argument=True) if d else x
                    for x, d in zip((*carry, *row), differs, strict=False)
                ]
                after, ys = body(body_inputs[:n], body_inputs[n:])
                _require_untaped([*after, *ys])
                for k, t in enumerate(after):
                    if not self._carry_differs[k] and tracer.differs(t):
                        self._let_differ(self._carry_differs, k)
                self._ys_differ = [tracer.differs(t) for t in ys]
                carry_differs = self._carry_differs[: len(after)]
                return _all(tracer, after, carry_differs), _all(tracer, ys, self._ys_differ)
        except UnrolledLoop as error:
            for flags, inputs in ((self._carry_differs, carry), (self._xs_differ, row)):
                for k, x in enumerate(inputs):
                    if not flags[k] and error.storage is storage_of(x._expr):
                        self._let_differ(flags, k)
            raise
        finally:
            restore(before)

    def _let_differ(self, flags: list[bool], k: int) -> None:
        flags[k] = True
        raise _Restart(self)

    def examples(self, carry: Sequence[Tensor]) -> list[Tensor]:
        """Return the last carry of one example."""
        return self._examples(carry, self._carry_differs)

    def stacked(self, ys: Sequence[Tensor]) -> list[Tensor]:
        """Return the ys of one example, stacked by the loop outside."""
        swapped = [
            self.tracer.outside(partial(_swap_axes, t)) if d else t
            for t, d in zip(ys, self._ys_differ, strict=True)
        ]
        return self._examples(swapped, self._ys_differ)

    def _examples(self, tensors: Sequence[Tensor], differs: Sequence[bool]) -> list[Tensor]:
        tracer = self.tracer
        return [
            tracer.example(t) if d else tracer.adopt(t)
            for t, d in zip(tensors, differs, strict=True)
        ]


def batch_tracer() -> BatchTracer | None:
    """Return the tracer of the examples of a captured function, if its loops may be one loop."""
    tracer = tracer_api.current()
    if not isinstance(tracer, BatchTracer) or not tracer.is_capture or current().eager:
        return None
    return tracer


def _all(tracer: BatchTracer, tensors: Sequence[Tensor], differs: Sequence[bool]) -> list[Tensor]:
    """Return the tensors, with an axis of examples where they differ."""
    return [tracer.untaped(t) if d else t for t, d in zip(tensors, differs, strict=True)]


def _swap_axes(x: Tensor) -> Tensor:
    """Return a view with the first two axes, of examples and of iterations, exchanged."""
    return view(x, ("permute", (1, 0, *range(2, x.ndim))))


def _require_untaped(tensors: Sequence[Tensor]) -> None:
    """Raise UnrolledLoop if gradients flow through the iterations."""
    if current().grad and is_any_taped(tensors):
        raise UnrolledLoop


# --- the loops


def _batch_loop(tracer: BatchTracer, loop: Loop, reads: set[int] | None) -> tuple[Any, Any]:
    """Run a loop of examples as one loop outside. Raises: UnrolledLoop."""
    if any(tracer.differs(b) for b in loop.bounds if isinstance(b, Tensor)):
        return _batch_while(tracer, loop.name, *as_while(loop))[1], ()
    batch, trees = _BatchedLoop(tracer, loop.carry, loop.xs), list[Flat]()

    def outside(carry: list[Tensor], xs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        def body(i: Any, c: list[Tensor], x: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            def one(c: list[Tensor], x: list[Tensor]) -> tuple[list[Tensor], Sequence[Tensor]]:
                after, ys = loop.run_body(i, c, x)
                trees[:] = [Flat((), ys.tree)]  # no tensors: their values are those of a capture
                return after, ys.leaves

            return batch.iterate(one, c, x)

        return run_loop(loop._replace(body=body, carry=flattened(carry), xs=flattened(xs)), reads)

    after, ys = batch.run(outside)
    return rebuilt(loop.carry, batch.examples(after)), rebuilt(trees[0], batch.stacked(ys))


def _batch_while(
    tracer: BatchTracer, name: str, condition: Condition, body: Body, carry: Flat
) -> Any:
    """Run a `while_loop` of examples as one loop outside. Raises: UnrolledLoop."""
    batch = _BatchedLoop(tracer, carry)

    def one(c: list[Tensor], x: object) -> tuple[list[Tensor], tuple[()]]:
        return next_carry(name, carry, body(rebuilt(carry, c))), ()

    def ask(c: list[Tensor], x: object) -> tuple[tuple[()], list[Tensor]]:
        return (), [_require_truth(condition(rebuilt(carry, c)))]

    def goes_on(c: list[Tensor]) -> Tensor:
        truth = batch.iterate(ask, c)[1][0]
        if truth.ndim:
            raise _Restart(batch, condition_differs=True)
        return truth

    try:
        return rebuilt(carry, batch.run_while(name, goes_on, one))
    except _Restart as error:
        if error.loop is not batch:
            raise
    # not within `except`: the error holds what is pending of the capture that it ended
    return _while_any_goes_on(tracer, name, condition, body, carry)


def _while_any_goes_on(
    tracer: BatchTracer, name: str, condition: Condition, body: Body, carry: Flat
) -> Any:
    """Run a loop until all examples have stopped. It also carries which go on."""
    first, mask = copy_all(carry.leaves), tracer_api.mask()
    active = _require_truth(condition(rebuilt(carry, first)))
    active = active if mask is None else apply(LOGICAL_AND, (mask, active))
    batch = _BatchedLoop(tracer, flattened([*first, active]))

    def one(c: list[Tensor], x: object) -> tuple[list[Tensor], tuple[()]]:
        *before, active = c
        with tracer_api.masked(active):
            after = next_carry(name, carry, body(rebuilt(carry, before)))
        after = choose(active, after, before)
        with tracer_api.masked(active):
            truth = _require_truth(condition(rebuilt(carry, after)))
        return [*after, apply(LOGICAL_AND, (active, truth))], ()

    return rebuilt(carry, batch.run_while(name, lambda c: any_true(c[-1]), one)[:-1])


def _require_truth(truth: object) -> Tensor:
    """Return a condition as a bool. Raises: UnrolledLoop for a Python bool, which is constant."""
    if not isinstance(truth, Tensor):
        raise UnrolledLoop
    return truth_of(truth)
