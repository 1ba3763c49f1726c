"""Bound plans: the programs of kernels, and launches bound to their fixed arguments.

A program comes from memory, from the disk cache, or from the backend's compiler.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..backend import diskcache
from ..backend.interface import Launch, Program
from ..backend.thread_map import map_in_threads
from ..errors import OutOfMemoryError
from ..fusion.plan import Plan, PlannedLaunch
from ..fusion.reasons import ReasonKind
from ..identity_cache import IdentityCache
from ..ir.builder import Kernel
from ..lazy_import import LazyModule
from ..lru_cache import LRUCache
from ..memory.units import format_bytes
from ..plugins.device_handle import OpenedDevice
from ..plugins.plugin_errors import raise_plugin_error
from . import events
from .events import counters
from .launching import BoundCall, BoundKernel, BoundPlan, BoundPlanStep

if TYPE_CHECKING:
    from ..backend import iteration_parts, limits
    from ..ir import legalize
    from ..plugins import fallback_device
else:  # loaded with the first program
    iteration_parts = LazyModule("..backend.iteration_parts", __package__)
    limits = LazyModule("..backend.limits", __package__)
    legalize = LazyModule("..ir.legalize", __package__)
    fallback_device = LazyModule("..plugins.fallback_device", __package__)

PART_PREFIX = "part of a "  # of the keys of parts of kernels among a device's programs
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
program_caches: list[
    LRUCache[Any, Any] | IdentityCache[Any]
] = []  # caches of objects that refer to programs


def create_program_cache(limit: int) -> LRUCache[K, V]:
    """Create an LRU cache of objects that refer to programs, and register it for joint ageing.

    It ages together with the cache of programs. Otherwise no program would ever be freed.
    """
    cache: LRUCache[K, V] = LRUCache(limit)
    program_caches.append(cache)
    return cache


def bind_plan(opened: OpenedDevice, plan: Plan, scalars: int) -> BoundPlan:
    """Bind a plan for a graph with `scalars` numbers; compile missing programs.

    Other threads of the backend compile, too, while this one binds the calls of vendor routines,
    which may compile their own code. Raises: PluginError, OutOfMemoryError for a value that no
    buffer of the device can hold.
    """
    _check_sizes(opened, plan)
    calls: dict[int, BoundCall] = {}

    def bind_calls() -> None:
        """Bind the calls of routines, by the positions of their steps."""
        for k, step in enumerate(plan.steps):
            if not isinstance(step, PlannedLaunch):
                calls[k] = BoundCall(opened, step)

    kernels = [s.kernel for s in plan.steps if isinstance(s, PlannedLaunch) and 0 not in s.grid]
    # The steps refer to the programs, which the cache in memory may drop before that.
    programs = _get_programs(opened, kernels, bind_calls)
    launches: dict[tuple[Hashable, ...], Launch] = {}

    def bind_once(step: PlannedLaunch) -> Launch:
        """Return the bound launch of a step, that of an equal step if there was one."""
        key = str(step.kernel), step.ints, step.grid
        if key not in launches:
            launches[key] = bind_launch(opened, step)
        return launches[key]

    steps: list[BoundPlanStep] = [
        BoundKernel(step, scalars, bind_once(step)) if isinstance(step, PlannedLaunch) else calls[k]
        for k, step in enumerate(plan.steps)
    ]
    del programs
    return BoundPlan(plan, steps)


def _check_sizes(opened: OpenedDevice, plan: Plan) -> None:
    """Raise OutOfMemoryError if a step allocates more than the largest buffer of the device."""
    limit = opened.backend.info.capabilities.max_buffer
    large = [n for step in plan.steps for _, n in step.allocations if n > limit > 0]
    if large:
        raise OutOfMemoryError(
            f"{_describe_value(plan, large[0])} needs {format_bytes(large[0])} ({large[0]} bytes), "
            f"and a buffer of {opened.device} has at most {limit} bytes; compute it in parts, or "
            "use another device"
        )


def _describe_value(plan: Plan, nbytes: int) -> str:
    """Return the op, dtype and shape of a stored value of so many bytes, and why it is stored."""
    for m in reversed(plan.materialised):
        if m.spec.size * m.spec.dtype.itemsize == nbytes:
            why = "" if m.reason.kind is ReasonKind.REQUESTED else f", stored because {m.reason},"
            return f"{m.op}: {m.spec.dtype.name}{[*m.spec.shape]}{why}"
    return "a temporary"


def bind_launch(opened: OpenedDevice, step: PlannedLaunch) -> Launch:
    """Return the bound launch of a step (that of an empty grid does nothing); compile its program.

    A program that is in memory or on disk is not compiled. Raises: PluginError.
    """
    if 0 in step.grid:
        return _launch_nothing
    executable = get_program(opened, step.kernel)
    try:
        return bind_program(opened, executable, step.ints, step.grid)
    except Exception as error:
        raise_plugin_error(opened.device, f"bind of {step.kernel.name}", step.kernel, error)
        raise


def bind_program(
    opened: OpenedDevice, program: Program, ints: Sequence[int], grid: Sequence[int]
) -> Launch:
    """Return the bound launch of a program within the device's limits."""
    if not opened.backend.info.capabilities.has_launch_limits:
        return opened.backend.bind(program, ints, grid)
    resources = iteration_parts.PartResources(
        lambda kernel: _get_part_program(opened, kernel),
        lambda nbytes, stream: opened.allocate(nbytes, stream),
    )
    return limits.bind_within_limits(opened.backend, program, ints, grid, resources)


