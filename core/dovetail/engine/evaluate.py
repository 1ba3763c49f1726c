"""Evaluation: graph -> plan (cached under the graph's structure) -> programs (cached in memory and
on disk) -> launches.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from ..backend import diskcache, faults
from ..backend.faults import Check
from ..backend.streams import current_handle
from ..device import Device, opened
from ..fusion import passes as fusion
from ..fusion.decisions import Graph
from ..fusion.plan import Call, Overlap, Plan, Step, Target
from ..graph.expr import Expr, node, readers, settle, storage_of
from ..graph.ownership import IN_GRAPH, IN_LIST, counts, is_alone
from ..kernel.builder import Kernel
from ..kernel.legalize import legalize
from ..layout import StridedView
from ..memory import Storage
from ..ops.table import COPY
from ..plugins.registry import Opened
from ..recent import Recent
from . import guards as recall

PLAN_LIMIT = 8192  # cached plans


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
_plans: Recent[Any, Plan] = Recent(PLAN_LIMIT)


if hasattr(os, "register_at_fork"):  # a child must find graphs and plans whole, and nobody inside
    os.register_at_fork(
        before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
    )


def evaluate(exprs: Sequence[Expr], asked: bool = True) -> None:
    """Computes these nodes; afterwards they are leaves, in memory.

    Raises: IndexOutOfRange, on devices that wait for their work, if that was `asked` for; else
    whoever looks at what comes of a bad index gets it.
    """
    with lock:
        if faults.tainted and asked:
            _refuse_bad(exprs)
        if len(exprs) == 1 and exprs[0].op is not None:
            root = exprs[0]
            if trace is None and recall.attempt(root, current_handle(root.spec.device)):
                counters.evaluations += 1
                counters.launches += 1
                return
            _Evaluation(exprs).run(asked)
            return
        for roots in _by_device(exprs):
            _Evaluation(roots).run(asked)


def _refuse_bad(exprs: Sequence[Expr]) -> None:
    """Raises: IndexOutOfRange, for what is in memory already, as for what is pending."""
    for e in exprs:
        if e.op is None and not opened(e.spec.device).backend.asynchronous:
            faults.look(storage_of(e))


def planned(exprs: Sequence[Expr]) -> list[tuple[Opened, Plan]]:
    """How the pending work of these nodes would be done; it stays pending, uncompiled."""
    with lock:
        return [
            (opened(roots[0].spec.device), _Evaluation(roots).plan(prepared=False))
            for roots in _by_device(exprs)
        ]


def compile_ahead(exprs: Sequence[Expr]) -> None:
    """Compiles what the pending work of each of these needs, and is not in memory, together."""
    found: dict[Device, dict[str, Kernel]] = {}
    for where, plan in (pair for e in exprs for pair in planned([e])):
        steps = (s for s in plan.steps if isinstance(s, Step) and 0 not in s.grid)
        found.setdefault(where.device, {}).update({str(s.kernel): s.kernel for s in steps})
    for device, kernels in found.items():
        backend, known = opened(device).backend, opened(device).programs
        new = [k for text, k in kernels.items() if known.find(text) is None]
        made = backend.compile_all([legalize(k, backend.info.capabilities) for k in new])
        for k, program in zip(new, made, strict=True):
            _keep(opened(device), str(k), program)


def _by_device(exprs: Sequence[Expr]) -> list[list[Expr]]:
    found: dict[Device, list[Expr]] = {}
    for e in exprs:
        source = _source(e)
        if source is not None:
            found.setdefault(source.spec.device, []).append(source)
    return list(found.values())


def _source(e: Expr) -> Expr | None:
    """The pending node that must be computed for `e` to be in memory."""
    return e if e.op is not None else storage_of(e).pending


def write(only: list[Expr], target: Expr) -> None:
    """Stores a value, of the same shape and dtype, into the memory that leaf `target` views.

    `only` holds the value, and is emptied: what nobody else refers to gets no memory of its own.
    """
    with lock:
        pending = storage_of(target).pending
        if pending is not None:
            evaluate([pending])
        storage = storage_of(target)
        if is_alone(only) and not _read_by_others(storage, only[0]):
            stream = current_handle(target.spec.device)
            if trace is None and recall.attempt_into(only[0], target, stream):
                counters.evaluations += 1
                counters.launches += 1
                _written(storage)
                return
        copy = node(COPY, (only.pop(),), target.spec)
        _flush(storage, copy)
        try:
            _Evaluation([copy], target).run()
        except Overlap:
            _Evaluation([copy]).run()
            _Evaluation([node(COPY, (copy,), copy.spec)], target).run()
        _written(storage)


def update(value: Expr, target: Expr) -> None:
    """As `write`, for a node that nobody else holds, of an op that updates what `target` holds."""
    with lock:
        pending = storage_of(target).pending
        if pending is not None:
            evaluate([pending])
        storage = storage_of(target)
        _flush(storage, value)
        try:
            _Evaluation([value], target).run()
        except Overlap:
            _Evaluation([value]).run()
            _Evaluation([node(COPY, (value,), value.spec)], target).run()
        _written(storage)


def _written(storage: Storage) -> None:
    """Notes a write; who sees the memory by other means sees it done."""
    if storage.seen and (where := opened(storage.device)).backend.asynchronous:
        where.backend.synchronize(current_handle(storage.device))


def _read_by_others(storage: Storage, value: Expr) -> bool:
    found = readers(storage)
    return len(found) > 1 or (len(found) == 1 and found[0] is not value)


def _flush(storage: Storage, value: Expr) -> None:
    """Computes whatever is pending, reads this storage, and is not part of `value`."""
    found = readers(storage)
    if found:
        mine = _graph(value)
        evaluate([e for e in found if e not in mine], asked=False)


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


def _visit(
    e: Expr,
    graph: _Evaluation,
    index: dict[Expr, int],
    nodes: list[Expr],
    uses: list[int],
    key: list[Any],
) -> int:
    """Appends `e` and what it needs to the graph; its position. No closure: a cycle would keep
    memory alive.
    """
    op = e.op
    if op is None:
        pending = e.storage.pending
        if pending is not None and pending.op is None:
            pending = storage_of(e).pending
        if pending is None:
            graph.leaves.append(e)
            e.depth = 0
            key.append(e.spec)
            key.append(e.strides)
        else:
            i = (
                index[pending]
                if pending in index
                else _visit(pending, graph, index, nodes, uses, key)
            )
            graph.lazy_leaves.append((len(nodes), i))
            key.extend((e.spec, e.moves, i))
    else:
        mine = [op, e.attrs, e.spec]
        numbers = None
        for a in e.args:
            if type(a) is Expr:
                i = index[a] if a in index else _visit(a, graph, index, nodes, uses, key)
                uses[i] += 1
                mine.append(i)
            else:
                mine.append(type(a))
                if numbers is None:
                    numbers = [a]
                else:
                    numbers.append(a)
        if numbers is not None:
            graph.scalars.extend(numbers)
        key.extend(mine)
    index[e] = n = len(nodes)
    nodes.append(e)
    uses.append(0)
    return n


class _Evaluation:
    """One evaluation: the graph in order, its key, and what is particular to this time (pointers,
    scalars).
    """

    __slots__ = (
        "device",
        "index",
        "key",
        "lazy_leaves",
        "leaves",
        "nodes",
        "roots",
        "scalars",
        "target",
        "uses",
    )

    def __init__(self, roots: Sequence[Expr], target: Expr | None = None) -> None:
        """Walks the graph, arguments first. Written for speed: this is most of the cost of a small
        evaluation.
        """
        self.nodes = nodes = []  # type: list[Expr]
        self.index = index = {}  # type: dict[Expr, int]
        self.uses = uses = []  # type: list[int]  # how often each node is an argument in this graph
        self.key = key = []  # type: list[Any]  # all that a plan depends on
        self.leaves: list[Expr] = []
        self.scalars: list[Any] = []
        self.lazy_leaves: list[tuple[int, int]] = []  # (over lazy storage, what will fill it)
        self.roots, self.target = roots, target
        for r in roots:
            if r not in index:
                _visit(r, self, index, nodes, uses, key)
        self.device = roots[0].spec.device

    def run(self, asked: bool = True) -> None:
        """Raises: IndexOutOfRange, before anything is written, or where an answer is waited for."""
        counters.evaluations += 1
        self._execute(self.plan(), asked)

    def plan(self, prepared: bool = True) -> Plan:
        """The launches, known under the graph's structure. Unless `prepared` they may be neither
        compiled nor kept.
        """
        held = self._held()
        roots = tuple([self.index[r] for r in self.roots])
        key = self.key
        key.append(held)
        key.append(roots)
        target = None
        if self.target is not None:
            target = self._target()
            key.append(target)
        frozen = tuple(key)
        plan = _plans.young.get(frozen) or _plans.find(frozen)
        if plan is None:
            plan = self._plan(held, roots, target)
            if prepared:
                self._prepare(plan)
                _plans[frozen] = plan
        elif prepared and not plan.recalled:  # the second time: more are likely
            plan.recalled = True
            where = opened(self.device)
            if target is None and len(roots) == 1:
                recall.learn(self.nodes, self.index, plan, where)
            elif target is not None and self.target is not None:
                into = recall.Into(self.target, target)
                recall.learn_into(self.nodes, self.index, plan, where, into)
        return plan

    def _held(self) -> tuple[int, ...]:
        """Pending nodes that something outside of this graph refers to: a tensor, or another
        pending graph.
        """
        found = counts(self.nodes)
        held = self._held_lazily(found) if self.lazy_leaves else []
        for i, (n, uses) in enumerate(zip(found, self.uses, strict=True)):
            if n - uses > IN_GRAPH and self.nodes[i].op is not None:
                held.append(i)
        return tuple(held)

    def _held_lazily(self, found: list[int]) -> list[int]:
        """The same for nodes that are reached through a storage that waits for them: somebody
        holds one of its leaves, or the storage itself.
        """
        held: list[int] = []
        leaves: dict[Any, int] = {}  # storage -> how many leaves of this graph are over it
        sources: list[int] = []
        for leaf, source in self.lazy_leaves:
            storage = self.nodes[leaf].storage
            if storage not in leaves:
                sources.append(source)
                self.uses[source] += 1  # by the storage
            leaves[storage] = leaves.get(storage, 0) + 1
            if found[leaf] - self.uses[leaf] > IN_GRAPH:
                held.append(source)
        del storage
        storages = list(leaves)
        for n, inside, source in zip(counts(storages), leaves.values(), sources, strict=True):
            if n - inside > IN_LIST + 1:  # the key of `leaves`
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
        begun = time.perf_counter_ns()
        where = opened(self.device)
        leaf_slot = {self.index[e]: slot for slot, e in enumerate(self.leaves)}
        calls = frozenset(where.library_calls)
        busy = where.backend.info.capabilities.concurrency
        graph = Graph(self.nodes, self.index, leaf_slot, roots, held, busy, calls, target)
        plan = fusion.plan(graph)
        record("plan", begun, steps=len(plan.steps))
        return plan

    def _prepare(self, plan: Plan) -> None:
        counters.plans += 1
        where = opened(self.device)
        for step in plan.steps:
            if isinstance(step, Step):
                prepare(where, step, len(self.scalars))

    def _execute(self, plan: Plan, asked: bool) -> None:
        device, t = self.device, self.target
        where = device.opened or opened(device)
        stream = current_handle(device)
        waits = t is not None or (asked and not where.backend.asynchronous)
        checks = self._carried(waits) if faults.tainted else {}
        at: list[Any] = []  # handle and byte offset of each slot
        for e in self.leaves:
            ptr = e.storage.ptr
            at.append(ptr.handle)
            at.append(ptr.offset + e.offset * e.spec.dtype.itemsize if e.offset else ptr.offset)
        if t is not None:
            ptr = t.storage.ptr
            at += (ptr.handle, ptr.offset + t.offset * t.spec.dtype.itemsize)
        if where.streams:
            where.share(stream, (e.storage for e in (*self.leaves, *([] if t is None else [t]))))
        at += plan.blank
        keep = plan.none.copy()
        allocate, scalars = where.allocator.allocate, self.scalars
        for step in plan.steps:
            for slot, nbytes in step.fresh:
                keep[slot] = ptr = allocate(nbytes, stream)
                at[2 * slot] = ptr.handle
                at[2 * slot + 1] = ptr.offset
            if step.simple and trace is None:
                numbers = scalars if step.all_scalars else [scalars[i] for i in step.scalars]
                step.run(step.pick(at), numbers, stream)
                counters.launches += 1
            elif type(step) is Step:
                if step.run is not None:
                    for i, check in _launch(where, step, at, scalars, stream):
                        check.line = getattr(self.nodes[i], "asked_at", None)
                        checks[i] = (*checks.get(i, ()), check)
                    if step.checks and waits:
                        faults.demand([check for found in checks.values() for check in found])
            else:
                _call(where, step, at, stream)
            if step.drops:
                for slot in step.drops:
                    keep[slot] = None
        depends = None if waits or not checks else self._depends(checks)
        for i, slot in plan.kept:
            ptr = keep[slot]
            if ptr is not None:  # None: it went into the target
                settle(self.nodes[i], Storage(ptr, ptr.nbytes, device))
                if depends is not None:
                    self.nodes[i].storage.checks = depends(i)

    def _carried(self, waits: bool) -> dict[int, tuple[Check, ...]]:
        """The checks that leaves carry, by position. With `waits`, none of them may be bad."""
        if waits:
            targets = () if self.target is None else (storage_of(self.target),)
            faults.demand(faults.carried((*(e.storage for e in self.leaves), *targets)))
            return {}
        found = ((self.index[e], faults.carried((e.storage,))) for e in self.leaves)
        return {i: checks for i, checks in found if checks}

    def _depends(self, checks: dict[int, tuple[Check, ...]]) -> Callable[[int], tuple[Check, ...]]:
        """What says on which of these checks, each of a node, a node's value depends."""
        bits = {i: 1 << k for k, i in enumerate(checks)}
        sources, masks = dict(self.lazy_leaves), []  # type: ignore[var-annotated]
        for i, e in enumerate(self.nodes):
            mask = bits.get(i, 0) | (masks[sources[i]] if i in sources else 0)
            for a in e.args:
                if type(a) is Expr:
                    mask |= masks[self.index[a]]
            masks.append(mask)
        of = [(bits[i], found) for i, found in checks.items()]
        return lambda i: tuple(c for bit, found in of if masks[i] & bit for c in found)


