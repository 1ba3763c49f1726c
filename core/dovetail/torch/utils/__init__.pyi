# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.utils`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

from . import checkpoint as checkpoint
from . import data as data
from . import tensorboard as tensorboard
def __getattr__(name: str) -> Any: ...
