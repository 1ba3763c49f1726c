"""The tracer of captured functions: it records what a function does to memory."""

from __future__ import annotations

import gc
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import NoReturn, TypeVar, TypeVarTuple
from weakref import ref

import numpy as np

from .. import callbacks, dtypes
from ..backend import faults
from ..backend.interface import Scalar
from ..backend.streams import current_handle
from ..device_class import Device, default_device
from ..device_class import opened as open_device
from ..engine import evaluate as engine
from ..engine import tracer_api
from ..engine.batched_write import BatchedWrite
from ..engine.evaluation import Evaluation
from ..engine.graph_key import OrderedGraph
from ..engine.launching import BoundCall, BoundKernel, BoundPlan
from ..engine.traced_numbers import Environment, TracedNumber
from ..errors import CaptureError
from ..fusion.plan import MemoryOperand
from ..graph.expr import (
    Args,
    Expr,
    Spec,
    convert_to_leaf,
    leaf,
    node,
    pending_nodes,
    spec,
    storage_of,
)
from ..locks import Lock
from ..memory.pointer import DataPtr, StreamHandle
from ..memory.storage import Storage, storage_at
from ..memory.tracing.stacktrace import caller_line
from ..ops.host_routines import HostCall
from ..ops.table import Op
from ..plugins.device_handle import OpenedDevice
from ..tensor.host import evaluate_leaf
from ..tensor.tensor import Tensor, create_lazy_storage
from ..weak_identity_map import WeakIdentityMap
from .host_generators import UNRECORDED_DRAW, HostGenerators
from .program import (
    Act,
    Addresses,
    CapturedProgram,
    DrawAct,
    EffectAct,
    FillAct,
    HostAct,
    LaunchAct,
    LibraryCallAct,
    Place,
    RawLaunchAct,
    StridedMemory,
    ValueGuardAct,
    assign_arena_offsets,
    drop_unread_launches,
    has_effects,
    variables,
)
from .rerolling import reroll

# Finds memory that a recorder has not seen: the slot among the inputs, and the byte at which that
# begins; None if the program keeps the memory.
Resolver = Callable[[Storage], tuple[int, int] | None]

P = TypeVarTuple("P")
R = TypeVar("R")

CHAIN_LINK_OPS = 8  # ops of a link, whose launch takes about the time of these ops on one element
CHAIN_DEPTHS_MAX = 4  # depths of chains that a function evaluates whole
CHAIN_ELEMENTS_MAX = 4096

ONE_CAPTURE = Lock(waited=False)  # a thread holds it while it traces; see `evaluate_pending`
CAPTURE_WAIT_SECONDS = 30.0  # for the capture of another thread, which may wait for this thread
VALUE_GUARDS_MAX = 512  # reads of a capture by the host, for the values of that call alone
GUARDED_BYTES_MAX = 2**14  # of such a value
GARBAGE_OBJECTS_MIN = 10_000  # of `gc.set_threshold` during a trace


class CapturesBusyError(CaptureError):
    """Another thread has been capturing a function for too long."""

    def __init__(self) -> None:
        super().__init__(
            f"another thread has been capturing a function for {CAPTURE_WAIT_SECONDS:g} seconds, "
            "and captures take turns; a captured function must not wait for another thread that "
            "captures one"
        )


def hold_captures(work: Callable[[*P], R], args: tuple[*P]) -> R:
    """Return `work(*args)` while no other thread captures.

    Raises: CapturesBusyError if another thread does for more than `CAPTURE_WAIT_SECONDS`.
    """
    call = _collect_rarely, (work, args)
    return ONE_CAPTURE.hold_within(CAPTURE_WAIT_SECONDS, CapturesBusyError, *call)


def _collect_rarely(work: Callable[[*P], R], args: tuple[*P]) -> R:
    """Return `work(*args)` with fewer collections of garbage.

    A trace keeps most objects that it makes. Collections took 2 to 22 % of the processor time of
    traced loops over elements (2026-12-03, Intel Xeon).
    """
    before = gc.get_threshold()
    if before[0] == 0:  # it is off
        return work(*args)
    thresholds = max(before[0], GARBAGE_OBJECTS_MIN), *before[1:]
    try:
        gc.set_threshold(*thresholds)
        return work(*args)
    finally:
        if gc.get_threshold() == thresholds:
            gc.set_threshold(*before)


