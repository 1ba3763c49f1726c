# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.utils.checkpoint`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

from dovetail.torch.autograd import *
def __getattr__(name: str) -> Any: ...
