"""Samplers: the order in which a loader reads the items of a data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

import dovetail as dt
from dovetail.extend import arguments

from ..nn.constructor_errors import Explained
from .datasets import Generator, random_permutation

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
    """The base class of samplers, which define `__iter__` over indices of items, and `__len__`.

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
    """A sampler that yields the indices of all items in order.

    - `data_source`: the data set, of which only the length is used.

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
    """A sampler that yields indices in random order, with or without `replacement`.

    - `data_source`: the data set, of which only the length is used.
    - `replacement`: an index may be drawn more than once.
    - `num_samples`: the number of indices. Default: the number of items.
    - `generator`: the random generator; None is the global one.

    Raises: ArgumentError, also for samples of an empty data set.

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
        self.replacement = _check_flag("RandomSampler", "replacement", replacement)
        self._num_samples = (
            None
            if num_samples is None
            else _check_positive("RandomSampler", "num_samples", num_samples)
        )

    @property
    def num_samples(self) -> int:
        """Return the number of indices that the sampler yields."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, left = len(self.data_source), self.num_samples
        if left and not n:
            raise dt.ArgumentError(
                f"data.RandomSampler: cannot draw {left} samples from an empty data set; pass "
                "num_samples=None"
            )
        if self.replacement and left:
            rng: Any = dt.random if self.generator is None else self.generator
            yield from rng.integers(0, n, (left,)).tolist()
            return
        while left:
            yield from random_permutation(n, self.generator)[:left]
            left -= min(n, left)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """A sampler that yields the given indices in random order.

    - `indices`: the indices.

    >>> import dovetail as dt
    >>> sorted(dt.data.SubsetRandomSampler([7, 5]))
    [5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        return iter(
            [self.indices[i] for i in random_permutation(len(self.indices), self.generator)]
        )

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """A sampler that draws index i with a probability in proportion to `weights[i]`.

    - `weights`: a number >= 0 for each index; their sum may be any.
    - `num_samples`: the number of indices.
    - `replacement`: an index may be drawn more than once.

    Raises: ArgumentError for negative weights, or too few positive ones.

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
        self.replacement = _check_flag("WeightedRandomSampler", "replacement", replacement)
        self.num_samples = _check_positive("WeightedRandomSampler", "num_samples", num_samples)
        self.generator = generator
        self.weights = np.asarray(
            weights.tolist() if isinstance(weights, dt.Tensor) else weights, np.float64
        )
        usable = self.weights[self.weights > 0] if self.weights.ndim == 1 else self.weights
        if self.weights.ndim != 1 or not np.isfinite(self.weights).all() or len(usable) == 0:
            raise dt.ArgumentError(
                "data.WeightedRandomSampler: weights must be a sequence of finite numbers, at "
                f"least one of them positive, got shape {self.weights.shape}"
            )
        if (self.weights < 0).any():
            raise dt.ArgumentError(
                "data.WeightedRandomSampler: weights must not be negative, got "
                f"{self.weights.min()}"
            )
        if not replacement and self.num_samples > len(usable):
            raise dt.ArgumentError(
                f"data.WeightedRandomSampler: cannot draw {self.num_samples} samples from "
                f"{len(usable)} positive weights without replacement; pass replacement=True"
            )

    def __iter__(self) -> Iterator[int]:
        rng: Any = dt.random if self.generator is None else self.generator
        count = self.num_samples if self.replacement else len(self.weights)
        u = np.asarray(rng.uniform((count,)).tolist(), np.float64)
        if self.replacement:
            sums = np.cumsum(self.weights)
            indices = np.searchsorted(sums, u * sums[-1], side="right")
            # rounding of u * sums[-1] must not select an index after the last positive weight
            return iter(np.minimum(indices, np.flatnonzero(self.weights)[-1]).tolist())
        # exponential times with rates `weights`: their order is a weighted draw without replacement
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            times = np.minimum(-np.log1p(-u) / self.weights, np.finfo(np.float64).max)
        times[self.weights == 0] = np.inf
        return iter(np.argsort(times, kind="stable")[: self.num_samples].tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """A sampler that yields lists of `batch_size` indices of another sampler.

    - `sampler`: an iterable of indices.
    - `batch_size`: the number of indices in a list.
    - `drop_last`: skip a last list that is shorter.

    Raises: ArgumentError.

    >>> import dovetail as dt
    >>> [*dt.data.BatchSampler(range(5), batch_size=2, drop_last=False)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        self.sampler = sampler
        self.batch_size = _check_positive("BatchSampler", "batch_size", batch_size)
        self.drop_last = _check_flag("BatchSampler", "drop_last", drop_last)

    def __iter__(self) -> Iterator[list[int]]:
        items = iter(self.sampler)
        while batch := [*islice(items, self.batch_size)]:
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]  # len() raises TypeError
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def _check_positive(name: str, option: str, value: int) -> int:
    """Return a positive int. Raises: ArgumentTypeError for other types, ArgumentError below 1."""
    return arguments.integer(f"data.{name}", value, option, 1)


def _check_flag(name: str, option: str, value: bool) -> bool:
    """Return the value. Raises: ArgumentTypeError unless it is a bool."""
    if not isinstance(value, bool):
        raise dt.ArgumentTypeError(f"data.{name}: {option} must be a bool, got {value!r}")
    return value
