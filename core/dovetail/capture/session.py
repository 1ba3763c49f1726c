"""The first call of a captured function: it runs as always, while a tracer notes what it does."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..dtypes import uint8
from ..engine import evaluate as run
from ..engine import tracer_api
from ..engine.traced_numbers import TracedFloat
from ..errors import CaptureError
from ..graph.expr import Expr, leaf, spec, storage_of
from ..memory import Storage
from ..memory.storage import next_serial
from ..memory.tracing.stacktrace import caller_line, is_library_module
from ..settings import Settings, flags
from ..tensor.c_fields import is_strided
from ..tensor.operators import number_readers, pending_numbers
from ..tensor.tensor import Tensor, create_tensor
from .bindings import FunctionTrace, NewGradient, ReachableTensor, Result, ResultIndex, bind_trace
from .closures import Closure, ClosurePath, read_modes
from .executable import NO_INDEX, Executable, SlotOverlap
from .grads import BackwardCapture, capture_backward
from .guards import CONTAINER_TYPES, is_constant
from .host_generators import UNRECORDED_DRAW, global_generator, is_generator
from .loop_acts import RerolledLoop
from .program import Act, CapturedProgram, variables
from .pytree import FlatTree, StaticArgument, flatten_with_layouts, rebuild, require_strided_leaf
from .tracer import CaptureTracer, evaluate_pending, hold_captures

R = TypeVar("R")


class Capture(NamedTuple):
    """A captured call for arguments of one kind: its trace and its executable."""

    arguments: str  # for people
    trace: FunctionTrace
    executable: Executable
    backward: BackwardCapture | None = None  # the backward program
    value_guards: int = 0  # on values of tensors that the host has read


class CaptureFailure(NamedTuple):
    """The reason why the function is not captured for a kind of arguments.

    `is_retryable`: the next call may be captured.
    """

    reason: str
    is_retryable: bool = False


class CaptureSession:
    """A function that runs and is noted.

    `reachable`: the tensors that it may use. `used_tensors`: those that it has used.
    `closure_after`: what it leads to when it has run.
    """

    def __init__(
        self,
        name: str,
        function: object,
        leaves: Sequence[object],
        tree: object,
        settings: Settings,
        warn_of_read: Callable[[str], None] | None = None,
        may_fix: bool = False,
    ) -> None:
        """`warn_of_read`: see `CaptureTracer`. `may_fix`: see `Environment`."""
        evaluate_pending()
        self.name, self.leaves, self.tree, self.settings = name, [*leaves], tree, settings
        self.reachable = [
            ReachableTensor(x, i) for i, x in enumerate(leaves) if isinstance(x, Tensor)
        ]
        arguments = {id(x) for x in leaves}
        statics = [(i, x.value) for i, x in enumerate(leaves) if isinstance(x, StaticArgument)]
        self.closure = self.closure_after = Closure([function], statics)
        self.reachable += [
            ReachableTensor(p.value, path=p)
            for p in self.closure.tensors()
            if id(p.value) not in arguments
        ]
        self.has_other_layouts = self._has_gradient_of_other_layout()
        self.reachable += [
            ReachableTensor(k.tensor.grad, gradient_of=k)
            for k in self._with_gradients()
            if is_strided(k.tensor.grad)
        ]
        self.used_tensors: list[ReachableTensor] = []
        self._constant_ids: set[int] = set()  # of the tensors that `dt.constant` got
        self.has_changed_arguments: Callable[[], bool] = lambda: False
        self.first_serial = next_serial()
        self.floats: list[tuple[int, int]] = []
        # The device of the first argument; where there is none, the first work says it.
        device = next((k.tensor.device for k in self.reachable if k.argument != NO_INDEX), None)
        self.recorder = CaptureTracer(
            device, False, self._find_input, keep=self._add_constant, warn_of_read=warn_of_read
        )
        for generator in (global_generator(), *[p.value for p in self.closure.paths]):
            if is_generator(generator):
                self.recorder.generators.watch(generator)
        self.recorder.environment.may_fix = may_fix
        self._modes = self.closure.modes()
        self._mode_keys = read_modes(self._modes)
        self._random_state = random.getstate() if may_fix else None

    def _add_constant(self, x: Tensor) -> None:
        """Add a tensor over older memory and its `grad` to `reachable`, unless it is there."""
        is_new = storage_of(x._expr).serial >= self.first_serial
        if is_new or any(k.tensor is x for k in self.reachable):
            return
        constant = ReachableTensor(x, path=ClosurePath(x))
        self._constant_ids.add(id(x))
        self.reachable.append(constant)
        if constant.tape is not None and x.is_leaf and is_strided(x.grad):
            self.reachable.append(ReachableTensor(x.grad, gradient_of=constant))

    def _with_gradients(self) -> list[ReachableTensor]:
        """Return the known tape leaves, which may have a `grad`."""
        return [
            k
            for k in self.reachable
            if k.gradient_of is None and k.tape is not None and k.tensor.is_leaf
        ]

    def _has_gradient_of_other_layout(self) -> bool:
        """Return True if the `grad` of a known tensor is not strided."""
        gradients = [k.tensor.grad for k in self._with_gradients()]
        return any(g is not None and not is_strided(g) for g in gradients)

    def trace_arguments(self) -> list[object]:
        """Return the leaves for the function; each float becomes a TracedFloat, see `floats`."""
        return [self._trace_argument(i, x) for i, x in enumerate(self.leaves)]

    def _trace_argument(self, i: int, x: object) -> object:
        """Return argument `i`: a float traced and added to `floats`, a static one unwrapped.

        The variable of a float64 of NumPy is a float, from which a formula makes NumPy's number.
        """
        if not isinstance(x, float):
            return x.value if isinstance(x, StaticArgument) else x
        environment = self.recorder.environment
        variable = environment.variable(float(x))
        self.floats.append((i, variable))
        traced = TracedFloat(environment, float(x), variable)
        return traced if type(x) is float else traced.compute(type(x), traced)

    def _find_input(self, storage: Storage) -> tuple[int, int] | None:
        """Add an input for reachable memory; return (slot, byte), or None for other memory.

        `byte` is where the tensor begins in its memory. None is for memory that the function
        allocates, and for constants.
        Raises: CaptureError for older memory that no path leads to.
        """
        for k in self.reachable:
            if k.expr.op is None and storage_of(k.expr) is storage:
                self.used_tensors.append(k)
                k.input = self.recorder.add_input()
                return k.input, k.begin
        if storage.serial < self.first_serial and not tracer_api.is_constant(storage):
            raise CaptureError(
                f"{self.name}: at {caller_line()} it uses a tensor that it cannot find again at "
                "the next call, because no argument, closure, global variable, attribute or item "
                "of a list or dict refers to it; pass it as an argument, or wrap it in dt.constant "
                "if it is always the same tensor"
            )
        return None

    def run(self, function: Callable[[], R]) -> tuple[R, Capture | CaptureFailure]:
        """Run and record the function; return its result, and the capture or the failure."""
        traced = self.recorder, self._run, function
        try:
            returned, capture = hold_captures(tracer_api.run_traced, traced)
        except Exception as error:
            self.closure_after = self.closure.walk_again()
            self._untrace_floats()
            error.args = tuple([x.value if type(x) is TracedFloat else x for x in error.args])
            raise
        if flags.depth == 0:
            run.finish_pending()
        built = capture if isinstance(capture, CaptureFailure) else capture()
        result: R = rebuild(returned, self._read_numbers(returned.leaves))
        return result, built

    def _read_numbers(self, leaves: Sequence[object]) -> list[object]:
        """Return the leaves of a plain call's result: the values of traced and of new numbers."""
        values = [x.value if type(x) is TracedFloat else x for x in leaves]
        numbers: dict[int, object] = {id(k.tensor): k.tensor for k in self.reachable}
        for x in values:
            if isinstance(x, Tensor) and x in pending_numbers and id(x) not in numbers:
                numbers[id(x)] = number_readers[type(x)](x)
        return [numbers.get(id(x), x) for x in values]

    def _run(
        self, function: Callable[[], object]
    ) -> tuple[FlatTree, CaptureFailure | Callable[[], Capture]]:
        """Run the function; return its flat result, and a failure or a builder of the capture.

        The builder is called after the trace. Raises: LayoutError for results of other layouts.
        """
        returned = flatten_with_layouts(function())
        returned = FlatTree([*map(tracer_api.read_stand_in, returned.leaves)], returned.tree)
        if tracer_api.current() is not self.recorder:  # a read has ended the trace
            self.closure_after = self.closure.walk_again()
            self._untrace_floats()
            return returned, CaptureFailure("it reads values")
        for x in returned.leaves:
            if isinstance(x, Tensor):
                require_strided_leaf(self.name, x)
        if reason := self._find_unrepeatable_draws():
            self.recorder.refuse_read(reason, ())
            return returned, CaptureFailure(reason)
        tensors, leaves = self._results(returned)
        gradients = self._new_gradients(tensors)
        if tensors:
            run.evaluate([t._expr for t in tensors])
        if failure := self._find_failure():
            return returned, failure
        if self.recorder.value_guards and (change := self._find_change()):
            reason = f"it reads values and changes {change}, which replays would not"
            self.recorder.refuse_read(reason, ())
            return returned, CaptureFailure(reason)
        if self.has_changed_arguments():
            reason = "it changes a list or dict among its arguments, which replays would not"
            self.recorder.refuse_read(reason, ())
            return returned, CaptureFailure(reason)
        for x in leaves:
            if type(x) is not ResultIndex:
                self._require_no_new_tensors(x)
        if classes := [type(x).__name__ for x in leaves if self._is_new_mutable(x)]:
            reason = f"it returns a new {classes[0]}, which replays would not renew"
            self.recorder.refuse_read(reason, ())
            return returned, CaptureFailure(reason)
        flow = None
        if flowing := self._differentiable_results(tensors):
            flow = self._capture_backward(flowing, tensors)
            if flow is None:
                return returned, CaptureFailure("gradients flow through its results")
        result = FlatTree(leaves, returned.tree)
        return returned, partial(self._build_capture, tensors, result, gradients, flow)

    def _is_new_mutable(self, x: object) -> bool:
        """Return True for a result that each call makes anew, and that its caller may change."""
        if isinstance(x, (Iterator, np.ndarray)):
            return True
        module = type(x).__module__
        is_users = hasattr(x, "__dict__") and module != "builtins" and not is_library_module(module)
        if is_constant(x) or not (is_users or isinstance(x, (*CONTAINER_TYPES, SimpleNamespace))):
            return False
        return not any(x is y for y in (*(p.value for p in self.closure.paths), *self.leaves))

    def _results(self, returned: FlatTree) -> tuple[list[Tensor], list[object]]:
        """Return the result's tensors, each once, and its leaves with a ResultIndex for each."""
        numbers: dict[int, int] = {}
        tensors: list[Tensor] = []
        leaves: list[object] = []
        for x in returned.leaves:
            if isinstance(x, Tensor):
                if id(x) not in numbers:
                    numbers[id(x)] = len(tensors)
                    tensors.append(x)
                leaves.append(ResultIndex(numbers[id(x)]))
            else:
                leaves.append(x)
        return tensors, leaves

    def _require_no_new_tensors(self, x: object) -> None:
        """Raise CaptureError if an object of the result leads to a new tensor or an argument.

        Replays return the object itself, so its tensors would stay those of the first call.
        """
        arguments = {id(k.tensor) for k in self.reachable if k.argument != NO_INDEX}
        tensors = [path.value for path in Closure([x]).tensors()]
        if any(self._is_new(t) or id(t) in arguments for t in tensors):
            raise CaptureError(
                f"{self.name}: its result has a {type(x).__name__} that leads to a new tensor or "
                "an argument; return tensors in tuples, lists, dicts, or in a class that is "
                "registered with optree (docs/jit.md)"
            )

    def _is_new(self, x: Tensor) -> bool:
        """Return True for a tensor whose memory the function has allocated, or will."""
        e = x._expr
        return e.op is not None or storage_of(e).serial >= self.first_serial

    def _new_gradients(self, tensors: list[Tensor]) -> list[NewGradient]:
        """Return (tensor, result number) of changed `grad`s; append new ones to `tensors`."""
        changed: list[NewGradient] = []
        before = {id(k.gradient_of): k.tensor for k in self.reachable if k.gradient_of is not None}
        for k in self._with_gradients():
            now = k.tensor.grad
            if now is before.get(id(k)) or not (now is None or is_strided(now)):
                continue
            number = next((i for i, t in enumerate(tensors) if t is now), None)
            if now is not None and number is None:
                number = len(tensors)
                tensors.append(now)
            changed.append((k, number))
        return changed

    def _constants(self) -> list[ReachableTensor]:
        """Return a new ReachableTensor for each used tensor that `dt.constant` got, too.

        A call compares the two, since the other name may lead to another tensor by then.
        """
        exprs = [k.expr for k in self.used_tensors if tracer_api.is_constant(storage_of(k.expr))]
        tensors = [create_tensor(leaf(storage_of(e), e.spec, e.strides, e.offset)) for e in exprs]
        return [ReachableTensor(t, path=ClosurePath(t)) for t in tensors]

    def _find_unrepeatable_draws(self) -> str:
        """Return why a replay could not draw the numbers of NumPy's generators anew, or ""."""
        generators = self.recorder.generators
        if any(generator() is not None for generator in generators.own):
            return "it keeps a random generator that it makes; pass the generator"
        reachable = {id(p.value) for p in self.closure.paths if p.is_named and p.read() is p.value}
        reachable.add(id(global_generator()))
        reachable |= {id(x.value) for x in self.leaves if isinstance(x, StaticArgument)}
        if not {*map(id, generators.drawn)} <= reachable:
            return (
                "it draws from a random generator that it does not seed, and that no argument, "
                "closure, global variable or attribute leads to; pass the generator"
            )
        # NumPy's own functions may have set the state that the global generator had already.
        shared = {id(global_generator())} & {id(p.value) for p in self.closure.paths}
        is_repeatable = shared.isdisjoint(map(id, generators.drawn)) and not generators.have_moved()
        return "" if is_repeatable else UNRECORDED_DRAW

    def _find_change(self) -> str:
        """Describe a Python object that the function has changed, for an error; "" if none."""
        if random.getstate() != self._random_state:
            return "the state of Python's random"
        change = self.closure.find_change(self.closure_after)
        if change is None:
            return ""
        is_cell = change.key == "cell_contents"
        return "a variable of an outer function" if is_cell else repr(change.key)

    def _untrace_floats(self) -> bool:
        """Replace traced floats of the closure by their values; return True if there is one."""
        paths = [p for p in self.closure_after.paths if type(p.value) is TracedFloat]
        for path in paths:
            path.write(path.value.value)
        return bool(paths)

    def _find_failure(self) -> CaptureFailure | None:
        """Walk the closure again; return why the call cannot be captured, or None."""
        self.closure_after = self.closure.walk_again()
        if self._untrace_floats():
            reason = "it stores a number that depends on a float argument, which replays would not"
            self.recorder.refuse_read(reason, ())
            return CaptureFailure(reason)
        if read_modes(self._modes) != self._mode_keys:
            return CaptureFailure("it changes the mode of an object")
        if self.has_other_layouts or self._has_gradient_of_other_layout():
            return CaptureFailure(
                "a gradient that is there before or after it is of another layout"
            )
        if any(k.expr.tape is not k.tape for k in self.reachable):
            return CaptureFailure("it changes what an argument's gradient flows through")
        known_ids = {id(k.tensor) for k in self.reachable}
        reached = {id(p.value) for p in self.closure_after.tensors()}
        if not reached <= known_ids or self.closure.has_rebound_tensor(self.closure_after):
            reason = "it binds a name, an attribute or a place to another tensor"
            return CaptureFailure(reason, is_retryable=True)
        reached |= {id(x) for x in self.leaves} | self._constant_ids
        if any(k.path is not None and id(k.tensor) not in reached for k in self.reachable):
            return CaptureFailure("it lets go of a tensor of its closure", is_retryable=True)
        return None

    def _differentiable_results(self, tensors: list[Tensor]) -> list[int]:
        """Return the numbers of new results through which gradients flow."""
        known_ids = {id(k.tensor) for k in self.reachable}
        return [
            i
            for i, t in enumerate(tensors)
            if id(t) not in known_ids
            and t._expr.tape is not None
            and not _is_released(t._expr.tape)
        ]

    def _capture_backward(
        self, flowing: list[int], tensors: list[Tensor]
    ) -> BackwardCapture | None:
        """Capture the backward program of the only result that has one; None if impossible."""
        (i, *others), recorder = flowing, self.recorder
        place = recorder.locate(_in_memory(tensors[i]))
        if others or place.slot not in recorder.sizes or self._new_gradients(tensors):
            return None
        return capture_backward(self.name, recorder, i, tensors[i], self.reachable)

    def _fix_floats(self, fixed: set[int]) -> None:
        """Make the float arguments with these variables static."""
        for i, variable in self.floats:
            if variable in fixed:
                self.leaves[i] = StaticArgument(self.leaves[i])
        self.floats = [(i, variable) for i, variable in self.floats if variable not in fixed]

    def _build_capture(
        self,
        tensors: list[Tensor],
        returned: FlatTree,
        gradients: list[NewGradient],
        backward_capture: BackwardCapture | None,
    ) -> Capture:
        """Build the capture of the recorded acts; drop the values of the user's tensors."""
        recorder = self.recorder
        self._fix_floats(recorder.environment.fixed)
        same = {id(k.tensor): k for k in self.reachable}
        exprs = [_in_memory(t) for t in tensors]
        places = [recorder.locate(e) for e in exprs]
        saved = [] if backward_capture is None else backward_capture.saved_places
        backward = () if backward_capture is None else backward_capture.program.acts
        program = recorder.program([*places, *saved], self.name, {*variables(backward)})
        results = [
            Result(same.get(id(t)), recorder.renumbered(p), e.spec, e.strides)
            for t, p, e in zip(tensors, places, exprs, strict=True)
        ]
        byte = spec((1,), uint8, program.opened.device)
        results += [Result(None, recorder.renumbered(p), byte, (1,)) for p in saved]
        trace = FunctionTrace(
            self.name,
            program,
            self.leaves,
            self.tree,
            self.settings,
            self.reachable + self._constants(),
            self.used_tensors,
            recorder.environment,
            self.floats,
            results,
            returned,
            gradients,
            self.closure.paths,
            recorder.arrays,
            None if backward_capture is None else len(saved),
        )
        executable, numbers = bind_trace(trace)
        for slot, t in zip(executable.outputs.slots, tensors, strict=False):  # saved values follow
            slot.kind = type(t)
            slot.is_number = slot.input_slot < 0 and t in pending_numbers
        if backward_capture is not None:
            attach = backward_capture.create_attacher(self.name, numbers, len(tensors))
            executable.outputs.attach_gradients = attach
        self.closure.drop_values()
        placeholders = {
            k.argument: k.drop_memory() for k in self.reachable
        }  # no tensor of the user's
        leaves = [placeholders.get(i, x) for i, x in enumerate(self.leaves)]
        trace = trace._replace(leaves=leaves, closure=(), arrays=())
        arguments = ", ".join(map(describe_leaf, leaves))
        if recorder.value_guards:
            arguments += f", for {recorder.value_guards} values that the host reads"
        return Capture(arguments, trace, executable, backward_capture, recorder.value_guards)