def _launch_nothing(buffers: object, scalars: object, stream: object) -> None:
    """Ignore a launch over an empty grid."""
    pass


# --- programs -------------------------------------------------------------------------------------


def get_program(opened: OpenedDevice, kernel: Kernel) -> Program:
    """Return a kernel's program from the memory cache, else load or compile and cache it."""
    text = str(kernel)
    executable = opened.programs.find(text)
    if executable is None:
        executable = _MissingProgram(opened, kernel).load_or_compile()
        _cache_program(opened, text, executable)
    return executable


def _get_part_program(opened: OpenedDevice, kernel: Kernel) -> Program:
    """Return the program of a part of a legalised kernel, as `get_program`."""
    text = f"{PART_PREFIX}{kernel}"  # the key of another kernel is the text before legalisation
    executable = opened.programs.find(text)
    if executable is None:
        executable = _MissingProgram(opened, kernel, is_legal=True).load_or_compile()
        _cache_program(opened, text, executable)
    return executable


def _get_programs(
    opened: OpenedDevice, kernels: Sequence[Kernel], run_first: Callable[[], object]
) -> list[Program]:
    """Call `run_first`; return the programs, compiled by several threads if the backend can.

    Raises: the error of the first kernel that fails; the programs before it are cached.
    """
    missing = {str(k): k for k in kernels if opened.programs.find(str(k)) is None}
    threads = opened.backend.compile_threads if missing else 1
    if threads > 1:
        absent = dict[str, _MissingProgram]()
        for text, kernel in missing.items():
            absent[text] = _MissingProgram(opened, kernel)
            if (loaded := absent[text].load()) is not None:
                del absent[text]
                _cache_program(opened, text, loaded)
        results = map_in_threads(_MissingProgram.compile, [*absent.values()], threads, run_first)
        for (text, program), result in zip(absent.items(), results, strict=True):
            if isinstance(result, Exception):
                raise result
            _cache_program(opened, text, program.store(*result))
    else:
        run_first()
    return [get_program(opened, k) for k in kernels]


def compile_all(opened: OpenedDevice, kernels: dict[str, Kernel]) -> None:
    """Compile the kernels without a program in memory in one batch; cache the programs in memory.

    The keys are the kernels' texts. The disk cache is neither read nor written.
    Raises: PluginError.
    """
    backend = opened.backend
    new = [k for text, k in kernels.items() if opened.programs.find(text) is None]
    legal = [legalize.legalize(k, backend.info.capabilities) for k in new]
    try:
        programs = backend.compile_all(legal)
    except Exception as error:
        raise_plugin_error(opened.device, f"compile_all of {len(legal)} kernels", "", error)
        raise
    for k, executable in zip(new, programs, strict=True):
        _cache_program(opened, str(k), executable)


def _cache_program(opened: OpenedDevice, text: str, program: Program) -> None:
    """Cache a program in memory; age all plan caches if the device's young generation is full.

    When the oldest programs are evicted, the caches of plans age too, because plans refer to
    programs. Programs of plans in use stay alive and are found again.
    """
    if len(opened.programs.young) >= opened.programs.half:
        for cache in program_caches:
            cache.age()
    opened.programs[text] = program


