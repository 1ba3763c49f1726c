"""Programs: the acts of a captured function on memory, as plain data that can be replayed.

A program's memory is a list of *slots*: those given to it (inputs), those it keeps (constants), its
results, and one arena in which everything else has a fixed place. A replay runs its acts in order
with `at`, the handle and byte offset of each slot, and `env`, the numbers that may differ from call
to call.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..backend import faults
from ..backend.faults import HOST_CELLS_MAX
from ..backend.interface import QueuedLaunch, Replay, Scalar
from ..backend.streams import wait_for_stream
from ..dtypes import DType
from ..engine import events
from ..engine.launching import BoundKernel, record_launch_event
from ..engine.traced_numbers import Env, TracedNumber
from ..errors import InternalError, LinAlgError
from ..fusion.plan import PlannedLaunch
from ..layout import Shape
from ..memory.pointer import StreamHandle
from ..memory.storage import Storage
from ..ops.host_routines import HostCall
from ..ops.table import Op
from ..plugins.device_handle import OpenedDevice
from .host_steps import HostReplay, add_line, array_at
from .replay import Addresses as Addresses
from .replay import (
    CheckedLaunch,
    LibraryCallReplay,
    QueuedLaunches,
    Replayer,
    UnrolledLaunches,
    ValueGuardError,
    buffer_addresses,
    numbers,
)

ARENA_ALIGNMENT_BYTES = (
    512  # to which places in an arena are rounded, as the allocator's blocks are
)
T = TypeVar("T")


class Place(NamedTuple):
    """Somewhere in memory: so many bytes after the beginning of a slot."""

    slot: int
    offset: int


def resolve_address(p: Place, at: Addresses) -> tuple[Any, int]:
    """Return the handle and the byte offset of a place."""
    return at[2 * p.slot], at[2 * p.slot + 1] + p.offset


class StridedMemory(NamedTuple):
    """An operand or a result of a routine. Strides are in elements."""

    place: Place
    shape: Shape
    strides: Shape
    dtype: DType

    @property
    def nbytes(self) -> int:
        """The size of the elements in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def find_nested(x: object, kind: type[T]) -> Iterator[T]:
    """Yield the objects of a type in `x`: itself, or those in its nested tuples."""
    if isinstance(x, kind):
        yield x
    elif isinstance(x, tuple):
        for part in x:
            yield from find_nested(part, kind)


def replace_places(x: Any, move: Callable[[Place], Place]) -> Any:
    """Return `x` with `move` applied to each place in its nested tuples."""
    if isinstance(x, Place):
        return move(x)
    if not isinstance(x, tuple):
        return x
    items = [replace_places(part, move) for part in x]
    return type(x)(*items) if hasattr(x, "_fields") else tuple(items)


class Act(ABC):
    """A step of a program. Its fields are immutable and contain places, in tuples."""

    launches = calls = 0
    label = ""  # for people

    @property
    def programs(self) -> tuple[CapturedProgram, ...]:
        """The programs inside of the act."""
        return ()

    @property
    def written(self) -> tuple[Place, ...]:
        """The places that the act writes."""
        return ()

    def places(self) -> Iterator[Place]:
        """Yield the places that the act reads and writes."""
        return find_nested(tuple(vars(self).values()), Place)

    def replace_places(self, move: Callable[[Place], Place]) -> Act:
        """Return a copy of the act with `move` applied to each of its places."""
        return type(self)(**{name: replace_places(x, move) for name, x in vars(self).items()})

    @abstractmethod
    def run(self, opened: OpenedDevice, at: Addresses, env: Env, stream: StreamHandle) -> None:
        """Run the act on the slots `at`, with variables `env`, and record events."""

    def prepare(self, opened: OpenedDevice) -> QueuedLaunch | UnrolledLaunches | Replay:
        """Return a callable that replays the act without events, or launches for a sequence."""
        return partial(self.run, opened)


