"""How a function is captured: it runs as always, noted by a recorder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..device import Device
from ..dtypes import uint8
from ..engine import evaluate as run
from ..engine import recording
from ..engine.traced_numbers import TracedFloat
from ..errors import CaptureError
from ..graph.expr import Expr, spec, storage_of
from ..memory import Storage
from ..memory.callers import caller
from ..memory.storage import next_serial
from ..settings import Settings, flags
from ..tensor.tensor import Tensor
from .bindings import Candidate, Facts, Gradient, Made, Position, numbered_call
from .closures import Closure
from .executable import Beside, Call
from .grads import Flow, flow_of
from .program import Program
from .pytree import Flat, Static, flattened_parts, rebuilt, strided_leaf
from .tracer import Recorder, evaluate_pending, recorded_by

R = TypeVar("R")


class Capture(NamedTuple):
    """What a function did for arguments of one kind, and what does it again."""

    arguments: str  # for people
    facts: Facts
    call: Call
    flow: Flow | None = None  # the way back of gradients

    @property
    def program(self) -> Program:
        """What is replayed."""
        return self.facts.program


class Failed(NamedTuple):
    """Why a kind of arguments is not captured: the function runs as always.

    `once`: the next call may be another matter.
    """

    reason: str
    once: bool = False


def freed(new: Capture, earlier: Sequence[Capture]) -> None:
    """Has a call not ask of tensors to lie as far apart as when it was captured, where it may.

    An argument may be part of a tensor that the function could reach (`step(self.x[k : k + 64])`).
    From one capture it cannot be told who reads that memory. But where the function was captured
    before, with the two at another distance, and everything that it touches lies as far from the
    beginning of the argument as then, nothing was reached through the other tensor.
    """
    for old in earlier:
        mine, theirs = _distances(new.call), _distances(old.call)
        if mine.keys() != theirs.keys() or _touched_by(new) != _touched_by(old):
            continue
        moved = {b for pair, b in mine.items() if b.apart != theirs[pair].apart}
        new.call.beside = [b for b in new.call.beside if b not in moved]


def _distances(call: Call) -> dict[tuple[object, ...], Beside]:
    """How far apart tensors must be, by how each of the two is found."""
    wanted = [(w.argument, w.gradient_of, _way(call, w.read)) for w in call.wanted]
    return {(wanted[b.tensor], wanted[b.base]): b for b in call.beside}


def _way(call: Call, n: int) -> tuple[object, ...]:
    """Return how a read of the closure finds its value; equal for one place of two captures."""
    if n < 0:
        return ()
    r = call.reads[n]
    if r.parent < 0:
        return (r.argument, id(r.root))
    return (*_way(call, r.parent), r.is_item, r.key)


def _touched_by(capture: Capture) -> list[object]:
    """All places that a call reads, writes or gives, in order."""
    found: list[object] = [(m.place, m.spec, m.strides) for m in capture.facts.made]
    flow = [] if capture.flow is None else [capture.flow.program]
    for program in (capture.program, *flow):
        found += _touched(program)
    return found


def _touched(program: Program) -> list[object]:
    return [(type(a), *a.places(), *map(_touched, a.programs)) for a in program.acts]


class Session:
    """A function that is being run and noted."""

    def __init__(
        self, name: str, roots: list[object], leaves: Sequence[object], tree: object,
        settings: Settings,
    ) -> None:  # fmt: skip
        evaluate_pending()
        self.name, self.leaves, self.tree, self.settings = name, leaves, tree, settings
        self.candidates = [
            Candidate(x, argument=i) for i, x in enumerate(leaves) if isinstance(x, Tensor)
        ]
        mine = {id(c.tensor) for c in self.candidates}
        self.roots = roots
        self.statics = [(i, x.value) for i, x in enumerate(leaves) if isinstance(x, Static)]
        self.closure = Closure(self.roots, self.statics)
        self.after = self.closure  # searched again when the function has run
        self.candidates += [
            Candidate(p.value, path=p) for p in self.closure.tensors() if id(p.value) not in mine
        ]
        self.strange = self._has_strange_gradient()
        for c in [*self.candidates]:
            if c.taped and c.tensor.is_leaf and type(g := c.tensor.grad) is Tensor:
                self.candidates.append(Candidate(g, gradient_of=c))
        self.inputs: list[Candidate] = []
        self.begun = next_serial()
        self.device = self._device()
        self.recorder = Recorder(self.device, False, self._resolve)
        self.floats: list[tuple[int, int]] = []

    def _device(self) -> Device | None:
        """The device of the first argument; where there is none, the first work says it."""
        return next((c.tensor.device for c in self.candidates if c.argument is not None), None)

    def _has_strange_gradient(self) -> bool:
        """Whether some `grad` is of another layout, which no capture sets."""
        grads = [c.tensor.grad for c in self.candidates if c.taped and c.tensor.is_leaf]
        return any(g is not None and type(g) is not Tensor for g in grads)

    def traced(self) -> list[object]:
        """The leaves that the function gets."""
        return [self._traced(i, x) for i, x in enumerate(self.leaves)]

    def _traced(self, i: int, x: object) -> object:
        if isinstance(x, Static):
            return x.value
        if isinstance(x, float):
            environment = self.recorder.environment
            variable = environment.variable(x)
            self.floats.append((i, variable))
            return TracedFloat(environment, x, variable)
        return x

    def _resolve(self, storage: Storage) -> tuple[int, int] | None:
        for c in self.candidates:
            e = c.tensor._expr
            if e.op is None and storage_of(e) is storage:
                self.inputs.append(c)
                c.input = self.recorder.input()
                return c.input, e.offset * e.spec.dtype.itemsize
        if storage.serial < self.begun and not recording.is_constant(storage):
            raise CaptureError(
                f"{self.name}: it uses, at {caller()}, a tensor that it cannot find again at the "
                "next call: one that no argument, closure, global variable, attribute or item of a "
                "list or dict leads to; pass it as an argument, or wrap it in dt.constant where "
                "the function gets it, if it always is the same tensor"
            )
        return None

    def run(self, function: Callable[[], R]) -> tuple[R, Capture | Failed]:
        """What the function gives, and its capture."""
        with recorded_by(self.recorder), recording.arrays_seen() as self.arrays:
            result = function()
            flat = flattened_parts(result)
            for x in flat.leaves:
                if isinstance(x, Tensor):
                    strided_leaf(self.name, x)
            tensors, leaves = self._results(flat)
            gradients = self._gradients(tensors)
            pending = [t._expr for t in tensors]
            if pending:
                run.evaluate(pending)
            failed, flow = self._failed(tensors), None
            if failed is None and (flowing := self._flowing(tensors)):
                flow = self._flow(flowing, tensors)
                if flow is None:
                    failed = Failed("gradients flow through its results")
        if flags.depth == 0:
            run.finish_pending()
        shown = rebuilt(flat, [x.value if type(x) is TracedFloat else x for x in flat.leaves])
        if failed is not None:
            return shown, failed
        return shown, self._capture(tensors, Flat(leaves, flat.tree), gradients, flow)

    def _results(self, flat: Flat) -> tuple[list[Tensor], list[object]]:
        """The tensors among the results, each once, and what stands for each leaf."""
        tensors: list[Tensor] = []
        position: dict[int, int] = {}
        leaves: list[object] = []
        for x in flat.leaves:
            if isinstance(x, Tensor):
                if id(x) not in position:
                    position[id(x)] = len(tensors)
                    tensors.append(x)
                leaves.append(Position(position[id(x)]))
            else:
                leaves.append(x)
        return tensors, leaves

    def _gradients(self, tensors: list[Tensor]) -> list[Gradient]:
        """Whose `grad` has changed; the new ones are added to the results."""
        found: list[Gradient] = []
        before = {id(c.gradient_of): c.tensor for c in self.candidates if c.gradient_of is not None}
        for c in self.candidates:
            if c.gradient_of is not None or not c.taped or not c.tensor.is_leaf:
                continue
            now = c.tensor.grad
            if now is not None and type(now) is not Tensor:
                continue
            if now is before.get(id(c)):
                continue
            k = None
            if now is not None:
                k = next((k for k, t in enumerate(tensors) if t is now), None)
                if k is None:
                    k = len(tensors)
                    tensors.append(now)
            found.append((c, k))
        return found

    def _failed(self, tensors: list[Tensor]) -> Failed | None:
        self.after = self.closure.again()
        if self.strange or self._has_strange_gradient():
            return Failed("a gradient that is there before or after it is of another layout")
        if any(c.tensor._expr.tape is not c.tape for c in self.candidates):
            return Failed("it changes what an argument's gradient flows through")
        mine = {id(c.tensor) for c in self.candidates}
        now = {id(p.value) for p in self.after.tensors()}
        bound = now | {id(x) for x in self.leaves}
        if not now <= mine:
            return Failed("it binds a name, an attribute or a place to a new tensor", once=True)
        if any(c.path is not None and id(c.tensor) not in bound for c in self.candidates):
            return Failed("it lets go of a tensor of its closure", once=True)
        return None

    def _flowing(self, tensors: list[Tensor]) -> list[int]:
        """The results through which gradients flow."""
        mine = {id(c.tensor) for c in self.candidates}
        return [
            k for k, t in enumerate(tensors)
            if id(t) not in mine and t._expr.tape is not None and not _is_spent(t._expr.tape)
        ]  # fmt: skip

    def _flow(self, flowing: list[int], tensors: list[Tensor]) -> Flow | None:
        """The way back from a result that is the only one, and has memory of its own."""
        (k, *others), recorder = flowing, self.recorder
        place = recorder.place(_in_memory(tensors[k]))
        if others or place.slot not in recorder.sizes or self._gradients(tensors):
            return None
        return flow_of(self.name, recorder, k, tensors[k], self.candidates)

    def _capture(
        self, tensors: list[Tensor], result: Flat, gradients: list[Gradient], flow: Flow | None
    ) -> Capture:
        recorder = self.recorder
        same = {id(c.tensor): c for c in self.candidates}
        exprs = [_in_memory(t) for t in tensors]
        saved = [] if flow is None else flow.saved
        places = [recorder.place(e) for e in exprs]
        program = recorder.program([*places, *saved], self.name)
        made = [
            Made(same.get(id(t)), recorder.renumbered(p), e.spec, e.strides)
            for t, p, e in zip(tensors, places, exprs, strict=True)
        ]
        byte = spec((1,), uint8, program.opened.device)
        made += [Made(None, recorder.renumbered(p), byte, (1,)) for p in saved]
        facts = Facts(
            self.name, program, self.leaves, self.tree, self.settings, self.candidates,
            self.inputs, recorder.environment, self.floats, made, result, gradients,
            self.closure.paths, self.arrays, None if flow is None else len(saved),
        )  # fmt: skip
        call, numbers = numbered_call(facts)
        self.closure.forget()
        if flow is not None:
            call.flow = flow.of_call(self.name, numbers, len(tensors))
        kept = {c.argument: c.forget() for c in self.candidates}  # no tensor of the user's
        leaves = [kept.get(i, x) for i, x in enumerate(self.leaves)]
        shown = ", ".join(map(shown_leaf, leaves))
        facts = facts._replace(leaves=leaves, closure=(), arrays=())
        return Capture(shown, facts, call, flow)


def shown_leaf(x: object) -> str:
    """An argument, for people."""
    if isinstance(x, Tensor):
        return repr(x._expr.spec)
    return repr(x.value) if isinstance(x, Static) else "a float"


def _in_memory(t: Tensor) -> Expr:
    """The leaf of a tensor that has been computed."""
    e = t._expr
    storage_of(e)
    return e


def _is_spent(tape: Any) -> bool:
    """Whether some of what a gradient would flow through has been released."""
    seen: set[int] = set()
    stack = [tape]
    while stack:
        n = stack.pop()
        if id(n) in seen:
            continue
        seen.add(id(n))
        if n.released:
            return True
        stack += [e.node for e in n.edges if e is not None]
    return False
