# Written by tools/faces.py from the `__all__` of the modules.

from .collate import default_collate as default_collate
from .datasets import ChainDataset as ChainDataset
from .datasets import ConcatDataset as ConcatDataset
from .datasets import Dataset as Dataset
from .datasets import IterableDataset as IterableDataset
from .datasets import StackDataset as StackDataset
from .datasets import Subset as Subset
from .datasets import TensorDataset as TensorDataset
from .datasets import random_split as random_split
from .loader import DataLoader as DataLoader
from .loader import WorkerError as WorkerError
from .progress import Track as Track
from .samplers import BatchSampler as BatchSampler
from .samplers import RandomSampler as RandomSampler
from .samplers import Sampler as Sampler
from .samplers import SequentialSampler as SequentialSampler
from .samplers import SubsetRandomSampler as SubsetRandomSampler
from .samplers import WeightedRandomSampler as WeightedRandomSampler
from .workers import get_worker_info as get_worker_info
