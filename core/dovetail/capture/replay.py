"""Replay of acts: launches in one sequence if the backend can run one, all else in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..backend.faults import CELL_BYTES, HostCells, IndexPurpose, out_of_range_error
from ..backend.interface import Backend, QueuedLaunch, Replay, Scalar
from ..backend.limits import sequence
from ..engine import events
from ..engine.evaluate import engine_lock
from ..engine.events import counters
from ..engine.launching import OperandLayout, strided_operand
from ..engine.traced_numbers import Env
from ..memory.pointer import StreamHandle
from ..plugins.device_handle import OpenedDevice
from ..plugins.plugin_errors import raise_plugin_error
from ..settings import flags

if TYPE_CHECKING:
    from .program import Act

Addresses: TypeAlias = list[Any]  # handle and byte offset of each slot
Buffers: TypeAlias = tuple[tuple[int, int], ...]  # slots and byte offsets
Scalars: TypeAlias = tuple[tuple[Scalar, int | None], ...]  # values, or indices in `env`


class UnrolledLaunches(NamedTuple):
    """The launches of all iterations of a loop; `calls` is the number of routines among them."""

    launches: list[QueuedLaunch]
    calls: int


class Replayer:
    """The replay of a program's acts.

    `launches`: the number of kernels and routines of `steps`, without those that count themselves;
    `calls`: the number of routines among them.
    """

    __slots__ = ("acts", "calls", "launches", "name", "opened", "steps")

    def __init__(self, opened: OpenedDevice, acts: Sequence[Act], name: str) -> None:
        self.opened, self.acts, self.name = opened, acts, name
        self.launches = self.calls = 0
        self.steps: list[Replay] | None = None

    def run(self, at: Addresses, env: Env, stream: StreamHandle) -> None:
        """Run the acts on the slots `at`, with variables `env`; the first run prepares steps."""
        if flags.is_observed:
            self._run_profiled(at, env, stream)
        else:
            steps = self.steps
            if steps is None:
                steps = self.steps = self._prepare()
            try:
                for step in steps:
                    step(at, env, stream)
            except Exception as error:
                raise_plugin_error(
                    self.opened.device, f"a replay of {self.name or 'launches'}", "", error
                )
                raise
            counters.launches += self.launches
            counters.calls += self.calls

    def _run_profiled(self, at: Addresses, env: Env, stream: StreamHandle) -> None:
        """Run the acts during a profile: each adds its own event."""
        if self.name:
            events.note(f"replay {self.name}", time.perf_counter_ns())
        for act in self.acts:
            act.run(self.opened, at, env, stream)
            counters.launches += act.launches
            counters.calls += act.calls

    def _prepare(self) -> list[Replay]:
        """Build the steps, consecutive launches as one sequence; count launches and calls."""
        steps: list[Replay] = []
        waiting: list[QueuedLaunch] = []
        launches = calls = 0
        for act in self.acts:
            launches += act.launches
            calls += act.calls
            step = act.prepare(self.opened)
            if isinstance(step, QueuedLaunch):
                waiting.append(step)
            elif isinstance(step, UnrolledLaunches):
                waiting += step.launches
                launches += len(step.launches)
                calls += step.calls
            else:
                steps += self._sequence(waiting)
                waiting = []
                steps.append(step)
        self.launches, self.calls = launches, calls
        return steps + self._sequence(waiting)

    def _sequence(self, launches: list[QueuedLaunch]) -> list[Replay]:
        """Return a list with one replay of these launches, or [] if there are none."""
        if not launches:
            return []
        replay = sequence(self.opened.backend, launches)
        is_batched = self.opened.takes_batches and len(launches) > 1
        return [replay or QueuedLaunches(launches, self.opened.backend if is_batched else None)]


class ValueGuardError(BaseException):
    """Raised in a replay where a value differs from the one that the host read at the capture.

    No `Exception`, because it is no error of a plugin: the call is another one's.
    """


class QueuedLaunches:
    """A replay of launches in order; in one call of the `backend`, if one is passed."""

    __slots__ = ("backend", "launches")

    def __init__(self, launches: list[QueuedLaunch], backend: Backend | None = None) -> None:
        self.launches, self.backend = launches, backend

    def __call__(self, at: Addresses, env: Env, stream: StreamHandle) -> None:
        if self.backend is None:
            for q in self.launches:
                q.launch(buffer_addresses(q.buffers, at), numbers(q.scalars, env), stream)
            return
        launches = [
            (q.launch, buffer_addresses(q.buffers, at), numbers(q.scalars, env))
            for q in self.launches
        ]
        self.backend.launch_all(launches, stream)


class CheckedLaunch:
    """A launch that checks indices, on a device whose error cells the host can read at once.

    `cells`: for each error cell the number of its buffer, the purpose of the index, and the line.

    Raises: OutOfRangeError.
    """

    __slots__ = ("cells", "prompt_cells", "queued")

    def __init__(
        self,
        queued: QueuedLaunch,
        cells: list[tuple[int, IndexPurpose, str | None]],
        prompt: HostCells,
    ) -> None:
        self.queued, self.cells, self.prompt_cells = queued, cells, prompt

    def __call__(self, at: Addresses, env: Env, stream: StreamHandle) -> None:
        args = [*buffer_addresses(self.queued.buffers, at)]
        handle, cells = self.prompt_cells
        with engine_lock:  # the lock guards the cells
            for k, (buffer, _, _) in enumerate(self.cells):
                cells[k] = 0
                args[2 * buffer], args[2 * buffer + 1] = handle, k * CELL_BYTES
            self.queued.launch(tuple(args), numbers(self.queued.scalars, env), stream)
            for k, (_, asked, line) in enumerate(self.cells):
                index = cells[k]
                if index or asked.size == 0:  # along an axis of size 0 even index 0 is out of range
                    raise out_of_range_error(asked, index, line)


class LibraryCallReplay:
    """A call of a vendor's routine; operands as for `launching.strided_operand`."""

    __slots__ = ("backend", "inputs", "output", "routine")

    def __init__(
        self,
        backend: Backend,
        routine: Callable[..., object],
        inputs: list[OperandLayout],
        output: OperandLayout,
    ) -> None:
        self.backend, self.routine, self.inputs, self.output = backend, routine, inputs, output

    def __call__(self, at: Addresses, env: Env, stream: StreamHandle) -> None:
        operands = tuple([strided_operand(at, x) for x in self.inputs])
        self.routine(self.backend, operands, strided_operand(at, self.output), stream)


def buffer_addresses(buffers: Buffers, at: Addresses) -> tuple[object, ...]:
    """Return the handle and the byte offset of each buffer, in one flat tuple."""
    addresses: list[object] = []
    for slot, offset in buffers:
        addresses.append(at[2 * slot])
        addresses.append(at[2 * slot + 1] + offset)
    return tuple(addresses)


def numbers(scalars: Scalars, env: Env) -> list[Scalar]:
    """Return the values of a launch's scalars; those of variables are taken from `env`."""
    return [x if k is None else env[k] for x, k in scalars]
