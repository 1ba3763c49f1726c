"""Gradients that flow from the result of a captured function to what it was given.

The backward program reads what the forward one has saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from .. import callbacks
from ..dtypes import uint8
from ..engine import recording
from ..engine.traced_numbers import Env
from ..errors import CaptureError, GradientError
from ..graph.expr import leaf, spec
from ..memory import DataPtr
from ..memory.storage import storage_at
from ..ops import table as ops
from ..settings import current
from ..tensor.tensor import Tensor, make
from ..tensor.verbs import apply
from .bindings import KnownTensor, Result, ResultNumber, Trace, bind
from .captured_loops import BodyCapture
from .executable import AttachGradients, Executable
from .program import Place, Program
from .pytree import flattened
from .tracer import Recorder, evaluate_pending


class Flow(NamedTuple):
    """The backward program of a capture.

    `result`: the number of the result that gradients come to. `ends`: the tensors to which they
    go. `saved`: where in the forward program's memory begins what the backward one reads.
    """

    result: int
    ends: list[KnownTensor]
    saved: list[Place]
    program: Program
    executable: Executable

    def attach(self, name: str, numbers: dict[int, int], results: int) -> AttachGradients:
        """Return what has gradients flow through the result of a call.

        `numbers`: the input slots of known tensors, by id. `results`: how many a call makes before
        what is saved.
        """
        ends = [numbers[id(k)] for k in self.ends]

        def attach(tensors: list[Tensor], made: list[Tensor], env: Env) -> None:
            given, saved = [tensors[n] for n in ends], made[results:]
            callbacks.tapes.attach(
                name, made[self.result], given, saved, partial(self._backward, env)
            )

        return attach

    def _backward(self, env: Env, g: Tensor, saved: Sequence[Tensor]) -> Sequence[Tensor | None]:
        if not g.is_contiguous():
            g = apply(ops.COPY, (g,))
        found: Sequence[Tensor | None] = self.executable.run_with([g, *saved], env, current())
        return found


def flow_of(
    name: str, recorder: Recorder, number: int, result: Tensor, known: Sequence[KnownTensor]
) -> Flow | None:
    """Return the way back from a result, captured without being run; None where there is none.

    It reads what is in memory when the forward program has ended: pending work that the tape has
    kept is done there.
    """
    ends = [k for k in known if k.tape is not None]
    tensors = [k.tensor for k in ends]
    if recorder.device is None or not callbacks.tapes.lead_straight(result, tensors):
        return None
    evaluate_pending()
    inner = BodyCapture(recorder, recorder.device)

    def traced() -> tuple[Tensor, Sequence[Tensor | None], list[Tensor], list[Place]]:
        g = make(inner.recorder.placeholder(result._expr.spec))
        found = callbacks.tapes.gradients(result, tensors, g)
        made = [x for x in found if x is not None]
        return g, found, made, inner.finished(made, [])[0]

    try:
        g, found, made, places = recording.run_traced(inner.recorder, traced)
    except (CaptureError, GradientError):
        return None  # whoever asks for gradients gets the error
    name = f"{name}, the way back"
    program = inner.recorder.program(places, name)
    saved = [*inner.recorder.from_outer.values()]
    inputs = [KnownTensor(x, i, input=i) for i, x in enumerate([g, *_saved_bytes(program, saved)])]
    results = [
        Result(None, inner.recorder.renumbered(p), x._expr.spec, x._expr.spec.strides)
        for p, x in zip(places, made, strict=True)
    ]
    numbers = iter(range(len(made)))
    leaves = [None if x is None else ResultNumber(next(numbers)) for x in found]
    returned = flattened(tuple(ResultNumber(0) for _ in leaves))._replace(leaves=leaves)
    trace = Trace(
        name, program, [k.tensor for k in inputs], None, None, inputs, inputs,
        recorder.environment, [], results, returned, [],
    )  # fmt: skip
    executable, _ = bind(trace)
    return Flow(number, ends, saved, program, executable)


def _saved_bytes(program: Program, saved: Sequence[Place]) -> list[Tensor]:
    """Return a tensor of one byte for each place: what matters is where they begin."""
    device = program.opened.device
    s = spec((1,), uint8, device)
    nowhere = [storage_at(DataPtr(None, 0, 0, device), 0, device) for _ in saved]
    return [make(leaf(x, s, (1,), 0)) for x in nowhere]
