"""What a function does to memory, noted while it runs; or while it only pretends to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from weakref import ref

from ..backend import faults
from ..backend.interface import Scalar
from ..backend.streams import current_handle
from ..device import Device, default_device
from ..device import opened as open_device
from ..engine import evaluate as engine
from ..engine import recording
from ..engine.evaluate import Evaluation
from ..engine.programs import BoundCall, BoundPlan, BoundStep
from ..engine.traced_numbers import Environment, Number
from ..errors import CaptureError, TransformError
from ..fusion.plan import Operand
from ..graph.expr import Args, Expr, Spec, leaf, pending, settle, spec, storage_of
from ..memory.callers import caller
from ..memory.pointer import DataPtr, StreamHandle
from ..memory.storage import Storage, storage_at
from ..ops.host_routines import HostCall
from .program import (
    Act,
    At,
    Call,
    Effect,
    Fill,
    HostStep,
    Launch,
    Place,
    Program,
    Strided,
    Work,
    arranged,
    needed,
    touched,
)

# Where memory is that a recorder has not seen: its slot among the inputs (and the byte at which
# that begins), or None where it is to be kept as it is.
Resolver = Callable[[Storage], tuple[int, int] | None]


class Slots:
    """The memory that a recorder has seen: which slot of the program it is in."""

    def __init__(
        self, device: Device | None, dry: bool, resolve: Resolver | None, outer: Recorder | None
    ) -> None:
        self.device, self.dry, self.outer = device, dry, outer
        self.stream: StreamHandle = None if device is None else current_handle(device)
        self.sizes: dict[int, int] = {}  # bytes of the slots that are born here
        self.inputs: list[int] = []
        self.from_outer: dict[int, Place] = {}  # slot -> the outer recorder's place
        self.held: dict[int, Storage] = {}
        self._kept: list[Storage] = []  # what acts need that are to be done
        self._resolve = resolve
        self._slots = 0
        self._known: dict[int, tuple[ref[Storage], int, int]] = {}  # slot, its first byte

    def _new_slot(self) -> int:
        self._slots += 1
        return self._slots - 1

    def _know(self, storage: Storage, slot: int, begin: int = 0) -> None:
        self._known[id(storage)] = (ref(storage), slot, begin)

    def input(self) -> int:
        """A new slot that is given to the program."""
        slot = self._new_slot()
        self.inputs.append(slot)
        return slot

    def placeholder(self, s: Spec) -> Expr:
        """A leaf that stands for an input of this spec, without memory."""
        storage = self._pretended(s)
        self._know(storage, self.input())
        return leaf(storage, s, s.strides, 0)

    def _pretended(self, s: Spec) -> Storage:
        nbytes = s.size * s.dtype.itemsize
        return storage_at(DataPtr(None, 0, nbytes, s.device), nbytes, s.device)

    def allocated(self, s: Spec) -> Expr:
        """A leaf over new memory, for an act to write."""
        if self.dry:
            storage = self._pretended(s)
            self._know(storage, self.temporary(storage.nbytes))
        else:
            nbytes = s.size * s.dtype.itemsize
            ptr = open_device(s.device).allocator.allocate(nbytes, self.stream)
            storage = storage_at(ptr, nbytes, s.device)
            self.born(storage)
            self._kept.append(storage)
        return leaf(storage, s, s.strides, 0)

    def _live(self) -> At:
        """Handles and offsets of all slots, as they are now."""
        at: At = [None, 0] * self._slots
        for found, slot, begin in self._known.values():
            storage = found()
            if storage is not None and storage.ptr is not None:
                at[2 * slot : 2 * slot + 2] = storage.ptr.handle, storage.ptr.offset + begin
        return at

    def temporary(self, nbytes: int) -> int:
        """A slot of this program's own."""
        slot = self._new_slot()
        self.sizes[slot] = nbytes
        return slot

    def born(self, storage: Storage) -> None:
        """See `recording.Recorder`."""
        self._require_device(storage.device)
        self._know(storage, self.temporary(storage.nbytes))

    def _slot_of(self, storage: Storage) -> tuple[int, int]:
        """The slot, and the byte of the storage at which it begins."""
        known = self._known.get(id(storage))
        if known is not None and known[0]() is storage:
            return known[1], known[2]
        slot, begin = self._found(storage)
        self._know(storage, slot, begin)
        return slot, begin

    def _found(self, storage: Storage) -> tuple[int, int]:
        if self.outer is not None:
            slot = self.input()
            outer, begin = self.outer._slot_of(storage)
            self.from_outer[slot] = Place(outer, 0)
            self._kept.append(storage)
            return slot, begin
        found = None if self._resolve is None else self._resolve(storage)
        if found is not None:
            return found
        slot = self._new_slot()
        self.held[slot] = storage
        return slot, 0

    def known_slot(self, storage: Storage) -> int | None:
        """Return the slot of memory that has been seen; None for other memory."""
        known = self._known.get(id(storage))
        return known[1] if known is not None and known[0]() is storage else None

    def place(self, e: Expr) -> Place:
        """Where a leaf begins."""
        slot, begin = self._slot_of(storage_of(e))
        return Place(slot, e.offset * e.spec.dtype.itemsize - begin)

    def needed(self, e: Expr) -> Place:
        """The same, for an act to be done, until which this memory is kept."""
        self._kept.append(storage_of(e))
        return self.place(e)

    def _require_device(self, device: Device) -> None:
        if self.device is None:  # the first work says it
            self.device, self.stream = device, current_handle(device)
        if device is not self.device:
            raise CaptureError(
                f"dt.jit: work on {device} in a function captured on {self.device}: a captured "
                "function has one device; move tensors with x.to(device) before it is called"
            )
        if current_handle(device) is not self.stream:
            raise CaptureError(
                "dt.jit: dt.stream() in a captured function: it runs on the stream that is current "
                "where it is called"
            )


