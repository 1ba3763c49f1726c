"""What a captured function does to memory, as plain data, and the Python that does it again.

A program's memory is a list of *slots*: those given to it (inputs), those it keeps (constants), its
results, and one arena in which everything else has a fixed place. To replay it is to run its acts
in order with `at`, the handle and byte offset of each slot, and `env`, the numbers that may differ
from call to call.
"""

from __future__ import annotations

import ctypes
import math
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..backend import faults
from ..backend.faults import PROMPT
from ..backend.interface import LibraryCall, QueuedLaunch, Replay, Scalar
from ..backend.streams import wait
from ..dtypes import DType
from ..engine import events
from ..engine.programs import BoundStep, Part
from ..engine.traced_numbers import Env, Number
from ..errors import InternalError, LinAlgError
from ..fusion.plan import Step
from ..layout import Shape
from ..memory.pointer import StreamHandle
from ..memory.storage import Storage
from ..ops.host_routines import HostCall
from ..ops.table import Op
from ..plugins.opened import Opened
from .host_steps import HostReplay, with_line
from .replay import At as At
from .replay import Checked, OneByOne, Replayer, Routine

ROUND = 512  # to which places in an arena are rounded, as the allocator's blocks are


class Place(NamedTuple):
    """Somewhere in memory: so many bytes after the beginning of a slot."""

    slot: int
    offset: int


class Act(ABC):
    """One thing that a program does."""

    launches = calls = 0
    what = ""  # for people

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs in it."""
        return ()

    @property
    def written(self) -> tuple[Place, ...]:
        """Where it writes."""
        return ()

    @abstractmethod
    def places(self) -> Iterator[Place]:
        """Where it reads and writes."""

    @abstractmethod
    def moved(self, move: Callable[[Place], Place]) -> Act:
        """The same with its memory elsewhere."""

    @abstractmethod
    def run(self, opened: Opened, at: At, env: Env, stream: StreamHandle) -> None:
        """Does it, noting events."""

    def queued(self, opened: Opened) -> QueuedLaunch | None:
        """Itself, where it is a launch that may be part of a sequence."""
        return None

    def step(self, opened: Opened) -> Replay:
        """What does it in a replay where nobody looks."""
        return partial(self.run, opened)


class Launch(Act):
    """A kernel.

    `buffers`: where each of the step's begins, its offset included. `lines`: of each of its checks,
    the source line that asked for it.
    """

    launches = 1

    def __init__(
        self, bound: BoundStep, buffers: tuple[Place, ...], numbers: tuple[Number, ...],
        lines: tuple[str | None, ...] = (),
    ) -> None:  # fmt: skip
        self.bound, self.buffers, self.numbers, self.lines = bound, buffers, numbers, lines

    @property
    def planned(self) -> Step:
        """What it was planned as."""
        return self.bound.step

    def places(self) -> Iterator[Place]:
        cells = {slot for slot, _, _ in self.planned.checks}
        pairs = zip(self.planned.buffers, self.buffers, strict=True)
        return (p for (slot, _), p in pairs if slot not in cells)

    @property
    def written(self) -> tuple[Place, ...]:
        cells = {slot for slot, _, _ in self.planned.checks}
        access = (b.access for b in self.planned.kernel.buffers)
        found = zip(self.planned.buffers, self.buffers, access, strict=True)
        return tuple(p for (slot, _), p, how in found if how != "r" and slot not in cells)

    def moved(self, move: Callable[[Place], Place]) -> Launch:
        cells = {slot for slot, _, _ in self.planned.checks}
        pairs = zip(self.planned.buffers, self.buffers, strict=True)
        buffers = tuple(p if slot in cells else move(p) for (slot, _), p in pairs)
        return Launch(self.bound, buffers, self.numbers, self.lines)

    def queued(self, opened: Opened) -> QueuedLaunch | None:
        return None if self.planned.checks else self._queued

    def step(self, opened: Opened) -> Replay:
        checks, prompt = self.planned.checks, opened.faults.prompt()
        if prompt is None or len(checks) > PROMPT:
            return super().step(opened)
        buffers = [slot for slot, _ in self.planned.buffers]
        asked = zip(checks, self.lines, strict=True)
        cells = [(buffers.index(slot), purpose, line) for (slot, _, purpose), line in asked]
        marked = {k for k, _, _ in cells}
        places = (Place(0, 0) if k in marked else p for k, p in enumerate(self.buffers))
        return Checked(self._queued._replace(buffers=tuple(places)), cells, prompt)

    @property
    def _queued(self) -> QueuedLaunch:
        return QueuedLaunch(self.bound.run, self.buffers, self.numbers)

    def run(self, opened: Opened, at: At, env: Env, stream: StreamHandle) -> None:
        """Raises: IndexOutOfRange: a replay waits to learn that indices were in range."""
        begun = time.perf_counter_ns()
        args: list[object] = []
        made: dict[int, faults.Check] = {}
        for (slot, _, purpose), line in zip(self.planned.checks, self.lines, strict=True):
            check = made[slot] = opened.faults.check(purpose, stream)
            check.line = line
        for (slot, _), p in zip(self.planned.buffers, self.buffers, strict=True):
            if slot in made:
                args += opened.faults.place(made[slot])
            else:
                args += (at[2 * p.slot], at[2 * p.slot + 1] + p.offset)
        values = [n.value if n.variable is None else env[n.variable] for n in self.numbers]
        try:
            self.bound.run(tuple(args), values, stream)
        finally:
            for check in made.values():
                check.queued = True
        if made:
            faults.demand([*made.values()])
        _note(opened, f"launch {self.planned.kernel.name}", begun, stream, self.planned)


class Strided(NamedTuple):
    """What a vendor's routine reads or writes. Strides are in elements."""

    place: Place
    shape: Shape
    strides: Shape
    dtype: DType