@dataclass(frozen=True, eq=False)
class LaunchAct(Act):
    """A kernel.

    `buffers`: where each of the step's begins, its offset included. `lines`: of each of its checks,
    the source line that asked for it.
    """

    bound: BoundKernel
    buffers: tuple[Place, ...]
    numbers: tuple[TracedNumber, ...]
    lines: tuple[str | None, ...] = ()

    launches = 1

    @property
    def plan_step(self) -> PlannedLaunch:
        """The step of the plan."""
        return self.bound.step

    def places(self) -> Iterator[Place]:
        """Yield the places of the buffers, without error cells, which each run creates."""
        if not self.plan_step.checks:
            return iter(self.buffers)
        cells = self._cells()
        return (p for p, is_cell in zip(self.buffers, cells, strict=True) if not is_cell)

    @property
    def written(self) -> tuple[Place, ...]:
        return tuple([self.buffers[k] for k in self.bound.written])

    def _cells(self) -> list[bool]:
        """Return a bool for each buffer, True for error cells."""
        cells = [slot for slot, _, _ in self.plan_step.checks]
        return [slot in cells for slot, _ in self.plan_step.buffers]

    def replace_places(self, move: Callable[[Place], Place]) -> LaunchAct:
        """Return the act with `move` applied to its places; error cells stay as they are."""
        if not self.lines:
            return LaunchAct(self.bound, tuple(map(move, self.buffers)), self.numbers)
        pairs = zip(self.buffers, self._cells(), strict=True)
        buffers = tuple([p if is_cell else move(p) for p, is_cell in pairs])
        return LaunchAct(self.bound, buffers, self.numbers, self.lines)

    def prepare(self, opened: OpenedDevice) -> QueuedLaunch | Replay:
        """Return the launch, or a CheckedLaunch; `run` if the host cannot read cells at once."""
        queued = QueuedLaunch(self.bound.run, self.buffers, self.numbers)
        checks = self.plan_step.checks
        if not checks:
            return queued
        prompt = opened.faults.host_cells()
        if prompt is None or len(checks) > HOST_CELLS_MAX:
            return partial(self.run, opened)
        slots = [slot for slot, _ in self.plan_step.buffers]
        asked = zip(checks, self.lines, strict=True)
        cells = [(slots.index(slot), purpose, line) for (slot, _, purpose), line in asked]
        marked = {k for k, _, _ in cells}
        places = (Place(0, 0) if k in marked else p for k, p in enumerate(self.buffers))
        return CheckedLaunch(queued._replace(buffers=tuple(places)), cells, prompt)

    def run(self, opened: OpenedDevice, at: Addresses, env: Env, stream: StreamHandle) -> None:
        """Run the launch. With checks, wait; raise OutOfRangeError if an index is out of range."""
        begun = time.perf_counter_ns()
        args: list[object] = []
        checks: dict[int, faults.IndexCheck] = {}
        for (slot, _, purpose), line in zip(self.plan_step.checks, self.lines, strict=True):
            check = checks[slot] = opened.faults.create_check(purpose, stream)
            check.line = line
        for (slot, _), p in zip(self.plan_step.buffers, self.buffers, strict=True):
            args += (
                opened.faults.cell_location(checks[slot])
                if slot in checks
                else resolve_address(p, at)
            )
        try:
            self.bound.run(tuple(args), numbers(self.numbers, env), stream)
        except BaseException:
            for check in checks.values():
                check.refused = True
            raise
        finally:
            for check in checks.values():
                check.queued = True
        if checks:
            faults.settle_checks([*checks.values()])
        step = self.plan_step
        record_launch_event(opened, step.kernel.name, begun, stream, step.nbytes, step.grid)


@dataclass(frozen=True, eq=False)
class LibraryCallAct(Act):
    """A vendor's routine, registered for a dtype."""

    op: Op
    dtype: DType
    inputs: tuple[StridedMemory, ...]
    output: StridedMemory
    nbytes: int

    launches = calls = 1

    @property
    def written(self) -> tuple[Place, ...]:
        return (self.output.place,)

    def places(self) -> Iterator[Place]:
        return (x.place for x in (*self.inputs, self.output))

    def prepare(self, opened: OpenedDevice) -> QueuedLaunch | Replay:
        """Return a launch, if the backend can bind the routine; else a replay that calls it."""
        routine = opened.library_calls[self.op.name, self.dtype]
        operands = [(None, 0, x.shape, x.strides, x.dtype) for x in (*self.inputs, self.output)]
        run = opened.backend.bind_call(routine, operands[:-1], operands[-1])
        if run is not None:
            return QueuedLaunch(run, tuple(self.places()), ())
        *inputs, output = [(*x.place, *x[1:]) for x in (*self.inputs, self.output)]
        return LibraryCallReplay(opened.backend, routine, inputs, output)

    def run(self, opened: OpenedDevice, at: Addresses, env: Env, stream: StreamHandle) -> None:
        """Bind and call the routine, and record an event for the call alone."""
        step = self.prepare(opened)  # bound anew, which is none of the routine's time
        begun = time.perf_counter_ns()
        replay = QueuedLaunches([step]) if isinstance(step, QueuedLaunch) else step
        replay(at, env, stream)
        events.note(f"call {self.op.name}", begun, bytes=self.nbytes, device=str(opened.device))