def find_executing_device(opened: OpenedDevice, kernel: Kernel) -> OpenedDevice | None:
    """Return the device that runs a kernel: this one, its companion, or None if both refuse it."""
    backend = opened.backend
    if not isinstance(backend, fallback_device.FallbackBackend):
        return opened
    legal = legalize.legalize(kernel, backend.info.capabilities)
    return opened if backend.accepts(legal) else backend.companion


def fallback_copy_bytes(opened: OpenedDevice, step: PlannedLaunch) -> int:
    """Return the bytes copied to the companion and back if that runs a step; 0 if none are."""
    backend = opened.backend
    if (
        0 in step.grid
        or not isinstance(backend, fallback_device.FallbackBackend)
        or backend.shares_memory
    ):
        return 0
    sizes = dict(step.allocations)  # the sizes of other buffers are unknown
    legal = legalize.legalize(step.kernel, backend.info.capabilities)
    has_added_ints = len(legal.ints) > len(step.ints)  # their values are known only at launch
    touched = fallback_device.TouchedMemory(
        step.kernel if has_added_ints else legal, step.ints, step.grid
    )
    extents = [(0, sizes[slot]) if slot in sizes else None for slot, _ in step.buffers]
    return sum(p.nbytes for _, p in touched.pieces(step.buffers, extents))


def describe_program_source(opened: OpenedDevice, kernel: Kernel) -> str:
    """Return the source of a kernel's program, for messages.

    It is "in memory", "on disk", "to be compiled" or "accepted by no device".
    """
    device = find_executing_device(opened, kernel)
    if device is None:
        return "accepted by no device"
    if device is not opened:
        return describe_program_source(
            device, legalize.legalize(kernel, opened.backend.info.capabilities)
        )
    if opened.programs.find(str(kernel)) is not None:
        return "in memory"
    info = opened.backend.info
    legal = legalize.legalize(kernel, info.capabilities)
    return "to be compiled" if diskcache.read(info.fingerprint, str(legal)) is None else "on disk"


class _MissingProgram:
    """A kernel without a program in memory, which is loaded from disk, or compiled and stored."""

    def __init__(self, opened: OpenedDevice, kernel: Kernel, is_legal: bool = False) -> None:
        self._opened, self._name, self._begun = opened, kernel.name, time.perf_counter_ns()
        info = opened.backend.info
        self._legal = kernel if is_legal else legalize.legalize(kernel, info.capabilities)
        self._key = info.fingerprint, str(self._legal)

    def load_or_compile(self) -> Program:
        """Return the program from the disk cache, else compile and store it."""
        return self.load() or self.store(*self.compile())

    def load(self) -> Program | None:
        """Return the program from the disk cache, or None.

        A binary that does not load is removed from the disk.
        """
        binary = diskcache.read(*self._key)
        if binary is None:
            return None
        try:
            executable = self._opened.backend.load(self._legal, binary)
        except Exception as error:
            diskcache.remove_binary(*self._key)
            counters.load_failures += 1
            text = f"load {self._name} failed: {type(error).__name__}: {error}"
            events.note(text, self._begun)
            return None
        counters.disk_hits += 1
        events.note(f"load {self._name}", self._begun)
        return executable

    def compile(self) -> tuple[Program, float]:
        """Return the compiled program, and the seconds; any thread may call this.

        Raises: PluginError, for compile errors, too.
        """
        begun = time.perf_counter_ns()
        try:
            executable = self._opened.backend.compile(self._legal)
        except Exception as error:
            action = f"compile of {self._legal.name}"
            raise_plugin_error(self._opened.device, action, self._legal, error)
            raise
        events.note(f"compile {self._name}", begun)
        return executable, (time.perf_counter_ns() - begun) / 1e9

    def store(self, executable: Program, seconds: float) -> Program:
        """Count a compiled program, store its binary in the disk cache, and return it."""
        counters.compiles += 1
        counters.compile_seconds += seconds
        if diskcache.cache_folder() is not None and (machine_code := executable.binary) is not None:
            diskcache.write(*self._key, machine_code)
        return executable