class CaptureTracer(tracer_api.Tracer):
    """The tracer of a captured function: it runs the function's acts and records them.

    A `is_dry` one launches nothing: memory has no contents, and values that are made meanwhile are
    good for their shapes alone.
    """

    outer: CaptureTracer | None

    def __init__(
        self,
        device: Device | None,
        is_dry: bool,
        resolve: Resolver | None = None,
        outer: CaptureTracer | None = None,
        keep: Callable[[Tensor], None] | None = None,
        warn_of_read: Callable[[str], None] | None = None,
    ) -> None:
        """`warn_of_read`: after it was called, the function runs on without a capture."""
        self.device, self.is_dry, self.outer, self._keep = device, is_dry, outer, keep
        self._warn_of_read = warn_of_read
        self.stream: StreamHandle = None if device is None else current_handle(device)
        self.environment: Environment = Environment() if outer is None else outer.environment
        self.acts: list[Act] = []
        self.arrays: list[np.ndarray] = []  # from which the function has made tensors
        self.sizes: dict[int, int] = {}  # bytes of the slots that are allocated here
        self.inputs: list[int] = []
        self.from_outer: dict[int, Place] = {}  # slot -> the outer recorder's place
        self.constants: dict[int, Storage] = {}
        self._live_storages: list[Storage] = []  # what acts need that are to be done
        self._resolve = resolve
        self._slots = 0
        # The slot of memory, and the byte of it at which the slot begins.
        self._slots_by_storage: WeakIdentityMap[Storage, tuple[int, int]] = WeakIdentityMap()
        self._storages: dict[int, ref[Storage]] = {}  # by slot
        # Slots with contents that may differ in the next call, and how many acts they are known of.
        self._varying_slots, self._classified_acts = set[int](), 0
        self.value_guards = 0
        # Slots of constants that the host fills, and how many acts have no effects.
        self._filled_slots, self._effect_free_acts = set[int](), 0
        self._chain_depths = set[int]()  # of evaluated chains that are longer than a link
        self._drawn = (0, 0)
        self.generators = HostGenerators()
        self._order = callbacks.tapes.order()

    @property
    def is_capture(self) -> bool:
        """True: a program is built, to replay with other values."""
        return True

    def evaluate_earlier(self, e: Expr) -> None:
        """Do nothing: work from before the trace was evaluated when the trace began."""

    # --- memory and its slots
    def add_input(self) -> int:
        """Add a slot for an input of the program, and return its number."""
        self.inputs.append(self._new_slot())
        return self.inputs[-1]

    def _new_slot(self) -> int:
        """Count one more slot and return its number."""
        self._slots += 1
        return self._slots - 1

    def placeholder(self, s: Spec) -> Expr:
        """Add an input slot; return a leaf of this spec without memory that stands for it."""
        storage = _null_storage(s)
        self._set_slot(storage, self.add_input())
        return leaf(storage, s, s.strides, 0)

    def allocate(self, s: Spec) -> Expr:
        """Allocate memory (none if dry) with a slot, and return a leaf over it."""
        if self.is_dry:
            storage = _null_storage(s)
        else:
            nbytes = s.size * s.dtype.itemsize
            ptr = open_device(s.device).allocator.allocate(nbytes, self.stream)
            storage = storage_at(ptr, nbytes, s.device)
            self._live_storages.append(storage)
        self.record_allocation(storage)
        return leaf(storage, s, s.strides, 0)

    def record_allocation(self, storage: Storage) -> None:
        """Add a slot for new memory. Raises: CaptureError on another device or stream."""
        self._require_device(storage.device)
        slot = self._new_slot()
        self.sizes[slot] = storage.nbytes
        self._set_slot(storage, slot)

    def _set_slot(self, storage: Storage, slot: int, begin: int = 0) -> tuple[int, int]:
        """Note the slot of memory, and the byte where it begins; return both."""
        self._storages[slot] = ref(storage)
        self._slots_by_storage[storage] = slot, begin
        return slot, begin

    def _slot_of(self, storage: Storage) -> tuple[int, int]:
        """Return (slot, byte of the memory where it begins); add the slot if it is missing."""
        tensor = self._slots_by_storage.get(storage)
        if tensor is None:
            tensor = self._set_slot(storage, *self._add_slot(storage))
            self._varying_slots.add(tensor[0])
        return tensor

    def _add_slot(self, storage: Storage) -> tuple[int, int]:
        """Add a slot for memory from outside; return it and the byte where it begins."""
        if self.outer is not None:
            slot = self.add_input()
            outer, begin = self.outer._slot_of(storage)
            self.from_outer[slot] = Place(outer, 0)
            self._live_storages.append(storage)
            return slot, begin
        resolved = None if self._resolve is None else self._resolve(storage)
        if resolved is not None:
            return resolved
        slot = self._new_slot()
        self.constants[slot] = storage
        return slot, 0

    def find_slot(self, storage: Storage) -> int | None:
        """Return the slot of memory that has been seen; None for other memory."""
        tensor = self._slots_by_storage.get(storage)
        return None if tensor is None else tensor[0]

    def locate(self, e: Expr) -> Place:
        """Return where a leaf begins; add unseen memory as a constant or an outer input."""
        slot, begin = self._slot_of(storage_of(e))
        return Place(slot, e.offset * e.spec.dtype.itemsize - begin)

    def locate_live(self, e: Expr) -> Place:
        """Return the place where a leaf begins; keep its memory alive as long as this tracer."""
        self._live_storages.append(storage_of(e))
        return self.locate(e)

    def _strided_operand(self, leaves: Sequence[Expr]) -> tuple[StridedMemory, ...]:
        """Return leaves without gaps as operands of an act; keep their memory alive."""
        return tuple(
            StridedMemory(self.locate_live(e), e.spec.shape, e.spec.strides, e.spec.dtype)
            for e in leaves
        )

    def _require_device(self, device: Device) -> None:
        """Set the device at the first work; raise CaptureError for another device or stream."""
        if self.device is None:  # the first work says it
            self.device, self.stream = device, current_handle(device)
        if self._runs_on(device):
            return
        if device is not self.device:
            raise CaptureError(
                f"dt.jit: a captured function must use one device, got {self.device} and {device}; "
                "move the tensors with x.to(device) before the call"
            )
        raise CaptureError(
            "dt.jit: dt.stream() cannot be used in a captured function; enter the stream "
            "around the call of the function"
        )

    def _runs_on(self, device: Device) -> bool:
        """Return True if work on a device and its current stream may be recorded."""
        return self.device is None or (
            device is self.device and current_handle(device) is self.stream
        )

    # --- what the host does
    def record_fill(self, storage: Storage, values: bytes) -> None:
        """Record that the host fills memory with values, a constant unless an act writes there."""
        is_new = storage not in self._slots_by_storage
        slot = self._slot_of(storage)[0]
        if is_new:
            self._varying_slots.discard(slot)
        self.constants[slot] = storage
        self.acts.append(FillAct(Place(slot, 0), values))

    def record_array(self, array: np.ndarray) -> None:
        """Record that a tensor was made from the values of an array."""
        if self.outer is None:
            self.arrays.append(array)
        else:
            self.outer.record_array(array)

    def record_constant(self, x: Tensor) -> None:
        """Record that the function may keep a tensor that no path of its closure leads to."""
        if self._keep is not None:
            self._keep(x)
        super().record_constant(x)

    def knows_leaf(self, e: Expr) -> bool:
        """Return True if a leaf without contents, or a placeholder, is known."""
        return (e.op is None and e.storage in self._slots_by_storage) or super().knows_leaf(e)

    def run_and_record(self, act: Act) -> None:
        """Run an act, unless the recorder is dry, and record it."""
        if not self.is_dry:
            opened, at = self._addresses(act)
            act.run(opened, at, self.environment.values, self.stream)
        self.acts.append(act)

    def _addresses(self, act: Act) -> tuple[OpenedDevice, Addresses]:
        """Return the device, and where the slots of an act are."""
        at: Addresses = [None, 0] * self._slots
        for slot in {p.slot for p in act.places()}:
            storage = self._storages[slot]()
            if storage is not None and storage.ptr is not None:
                _, begin = self._slots_by_storage.get(storage) or (slot, 0)
                at[2 * slot : 2 * slot + 2] = storage.ptr.handle, storage.ptr.offset + begin
        return open_device(self.device or default_device()), at

    # --- evaluations
    def run(self, evaluation: Evaluation, reports_checks: bool) -> bool:
        """Record an evaluation, and run it unless dry; return False if its target overlaps."""
        if self._record_chain_depth(evaluation.graph.roots):
            evaluation.evaluate_first(_find_chain_links(evaluation.graph.roots[0]))
        execute = partial(evaluation.execute, reports_checks=reports_checks)
        return self._record_plan(evaluation.graph, evaluation.bind, execute)

    def _record_chain_depth(self, roots: Sequence[Expr]) -> bool:
        """Record the depth of a chain of few elements; return True if many depths were recorded.

        `acc += a[j] * b[j]` in a nested loop has a deeper graph and another kernel each time.
        Links of `CHAIN_LINK_OPS` ops have the same kernels.
        """
        if roots[0].depth <= CHAIN_LINK_OPS or len(roots) > 1 or not _find_chain_links(roots[0]):
            return False
        self._chain_depths.add(roots[0].depth)
        return len(self._chain_depths) > CHAIN_DEPTHS_MAX

    def run_batch(self, write: BatchedWrite) -> bool:
        """Record a batched write, and run it unless dry; return False if operands overlap."""
        return self._record_plan(write.evaluation.graph, write.bind, write.execute)

    def _record_plan(
        self,
        graph: OrderedGraph,
        bind: Callable[[], BoundPlan],
        execute: Callable[[BoundPlan], None],
    ) -> bool:
        """Record the plan of a graph, and execute it unless dry; return False if one overlaps."""
        self._require_device(graph.device)
        plan = bind()
        if plan.plan.target_overlaps:
            return False
        leaf_places = [self.locate(e) for e in graph.leaves]
        if graph.target is not None:
            leaf_places.append(self.locate(graph.target))
        numbers = [
            self.environment.number(e.args, k)
            for e in graph.nodes
            if e.op is not None
            for k, a in enumerate(e.args)
            if type(a) is not Expr
        ]
        stored = [(i, slot) for i, slot in plan.kept if slot >= len(leaf_places)]
        if self.is_dry:
            for i, _ in stored:
                convert_to_leaf(graph.nodes[i], _null_storage(graph.nodes[i].spec))
        else:
            engine.counters.evaluations += 1
            execute(plan)
        for i, slot in stored:
            slot += self._slots - len(leaf_places)
            self._set_slot(graph.nodes[i].storage, slot)
        self._record_steps(plan, leaf_places, numbers, graph.nodes)
        return True

    def _record_steps(
        self,
        plan: BoundPlan,
        leaf_places: list[Place],
        numbers: list[TracedNumber],
        nodes: Sequence[Expr],
    ) -> None:
        """Record the launches and calls of a plan; add slots for the memory that it allocates."""
        first = self._slots
        self._slots += plan.plan.slot_count - len(leaf_places)
        begins = [*leaf_places, *[Place(slot, 0) for slot in range(first, self._slots)]]

        def at(slot: int, offset: int) -> Place:
            """Return the place of a byte of a slot of the plan."""
            begin = begins[slot]
            return Place(begin.slot, begin.offset + offset) if offset else begin

        def operand(x: MemoryOperand) -> StridedMemory:
            """Return an operand of the plan as memory of the program."""
            where = at(x.slot, x.view.offset * x.dtype.itemsize)
            return StridedMemory(where, x.view.shape, x.view.strides, x.dtype)

        for step in plan.steps:
            for slot, nbytes in step.allocations:
                self.sizes[begins[slot].slot] = nbytes
            if isinstance(step, BoundCall):
                call = step.call
                inputs = tuple(operand(x) for x in call.inputs)
                output = operand(call.output)
                self.acts.append(LibraryCallAct(call.op, call.dtype, inputs, output, call.nbytes))
            elif isinstance(step, BoundKernel) and not step.has_empty_grid:
                buffers = tuple([at(slot, offset) for slot, offset in step.step.buffers])
                scalars = tuple([numbers[k] for k in step.scalars])
                lines = tuple([_line_of(nodes[i]) for _, i, _ in step.step.checks])
                self.acts.append(LaunchAct(step, buffers, scalars, lines))

    # --- work over tensors in memory, without a graph
    def launch(
        self, step: BoundKernel, leaves: Sequence[Expr], numbers: Sequence[Scalar], line: str | None
    ) -> None:
        """Run, unless dry, and record the launch of a kernel over leaves."""
        self._require_device(leaves[0].spec.device)
        leaf_places = [self.locate_live(e) for e in leaves]
        buffers = tuple(
            Place(leaf_places[slot].slot, leaf_places[slot].offset + offset)
            if slot < len(leaf_places)
            else Place(0, 0)  # an error cell's
            for slot, offset in step.step.buffers
        )
        args = tuple(numbers)
        scalars = tuple(self.environment.number(args, k) for k in step.scalars)
        self.run_and_record(LaunchAct(step, buffers, scalars, (line,) * len(step.checks)))

    def call(
        self,
        name: str,
        source: str,
        work: Callable[[Addresses, Sequence[Scalar], StreamHandle], object],
        leaves: Sequence[Expr],
        written: Sequence[int],
        numbers: Sequence[Scalar],
    ) -> None:
        """Run, unless dry, and record a call of `work` with addresses of leaves and numbers."""
        self._require_device(leaves[0].spec.device)
        leaf_places = tuple(self.locate_live(e) for e in leaves)
        nbytes = sum(e.spec.size * e.spec.itemsize for e in leaves)
        args = tuple(numbers)
        scalars = tuple(self.environment.number(args, k) for k in range(len(args)))
        self.run_and_record(
            RawLaunchAct(name, source, work, leaf_places, frozenset(written), scalars, nbytes)
        )

    def call_host(self, call: HostCall, operands: Sequence[Expr], into: Expr | None) -> list[Expr]:
        """Run, unless dry, and record a host routine; return the leaves of its results."""
        device = operands[0].spec.device
        self._require_device(device)
        declared = call.results([(e.spec.shape, e.spec.dtype) for e in operands])
        results = (
            [into]
            if into is not None
            else [self.allocate(spec(shape, dtype, device, call.name)) for shape, dtype in declared]
        )
        step = HostAct(call, self._strided_operand(operands), self._strided_operand(results))
        if not self.is_dry:
            engine.counters.calls += 1
            for e in operands:
                faults.settle_before_read(storage_of(e))
        self.run_and_record(step)
        # Only replays name the line: here the traceback shows it.
        self.acts[-1] = replace(step, line=caller_line())
        return results

    # --- numbers and effects
    def draw(self, reserve: Callable[[], tuple[int, int]]) -> tuple[int, int]:
        """Return two numbers from `reserve`, zeros if dry; record it for each replay."""
        values = (0, 0) if self.is_dry else reserve()
        first = self.environment.variable(values[0])
        self._drawn = (first, self.environment.variable(values[1]))
        self.acts.append(EffectAct(reserve, first, 2))
        return values

    def mark_drawn(self, args: Args) -> None:
        """Mark the first two arguments of a node as the last drawn numbers."""
        self.environment.tag(args, self._drawn)

    def read_numbers(self, read: Callable[[], Sequence[float]], count: int) -> Sequence[float]:
        """Return the numbers from `read`, ones if dry; record it for each replay."""
        # New objects, by which the environment knows them again.
        numbers = [x * 1.0 for x in ([1.0] * count if self.is_dry else read())]
        variables = [self.environment.variable(x) for x in numbers]
        for x, v in zip(numbers, variables, strict=True):
            self.environment.tag(x, (v,))
        self.acts.append(EffectAct(read, variables[0] if variables else None, count))
        return numbers

    @property
    def records_draws(self) -> bool:
        """True, except in the body of a loop or branch, which runs once for all iterations."""
        return not self.is_dry and self.outer is None

    def record_own_generator(self, generator: object) -> None:
        """Add a generator to those that the function seeds itself."""
        self.generators.own.append(ref(generator))

    @contextmanager
    def moving_generator(self, generator: object) -> Iterator[None]:
        """Record the generator, and store the state that the block leaves."""
        if self.generators.has_moved(generator):
            self.refuse_read(UNRECORDED_DRAW, ())
        yield
        self.generators.drawn.append(generator)
        self.generators.watch(generator)

    def record_draw(self, draw: Callable[[], np.ndarray], samples: np.ndarray) -> Expr:
        """Record samples that `draw` gave, for each replay to draw again; return their leaf."""
        d = dtypes.BY_NAME[samples.dtype.name]
        e = self.allocate(spec(samples.shape, d, default_device(), "draw"))
        self.run_and_record(FillAct(self.locate(e), samples.tobytes()))
        self.acts[-1] = DrawAct(draw, *self._strided_operand([e]))
        return e

    def run_effect(self, action: Callable[[], object]) -> None:
        """Run an action, unless dry, and record it for each replay."""
        if not self.is_dry:
            action()
        self.acts.append(EffectAct(action))

    def has_constant_value(self, x: Tensor) -> bool:
        """Return True if the function computes `x`, the same in each call, from constants alone.

        The host may then read it: the arguments, the closure and random numbers do not change it.
        """
        if self.is_dry or self.outer is not None:
            return False
        self._classify_acts()
        e = x._expr
        if e.op is None and e.storage.pending is None:
            return not self._has_varying_memory(e)
        visited, stack = set[Expr](), [e]
        while stack:
            e = stack.pop()
            if e in visited:
                continue
            visited.add(e)
            pending = e.storage.pending if e.op is None else None
            if e.op is None and pending is None and self._has_varying_memory(e):
                return False
            operands = (pending,) if e.op is None else e.args
            numbers = [k for k, a in enumerate(operands) if type(a) is not Expr]
            if e.op is not None and (e.op.placeholder or self._has_variables(e, numbers)):
                return False
            stack += [a for a in operands if type(a) is Expr]
        return True

    def _classify_acts(self) -> None:
        """Add the slots to which new acts may write other values in the next call."""
        if self._classified_acts == len(self.acts):
            return
        for act in self.acts[self._classified_acts :]:
            if not isinstance(act, FillAct) and self._is_varying(act):
                self._varying_slots.update(p.slot for p in act.written)
        self._classified_acts = len(self.acts)

    def record_value_guard(self, x: Tensor) -> bool:
        """Record a guard on the value of a tensor that the host reads; return False if impossible.

        A replay that finds another value is given up, so every earlier act must write to memory of
        the capture alone and have no effects. Floats and large values are refused, and more than
        VALUE_GUARDS_MAX reads: they are seldom equal in two calls.
        """
        s, d = x._expr.spec, x._expr.spec.dtype
        is_fixable = d.kind in "biu" and d.__numpy_dtype__ is not None
        is_small = s.size * d.itemsize <= GUARDED_BYTES_MAX and self.value_guards < VALUE_GUARDS_MAX
        may_fix = self.environment.may_fix and not self.is_dry and self.outer is None
        if not (may_fix and is_fixable and is_small and self._runs_on(s.device)):
            return False
        e = evaluate_leaf(x)
        if (s.size > 1 and e.strides != s.strides) or not self._has_effect_free_acts():
            return False
        self._require_device(s.device)
        faults.settle_before_read(storage_of(e))
        [operand] = self._strided_operand([e])
        act = ValueGuardAct(operand)
        self.acts.append(replace(act, values=act.read(*self._addresses(act), self.stream)))
        self.value_guards += 1
        if self.sizes.get(slot := operand.place.slot) == operand.nbytes:
            self._classify_acts()
            self._varying_slots.discard(slot)
        return True

    def _has_effect_free_acts(self) -> bool:
        """Return True if a replay of the acts could be given up, because it changes only `sizes`.

        That is memory of its own, such as that which the host fills.
        """
        for act in self.acts[self._effect_free_acts :]:
            if isinstance(act, FillAct):
                storage = self.constants.get(act.place.slot)
                if storage is not None and not tracer_api.is_constant(storage):
                    self._filled_slots.add(act.place.slot)
            elif not isinstance(act, LaunchAct) and has_effects([act]):
                return False
            for p in act.written:
                if p.slot not in self.sizes and p.slot not in self._filled_slots:
                    return False
            self._effect_free_acts += 1
        return True

    def _has_varying_memory(self, e: Expr) -> bool:
        """Return True if the memory of a leaf may have other values in the next call."""
        slot = self.find_slot(e.storage)
        return slot is None or slot in self._varying_slots

    def has_equal_number(self, a: Expr, b: Expr, k: int) -> bool:
        """Return True if argument `k` of two nodes is a number that is equal in each call."""
        numbers = [repr(self.environment.number(e.args, k)) for e in (a, b)]  # 0.0 is not -0.0
        return numbers[0] == numbers[1]

    def _has_variables(self, e: Expr, numbers: Sequence[int]) -> bool:
        """Return True if one of these arguments of a node is a number that may vary."""
        return any(self.environment.number(e.args, k).variable is not None for k in numbers)

    def _is_varying(self, act: Act) -> bool:
        """Return True if an act may write other values in the next call."""
        if not isinstance(act, LaunchAct | LibraryCallAct | HostAct):
            return True
        for p in act.places():
            if p.slot in self._varying_slots:
                return True
        return next(variables([act]), None) is not None

    def refuse_read(self, what: str, tensors: Sequence[object]) -> None:
        """Stop the trace, so that the host may read: all work so far was done. Warn of it.

        Raises: CaptureError where no `warn_of_read` was given; in bodies of loops and branches,
        which are dry; and under `vmap`.
        """
        if self._warn_of_read is None or not tracer_api.stop_tracing(self):
            raise tracer_api.capture_error(what)
        self.environment.is_abandoned = True
        self._warn_of_read(what)

    # --- gradients
    def check_retaped(self, e: Expr) -> None:
        """Raise UnrolledLoop for a write in a loop's body to a leaf of the program around it."""
        if (
            not self.is_dry
            or self.outer is None
            or e.op is not None
            or e.storage.pending is not None
        ):
            return
        if self.locate(e).slot in self.from_outer:
            raise tracer_api.UnrolledLoop

    def check_grad(self, order: int) -> None:
        """Raise UnrolledLoop if the body of a loop sets the `grad` of an older tensor."""
        if self.is_dry and self.outer is not None and order < self._order:
            raise tracer_api.UnrolledLoop

    # --- the end
    def invalidate_body_values(self, index: Expr | None) -> None:
        """Make later reads of a body's tensors, and of its loop's index, raise CaptureError."""
        assert self.outer is not None
        for storage, _ in self._slots_by_storage:
            is_ours = storage not in self.outer._slots_by_storage
            if is_ours and storage.pending is None and storage.ptr.handle is None:
                storage.pending = _body_value(spec((storage.nbytes,), dtypes.uint8, storage.device))
        if index is not None and index.op is not None:
            convert_to_leaf(index, create_lazy_storage(_body_value(index.spec)))
        for e in _readers_of_bodies():
            convert_to_leaf(e, create_lazy_storage(_body_value(e.spec)))

    def program(
        self, results: Sequence[Place], name: str = "", live_variables: Container[int] = ()
    ) -> CapturedProgram:
        """Build the program of the recorded acts; set `renumbered`, from old places to its own.

        Slots allocated here in which one of `results` is become the program's results. Slots are
        numbered anew. `live_variables`: variables that another program reads.
        """
        acts = drop_unread_launches(
            self._with_constants(results), self.sizes, (p.slot for p in results)
        )
        result_slots = {p.slot: None for p in results}
        rolled = reroll(acts, self.sizes.keys() - result_slots.keys(), live_variables)
        acts, spans = rolled.acts, rolled.spans()
        wanted = [slot for slot in result_slots if slot in self.sizes]
        inner = {s: n for s, n in self.sizes.items() if s in spans and s not in result_slots}
        for slot in rolled.memory_owners:  # slots that share memory may differ in size
            owner = rolled.owner(slot)
            inner[owner] = max(inner[owner], self.sizes[slot])
        constants = [slot for slot in self.constants if slot in spans or slot in result_slots]
        offsets, arena = assign_arena_offsets(inner, spans)
        offsets |= {slot: offsets[rolled.owner(slot)] for slot in rolled.memory_owners}
        slots = [*self.inputs, *constants, *wanted]
        order = {slot: i for i, slot in enumerate(slots)}

        def move(p: Place) -> Place:
            """Return a place in the program, given one in the trace."""
            if p.slot in offsets:
                return Place(len(slots), offsets[p.slot] + p.offset)
            return Place(order[p.slot], p.offset)

        self.renumbered = move
        written = {p.slot for act in acts for p in act.written}
        opened = open_device(self.device or default_device())
        return CapturedProgram(
            opened,
            len(self.inputs),
            tuple(self.constants[slot] for slot in constants),
            tuple(self.sizes[slot] for slot in wanted),
            arena,
            tuple(rolled.build(move, opened, self.environment)),
            frozenset(order[slot] for slot in (*self.inputs, *constants) if slot in written),
            name,
        )

    def _with_constants(self, results: Sequence[Place]) -> list[Act]:
        """Return the acts without fills of constant memory; update `sizes` and `constants`.

        Memory is constant if nothing else writes it.
        """
        others = [act for act in self.acts if not isinstance(act, FillAct)]
        changed = {p.slot for act in others for p in act.written} | {p.slot for p in results}
        acts, fills = list[Act](), dict[int, list[FillAct]]()
        for act in self.acts:
            if isinstance(act, FillAct) and act.place.slot in self.constants:
                if act.place.slot not in changed:
                    self.sizes.pop(act.place.slot, None)
                    fills.setdefault(act.place.slot, []).append(act)
                    continue
                del self.constants[act.place.slot]
            acts.append(act)
        return self._merge_constants(acts, fills)

    def _merge_constants(
        self, acts: list[Act], fills: Mapping[int, Sequence[FillAct]]
    ) -> list[Act]:
        """Return the acts with the first one of equal constants; remove the others.

        So a loop that makes an array of numbers repeats its acts. `fills`: of each constant's slot.
        """
        first_slots, first_of = dict[tuple[bytes, int, int], int](), dict[int, int]()
        for slot, (fill, *others) in fills.items():
            key = fill.values, fill.place.offset, self.constants[slot].nbytes
            first = slot if others else first_slots.setdefault(key, slot)
            if first != slot:
                first_of[slot] = first
                del self.constants[slot]

        def move(p: Place) -> Place:
            """Return the place in the first one of equal constants."""
            return Place(first_of.get(p.slot, p.slot), p.offset)

        return [
            act.replace_places(move) if any(p.slot in first_of for p in act.places()) else act
            for act in acts
        ]