@dataclass(frozen=True, eq=False)
class RawLaunchAct(Act):
    """A kernel in the device's own language: `function` is called with its memory and numbers."""

    name: str
    source: str
    function: Callable[[Addresses, Sequence[Scalar], StreamHandle], object]
    given: tuple[Place, ...]
    written_positions: frozenset[int]
    numbers: tuple[TracedNumber, ...]
    nbytes: int

    launches = 1

    @property
    def written(self) -> tuple[Place, ...]:
        return tuple(p for k, p in enumerate(self.given) if k in self.written_positions)

    def prepare(self, opened: OpenedDevice) -> Replay:
        return self._replay

    def _replay(self, at: Addresses, env: Env, stream: StreamHandle) -> None:
        """Call `function` with handles and offsets, the numbers and the stream."""
        self.function([*buffer_addresses(self.given, at)], numbers(self.numbers, env), stream)

    def run(self, opened: OpenedDevice, at: Addresses, env: Env, stream: StreamHandle) -> None:
        """Call the function and record a launch event."""
        begun = time.perf_counter_ns()
        self._replay(at, env, stream)
        record_launch_event(opened, self.name, begun, stream, self.nbytes)


@dataclass(frozen=True, eq=False)
class HostAct(Act):
    """A routine of the host, LAPACK's for example, between reads and writes of memory.

    Operands and results have no gaps. `line`: the source line that asked for it, which an error of
    a replay names.
    """

    call: HostCall
    operands: tuple[StridedMemory, ...]
    results: tuple[StridedMemory, ...]
    line: str | None = None

    calls = 1

    @property
    def name(self) -> str:
        """The name of the public function."""
        return f"linalg.{self.call.name}"

    @property
    def nbytes(self) -> int:
        """The bytes that the host reads and writes."""
        return sum(x.nbytes for x in (*self.operands, *self.results))

    @property
    def written(self) -> tuple[Place, ...]:
        return tuple(x.place for x in self.results)

    def places(self) -> Iterator[Place]:
        return (x.place for x in (*self.operands, *self.results))

    def prepare(self, opened: OpenedDevice) -> QueuedLaunch | Replay:
        """Return a HostReplay, or `run` if the host cannot access the backend's memory."""
        run = partial(self.run, opened)
        if not opened.backend.host:
            return run
        return HostReplay(opened, self.call, self.operands, self.results, self.line, run)

    def run(self, opened: OpenedDevice, at: Addresses, env: Env, stream: StreamHandle) -> None:
        """Wait for the stream, call the routine, write its results.

        Raises: the routine's LinAlgError, with the user's line.
        """
        begun = time.perf_counter_ns()
        wait_for_stream(opened, stream)
        try:
            results = self.call(_read(opened, at, x, stream) for x in self.operands)
        except LinAlgError as error:
            raise add_line(error, self.line) from None
        if results:
            for x, values in zip(self.results, results, strict=True):
                _write(opened, at, x, values, stream)
        copied = 0 if opened.backend.host else self.nbytes
        events.note(f"call {self.name} on the host", begun, bytes=copied)


def _host_array(
    opened: OpenedDevice, at: Addresses, x: StridedMemory, writable: bool
) -> np.ndarray | None:
    """Return memory as an array view; None if it is empty, or the host cannot reach it."""
    address = opened.host_address(*resolve_address(x.place, at)) if x.nbytes else None
    if address is None:
        return None
    return array_at(address, x, writable)


