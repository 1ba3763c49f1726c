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
    LoopSpec,
    choose,
    convert_to_while,
    copy_all,
    is_any_taped,
    is_mapping,
    next_carry,
    truth_of,
)
from .pytree import FlatTree, flatten, rebuild
from .tracer import evaluate_pending

R = TypeVar("R")
Condition = Callable[[Any], object]
Body = Callable[[Any], Any]


def run_loop(loop: LoopSpec, reads: set[int] | None = None) -> tuple[Any, Any]:
    """Run a loop with a captured body, or raise UnrolledLoop; return (carry, ys); fill `reads`.

    See `capture_loop`. Under a captured `dt.vmap` it is one loop for all examples; under another
    `dt.vmap` UnrolledLoop is raised.
    """
    if (tracer := batch_tracer()) is not None:
        return _batch_loop(tracer, loop, reads)
    if is_mapping():
        raise UnrolledLoop
    return capture_loop(loop, reads)


def run_while(name: str, condition: Condition, body: Body, carry: FlatTree) -> Any:
    """Run a `while_loop` with a captured body, or raise UnrolledLoop; return the last carry.

    Under a captured `dt.vmap` it is one loop for all examples; under another `dt.vmap` UnrolledLoop
    is raised.
    """
    if (tracer := batch_tracer()) is not None:
        return _batch_while(tracer, name, condition, body, carry)
    if is_mapping():
        raise UnrolledLoop
    return capture_while(name, condition, body, carry)


class _CaptureRestart(BaseException):
    """Raised where a capture has found out more of a loop, which is to be captured again.

    `condition_differs`: True if its condition is found to differ between examples, else one more
    of its carried tensors or xs.
    """

    def __init__(self, loop: _BatchedLoop, condition_differs: bool = False) -> None:
        super().__init__()
        self.loop, self.condition_differs = loop, condition_differs


