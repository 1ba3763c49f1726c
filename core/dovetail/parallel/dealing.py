"""Dealing: example k of a batch belongs to group k modulo the number of groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import dovetail as dt
from dovetail.extend import arguments

from ..data.samplers import Sampler
from .membership import current
from .reduction_tree import list_groups

if TYPE_CHECKING:
    from .group import ProcessGroup

__all__ = ["DealtSampler", "Share"]

GROUPS_MAX = 1 << 15


class Share(NamedTuple):
    """The examples of a batch that one worker computes, ordered by group.

    - `examples`: a tree of tensors or arrays with the examples along the first axis; None if the
      worker has none.
    - `size`: the number of examples in the whole batch.
    - `groups`, `workers`, `rank`: the number of groups, the number of workers, and this worker.

    See also: `DealtSampler`, `value_and_grad`.

    >>> import dovetail as dt
    >>> share = dt.parallel.Share(examples=None, size=0, groups=4, workers=1, rank=0)
    >>> share.groups
    4
    """

    examples: Any
    size: int
    groups: int
    workers: int
    rank: int

    def of_group(self, g: int) -> Any:
        """Return the examples of a group of this worker.

        - `g`: the number of the group.
        """
        start = sum(
            _group_size(self.size, self.groups, h)
            for h in list_groups(self.groups, self.workers, self.rank)
            if h < g
        )
        stop = start + _group_size(self.size, self.groups, g)
        return dt.tree.map(lambda x: x[start:stop], self.examples)


class _WholeBatch(NamedTuple):
    """A batch of which each worker has all examples."""

    examples: Any
    size: int
    groups: int

    def of_group(self, g: int) -> Any:
        """Return the examples of a group."""
        return dt.tree.map(lambda x: x[g :: self.groups], self.examples)


def _group_size(size: int, groups: int, g: int) -> int:
    """Return the number of examples of a batch that belong to group `g`."""
    return max(0, -(-(size - g) // groups))


def check_groups(op: str, groups: int, workers: int) -> None:
    """Raise ArgumentError unless `groups` is a power of two from the number of workers on."""
    arguments.integer(op, groups, "groups", 1)
    if groups & (groups - 1) or not workers <= groups <= GROUPS_MAX:
        raise dt.ArgumentError(
            f"{op}: groups must be a power of two, at least {workers}, the number of workers, and "
            f"at most {GROUPS_MAX}, got {groups}"
        )


def deal(
    op: str, batch: Any, groups: int, workers: ProcessGroup, device: dt.Device
) -> Share | _WholeBatch:
    """Return a batch from which the examples of groups are taken; arrays become tensors.

    Raises: ArgumentError for a share of another worker, an empty batch and unequal numbers of
    examples; ArgumentTypeError for leaves without a first axis.
    """
    if isinstance(batch, Share):
        dealt, mine = batch[2:], (groups, workers.size, workers.rank)
        if dealt != mine:
            raise dt.ArgumentError(
                f"{op}: the batch must be dealt by a DealtSampler for (groups, workers, rank) = "
                f"{mine}, got {dealt}"
            )
        return batch._replace(examples=_to_tensors(op, batch.examples, device))
    examples = _to_tensors(op, batch, device)
    sizes = {x.shape[0] for x in dt.tree.leaves(examples)}
    if len(sizes) != 1 or not min(sizes):
        raise dt.ArgumentError(
            f"{op}: the tensors of a batch must have the same number of examples, at least one, "
            f"along the first axis, got {sorted(sizes)}"
        )
    return _WholeBatch(examples, sizes.pop(), groups)


def _to_tensors(op: str, batch: Any, device: dt.Device) -> Any:
    """Return a tree of tensors. Raises: ArgumentTypeError for leaves without a first axis."""

    def to_tensor(x: Any) -> dt.Tensor:
        """Return a leaf as a tensor of at least one axis."""
        if isinstance(x, np.ndarray):
            x = dt.asarray(x, device=device)
        if not isinstance(x, dt.Tensor) or not x.ndim:
            raise arguments.refused(op, "batch", "tensors with the examples along axis 0", x)
        return x

    return dt.tree.map(to_tensor, batch)


class DealtSampler(Sampler[list[int]]):
    """A batch sampler of which each worker reads only the examples of its own groups.

    - `data_source`: the data set, of which only the length is used.
    - `batch_size`: the number of examples in the batch of all workers.
    - `groups`: the number of groups, as of `value_and_grad`.
    - `shuffle`: use a random order, which is new in each epoch.
    - `seed`: the seed of the order, the same on all workers.
    - `drop_last`: skip a last batch that is shorter.
    - `group`: the workers; None is `current()`.

    The batches of all workers are the same for any number of workers. A loader with this sampler
    yields a `Share` for each batch. `state_dict()` holds the number of batches that the loader has
    yielded; after `load_state_dict` the next loop continues there, in the middle of an epoch.
    Raises: ArgumentError for other groups; ArgumentTypeError.
    See also: `value_and_grad`, `dt.data.DataLoader`.

    >>> import dovetail as dt
    >>> sampler = dt.parallel.DealtSampler(range(5), 4, groups=2, shuffle=False)
    >>> loader = dt.data.DataLoader(range(5), batch_sampler=sampler)
    >>> [(share.examples.tolist(), share.size) for share in loader]
    [([0, 2, 1, 3], 4), ([4], 1)]
    """

    def __init__(
        self,
        data_source: Sized,
        batch_size: int,
        *,
        groups: int,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        group: ProcessGroup | None = None,
    ) -> None:
        op = "parallel.DealtSampler"
        workers = current() if group is None else group
        check_groups(op, groups, workers.size)
        self.data_source, self.groups = data_source, groups
        self.batch_size = arguments.integer(op, batch_size, "batch_size", 1)
        self.shuffle = arguments.flag(op, shuffle, "shuffle")
        self.seed = arguments.integer(op, seed, "seed")
        self.drop_last = arguments.flag(op, drop_last, "drop_last")
        self.workers, self.rank = workers.size, workers.rank
        self.batches_yielded = 0

    def __len__(self) -> int:
        n = len(self.data_source)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the indices of this worker in each batch of the rest of the epoch, by group.

        A batch of which this worker has no example is left out.
        """
        n = len(self.data_source)
        epoch, start = self._position()
        order: Any = range(n)
        if self.shuffle:
            source = dt.random.Generator(0)
            source.state = self.seed, epoch * n
            order = source.permutation(n, device="reference").tolist()
        for i in range(start, len(self)):
            batch = order[i * self.batch_size : (i + 1) * self.batch_size]
            own = [k for g in self._own_groups() for k in batch[g :: self.groups]]
            if own:
                yield own

    def share_batches(self, batches: Iterator[Any]) -> Iterator[Share]:
        """Yield a `Share` for each batch of the rest of the epoch, and count it.

        - `batches`: the examples of this worker, in the order of the indices.
        """
        _, start = self._position()
        for i in range(start, len(self)):
            size = min(self.batch_size, len(self.data_source) - i * self.batch_size)
            examples = next(batches) if size > self.rank else None
            self.batches_yielded += 1
            yield Share(examples, size, self.groups, self.workers, self.rank)

    def worker_seed(self) -> int:
        """Return a seed for the worker processes of a loader, which is new in each epoch."""
        source = dt.random.Generator(self.seed)
        return source.spawn(self._position()[0] + 1)[-1].state[0]

    def _own_groups(self) -> Iterable[int]:
        """Return the groups of this worker."""
        return list_groups(self.groups, self.workers, self.rank)

    def _position(self) -> tuple[int, int]:
        """Return the epoch, and the number of the next batch within it."""
        return divmod(self.batches_yielded, max(len(self), 1))

    def state_dict(self) -> dict[str, int]:
        """Return the number of batches that were yielded, and the seed of the order."""
        return {"batches_yielded": self.batches_yielded, "seed": self.seed}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue after the batches that were yielded before `state_dict()`.

        - `state`: the result of `state_dict()`, with any number of workers.
        """
        self.batches_yielded, self.seed = state["batches_yielded"], state["seed"]
