"""Gradients through captured loops: the backward pass is one loop, last iteration first.

The forward loop stacks the values that each iteration carries in. An iteration of the backward loop
runs the body again on them, records it, and takes its gradients. Contributions are added in the
order in which the tape of a Python loop would add them, so that the bits are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..engine.tracer_api import UnrolledLoop
from ..functions.shape.copies import concat, stack
from ..ops import table as ops
from ..settings import current, restore, set_autocast, set_recording
from ..tensor.primitives import apply
from ..tensor.tensor import Tensor
from .engine import detach, grad
from .function import Function
from .namespace import zeros
from .tape import Node
from .transforms import inputs_of

if TYPE_CHECKING:
    from ..engine.tracer_api import LoopBody, Scan

Gradients: TypeAlias = "list[Tensor | None]"

FIRST_TAPED_ARGUMENT = 3  # the first argument of `_LoopFunction` that has a gradient


class _CarryBecameTaped(BaseException):
    """A signal that an iteration carries out a gradient where it carried in none."""


class _LoopRecord(NamedTuple):
    """The facts about a loop that has run. `taped`: which carried values have gradients.

    `taped_inputs`: which of the xs and the initial values, both reversed, have gradients.
    `closure`: the tensors with gradients that the body reads from outside of the loop.
    """

    scan: Scan
    body: LoopBody
    length: int
    reverse: bool
    taped: list[bool]
    taped_xs: list[bool]
    taped_results: list[bool]
    taped_inputs: list[bool]
    closure: list[Tensor]
    untaped_reads: Sequence[Tensor]
    autocast: Mapping[str | None, Any]


class _RecordedBody:
    """The forward loop's body, run with a tape to find which values have gradients.

    The tape is dropped after each run. `used`: the positions in `closure` that gradients flow to.
    """

    def __init__(
        self, body: LoopBody, taped: list[bool], taped_xs: list[bool], closure: Sequence[Tensor]
    ) -> None:
        self.body, self.taped, self.taped_xs, self.closure = body, taped, taped_xs, closure
        self.used: set[int] = set()
        self.taped_ys: list[bool] = []

    def __call__(self, carry: list[Tensor], xs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        before = current()
        try:
            set_recording(True)
            is_taped = [*self.taped, *self.taped_xs]
            inputs = _separate_inputs([*carry, *xs], is_taped, [detach(t) for t in self.closure])
            after, ys = _run_body(self.body, self.closure, len(carry), inputs)
            if any(_has_grad(t._expr.tape) for t in inputs):
                raise UnrolledLoop  # the body calls backward()
            self._find_used_inputs([*after, *ys], inputs, len(is_taped))
            self.taped_ys = [t._expr.tape is not None for t in ys]
            for k, t in enumerate(after):
                if t._expr.tape is not None and not self.taped[k]:
                    self.taped[k] = True
                    raise _CarryBecameTaped
            return _drop_tapes(after), [*_drop_tapes(ys), *carry]
        finally:
            restore(before)

    def _find_used_inputs(
        self, results: Sequence[Tensor], inputs: Sequence[Tensor], closure_start: int
    ) -> None:
        """Add to `used` each reached input's number less `closure_start`; < 0 is no closure.

        Raises: UnrolledLoop for hooks, and where the tape leads to older nodes than the inputs.
        """
        ends = {t._expr.tape: k for k, t in enumerate(inputs) if t._expr.tape is not None}
        start = min((n.order for n in ends), default=0)
        stack = [t._expr.tape for t in results if t._expr.tape is not None]
        visited = set[Node]()
        while stack:
            n = stack.pop()
            if n in visited:
                continue
            visited.add(n)
            if n.hooks or n.retains_grad or n.order < start:
                raise UnrolledLoop
            if n in ends:
                self.used.add(ends[n] - closure_start)
                continue
            stack += [e.node for e in n.edges if e is not None]


def run_loop(
    scan: Scan,
    body: LoopBody,
    rerun_body: LoopBody,
    carry: Sequence[Tensor],
    xs: Sequence[Tensor],
    length: int,
    reverse: bool,
    closure: Sequence[Tensor],
    find_untaped_reads: Callable[[], Sequence[Tensor]],
) -> tuple[list[Tensor], list[Tensor]]:
    """Run a captured loop, recorded as one tape node; return the last carry and stacked ys.

    It implements `tracer_api.Tapes.run_loop`. Raises: UnrolledLoop, also under hooks for saved
    values and while anomalies are searched for.
    """
    settings = current()
    if settings.saved_value_hooks is not None or settings.anomaly is not None:
        raise UnrolledLoop
    xs = [apply(ops.COPY, (t,)) for t in xs]
    inputs = [*reversed(xs), *reversed(carry)]
    has_tape = [t._expr.tape is not None for t in inputs]
    taped_xs, taped = has_tape[: len(xs)][::-1], has_tape[len(xs) :][::-1]
    recorded_body = _RecordedBody(body, taped, taped_xs, closure)
    after, stacked = _run_forward_loop(scan, recorded_body, carry, xs, length, reverse)
    used = [t for k, t in enumerate(closure) if k in recorded_body.used]
    taped_results = [*taped, *recorded_body.taped_ys, *taped]
    loop_record = _LoopRecord(
        scan,
        rerun_body,
        length,
        reverse,
        taped,
        taped_xs,
        taped_results,
        has_tape,
        used,
        find_untaped_reads(),
        settings.autocast,
    )
    taped_given = [t for t in inputs if t._expr.tape is not None]
    results = _LoopFunction.apply(loop_record, xs, [*after, *stacked], *used, *taped_given)
    n = len(carry)
    return [*results[:n]], [*results[n : len(results) - n]]


def _run_forward_loop(
    scan: Scan,
    recorded_body: _RecordedBody,
    carry: Sequence[Tensor],
    xs: Sequence[Tensor],
    length: int,
    reverse: bool,
) -> tuple[list[Tensor], list[Tensor]]:
    """Run the forward loop, again each time one more carried value turns out to have a gradient."""
    before = current()
    carry, xs = _detach_all(carry), _detach_all(xs)
    try:
        set_recording(False)
        while True:
            try:
                return scan(recorded_body, carry, xs, length, reverse)
            except _CarryBecameTaped:
                continue
    finally:
        restore(before)


class _LoopFunction(Function):
    """The tape node of a loop that has run."""

    _fills_zeros = False

    @staticmethod
    def forward(
        ctx: Any, facts: _LoopRecord, xs: list[Tensor], results: list[Tensor], *taped_inputs: Tensor
    ) -> tuple[Tensor, ...]:
        """Save the loop's inputs and stacked carries, and return its results unchanged."""
        ctx.known = facts
        constant = [t for t, taped in zip(results, facts.taped_results, strict=True) if not taped]
        ctx.mark_non_differentiable(*constant)
        stacked = results[len(results) - len(facts.taped) :]
        ctx.save_for_backward(*facts.untaped_reads, *facts.closure, *xs, *stacked)
        return tuple(results)

    @staticmethod
    def _resume_arguments(ctx: Any) -> range:
        """Return the positions of the closure among the arguments of `apply`."""
        return range(FIRST_TAPED_ARGUMENT, FIRST_TAPED_ARGUMENT + len(ctx.known.closure))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """Run the backward loop; return the gradients of the closure and of the taped inputs."""
        facts: _LoopRecord = ctx.known
        back = _BackwardLoop(facts, [*ctx.saved_tensors[len(facts.untaped_reads) :]], [*gradients])
        sent = [ctx._resumed_gradients.get(k) for k in _LoopFunction._resume_arguments(ctx)]
        of_carry, of_xs, of_closure = back.run(sent)
        of_inputs = [*reversed(of_xs), *reversed(of_carry)]
        of_taped = [
            g for g, is_given in zip(of_inputs, facts.taped_inputs, strict=True) if is_given
        ]
        return (*(None,) * FIRST_TAPED_ARGUMENT, *of_closure, *of_taped)


