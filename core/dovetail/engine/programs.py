"""Plans made ready to be launched: their kernels' programs come from memory, from disk, or from the
backend's compiler, and are bound to what is fixed about each launch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal, TypeVar

from ..backend import diskcache
from ..backend.interface import Launch, Program
from ..fusion.plan import Call, Plan, Step
from ..kernel.builder import Kernel
from ..kernel.legalize import legalize
from ..memory.pointer import DataPtr
from ..plugins.opened import Opened
from ..recent import Recent
from . import events
from .events import counters

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
holders: list[Recent[Any, Any]] = []  # caches of what holds programs


def holding(limit: int) -> Recent[K, V]:
    """A cache of what holds programs. It ages with them, or they would never go."""
    made: Recent[K, V] = Recent(limit)
    holders.append(made)
    return made


# --- bound plans ----------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class BoundStep:
    """A step that can be launched."""

    step: Step
    fresh: tuple[tuple[int, int], ...]
    drops: tuple[int, ...]
    scalars: tuple[int, ...]
    all_scalars: bool  # those are all of them, in order
    simple: bool  # no static offsets, no error cells, not empty
    empty: bool  # nothing to do
    run: Launch
    pick: Callable[[Sequence[object]], tuple[object, ...]]  # arguments, of all handles and offsets


@dataclass(eq=False, slots=True)
class BoundCall:
    """A vendor's routine."""

    call: Call
    fresh: tuple[tuple[int, int], ...]
    drops: tuple[int, ...]
    simple: Literal[False] = False


@dataclass(eq=False, slots=True)
class BoundPlan:
    """A plan whose steps can be launched."""

    plan: Plan
    steps: list[BoundStep | BoundCall]
    kept: tuple[tuple[int, int], ...]
    none: list[DataPtr | None]  # None for each slot
    blank: list[object]  # handle and offset of each slot that is not there when it starts
    guarded: bool = False  # whether guards know it


def bound(opened: Opened, plan: Plan, scalars: int, given: int) -> BoundPlan:
    """A plan for a graph of so many scalars, of whose slots the first `given` are there when it
    starts. Compiles what is not known.
    """
    steps: list[BoundStep | BoundCall] = [
        _bound(opened, step, scalars)
        if isinstance(step, Step)
        else BoundCall(step, step.fresh, step.drops)
        for step in plan.steps
    ]
    blank: list[object] = [None, 0] * (plan.slots - given)
    return BoundPlan(plan, steps, plan.kept, [None] * plan.slots, blank)


def _bound(opened: Opened, step: Step, scalars: int) -> BoundStep:
    run: Launch = _nothing
    empty = 0 in step.grid
    if not empty:
        run = opened.backend.bind(program(opened, step.kernel), step.ints, step.grid)
    return BoundStep(
        step,
        step.fresh,
        step.drops,
        step.scalars,
        step.scalars == tuple(range(scalars)),
        not empty and not step.checks and not any(offset for _, offset in step.buffers),
        empty,
        run,
        itemgetter(*(k for slot, _ in step.buffers for k in (2 * slot, 2 * slot + 1))),
    )


def _nothing(buffers: object, scalars: object, stream: object) -> None:
    pass


# --- programs -------------------------------------------------------------------------------------


def program(opened: Opened, kernel: Kernel) -> Program:
    """The program for a kernel: from memory, from disk, or compiled."""
    text = str(kernel)
    found = opened.programs.find(text)
    if found is None:
        found = _load_or_compile(opened, kernel)
        _keep(opened, text, found)
    return found


def compile_all(opened: Opened, kernels: dict[str, Kernel]) -> None:
    """Compiles those of these kernels, each under its text, that are not in memory, together."""
    backend = opened.backend
    new = [k for text, k in kernels.items() if opened.programs.find(text) is None]
    made = backend.compile_all([legalize(k, backend.info.capabilities) for k in new])
    for k, program in zip(new, made, strict=True):
        _keep(opened, str(k), program)


def _keep(opened: Opened, text: str, program: Program) -> None:
    """Keeps a program. Where the oldest are let go, so are the plans that nobody used lately: they
    hold programs, too. Those of plans in use stay, and are found again."""
    if len(opened.programs.young) >= opened.programs.half:
        for cache in holders:
            cache.turn()
    opened.programs[text] = program


def whereabouts(opened: Opened, kernel: Kernel) -> str:
    """Where a kernel's program would come from: "in memory", "on disk" or "to be compiled"."""
    if opened.programs.find(str(kernel)) is not None:
        return "in memory"
    info = opened.backend.info
    legal = legalize(kernel, info.capabilities)
    return "to be compiled" if diskcache.read(info.fingerprint, str(legal)) is None else "on disk"


def _load_or_compile(opened: Opened, kernel: Kernel) -> Program:
    backend, begun = opened.backend, time.perf_counter_ns()
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
            events.note(f"load {kernel.name}", begun)
            return found
    found = backend.compile(legal)
    counters.compiles += 1
    counters.compile_seconds += (time.perf_counter_ns() - begun) / 1e9
    events.note(f"compile {kernel.name}", begun)
    if diskcache.directory() is not None and (made := found.binary) is not None:
        diskcache.write(*key, made)
    return found
