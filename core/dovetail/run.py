"""Evaluation: graph -> plan (cached under the graph's structure) -> programs (cached in memory and on disk) -> launches."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from sys import getrefcount
from typing import Any

from . import diskcache
from .device import Device, opened
from .errors import IndexOutOfRange
from .expr import Expr, node, readers, settle, storage_of
from .fuse import Call, Overlap, Plan, Planner, Step, Target
from .kernel import Kernel
from .layout import Layout
from .legalize import legalize
from .memory import DataPtr, Storage
from .ops import COPY
from .plugins import Opened
from .streams import current_handle

PLAN_LIMIT = 8192  # cached plans; the cache starts anew beyond


@dataclass
class Counters:
    """What evaluation has done since the process began."""

    evaluations: int = 0
    plans: int = 0  # graphs of a structure not seen before
    launches: int = 0
    compiles: int = 0
    disk_hits: int = 0
    compile_seconds: float = 0.0
    calls: int = 0  # vendor routines


counters = Counters()
lock = threading.RLock()
trace: list[dict[str, Any]] | None = None  # events for `profile`, while it runs
reproducible = 0  # > 0: vendor routines are not used
_plans: dict[Any, Plan] = {}
_programs: dict[tuple[str, str], Any] = {}


def evaluate(exprs: Sequence[Expr]) -> None:
    """Computes these nodes; afterwards they are leaves, in memory."""
    with lock:
        by_device: dict[Device, list[Expr]] = {}
        for e in exprs:
            e = _source(e)
            if e is not None:
                by_device.setdefault(e.spec.device, []).append(e)
        for roots in by_device.values():
            _Evaluation(roots).run()


def _source(e: Expr) -> Expr | None:
    """The pending node that must be computed for `e` to be in memory."""
    return e if e.op is not None else storage_of(e).pending


def write(value: Expr, target: Expr) -> None:
    """Stores `value`, of the same shape and dtype, into the memory that leaf `target` views."""
    with lock:
        pending = storage_of(target).pending
        if pending is not None:
            evaluate([pending])
        storage = storage_of(target)
        copy = node(COPY, (value,), value.spec)
        _flush(storage, copy)
        try:
            _Evaluation([copy], target).run()
        except Overlap:
            _Evaluation([copy]).run()
            _Evaluation([node(COPY, (copy,), copy.spec)], target).run()
        storage.version += 1


def _flush(storage: Storage, value: Expr) -> None:
    """Computes whatever is pending, reads this storage, and is not part of `value`."""
    found = readers(storage)
    if found:
        mine = _graph(value)
        evaluate([e for e in found if e not in mine])


def _graph(root: Expr) -> set[Expr]:
    seen: set[Expr] = set()
    stack: list[Any] = [root]
    while stack:
        e = stack.pop()
        if type(e) is Expr and e not in seen:
            seen.add(e)
            stack += e.args
            if e.op is None and storage_of(e).pending is not None:
                stack.append(e.storage.pending)
    return seen


class _Evaluation:
    """One evaluation: the graph in order, its key, and what is particular to this time (pointers, scalars)."""

    __slots__ = ("boxes", "device", "index", "key", "leaves", "nodes", "roots", "scalars", "target", "uses")

    def __init__(self, roots: Sequence[Expr], target: Expr | None = None) -> None:
        self.nodes: list[Expr] = []
        self.index: dict[Expr, int] = {}
        self.uses: list[int] = []
        self.key: list[Any] = []
        self.leaves: list[Expr] = []
        self.scalars: list[Any] = []
        self.boxes: list[tuple[int, int]] = []  # (leaf over a pending storage, the node that will fill it)
        self.roots = roots
        self.target = target
        self.device = roots[0].spec.device
        for r in roots:
            if r not in self.index:
                self._visit(r)

    def _visit(self, e: Expr) -> int:
        index, key = self.index, self.key
        op = e.op
        if op is None:
            pending = e.storage.pending
            if pending is not None and pending.op is None:
                pending = storage_of(e).pending
            if pending is None:
                self.leaves.append(e)
                e.depth = 0
                key.append(e.spec)
                key.append(e.strides)
            else:
                i = index.get(pending)
                if i is None:
                    i = self._visit(pending)
                self.boxes.append((len(self.nodes), i))
                key.append(e.spec)
                key.append(e.moves)
                key.append(i)
        else:
            mine: list[Any] = [op, e.attrs, e.spec]
            for a in e.args:
                if type(a) is Expr:
                    i = index.get(a)
                    if i is None:
                        i = self._visit(a)
                    self.uses[i] += 1
                    mine.append(i)
                else:
                    mine.append(type(a))
            for a in e.args:
                if type(a) is not Expr:
                    self.scalars.append(a)
            key += mine
        n = len(self.nodes)
        index[e] = n
        self.nodes.append(e)
        self.uses.append(0)
        return n

    def run(self) -> None:
        counters.evaluations += 1
        held = self._held()
        roots = tuple([self.index[r] for r in self.roots])
        key = self.key
        key.append(held)
        key.append(roots)
        key.append(reproducible > 0)
        target = None
        if self.target is not None:
            target = self._target()
            key.append(target)
        frozen = tuple(key)
        plan = _plans.get(frozen)
        if plan is None:
            plan = self._plan(held, roots, target)
            if len(_plans) > PLAN_LIMIT:
                _plans.clear()
            _plans[frozen] = plan
        self._execute(plan)

    def _held(self) -> tuple[int, ...]:
        """Pending nodes that something outside of this graph refers to: a tensor, or another pending graph."""
        held = []
        uses, i = self.uses, 0
        if self.boxes:
            held += self._held_boxes()
        count = getrefcount
        for e in self.nodes:
            if e.op is not None and count(e) > uses[i] + _OWN_REFERENCES:
                held.append(i)
            i += 1
        return tuple(held)

    def _held_boxes(self) -> list[int]:
        """The same for nodes that are reached through a storage that waits for them."""
        held, inside = [], {}
        for leaf, source in self.boxes:
            e = self.nodes[leaf]
            storage = e.storage
            inside[storage] = inside.get(storage, 0) + 1
            if getrefcount(e) > self.uses[leaf] + _OWN_REFERENCES:
                held.append(source)
        for leaf, source in self.boxes:
            storage = self.nodes[leaf].storage
            if inside.pop(storage, None) is not None:
                self.uses[source] += 1
                leaves = sum(self.nodes[k].storage is storage for k, _ in self.boxes)
                if getrefcount(storage) > leaves + 2:  # its leaves, `storage`, the call
                    held.append(source)
        return held

    def _target(self) -> Target:
        t = self.target
        assert t is not None
        storage_of(t)
        overlaps, same = set(), set()
        for slot, e in enumerate(self.leaves):
            if e.storage is t.storage:
                overlaps.add(slot)
                if e.offset == t.offset and e.strides == t.strides and e.spec.shape == t.spec.shape:
                    same.add(slot)
        return Target(t.strides, len(self.leaves), frozenset(overlaps), frozenset(same))

    def _plan(self, held: Any, roots: Any, target: Target | None) -> Plan:
        counters.plans += 1
        begun = time.perf_counter_ns()
        where = opened(self.device)
        leaf_slot = {self.index[e]: slot for slot, e in enumerate(self.leaves)}
        lowered = frozenset() if reproducible else frozenset(where.lowerings)
        busy = where.backend.info.capabilities.concurrency
        planner = Planner(self.nodes, self.index, leaf_slot, roots, held, busy, lowered, target)
        plan = planner.plan()
        record("plan", begun, steps=len(plan.steps))
        for step in plan.steps:
            if isinstance(step, Step):
                prepare(where, step)
        return plan

    def _execute(self, plan: Plan) -> None:
        where = self.device.opened or opened(self.device)
        stream = current_handle(self.device)
        handles: list[Any] = [None] * plan.slots
        offsets: list[int] = [0] * plan.slots
        keep: list[Any] = [None] * plan.slots
        slot = 0
        for e in self.leaves:
            ptr = e.storage.ptr
            handles[slot], offsets[slot] = ptr.handle, ptr.offset + e.offset * e.spec.dtype.itemsize
            slot += 1
        t = self.target
        if t is not None:
            ptr = t.storage.ptr
            handles[slot], offsets[slot] = ptr.handle, ptr.offset + t.offset * t.spec.dtype.itemsize
        allocate, scalars = where.allocator.allocate, self.scalars
        for step in plan.steps:
            for slot, nbytes in step.fresh:
                keep[slot] = ptr = allocate(nbytes, stream)
                handles[slot], offsets[slot] = ptr.handle, ptr.offset
            if type(step) is Step:
                if step.run is None:
                    continue
                if step.check is not None or trace is not None:
                    _launch_watched(where, step, handles, offsets, keep, scalars, stream)
                else:
                    args = []
                    for slot, offset in step.buffers:
                        args.append(handles[slot])
                        args.append(offsets[slot] + offset)
                    step.run(tuple(args), [scalars[i] for i in step.scalars], stream)
                    counters.launches += 1
            else:
                _call(where, step, handles, offsets, stream)  # type: ignore[arg-type]
            for slot in step.drops:
                keep[slot] = None
        if t is None:
            device, nodes = self.device, self.nodes
            for i, slot in plan.stored:
                _fill(nodes[i], keep[slot], device)
        else:
            for i, slot in plan.stored:
                if keep[slot] is not None:
                    _fill(self.nodes[i], keep[slot], self.device)


def _fill(e: Expr, ptr: DataPtr, device: Device) -> None:
    settle(e, Storage(ptr, ptr.nbytes, device))


def _launch_watched(
    where: Opened, step: Step, handles: Any, offsets: Any, keep: Any, scalars: Any, stream: Any
) -> None:
    """A launch that is traced, or whose error cell is looked at afterwards."""
    backend = where.backend
    if step.check is not None:
        cell = where.allocator.allocate(8, stream)
        backend.copy_in(cell.handle, cell.offset, memoryview(bytes(8)), stream)
        handles[step.check[0]], offsets[step.check[0]] = cell.handle, cell.offset
    args: list[Any] = []
    for slot, offset in step.buffers:
        args += (handles[slot], offsets[slot] + offset)
    begun = time.perf_counter_ns()
    step.run(tuple(args), [scalars[i] for i in step.scalars], stream)
    counters.launches += 1
    if trace is not None:
        backend.synchronize(stream)
        record(f"launch {step.kernel.name}", begun, grid=step.grid, bytes=step.nbytes)
    if step.check is not None:
        found = bytearray(8)
        backend.copy_out(memoryview(found), cell.handle, cell.offset, stream)
        if any(found):
            raise IndexOutOfRange(
                f"{step.check[1]}: an index is out of range for the dimension that it indexes (on "
                f"{where.device}); valid ones are -n..n-1 for a dimension of size n"
            )


def _call(where: Opened, step: Call, handles: Any, offsets: Any, stream: Any) -> None:
    begun = time.perf_counter_ns()

    def view(part: tuple[int, Layout, Any]) -> Any:
        slot, layout, dtype = part
        return handles[slot], offsets[slot] + layout.offset * dtype.itemsize, layout.shape, layout.strides, dtype

    where.lowerings[step.op.name](
        where.backend, tuple(view(p) for p in step.inputs), view(step.output), stream
    )
    counters.calls += 1
    record(f"call {step.op.name}", begun, bytes=step.nbytes)


def record(name: str, begun: int, **details: Any) -> None:
    """Adds an event to the profile, if one is being taken."""
    if trace is not None:
        end = time.perf_counter_ns()
        trace.append({"name": name, "begun": begun, "ended": end, "details": details})


# --- programs ------------------------------------------------------------------------------------------------------------


def prepare(where: Opened, step: Step) -> None:
    """Compiles a step's kernel, unless it is known, and binds what is fixed about the launch."""
    if 0 not in step.grid:
        step.run = where.backend.bind(program(where, step.kernel), step.ints, step.grid)