def describe_leaf(x: object) -> str:
    """Return an argument as text for users: a spec, a static value, or "a float"."""
    if isinstance(x, Tensor):
        return repr(x._expr.spec)
    return repr(x.value) if isinstance(x, StaticArgument) else "a float"


def _in_memory(t: Tensor) -> Expr:
    """Return the leaf of an evaluated tensor, with its real storage."""
    e = t._expr
    storage_of(e)
    return e


def _is_released(tape: Any) -> bool:
    """Return True if a part of the tape has been released."""
    visited: set[int] = set()
    stack = [tape]
    while stack:
        n = stack.pop()
        if id(n) in visited:
            continue
        visited.add(id(n))
        if n.released:
            return True
        stack += [e.node for e in n.edges if e is not None]
    return False


# --- two captures that differ in distances --------------------------------------------------------


def relax_overlaps(new: Capture, earlier: Sequence[Capture]) -> None:
    """Drop distance checks of inputs from `new` that an earlier capture shows to be needless.

    An argument may be part of a tensor that the function could reach (`step(self.x[k : k + 64])`).
    From one capture it cannot be told who reads that memory. But where the function was captured
    before, with the two at another distance, and everything that it touches lies as far from the
    beginning of the argument as then, nothing was reached through the other tensor.
    """
    for old in earlier:
        now, then = _overlaps(new.executable), _overlaps(old.executable)
        if now.keys() == then.keys() and _describe_call_memory(new) == _describe_call_memory(old):
            new.executable.inputs.overlaps = [
                o for pair, o in now.items() if o.distance == then[pair].distance
            ]


