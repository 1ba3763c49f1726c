"""Sums of the packed results of all groups, in the tree, over all workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

import dovetail as dt

from .host_buffers import Value
from .packing import Vectors, empty_vectors
from .reduction_tree import Step, plan_reduction
from .step_timeline import StepRecorder

if TYPE_CHECKING:
    from .group import MessageRequest, ProcessGroup

__all__: list[str] = []

OP = "parallel.value_and_grad"
TAGS_START = 1 << 19  # the tag of a subtree is its number after this one; 0 is that of totals


class Arrival:
    """The vectors of a subtree, or the totals, on their way from another worker."""

    def __init__(
        self, workers: ProcessGroup, source: int, tag: int, header: np.ndarray, empty: Vectors
    ) -> None:
        self._rank, self._source, self._own_header = workers.rank, source, header
        self._header = workers.receive(header, source, tag)
        self._vectors = [workers.receive(x, source, tag) for x in empty]

    def wait(self, i: int, timeline: StepRecorder) -> dt.Tensor:
        """Return vector `i`. Raises: ArgumentError if the other worker has another header."""
        with timeline.record("receive", self._source) as span:
            _check_header(self._own_header, self._header.wait(), self._rank, self._source)
            x: dt.Tensor = self._vectors[i].wait()
            span.add_messages(*([] if i else [self._header]), self._vectors[i])
        return x


class GroupSum:
    """Sums over all groups of one batch.

    - `header`: numbers that must be equal on all workers; see `_check_header`.
    - `timeline`: records each computation, addition and message.
    """

    def __init__(
        self, workers: ProcessGroup, groups: int, header: np.ndarray, timeline: StepRecorder
    ) -> None:
        self.workers, self.groups, self.header = workers, groups, header
        self.timeline = timeline
        self.filled = min(int(header[1]), groups)
        self._sends: list[tuple[int, MessageRequest]] = []

    def sum_on_all(self, compute: Callable[[int], Vectors], likes: Sequence[dt.Tensor]) -> Vectors:
        """Return the sum of the packed results of all groups, on every worker.

        - `compute`: a function that returns the result of a group of this worker, maybe pending.
        - `likes`: tensors with the shapes and dtypes of the packed ones.
        """
        return self._sum(compute, empty_vectors(likes), self.workers.size)

    def sum_of_addends(self, addends: dict[int, dt.Tensor]) -> dt.Tensor:
        """Return the sum of a tensor of each group, on each worker that has examples."""
        like = next(iter(addends.values()))
        reached = min(self.workers.size, self.filled)
        (total,) = self._sum(lambda g: [addends[g]], [like], reached)
        return total

    def _sum(self, compute: Callable[[int], Vectors], empty: Vectors, reached: int) -> Vectors:
        """Return the sum of the results of all groups, on the first `reached` workers.

        After the last group of a worker, one vector takes all steps before the next one does. So
        the first are on their way while the backward pass of that group computes the others.
        """
        workers, timeline, subtrees = self.workers, self.timeline, dict[int, Vectors]()
        steps = plan_reduction(self.groups, workers.size, workers.rank, self.filled)
        own = [k for k, step in enumerate(steps) if step.kind == "compute"]
        first_steps = own[-1] + 1 if own else 0
        for k, step in enumerate(steps[:first_steps]):
            if step.kind != "compute":
                for i in range(len(empty)):
                    self._add_or_send(step, subtrees, i)
                del subtrees[step.other if step.kind == "add" else step.subtree]
                continue
            with timeline.record("compute", step.subtree):
                subtrees[step.subtree] = compute(step.subtree)
                if k + 1 < first_steps or workers.size == 1:
                    dt.evaluate(*subtrees[step.subtree])
        arriving = {
            step.subtree: self._receive(step.other, step.subtree, empty)
            for step in steps
            if step.kind == "receive"
        }
        for i in range(len(empty)):
            if own and timeline.spans is not None:  # else a message would include this work
                last = steps[own[-1]].subtree
                with timeline.record("compute", last):
                    dt.evaluate(subtrees[last][i])
            for step in steps[first_steps:]:
                if step.kind == "receive":
                    vectors = subtrees.setdefault(step.subtree, [*empty])
                    vectors[i] = arriving[step.subtree].wait(i, timeline)
                else:
                    self._add_or_send(step, subtrees, i)
            if workers.rank == 0:
                self._pass_on(subtrees[0][i], reached, i)
        total = subtrees.get(0, empty)
        if 0 < workers.rank < reached:
            parent = workers.rank - (1 << workers.rank.bit_length() - 1)
            totals = self._receive(parent, 0, empty)
            total = []
            for i in range(len(empty)):
                total.append(totals.wait(i, timeline))
                self._pass_on(total[i], reached, i)
        for to, request in self._sends:
            with timeline.record("send", to):
                request.wait()
        self._sends.clear()
        return total

    def _add_or_send(self, step: Step, subtrees: dict[int, Vectors], i: int) -> None:
        """Add vector `i` of a subtree to that of another one, or send it."""
        x = subtrees[step.subtree][i]
        if step.kind == "add":
            with self.timeline.record("add", step.subtree):
                x.add_(subtrees[step.other][i])
                dt.evaluate(x)
        else:
            self._send(x, step.other, step.subtree, i)

    def _pass_on(self, total: dt.Tensor, reached: int, i: int) -> None:
        """Send vector `i` of the totals to the next workers of a binomial tree from worker 0."""
        rank = self.workers.rank
        step = 1 << rank.bit_length()
        while rank + step < reached:
            self._send(total, rank + step, 0, i)
            step *= 2

    def _send(self, x: dt.Tensor, to: int, subtree: int, i: int) -> None:
        """Send vector `i` of a subtree, the first one after the header."""
        with self.timeline.record("send", to) as span:
            messages: list[Value] = [x] if i else [self.header, x]
            for message in messages:
                request = self.workers.send(message, to, TAGS_START + subtree)
                self._sends.append((to, request))
                span.add_messages(request)

    def _receive(self, source: int, subtree: int, empty: Vectors) -> Arrival:
        """Start to receive the vectors of a subtree."""
        return Arrival(self.workers, source, TAGS_START + subtree, self.header, empty)


def _check_header(own: np.ndarray, theirs: np.ndarray, rank: int, other: int) -> None:
    """Raise ArgumentError if two workers differ in groups, batch size or random state."""
    names = ("groups", "examples in the batch", "seed", "random numbers drawn")
    for name, a, b in zip(names, own.tolist(), theirs.tolist(), strict=True):
        if a != b:
            raise dt.ArgumentError(
                f"{OP}: all workers must have the same {name}, got {a} on worker {rank} and {b} on "
                f"worker {other}; give all the same batch, and seed them alike, as by "
                "dt.random.manual_seed(0)"
            )