def evaluate_pending() -> None:
    """Evaluate what is pending and has a value, so that older tensors are leaves in a capture.

    Otherwise an expression of the captured function could contain how such a tensor was made, and
    a replay would use that instead of the tensor's value. Expressions that earlier captures and
    `vmap` have left behind have no value; they are passed over. What another thread is capturing
    must not be evaluated here, where its tracer would miss it, so this waits for its end.

    Raises: CapturesBusyError if that takes too long.
    """
    hold_captures(_evaluate_pending, ())


def _evaluate_pending() -> None:
    """Evaluate what is pending and has a value; the caller holds the lock of captures."""
    is_computable: dict[Expr, bool] = {}
    waiting = [e for e in pending_nodes() if _is_computable(e, tracer_api.current(), is_computable)]
    arguments = {id(a) for e in waiting for a in e.args if type(a) is Expr}
    for exprs in ([e for e in waiting if id(e) not in arguments], waiting):
        engine.evaluate([e for e in exprs if e.op is not None], reports_checks=False)


def _is_computable(e: Expr, tracer: tracer_api.Tracer | None, cache: dict[Expr, bool]) -> bool:
    """Return True if all leaves of `e` have memory, or the tracer knows them; fill `cache`."""
    stack = [e]
    while stack:
        top = stack[-1]
        operands = [top.storage.pending] if top.op is None else top.args
        exprs = [a for a in operands if type(a) is Expr]
        unknown = [a for a in exprs if a not in cache]
        if unknown:
            stack += unknown
            continue
        stack.pop()
        if exprs:
            cache[top] = all(cache[a] for a in exprs)
        elif top.op is None:
            is_real = not top.storage.nbytes or top.storage.ptr.handle is not None
            cache[top] = is_real or (tracer is not None and tracer.knows_leaf(top))
        else:
            is_traced = tracer is not None and tracer.knows_leaf(top)
            cache[top] = is_traced or not top.op.placeholder
    return cache[e]


