"""Gradients through captured loops: the way back is one loop over the iterations, the last first.

The forward loop stacks what each iteration carries in. An iteration of the backward loop runs the
body again on that, records it, and takes its gradients. Contributions are added up in the order in
which the tape of a Python loop would add them, so that the bits are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..engine.recording import UnrolledLoop
from ..functions.shape.copies import concat, stack
from ..ops import table as ops
from ..settings import current, record, restore
from ..tensor.tensor import Tensor
from ..tensor.verbs import apply
from .engine import detach, grad
from .function import Function
from .namespace import zeros
from .tape import Node
from .transforms import inputs_of

if TYPE_CHECKING:
    from ..engine.recording import LoopBody, Scan

Gradients: TypeAlias = "list[Tensor | None]"

GIVEN_FIRST = 3  # the first argument of `_Loop` that has a gradient


class _OneMoreTaped(BaseException):
    """Raised where an iteration gives a value with a gradient in place of one without."""


class _Record(NamedTuple):
    """What is known of a loop when it has run. `taped`: which carried values have gradients.

    `given`: which of the xs and the initial values, both reversed, have them. `closure`: what has
    them of what the body finds outside of the loop.
    """

    scan: Scan
    body: LoopBody
    length: int
    reverse: bool
    taped: list[bool]
    taped_xs: list[bool]
    taped_results: list[bool]
    given: list[bool]
    closure: list[Tensor]
    watched: Sequence[Tensor]


class _RecordedBody:
    """The body of the forward loop. It finds out what gradients flow through, and records nothing.

    `used`: the positions in `closure` of what gradients flow to.
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
            record(True)
            is_taped = [*self.taped, *self.taped_xs]
            inputs = _inputs([*carry, *xs], is_taped, [detach(t) for t in self.closure])
            after, ys = _run_body(self.body, self.closure, len(carry), inputs)
            if any(_has_grad(t._expr.tape) for t in inputs):
                raise UnrolledLoop  # the body calls backward()
            self._follow([*after, *ys], inputs, len(is_taped))
            self.taped_ys = [t._expr.tape is not None for t in ys]
            for k, t in enumerate(after):
                if t._expr.tape is not None and not self.taped[k]:
                    self.taped[k] = True
                    raise _OneMoreTaped
            return _untaped(after), [*_untaped(ys), *carry]
        finally:
            restore(before)

    def _follow(self, results: Sequence[Tensor], inputs: Sequence[Tensor], outside: int) -> None:
        """Follow the tape to the inputs. Raises: UnrolledLoop where it leads elsewhere."""
        ends = {t._expr.tape: k for k, t in enumerate(inputs) if t._expr.tape is not None}
        start = min((n.order for n in ends), default=0)
        stack = [t._expr.tape for t in results if t._expr.tape is not None]
        seen = set[Node]()
        while stack:
            n = stack.pop()
            if n in seen:
                continue
            seen.add(n)
            if n.hooks or n.retains or n.order < start:
                raise UnrolledLoop
            if n in ends:
                self.used.add(ends[n] - outside)
                continue
            stack += [e.node for e in n.edges if e is not None]


def run_loop(
    scan: Scan, body: LoopBody, again: LoopBody, carry: Sequence[Tensor], xs: Sequence[Tensor],
    length: int, reverse: bool, closure: Sequence[Tensor],
    watched: Callable[[], Sequence[Tensor]],
) -> tuple[list[Tensor], list[Tensor]]:  # fmt: skip
    """See `recording.Tapes`."""
    settings = current()
    if settings.saving is not None or settings.anomaly is not None:
        raise UnrolledLoop
    xs = [apply(ops.COPY, (t,)) for t in xs]
    given = [*reversed(xs), *reversed(carry)]
    is_given = [t._expr.tape is not None for t in given]
    taped_xs, taped = is_given[: len(xs)][::-1], is_given[len(xs) :][::-1]
    recorded = _RecordedBody(body, taped, taped_xs, closure)
    after, stacked = _run(scan, recorded, carry, xs, length, reverse)
    used = [t for k, t in enumerate(closure) if k in recorded.used]
    results = [*taped, *recorded.taped_ys, *taped]
    known = _Record(
        scan, again, length, reverse, taped, taped_xs, results, is_given, used, watched()
    )
    taped_given = [t for t in given if t._expr.tape is not None]
    made = _Loop.apply(known, xs, [*after, *stacked], *used, *taped_given)
    n = len(carry)
    return [*made[:n]], [*made[n : len(made) - n]]