class Call(Act):
    """A vendor's routine."""

    launches = calls = 1

    def __init__(self, op: Op, inputs: tuple[Strided, ...], output: Strided, nbytes: int) -> None:
        self.op, self.inputs, self.output, self.nbytes = op, inputs, output, nbytes

    def places(self) -> Iterator[Place]:
        return (x.place for x in (*self.inputs, self.output))

    @property
    def written(self) -> tuple[Place, ...]:
        return (self.output.place,)

    def moved(self, move: Callable[[Place], Place]) -> Call:
        inputs = tuple(x._replace(place=move(x.place)) for x in self.inputs)
        output = self.output._replace(place=move(self.output.place))
        return Call(self.op, inputs, output, self.nbytes)

    def queued(self, opened: Opened) -> QueuedLaunch | None:
        operands = [(None, 0, x.shape, x.strides, x.dtype) for x in (*self.inputs, self.output)]
        run = opened.backend.bind_call(self._routine(opened), operands[:-1], operands[-1])
        buffers = tuple((p.slot, p.offset) for p in self.places())
        return None if run is None else QueuedLaunch(run, buffers, ())

    def step(self, opened: Opened) -> Replay:
        queued = self.queued(opened)
        if queued is not None:
            return OneByOne([queued])
        inputs = [_part(x) for x in self.inputs]
        return Routine(opened.backend, self._routine(opened), inputs, _part(self.output))

    def _routine(self, opened: Opened) -> LibraryCall:
        return opened.library_calls[self.op.name, self.inputs[0].dtype]

    def run(self, opened: Opened, at: At, env: Env, stream: StreamHandle) -> None:
        step = self.step(opened)  # bound anew, which is none of the routine's time
        begun = time.perf_counter_ns()
        step(at, env, stream)
        events.note(f"call {self.op.name}", begun, bytes=self.nbytes, device=str(opened.device))


def _part(x: Strided) -> Part:
    return x.place.slot, x.place.offset, x.shape, x.strides, x.dtype


class Work(Act):
    """A kernel in the device's own language: `work` is called with its memory and its numbers."""

    launches = 1

    def __init__(
        self, name: str, source: str, work: Callable[[At, Sequence[Scalar], StreamHandle], object],
        given: tuple[Place, ...], changes: frozenset[int], numbers: tuple[Number, ...], nbytes: int,
    ) -> None:  # fmt: skip
        self.name, self.source, self.work, self.given = name, source, work, given
        self.changes, self.numbers, self.nbytes = changes, numbers, nbytes

    def places(self) -> Iterator[Place]:
        return iter(self.given)

    @property
    def written(self) -> tuple[Place, ...]:
        return tuple(p for k, p in enumerate(self.given) if k in self.changes)

    def moved(self, move: Callable[[Place], Place]) -> Work:
        given = tuple(move(p) for p in self.given)
        return Work(
            self.name, self.source, self.work, given, self.changes, self.numbers, self.nbytes
        )

    def step(self, opened: Opened) -> Replay:
        return self._again

    def _again(self, at: At, env: Env, stream: StreamHandle) -> None:
        found: At = []
        for slot, offset in self.given:
            found.append(at[2 * slot])
            found.append(at[2 * slot + 1] + offset)
        values = [n.value if n.variable is None else env[n.variable] for n in self.numbers]
        self.work(found, values, stream)

    def run(self, opened: Opened, at: At, env: Env, stream: StreamHandle) -> None:
        begun = time.perf_counter_ns()
        self._again(at, env, stream)
        if events.profiles:
            opened.backend.synchronize(stream)
            device = str(opened.device)
            events.note(f"launch {self.name}", begun, bytes=self.nbytes, device=device)


