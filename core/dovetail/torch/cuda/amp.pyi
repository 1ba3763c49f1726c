# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.cuda.amp`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

from dovetail.torch.amp import *
def __getattr__(name: str) -> Any: ...