def _read(
    opened: OpenedDevice, at: Addresses, x: StridedMemory, stream: StreamHandle
) -> np.ndarray:
    """Return an operand of a host step: its memory itself, read-only, or a copy."""
    array = _host_array(opened, at, x, False)
    if array is None:
        array = np.empty(x.shape, x.dtype.__numpy_dtype__)
        if x.nbytes:
            flat = array.reshape(-1).view(np.uint8).data
            opened.backend.copy_out(flat, *resolve_address(x.place, at), stream)
    return array


def _write(
    opened: OpenedDevice, at: Addresses, x: StridedMemory, values: np.ndarray, stream: StreamHandle
) -> None:
    """Write a host result to its memory. Raises: InternalError for another shape or dtype."""
    if (values.shape, values.dtype) != (x.shape, x.dtype.__numpy_dtype__):
        raise InternalError(f"a host routine gave {values.dtype}{values.shape} for {x}")
    array = _host_array(opened, at, x, True)
    if array is not None:
        array[...] = values
    elif values.size:
        flat = np.asarray(values, order="C").reshape(-1).view(np.uint8).data
        opened.backend.copy_in(*resolve_address(x.place, at), flat, stream)


@dataclass(frozen=True, eq=False)
class FillAct(Act):
    """A copy of host values into memory."""

    place: Place
    values: bytes

    @property
    def written(self) -> tuple[Place, ...]:
        return (self.place,)

    def run(self, opened: OpenedDevice, at: Addresses, env: Env, stream: StreamHandle) -> None:
        """Copy the values into memory, if there are any."""
        if self.values:
            opened.backend.copy_in(
                *resolve_address(self.place, at), memoryview(self.values), stream
            )


@dataclass(frozen=True, eq=False)
class ValueGuardAct(Act):
    """A read by the host of elements without gaps. `values`: those at the capture."""

    operand: StridedMemory
    values: bytes = b""

    def read(self, opened: OpenedDevice, at: Addresses, stream: StreamHandle) -> bytes:
        """Wait for the stream, and return the elements."""
        wait_for_stream(opened, stream)
        return _read(opened, at, self.operand, stream).tobytes()

    def run(self, opened: OpenedDevice, at: Addresses, env: Env, stream: StreamHandle) -> None:
        """Raise ValueGuardError if memory holds other values."""
        if self.read(opened, at, stream) != self.values:
            raise ValueGuardError


@dataclass(frozen=True, eq=False)
class EffectAct(Act):
    """An action without memory, such as drawing random numbers or setting a seed.

    Its `count` results go to `env` from `variable` on, unless that is None.
    """

    action: Callable[[], Any]
    variable: int | None = None
    count: int = 0

    def run(self, opened: OpenedDevice, at: Addresses, env: Env, stream: StreamHandle) -> None:
        """Call the action; put its results into `env` if the act has a variable."""
        results = self.action()
        if self.variable is not None:
            env[self.variable : self.variable + len(results)] = results


@dataclass(frozen=True, eq=False)
class DrawAct(Act):
    """A draw of samples by a generator of the host, which `draw` repeats."""

    draw: Callable[[], np.ndarray]
    result: StridedMemory

    @property
    def written(self) -> tuple[Place, ...]:
        return (self.result.place,)

    def run(self, opened: OpenedDevice, at: Addresses, env: Env, stream: StreamHandle) -> None:
        """Wait for the stream, draw, and copy the samples into memory."""
        wait_for_stream(opened, stream)
        _write(opened, at, self.result, self.draw(), stream)