class Recorder(Slots):
    """Notes acts.

    Where it is `dry`, nothing is launched: memory has no contents, and what is made meanwhile is
    good for nothing but its shapes.
    """

    is_capture = True
    mask = None

    def __init__(
        self, device: Device | None, dry: bool, resolve: Resolver | None = None,
        outer: Recorder | None = None,
    ) -> None:  # fmt: skip
        super().__init__(device, dry, resolve, outer)
        self.environment: Environment = Environment() if outer is None else outer.environment
        self.acts: list[Act] = []
        self._drawn = (0, 0)
        self._earlier = {id(e): ref(e) for e in pending()}

    def filled(self, storage: Storage, values: bytes) -> None:
        """See `recording.Recorder`."""
        slot = self._slot_of(storage)[0]
        self.held[slot] = storage
        self.acts.append(Fill(Place(slot, 0), values))

    def perform(self, act: Act) -> None:
        """Does an act, and notes it."""
        if not self.dry:
            opened = open_device(self.device or default_device())
            act.run(opened, self._live(), self.environment.values, self.stream)
        self.acts.append(act)

    # --- what is pending from before
    def is_earlier(self, e: Expr) -> bool:
        """See `recording.Recorder`."""
        known = self._earlier.get(id(e))
        return known is not None and known() is e

    def settle_earlier(self, e: Expr) -> None:
        """See `recording.Recorder`."""
        self._settle([e])

    def _settle(self, earlier: Sequence[Expr]) -> None:
        with recorded_by(self.outer):
            engine.evaluate(earlier, asked=False)

    def _earlier_of(self, evaluation: Evaluation) -> list[Expr]:
        """Those that are asked for, or that what was made since reads."""
        found = [r for r in evaluation.roots if r.op is not None and self.is_earlier(r)]
        for e in evaluation.nodes:
            read = (e.storage.pending,) if e.op is None else () if self.is_earlier(e) else e.args
            found += [
                a for a in read if type(a) is Expr and a.op is not None and self.is_earlier(a)
            ]
        return list(dict.fromkeys(found))

    # --- evaluations
    def run(self, evaluation: Evaluation, asked: bool) -> bool:
        """See `recording.Recorder`."""
        if self._settled_earlier(evaluation):
            roots = [r for r in evaluation.roots if r.op is not None]
            if not roots:
                return True
            evaluation = Evaluation(roots, evaluation.target)
        self._require_device(evaluation.device)
        plan = evaluation.bound()
        if plan.plan.overlaps:
            return False
        given = [self.place(e) for e in evaluation.leaves]
        if evaluation.target is not None:
            given.append(self.place(evaluation.target))
        numbers, lines = self._numbers(evaluation), self._lines(evaluation)
        if self.dry:
            self._pretend(evaluation, plan, len(given))
        else:
            engine.counters.evaluations += 1
            evaluation.execute(plan, asked)
        for i, slot in plan.kept:
            if slot >= len(given):
                self._know(evaluation.nodes[i].storage, self._slots + slot - len(given))
        self._note(plan, given, numbers, lines)
        return True

    def _settled_earlier(self, evaluation: Evaluation) -> bool:
        """Whether anything was pending from before; a function, so that no variable holds it."""
        earlier = self._earlier_of(evaluation)
        if earlier:
            self._settle(earlier)
        return bool(earlier)

    def _pretend(self, evaluation: Evaluation, plan: BoundPlan, given: int) -> None:
        for i, slot in plan.kept:
            if slot >= given:
                settle(evaluation.nodes[i], self._pretended(evaluation.nodes[i].spec))

    def _numbers(self, evaluation: Evaluation) -> list[Number]:
        number = self.environment.number
        return [
            number(e.args, k)
            for e in evaluation.nodes
            if e.op is not None
            for k, a in enumerate(e.args)
            if type(a) is not Expr
        ]

    def _lines(self, evaluation: Evaluation) -> dict[int, str | None]:
        return {i: str(e.asked_at) if e.asked_at else None for i, e in enumerate(evaluation.nodes)}

    def _note(
        self, plan: BoundPlan, given: list[Place], numbers: list[Number],
        lines: dict[int, str | None],
    ) -> None:  # fmt: skip
        """Adds the launches of a plan; its slots beyond those given are new ones here."""
        first, count = self._slots, len(given)
        self._slots += plan.plan.slots - count

        def at(slot: int, offset: int = 0) -> Place:
            if slot < count:
                return Place(given[slot].slot, given[slot].offset + offset)
            return Place(first + slot - count, offset)

        def operand(x: Operand) -> Strided:
            where = at(x.slot, x.view.offset * x.dtype.itemsize)
            return Strided(where, x.view.shape, x.view.strides, x.dtype)

        for step in plan.steps:
            for slot, nbytes in step.fresh:
                self.sizes[at(slot).slot] = nbytes
            if isinstance(step, BoundCall):
                inputs = tuple(operand(x) for x in step.call.inputs)
                self.acts.append(
                    Call(step.call.op, inputs, operand(step.call.output), step.call.nbytes)
                )
            elif isinstance(step, BoundStep) and not step.empty:
                buffers = tuple(at(slot, offset) for slot, offset in step.step.buffers)
                found = tuple(numbers[k] for k in step.scalars)
                asked = tuple(lines[i] for _, i, _ in step.step.checks)
                self.acts.append(Launch(step, buffers, found, asked))

    # --- work over tensors in memory, without a graph
    def launch(
        self, step: BoundStep, leaves: Sequence[Expr], numbers: Sequence[Scalar], line: str | None
    ) -> None:  # fmt: skip
        """See `recording.Recorder`."""
        self._require_device(leaves[0].spec.device)
        places = [self.needed(e) for e in leaves]
        buffers = tuple(
            Place(places[slot].slot, places[slot].offset + offset)
            if slot < len(places) else Place(0, 0)  # an error cell's
            for slot, offset in step.step.buffers
        )  # fmt: skip
        given = tuple(numbers)
        found = tuple(self.environment.number(given, k) for k in step.scalars)
        self.perform(Launch(step, buffers, found, (line,) * len(step.checks)))

    def call(
        self, name: str, source: str, work: Callable[[At, Sequence[Scalar], StreamHandle], object],
        leaves: Sequence[Expr], written: Sequence[int], numbers: Sequence[Scalar],
    ) -> None:  # fmt: skip
        """See `recording.Recorder`."""
        self._require_device(leaves[0].spec.device)
        places = tuple(self.needed(e) for e in leaves)
        nbytes = sum(e.spec.size * e.spec.itemsize for e in leaves)
        given = tuple(numbers)
        found = tuple(self.environment.number(given, k) for k in range(len(given)))
        self.perform(Work(name, source, work, places, frozenset(written), found, nbytes))

    def host(
        self, call: HostCall, operands: Sequence[Expr], into: Expr | None
    ) -> list[Expr]:  # fmt: skip
        """See `recording.Recorder`."""
        device = operands[0].spec.device
        self._require_device(device)
        declared = call.results([(e.spec.shape, e.spec.dtype) for e in operands])
        made = [into] if into is not None else [
            self.allocated(spec(shape, dtype, device, call.name)) for shape, dtype in declared
        ]  # fmt: skip
        parts = [[_whole(self.needed(e), e.spec) for e in part] for part in (operands, made)]
        step = HostStep(call, tuple(parts[0]), tuple(parts[1]))
        if not self.dry:
            engine.counters.calls += 1
            for e in operands:
                faults.look(storage_of(e))
        self.perform(step)
        step.line = caller()  # only replays name it: here the traceback shows the line
        return made

    # --- what is no memory
    def draw(self, reserve: Callable[[], tuple[int, int]]) -> tuple[int, int]:
        """See `recording.Recorder`."""
        values = (0, 0) if self.dry else reserve()
        first = self.environment.variable(values[0])
        self._drawn = (first, self.environment.variable(values[1]))
        self.acts.append(Effect(reserve, first))
        return values

    def drawn(self, args: Args) -> None:
        """See `recording.Recorder`."""
        self.environment.tag(args, self._drawn)

    def read(self, read: Callable[[], Sequence[float]], count: int) -> Sequence[float]:
        """See `recording.Recorder`."""
        given = [1.0] * count if self.dry else read()
        found = [x * 1.0 for x in given]  # objects of their own, by which they are known again
        variables = [self.environment.variable(x) for x in found]
        for x, v in zip(found, variables, strict=True):
            self.environment.tag(x, (v,))
        self.acts.append(Effect(read, variables[0] if variables else None))
        return found

    def act(self, action: Callable[[], object]) -> None:
        """See `recording.Recorder`."""
        if not self.dry:
            action()
        self.acts.append(Effect(action))

    # --- what is of other recorders
    def refuse(self, what: str, tensors: Sequence[object]) -> None:
        """See `recording.Recorder`."""
        raise recording.refused_capture(what)

    def lifted(self, function: object, given: object) -> None:
        """See `recording.Recorder`."""

    def batches(self, *exprs: Expr) -> bool:
        """See `recording.Recorder`."""
        return False

    def hooked(self, e: object) -> None:
        """See `recording.Recorder`. Who captures gradients looks for hooks along the tape."""

    def any_of(self, x: object) -> bool:
        """See `recording.Recorder`."""
        raise recording.refused_capture("a bool of a tensor")

    def selecting(self, mask: object) -> nullcontext[None]:
        """See `recording.Recorder`. No example chooses a branch of its own."""
        return nullcontext()

    # --- the end
    def program(self, results: Sequence[Place], name: str = "") -> Program:
        """What was noted, with memory for results: every slot born here that one of them is in.

        Slots are numbered anew; `results` are to be found by `renumbered`.
        """
        acts = self._with_constants(results)
        acts = needed(acts, self.sizes, (p.slot for p in results))
        spans = touched(acts)
        wanted = [*dict.fromkeys(p.slot for p in results if p.slot in self.sizes)]
        inner = {s: n for s, n in self.sizes.items() if s in spans and s not in wanted}
        held = [s for s in self.held if s in spans or any(p.slot == s for p in results)]
        offsets, arena = arranged(inner, spans)
        order = [*self.inputs, *held, *wanted]
        renumbered = {s: i for i, s in enumerate(order)}

        def move(p: Place) -> Place:
            if p.slot in offsets:
                return Place(len(order), offsets[p.slot] + p.offset)
            return Place(renumbered[p.slot], p.offset)

        self.renumbered = move
        written = {p.slot for act in acts for p in act.written}
        return Program(
            open_device(self.device or default_device()),
            len(self.inputs),
            tuple(self.held[s] for s in held),
            tuple(self.sizes[s] for s in wanted),
            arena,
            tuple(act.moved(move) for act in acts),
            frozenset(i for i, s in enumerate([*self.inputs, *held]) if s in written),
            name,
        )

    def _with_constants(self, results: Sequence[Place]) -> list[Act]:
        """The acts; what the host has filled and nothing writes is kept, and not filled again."""
        others = [act for act in self.acts if not isinstance(act, Fill)]
        changed = {p.slot for act in others for p in act.written} | {p.slot for p in results}
        found = []
        for act in self.acts:
            if isinstance(act, Fill) and act.place.slot in self.held:
                if act.place.slot not in changed:
                    self.sizes.pop(act.place.slot, None)
                    continue
                del self.held[act.place.slot]
            found.append(act)
        return found