def _run(
    scan: Scan, recorded: _RecordedBody, carry: Sequence[Tensor], xs: Sequence[Tensor],
    length: int, reverse: bool,
) -> tuple[list[Tensor], list[Tensor]]:  # fmt: skip
    """Run the forward loop, once it is known which carried values have gradients."""
    before = current()
    carry, xs = _detached(carry), _detached(xs)
    try:
        record(False)
        while True:
            try:
                return scan(recorded, carry, xs, length, reverse)
            except _OneMoreTaped:
                continue
    finally:
        restore(before)


class _Loop(Function):
    """A loop that has run, as one place on the tape."""

    _fills_zeros = False

    @staticmethod
    def forward(
        ctx: Any, known: _Record, xs: list[Tensor], results: list[Tensor], *given: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.known = known
        constant = [t for t, taped in zip(results, known.taped_results, strict=True) if not taped]
        ctx.mark_non_differentiable(*constant)
        stacked = results[len(results) - len(known.taped) :]
        ctx.save_for_backward(*known.watched, *known.closure, *xs, *stacked)
        return tuple(results)

    @staticmethod
    def _resumed(ctx: Any) -> range:
        return range(GIVEN_FIRST, GIVEN_FIRST + len(ctx.known.closure))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        known: _Record = ctx.known
        back = _BackwardLoop(known, [*ctx.saved_tensors[len(known.watched) :]], [*gradients])
        sent = [ctx._sent.get(k) for k in _Loop._resumed(ctx)]
        of_carry, of_xs, of_closure = back.run(sent)
        given = [*reversed(of_xs), *reversed(of_carry)]
        found = [g for g, is_given in zip(given, known.given, strict=True) if is_given]
        return (*(None,) * GIVEN_FIRST, *of_closure, *found)


_Loop.__name__ = "a loop"  # in errors


class _BackwardLoop:
    """The backward loop of a loop.

    `saved`: the closure, the xs, and what each iteration carries in, stacked. `gradients`: of what
    is carried in the end, of the stacked results, and of what each iteration carries in.
    """

    def __init__(self, known: _Record, saved: list[Tensor], gradients: Gradients) -> None:
        n, w = len(known.taped), len(known.closure)
        self.known, self.closure, self.of_carry = known, saved[:w], gradients[:n]
        self.rows: Gradients = [*saved[w:], *gradients[n:]]  # all that has an axis of iterations
        self.xs = len(saved) - w - n

    def run(self, of_closure: Gradients) -> tuple[Gradients, Gradients, Gradients]:
        """Return gradients of the initial values, the xs and the closure.

        `of_closure`: what has come there from later work. The first iterations are no part of the
        loop, until it is known what has gradients.
        """
        known, n = self.known, len(self.of_carry)
        places = [*range(known.length)] if known.reverse else [*range(known.length)][::-1]
        state, alone = [*self.of_carry, *of_closure], dict[int, Gradients]()
        while places:
            k, before = places.pop(0), _presence(state)
            state, alone[k] = self._iterate(state, [None if t is None else t[k] for t in self.rows])
            if _presence(state) == before:
                break
        looped = None
        if places:
            state, looped = self._loop(state, min(places), max(places) + 1, _presence(alone[k]))
        of_xs = [self._joined(i, alone, looped) for i in range(self.xs)]
        return state[:n], of_xs, state[n:]

    def _joined(
        self, i: int, alone: dict[int, Gradients], looped: Gradients | None
    ) -> Tensor | None:
        """Return the gradient of one of the xs, from those of its rows."""
        of_rows, whole = [alone[k][i] for k in sorted(alone)], None
        if looped is not None:
            whole = looped[i]
        if whole is None and all(g is None for g in of_rows):
            return None
        x = self.rows[i]
        assert x is not None
        like = x[0]._expr.spec
        parts = [stack([zeros(like) if g is None else g for g in of_rows])]
        if looped is not None:
            if whole is None:
                whole = zeros(x[len(of_rows) :]._expr.spec)
            parts.insert(len(parts) if self.known.reverse else 0, whole)
        return concat(parts)

    def _iterate(self, state: Gradients, rows: Gradients) -> tuple[Gradients, Gradients]:
        """Return gradients of what an iteration carries in and of the closure, and of its xs.

        `state`: gradients of what it carries out and of the closure.
        """
        known, n, m = self.known, len(self.of_carry), len(self.of_carry) + self.xs
        given = _present([*rows[self.xs : m], *rows[: self.xs]])
        taped = [*known.taped, *known.taped_xs]
        before = current()
        try:
            record(True)
            inputs = _inputs(given, taped, self.closure)
            after, ys = _run_body(known.body, known.closure, n, inputs)
            results = [*inputs[m:], *after, *ys]
            of_results = [*state[n:], *state[:n], *rows[m : m + len(ys)]]
            pairs = [
                (t, g)
                for t, g in zip(results, of_results, strict=True)
                if g is not None and t._expr.tape is not None
            ]
            found: Gradients = [None] * len(inputs)
            if pairs:
                ends = [k for k, t in enumerate(inputs) if t._expr.tape is not None]
                of_ends = grad(
                    [t for t, _ in pairs], [inputs[k] for k in ends], [g for _, g in pairs],
                    retain_graph=True, create_graph=before.grad, allow_unused=True,
                )  # fmt: skip
                for k, g in zip(ends, of_ends, strict=True):
                    found[k] = g
        finally:
            restore(before)
        of_carried = rows[m + len(ys) :]
        carried = [
            a if b is None else b if a is None else b + a
            for a, b in zip(found[:n], of_carried, strict=True)
        ]
        return [*carried, *found[m:]], found[n:m]

    def _loop(
        self, state: Gradients, begin: int, end: int, of_xs: list[bool]
    ) -> tuple[Gradients, Gradients]:
        """Run all iterations from `begin` to `end` in one loop."""
        is_state, is_row = _presence(state), _presence(self.rows)

        def step(carry: list[Tensor], xs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            after, found = self._iterate(_spread(is_state, carry), _spread(is_row, xs))
            return _present(after), _present(found)

        rows = [t[begin:end] for t in _present(self.rows)]
        reverse = not self.known.reverse
        after, found = self.known.scan(
            step, _present(state), rows, end - begin, reverse, self.closure
        )
        return _spread(is_state, after), _spread(of_xs, found)


def _presence(gradients: Gradients) -> list[bool]:
    return [g is not None for g in gradients]


def _present(gradients: Gradients) -> list[Tensor]:
    return [g for g in gradients if g is not None]


def _spread(presence: Sequence[bool], tensors: Sequence[Tensor]) -> Gradients:
    """Return the tensors at the places where there is one."""
    given = iter(tensors)
    return [next(given) if is_present else None for is_present in presence]


def _detached(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [t if t._expr.tape is None else detach(t) for t in tensors]


def _untaped(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return results of a body without their tapes; what is pending stays so, and is fused."""
    found = []
    for t in tensors:
        if t._expr.op is None:
            t = detach(t)
        else:
            t._expr.tape = None
        found.append(t)
    return found


def _has_grad(n: Node | None) -> bool:
    """Return True if a place on the tape, or one that it leads to, has got a gradient."""
    if n is None:
        return False
    return n.grad is not None or any(e is not None and _has_grad(e.node) for e in n.edges)


def _inputs(
    given: Sequence[Tensor], taped: Sequence[bool], closure: Sequence[Tensor]
) -> list[Tensor]:
    """Return tensors whose gradients can be asked for, also if a body writes to them."""
    own = [inputs_of([t])[0] if is_taped else t for t, is_taped in zip(given, taped, strict=True)]
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