class CapturedProgram:
    """A list of acts, and their memory: slots are in `at` in the order of these fields.

    `sizes`: bytes of the results to allocate. `arena`: bytes of the last slot. `written`: the
    inputs and constants that acts write.
    """

    def __init__(
        self,
        opened: OpenedDevice,
        inputs: int,
        constants: tuple[Storage, ...],
        sizes: tuple[int, ...],
        arena: int,
        acts: tuple[Act, ...],
        written: frozenset[int],
        name: str,
    ) -> None:
        self.name = name
        self.opened, self.inputs, self.constants, self.sizes = opened, inputs, constants, sizes
        self.arena, self.acts, self.written = arena, acts, written
        self.replay = Replayer(opened, acts, name)

    @property
    def launches(self) -> int:
        """The number of kernels and routines; those of loops count once."""
        return sum(act.launches for act in self.acts)

    def steps(
        self, inside: str = ""
    ) -> Iterator[tuple[str, LaunchAct | LibraryCallAct | RawLaunchAct | HostAct]]:
        """Yield (labels of the loops and branches around it, act) of each kernel and routine."""
        for act in self.acts:
            if isinstance(act, LaunchAct | LibraryCallAct | RawLaunchAct | HostAct):
                yield inside, act
            for part in act.programs:
                yield from part.steps(f"{inside}{act.label}: ")

    def constant_addresses(self) -> Addresses:
        """Return handles and offsets of the constants, a part of `at`."""
        return [x for s in self.constants for x in (s.ptr.handle, s.ptr.offset)]


# --- the arena ------------------------------------------------------------------------------------


def assign_arena_offsets(
    sizes: dict[int, int], spans: Mapping[int, tuple[int, ...]]
) -> tuple[dict[int, int], int]:
    """Return the offset of each slot in an arena, and the arena's size, in bytes.

    Slots whose spans (a first and a last act, or several pairs) are disjoint may share memory. The
    largest slot comes first, each at the lowest free offset.
    """
    # of each span that has an offset, in the order of offsets: begin, end, first act, last act
    placed = np.empty((4, sum(len(spans[slot]) for slot in sizes) // 2), np.int64)
    offsets: dict[int, int] = {}
    count = whole = 0
    for slot in sorted(sizes, key=lambda s: (-sizes[s], s)):
        size = -(-max(sizes[slot], 1) // ARENA_ALIGNMENT_BYTES) * ARENA_ALIGNMENT_BYTES
        begins, ends, firsts, lasts = placed[:, :count]
        segments = [*zip(spans[slot][::2], spans[slot][1::2], strict=True)]
        meets = np.zeros(count, bool)
        for first, last in segments:
            meets |= (firsts <= last) & (lasts >= first)
        occupied = np.append(0, np.maximum.accumulate(ends[meets]))
        fits = begins[meets] - occupied[:-1] >= size
        at = int(occupied[fits.argmax() if fits.any() else -1])
        k = int(np.searchsorted(begins, at))
        for first, last in segments:
            placed[:, k + 1 : count + 1] = placed[:, k:count].copy()
            placed[:, k] = at, at + size, first, last
            count += 1
        offsets[slot] = at
        whole = max(whole, at + size)
    return offsets, whole


def drop_unread_launches(
    acts: Sequence[Act], own_slots: Container[int], result_slots: Iterable[int]
) -> list[Act]:
    """Return the acts without launches whose results no later act reads.

    Such results are values that the function dropped after they were computed. Launches with checks
    stay. `own_slots`: the program's own slots; `result_slots`: those of results.
    """
    live, needed_acts = {*result_slots}, []
    for act in reversed(acts):
        is_launch = isinstance(act, LaunchAct) and not act.plan_step.checks
        if is_launch and all(p.slot in own_slots and p.slot not in live for p in act.written):
            continue
        live |= {p.slot for p in act.places()}
        needed_acts.append(act)
    return needed_acts[::-1]


def has_effects(acts: Iterable[Act]) -> bool:
    """Return True if an act, or one of a program in it, may change more than memory."""
    return any(
        isinstance(act, EffectAct | DrawAct | RawLaunchAct)
        or any(has_effects(program.acts) for program in act.programs)
        for act in acts
    )


def live_ranges(acts: Iterable[Act]) -> dict[int, tuple[int, int]]:
    """Return for each slot the numbers of the first and the last act that use it."""
    ranges: dict[int, tuple[int, int]] = {}
    for k, act in enumerate(acts):
        for p in act.places():
            first, _ = ranges.get(p.slot, (k, k))
            ranges[p.slot] = (first, k)
    return ranges


def variables(acts: Iterable[Act]) -> Iterator[int]:
    """Yield the variables that acts, and the programs in them, read."""
    for act in acts:
        numbers = act.numbers if isinstance(act, LaunchAct) else vars(act).values()
        for number in find_nested(tuple(numbers), TracedNumber):
            if number.variable is not None:
                yield number.variable
        for program in act.programs:
            yield from variables(program.acts)