def _launch(
    where: Opened, step: Step, at: list[Any], scalars: list[Any], stream: Any
) -> list[tuple[int, Check]]:
    """A launch in full: with static offsets, traced, or with error cells, whose checks it returns,
    each with the node that it belongs to.
    """
    backend, made = where.backend, []
    for slot, i, purpose in step.checks:
        check = where.faults.check(purpose, stream)
        at[2 * slot : 2 * slot + 2] = where.faults.place(check)
        made.append((i, check))
    args: list[Any] = []
    for slot, offset in step.buffers:
        args += (at[2 * slot], at[2 * slot + 1] + offset)
    begun = time.perf_counter_ns()
    try:
        step.run(tuple(args), [scalars[i] for i in step.scalars], stream)
    finally:  # refused or not: the cells say nothing wrong
        for _, check in made:
            check.queued = True
    counters.launches += 1
    if trace is not None:
        backend.synchronize(stream)
        live = where.allocator.stats().live_bytes
        record(f"launch {step.kernel.name}", begun, grid=step.grid, bytes=step.nbytes, live=live)
    return made


def _call(where: Opened, step: Call, at: list[Any], stream: Any) -> None:
    begun = time.perf_counter_ns()

    def view(part: tuple[int, StridedView, Any]) -> Any:
        slot, layout, dtype = part
        start = at[2 * slot + 1] + layout.offset * dtype.itemsize
        return at[2 * slot], start, layout.shape, layout.strides, dtype

    inputs = tuple(view(p) for p in step.inputs)
    where.library_calls[step.op.name, step.inputs[0][2]](
        where.backend, inputs, view(step.output), stream
    )
    counters.calls += 1
    record(f"call {step.op.name}", begun, bytes=step.nbytes)


