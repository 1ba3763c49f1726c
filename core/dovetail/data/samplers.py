"""Samplers: in which order a loader takes the items of a data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

import dovetail as dt

from ..nn.constructor_errors import Explained
from .datasets import Generator, permuted

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T = TypeVar("T", covariant=True)


class Sampler(Explained, Generic[T]):
    """Base of what says in which order items are taken: write `__iter__`, and `__len__`.

    >>> import dovetail as dt
    >>> class Backwards(dt.data.Sampler):
    ...     def __iter__(self):
    ...         return iter([2, 1, 0])
    >>> [*dt.data.DataLoader("abc", sampler=Backwards())]
    [['c'], ['b'], ['a']]
    """

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__(self)")


class SequentialSampler(Sampler[int]):
    """The items in order.

    >>> import dovetail as dt
    >>> [*dt.data.SequentialSampler("abc")]
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """The items in an order of chance; with `replacement` each draw is of all of them.

    `num_samples`: how many; as many as there are unless given. `generator`: of random numbers, the
    default one unless given. Raises: ArgumentError.

    >>> import dovetail as dt
    >>> sorted(dt.data.RandomSampler("abc"))
    [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source, self.generator = data_source, generator
        self.replacement = _flag("RandomSampler", "replacement", replacement)
        self._num_samples = num_samples
        if num_samples is not None:
            _positive("RandomSampler", "num_samples", num_samples)

    @property
    def num_samples(self) -> int:
        """How many items it takes."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, left = len(self.data_source), self.num_samples
        if self.replacement and left:
            drawn: Any = dt.random if self.generator is None else self.generator
            yield from drawn.integers(0, n, (left,)).tolist()
            return
        while left and n:
            yield from permuted(n, self.generator)[:left]
            left -= min(n, left)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """These items, in an order of chance.

    >>> import dovetail as dt
    >>> sorted(dt.data.SubsetRandomSampler([7, 5]))
    [5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        return iter([self.indices[i] for i in permuted(len(self.indices), self.generator)])

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Items drawn by chance, item i in proportion to `weights[i]`.

    `num_samples`: how many. `replacement`: whether one may be drawn again.
    Raises: ArgumentError for weights that are negative or too few.

    >>> import dovetail as dt
    >>> [*dt.data.WeightedRandomSampler([0.0, 1.0], 3)]
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        self.replacement = _flag("WeightedRandomSampler", "replacement", replacement)
        self.num_samples = _positive("WeightedRandomSampler", "num_samples", num_samples)
        self.generator = generator
        self.weights = np.asarray(
            weights.tolist() if isinstance(weights, dt.Tensor) else weights, np.float64
        )
        usable = self.weights[self.weights > 0] if self.weights.ndim == 1 else self.weights
        if self.weights.ndim != 1 or not np.isfinite(self.weights).all() or len(usable) == 0:
            raise dt.ArgumentError(
                f"data.WeightedRandomSampler: weights of shape {self.weights.shape}; they are a "
                "sequence of finite numbers, some of them greater than 0"
            )
        if (self.weights < 0).any():
            raise dt.ArgumentError("data.WeightedRandomSampler: a weight is negative")
        if not replacement and num_samples > len(usable):
            raise dt.ArgumentError(
                f"data.WeightedRandomSampler: {num_samples} samples without replacement of "
                f"{len(usable)} weights greater than 0"
            )

    def __iter__(self) -> Iterator[int]:
        drawn: Any = dt.random if self.generator is None else self.generator
        count = self.num_samples if self.replacement else len(self.weights)
        u = np.asarray(drawn.uniform((count,)).tolist(), np.float64)
        if self.replacement:
            sums = np.cumsum(self.weights)
            found = np.searchsorted(sums, u * sums[-1], side="right")
            return iter(np.minimum(found, np.flatnonzero(self.weights)[-1]).tolist())
        # the least of exponential times come first
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            times = np.minimum(-np.log1p(-u) / self.weights, np.finfo(np.float64).max)
        times[self.weights == 0] = np.inf
        return iter(np.argsort(times, kind="stable")[: self.num_samples].tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` items of another sampler; `drop_last`: but for a last, shorter one.

    Raises: ArgumentError.

    >>> import dovetail as dt
    >>> [*dt.data.BatchSampler(range(5), batch_size=2, drop_last=False)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        self.sampler = sampler
        self.batch_size = _positive("BatchSampler", "batch_size", batch_size)
        self.drop_last = _flag("BatchSampler", "drop_last", drop_last)

    def __iter__(self) -> Iterator[list[int]]:
        items = iter(self.sampler)
        while batch := [*islice(items, self.batch_size)]:
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]  # what has none says so
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def _positive(name: str, option: str, value: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise dt.ArgumentError(f"data.{name}: {option} is {value!r}; it is an int of 1 or more")
    return value


def _flag(name: str, option: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise dt.ArgumentTypeError(f"data.{name}: {option} is {value!r}; it is a bool")
    return value
