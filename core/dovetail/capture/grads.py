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
from ..tensor.tensor import Tensor, create_tensor
from .bindings import FunctionTrace, ReachableTensor, Result, ResultIndex, bind_trace
from .captured_loops import BodyCapture
from .executable import AttachGradients, Executable
from .program import CapturedProgram, Place
from .pytree import flatten
from .tracer import CaptureTracer, evaluate_pending


class BackwardCapture(NamedTuple):
    """The backward program of a capture.

    `result`: the number of the result with the gradient. `inputs`: the tensors that get gradients.
    `saved_places`: the places in the forward program's memory that the backward one reads.
    """

    result: int
    inputs: list[ReachableTensor]
    saved_places: list[Place]
    program: CapturedProgram
    executable: Executable

    def create_attacher(self, name: str, numbers: dict[int, int], results: int) -> AttachGradients:
        """Return a function that lets gradients flow from a call's result to its inputs.

        `numbers`: the input slots of known tensors, by id. `results`: the number of results before
        the saved values.
        """
        ends = [numbers[id(k)] for k in self.inputs]

        def attach(tensors: list[Tensor], outputs: list[Tensor], env: Env) -> None:
            """Attach a call's result and saved values to its inputs on the tape."""
            operands, saved = [tensors[n] for n in ends], outputs[results:]
            callbacks.tapes.attach(
                name, outputs[self.result], operands, saved, partial(self._backward, env)
            )

        return attach

    def _backward(self, env: Env, g: Tensor, saved: Sequence[Tensor]) -> Sequence[Tensor | None]:
        """Replay the backward program for gradient `g`; return each input's gradient or None."""
        if not g.is_contiguous():
            g = apply(ops.COPY, (g,))
        gradients: Sequence[Tensor | None] = self.executable.run_with_numbers(
            [g, *saved], env, current()
        )
        return gradients


def capture_backward(
    name: str,
    recorder: CaptureTracer,
    number: int,
    result: Tensor,
    reachable: Sequence[ReachableTensor],
) -> BackwardCapture | None:
    """Evaluate pending work, then capture a result's backward, not run; None if impossible.

    None is for a result with hooks or several ways to an input, and for a backward that cannot be
    captured. The program reads memory as it is at the end of the forward program, where pending
    work that the tape refers to is computed. `number`: the number of the result.
    """
    ends = [k for k in reachable if k.tape is not None]
    tensors = [k.tensor for k in ends]
    if recorder.device is None or not callbacks.tapes.has_direct_paths(result, tensors):
        return None
    evaluate_pending()
    inner = BodyCapture(recorder, recorder.device)

    def trace_backward() -> tuple[Tensor, Sequence[Tensor | None], list[Tensor], list[Place]]:
        """Compute the gradients of a placeholder `g`; return `g`, them and places."""
        g = create_tensor(inner.recorder.placeholder(result._expr.spec))
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
    inputs = [
        ReachableTensor(x, i, input=i) for i, x in enumerate([g, *_saved_inputs(program, saved)])
    ]
    results = [
        Result(None, inner.recorder.renumbered(p), x._expr.spec, x._expr.spec.strides)
        for p, x in zip(places, outputs, strict=True)
    ]
    numbers = iter(range(len(outputs)))
    leaves = [None if x is None else ResultIndex(next(numbers)) for x in grads]
    returned = flatten(tuple(ResultIndex(0) for _ in leaves))._replace(leaves=leaves)
    trace = FunctionTrace(
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
    executable, _ = bind_trace(trace)
    return BackwardCapture(number, ends, saved, program, executable)


def _saved_inputs(program: CapturedProgram, saved: Sequence[Place]) -> list[Tensor]:
    """Return a tensor of one byte, without memory, for each place: only its start matters."""
    device = program.opened.device
    s = spec((1,), uint8, device)
    nowhere = [storage_at(DataPtr(None, 0, 0, device), 0, device) for _ in saved]
    return [create_tensor(leaf(x, s, (1,), 0)) for x in nowhere]
