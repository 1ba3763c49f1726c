"""Gradients that flow from the result of a captured function to what it was given.

The way back is a program of its own, which reads what the forward one has saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from ..dtypes import uint8
from ..engine import recording
from ..engine.traced_numbers import Env, Environment
from ..errors import CaptureError, GradientError
from ..graph.expr import leaf, spec
from ..memory import DataPtr
from ..memory.storage import storage_at
from ..ops import table as ops
from ..settings import current
from ..tensor.tensor import Tensor, make
from ..tensor.verbs import apply
from .bindings import Candidate, Facts, Made, Position, call_of
from .control_flow import Inner
from .executable import Call, Flowing
from .program import Place, Program
from .pytree import flattened
from .tracer import Recorder, recorded_by


class Flow(NamedTuple):
    """The way back of a capture. `position`: of the result; `given`: where gradients go; `saved`:
    where in the forward program's memory what is needed begins.
    """

    position: int
    given: list[Candidate]
    saved: list[Place]
    program: Program
    call: Call

    def of_call(self, name: str, numbers: dict[int, int], results: int) -> Flowing:
        """What has gradients flow through the result of a call.

        `numbers`: of the tensors that it reads, by candidate; `results`: how many it makes before
        what is saved.
        """
        given = [numbers[id(c)] for c in self.given]

        def flow(tensors: list[Tensor], made: list[Tensor], env: Env) -> None:
            tapes = recording.tapes
            assert tapes is not None
            ends, saved = [tensors[n] for n in given], made[results:]
            tapes.attach(name, made[self.position], ends, saved, partial(self._back, env))

        return flow

    def _back(self, env: Env, g: Tensor, saved: Sequence[Tensor]) -> Sequence[Tensor | None]:
        if not g.is_contiguous():
            g = apply(ops.COPY, (g,))
        found: Sequence[Tensor | None] = self.call.given_numbers([g, *saved], env, current())
        return found


def flow_of(
    name: str, recorder: Recorder, position: int, result: Tensor, candidates: Sequence[Candidate]
) -> Flow | None:
    """The way back from a result, captured without being run; None where it cannot be.

    It reads what is in memory when the forward program has ended: pending work that the tape has
    kept is done there.
    """
    given = [c for c in candidates if c.taped]
    tensors = [c.tensor for c in given]
    tapes = recording.tapes
    if tapes is None or recorder.device is None or not tapes.lead_straight(result, tensors):
        return None
    inner = Inner(recorder, recorder.device)
    try:
        with recorded_by(inner.recorder):
            g = make(inner.recorder.placeholder(result._expr.spec))
            found = tapes.gradients(result, tensors, g)
            made = [x for x in found if x is not None]
            places, _ = inner.finished(made, [])
    except (CaptureError, GradientError):
        return None  # whoever asks for gradients gets the error
    program = inner.recorder.program(places, f"{name}, the way back")
    saved = [*inner.recorder.from_outer.values()]
    results = [
        Made(None, inner.recorder.renumbered(p), x._expr.spec, x._expr.spec.strides)
        for p, x in zip(places, made, strict=True)
    ]
    positions = iter(range(len(made)))
    leaves = [None if x is None else Position(next(positions)) for x in found]
    call = _call(name, program, recorder.environment, g, len(saved), results, leaves)
    return Flow(position, given, saved, program, call)


def _call(
    name: str, program: Program, environment: Environment, g: Tensor, saved: int,
    results: list[Made], leaves: list[Position | None],
) -> Call:  # fmt: skip
    """What replays the way back, of the gradient that comes and of what was saved."""
    candidates = [Candidate(x, argument=i) for i, x in enumerate([g, *_beginnings(program, saved)])]
    for i, c in enumerate(candidates):
        c.input = i
    given = [c.tensor for c in candidates]
    result = flattened(tuple(Position(0) for _ in leaves))._replace(leaves=leaves)
    return call_of(
        Facts(
            f"{name}, the way back", program, given, None, None, candidates, candidates,
            environment, [], results, result, [],
        )
    )  # fmt: skip


def _beginnings(program: Program, count: int) -> list[Tensor]:
    """Tensors of one byte: what matters is where they begin."""
    device = program.opened.device
    s = spec((1,), uint8, device)
    nowhere = [storage_at(DataPtr(None, 0, 0, device), 0, device) for _ in range(count)]
    return [make(leaf(x, s, (1,), 0)) for x in nowhere]