def _overlaps(executable: Executable) -> dict[tuple[object, ...], SlotOverlap]:
    """Return the overlaps of inputs, each by the sources of its two tensors."""
    inputs = executable.inputs
    ways = [(s.argument, s.gradient_of, _read_source(executable, s.read)) for s in inputs.slots]
    return {(ways[o.slot], ways[o.base]): o for o in inputs.overlaps}


def _read_source(executable: Executable, n: int) -> tuple[object, ...]:
    """Return the source of a closure read; equal for the same place in two captures."""
    if n == NO_INDEX:
        return ()
    r = executable.inputs.reads[n]
    if r.parent == NO_INDEX:
        return (r.argument, id(r.root))
    return (*_read_source(executable, r.parent), r.is_item, r.key)


def _describe_call_memory(capture: Capture) -> list[object]:
    """Return what a call and its backward read, write and return, to compare two captures."""
    uses: list[object] = [(r.place, r.spec, r.strides) for r in capture.trace.results]
    flow = [] if capture.backward is None else [capture.backward.program]
    for program in (capture.trace.program, *flow):
        uses += _describe_program_memory(program)
    return uses


def _describe_program_memory(program: CapturedProgram) -> list[object]:
    """Return the type and the places of each act, in order, to compare two captures."""
    return [
        (type(a), *_describe_iterations(a), *a.places(), *map(_describe_program_memory, a.programs))
        for a in program.acts
    ]


def _describe_iterations(act: Act) -> tuple[object, ...]:
    """Return the count and the inputs of a re-rolled loop; () for other acts."""
    return (act.count, act.inputs) if isinstance(act, RerolledLoop) else ()
