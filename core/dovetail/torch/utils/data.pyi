# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.utils.data`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from collections.abc import Sequence, Sized
from dovetail.data.datasets import Generator, Subset
from dovetail.data.workers import WorkerInfo
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

from dovetail.data import BatchSampler as BatchSampler
from dovetail.data import ChainDataset as ChainDataset
from dovetail.data import ConcatDataset as ConcatDataset
from dovetail.torch.training import DataLoader as DataLoader
from dovetail.data import Dataset as Dataset
from dovetail.data import IterableDataset as IterableDataset
from dovetail.data import RandomSampler as RandomSampler
from dovetail.data import Sampler as Sampler
from dovetail.data import SequentialSampler as SequentialSampler
from dovetail.data import StackDataset as StackDataset
from dovetail.data import Subset as Subset
from dovetail.data import SubsetRandomSampler as SubsetRandomSampler
from dovetail.data import TensorDataset as TensorDataset
from dovetail.data import Track as Track
from dovetail.data import WeightedRandomSampler as WeightedRandomSampler
from dovetail.data import WorkerError as WorkerError
def default_collate(batch: Sequence[Any]) -> Any:
    """Stack tensors, arrays and numbers of items into a batch, without gradients."""
def get_worker_info() -> WorkerInfo | None:
    """Return the identity of this worker process, or None in any other process."""
def random_split(
    dataset: Sized, lengths: Sequence[float], generator: Generator | None = None
) -> list[Subset]:
    """Split a data set at random into disjoint subsets of the given lengths."""
def __getattr__(name: str) -> Any: ...
