"""Replay of acts: launches in one sequence if the backend can run one, all else in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..backend.faults import WIDTH, Asked, Prompt, out_of_range
from ..backend.interface import Backend, QueuedLaunch, Replay, Scalar
from ..backend.limits import sequence
from ..engine import events
from ..engine.evaluate import lock
from ..engine.events import counters
from ..engine.launching import Part, strided_operand
from ..engine.traced_numbers import Env
from ..memory.pointer import StreamHandle
from ..plugins.device_handle import Opened
from ..plugins.plugin_errors import blame
from ..settings import flags

if TYPE_CHECKING:
    from .program import Act

At: TypeAlias = list[Any]  # handle and byte offset of each slot
Buffers: TypeAlias = tuple[tuple[int, int], ...]  # slots and byte offsets
Scalars: TypeAlias = tuple[tuple[Scalar, int | None], ...]  # values, or indices in `env`


class Unrolled(NamedTuple):
    """The launches of all iterations of a loop; `calls` is the number of routines among them."""

    launches: list[QueuedLaunch]
    calls: int


class Replayer:
    """The replay of a program's acts.

    `launches`: the number of kernels and routines of `steps`, without those that count themselves;
    `calls`: the number of routines among them.
    """

    __slots__ = ("acts", "calls", "launches", "name", "opened", "steps")

    def __init__(self, opened: Opened, acts: Sequence[Act], name: str) -> None:
        self.opened, self.acts, self.name = opened, acts, name
        self.launches = self.calls = 0
        self.steps: list[Replay] | None = None

    def run(self, at: At, env: Env, stream: StreamHandle) -> None:
        """Run the acts on this memory and with these numbers."""
        if flags.profiled:
            self._run_profiled(at, env, stream)
        else:
            steps = self.steps
            if steps is None:
                steps = self.steps = self._prepare()
            try:
                for step in steps:
                    step(at, env, stream)
            except Exception as error:
                blame(self.opened.device, f"a replay of {self.name or 'launches'}", "", error)
                raise
            counters.launches += self.launches
            counters.calls += self.calls

    def _run_profiled(self, at: At, env: Env, stream: StreamHandle) -> None:
        """Run the acts during a profile: each adds its own event."""
        if self.name:
            events.note(f"replay {self.name}", time.perf_counter_ns())
        for act in self.acts:
            act.run(self.opened, at, env, stream)
            counters.launches += act.launches
            counters.calls += act.calls

    def _prepare(self) -> list[Replay]:
        """Return the steps of the replay, with consecutive launches in one sequence."""
        steps: list[Replay] = []
        waiting: list[QueuedLaunch] = []
        launches = calls = 0
        for act in self.acts:
            launches += act.launches
            calls += act.calls
            step = act.prepare(self.opened)
            if isinstance(step, QueuedLaunch):
                waiting.append(step)
            elif isinstance(step, Unrolled):
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
        """Return the replay of these launches, or an empty list if there are none."""
        if not launches:
            return []
        replay = sequence(self.opened.backend, launches)
        is_batched = self.opened.batches and len(launches) > 1
        return [replay or QueuedLaunches(launches, self.opened.backend if is_batched else None)]


class QueuedLaunches:
    """A replay of launches in order; in one call of the `backend`, if one is passed."""

    __slots__ = ("backend", "launches")

    def __init__(self, launches: list[QueuedLaunch], backend: Backend | None = None) -> None:
        self.launches, self.backend = launches, backend

    def __call__(self, at: At, env: Env, stream: StreamHandle) -> None:
        if self.backend is None:
            for q in self.launches:
                q.launch(handles(q.buffers, at), numbers(q.scalars, env), stream)
            return
        launches = [
            (q.launch, handles(q.buffers, at), numbers(q.scalars, env)) for q in self.launches
        ]
        self.backend.launch_all(launches, stream)


class Checked:
    """A launch that checks indices, on a device whose error cells the host can read at once.

    `cells`: for each error cell the number of its buffer, the purpose of the index, and the line.

    Raises: IndexOutOfRange.
    """

    __slots__ = ("cells", "prompt", "queued")

    def __init__(
        self, queued: QueuedLaunch, cells: list[tuple[int, Asked, str | None]], prompt: Prompt
    ) -> None:
        self.queued, self.cells, self.prompt = queued, cells, prompt

    def __call__(self, at: At, env: Env, stream: StreamHandle) -> None:
        args = [*handles(self.queued.buffers, at)]
        handle, cells = self.prompt
        with lock:  # the lock guards the cells
            for k, (buffer, _, _) in enumerate(self.cells):
                cells[k] = 0
                args[2 * buffer], args[2 * buffer + 1] = handle, k * WIDTH
            self.queued.launch(tuple(args), numbers(self.queued.scalars, env), stream)
            for k, (_, asked, line) in enumerate(self.cells):
                index = cells[k]
                if index or asked.size == 0:  # along an axis of size 0 even index 0 is out of range
                    raise out_of_range(asked, index, line)


class Routine:
    """A call of a vendor's routine; operands as for `launching.strided_operand`."""

    __slots__ = ("backend", "inputs", "output", "routine")

    def __init__(
        self, backend: Backend, routine: Callable[..., object], inputs: list[Part], output: Part
    ) -> None:
        self.backend, self.routine, self.inputs, self.output = backend, routine, inputs, output

    def __call__(self, at: At, env: Env, stream: StreamHandle) -> None:
        operands = tuple([strided_operand(at, x) for x in self.inputs])
        self.routine(self.backend, operands, strided_operand(at, self.output), stream)


def handles(buffers: Buffers, at: At) -> tuple[object, ...]:
    """Return handle and byte offset of each buffer."""
    addresses: list[object] = []
    for slot, offset in buffers:
        addresses.append(at[2 * slot])
        addresses.append(at[2 * slot + 1] + offset)
    return tuple(addresses)


def numbers(scalars: Scalars, env: Env) -> list[Scalar]:
    """Return the scalars of a launch."""
    return [x if k is None else env[k] for x, k in scalars]
