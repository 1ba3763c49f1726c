"""Plans made ready to be launched.

Their kernels' programs come from memory, from disk, or from the backend's compiler, and are bound
to what is fixed about each launch.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import Any, TypeVar

from ..backend import diskcache, limits
from ..backend.interface import Launch, Program
from ..fusion.plan import Plan, Step
from ..loops.builder import Kernel
from ..loops.legalize import legalize
from ..memo import Memo
from ..plugins import companion
from ..plugins.blame import blame
from ..plugins.opened import Opened
from ..recent import Recent
from . import events
from .events import counters
from .launching import Bound, BoundCall, BoundPlan, BoundStep

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
holders: list[Recent[Any, Any] | Memo[Any]] = []  # caches of what holds programs


def holding(limit: int) -> Recent[K, V]:
    """A cache of what holds programs. It ages with them, or they would never go."""
    made: Recent[K, V] = Recent(limit)
    holders.append(made)
    return made


def bound(opened: Opened, plan: Plan, scalars: int) -> BoundPlan:
    """A plan for a graph of so many scalars. Compiles what is not known."""
    steps: list[Bound] = [
        BoundStep(step, scalars, launch_of(opened, step)) if isinstance(step, Step)
        else BoundCall(opened, step)
        for step in plan.steps
    ]  # fmt: skip
    return BoundPlan(plan, steps)


def launch_of(opened: Opened, step: Step) -> Launch:
    """The launch of a step, bound. Compiles what is not known."""
    if 0 in step.grid:
        return _nothing
    made = program(opened, step.kernel)
    try:
        return limits.bind(opened.backend, made, step.ints, step.grid)
    except Exception as error:
        blame(opened.device, f"bind of {step.kernel.name}", step.kernel, error)
        raise


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
    legal = [legalize(k, backend.info.capabilities) for k in new]
    try:
        made = backend.compile_all(legal)
    except Exception as error:
        blame(opened.device, f"compile_all of {len(legal)} kernels", "", error)
        raise
    for k, program in zip(new, made, strict=True):
        _keep(opened, str(k), program)


def _keep(opened: Opened, text: str, program: Program) -> None:
    """Keeps a program.

    Where the oldest are let go, so are the plans that nobody used lately: they hold programs, too.
    Those of plans in use stay, and are found again.
    """
    if len(opened.programs.young) >= opened.programs.half:
        for cache in holders:
            cache.turn()
    opened.programs[text] = program


def does(opened: Opened, kernel: Kernel) -> Opened | None:
    """The device that runs a kernel: this one or its companion; None where nobody would."""
    backend = opened.backend
    if not isinstance(backend, companion.Accompanied):
        return opened
    legal = legalize(kernel, backend.info.capabilities)
    return opened if backend.accepts(legal) else backend.companion


def copied(opened: Opened, step: Step) -> int:
    """Bytes that are copied to the companion and back for a step that it does."""
    backend = opened.backend
    if 0 in step.grid or not isinstance(backend, companion.Accompanied) or backend.shares:
        return 0
    sizes = dict(step.fresh)  # of other memory it is not known how far it reaches
    legal = legalize(step.kernel, backend.info.capabilities)
    added = len(legal.ints) > len(step.ints)  # of which it is launches that know the values
    touched = companion.Touched(step.kernel if added else legal, step.ints, step.grid)
    extents = [(0, sizes[slot]) if slot in sizes else None for slot, _ in step.buffers]
    return sum(p.nbytes for _, p in touched.pieces(step.buffers, extents))


def whereabouts(opened: Opened, kernel: Kernel) -> str:
    """Where a kernel's program would come from: "in memory", "on disk" or "to be compiled".

    Or "accepted by no device".
    """
    doer = does(opened, kernel)
    if doer is None:
        return "accepted by no device"
    if doer is not opened:
        return whereabouts(doer, legalize(kernel, opened.backend.info.capabilities))
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
        except Exception as error:
            diskcache.forget(*key)
            counters.load_failures += 1
            events.note(f"load {kernel.name} failed: {type(error).__name__}: {error}", begun)
        else:
            counters.disk_hits += 1
            events.note(f"load {kernel.name}", begun)
            return found
    try:
        found = backend.compile(legal)
    except Exception as error:
        blame(opened.device, f"compile of {legal.name}", legal, error)
        raise
    counters.compiles += 1
    counters.compile_seconds += (time.perf_counter_ns() - begun) / 1e9
    events.note(f"compile {kernel.name}", begun)
    if diskcache.directory() is not None and (made := found.binary) is not None:
        diskcache.write(*key, made)
    return found