class HostStep(Act):
    """A routine of the host, LAPACK's for example, between reads and writes of memory.

    Operands and results have no gaps. `line`: the source line that asked for it, which an error of
    a replay names.
    """

    calls = 1

    def __init__(
        self, call: HostCall, operands: tuple[Strided, ...], results: tuple[Strided, ...],
        line: str | None = None,
    ) -> None:  # fmt: skip
        self.call, self.operands, self.results, self.line = call, operands, results, line
        self.name = f"linalg.{call.name}"
        self.nbytes = sum(math.prod(x.shape) * x.dtype.itemsize for x in (*operands, *results))

    def places(self) -> Iterator[Place]:
        return (x.place for x in (*self.operands, *self.results))

    @property
    def written(self) -> tuple[Place, ...]:
        return tuple(x.place for x in self.results)

    def moved(self, move: Callable[[Place], Place]) -> HostStep:
        operands, results = (
            tuple(x._replace(place=move(x.place)) for x in part)
            for part in (self.operands, self.results)
        )
        return HostStep(self.call, operands, results, self.line)

    def step(self, opened: Opened) -> Replay:
        run = super().step(opened)
        if not opened.backend.host:
            return run
        return HostReplay(opened, self.call, self.operands, self.results, self.line, run)

    def run(self, opened: Opened, at: At, env: Env, stream: StreamHandle) -> None:
        """Raises: LinAlgError."""
        begun = time.perf_counter_ns()
        wait(opened, stream)
        try:
            made = self.call(_read(opened, at, x, stream) for x in self.operands)
        except LinAlgError as error:
            raise with_line(error, self.line) from None
        if made:
            for x, values in zip(self.results, made, strict=True):
                _write(opened, at, x, values, stream)
        moved = 0 if opened.backend.host else self.nbytes
        events.note(f"call {self.name} on the host", begun, bytes=moved)


def _address(opened: Opened, at: At, p: Place) -> int | None:
    """Where the host reaches a place, if it does."""
    return opened.host_address(at[2 * p.slot], at[2 * p.slot + 1] + p.offset)


def _array(memory: bytearray | ctypes.Array[ctypes.c_char], x: Strided) -> np.ndarray:
    """An operand's or a result's values in memory of the host."""
    flat = memoryview(memory).cast("B")
    found: np.ndarray = np.frombuffer(flat, x.dtype.__numpy_dtype__).reshape(x.shape)
    return found


def _read(opened: Opened, at: At, x: Strided, stream: StreamHandle) -> np.ndarray:
    """An operand of a host step: its memory itself, read-only, or a copy."""
    address, nbytes = _address(opened, at, x.place), math.prod(x.shape) * x.dtype.itemsize
    if address is None or not nbytes:
        values = bytearray(nbytes)
        handle, offset = at[2 * x.place.slot], at[2 * x.place.slot + 1] + x.place.offset
        if nbytes:
            opened.backend.copy_out(memoryview(values), handle, offset, stream)
        return _array(values, x)
    found = _array((ctypes.c_char * nbytes).from_address(address), x)
    found.flags.writeable = False
    return found


def _write(opened: Opened, at: At, x: Strided, values: np.ndarray, stream: StreamHandle) -> None:
    """A result of a host step, into its memory. Raises: InternalError."""
    if (values.shape, values.dtype) != (x.shape, x.dtype.__numpy_dtype__):
        raise InternalError(f"a host routine gave {values.dtype}{values.shape} for {x}")
    address = _address(opened, at, x.place)
    if address is not None and values.size:
        _array((ctypes.c_char * values.nbytes).from_address(address), x)[...] = values
    elif values.size:
        flat = np.asarray(values, order="C").reshape(-1).view(np.uint8).data
        handle, offset = at[2 * x.place.slot], at[2 * x.place.slot + 1] + x.place.offset
        opened.backend.copy_in(handle, offset, flat, stream)


class Fill(Act):
    """Values that the host puts somewhere."""

    def __init__(self, place: Place, values: bytes) -> None:
        self.place, self.values = place, values

    def places(self) -> Iterator[Place]:
        return iter((self.place,))

    @property
    def written(self) -> tuple[Place, ...]:
        return (self.place,)

    def moved(self, move: Callable[[Place], Place]) -> Fill:
        return Fill(move(self.place), self.values)

    def run(self, opened: Opened, at: At, env: Env, stream: StreamHandle) -> None:
        slot, offset = self.place
        if self.values:
            source = memoryview(self.values)
            opened.backend.copy_in(at[2 * slot], at[2 * slot + 1] + offset, source, stream)