def _refuse_value(op: str, kinds: object, attrs: object) -> NoReturn:
    """Raise CaptureError for a tensor of a loop's or branch's body, always."""
    raise CaptureError(
        "dt.jit: a tensor of the body of a loop or branch cannot be read after the body has ended; "
        "return it from the body"
    )


BODY_VALUE = Op("body value", "kernel", _refuse_value, arity=0, placeholder=True)


def _body_value(s: Spec) -> Expr:
    """Return a pending node whose evaluation raises CaptureError."""
    return node(BODY_VALUE, (), s)


def _readers_of_bodies() -> list[Expr]:
    """Return the pending nodes that read expressions from the body of a loop or branch."""
    reads: dict[Expr, bool] = {}
    waiting = [e for e in pending_nodes() if e.op is not BODY_VALUE]
    stack = [*waiting]
    while stack:
        e = stack[-1]
        operands = [e.storage.pending] if e.op is None else e.args
        exprs = [a for a in operands if type(a) is Expr]
        unknown = [a for a in exprs if a not in reads]
        if unknown:
            stack += unknown
        else:
            reads[stack.pop()] = e.op is BODY_VALUE or any(reads[a] for a in exprs)
    return [e for e in waiting if reads[e]]


def _line_of(e: Expr) -> str | None:
    """Return the source line that asked for a node's index check, or None."""
    return None if e.check_line is None else str(e.check_line)


def _null_storage(s: Spec) -> Storage:
    """Return a storage of a spec's size without memory behind it."""
    nbytes = s.size * s.dtype.itemsize
    return storage_at(DataPtr(None, 0, nbytes, s.device), nbytes, s.device)


def _find_chain_links(root: Expr) -> list[Expr]:
    """Return the last node of each link of the chain below `root`, from the root down.

    A link is `CHAIN_LINK_OPS` maps of few elements. The depths of its last nodes are multiples of
    that, so equal beginnings of chains have equal links.
    """
    links, candidate = list[Expr](), None
    e: Expr | None = root
    while e is not None:
        if e.op is None:
            e = storage_of(e).pending
            continue
        if e.op.kind != "map" or e.spec.size > CHAIN_ELEMENTS_MAX:
            candidate = None
        elif e.depth % CHAIN_LINK_OPS == 0 and e is not root:
            candidate = e
        if candidate is not None and candidate.depth - e.depth == CHAIN_LINK_OPS - 1:
            links.append(candidate)
        operands = [a for a in e.args if type(a) is Expr]
        e = max(operands, key=attrgetter("depth"), default=None)
    return links