def program(where: Opened, kernel: Kernel) -> Any:
    """The program for a kernel: from memory, from disk, or compiled."""
    info = where.backend.info
    key = (info.fingerprint, str(kernel))
    found = _programs.get(key)
    if found is None:
        found = _programs[key] = _load_or_compile(where, kernel, key)
    return found


def _load_or_compile(where: Opened, kernel: Kernel, key: tuple[str, str]) -> Any:
    backend, begun = where.backend, time.perf_counter_ns()
    binary = diskcache.read(*key)
    legal = legalize(kernel, backend.info.capabilities)
    if binary is not None:
        try:
            found = backend.load(legal, binary)
        except Exception:
            diskcache.forget(*key)
        else:
            counters.disk_hits += 1
            record(f"load {kernel.name}", begun)
            return found
    found = backend.compile(legal)
    counters.compiles += 1
    counters.compile_seconds += (time.perf_counter_ns() - begun) / 1e9
    record(f"compile {kernel.name}", begun)
    if found.binary is not None:
        diskcache.write(*key, found.binary)
    return found


def _own_references() -> int:
    """How often an evaluation itself refers to a node: measured, since it differs between Pythons."""
    e = Expr()
    nodes, index = [e], {e: 0}
    del e
    for e in nodes:
        count = getrefcount(e)
    return count if index else 0


_OWN_REFERENCES = _own_references()