class Effect(Act):
    """Something that has nothing to do with memory: random numbers are drawn, a seed is set.

    Its results, if `variable` is given, go to `env` from there on.
    """

    def __init__(self, action: Callable[[], Any], variable: int | None = None) -> None:
        self.action, self.variable = action, variable

    def places(self) -> Iterator[Place]:
        return iter(())

    def moved(self, move: Callable[[Place], Place]) -> Effect:
        return self

    def run(self, opened: Opened, at: At, env: Env, stream: StreamHandle) -> None:
        made = self.action()
        if self.variable is not None:
            env[self.variable : self.variable + len(made)] = made


class Program:
    """Acts in order, and what memory they need: slots stand in `at` in the order of these fields.

    `sizes`: bytes of the results that are to be allocated. `arena`: bytes of the last slot.
    `written`: the inputs and constants that acts write.
    """

    def __init__(
        self, opened: Opened, inputs: int, held: tuple[Storage, ...], sizes: tuple[int, ...],
        arena: int, acts: tuple[Act, ...], written: frozenset[int], name: str,
    ) -> None:  # fmt: skip
        self.name = name
        self.opened, self.inputs, self.held, self.sizes = opened, inputs, held, sizes
        self.arena, self.acts, self.written = arena, acts, written
        self.replay = Replayer(opened, acts, self.launches, name)

    @property
    def launches(self) -> int:
        """Kernels and routines, those of loops once."""
        return sum(act.launches for act in self.acts)

    def steps(self, inside: str = "") -> Iterator[tuple[str, Launch | Call | Work | HostStep]]:
        """Every kernel and routine, those of loops and branches once, and what it is inside of."""
        for act in self.acts:
            if isinstance(act, Launch | Call | Work | HostStep):
                yield inside, act
            for part in act.programs:
                yield from part.steps(f"{inside}{act.what}: ")

    def begun(self) -> At:
        """The part of `at` that holds constants."""
        return [x for s in self.held for x in (s.ptr.handle, s.ptr.offset)]


def _note(opened: Opened, name: str, begun: int, stream: StreamHandle, step: Step) -> None:
    if events.profiles:
        opened.backend.synchronize(stream)
        live = opened.allocator.stats().live_bytes
        device = str(opened.device)
        events.note(name, begun, grid=step.grid, bytes=step.nbytes, live=live, device=device)


# --- the arena ------------------------------------------------------------------------------------


def arranged(
    sizes: dict[int, int], spans: dict[int, tuple[int, int]]
) -> tuple[dict[int, int], int]:
    """Return where each slot lies in an arena, and the size of that.

    Slots whose spans (first and last act) do not meet may lie in one place. The largest first, each
    at the lowest place that is free.
    """
    in_use: dict[int, list[tuple[int, int]]] = defaultdict(list)  # by act: begin, end
    begun: dict[int, list[tuple[int, int]]] = defaultdict(list)  # those that it is the first to use
    found: dict[int, int] = {}
    whole = 0
    for slot in sorted(sizes, key=lambda s: (-sizes[s], s)):
        first, last = spans[slot]
        size = -(-max(sizes[slot], 1) // ROUND) * ROUND
        taken = [*in_use[first]]
        for act in range(first + 1, last + 1):
            taken += begun[act]
        at = 0
        for begin, end in sorted(taken):
            if begin < at + size and at < end:
                at = end
        begun[first].append((at, at + size))
        for act in range(first, last + 1):
            in_use[act].append((at, at + size))
        found[slot] = at
        whole = max(whole, at + size)
    return found, whole


def needed(acts: Sequence[Act], born: Container[int], wanted: Iterable[int]) -> list[Act]:
    """The acts without launches that write only where nobody reads.

    They are values that a function held while it ran. `born`: the slots that are the program's own;
    `wanted`: those of results.
    """
    live, found = {*wanted}, []
    for act in reversed(acts):
        is_launch = isinstance(act, Launch) and not act.planned.checks
        if is_launch and all(p.slot in born and p.slot not in live for p in act.written):
            continue
        live |= {p.slot for p in act.places()}
        found.append(act)
    return found[::-1]


def touched(acts: Iterable[Act]) -> dict[int, tuple[int, int]]:
    """Of each slot, the first and the last act that reads or writes it."""
    found: dict[int, tuple[int, int]] = {}
    for k, act in enumerate(acts):
        for p in act.places():
            first, _ = found.get(p.slot, (k, k))
            found[p.slot] = (first, k)
    return found
