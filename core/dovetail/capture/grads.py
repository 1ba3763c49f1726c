"""Gradients of a captured function, from its result to its inputs.

The backward program reads values that the forward program has saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from .. import callbacks
from ..dtypes import uint8
from ..engine import tracer_api
from ..engine.traced_numbers import Env
from ..errors import CaptureError, GradientError
from ..graph.expr import leaf, spec
from ..memory import DataPtr
from ..memory.storage import storage_at
from ..ops import table as ops
from ..settings import current
from ..tensor.primitives import apply
from ..tensor.tensor import Tensor, make
from .bindings import KnownTensor, Result, ResultNumber, Trace, bind
from .captured_loops import BodyCapture
from .executable import AttachGradients, Executable
from .program import Place, Program
from .pytree import flattened
from .tracer import Recorder, evaluate_pending


class Flow(NamedTuple):
    """The backward program of a capture.

    `result`: the number of the result with the gradient. `ends`: the tensors that get gradients.
    `saved`: the places in the forward program's memory that the backward one reads.
    """

    result: int
    ends: list[KnownTensor]
    saved: list[Place]
    program: Program
    executable: Executable

    def attach(self, name: str, numbers: dict[int, int], results: int) -> AttachGradients:
        """Return a function that attaches the gradient to the result of a call.

        `numbers`: the input slots of known tensors, by id. `results`: the number of results before
        the saved values.
        """
        ends = [numbers[id(k)] for k in self.ends]

        def attach(tensors: list[Tensor], outputs: list[Tensor], env: Env) -> None:
            operands, saved = [tensors[n] for n in ends], outputs[results:]
            callbacks.tapes.attach(
                name, outputs[self.result], operands, saved, partial(self._backward, env)
            )

        return attach

    def _backward(self, env: Env, g: Tensor, saved: Sequence[Tensor]) -> Sequence[Tensor | None]:
        if not g.is_contiguous():
            g = apply(ops.COPY, (g,))
        gradients: Sequence[Tensor | None] = self.executable.run_with([g, *saved], env, current())
        return gradients


def flow_of(
    name: str, recorder: Recorder, number: int, result: Tensor, known: Sequence[KnownTensor]
) -> Flow | None:
    """Capture the backward program of a result without running it; None if there is none.

    It reads memory as it is at the end of the forward program, where pending work that the tape
    refers to is computed.
    """
    ends = [k for k in known if k.tape is not None]
    tensors = [k.tensor for k in ends]
    if recorder.device is None or not callbacks.tapes.lead_straight(result, tensors):
        return None
    evaluate_pending()
    inner = BodyCapture(recorder, recorder.device)

    def trace_backward() -> tuple[Tensor, Sequence[Tensor | None], list[Tensor], list[Place]]:
        g = make(inner.recorder.placeholder(result._expr.spec))
        gradients = callbacks.tapes.gradients(result, tensors, g)
        results = [x for x in gradients if x is not None]
        return g, gradients, results, inner.place_results(results, [])[0]

    try:
        g, grads, outputs, places = tracer_api.run_traced(inner.recorder, trace_backward)
    except (CaptureError, GradientError):
        return None  # a call of backward raises the error
    name = f"{name}, the way back"
    program = inner.recorder.program(places, name)
    saved = [*inner.recorder.from_outer.values()]
    inputs = [KnownTensor(x, i, input=i) for i, x in enumerate([g, *_saved_inputs(program, saved)])]
    results = [
        Result(None, inner.recorder.renumbered(p), x._expr.spec, x._expr.spec.strides)
        for p, x in zip(places, outputs, strict=True)
    ]
    numbers = iter(range(len(outputs)))
    leaves = [None if x is None else ResultNumber(next(numbers)) for x in grads]
    returned = flattened(tuple(ResultNumber(0) for _ in leaves))._replace(leaves=leaves)
    trace = Trace(
        name,
        program,
        [k.tensor for k in inputs],
        None,
        None,
        inputs,
        inputs,
        recorder.environment,
        [],
        results,
        returned,
        [],
    )
    executable, _ = bind(trace)
    return Flow(number, ends, saved, program, executable)


def _saved_inputs(program: Program, saved: Sequence[Place]) -> list[Tensor]:
    """Return a tensor of one byte for each place: only the start of the place matters."""
    device = program.opened.device
    s = spec((1,), uint8, device)
    nowhere = [storage_at(DataPtr(None, 0, 0, device), 0, device) for _ in saved]
    return [make(leaf(x, s, (1,), 0)) for x in nowhere]