_LoopFunction.__name__ = "a loop"  # in errors


class _BackwardLoop:
    """The backward loop of a captured loop.

    `saved`: the closure, the xs, and the values that each iteration carries in, stacked.
    `gradients`: of the last carried values, of the stacked results, and of the values that each
    iteration carries in.
    """

    def __init__(self, facts: _LoopRecord, saved: list[Tensor], gradients: Gradients) -> None:
        n, w = len(facts.taped), len(facts.closure)
        self.loop_record, self.closure, self.carry_gradients = facts, saved[:w], gradients[:n]
        self.rows: Gradients = [*saved[w:], *gradients[n:]]  # all that has an axis of iterations
        self.xs = len(saved) - w - n

    def run(self, of_closure: Gradients) -> tuple[Gradients, Gradients, Gradients]:
        """Return gradients of the initial values, the xs and the closure; None where none flows.

        `of_closure`: gradients that later work has sent there. Iterations run one by one until the
        set of values with gradients is stable; the rest runs as one loop.
        """
        facts, n = self.loop_record, len(self.carry_gradients)
        iterations = [*range(facts.length)] if facts.reverse else [*range(facts.length)][::-1]
        state, alone = [*self.carry_gradients, *of_closure], dict[int, Gradients]()
        while iterations:
            k, before = iterations.pop(0), _is_present(state)
            state, alone[k] = self._backpropagate_iteration(
                state, [None if t is None else t[k] for t in self.rows]
            )
            if _is_present(state) == before:
                break
        looped = None
        if iterations:
            state, looped = self._run_as_loop(
                state, min(iterations), max(iterations) + 1, _is_present(alone[k])
            )
        of_xs = [self._join_rows(i, alone, looped) for i in range(self.xs)]
        return state[:n], of_xs, state[n:]

    def _join_rows(
        self, i: int, single_rows: dict[int, Gradients], looped_rows: Gradients | None
    ) -> Tensor | None:
        """Return the gradient of one of the xs, from those of its rows, or None if all are None."""
        of_rows, whole = [single_rows[k][i] for k in sorted(single_rows)], None
        if looped_rows is not None:
            whole = looped_rows[i]
        if whole is None and all(g is None for g in of_rows):
            return None
        x = self.rows[i]
        assert x is not None
        like = x[0]._expr.spec
        pieces = [stack([zeros(like) if g is None else g for g in of_rows])]
        if looped_rows is not None:
            if whole is None:
                whole = zeros(x[len(of_rows) :]._expr.spec)
            pieces.insert(len(pieces) if self.loop_record.reverse else 0, whole)
        return concat(pieces)

    def _backpropagate_iteration(
        self, state: Gradients, rows: Gradients
    ) -> tuple[Gradients, Gradients]:
        """Run an iteration again and backpropagate; return gradients of state in and of xs.

        `state`: gradients of what it carries out and of the closure. Those returned are of what it
        carries in and of the closure.
        """
        loop_record, n, m = (
            self.loop_record,
            len(self.carry_gradients),
            len(self.carry_gradients) + self.xs,
        )
        inputs_given = _drop_missing([*rows[self.xs : m], *rows[: self.xs]])
        taped = [*loop_record.taped, *loop_record.taped_xs]
        before = current()
        try:
            set_recording(True)
            set_autocast(loop_record.autocast)
            inputs = _separate_inputs(inputs_given, taped, self.closure)
            after, ys = _run_body(loop_record.body, loop_record.closure, n, inputs)
            results = [*inputs[m:], *after, *ys]
            of_results = [*state[n:], *state[:n], *rows[m : m + len(ys)]]
            pairs = [
                (t, g)
                for t, g in zip(results, of_results, strict=True)
                if g is not None and t._expr.tape is not None
            ]
            of_inputs: Gradients = [None] * len(inputs)
            if pairs:
                ends = [k for k, t in enumerate(inputs) if t._expr.tape is not None]
                of_ends = grad(
                    [t for t, _ in pairs],
                    [inputs[k] for k in ends],
                    [g for _, g in pairs],
                    retain_graph=True,
                    create_graph=before.grad,
                    allow_unused=True,
                )
                for k, g in zip(ends, of_ends, strict=True):
                    of_inputs[k] = g
        finally:
            restore(before)
        of_carried = rows[m + len(ys) :]
        carried = [
            a if b is None else b if a is None else b + a
            for a, b in zip(of_inputs[:n], of_carried, strict=True)
        ]
        return [*carried, *of_inputs[m:]], of_inputs[n:m]

    def _run_as_loop(
        self, state: Gradients, begin: int, end: int, of_xs: list[bool]
    ) -> tuple[Gradients, Gradients]:
        """Run the backward of iterations `begin` to `end` - 1 as one loop; return gradients.

        They are those of the state and, stacked, those of the xs.
        """
        is_state, is_row = _is_present(state), _is_present(self.rows)

        def step(carry: list[Tensor], xs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            """Run one backward iteration on the gradients and rows that are present."""
            after, of_rows = self._backpropagate_iteration(
                _fill_gaps(is_state, carry), _fill_gaps(is_row, xs)
            )
            return _drop_missing(after), _drop_missing(of_rows)

        rows = [t[begin:end] for t in _drop_missing(self.rows)]
        reverse = not self.loop_record.reverse
        after, of_rows = self.loop_record.scan(
            step, _drop_missing(state), rows, end - begin, reverse, self.closure
        )
        return _fill_gaps(is_state, after), _fill_gaps(of_xs, of_rows)


def _is_present(gradients: Gradients) -> list[bool]:
    """Return for each gradient True if it is not None."""
    return [g is not None for g in gradients]


def _drop_missing(gradients: Gradients) -> list[Tensor]:
    """Return the gradients that are not None, in order."""
    return [g for g in gradients if g is not None]


def _fill_gaps(presence: Sequence[bool], tensors: Sequence[Tensor]) -> Gradients:
    """Return the tensors at the positions that have one, and None elsewhere."""
    remaining = iter(tensors)
    return [next(remaining) if is_present else None for is_present in presence]


def _detach_all(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors, those on a tape detached."""
    return [t if t._expr.tape is None else detach(t) for t in tensors]


def _drop_tapes(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors without tapes: computed ones detached, pending ones changed in place."""
    results = []
    for t in tensors:
        if t._expr.op is None:
            t = detach(t)
        else:
            t._expr.tape = None
        results.append(t)
    return results


def _has_grad(n: Node | None) -> bool:
    """Return True if a tape node, or one that it leads to, has a gradient."""
    if n is None:
        return False
    return n.grad is not None or any(e is not None and _has_grad(e.node) for e in n.edges)


def _separate_inputs(
    tensors: Sequence[Tensor], taped: Sequence[bool], closure: Sequence[Tensor]
) -> list[Tensor]:
    """Return taped tensors and the closure as separate inputs for gradients, others unchanged.

    A body may write to them.
    """
    own = [inputs_of([t])[0] if is_taped else t for t, is_taped in zip(tensors, taped, strict=True)]
    return [*own, *inputs_of(inputs_of(closure))]


def _run_body(
    body: LoopBody, closure: Sequence[Tensor], carried: int, inputs: Sequence[Tensor]
) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
    """Run a body on copies of its inputs, and with the last ones in place of its closure.

    A write to its closure is a write to that memory, which the capture of the loop sees.
    """
    n = len(inputs) - len(closure)
    own = [apply(ops.COPY, (t,)) for t in inputs[:n]]
    before = [t._expr for t in closure]
    try:
        for t, x in zip(closure, inputs[n:], strict=True):
            e = detach(x)._expr
            e.tape = x._expr.tape
            t._expr = e
        return body(own[:carried], own[carried:])
    finally:
        for t, e in zip(closure, before, strict=True):
            t._expr = e