def record(name: str, begun: int, **details: Any) -> None:
    """Adds an event to the profile, if one is being taken."""
    if trace is not None:
        end = time.perf_counter_ns()
        thread = threading.get_ident()
        trace.append(
            {"name": name, "begun": begun, "ended": end, "thread": thread, "details": details}
        )


# --- programs -------------------------------------------------------------------------------------


def prepare(where: Opened, step: Step, scalars: int) -> None:
    """Compiles a step's kernel, unless it is known, and binds what is fixed about the launch."""
    if 0 in step.grid:
        return
    step.run = where.backend.bind(program(where, step.kernel), step.ints, step.grid)
    step.simple = not step.checks and not any(offset for _, offset in step.buffers)
    step.all_scalars = step.scalars == tuple(range(scalars))
    step.pick = itemgetter(*(k for slot, _ in step.buffers for k in (2 * slot, 2 * slot + 1)))


def program(where: Opened, kernel: Kernel) -> Any:
    """The program for a kernel: from memory, from disk, or compiled."""
    text = str(kernel)
    found = where.programs.find(text)
    if found is None:
        found = _load_or_compile(where, kernel)
        _keep(where, text, found)
    return found


def _keep(where: Opened, text: str, program: Any) -> None:
    """Keeps a program. Where the oldest are let go, so are the plans that nobody used lately: they
    hold programs, too. Those of plans in use stay, and are found again."""
    if len(where.programs.young) >= where.programs.half:
        _plans.turn()
        recall.turn()
    where.programs[text] = program


def whereabouts(where: Opened, kernel: Kernel) -> str:
    """Where a kernel's program would come from: "in memory", "on disk" or "to be compiled"."""
    if where.programs.find(str(kernel)) is not None:
        return "in memory"
    info = where.backend.info
    legal = legalize(kernel, info.capabilities)
    return "to be compiled" if diskcache.read(info.fingerprint, str(legal)) is None else "on disk"


def _load_or_compile(where: Opened, kernel: Kernel) -> Any:
    backend, begun = where.backend, time.perf_counter_ns()
    legal = legalize(kernel, backend.info.capabilities)
    key = (backend.info.fingerprint, str(legal))
    binary = diskcache.read(*key)
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
    if diskcache.directory() is not None and (made := found.binary) is not None:
        diskcache.write(*key, made)
    return found
