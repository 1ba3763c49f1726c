"""Groups that wait for each other inside of their losses, for a sum over all groups.

The loss of each group runs in a thread of its own, but only one thread of a worker runs at a time:
until its group needs a sum over all groups, or is complete. When all groups of the worker wait, the
worker adds what they ask for, with the other workers, and lets each group go on with the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from queue import SimpleQueue
from threading import Thread
from typing import Any

import dovetail as dt

from ..nn.functional.normalization import sum_over_groups
from .membership import of_thread
from .packing import Vectors
from .step_timeline import StepRecorder

__all__: list[str] = []

_group: ContextVar[GroupThread] = ContextVar("the group that runs in this thread")


class SumOverGroups(dt.autograd.Function):
    """The sum of a tensor of each group; its gradient is the sum of the gradients of all groups."""

    @staticmethod
    def forward(ctx: Any, x: dt.Tensor) -> dt.Tensor:
        """Return the sum over all groups."""
        return _group.get().wait_for_sum(x)

    @staticmethod
    def backward(ctx: Any, g: dt.Tensor) -> dt.Tensor:
        """Return the sum of the gradients by the sum, over all groups."""
        return SumOverGroups.apply(g)


class Cancelled(BaseException):
    """The end of a group's thread after an error of another group, or of another worker."""


class GroupThread:
    """The computation of one group, which runs while its worker waits in `resume`.

    - `compute`: the computation.
    - `state`: the random state at its begin.
    - `buffers`: tensors that the computations of all groups write; each group sees its own values.
    """

    def __init__(
        self, compute: Callable[[], Vectors], state: tuple[int, int], buffers: Sequence[dt.Tensor]
    ) -> None:
        self._compute, self._state, self._buffers = compute, state, buffers
        self._values = [dt.copy(b) for b in buffers]
        self._sums: SimpleQueue[dt.Tensor | None] = SimpleQueue()
        self._stops: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._workers = of_thread.group
        self._thread = Thread(target=copy_context().run, args=(self._run,), daemon=True)
        self.result: Vectors = []

    def resume(self, total: dt.Tensor | None = None) -> dt.Tensor | None:
        """Run the group until it needs a sum, and return its addend; None if it is complete.

        `total`: the sum for which the group waits.
        """
        outer = dt.random.get_state()
        dt.random.set_state(self._state)
        with dt.no_grad():
            for b, x in zip(self._buffers, self._values, strict=True):
                b.copy_(x)
        try:
            if self._thread.ident is None:
                self._thread.start()
            else:
                self._sums.put(total)
            kind, value = self._stops.get()
        finally:
            self._state = dt.random.get_state()
            dt.random.set_state(outer)
        self._values = [dt.copy(b) for b in self._buffers]
        dt.evaluate(*self._values)
        if kind == "failed":
            raise value
        if kind == "complete":
            self.result = value
            return None
        addend: dt.Tensor = value
        return addend

    def wait_for_sum(self, addend: dt.Tensor) -> dt.Tensor:
        """Let other groups run, and return the sum over all groups. Called by the thread."""
        addend = dt.copy(addend.detach())
        dt.evaluate(addend)
        self._stops.put(("sum", addend))
        total = self._sums.get()
        if total is None:
            self._sums.put(None)  # a later wait, as in a `finally`, ends too
            raise Cancelled
        return total.detach()

    def _run(self) -> None:
        """Compute the group; the target of the thread."""
        of_thread.group = self._workers
        _group.set(self)
        sum_over_groups.set(SumOverGroups.apply)
        try:
            # hooks keep captured functions from a replay, which has no sums over groups
            with dt.autograd.saved_tensors_hooks(_identity, _identity):
                result = self._compute()
                dt.evaluate(*result)
            self._stops.put(("complete", result))
        except BaseException as error:
            self._stops.put(("failed", error))

    def cancel(self) -> None:
        """End the thread, and wait for its end."""
        if self._thread.ident is not None:
            self._sums.put(None)
            self._thread.join()


def _identity(x: dt.Tensor) -> dt.Tensor:
    """Return a saved value."""
    return x


def compute_in_lockstep(
    threads: dict[int, GroupThread],
    add: Callable[[dict[int, dt.Tensor]], dt.Tensor],
    drawing: Any,
    timeline: StepRecorder,
) -> dict[int, Vectors]:
    """Return the results of all groups of this worker.

    - `threads`: by group.
    - `add`: a function that returns the sum over the groups of all workers.
    - `drawing`: the lock that a group holds while it uses the default generator.
    - `timeline`: records the parts of each group's computation.

    Raises: ArgumentError if only some of the groups need a sum; errors of the losses.
    """

    def resume_all(total: dt.Tensor | None = None) -> dict[int, dt.Tensor]:
        """Run each group up to its next sum; return the addends, none at the end."""
        addends: dict[int, dt.Tensor] = {}
        for g, thread in threads.items():
            with drawing, timeline.record("compute", g):
                addend = thread.resume(total)
            if addend is not None:
                addends[g] = addend
        if addends and (
            len(addends) < len(threads) or len({(x.shape, x.dtype) for x in addends.values()}) > 1
        ):
            raise dt.ArgumentError(
                "parallel.value_and_grad: the loss must normalise the examples of all groups by "
                'the same layers with statistics="all", but did not so for groups '
                f"{[*addends]} of {[*threads]}"
            )
        return addends

    try:
        addends = resume_all()
        while addends:
            addends = resume_all(add(addends))
    finally:
        for thread in threads.values():
            thread.cancel()
    return {g: thread.result for g, thread in threads.items()}