class _BatchedLoop:
    """A loop of examples that is one loop outside of the function."""

    def __init__(self, tracer: BatchTracer, carry: FlatTree, xs: FlatTree | None = None) -> None:
        self.tracer, self.carry = tracer, carry.leaves
        self.xs = xs.leaves if xs is not None else ()
        _require_untaped([*self.carry, *self.xs])
        evaluate_pending()
        tracer.check_pending_reads()
        self._settings = current()
        self._carry_differs = [tracer.is_batched_tensor(t) for t in self.carry]
        self._xs_differ = [tracer.is_batched_tensor(t) for t in self.xs]
        self._ys_differ: list[bool] = []

    def run(self, loop: Callable[[list[Tensor], list[Tensor]], R]) -> R:
        """Run `loop` outside of `vmap` on batched values; repeat it if more of them differ."""
        while True:
            try:
                return self.tracer.run_outside(partial(self._run, loop))
            except _CaptureRestart as error:
                if error.loop is not self or error.condition_differs:
                    raise

    def run_while(
        self,
        name: str,
        condition: Callable[[list[Tensor]], Tensor],
        body: Callable[[Any, Any], tuple[Sequence[Tensor], Sequence[Tensor]]],
    ) -> list[Tensor]:
        """Run a loop of unknown length outside of `vmap`; return the last carry of one example."""

        def outside(carry: list[Tensor], xs: list[Tensor]) -> list[Tensor]:
            """Run the loop on the carry of all examples and return the last carry."""
            after: list[Tensor] = run_while(
                name, condition, lambda c: self.iterate(body, c)[0], flatten(carry)
            )
            return after

        return self.examples(self.run(outside))

    def _run(self, loop: Callable[[list[Tensor], list[Tensor]], R]) -> R:
        """Call `loop` with the carry and the xs, batched where they differ, iterations first."""
        xs = _batch_differing(self.tracer, self.xs, self._xs_differ)
        rows = [_swap_axes(x) if d else x for x, d in zip(xs, self._xs_differ, strict=True)]
        return loop(_batch_differing(self.tracer, self.carry, self._carry_differs), rows)

    def iterate(
        self,
        body: Callable[[Any, Any], tuple[Sequence[Tensor], Sequence[Tensor]]],
        carry: Sequence[Tensor],
        row: Sequence[Tensor] = (),
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Trace `body` for one example; return all examples' (carry, ys), or raise a signal.

        `body`: of leaves of one example's carry, and of a row of its xs. It gives leaves.
        _CaptureRestart is raised if one more tensor differs between examples, UnrolledLoop for
        gradients and for a write to other older memory.
        """
        n, before = len(carry), current()
        differs = [*self._carry_differs, *self._xs_differ]
        try:
            with self.tracer.iteration_scope() as tracer:
                restore(self._settings)
                body_inputs = [
                    tracer.create_example(x, is_argument=True) if d else x
                    for x, d in zip((*carry, *row), differs, strict=False)
                ]
                after, ys = body(body_inputs[:n], body_inputs[n:])
                _require_untaped([*after, *ys])
                for k, t in enumerate(after):
                    if not self._carry_differs[k] and tracer.is_batched_tensor(t):
                        self._let_differ(self._carry_differs, k)
                self._ys_differ = [tracer.is_batched_tensor(t) for t in ys]
                carry_differs = self._carry_differs[: len(after)]
                return _batch_differing(tracer, after, carry_differs), _batch_differing(
                    tracer, ys, self._ys_differ
                )
        except UnrolledLoop as error:
            for flags, inputs in ((self._carry_differs, carry), (self._xs_differ, row)):
                for k, x in enumerate(inputs):
                    if not flags[k] and error.storage is storage_of(x._expr):
                        self._let_differ(flags, k)
            raise
        finally:
            restore(before)

    def _let_differ(self, flags: list[bool], k: int) -> None:
        """Set flag `k` and raise _CaptureRestart, always."""
        flags[k] = True
        raise _CaptureRestart(self)

    def examples(self, carry: Sequence[Tensor]) -> list[Tensor]:
        """Convert the last carry of all examples to tensors that stand for one."""
        return self._create_examples(carry, self._carry_differs)

    def stacked(self, ys: Sequence[Tensor]) -> list[Tensor]:
        """Convert the outer loop's stacked ys of all examples to tensors that stand for one."""
        swapped = [
            self.tracer.run_outside(partial(_swap_axes, t)) if d else t
            for t, d in zip(ys, self._ys_differ, strict=True)
        ]
        return self._create_examples(swapped, self._ys_differ)

    def _create_examples(self, tensors: Sequence[Tensor], differs: Sequence[bool]) -> list[Tensor]:
        """Return one example's tensor where `differs`; else adopt and return the shared one."""
        tracer = self.tracer
        return [
            tracer.create_example(t) if d else tracer.adopt_tensor(t)
            for t, d in zip(tensors, differs, strict=True)
        ]


def batch_tracer() -> BatchTracer | None:
    """Return this thread's `vmap` tracer if it is inside of a capture and not eager; else None."""
    tracer = tracer_api.current()
    if not isinstance(tracer, BatchTracer) or not tracer.is_capture or current().eager:
        return None
    return tracer


def _batch_differing(
    tracer: BatchTracer, tensors: Sequence[Tensor], differs: Sequence[bool]
) -> list[Tensor]:
    """Return the tensors, those that differ with all examples first and without gradients."""
    return [tracer.full_batch(t) if d else t for t, d in zip(tensors, differs, strict=True)]


def _swap_axes(x: Tensor) -> Tensor:
    """Return a view with the first two axes, of examples and of iterations, exchanged."""
    return view(x, ("permute", (1, 0, *range(2, x.ndim))))


def _require_untaped(tensors: Sequence[Tensor]) -> None:
    """Raise UnrolledLoop if gradients are on and flow through one of the tensors."""
    if current().grad and is_any_taped(tensors):
        raise UnrolledLoop


# --- the loops


def _batch_loop(tracer: BatchTracer, loop: LoopSpec, reads: set[int] | None) -> tuple[Any, Any]:
    """Run a loop of examples as one loop of batches; fill `reads`; return (carry, ys).

    If a bound differs between examples it is a while loop, which has no ys and fills no `reads`.
    Raises: UnrolledLoop if gradients flow, or the body writes to older memory that examples share.
    """
    if any(tracer.is_batched_tensor(b) for b in loop.bounds if isinstance(b, Tensor)):
        return _batch_while(tracer, loop.name, *convert_to_while(loop))[1], ()
    batch, trees = _BatchedLoop(tracer, loop.carry, loop.xs), list[FlatTree]()

    def run_outer(carry: list[Tensor], xs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Run the loop of batches outside of the mapped function; return leaves."""

        def body(i: Any, c: list[Tensor], x: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            """Run one iteration for all examples, by the body of one."""

            def run_example(
                c: list[Tensor], x: list[Tensor]
            ) -> tuple[list[Tensor], Sequence[Tensor]]:
                """Run the body of one example; store the tree of its ys in `trees`."""
                after, ys = loop.run_body(i, c, x)
                trees[:] = [
                    FlatTree((), ys.tree)
                ]  # no tensors: their values are those of a capture
                return after, ys.leaves

            return batch.iterate(run_example, c, x)

        return run_loop(loop._replace(body=body, carry=flatten(carry), xs=flatten(xs)), reads)

    after, ys = batch.run(run_outer)
    return rebuild(loop.carry, batch.examples(after)), rebuild(trees[0], batch.stacked(ys))


def _batch_while(
    tracer: BatchTracer, name: str, condition: Condition, body: Body, carry: FlatTree
) -> Any:
    """Run an example's `while_loop` as one of batches; return its carry.

    If the condition differs between examples, the loop runs until all have stopped.
    Raises: UnrolledLoop if gradients flow, the condition is no tensor, or the body writes to older
    memory that examples share.
    """
    batch = _BatchedLoop(tracer, carry)

    def run_example(c: list[Tensor], x: object) -> tuple[list[Tensor], tuple[()]]:
        return next_carry(name, carry, body(rebuild(carry, c))), ()

    def evaluate_condition(c: list[Tensor], x: object) -> tuple[tuple[()], list[Tensor]]:
        return (), [_require_truth(condition(rebuild(carry, c)))]

    def should_continue(c: list[Tensor]) -> Tensor:
        """Return the condition; raise _CaptureRestart if it differs between examples."""
        truth = batch.iterate(evaluate_condition, c)[1][0]
        if truth.ndim:
            raise _CaptureRestart(batch, condition_differs=True)
        return truth

    try:
        return rebuild(carry, batch.run_while(name, should_continue, run_example))
    except _CaptureRestart as error:
        if error.loop is not batch:
            raise
    # not within `except`: the error holds what is pending of the capture that it ended
    return _run_while_any_continues(tracer, name, condition, body, carry)


def _run_while_any_continues(
    tracer: BatchTracer, name: str, condition: Condition, body: Body, carry: FlatTree
) -> Any:
    """Run an example's loop until all examples stop; return its carry.

    The loop also carries a bool for each example. An example that has stopped keeps its carry, and
    writes nothing in place.
    Raises: UnrolledLoop as `_batch_while`.
    """
    first, mask = copy_all(carry.leaves), tracer_api.current_write_mask()
    active = _require_truth(condition(rebuild(carry, first)))
    active = active if mask is None else apply(LOGICAL_AND, (mask, active))
    batch = _BatchedLoop(tracer, flatten([*first, active]))

    def run_example(c: list[Tensor], x: object) -> tuple[list[Tensor], tuple[()]]:
        """Run one iteration of an example that is active; else keep its carry."""
        *before, active = c
        with tracer_api.use_write_mask(active):
            after = next_carry(name, carry, body(rebuild(carry, before)))
        after = choose(active, after, before)
        with tracer_api.use_write_mask(active):
            truth = _require_truth(condition(rebuild(carry, after)))
        return [*after, apply(LOGICAL_AND, (active, truth))], ()

    return rebuild(carry, batch.run_while(name, lambda c: any_true(c[-1]), run_example)[:-1])


def _require_truth(truth: object) -> Tensor:
    """Return a tensor as a bool without axes. Raises: UnrolledLoop for other objects."""
    if not isinstance(truth, Tensor):
        raise UnrolledLoop
    return truth_of(truth)
