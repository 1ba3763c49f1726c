"""Data sets: collections of items that are read by index or by iteration."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import accumulate, chain
from typing import Any, Generic, TypeVar

import dovetail as dt
from dovetail.extend import arguments

from ..nn.constructor_errors import Explained

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T = TypeVar("T", covariant=True)
Generator = dt.random.Generator


class Dataset(Explained, Generic[T]):
    """The base class of data sets with items by index.

    Define `__getitem__`, and `__len__`, which samplers need. The loader calls
    `__getitems__(indices)`, if it is defined, for a list of several items.

    >>> import dovetail as dt
    >>> class Squares(dt.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, i):
    ...         return i * i
    >>> [batch.tolist() for batch in dt.data.DataLoader(Squares(), batch_size=2)]
    [[0, 1], [4, 9]]
    """

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__(self, index)")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """The base class of data sets that are only iterated over, by `__iter__`.

    Each worker iterates over a copy of all items; use `get_worker_info()` to select its share.

    >>> import dovetail as dt
    >>> class Upwards(dt.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> [batch.tolist() for batch in dt.data.DataLoader(Upwards(), batch_size=2)]
    [[0, 1], [2]]
    """

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__(self)")

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]  # no numbers
        return ChainDataset([self, other])


def is_iterable(dataset: object) -> bool:
    """Return True for a data set that is only iterated over, of dovetail or of PyTorch."""
    has_items = hasattr(dataset, "__len__") or hasattr(dataset, "__next__")
    return isinstance(dataset, IterableDataset) or (hasattr(dataset, "__iter__") and not has_items)


class TensorDataset(Dataset[tuple[dt.Tensor, ...]]):
    """A data set of tensor rows: item i is a tuple of row i of each tensor.

    - `tensors`: tensors of as many rows, such as inputs and targets.

    A loader gathers all rows of a batch at once.
    Raises: ArgumentError for no tensors, ArgumentTypeError for other objects, ShapeError for
    different numbers of rows.
    See also: `DataLoader`, `StackDataset`.

    >>> import dovetail as dt
    >>> rows = dt.data.TensorDataset(dt.arange(3))
    >>> len(rows), int(rows[1][0])
    (3, 1)
    """

    def __init__(self, *tensors: dt.Tensor) -> None:
        if not tensors:
            raise dt.ArgumentError("data.TensorDataset: expected at least one tensor, got none")
        for x in tensors:
            if not isinstance(x, dt.Tensor):
                raise dt.ArgumentTypeError(
                    f"data.TensorDataset: expected tensors, got {type(x).__name__}; use "
                    "dt.asarray(x)"
                )
        if len({x.shape[:1] for x in tensors}) > 1 or not tensors[0].ndim:
            shapes = ", ".join(str(x.shape) for x in tensors)
            raise dt.ShapeError(
                "data.TensorDataset: tensors must have the same number of rows, got shapes "
                f"{shapes}"
            )
        self.tensors = tensors

    def __repr__(self) -> str:
        rows = ", ".join(f"{x.dtype.name} {x.shape[1:]}" for x in self.tensors)
        return f"TensorDataset({len(self)} rows of {rows})"

    def __getitem__(self, index: Any) -> tuple[dt.Tensor, ...]:
        return tuple([x[index] for x in self.tensors])

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class ConcatDataset(Dataset[Any]):
    """The concatenation of several data sets with items by index.

    - `datasets`: data sets with items by index and a length.

    Raises: ArgumentError for no data sets, ArgumentTypeError for an IterableDataset.

    >>> import dovetail as dt
    >>> both = dt.data.ConcatDataset([[1, 2], [3]])
    >>> len(both), both[2], both[-1]
    (3, 3, 3)
    """

    datasets: list[Any]

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = [*datasets]
        if not self.datasets:
            raise dt.ArgumentError("data.ConcatDataset: expected at least one data set, got none")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise dt.ArgumentTypeError(
                "data.ConcatDataset: expected data sets with items by index, got an "
                "IterableDataset; use ChainDataset"
            )
        for d in self.datasets:
            if not isinstance(d, Sized):
                raise arguments.refused("data.ConcatDataset", "a data set", "a Sized", d)
        self.cumulative_sizes = [*accumulate(map(len, self.datasets))]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise dt.OutOfRangeError(
                f"data.ConcatDataset: index {index} is out of range for {len(self)} items"
            )
        index %= len(self)
        k = bisect_right(self.cumulative_sizes, index)
        return self.datasets[k][index - (self.cumulative_sizes[k - 1] if k else 0)]


class ChainDataset(IterableDataset[Any]):
    """The concatenation of several iterable data sets.

    - `datasets`: data sets of class `IterableDataset`.

    Raises: ArgumentTypeError for a data set that is not an IterableDataset.

    >>> import dovetail as dt
    >>> class Upwards(dt.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(2))
    >>> [*dt.data.ChainDataset([Upwards(), Upwards()])]
    [0, 1, 0, 1]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = [*datasets]
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise dt.ArgumentTypeError(
                    f"data.ChainDataset: expected IterableDatasets, got {type(d).__name__}; use "
                    "ConcatDataset"
                )

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(map(len, self.datasets))


class StackDataset(Dataset[Any]):
    """A data set whose item i is a tuple, or a dict, of item i of several data sets.

    - `args`: data sets, for tuples.
    - `kwargs`: data sets by name, for dicts. Pass either `args` or `kwargs`.

    Raises: ArgumentError for no data sets or different lengths, ArgumentTypeError for an object
    that is no data set.

    >>> import dovetail as dt
    >>> dt.data.StackDataset(image=[10, 20], label=[0, 1])[1]
    {'image': 20, 'label': 1}
    """

    def __init__(self, *args: Sized, **kwargs: Sized) -> None:
        if bool(args) == bool(kwargs):
            raise dt.ArgumentError(
                "data.StackDataset: expected data sets either by position or by name"
            )
        self.datasets: Any = args or kwargs
        every = args or kwargs.values()
        for d in every:
            if not isinstance(d, Sized):
                raise arguments.refused("data.StackDataset", "a data set", "a Sized", d)
        sizes = {len(d) for d in every}
        if len(sizes) > 1:
            raise dt.ArgumentError(
                "data.StackDataset: data sets must have the same length, got lengths "
                f"{sorted(sizes)}"
            )
        self._length = sizes.pop()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple([d[index] for d in self.datasets])

    def __len__(self) -> int:
        return self._length


class Subset(Dataset[Any]):
    """A subset of a data set: item i is item `indices[i]` of the data set.

    - `dataset`: the data set.
    - `indices`: a sequence of indices of items.

    See also: `random_split`.

    >>> import dovetail as dt
    >>> [*map(dt.data.Subset("abcd", [3, 0]).__getitem__, range(2))]
    ['d', 'a']
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: int | list[int]) -> Any:
        if isinstance(index, (list, tuple)):
            return self.dataset[[self._index_of(i) for i in index]]
        return self.dataset[self._index_of(index)]

    def _index_of(self, index: int) -> int:
        """Return the index of an item in the whole data set. Raises: OutOfRangeError."""
        if isinstance(index, int) and not -len(self) <= index < len(self):
            raise dt.OutOfRangeError(
                f"data.Subset: index {index} is out of range for {len(self)} items"
            )
        return self.indices[index]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        selected = [self.indices[i] for i in indices]
        get_items = getattr(self.dataset, "__getitems__", None)
        return [self.dataset[i] for i in selected] if get_items is None else get_items(selected)

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Sized, lengths: Sequence[float], generator: Generator | None = None
) -> list[Subset]:
    """Split a data set at random into disjoint subsets of the given lengths.

    - `dataset`: a data set with a length and items by index.
    - `lengths`: numbers of items whose sum is the length, or fractions whose sum is 1; items left
      over by rounding go to the first subsets, one each.
    - `generator`: the random generator; None is the global one.

    Raises: ArgumentError for lengths with another sum.
    See also: `Subset`, `DataLoader`.

    >>> import dovetail as dt
    >>> rng = dt.random.default_rng(0)
    >>> [len(subset) for subset in dt.data.random_split(range(10), [0.75, 0.25], rng)]
    [8, 2]
    """
    count = len(dataset)
    if all(0 <= n <= 1 for n in lengths) and math.isclose(sum(lengths), 1):
        sizes = [math.floor(count * n) for n in lengths]
        for k in range(count - sum(sizes)):
            sizes[k % len(sizes)] += 1
    elif sum(lengths) == count and all(n >= 0 and n == int(n) for n in lengths):
        sizes = [int(n) for n in lengths]
    else:
        raise dt.ArgumentError(
            f"data.random_split: lengths must be non-negative ints with the sum {count}, or "
            f"fractions with the sum 1, got {[*lengths]}"
        )
    order = random_permutation(count, generator)
    ends = [*accumulate(sizes)]
    return [Subset(dataset, order[end - n : end]) for n, end in zip(sizes, ends, strict=True)]


def random_permutation(n: int, generator: Generator | None) -> list[int]:
    """Return the numbers 0 to n - 1 in random order; None is the global generator."""
    rng: Any = dt.random if generator is None else generator
    order: list[int] = rng.permutation(n).tolist()
    return order