def evaluate_pending() -> None:
    """Evaluate all that is pending, so that each tensor made before a capture is a leaf in it.

    Otherwise an expression of the captured function could contain how such a tensor was made, and
    a replay would use that instead of the tensor's value. Expressions that earlier captures and
    `vmap` have left behind have no value; they are passed over.
    """
    known: dict[Expr, bool] = {}
    waiting = [e for e in pending() if _is_computable(e, known)]
    arguments = {id(a) for e in waiting for a in e.args if type(a) is Expr}
    for exprs in ([e for e in waiting if id(e) not in arguments], waiting):
        todo = [e for e in exprs if e.op is not None]
        try:
            engine.evaluate(todo, asked=False)
        except TransformError:  # some stand for one example of a `vmap` that has ended
            for e in todo:
                with suppress(TransformError):
                    engine.evaluate([e], asked=False)


def _is_computable(e: Expr, known: dict[Expr, bool]) -> bool:
    """Return True if all leaves of `e` have memory, or are known to the recorder of this thread."""
    stack = [e]
    while stack:
        top = stack[-1]
        source = top.storage.pending if top.op is None else None
        parts = [a for a in top.args if type(a) is Expr] if top.op is not None else [source]
        unknown = [a for a in parts if a is not None and a not in known]
        if unknown:
            stack += unknown
            continue
        stack.pop()
        if top.op is not None or source is not None:
            known[top] = all(known[a] for a in parts if a is not None)
        else:
            storage = top.storage
            is_real = not storage.nbytes or storage.ptr.handle is not None
            known[top] = is_real or _is_recorded(storage)
    return known[e]


def _is_recorded(storage: Storage) -> bool:
    """Return True if a capture that goes on has made this memory, which has no contents."""
    recorder = recording.current()
    while isinstance(recorder, Recorder):
        slot = recorder._known.get(id(storage))
        if slot is not None and slot[0]() is storage:
            return True
        recorder = recorder.outer
    return False


def _whole(p: Place, s: Spec) -> Strided:
    """A tensor in memory without gaps, as an operand."""
    return Strided(p, s.shape, s.strides, s.dtype)


@contextmanager
def recorded_by(recorder: Recorder | None) -> Iterator[None]:
    """A context in which this thread's work is noted there, or nowhere."""
    before = recording.become(recorder)
    try:
        yield
    finally:
        recording.become(before)
